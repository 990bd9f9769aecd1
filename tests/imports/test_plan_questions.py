"""What a plan asks and lists before it is applied: lost times, odd ends, existing venues, new linked records."""

import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kalends.imports.rules.tables import read_rows
from tests.api.conftest import StartApp
from tests.api.running_app import Caller, RunningApp, assert_error, expect_json
from tests.api.sample_records import unique
from tests.console.import_jobs import run_import_jobs
from tests.lifecycle.processes import run_command

ROOT = "//api/kalends/v1/imports"
LANGUAGES = {
    "en": (["Date", "Start", "End"], ["7:30 pm", "5pm", "8 p.m."], ["19:30", "17:00", "20:00"]),
    "de": (["Datum", "Start", "Ende"], ["19:30", "5pm", "10 Uhr"], ["19:30", "17:00", "10:00"]),
    "fr": (["Date", "Début", "Fin"], ["19h30", "20 h", "à 21h"], ["19:30", "20:00", "21:00"]),
    "es": (["Fecha", "Inicio", "Fin"], ["19:30 h", "20 horas", "21h"], ["19:30", "20:00", "21:00"]),
    "it": (["Data", "Inizio", "Fine"], ["ore 19.30", "alle 20", "alle ore 21"], ["19:30", "20:00", "21:00"]),
    "pt-BR": (["Data", "Início", "Fim"], ["19h30", "20h", "às 21h"], ["19:30", "20:00", "21:00"]),
    "nl": (["Datum", "Begin", "Einde"], ["19.30 uur", "20 uur", "om 21:00"], ["19:30", "20:00", "21:00"]),
    "ja": (["日付", "開始", "終了"], ["19時30分", "午後8時", "21:00"], ["19:30", "20:00", "21:00"]),
}


def make_name(name: str) -> str:
    """Return a name that is not similar to those of other tests."""
    return f"{name} {''.join(random.choices('bcdfghjklmnpqrstvwxz', k=16))}"


@dataclass
class Table:
    """A source of tables or calendars, whose files are uploaded with the API."""

    app: RunningApp
    source: int

    @classmethod
    def add(cls, app: RunningApp, kind: str = "table", **fields: Any) -> "Table":
        body = {"kind": kind, "name": unique("programme"), "timezone": "Europe/Berlin", **fields}
        return cls(app, expect_json(app.caller("editor").post(f"{ROOT}/sources", body), 201)["id"])

    @property
    def editor(self) -> Caller:
        return self.app.caller("editor")

    def plan(self, content: str, **fields: Any) -> dict[str, Any]:
        """Upload a file, let the worker plan, and return the run."""
        path = f"{ROOT}/sources/{self.source}/runs"
        response = self.editor.request("POST", path, data=fields, files={"file": ("events.csv", content.encode())})
        run_id = expect_json(response, 201)["id"]
        run_import_jobs(self.app)
        return self.read(run_id)

    def read(self, run_id: int) -> dict[str, Any]:
        return expect_json(self.editor.get(f"{ROOT}/runs/{run_id}"))

    def rows(self, run: dict[str, Any]) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = expect_json(self.editor.get(f"{ROOT}/runs/{run['id']}/rows"))["rows"]
        return rows

    def row(self, run: dict[str, Any], title: str) -> dict[str, Any]:
        (row,) = [row for row in self.rows(run) if row["title"] == title]
        return row

    def apply(self, run: dict[str, Any], **fields: Any) -> dict[str, Any]:
        expect_json(self.editor.post(f"{ROOT}/runs/{run['id']}/apply", fields))
        run_import_jobs(self.app)
        return self.read(run["id"])

    def decide(self, run: dict[str, Any], row: dict[str, Any], *, same: bool) -> None:
        expect_json(self.editor.post(f"{ROOT}/runs/{run['id']}/decide", {"row": row["number"], "same": same}))

    def event(self, run: dict[str, Any], title: str) -> dict[str, Any]:
        return self.editor.read("events", self.row(run, title)["record"])


# Times ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
def test_times_beside_a_date_column_are_those_of_the_start(language: str) -> None:
    headers, cells, expected = LANGUAGES[language]
    rows = [[f"Event {cell}", "2031-05-02", cell, "23:30"] for cell in cells]
    reading = read_rows([["Title", *headers], *rows], None, {})
    assert [column["field"] for column in reading.columns] == ["title", "start_date", "start_time", "end_time"]
    assert [record.values["start_date"][11:16] for record in reading.source.records] == expected
    assert not reading.source.rejections


