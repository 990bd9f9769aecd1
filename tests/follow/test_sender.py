"""The sender of digests: what it sends to whom, when it sends nothing, and refusals."""

import re
import time
from datetime import timedelta
from email.message import EmailMessage
from typing import Any

import pytest

from kalends.core.times import utc_now
from kalends.follow.jobs import DigestSender
from kalends.follow.mails.message_bytes import PreparedMessage, Recipient
from kalends.store.database import Database
from tests.api.running_app import RunningApp
from tests.console.smtp_server import SmtpServer
from tests.follow.follow_client import (
    BASE_URL,
    SENDER,
    Reader,
    add_event,
    add_follower,
    find_due,
    find_follows,
    find_revision,
    in_days,
    make_sender,
    make_times,
    send_due,
)


def read_part(message: EmailMessage, kind: str) -> str:
    part = message.get_body((kind,))
    assert part is not None
    text: str = part.get_content()
    return text.replace("\r\n", "\n")


def find_days(site: RunningApp) -> dict[str, int]:
    rows = site.sql("SELECT sum(sent) AS sent, sum(refused) AS refused, sum(failed) AS failed FROM mail_days")
    return {name: number for name, number in dict(rows[0]).items() if number}


def test_a_digest_arrives_once(site: RunningApp, smtp: SmtpServer) -> None:
    site.set_site("reply_to", "office@example.org")
    site.set_site("mail_footer", "Town hall\nMarket 1")
    site.set_site("name", "Larkford über alles")
    add_event(site, "Choir ” concert\u2028.", website="https://choir.example/")
    add_follower(site, "anna@example.org", "search=choir")
    revision = find_revision(site)
    assert send_due(site, smtp.url) == {"sent": 1}
    [message] = smtp.messages
    assert (smtp.recipients, smtp.senders) == ([["anna@example.org"]], [SENDER])
    assert message["To"] == "anna@example.org"
    assert str(message["From"]) == f"Larkford über alles <{SENDER}>"
    assert message["Reply-To"] == "office@example.org"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert re.fullmatch(rf"<{BASE_URL}/follow/end/[\w-]+>", message["List-Unsubscribe"])
    assert message["List-Id"] == "<digests.site1.calendar.test>"
    assert message["Date"].datetime - utc_now() < timedelta(minutes=5)
    assert re.fullmatch(r"<[0-9a-f]{32}@calendar\.test>", message["Message-ID"])
    assert [part.get_content_type() for part in message.iter_parts()] == ["text/plain", "text/html"]
    text, html = read_part(message, "plain"), read_part(message, "html")
    for shown in (text, html):
        assert "Choir ” concert" in shown
        assert "Town hall\nMarket 1" in shown
        assert f"{BASE_URL}/follow/end/" in shown
        assert f"{BASE_URL}/event/choir-concert/" in shown
    assert "<!--footer-->" not in html
    assert html.rstrip().endswith("</html>")
    [row] = find_follows(site)
    assert (row["since"], row["next_at"] > utc_now() + timedelta(days=5)) == (revision, True)
    assert send_due(site, smtp.url) == {}
    assert (len(smtp.messages), find_days(site)) == (1, {"sent": 1})


def test_links_in_the_email_work(site: RunningApp, smtp: SmtpServer) -> None:
    add_event(site, "Concert")
    add_follower(site, "anna@example.org")
    send_due(site, smtp.url)
    text = read_part(smtp.messages[0], "plain")
    reader = Reader(site)
    end, manage = (path for path in re.findall(rf"{BASE_URL}(/follow/\S+)", text))
    assert "a…@example.org" in reader.page(manage).text
    assert reader.request("POST", end).status_code == 200
    assert find_follows(site) == []


def test_equal_lists_share_a_rendering(site: RunningApp, smtp: SmtpServer) -> None:
    add_event(site, "Concert")
    for number in range(30):
        add_follower(site, f"a{number}@example.org", language="" if number % 2 else "de")
        add_follower(site, f"b{number}@example.org", "search=concert")

    async def send(database: Database) -> tuple[DigestSender, dict[str, int]]:
        sender = make_sender(database, smtp.url)
        return sender, await sender.send_due()

    sender, result = site.run_with_database(send)
    assert (result, sender.cache.number) == ({"sent": 60}, 3)
    assert {to for (to,) in smtp.recipients} == {f"{kind}{n}@example.org" for kind in "ab" for n in range(30)}
    assert len({message["Message-ID"] for message in smtp.messages}) == 60
    assert sum("Demnächst" in read_part(message, "plain") or "COMING UP" in read_part(message, "plain")
               for message in smtp.messages) >= 45  # fmt: skip


