// The picture of an event: upload with progress, choice from the media library, focus point.
import { call, debounce } from "./api.js";

const STEP = 0.02;
const { extension } = document.body.dataset;

/** Connect the fields for the picture of a form. */
export function connectPicture(form) {
  const box = form.querySelector("#picture");
  const preview = box.querySelector("img");
  const point = box.querySelector(".focus-point");
  const alt = form.elements.image_alt;
  const focus = [form.elements.focus_x, form.elements.focus_y];
  const list = form.querySelector(".images");

  const changed = (element) => element.dispatchEvent(new Event("change", { bubbles: true }));
  const place = () => {
    point.style.left = `${focus[0].value * 100}%`;
    point.style.top = `${focus[1].value * 100}%`;
  };
  const setFocus = (x, y) => {
    [x, y].forEach((value, n) => { focus[n].value = Math.min(Math.max(value, 0), 1).toFixed(3); });
    place();
    changed(focus[0]);
  };
  const show = ({ url, alt: text, x, y }) => {
    box.classList.toggle("is-empty", !url);
    preview.hidden = !url;
    if (url) preview.src = url;
    if (!alt) return;
    alt.value = text ?? "";
    [focus[0].value, focus[1].value] = [x ?? 0.5, y ?? 0.5];
    place();
  };
  if (alt) {
    box.querySelector(".focus-fields").hidden = true;
    point.hidden = false;
    place();
    preview.addEventListener("click", (event) => {
      const area = preview.getBoundingClientRect();
      setFocus((event.clientX - area.left) / area.width, (event.clientY - area.top) / area.height);
    });
    point.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] }[event.key];
      if (!move) return;
      event.preventDefault();
      setFocus(Number(focus[0].value) + move[0], Number(focus[1].value) + move[1]);
    });
  }
  list.addEventListener("change", ({ target }) => target.name === "image" && show(target.dataset));

  const addOption = (item, isChecked) => {
    const row = document.createElement("li");
    const label = document.createElement("label");
    const radio = Object.assign(document.createElement("input"), { type: "radio", name: "image", value: item.id });
    Object.assign(radio.dataset, { url: item.url, alt: item.alt_text, x: item.focus_x, y: item.focus_y });
    const image = Object.assign(document.createElement("img"), { src: item.sizes?.thumbnail?.url ?? item.url, alt: "" });
    const title = document.createElement("span");
    title.textContent = item.title || item.alt_text;
    label.append(radio, image, title);
    row.append(label);
    list.append(row);
    radio.checked = isChecked;
    return radio;
  };

  const search = form.elements.image_search;
  const find = debounce(async () => {
    const text = search.value.trim();
    const query = { per_page: 12, ...(text ? { search: text } : {}) };
    const { data } = await call("GET", "/media", { query, isExtension: true });
    for (const row of [...list.children].slice(1)) if (!row.querySelector(":checked")) row.remove();
    const chosen = list.querySelector(":checked")?.value;
    for (const item of data.media) if (String(item.id) !== chosen) addOption(item, false);
  }, 200);
  search.addEventListener("input", find);
  form.querySelector("#library").addEventListener("toggle", find, { once: true });
  search.addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
  search.nextElementSibling.hidden = true;

  const file = form.elements.file;
  if (!file) return;
  const progress = file.nextElementSibling;
  const error = form.querySelector("#file-error");
  // The interface stores the file at once; the form then sends only its ID.
  file.addEventListener("change", () => {
    if (!file.files.length) return;
    const data = new FormData();
    data.append("file", file.files[0]);
    if (alt?.value && box.classList.contains("is-empty")) data.append("alt_text", alt.value);
    const upload = new XMLHttpRequest();
    upload.open("POST", `${extension}/media`);
    upload.setRequestHeader("Accept", "application/json");
    upload.responseType = "json";
    upload.upload.addEventListener("progress", ({ loaded, total }) => { progress.value = total ? loaded / total : 0; });
    upload.addEventListener("loadend", () => {
      progress.hidden = true;
      form.removeAttribute("aria-busy");
      if (upload.status !== 201) {
        error.textContent = upload.response?.message ?? String(upload.status);
        return;
      }
      const text = alt?.value && box.classList.contains("is-empty") ? alt.value : upload.response.alt_text;
      const radio = addOption({ ...upload.response, alt_text: text }, true);
      file.value = "";
      show(radio.dataset);
      changed(radio);
    });
    error.textContent = "";
    progress.hidden = false;
    form.setAttribute("aria-busy", "true");
    upload.send(data);
  });
  // A form that is submitted during an upload contains the file itself.
}