def test_one_unusual_time_does_not_lose_the_others(app: RunningApp) -> None:
    table = Table.add(app)
    run = table.plan("Titel;Datum;Start;Ende\nA;02.05.2031;19:30;21:00\nB;03.05.2031;5pm;6pm\nC;04.05.2031;?;\n")
    assert {row["title"]: row["event"] and row["event"]["start_date"] for row in table.rows(run)} == {
        "A": "2031-05-02 19:30:00",
        "B": "2031-05-03 17:00:00",
        "C": None,  # rejected with the place
    }


def test_lost_times_are_asked_before_the_plan_is_applied(app: RunningApp) -> None:
    table = Table.add(app)
    content = "Titel;Datum;Einlass;Notiz;Leer\nA;02.05.2031;19:30;x;\nB;03.05.2031;20:00;;\n"
    run = table.plan(content, apply="true")
    assert run["state"] == "planned"  # although it was to be applied without a review
    assert run["warnings"] == ["Columns that are not imported: Einlass, Notiz"]
    assert "“Einlass”" in run["question"]
    refused = table.editor.post(f"{ROOT}/runs/{run['id']}/apply", {})
    assert_error(refused, 409, "import_unconfirmed")
    assert "“Einlass”" in refused.json()["message"]
    applied = table.apply(run, confirm=True)
    assert (applied["state"], applied["question"]) == ("applied", None)
    assert table.event(run, "A")["all_day"] is True


def test_chosen_column_answers_the_question(app: RunningApp) -> None:
    table = Table.add(app)
    content = "Titel;Datum;Einlass\nA;02.05.2031;19:30\n"
    assert table.plan(content)["question"] is not None
    path = f"{ROOT}/sources/{table.source}"
    expect_json(table.editor.patch(path, {"columns": {"Einlass": ""}}))
    left_out = table.plan(content)
    assert (left_out["question"], left_out["warnings"]) == (None, ["Columns that are not imported: Einlass"])
    expect_json(table.editor.patch(path, {"columns": {"Einlass": "start_time"}}))
    run = table.plan(content)
    assert (run["question"], run["warnings"]) == (None, [])
    assert table.row(run, "A")["event"]["start_date"] == "2031-05-02 19:30:00"


def test_end_before_start_waits_unless_it_is_at_night(app: RunningApp) -> None:
    table = Table.add(app)
    run = table.plan(
        "Titel;Datum;Beginn;Ende\nMarket;02.05.2031;11:00;10:00\nDance;02.05.2031;22:00;02:00\nDay;03.05.2031;8:00;22:00\n"
    )
    market, dance = table.row(run, "Market"), table.row(run, "Dance")
    assert (market["state"], dance["state"], table.row(run, "Day")["state"]) == ("waiting", "pending", "pending")
    assert "23 hours" in market["reasons"][0]
    run = table.apply(run)
    assert table.row(run, "Market")["state"] == "waiting"
    assert table.event(run, "Dance")["end_date"] == "2031-05-03 02:00:00"
    table.apply(run, rows=[market["number"]])
    assert table.event(run, "Market")["end_date"] == "2031-05-03 10:00:00"


def test_decided_times_are_not_asked_again(app: RunningApp) -> None:
    table = Table.add(app)
    header = "UID;Titel;Datum;Beginn;Ende\n"
    run = table.plan(f"{header}m1;Market;02.05.2031;11:00;10:00\n")
    table.apply(run, rows=[table.row(run, "Market")["number"]])
    run = table.plan(f"{header}m1;Big market;02.05.2031;11:00;10:00\n")
    assert [(row["action"], row["state"]) for row in table.rows(run)] == [("changed", "pending")]
    run = table.plan(f"{header}m1;Market;02.05.2031;12:00;10:00\n")
    assert [(row["action"], row["state"]) for row in table.rows(run)] == [("changed", "waiting")]


# Places -----------------------------------------------------------------------------------------


def test_venue_with_the_same_name_is_used(app: RunningApp) -> None:
    """Case, spaces and punctuation do not matter; what exists stays as it is."""
    table, name = Table.add(app), make_name("Riverside Park")
    venue = table.editor.create("venues", venue=name, address="Mill Lane 2", city="Ulm")
    organizer = table.editor.create("organizers", organizer=f"{name} e.V.")
    written = f"{name.upper().replace(' ', '  ')};MILL LANE 2;{name} EV"
    run = table.plan(f"Title;Date;Start;Venue;Address;Organizer\nFair;2031-05-02;10:00;{written}\n")
    assert [(row["kind"], row["action"], row["record"]) for row in table.rows(run)] == [
        ("venues", "linked", venue["id"]),
        ("organizers", "linked", organizer["id"]),
        ("events", "new", None),
    ]
    assert table.apply(run)["state"] == "applied"
    event = table.event(run, "Fair")
    assert (event["venue"]["id"], event["organizer"][0]["id"]) == (venue["id"], organizer["id"])
    unchanged = table.editor.read("venues", venue["id"])
    assert (unchanged["venue"], unchanged["modified"]) == (name, venue["modified"])
    assert table.plan(f"Title;Date;Start;Venue;Address;Organizer\nFair;2031-05-02;10:00;{written}\n")["state"] in (
        "unchanged",
    )


