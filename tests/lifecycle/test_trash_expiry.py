"""The trash is emptied after its days, with everything that hangs on a record, and leaves a tombstone."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from kalends.calendar.jobs import remove_old_trash
from kalends.store.database import Database, Options
from kalends.worker import empty_old_trash
from tests.api.running_app import RunningApp, assert_error, expect_json
from tests.api.sample_records import SAMPLES
from tests.lifecycle.lifecycle_fixtures import EXTENSION_URL

LINKS = ("event_venues", "event_organizers", "event_categories", "event_tags")


def empty_trash(app: RunningApp, days: int = 30) -> int:
    async def run() -> int:
        database = await Database.open(Options(url=app.database_url))
        try:
            return await empty_old_trash(database, days)
        finally:
            await database.close()

    return app.run(run())


def set_trash_age(app: RunningApp, kind: str, record_id: int, age: timedelta) -> None:
    app.sql(f"UPDATE {kind} SET trashed_at = now() - $1::interval WHERE id = $2", age, record_id)


@pytest.mark.quick("events", "organizers")
@pytest.mark.parametrize("kind", ["events", "venues", "organizers"])
def test_only_expired_records_are_deleted(start_single_site: Callable[..., RunningApp], kind: str) -> None:
    app = start_single_site()
    editor = app.caller("editor")
    young, old, returned, live = (editor.create(kind, **SAMPLES[kind].body())["id"] for _ in range(4))
    for record_id in (young, old, returned):
        editor.trash(kind, record_id)
    set_trash_age(app, kind, young, timedelta(days=30) - timedelta(minutes=1))
    set_trash_age(app, kind, old, timedelta(days=30, minutes=1))
    set_trash_age(app, kind, returned, timedelta(days=40))
    assert expect_json(editor.post(f"{EXTENSION_URL}/{kind}/{returned}/restore"))["status"] == "publish"
    assert empty_trash(app) == 1
    left = {row["id"] for row in app.sql(f"SELECT id FROM {kind}")}
    assert left == {young, returned, live}
    assert_error(editor.get(f"/{kind}/{old}"), 404, f"rest-{kind[:-1]}-not-found")
    assert empty_trash(app) == 0


def test_record_trashed_after_the_cutoff_stays(start_app: Callable[..., RunningApp]) -> None:
    """The job finds old records without a lock, so it compares their time again: one may have come back since."""
    app = start_app()
    editor = app.caller("editor")
    event = editor.create("events", **SAMPLES["events"].body())["id"]
    editor.trash("events", event)
    (trashed,) = app.sql("SELECT trashed_at FROM events WHERE id = $1", event)
    moment = timedelta(microseconds=1)

    def remove(cutoff: datetime) -> bool:
        return app.run_operation(lambda tx: remove_old_trash(tx, "events", event, cutoff))

    assert not remove(trashed["trashed_at"] - moment)
    assert not remove(trashed["trashed_at"])
    assert [row["id"] for row in app.sql("SELECT id FROM events")] == [event]
    assert remove(trashed["trashed_at"] + moment)
    assert app.sql("SELECT id FROM events") == []


def test_deleted_event_loses_links_and_leaves_tombstone(start_single_site: Callable[..., RunningApp]) -> None:
    app = start_single_site()
    editor = app.caller("editor")
    body = SAMPLES["events"].body(venue={"venue": "V"}, organizer=[{"organizer": "O"}], categories="C", tags="T")
    event = editor.create("events", **body)["id"]
    editor.trash("events", event)
    set_trash_age(app, "events", event, timedelta(days=31))
    assert empty_trash(app) == 1
    assert [len(app.sql(f"SELECT FROM {table}")) for table in LINKS] == [0, 0, 0, 0]
    last = app.sql("SELECT kind, record_id, action, user_id FROM changes ORDER BY revision DESC LIMIT 1")[0]
    assert tuple(last) == ("events", event, "delete", None)
    # The log of a deleted record cannot be used to restore it.
    assert_error(editor.post(f"{EXTENSION_URL}/events/{event}/restore"), 404, "rest-event-not-found")
    assert_error(editor.get(f"{EXTENSION_URL}/events/{event}/history"), 404, "rest-event-not-found")


@pytest.mark.parametrize(("kind", "name"), [("venues", "venue"), ("organizers", "organizer")])
def test_events_of_deleted_record_get_new_revision(
    start_single_site: Callable[..., RunningApp], kind: str, name: str
) -> None:
    app = start_single_site()
    editor = app.caller("editor")
    gone, stays = (editor.create(kind, **SAMPLES[kind].body())["id"] for _ in range(2))
    event = editor.create("events", **SAMPLES["events"].body(**{name: [gone, stays]}))["id"]
    other = editor.create("events", **SAMPLES["events"].body(**{name: [stays]}))["id"]
    editor.trash(kind, gone)
    tags = {entry: editor.get(f"/events/{entry}").headers["etag"] for entry in (event, other)}
    set_trash_age(app, kind, gone, timedelta(days=31))
    assert empty_trash(app) == 1
    table, column = f"event_{kind}", f"{name}_id"
    left = app.sql(f"SELECT event_id, {column} FROM {table} ORDER BY 1")
    assert [tuple(row) for row in left] == [(event, stays), (other, stays)]
    revisions = app.sql("SELECT id, revision FROM events ORDER BY id")
    changes = app.sql("SELECT record_id, revision FROM changes WHERE kind = 'events' AND action = 'update'")
    assert [tuple(row) for row in changes] == [tuple(revisions[0])]
    assert editor.get(f"/events/{event}").headers["etag"] != tags[event]
    assert editor.get(f"/events/{other}").headers["etag"] == tags[other]
