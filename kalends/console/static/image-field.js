// The image of a record: a search in the media library beside the latest images.
import { call, debounce } from "./api.js";

const box = document.querySelector("[data-image-field]");

if (box) {
  const search = box.querySelector("input[type=search]");
  const list = box.querySelector(".image-choices");
  const template = box.querySelector("template");
  let latest = 0;

  const add = (item) => {
    const row = template.content.firstElementChild.cloneNode(true);
    row.querySelector("input").value = item.id;
    row.querySelector("img").src = item.sizes?.thumbnail?.url ?? item.url;
    row.querySelector("span").textContent = item.title || item.id;
    list.append(row);
  };
  const find = debounce(async () => {
    const [text, turn] = [search.value.trim(), (latest += 1)];
    const query = { per_page: 12, ...(text ? { search: text } : {}) };
    const { data } = await call("GET", "/media", { query, isExtension: true });
    if (turn !== latest) return; // a later search was faster
    const chosen = list.querySelector(":checked");
    for (const row of [...list.children].slice(1)) if (!row.contains(chosen)) row.remove();
    for (const item of data.media) if (String(item.id) !== chosen?.value) add(item);
  }, 200);

  box.querySelector("[data-script]").hidden = false;
  search.addEventListener("input", find);
  search.addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
}
