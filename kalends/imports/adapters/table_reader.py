"""Reads CSV files and spreadsheets, in the sandboxed process that parses imported files.

Size limits are checked before the spreadsheet library unpacks a file. Formulas are not computed; the reader uses
their stored results.
"""

import csv
import io
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from kalends.core.errors import InvalidValue
from kalends.imports.rules.table_cells import MAX_CELL_LENGTH, Cell
from kalends.imports.rules.table_headers import TABLE_KINDS, find_field
from kalends.imports.rules.tables import MAX_COLUMNS, MAX_ROWS, TableReading, read_rows

CSV, XLSX, XLS, ODS = FORMATS = ("csv", "xlsx", "xls", "ods")
MEGABYTE: Final = 1024 * 1024
MAX_BYTES: Final = 10 * MEGABYTE
MAX_UNPACKED_BYTES: Final = 60 * MEGABYTE
MAX_ENTRIES: Final = 1000
DELIMITERS: Final = (";", ",", "\t", "|")
# Leaves room for rows before the header and for empty formatted rows at the end.
_MAX_READ_ROWS: Final = MAX_ROWS + 1000
_SAMPLE_ROWS: Final = 30
_CHUNK: Final = MEGABYTE
_BOMS: Final = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_KANA: Final = re.compile("[\u3041-\u30ff]")
# A reference to a cell. Cells that have a format but no content do not match.
_REFERENCE: Final = re.compile(rb"""\sr\s*=\s*["']([A-Z]{1,3})([0-9]{1,7})["'](?![^<>]{0,200}/>)""")
_REPEATED: Final = re.compile(rb"""number-(rows|columns)-repeated\s*=\s*["']([0-9]{1,10})["']""")
_MAX_REPEATED: Final = 2_000_000  # spreadsheets repeat empty rows up to their size limit
_OLE: Final = b"\xd0\xcf\x11\xe0"
_ZIP: Final = b"PK\x03\x04"


