"""The picture of a proposal becomes an image of the library when an editor accepts it, also in a batch."""

from typing import Any

import pytest

from tests.api.running_app import RunningApp, assert_error, expect_json
from tests.media.image_fixtures import make_image
from tests.proposals.proposals_client import EVENT, ProposalsClient, add_picture, find_row, send_draft


@pytest.fixture
def desk(app: RunningApp) -> ProposalsClient:
    return ProposalsClient(app.caller("editor"))


def send_with_picture(app: RunningApp, seed: int, **fields: Any) -> str:
    proposal_id = send_draft(app, "public", **fields)
    add_picture(app, proposal_id, make_image("WEBP", seed=seed), "A choir in red")
    return proposal_id


def test_picture_belongs_to_the_accepted_event(app: RunningApp, desk: ProposalsClient) -> None:
    proposal_id = send_with_picture(app, 1)
    assert app.sql("SELECT count(*) FROM media")[0][0] == 0
    event = desk.caller.read("events", desk.accept({"id": proposal_id})["record"])
    assert event["author"] == str(desk.caller.id)
    image = expect_json(desk.caller.get(f"//api/kalends/v1/media/{event['image']['id']}"))
    assert (image["alt_text"], image["title"], image["author"]) == ("A choir in red", "Choir", str(desk.caller.id))
    assert desk.caller.get(event["image"]["url"]).status_code == 200


def test_refused_decision_adds_no_image(app: RunningApp, desk: ProposalsClient) -> None:
    images = app.sql("SELECT count(*) FROM media")[0][0]
    proposal_id = send_with_picture(app, 2)
    assert_error(desk.act("accept", {"id": proposal_id}, 7), 412, "rest_precondition_failed")
    chosen = desk.accept({"id": proposal_id}, values={**EVENT, "image": None})
    assert desk.caller.read("events", chosen["record"])["image"] is False
    assert app.sql("SELECT count(*) FROM media")[0][0] == images


def test_unreadable_picture_is_named(app: RunningApp, desk: ProposalsClient) -> None:
    proposal_id = send_draft(app, "public")
    add_picture(app, proposal_id, b"not an image", "")
    assert_error(desk.act("accept", {"id": proposal_id}), 400, "rest_invalid_param", "image")


def test_batch_stores_all_pictures(app: RunningApp, desk: ProposalsClient) -> None:
    ids = [send_with_picture(app, seed) for seed in (3, 4)]
    operations = [{"method": "POST", "path": f"/proposals/{entry}/accept", "if_match": 1} for entry in ids]
    results = expect_json(desk.caller.post("//api/kalends/v1/batch", {"operations": operations}))["results"]
    assert [row["body"]["state"] for row in results] == ["accepted"] * 2
    events = [desk.caller.read("events", row["body"]["record"]) for row in results]
    assert len({event["image"]["id"] for event in events}) == 2


def test_picture_changes_the_image_of_an_event(app: RunningApp, desk: ProposalsClient) -> None:
    event = desk.caller.create("events", **EVENT)
    fields = {"values": {"cost": "5"}, "record_id": event["id"], "base_revision": desk.revision(event["id"])}
    proposal_id = send_with_picture(app, 5, **fields)
    desk.accept({"id": proposal_id})
    assert desk.caller.read("events", event["id"])["image"]["id"]
    desk.undo({"id": proposal_id})
    assert desk.caller.read("events", event["id"])["image"] is False
    row = find_row(app, proposal_id)
    assert row is not None
    assert (row["state"], row["version"]) == ("waiting", 3)
