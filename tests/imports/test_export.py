"""Exports of lists: their content, visibility and limits, and that imports read them without a change."""

import csv
import io
from datetime import date, time
from pathlib import Path
from typing import Any

import httpx
import openpyxl
import pytest

from kalends.calendar.kinds import BY_NAME
from kalends.core.messages import LANGUAGES
from kalends.imports.adapters.table_reader import read_table
from kalends.imports.adapters.table_writer import XLSX_TYPE, write_csv, write_xlsx
from kalends.imports.operations import exports
from kalends.imports.rules.table_headers import TABLE_KINDS
from tests.api.running_app import Caller, RunningApp, assert_error
from tests.console.console_client import ConsoleClient

EXTENSION = "//api/kalends/v1"
YEARS = {"start_date": "2020-01-01", "end_date": "2040-01-01"}


@pytest.fixture(scope="module")
def filled(app: RunningApp) -> RunningApp:
    """Return the application with records of all kinds, with values that are hard to write and to read."""
    editor = app.caller("editor")
    app.set_site("timezone", "Europe/Berlin")
    hall = editor.create(
        "venues", venue="Hall; big & small", address="High Street 1", city="Ulm", geo_lat=48.4, geo_lng=-10.5
    )
    editor.create("venues", venue="Hall; big & small", address="Elsewhere 2", city="Bonn")
    park = editor.create("venues", venue="Park", phone="+49 731 0", website="https://park.example")
    club = editor.create("organizers", organizer="Club, Sons & Co.", email="club@example.org", phone="+41 44 0")
    choir = editor.create("organizers", organizer="Choir")
    jazz = editor.create("categories", name="Jazz, Swing")
    music = editor.create("categories", name="Live Music")
    create_event(editor, "=HYPERLINK(1)", description='One\n\n<b>two</b>, "three";\nfour', excerpt="-5",
                 cost="5–12 €", venue=[hall["id"]], organizer=[club["id"], choir["id"]],
                 categories=[music["id"], jazz["id"]], tags=["b", "a"],
                 website="https://e.example/?a=1&b=2", featured=True)  # fmt: skip
    create_event(editor, "'=quoted", venue=[park["id"], hall["id"]], event_status="cancelled", status_reason="Rain")
    create_event(editor, "All day <i>x</i> & 日本", start_date="2027-05-01", end_date="2027-05-03", all_day=True)
    create_event(editor, "Second hour", start_date="2027-10-31T02:30:00+01:00", end_date="2027-10-31 04:00:15")
    create_event(editor, "Tokyo", timezone="Asia/Tokyo", currency_symbol="¥", currency_position="prefix", cost="500")
    create_event(editor, "Draft", status="draft")
    create_event(editor, "Secret", new_password="sesame", description="not for all", venue=[park["id"]])
    create_event(editor, "Hidden", hide_from_listings=True)
    return app


def create_event(caller: Caller, title: str, **fields: Any) -> dict[str, Any]:
    times = {"start_date": "2027-06-01 19:00:00", "end_date": "2027-06-01 21:30:00"}
    return caller.create("events", **{"title": title, **times, **fields})


def export(caller: Caller, kind: str = "events", **query: Any) -> httpx.Response:
    response = caller.get(f"{EXTENSION}/{kind}/export", {**(YEARS if kind == "events" else {}), **query})
    assert response.status_code == 200, response.text[:500]
    return response


def read_csv(response: httpx.Response) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(response.content.decode("utf-8-sig"), newline="")))


def titles(response: httpx.Response) -> set[str]:
    return {row["Title"] for row in read_csv(response)}


# Content ----------------------------------------------------------------------------------------


def test_csv_has_the_values_of_the_records(filled: RunningApp) -> None:
    response = export(filled.caller("editor"))
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert response.headers["content-disposition"] == 'attachment; filename="events.csv"'
    assert response.content.startswith(b"\xef\xbb\xbf")
    row = next(row for row in read_csv(response) if row["Title"] == "'=HYPERLINK(1)")
    assert {name: row[name] for name in ("Start date", "Start time", "End time", "All day", "Excerpt", "Cost")} == {
        "Start date": "2027-06-01",
        "Start time": "19:00",
        "End time": "21:30",
        "All day": "no",
        "Excerpt": "-5",
        "Cost": "5–12 €",
    }
    assert row["Categories"] == "Live Music, jazz-swing"
    assert row["Organizer"] == "Club, Sons & Co.\nChoir"
    assert row["Address"] == "High Street 1"


