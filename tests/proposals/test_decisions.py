"""Accepting, returning and rejecting proposals, and undoing that; what is merged and what conflicts."""

from typing import Any

import pytest

from tests.api.running_app import Caller, RunningApp, assert_error, expect_json
from tests.proposals.proposals_client import EVENT, ProposalsClient, if_match, set_columns


@pytest.fixture(scope="module")
def sender(contributor: Caller) -> ProposalsClient:
    return ProposalsClient(contributor)


@pytest.fixture(scope="module")
def desk(editor: Caller) -> ProposalsClient:
    return ProposalsClient(editor)


@pytest.fixture
def event(editor: Caller) -> dict[str, Any]:
    return editor.create("events", **{**EVENT, "description": "Old", "cost": "5"})


def test_accepted_event_is_published_as_the_sender(
    app: RunningApp, sender: ProposalsClient, desk: ProposalsClient
) -> None:
    venue = {"venue": "Chapel", "city": "Ghent"}
    proposal = sender.propose(values={**EVENT, "venue": venue, "cost": "12"}, note="Please soon", guessed=["cost"])
    decided = desk.accept(proposal)
    event = desk.caller.read("events", decided["record"])
    assert (event["status"], event["author"], event["title"]) == ("publish", str(sender.caller.id), "Choir")
    assert (event["venue"]["venue"], event["venue"]["city"]) == ("Chapel", "Ghent")
    history = desk.caller.get(f"//api/kalends/v1/events/{event['id']}/history").json()["history"]
    assert history[-1]["user"]["login"] == "editor"
    row = desk.read(proposal)
    assert (row["state"], row["decision"]["user"], row["record"]) == ("accepted", desk.caller.id, event["id"])
    assert row["first_revision"] < row["last_revision"] == app.sql("SELECT max(revision) FROM sites")[0][0]


def test_accepted_change_is_merged(sender: ProposalsClient, desk: ProposalsClient, event: dict[str, Any]) -> None:
    proposal = sender.propose_change(event, title="Great choir")
    desk.caller.change("events", event["id"], cost="7")
    desk.accept(proposal)
    changed = desk.caller.read("events", event["id"])
    assert (changed["title"], changed["cost"], changed["author"]) == ("Great choir", "$7", event["author"])


def test_conflict_needs_a_choice_for_the_revision_that_was_seen(
    sender: ProposalsClient, desk: ProposalsClient, event: dict[str, Any]
) -> None:
    proposal = sender.propose_change(event, title="Theirs", cost="9")
    desk.caller.change("events", event["id"], title="Ours")
    data = assert_error(desk.act("accept", proposal), 409, "rest_proposal_conflict")
    assert data["conflicts"] == {"title": {"base": "Choir", "record": "Ours", "proposal": "Theirs"}}
    seen = data["revision"]
    missing = desk.act("accept", proposal, choices={"title": "proposal"})
    assert_error(missing, 400, "rest_missing_callback_param")
    assert_error(desk.act("accept", proposal, choices={"title": "mine"}, revision=seen), 400, "rest_invalid_param")
    desk.caller.change("events", event["id"], title="Ours again")
    again = desk.act("accept", proposal, choices={"title": "proposal"}, revision=seen)
    data = assert_error(again, 409, "rest_proposal_conflict")
    assert data["conflicts"]["title"]["record"] == "Ours again"
    desk.accept(proposal, choices={"title": "record"}, revision=data["revision"])
    changed = desk.caller.read("events", event["id"])
    assert (changed["title"], changed["cost"]) == ("Ours again", "$9")


def test_chosen_proposal_replaces_the_value(
    sender: ProposalsClient, desk: ProposalsClient, event: dict[str, Any]
) -> None:
    proposal = sender.propose_change(event, end_date="2031-05-05 23:00:00")
    desk.caller.change("events", event["id"], start_date="2031-05-05 18:00:00", end_date="2031-05-05 22:00:00")
    data = assert_error(desk.act("accept", proposal), 409, "rest_proposal_conflict")
    assert list(data["conflicts"]) == ["dates"]
    desk.accept(proposal, choices={"dates": "proposal"}, revision=data["revision"])
    changed = desk.caller.read("events", event["id"])
    assert (changed["start_date"], changed["end_date"]) == ("2031-05-05 19:00:00", "2031-05-05 23:00:00")


