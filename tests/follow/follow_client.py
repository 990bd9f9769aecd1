"""A person who follows lists, and the sender, without a worker or a browser."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import httpx

from kalends.core.times import local_of, utc_now
from kalends.follow import storage
from kalends.follow.jobs import DigestSender
from kalends.follow.mails.link_mail import send_link_mail
from kalends.follow.mails.rendering_cache import Mailbox
from kalends.follow.operations.digest_content import DigestContent, read_digest
from kalends.follow.operations.followings import make_reader_context
from kalends.follow.rules.slots import Slot
from kalends.store.database import Database
from kalends.store.sites import Site
from tests.api.running_app import RunningApp
from tests.console.console_client import Page
from tests.console.smtp_server import SmtpServer

BASE_URL = "https://calendar.test"
SETTINGS = {"KALENDS_SMTP_URL": "smtp://localhost:1", "KALENDS_BASE_URL": BASE_URL}
FOLLOW = "/follow/"
SENDER = "calendar@calendar.test"
FIELDS = {"email": "anna@example.org", "rhythm": "weekly", "weekday": "4", "hour": "18"}
LINK = re.compile(rf"{BASE_URL}(/follow/[\w./?=-]+)")
NOW = utc_now()


def open_following(app: RunningApp) -> RunningApp:
    app.set_site("follow_by_email", "on")
    app.set_site("timezone", "Europe/London")
    return app


def make_times(start: datetime, hours: int = 2) -> dict[str, str]:
    return {"start_date": f"{start:%Y-%m-%d %H:%M}", "end_date": f"{start + timedelta(hours=hours):%Y-%m-%d %H:%M}"}


def in_days(days: float) -> datetime:
    """Return a time at noon, some days from now."""
    return (NOW + timedelta(days=days)).replace(hour=12, minute=0, second=0)


def add_event(app: RunningApp, title: str, days: float = 2, **fields: Any) -> dict[str, Any]:
    return app.caller("editor").create("events", title=title, **{**make_times(in_days(days)), **fields})


def find_revision(app: RunningApp) -> int:
    revision: int = app.sql("SELECT revision FROM sites WHERE id = $1", app.site_id)[0][0]
    return revision


def read_content(app: RunningApp, query: str = "", since: int | None = None, days: int = 7) -> DigestContent:
    """Read a digest whose window begins now."""

    async def read(database: Database) -> DigestContent:
        async with database.transaction(app.site_id, utc_now(), writing=False) as tx:
            slot = Slot(tx.now, tx.now + timedelta(days=days))
            return await read_digest(make_reader_context(tx, BASE_URL), query, slot, since)

    return app.run_with_database(read)


def add_follower(
    app: RunningApp, email: str, query: str = "", *, language: str = "", since: int | None = None, due: bool = True
) -> None:
    """Add a person with a confirmed list whose weekly digest is due since the full hour, or tomorrow."""
    now = utc_now()
    local = local_of(now, "Europe/London")
    app.sql(
        """WITH p AS (INSERT INTO followers (site_id, id, email, key, language)
                VALUES ($1, gen_random_uuid(), $2, uuid_send(gen_random_uuid()), $3) RETURNING site_id, id)
            INSERT INTO follows (site_id, id, follower_id, query, rhythm, weekday, hour, since, confirmed_at, next_at,
                created_at)
            SELECT p.site_id, gen_random_uuid(), p.id, $4, 'weekly', $5, $6, $7, $8, $9, $8 FROM p""",
        *(app.site_id, email, language, query, local.isoweekday(), local.hour, since),
        *(now, now.replace(minute=0, second=0) if due else now + timedelta(days=1)),
    )


def add_people(app: RunningApp, number: int, *, due: bool = True) -> None:
    """Add one more person than this number, who all follow the same list."""
    add_follower(app, "p0@example.org", due=due)
    app.sql(
        """WITH p AS (INSERT INTO followers (site_id, id, email, key)
                SELECT 1, gen_random_uuid(), 'p' || n || '@example.org', uuid_send(gen_random_uuid())
                FROM generate_series(1, $1::integer) n RETURNING site_id, id)
            INSERT INTO follows (site_id, id, follower_id, query, rhythm, weekday, hour, confirmed_at, next_at,
                created_at)
            SELECT p.site_id, gen_random_uuid(), p.id, f.query, f.rhythm, f.weekday, f.hour, f.confirmed_at,
                f.next_at, f.created_at FROM p CROSS JOIN (SELECT * FROM follows LIMIT 1) f""",
        number,
    )


def find_follows(app: RunningApp) -> list[dict[str, Any]]:
    rows = app.sql(
        """SELECT f.id::text, p.email, f.query, f.event_id, f.known::text, f.rhythm, f.weekday, f.hour, f.since,
                f.confirmed_at, f.paused,
                f.next_at, p.suppressed_at, p.refusals, p.refusal_code
            FROM follows f JOIN followers p ON p.site_id = f.site_id AND p.id = f.follower_id
            ORDER BY p.email, f.query, f.event_id"""
    )
    return [dict(row) for row in rows]


def make_sender(database: Database, smtp_url: str, **options: Any) -> DigestSender:
    def find_sender(site: Site) -> str:
        return SENDER

    return DigestSender(database, smtp_url, Mailbox(BASE_URL, find_sender), **options)


def send_due(app: RunningApp, smtp_url: str, **options: Any) -> Counter[str]:
    return app.run_with_database(lambda database: make_sender(database, smtp_url, **options).send_due())


async def find_due(database: Database, now: datetime | None = None) -> Sequence[Any]:
    return await storage.find_due(database, now or datetime.now(UTC), 500)


@dataclass
class Email:
    to: str
    subject: str
    text: str

    @property
    def link(self) -> str:
        found = LINK.search(self.text)
        assert found, self.text
        return found[1]


@dataclass
class Reader:
    """Someone without an account."""

    app: RunningApp
    client_ip: str = "192.0.2.1"
    emails: list[Email] = field(default_factory=list[Email])

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        options["headers"] = {"accept": "text/html", **options.get("headers", {})}
        caller = self.app.caller()
        caller.client_ip = self.client_ip
        return caller.request(method, f"/{path}", **options)

    def page(self, path: str, status: int = 200) -> Page:
        response = self.request("GET", path)
        assert response.status_code == status, f"{response.status_code}: {response.text[:1500]}"
        return Page.parse(response.text)

    def follow(self, path: str = FOLLOW, **fields: str) -> httpx.Response:
        return self.request("POST", path, data={**FIELDS, **fields})

    def press(self, path: str, action: str, **fields: str) -> httpx.Response:
        return self.request("POST", path, data={"action": action, **fields})

    def receive(self) -> list[Email]:
        """Run the jobs for emails, as the worker would, and return the new emails."""
        known, jobs = len(self.emails), self.app.jobs("send_follow_email")

        async def deliver(site: Site, to: str, subject: str, text: str) -> None:
            self.emails.append(Email(to, subject, text))

        async def run(database: Database) -> None:
            for job in jobs:
                await send_link_mail(database, deliver, BASE_URL, self.app.site_id, job["args"]["follower_id"])

        self.app.run_with_database(run)
        self.app.remove_jobs(jobs)
        return self.emails[known:]

    def confirm(self, path: str = FOLLOW, **fields: str) -> str:
        """Follow a list or events and confirm; return the path of the page in the email."""
        response = self.follow(path, **fields)
        assert response.status_code == 200, response.text
        (email,) = self.receive()
        waiting = next(row for row in find_follows(self.app) if row["email"] == email.to and not row["confirmed_at"])
        assert self.press(email.link, "confirm", follow=waiting["id"]).status_code == 303
        return email.link


@contextmanager
def acting(site: RunningApp, smtp: SmtpServer, act: Callable[[RunningApp, str], None]) -> Iterator[None]:
    """Call a function with a second application and the address whenever the sender has named a recipient.

    It runs in another thread, before the sender's last check.
    """
    with site.twin(SETTINGS) as twin, ThreadPoolExecutor(1) as executor:
        known = smtp.answer

        def answer(step: str, address: str) -> str:
            if step == "RCPT":
                executor.submit(act, twin, address).result()
            return known(step, address)

        smtp.answer = answer
        yield
        smtp.answer = known


def at(moment: datetime) -> Any:
    """Let requests happen at another time."""
    return patch("kalends.asgi.utc_now", lambda: moment)
