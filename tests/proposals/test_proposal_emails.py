"""The emails about proposals: who gets which, when, and what jobs and links contain."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import Actor
from kalends.core.messages import LANGUAGES
from kalends.proposals.jobs import age_proposals, summarize_queues
from kalends.proposals.mails import send_mail
from kalends.proposals.operations.proposal_decisions import decide_pending
from kalends.proposals.rules import Mail
from kalends.store.database import Database, Transaction
from kalends.store.sites import Site
from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp
from tests.lifecycle.processes import run_command
from tests.proposals.submission_client import SETTINGS, Submitter, find_proposals, open_form

ROOT = "//api/kalends/v1/proposals"
VALUES = {"title": "Fair &amp; market", "start_date": "2031-05-05 19:00", "end_date": "2031-05-05 21:00"}
DAY = timedelta(days=1)


@pytest.fixture
def app(start_single_site: StartApp) -> RunningApp:
    """A database of its own, because jobs look at all sites."""
    return open_form(start_single_site(SETTINGS))


@pytest.fixture
def submitter(app: RunningApp) -> Submitter:
    return Submitter(app)


def propose(app: RunningApp, role: str = "contributor", **fields: Any) -> dict[str, Any]:
    response = app.caller(role).post(ROOT, {"values": VALUES, **fields})
    assert response.status_code == 201, response.text
    body: dict[str, Any] = response.json()
    return body


def act(
    app: RunningApp, proposal: Mapping[str, Any], action: str, role: str = "editor", **fields: Any
) -> dict[str, Any]:
    headers = {"if-match": f'"{proposal["version"]}-0"'}
    response = app.caller(role).post(f"{ROOT}/{proposal['id']}/{action}", fields, headers=headers)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def find_jobs(app: RunningApp) -> list[dict[str, Any]]:
    return app.jobs("send_proposal_email")


def test_decisions_reach_the_sender_after_five_minutes(app: RunningApp, submitter: Submitter) -> None:
    app.sql("UPDATE users SET language = 'de' WHERE login = 'contributor'")
    proposal = propose(app)
    returned = act(app, proposal, "return", comment="Which hall?")
    [job] = find_jobs(app)
    assert job["args"] == {"mail": "decision", "key": proposal["id"], "version": 2, "site_id": 1}
    [(moment,)] = app.sql("SELECT decided_at FROM proposals")
    assert job["scheduled_at"] == moment + timedelta(minutes=5)
    submitter.run_jobs([job])
    [email] = submitter.emails
    assert email.to == "contributor@example.org"
    assert "Fair & market" in email.subject
    for part in ("Fair & market", "Montag, 5. Mai 2031, 19:00", "Which hall?", "https://calendar.test/console/queue"):
        assert part in email.text
    undone = act(app, returned, "undo")
    rejected = act(app, undone, "reject", reason="duplicate", comment="See the list.")
    act(app, act(app, rejected, "undo"), "accept")
    submitter.run_jobs(find_jobs(app)[:1])
    assert len(submitter.emails) == 1  # The rejection was undone in time.
    submitter.run_jobs(find_jobs(app))
    assert len(submitter.emails) == 2
    assert "See the list." not in submitter.emails[1].text


def test_editors_get_no_email_about_their_own_decision(app: RunningApp) -> None:
    act(app, propose(app, "editor"), "accept")
    act(app, propose(app, "editor"), "accept", "administrator")
    assert len(find_jobs(app)) == 1


def test_authors_of_pending_events_hear_of_the_decision(app: RunningApp, submitter: Submitter) -> None:
    event = app.caller("contributor").create("events", **VALUES, status="pending")
    [(revision,)] = app.sql("SELECT revision FROM events")
    editor = app.users["editor"].id
    decision = {"decision": "return", "comment": "Which hall?"}

    async def decide(tx: Transaction) -> None:
        await tx.lock_site(editor)
        context = OperationContext(tx, Actor(editor, "editor"), "", "", values=decision, record_id=event["id"])
        await decide_pending(EVENTS, replace(context, if_match=frozenset([revision])))

    app.run_operation(decide)
    submitter.run_jobs(find_jobs(app))
    [email] = submitter.emails
    assert (email.to, "Which hall?" in email.text) == ("contributor@example.org", True)


def test_links_work_until_ten_newer_ones_were_sent(app: RunningApp, submitter: Submitter) -> None:
    links = [submitter.submit()]
    for _ in range(10):
        app.sql("DELETE FROM login_failures")
        page = submitter.page("/events/add/link/")
        response = submitter.post("/events/add/link/", page.form(email="ANNA@example.org", company=None))
        assert response.status_code == 200
        [email] = submitter.receive()
        assert "Choir concert" in email.text
        links += email.links
    assert [submitter.request("GET", link).status_code for link in links] == [404] + [200] * 10


def test_links_are_sent_to_known_addresses_only(app: RunningApp, submitter: Submitter) -> None:
    submitter.submit()
    submitter.send(title="Not confirmed", note="Secret note")
    submitter.receive()
    app.sql("DELETE FROM login_failures")
    form = submitter.page("/events/add/link/").form(company=None)
    responses = [
        submitter.post("/events/add/link/", {**form, "email": email})
        for email in (
            "nobody@example.org",
            "anna@example.org",
            "anna@example.org",
            "anna@example.org",
            "anna@example.org",
        )
    ]
    assert {(row.status_code, row.text) for row in responses} == {(200, responses[0].text)}
    emails = submitter.receive()
    assert {email.to for email in emails} == {"anna@example.org"}
    assert len(emails) == 3
    assert len(emails[0].links) == 2
    assert "Choir concert" in emails[0].text
    assert "Not confirmed" not in emails[0].text
    assert submitter.post("/events/add/link/", {**form, "email": "x"}).status_code == 400
    assert submitter.post("/events/add/link/", {**form, "email": "a@b.example"}, wait=1).status_code == 400


def test_failed_delivery_leaves_no_token(app: RunningApp, submitter: Submitter) -> None:
    submitter.send()
    [job] = find_jobs(app)

    async def refuse(site: Site, to: str, subject: str, text: str) -> None:
        raise OSError("no route to host")

    async def run(database: Database) -> None:
        args = {name: job["args"][name] for name in ("key", "version")}
        await send_mail(database, refuse, "https://calendar.test", 1, mail=Mail.CONFIRM, **args)

    with pytest.raises(OSError, match="no route"):
        app.run_with_database(run)
    assert app.sql("SELECT cardinality(token_hashes) FROM proposals")[0][0] == 0
    assert len(submitter.receive()) == 1


def test_nothing_is_sent_about_erased_rows(app: RunningApp, submitter: Submitter) -> None:
    submitter.send()
    propose(app)
    act(app, propose(app), "accept")
    app.sql("DELETE FROM proposals")
    submitter.run_jobs(find_jobs(app))
    assert submitter.emails == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_emails_in_every_language(app: RunningApp, submitter: Submitter, language: str) -> None:
    """Each email is complete: it has no placeholder, and is in the recipient's language."""
    app.sql("UPDATE users SET language = $1", language)
    for action, fields in (("accept", {}), ("return", {"comment": "C"}), ("reject", {"reason": "other"})):
        path = f"/events/add/?lang={language}"
        assert submitter.send(path, title=action, email=f"{action}@example.org").status_code == 303
        submitter.receive()
        submitter.press(submitter.emails[-1].links[0], "confirm")
        row = find_proposals(app)[-1]
        act(app, row, action, **fields)
    act(app, propose(app), "accept")
    propose(app)
    app.run_with_database(lambda database: summarize_queues(database, datetime(2027, 3, 1, 12, tzinfo=UTC)))
    submitter.run_jobs(find_jobs(app))
    assert len(submitter.emails) == 3 + 3 + 1 + 2
    for email in submitter.emails:
        assert "{" not in email.subject + email.text
        assert "\n\n\n" not in email.text
        assert all(f"?lang={language}" in link for link in email.links) or language == "en"
    assert len({email.subject for email in submitter.emails}) == 6