def test_editors_values_replace_the_proposed_ones(
    sender: ProposalsClient, desk: ProposalsClient, event: dict[str, Any]
) -> None:
    proposal = sender.propose_change(event, title="Typo", cost="9")
    assert_error(desk.act("accept", proposal, values={"titel": "x"}), 400, "rest_invalid_param", "titel")
    desk.accept(proposal, values={"title": "No typo", "featured": True})
    changed = desk.caller.read("events", event["id"])
    assert (changed["title"], changed["cost"], changed["featured"]) == ("No typo", "$5", True)
    proposal = sender.propose_change(event, title="Unwanted")
    desk.accept(proposal, values={})
    assert desk.caller.read("events", event["id"])["title"] == "No typo"


def test_edited_values_conflict_from_their_own_revision(
    sender: ProposalsClient, desk: ProposalsClient, event: dict[str, Any]
) -> None:
    proposal = sender.propose_change(event, title="Theirs")
    desk.caller.change("events", event["id"], title="Ours")
    seen = desk.revision(event["id"])
    desk.caller.change("events", event["id"], cost="8")
    desk.accept(proposal, values={"title": "Both"}, revision=seen)
    assert desk.caller.read("events", event["id"])["title"] == "Both"


def test_change_of_one_date_leaves_the_series_alone(sender: ProposalsClient, desk: ProposalsClient) -> None:
    series = expect_json(desk.caller.post("//api/kalends/v1/series", {**EVENT, "rule": "FREQ=DAILY;COUNT=3"}), 201)
    query = {"series": series["id"], "start_date": "2031-01-01", "end_date": "2032-01-01"}
    first, second, third = desk.caller.page("events", **query)["events"]
    desk.accept(sender.propose_change(second, title="Special"))
    titles = [row["title"] for row in desk.caller.page("events", **query)["events"]]
    assert titles == [first["title"], "Special", third["title"]]


def test_undo_of_a_new_event_moves_it_to_the_trash(sender: ProposalsClient, desk: ProposalsClient) -> None:
    proposal = sender.propose()
    event_id = desk.accept(proposal)["record"]
    undone = desk.undo(proposal)
    assert (undone["state"], undone["record"], undone["last_revision"]) == ("waiting", None, None)
    assert_error(desk.caller.get(f"/events/{event_id}"), 403, "event-no-longer-available")
    assert desk.accept(proposal)["record"] != event_id


def test_undo_of_a_change_restores_the_former_values(
    sender: ProposalsClient, desk: ProposalsClient, event: dict[str, Any]
) -> None:
    proposal = sender.propose_change(event, title="New", categories=[], venue={"venue": "Barn"})
    desk.caller.change("events", event["id"], cost="8")
    desk.accept(proposal)
    desk.undo(proposal)
    restored = desk.caller.read("events", event["id"])
    assert (restored["title"], restored["cost"], restored["venue"]) == ("Choir", "$8", [])


def test_later_changes_of_people_prevent_undo(
    app: RunningApp, sender: ProposalsClient, desk: ProposalsClient, event: dict[str, Any]
) -> None:
    proposal = sender.propose_change(event, title="New")
    desk.accept(proposal)
    app.sql("UPDATE changes SET user_id = NULL WHERE revision = (SELECT max(revision) FROM changes)")
    desk.caller.change("events", event["id"], cost="8")
    assert_error(desk.act("undo", proposal), 409, "rest_proposal_final")
    app.sql("UPDATE changes SET user_id = NULL WHERE revision = (SELECT max(revision) FROM changes)")
    desk.undo(proposal)  # The last change counts as the worker's.
    assert desk.caller.read("events", event["id"])["title"] == "Choir"


def test_old_decisions_cannot_be_undone(app: RunningApp, sender: ProposalsClient, desk: ProposalsClient) -> None:
    proposal = sender.propose()
    desk.reject(proposal)
    app.sql("UPDATE proposals SET decided_at = decided_at - interval '31 days' WHERE id = $1", proposal["id"])
    assert_error(desk.act("undo", proposal), 409, "rest_proposal_final")


