"""Parsing of rules that are sent as objects. They are converted to the parts of an RRULE text."""

import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Final

from kalends.core.errors import InvalidValue
from kalends.core.params import read_integer, read_list
from kalends.core.recurrence.formats import format_rule
from kalends.core.recurrence.parts import build_rule, check_length
from kalends.core.recurrence.reading import read_rule
from kalends.core.recurrence.rules import FREQUENCIES, PART_NAMES, WEEKDAY_CODES, WEEKDAYS, Rule
from kalends.core.suggestions import suggest

_FIELDS: Final[Mapping[str, str]] = {part: field for field, part in PART_NAMES.items()}
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INVALID: Final = "?"  # a value that no part accepts, so that the error is that of the part


def read_rule_object(value: Mapping[str, object], zone: str) -> Rule:
    """Parse a rule from an object with the fields of `Rule`; null stands for a missing field.

    A rule from a response can be sent back: `rrule` may accompany the fields if both describe the same rule.
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
        # The regular expression excludes the other forms of ISO 8601.
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
