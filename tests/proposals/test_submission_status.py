"""The page behind the link in an email: states, changes, withdrawal and erasure."""

import logging
from typing import Any

import pytest

from kalends.bootstrap import JsonFormatter
from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp
from tests.proposals.submission_client import SETTINGS, Submitter, find_proposals, open_form

ROOT = "//api/kalends/v1/proposals"


@pytest.fixture(scope="module")
def server(start_app_for_module: StartApp) -> RunningApp:
    return start_app_for_module(SETTINGS)


@pytest.fixture
def app(server: RunningApp) -> RunningApp:
    return open_form(server.add_site())


@pytest.fixture
def submitter(app: RunningApp) -> Submitter:
    return Submitter(app)


def decide(app: RunningApp, action: str, **fields: Any) -> dict[str, Any]:
    """Let an editor decide on the only proposal that waits, or undo the last decision."""
    editor = app.caller("editor")
    [row] = [row for row in find_proposals(app) if row["state"] == "waiting" or action == "undo"][-1:]
    headers = {"if-match": f'"{row["version"]}-0"'}
    response = editor.post(f"{ROOT}/{row['id']}/{action}", fields, headers=headers)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def read_event(app: RunningApp) -> dict[str, Any]:
    event_id = find_proposals(app)[0]["record_id"]
    return app.caller("editor").read("events", event_id)


def change(submitter: Submitter, link: str, **fields: Any) -> Any:
    page = submitter.page(f"{link}/change")
    return submitter.request("POST", f"{link}/change", data=page.form(**fields))


def test_nothing_waits_before_the_link_was_confirmed(app: RunningApp, submitter: Submitter) -> None:
    submitter.send()
    (email,) = submitter.receive()
    (link,) = email.links
    assert app.caller("editor").get(ROOT).json()["proposals"] == []
    assert "Not sent yet" in submitter.page(link).text  # A mail scanner that opens the link changes nothing.
    assert find_proposals(app)[0]["state"] == "unconfirmed"
    assert submitter.press(link, "withdraw").status_code == 303
    assert submitter.request("GET", f"{link}/change").status_code == 404
    assert submitter.press(link, "confirm").headers["location"] == link
    assert "The editors haven’t decided yet" in submitter.page(link).text
    assert len(app.caller("editor").get(ROOT).json()["proposals"]) == 1
    assert submitter.press(link, "confirm").status_code == 303
    assert find_proposals(app)[0]["version"] == 2


def test_dead_links_explain_why(app: RunningApp, submitter: Submitter) -> None:
    link = submitter.submit()
    proposal_id = find_proposals(app)[0]["id"]
    for dead in (
        "x",
        "x.y",
        f"{proposal_id}.",
        f"{proposal_id}.abc",
        link.removeprefix("/submission/") + "x",
        "%00.%ff",
    ):
        page = submitter.page(f"/submission/{dead}", 404)
        assert "48 hours" in page.text
        assert submitter.press(f"/submission/{dead}", "confirm").status_code == 404
        assert submitter.request("GET", f"/submission/{dead}/change").status_code == 404


def test_returned_entry_is_changed_and_waits_again(app: RunningApp, submitter: Submitter) -> None:
    link = submitter.submit()
    decide(app, "return", comment="Which hall?\nAnd when?")
    page = submitter.page(link)
    assert "Which hall? And when?" in page.text
    assert "Please revise" in page.text
    assert submitter.page(f"{link}/change").form()["title"] == "Choir concert"
    assert submitter.page(f"{link}/change").form()["description"] == "Songs of <spring> & summer\n\nFree."
    assert change(submitter, link, title="", note="x").status_code == 400
    response = change(submitter, link, title="Choir & band", start_time="18:30", note="The big one")
    assert (response.status_code, response.headers["location"]) == (303, link)
    [row] = find_proposals(app)
    assert (row["state"], row["note"], row["values"]["title"]) == ("waiting", "The big one", "Choir & band")
    assert row["values"]["start_date"] == "2031-05-05 18:30:00"
    decide(app, "accept")
    assert read_event(app)["title"] == "Choir & band"


def test_published_event_is_changed_by_its_sender(app: RunningApp, submitter: Submitter) -> None:
    link = submitter.submit()
    decide(app, "accept")
    event = read_event(app)
    assert (event["status"], event["venue"]["venue"]) == ("publish", "Old mill")
    assert "/event/choir-concert/" in submitter.page(link).html
    form = submitter.page(f"{link}/change").form()
    assert (form["venue"], form["organizer"]) == ("Old mill (Larkford)", "Larkford choir")
    # Nothing was changed, so there is nothing to send.
    assert change(submitter, link).status_code == 400
    assert change(submitter, link, start_day="2031-05-06", end_day="", cost="15").status_code == 303
    [_, row] = find_proposals(app)
    assert row["values"] == {
        "start_date": "2031-05-06 19:00:00",
        "end_date": "2031-05-06 21:00:00",
        "all_day": False,
        "cost": "15",
    }
    assert read_event(app)["cost"] == event["cost"]
    assert "The editors haven’t decided yet" in submitter.page(link).text
    # A second change replaces the first.
    assert submitter.page(f"{link}/change").form()["cost"] == "15"
    assert change(submitter, link, cost="16").status_code == 303
    assert len(find_proposals(app)) == 2
    decide(app, "accept")
    changed = read_event(app)
    assert (changed["start_date"], changed["cost"], changed["title"]) == (
        "2031-05-06 19:00:00",
        "$16",
        event["title"],
    )
    assert "Accepted" in submitter.page(link).text


