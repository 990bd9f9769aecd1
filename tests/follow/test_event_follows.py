"""People who follow events: the form, alerts after changes, the reminder, and what is said about a withdrawal."""

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from typing import Any

import psycopg
import pytest
from icalendar import Calendar

from kalends.core.times import utc_now
from kalends.follow.jobs import DigestSender
from kalends.follow.operations.event_follows import CONSUMER, AlertPlanner
from kalends.follow.operations.followings import clean_follows
from kalends.follow.rules.follow_limits import MAX_EVENTS
from kalends.push.storage import log_consumers
from kalends.store.database import Database
from tests.api.running_app import RunningApp
from tests.console.smtp_server import SmtpServer
from tests.follow.follow_client import (
    BASE_URL,
    FOLLOW,
    SETTINGS,
    Reader,
    add_event,
    find_follows,
    in_days,
    make_times,
    send_due,
)

Event = dict[str, Any]


@pytest.fixture
def reader(site: RunningApp) -> Reader:
    return Reader(site)


@pytest.fixture
def event(site: RunningApp) -> Event:
    return add_event(site, "Choir & organ", 5, venue={"venue": "Town hall"})


def follow_event(reader: Reader, *events: Event, **fields: str) -> str:
    """Follow events and confirm; return the path of the person's page."""
    ids = ",".join(str(event["id"]) for event in events)
    return reader.confirm(f"{FOLLOW}?include={ids}", **fields)


def plan(site: RunningApp) -> None:
    """Read the change log, as the worker does every second."""

    async def run(database: Database) -> None:
        for lease in await log_consumers.take_consumers(database, 10):
            assert lease.kind == CONSUMER
            await AlertPlanner(database).handle(lease)

    site.run_with_database(run)


def let_pass(site: RunningApp, **interval: float) -> None:
    """Let time pass for everything that is stored about follows."""
    site.sql("UPDATE follows SET next_at = next_at - $1::interval, alerted_at = alerted_at - $1::interval",
             timedelta(**interval))  # fmt: skip


def send(site: RunningApp, smtp: SmtpServer) -> list[EmailMessage]:
    known = len(smtp.messages)
    plan(site)
    let_pass(site, minutes=10)
    send_due(site, smtp.url)
    return smtp.messages[known:]


def read_text(message: EmailMessage) -> str:
    part = message.get_body(("plain",))
    assert part is not None
    text: str = part.get_content()
    return text.replace("\r\n", "\n")


def read_calendar(message: EmailMessage) -> Any:
    [part] = message.iter_attachments()
    assert part.get_filename() == "event.ics"
    [component] = Calendar.from_ical(part.get_content()).walk("VEVENT")
    return component


def test_form_names_the_event(site: RunningApp, reader: Reader, event: Event) -> None:
    page = reader.page(f"{FOLLOW}?include={event['id']}")
    assert "Choir & organ" in page.text
    assert 'name="rhythm"' not in page.html
    shown = reader.page(f"/event/{event['slug']}/").html
    assert f'href="/follow/?include={event["id"]}"' in shown


@pytest.mark.parametrize("hide", ["trash", "past", "private", "unknown"])
def test_only_upcoming_public_events_can_be_followed(
    site: RunningApp, reader: Reader, event: Event, hide: str
) -> None:
    event_id, editor = event["id"], site.caller("editor")
    if hide == "trash":
        editor.trash("events", event_id)
    elif hide == "past":
        editor.change("events", event_id, **make_times(in_days(-3)))
    elif hide == "private":
        editor.change("events", event_id, status="private")
    else:
        event_id = 999_999
    assert reader.request("GET", f"{FOLLOW}?include={event_id}").status_code == 404
    assert reader.follow(f"{FOLLOW}?include={event_id}").status_code == 404
    assert find_follows(site) == []


def test_confirmation_names_events_and_confirms_all(site: RunningApp, reader: Reader, event: Event) -> None:
    other = add_event(site, "Reading", 6)
    assert reader.follow(f"{FOLLOW}?include={event['id']},{other['id']}").status_code == 200
    (email,) = reader.receive()
    assert "Choir & organ, Reading" in email.text
    rows = find_follows(site)
    assert [(row["event_id"], row["confirmed_at"], row["next_at"]) for row in rows] == [
        (event["id"], None, None), (other["id"], None, None)
    ]  # fmt: skip
    page = reader.page(email.link)
    assert page.text.count("Confirm all events") == 2
    reader.press(email.link, "confirm", follow=rows[0]["id"])
    assert all(row["confirmed_at"] and row["next_at"] and row["known"] for row in find_follows(site))
    assert "Choir" not in str([row["known"] for row in find_follows(site)])


