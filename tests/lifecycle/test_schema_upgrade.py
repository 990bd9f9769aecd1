"""A database that was filled at revision 0009 is upgraded: history, restore, schedule and redirects still work."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson
import psycopg
import pytest
from psycopg import sql
from psycopg.rows import dict_row

from kalends.store.migrations import migrate
from tests.api.running_app import RunningApp, add_users, expect_json
from tests.conftest import replace_database, temporary_database
from tests.lifecycle.lifecycle_fixtures import EXTENSION_URL

AUTHOR, EVENT, VENUE, DUE, IMAGE = 4, 1, 2, 3, 4
CREATED, RETITLED, POSTPONED, GIVEN_AWAY, VENUE_CREATED, DUE_CREATED, IMAGE_CREATED = range(1, 8)
DATE, LATER_DATE = "2026-01-01T09:00:00+00:00", "2026-01-02T09:00:00+00:00"

# Each change as revision, kind, ID, action, columns before and columns after: named as they were in revision 0009.
CHANGES: tuple[tuple[int, str, int, str, dict[str, Any] | None, dict[str, Any]], ...] = (
    (
        CREATED,
        "events",
        EVENT,
        "create",
        None,
        {
            "title": "First",
            "author": 1,
            "status": "publish",
            "slug": "first",
            "date_utc": DATE,
            "timezone": "UTC",
            "start_local": "2026-05-01T10:00:00",
            "end_local": "2026-05-01T12:00:00",
            "start_fold": 0,
            "end_fold": 0,
            "all_day": False,
            "venue_ids": [VENUE],
        },
    ),
    (RETITLED, "events", EVENT, "update", {"title": "First", "slug": "first"}, {"title": "Last", "slug": "last"}),
    (POSTPONED, "events", EVENT, "update", {"date_utc": DATE}, {"date_utc": LATER_DATE}),
    (GIVEN_AWAY, "events", EVENT, "update", {"author": 1}, {"author": AUTHOR}),
    (
        VENUE_CREATED,
        "venues",
        VENUE,
        "create",
        None,
        {"title": "Hall", "author": 1, "status": "publish", "slug": "hall", "date_utc": DATE},
    ),
    (
        DUE_CREATED,
        "organizers",
        DUE,
        "create",
        None,
        {"title": "Club", "author": 1, "status": "future", "slug": "club", "date_utc": DATE},
    ),
    (IMAGE_CREATED, "media", IMAGE, "create", None, {"title": "Photograph", "url": "https://images.example/a.png"}),
)


@dataclass(frozen=True)
class Upgraded:
    url: str
    functions_before: dict[str, tuple[Any, ...]]
    functions_after: dict[str, tuple[Any, ...]]


FUNCTIONS = """
    SELECT p.proname, p.prosecdef, p.proleakproof, p.provolatile, p.proconfig, p.proacl::text
    FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND p.prosecdef
