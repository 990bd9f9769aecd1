// Pasted HTML of office programs and web pages: cured of what the browser or the schema would misread.

import { DOMParser, Fragment, Slice } from "prosemirror-model";

import { SCHEMES, schema } from "./schema.js";

// Elements whose content is text, not markup. It is dropped.
const RAW_TEXT = ["script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes", "noscript"];
// The policy of the page forbids inline styles and handlers, and reports each one that the browser parses.
const FORBIDDEN_ATTRIBUTE = /^(style|on.*)$/i;
// Elements of a head, without content. The policy reports some of them as well.
const HEAD = ["base", "link", "meta"];
const SPACE = /[ \t\n\f\r]/;

/**
 * Rename `style` and event handlers to `data-…` in all start tags, and drop scripts, style sheets and links to them.
 *
 * This is a tokenizer and not an expression, because attribute values can contain `>` and texts can contain `style=`.
 */
export function renameAttributes(html) {
  let output = "";
  let position = 0;
  while (position < html.length) {
    const open = html.indexOf("<", position);
    if (open < 0) return output + html.slice(position);
    output += html.slice(position, open);
    if (html.startsWith("<!--", open)) {
      position = skipComment(html, open);
    } else if (/[a-zA-Z]/.test(html[open + 1] ?? "")) {
      const tag = readStartTag(html, open);
      const isRawText = RAW_TEXT.includes(tag.name);
      position = isRawText ? skipRawText(html, tag) : tag.end;
      if (!isRawText && !HEAD.includes(tag.name)) output += tag.text;
    } else {
      output += "<";
      position = open + 1;
    }
  }
  return output;
}

/** Return the position after a comment; one that does not end reaches to the end of the text. */
function skipComment(html, start) {
  const short = /^<!--(>|->)/.exec(html.slice(start, start + 6));
  if (short) return start + short[0].length;
  const end = /--!?>/g;
  end.lastIndex = start + 4;
  return end.test(html) ? end.lastIndex : html.length;
}

function skipRawText(html, tag) {
  const end = new RegExp(`</${tag.name}(?=[ \\t\\n\\f\\r/>])`, "ig");
  end.lastIndex = tag.end;
  const match = end.exec(html);
  if (!match) return html.length;
  const close = html.indexOf(">", match.index);
  return close < 0 ? html.length : close + 1;
}

/** Read a start tag: its name, its text with renamed attributes, and the position after it. */
function readStartTag(html, start) {
  let position = start + 1;
  while (position < html.length && !SPACE.test(html[position]) && !"/>".includes(html[position])) position++;
  const name = html.slice(start + 1, position).toLowerCase();
  let text = html.slice(start, position);
  while (position < html.length && html[position] !== ">") {
    if (SPACE.test(html[position]) || html[position] === "/") {
      text += html[position++];
      continue;
    }
    const attribute = readAttribute(html, position);
    text += attribute.text;
    position = attribute.end;
  }
  // A tag that does not end is dropped by the browser as well.
  if (position >= html.length) return { name, text: "", end: html.length };
  return { name, text: `${text}>`, end: position + 1 };
}

/** Read an attribute with a value in double, single or no quotes, or without a value. */
function readAttribute(html, start) {
  let position = start + 1; // A leading `=` is a part of the name.
  while (position < html.length && !SPACE.test(html[position]) && !"/>=".includes(html[position])) position++;
  const name = html.slice(start, position);
  const newName = FORBIDDEN_ATTRIBUTE.test(name) ? `data-${name}` : name;
  let end = position;
  while (end < html.length && SPACE.test(html[end])) end++;
  if (html[end] !== "=") return { text: newName, end: position };
  end++;
  while (end < html.length && SPACE.test(html[end])) end++;
  end = skipValue(html, end);
  return { text: newName + html.slice(position, end), end };
}

function skipValue(html, start) {
  const quote = html[start];
  if (quote === '"' || quote === "'") {
    const close = html.indexOf(quote, start + 1);
    return close < 0 ? html.length : close + 1;
  }
  let end = start;
  while (end < html.length && !SPACE.test(html[end]) && html[end] !== ">") end++;
  return end;
}

/** Return a property of the renamed style attribute, in lower case. */
function readStyle(element, property) {
  const expression = new RegExp(`(?:^|;)\\s*${property}\\s*:\\s*([^;]+)`, "i");
  return expression.exec(element.getAttribute("data-style") ?? "")?.[1].trim().toLowerCase();
}

const isBold = (weight) => weight !== undefined && (/^bold(er)?$/.test(weight) || Number(weight) >= 600);
const isNormal = (weight) => weight !== undefined && (/^(normal|lighter)$/.test(weight) || Number(weight) < 600);
const isItalic = (style) => style !== undefined && /^(italic|oblique)/.test(style);

