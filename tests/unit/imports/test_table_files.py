"""Files with tables: encodings and delimiters of CSV, spreadsheets, and hostile archives."""

import io
import zipfile
from datetime import datetime, time
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from kalends.core.errors import InvalidValue
from kalends.imports.adapters import table_reader
from kalends.imports.adapters.table_reader import decode, detect_format, find_delimiter, read_table
from kalends.imports.rules.tables import TableReading

ODS_CONTENT = """<?xml version="1.0" encoding="UTF-8"?>
<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" office:version="1.2"><office:body><office:spreadsheet>
<table:table table:name="Termine">{rows}
<table:table-row table:number-rows-repeated="1048574"><table:table-cell table:number-columns-repeated="1024"/>
</table:table-row></table:table></office:spreadsheet></office:body></office:document-content>"""
ODS_MANIFEST = """<?xml version="1.0" encoding="UTF-8"?>
<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">
<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/></manifest:manifest>"""
SHEET = """<?xml version="1.0" encoding="UTF-8"?>
<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{rows}</sheetData></worksheet>"""


def read_bytes(folder: Path, data: bytes, format_: str = "csv", **defaults: Any) -> TableReading:
    path = folder / "upload"
    path.write_bytes(data)
    return read_table(path, format_, None, defaults)


def list_titles(reading: TableReading) -> list[str]:
    assert not reading.source.rejections
    return [str(record.values["title"]) for record in reading.source.records if not record.is_linked]


def refuse(folder: Path, data: bytes, format_: str) -> str:
    with pytest.raises(InvalidValue) as caught:
        read_bytes(folder, data, format_)
    return str(caught.value)


def make_workbook(rows: list[list[Any]], hidden: list[list[Any]] | None = None) -> bytes:
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    assert sheet is not None
    if hidden is not None:
        for row in hidden:
            sheet.append(row)
        sheet.sheet_state = "hidden"
        sheet = workbook.create_sheet("Visible")
        workbook.active = sheet
    for row in rows:
        sheet.append(row)
    buffer = io.BytesIO()
    workbook.save(buffer)
    return buffer.getvalue()


