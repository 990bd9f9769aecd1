// The progress of a run without reloading the page, and the selection of rows.
import { call } from "./api.js";

const INTERVAL = 1000; // milliseconds between two questions
const run = document.querySelector("[data-run]");
const form = document.querySelector(".plan-form");

/** Show how far the run is; open its page again when its state has changed. */
async function watch() {
  let interval = INTERVAL;
  try {
    const { data } = await call("GET", `/imports/runs/${run.dataset.run}`, { isExtension: true });
    if (data.state !== run.dataset.state) {
      location.replace(location.pathname);
      return;
    }
    show(data.progress);
  } catch {
    interval *= 5; // The server may be restarting.
  }
  setTimeout(watch, interval);
}

function show({ done, total }) {
  if (!total) return;
  const [bar, text] = [run.querySelector("progress"), run.querySelector("[role=status]")];
  bar.max = total;
  bar.value = done;
  const sentence = text.dataset.text.replace("{done}", done).replace("{total}", total);
  if (text.textContent !== sentence) text.textContent = sentence;
}

function prepareSelection() {
  const all = form.querySelector("[data-all]");
  const boxes = [...form.querySelectorAll("[name=rows]")];
  if (!all || !boxes.length) return;
  const number = form.querySelector("[data-selected]");
  const update = () => {
    const chosen = boxes.filter((box) => box.checked).length;
    all.checked = chosen === boxes.length;
    all.indeterminate = chosen > 0 && chosen < boxes.length;
    number.hidden = !chosen;
    number.textContent = ` (${chosen})`;
  };
  all.hidden = false;
  all.addEventListener("change", () => {
    for (const box of boxes) box.checked = all.checked;
    update();
  });
  form.addEventListener("change", update);
  update();
}

if (run) setTimeout(watch, INTERVAL);
if (form) prepareSelection();
