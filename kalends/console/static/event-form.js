// The form of an event: comboboxes, dates, picture, warnings while typing, preview, changes by others.
import { debounce } from "./api.js";
import { startAutosave } from "./autosave.js";
import { makeCombobox } from "./combobox.js";
import { connectDates, fillZones } from "./event-dates.js";

const POLL = 15000;
const form = document.getElementById("event-form");
const json = { Accept: "application/json" };

// Venue and organizers.
const map = document.getElementById("venue-map");
const showMap = (record) => {
  if (!map) return;
  map.hidden = record.geo_lat === undefined;
  if (!map.hidden) map.src = `/console/map?${new URLSearchParams({ lat: record.geo_lat, lng: record.geo_lng, name: record.venue })}`;
};
for (const box of form.querySelectorAll("[data-picker]")) {
  const { picker: name, path, create: createText } = box.dataset;
  const group = document.getElementById(`new-${name}`);
  const fields = [...group.querySelectorAll("input")];
  for (const input of box.querySelectorAll(`[name=${name}_name]`)) {
    makeCombobox(input, {
      path, createText, title: name,
      onChoose: (record) => {
        fields[0].value = "";
        group.open = false;
        if (name === "venue") showMap(record);
      },
      onCreate: (text) => {
        group.open = true;
        fields[0].value = text;
        fields[1].focus();
      },
    });
    // The name of a new record follows the field in which it was created.
    input.addEventListener("input", () => { if (group.open && fields[0].value) fields[0].value = input.value; });
  }
}

connectDates(form);
// The picture is below the fold, so its script is loaded when it comes into view.
new IntersectionObserver(async (entries, observer) => {
  if (!entries.some((entry) => entry.isIntersecting)) return;
  observer.disconnect();
  (await import("./event-picture.js")).connectPicture(form);
}, { rootMargin: "200px" }).observe(document.getElementById("picture"));
form.elements.timezone.addEventListener("focus", () => fillZones(document.getElementById("zones")), { once: true });

// Warnings.
const showTimes = (times) => {
  for (const box of form.querySelectorAll("[data-moment]")) {
    const problem = times[`${box.dataset.moment}_date`];
    const note = box.querySelector(".time-problem");
    const select = note.querySelector("select");
    const offsets = problem?.offsets ?? [];
    const chosen = select.value;
    note.hidden = !problem;
    select.hidden = !offsets.length;
    note.querySelector("[data-message]").textContent = problem?.message ?? "";
    select.replaceChildren(...offsets.map((offset, n) => {
      const text = (n ? select.dataset.second : select.dataset.first).replace("{offset}", offset);
      return new Option(text, offset, false, offset === chosen);
    }));
  }
};
const showList = (name, rows) => {
  const box = form.querySelector(`[data-check=${name}]`);
  box.hidden = !rows.length;
  box.querySelector("ul").replaceChildren(...rows.map(({ title, url, when, venue, label, name: field }) => {
    const row = document.createElement("li");
    const link = document.createElement("a");
    link.href = url ?? `#${field}`;
    link.textContent = title ?? label;
    if (url) link.target = "_blank";
    const hint = document.createElement("span");
    hint.className = "hint";
    hint.textContent = [when, venue].filter(Boolean).join(" · ");
    row.append(link, " ", hint);
    return row;
  }));
};
let checking;
const check = debounce(async () => {
  checking?.abort();
  checking = new AbortController();
  const body = new URLSearchParams([...new FormData(form)].filter(([name, value]) => typeof value === "string" && name !== "originals" && name !== "new_password"));
  body.set("record_id", form.dataset.record);
  // Only whether there is a text matters.
  body.set("description", form.elements.description.value.slice(0, 100));
  try {
    const response = await fetch("/console/events/checks", { method: "POST", headers: json, body, signal: checking.signal, redirect: "error" });
    if (!response.ok) return;
    const { times, duplicates, conflicts, missing } = await response.json();
    showTimes(times);
    showList("duplicates", duplicates);
    showList("conflicts", conflicts);
    showList("missing", missing);
  } catch { return; }
}, 500);
form.addEventListener("input", check);
form.addEventListener("change", check);

// A link to a field opens the group that contains it.
const openGroups = (element) => {
  for (let group = element?.closest("details"); group; group = group.parentElement.closest("details")) group.open = true;
};
addEventListener("click", (event) => {
  const target = event.target.closest?.("a[href^='#']")?.getAttribute("href").slice(1);
  if (target) openGroups(document.getElementById(target));
});
// A field that the browser rejects must be visible.
form.addEventListener("invalid", ({ target }) => openGroups(target), true);
document.querySelector("main > [role=alert]")?.focus();

// Preview in a frame of this page.
const dialog = document.getElementById("preview-dialog");
const previewButton = form.querySelector("[value=preview]");
if (previewButton) {
  previewButton.formTarget = "preview";
  form.addEventListener("submit", ({ submitter }) => { if (submitter === previewButton) dialog.showModal(); });
}

// Changes by others while the form is open.
const watch = async () => {
  if (document.hidden) return;
  const response = await fetch(`/console/events/${form.dataset.record}/revision`, { headers: json, redirect: "error" });
  if (!response.ok) return;
  const { revision, login } = await response.json();
  const notice = document.getElementById("changed-notice");
  if (revision <= Number(form.elements.base_revision.value) || !notice.hidden) return;
  notice.querySelector("p").textContent = notice.dataset.text.replace("{name}", login);
  notice.hidden = false;
};
const isProposed = "proposed" in form.dataset;
if (form.dataset.record && !isProposed) {
  setInterval(() => watch().catch(() => {}), POLL);
  document.addEventListener("visibilitychange", () => watch().catch(() => {}));
}

// Drafts belong to events, so they would be offered in the event's form, too.
if (!isProposed) startAutosave(form);
