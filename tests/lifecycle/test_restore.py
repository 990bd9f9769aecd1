"""Restoring, case by case: out of the trash, back to a revision, by whom; and what history shows."""

from collections.abc import Callable
from typing import Any

import pytest

from kalends.calendar.kinds import BY_NAME
from tests.api.running_app import RunningApp, assert_error, expect_json
from tests.api.sample_records import SAMPLES, unique
from tests.lifecycle.lifecycle_fixtures import EXTENSION_URL
from tests.lifecycle.processes import run_command
from tests.lifecycle.test_history import comparable, restore


def read_history(app: RunningApp, kind: str, record_id: int, role: str = "editor") -> list[dict[str, Any]]:
    response = app.caller(role).get(f"{EXTENSION_URL}/{kind}/{record_id}/history")
    entries: list[dict[str, Any]] = expect_json(response)["history"]
    return entries


def latest_revision(app: RunningApp, kind: str, record_id: int) -> int:
    latest: int = read_history(app, kind, record_id)[0]["revision"]
    return latest


# Restoring -----------------------------------------------------------------------------------


@pytest.mark.quick("publish-events", "future-organizers")
@pytest.mark.parametrize("kind", ["events", "venues", "organizers"])
@pytest.mark.parametrize("status", ["publish", "draft", "pending", "private", "future"])
def test_restore_from_trash_is_lossless(app: RunningApp, kind: str, status: str) -> None:
    editor = app.caller("editor")
    date = {"date_utc": "2090-01-01 00:00:00"} if status == "future" else {}
    record = editor.create(kind, **SAMPLES[kind].body(status=status, **date))
    editor.trash(kind, record["id"])
    assert comparable(restore(editor, kind, record["id"])) == comparable(record)


def test_reused_slug_is_numbered(app: RunningApp) -> None:
    editor = app.caller("editor")
    slug = unique("wanted").lower().replace(" ", "-")
    record = editor.create("events", **SAMPLES["events"].body(slug=slug))
    first = latest_revision(app, "events", record["id"])
    editor.trash("events", record["id"])
    editor.create("events", **SAMPLES["events"].body(slug=slug))
    assert restore(editor, "events", record["id"])["slug"] == f"{slug}-2"
    assert comparable(restore(editor, "events", record["id"], first)) == comparable(
        {**record, "slug": f"{slug}-2"}
    ) | {name: record[name].replace(slug, f"{slug}-2") for name in ("url", "website")}


def test_ambiguous_time_is_restored(app: RunningApp) -> None:
    editor = app.caller("editor")
    zone = {"timezone": "America/New_York"}
    hours = {"start_date": "2027-11-07 01:30:00-05:00", "end_date": "2027-11-07 01:30:00-05:00"}
    record = editor.create("events", title=unique("fold"), **hours, **zone)
    assert record["utc_start_date"] == "2027-11-07 06:30:00"
    second = latest_revision(app, "events", record["id"])
    earlier = editor.change("events", record["id"], start_date="2027-11-07 01:30:00-04:00")
    assert (earlier["start_date"], earlier["utc_start_date"]) == (record["start_date"], "2027-11-07 05:30:00")
    assert comparable(restore(editor, "events", record["id"], second)) == comparable(record)
    editor.change("events", record["id"], timezone="UTC")
    assert comparable(restore(editor, "events", record["id"], second)) == comparable(record)


def test_draft_without_slug_is_restored_without_slug(app: RunningApp) -> None:
    editor = app.caller("editor")
    record = editor.create("events", **SAMPLES["events"].body(status="draft"))
    assert record["slug"] == ""
    first = latest_revision(app, "events", record["id"])
    editor.change("events", record["id"], status="publish")
    assert comparable(restore(editor, "events", record["id"], first)) == comparable(record)


