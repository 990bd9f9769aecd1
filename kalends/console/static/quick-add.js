// One line to add an event: shows what was understood while typing, and removes a part on a click.
import { debounce } from "./api.js";

const form = document.querySelector(".quick-add");
const input = form.elements.line;
const understood = form.querySelector(".quick-understood");
let latest = 0;

function make(name, properties, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

function makePart({ text, without }) {
  const cross = make("span", {}, " ×");
  cross.setAttribute("aria-hidden", "true");
  const button = make("button", { type: "button", className: "chip" }, text, cross);
  button.setAttribute("aria-label", understood.dataset.remove.replace("{part}", text));
  button.addEventListener("click", () => {
    input.value = without;
    input.focus();
    update();
  });
  return make("li", {}, button);
}

async function update() {
  const line = input.value.trim();
  const request = ++latest;
  if (!line) return understood.replaceChildren();
  const response = await fetch(`${form.dataset.preview}?${new URLSearchParams({ line })}`, { headers: { Accept: "application/json" } });
  // An answer to an earlier text is outdated.
  if (!response.ok || request !== latest) return undefined;
  const { title, when, parts, missing } = await response.json();
  const summary = make("p", { className: "quick-summary" }, make("strong", {}, title), when ? ` · ${when}` : "");
  return understood.replaceChildren(
    summary, make("ul", { className: "quick-parts" }, ...parts.map(makePart)),
    ...missing.map((text) => make("p", { className: "hint" }, text)),
  );
}

input.addEventListener("input", debounce(update, 150));
input.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  form.requestSubmit(form.querySelector("[data-release]"));
});
// The line can have been written before this script was loaded.
if (input.value) update();
