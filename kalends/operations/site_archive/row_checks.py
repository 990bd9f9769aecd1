"""Checks of the rows of an archive before they are stored. Every error names the member, the line and the column."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from kalends.adapters.site_archive_file import ArchiveRefused
from kalends.core.errors import InvalidValue
from kalends.operations.site_archive.event_passwords import find_hashes
from kalends.operations.site_archive.row_types import check_type
from kalends.operations.site_archive.rules import LOGGED_RULES, RULES, Rules, check_definition
from kalends.store.site_tables import Column

MAX_SHOWN: Final = 60
# The columns of a series with the contents of its events.
CONTENTS: Final = ("template", "content_changes")


class RowChecker:
    """Checks the rows of one table. `sanitize`: store what a rule makes of a text instead of refusing it."""

    def __init__(self, table: str, columns: Sequence[Column], *, sanitize: bool) -> None:
        self._table = table
        self._columns = {column.name: column for column in columns}
        self._sanitize = sanitize

    def read(self, number: int, line: bytes) -> dict[str, Any]:
        """Return the row of a line; raise ArchiveRefused if it is not acceptable."""
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise self._refuse(number, "", InvalidValue("is not valid JSON: {error}.", error=error)) from None
        if not isinstance(row, dict):
            raise self._refuse(number, "", InvalidValue("is not an object."))
        for name in row.keys() ^ self._columns.keys():  # pyright: ignore[reportUnknownMemberType]
            problem = "is not a column of the archive." if name in row else "is missing."
            raise self._refuse(number, name, InvalidValue(problem))
        self._check_values(number, row)  # pyright: ignore[reportUnknownArgumentType]
        return row  # pyright: ignore[reportUnknownVariableType]

    def _check_values(self, number: int, row: dict[str, Any]) -> None:
        for name, column in self._columns.items():
            try:
                check_type(column, row[name])
            except InvalidValue as error:
                raise self._refuse(number, name, error) from None
        for name in find_hashes(row):
            raise self._refuse(number, name, InvalidValue("contains the hash of a password."))
        for place, values, rules in self._find_texts(row):
            self._apply(number, place, values, rules)
        if self._table == "changes" and row["kind"] == "series":
            for name in ("before", "after"):
                self._check_logged_series(number, name, row[name])
        if self._table == "series":
            try:
                check_definition(row)
            except InvalidValue as error:
                raise self._refuse(number, "parts, template or content_changes", error) from None

    def _find_texts(self, row: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], Rules]]:
        """Yield the row, and the objects in it whose keys are columns of a record, with their rules."""
        yield "", row, RULES.get(self._table, {})
        if self._table == "changes":
            for name in ("before", "after"):
                yield from _find_object(f"{name}.", row[name], LOGGED_RULES.get(row["kind"], {}))
        elif self._table == "series":
            yield from _find_contents(row, "")

    def _check_logged_series(self, number: int, place: str, columns: Any) -> None:
        """Check the contents of a series in its history, where they are JSON in a text."""
        if not isinstance(columns, dict):
            return
        try:
            encoded: dict[str, str] = {name: columns[name] for name in CONTENTS if name in columns}
            decoded = {name: orjson.loads(text) for name, text in encoded.items()}
        except (orjson.JSONDecodeError, TypeError):
            raise self._refuse(number, place, InvalidValue("is not the definition of a series.")) from None
        for inner, values, rules in _find_contents(decoded, f"{place}."):
            self._apply(number, inner, values, rules)
        columns |= {name: _encode(decoded[name]) for name in encoded if decoded[name] != orjson.loads(encoded[name])}

    def _apply(self, number: int, place: str, values: dict[str, Any], rules: Rules) -> None:
        for name in values.keys() & rules.keys():
            value = values[name]
            if value is None or value == "":
                continue
            try:
                stored = rules[name](value)
            except InvalidValue as error:
                raise self._refuse(number, place + name, error) from None
            except (AttributeError, TypeError):
                raise self._refuse(number, place + name, InvalidValue("has the wrong type.")) from None
            if stored == value:
                continue
            if not self._sanitize:
                raise self._refuse(
                    number,
                    place + name,
                    InvalidValue("is not as this version stores it: {value}", value=_show(value)),
                )
            values[name] = stored

    def _refuse(self, number: int, column: str, error: InvalidValue) -> ArchiveRefused:
        place = f"{self._table}.jsonl, line {number:,}" + (f", {_show(column, quoted=False)}" if column else "")
        return ArchiveRefused("{place}: {problem}", place=place, problem=error.message)


def _find_object(place: str, value: Any, rules: Rules) -> Iterator[tuple[str, dict[str, Any], Rules]]:
    if isinstance(value, dict):
        yield place, value, rules  # pyright: ignore[reportUnknownVariableType]


def _find_contents(series: Mapping[str, Any], place: str) -> Iterator[tuple[str, dict[str, Any], Rules]]:
    """Yield the contents of a series, which have the columns of events."""
    yield from _find_object(f"{place}template.", series.get("template"), RULES["events"])
    changes = series.get("content_changes")
    for change in changes if isinstance(changes, list) else ():  # pyright: ignore[reportUnknownVariableType]
        if isinstance(change, dict):
            yield from _find_object(f"{place}content_changes.set.", change.get("set"), RULES["events"])  # pyright: ignore[reportUnknownMemberType]


def _encode(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _show(value: object, *, quoted: bool = True) -> str:
    """Return the beginning of a value for a message, on one line."""
    text = ascii(value)[:MAX_SHOWN]
    return text if quoted else text.strip("'\"")
