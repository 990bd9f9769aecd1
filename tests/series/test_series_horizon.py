"""The job that creates the next dates of series: each date once, whatever happens in between."""

import asyncio
import itertools
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from kalends.series.jobs import MAX_ROWS, extend_all, extend_batch
from kalends.series.operations.series_matching import compute_horizon
from kalends.store.database import Database, Options
from tests.api.conftest import StartApp
from tests.api.running_app import Caller, RunningApp, expect_json
from tests.lifecycle.processes import run_command, wait_until
from tests.series.series_client import EXTENSION, SeriesClient
from tests.servers import make_environment

NOW = datetime.now(UTC).replace(microsecond=0)
TODAY = NOW.replace(hour=0, minute=0, second=0)
TOMORROW = (NOW + timedelta(days=1)).strftime("%Y-%m-%d")
DAILY = {"start_date": f"{TOMORROW} 19:30:00", "end_date": f"{TOMORROW} 21:00:00", "rule": "FREQ=DAILY;INTERVAL=10"}
SLOW_INSERTS = """
    CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.3); RETURN NULL; END $$;
    CREATE TRIGGER wait AFTER INSERT ON events FOR EACH STATEMENT EXECUTE FUNCTION wait();
"""


@pytest.fixture(scope="module")
def app(start_single_site_for_module: StartApp) -> RunningApp:
    """Return an application on a separate database, because the jobs handle all sites."""
    return start_single_site_for_module()


@pytest.fixture
def client(editor: Caller) -> SeriesClient:
    return SeriesClient(editor)


def extend(app: RunningApp, now: datetime) -> int:
    async def run() -> int:
        database = await Database.open(Options(url=app.database_url))
        try:
            return await extend_all(database, now)
        finally:
            await database.close()

    return app.run(run())


def slots(app: RunningApp, series_id: int) -> list[datetime]:
    rows = app.sql("SELECT slot FROM events WHERE series_id = $1 ORDER BY slot", series_id)
    return [row["slot"] for row in rows]


def created_until(app: RunningApp, series_id: int) -> datetime | None:
    (row,) = app.sql("SELECT created_until FROM series WHERE id = $1", series_id)
    until: datetime | None = row["created_until"]
    return until


def test_dates_are_created_in_blocks_and_once(app: RunningApp, client: SeriesClient) -> None:
    series = client.create(title="Blocks", **DAILY)
    before = slots(app, series["id"])
    until = created_until(app, series["id"])
    assert until is not None
    assert until == compute_horizon(NOW, datetime.fromisoformat(f"{TOMORROW}T18:30:00+00:00"))
    assert extend(app, NOW) == 0
    later = NOW + timedelta(days=5)
    extend(app, later)
    after = slots(app, series["id"])
    assert created_until(app, series["id"]) == until + timedelta(days=31)
    assert after[: len(before)] == before
    assert {second - first for first, second in itertools.pairwise(after)} == {timedelta(days=10)}
    assert after[-1] > before[-1] + timedelta(days=20)
    assert extend(app, later) == 0
    assert slots(app, series["id"]) == after


def test_an_undo_keeps_dates_beyond_the_horizon(app: RunningApp, client: SeriesClient) -> None:
    series = client.create(title="Undone", **DAILY)
    extend(app, NOW + timedelta(days=5))
    before, revision = client.read(series["id"])["total"], client.revision(series["id"])
    client.caller.delete(f"{EXTENSION}/events/{client.events(series['id'])[4]['id']}?scope=following")
    assert client.read(series["id"])["total"] == 4
    client.restore(series["id"], revision=revision)
    assert client.read(series["id"])["total"] == before


def test_a_series_that_is_far_behind_catches_up(app: RunningApp, client: SeriesClient) -> None:
    series = client.create(title="Behind", **DAILY)
    later = NOW + timedelta(days=400)
    extend(app, later)
    until = created_until(app, series["id"])
    assert until is not None
    assert until >= compute_horizon(later, later)
    assert slots(app, series["id"])[-1] > (until - timedelta(days=11)).replace(tzinfo=None)


