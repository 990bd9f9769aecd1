"""Series over time: publication, the trash, images and merged records."""

import pytest

from kalends.calendar import jobs as calendar_jobs
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.kind import Actor
from kalends.calendar.kinds.venues import VENUES
from kalends.calendar.operations.form_work import merge_record
from kalends.store.database import Database, Options, Transaction
from kalends.worker import empty_old_trash
from tests.api.conftest import StartApp
from tests.api.running_app import Caller, RunningApp, assert_error
from tests.series.series_client import EXTENSION, SeriesClient


@pytest.fixture(scope="module")
def app(start_single_site_for_module: StartApp) -> RunningApp:
    """Return an application on a separate database, because the jobs handle all sites."""
    return start_single_site_for_module()


@pytest.fixture
def client(editor: Caller) -> SeriesClient:
    return SeriesClient(editor)


def empty_trash(app: RunningApp) -> int:
    async def run() -> int:
        database = await Database.open(Options(url=app.database_url))
        try:
            return await empty_old_trash(database, 30)
        finally:
            await database.close()

    return app.run(run())


def test_a_scheduled_series_is_published_with_its_dates(client: SeriesClient, app: RunningApp) -> None:
    series = client.create(
        title="Scheduled", date_utc="2098-01-01 00:00:00", venue={"venue": "Hall", "status": "draft"}
    )
    assert series["status"] == "future"
    for table, column in (("series", "id"), ("events", "series_id")):
        due = f"UPDATE {table} SET published_at = now() - interval '1 minute' WHERE {column} = $1"
        app.sql(due, series["id"])
    app.sql("UPDATE venues SET published_at = now() - interval '1 minute' WHERE status = 'future'")
    assert app.run_operation(lambda tx: calendar_jobs.publish_due(tx, "series", series["id"]))
    rows = app.sql("SELECT DISTINCT status FROM events WHERE series_id = $1", series["id"])
    assert ([row["status"] for row in rows], client.read(series["id"])["status"]) == (["publish"], "publish")
    causes = app.sql(
        "SELECT DISTINCT c.cause FROM changes c JOIN events e ON e.revision = c.revision WHERE e.series_id = $1",
        series["id"],
    )
    assert [row["cause"] for row in causes] == [client.revision(series["id"])]
    assert client.events(series["id"])[0]["venue"]["status"] == "publish"
    assert not app.run_operation(lambda tx: calendar_jobs.publish_due(tx, "series", series["id"]))


def test_an_expired_series_is_deleted_after_its_dates(client: SeriesClient, app: RunningApp, editor: Caller) -> None:
    series = client.create(title="Expired", rule="FREQ=WEEKLY;COUNT=3")
    editor.delete(f"{EXTENSION}/series/{series['id']}")
    old = "SET trashed_at = now() - interval '31 days'"
    app.sql(f"UPDATE series {old} WHERE id = $1", series["id"])
    assert empty_trash(app) == 0
    app.sql(f"UPDATE events {old} WHERE series_id = $1", series["id"])
    assert empty_trash(app) == 4
    assert_error(editor.get(f"{EXTENSION}/series/{series['id']}"), 404, "rest-series-not-found")


def test_a_date_that_was_deleted_permanently_does_not_come_back(
    client: SeriesClient, app: RunningApp, editor: Caller
) -> None:
    series = client.create(title="Deleted", rule="FREQ=WEEKLY;COUNT=4")
    event = client.events(series["id"])[1]
    editor.delete(f"/events/{event['id']}")
    app.sql("UPDATE events SET trashed_at = now() - interval '31 days' WHERE id = $1", event["id"])
    assert empty_trash(app) == 1
    assert client.read(series["id"])["removed"] == [event["start_date"]]
    client.edit(client.events(series["id"])[0]["id"], "all", title="Still three")
    assert len(client.events(series["id"])) == 3


def test_a_series_goes_to_the_trash_with_its_only_date(client: SeriesClient, app: RunningApp, editor: Caller) -> None:
    series = client.create(title="Twice", rule="FREQ=WEEKLY;COUNT=2")
    first, second = client.events(series["id"])
    page = f"/series/{series['slug']}/"
    editor.delete(f"{EXTENSION}/events/{first['id']}?scope=this")
    assert (client.read(series["id"])["status"], app.raw("GET", page)[0]) == ("publish", 200)
    path = f"{EXTENSION}/events/{second['id']}"
    editor.delete(f"{path}?scope=this&dry_run=true")
    assert client.read(series["id"])["status"] == "publish"
    editor.delete(f"{path}?scope=this")
    assert (client.read(series["id"])["status"], app.raw("GET", page)[0]) == ("trash", 404)
    # The date brings its series back, and the series its date.
    editor.post(f"{path}/restore")
    left = client.read(series["id"])
    assert (left["status"], left["slug"], left["removed"]) == ("publish", "twice", [first["start_date"]])
    editor.delete(f"{path}?scope=this")
    editor.post(f"{EXTENSION}/series/{series['id']}/restore")
    assert [event["id"] for event in client.events(series["id"])] == [second["id"]]
    assert app.raw("GET", page)[0] == 200


def test_merging_a_venue_changes_series(client: SeriesClient, app: RunningApp, editor: Caller) -> None:
    first, second = (editor.create("venues", venue=name)["id"] for name in ("First", "Second"))
    series = client.create(title="Moved", rule="FREQ=WEEKLY;COUNT=3", venue=first)
    revision = client.revision(series["id"])
    merge(app, editor, first, second)
    client.post(f"/series/{series['id']}/dates", add=["2027-01-06"])
    assert {event["venue"]["id"] for event in client.events(series["id"])} == {second}
    assert client.read(series["id"])["venue"]["id"] == second
    assert len(client.history(series["id"])) == 3
    assert client.revision(series["id"]) > revision


def merge(app: RunningApp, editor: Caller, record_id: int, into: int) -> None:
    async def run(tx: Transaction) -> None:
        await tx.lock_site(editor.id)
        context = OperationContext(
            tx, Actor(editor.id, "editor"), "http://a", "http://a", values={"into": into}, record_id=record_id
        )
        assert await merge_record(VENUES, context) is not None

    app.run_operation(run)
