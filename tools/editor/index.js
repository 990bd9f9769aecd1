// Rich text for textareas with HTML. The module starts by itself:
//
//   <div hidden data-rich-text-source>…the sanitized HTML…</div>
//   <textarea data-rich-text name="description">…the same…</textarea>
//
// The template `[data-rich-text-toolbar]` of the page has the toolbar, `[data-rich-text-notice]` the notice for a text
// that the editor cannot show completely. Such a text, and every text without script, stays in the textarea.

import { baseKeymap } from "prosemirror-commands";
import { history } from "prosemirror-history";
import { undoInputRule } from "prosemirror-inputrules";
import { keymap } from "prosemirror-keymap";
import { EditorState, Plugin } from "prosemirror-state";
import { EditorView } from "prosemirror-view";

import { makeKeys, typingRules } from "./commands.js";
import { isComplete, parse, serialize } from "./html.js";
import { pasteParser, renameAttributes } from "./paste.js";
import { Toolbar } from "./toolbar.js";

/** Return the element before a textarea that has its content as DOM. */
function findSource(textarea) {
  const own = textarea.previousElementSibling;
  return own?.matches("[data-rich-text-source]") ? own : null;
}

/** Replace a textarea with an editor, unless its text has markup that the editor would lose. */
function start(textarea) {
  const source = findSource(textarea);
  if (!source) return;
  const doc = parse(source);
  if (isComplete(doc, source)) mount(textarea, doc);
  else addNotice(textarea);
}

function addNotice(textarea) {
  const template = document.querySelector("template[data-rich-text-notice]");
  if (template) textarea.before(template.content.cloneNode(true));
}

function mount(textarea, doc) {
  const place = document.createElement("div");
  place.className = "rich-text";
  textarea.after(place);
  textarea.hidden = true;
  let toolbar = null;
  const view = new EditorView(place, {
    state: EditorState.create({ doc, plugins: makePlugins(() => toolbar) }),
    attributes: makeAttributes(textarea),
    clipboardParser: pasteParser,
    transformPastedHTML: renameAttributes,
    dispatchTransaction(transaction) {
      view.updateState(view.state.apply(transaction));
      if (transaction.docChanged) write(textarea, view.state.doc);
    },
  });
  toolbar = addToolbar(place, view);
  addFocus(textarea, view);
}

function makePlugins(getToolbar) {
  const openLink = () => getToolbar()?.panel.open() ?? false;
  const focusToolbar = () => getToolbar()?.focus() ?? false;
  return [
    typingRules,
    keymap({ Backspace: undoInputRule }),
    keymap(makeKeys(openLink, focusToolbar)),
    keymap(baseKeymap),
    history(),
    new Plugin({ view: () => ({ update: (view) => getToolbar()?.update(view) }) }),
  ];
}

/** Return the attributes of the editable element: the name and the description of the textarea. */
function makeAttributes(textarea) {
  const label = textarea.labels?.[0];
  if (label) label.id ||= `${textarea.id}-label`;
  const attributes = { role: "textbox", "aria-multiline": "true", class: "rich-text-content" };
  const name = textarea.getAttribute("aria-labelledby") ?? label?.id;
  if (name) attributes["aria-labelledby"] = name;
  for (const other of ["aria-label", "aria-describedby", "aria-invalid", "lang"]) {
    if (textarea.hasAttribute(other)) attributes[other] = textarea.getAttribute(other);
  }
  return attributes;
}

function addToolbar(place, view) {
  const template = document.querySelector("template[data-rich-text-toolbar]");
  if (!template) return null;
  const toolbar = new Toolbar(template, view);
  place.prepend(toolbar.dom);
  toolbar.update(view);
  return toolbar;
}

/** Move the focus to the editor when its label is clicked, or an error above the form links to the field. */
function addFocus(textarea, view) {
  textarea.labels?.[0]?.addEventListener("click", () => view.focus());
  addEventListener("click", (event) => {
    if (event.target.closest?.("a[href]")?.getAttribute("href") !== `#${textarea.id}`) return;
    event.preventDefault();
    view.focus();
  });
}

function write(textarea, doc) {
  textarea.value = serialize(doc);
  textarea.dispatchEvent(new Event("input", { bubbles: true }));
}

for (const textarea of document.querySelectorAll("textarea[data-rich-text]")) start(textarea);
