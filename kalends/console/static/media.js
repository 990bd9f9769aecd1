// Upload of several images with progress; the alternative text of each is requested as soon as it is stored.
import { call } from "./api.js";

const MAX_CONCURRENT = 3; // the server lets more uploads of one user wait
const { extension } = document.body.dataset;
const area = document.querySelector("[data-uploads]");
const drop = area.querySelector(".drop-area");
const input = drop.querySelector("input[type=file]");
const list = area.querySelector(".upload-list");
const summary = area.querySelector("[data-summary]");
const waiting = [];
let [running, done, total, count] = [0, 0, 0, 0];

input.multiple = true;
input.required = false;
drop.querySelector("[data-plain]").hidden = true;
drop.querySelector("[data-script]").hidden = false;

/** Add an entry for a file and let it wait for its turn. */
function enqueue(file) {
  const entry = area.querySelector("template").content.firstElementChild.cloneNode(true);
  const [image, field] = [entry.querySelector("img"), entry.querySelector("input")];
  field.id = `alt-text-${(count += 1)}`;
  entry.querySelector("label").htmlFor = field.id;
  entry.querySelector(".hint").id = `${field.id}-hint`;
  field.setAttribute("aria-describedby", `${field.id}-hint`);
  entry.querySelector(".upload-name").textContent = file.name;
  image.src = URL.createObjectURL(file);
  image.addEventListener("load", () => URL.revokeObjectURL(image.src), { once: true });
  entry.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    save(entry);
  });
  list.append(entry);
  waiting.push([file, entry]);
  total += 1;
}

function start() {
  while (running < MAX_CONCURRENT && waiting.length) {
    running += 1;
    upload(...waiting.shift());
  }
}

function upload(file, entry) {
  const progress = entry.querySelector("progress");
  const request = new XMLHttpRequest();
  const data = new FormData();
  data.append("file", file);
  request.open("POST", `${extension}/media?lang=${document.documentElement.lang}`);
  request.setRequestHeader("Accept", "application/json");
  request.responseType = "json";
  request.upload.addEventListener("progress", ({ loaded, total: size }) => { progress.value = size ? loaded / size : 0; });
  request.addEventListener("loadend", () => {
    running -= 1;
    done += 1;
    progress.hidden = true;
    entry.querySelector("form").removeAttribute("aria-busy");
    if (request.status === 201) showStored(entry, request.response);
    else showError(entry, request.response?.message ?? String(request.status));
    summary.textContent = summary.dataset.text.replace("{done}", done).replace("{total}", total);
    start();
  });
  request.send(data);
}

function showStored(entry, { id }) {
  entry.dataset.id = id;
  entry.querySelector("a").href = `/console/media/${id}`;
  entry.querySelector(".upload-done").hidden = false;
  // The focus does not move while the user is typing.
  if (!list.contains(document.activeElement)) focusNext();
}

function showError(entry, message) {
  const line = entry.querySelector(".field-error");
  line.textContent = message;
  line.hidden = false;
}

/** Move the focus to the first image that has no alternative text yet. */
function focusNext() {
  list.querySelector("[data-id]:not([data-saved]) input")?.focus();
}

async function save(entry) {
  const [field, status] = [entry.querySelector("input"), entry.querySelector("[data-saved]")];
  entry.querySelector(".field-error").hidden = true;
  try {
    await call("PATCH", `/media/${entry.dataset.id}`, { body: { alt_text: field.value }, isExtension: true });
  } catch (error) {
    showError(entry, error.message);
    return;
  }
  status.textContent = status.dataset.saved;
  entry.dataset.saved = "";
  focusNext();
}

function add(files) {
  for (const file of files) enqueue(file);
  start();
}

input.addEventListener("change", () => {
  add([...input.files]);
  input.value = "";
});
drop.addEventListener("submit", (event) => event.preventDefault());
for (const name of ["dragenter", "dragover"]) {
  drop.addEventListener(name, (event) => {
    event.preventDefault();
    drop.classList.add("is-over");
  });
}
drop.addEventListener("dragleave", () => drop.classList.remove("is-over"));
drop.addEventListener("drop", (event) => {
  event.preventDefault();
  drop.classList.remove("is-over");
  add([...event.dataTransfer.files]);
});
// Leaving the page would cancel the uploads.
addEventListener("beforeunload", (event) => running && event.preventDefault());
