"""Queries for the lists of imports in the API and the console, and for uploaded files."""

from collections.abc import Sequence
from typing import Final, LiteralString

from asyncpg import Record

from kalends.store.database import Transaction
from kalends.store.sql import Sql

SOURCE_COLUMNS: Final[LiteralString] = (
    "s.site_id, s.id, s.kind, s.name, s.url, s.interval_minutes, s.owner_id, s.default_status, "
    "s.default_category_id, s.authority, s.timezone, s.columns, s.trust_rank, s.allow_mass_deletion, s.state, "
    "s.etag, s.last_modified, s.input_hash, s.facts, s.created_at, s.next_run_at, s.last_success_at, s.failures, "
    "s.organizer_emails"
)
ITEM_COLUMNS: Final[LiteralString] = (
    "i.site_id, i.source_id, i.kind, i.identity, i.recurrence_id, i.record_id, i.fingerprint, i.source_values, "
    "i.stored_values, i.first_seen_at, i.last_seen_at, i.absences"
)
RUN_COLUMNS: Final[LiteralString] = (
    "r.site_id, r.id, r.source_id, r.user_id, r.undoes, r.state, r.started_at, r.planned_at, r.finished_at, "
    "r.counts, r.failure, r.warnings, r.progress, r.options, r.preview, r.input_hash, r.first_revision, "
    "r.last_revision"
)
ROW_COLUMNS: Final[LiteralString] = (
    "p.site_id, p.run_id, p.number, p.action, p.kind, p.identity, p.recurrence_id, p.title, p.record_id, "
    "p.record_revision, p.imported, p.changes, p.reasons, p.line, p.state, p.first_revision, p.revision, "
    "p.different_from"
)
SELECT_SOURCES: Final[LiteralString] = "SELECT " + SOURCE_COLUMNS + " FROM import_sources s"
SELECT_ITEMS: Final[LiteralString] = "SELECT " + ITEM_COLUMNS + " FROM import_items i"
SELECT_RUNS: Final[LiteralString] = "SELECT " + RUN_COLUMNS + " FROM import_runs r"
SELECT_ROWS: Final[LiteralString] = "SELECT " + ROW_COLUMNS + " FROM import_rows p"


# A source with its last run, owner and file.
SOURCES = (
    "SELECT "
    + SOURCE_COLUMNS
    + """,
        u.login AS owner_login, u.display_name AS owner_name, c.name AS category_name,
        f.name AS file_name, length(f.content) AS file_size, f.uploaded_at,
        r.id AS run_id, r.state AS run_state, r.started_at AS run_started_at
    FROM import_sources s
    LEFT JOIN users u ON u.site_id = s.site_id AND u.id = s.owner_id
    LEFT JOIN categories c ON c.site_id = s.site_id AND c.id = s.default_category_id
    LEFT JOIN import_files f ON f.site_id = s.site_id AND f.source_id = s.id
    LEFT JOIN LATERAL (SELECT r.id, r.state, r.started_at FROM import_runs r
        WHERE r.site_id = s.site_id AND r.source_id = s.id ORDER BY r.id DESC LIMIT 1) r ON true
    WHERE s.site_id = ?
"""
)
RUNS = (
    "SELECT "
    + RUN_COLUMNS
    + """,
        s.name AS source_name, s.kind AS source_kind, u.login AS user_login, u.display_name AS user_name,
        (SELECT max(z.id) FROM import_runs z WHERE z.site_id = r.site_id AND z.source_id = r.source_id
            AND z.undoes = r.id AND z.state = 'applied') AS undone_by
    FROM import_runs r
    JOIN import_sources s ON s.site_id = r.site_id AND s.id = r.source_id
    LEFT JOIN users u ON u.site_id = r.site_id AND u.id = r.user_id
    WHERE r.site_id = ?
"""
)


async def list_sources(tx: Transaction) -> list[Record]:
    return await tx.fetch_all(Sql(SOURCES, tx.site.id) + Sql("ORDER BY lower(s.name), s.id"))


