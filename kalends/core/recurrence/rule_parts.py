"""Recurrence rule parts, their names in RRULE text and in objects, and their parsers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final

from kalends.core.date_forms import WHITE_SPACE
from kalends.core.errors import InvalidValue
from kalends.core.messages import gettext_noop as N_
from kalends.core.times import local_of

MAX_LENGTH: Final = 500  # maximum characters of RRULE text
MAX_INTERVAL: Final = 999
MAX_COUNT: Final = 1000

FREQUENCIES: Final = ("daily", "weekly", "monthly", "yearly")
WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
WEEKDAY_CODES: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
# The largest weekday ordinal by frequency, as in "5TU". Other frequencies allow none.
MAX_ORDINALS: Final = {"monthly": 5, "yearly": 53}

# `Rule` fields with their RRULE names, in RRULE order.
PART_NAMES: Final = {
    "frequency": "FREQ",
    "interval": "INTERVAL",
    "months": "BYMONTH",
    "month_days": "BYMONTHDAY",
    "weekdays": "BYDAY",
    "set_positions": "BYSETPOS",
    "week_start": "WKST",
    "count": "COUNT",
    "until": "UNTIL",
}


@dataclass(frozen=True, slots=True)
class Weekday:
    """A weekday; 0 is Monday. A negative ordinal counts from the end of the month or year."""

    day: int
    ordinal: int | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A recurrence rule. `until` is the last day, inclusive, in the series' time zone."""

    frequency: str
    interval: int = 1
    count: int | None = None
    until: date | None = None
    weekdays: tuple[Weekday, ...] = ()
    month_days: tuple[int, ...] = ()
    months: tuple[int, ...] = ()
    set_positions: tuple[int, ...] = ()
    week_start: int = 0

    @property
    def has_parts(self) -> bool:
        """Return whether the rule specifies days or months; otherwise they come from the start."""
        return bool(self.weekdays or self.month_days or self.months)


type Parts = Mapping[str, str]
type Names = Mapping[str, str]

# Only ASCII digits match, because `int` also accepts other digits.
_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_SIGNED_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,9}")
_WEEKDAY: Final = re.compile(rf"(?P<ordinal>{_SIGNED_NUMBER.pattern})?(?P<code>{'|'.join(WEEKDAY_CODES)})")
_UNTIL: Final = re.compile(
    r"(?P<year>[0-9]{4})(?P<month>[0-9]{2})(?P<day>[0-9]{2})"
    r"(?:T(?P<hour>[01][0-9]|2[0-3])(?P<minute>[0-5][0-9])(?:[0-5][0-9]|60)(?P<utc>Z)?)?"
)
_MAXIMA: Final = {
    "INTERVAL": (MAX_INTERVAL, N_("`{name}` must be a whole number from 1 to 999.")),
    "COUNT": (MAX_COUNT, N_("`{name}` must be a whole number from 1 to 1,000.")),
}
_LIST_MAXIMA: Final = {"BYMONTH": 12, "BYMONTHDAY": 31, "BYSETPOS": 366}


def check_length(length: int) -> None:
    if length > MAX_LENGTH:
        raise InvalidValue("A rule can have at most 500 characters.")


def build_rule(parts: Parts, names: Names, zone: str) -> Rule:
    frequency = _read_frequency(parts.get("FREQ", ""))
    rule = Rule(
        frequency,
        _read_number(parts, names, "INTERVAL") or 1,
        _read_number(parts, names, "COUNT"),
        _read_until(parts["UNTIL"], names["UNTIL"], zone) if "UNTIL" in parts else None,
        _read_weekdays(parts, names, frequency),
        _read_numbers(parts, names, "BYMONTHDAY"),
        _read_numbers(parts, names, "BYMONTH"),
        _read_numbers(parts, names, "BYSETPOS"),
        _read_week_start(parts.get("WKST", "MO"), names["WKST"]),
    )
    _check_combination(rule, names)
    return rule


def _read_frequency(text: str) -> str:
    if text.lower() not in FREQUENCIES:
        raise InvalidValue(
            "`FREQ` must be DAILY, WEEKLY, MONTHLY or YEARLY. For several times a day, create one series for each "
            "time."
        )
    return text.lower()


