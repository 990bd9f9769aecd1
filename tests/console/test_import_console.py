"""Imports in the console without script: from a file to events and back, with the plan in between."""

import re
from typing import Any

import pytest

from tests.api.conftest import StartApp
from tests.api.running_app import Caller, RunningApp
from tests.console.console_client import ConsoleClient, Page, set_passwords
from tests.console.import_jobs import run_import_jobs

PATH = "/console/imports"


@pytest.fixture(scope="module")
def app(start_single_site_for_module: StartApp) -> RunningApp:
    """Return an application on a separate database, whose queue the tests empty."""
    started = start_single_site_for_module()
    set_passwords(started)
    return started


def make_calendar(*events: tuple[str, str, str]) -> bytes:
    """Return a calendar with events of UID, day and title."""
    parts = [
        f"BEGIN:VEVENT\r\nUID:{uid}\r\nDTSTAMP:20310101T000000Z\r\nDTSTART:{day}T180000Z\r\nDTEND:{day}T190000Z\r\n"
        f"SUMMARY:{title}\r\nEND:VEVENT\r\n"
        for uid, day, title in events
    ]
    return f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//tests\r\n{''.join(parts)}END:VCALENDAR\r\n".encode()


FIRST = make_calendar(
    ("a@x", "20310110", "Chess evening"), ("b@x", "20310111", "Pottery course"), ("c@x", "20310199", "Broken day")
)
SECOND = make_calendar(("a@x", "20310110", "Chess for all"), ("b@x", "20310111", "Pottery course"))
TABLE = b"Titel;Beginn;Ende;Notiz\nLesung;03.04.2031 19:30;03.04.2031 21:00;x\nKonzert;31.02.2031;31.02.2031;y\n"


def follow(client: ConsoleClient, response: Any) -> Page:
    assert response.status_code == 303, Page.parse(response.text).text[:1500]
    return client.page(response.headers["location"])


def create_source(editor: ConsoleClient, content: bytes, name: str = "events.ics", **fields: str) -> str:
    """Add a source with a file, let the worker plan, and return the path of the run."""
    form = {**editor.page(f"{PATH}/new").form(), "name": "Club", **fields}
    response = editor.request("POST", f"{PATH}/new", data=form, files={"file": (name, content)})
    assert response.status_code == 303, Page.parse(response.text).text[:1500]
    path: str = response.headers["location"]
    assert "Making the plan" in editor.page(path).text
    assert run_import_jobs(editor.app) == ["plan_import"]
    return path


def upload(editor: ConsoleClient, source: str, content: bytes) -> str:
    response = editor.request("POST", f"{source}/run", files={"file": ("events.ics", content)})
    assert response.status_code == 303, Page.parse(response.text).text[:1500]
    run_import_jobs(editor.app)
    path: str = response.headers["location"]
    return path


def find_source(page: Page) -> str:
    match = re.search(r'href="(/console/imports/\d+)"', page.html)
    assert match is not None
    return match[1]


def list_titles(caller: Caller) -> list[str]:
    query = {"start_date": "2031-01-01", "end_date": "2032-01-01", "status": "draft", "per_page": 50}
    return sorted(event["title"] for event in caller.get("/events", query).json()["events"])


@pytest.fixture
def api(app: RunningApp) -> Caller:
    app.sql("DELETE FROM events")
    app.sql("DELETE FROM import_sources")
    app.sql("DELETE FROM procrastinate_jobs")
    return app.caller("editor")


def test_file_is_planned_applied_in_part_changed_and_undone(editor: ConsoleClient, api: Caller) -> None:
    path = create_source(editor, FIRST)
    plan = editor.page(path)
    assert "Waiting for you" in plan.text
    assert "Will be created." in plan.text
    assert "Cannot be imported." in plan.text
    assert re.search(r"Line \d+", plan.text)
    assert list_titles(api) == []
    rejected = editor.page(f"{path}?action=rejected").text
    assert "Broken day" in rejected
    assert "Pottery course" not in rejected
    number = re.search(r'name="rows" value="(\d+)" aria-label="Select Chess evening"', plan.html)
    assert number is not None
    follow(editor, editor.post(f"{path}/apply", {"scope": "selected", "rows": number[1]}))
    assert run_import_jobs(editor.app) == ["apply_import"]
    assert list_titles(api) == ["Chess evening"]
    assert "Waiting for you" in editor.page(path).text
    follow(editor, editor.post(f"{path}/apply", {"scope": "all"}))
    run_import_jobs(editor.app)
    assert list_titles(api) == ["Chess evening", "Pottery course"]
    applied = editor.page(path)
    assert "Was created." in applied.text
    assert 'name="rows"' not in applied.html
    # The second file changes a title.
    second = upload(editor, find_source(applied), SECOND)
    changed = editor.page(f"{second}?action=changed").text
    assert "Will be changed." in changed
    assert re.search(r"Chess\s+evening\s+for all", changed), changed
    follow(editor, editor.post(f"{second}/apply", {"scope": "action", "action": "changed"}))
    run_import_jobs(editor.app)
    assert list_titles(api) == ["Chess for all", "Pottery course"]
    undo = editor.post(f"{second}/undo").headers["location"]
    assert run_import_jobs(editor.app) == ["plan_import"]
    assert "Undo of an import" in editor.page(undo).text
    follow(editor, editor.post(f"{undo}/apply", {"scope": "all"}))
    run_import_jobs(editor.app)
    assert list_titles(api) == ["Chess evening", "Pottery course"]
    assert "Undone" in editor.page(second).text


