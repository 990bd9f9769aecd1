// Expands the rules of a calendar with ical.js: one {text, until} per line comes in, one list of dates per line goes out.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { default: ICAL } = await import(pathToFileURL(process.argv[2]));
const instant = (time) =>
  time.isDate ? time.toString() : new Date(time.toUnixTime() * 1000).toISOString().replace(".000Z", "Z");

function expand(event, until) {
  if (!event.isRecurring()) return [[instant(event.startDate), instant(event.endDate), event.summary]];
  const dates = [];
  const iterator = event.iterator();
  for (let next = iterator.next(); next && next.toUnixTime() <= until; next = iterator.next()) {
    const details = event.getOccurrenceDetails(next);
    dates.push([instant(details.startDate), instant(details.endDate), details.item.summary]);
  }
  return dates;
}

for await (const line of createInterface({ input: process.stdin })) {
  const { text, until } = JSON.parse(line);
  ICAL.TimezoneService.reset();
  const calendar = new ICAL.Component(ICAL.parse(text));
  for (const zone of calendar.getAllSubcomponents("vtimezone")) ICAL.TimezoneService.register(zone);
  const components = calendar.getAllSubcomponents("vevent");
  const exceptions = components.filter((component) => component.hasProperty("recurrence-id"));
  const dates = components
    .filter((component) => !component.hasProperty("recurrence-id"))
    .flatMap((component) => {
      const uid = component.getFirstPropertyValue("uid");
      const own = exceptions.filter((other) => other.getFirstPropertyValue("uid") === uid);
      return expand(new ICAL.Event(component, { exceptions: own, strictExceptions: true }), until);
    });
  console.log(JSON.stringify(dates));
}
