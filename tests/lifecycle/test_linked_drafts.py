"""Publishing an event publishes the venues and organizers that were proposed with it."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from kalends.calendar.jobs import publish_due
from tests.api.running_app import Caller, RunningApp, expect_json
from tests.api.sample_records import DATES, unique
from tests.lifecycle.lifecycle_fixtures import EXTENSION_URL

FUTURE = "2090-01-01 00:00:00"
Proposal = dict[str, dict[str, Any]]


def propose(caller: Caller, **fields: Any) -> Proposal:
    """Create a venue, an organizer and an event with both; a contributor's are drafts."""
    venue = caller.create("venues", venue=unique("hall"), **fields)
    organizer = caller.create("organizers", organizer=unique("club"), **fields)
    links = {"venue": venue["id"], "organizer": [organizer["id"]]}
    event = caller.create("events", title=unique("talk"), **links, **DATES, **fields)
    return {"events": event, "venues": venue, "organizers": organizer}


def read_statuses(caller: Caller, records: Proposal) -> list[str]:
    return [caller.read(kind, record["id"])["status"] for kind, record in records.items()]


def list_changes_since(app: RunningApp, revision: int) -> list[tuple[Any, ...]]:
    rows = app.sql(
        "SELECT kind, record_id, action, before ->> 'status', after ->> 'status' FROM changes WHERE revision > $1 "
        "ORDER BY revision",
        revision,
    )
    return [tuple(row) for row in rows]


def read_revision(app: RunningApp) -> int:
    revision: int = app.sql("SELECT revision FROM sites")[0]["revision"]
    return revision


def make_due(app: RunningApp, event_id: int) -> None:
    """Move the dates of a scheduled event and of the records that were scheduled with it into the past."""
    app.sql("UPDATE events SET published_at = now() - interval '1 second' WHERE id = $1", event_id)
    for kind in ("venues", "organizers"):
        app.sql(f"UPDATE {kind} SET published_at = now() - interval '1 second' WHERE status = 'future' AND id IN "
                f"(SELECT {kind[:-1]}_id FROM event_{kind} WHERE event_id = $1)", event_id)  # fmt: skip


def publish_by_update(app: RunningApp, event_id: int) -> None:
    app.caller("editor").change("events", event_id, status="publish")


def publish_by_batch(app: RunningApp, event_id: int) -> None:
    operation = {"method": "PATCH", "path": f"/events/{event_id}", "body": {"status": "publish"}}
    body = expect_json(app.caller("editor").post(f"{EXTENSION_URL}/batch", {"operations": [operation]}))
    assert [result["status"] for result in body["results"]] == [200]


def publish_by_restore(app: RunningApp, event_id: int) -> None:
    """Move the event back to a revision at which it was public."""
    expect_json(app.caller("editor").post(f"{EXTENSION_URL}/events/{event_id}/restore"))


def publish_by_schedule(app: RunningApp, event_id: int) -> None:
    assert app.run_operation(lambda tx: publish_due(tx, "events", event_id))


@pytest.mark.quick("publish_by_update", "publish_by_schedule")
@pytest.mark.parametrize("publish", [publish_by_update, publish_by_batch, publish_by_restore, publish_by_schedule])
def test_visitor_sees_place_and_organizer(app: RunningApp, publish: Callable[[RunningApp, int], None]) -> None:
    anonymous, editor = app.caller(), app.caller("editor")
    records = propose(app.caller("contributor"))
    event_id = records["events"]["id"]
    assert read_statuses(editor, records) == ["draft"] * 3
    status = "draft"
    if publish is publish_by_restore:
        app.sql("UPDATE events SET status = 'trash', trashed_status = 'publish', trashed_at = now(), "
                "slug = 'back__trashed' WHERE id = $1", event_id)  # fmt: skip
        status = "trash"
    elif publish is publish_by_schedule:
        editor.change("events", event_id, status="publish", date_utc=FUTURE)
        assert read_statuses(editor, records) == ["future"] * 3
        make_due(app, event_id)
        status = "future"
    revision = read_revision(app)
    publish(app, event_id)
    event = anonymous.read("events", event_id)
    assert event["venue"]["id"] == records["venues"]["id"]
    assert [entry["id"] for entry in event["organizer"]] == [records["organizers"]["id"]]
    assert read_statuses(anonymous, records) == ["publish"] * 3
    for kind in ("venues", "organizers"):
        assert anonymous.read(kind, records[kind]["id"])["slug"] == records[kind]["slug"]
    action = "restore" if publish is publish_by_restore else "update"
    linked_status = "future" if publish is publish_by_schedule else "draft"
    assert list_changes_since(app, revision) == [
        ("events", event_id, action, status, "publish"),
        ("venues", records["venues"]["id"], "update", linked_status, "publish"),
        ("organizers", records["organizers"]["id"], "update", linked_status, "publish"),
    ]


