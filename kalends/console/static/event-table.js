// The table of events: selection, keyboard shortcuts, and the bar of actions. Without this script all forms work.
import { connectShortcuts } from "./shortcuts.js";

const form = document.querySelector(".bulk");
const rows = [...document.querySelectorAll("[data-row]")];
const boxes = rows.map((row) => row.querySelector("input[name=event]")).filter(Boolean);
const selectAll = document.querySelector("[data-all]");
const bar = document.querySelector(".bulk-bar");
const count = document.querySelector("[data-count]");
const primary = document.querySelector("[data-primary]");
let anchor = null; // the box that was changed last, where a range begins

/** Show how many rows are selected, and the bar of actions if there are any. */
function update() {
  const checked = boxes.filter((box) => box.checked);
  const selected = checked.length;
  if (selectAll) {
    selectAll.checked = selected > 0 && selected === boxes.length;
    selectAll.indeterminate = selected > 0 && selected < boxes.length;
  }
  if (!bar) return;
  const { none, one, many } = count.dataset;
  count.textContent = selected === 0 ? none : selected === 1 ? one : many.replace("{n}", selected);
  bar.classList.toggle("is-idle", selected === 0);
  // The primary action has to change at least one of the events.
  if (primary) primary.hidden = selected > 0 && checked.every((box) => box.dataset.status === primary.dataset.primary);
}

/** Give all boxes between the last one that was changed and this one the same state. */
function selectRange(box) {
  const [from, to] = [boxes.indexOf(anchor ?? box), boxes.indexOf(box)].sort((a, b) => a - b);
  for (const other of boxes.slice(Math.max(from, 0), to + 1)) other.checked = true;
  anchor = box;
  update();
}

function toggle(box) {
  box.checked = !box.checked;
  anchor = box;
  update();
}

function closeMenus(except) {
  for (const menu of document.querySelectorAll("details.menu[open]")) if (menu !== except) menu.open = false;
}

function currentRow() {
  return document.activeElement?.closest?.("[data-row]") ?? null;
}

function moveBy(step) {
  const position = rows.indexOf(currentRow());
  const row = rows[position < 0 ? (step > 0 ? 0 : rows.length - 1) : position + step];
  (row?.querySelector("input[name=event]") ?? row?.querySelector("a"))?.focus();
  row?.scrollIntoView({ block: "nearest" });
}

function open(row) {
  row?.querySelector("[data-open]")?.click();
}

/** Run the shortcut of a key; return whether there is one. */
function run(event) {
  const row = currentRow();
  const box = row?.querySelector("input[name=event]");
  const isOnControl = event.target.closest("a, button, summary") !== null;
  switch (event.key) {
    case "j": moveBy(1); return true;
    case "k": moveBy(-1); return true;
    case "ArrowDown": if (row) moveBy(1); return row !== null;
    case "ArrowUp": if (row) moveBy(-1); return row !== null;
    case "x": if (box) toggle(box); return Boolean(box);
    case "e": open(row); return row !== null;
    case "Enter": if (isOnControl) return false; open(row); return row !== null;
    case "c": document.querySelector("[data-new]").click(); return true;
    case "/": document.getElementById("search")?.select(); return true;
    default: return false;
  }
}

connectShortcuts(run);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") closeMenus();
});

// The space bar clicks the box that has the focus. With the shift key, a click selects a range.
form?.addEventListener("click", (event) => {
  if (!event.target.matches("input[name=event]")) return;
  if (event.shiftKey && event.target.checked) selectRange(event.target);
  else anchor = event.target;
  update();
});
selectAll?.addEventListener("change", () => {
  for (const box of boxes) box.checked = selectAll.checked;
  update();
});
document.addEventListener("click", (event) => closeMenus(event.target.closest("details.menu")));

// The browser restores the boxes when one comes back to the page.
addEventListener("pageshow", update);
update();
