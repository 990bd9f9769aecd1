// The commands of the toolbar and of the keyboard.

import {
  chainCommands,
  createParagraphNear,
  exitCode,
  lift,
  liftEmptyBlock,
  setBlockType,
  splitBlock,
  toggleMark,
  wrapIn,
} from "prosemirror-commands";
import { redo, redoDepth, undo, undoDepth } from "prosemirror-history";
import { InputRule, inputRules, textblockTypeInputRule, wrappingInputRule } from "prosemirror-inputrules";
import { liftListItem, sinkListItem, splitListItem, wrapInList } from "prosemirror-schema-list";
import { AllSelection, TextSelection } from "prosemirror-state";

import { SCHEMES, schema } from "./schema.js";

const { nodes, marks } = schema;

/** Return the state with the text selected if the whole document is, because most commands need a text. */
function selectText(state) {
  if (!(state.selection instanceof AllSelection)) return state;
  const selection = TextSelection.between(state.doc.resolve(0), state.doc.resolve(state.doc.content.size));
  return state.apply(state.tr.setSelection(selection));
}

/** Return a command for the selected text. */
function onText(command) {
  return (state, dispatch, view) => command(selectText(state), dispatch, view);
}

/** Return the innermost node around the selection that fulfils a condition, with its position. */
function findAround(state, condition) {
  const { $from } = selectText(state).selection;
  for (let depth = $from.depth; depth > 0; depth--) {
    const node = $from.node(depth);
    if (condition(node)) return { node, position: $from.before(depth) };
  }
  return null;
}

const findList = (state) => findAround(state, (node) => node.type.isInGroup("list"));
const findItem = (state) => findAround(state, (node) => node.type === nodes.list_item);

/** Wrap the selection in a list, change the type of its list, or take it out of the list. */
function toggleList(type) {
  return (state, dispatch, view) => {
    const list = findList(state);
    if (!list) return wrapInList(type)(state, dispatch);
    if (list.node.type === type) return liftListItem(nodes.list_item)(state, dispatch, view);
    if (dispatch) dispatch(state.tr.setNodeMarkup(list.position, type));
    return true;
  };
}

function toggleQuote(state, dispatch) {
  const isInside = findAround(state, (node) => node.type === nodes.blockquote);
  return isInside ? lift(state, dispatch) : wrapIn(nodes.blockquote)(state, dispatch);
}

function isHeading(state, level) {
  const { parent } = selectText(state).selection.$from;
  return parent.type === nodes.heading && parent.attrs.level === level;
}

function toggleHeading(level) {
  return (state, dispatch) =>
    isHeading(state, level)
      ? setBlockType(nodes.paragraph)(state, dispatch)
      : setBlockType(nodes.heading, { level })(state, dispatch);
}

function addRule(state, dispatch) {
  if (dispatch) dispatch(state.tr.replaceSelectionWith(nodes.horizontal_rule.create()).scrollIntoView());
  return true;
}

function addBreak(state, dispatch) {
  if (dispatch) dispatch(state.tr.replaceSelectionWith(nodes.hard_break.create()).scrollIntoView());
  return true;
}

function isMarked(state, type) {
  const { from, to, empty, $from } = state.selection;
  if (empty) return Boolean(type.isInSet(state.storedMarks ?? $from.marks()));
  return state.doc.rangeHasMark(from, to, type);
}

/** The commands by name. `isActive` tells whether the button is pressed; others have no such state. */
export const COMMANDS = {
  bold: { run: onText(toggleMark(marks.strong)), isActive: (state) => isMarked(state, marks.strong) },
  italic: { run: onText(toggleMark(marks.em)), isActive: (state) => isMarked(state, marks.em) },
  "heading-2": { run: onText(toggleHeading(2)), isActive: (state) => isHeading(state, 2) },
  "heading-3": { run: onText(toggleHeading(3)), isActive: (state) => isHeading(state, 3) },
  "heading-4": { run: onText(toggleHeading(4)), isActive: (state) => isHeading(state, 4) },
  "bullet-list": {
    run: onText(toggleList(nodes.bullet_list)),
    isActive: (state) => findList(state)?.node.type === nodes.bullet_list,
  },
  "ordered-list": {
    run: onText(toggleList(nodes.ordered_list)),
    isActive: (state) => findList(state)?.node.type === nodes.ordered_list,
  },
  quote: {
    run: onText(toggleQuote),
    isActive: (state) => Boolean(findAround(state, (node) => node.type === nodes.blockquote)),
  },
  rule: { run: addRule },
  undo: { run: undo, isPossible: (state) => undoDepth(state) > 0 },
  redo: { run: redo, isPossible: (state) => redoDepth(state) > 0 },
};

