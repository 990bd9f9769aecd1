"""The rule form of a series: two programs derive from it the dates that exist as events."""

from datetime import timedelta

from kalends.calendar.rules.record_types import Event
from kalends.core.times import format_datetime
from kalends.feeds.ics import Calendar
from kalends.feeds.series_ics import write_series
from tests.feeds.ical_readers import next_day
from tests.feeds.random_series import CREATED_UNTIL, NOW, RandomSeries, many_series
from tests.feeds.rule_readers import Entry, RuleReader, expand_with_recurring_ical_events
from tests.soak import scaled

CALENDAR = Calendar("Town", "http://k.example/series/class.ics", "Europe/Berlin")
SEED = 18
LAST = CREATED_UNTIL - timedelta(days=3)  # Long events do not reach beyond the last date that exists.


def list_rows(series: RandomSeries) -> list[Entry]:
    return sorted(describe(event) for event in series.events.values() if event.start_utc < LAST)


def describe(event: Event) -> Entry:
    if event.all_day:
        return event.start_local.date().isoformat(), next_day(event.end_local.date().isoformat()), event.title
    start, end = (format_datetime(utc).replace(" ", "T") + "Z" for utc in (event.start_utc, event.end_utc))
    return start, end, event.title


def until_last(entries: list[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry[0][:10] < f"{LAST:%Y-%m-%d}"]


def test_programs_derive_the_dates_of_random_series(rule_reader: RuleReader) -> None:
    wrong: list[str] = []
    for number, series in enumerate(many_series(SEED, scaled(60, 1500))):
        text = write_series(CALENDAR, series.make_calendar())
        expected = until_last(list_rows(series))
        for name, entries in (
            (
                "recurring-ical-events",
                expand_with_recurring_ical_events(text, NOW - timedelta(days=9), CREATED_UNTIL),
            ),
            ("ical.js", rule_reader.expand(text, CREATED_UNTIL)),
        ):
            if (found := until_last(entries)) != expected:
                difference = sorted({*found} ^ {*expected})[:4]
                wrong.append(f"{number} {name}: {series.definition.parts} {len(found)} {len(expected)} {difference}")
    assert wrong == []