def test_one_address_follows_at_most_50_events(site: RunningApp, reader: Reader, event: Event) -> None:
    follow_event(reader, event)
    site.sql(
        "INSERT INTO follows (site_id, id, follower_id, event_id, created_at) "
        "SELECT site_id, gen_random_uuid(), follower_id, 100000 + n, now() FROM follows, generate_series(1, $1) n",
        MAX_EVENTS - 1,
    )
    other = add_event(site, "Reading")
    assert reader.follow(f"{FOLLOW}?include={other['id']}").status_code == 200
    assert len(find_follows(site)) == MAX_EVENTS


def test_alert_about_a_new_time(site: RunningApp, reader: Reader, event: Event, smtp: SmtpServer) -> None:
    follow_event(reader, event)
    site.caller("editor").change("events", event["id"], **make_times(in_days(6)))
    [message] = send(site, smtp)
    assert str(message["Subject"]) == "New time: Choir & organ"
    text = read_text(message)
    assert "New time; before: " in text
    assert f"{BASE_URL}/event/{event['slug']}/" in text
    assert "No more emails about this event: " in text
    assert message.get_content_type() == "multipart/mixed"
    first = read_calendar(message)
    assert send(site, smtp) == []
    [row] = find_follows(site)
    assert row["next_at"].replace(tzinfo=UTC) > utc_now()
    site.caller("editor").change("events", event["id"], **make_times(in_days(7)))
    let_pass(site, hours=1)
    [again] = send(site, smtp)
    second = read_calendar(again)
    assert (first["UID"], first["SEQUENCE"] < second["SEQUENCE"]) == (second["UID"], True)
    assert message["Message-ID"] != again["Message-ID"]


def test_several_changes_are_one_alert_and_an_undone_one_is_none(
    site: RunningApp, reader: Reader, event: Event, smtp: SmtpServer
) -> None:
    follow_event(reader, event)
    editor = site.caller("editor")
    editor.change("events", event["id"], **make_times(in_days(6)))
    plan(site)
    editor.change("events", event["id"], **make_times(in_days(5)))
    assert send(site, smtp) == []
    editor.change("events", event["id"], event_status="cancelled", status_reason="The singers are ill.")
    editor.change("events", event["id"], venue={"venue": "Castle"})
    [message] = send(site, smtp)
    assert str(message["Subject"]) == "Cancelled and New place: Choir & organ"
    assert "The singers are ill." in read_text(message)
    assert read_calendar(message)["STATUS"] == "CANCELLED"


def test_at_most_one_alert_an_hour(site: RunningApp, reader: Reader, event: Event, smtp: SmtpServer) -> None:
    follow_event(reader, event)
    editor = site.caller("editor")
    editor.change("events", event["id"], event_status="postponed")
    assert len(send(site, smtp)) == 1
    editor.change("events", event["id"], event_status="cancelled")
    assert send(site, smtp) == []
    let_pass(site, minutes=40)
    assert len(send(site, smtp)) == 1


@pytest.mark.parametrize("end", ["trash", "delete", "private", "hide"])
def test_withdrawn_event_is_not_named(
    site: RunningApp, reader: Reader, event: Event, smtp: SmtpServer, end: str
) -> None:
    follow_event(reader, event)
    editor = site.caller("editor")
    if end in ("trash", "delete"):
        editor.trash("events", event["id"])
        if end == "delete":
            editor.delete(f"/events/{event['id']}", params={"force": "true"})
    elif end == "private":
        editor.change("events", event["id"], status="private", title="Secret")
    else:
        editor.change("events", event["id"], hide_from_listings=True)
    [message] = send(site, smtp)
    text = message.as_string()
    assert "is no longer in the calendar." in str(message["Subject"])
    assert not re.search("Choir|Secret|town-hall", text)
    if end != "delete":
        assert read_calendar(message)["STATUS"] == "CANCELLED"
    assert [row["next_at"] for row in find_follows(site)] == [None]


def test_reminder_on_the_day_before(site: RunningApp, reader: Reader, smtp: SmtpServer) -> None:
    event = add_event(site, "Choir", 2)
    follow_event(reader, event)
    assert send(site, smtp) == []
    [row] = find_follows(site)
    reminder = row["next_at"]
    assert (reminder.date(), reminder.hour in (16, 17)) == (in_days(1).date(), True)

    def send_at(moment: datetime) -> list[EmailMessage]:
        known = len(smtp.messages)
        send_due(site, smtp.url, read_now=lambda: moment)
        return smtp.messages[known:]

    assert send_at(reminder - timedelta(minutes=1)) == []
    [message] = send_at(reminder)
    assert str(message["Subject"]) == "Reminder: Choir"
    assert send_at(reminder + timedelta(hours=1)) == []
    assert [row["next_at"] for row in find_follows(site)] == [None]


def test_cancelled_event_has_no_reminder(site: RunningApp, reader: Reader, event: Event, smtp: SmtpServer) -> None:
    follow_event(reader, event)
    site.caller("editor").change("events", event["id"], event_status="cancelled")
    assert len(send(site, smtp)) == 1
    assert [row["next_at"] for row in find_follows(site)] == [None]