/** The keys of the commands. Tab is left to the browser, so that the keyboard can leave the editor. */
export function makeKeys(openLink, focusToolbar) {
  const splitBlocks = chainCommands(
    (state, dispatch) => Boolean(findItem(state)) && splitListItem(nodes.list_item)(state, dispatch),
    createParagraphNear,
    liftEmptyBlock,
    splitBlock,
  );
  return {
    "Mod-b": COMMANDS.bold.run,
    "Mod-i": COMMANDS.italic.run,
    "Mod-z": undo,
    "Mod-y": redo,
    "Shift-Mod-z": redo,
    "Mod-k": openLink,
    "Mod-Alt-0": onText(setBlockType(nodes.paragraph)),
    "Mod-Alt-2": COMMANDS["heading-2"].run,
    "Mod-Alt-3": COMMANDS["heading-3"].run,
    "Mod-Alt-4": COMMANDS["heading-4"].run,
    "Shift-Mod-7": COMMANDS["ordered-list"].run,
    "Shift-Mod-8": COMMANDS["bullet-list"].run,
    "Mod-]": sinkListItem(nodes.list_item),
    "Mod-[": liftListItem(nodes.list_item),
    "Alt-F10": focusToolbar,
    "Shift-Enter": chainCommands(exitCode, addBreak),
    Enter: splitBlocks,
  };
}

/** Texts that start a list, a quotation, a heading or a rule. */
export const typingRules = inputRules({
  rules: [
    wrappingInputRule(/^\s*([-+*])\s$/, nodes.bullet_list),
    wrappingInputRule(/^1\.\s$/, nodes.ordered_list),
    wrappingInputRule(/^\s*>\s$/, nodes.blockquote),
    textblockTypeInputRule(/^(#{2,4})\s$/, nodes.heading, (match) => ({ level: match[1].length })),
    new InputRule(/^---$/, (state, _, start, end) =>
      state.tr.replaceRangeWith(start - 1, end, nodes.horizontal_rule.create()),
    ),
  ],
});

/** Return the link around the selection: its range and address. */
export function findLink(state) {
  const { $from, from, to, empty } = selectText(state).selection;
  if (!empty) {
    let mark = null;
    state.doc.nodesBetween(from, to, (node) => {
      mark ??= marks.link.isInSet(node.marks) ?? null;
    });
    return { from, to, href: mark?.attrs.href ?? "" };
  }
  const mark = marks.link.isInSet($from.marks());
  if (!mark) return { from, to, href: "" };
  return { ...findRange($from, mark), href: mark.attrs.href };
}

/** Return the range of the text around a position with the same mark. */
function findRange($position, mark) {
  const { parent } = $position;
  let [first, last] = [$position.index(), $position.index()];
  if (first === parent.childCount || !mark.isInSet(parent.child(first).marks)) first = last = first - 1;
  while (first > 0 && mark.isInSet(parent.child(first - 1).marks)) first--;
  while (last + 1 < parent.childCount && mark.isInSet(parent.child(last + 1).marks)) last++;
  let from = $position.start();
  for (let index = 0; index < first; index++) from += parent.child(index).nodeSize;
  let to = from;
  for (let index = first; index <= last; index++) to += parent.child(index).nodeSize;
  return { from, to };
}

/** Set the address of a link. Without a selected text, the address is inserted as its text. */
export function setLink(view, { from, to }, href) {
  const { tr } = view.state;
  if (from === to) tr.insertText(href.replace(/^mailto:/, ""), from);
  const end = from === to ? tr.mapping.map(to) : to;
  tr.removeMark(from, end, marks.link).addMark(from, end, marks.link.create({ href }));
  view.dispatch(tr.removeStoredMark(marks.link));
}

export function removeLink(view, { from, to }) {
  view.dispatch(view.state.tr.removeMark(from, to, marks.link));
}

/** Return the address that a user typed, with its scheme; null if the sanitizer would not keep it. */
export function completeAddress(text) {
  const typed = text.trim();
  if (!typed || /\s/.test(typed)) return null;
  const hasScheme = /^[a-z][a-z0-9+.-]*:(?!\d)/i.test(typed);
  const address = hasScheme ? typed : /^[^/@]+@[^/@]+$/.test(typed) ? `mailto:${typed}` : `https://${typed}`;
  try {
    const url = new URL(address);
    return SCHEMES.includes(url.protocol) ? url.href.replace(/[<>"]/g, encodeURIComponent) : null;
  } catch {
    return null;
  }
}
