"""An event that is withdrawn and rewritten discloses neither its new dates nor its new words in feeds."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.api.running_app import Caller, RunningApp

EVENT = {
    "title": "Party Grue",
    "description": "Dancing",
    "start_date": "2031-03-29 19:30:00",
    "end_date": "2031-03-29 22:00:00",
}
WITHDRAWALS: dict[str, dict[str, Any]] = {
    "private": {"status": "private"},
    "draft": {"status": "draft"},
    "trash": {"status": "trash"},
    "future": {"status": "future", "date_utc": "2031-01-01 00:00:00"},
}
SECRET_CHANGES: dict[str, dict[str, Any]] = {
    "date": {"start_date": "2031-06-07 03:00:00", "end_date": "2031-06-07 04:00:00"},
    "title": {"title": "Frobozz merger"},
    "description": {"description": "A merger with Frobozz"},
    # Beyond the three of the finding: whatever a feed can be filtered by.
    "category": {"categories": ["Frobozz"]},
    "venue": {"venue": {"venue": "Frobozz hall"}},
    "slug": {"slug": "frobozz"},
    "flag": {"featured": True},
}


@pytest.fixture(scope="module")
def app(start_app_for_module: Callable[..., RunningApp]) -> RunningApp:
    return start_app_for_module()


def read_feed(app: RunningApp, path: str, query: str = "") -> str:
    """A feed; "" where there is none."""
    status, _, content = app.raw("GET", path, query=query.encode())
    assert status in (200, 404), content
    return content.decode() if status == 200 else ""


def withdraw(editor: Caller, event: dict[str, Any], way: str, secret: str, *, at_once: bool) -> None:
    path = f"/events/{event['id']}"
    steps = (
        [{**WITHDRAWALS[way], **SECRET_CHANGES[secret]}] if at_once else [WITHDRAWALS[way], SECRET_CHANGES[secret]]
    )
    for step in steps:
        response = editor.patch(path, step)
        assert response.status_code == 200, response.text


@pytest.mark.quick("private-date-one write", "future-flag-two writes")
@pytest.mark.parametrize("at_once", [True, False], ids=["one write", "two writes"])
@pytest.mark.parametrize("secret", SECRET_CHANGES)
@pytest.mark.parametrize("way", WITHDRAWALS)
def test_withdrawn_event_discloses_no_new_content(app: RunningApp, way: str, secret: str, at_once: bool) -> None:
    editor = app.caller("editor")
    event = editor.create("events", **EVENT)
    queries = ["", "search=Frobozz", "start_date=2031-06-01&end_date=2031-06-30", "featured=1", "categories=frobozz"]
    if venues := editor.ids("venues"):
        queries.append(f"venue={venues[0]}")
    assert event["uid"] in read_feed(app, "/events.ics")
    withdraw(editor, event, way, secret, at_once=at_once)
    feeds = [read_feed(app, "/events.ics", query) for query in queries]
    feeds += [read_feed(app, f"/event/{slug}.ics") for slug in (event["slug"], "frobozz")]
    for feed in feeds[:1] + feeds[-2:]:
        assert "0607T" not in feed
        assert "robozz" not in feed
    # Found by what is secret is disclosure, too.
    assert not any(event["uid"] in feed for feed in [*feeds[1:-2], feeds[-1]])


@pytest.mark.parametrize("way", WITHDRAWALS)
def test_withdrawal_is_announced(app: RunningApp, way: str) -> None:
    editor = app.caller("editor")
    event = editor.create("events", **EVENT)
    assert editor.patch(f"/events/{event['id']}", WITHDRAWALS[way]).status_code == 200
    for path, query in (("/events.ics", "search=grue"), (f"/event/{event['slug']}.ics", "")):
        feed = read_feed(app, path, query)
        assert event["uid"] in feed
        assert "STATUS:CANCELLED" in feed
        assert "DTSTART:20310329T193000Z" in feed


def test_trashing_withdrawn_event_is_still_announced(app: RunningApp) -> None:
    editor = app.caller("editor")
    event = editor.create("events", **EVENT)
    editor.change("events", event["id"], status="draft")
    editor.trash("events", event["id"])
    assert "STATUS:CANCELLED" in read_feed(app, f"/event/{event['slug']}.ics")
    editor.change("events", event["id"], status="publish")
    assert "STATUS:CONFIRMED" in read_feed(app, f"/event/{event['slug']}.ics")
