"""Reads tables into imported records, with columns, rejections and a preview."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from typing import Any, Final, NamedTuple, TypedDict

from kalends.core import times
from kalends.core.date_forms import read_datetime
from kalends.core.errors import InvalidValue
from kalends.core.messages import Message
from kalends.core.times import DateTimeInput
from kalends.imports.rules import table_cells, table_headers, table_values
from kalends.imports.rules.import_places import Places, resolve
from kalends.imports.rules.import_records import ImportedRecord, ParsedSource, Rejection
from kalends.imports.rules.table_cells import Cell, to_text, unguard_formula
from kalends.imports.rules.table_values import RowValues

MAX_ROWS: Final = 10_000
MAX_COLUMNS: Final = 200
PREVIEW_ROWS: Final = 50
# A table may begin with a title and notes.
_MAX_ROWS_BEFORE_HEADER: Final = 10
_MAX_PREVIEW_TEXT: Final = 200
_SAMPLES: Final = 3


class Column(TypedDict):
    """A column: its header, its field (empty if not imported), and sample values."""

    header: str
    field: str
    samples: list[str]


class PreviewCell(TypedDict):
    text: str
    problem: Message | None


class PreviewRow(TypedDict):
    """A row in the preview, with its cells in column order."""

    row: int
    cells: list[PreviewCell]
    problem: Message | None  # about the row as a whole


class TableReading(NamedTuple):
    """A table: its columns, records and rejections, and a preview that marks invalid cells."""

    columns: list[Column]
    source: ParsedSource
    preview: list[PreviewRow]


@dataclass(frozen=True, slots=True)
class _Row:
    number: int  # row number as shown in the spreadsheet
    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class _Table:
    kind: str
    headers: list[str]
    fields: list[str]  # one field per column
    order: Mapping[str, str]  # order of day and month, by field
    rows: list[_Row]


def read_rows(
    rows: Sequence[Sequence[Cell]], mapping: Mapping[str, str] | None, defaults: Mapping[str, Any]
) -> TableReading:
    """Read the rows of a table, including its header. Raise InvalidValue if the table is too large or empty.

    `mapping` maps headers to fields, and headers of columns to skip to an empty field. The fields of all other
    headers are guessed. `defaults` can contain `kind`, `timezone`, `site_timezone`,
    `date_order` (dmy or mdy) and `duration_minutes`.
    """
    table = _make_table(rows, mapping or {}, defaults)
    columns: list[Column] = [
        {"header": header, "field": name, "samples": _find_samples(table.rows, index)}
        for index, (header, name) in enumerate(zip(table.headers, table.fields, strict=True))
    ]
    reader = _Reader(table, defaults)
    for row in table.rows:
        reader.add(row)
    source = ParsedSource(
        reader.list_records(),
        reader.rejections,
        find_span(reader.records, defaults),
        unused_columns=_find_unused(table, mapping or {}),
    )
    return TableReading(columns, source, reader.preview)


class _Reader:
    def __init__(self, table: _Table, defaults: Mapping[str, Any]) -> None:
        self._table, self._defaults = table, defaults
        self._seen: dict[str, int] = {}
        self.places = Places()
        self.records: list[ImportedRecord] = []
        self.rejections: list[Rejection] = []
        self.preview: list[PreviewRow] = []

    def add(self, row: _Row) -> None:
        table = self._table
        read = table_values.read_row(table.kind, _group_cells(table, row), table.order)
        problem = self._reject(row, read) if read.problems else self._add_record(row, read)
        if len(self.preview) < PREVIEW_ROWS:
            self.preview.append(_make_preview(table, row, read, problem))

    def list_records(self) -> list[ImportedRecord]:
        """Return all records, starting with the places that events link to."""
        meant = self.places.find_meant()
        events = [replace(record, links=resolve(record.links, meant)) for record in self.records]
        return [*self.places.list_records(meant), *events]

    def _add_record(self, row: _Row, read: RowValues) -> Message | None:
        """Add the record for a row, or return why the row is rejected."""
        kind, identity = self._table.kind, table_values.make_identity(self._table.kind, read.fields)
        try:
            if len(row.cells) > len(self._table.headers):
                raise InvalidValue("The row has more cells than the header.")
            if identity in self._seen:
                raise InvalidValue("The row repeats row {row}.", row=self._seen[identity])
            values = table_values.make_values(kind, read.fields, self._defaults)
            question = table_values.find_question(read.fields) if kind == "events" else None
            links = self.places.add(read.fields, row.number) if kind == "events" else {}
        except InvalidValue as error:
            title = str(read.fields[table_values.NAME_FIELDS[kind]])
            self.rejections.append(Rejection(error.message, row.number, identity, title=title))
            return error.message
        self._seen[identity] = row.number
        self.records.append(ImportedRecord(kind, identity, values, links=links, line=row.number, question=question))
        return None

    def _reject(self, row: _Row, read: RowValues) -> Message | None:
        """Reject a row with invalid cells, with all reasons. Return the problem if a required column is missing."""
        table = self._table
        reasons = [
            why
            if why is table_values.MISSING.get(name)
            else Message(
                "Column “{column}”, value “{value}”: {reason}",
                column=table.headers[table.fields.index(name)],
                value=self._find_text(row, name),
                reason=why,
            )
            for name, why in read.problems.items()
        ]
        title = str(read.fields.get(table_values.NAME_FIELDS[table.kind]) or "")
        identity = str(read.fields.get(table_headers.IDENTITY) or "")
        self.rejections.append(Rejection(Message("{reason}", reason=reasons), row.number, identity, title=title))
        return next((why for name, why in read.problems.items() if name not in table.fields), None)

    def _find_text(self, row: _Row, name: str) -> str:
        index = self._table.fields.index(name)
        return to_text(row.cells[index])[:_MAX_PREVIEW_TEXT] if index < len(row.cells) else ""


# Header and columns -----------------------------------------------------------------------------


def _make_table(rows: Sequence[Sequence[Cell]], mapping: Mapping[str, str], defaults: Mapping[str, Any]) -> _Table:
    cleaned = [[_clean_cell(cell) for cell in row] for row in rows]
    first = _find_header_row(cleaned, mapping)
    headers = _make_headers(cleaned[first])
    kind = str(defaults.get("kind") or table_headers.guess_kind(headers))
    if kind not in table_headers.TABLE_KINDS:
        raise InvalidValue("must be a table of events, venues or organizers.")
    body = [_Row(number, _trim(row)) for number, row in enumerate(cleaned[first + 1 :], first + 2)]
    body = [row for row in body if row.cells]
    if len(body) > MAX_ROWS:
        raise InvalidValue("has more than {maximum} rows.", maximum=MAX_ROWS)
    fields = _choose_fields(kind, headers, mapping, [_list_cells(body, index) for index in range(len(headers))])
    order = str(defaults.get("date_order") or "")
    language = table_headers.guess_language(kind, headers)
    orders = {
        name: order or table_cells.find_order(_list_cells(body, index), language)
        for index, name in enumerate(fields)
        if name in ("start_date", "end_date")
    }
    if not order and "start_date" in orders:
        orders["end_date"] = orders["start_date"]
    return _Table(kind, headers, fields, orders, body)


def _clean_cell(cell: Cell) -> Cell:
    """Strip spaces around text.

    Keep line breaks, because a final line break marks a single name that contains semicolons.
    """
    if not isinstance(cell, str):
        return cell
    text = cell.replace("\r\n", "\n").strip(" \t\u00a0")
    return unguard_formula(text) if text.strip() else ""


def _trim(row: list[Cell]) -> list[Cell]:
    while row and row[-1] in ("", None):
        row = row[:-1]
    return row


def _find_header_row(rows: list[list[Cell]], mapping: Mapping[str, str]) -> int:
    """Return the index of the header row: the row near the top with the most known headers."""
    known = [
        (sum(1 for cell in row if _is_header(cell, mapping)), -index)
        for index, row in enumerate(rows[:_MAX_ROWS_BEFORE_HEADER])
        if _trim(row)
    ]
    if not known:
        raise InvalidValue("is empty: a table has a header and rows.")
    return -max(known)[1]


def _is_header(cell: Cell, mapping: Mapping[str, str]) -> bool:
    text = to_text(cell)
    return text in mapping or any(table_headers.find_field(kind, text)[0] for kind in table_headers.TABLE_KINDS)


def _make_headers(row: list[Cell]) -> list[str]:
    """Return unique headers. A column without a header is named by its number."""
    cells = _trim(row)
    if len(cells) > MAX_COLUMNS:
        raise InvalidValue("has more than {maximum} columns.", maximum=MAX_COLUMNS)
    headers: list[str] = []
    for number, cell in enumerate(cells, 1):
        text = to_text(cell)[:_MAX_PREVIEW_TEXT] or str(number)
        names = (text if repeat == 1 else f"{text} ({repeat})" for repeat in count(1))
        headers.append(next(name for name in names if name not in headers))
    return headers


def _choose_fields(
    kind: str, headers: list[str], mapping: Mapping[str, str], columns: Sequence[list[Cell]]
) -> list[str]:
    """Return the field for each column, from the mapping or by guessing. Most fields can have only one column."""
    fields: list[str] = []
    taken = {mapping[header] for header in headers if header in mapping}
    guesses = [_guess_field(kind, header, cells) for header, cells in zip(headers, columns, strict=True)]
    for index, header in enumerate(headers):
        name = mapping[header] if header in mapping else guesses[index]
        is_given = header in mapping
        if (
            name not in table_headers.TABLE_KINDS[kind]
            or (name in fields and name not in table_headers.REPEATABLE)
            or (not is_given and name in taken)
        ):
            name = table_headers.IGNORED
        fields.append(name)
    return fields


def _guess_field(kind: str, header: str, cells: list[Cell]) -> str:
    """Guess a column's field from its header.

    A column such as “Beginn” is a time column if it mostly contains times.
    """
    base = header.rpartition(" (")[0] if header.endswith(")") and header[-2:-1].isdecimal() else header
    name = table_headers.find_field(kind, base)[0]
    if name in ("start_date", "end_date") and sum(map(table_cells.is_time_only, cells)) * 2 > len(cells):
        return name.replace("date", "time")
    return name


def _find_unused(table: _Table, mapping: Mapping[str, str]) -> dict[str, bool]:
    """Return the headers of non-empty columns that are not imported, and whether they contain times unexpectedly."""
    unused: dict[str, bool] = {}
    for index, (header, name) in enumerate(zip(table.headers, table.fields, strict=True)):
        cells = _list_cells(table.rows, index)
        if name == table_headers.IGNORED and cells:
            unused[header] = header not in mapping and sum(map(table_cells.has_time, cells)) * 2 > len(cells)
    return unused


def _list_cells(rows: list[_Row], index: int) -> list[Cell]:
    """Return the non-empty values of a column."""
    cells = [row.cells[index] for row in rows if index < len(row.cells)]
    return [cell for cell in cells if cell not in ("", None)]


def _find_samples(rows: list[_Row], index: int) -> list[str]:
    texts = [to_text(cell)[:_MAX_PREVIEW_TEXT] for cell in _list_cells(rows[:PREVIEW_ROWS], index)]
    return list(dict.fromkeys(texts))[:_SAMPLES]


def _group_cells(table: _Table, row: _Row) -> dict[str, list[Cell]]:
    """Return a row's cells by field, for all imported columns."""
    grouped: dict[str, list[Cell]] = {}
    for index, name in enumerate(table.fields):
        if name != table_headers.IGNORED:
            grouped.setdefault(name, []).append(row.cells[index] if index < len(row.cells) else "")
    return grouped


# Results ----------------------------------------------------------------------------------------


def _make_preview(table: _Table, row: _Row, read: RowValues, problem: Message | None) -> PreviewRow:
    cells: list[PreviewCell] = [
        {
            "text": to_text(row.cells[index])[:_MAX_PREVIEW_TEXT] if index < len(row.cells) else "",
            "problem": read.problems.get(name) if name != table_headers.IGNORED else None,
        }
        for index, name in enumerate(table.fields)
    ]
    return {"row": row.number, "cells": cells, "problem": problem}


def find_span(records: Sequence[ImportedRecord], defaults: Mapping[str, Any]) -> tuple[datetime, datetime] | None:
    """Return the first and last instant of the events, or None if there are no events."""
    instants: list[datetime] = []
    for record in records if records and records[0].kind == "events" else ():
        zone = str(record.values.get("timezone") or defaults.get("site_timezone") or "UTC")
        try:
            sides = [read_datetime(record.values[name]) for name in ("start_date", "end_date")]
            instants += [times.to_utc(side, zone) for side in sides if isinstance(side, DateTimeInput)]
        except (InvalidValue, OverflowError, ValueError):
            continue
    return (min(instants).astimezone(UTC), max(instants).astimezone(UTC)) if instants else None
