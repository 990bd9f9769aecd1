"""Undoing a run."""

import hashlib
from dataclasses import replace
from typing import Any

import orjson
import pytest

from kalends.core.errors import ApiError
from kalends.imports.rules.import_records import ImportedRecord
from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp
from tests.imports.site import Subscription, event

# Columns that count writes, or that follow from the order of writes.
UNCOMPARED = ("revision", "sequence", "modified_utc", "withdrawn_at", "search_text", "created_until")
KINDS = ("events", "series", "venues", "organizers", "categories", "tags")
LINKS = ("event_venues", "event_organizers", "event_categories", "event_tags")


def hash_records(app: RunningApp) -> dict[str, str]:
    """Return a hash of all records that are not in the trash, and of their links."""
    hashes: dict[str, str] = {}
    for kind in KINDS:
        for row in app.sql(f"SELECT * FROM {kind} ORDER BY id"):
            columns = {name: value for name, value in row.items() if name not in UNCOMPARED}
            if columns.get("status") != "trash":
                encoded = orjson.dumps(columns, default=str, option=orjson.OPT_SORT_KEYS)
                hashes[f"{kind} {row['id']}"] = hashlib.sha256(encoded).hexdigest()
    for table in LINKS:
        rows = app.sql(f"SELECT l.* FROM {table} l JOIN events e ON e.id = l.event_id WHERE e.status <> 'trash'")
        hashes[table] = repr(sorted(map(tuple, rows), key=repr))
    return hashes


def course(identity: str, title: str, **values: Any) -> ImportedRecord:
    return ImportedRecord("series", identity, {**event(title=title).values, "rule": "FREQ=WEEKLY;COUNT=4", **values})


def test_undo_restores_equal_hashes(start_app: StartApp):
    app = start_app()
    feed = Subscription.add(app)
    venue = ImportedRecord("venues", "v1", {"venue": "Hall", "city": "Ulm"})
    stays = [event(f"s{number}@x", f"Stays {number}") for number in range(12)]
    changed = replace(event("c@x", "Changed", tags=["old"], website="https://old.example/"), links={"venue": ["v1"]})
    feed.sync(venue, *stays, changed, event("gone@x", "Gone"), course("k@x", "Course"))
    feed.plan(venue, *stays, changed, course("k@x", "Course"))
    before = hash_records(app)
    later = replace(
        changed,
        values={**changed.values, "title": "Other", "tags": ["new"], "start_date": "2027-06-01 10:00:00",
                "end_date": "2027-06-01 12:00:00", "website": None},
        links={"venue": ["v2"]},
    )  # fmt: skip
    run_id = feed.plan(
        replace(venue, values={"venue": "Great Hall", "city": "Ulm"}),
        ImportedRecord("venues", "v2", {"venue": "New Hall"}),
        ImportedRecord("categories", "g1", {"name": "New category"}),
        *stays,
        later,
        replace(event("n@x", "New", organizer={"organizer": "New organizer"}), links={"categories": ["g1"]}),
        course("k@x", "New course", start_date="2027-05-01 20:00:00", end_date="2027-05-01 22:00:00"),
        course("n2@x", "Second course"),
    )
    assert {row["action"] for row in feed.rows(run_id)} == {"new", "changed", "gone"}
    counts = feed.apply(run_id)
    assert (counts["rows_applied"], counts.get("rows_failed", 0)) == (9, 0)  # with the new tag
    assert feed.status("gone@x") == "trash"
    assert hash_records(app) != before
    undo_id = feed.undo(run_id)
    assert [row["state"] for row in feed.rows(undo_id) if row["state"] != "applied"] == []
    assert hash_records(app) == before


def test_fields_that_people_have_changed_since_stay(app: RunningApp):
    feed = Subscription.add(app)
    feed.sync(event("a@x", "One", website="https://one.example/"))
    run_id = feed.plan(event("a@x", "Two", website="https://two.example/"))
    feed.apply(run_id)
    editor = app.caller("editor")
    editor.post(f"/events/{feed.record_id('a@x')}", {"title": "By hand"})
    undo_id = feed.undo(run_id)
    body = feed.event("a@x")
    assert (body["title"], body["website"]) == ("By hand", "https://one.example/")
    (row,) = feed.rows(undo_id)
    assert row["reasons"] == ["Fields that people have changed since keep their values."]
    assert {name: change["decision"] for name, change in row["changes"].items()} == {
        "title": "local",
        "website": "source",
    }


def test_records_that_others_use_stay(app: RunningApp):
    feed = Subscription.add(app)
    run_id = feed.plan(ImportedRecord("venues", "used", {"venue": "Used Hall"}),
                       ImportedRecord("tags", "used", {"name": "Used tag"}))  # fmt: skip
    feed.apply(run_id)
    venue_id = int(app.sql("SELECT id FROM venues WHERE title = 'Used Hall'")[0]["id"])
    app.caller("editor").create(
        "events", title="Local", start_date="2027-05-01 10:00:00", end_date="2027-05-01 11:00:00",
        venue=venue_id)  # fmt: skip
    undo_id = feed.undo(run_id)
    assert sorted((row["kind"], row["state"], *row["reasons"]) for row in feed.rows(undo_id)) == [
        ("tags", "applied"),
        ("venues", "skipped", "It stays, because 1 events use it."),
    ]
    assert app.sql("SELECT status FROM venues WHERE id = $1", venue_id)[0]["status"] == "publish"


def test_after_an_undo_a_file_can_be_imported_again_and_a_subscription_keeps_it(app: RunningApp):
    for interval, expected in ((None, ["new", "changed"]), (60, [])):
        feed = Subscription.add(app, interval_minutes=interval, url="https://x.example/" if interval else "")
        feed.sync(event("old@x", "Old"))
        run_id = feed.plan(event("new@x", "New", "2027-05-02"), event("old@x", "Newer"))
        feed.apply(run_id)
        feed.undo(run_id)
        again = feed.plan(event("new@x", "New", "2027-05-02"), event("old@x", "Newer"))
        assert [row["action"] for row in feed.rows(again)] == expected
        if expected:
            feed.apply(again)
            assert feed.event("old@x")["title"] == "Newer"


def test_only_runs_that_changed_something_are_undone(app: RunningApp):
    feed = Subscription.add(app)
    run_id = feed.plan(event("u@x"))
    with pytest.raises(ApiError, match="not possible"):
        feed.undo(run_id)
    feed.apply(run_id)
    undo_id = feed.undo(run_id)
    with pytest.raises(ApiError, match="not possible"):
        feed.undo(undo_id)
