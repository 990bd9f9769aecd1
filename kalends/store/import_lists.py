"""Rows of imports as the API and the console list them, and the files that people upload for a source."""

from collections.abc import Sequence

from asyncpg import Record

from kalends.store.database import Transaction
from kalends.store.import_columns import RUN_COLUMNS, SELECT_ROWS, SOURCE_COLUMNS
from kalends.store.sql import Sql

# A source with its last run, its owner and its file.
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
    """Return runs before an ID, of one source or of all, the newest first."""
    of_source = Sql("AND r.source_id = ?", source_id) if source_id is not None else Sql("")
    earlier = Sql("AND r.id < ?", before) if before is not None else Sql("")
    return await tx.fetch_all(Sql(RUNS, tx.site.id) + of_source + earlier + Sql("ORDER BY r.id DESC LIMIT ?", limit))


async def find_run(tx: Transaction, run_id: int) -> Record | None:
    return await tx.fetch_one(Sql(RUNS, tx.site.id) + Sql("AND r.id = ?", run_id))


async def find_busy_run(tx: Transaction, source_id: int) -> int | None:
    """Return the run of a source that is being planned or applied, if there is one."""
    run_id: int | None = await tx.fetch_value(
        Sql(
            "SELECT max(id) FROM import_runs WHERE site_id = ? AND source_id = ? "
            "AND state IN ('planning', 'applying')",
            tx.site.id,
            source_id,
        )
    )
    return run_id


async def list_numbers(tx: Transaction, run_id: int, actions: Sequence[str], states: Sequence[str]) -> list[int]:
    """Return the numbers of the rows of a plan with these actions and states."""
    rows = await tx.fetch_all(
        Sql(
            "SELECT number FROM import_rows WHERE site_id = ? AND run_id = ? AND action = ANY(?) AND state = ANY(?) "
            "ORDER BY number",
            tx.site.id,
            run_id,
            list(actions),
            list(states),
        )
    )
    return [row["number"] for row in rows]


async def count_pending(tx: Transaction, run_id: int) -> int:
    number: int = await tx.fetch_value(
        Sql(
            "SELECT count(*) FROM import_rows WHERE site_id = ? AND run_id = ? AND state = 'pending'",
            tx.site.id,
            run_id,
        )
    )
    return number


async def count_rows(tx: Transaction, run_id: int) -> list[Record]:
    """Return the number of rows by action and state."""
    return await tx.fetch_all(
        Sql(
            "SELECT action, state, count(*) AS number FROM import_rows WHERE site_id = ? AND run_id = ? "
            "GROUP BY action, state",
            tx.site.id,
            run_id,
        )
    )


async def list_rows(
    tx: Transaction,
    run_id: int,
    *,
    actions: Sequence[str] | None = None,
    states: Sequence[str] | None = None,
    after: int = 0,
    limit: int = 100,
) -> list[Record]:
    """Return rows of a plan behind a number, of some actions and states or of all."""
    of_actions = Sql("AND action = ANY(?)", list(actions)) if actions is not None else Sql("")
    of_states = Sql("AND state = ANY(?)", list(states)) if states is not None else Sql("")
    plan = Sql(SELECT_ROWS + " WHERE site_id = ? AND run_id = ? AND number > ?", tx.site.id, run_id, after)
    return await tx.fetch_all(plan + of_actions + of_states + Sql("ORDER BY number LIMIT ?", limit))


async def save_file(tx: Transaction, source_id: int, name: str, content: bytes) -> None:
    """Store the file of a source in place of the previous one."""
    await tx.execute(
        Sql(
            """
            INSERT INTO import_files (site_id, source_id, name, content, uploaded_at) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (site_id, source_id) DO UPDATE
            SET name = excluded.name, content = excluded.content, uploaded_at = excluded.uploaded_at
            """,
            tx.site.id,
            source_id,
            name,
            content,
            tx.now,
        )
    )


async def read_file(tx: Transaction, source_id: int) -> Record | None:
    """Return the name and the content of the file of a source."""
    return await tx.fetch_one(
        Sql("SELECT name, content FROM import_files WHERE site_id = ? AND source_id = ?", tx.site.id, source_id)
    )
