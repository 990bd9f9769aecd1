// The queue: shortcuts press the buttons of the page, and the selection outlives decisions. All forms work without it.
import { connectShortcuts } from "./shortcuts.js";

const STORED = "kalends-queue";
const find = (selector) => document.querySelector(selector);
const rows = [...document.querySelectorAll("[data-row]")];
const boxes = rows.map((row) => row.querySelector("input")).filter(Boolean);
const list = find(".bulk");
const count = find("[data-count]");
let position = rows.findIndex((row) => row.matches(".is-current"));
// While another page loads, keys must not decide on this one.
let isLeaving = false;

function update() {
  const selected = boxes.filter((box) => box.checked).map((box) => box.value);
  sessionStorage.setItem(STORED, JSON.stringify(selected));
  if (!count) return;
  const { none, one, many } = count.dataset;
  count.textContent = selected.length === 0 ? none : selected.length === 1 ? one : many.replace("{n}", selected.length);
  find(".bulk-bar").classList.toggle("is-idle", selected.length === 0);
}

function moveBy(step) {
  const link = rows[position + step]?.querySelector("a");
  if (!link) return;
  position += step;
  isLeaving = true;
  location.assign(link.href);
}

function openDetails(name, focus) {
  const details = find(`[data-${name}]`);
  if (!details) return;
  for (const other of document.querySelectorAll(".decision details")) other.open = other === details;
  details.querySelector(focus).focus();
}

function press(selector) {
  find(selector)?.click();
}

/** Run the shortcut of a key; return whether there is one. */
function run({ key }) {
  if (key === "j" || key === "k") {
    moveBy(key === "j" ? 1 : -1);
    return true;
  }
  if (isLeaving) return true;
  switch (key) {
    case "a": press(boxes.some((box) => box.checked) ? "[data-selected]" : "[data-accept]"); return true;
    case "b": openDetails("return", "textarea"); return true;
    case "r": openDetails("reject", "button"); return true;
    case "e": press("[data-edit]"); return true;
    case "u": press("[data-undo]"); return true;
    case "x": rows[position]?.querySelector("input")?.click(); return true;
    default:
      if (!find("[data-reject][open]") || !/^[1-6]$/.test(key)) return false;
      press(`[data-reason="${key}"]`);
      return true;
  }
}

connectShortcuts(run);
for (const area of document.querySelectorAll(".decision textarea")) {
  area.addEventListener("keydown", (event) => {
    if (event.key === "Escape") area.closest("details").open = false;
    const button = area.form.querySelector("[value=return]");
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && button) area.form.requestSubmit(button);
  });
}

// The preview opens in a frame of this page.
const preview = find("[data-preview]");
if (preview) (preview.form ?? preview).target = "preview";
preview?.addEventListener("click", () => find("#preview-dialog").showModal());
addEventListener("submit", (event) => {
  if (event.target.target === "preview" || event.target.method === "dialog") return;
  // A second press would send the form again.
  if (isLeaving) event.preventDefault();
  isLeaving = true;
  if (event.target === list) sessionStorage.removeItem(STORED);
});

const stored = JSON.parse(sessionStorage.getItem(STORED) ?? "[]");
for (const box of boxes) box.checked = stored.includes(box.value);
list?.addEventListener("change", update);
addEventListener("pageshow", () => {
  isLeaving = false;
  update();
});
update();
rows[position]?.scrollIntoView({ block: "nearest" });