def test_no_cell_of_a_csv_is_a_formula(filled: RunningApp) -> None:
    for kind in TABLE_KINDS:
        rows = read_csv(export(filled.caller("editor"), kind))
        cells = [cell for row in rows for cell in row.values()]
        assert [cell for cell in cells if cell[:1] in ("=", "+", "@", "\t", "\r")] == []
        assert all(float(cell) for cell in cells if cell.startswith("-"))
        assert any(cell.startswith("'") for cell in cells) == (kind != "none")


def test_spreadsheet_has_typed_cells_and_no_formulas(filled: RunningApp) -> None:
    response = export(filled.caller("editor"), format="xlsx")
    assert response.headers["content-type"] == XLSX_TYPE
    sheet = openpyxl.load_workbook(io.BytesIO(response.content)).active
    assert sheet is not None
    header, *rows = list(sheet.iter_rows())
    names = [cell.value for cell in header]
    row = next(row for row in rows if row[names.index("Title")].value == "=HYPERLINK(1)")
    cells = dict(zip(names, row, strict=True))
    assert cells["Title"].data_type in ("s", "inlineStr")
    assert cells["Start date"].value.date() == date(2027, 6, 1)
    assert cells["Start time"].value == time(19)
    assert not [cell for row in rows for cell in row if cell.data_type == "f"]


@pytest.mark.quick("en", "ja")
@pytest.mark.parametrize("language", LANGUAGES)
def test_headers_are_in_the_language_of_the_caller(filled: RunningApp, language: str) -> None:
    response = export(filled.caller("editor"), lang=language)
    assert response.headers["content-language"] == language
    assert len(read_csv(response)[0]) == len(TABLE_KINDS["events"])


# Visibility and limits --------------------------------------------------------------------------


def test_visibility_is_that_of_the_list(filled: RunningApp) -> None:
    seen = {role: titles(export(filled.caller(role))) for role in ("anonymous", "editor")}
    assert seen["editor"] - seen["anonymous"] == {"Draft"}
    assert "Hidden" not in seen["editor"]


def test_protected_fields_are_for_those_who_may_edit(filled: RunningApp) -> None:
    def find(caller: Caller, **query: str) -> dict[str, str]:
        return next(row for row in read_csv(export(caller, **query)) if row["Title"] == "Secret")

    hidden = find(filled.caller())
    assert (hidden["Description"], hidden["Venue"], hidden["Start date"]) == ("", "", "2027-06-01")
    assert find(filled.caller("editor"))["Description"] == "not for all"
    assert find(filled.caller(), password="sesame")["Venue"] == "Park"


def test_filters_are_those_of_the_list(filled: RunningApp) -> None:
    assert titles(export(filled.caller(), search="Tokyo")) == {"Tokyo"}
    assert titles(export(filled.caller("editor"), status="draft")) == {"Draft"}
    assert len(read_csv(export(filled.caller(), "venues", search="Elsewhere"))) == 1


def test_unknown_format_is_refused(filled: RunningApp) -> None:
    response = filled.caller().get(f"{EXTENSION}/events/export", {"format": "pdf"})
    assert_error(response, 400, "rest_invalid_param", "format")


def test_long_list_is_refused_and_chunks_are_complete(filled: RunningApp, monkeypatch: pytest.MonkeyPatch) -> None:
    everything = export(filled.caller("editor")).content
    monkeypatch.setattr(exports, "_CHUNK", 2)
    assert export(filled.caller("editor")).content == everything
    monkeypatch.setattr(exports, "MAX_PUBLIC_ROWS", 3)
    response = filled.caller().get(f"{EXTENSION}/events/export", YEARS)
    assert "at most 3 are exported" in assert_error(response, 400, "rest_invalid_param", "format")["params"]["format"]


def test_text_beyond_the_limit_of_cells_is_refused_for_spreadsheets(start_app: Any) -> None:
    editor = start_app().caller("editor")
    create_event(editor, "Long", description="x" * 40_000)
    response = editor.get(f"{EXTENSION}/events/export", {**YEARS, "format": "xlsx"})
    assert_error(response, 400, "rest_invalid_param", "format")
    assert len(export(editor).content) > 40_000