def test_changes_between_two_digests(site: RunningApp, smtp: SmtpServer) -> None:
    event = add_event(site, "Concert", 3)
    add_follower(site, "anna@example.org")
    send_due(site, smtp.url)
    site.caller("editor").change("events", event["id"], **make_times(in_days(4)))
    site.sql("UPDATE follows SET next_at = date_trunc('hour', now())")
    send_due(site, smtp.url)
    assert "New time" not in read_part(smtp.messages[0], "plain")
    assert "New time; before: " in read_part(smtp.messages[1], "plain")
    assert smtp.messages[0]["Message-ID"] == smtp.messages[1]["Message-ID"]  # the same slot


@pytest.mark.parametrize(
    ("prepare", "is_planned"),
    [
        ("DELETE FROM events", True),
        ("UPDATE sites SET follow_by_email = false, revision = revision + 1", True),
        ("UPDATE follows SET next_at = now() - interval '13 hours', hour = date_part('hour', now() at time zone "
         "'Europe/London' - interval '13 hours')", True),
        ("UPDATE follows SET next_at = NULL, paused = true", False),
        ("UPDATE followers SET suppressed_at = now()", False),
    ],
)  # fmt: skip
def test_nothing_is_sent(site: RunningApp, smtp: SmtpServer, prepare: str, is_planned: bool) -> None:
    add_event(site, "Concert")
    add_follower(site, "anna@example.org")
    site.sql(prepare)
    assert send_due(site, smtp.url) == {}
    assert smtp.messages == []
    assert site.run_with_database(find_due) == [] or not is_planned


def test_a_list_that_is_no_longer_valid_fails_alone(site: RunningApp, smtp: SmtpServer) -> None:
    add_event(site, "Concert")
    add_follower(site, "anna@example.org", "geoloc_lat=x")
    add_follower(site, "bert@example.org")
    assert send_due(site, smtp.url) == {"sent": 1, "failed": 1}
    assert site.run_with_database(find_due) == []


# Refusals ------------------------------------------------------------------------------------------------


def refuse(smtp: SmtpServer, answer: str, step: str = "RCPT", start: str = "x") -> None:
    smtp.answer = lambda at, address: answer if at == step and address.startswith(start) else ""


def make_people(site: RunningApp, number: int, start: str = "x") -> None:
    add_event(site, "Concert")
    for index in range(number):
        add_follower(site, f"{start}{index}@example.org")


@pytest.mark.parametrize("code", ["5.1.1", "5.2.1", "5.1.10"])
def test_dead_addresses_are_suppressed(site: RunningApp, smtp: SmtpServer, code: str) -> None:
    make_people(site, 1)
    make_people(site, 2, "y")
    refuse(smtp, f"550 {code} <x0@example.org> is unknown")
    assert send_due(site, smtp.url) == {"sent": 2}
    dead = next(row for row in find_follows(site) if row["email"].startswith("x"))
    assert (dead["suppressed_at"], dead["refusals"], dead["refusal_code"]) == (None, 1, code)
    assert timedelta(minutes=59) < dead["next_at"] - utc_now() <= timedelta(hours=1)
    send_due(site, smtp.url, read_now=lambda: dead["next_at"])
    dead = next(row for row in find_follows(site) if row["email"].startswith("x"))
    assert (dead["suppressed_at"] is not None, dead["refusal_code"], dead["next_at"]) == (True, code, None)
    assert find_days(site) == {"sent": 2, "refused": 2}


def test_other_refusals_count_and_success_resets_them(site: RunningApp, smtp: SmtpServer) -> None:
    make_people(site, 1)
    numbers: list[int] = []
    for accepted in (False, False, True, False, False, False):
        refuse(smtp, "" if accepted else "550 mailbox full")
        site.sql("UPDATE follows SET next_at = date_trunc('hour', now())")
        send_due(site, smtp.url)
        [row] = find_follows(site)
        assert row["next_at"] is None or row["next_at"] > utc_now() + timedelta(days=1)
        numbers.append(row["refusals"])
    assert numbers == [1, 2, 0, 1, 2, 3]
    [row] = find_follows(site)
    assert (row["refusal_code"], row["suppressed_at"] is not None) == ("550", True)


