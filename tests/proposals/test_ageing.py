"""What time does to proposals: they expire with their event, and lose their data or vanish after a while."""

from datetime import timedelta
from typing import Any

import pytest

from tests.api.running_app import RunningApp
from tests.media.image_fixtures import make_image
from tests.proposals.proposals_client import (
    ENDS_AT,
    EVENT,
    ProposalsClient,
    add_picture,
    age,
    find_row,
    later,
    send_draft,
)

DAY = timedelta(days=1)


@pytest.fixture
def app(start_single_site: Any) -> RunningApp:
    """A database of its own, because the job looks at all sites."""
    return start_single_site()


@pytest.fixture
def sender(app: RunningApp) -> ProposalsClient:
    return ProposalsClient(app.caller("contributor"))


@pytest.fixture
def desk(app: RunningApp) -> ProposalsClient:
    return ProposalsClient(app.caller("editor"))


def state_of(app: RunningApp, proposal: Any) -> str | None:
    row = find_row(app, proposal["id"])
    return row["state"] if row else None


def test_waiting_and_returned_expire_when_the_event_is_over(
    app: RunningApp, sender: ProposalsClient, desk: ProposalsClient
) -> None:
    event = desk.caller.create("events", **EVENT)
    new, change, returned = sender.propose(), sender.propose_change(event, title="New"), sender.propose()
    desk.send_back(returned)
    for moment in (later(days=2), ENDS_AT - 31 * DAY):
        age(app, moment)
        assert [state_of(app, row) for row in (new, change)] == ["waiting", "waiting"]
    assert state_of(app, returned) is None  # after 30 days
    age(app, ENDS_AT - timedelta(seconds=1))
    assert state_of(app, change) == "waiting"
    age(app, ENDS_AT)
    assert [state_of(app, row) for row in (new, change)] == ["expired", "expired"]
    age(app, ENDS_AT + 29 * DAY)
    assert state_of(app, new) == "expired"
    age(app, ENDS_AT + 30 * DAY)
    assert [state_of(app, row) for row in (new, change)] == [None, None]


def test_change_of_a_deleted_event_expires(app: RunningApp, sender: ProposalsClient, desk: ProposalsClient) -> None:
    first, second = (desk.caller.create("events", **EVENT) for _ in range(2))
    trashed, returned = sender.propose_change(first, title="New"), sender.propose_change(second, title="New")
    desk.send_back(returned)
    desk.caller.trash("events", first["id"])
    app.sql("DELETE FROM events WHERE id = $1", second["id"])
    age(app, later(days=1, minutes=1))
    assert [state_of(app, row) for row in (trashed, returned)] == ["expired", "expired"]


def test_postponement_waits_for_the_later_end(
    app: RunningApp, sender: ProposalsClient, desk: ProposalsClient
) -> None:
    event = desk.caller.create("events", **EVENT)
    later_dates = {"start_date": "2032-05-05 19:00:00", "end_date": "2032-05-05 21:00:00"}
    proposal = sender.propose_change(event, **later_dates)
    age(app, ENDS_AT + DAY)
    assert state_of(app, proposal) == "waiting"
    age(app, ENDS_AT + 400 * DAY)
    assert state_of(app, proposal) == "expired"


def test_recheck_does_not_change_the_version(app: RunningApp, sender: ProposalsClient) -> None:
    proposal = sender.propose()
    assert age(app, later(days=1, minutes=1)) == 1
    assert age(app, later(days=1, minutes=1)) == 0
    row = find_row(app, proposal["id"])
    assert row is not None
    assert (row["version"], row["state"]) == (1, "waiting")


def test_decided_and_unconfirmed_rows_vanish(app: RunningApp, sender: ProposalsClient, desk: ProposalsClient) -> None:
    rejected, withdrawn, returned = (sender.propose() for _ in range(3))
    unconfirmed = {"id": send_draft(app, "public", state="unconfirmed")}
    desk.reject(rejected)
    sender.withdraw(withdrawn)
    desk.send_back(returned)
    rows = (rejected, withdrawn, returned)
    age(app, later(hours=47))
    assert state_of(app, unconfirmed) == "unconfirmed"
    age(app, later(hours=49))
    assert state_of(app, unconfirmed) is None
    age(app, later(days=29))
    assert [state_of(app, row) for row in rows] == ["rejected", "withdrawn", "returned"]
    age(app, later(days=31))
    assert [state_of(app, row) for row in rows] == [None, None, None]


def test_accepted_proposals_lose_their_data_in_steps(app: RunningApp, desk: ProposalsClient) -> None:
    proposal = {"id": send_draft(app, "public", note="Canary", source="Canary", submitter_name="Rosa Canary")}
    add_picture(app, proposal["id"], make_image("WEBP"), "Canary")
    app.sql("UPDATE proposals SET token_hashes = ARRAY['x'::bytea]")
    desk.accept(proposal, values=EVENT, comment="Thanks")
    app.sql("UPDATE proposals SET comment = 'Thanks'")
    personal = ("note", "source", "submitter_name")
    age(app, later(days=29))
    before = find_row(app, proposal["id"])
    assert before is not None
    age(app, later(days=31))
    row = find_row(app, proposal["id"])
    assert row is not None
    assert [before[name] for name in personal] == ["Canary", "Canary", "Rosa Canary"]
    assert [row[name] for name in (*personal, "values")] == ["", "", "", "{}"]
    assert (row["comment"], row["token_hashes"], row["submitter_id"]) == ("Thanks", [b"x"], before["submitter_id"])
    assert app.sql("SELECT count(*) FROM proposal_pictures")[0][0] == 0
    # The event moves to the next year, and so does the end of the sender's link.
    desk.caller.change("events", row["record_id"], start_date="2032-05-05 19:00:00", end_date="2032-05-05 21:00:00")
    age(app, ENDS_AT + 40 * DAY)
    row = find_row(app, proposal["id"])
    assert row is not None
    assert row["submitter_id"] is not None
    age(app, ENDS_AT + 400 * DAY)
    row = find_row(app, proposal["id"])
    assert row is not None
    assert (row["comment"], row["token_hashes"], row["submitter_id"]) == ("", [], None)
    # The rest names the origin in the history as long as there is one.
    app.sql("UPDATE sites SET trimmed_revision = revision")
    age(app, ENDS_AT + 402 * DAY)
    assert find_row(app, proposal["id"]) is None


def test_deleted_event_has_ended(app: RunningApp, desk: ProposalsClient) -> None:
    proposal = {"id": send_draft(app, "public")}
    event_id = desk.accept(proposal)["record"]
    desk.caller.trash("events", event_id)
    age(app, later(days=29))
    row = find_row(app, proposal["id"])
    assert row is not None
    assert row["submitter_id"] is not None
    age(app, later(days=31))
    row = find_row(app, proposal["id"])
    assert row is not None
    assert row["submitter_id"] is None


def test_moving_site_is_left_alone(app: RunningApp, sender: ProposalsClient) -> None:
    sender.propose()
    app.sql("INSERT INTO unserved_sites (site_id, state, move_id) VALUES (1, 'arriving', gen_random_uuid())")
    assert age(app, ENDS_AT) == 0
