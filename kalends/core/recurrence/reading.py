"""Parsing of RRULE texts."""

from collections.abc import Mapping
from typing import Final

from kalends.core.date_forms import WHITE_SPACE
from kalends.core.errors import InvalidValue
from kalends.core.recurrence.parts import build_rule, check_length
from kalends.core.recurrence.rules import PART_NAMES, Rule
from kalends.core.suggestions import suggest

_NAMES: Final[Mapping[str, str]] = {part: part for part in PART_NAMES.values()}
_PREFIX: Final = "RRULE:"


def read_rule(text: str, zone: str) -> Rule:
    """Parse an RRULE text, with or without the prefix `RRULE:`.

    An `UNTIL` in UTC becomes the day in the zone; one in local time keeps its day. Case does not matter. Spaces
    around parts and values and a semicolon at the end are ignored.
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
