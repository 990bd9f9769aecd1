"""A sender's name, address and note stay in the tables of proposals, and leave them when they are erased."""

import logging
import zipfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from prometheus_client import REGISTRY, generate_latest
from psycopg import sql

from kalends.bootstrap import JsonFormatter
from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp
from tests.lifecycle.processes import run_command
from tests.proposals.proposals_client import ENDS_AT, age
from tests.proposals.submission_client import SETTINGS, Submitter, find_proposals, open_form
from tests.proposals.test_public_form import draw

ROOT = "//api/kalends/v1"
CANARIES = ("Canary-Xq7-name", "canary-xq7@example.org", "Canary-Xq7-note")
SENDER = dict(zip(("name", "email", "note"), CANARIES, strict=True))
TABLES = {"proposals", "submitters", "proposal_pictures"}
PUBLIC_PATHS = (
    *("/", "/events/", "/events/list/", "/event/accepted/", "/events.ics", "/events.rss", "/events.atom"),
    *("/events.json", "/sitemap.xml", "/events/search/", "/events/add/", "/events/add/link/"),
)
API_PATHS = (
    *("//api/calendar/events/v1/events", f"{ROOT}/changes?since=0", f"{ROOT}/proposals"),
    *("//api/calendar/events/v1/venues", f"{ROOT}/events/{{event}}/history"),
)


@pytest.fixture
def app(start_single_site: StartApp) -> RunningApp:
    """A database of its own, because its dump is searched."""
    return open_form(start_single_site(SETTINGS))


def find_tables(app: RunningApp) -> set[str]:
    """Return the tables that contain a canary, as a dump would show."""
    with psycopg.connect(app.database_url) as connection:
        names = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() "
            "AND table_type = 'BASE TABLE'"
        ).fetchall()
        return {
            name
            for (name,) in names
            if connection.execute(
                sql.SQL("SELECT 1 FROM {} t WHERE lower(t::text) LIKE '%canary-xq7%' LIMIT 1").format(
                    sql.Identifier(name)
                )
            ).fetchone()
        }


def has_canary(text: str) -> bool:
    return "canary-xq7" in text.lower()


def decide(app: RunningApp, title: str, action: str, **fields: Any) -> None:
    [row] = [row for row in find_proposals(app) if row["values"]["title"] == title]
    headers = {"if-match": f'"{row["version"]}-0"', "idempotency-key": title}
    response = app.caller("editor").post(f"{ROOT}/proposals/{row['id']}/{action}", fields, headers=headers)
    assert response.status_code == 200, response.text


def go_through_all_states(app: RunningApp) -> str:
    """Let a person send something that ends in each state; return the link to the accepted event."""
    links = {}
    for number, title in enumerate(("Waiting", "Returned", "Accepted", "Rejected", "Withdrawn", "Expired")):
        person = Submitter(app, f"192.0.2.{number}")
        app.sql("DELETE FROM login_failures")
        # The picture of a published event has a public description.
        alt_text = "The hall" if title == "Accepted" else CANARIES[2]
        links[title] = person.submit(**SENDER, title=title, picture=draw(20, 20), picture_alt=alt_text)
    person = Submitter(app, "192.0.2.9")
    app.sql("DELETE FROM login_failures")
    assert person.send(**SENDER, title="Unconfirmed").status_code == 303
    decide(app, "Returned", "return", comment="Which hall?")
    decide(app, "Accepted", "accept")
    decide(app, "Rejected", "reject", reason="other")
    assert person.press(links["Withdrawn"], "withdraw").status_code == 303
    app.sql("UPDATE proposals SET state = 'expired' WHERE values ->> 'title' = 'Expired'")
    person.page(links["Accepted"])
    change = person.page(f"{links['Accepted']}/change").form(note=CANARIES[2], cost="99")
    assert person.request("POST", f"{links['Accepted']}/change", data=change).status_code == 303
    return links["Accepted"]


def test_names_addresses_and_notes_stay_where_they_are_needed(
    app: RunningApp, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app.flush_log()
    caplog.clear()
    with caplog.at_level(logging.INFO, "kalends"):
        link = go_through_all_states(app)
        assert find_tables(app) == TABLES
        [event_id] = [row["record_id"] for row in find_proposals(app) if row["record_id"]][:1]
        for path in PUBLIC_PATHS:
            response = app.caller().request("GET", f"/{path}")
            assert response.status_code in (200, 404), path
            assert not has_canary(response.text), path
        for role in ("anonymous", "subscriber", "contributor", "author"):
            for path in API_PATHS:
                response = app.caller(role).get(path.format(event=event_id))
                assert not has_canary(response.text), (role, path)
        for path in API_PATHS:
            response = app.caller("editor").get(path.format(event=event_id))
            assert has_canary(response.text) == path.endswith("/proposals"), path
        assert "Unconfirmed" not in app.caller("editor").get(f"{ROOT}/proposals").text
        assert not has_canary(Submitter(app).page(link).html)
        app.flush_log()
    assert caplog.records
    logged = [line for record in caplog.records for line in JsonFormatter().format(record).splitlines()]
    assert not any(map(has_canary, logged))
    assert not has_canary(generate_latest(REGISTRY).decode())
    assert not has_canary(str(app.jobs()))
    archives = {}
    for option in ("--accounts", ""):
        path = tmp_path / f"site{option}.zip"
        done = run_command(app.database_url, "site", "export", "1", "--to", str(path), *filter(None, [option]))
        # The command does not know where this application keeps its pictures.
        assert "1 image files are missing" in done.output, done.output
        with zipfile.ZipFile(path) as archive:
            archives[option] = any(has_canary(archive.read(name).decode("latin-1")) for name in archive.namelist())
    assert archives == {"--accounts": True, "": False}


def test_nothing_is_left_after_erasure(app: RunningApp) -> None:
    link = go_through_all_states(app)
    assert Submitter(app).press(link, "delete").status_code == 200
    assert find_tables(app) == set()
    assert app.sql("SELECT * FROM proposal_pictures") == []


def test_nothing_is_left_when_time_has_passed(app: RunningApp) -> None:
    go_through_all_states(app)
    for days in (0, 31, 62):
        age(app, ENDS_AT + timedelta(days=days))
    assert find_tables(app) == set()
    assert app.sql("SELECT * FROM submitters") == []
