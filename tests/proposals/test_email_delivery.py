"""Emails about proposals through a worker and a real SMTP server."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp
from tests.console.smtp_server import SmtpServer, run_smtp_server
from tests.lifecycle.processes import Worker, wait_until
from tests.proposals.submission_client import Submitter, find_proposals, open_form
from tests.soak import SOAK

BASE_URL = "https://calendar.test"
KILLS = 20 if SOAK else 3


@pytest.fixture
def smtp() -> Iterator[SmtpServer]:
    with run_smtp_server() as server:
        yield server


@pytest.fixture
def settings(smtp: SmtpServer) -> dict[str, str]:
    return {"KALENDS_SMTP_URL": smtp.url, "KALENDS_BASE_URL": BASE_URL}


@pytest.fixture
def app(start_single_site: StartApp, settings: dict[str, str]) -> RunningApp:
    return open_form(start_single_site(settings))


def test_link_arrives_and_works(app: RunningApp, smtp: SmtpServer, settings: dict[str, str], tmp_path: Path) -> None:
    submitter = Submitter(app)
    with Worker.start(app.database_url, tmp_path / "log", settings):
        assert submitter.send().status_code == 303
        wait_until(lambda: len(smtp.messages) == 1, 60)
        assert smtp.recipients == [["anna@example.org"]]
        link = re.search(rf"{BASE_URL}(/submission/\S+)", smtp.messages[0].get_content())
        assert link
        assert submitter.press(link[1], "confirm").status_code == 303
        assert find_proposals(app)[0]["state"] == "waiting"
        wait_until(lambda: not app.jobs("send_proposal_email"), 60)


def test_killed_workers_lose_no_email(
    app: RunningApp, smtp: SmtpServer, settings: dict[str, str], tmp_path: Path
) -> None:
    """Every sender gets a link that works, however often a worker dies while it sends."""
    for number in range(KILLS):
        submitter = Submitter(app, f"192.0.2.{number}")
        assert submitter.send(title=f"Concert {number}", email=f"s{number}@d{number}.example").status_code == 303
    for _ in range(KILLS):
        known = len(smtp.messages)
        worker = Worker.start(app.database_url, tmp_path / "log", settings)
        wait_until(lambda: len(smtp.messages) > known or not app.jobs("send_proposal_email"), 60)  # noqa: B023
        worker.kill()
    with Worker.start(app.database_url, tmp_path / "log", settings):
        wait_until(lambda: not app.jobs("send_proposal_email"), 120)
    links = {
        smtp.recipients[number][0]: re.findall(rf"{BASE_URL}(/submission/\S+)", message.get_content())[0]
        for number, message in enumerate(smtp.messages)
    }
    assert set(links) == {f"s{number}@d{number}.example" for number in range(KILLS)}
    for link in links.values():
        assert Submitter(app).press(link, "confirm").status_code == 303
    assert {row["state"] for row in find_proposals(app)} == {"waiting"}