async def find_source(tx: Transaction, source_id: int) -> Record | None:
    return await tx.fetch_one(Sql(SOURCES, tx.site.id) + Sql("AND s.id = ?", source_id))


async def list_runs(
    tx: Transaction, *, source_id: int | None = None, before: int | None = None, limit: int = 50
) -> list[Record]:
    """Return runs, newest first, optionally only of one source and only before a run ID."""
    of_source = Sql("AND r.source_id = ?", source_id) if source_id is not None else Sql("")
    earlier = Sql("AND r.id < ?", before) if before is not None else Sql("")
    return await tx.fetch_all(Sql(RUNS, tx.site.id) + of_source + earlier + Sql("ORDER BY r.id DESC LIMIT ?", limit))


async def find_run(tx: Transaction, run_id: int) -> Record | None:
    return await tx.fetch_one(Sql(RUNS, tx.site.id) + Sql("AND r.id = ?", run_id))


async def count_planned(tx: Transaction) -> int:
    """Return the number of sources whose last run is a plan that waits for a decision."""
    last = "SELECT r.state FROM import_runs r WHERE r.site_id = s.site_id AND r.source_id = s.id ORDER BY r.id DESC"
    query = "SELECT count(*) FROM import_sources s WHERE s.site_id = ? AND (" + last + " LIMIT 1) = 'planned'"
    number: int = await tx.fetch_value(Sql(query, tx.site.id))
    return number


async def find_busy_run(tx: Transaction, source_id: int) -> int | None:
    """Return the ID of the source's run that is being planned or applied, or None."""
    busy = "WHERE site_id = ? AND source_id = ? AND state IN ('planning', 'applying')"
    run_id: int | None = await tx.fetch_value(Sql("SELECT max(id) FROM import_runs " + busy, tx.site.id, source_id))
    return run_id


async def list_pending_numbers(tx: Transaction, run_id: int, actions: Sequence[str]) -> list[int]:
    pending = "WHERE site_id = ? AND run_id = ? AND action = ANY(?) AND state = ANY(?) ORDER BY number"
    query = Sql("SELECT number FROM import_rows " + pending, tx.site.id, run_id, list(actions), ["pending"])
    return [row["number"] for row in await tx.fetch_all(query)]


async def count_rows(tx: Transaction, run_id: int) -> list[Record]:
    """Return the number of rows by action and state."""
    rows = Sql("FROM import_rows WHERE site_id = ? AND run_id = ?", tx.site.id, run_id)
    return await tx.fetch_all(Sql("SELECT action, state, count(*) AS number") + rows + Sql("GROUP BY action, state"))


async def list_rows(
    tx: Transaction,
    run_id: int,
    *,
    actions: Sequence[str] | None = None,
    states: Sequence[str] | None = None,
    after: int = 0,
    limit: int = 100,
) -> list[Record]:
    """Return the rows of a plan after a row number, optionally filtered by action and state."""
    of_actions = Sql("AND action = ANY(?)", list(actions)) if actions is not None else Sql("")
    of_states = Sql("AND state = ANY(?)", list(states)) if states is not None else Sql("")
    plan = Sql(SELECT_ROWS + " WHERE site_id = ? AND run_id = ? AND number > ?", tx.site.id, run_id, after)
    return await tx.fetch_all(plan + of_actions + of_states + Sql("ORDER BY number LIMIT ?", limit))


async def save_file(tx: Transaction, source_id: int, name: str, content: bytes) -> None:
    """Store a source's file, replacing the previous one."""
    statement = """
        INSERT INTO import_files (site_id, source_id, name, content, uploaded_at) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT (site_id, source_id) DO UPDATE
        SET name = excluded.name, content = excluded.content, uploaded_at = excluded.uploaded_at
    """
    await tx.execute(Sql(statement, tx.site.id, source_id, name, content, tx.now))


async def read_file(tx: Transaction, source_id: int) -> Record | None:
    return await tx.fetch_one(
        Sql("SELECT name, content FROM import_files WHERE site_id = ? AND source_id = ?", tx.site.id, source_id)
    )