def test_pausing_and_ending(site: RunningApp, reader: Reader, event: Event, smtp: SmtpServer) -> None:
    link = follow_event(reader, event)
    [row] = find_follows(site)
    reader.press(link, "pause", follow=row["id"])
    editor = site.caller("editor")
    editor.change("events", event["id"], event_status="cancelled")
    assert send(site, smtp) == []
    reader.press(link, "resume", follow=row["id"])
    assert len(send(site, smtp)) == 1
    [end] = re.findall(rf"{BASE_URL}(/follow/end/\S+)", read_text(smtp.messages[-1]))
    assert "Choir & organ" in reader.page(end).text
    assert reader.request("POST", end).status_code == 200
    assert find_follows(site) == []


def test_trimmed_log_makes_all_events_due(site: RunningApp, reader: Reader, event: Event, smtp: SmtpServer) -> None:
    follow_event(reader, event)
    site.caller("editor").change("events", event["id"], event_status="cancelled")
    site.sql("UPDATE sites SET trimmed_revision = revision WHERE id = $1", site.site_id)
    assert len(send(site, smtp)) == 1


def test_alert_waits_while_the_site_sends_nothing(
    site: RunningApp, reader: Reader, event: Event, smtp: SmtpServer
) -> None:
    follow_event(reader, event)
    site.set_site("follow_by_email", "off")
    site.caller("editor").change("events", event["id"], event_status="cancelled")
    assert send(site, smtp) == []
    site.set_site("follow_by_email", "on")
    assert len(send(site, smtp)) == 1


def test_an_imported_site_announces_changes_once_it_is_switched_on(
    site: RunningApp, reader: Reader, event: Event, smtp: SmtpServer
) -> None:
    follow_event(reader, event)
    assert send(site, smtp) == []
    site.set_site("follow_by_email", "off")
    site.sql("DELETE FROM log_consumers")  # Archives have none.
    site.set_site("follow_by_email", "on")
    site.caller("editor").change("events", event["id"], event_status="cancelled")
    assert len(send(site, smtp)) == 1


@pytest.mark.parametrize("before", ["nothing", "an alert"])
def test_a_change_while_an_email_is_due_is_not_lost(
    site: RunningApp, reader: Reader, event: Event, smtp: SmtpServer, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    """The event is cancelled after it was looked at, and the change log is read before that is written down."""
    follow_event(reader, event)
    if before == "an alert":
        site.caller("editor").change("events", event["id"], **make_times(in_days(6)))
    plan(site)
    let_pass(site, minutes=10)
    known = DigestSender._mark_done

    with site.twin(SETTINGS) as twin, ThreadPoolExecutor(1) as executor, monkeypatch.context() as patched:

        def cancel() -> None:
            twin.caller("editor").change("events", event["id"], event_status="cancelled")
            plan(twin)

        def mark_done(*arguments: Any) -> None:
            executor.submit(cancel).result()
            known(*arguments)

        patched.setattr(DigestSender, "_mark_done", mark_done)
        send_due(site, smtp.url)
    assert len(smtp.messages) == (before == "an alert")
    let_pass(site, hours=2)
    send_due(site, smtp.url)
    assert str(smtp.messages[-1]["Subject"]) == "Cancelled: Choir & organ"


def test_the_same_alert_twice_has_two_message_ids(
    site: RunningApp, reader: Reader, event: Event, smtp: SmtpServer
) -> None:
    follow_event(reader, event)
    for status in ("cancelled", "scheduled", "cancelled"):
        site.caller("editor").change("events", event["id"], event_status=status)
        assert len(send(site, smtp)) == 1
        let_pass(site, hours=1)
    assert len({message["Message-ID"] for message in smtp.messages}) == 3


def test_past_events_are_forgotten(site: RunningApp, reader: Reader, event: Event) -> None:
    follow_event(reader, event)

    def clean(later: timedelta) -> int:
        site.run_with_database(lambda database: clean_follows(database, utc_now() + later))
        return len(find_follows(site))

    assert clean(timedelta(days=11)) == 1
    assert site.sql("SELECT consumer FROM log_consumers")[0]["consumer"] == CONSUMER
    assert clean(timedelta(days=13)) == 0
    assert site.sql("SELECT FROM log_consumers") == []


def test_saves_know_nothing_of_followers(
    site: RunningApp, reader: Reader, event: Event, statements: list[str]
) -> None:
    editor = site.caller("editor")

    def save() -> list[str]:
        statements.clear()
        editor.change("events", event["id"], **make_times(in_days(6)))
        editor.change("events", event["id"], **make_times(in_days(5)))
        return list(statements)

    save()
    alone = save()
    follow_event(reader, event)
    assert save() == alone
    with psycopg.connect(site.database_url) as follower:
        for table in ("followers", "follows", "mail_days", "log_consumers"):
            follower.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE".encode())
        assert save() == alone