def test_links_to_deleted_records_are_not_restored(app: RunningApp) -> None:
    editor = app.caller("editor")
    gone, stays = (editor.create("tags", name=unique("tag"))["id"] for _ in range(2))
    event = editor.create("events", **SAMPLES["events"].body(tags=[gone, stays]))["id"]
    first = latest_revision(app, "events", event)
    editor.change("events", event, tags=[])
    expect_json(editor.delete(f"/tags/{gone}"))
    assert [tag["id"] for tag in restore(editor, "events", event, first)["tags"]] == [stays]


def test_record_with_thousands_of_changes_is_restored_to_first(app: RunningApp) -> None:
    editor = app.caller("editor")
    record = editor.create("venues", venue="First")
    first = latest_revision(app, "venues", record["id"])
    editor.change("venues", record["id"], venue="Second")
    # As many more as it takes, without asking the server a thousand times.
    app.sql(
        """
        WITH added AS (
            INSERT INTO changes (site_id, revision, kind, record_id, action, before, after, changed_at)
            SELECT s.id, s.revision + n, 'venues', $1, 'update', '{"phone": ""}', '{"phone": ""}', now()
            FROM sites s, generate_series(1, 1500) AS n
        ), stamped AS (UPDATE venues SET revision = revision + 1500 WHERE id = $1)
        UPDATE sites SET revision = revision + 1500
        """,
        record["id"],
    )
    assert restore(editor, "venues", record["id"], first)["venue"] == "First"


def test_revision_older_than_record_is_rejected(app: RunningApp) -> None:
    editor = app.caller("editor")
    editor.create("venues", venue=unique("before"))
    before = latest_revision(app, "venues", editor.create("venues", venue=unique("venue"))["id"])
    later = editor.create("venues", venue=unique("later"))["id"]
    response = editor.post(f"{EXTENSION_URL}/venues/{later}/restore", {"revision": before})
    assert_error(response, 400, "rest_invalid_param", "revision")


def test_trimmed_revision_is_410(start_app: Callable[..., RunningApp]) -> None:
    app = start_app()
    editor = app.caller("editor")
    venue = editor.create("venues", venue="One")["id"]
    first = latest_revision(app, "venues", venue)
    editor.change("venues", venue, venue="Two")
    app.sql("UPDATE sites SET trimmed_revision = $1", first + 1)
    app.sql("DELETE FROM changes WHERE revision <= $1", first + 1)
    response = editor.post(f"{EXTENSION_URL}/venues/{venue}/restore", {"revision": first})
    assert_error(response, 410, "rest_history_expired")


# By whom -------------------------------------------------------------------------------------


def test_author_cannot_change_author_by_restore(app: RunningApp) -> None:
    editor, author = app.caller("editor"), app.caller("author")
    venue = editor.create("venues", venue=unique("venue"))["id"]
    first = latest_revision(app, "venues", venue)
    editor.change("venues", venue, author=author.id)
    response = author.post(f"{EXTENSION_URL}/venues/{venue}/restore", {"revision": first})
    assert_error(response, 403, "rest_forbidden")


def test_contributor_cannot_publish_by_restore(app: RunningApp) -> None:
    editor, contributor = app.caller("editor"), app.caller("contributor")
    event = editor.create("events", **SAMPLES["events"].body(author=contributor.id))["id"]
    published = latest_revision(app, "events", event)
    editor.change("events", event, status="draft")
    assert restore(contributor, "events", event, published)["status"] == "pending"


def test_restore_with_stale_etag_is_412(app: RunningApp) -> None:
    editor = app.caller("editor")
    venue = editor.create("venues", venue=unique("venue"))["id"]
    tag = editor.get(f"/venues/{venue}").headers["etag"]
    editor.change("venues", venue, phone="1")
    first = read_history(app, "venues", venue)[-1]["revision"]
    path = f"{EXTENSION_URL}/venues/{venue}/restore"
    response = editor.post(path, {"revision": first}, headers={"If-Match": tag})
    assert_error(response, 412, "rest_precondition_failed")


# Content of the history ----------------------------------------------------------------------