def test_undo_says_that_categories_are_deleted(editor: ConsoleClient, api: Caller) -> None:
    calendar = make_calendar(("a@x", "20310110", "Chess evening")).replace(
        b"SUMMARY", b"CATEGORIES:Undone\r\nSUMMARY"
    )
    path = create_source(editor, calendar)
    editor.post(f"{path}/apply", {"scope": "all"})
    run_import_jobs(editor.app)
    undo = editor.post(f"{path}/undo").headers["location"]
    run_import_jobs(editor.app)
    plan = editor.page(undo).text
    assert (plan.count("Will be moved to the trash."), plan.count("Will be deleted.")) == (1, 1)
    editor.post(f"{undo}/apply", {"scope": "all"})
    run_import_jobs(editor.app)
    done = editor.page(undo).text
    assert (done.count("Was moved to the trash."), done.count("Was deleted.")) == (1, 1)


def test_undo_lists_fields_that_people_have_changed(editor: ConsoleClient, api: Caller) -> None:
    path = create_source(editor, FIRST)
    editor.post(f"{path}/apply", {"scope": "all"})
    run_import_jobs(editor.app)
    second = upload(editor, find_source(editor.page(path)), SECOND)
    editor.post(f"{second}/apply", {"scope": "all"})
    run_import_jobs(editor.app)
    query = {"start_date": "2031-01-01", "end_date": "2032-01-01", "status": "draft"}
    event = next(row for row in api.get("/events", query).json()["events"] if row["title"] == "Chess for all")
    api.patch(f"/events/{event['id']}", {"title": "Chess for everybody"})
    undo = editor.post(f"{second}/undo").headers["location"]
    run_import_jobs(editor.app)
    page = editor.page(undo)
    assert "Fields that people have changed since keep their values." in page.text
    assert "Chess for everybody stays, because someone has changed it here." in page.text


def test_nothing_selected_applies_nothing(editor: ConsoleClient, api: Caller) -> None:
    path = create_source(editor, FIRST)
    page = follow(editor, editor.post(f"{path}/apply", {"scope": "selected"}))
    assert "Select at least one row." in page.text
    assert run_import_jobs(editor.app) == []
    assert "Plan discarded." in follow(editor, editor.post(f"{path}/discard")).text
    refused = editor.post(f"{path}/apply", {"scope": "all"})
    assert (refused.status_code, "This is not possible" in refused.text) == (409, True)
    assert list_titles(api) == []


def test_columns_of_a_table_are_chosen_and_remembered(editor: ConsoleClient, api: Caller) -> None:
    path = create_source(editor, TABLE, "programm.csv", kind="table", timezone="Europe/Berlin")
    plan = editor.page(path)
    assert "Check the columns" in plan.text
    assert "Row 3" in plan.text
    assert "31.02.2031" in plan.text
    columns = editor.page(f"{path}/columns")
    assert "1 of the first 2 rows can’t be imported." in columns.text
    assert 'class="is-invalid"' in columns.html
    assert [columns.fields[f"column-{n}"] for n in range(3)] == [["title"], ["start_date"], ["end_date"]]
    form = {f"column-{n}": value for n, value in enumerate(["title", "start_date", "end_date", "description"])}
    again = editor.post(f"{path}/columns", form).headers["location"]
    assert again != path
    run_import_jobs(editor.app)
    assert editor.page(f"{again}/columns").fields["column-3"] == ["description"]
    twice = editor.post(f"{again}/columns", {**form, "column-3": "title"})
    assert (twice.status_code, "twice" in twice.text) == (400, True)
    editor.post(f"{again}/apply", {"scope": "all"})
    run_import_jobs(editor.app)
    assert list_titles(api) == ["Lesung"]


QUESTIONS = (
    "Titel;Datum;Start;Ende;Ort;Stadt;Notiz\n"
    "Markt;03.04.2031;11:00;10:00;;;x\n"
    "Tanz;03.04.2031;22:00;02:00;Mill garden theatre;Bonn;\n"
)


