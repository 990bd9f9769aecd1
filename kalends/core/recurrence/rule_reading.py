"""Read and write rules as RRULE text or as objects, and warn about skipped dates."""

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Final

from kalends.core.date_forms import WHITE_SPACE
from kalends.core.errors import InvalidValue
from kalends.core.messages import Message
from kalends.core.params import read_integer, read_list
from kalends.core.recurrence.rule_parts import (
    FREQUENCIES,
    PART_NAMES,
    WEEKDAY_CODES,
    WEEKDAYS,
    Rule,
    Weekday,
    build_rule,
    check_length,
)
from kalends.core.words import suggest

_NAMES: Final[Mapping[str, str]] = {part: part for part in PART_NAMES.values()}
_PREFIX: Final = "RRULE:"


def read_rule(text: str, zone: str) -> Rule:
    """Parse RRULE text, with or without the prefix `RRULE:`.

    An `UNTIL` in UTC becomes a day in the zone; a local `UNTIL` keeps its day. Case, spaces around parts and values,
    and a trailing semicolon are ignored.
    """
    check_length(len(text))
    stripped = text.strip(WHITE_SPACE).upper()
    if "\n" in stripped or stripped.count(_PREFIX) > 1:
        raise InvalidValue("A series has one rule. Create a series for each rule, or list the dates.")
    return build_rule(_split(stripped.removeprefix(_PREFIX).removesuffix(";")), _NAMES, zone)


def _split(text: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    for part in text.split(";"):
        name, _, value = (piece.strip(WHITE_SPACE) for piece in part.partition("="))
        if not name or not value:
            raise InvalidValue(
                'A rule consists of parts such as FREQ=WEEKLY, separated by semicolons; "{part}" is not one.',
                part=part,
            )
        if name not in _NAMES:
            raise InvalidValue("`{name}` is not supported.", name=name, suggestion=_suggest_part(name))
        if name in parts:
            raise InvalidValue("`{name}` appears more than once.", name=name)
        parts[name] = value
    return parts


def _suggest_part(name: str) -> str | None:
    return None if name.startswith("BY") else suggest(name, _NAMES)


def format_rule(rule: Rule) -> str:
    """Return the canonical RRULE text: parts and values in a fixed order, without defaults."""
    return ";".join(f"{PART_NAMES[name]}={value}" for name, value in _part_values(rule).items() if value)


def serialize_rule(rule: Rule) -> dict[str, object]:
    """Return the rule for a response, as text and as non-empty fields."""
    fields: dict[str, object] = {
        "rrule": format_rule(rule),
        "frequency": rule.frequency,
        "interval": rule.interval,
        "weekdays": [_serialize_weekday(weekday) for weekday in rule.weekdays],
        "month_days": [*rule.month_days],
        "months": [*rule.months],
        "set_positions": [*rule.set_positions],
        "count": rule.count,
        "until": rule.until and rule.until.isoformat(),
        "week_start": WEEKDAYS[rule.week_start] if rule.week_start else None,
    }
    return {name: value for name, value in fields.items() if value}


def _part_values(rule: Rule) -> dict[str, str]:
    values = {
        "frequency": rule.frequency.upper(),
        "interval": str(rule.interval) if rule.interval > 1 else "",
        "months": _join(rule.months),
        "month_days": _join(rule.month_days),
        "weekdays": ",".join(f"{weekday.ordinal or ''}{WEEKDAY_CODES[weekday.day]}" for weekday in rule.weekdays),
        "set_positions": _join(rule.set_positions),
        "week_start": WEEKDAY_CODES[rule.week_start] if rule.week_start else "",
        "count": str(rule.count or ""),
        "until": rule.until.isoformat().replace("-", "") if rule.until else "",
    }
    return {name: values[name] for name in PART_NAMES}


def _join(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))


def _serialize_weekday(weekday: Weekday) -> object:
    name = WEEKDAYS[weekday.day]
    return name if weekday.ordinal is None else {"weekday": name, "ordinal": weekday.ordinal}


# Rules sent as objects are converted to RRULE parts.

_FIELDS: Final[Mapping[str, str]] = {part: field for field, part in PART_NAMES.items()}
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INVALID: Final = "?"  # no part accepts this, so parsing raises the usual error


def read_rule_object(value: Mapping[str, object], zone: str) -> Rule:
    """Parse a rule from an object with `Rule` fields; null means a missing field.

    Clients can send back a rule from a response: an object may contain both `rrule` and fields if both describe the
    same rule.
    """
    fields = {name: entry for name, entry in value.items() if entry is not None}
    _check_names(fields, ("rrule", *PART_NAMES))
    if "rrule" not in fields:
        return _read_fields(fields, zone)
    rule = _read_text(fields.pop("rrule"), zone)
    if fields and _read_fields(fields, zone) != rule:
        raise InvalidValue("`rrule` and the other fields describe different rules. Send only one of the two.")
    return rule


def _read_text(value: object, zone: str) -> Rule:
    if not isinstance(value, str):
        raise InvalidValue("`{name}` must be a string.", name="rrule")
    return read_rule(value, zone)


