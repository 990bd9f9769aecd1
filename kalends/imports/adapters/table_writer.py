"""Writes tables as CSV files and spreadsheets.

Text never becomes a formula: CSV files have an apostrophe before text that looks like one, and spreadsheets have text
cells.
"""

import csv
import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, time
from typing import Final
from xml.sax.saxutils import escape

from kalends.imports.rules.table_cells import FORMULA, guard_formula

Value = str | bool | float | date | time | None

CSV_TYPE: Final = "text/csv"
XLSX_TYPE: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MAX_CELL_TEXT: Final = 32_767  # limit of spreadsheets
_DAY_ZERO: Final = date(1899, 12, 30).toordinal()
_FIRST_DATE: Final = date(1900, 3, 1)  # spreadsheets count earlier days differently
_INVALID_IN_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_MAIN: Final = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE: Final = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE: Final = "http://schemas.openxmlformats.org/package/2006"
_PART: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_XML: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
# All parts of a spreadsheet file except the sheet. Styles: 0 plain, 1 dates, 2 times, 3 header.
_PARTS: Final = {
    "[Content_Types].xml": f"""<Types xmlns="{_PACKAGE}/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Default Extension="xml" ContentType="application/xml"/>
<Override PartName="/xl/workbook.xml" ContentType="{_PART}.sheet.main+xml"/>
<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_PART}.worksheet+xml"/>
<Override PartName="/xl/styles.xml" ContentType="{_PART}.styles+xml"/></Types>""",
    "_rels/.rels": f"""<Relationships xmlns="{_PACKAGE}/relationships">
<Relationship Id="rId1" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>""",
    "xl/_rels/workbook.xml.rels": f"""<Relationships xmlns="{_PACKAGE}/relationships">
<Relationship Id="rId1" Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.xml"/>
<Relationship Id="rId2" Type="{_OFFICE}/styles" Target="styles.xml"/></Relationships>""",
    "xl/workbook.xml": f"""<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}">
<sheets><sheet name="Kalends" sheetId="1" r:id="rId1"/></sheets></workbook>""",
    "xl/styles.xml": f"""<styleSheet xmlns="{_MAIN}">
<numFmts count="2"><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/>
<numFmt numFmtId="165" formatCode="hh:mm:ss"/></numFmts>
<fonts count="2"><font><sz val="11"/><name val="Calibri"/></font>
<font><b/><sz val="11"/><name val="Calibri"/></font></fonts>
<fills count="2"><fill><patternFill patternType="none"/></fill>
<fill><patternFill patternType="gray125"/></fill></fills>
<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>
<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>
<cellXfs count="4"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>
<xf numFmtId="164" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>
<xf numFmtId="165" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>
<xf numFmtId="0" fontId="1" fillId="0" borderId="0" xfId="0" applyFont="1"/></cellXfs>
<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>""",
}


def write_csv(headers: Sequence[str], rows: Iterable[Sequence[Value]]) -> bytes:
    """Write a table as UTF-8 CSV. Spreadsheets need the byte order mark to recognize the encoding."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    writer.writerow(headers)
    writer.writerows([guard_formula(_to_text(value)) for value in row] for row in rows)
    return b"\xef\xbb\xbf" + buffer.getvalue().encode(errors="replace")


def write_xlsx(headers: Sequence[str], rows: Iterable[Sequence[Value]]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in _PARTS.items():
            archive.writestr(name, _XML + content)
        with archive.open("xl/worksheets/sheet1.xml", "w") as sheet:
            for part in _make_sheet(headers, rows):
                sheet.write(part.encode(errors="replace"))
    return buffer.getvalue()


def _make_sheet(headers: Sequence[str], rows: Iterable[Sequence[Value]]) -> Iterator[str]:
    pane = '<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/>'
    yield (
        _XML + f'<worksheet xmlns="{_MAIN}"><sheetViews><sheetView workbookViewId="0">{pane}</sheetView></sheetViews>'
    )
    yield "<sheetData>"
    yield f"<row>{''.join(_make_text(header, ' s="3"') for header in headers)}</row>"
    for row in rows:
        yield f"<row>{''.join(map(_make_cell, row))}</row>"
    yield "</sheetData></worksheet>"


def _make_cell(value: Value) -> str:
    if value is None or value == "":
        return "<c/>"
    if isinstance(value, date) and value >= _FIRST_DATE:
        return f'<c s="1"><v>{value.toordinal() - _DAY_ZERO}</v></c>'
    if isinstance(value, time):
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return f'<c s="2"><v>{seconds / 86_400!r}</v></c>'
    if isinstance(value, float):
        return f"<c><v>{value!r}</v></c>"
    text = _to_text(value)
    # Imports remove an apostrophe before a formula, so double an apostrophe that belongs to the text.
    return _make_text(f"'{text}" if text.startswith("'") and FORMULA.match(text) else text, "")


def _make_text(text: str, style: str) -> str:
    clean = escape(_INVALID_IN_XML.sub("", text))
    return f'<c t="inlineStr"{style}><is><t xml:space="preserve">{clean}</t></is></c>'


def _to_text(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, time):
        return value.isoformat("seconds" if value.second else "minutes")
    return repr(value) if isinstance(value, float) else str(value)