@pytest.mark.parametrize("answer", ["550 5.7.1 relaying denied", "550 5.1.1 unknown"])
@pytest.mark.parametrize("seconds", [0.0, 1.0], ids=["at once", "slowly"])
def test_a_failing_relay_suppresses_nobody(
    site: RunningApp, smtp: SmtpServer, monkeypatch: pytest.MonkeyPatch, answer: str, seconds: float
) -> None:
    """Each run is a new sender, as with several workers."""
    monkeypatch.setattr("kalends.follow.jobs.MAX_SECONDS", 1.5)
    make_people(site, 60)

    def refuse_slowly(step: str, address: str) -> str:
        time.sleep(seconds if step == "RCPT" else 0)
        return answer if step == "RCPT" else ""

    smtp.answer = refuse_slowly
    while not site.sql("SELECT FROM mail_hours WHERE refused > 20"):
        assert send_due(site, smtp.url) == {}
    smtp.answer = lambda step, address: ""
    assert send_due(site, smtp.url) == {}  # The pause.
    assert {(row["suppressed_at"], row["refusals"]) for row in find_follows(site)} == {(None, 0)}
    assert smtp.messages == []
    site.sql("UPDATE follows SET next_at = date_trunc('hour', now())")
    site.sql("UPDATE mail_hours SET hour = hour - interval '2 hours'")
    assert send_due(site, smtp.url) == {"sent": 60}


def test_temporary_refusals_are_tried_again(site: RunningApp, smtp: SmtpServer) -> None:
    make_people(site, 1)
    refuse(smtp, "451 4.7.1 greylisted")
    assert send_due(site, smtp.url) == {}
    [row] = find_follows(site)
    assert timedelta(minutes=14) < row["next_at"] - utc_now() <= timedelta(minutes=15)
    assert (row["refusals"], row["since"]) == (0, None)


@pytest.mark.parametrize("step", ["MAIL", "DATA"])
def test_refused_messages_skip_the_slot(site: RunningApp, smtp: SmtpServer, step: str) -> None:
    make_people(site, 2)
    smtp.answer = lambda at, address: "554 5.6.0 spam" if at == step else ""
    assert send_due(site, smtp.url) == {"failed": 2}
    assert {(row["since"], row["refusals"]) for row in find_follows(site)} == {(None, 0)}
    assert (site.run_with_database(find_due), find_days(site)) == ([], {"failed": 2})


def test_an_absent_server_ends_the_run(site: RunningApp) -> None:
    make_people(site, 5)
    assert send_due(site, "smtp://127.0.0.1:1") == {}
    assert len(site.run_with_database(find_due)) == 5


@pytest.mark.parametrize("step", ["MAIL", "RCPT", "DATA"])
def test_a_server_that_ends_sessions_gets_the_same_email_later(site: RunningApp, smtp: SmtpServer, step: str) -> None:
    """Whether the email was accepted is unknown, and others must have their turn."""
    make_people(site, 6)
    refuse(smtp, "421 closing", step, start="" if step != "MAIL" else "cal")
    assert send_due(site, smtp.url) == {}
    waiting = [row["next_at"] - utc_now() for row in find_follows(site) if row["next_at"] > utc_now()]
    assert 1 <= len(waiting) <= 4
    assert all(timedelta(minutes=14) < wait <= timedelta(minutes=15) for wait in waiting)
    smtp.answer = lambda at, address: ""
    assert send_due(site, smtp.url) == {"sent": 6 - len(waiting)}


def test_one_email_that_cannot_be_made_stops_no_others(
    site: RunningApp, smtp: SmtpServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    make_people(site, 10)
    make = PreparedMessage.make_bytes

    def fail(message: PreparedMessage, recipient: Recipient, *others: Any) -> bytes:
        if recipient.email.startswith(("x1", "x3", "x5", "x7", "x9")):
            raise UnicodeEncodeError("ascii", recipient.email, 0, 1, "not made")
        return make(message, recipient, *others)

    monkeypatch.setattr(PreparedMessage, "make_bytes", fail)
    assert send_due(site, smtp.url) == {"sent": 5, "failed": 5}
    assert site.run_with_database(find_due) == []
    assert "UnicodeEncodeError" in caplog.text
    assert "@example.org" not in caplog.text


def test_links_of_an_international_host_are_ascii(site: RunningApp, smtp: SmtpServer) -> None:
    site.set_site("base_url", "https://kulturhaus-müller.example")
    make_people(site, 1)
    assert send_due(site, smtp.url) == {"sent": 1}
    assert smtp.messages[0]["List-Unsubscribe"].startswith("<https://xn--kulturhaus-mller-uzb.example/follow/end/")
