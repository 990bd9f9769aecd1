"""Checks of venues with a capacity, run by `test_new_field.py` in a copy of the package that has this field."""

import csv
import io
from pathlib import Path

import psycopg

from kalends.imports.adapters.table_reader import read_table
from tests.api.running_app import RunningApp, expect_json
from tests.console.console_client import ConsoleClient
from tests.lifecycle.lifecycle_fixtures import EXTENSION_URL
from tests.lifecycle.processes import run_command

EVENT = {"title": "Concert", "start_date": "2035-05-01 19:00:00", "end_date": "2035-05-01 21:00:00"}


def test_api_and_description(app: RunningApp) -> None:
    editor = app.caller("editor")
    hall = editor.create("venues", venue="Hall", capacity=300)
    assert hall["capacity"] == 300
    assert editor.create("events", **EVENT, venue=hall["id"])["venue"]["capacity"] == 300
    assert "capacity" not in editor.create("venues", venue="Yard")
    assert editor.post("/venues", {"venue": "Cellar", "capacity": -1}).status_code == 400
    schemas = expect_json(editor.get("/doc"))["components"]["schemas"]
    for name in ("Venue", "VenueNew"):
        schema = schemas[name]["properties"]["capacity"]
        assert (schema["type"], schema["minimum"]) == ("integer", 0)


def test_history_and_restore(app: RunningApp) -> None:
    editor = app.caller("editor")
    venue_id = editor.create("venues", venue="Changed hall", capacity=300)["id"]
    path = f"{EXTENSION_URL}/venues/{venue_id}"
    created = expect_json(editor.get(f"{path}/history"))["history"][0]["revision"]
    editor.change("venues", venue_id, capacity=500)
    latest = expect_json(editor.get(f"{path}/history"))["history"][0]
    assert latest["changes"] == {"capacity": {"before": 300, "after": 500}}
    assert expect_json(editor.post(f"{path}/restore", {"revision": created}))["capacity"] == 300
    assert "capacity" not in editor.change("venues", venue_id, capacity=None)


def test_tables(app: RunningApp, tmp_path: Path) -> None:
    editor = app.caller("editor")
    record = editor.create("venues", venue="Table hall", capacity=120)
    editor.create("venues", venue="Table yard")
    content = editor.get(f"{EXTENSION_URL}/venues/export", {"search": "Table"}).content
    rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    assert {row["Venue"]: row["Capacity"] for row in rows} == {"Table hall": "120", "Table yard": ""}
    (tmp_path / "venues.csv").write_bytes(content.replace(b"120", b"150"))
    source = read_table(tmp_path / "venues.csv", "csv", None, {}).source
    assert source.rejections == []
    values = {record.title: record.values for record in source.records}
    assert "capacity" not in values["Table yard"]
    assert expect_json(editor.patch(f"/venues/{record['id']}", values["Table hall"]))["capacity"] == 150


def test_form(app: RunningApp) -> None:
    desk = ConsoleClient.signed_in(app, "editor")
    page = desk.page("/console/venues/new")
    assert "Capacity" in page.text
    response = desk.post("/console/venues/new", page.form(venue="Form hall", capacity="80"))
    assert response.status_code == 303
    path = response.headers["location"].partition("?")[0]
    page = desk.page(path)
    assert page.fields["capacity"] == ["80"]
    assert desk.post(path, page.form(capacity="")).status_code == 303
    assert "capacity" not in app.caller("editor").read("venues", int(path.rpartition("/")[2]))


def test_site_archive(app: RunningApp, tmp_path: Path) -> None:
    app.caller("editor").create("venues", venue="Archived hall", capacity=77)
    archive = str(tmp_path / "site.zip")
    for arguments in (("export", app.host, "--to", archive), ("import", archive, "--host", "copy.example")):
        result = run_command(
            app.database_url, "site", *arguments, settings={"KALENDS_MEDIA_DIR": str(tmp_path / "media")}
        )
        assert result.exit_code == 0, result.output
    with psycopg.connect(app.database_url) as connection:
        query = "SELECT site_id FROM venues WHERE capacity = 77"
        assert len(set(connection.execute(query).fetchall())) == 2
