"""What the public form does against spam: the order of its checks, their limits, and what a refused post costs."""

import asyncio
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import httpx
import pytest

from kalends.core.times import utc_now
from kalends.media.adapters.library import Library
from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp
from tests.proposals.submission_client import ADD, EVENT, SENT, SETTINGS, Submitter, find_proposals, open_form
from tests.proposals.test_public_form import draw

BOT = {"company": "Acme"}


@pytest.fixture(scope="module")
def server(start_app_for_module: StartApp) -> RunningApp:
    return start_app_for_module(SETTINGS)


@pytest.fixture
def app(server: RunningApp) -> RunningApp:
    return open_form(server.add_site())


@pytest.fixture
def submitter(app: RunningApp) -> Submitter:
    return Submitter(app)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The pictures that are decoded from here on."""
    seen: list[int] = []
    shrink = Library.shrink_image

    async def note(self: Library, *arguments: Any) -> bytes:
        seen.append(1)
        return await shrink(self, *arguments)

    monkeypatch.setattr(Library, "shrink_image", note)
    return seen


def send_from(app: RunningApp, client_ip: str, email: str, **changes: Any) -> int:
    return Submitter(app, client_ip).send(email=email, **changes).status_code


def test_bots_get_the_usual_page(app: RunningApp, submitter: Submitter) -> None:
    response = submitter.send(**BOT)
    assert (response.status_code, response.headers["location"]) == (303, SENT)
    assert (find_proposals(app), app.sql("SELECT * FROM submitters"), app.jobs()) == ([], [], [])
    assert app.sql("SELECT * FROM login_failures") == []


@pytest.mark.parametrize("seconds", [0, 2, 24 * 3600 + 60])
def test_form_that_is_sent_too_early_or_late_comes_back(app: RunningApp, submitter: Submitter, seconds: int) -> None:
    response = submitter.send(wait=seconds)
    assert response.status_code == 400
    assert 'value="Choir concert"' in response.text
    assert "send it again" in response.text
    assert find_proposals(app) == []
    stamp = re.search(r'name="stamp" value="([^"]+)"', response.text)
    assert stamp
    assert submitter.post(ADD, {**EVENT, "stamp": stamp[1]}, wait=seconds + 5).status_code == 303


def test_forged_form_time_comes_back(app: RunningApp, submitter: Submitter) -> None:
    other = Submitter(open_form(app.add_site())).page(ADD).fields["stamp"][0]
    for stamp in ("", "1", "1.1", f"1.{'0' * 64}", other):
        assert submitter.post(ADD, {**EVENT, "stamp": stamp}).status_code == 400
    assert find_proposals(app) == []


def test_one_network_sends_five_and_then_one_every_ten_minutes(app: RunningApp) -> None:
    statuses = [send_from(app, "2001:db8::1" if n % 2 else "2001:db8::2", f"a{n}@d{n}.example") for n in range(6)]
    assert statuses == [303] * 5 + [429]
    response = Submitter(app, "2001:db8::3").send(email="x@y.example")
    assert 0 < int(response.headers["retry-after"]) <= 600
    assert "Try again later" in response.text
    assert send_from(app, "2001:db8:0:1::1", "b@c.example") == 303
    assert send_from(app, "2001:db8::1", "b@d.example", wait=605) == 303
    assert send_from(app, "2001:db8::1", "b@e.example", wait=605) == 429


def test_one_address_gets_three_emails(app: RunningApp, submitter: Submitter) -> None:
    spellings = ("anna@example.org", "Anna@Example.org", "ANNA@EXAMPLE.ORG", "anna@example.org")
    assert [send_from(app, f"192.0.2.{n}", email) for n, email in enumerate(spellings)] == [303] * 3 + [429]
    assert len(submitter.receive()) == 3
    assert send_from(app, "192.0.2.9", "anna@example.org", wait=1205) == 303


def test_one_mail_domain_and_one_site_have_limits(app: RunningApp) -> None:
    statuses = [send_from(app, f"192.0.2.{n}", f"a{n}@example.org") for n in range(21)]
    assert statuses == [303] * 20 + [429]
    statuses = [send_from(app, f"198.51.100.{n}", f"a@d{n}.example") for n in range(41)]
    assert statuses == [303] * 40 + [429]
    other = open_form(app.add_site())
    assert send_from(other, "192.0.2.1", "a1@example.org") == 303


def test_mistakes_and_duplicates_do_not_count(app: RunningApp, submitter: Submitter) -> None:
    app.caller("editor").create(
        "events", title="Choir concert", start_date="2031-05-05 19:00", end_date="2031-05-05 21:00"
    )
    for _ in range(6):
        assert submitter.send(title="").status_code == 400
        assert submitter.send().status_code == 200
    assert submitter.send(title="Other").status_code == 303


def test_limits_store_no_address(app: RunningApp, submitter: Submitter) -> None:
    submitter.send()
    subjects = " ".join(row["subject"] for row in app.sql("SELECT subject FROM login_failures"))
    assert subjects
    assert "anna" not in subjects
    assert "example" not in subjects


def test_refused_posts_cost_little(
    app: RunningApp, submitter: Submitter, statements: list[str], decoded: list[int]
) -> None:
    picture = draw(100, 100)
    for number in range(5):
        assert send_from(app, "192.0.2.1", f"a{number}@d{number}.example") == 303
    form = submitter.page(ADD).form(**EVENT, company=None)
    stamp = form["stamp"]
    app.sql("INSERT INTO submitters (site_id, id, email, last_seen_at, blocked_at) "
            "SELECT id, gen_random_uuid(), 'spam@example.org', now(), now() FROM sites")  # fmt: skip
    for changes, status in (
        (BOT, 303), ({"email": "spam@example.org"}, 303), ({"stamp": "x"}, 400), ({"note": "http://x " * 6}, 400),
        ({}, 429),
    ):  # fmt: skip
        del statements[:]
        assert submitter.post(ADD, {**form, "stamp": stamp, **changes}, picture).status_code == status
        assert len(statements) <= 8, statements
    assert decoded == []


def test_small_attack_leaves_little(app: RunningApp, decoded: list[int], report: Callable[[object], None]) -> None:
    """A burst of posts from 100 networks; `just bench-submissions` sends 5,000 to a real server."""
    form = Submitter(app).page(ADD).form(**EVENT, company=None)
    picture, events = draw(1200, 800), app.sql("SELECT count(*) FROM events")
    revision, moment = app.sql("SELECT revision FROM sites"), utc_now() + timedelta(seconds=5)
    limit = asyncio.Semaphore(20)

    async def send(number: int) -> int:
        email = "victim@example.org" if number % 5 == 0 else f"a{number}@d{number % 40}.example"
        caller = app.caller()
        caller.client_ip = f"10.0.{number % 100}.1"
        content = picture if number % 10 == 0 else b""
        data = {**form, "title": f"Offer {number}", "email": email}
        async with limit:
            response: httpx.Response = await caller.request_async(
                "POST", f"/{ADD}", data=data, files={"file": ("p.jpg", content)}
            )
        return response.status_code

    async def attack() -> list[int]:
        return await asyncio.gather(*[send(number) for number in range(300)])

    with patch("kalends.asgi.utc_now", lambda: moment):
        statuses = app.run(attack())
    rows = find_proposals(app)
    report(f"{len(rows)} of {len(statuses)} posts stored, {len(decoded)} pictures decoded")
    assert set(statuses) == {303, 429}
    assert len(rows) == statuses.count(303) == 60
    assert sum(row["email"] == "victim@example.org" for row in rows) == 3
    assert len(app.jobs("send_proposal_email")) == 60
    assert len(decoded) <= 60
    assert app.sql("SELECT count(*) FROM events") == events
    assert app.sql("SELECT revision FROM sites") == revision
