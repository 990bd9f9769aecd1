"""The types of values in archives. PostgreSQL would also read "5" as a number, "now" as a date and 5 as a text."""

import re
from collections.abc import Callable
from typing import Any, Final

from kalends.core.errors import InvalidValue
from kalends.core.params import MAX_ID
from kalends.store.site_tables import Column

_DATE: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIMESTAMP: Final = _DATE + r"T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"


def _is_integer(value: Any, maximum: int) -> bool:
    # IDs, revisions, positions and sizes: nothing in these tables is negative.
    return type(value) is int and 0 <= value <= maximum


def _matches(pattern: str) -> Callable[[Any], bool]:
    expression = re.compile(pattern, re.ASCII)
    return lambda value: isinstance(value, str) and expression.fullmatch(value) is not None


# By type of PostgreSQL: whether a value has it, and the words for it.
TYPES: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "text": (lambda value: isinstance(value, str), "a string"),
    "bigint": (lambda value: _is_integer(value, MAX_ID), f"an integer from 0 to {MAX_ID}"),
    "integer": (lambda value: _is_integer(value, 2**31 - 1), "an integer from 0 to 2147483647"),
    "smallint": (lambda value: _is_integer(value, 2**15 - 1), "an integer from 0 to 32767"),
    "double precision": (lambda value: type(value) in (int, float), "a number"),
    "boolean": (lambda value: isinstance(value, bool), "true or false"),
    "timestamp with time zone": (
        _matches(_TIMESTAMP + r"\+00:00"),
        "a time in UTC such as 2027-04-01T19:30:00+00:00",
    ),
    "timestamp without time zone": (_matches(_TIMESTAMP), "a time such as 2027-04-01T19:30:00"),
    "bytea": (_matches(r"\\x([0-9a-f]{2})*"), r"bytes such as \x00ff"),
    "jsonb": (lambda value: value is not None, "a value"),
}


def check_type(column: Column, value: Any) -> None:
    """Raise InvalidValue unless the value has the type of its column."""
    if value is None:
        if column.is_nullable:
            return
        raise InvalidValue("must not be null.")
    of_array = column.type.removesuffix("[]")
    has_type, words = TYPES[of_array]
    if of_array == column.type:
        if not has_type(value):
            raise InvalidValue("must be {words}.", words=words)
    elif not isinstance(value, list) or not all(map(has_type, value)):  # pyright: ignore[reportUnknownArgumentType]
        raise InvalidValue("must be a list, and each entry {words}.", words=words)
    if _has_nul(value):
        raise InvalidValue("contains a NUL character, which no text can have.")


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_has_nul(name) or _has_nul(entry) for name, entry in value.items())  # pyright: ignore[reportUnknownVariableType]
    return isinstance(value, list) and any(map(_has_nul, value))  # pyright: ignore[reportUnknownArgumentType]