@pytest.mark.quick("events", "organizers")
@pytest.mark.parametrize("kind", ["events", "venues", "organizers"])
def test_history_lists_user_and_changes_by_parameter_name(app: RunningApp, kind: str) -> None:
    editor, author = app.caller("editor"), app.caller("author")
    sample = SAMPLES[kind]
    record = author.create(kind, **sample.body(status="draft"))
    author.change(kind, record["id"], **{sample.text_param: "before"})
    editor.change(kind, record["id"], **{sample.text_param: "after", "status": "publish", "author": editor.id})
    author_of, changed, created = read_history(app, kind, record["id"])
    assert author_of["user"] == {"id": editor.id, "login": "editor"}
    assert author_of["changes"][sample.text_param] == {"before": "before", "after": "after"}
    assert author_of["changes"]["status"] == {"before": "draft", "after": "publish"}
    assert author_of["changes"]["author"] == {"before": author.id, "after": editor.id}
    assert changed["changes"] == {sample.text_param: {"before": "", "after": "before"}}
    assert (created["action"], created["user"]["login"]) == ("create", "author")
    assert created["changes"][sample.name_param] == {"before": None, "after": record[sample.name_param]}
    names = {name for change in (author_of, changed, created) for name in change["changes"]}
    assert names <= {param.name for param in BY_NAME[kind].fields} | {"slug"}


def test_history_contains_links_as_ids_and_formatted_dates(app: RunningApp) -> None:
    editor = app.caller("editor")
    tag = editor.create("tags", name=unique("tag"))["id"]
    event = editor.create("events", **SAMPLES["events"].body())
    editor.change("events", event["id"], tags=[tag], start_date="2027-06-01 10:00", end_date="2027-06-02 10:00")
    assert read_history(app, "events", event["id"])[0]["changes"] == {
        "tags": {"before": [], "after": [tag]},
        "start_date": {"before": event["start_date"], "after": "2027-06-01 10:00:00"},
        "end_date": {"before": event["end_date"], "after": "2027-06-02 10:00:00"},
    }


def test_history_and_command_do_not_reveal_password_hash(app: RunningApp) -> None:
    editor = app.caller("editor")
    event = editor.create("events", **SAMPLES["events"].body(new_password="secret one"))["id"]
    hashes = [app.sql("SELECT password_hash FROM events WHERE id = $1", event)[0][0].hex()]
    editor.change("events", event, new_password="secret two")
    hashes.append(app.sql("SELECT password_hash FROM events WHERE id = $1", event)[0][0].hex())
    editor.change("events", event, new_password="")
    password_changes = [change["changes"].get("new_password") for change in read_history(app, "events", event)]
    assert password_changes == [
        {"before": True, "after": False},
        {"before": True, "after": True},
        {"before": None, "after": True},
    ]
    text = editor.get(f"{EXTENSION_URL}/events/{event}/history").text
    command = run_command(app.database_url, "history", "event", str(event), "--site", app.host)
    assert command.exit_code == 0
    assert "new_password" in command.stdout
    for secret in (*hashes, "secret one", "secret two"):
        assert secret not in text
        assert secret not in command.stdout


def test_future_revision_is_rejected(app: RunningApp) -> None:
    editor = app.caller("editor")
    record = editor.create("venues", **SAMPLES["venues"].body())
    response = editor.post(f"{EXTENSION_URL}/venues/{record['id']}/restore", {"revision": 10**9})
    assert_error(response, 400, "rest_invalid_param", "revision")


def test_history_is_paginated(app: RunningApp) -> None:
    editor = app.caller("editor")
    record = editor.create("venues", **SAMPLES["venues"].body())
    for number in range(4):
        editor.change("venues", record["id"], city=f"City {number}")
    all_entries = read_history(app, "venues", record["id"])
    assert len(all_entries) == 5
    pages, before = [], ""
    while True:
        page = expect_json(editor.get(f"{EXTENSION_URL}/venues/{record['id']}/history?per_page=2{before}"))
        pages.append(page["history"])
        if page["next_before"] is None:
            break
        before = f"&before={page['next_before']}"
    assert [len(page) for page in pages] == [2, 2, 1]
    assert [change for page in pages for change in page] == all_entries
