// The appearance: colour pickers, notes on contrast, and the preview while choosing.

import { debounce } from "./api.js";

const form = document.getElementById("appearance");
const frame = document.getElementById("preview");
const css = document.getElementById("custom_css");
const NAMES = ["accent", "second_accent", "fonts", "logo_url"];
const COLOUR = /^#[0-9a-f]{6}$/i;

document.getElementById("preview-button").hidden = true;
document.getElementById("upload").hidden = true;
document.getElementById("file").addEventListener("change", () => form.requestSubmit(document.getElementById("upload")));

for (const picker of form.querySelectorAll("input[type=color]")) {
  const field = document.getElementById(picker.dataset.for);
  picker.hidden = false;
  picker.addEventListener("input", () => {
    field.value = picker.value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
  field.addEventListener("input", () => {
    if (COLOUR.test(field.value)) picker.value = field.value;
  });
}

/** Return the values of the form as a query string. The frame gets the custom CSS without a request. */
function makeQuery() {
  const values = new FormData(form);
  const query = new URLSearchParams(NAMES.map((name) => [name, values.get(name) ?? ""]));
  query.set("custom_css", "");
  return query;
}

/** Show the calendar with the values of the form. Nothing is added to the history of the browser. */
function refresh() {
  const { contentWindow } = frame;
  const top = contentWindow.scrollY;
  frame.addEventListener("load", () => contentWindow.scrollTo({ top, behavior: "instant" }), { once: true });
  contentWindow.location.replace(`/console/settings/preview?${makeQuery()}`);
}

/** Apply the custom CSS to the page in the frame. */
function applyCss() {
  const sheet = new frame.contentWindow.CSSStyleSheet();
  sheet.replaceSync(css.value);
  frame.contentDocument.adoptedStyleSheets = [sheet];
}

/** Show which colours the pages will use. */
async function showContrast() {
  const response = await fetch(`/console/settings/contrast?${makeQuery()}`, { cache: "no-store" });
  if (!response.ok) return;
  const notes = await response.json();
  for (const list of form.querySelectorAll("[data-notes]")) {
    list.replaceChildren(...(notes[list.dataset.notes] ?? []).map(makeNote));
  }
}

function makeNote({ colour, text }) {
  const item = document.createElement("li");
  const swatch = document.createElement("span");
  const sentence = document.createElement("span");
  swatch.className = "swatch";
  swatch.style.background = colour;
  sentence.textContent = text;
  item.append(swatch, sentence);
  return item;
}

const update = debounce(() => {
  refresh();
  showContrast();
}, 300);

form.addEventListener("input", ({ target }) => {
  if (target === css) applyCss();
  else if (target.type !== "file") update();
});
frame.addEventListener("load", applyCss);
if (css.value) refresh();
