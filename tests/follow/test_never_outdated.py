"""No digest states what no longer holds: whatever changes before the last check is in the email."""

import random
import re
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from kalends.core.times import utc_now
from kalends.follow.mails.digest_formats import to_text
from kalends.follow.mails.digest_model import Reader as DigestReader, make_digest
from kalends.follow.operations.digest_content import read_digest
from kalends.follow.operations.followings import make_reader_context, read_rhythm
from kalends.follow.rules.slots import find_slot
from kalends.store.database import Database
from tests.api.running_app import RunningApp
from tests.console.smtp_server import SmtpServer
from tests.follow.follow_client import (
    BASE_URL,
    acting,
    add_event,
    add_follower,
    find_revision,
    in_days,
    make_sender,
    make_times,
    send_due,
)
from tests.follow.test_sender import make_people, read_part
from tests.soak import scaled

EMAILS = scaled(40, 1_000)  # per seed
EVENTS = 8


def test_people_who_end_get_no_email_whose_check_comes_later(site: RunningApp, smtp: SmtpServer) -> None:
    make_people(site, 8)
    ending = {"x3@example.org", "x5@example.org"}

    def end(twin: RunningApp, address: str) -> None:
        if address in ending:
            with psycopg.connect(site.database_url) as connection:
                connection.execute("DELETE FROM followers WHERE email = %s", [address])

    with acting(site, smtp, end):
        assert send_due(site, smtp.url) == {"sent": 6}
    assert not {to for (to,) in smtp.recipients} & ending


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE follows SET paused = true, next_at = NULL",
        "UPDATE followers SET suppressed_at = now()",
        "UPDATE follows SET next_at = next_at + interval '1 day'",
        "UPDATE follows SET hour = 23 - hour",
    ],
)
def test_changed_follows_are_not_served(site: RunningApp, smtp: SmtpServer, change: str) -> None:
    make_people(site, 1)

    def act(twin: RunningApp, address: str) -> None:
        with psycopg.connect(site.database_url) as connection:
            connection.execute(change)

    with acting(site, smtp, act):
        assert send_due(site, smtp.url) == {}
    assert smtp.messages == []


def test_an_edit_before_the_check_is_in_the_email(site: RunningApp, smtp: SmtpServer) -> None:
    event = add_event(site, "Concert")
    add_follower(site, "x@example.org")
    edits: list[str] = []

    def cancel(twin: RunningApp, address: str) -> None:
        if not edits:
            edits.append(address)
            twin.caller("editor").change("events", event["id"], event_status="cancelled")

    with acting(site, smtp, cancel):
        assert send_due(site, smtp.url) == {"sent": 1}
    assert "Cancelled" in read_part(smtp.messages[0], "plain")


Edit = Callable[[RunningApp, int, random.Random], Any]


def _change(**fields: Any) -> Edit:
    return lambda app, event_id, _: app.caller("editor").patch(f"/events/{event_id}", fields)


def _move(app: RunningApp, event_id: int, dice: random.Random) -> None:
    app.caller("editor").patch(f"/events/{event_id}", make_times(in_days(dice.choice((1, 2, 4, 6, 9, 20)))))


def _rename_place(app: RunningApp, _: int, dice: random.Random) -> None:
    venue = app.caller("editor").page("venues")["venues"][0]
    app.caller("editor").change("venues", venue["id"], venue=f"Hall {dice.random()}")


def _add(app: RunningApp, _: int, dice: random.Random) -> None:
    add_event(app, f"New concert {dice.random()}", dice.choice((2, 15)), categories=["music"])


EDITS: list[Edit] = [
    _move,
    _move,
    _add,
    _rename_place,
    _change(event_status="cancelled", status_reason="Illness"),
    _change(event_status="scheduled"),
    _change(event_status="moved_online"),
    _change(title="Another title"),
    _change(description="Text that no email shows"),
    _change(categories=["music"]),
    _change(categories=["theatre"]),
    _change(venue=[]),
    _change(status="draft"),
    _change(status="publish"),
    _change(hide_from_listings=True),
    _change(hide_from_listings=False),
    _change(new_password="secret-word"),
    _change(new_password=""),
    lambda app, event_id, _: app.caller("editor").delete(f"/events/{event_id}"),
    lambda app, event_id, _: app.caller("editor").post(f"//api/kalends/v1/events/{event_id}/restore"),
    lambda app, _, dice: app.set_site("name", f"Calendar {dice.randrange(100)}"),
    lambda app, _, dice: app.set_site("mail_footer", f"Footer {dice.randrange(100)}"),
]


def render(app: RunningApp, row: dict[str, Any]) -> str:
    """Render a digest as text, independently of the sender; empty if there is nothing to say."""

    async def read(database: Database) -> str:
        async with database.transaction(app.site_id, utc_now(), writing=False) as tx:
            slot = find_slot(read_rhythm(row), row["next_at"], tx.site.timezone)
            content = await read_digest(make_reader_context(tx, BASE_URL), row["query"], slot, row["since"])
            reader = DigestReader.make(tx.site, "en", BASE_URL)
            return "" if content.is_empty else to_text(make_digest(content, row["query"], slot, reader))

    return app.run_with_database(read)


@pytest.mark.parametrize("seed", range(scaled(2, 10)))
def test_every_email_equals_a_rendering_at_its_check(site: RunningApp, smtp: SmtpServer, seed: int) -> None:
    dice = random.Random(seed)
    categories = {name: site.caller("editor").create("categories", name=name)["id"] for name in ("music", "theatre")}
    site.caller("editor").create("venues", venue="Old mill")
    venue = site.caller("editor").page("venues")["venues"][0]["id"]
    events = [
        add_event(site, f"Concert {number}", dice.choice((1, 2, 4, 6, 12)), categories=["music"], venue=[venue])["id"]
        for number in range(EVENTS)
    ]
    queries = ["", f"categories={categories['music']}", "search=concert", f"venue={venue}"]
    since = find_revision(site)
    for number in range(EMAILS // 2):
        add_follower(site, f"r{number}@example.org", dice.choice(queries), since=dice.choice((None, since)))
    expected: dict[str, str] = {}

    def act(twin: RunningApp, address: str) -> None:
        if dice.random() < 0.4:
            dice.choice(EDITS)(twin, dice.choice(events), dice)
        [row] = twin.sql(
            """SELECT f.query, f.rhythm, f.weekday, f.hour, f.since, f.next_at FROM follows f
                JOIN followers p ON p.site_id = f.site_id AND p.id = f.follower_id WHERE p.email = $1""",
            address,
        )
        expected[address] = render(twin, dict(row))

    async def send(database: Database) -> int:
        return (await make_sender(database, smtp.url, connections=1).send_due())["sent"]

    with acting(site, smtp, act):
        for _ in range(2):
            sent = 0
            while more := site.run_with_database(send):
                sent += more
            assert sent == len(smtp.messages) > EMAILS // 4
            for (address,), message in zip(smtp.recipients, smtp.messages, strict=True):
                text = read_part(message, "plain")
                assert re.split(r"\n-- \n", text)[0] == expected[address], address
            smtp.messages.clear()
            smtp.recipients.clear()
            # The second digest of everyone has changes since the first one.
            site.sql("UPDATE follows SET next_at = date_trunc('hour', now())")
