"""Decisions on pending events, and the queue that has them beside proposals."""

from typing import Any

import pytest

from kalends.calendar.access.operation_context import OperationContext, Outcome
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import Actor
from kalends.core.errors import ApiError
from kalends.proposals.operations.proposal_decisions import PENDING_PARAMS, decide_pending
from kalends.store.database import Transaction
from tests.api.running_app import Caller, RunningApp, expect_json
from tests.proposals.proposals_client import EVENT, ProposalsClient, count_queue, list_queue


@pytest.fixture
def app(start_app: Any) -> RunningApp:
    return start_app()


@pytest.fixture
def desk(app: RunningApp) -> ProposalsClient:
    return ProposalsClient(app.caller("editor"))


@pytest.fixture
def rosa(app: RunningApp) -> Caller:
    return app.caller("contributor")


def decide(app: RunningApp, event_id: int, revision: int | None, role: str = "editor", **values: str) -> Outcome:
    user = app.users[role]

    async def run(tx: Transaction) -> Outcome:
        await tx.lock_site(user.id)
        seen = frozenset([revision]) if revision else None
        context = OperationContext(tx, Actor(user.id, role), "", "", values=values, record_id=event_id, if_match=seen)
        return await decide_pending(EVENTS, context)

    return app.run_operation(run)


def refuse(*args: Any, **values: Any) -> tuple[int, str]:
    with pytest.raises(ApiError) as caught:
        decide(*args, **values)
    return caught.value.status, caught.value.code


@pytest.mark.parametrize(
    ("values", "status", "state"),
    [
        ({"decision": "accept"}, "publish", "accepted"),
        ({"decision": "return", "comment": "Which hall?"}, "draft", "returned"),
        ({"decision": "reject", "reason": "duplicate"}, "trash", "rejected"),
    ],
)
def test_decision_sets_the_status_and_can_be_undone(
    app: RunningApp, desk: ProposalsClient, rosa: Caller, values: dict[str, str], status: str, state: str
) -> None:
    event = rosa.create("events", **EVENT, status="pending")
    assert count_queue(app) == 1
    decided = decide(app, event["id"], desk.revision(event["id"]), **values).body
    assert app.sql("SELECT status FROM events WHERE id = $1", event["id"])[0][0] == status
    assert (decided["state"], decided["record"], count_queue(app)) == (state, event["id"], 0)
    stored = desk.read(decided)
    assert (stored["values"], stored["sender"]["user"]) == ({}, rosa.id)
    assert stored["decision"]["comment"] == values.get("comment", "")
    desk.undo(decided)
    restored = desk.caller.read("events", event["id"])
    assert (restored["status"], restored["title"], count_queue(app)) == ("pending", "Choir", 1)
    # The next decision uses the same row.
    assert decide(app, event["id"], desk.revision(event["id"]), decision="accept").body["id"] == decided["id"]


def test_decision_names_what_was_seen(app: RunningApp, desk: ProposalsClient, rosa: Caller) -> None:
    event = rosa.create("events", **EVENT, status="pending")
    seen = desk.revision(event["id"])
    rosa.change("events", event["id"], title="Choir and band")
    assert refuse(app, event["id"], seen, decision="accept") == (412, "rest_precondition_failed")
    assert refuse(app, event["id"], None, decision="accept") == (428, "rest_precondition_required")
    seen = desk.revision(event["id"])
    assert refuse(app, event["id"], seen, decision="return") == (400, "rest_missing_callback_param")
    assert refuse(app, event["id"], seen) == (400, "rest_missing_callback_param")
    assert refuse(app, event["id"], seen, "author", decision="accept") == (403, "rest_forbidden")
    published = desk.caller.create("events", **EVENT)
    seen = desk.revision(published["id"])
    assert refuse(app, published["id"], seen, decision="accept") == (409, "rest_proposal_decided")
    assert {row.name for row in PENDING_PARAMS} == {"decision", "reason", "comment"}


@pytest.mark.parametrize("values", [{"decision": "accept"}, {"decision": "reject", "reason": "no_event"}])
def test_dates_of_a_series_are_one_entry(
    app: RunningApp, desk: ProposalsClient, rosa: Caller, values: dict[str, str]
) -> None:
    series = {**EVENT, "rule": "FREQ=DAILY;COUNT=3", "status": "pending"}
    series_id = expect_json(rosa.post("//api/kalends/v1/series", series), 201)["id"]
    (entry,) = list_queue(app)
    assert (count_queue(app), entry["dates"], entry["title"], entry["id"]) == (1, 3, "Choir", None)
    decided = decide(app, entry["record_id"], entry["revision"], **values).body
    statuses = "SELECT DISTINCT status FROM events UNION SELECT 'series ' || status FROM series"
    status = "publish" if values["decision"] == "accept" else "trash"
    assert {row[0] for row in app.sql(statuses)} == {status, f"series {status}"}
    desk.undo(decided)
    assert {row[0] for row in app.sql(statuses)} == {"pending", "series pending"}
    assert [row["series_id"] for row in list_queue(app)] == [series_id]


def test_queue_is_ordered_by_start_and_paged(app: RunningApp, desk: ProposalsClient, rosa: Caller) -> None:
    sender = ProposalsClient(rosa)
    event = desk.caller.create("events", **EVENT)
    late = sender.propose(values={**EVENT, "end_date": "2031-06-02", "start_date": "2031-06-01", "title": "Late"})
    pending = rosa.create("events", **{**EVENT, "start_date": "2031-05-04", "title": "Pending"}, status="pending")
    change = sender.propose_change(event, cost="5")
    returned = sender.propose()
    desk.send_back(returned)
    rows = list_queue(app)
    assert [(row["id"], row["record_id"], row["title"]) for row in rows] == [
        (None, pending["id"], "Pending"),
        (change["id"], event["id"], "Choir"),
        (late["id"], None, "Late"),
    ]
    assert [row["version"] for row in rows] == [None, 1, 1]
    after = (rows[0]["starts_at"], rows[0]["key"])
    assert [row["key"] for row in list_queue(app, after=after)] == [change["id"], late["id"]]
    assert count_queue(app) == 3


def test_decision_on_one_pending_date_leaves_the_published_series_alone(
    app: RunningApp, desk: ProposalsClient
) -> None:
    series = expect_json(desk.caller.post("//api/kalends/v1/series", {**EVENT, "rule": "FREQ=DAILY;COUNT=3"}), 201)
    (first, *_) = app.sql("SELECT id FROM events WHERE series_id = $1 ORDER BY start_utc", series["id"])
    desk.caller.change("events", first["id"], status="pending")
    decided = decide(app, first["id"], desk.revision(first["id"]), decision="accept").body
    statuses = "SELECT status FROM events UNION ALL SELECT status FROM series"
    assert {row[0] for row in app.sql(statuses)} == {"publish"}
    expect_json(desk.caller.patch(f"//api/kalends/v1/series/{series['id']}", {"cost": "5"}))
    app.sql("UPDATE changes SET user_id = NULL WHERE revision > $1", decided["last_revision"])
    desk.undo(decided)
    assert sorted(row[0] for row in app.sql(statuses)) == ["pending", "publish", "publish", "publish"]
