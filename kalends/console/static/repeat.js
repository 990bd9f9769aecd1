// The editor of a rule: only the fields that apply are shown, and a preview follows each change.
import { debounce } from "./api.js";

const DELAY = 300;

/** Show a choice by its text from the server; choices that do not fit the first date disappear. */
function nameDays(select, days) {
  if (!days || !Object.keys(days).length) return;
  for (const option of select.options) {
    const isOffered = option.value in days;
    option.hidden = option.disabled = !isOffered;
    if (days[option.value]) option.text = days[option.value];
  }
  if (select.selectedOptions[0]?.disabled) select.value = "day";
}

function fill(box, { text = "", dates = [], summary = "", warnings = [], error = "" }) {
  const part = (name) => box.querySelector(`[data-${name}]`);
  part("text").textContent = text;
  part("summary").textContent = summary ?? "";
  part("warnings").textContent = warnings.join(" ");
  part("error").textContent = error;
  part("dates").replaceChildren(...dates.map((date) => {
    const row = document.createElement("li");
    row.textContent = date;
    return row;
  }));
  box.hidden = !(text || dates.length || error);
}

/** Let an empty field follow the last one. */
function growList(list) {
  list.addEventListener("change", () => {
    const inputs = [...list.querySelectorAll("input")];
    const last = inputs.at(-1);
    if (!last.value) return;
    const next = last.cloneNode();
    next.value = "";
    next.setAttribute("aria-label", last.getAttribute("aria-label").replace(/\d+/, inputs.length + 1));
    list.append(next);
  });
}

function connect(box) {
  const { form } = box.querySelector("select");
  const field = (name) => form.elements[`repeat[${name}]`];
  const result = box.querySelector("[data-result]");
  const toggle = () => {
    const frequency = field("frequency").value;
    for (const part of box.querySelectorAll("[data-for]")) {
      if (part !== result) part.hidden = !part.dataset.for.split(" ").includes(frequency);
    }
    const hasEnd = !field("ends").closest("[data-for]").hidden;
    for (const part of box.querySelectorAll("[data-ends]")) part.hidden = !hasEnd || part.dataset.ends !== field("ends").value;
    if (!frequency) result.hidden = true;
  };
  let request;
  const preview = debounce(async () => {
    request?.abort();
    if (!field("frequency").value) return;
    request = new AbortController();
    const isNeeded = (name) => /^(repeat\[|(start|end)_|timezone$|all_day$)/.test(name);
    const body = new URLSearchParams([...new FormData(form)].filter(([name]) => isNeeded(name)));
    try {
      const response = await fetch(box.dataset.path, { method: "POST", headers: { Accept: "application/json" }, body, signal: request.signal, redirect: "error" });
      if (!response.ok) return;
      const data = await response.json();
      nameDays(field("day"), data.days);
      fill(result, data);
    } catch { return; }
  }, DELAY);
  const update = () => { toggle(); preview(); };
  form.addEventListener("input", update);
  form.addEventListener("change", update);
  for (const list of box.querySelectorAll("[data-days]")) growList(list);
  update();
}

for (const box of document.querySelectorAll("[data-repeat]")) connect(box);
