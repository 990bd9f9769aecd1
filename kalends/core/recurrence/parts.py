"""Parsing of the parts of a rule, whichever form they were sent in.

`Parts` maps the names of RRULE parts to their values as text. `Names` maps them to the names that errors use.
"""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Final

from kalends.core.date_forms import WHITE_SPACE
from kalends.core.errors import InvalidValue
from kalends.core.messages import gettext_noop as N_
from kalends.core.recurrence.rules import (
    FREQUENCIES,
    MAX_COUNT,
    MAX_INTERVAL,
    MAX_LENGTH,
    MAX_ORDINALS,
    WEEKDAY_CODES,
    Rule,
    Weekday,
)
from kalends.core.zones import local_of

type Parts = Mapping[str, str]
type Names = Mapping[str, str]

# Only ASCII digits: Unicode has others, which `int` would read.
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
    """Return the last day in the zone: an instant becomes the day on which it falls there."""
    match = _UNTIL.fullmatch(text)
    try:
        if match is None:
            raise ValueError(text)
        day = date(int(match["year"]), int(match["month"]), int(match["day"]))
    except ValueError:
        raise InvalidValue(
            "`{name}` must be a date such as 20270503, or a time such as 20270503T170000Z.", name=name
        ) from None
    if not match["utc"] or day in (date.min, date.max):  # The calendar has no day before or after these.
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
    """Return the sort key of a position: those that are counted from the end come last."""
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
