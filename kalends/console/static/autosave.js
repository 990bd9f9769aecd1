// Unsaved changes: kept on the server a moment after each change, and when the page is left.

const DELAY = 2800;
const MAX_BEACON = 60000;
// Fields that are not kept.
const LEFT_OUT = ["new_password", "image_search"];

/** An error whose message comes from the server. */
class Refusal extends Error {}

/** Keep the unsaved changes of a form as a draft of the user; nothing is saved to the record. */
export function startAutosave(form) {
  const status = form.querySelector("[data-autosave]");
  const { record, region, saved, failed } = form.dataset;
  const key = record || (form.elements.draft_key.value ||= crypto.randomUUID());
  const url = `/console/drafts/events/${key}`;
  const stored = `kalends-draft-${key}`;
  const collect = () => [...new FormData(form)].filter(([name, value]) => typeof value === "string" && !LEFT_OUT.includes(name));
  const body = () => JSON.stringify({ base_revision: form.elements.base_revision.value, fields: collect() });
  let last = JSON.stringify(collect());
  let isSubmitted = false;
  let isRefused = false;
  let timer;
  let request;

  // A browser may forbid storage.
  const keepLocally = (text) => {
    try { if (text) localStorage.setItem(stored, text); else localStorage.removeItem(stored); } catch { return; }
  };
  const isChanged = () => JSON.stringify(collect()) !== last;
  const save = async () => {
    if (isSubmitted || !isChanged()) return;
    const current = JSON.stringify(collect());
    request = new AbortController();
    isRefused = false;
    try {
      const headers = { "Content-Type": "application/json", Accept: "application/json" };
      const response = await fetch(url, { method: "POST", headers, body: body(), signal: request.signal, redirect: "error" });
      if (response.status >= 500) throw new Error(response.statusText);
      if (!response.ok) throw new Refusal((await response.json()).message);
      last = current;
      keepLocally(null);
      const time = new Date().toLocaleTimeString(region, { hour: "numeric", minute: "2-digit" });
      status.textContent = saved.replace("{time}", time);
    } catch (error) {
      if (error.name === "AbortError") return;
      keepLocally(body());
      isRefused = error instanceof Refusal;
      status.textContent = isRefused ? error.message : failed;
    }
  };
  // Later changes do not restart the timer, so that somebody who types without a pause loses little as well.
  const saveSoon = () => {
    timer ??= setTimeout(async () => {
      await save();
      timer = undefined;
      if (!isSubmitted && !isRefused && isChanged()) saveSoon();
    }, DELAY);
  };
  const leave = () => {
    if (isSubmitted || !isChanged()) return;
    const text = body();
    const isSent = text.length < MAX_BEACON && navigator.sendBeacon(url, new Blob([text], { type: "application/json" }));
    if (isSent) last = JSON.stringify(collect());
    else keepLocally(text);
  };
  // Changes that could not be sent before are sent now, and offered when the form is opened the next time.
  const resend = async () => {
    const text = localStorage.getItem(stored);
    if (!text) return;
    const response = await fetch(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: text });
    if (response.ok) keepLocally(null);
  };

  form.addEventListener("input", saveSoon);
  form.addEventListener("change", saveSoon);
  addEventListener("pagehide", leave);
  document.addEventListener("visibilitychange", () => document.hidden && leave());
  form.addEventListener("submit", ({ submitter }) => {
    if (submitter?.value === "preview") return;
    isSubmitted = true;
    request?.abort();
  });
  resend().catch(() => {});
}