def test_editors_changes_survive_a_senders_form(app: RunningApp, submitter: Submitter) -> None:
    link = submitter.submit()
    decide(app, "accept")
    page = submitter.page(f"{link}/change")
    event = read_event(app)
    app.caller("editor").change("events", event["id"], description="<p><strong>Songs</strong></p>", website="")
    sent = submitter.request("POST", f"{link}/change", data=page.form(title="Concert"))
    assert sent.status_code == 303
    decide(app, "accept")
    event = read_event(app)
    assert (event["title"], event["website"]) == ("Concert", event["url"])
    assert "<strong>Songs</strong>" in event["description"]


def test_event_is_cancelled_by_its_sender(app: RunningApp, submitter: Submitter) -> None:
    link = submitter.submit()
    decide(app, "accept")
    assert change(submitter, link, cost="20").status_code == 303
    assert submitter.press(link, "cancel", reason="Illness").status_code == 303
    row = find_proposals(app)[1]
    assert row["values"] == {"cost": "20", "event_status": "cancelled", "status_reason": "Illness"}
    decide(app, "accept")
    event = read_event(app)
    assert (event["event_status"], event["status_reason"], event["cost"]) == ("cancelled", "Illness", "$20")
    assert "It is cancelled" not in submitter.page(link).text
    assert submitter.press(link, "cancel").status_code == 303
    assert len(find_proposals(app)) == 2


def test_event_that_is_no_longer_public_cannot_be_changed(app: RunningApp, submitter: Submitter) -> None:
    link = submitter.submit()
    decide(app, "accept")
    event = read_event(app)
    for fields in ({"status": "private"}, {"status": "publish", "new_password": "secret pass"}):
        app.caller("editor").change("events", event["id"], **fields)
        page = submitter.page(link)
        assert f"{link}/change" not in page.html
        assert "/event/choir" not in page.html
        assert submitter.request("GET", f"{link}/change").status_code == 404
        assert submitter.press(link, "cancel").status_code == 303
    assert len(find_proposals(app)) == 1


def test_withdrawn_entry_stays_withdrawn(app: RunningApp, submitter: Submitter) -> None:
    link = submitter.submit()
    assert submitter.press(link, "withdraw").status_code == 303
    assert "You’ve withdrawn your entry" in submitter.page(link).text
    assert submitter.request("GET", f"{link}/change").status_code == 404
    assert submitter.press(link, "confirm").status_code == 303
    assert find_proposals(app)[0]["state"] == "withdrawn"


def test_rejected_entry_says_why(app: RunningApp, submitter: Submitter) -> None:
    link = submitter.submit()
    decide(app, "reject", reason="wrong_area", comment="Try the neighbours.")
    text = submitter.page(link).text
    assert "It takes place outside the area of this calendar." in text
    assert "Try the neighbours." in text


def test_deleting_data_acts_at_once(app: RunningApp, submitter: Submitter) -> None:
    links = [submitter.submit(title=title) for title in ("First", "Second", "Third")]
    submitter.submit(title="Other", email="other@example.org")
    rows = {row["values"]["title"]: row for row in find_proposals(app)}
    for title, action, fields in (("First", "accept", {}), ("Second", "return", {"comment": "Hm"})):
        headers = {"if-match": f'"{rows[title]["version"]}-0"'}
        path = f"{ROOT}/{rows[title]['id']}/{action}"
        assert app.caller("editor").post(path, fields, headers=headers).status_code == 200
    response = submitter.press(links[1], "delete")
    assert response.status_code == 200
    assert "We’ve deleted your email address" in response.text
    for link in links:
        submitter.page(link, 404)
    kept = find_proposals(app)
    assert [(row["state"], row["values"].get("title"), row["email"]) for row in kept] == [
        ("accepted", None, None),
        ("waiting", "Other", "other@example.org"),
    ]
    assert [row["email"] for row in app.sql("SELECT email FROM submitters")] == ["other@example.org"]
    assert app.caller().page("events", start_date="2031-01-01", end_date="2032-01-01")["total"] == 1
    submitter.run_jobs(app.jobs("send_proposal_email"))
    assert all(email.to == "other@example.org" for email in submitter.emails[8:])


def test_blocked_address_is_not_told(app: RunningApp, submitter: Submitter) -> None:
    link = submitter.submit()
    decide(app, "accept")
    app.sql("UPDATE submitters SET blocked_at = now()")
    response = submitter.send(title="Another")
    assert (response.status_code, response.headers["location"]) == (303, "/events/add/sent/")
    assert len(find_proposals(app)) == 1
    for action in ("cancel", "confirm", "withdraw"):
        assert submitter.press(link, action).status_code == 303
    assert submitter.request("GET", f"{link}/change").status_code == 404
    assert len(find_proposals(app)) == 1
    assert submitter.press(link, "delete").status_code == 200
    assert [row["email"] for row in app.sql("SELECT email FROM submitters")] == ["anna@example.org"]


def test_link_stays_out_of_the_log(app: RunningApp, submitter: Submitter, caplog: pytest.LogCaptureFixture) -> None:
    link = submitter.submit()
    app.flush_log()
    caplog.clear()
    with caplog.at_level(logging.INFO, "kalends"):
        submitter.page(link)
        submitter.page(f"{link}/change")
        submitter.page(f"{link}/x/y", 404)
        submitter.press(link, "confirm")
        app.flush_log()
    logged = [line for record in caplog.records for line in JsonFormatter().format(record).splitlines()]
    assert sum("/submission/…" in line for line in logged) == 4
    assert not any(link.removeprefix("/submission/") in line for line in logged)