# The daily summary ---------------------------------------------------------------------------------


def summarize(app: RunningApp, hour: int, day: int = 1) -> list[int]:
    """Run the job at an hour of a day in March 2027, in UTC; return who gets the summary."""
    app.remove_jobs(find_jobs(app))
    moment = datetime(2027, 3, day, hour, tzinfo=UTC)
    app.run_with_database(lambda database: summarize_queues(database, moment))
    return sorted(int(job["args"]["key"]) for job in find_jobs(app))


def test_editors_get_one_summary_a_day(app: RunningApp, submitter: Submitter) -> None:
    app.set_site("timezone", "America/New_York")
    editor, administrator = app.users["editor"].id, app.users["administrator"].id
    assert summarize(app, 20) == []
    for number in range(7):
        dates = {"start_date": f"2031-05-0{number + 1} 19:00", "end_date": f"2031-05-0{number + 1} 20:00"}
        propose(app, values={"title": f"Fair {number}", **dates})
    assert summarize(app, 12) == []  # 07:00 in New York
    assert summarize(app, 13) == [editor, administrator]
    submitter.run_jobs(find_jobs(app))
    [email] = [email for email in submitter.emails if email.to == "editor@example.org"]
    assert "7 entries" in email.text
    assert [title for title in ("Fair 0", "Fair 4", "Fair 5") if title in email.text] == ["Fair 0", "Fair 4"]
    assert "https://calendar.test/console/queue" in email.text
    assert summarize(app, 14) == summarize(app, 23) == []
    app.sql("UPDATE users SET queue_email = false WHERE login = 'editor'")
    assert summarize(app, 13, day=2) == [administrator]
    app.sql("DELETE FROM proposals")
    submitter.run_jobs(find_jobs(app))
    assert len(submitter.emails) == 2  # Nothing waits any more.
    assert summarize(app, 13, day=3) == []