def test_new_dates_are_as_old_as_their_series(app: RunningApp, client: SeriesClient) -> None:
    series = client.create(title="No news", cost="3", **DAILY)
    first = len(slots(app, series["id"]))
    app.sql("UPDATE series SET modified_utc = '2026-01-02', published_at = '2026-01-01' WHERE id = $1", series["id"])
    extend(app, NOW + timedelta(days=3))
    rows = app.sql(
        """SELECT e.modified_utc, e.published_at, e.cost, e.slug, e.slot, c.cause FROM events e
           JOIN changes c ON c.kind = 'events' AND c.record_id = e.id WHERE series_id = $1 ORDER BY slot""",
        series["id"],
    )
    new = rows[first:]
    assert new
    assert {(row["modified_utc"].day, row["published_at"].day, row["cost"], row["cause"]) for row in new} == {
        (2, 1, "3", None)
    }
    assert [row["slug"] for row in new] == [f"{series['slug']}-{row['slot']:%Y-%m-%d}" for row in new]


def test_a_series_with_an_end_is_complete_with_its_last_date(app: RunningApp, client: SeriesClient) -> None:
    rule = f"FREQ=DAILY;INTERVAL=10;UNTIL={NOW + timedelta(days=790):%Y%m%d}"
    series = client.create(title="Ending", **{**DAILY, "rule": rule})
    assert created_until(app, series["id"]) is not None
    extend(app, NOW + timedelta(days=40))
    assert created_until(app, series["id"]) is None
    assert slots(app, series["id"])[-1] > (NOW + timedelta(days=779)).replace(tzinfo=None)


def test_removed_added_and_trashed_dates_are_respected(app: RunningApp, client: SeriesClient) -> None:
    first = datetime.fromisoformat(f"{TOMORROW} 19:30:00")
    removed, added = first + timedelta(days=770), first + timedelta(days=775)
    series = client.create(title="Exceptions", add_dates=[str(added)], **DAILY)
    assert slots(app, series["id"])[-1] == added
    app.sql("UPDATE series SET removed = ARRAY[$2::timestamp] WHERE id = $1", series["id"], removed)
    extend(app, NOW + timedelta(days=60))
    after = slots(app, series["id"])
    assert removed not in after
    assert after.count(added) == 1


def test_an_event_that_an_earlier_rule_has_trashed_comes_back(
    app: RunningApp, client: SeriesClient, editor: Caller
) -> None:
    """An added date beyond the horizon goes to the trash with the end of its series, which then continues."""
    first = datetime.fromisoformat(f"{TOMORROW} 19:30:00")
    added = first + timedelta(days=780)
    series = client.create(
        title="Back", add_dates=[str(added)], **{**DAILY, "rule": "FREQ=DAILY;INTERVAL=10;COUNT=2"}
    )
    events = client.events(series["id"])
    assert editor.delete(f"{EXTENSION}/events/{events[1]['id']}?scope=following").status_code == 200
    client.edit(events[0]["id"], "all", rule="FREQ=DAILY;INTERVAL=10")
    extend(app, NOW + timedelta(days=60))
    (row,) = app.sql("SELECT id, status FROM events WHERE series_id = $1 AND slot = $2", series["id"], added)
    assert (row["id"], row["status"]) == (events[-1]["id"], "publish")


def test_a_series_in_the_trash_is_left_alone(app: RunningApp, client: SeriesClient, editor: Caller) -> None:
    series = client.create(title="Gone", **DAILY)
    editor.delete(f"{EXTENSION}/series/{series['id']}")
    before = slots(app, series["id"])
    extend(app, NOW + timedelta(days=60))
    assert slots(app, series["id"]) == before


def test_a_batch_ends_at_its_maximum(start_single_site: StartApp) -> None:
    app = start_single_site()
    ids = _copy_series(app, 20, "FREQ=DAILY")

    async def run() -> int:
        database = await Database.open(Options(url=app.database_url))
        try:
            async with database.transaction(1, NOW, writing=True) as tx:
                return await extend_batch(tx, ids)
        finally:
            await database.close()

    assert 0 < app.run(run()) <= MAX_ROWS
    extend(app, NOW)
    assert {len(slots(app, series_id)) for series_id in ids} == {62}