def _read_fields(fields: Mapping[str, object], zone: str) -> Rule:
    parts = {
        PART_NAMES[name]: _READERS[name](name, value)
        for name, value in {"frequency": None, **fields}.items()
        if value != []
    }
    rule = build_rule(parts, _FIELDS, zone)
    check_length(len(format_rule(rule)))
    return rule


def _check_names(value: Mapping[str, object], allowed: tuple[str, ...]) -> None:
    unknown = [str(name)[:50] for name in value if name not in allowed]
    if unknown:
        names = ", ".join(f"`{name}`" for name in unknown[:10])
        raise InvalidValue("There is no field {names}.", names=names, suggestion=suggest(unknown[0], allowed))


def _read_frequency(name: str, value: object) -> str:
    if not isinstance(value, str) or value.lower() not in FREQUENCIES:
        raise InvalidValue(
            "`{name}` must be daily, weekly, monthly or yearly. For several times a day, create one series for each "
            "time.",
            name=name,
        )
    return value.upper()


def _read_number(name: str, value: object) -> str:
    try:
        return str(read_integer(value))
    except InvalidValue:
        return _INVALID


def _read_until(name: str, value: object) -> str:
    try:
        # The regular expression excludes other ISO 8601 forms.
        if isinstance(value, str) and _DAY.fullmatch(value):
            return date.fromisoformat(value).isoformat().replace("-", "")
    except ValueError:
        pass
    raise InvalidValue("`{name}` must be a date such as 2027-05-03.", name=name)


def _read_weekday(name: str, value: object) -> str:
    text = value.lower() if isinstance(value, str) else ""
    if text not in WEEKDAYS:
        raise InvalidValue(
            "`{name}`: a weekday must be one of {values}.",
            name=name,
            values=", ".join(WEEKDAYS),
            suggestion=suggest(text, WEEKDAYS),
        )
    return WEEKDAY_CODES[WEEKDAYS.index(text)]


def _read_numbered_weekday(name: str, value: object) -> str:
    """Parse `"friday"` or `{"weekday": "friday", "ordinal": -1}`."""
    if not isinstance(value, dict):
        return _read_weekday(name, value)
    fields: dict[str, object] = value
    _check_names(fields, ("weekday", "ordinal"))
    weekday, ordinal = _read_weekday(name, fields.get("weekday")), fields.get("ordinal")
    if ordinal is None:
        return weekday
    number = _read_number(name, ordinal)
    if number == _INVALID:
        raise InvalidValue("`{name}`: `ordinal` must be a whole number such as -1.", name=name)
    return number + weekday


def _list_of(read: Callable[[str, object], str]) -> Callable[[str, object], str]:
    def read_entries(name: str, value: object) -> str:
        entries = read_list(value)
        check_length(len(entries))
        return ",".join(read(name, entry) for entry in entries)

    return read_entries


_READERS: Final[Mapping[str, Callable[[str, object], str]]] = {
    "frequency": _read_frequency,
    "interval": _read_number,
    "count": _read_number,
    "until": _read_until,
    "weekdays": _list_of(_read_numbered_weekday),
    "month_days": _list_of(_read_number),
    "months": _list_of(_read_number),
    "set_positions": _list_of(_read_number),
    "week_start": _read_weekday,
}


_FEBRUARY: Final = 2
_SHORT_MONTHS: Final = {2, 4, 6, 9, 11}
# Day of the month, months without that day, and the warning.
_MISSING_DAYS: Final = (
    (
        31,
        _SHORT_MONTHS,
        Message("Five months of the year have no 31st. Use `BYMONTHDAY=-1` for the last day of every month."),
    ),
    (30, {_FEBRUARY}, Message("February has no 30th. Use `BYMONTHDAY=-1` for the last day of every month.")),
    (29, {_FEBRUARY}, Message("February has a 29th only in leap years.")),
)
_FIFTH_WEEKDAY: Final = Message(
    'Not every month has five of a weekday. Use -1, as in "-1TU", for the last one of every month.'
)


def find_warnings(rule: Rule, start: datetime | None = None) -> list[Message]:
    """Return warnings about dates that are skipped because they do not exist in every period.

    Rules without days or months take them from the start.
    """
    if rule.set_positions or rule.frequency not in ("monthly", "yearly"):
        return []
    if rule.weekdays:
        is_in_months = rule.frequency == "monthly" or bool(rule.months)
        return [_FIFTH_WEEKDAY] if is_in_months and any(abs(day.ordinal or 0) == 5 for day in rule.weekdays) else []
    days, months = _find_days_and_months(rule, start)
    warnings = [text for day, missing, text in _MISSING_DAYS if day in days and months & missing]
    return warnings[:1]


def is_ambiguous(rule: Rule) -> bool:
    """Return whether other programs are known to expand rules of this kind differently."""
    has_ordinals = {weekday.ordinal is not None for weekday in rule.weekdays}
    is_weekly_set = rule.frequency == "weekly" and bool(rule.set_positions)
    return len(has_ordinals) > 1 or is_weekly_set or len(rule.set_positions) > 1


def _find_days_and_months(rule: Rule, start: datetime | None) -> tuple[set[int], set[int]]:
    days, months = {*rule.month_days}, {*rule.months}
    if start is not None and not days:
        days = {start.day}
        months = months or ({start.month} if rule.frequency == "yearly" else set())
    return days, months or {*range(1, 13)}
