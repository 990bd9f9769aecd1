"""A proposal changes nothing until it is accepted: no revision, ID, record, log entry or cached response."""

from collections.abc import Callable
from typing import Any

import pytest

from kalends.proposals.rules import ORIGINS, STATES, Origin
from tests.api.running_app import RunningApp, expect_json
from tests.proposals.proposals_client import (
    ENDS_AT,
    EVENT,
    ProposalsClient,
    age_one,
    find_row,
    send_draft,
    take_picture_of,
)

DATES = {"start_date": "2031-01-01", "end_date": "2032-01-01"}
VALUES = {**EVENT, "title": "Other", "venue": {"venue": "New hall"}, "organizer": {"organizer": "New choir"}}


@pytest.fixture
def app(start_app: Callable[[], RunningApp]) -> RunningApp:
    return start_app()


@pytest.mark.parametrize("is_change", [False, True], ids=["new", "change"])
@pytest.mark.parametrize("origin", ORIGINS)
def test_nothing_happens_early(app: RunningApp, origin: Origin, is_change: bool) -> None:
    sender, desk = (ProposalsClient(app.caller(role)) for role in ("contributor", "editor"))
    event = desk.caller.create("events", **EVENT)
    fields = {"record_id": event["id"], "base_revision": desk.revision(event["id"])} if is_change else {}
    cached, before = read_cached(app, event), take_picture_of(app)
    states: set[str] = set()

    def check(proposal: Any, state: str) -> None:
        row = find_row(app, proposal["id"])
        assert row is not None
        assert row["state"] == state
        assert take_picture_of(app) == before, state
        assert read_cached(app, event) == cached, state
        states.add(state)

    def send(state: str = "waiting") -> dict[str, str]:
        proposal = {"id": send_draft(app, origin, values=VALUES, state=state, **fields)}
        check(proposal, state)
        return proposal

    age_one(app, send("unconfirmed")["id"], ENDS_AT)
    ending = send()
    age_one(app, ending["id"], ENDS_AT)
    check(ending, "expired")
    proposal = send()
    desk.send_back(proposal)
    check(proposal, "returned")
    desk.undo(proposal)
    check(proposal, "waiting")
    desk.reject(proposal)
    check(proposal, "rejected")
    desk.undo(proposal)
    if origin != "public":
        desk.send_back(proposal)
        expect_json(sender.edit(proposal, note="Sorry", values={**VALUES, "cost": "8"}))
        check(proposal, "waiting")
        expect_json(sender.withdraw(proposal))
        check(proposal, "withdrawn")
        proposal = send()
    assert states == set(STATES) - {"accepted"} - ({"withdrawn"} if origin == "public" else set())
    # The same looks notice what acceptance does.
    desk.accept(proposal)
    after = read_cached(app, event)
    assert take_picture_of(app) != before
    assert all(after[url] != cached[url] for url in ("/events", "/venues", "//events/month/2031-05/"))


def read_cached(app: RunningApp, event: Any) -> dict[str, tuple[int, bytes, str | None]]:
    """Return responses that anonymous callers get, from the cache if they have not changed."""
    found: dict[str, tuple[int, bytes, str | None]] = {}
    for url in ("/events", f"/events/{event['id']}", "/venues", "/tags", "//events/month/2031-05/", "//feed/"):
        response = app.caller().get(url, DATES if url == "/events" else None)
        found[url] = (response.status_code, response.content, response.headers.get("etag"))
    return found