function link(element) {
  try {
    const url = new URL(element.getAttribute("href").trim());
    return SCHEMES.includes(url.protocol) && { href: url.href.replace(/[<>"]/g, encodeURIComponent) };
  } catch {
    return false; // A relative link belongs to the page that it was copied from.
  }
}

const rules = [
  ...["script", "style", "title", "head", "template", "svg", "math", "object", "select", "button"].map((tag) => ({
    tag,
    ignore: true,
  })),
  // The bullets and numbers that Word writes as text.
  { tag: "[data-style*='mso-list:Ignore' i]", ignore: true },
  { tag: "a[href]", mark: "link", getAttrs: link },
  ...["b", "strong"].map((tag) => ({
    tag,
    mark: "strong",
    getAttrs: (element) => (isNormal(readStyle(element, "font-weight")) ? false : null),
  })),
  ...["i", "em"].map((tag) => ({
    tag,
    mark: "em",
    getAttrs: (element) => (readStyle(element, "font-style") === "normal" ? false : null),
  })),
  {
    tag: "[data-style*='font-weight' i]:is(span, font, a)",
    mark: "strong",
    consuming: false,
    getAttrs: (element) => (isBold(readStyle(element, "font-weight")) ? null : false),
  },
  {
    tag: "[data-style*='font-style' i]:is(span, font, a)",
    mark: "em",
    consuming: false,
    getAttrs: (element) => (isItalic(readStyle(element, "font-style")) ? null : false),
  },
  ...["sub", "sup"].map((tag) => ({ tag, mark: "inline", attrs: { tag } })),
  // The title of a page is its only heading of the first level.
  ...[1, 2, 3, 4, 5, 6].map((level) => ({
    tag: `h${level}`,
    node: "heading",
    attrs: { level: Math.min(Math.max(level, 2), 4) },
  })),
  { tag: "p", node: "paragraph" },
  { tag: "blockquote", node: "blockquote" },
  { tag: "hr", node: "horizontal_rule" },
  { tag: "ol", node: "ordered_list" },
  { tag: "ul", node: "bullet_list" },
  { tag: "li", node: "list_item" },
  { tag: "br", node: "hard_break" },
];

class PasteParser extends DOMParser {
  parseSlice(root, options) {
    cureWordLists(root);
    cureTables(root);
    cureIndentedLists(root);
    return dropEmptyBlocks(super.parseSlice(root, options));
  }
}

export const pasteParser = new PasteParser(schema, rules);

/** Turn the list paragraphs of Word into lists. Their level is in the style, their number or bullet in the text. */
function cureWordLists(root) {
  const levels = []; // the open list of each level
  let previous = null;
  for (const paragraph of root.querySelectorAll("[data-style*='mso-list' i]:is(p, h1, h2, h3, h4)")) {
    const match = /level(\d)/i.exec(readStyle(paragraph, "mso-list") ?? "");
    if (!match) continue;
    if (!previous || previous !== paragraph.previousElementSibling) levels.length = 0;
    const level = Math.min(Number(match[1]), levels.length + 1);
    levels.length = Math.min(levels.length, level);
    if (!levels[level - 1]) levels[level - 1] = addList(paragraph, levels[level - 2]);
    const item = paragraph.ownerDocument.createElement("li");
    levels[level - 1].append(item);
    previous = levels[0];
    item.append(paragraph);
  }
}

/** Add a list in the last entry of another one, or in the place of its first paragraph. */
function addList(paragraph, parent) {
  const marker = paragraph.querySelector("[data-style*='mso-list:Ignore' i]")?.textContent.trim() ?? "";
  const list = paragraph.ownerDocument.createElement(/^[\da-z]{1,4}[.)]/i.test(marker) ? "ol" : "ul");
  if (parent?.lastElementChild) parent.lastElementChild.append(list);
  else paragraph.before(list);
  return list;
}

/** Turn each row of a table into a block, with spaces between its cells. */
function cureTables(root) {
  for (const row of root.querySelectorAll("tr")) {
    const block = row.ownerDocument.createElement("div");
    for (const cell of row.querySelectorAll(":scope > :is(td, th)")) block.append(...cell.childNodes, " ");
    row.replaceWith(block);
  }
}

/** Take a list out of another one if it does not follow an entry, as where it only stands for an indent. */
function cureIndentedLists(root) {
  for (const list of root.querySelectorAll(":is(ul, ol) > :is(ul, ol):first-child")) {
    list.replaceWith(...list.childNodes);
  }
}

/** Drop blocks without text between others, with which office programs make distances. */
function dropEmptyBlocks(slice) {
  const kept = [];
  slice.content.forEach((node) => {
    const isEmpty = !/[^\s\u00a0]/.test(node.textContent);
    if (!isEmpty || !(node.isTextblock || node.isInline)) kept.push(node);
  });
  if (!kept.length || kept.length === slice.content.childCount) return slice;
  return Slice.maxOpen(Fragment.from(kept));
}
