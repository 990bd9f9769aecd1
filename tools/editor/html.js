// Documents as HTML, and the comparison that tells whether a document contains all of its source.

import { DOMParser, DOMSerializer } from "prosemirror-model";

import { INLINE, schema } from "./schema.js";

const parser = DOMParser.fromSchema(schema);
const serializer = DOMSerializer.fromSchema(schema);
// Characters that the sanitizer removes, and line ends that it replaces.
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;
const LINE_ENDS = /\r\n?|[\u2028\u2029]/g;

/** Return the document of the content of an element. */
export function parse(element) {
  return parser.parse(element);
}

/** Return a document as HTML, with one block per line; an empty one as an empty string. */
export function serialize(doc) {
  return renderAll(doc).innerHTML;
}

/** Return an element with the content of a document. */
function renderAll(doc) {
  const root = document.createElement("div");
  if (doc.childCount === 1 && doc.firstChild.isTextblock && !doc.firstChild.content.size) return root;
  doc.forEach((node) => {
    if (root.hasChildNodes()) root.append("\n");
    root.append(render(node));
  });
  return root;
}

/** Return a node as DOM. */
function render(node) {
  if (node.isText || node.isTextblock || node.isLeaf) return clean(serializer.serializeNode(node));
  const element = serializer.serializeNode(node.type.create(node.attrs, []));
  node.forEach((child, _, index) => {
    const rendered = render(child);
    element.append(...(index === 0 && isUnwrapped(node) ? rendered.childNodes : [rendered]));
  });
  return element;
}

/** Return whether the first paragraph of a node is written without its tag: it is the only text beside lists. */
function isUnwrapped(node) {
  if (!node.attrs.bare || node.firstChild.type !== schema.nodes.paragraph) return false;
  for (let index = 1; index < node.childCount; index++) {
    if (!node.child(index).type.isInGroup("list")) return false;
  }
  return true;
}

/** Normalize the texts of an element as the sanitizer does. */
function clean(element) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    const text = node.data.replace(LINE_ENDS, "\n").replace(CONTROL, "").normalize("NFC");
    if (text !== node.data) node.data = text;
  }
  return element;
}

/** Return whether a document contains all of the content of an element, apart from insignificant white space. */
export function isComplete(doc, source) {
  return describe(source) === describe(renderAll(doc));
}

/** Return a text that is equal for equal content: the order of nested inline elements does not matter. */
export function describe(root) {
  const parts = [];
  let runs = [];

  function flush() {
    parts.push(...joinRuns(runs));
    runs = [];
  }

  function visit(node, marks) {
    if (node.nodeType === Node.TEXT_NODE) runs.push([node.data.replace(/[ \t\n\r\f]+/g, " "), marks]);
    if (node.nodeType !== Node.ELEMENT_NODE) return;
    const tag = startTag(node);
    if (INLINE.includes(node.localName)) {
      for (const child of node.childNodes) visit(child, [...marks, tag].sort());
      return;
    }
    flush();
    parts.push(tag);
    // A break belongs to the marks around it, but carries nothing of them.
    for (const child of node.childNodes) visit(child, []);
    flush();
    parts.push(`</${node.localName}>`);
  }

  for (const child of root.childNodes) visit(child, []);
  flush();
  return JSON.stringify(parts);
}

function startTag(element) {
  const attributes = [...element.attributes].map(({ name, value }) => ` ${name}=${JSON.stringify(value)}`);
  return `<${element.localName}${attributes.sort().join("")}>`;
}

/** Return the texts between two block boundaries with their marks; white space is collapsed as on the screen. */
function joinRuns(runs) {
  const joined = [];
  for (const [text, marks] of runs) {
    const last = joined.at(-1);
    const follows = !last || last[0].endsWith(" ");
    const visible = follows ? text.replace(/^ /, "") : text;
    if (!visible) continue;
    if (last && last[1].join() === marks.join()) last[0] += visible;
    else joined.push([visible, marks]);
  }
  const last = joined.at(-1);
  if (last) last[0] = last[0].replace(/ $/, "");
  return joined.filter(([text]) => text);
}
