"""Subscriptions: conditional requests, unchanged input, failures, and the jobs of the worker."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import orjson
import pytest

from kalends.core.egress import read_allowed_network
from kalends.imports import jobs as imports_jobs
from kalends.imports.adapters.import_worker import ImportWorker
from kalends.imports.operations.sources import Tools, make_fetcher
from kalends.imports.storage import import_lists
from kalends.store.database import Database
from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp
from tests.imports.feed_server import Feed, make_calendar, serve_feed
from tests.imports.site import Subscription, writing


@pytest.fixture(scope="module")
def app(start_single_site_for_module: StartApp) -> RunningApp:
    """Return an application on a separate database, because the jobs handle all sites."""
    return start_single_site_for_module()


@pytest.fixture
def feed() -> Iterator[Feed]:
    with serve_feed(make_calendar(["One", "Two", "Three"])) as running:
        yield running


def make_tools(feed: Feed | None = None) -> Tools:
    allowed = [read_allowed_network(feed.network)] if feed is not None else []
    return Tools(ImportWorker(), make_fetcher(allowed))


def subscribe(app: RunningApp, feed: Feed, **values: Any) -> Subscription:
    return Subscription.add(app, url=feed.url, interval_minutes=60, **values)


def fetch(subscription: Subscription, feed: Feed, **options: Any) -> int:
    subscription.now += timedelta(hours=1)
    return subscription.app.run_with_database(
        lambda database: imports_jobs.fetch_and_plan(
            database, make_tools(feed), subscription.site_id, subscription.source_id,
            user_id=None, get_now=lambda: subscription.now, options={"apply": True, **options},
        ),
    )  # fmt: skip


def revision_of(app: RunningApp) -> int:
    return int(app.sql("SELECT revision FROM sites")[0]["revision"])


def source_of(subscription: Subscription) -> dict[str, Any]:
    return dict(subscription.app.sql("SELECT * FROM import_sources WHERE id = $1", subscription.source_id)[0])


def test_a_subscription_follows_its_source(app: RunningApp, feed: Feed):
    subscription = subscribe(app, feed)
    assert subscription.state(fetch(subscription, feed)) == "applied"
    assert subscription.event("1@feed")["title"] == "Two"
    before = revision_of(app)
    assert subscription.state(fetch(subscription, feed)) == "unchanged"
    assert feed.requests[-1]["If-None-Match"] == feed.etag
    feed.has_etag = False
    assert subscription.state(fetch(subscription, feed)) == "unchanged"
    assert revision_of(app) == before
    # With another time zone, the same file may mean something else.
    feed.has_etag = True
    app.sql("UPDATE import_sources SET timezone = 'Asia/Tokyo' WHERE id = $1", subscription.source_id)
    assert subscription.state(fetch(subscription, feed)) == "applied"
    assert "If-None-Match" not in feed.requests[-1]
    before = revision_of(app)
    feed.content = make_calendar(["One", "Changed", "Three"])
    assert subscription.state(fetch(subscription, feed)) == "applied"
    assert subscription.event("1@feed")["title"] == "Changed"
    assert revision_of(app) == before + 1


def test_a_record_that_is_missing_makes_the_next_fetch_complete(app: RunningApp, feed: Feed):
    subscription = subscribe(app, feed, allow_mass_deletion=True)
    fetch(subscription, feed)
    feed.content = make_calendar(["One", "Two"])
    fetch(subscription, feed)
    assert subscription.status("2@feed") == "publish"
    fetch(subscription, feed)
    assert "If-None-Match" not in feed.requests[-1]
    assert subscription.status("2@feed") == "trash"
    assert subscription.state(fetch(subscription, feed)) == "unchanged"


def test_an_error_of_the_server_removes_nothing_and_pauses_in_the_end(app: RunningApp, feed: Feed):
    subscription = subscribe(app, feed)
    fetch(subscription, feed)
    feed.status, feed.content = 403, b"no"
    for number in range(1, 6):
        run_id = fetch(subscription, feed)
        assert subscription.state(run_id) == "failed"
        assert source_of(subscription)["failures"] == number
    assert (source_of(subscription)["state"], source_of(subscription)["next_run_at"]) == ("paused", None)
    failure = orjson.loads(app.sql("SELECT failure FROM import_runs WHERE id = $1", run_id)[0]["failure"])
    assert failure["values"]["status"] == 403
    assert subscription.status("0@feed") == "publish"
    emails = app.sql("SELECT args FROM procrastinate_jobs WHERE task_name = 'send_email'")
    assert [orjson.loads(row["args"])["to"] for row in emails] == ["editor@example.org"]
    assert "403" in orjson.loads(emails[0]["args"])["text"]


def test_a_success_forgets_failures(app: RunningApp, feed: Feed):
    subscription = subscribe(app, feed)
    feed.status = 500
    fetch(subscription, feed)
    feed.status = 200
    fetch(subscription, feed)
    assert source_of(subscription)["failures"] == 0


def test_due_sources_are_started_once_with_jitter(app: RunningApp, feed: Feed):
    app.sql("DELETE FROM import_sources")
    waiting = "SELECT args FROM procrastinate_jobs WHERE task_name = 'plan_import'"
    app.sql("DELETE FROM procrastinate_jobs WHERE task_name = 'plan_import'")
    subscriptions = [subscribe(app, feed, name=f"S{number}") for number in range(4)]
    app.sql("UPDATE import_sources SET next_run_at = now() - interval '1 minute' WHERE name <> 'S3'")
    now = subscriptions[0].now

    async def start(database: Database) -> int:
        return await imports_jobs.start_due(database, now)

    assert (app.run_with_database(start), app.run_with_database(start)) == (3, 0)
    assert len(app.sql(waiting)) == 3
    waits = [
        (row["next_run_at"] - now).total_seconds() / 60
        for row in app.sql("SELECT next_run_at FROM import_sources WHERE name <> 'S3'")
    ]
    assert all(54 <= wait <= 66 for wait in waits)
    assert len(set(waits)) == 3
    run_id = orjson.loads(app.sql(waiting)[0]["args"])["run_id"]
    site_id = subscriptions[0].site_id

    async def plan(database: Database) -> str:
        return await imports_jobs.plan_run(database, make_tools(feed), site_id, run_id)

    assert (app.run_with_database(plan), app.run_with_database(plan)) == ("applied", "applied")


def test_an_uploaded_table(app: RunningApp):
    subscription = Subscription.add(app, kind="table", name="Programme")
    table = b"Title,Start,End\nTable night,2027-06-01 20:00,2027-06-01 22:00\nBroken,never,\n"

    async def upload(database: Database) -> None:
        async with writing(app, database) as (tx, _):
            await import_lists.save_file(tx, subscription.source_id, "programme.csv", table)

    app.run_with_database(upload)
    run_id = app.run_with_database(
        lambda database: imports_jobs.fetch_and_plan(
            database, make_tools(), subscription.site_id, subscription.source_id, user_id=app.users["editor"].id
        ),
    )
    assert [(row["action"], row["title"], row["line"]) for row in subscription.rows(run_id)] == [
        ("new", "Table night", 2),
        ("rejected", "Broken", 3),
    ]
    subscription.apply(run_id)
    assert app.sql("SELECT count(*) AS n FROM events WHERE title = 'Table night'")[0]["n"] == 1
    preview = orjson.loads(app.sql("SELECT preview FROM import_runs WHERE id = $1", run_id)[0]["preview"])
    assert [column["field"] for column in preview["columns"]] == ["title", "start_date", "end_date"]