def test_list_without_records_has_a_header(start_app: Any) -> None:
    assert read_csv(export(start_app().caller())) == []


# Round trip -------------------------------------------------------------------------------------


@pytest.mark.quick("csv-en-events", "xlsx-fr-organizers")
@pytest.mark.parametrize("kind", TABLE_KINDS)
@pytest.mark.parametrize(("format_", "language"), [("csv", "en"), ("xlsx", "de"), ("csv", "ja"), ("xlsx", "fr")])
def test_imported_export_changes_nothing(
    filled: RunningApp, tmp_path: Path, kind: str, format_: str, language: str
) -> None:
    """The values of each row, sent to the API as they are, leave the revision of the record unchanged."""
    editor = filled.caller("editor")
    response = export(editor, kind, format=format_, lang=language)
    path = tmp_path / "export"
    path.write_bytes(response.content)
    reading = read_table(path, format_, None, {})
    assert reading.source.rejections == []
    uids = {row["uid"]: row["id"] for row in filled.sql("SELECT uid, id FROM events")}
    before = filled.sql("SELECT revision FROM sites")
    places = {record.identity: dict(record.values) for record in reading.source.records if record.is_linked}
    records = [record for record in reading.source.records if not record.is_linked]
    for record in records:
        assert record.kind == kind
        record_id = uids[record.identity] if kind == "events" else int(record.identity.partition("?id=")[2])
        linked = {name: [places[entry] for entry in entries] for name, entries in record.links.items()}
        reply = editor.patch(f"/{kind}/{record_id}", {**record.values, **linked})
        assert reply.status_code == 200, (reply.text, record)
    assert len(records) > 1
    assert filled.sql("SELECT revision FROM sites") == before, filled.sql(
        "SELECT kind, record_id, before, after FROM changes WHERE revision > $1", before[0]["revision"]
    )


def test_writers_keep_every_text(tmp_path: Path) -> None:
    texts = ["=1", "+1", "-1", "@a", "'=1", "''+1", "-1+1", 'a"b', "a,b;c\nd", "<b>&amp;", "ﾊﾝｶｸ", "\t=1"]
    for format_, write in (("csv", write_csv), ("xlsx", write_xlsx)):
        path = tmp_path / f"texts.{format_}"
        path.write_bytes(write(["Title", "Date", "Cost"], [[text, date(2026, 1, 1), "1"] for text in texts]))
        records = read_table(path, format_, None, {}).source.records
        assert [record.values["title"] for record in records] == [text.strip() for text in texts][: len(records)]


@pytest.mark.quick("events", "organizers")
@pytest.mark.parametrize("kind", TABLE_KINDS)
def test_exported_identities_find_their_records(filled: RunningApp, kind: str) -> None:
    """Those of other sites, and foreign numbers, find none."""
    rows = read_csv(export(filled.caller("editor"), kind))
    identities = [row["UID"] for row in rows]
    base_url = filled.base_url
    found = filled.run_operation(lambda tx: exports.find_exported(tx, BY_NAME[kind], identities, base_url))
    assert set(found) == set(identities)
    assert len(set(found.values())) == len(identities)
    foreign = ["1", "other.example?id=1", "x", "?id=", f"{filled.host}?id=99999"]
    assert filled.run_operation(lambda tx: exports.find_exported(tx, BY_NAME[kind], foreign, base_url)) == {}


# Console ----------------------------------------------------------------------------------------


def test_console_links_to_the_export_of_its_table(filled: RunningApp) -> None:
    desk = ConsoleClient.signed_in(filled, "editor")
    page = desk.request("GET", "/console/events?period=all&search=Hidden").text
    link = "/console/events/events.csv?search=Hidden&amp;period=all"
    assert link in page
    response = desk.request("GET", link.replace("&amp;", "&"))
    assert titles(response) == {"Hidden"}
    assert response.headers["content-type"] == "text/csv; charset=utf-8"


def test_console_exports_own_events_to_contributors(filled: RunningApp) -> None:
    create_event(filled.caller("contributor"), "Mine", status="draft")
    desk = ConsoleClient.signed_in(filled, "contributor")
    assert titles(desk.request("GET", "/console/events/events.csv?period=all")) == {"Mine"}
    anonymous = ConsoleClient(filled).request("GET", "/console/events/events.csv")
    assert anonymous.status_code in (302, 303)
