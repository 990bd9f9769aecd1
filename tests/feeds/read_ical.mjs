// Reads feeds with ical.js: one JSON string per line comes in, one list of entries per line goes out.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { default: ICAL } = await import(pathToFileURL(process.argv[2]));
const instant = (time) =>
  time.isDate ? time.toString() : new Date(time.toUnixTime() * 1000).toISOString().replace(".000Z", "Z");

for await (const line of createInterface({ input: process.stdin })) {
  ICAL.TimezoneService.reset();
  const calendar = new ICAL.Component(ICAL.parse(JSON.parse(line)));
  for (const zone of calendar.getAllSubcomponents("vtimezone")) ICAL.TimezoneService.register(zone);
  const entries = calendar.getAllSubcomponents("vevent").map((component) => {
    const start = component.getFirstPropertyValue("dtstart");
    return {
      uid: component.getFirstPropertyValue("uid"),
      sequence: component.getFirstPropertyValue("sequence"),
      status: component.getFirstPropertyValue("status"),
      summary: component.getFirstPropertyValue("summary"),
      location: component.getFirstPropertyValue("location") ?? "",
      start: instant(start),
      end: instant(component.getFirstPropertyValue("dtend") ?? start),
      all_day: start.isDate,
    };
  });
  console.log(JSON.stringify(entries));
}
