"""The sender in a worker that is killed, and confirmations that do not wait for digests."""

import time
from collections import Counter
from pathlib import Path

from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp
from tests.console.smtp_server import SmtpServer
from tests.follow.follow_client import (
    BASE_URL,
    LINK,
    Reader,
    add_event,
    add_people,
    find_follows,
    find_revision,
    open_following,
)
from tests.lifecycle.processes import Worker, wait_until
from tests.soak import scaled

PEOPLE = scaled(400, 5_000)
KILLS = scaled(2, 50)
CONFIRMATIONS = scaled(3, 50)
MANY = scaled(400, 100_000)


def make_settings(smtp: SmtpServer) -> dict[str, str]:
    return {"KALENDS_SMTP_URL": smtp.url, "KALENDS_BASE_URL": BASE_URL}


def start_site(start_single_site: StartApp, smtp: SmtpServer, people: int) -> RunningApp:
    site = open_following(start_single_site(make_settings(smtp)))
    add_event(site, "Concert")
    add_people(site, people - 1)
    return site


def answer_slowly(step: str, address: str) -> str:
    time.sleep(0.01)
    return ""


def test_killed_workers_forget_nobody_and_repeat_little(
    start_single_site: StartApp, smtp: SmtpServer, tmp_path: Path
) -> None:
    site = start_site(start_single_site, smtp, PEOPLE)
    smtp.answer = answer_slowly
    for _ in range(KILLS):
        known = len(smtp.messages)
        worker = Worker.start(site.database_url, tmp_path / "log", make_settings(smtp))
        wait_until(lambda: len(smtp.messages) > known + 20, 120)  # noqa: B023
        worker.kill()
    with Worker.start(site.database_url, tmp_path / "log", make_settings(smtp)):
        revision = find_revision(site)
        wait_until(lambda: {row["since"] for row in find_follows(site)} == {revision}, scaled(180, 900), step=1)
    sent = Counter(to for (to,) in smtp.recipients)
    assert set(sent) == {f"p{number}@example.org" for number in range(PEOPLE)}
    assert sum(sent.values()) - len(sent) <= 4 * KILLS
    ids: dict[str, set[str]] = {}
    for (to,), message in zip(smtp.recipients, smtp.messages, strict=True):
        ids.setdefault(to, set()).add(message["Message-ID"])
    assert {len(found) for found in ids.values()} == {1}


def test_confirmations_overtake_digests(start_single_site: StartApp, smtp: SmtpServer, tmp_path: Path) -> None:
    site = start_site(start_single_site, smtp, MANY)
    smtp.answer = answer_slowly
    with Worker.start(site.database_url, tmp_path / "log", make_settings(smtp)):
        wait_until(lambda: len(smtp.messages) > 10, 90)
        started = time.monotonic()
        for number in range(CONFIRMATIONS):
            assert Reader(site, f"192.0.2.{number}").follow(email=f"new{number}@example.org").status_code == 200
        wait_until(lambda: sum(to.startswith("new") for (to,) in smtp.recipients) == CONFIRMATIONS, 60, step=0.1)
        seconds = time.monotonic() - started
        assert len(smtp.messages) < MANY
    found = [message for (to,), message in zip(smtp.recipients, smtp.messages, strict=True) if to.startswith("new")]
    assert LINK.search(found[0].get_content())
    assert seconds < 5 + CONFIRMATIONS / 10