def test_questions_are_shown_and_answered(editor: ConsoleClient, api: Caller) -> None:
    api.app.sql("DELETE FROM venues")
    venue = api.create("venues", venue="Mill garden theatre", city="Ulm")
    path = create_source(editor, QUESTIONS.encode(), "programm.csv", kind="table", timezone="Europe/Berlin")
    plan = editor.page(path)
    assert "Columns that are not imported: Notiz" in plan.text
    assert "It ends at 10:00, before it starts at 11:00, so it would last 23 hours" in plan.text
    assert "Similar to “Mill garden theatre, Ulm”" in plan.text
    assert "Decide first whether to use an existing record for “Mill garden theatre”." in plan.text
    choices = re.findall(r'name="rows" value="(\d+)" aria-label="Select (\w+)"', plan.html)
    assert [title for _, title in choices] == ["Markt"]  # not the event whose venue is undecided
    same = re.search(r'name="same" value="(\d+)"[^>]*>Use existing<', plan.html)
    assert same is not None
    decided = follow(editor, editor.post(f"{path}/decide", {"same": same[1]}))
    assert "The existing record will be used." in decided.text
    editor.post(f"{path}/apply", {"scope": "all"})
    run_import_jobs(editor.app)
    assert list_titles(api) == ["Tanz"]
    editor.post(f"{path}/apply", {"scope": "selected", "rows": choices[0][0]})
    run_import_jobs(editor.app)
    assert list_titles(api) == ["Markt", "Tanz"]
    assert api.ids("venues") == [venue["id"]]


def test_lost_times_have_to_be_confirmed(editor: ConsoleClient, api: Caller) -> None:
    table = b"Titel;Datum;Einlass\nLesung;03.04.2031;19:30\n"
    path = create_source(editor, table, "programm.csv", kind="table", timezone="Europe/Berlin")
    assert "Thursday, April 3, 2031, all day" in editor.page(path).text
    refused = editor.post(f"{path}/apply", {"scope": "all"})
    assert (refused.status_code, "All new events start at 00:00" in refused.text) == (409, True)
    assert run_import_jobs(editor.app) == []
    follow(editor, editor.post(f"{path}/apply", {"scope": "all", "confirm": "true"}))
    run_import_jobs(editor.app)
    assert list_titles(api) == ["Lesung"]


def test_plan_of_a_calendar_tells_state_days_and_dates(editor: ConsoleClient, api: Caller) -> None:
    calendar = make_calendar(("fair@x", "20310605", "Fair"), ("yoga@x", "20310606", "Yoga"))
    calendar = calendar.replace(
        b"DTSTART:20310605T180000Z\r\nDTEND:20310605T190000Z", b"DTSTART;VALUE=DATE:20310605\r\nSTATUS:CANCELLED"
    ).replace(b"SUMMARY:Yoga", b"RRULE:FREQ=WEEKLY;COUNT=12\r\nSUMMARY:Yoga")
    page = editor.page(create_source(editor, calendar))
    assert "Thursday, June 5, 2031, all day Cancelled" in " ".join(page.text.split())
    assert "12 dates" in page.text


def test_invalid_source_keeps_the_fields(editor: ConsoleClient, api: Caller) -> None:
    form = {**editor.page(f"{PATH}/new").form(), "name": "Club", "url": "https://anna:secret@x.example/a.ics"}
    response = editor.request("POST", f"{PATH}/new", data=form, files={"file": ("", b"")})
    page = Page.parse(response.text)
    assert response.status_code == 400
    assert "must not contain a user name or a password" in page.text
    assert page.fields["name"] == ["Club"]
    missing = editor.request("POST", f"{PATH}/new", data={**form, "url": ""}, files={"file": ("", b"")})
    assert missing.status_code == 400
    assert "This field is required." in missing.text
    assert editor.page(PATH).text.count("Club") == 0


def test_source_is_paused_resumed_changed_and_deleted(editor: ConsoleClient, api: Caller) -> None:
    form = {**editor.page(f"{PATH}/new").form(), "name": "Club", "url": "webcal://x.example/a.ics", "interval": "60"}
    path = editor.request("POST", f"{PATH}/new", data=form, files={"file": ("", b"")}).headers["location"]
    editor.post(f"{path}/discard")
    source = find_source(editor.page(path))
    assert "https://x.example/a.ics" in editor.page(source).text
    assert "Paused" in follow(editor, editor.post(f"{source}/state", {"state": "paused"})).text
    assert "Active" in follow(editor, editor.post(f"{source}/state", {"state": "active"})).text
    settings = editor.page(f"{source}/settings")
    changed = {**settings.form(), "name": "New club", "authority": "new_only", "interval": ""}
    assert "Only add new events" in follow(editor, editor.post(f"{source}/settings", changed)).text
    assert "Its events stay." in editor.page(f"{source}/delete").text
    assert "Deleted." in follow(editor, editor.post(f"{source}/delete")).text
    assert editor.get(source).status_code == 404


def test_missing_worker_is_announced(editor: ConsoleClient, api: Caller) -> None:
    assert "The worker isn’t running." in editor.page(PATH).text
    api.app.sql("INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now())")
    assert "The worker isn’t running." not in editor.page(PATH).text
    api.app.sql("DELETE FROM procrastinate_workers")


def test_imports_are_for_editors(author: ConsoleClient, editor: ConsoleClient, api: Caller) -> None:
    path = create_source(editor, FIRST)
    assert "Imports" in editor.page("/console/events").text
    assert "Imports" not in author.page("/console/events").text
    for address in (PATH, f"{PATH}/new", f"{PATH}/runs", path, find_source(editor.page(path))):
        assert author.get(address).status_code == 403
    assert author.post(f"{path}/apply", {"scope": "all"}).status_code == 403