@pytest.mark.quick("pending", "trash")
@pytest.mark.parametrize("status", ["pending", "future", "private", "trash"])
def test_saving_public_event_publishes_links(app: RunningApp, status: str) -> None:
    """Private records stay private, and those in the trash stay there."""
    editor = app.caller("editor")
    records = propose(editor)
    for kind in ("venues", "organizers"):
        scheduled = {"date_utc": FUTURE, "status": "publish"}
        editor.change(kind, records[kind]["id"], **(scheduled if status == "future" else {"status": status}))
    editor.change("events", records["events"]["id"], excerpt="saved")
    result = status if status in ("private", "trash") else "publish"
    assert read_statuses(editor, records) == ["publish", result, result]
    if status == "future":
        published = datetime.strptime(editor.read("venues", records["venues"]["id"])["date_utc"], "%Y-%m-%d %H:%M:%S")
        assert published.replace(tzinfo=UTC) <= datetime.now(UTC)
    # Nothing is reversed with the event.
    editor.change("events", records["events"]["id"], status="draft")
    assert read_statuses(editor, records) == ["draft", result, result]


def test_new_public_event_publishes_links(app: RunningApp) -> None:
    editor = app.caller("editor")
    venue = app.caller("contributor").create("venues", venue=unique("hall"))
    event = editor.create("events", title="New", venue=venue["id"], **DATES)
    assert event["venue"]["status"] == "publish"
    assert app.caller().read("venues", venue["id"])["status"] == "publish"


def test_author_publishes_own_drafts_only(app: RunningApp) -> None:
    author, editor = app.caller("author"), app.caller("editor")
    records = propose(author, status="draft")
    foreign = app.caller("contributor").create("venues", venue=unique("hall"))
    own = records["venues"]
    editor.change("events", records["events"]["id"], venue=[own["id"], foreign["id"]])
    author.change("events", records["events"]["id"], status="publish")
    assert read_statuses(editor, records) == ["publish"] * 3
    assert editor.read("venues", foreign["id"])["status"] == "draft"
    assert app.caller().read("events", records["events"]["id"])["venue"]["id"] == own["id"]


def test_schedule_covers_the_drafts_that_were_reviewed(app: RunningApp) -> None:
    """Scheduling an event schedules its drafts, so contributors cannot change them before they are public."""
    contributor, editor = app.caller("contributor"), app.caller("editor")
    records = propose(contributor)
    venue_id = records["venues"]["id"]
    editor.change("events", records["events"]["id"], status="publish", date_utc=FUTURE)
    assert editor.read("venues", venue_id)["date_utc"] == FUTURE
    assert contributor.patch(f"/venues/{venue_id}", {"venue": "Spam"}).status_code == 403
    # A record that is withdrawn stays a draft.
    editor.change("organizers", records["organizers"]["id"], status="draft")
    make_due(app, records["events"]["id"])
    publish_by_schedule(app, records["events"]["id"])
    assert read_statuses(editor, records) == ["publish", "publish", "draft"]


def test_author_schedules_own_drafts_only(app: RunningApp) -> None:
    author, editor = app.caller("author"), app.caller("editor")
    event = author.create("events", title=unique("talk"), status="draft", **DATES)
    foreign = app.caller("contributor").create("venues", venue=unique("hall"))
    editor.change("events", event["id"], venue=foreign["id"])
    assert author.change("events", event["id"], status="publish", date_utc=FUTURE)["status"] == "future"
    assert editor.read("venues", foreign["id"])["status"] == "draft"
    make_due(app, event["id"])
    publish_by_schedule(app, event["id"])
    assert editor.read("venues", foreign["id"])["status"] == "draft"


def test_contributor_publishes_nothing(app: RunningApp) -> None:
    contributor = app.caller("contributor")
    records = propose(contributor)
    contributor.change("events", records["events"]["id"], status="publish")
    assert read_statuses(contributor, records) == ["pending", "draft", "draft"]


# New records inside of an event ------------------------------------------------------------------


def make_inline() -> dict[str, Any]:
    return {
        "venue": {"venue": unique("flat"), "address": "Mill Lane 2", "phone": "0123"},
        "organizer": [{"organizer": unique("family"), "phone": "0456"}],
    }


def create_by_post(caller: Caller, body: dict[str, Any]) -> dict[str, Any]:
    return caller.create("events", **body)


def create_by_batch(caller: Caller, body: dict[str, Any]) -> dict[str, Any]:
    operations = [{"method": "POST", "path": "/events", "body": body}]
    (result,) = expect_json(caller.post(f"{EXTENSION_URL}/batch", {"operations": operations}))["results"]
    assert result["status"] == 201
    event: dict[str, Any] = result["body"]
    return event


