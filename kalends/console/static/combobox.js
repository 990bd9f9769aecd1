// A combobox with a list of records of the API, after the pattern of ARIA APG 1.2.
import { call, debounce } from "./api.js";

const MAX_SHOWN = 8;
let count = 0;

/** Turn a text field with a hidden reference into a combobox; `options.onChoose` is called with the record. */
export function makeCombobox(input, options) {
  const reference = input.nextElementSibling;
  const list = document.createElement("ul");
  list.id = `options-${++count}`;
  list.hidden = true;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", input.getAttribute("aria-label"));
  input.after(list);
  input.removeAttribute("list");
  for (const [name, value] of Object.entries({
    role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id,
  })) input.setAttribute(name, value);

  let active = -1;
  let request;
  const rows = () => [...list.children];
  const mark = (index) => {
    active = index;
    rows().forEach((row, n) => row.setAttribute("aria-selected", String(n === index)));
    const row = rows()[index];
    if (row) {
      input.setAttribute("aria-activedescendant", row.id);
      row.scrollIntoView({ block: "nearest" });
    } else {
      input.removeAttribute("aria-activedescendant");
    }
  };
  const close = () => {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    mark(-1);
  };
  const open = () => {
    if (!list.children.length) return;
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
  };
  const choose = (row) => {
    const { record } = row;
    close();
    if (record) {
      input.value = labelOf(record, options);
      reference.value = `${record.id}|${input.value}`;
    } else {
      reference.value = "";
    }
    input.dispatchEvent(new Event("change", { bubbles: true }));
    if (record) options.onChoose(record);
    else options.onCreate(input.value.trim());
  };
  const addRow = (text, detail, record) => {
    const row = document.createElement("li");
    row.id = `${list.id}-${list.children.length}`;
    row.setAttribute("role", "option");
    row.record = record;
    row.textContent = text;
    if (detail) {
      const small = document.createElement("small");
      small.textContent = detail;
      row.append(small);
    }
    // The field keeps the focus.
    row.addEventListener("pointerdown", (event) => event.preventDefault());
    row.addEventListener("click", () => choose(row));
    list.append(row);
  };
  const search = debounce(async () => {
    const text = input.value.trim();
    request?.abort();
    request = new AbortController();
    if (!text) return close();
    let found = [];
    try {
      const query = { search: text, per_page: MAX_SHOWN };
      found = (await call("GET", options.path, { query, signal: request.signal })).data[options.path.slice(1)];
    } catch (error) {
      if (error.name === "AbortError") return;
    }
    if (document.activeElement !== input) return;
    list.replaceChildren();
    for (const record of found) addRow(plain(record[options.title]), [record.address, record.city].filter(Boolean).join(", "), record);
    if (!found.some((record) => plain(record[options.title]).toLowerCase() === text.toLowerCase())) {
      addRow(options.createText.replace("{name}", text), "", null);
    }
    mark(-1);
    open();
  }, 150);

  input.addEventListener("input", search);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    const size = list.children.length;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (list.hidden) return size ? open() : search();
      const step = event.key === "ArrowDown" ? 1 : -1;
      mark(active < 0 ? (step > 0 ? 0 : size - 1) : (active + step + size) % size);
    } else if (event.key === "Enter" && !list.hidden) {
      event.preventDefault();
      if (active >= 0) choose(rows()[active]);
    } else if (event.key === "Escape") {
      if (list.hidden) input.value = "";
      close();
    } else if (event.key === "Tab" && active >= 0) {
      choose(rows()[active]);
    }
  });
}

// Names may contain markup. Parsing HTML from text would need a Trusted Types policy.
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', nbsp: " " };
const plain = (html) => html.replace(/<[^>]*>/g, "").replace(/&(amp|lt|gt|quot|nbsp);/g, (_, name) => ENTITIES[name]);
const labelOf = (record, { title }) => plain(record[title]) + (record.city ? ` (${record.city})` : "");