def replace_part(workbook: bytes, name: str, content: bytes) -> bytes:
    """Return a spreadsheet with another content of one part."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(workbook)) as old, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            new.writestr(entry.filename, content if entry.filename == name else old.read(entry))
    return buffer.getvalue()


def make_ods(*rows: tuple[str, str]) -> bytes:
    cells = "".join(
        "<table:table-row>"
        + "".join(
            f'<table:table-cell office:value-type="string"><text:p>{text}</text:p></table:table-cell>' for text in row
        )
        + "</table:table-row>"
        for row in rows
    )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", ODS_MANIFEST)
        archive.writestr("content.xml", ODS_CONTENT.replace("\n", "").format(rows=cells))
    return buffer.getvalue()


# CSV --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_encodings_and_delimiters_are_found(tmp_path: Path, encoding: str, delimiter: str) -> None:
    lines = [
        ["Titel", "Datum", "Ort"],
        ["Frühschoppen, heiter", "16.11.2026", "Löwen"],
        ["Ärger", "17.11.2026", "Café"],
    ]
    text = "\r\n".join(delimiter.join(f'"{cell}"' for cell in line) for line in lines)
    reading = read_bytes(tmp_path, text.encode(encoding))
    assert list_titles(reading) == ["Frühschoppen, heiter", "Ärger"]
    assert [dict(record.values) for record in reading.source.records[:2]] == [{"venue": "Löwen"}, {"venue": "Café"}]
    assert reading.source.records[3].links == {"venue": ["café"]}


@pytest.mark.parametrize("encoding", ["utf-8", "cp932", "euc_jp"])
def test_japanese_encodings_are_found(tmp_path: Path, encoding: str) -> None:
    text = "タイトル,開催日\n秋の音楽会,2026年11月16日\n"
    assert list_titles(read_bytes(tmp_path, text.encode(encoding))) == ["秋の音楽会"]


def test_western_text_is_not_read_as_japanese() -> None:
    text = "Titel;Datum\nFür Männer und Mädchen – „schöner“ Abend à 5 €;1.1.2026\n"
    assert decode(text.encode("cp1252")) == text


def test_encoding_can_be_given(tmp_path: Path) -> None:
    data = "Titel;Datum\nłódź;1.1.2026\n".encode("cp1250")
    assert list_titles(read_bytes(tmp_path, data, encoding="cp1250")) == ["łódź"]


@pytest.mark.parametrize("encoding", ["utf-8", "no-such-encoding"])
def test_wrong_encoding_is_refused(tmp_path: Path, encoding: str) -> None:
    with pytest.raises(InvalidValue, match=encoding):
        read_bytes(tmp_path, b"Titel;Datum\n\xff;1.1.2026\n", encoding=encoding)


def test_line_breaks_and_delimiters_in_quotes_belong_to_the_cell(tmp_path: Path) -> None:
    data = b'Title,Date,Description\r\n"A ""big"" day",2026-01-01,"One, two\r\n\r\nthree; four"\r\nB,2026-01-02,x\r\n'
    reading = read_bytes(tmp_path, data)
    assert list_titles(reading) == ['A "big" day', "B"]
    assert reading.source.records[0].values["description"] == "One, two\n\nthree; four"
    assert [record.line for record in reading.source.records] == [2, 3]


def test_declared_delimiter_counts(tmp_path: Path) -> None:
    assert list_titles(read_bytes(tmp_path, b"sep=|\nTitle|Date\nA,B;C|2026-01-01\n")) == ["A,B;C"]


def test_delimiter_in_texts_does_not_mislead() -> None:
    text = "Title;Date;Description\nA;2026-01-01;one, two, three, four\nB;2026-01-02;five, six, seven, eight\n"
    assert find_delimiter(text) == ";"


def test_guard_against_formulas_is_removed(tmp_path: Path) -> None:
    assert list_titles(read_bytes(tmp_path, b"Title,Date\n'=1+1,2026-01-01\n")) == ["=1+1"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"\x00\x01\x02 not a table" * 3 + b"x" * 300, "is not a table"),
        (b'Title,Date\n"' + b"x" * 300_000, "is not a valid CSV file"),
        (b"Title" + b"," * 300 + b"\n", "200 columns"),
        (b"Title,Date\n" + b"A,2026-01-01\n" * 12_000, "10000 rows"),
    ],
)
def test_unusable_csv_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    assert message in refuse(tmp_path, data, "csv")


def test_large_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "upload"
    with path.open("wb") as file:
        file.truncate(table_reader.MAX_BYTES + 1)
    with pytest.raises(InvalidValue, match="more than 10 MB"):
        read_table(path, "csv", None, {})


# Spreadsheets -----------------------------------------------------------------------------------


def test_workbook_is_read_with_its_dates(tmp_path: Path) -> None:
    rows = [
        ["Title", "Start", "Time", "Cost"],
        ["A", datetime(2026, 11, 16), time(19, 30), 12.5],
        ["B", datetime(2026, 11, 17, 8, 15), None, 5],
    ]
    reading = read_bytes(tmp_path, make_workbook(rows), "xlsx")
    starts = [(record.values["start_date"], record.values["cost"]) for record in reading.source.records]
    assert starts == [("2026-11-16 19:30:00", "12.5"), ("2026-11-17 08:15:00", "5")]


def test_first_visible_sheet_is_read(tmp_path: Path) -> None:
    workbook = make_workbook(
        [["Title", "Date"], ["A", "2026-01-01"]], hidden=[["Title", "Date"], ["Secret", "2026-01-01"]]
    )
    assert list_titles(read_bytes(tmp_path, workbook, "xlsx")) == ["A"]
    assert list_titles(read_bytes(tmp_path, workbook, "xlsx", sheet="Sheet")) == ["Secret"]
    with pytest.raises(InvalidValue, match="no sheet “X”"):
        read_bytes(tmp_path, workbook, "xlsx", sheet="X")


def test_open_document_is_read(tmp_path: Path) -> None:
    data = make_ods(("Titel", "Datum"), ("Markt", "16.11.2026"))
    assert list_titles(read_bytes(tmp_path, data, "ods")) == ["Markt"]


def test_format_is_that_of_the_content(tmp_path: Path) -> None:
    assert list_titles(read_bytes(tmp_path, make_workbook([["Title", "Date"], ["A", "2026-01-01"]]), "csv")) == ["A"]
    assert detect_format(tmp_path / "upload") == "xlsx"


@pytest.mark.parametrize(
    "data",
    [b"\xd0\xcf\x11\xe0" + b"\x00" * 600, b"PK\x03\x04 broken", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\xff" * 600],
)
def test_damaged_spreadsheet_is_refused(tmp_path: Path, data: bytes) -> None:
    assert refuse(tmp_path, data, "xls") == "is damaged and cannot be read as a spreadsheet."


def test_archive_that_is_no_spreadsheet_is_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("readme.txt", "hello")
    assert "is damaged" in refuse(tmp_path, buffer.getvalue(), "xlsx")


def test_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    bomb = replace_part(make_workbook([["Title"]]), "xl/worksheets/sheet1.xml", b" " * (200 * 1024 * 1024))
    assert len(bomb) < 1024 * 1024
    assert "60 MB when it is unpacked" in refuse(tmp_path, bomb, "xlsx")


def test_zip_bomb_with_a_wrong_size_is_refused(tmp_path: Path) -> None:
    """The size in the directory of the archive is not that of the data."""
    size = 100 * 1024 * 1024
    bomb = replace_part(make_workbook([["Title"]]), "xl/worksheets/sheet1.xml", b" " * size)
    patched = bomb.replace(size.to_bytes(4, "little"), (1000).to_bytes(4, "little"))
    assert patched != bomb
    assert refuse(tmp_path, patched, "xlsx")


def test_archive_with_many_entries_is_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for number in range(1001):
            archive.writestr(f"{number}.xml", "")
    assert "1000 parts" in refuse(tmp_path, buffer.getvalue(), "xlsx")


def test_xml_entities_are_refused(tmp_path: Path) -> None:
    entities = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
    sheet = SHEET.replace("<worksheet", f'<!DOCTYPE x [<!ENTITY a0 "lol">{entities}]><worksheet', 1)
    cell = '<row r="1"><c r="A1" t="inlineStr"><is><t>&a9;</t></is></c></row>'
    bomb = replace_part(make_workbook([["A"]]), "xl/worksheets/sheet1.xml", sheet.format(rows=cell).encode())
    assert "XML entities" in refuse(tmp_path, bomb, "xlsx")


@pytest.mark.parametrize(("reference", "message"), [("XFD1", "200 columns"), ("A1048576", "10000 rows")])
def test_cells_far_outside_are_refused(tmp_path: Path, reference: str, message: str) -> None:
    rows = f'<row r="1"><c r="A1"><v>1</v></c><c r="{reference}"><v>1</v></c></row>'
    workbook = replace_part(make_workbook([["A"]]), "xl/worksheets/sheet1.xml", SHEET.format(rows=rows).encode())
    assert message in refuse(tmp_path, workbook, "xlsx")


def test_formats_of_empty_cells_far_outside_are_no_obstacle(tmp_path: Path) -> None:
    cells = [
        f'<c r="{name}" t="inlineStr"><is><t>{text}</t></is></c>' for name, text in (("A1", "Title"), ("B1", "Date"))
    ]
    cells += [
        f'<c r="{name}" t="inlineStr"><is><t>{text}</t></is></c>'
        for name, text in (("A2", "X"), ("B2", "2026-01-01"))
    ]
    rows = f'<row r="1">{cells[0]}{cells[1]}</row><row r="2">{cells[2]}{cells[3]}</row>'
    rows += '<row r="1048576"><c r="XFD1048576" s="0"/></row>'
    workbook = replace_part(make_workbook([["A"]]), "xl/worksheets/sheet1.xml", SHEET.format(rows=rows).encode())
    assert list_titles(read_bytes(tmp_path, workbook, "xlsx")) == ["X"]