def _read_number(parts: Parts, names: Names, part: str) -> int | None:
    text = parts.get(part)
    if text is None:
        return None
    maximum, problem = _MAXIMA[part]
    if not _NUMBER.fullmatch(text) or not 1 <= int(text) <= maximum:
        raise InvalidValue(problem, name=names[part])
    return int(text)


def _read_until(text: str, name: str, zone: str) -> date:
    """Return the last day. An instant becomes the day in the zone at that instant."""
    match = _UNTIL.fullmatch(text)
    try:
        if match is None:
            raise ValueError(text)
        day = date(int(match["year"]), int(match["month"]), int(match["day"]))
    except ValueError:
        raise InvalidValue(
            "`{name}` must be a date such as 20270503, or a time such as 20270503T170000Z.", name=name
        ) from None
    if not match["utc"] or day in (date.min, date.max):  # the conversion could leave the calendar's range
        return day
    instant = datetime(day.year, day.month, day.day, int(match["hour"]), int(match["minute"]), tzinfo=UTC)
    return local_of(instant, zone).date()


def _read_weekdays(parts: Parts, names: Names, frequency: str) -> tuple[Weekday, ...]:
    entries = {_read_weekday(text, names["BYDAY"], frequency) for text in _split(parts.get("BYDAY"))}
    return tuple(sorted(entries, key=lambda entry: (*_from_start(entry.ordinal or 0), entry.day)))


def _read_weekday(text: str, name: str, frequency: str) -> Weekday:
    match = _WEEKDAY.fullmatch(text)
    if match is None:
        raise InvalidValue('`{name}` must be a list of weekdays, such as "MO,TU" or "-1FR".', name=name)
    day = WEEKDAY_CODES.index(match["code"])
    if match["ordinal"] is None:
        return Weekday(day, None)
    if frequency not in MAX_ORDINALS:
        raise InvalidValue('`{name}`: a number, as in "5TU", can only be used with MONTHLY or YEARLY.', name=name)
    ordinal, maximum = int(match["ordinal"]), MAX_ORDINALS[frequency]
    if not 1 <= abs(ordinal) <= maximum:
        raise InvalidValue(
            "`{name}`: with {frequency}, the number of a weekday must be from 1 to {maximum} or from -{maximum} to "
            "-1.",
            name=name,
            frequency=frequency.upper(),
            maximum=maximum,
        )
    return Weekday(day, ordinal)


def _read_numbers(parts: Parts, names: Names, part: str) -> tuple[int, ...]:
    entries = _split(parts.get(part))
    is_signed, maximum = part != "BYMONTH", _LIST_MAXIMA[part]
    form = _SIGNED_NUMBER if is_signed else _NUMBER
    if not all(form.fullmatch(entry) and 1 <= abs(int(entry)) <= maximum for entry in entries):
        if not is_signed:
            raise InvalidValue("`{name}` must be a list of numbers from 1 to 12.", name=names[part])
        raise InvalidValue(
            "`{name}` must be a list of numbers from 1 to {maximum} or from -{maximum} to -1.",
            name=names[part],
            maximum=maximum,
        )
    return tuple(sorted({int(entry) for entry in entries}, key=_from_start))


def _split(text: str | None) -> list[str]:
    return [] if text is None else [entry.strip(WHITE_SPACE) for entry in text.split(",")]


def _from_start(number: int) -> tuple[bool, int]:
    """Return a sort key that puts positions counted from the end last."""
    return number < 0, number


def _read_week_start(text: str, name: str) -> int:
    if text not in WEEKDAY_CODES:
        raise InvalidValue("`{name}` must be a weekday such as MO.", name=name)
    return WEEKDAY_CODES.index(text)


def _check_combination(rule: Rule, names: Names) -> None:
    if rule.count is not None and rule.until is not None:
        raise InvalidValue("Use either `{count}` or `{until}`, not both.", count=names["COUNT"], until=names["UNTIL"])
    if rule.frequency == "weekly" and rule.month_days:
        raise InvalidValue("`{name}` cannot be used with WEEKLY.", name=names["BYMONTHDAY"])
    if rule.set_positions and not rule.has_parts:
        others = ", ".join(f"`{names[part]}`" for part in ("BYDAY", "BYMONTHDAY", "BYMONTH"))
        raise InvalidValue("`{name}` needs one of {others}.", name=names["BYSETPOS"], others=others)