def read_table(
    path: Path, format_: str, mapping: Mapping[str, str] | None, defaults: Mapping[str, Any]
) -> TableReading:
    """Read a file into columns, records, rejections and a preview. Raise InvalidValue if it is unreadable.

    See `read_rows` for `mapping` and `defaults`, which can also contain `encoding`, `delimiter` and `sheet`.
    """
    if path.stat().st_size > MAX_BYTES:
        raise InvalidValue("has more than {maximum} MB.", maximum=MAX_BYTES // MEGABYTE)
    if format_ not in FORMATS:
        raise InvalidValue("must be one of {values}.", values=", ".join(FORMATS))
    actual = detect_format(path)
    rows = _read_csv(path, defaults) if actual == CSV else _read_spreadsheet(path, actual, defaults)
    return read_rows(rows, mapping, defaults)


def detect_format(path: Path) -> str:
    """Detect a file's format from its first bytes, because file names and content types are often wrong."""
    with path.open("rb") as file:
        start = file.read(100)
    if start.startswith(_OLE):
        return XLS
    if start.startswith(_ZIP):
        return ODS if b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet" in start else XLSX
    return CSV


# CSV --------------------------------------------------------------------------------------------


def _read_csv(path: Path, defaults: Mapping[str, Any]) -> list[Sequence[Cell]]:
    text = decode(path.read_bytes(), str(defaults.get("encoding") or ""))
    text, declared = _split_declaration(text)
    delimiter = str(defaults.get("delimiter") or "") or declared or find_delimiter(text)
    if len(delimiter) != 1:
        raise InvalidValue("must have a delimiter of one character.")
    rows = list(islice(_parse(text, delimiter), _MAX_READ_ROWS + 1))
    if len(rows) > _MAX_READ_ROWS:
        raise InvalidValue("has more than {maximum} rows.", maximum=MAX_ROWS)
    return [list(row) for row in rows]


def decode(data: bytes, encoding: str = "") -> str:
    """Decode text in the given encoding, or detect Unicode and legacy Windows or Japanese encodings."""
    marked = next((name for mark, name in _BOMS.items() if data.startswith(mark)), "")
    try:
        if encoding or marked:
            return data.decode(encoding or marked)
        if data[:200].count(0) > len(data[:200]) // 4:
            return data.decode("utf-16-be" if data[:1] == b"\0" else "utf-16-le")
    except (LookupError, UnicodeError):
        raise InvalidValue("cannot be decoded as {encoding}.", encoding=encoding or marked or "UTF-16") from None
    if b"\0" in data:
        raise InvalidValue("is not a table: it is neither text nor a spreadsheet.")
    for name in ("utf-8", "cp932", "euc_jp"):
        try:
            text = data.decode(name)
        except UnicodeError:
            continue
        # Western European text is rarely valid Japanese with kana.
        if name == "utf-8" or _KANA.search(text):
            return text
    return data.decode("cp1252", errors="replace")


def _split_declaration(text: str) -> tuple[str, str]:
    """Split off the `sep=;` line that spreadsheets write."""
    match = re.match(r'"?sep=(.)"?\r?\n', text, re.IGNORECASE)
    return (text[match.end() :], match[1]) if match else (text, "")


def find_delimiter(text: str) -> str:
    """Return the delimiter that yields the most known headers or, in a tie, the most rows of equal length."""
    return max(DELIMITERS, key=lambda delimiter: _rate(text, delimiter))


def _rate(text: str, delimiter: str) -> tuple[int, float]:
    try:
        rows = [row for row in islice(_parse(text, delimiter), _SAMPLE_ROWS) if row]
    except InvalidValue:
        return 0, 0.5  # if no other delimiter is better, parsing raises this error again
    if not rows or max(map(len, rows)) < 2:
        return 0, 0.0
    known = max(sum(1 for cell in row if any(find_field(kind, cell)[0] for kind in TABLE_KINDS)) for row in rows[:10])
    lengths = [len(row) for row in rows]
    return known, max(map(lengths.count, lengths)) / len(lengths)


def _parse(text: str, delimiter: str) -> Any:
    csv.field_size_limit(MAX_CELL_LENGTH + 1)
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if len(row) > MAX_COLUMNS:
                raise InvalidValue("has more than {maximum} columns.", maximum=MAX_COLUMNS)
            yield row
    except csv.Error:
        raise InvalidValue("is not a valid CSV file: a quoted cell does not end, or is too long.") from None


# Spreadsheets -----------------------------------------------------------------------------------


def _read_spreadsheet(path: Path, format_: str, defaults: Mapping[str, Any]) -> list[Sequence[Cell]]:
    if format_ != XLS:
        check_archive(path)
    import python_calamine  # only needed in the sandboxed process

    try:
        with path.open("rb") as file, python_calamine.CalamineWorkbook.from_filelike(file) as workbook:
            sheet = workbook.get_sheet_by_name(_choose_sheet(workbook, str(defaults.get("sheet") or "")))
            _check_size(sheet.total_height, sheet.total_width)
            return list(sheet.to_python(skip_empty_area=False))
    except InvalidValue:
        raise
    except python_calamine.PasswordError:
        raise InvalidValue("is protected by a password.") from None
    except BaseException as error:  # the library's panics do not derive from Exception
        if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
            raise
        raise InvalidValue("is damaged and cannot be read as a spreadsheet.") from None


def _choose_sheet(workbook: Any, wanted: str) -> str:
    """Return the requested sheet, or the first visible sheet by default."""
    names: list[str] = list(workbook.sheet_names)
    if wanted:
        if wanted not in names:
            raise InvalidValue("has no sheet “{name}”.", name=wanted)
        return wanted
    visible = [row.name for row in workbook.sheets_metadata if str(row.visible).endswith("Visible")]
    if not names:
        raise InvalidValue("has no sheets.")
    return visible[0] if visible else names[0]


def _check_size(height: int, width: int) -> None:
    if height > _MAX_READ_ROWS:
        raise InvalidValue("has more than {maximum} rows.", maximum=MAX_ROWS)
    if width > MAX_COLUMNS:
        raise InvalidValue("has more than {maximum} columns.", maximum=MAX_COLUMNS)


def check_archive(path: Path) -> None:
    """Check a spreadsheet's entries before the library unpacks them. Raise InvalidValue if an entry is hostile."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if len(entries) > MAX_ENTRIES:
                raise InvalidValue("has more than {maximum} parts.", maximum=MAX_ENTRIES)
            remaining = MAX_UNPACKED_BYTES
            for entry in entries:
                remaining -= _check_entry(archive, entry, remaining)
    except InvalidValue:
        raise
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, OSError, EOFError, ValueError):
        raise InvalidValue("is damaged and cannot be read as a spreadsheet.") from None


def _check_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, remaining: int) -> int:
    """Return an entry's measured size, because the size stated in the archive may be wrong."""
    if entry.file_size > remaining:
        raise _too_large()
    size, tail = 0, b""
    is_xml = entry.filename.lower().endswith((".xml", ".rels"))
    with archive.open(entry) as file:
        while chunk := file.read(_CHUNK):
            size += len(chunk)
            if size > remaining:
                raise _too_large()
            if is_xml:
                # A pattern may have begun in the previous chunk.
                _check_xml(tail + chunk)
                tail = chunk[-64:]
    return size


def _check_xml(text: bytes) -> None:
    """Raise InvalidValue for entities, and for a cell so far away that filling the gap would exhaust memory."""
    if b"<!ENTITY" in text or b"<!DOCTYPE" in text:
        raise InvalidValue("contains XML entities, which no spreadsheet needs.")
    if b":number-" in text and any(int(number) > _MAX_REPEATED for _, number in _REPEATED.findall(text)):
        raise InvalidValue("has more than {maximum} rows.", maximum=MAX_ROWS)
    for letters, digits in _REFERENCE.findall(text):
        _check_size(int(digits), _column_number(letters))


def _column_number(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - ord("A") + 1
    return number


def _too_large() -> InvalidValue:
    return InvalidValue("has more than {maximum} MB when it is unpacked.", maximum=MAX_UNPACKED_BYTES // MEGABYTE)