def plan_near(table: Table, name: str, place: str) -> dict[str, Any]:
    return table.plan(f"Title;Date;Start;Venue;Address;City\nFair {name};2031-05-02;10:00;{place}\n")


@pytest.mark.quick("True-house-number", "False-number-in-name")
@pytest.mark.parametrize(
    "place", ["{name};Mill Lane 4;Ulm", "{name};Mill Lane 2;Bonn", "{name}n;;", "{name} 3;;"],
    ids=["house-number", "city", "letter", "number-in-name"],
)  # fmt: skip
@pytest.mark.parametrize("same", [True, False])
def test_similar_venue_is_offered(app: RunningApp, place: str, same: bool) -> None:
    table, name = Table.add(app), make_name("Riverside Park")
    venue = table.editor.create("venues", venue=name, address="Mill Lane 2", city="Ulm")
    run = plan_near(table, name, place.format(name=name))
    offered, event = table.rows(run)
    assert (offered["kind"], offered["action"], offered["state"], offered["record"]) == (
        *("venues", "duplicate", "waiting"),
        venue["id"],
    )
    assert event["state"] == "waiting"  # it would lose its venue
    assert_error(
        table.editor.post(f"{ROOT}/runs/{run['id']}/apply", {"rows": [event["number"]]}),
        400,
        "rest_invalid_param",
        "rows",
    )
    table.decide(run, offered, same=same)
    assert [row["state"] for row in table.rows(run)] == ["pending", "pending"]
    assert table.row(run, event["title"])["reasons"] == []
    assert table.apply(run)["state"] == "applied"
    found = table.event(run, event["title"])["venue"]
    assert (found["id"] == venue["id"]) is same
    assert table.editor.read("venues", venue["id"])["modified"] == venue["modified"]


def test_different_venue_is_remembered(app: RunningApp) -> None:
    table, name = Table.add(app), make_name("Riverside Park")
    table.editor.create("venues", venue=name, city="Ulm")
    run = plan_near(table, name, f"{name};;Bonn")
    table.decide(run, table.rows(run)[0], same=False)
    again = plan_near(table, name, f"{name};;Bonn")
    assert [row["action"] for row in table.rows(again)] == ["new", "new"]


def test_rows_that_say_less_about_a_venue_mean_the_same(app: RunningApp) -> None:
    table, name = Table.add(app), make_name("Cellar")
    rows = f"A;2031-05-02;10:00;{name};\nB;2031-05-03;10:00;{name.upper()};Ulm\nC;2031-05-04;10:00;{name}!;ULM\n"
    run = table.plan(f"Title;Date;Start;Venue;City\n{rows}")
    assert Counter(row["kind"] for row in table.rows(run)) == {"venues": 1, "events": 3}
    table.apply(run)
    assert len({table.event(run, title)["venue"]["id"] for title in "ABC"}) == 1


def list_created(app: RunningApp, revision: int) -> Counter[str]:
    rows = app.sql("SELECT kind FROM changes WHERE revision > $1 AND action = 'create'", revision)
    return Counter(row["kind"] for row in rows)


@pytest.mark.quick("draft", "publish")
@pytest.mark.parametrize("status", ["draft", "private", "publish"])
def test_plan_lists_every_record_that_it_creates(app: RunningApp, status: str) -> None:
    table, name = Table.add(app, default_status=status), make_name("Cellar")
    known = table.editor.create("categories", name=unique("Music"))["name"]
    cells = f"{name};Mill Lane 2;Club {name};{known.upper()}, Jazz {name};tag {name}"
    run = table.plan(f"Title;Date;Start;Venue;Address;Organizer;Categories;Tags\n{name};2031-05-02;20:00;{cells}\n")
    planned = Counter(row["kind"] for row in table.rows(run) if row["action"] == "new")
    assert planned == {"venues": 1, "organizers": 1, "categories": 1, "tags": 1, "events": 1}
    revision = app.sql("SELECT revision FROM sites")[0]["revision"]
    assert table.apply(run)["state"] == "applied"
    assert list_created(app, revision) == planned
    event = table.editor.read("events", table.rows(run)[-1]["record"])
    expected = "publish" if status == "publish" else "draft"
    assert (event["status"], event["venue"]["status"], event["organizer"][0]["status"]) == (
        status,
        expected,
        expected,
    )
    visible = app.caller().get(f"/venues/{event['venue']['id']}").status_code
    assert visible == (200 if status == "publish" else 403)
    table.editor.change("events", event["id"], status="publish")
    assert app.caller().read("events", event["id"])["venue"]["address"] == "Mill Lane 2"


