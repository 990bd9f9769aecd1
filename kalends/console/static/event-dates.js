// Dates of an event: the end follows the start, and pasted times and dates are understood.

/** Return hours and minutes of a text such as 19h, 7:30 pm or 2027-04-01T19:30, or null. */
export function parseTime(text) {
  const bare = text.trim().toLowerCase().replace(/^\d{4}-\d\d-\d\d[t ]/, "").replace(/(z|[+-]\d\d:?\d\d|\.\d+)+$|\s*uhr$/, "");
  const match = /^(\d{1,2})(?:\s*[:.h]\s*(\d\d)?)?(?::\d\d)?\s*([ap]m)?$/.exec(bare.trim());
  if (!match) return null;
  let hour = Number(match[1]);
  const minute = Number(match[2] ?? 0);
  if (match[3] && (hour < 1 || hour > 12)) return null;
  if (match[3]) hour = (hour % 12) + (match[3] === "pm" ? 12 : 0);
  if (hour > 23 || minute > 59) return null;
  return `${String(hour).padStart(2, "0")}:${String(minute).padStart(2, "0")}`;
}

const parseDay = (text) => /\d{4}-\d\d-\d\d/.exec(text)?.[0] ?? null;
// Local times are calculated as if they were UTC, so that no change of the offset disturbs.
const toMinutes = (day, time) => Date.parse(`${day}T${time || "00:00"}Z`) / 60000;

/** Let the end of a form follow its start. */
export function connectDates(form) {
  const field = (name) => form.elements[name];
  const parts = ["start_day", "start_time", "end_day", "end_time"].map(field);
  const [startDay, startTime, endDay, endTime] = parts;
  const length = () => toMinutes(endDay.value || startDay.value, endTime.value) - toMinutes(startDay.value, startTime.value);
  let duration = length();
  const moveEnd = () => {
    if (!startDay.value) return;
    if (!(duration >= 0)) duration = Math.max(length(), 0) || 0;
    const end = new Date((toMinutes(startDay.value, startTime.value) + duration) * 60000);
    if (isNaN(end)) return;
    const text = end.toISOString();
    endDay.value = text.slice(0, 10);
    if (endTime.value) endTime.value = text.slice(11, 16);
  };
  for (const input of [startDay, startTime]) input.addEventListener("change", moveEnd);
  for (const input of [endDay, endTime]) input.addEventListener("change", () => { duration = length(); });

  for (const input of parts) {
    input.addEventListener("paste", (event) => {
      const text = event.clipboardData.getData("text");
      const [day, time] = [parseDay(text), parseTime(text)];
      if (!day && !time) return;
      event.preventDefault();
      const side = input.name.split("_")[0];
      if (day) field(`${side}_day`).value = day;
      if (time) field(`${side}_time`).value = time;
      input.dispatchEvent(new Event("input", { bubbles: true }));
      input.dispatchEvent(new Event("change", { bubbles: true }));
    });
  }
  const allDay = form.querySelector("#all_day");
  const toggle = () => form.classList.toggle("is-all-day", allDay.checked);
  allDay.addEventListener("change", toggle);
  toggle();

  // The dates in words, as the server writes them.
  const words = form.querySelector("[data-when]");
  const format = (options) => new Intl.DateTimeFormat(form.dataset.region, { ...options, timeZone: "UTC" });
  const dayFormat = format({ dateStyle: "full" });
  const timeFormat = format({ timeStyle: "short" });
  form.addEventListener("change", () => {
    const lastDay = endDay.value || startDay.value;
    const start = new Date(toMinutes(startDay.value, startTime.value) * 60000);
    const end = new Date(toMinutes(lastDay, endTime.value || startTime.value) * 60000);
    words.textContent = "";
    if (!(start <= end)) return;
    const [from, to] = [start, end].map((moment) => (allDay.checked ? [] : [timeFormat.format(moment)]));
    words.textContent = startDay.value === lastDay
      ? [dayFormat.format(start), [...new Set([...from, ...to])].join(" – ")].filter(Boolean).join(", ")
      : [[dayFormat.format(start), ...from], [dayFormat.format(end), ...to]].map((part) => part.join(", ")).join(" – ");
  });
}

/** Offer all time zones of the browser. */
export function fillZones(list) {
  const known = new Set([...list.options].map((option) => option.value));
  for (const zone of Intl.supportedValuesOf?.("timeZone") ?? []) {
    if (known.has(zone)) continue;
    const option = document.createElement("option");
    option.value = zone;
    list.append(option);
  }
}