"""


def fill(connection: psycopg.Connection[Any]) -> None:
    """Insert one row into each renamed table, with the columns of revision 0009."""
    connection.execute(
        "INSERT INTO users (site_id, id, login, role) VALUES (1, 1, 'owner', 'editor'), (1, 4, 'heir', 'author')"
    )
    connection.execute(
        "UPDATE sites SET revision = %s, last_post_id = %s, last_user_id = %s", [IMAGE_CREATED, IMAGE, AUTHOR]
    )
    connection.execute(
        """
        INSERT INTO media (site_id, id, revision, url, extension, width, height, filesize, author, source_date,
            sent_hash, date_utc)
        VALUES (1, %s, %s, 'https://images.example/a.png', 'png', 1, 1, 1, 1, 'Thu, 01 Jan 2026 09:00:00 GMT',
            '\\x01', %s)
        """,
        [IMAGE, IMAGE_CREATED, DATE],
    )
    for table, record_id, revision, title, slug, status in (
        ("venues", VENUE, VENUE_CREATED, "Hall", "hall", "publish"),
        ("organizers", DUE, DUE_CREATED, "Club", "club", "future"),
    ):
        connection.execute(
            sql.SQL(
                "INSERT INTO {} (site_id, id, revision, author, status, slug, date_utc, modified_utc, title) "
                "VALUES (1, %s, %s, 1, %s, %s, %s, now(), %s)"
            ).format(sql.Identifier(table)),
            [record_id, revision, status, slug, DATE, title],
        )
    connection.execute(
        """
        INSERT INTO events (site_id, id, uid, revision, author, status, slug, date_utc, modified_utc, title, timezone,
            start_local, end_local, start_utc, end_utc)
        VALUES (1, %s, gen_random_uuid(), %s, %s, 'publish', 'last', %s, now(), 'Last', 'UTC', '2026-05-01 10:00',
            '2026-05-01 12:00', '2026-05-01 10:00Z', '2026-05-01 12:00Z')
        """,
        [EVENT, GIVEN_AWAY, AUTHOR, LATER_DATE],
    )
    connection.execute(
        "INSERT INTO event_venues VALUES (1, %s, %s, 0, '2026-05-01 10:00Z', true, true)", [EVENT, VENUE]
    )
    for revision, kind, record_id, action, before, after in CHANGES:
        connection.execute(
            "INSERT INTO changes "
            "(site_id, revision, kind, record_id, action, user_id, at, before, after, was_public) "
            "VALUES (1, %s, %s, %s, %s, 1, %s, %s::jsonb, %s::jsonb, true)",
            [
                revision,
                kind,
                record_id,
                action,
                DATE,
                orjson.dumps(before).decode() if before is not None else None,
                orjson.dumps(after).decode(),
            ],
        )
    connection.execute("INSERT INTO old_slugs VALUES (1, 'events', 'first', %s)", [EVENT])
    connection.execute("INSERT INTO spare_files VALUES (1, 'a.png', now(), now())")
    connection.execute("INSERT INTO login_failures VALUES (1, 'login:owner', 1, now())")
    connection.execute(
        "WITH added AS (INSERT INTO application_passwords (site_id, user_id, name, hash) "
        "VALUES (1, 1, 'laptop', '\\x00') RETURNING id) "
        "INSERT INTO application_password_uses (site_id, password_id, at, address, agent) "
        "SELECT 1, id, now(), '192.0.2.1', 'Test/1' FROM added"
    )


def list_functions(connection: psycopg.Connection[Any]) -> dict[str, tuple[Any, ...]]:
    return {name: tuple(properties) for name, *properties in connection.execute(FUNCTIONS)}


@pytest.fixture(scope="module")
def upgraded(postgres_url: str) -> Iterator[Upgraded]:
    with temporary_database(postgres_url) as name:
        url = replace_database(postgres_url, name)
        migrate(url, revision="0009")
        with psycopg.connect(url) as connection:
            before = list_functions(connection)
            fill(connection)
        migrate(url)
        with psycopg.connect(url) as connection:
            after = list_functions(connection)
        yield Upgraded(url, before, after)


@pytest.fixture(scope="module")
def app(upgraded: Upgraded) -> Iterator[RunningApp]:
    users = asyncio.run(add_users(upgraded.url))
    with RunningApp(upgraded.url, users) as running:
        yield running


def test_no_renamed_name_is_left(upgraded: Upgraded) -> None:
    with psycopg.connect(upgraded.url) as connection:
        columns = connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' "
            "AND table_name NOT LIKE 'procrastinate%'"
        ).fetchall()
        keys = connection.execute(
            "SELECT DISTINCT k FROM changes, jsonb_object_keys(coalesce(before, '{}') || coalesce(after, '{}')) AS k"
        ).fetchall()
    old = {"span", "months", "at", "agent", "author", "date_utc", "source_date", "sent_hash", "doomed_at"}
    assert not old & {column for _, column in columns}
    assert not {"spare_files", "old_slugs"} & {table for table, _ in columns}
    assert not old & {key for (key,) in keys}
    assert {"author_id", "published_at"} <= {key for (key,) in keys}


def test_functions_keep_their_owner_rights_and_search_path(upgraded: Upgraded) -> None:
    renamed = {"site_clocks": "site_revisions"}
    before = {renamed.get(name, name): properties for name, properties in upgraded.functions_before.items()}
    # This one also has a setting for its plan.
    *properties, (search_path,), rights = before["sites_with_old_changes"]
    before["sites_with_old_changes"] = (*properties, [search_path, "enable_seqscan=off"], rights)
    assert {name: upgraded.functions_after[name] for name in before} == before
    # Functions of later revisions have the same rights and search path.
    added = {name: properties for name, properties in upgraded.functions_after.items() if name not in before}
    assert added == dict.fromkeys(
        ["worker_heartbeat", "own_hosts", "incomplete_series", "due_imports", "site_changes", "dated_changes"],
        before["due_records"],
    )


def test_rows_of_renamed_tables_and_columns_are_kept(upgraded: Upgraded) -> None:
    with psycopg.connect(upgraded.url, row_factory=dict_row) as connection:
        image = connection.execute(
            "SELECT author_id, source_last_modified, upload_sha256, added_at FROM media WHERE id = %s", [IMAGE]
        ).fetchone()
        assert image is not None
        assert image.pop("added_at").isoformat() == DATE
        assert image == {
            "author_id": 1,
            "source_last_modified": "Thu, 01 Jan 2026 09:00:00 GMT",
            "upload_sha256": b"\x01",
        }
        assert connection.execute(
            "SELECT client_ip, user_agent FROM application_password_uses WHERE client_ip = '192.0.2.1'"
        ).fetchall() == [{"client_ip": "192.0.2.1", "user_agent": "Test/1"}]
        assert connection.execute("SELECT name FROM orphan_files WHERE deleting_since IS NOT NULL").fetchall() == [
            {"name": "a.png"}
        ]


def test_worker_functions_read_the_renamed_columns(upgraded: Upgraded) -> None:
    with psycopg.connect(upgraded.url) as connection:
        assert connection.execute("SELECT kind, id FROM due_records(10)").fetchall() == [("organizers", DUE)]
        assert connection.execute("SELECT * FROM sites_with_old_changes(now())").fetchall() == [(1,)]
        assert connection.execute("SELECT host, site_id FROM site_revisions(ARRAY['any'])").fetchall() == [("any", 1)]


def test_history_from_before_the_upgrade_is_readable(app: RunningApp) -> None:
    editor = app.caller("editor")
    history = expect_json(editor.get(f"{EXTENSION_URL}/events/{EVENT}/history?before={GIVEN_AWAY + 1}"))["history"]
    changes = {entry["revision"]: entry["changes"] for entry in history}
    assert changes[GIVEN_AWAY] == {"author": {"before": 1, "after": AUTHOR}}
    assert changes[POSTPONED] == {"date_utc": {"before": "2026-01-01 09:00:00", "after": "2026-01-02 09:00:00"}}
    assert list(changes[CREATED]) == [
        *("slug", "title", "author", "status", "all_day", "date_utc", "timezone", "end_date", "venue", "start_date")
    ]
    assert {entry["date_utc"] for entry in history} == {"2026-01-01 09:00:00"}


def test_event_from_before_the_upgrade_is_restored(app: RunningApp) -> None:
    editor = app.caller("editor")
    restored = expect_json(editor.post(f"{EXTENSION_URL}/events/{EVENT}/restore", {"revision": CREATED}))
    assert (restored["title"], restored["slug"], restored["author"], restored["date_utc"]) == (
        "First",
        "first",
        "1",
        "2026-01-01 09:00:00",
    )
    history = expect_json(editor.get(f"{EXTENSION_URL}/events/{EVENT}/history?per_page=1"))["history"]
    assert list(history[0]["changes"]) == ["slug", "title", "author", "date_utc"]