def create_by_series(caller: Caller, body: dict[str, Any]) -> dict[str, Any]:
    series = expect_json(caller.post(f"{EXTENSION_URL}/series", {**body, "rule": "FREQ=WEEKLY;COUNT=3"}), 201)
    return {**series, "kind": "series"}


def create_by_update(caller: Caller, body: dict[str, Any]) -> dict[str, Any]:
    event = caller.create("events", title=body["title"], status="draft", **DATES)
    return caller.change("events", event["id"], **body)


def list_inline(event: dict[str, Any]) -> Proposal:
    return {"venues": event["venue"], "organizers": event["organizer"][0]}


@pytest.mark.quick("author-draft-create_by_post", "editor-publish-create_by_update")
@pytest.mark.parametrize("create", [create_by_post, create_by_batch, create_by_series, create_by_update])
@pytest.mark.parametrize(
    ("role", "status"),
    [("author", "draft"), ("editor", "private"), ("administrator", "pending"), ("editor", "publish")],
)
def test_new_places_are_public_with_their_event(
    app: RunningApp, create: Callable[[Caller, dict[str, Any]], dict[str, Any]], role: str, status: str
) -> None:
    caller, anonymous = app.caller(role), app.caller()
    event = create(caller, {"title": unique("party"), "status": status, **DATES, **make_inline()})
    records = list_inline(event)
    if status != "publish":
        assert read_statuses(caller, records) == ["draft", "draft"]
        for kind, record in records.items():
            assert anonymous.get(f"/{kind}/{record['id']}").status_code == 403
            assert record["id"] not in anonymous.ids(kind, per_page=50)
        path = f"{EXTENSION_URL}/series/{event['id']}" if "kind" in event else f"/events/{event['id']}"
        expect_json(caller.patch(path, {"status": "publish"}))
    assert read_statuses(anonymous, records) == ["publish", "publish"]
    # A public event writes its new records once.
    updates = app.sql(
        "SELECT count(*) FROM changes WHERE kind <> 'events' AND record_id = $1", records["venues"]["id"]
    )
    assert updates[0]["count"] == (1 if status == "publish" else 2)


def test_new_place_of_scheduled_event_is_scheduled(app: RunningApp) -> None:
    editor = app.caller("editor")
    event = editor.create("events", title=unique("party"), date_utc=FUTURE, **DATES, **make_inline())
    assert event["status"] == "future"
    records = list_inline(event)
    assert read_statuses(editor, records) == ["future", "future"]
    make_due(app, event["id"])
    publish_by_schedule(app, event["id"])
    assert read_statuses(app.caller(), records) == ["publish", "publish"]


def test_withdrawing_event_hides_the_place_that_it_names_then(app: RunningApp) -> None:
    editor = app.caller("editor")
    event = editor.create("events", title=unique("party"), **DATES)
    changed = editor.change("events", event["id"], status="private", **make_inline())
    assert read_statuses(editor, list_inline(changed)) == ["draft", "draft"]


def test_unpublished_events_share_a_new_place(app: RunningApp) -> None:
    """Published records are found and not changed; a draft is shared by the drafts of its author only."""
    author, inline = app.caller("author"), make_inline()
    body = {"title": unique("party"), "status": "draft", **DATES, **inline}
    first, second = author.create("events", **body), author.create("events", **body)
    assert first["venue"]["id"] == second["venue"]["id"]
    other = app.caller("editor").create("events", **{**body, "title": unique("party")})
    assert other["venue"]["id"] != first["venue"]["id"]
    public = app.caller("editor").create("venues", **make_inline()["venue"])
    reused = author.create("events", **{**body, "venue": {n: public[n] for n in ("venue", "address", "phone")}})
    assert (reused["venue"]["id"], reused["venue"]["status"]) == (public["id"], "publish")


def test_owner_of_event_publishes_the_place_that_an_editor_added(app: RunningApp) -> None:
    author, editor = app.caller("author"), app.caller("editor")
    event = author.create("events", title=unique("party"), status="draft", **DATES)
    records = list_inline(editor.change("events", event["id"], **make_inline()))
    author.change("events", event["id"], status="publish")
    assert read_statuses(app.caller(), records) == ["publish", "publish"]


def test_explicit_status_of_new_place_counts(app: RunningApp) -> None:
    editor = app.caller("editor")
    inline = {"venue": {"venue": unique("hall"), "status": "publish"}}
    event = editor.create("events", title=unique("party"), status="draft", **DATES, **inline)
    assert event["venue"]["status"] == "publish"