def test_unconfirmed_entries_are_in_no_summary(app: RunningApp, submitter: Submitter) -> None:
    submitter.send()
    assert summarize(app, 13) == []


# What time does to people ---------------------------------------------------------------------------


def age(app: RunningApp, moment: datetime) -> None:
    app.run_with_database(lambda database: age_proposals(database, moment))


def test_people_without_proposals_are_forgotten(app: RunningApp, submitter: Submitter) -> None:
    def count_people() -> int:
        number: int = app.sql("SELECT count(*) FROM submitters")[0][0]
        return number

    now = datetime.now(UTC)
    submitter.send()
    age(app, now + DAY)
    assert count_people() == 1
    age(app, now + 2 * DAY + timedelta(minutes=1))
    assert (count_people(), find_proposals(app)) == (0, [])
    submitter.send()
    app.sql("UPDATE submitters SET blocked_at = now()")
    age(app, now + 3 * DAY)
    assert (count_people(), find_proposals(app)) == (1, [])
    age(app, now + 364 * DAY)
    assert count_people() == 1
    age(app, now + 366 * DAY)
    assert count_people() == 0


def test_link_lives_until_thirty_days_after_the_event(app: RunningApp, submitter: Submitter) -> None:
    """Also if the event moves to another year after it was accepted, and if the job looks every day."""
    link = submitter.submit()
    act(app, find_proposals(app)[0], "accept")
    event_id, end = find_proposals(app)[0]["record_id"], datetime(2031, 5, 5, 20, tzinfo=UTC)
    age(app, datetime.now(UTC) + 31 * DAY)
    assert (find_proposals(app)[0]["values"], find_proposals(app)[0]["submitter_name"]) == ({}, "")
    assert "Choir concert" in submitter.page(link).text
    moved = {"start_date": "2032-05-05 19:00", "end_date": "2032-05-05 21:00"}
    app.caller("editor").change("events", event_id, **moved)
    for days in (0, 31, 365, 366 + 29):
        age(app, end + days * DAY)
        assert submitter.request("GET", link).status_code == 200, days
    age(app, end + (366 + 30) * DAY)
    assert submitter.request("GET", link).status_code == 404
    assert app.sql("SELECT * FROM submitters") == []


def test_deleted_event_has_ended(app: RunningApp, submitter: Submitter) -> None:
    link = submitter.submit()
    act(app, find_proposals(app)[0], "accept")
    app.caller("editor").trash("events", find_proposals(app)[0]["record_id"])
    age(app, datetime.now(UTC) + 29 * DAY)
    assert submitter.request("GET", link).status_code == 200
    age(app, datetime.now(UTC) + 31 * DAY)
    assert submitter.request("GET", link).status_code == 404


def test_command_forgets_a_person(app: RunningApp, submitter: Submitter) -> None:
    link = submitter.submit()
    submitter.submit(title="Other", email="other@example.org")
    app.sql("UPDATE submitters SET blocked_at = now() WHERE email = 'anna@example.org'")
    forgotten = run_command(app.database_url, "proposals", "forget", " Anna@Example.org")
    assert (forgotten.exit_code, "1 proposals" in forgotten.output) == (0, True), forgotten.output
    assert run_command(app.database_url, "proposals", "forget", "anna@example.org").output.startswith("There is no")
    assert [row["email"] for row in app.sql("SELECT email FROM submitters")] == ["other@example.org"]
    assert submitter.request("GET", link).status_code == 404