def test_decision_is_kept_while_a_newer_change_waits(
    sender: ProposalsClient, desk: ProposalsClient, event: dict[str, Any]
) -> None:
    proposal = sender.propose_change(event, title="First")
    desk.reject(proposal)
    second = sender.propose_change(event, title="Second")
    assert_error(desk.act("undo", proposal), 409, "rest_proposal_final")
    sender.withdraw(second)
    assert desk.undo(proposal)["state"] == "waiting"


def test_returned_proposal_waits_again_after_a_change(sender: ProposalsClient, desk: ProposalsClient) -> None:
    proposal = sender.propose(guessed=["title"])
    desk.send_back(proposal, "Which hall?")
    own = sender.read(proposal)
    assert (own["state"], own["decision"]["comment"]) == ("returned", "Which hall?")
    expect_json(sender.edit(proposal, values={**EVENT, "title": "In the chapel"}))
    waiting = desk.read(proposal)
    assert (waiting["state"], waiting["version"], waiting["values"]["title"]) == ("waiting", 3, "In the chapel")
    assert waiting["guessed"] == ["title"]
    desk.reject(proposal, "no_event")
    assert desk.read(proposal)["decision"]["reason"] == "no_event"
    assert_error(sender.edit(proposal, note="Please"), 409, "rest_proposal_decided")
    assert_error(sender.withdraw(proposal), 409, "rest_proposal_decided")


def test_return_needs_a_comment_and_reject_a_reason(sender: ProposalsClient, desk: ProposalsClient) -> None:
    proposal = sender.propose()
    assert_error(desk.act("return", proposal), 400, "rest_missing_callback_param", "comment")
    assert_error(desk.act("return", proposal, comment=" "), 400, "rest_invalid_param", "comment")
    assert_error(desk.act("reject", proposal), 400, "rest_missing_callback_param", "reason")
    assert_error(desk.act("reject", proposal, reason="boring"), 400, "rest_invalid_param", "reason")


def test_deleted_event_cannot_be_changed(
    sender: ProposalsClient, desk: ProposalsClient, event: dict[str, Any]
) -> None:
    proposal = sender.propose_change(event, title="Late")
    desk.caller.trash("events", event["id"])
    assert_error(desk.act("accept", proposal), 410, "event-is-in-trash")
    assert desk.read(proposal)["state"] == "waiting"


def test_venue_that_was_deleted_meanwhile_is_named(sender: ProposalsClient, desk: ProposalsClient) -> None:
    venue = desk.caller.create("venues", venue="Old barn")
    proposal = sender.propose(values={**EVENT, "venue": venue["id"]})
    desk.caller.trash("venues", venue["id"])
    assert_error(desk.act("accept", proposal), 400, "rest_invalid_param", "venue")


def test_expired_and_erased_sender(app: RunningApp, sender: ProposalsClient, desk: ProposalsClient) -> None:
    proposal = sender.propose()
    set_columns(app, proposal["id"], state="expired")
    assert_error(desk.act("accept", proposal), 409, "rest_proposal_decided")
    proposal = sender.propose()
    set_columns(app, proposal["id"], user_id=None)
    event = desk.caller.read("events", desk.accept(proposal)["record"])
    assert event["author"] == str(desk.caller.id)


def test_decision_without_version_is_refused(sender: ProposalsClient, desk: ProposalsClient) -> None:
    proposal = sender.propose()
    for headers in ({}, {"If-Match": "*"}):
        response = desk.post(f"/{proposal['id']}/accept", {}, headers=headers)
        assert_error(response, 428, "rest_precondition_required")
    sender.edit(proposal, note="Once more")
    for action, body in (("accept", {}), ("return", {"comment": "x"}), ("reject", {"reason": "other"})):
        response = desk.post(f"/{proposal['id']}/{action}", body, headers=if_match(1))
        assert_error(response, 412, "rest_precondition_failed")
    assert_error(sender.edit(proposal, 1, note="Twice"), 412, "rest_precondition_failed")
