// The schema of descriptions: a part of the HTML that the sanitizer of the server allows.

import { Schema } from "prosemirror-model";

/** The schemes of links that the sanitizer keeps (URL_SCHEMES in kalends/core/sanitize.py). */
export const SCHEMES = ["http:", "https:", "mailto:"];

/** Inline elements without a button. They are kept, but cannot be added. */
const OTHER_INLINE = ["u", "s", "sub", "sup", "code", "mark", "small", "del", "ins", "cite", "q", "kbd", "samp", "var"];
export const INLINE = ["a", "strong", "b", "em", "i", ...OTHER_INLINE];

/** Return whether the sanitizer keeps a link; relative ones are resolved against the page. */
export function isAllowedLink(href) {
  try {
    return SCHEMES.includes(new URL(href, document.baseURI).protocol);
  } catch {
    return false;
  }
}

/** Return whether the first text of an element stands directly in it, as in `<li>text</li>`. */
function isBare(element) {
  return !element.querySelector(":scope > p");
}

function heading(level) {
  return { tag: `h${level}`, attrs: { level } };
}

function link(element) {
  const href = element.getAttribute("href");
  if (!isAllowedLink(href)) return false;
  return { href, title: element.getAttribute("title"), hreflang: element.getAttribute("hreflang") };
}

/** Return the attributes that have a value. */
function present(attributes) {
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== null));
}

const bare = { default: true, validate: "boolean" };

export const schema = new Schema({
  nodes: {
    doc: { content: "block+" },
    paragraph: { content: "inline*", group: "block", parseDOM: [{ tag: "p" }], toDOM: () => ["p", 0] },
    blockquote: {
      content: "block+",
      group: "block",
      defining: true,
      attrs: { bare: { default: false, validate: "boolean" } },
      parseDOM: [{ tag: "blockquote", getAttrs: (element) => ({ bare: isBare(element) }) }],
      toDOM: () => ["blockquote", 0],
    },
    horizontal_rule: { group: "block", parseDOM: [{ tag: "hr" }], toDOM: () => ["hr"] },
    heading: {
      content: "inline*",
      group: "block",
      defining: true,
      attrs: { level: { default: 2, validate: "number" } },
      parseDOM: [2, 3, 4].map(heading),
      toDOM: (node) => [`h${node.attrs.level}`, 0],
    },
    ordered_list: {
      content: "list_item+",
      group: "block list",
      attrs: { start: { default: null, validate: "string|null" } },
      parseDOM: [{ tag: "ol", getAttrs: (element) => ({ start: element.getAttribute("start") }) }],
      toDOM: (node) => ["ol", present(node.attrs), 0],
    },
    bullet_list: { content: "list_item+", group: "block list", parseDOM: [{ tag: "ul" }], toDOM: () => ["ul", 0] },
    list_item: {
      content: "paragraph block*",
      defining: true,
      attrs: { bare },
      parseDOM: [{ tag: "li", getAttrs: (element) => ({ bare: isBare(element) }) }],
      toDOM: () => ["li", 0],
    },
    text: { group: "inline" },
    hard_break: {
      inline: true,
      group: "inline",
      selectable: false,
      parseDOM: [{ tag: "br" }],
      toDOM: () => ["br"],
    },
  },
  marks: {
    link: {
      inclusive: false,
      attrs: { href: { validate: "string" }, title: { default: null }, hreflang: { default: null } },
      parseDOM: [{ tag: "a[href]", getAttrs: link }],
      toDOM: (mark) => ["a", present(mark.attrs), 0],
    },
    strong: {
      attrs: { tag: { default: "strong", validate: "string" } },
      parseDOM: ["strong", "b"].map((tag) => ({ tag, attrs: { tag } })),
      toDOM: (mark) => [mark.attrs.tag, 0],
    },
    em: {
      attrs: { tag: { default: "em", validate: "string" } },
      parseDOM: ["em", "i"].map((tag) => ({ tag, attrs: { tag } })),
      toDOM: (mark) => [mark.attrs.tag, 0],
    },
    inline: {
      excludes: "",
      attrs: { tag: { validate: "string" } },
      parseDOM: OTHER_INLINE.map((tag) => ({ tag, attrs: { tag } })),
      toDOM: (mark) => [mark.attrs.tag, 0],
    },
  },
});
