"""Random series with their dates as events: nights of clock changes, removed, added, moved and renamed dates."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID

from kalends.calendar.rules.record_types import Event, SeriesReference
from kalends.core.recurrence import expand, read_rule
from kalends.core.times import DateTimeInput, Span, event_span
from kalends.feeds.series_ics import Content, SeriesCalendar, SeriesDate, list_sections
from kalends.series.rules.series_slots import (
    Date,
    Definition,
    Part,
    Shift,
    change_content,
    change_dates,
    change_rule,
    content_at,
    list_dates,
    shift,
)

RULES = (
    "FREQ=DAILY", "FREQ=DAILY;INTERVAL=3",
    "FREQ=WEEKLY", "FREQ=WEEKLY;BYDAY=SA,SU", "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,SU",
    "FREQ=MONTHLY", "FREQ=MONTHLY;BYDAY=-1SU", "FREQ=MONTHLY;BYMONTHDAY=31", "FREQ=MONTHLY;BYMONTHDAY=-1",
    "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", "FREQ=YEARLY", "FREQ=MONTHLY;BYDAY=1SU,WE",
)  # fmt: skip
ENDS = ("", ";COUNT=12", ";COUNT=40", ";UNTIL=20280630")
ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Santiago",
    "Asia/Tokyo",
    "UTC",
    "UTC+5:30",
)
TIMES = ("00:00", "00:30", "01:30", "02:00", "02:15", "02:30", "03:00", "12:00", "19:30", "23:00", "23:30")
MINUTES = (0, 30, 90, 150, 480, 1440, 3000)
# Some are shortly before clock changes.
DAYS = ("2026-10-18", "2026-10-24", "2026-10-25", "2026-11-01", "2027-03-07", "2027-03-14", "2027-03-27",
        "2027-03-28", "2027-04-03", "2027-04-04", "2027-09-04", "2027-01-31", "2027-01-05")  # fmt: skip
CREATED_UNTIL = datetime(2028, 12, 1, tzinfo=UTC)
NOW = datetime(2026, 10, 1, tzinfo=UTC)


@dataclass
class RandomSeries:
    definition: Definition
    events: dict[datetime, Event]
    is_complete: bool

    def make_calendar(self) -> SeriesCalendar:
        """Return what is written."""
        definition = self.definition
        first = definition.parts[0].start
        slots = [first, *[change.since for change in definition.content_changes]]
        contents = [Content(slot, self.make_content(slot)) for slot in slots]
        dates = {slot: SeriesDate(slot, event, "") for slot, event in self.events.items()}
        created_until = None if self.is_complete else CREATED_UNTIL
        return SeriesCalendar(
            list_sections(definition, contents), dates, definition.removed, created_until, sequence=3, titles={}
        )

    def make_content(self, slot: datetime) -> Event:
        date = Date(self.definition.parts[0].start, self.definition.parts[0])
        return build_event(0, content_at(self.definition, slot)["title"], date.part, date.span())


def make_series(random: Random) -> RandomSeries:
    definition = _change(random, _define(random))
    dates = list_dates(definition, CREATED_UNTIL)
    events = {
        date.slot: build_event(number, content_at(definition, date.slot)["title"], date.part, date.span())
        for number, date in enumerate(dates, 1)
    }
    for slot in list(events):
        if random.random() < 0.08:
            events[slot] = _make_exception(random, events[slot])
        elif random.random() < 0.03:
            del events[slot]  # It is not public.
    has_end = [part.rule is None or part.rule.count or part.rule.until for part in definition.parts]
    return RandomSeries(definition, events, all(has_end))


def _define(random: Random) -> Definition:
    zone, rule = random.choice(ZONES), read_rule(random.choice(RULES) + random.choice(ENDS), "UTC")
    wanted = datetime.fromisoformat(f"{random.choice(DAYS)} {random.choice(TIMES)}")
    all_day = random.random() < 0.12
    wanted = wanted.replace(hour=0, minute=0) if all_day else wanted
    start = next(expand(rule, wanted, wanted + timedelta(days=800)))
    length = (
        timedelta(days=random.choice((1, 2)), seconds=-1) if all_day else timedelta(minutes=random.choice(MINUTES))
    )
    part = Part(str(UUID(int=random.getrandbits(128))), rule, start, start + length, zone, all_day)
    return Definition((part,), {"title": "Class"})


def _change(random: Random, definition: Definition) -> Definition:
    slots = [date.slot for date in list_dates(definition, CREATED_UNTIL)]
    if random.random() < 0.3:
        definition = change_content(definition, {"title": "Course"}, random.choice(slots))
    if random.random() < 0.25 and len(slots) > 3:
        part = definition.parts[0]
        minutes = 30 if part.start.hour < 23 else -30
        change = Shift(timedelta(minutes=minutes), part.length, part.timezone, part.all_day)
        if not part.all_day:
            definition = shift(definition, change, slots[len(slots) // 2])
    elif random.random() < 0.2 and len(slots) > 5:
        rule = read_rule("FREQ=DAILY;INTERVAL=5;COUNT=20", "UTC")
        definition = change_rule(definition, rule, slots[len(slots) // 2])
    slots = [date.slot for date in list_dates(definition, CREATED_UNTIL)]
    remove = [slot for slot in slots if random.random() < 0.06]
    time_of_day = definition.parts[0].start.time()
    add = {
        datetime.combine(random.choice(slots).date() + timedelta(days=random.randrange(7)), time_of_day)
        for _ in range(random.choice((0, 0, 1, 3)))
    }
    if not definition.parts[0].all_day and random.random() < 0.3:
        add.add(random.choice(slots) + timedelta(hours=3))
    return change_dates(definition, add, remove)


def _make_exception(random: Random, event: Event) -> Event:
    """Move or rename one date."""
    if random.random() < 0.5 or event.all_day:
        return replace(event, title=f"Class with guest {random.randrange(9)}")
    start = event.start_local + timedelta(minutes=random.choice((-1440, -90, 45, 600, 8000)))
    end = start + timedelta(minutes=random.choice((30, 100)))
    zone = random.choice((event.timezone, event.timezone, "Asia/Tokyo"))
    try:
        span = event_span(DateTimeInput(start, None, False), DateTimeInput(end, None, False), zone, False)
    except ValueError:
        return event
    return replace(event, timezone=zone, **_time_columns(span))


def build_event(number: int, title: str, part: Part, span: Span) -> Event:
    reference = SeriesReference(
        id=1, slug="class", url="http://k.example/series/class/", uid="series-uid", title="Class", parts=(),
        slot=span.start.wall, own_fields=(),
    )  # fmt: skip
    return Event(
        id=number, author=1, status="publish", date_utc=NOW, modified_utc=NOW, slug=f"class-{number}",
        url=f"http://k.example/event/class-{number}/", description="", image=None, uid=f"date-{number}",
        title=title, excerpt="", timezone=part.timezone, all_day=part.all_day, cost="", cost_details={}, website="",
        ticket_url="", show_map=False, show_map_link=False, hide_from_listings=False, sticky=False, featured=False,
        categories=(), tags=(), venues=(), organizers=(), series=reference, **_time_columns(span),
    )  # fmt: skip


def _time_columns(span: Span) -> dict[str, Any]:
    return {
        "start_local": span.start.wall,
        "end_local": span.end.wall,
        "start_utc": span.start.utc,
        "end_utc": span.end.utc,
    }


def many_series(seed: int, count: int) -> Iterator[RandomSeries]:
    random = Random(seed)
    return (make_series(random) for _ in range(count))
