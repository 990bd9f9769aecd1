"""Structured data (schema.org, JSON-LD) of the rules of a series."""

from collections.abc import Sequence
from typing import Final

from kalends.core.html.sanitize import to_plain_text
from kalends.core.recurrence import Rule, Weekday
from kalends.core.recurrence.rules import WEEKDAY_CODES, WEEKDAYS
from kalends.core.series import Part
from kalends.kinds.kind import JsonObject

SCHEMA: Final = "https://schema.org/"
PERIODS: Final = {"daily": "D", "weekly": "W", "monthly": "M", "yearly": "Y"}


def describe_event_series(title: str, url: str, parts: Sequence[Part]) -> JsonObject:
    """Describe a series with its rules. Those that schema.org has no words for are left out."""
    schedules = [schedule for part in parts if (schedule := describe_schedule(part)) is not None]
    described: JsonObject = {"@type": "EventSeries", "name": to_plain_text(title), "url": url}
    if schedules:
        described["eventSchedule"] = schedules[0] if len(schedules) == 1 else schedules
    return described


def describe_schedule(part: Part) -> JsonObject | None:
    """Describe the rule of a part; None without a rule, and for one that picks positions of a set."""
    rule = part.rule
    if rule is None or rule.set_positions:
        return None
    values: JsonObject = {
        "@type": "Schedule",
        "startDate": part.start.date().isoformat(),
        "endDate": rule.until.isoformat() if rule.until else None,
        "startTime": None if part.all_day else part.start.time().isoformat(),
        "endTime": None if part.all_day else part.end.time().isoformat(),
        "scheduleTimezone": part.timezone,
        "repeatFrequency": f"P{rule.interval}{PERIODS[rule.frequency]}",
        "repeatCount": rule.count,
        "byDay": [_describe_weekday(weekday) for weekday in rule.weekdays],
        **_describe_days(rule),
    }
    return {name: value for name, value in values.items() if value not in (None, [])}


def _describe_days(rule: Rule) -> JsonObject:
    return {"byMonth": list(rule.months), "byMonthDay": list(rule.month_days)}


def _describe_weekday(weekday: Weekday) -> str:
    """Return the address of a weekday; a numbered one has the form of iCalendar."""
    if weekday.ordinal is None:
        return f"{SCHEMA}{WEEKDAYS[weekday.day].capitalize()}"
    return f"{weekday.ordinal}{WEEKDAY_CODES[weekday.day]}"