def test_chosen_event_brings_its_new_records(app: RunningApp) -> None:
    table, name = Table.add(app), make_name("Cellar")
    rows = f"A {name};2031-05-02;20:00;{name};Jazz {name}\nB {name};2031-05-03;20:00;Other {name};Rock {name}\n"
    run = table.plan(f"Title;Date;Start;Venue;Categories\n{rows}")
    table.apply(run, rows=[table.row(run, f"A {name}")["number"]])
    states = {(row["kind"], row["title"]): row["state"] for row in table.rows(run)}
    assert states["venues", name] == states["categories", f"Jazz {name}"] == "applied"
    assert states["venues", f"Other {name}"] == states["categories", f"Rock {name}"] == "pending"


# Calendars --------------------------------------------------------------------------------------


def make_calendar(*events: str) -> str:
    parts = "".join(f"BEGIN:VEVENT\r\n{event}\r\nEND:VEVENT\r\n" for event in events)
    return f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//tests\r\n{parts}END:VCALENDAR\r\n"


def test_plan_of_a_calendar_tells_state_days_and_dates(app: RunningApp) -> None:
    feed = Table.add(app, "ical")
    run = feed.plan(
        make_calendar(
            "UID:fair\r\nSUMMARY:Fair\r\nDTSTART;VALUE=DATE:20310605\r\nDTEND;VALUE=DATE:20310607\r\nSTATUS:CANCELLED",
            "UID:yoga\r\nSUMMARY:Yoga\r\nDTSTART:20310605T170000Z\r\nRRULE:FREQ=WEEKLY;COUNT=12\r\nEXDATE:20310612T170000Z",
            "UID:choir\r\nSUMMARY:Choir\r\nDTSTART:20310606T170000Z\r\nRRULE:FREQ=WEEKLY",
        )
    )
    facts = {row["title"]: row["event"] for row in feed.rows(run)}
    assert facts["Fair"] == {
        "start_date": "2031-06-05",
        "end_date": "2031-06-06",
        "all_day": True,
        "event_status": "cancelled",
        "dates": 1,
    }
    assert [facts[title]["dates"] for title in ("Yoga", "Choir")] == [11, None]


def test_private_event_of_a_public_calendar_keeps_its_address(app: RunningApp) -> None:
    feed, name = Table.add(app, "ical", default_status="publish"), make_name("Flat")
    base = f"DTSTART:20310605T170000Z\r\nLOCATION:{name}\\, Mill Lane 2"
    private = f"UID:p\r\nSUMMARY:Party\r\nCLASS:PRIVATE\r\n{base}"
    run = feed.plan(make_calendar(private))
    feed.apply(run)
    venue = feed.event(run, "Party")["venue"]
    assert (venue["status"], app.caller().get(f"/venues/{venue['id']}").status_code) == ("draft", 403)
    run = feed.plan(make_calendar(private, f"UID:q\r\nSUMMARY:Open house\r\n{base}"))
    feed.apply(run)
    assert app.caller().read("events", feed.row(run, "Open house")["record"])["venue"]["id"] == venue["id"]


# Commands ---------------------------------------------------------------------------------------


def test_commands_show_and_make_the_decisions(
    start_single_site: StartApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = start_single_site()
    monkeypatch.setenv("NO_COLOR", "1")
    name = make_name("Riverside Park")
    app.caller("editor").create("venues", venue=name, city="Ulm")
    path = tmp_path / f"{unique('programme')}.csv"
    path.write_text(f"Title;Date;Doors;Venue;City\nFair {name};2031-05-02;19:30;{name};Bonn\n")
    refused = run_command(app.database_url, "import", str(path), "--apply")
    assert refused.exit_code == 1
    assert "Columns that are not imported: Doors" in refused.output
    run_id = app.sql("SELECT max(id) FROM import_runs")[0][0]
    assert f"kalends import apply {run_id} --confirm" in refused.output
    waiting = run_command(app.database_url, "import", "apply", str(run_id), "--confirm")
    assert f"Run {run_id}: 0 rows applied, 0 failed, 2 waiting." in waiting.output
    decided = run_command(app.database_url, "import", "decide", str(run_id), "1", "--same")
    assert decided.exit_code == 0, decided.output
    applied = run_command(app.database_url, "import", "apply", str(run_id))
    assert f"Run {run_id}: 2 rows applied, 0 failed, 0 waiting." in applied.output