def test_a_series_that_cannot_be_extended_does_not_stop_the_others(start_single_site: StartApp) -> None:
    app = start_single_site()
    broken, *others = _copy_series(app, 5, "FREQ=WEEKLY")
    app.sql("UPDATE series SET author_id = author_id, template = template - 'author_id' WHERE id = $1", broken)
    extend(app, NOW)
    assert [len(slots(app, series_id)) for series_id in (broken, *others)] == [0, 9, 9, 9, 9]


def test_an_interrupted_run_and_the_next_one_create_each_date_once(start_single_site: StartApp) -> None:
    app = start_single_site()
    ids = _copy_series(app, 60, "FREQ=DAILY;INTERVAL=3")
    with psycopg.connect(app.database_url, autocommit=True) as connection:
        connection.execute(SLOW_INSERTS)
        process = subprocess.Popen(
            [sys.executable, "-m", "kalends", "series", "extend"], env=make_environment(app.database_url)
        )
        wait_until(lambda: _count(connection) > 0, 60)
        process.kill()
        process.wait()
        interrupted = _count(connection)
        connection.execute("DROP TRIGGER wait ON events")
    result = run_command(app.database_url, "series", "extend")
    assert result.exit_code == 0, result.output
    expected = {len(slots(app, series_id)) for series_id in ids}
    assert expected == {21}
    assert 0 < interrupted < 21 * len(ids)
    assert result.output.endswith(f"{21 * len(ids) - interrupted} dates created.\n")
    assert run_command(app.database_url, "series", "extend").output.endswith("0 dates created.\n")


def test_an_edit_during_the_job_gives_the_same_dates(app: RunningApp, client: SeriesClient) -> None:
    later = NOW + timedelta(days=40)
    results = []
    for title in ("Edit first", "Job first", "Both"):
        series = client.create(title=title, **DAILY)
        event = client.events(series["id"])[0]["id"]
        path = f"{EXTENSION}/events/{event}?scope=all"
        edit = client.caller.request_async("PATCH", path, json={"start_date": "18:00", "title": "Moved"})
        database = app.run(Database.open(Options(url=app.database_url)))
        try:
            job = extend_all(database, later)
            work = {"Edit first": [edit, job], "Job first": [job, edit]}
            replies = [app.run(step) for step in work[title]] if title in work else app.run(_gather(edit, job))
        finally:
            app.run(database.close())
        assert 200 in [getattr(reply, "status_code", None) for reply in replies]
        rows = app.sql(
            "SELECT slot, start_local, title, status FROM events WHERE series_id = $1 ORDER BY slot", series["id"]
        )
        results.append([tuple(row) for row in rows])
    assert results[0] == results[1] == results[2]
    assert {(row[0].hour, row[2]) for row in results[0]} == {(18, "Moved")}


async def _gather(*steps: Any) -> list[Any]:
    return list(await asyncio.gather(*steps))


def _count(connection: Any) -> int:
    count: int = connection.execute("SELECT count(*) FROM events").fetchone()[0]
    return count


def _copy_series(app: RunningApp, count: int, rule: str) -> list[int]:
    """Add series without events, whose dates exist until two blocks before the horizon."""
    editor = app.caller("editor")
    body = {"title": "Copied", **DAILY, "rule": "FREQ=DAILY;COUNT=1"}
    series = expect_json(editor.post(f"{EXTENSION}/series", body), 201)
    app.sql("DELETE FROM events")
    until = compute_horizon(NOW, NOW) - timedelta(days=61)
    app.sql(
        """INSERT INTO series (site_id, id, uid, revision, author_id, status, slug, published_at, modified_utc, parts,
               template, title, created_until)
           SELECT site_id, id + n, gen_random_uuid(), revision + 100000 + n, author_id, status, slug || n,
               published_at, modified_utc, jsonb_set(parts, '{0,rule}', to_jsonb($1::text)), template, title, $2
           FROM series, generate_series(1, $3::bigint) n WHERE id = $4""",
        rule,
        until,
        count,
        series["id"],
    )
    app.sql("UPDATE sites SET last_post_id = last_post_id + 1000")
    return [series["id"] + n for n in range(1, count + 1)]
