// The calendar: events are dragged to another day, on touch screens after a long press, or moved by keys.
import { debounce } from "./api.js";

const HOLD = 400; // milliseconds of a long press
const SLOP = 6; // pixels that a pointer may move without dragging
const EDGE = 70; // pixels at the top and the bottom of the window that scroll
const calendar = document.querySelector("[data-calendar]");
const form = document.querySelector("[data-move-form]");
const live = document.querySelector("[data-live]");
const days = [...calendar.querySelectorAll("[data-day]")];
let drag = null; // the event that is being moved

const dayOf = (entry) => entry.closest("[data-day]");
const timeOf = (entry) => entry.dataset.start.slice(11);
const titleOf = (entry) => entry.firstElementChild.textContent.trim();

function mark(day) {
  for (const other of days) other.classList.toggle("is-target", other === day);
}

/** Say where the event would be, and which events are at its venue then. */
const announce = debounce(async ({ entry, day, time }) => {
  const text = calendar.dataset.moving
    .replace("{title}", titleOf(entry)).replace("{day}", `${day.dataset.label}${time === timeOf(entry) ? "" : `, ${time}`}`);
  live.textContent = text;
  const query = new URLSearchParams({ event: entry.dataset.event, day: day.dataset.day, time });
  const response = await fetch(`/console/calendar/check?${query}`, { headers: { Accept: "application/json" } });
  if (!response.ok || !drag || drag.entry !== entry || drag.day !== day) return;
  const { conflicts } = await response.json();
  const warning = conflicts.length ? `${calendar.dataset.conflict} ${conflicts.join(", ")}` : "";
  if (warning) live.textContent = `${text} ${warning}`;
  if (!drag.ghost) return;
  drag.ghost.querySelector(".is-conflict")?.remove();
  if (warning) drag.ghost.append(Object.assign(document.createElement("span"), { className: "badge is-warning is-conflict", textContent: warning }));
}, 150);

function aim(day, time = drag.time) {
  if (!day || (day === drag.day && time === drag.time)) return;
  Object.assign(drag, { day, time });
  mark(day);
  announce(drag);
}

function stop() {
  drag?.ghost?.remove();
  drag?.entry.classList.remove("is-lifted");
  calendar.classList.remove("is-dragging");
  mark(null);
  live.textContent = "";
  drag = null;
}

function drop() {
  const { entry, day, time } = drag;
  stop();
  if (day === dayOf(entry) && time === timeOf(entry)) return;
  form.elements.event.value = entry.dataset.event;
  form.elements.start.value = entry.dataset.start;
  form.elements.day.value = day.dataset.day;
  form.elements.time.value = time === timeOf(entry) ? "" : time;
  form.submit();
}

function start(entry) {
  drag = { entry, day: dayOf(entry), time: timeOf(entry) };
  entry.classList.add("is-lifted");
  // On phones, the days without events appear now; the event stays under the finger.
  const { top } = entry.getBoundingClientRect();
  calendar.classList.add("is-dragging");
  scrollBy(0, entry.getBoundingClientRect().top - top);
}

// Pointer.
function lift(entry, { clientX, clientY }) {
  start(entry);
  const box = entry.getBoundingClientRect();
  drag.ghost = entry.cloneNode(true);
  drag.ghost.classList.replace("is-lifted", "is-dragged");
  drag.ghost.style.width = `${box.width}px`;
  drag.offset = [clientX - box.left, clientY - box.top];
  calendar.append(drag.ghost);
}

function follow({ clientX, clientY }) {
  drag.ghost.style.left = `${clientX - drag.offset[0]}px`;
  drag.ghost.style.top = `${clientY - drag.offset[1]}px`;
  if (clientY < EDGE || clientY > innerHeight - EDGE) scrollBy(0, clientY < EDGE ? -20 : 20);
  aim(document.elementFromPoint(clientX, clientY)?.closest("[data-day]"));
}

const swallow = (click) => {
  click.preventDefault();
  click.stopPropagation();
};

calendar.addEventListener("pointerdown", (down) => {
  const entry = down.target.closest("[data-event]");
  if (!entry || down.button !== 0 || down.target.closest(".move-link")) return;
  const isTouch = down.pointerType !== "mouse";
  const hold = isTouch ? setTimeout(() => { lift(entry, down); follow(down); }, HOLD) : 0;
  const move = (event) => {
    const distance = Math.hypot(event.clientX - down.clientX, event.clientY - down.clientY);
    if (!drag && distance > SLOP) {
      if (isTouch) return end();
      lift(entry, down);
    }
    if (drag) follow(event);
    return undefined;
  };
  const end = (event) => {
    clearTimeout(hold);
    for (const [name, listener] of listeners) removeEventListener(name, listener);
    if (!drag) return;
    // The click that follows would open the event.
    addEventListener("click", swallow, { capture: true, once: true });
    setTimeout(() => removeEventListener("click", swallow, { capture: true }), 0);
    if (event?.type === "pointerup") drop();
    else stop();
  };
  const listeners = [["pointermove", move], ["pointerup", end], ["pointercancel", end]];
  for (const [name, listener] of listeners) addEventListener(name, listener);
});
// While an event is dragged, touches do not scroll, and a long press opens no menu.
calendar.addEventListener("touchmove", (event) => { if (drag) event.preventDefault(); }, { passive: false });
calendar.addEventListener("contextmenu", (event) => { if (drag) event.preventDefault(); });

// Keys: M lifts the focused event, arrows choose day and time, Enter drops it.
const STEPS = { ArrowLeft: -1, ArrowRight: 1 };
addEventListener("keydown", (event) => {
  const entry = event.target.closest("[data-event]");
  if (!drag) {
    if (!entry || event.key.toLowerCase() !== "m" || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    start(entry);
    mark(drag.day);
    announce(drag);
    return;
  }
  const isWeek = calendar.classList.contains("is-week");
  const vertical = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (event.key === "Escape") stop();
  else if (event.key === "Enter") drop();
  else if (event.key in STEPS) aim(days[days.indexOf(drag.day) + STEPS[event.key]]);
  else if (vertical && isWeek) aim(drag.day, shift(drag.time, 15 * vertical));
  else if (vertical) aim(days[days.indexOf(drag.day) + 7 * vertical]);
  else return;
  event.preventDefault();
});

function shift(time, minutes) {
  const [hour, minute] = time.split(":").map(Number);
  const total = Math.min(Math.max(hour * 60 + minute + minutes, 0), 24 * 60 - 1);
  return [Math.floor(total / 60), total % 60].map((number) => String(number).padStart(2, "0")).join(":");
}

// A click on a free place of a day writes the day into the line that adds an event.
calendar.addEventListener("click", (event) => {
  const day = event.target.closest("[data-day]");
  if (!day || event.target.closest(".calendar-entry")) return;
  const line = document.getElementById("quick-line");
  line.value = ` ${day.dataset.day}`;
  line.focus();
  line.setSelectionRange(0, 0);
});
