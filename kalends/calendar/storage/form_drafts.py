"""Rows for form drafts and saved filters. Writing these rows does not raise the site's revision."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import orjson
from asyncpg import Record

from kalends.store.database import Transaction
from kalends.store.sql import Sql

MAX_DRAFTS: Final = 50  # maximum per user and kind; the oldest drafts are removed


@dataclass(frozen=True, slots=True)
class Draft:
    """The last stored state of a form. The fields are pairs of a name and a value."""

    key: str
    base_revision: int | None
    pairs: list[tuple[str, str]]
    saved_at: datetime


async def save_draft(
    tx: Transaction, user_id: int, kind: str, key: str, *, base_revision: int | None, pairs: Sequence[tuple[str, str]]
) -> bool:
    """Insert or replace a draft. Return whether it is new."""
    row = await tx.fetch_one(
        Sql(
            """
            INSERT INTO drafts (site_id, user_id, kind, draft_key, base_revision, fields, saved_at)
            VALUES (?, ?, ?, ?, ?, ?::jsonb, ?)
            ON CONFLICT (site_id, user_id, kind, draft_key) DO UPDATE SET base_revision = excluded.base_revision,
                fields = excluded.fields, saved_at = excluded.saved_at
            RETURNING xmax = 0 AS is_new
            """,
            *(tx.site.id, user_id, kind, key, base_revision, orjson.dumps(list(pairs)).decode(), tx.now),
        )
    )
    return bool(row and row["is_new"])


async def remove_oldest(tx: Transaction, user_id: int, kind: str) -> None:
    await tx.execute(
        Sql(
            """
            DELETE FROM drafts d WHERE d.site_id = ? AND d.user_id = ? AND d.kind = ? AND d.draft_key IN (
                SELECT o.draft_key FROM drafts o WHERE o.site_id = ? AND o.user_id = ? AND o.kind = ?
                ORDER BY o.saved_at DESC OFFSET ?)
            """,
            *(tx.site.id, user_id, kind, tx.site.id, user_id, kind, MAX_DRAFTS),
        )
    )


async def find_draft(tx: Transaction, user_id: int, kind: str, key: str) -> Draft | None:
    row = await tx.fetch_one(
        Sql(
            """SELECT draft_key, base_revision, fields, saved_at FROM drafts
                WHERE site_id = ? AND user_id = ? AND kind = ? AND draft_key = ?""",
            *(tx.site.id, user_id, kind, key),
        )
    )
    return _read_row(row) if row else None


async def list_new_drafts(tx: Transaction, user_id: int, kind: str, limit: int) -> list[Draft]:
    """Return drafts for records that do not exist yet, newest first."""
    rows = await tx.fetch_all(
        Sql(
            """SELECT draft_key, base_revision, fields, saved_at FROM drafts
                WHERE site_id = ? AND user_id = ? AND kind = ? AND draft_key !~ '^[0-9]+$'
                ORDER BY saved_at DESC LIMIT ?""",
            *(tx.site.id, user_id, kind, limit),
        )
    )
    return [_read_row(row) for row in rows]


async def remove_drafts(tx: Transaction, user_id: int, kind: str, keys: Sequence[str]) -> None:
    await tx.execute(
        Sql(
            "DELETE FROM drafts WHERE site_id = ? AND user_id = ? AND kind = ? AND draft_key = ANY(?)",
            *(tx.site.id, user_id, kind, list(keys)),
        )
    )


def _read_row(row: Any) -> Draft:
    pairs = [(str(name), str(value)) for name, value in orjson.loads(row["fields"])]
    return Draft(row["draft_key"], row["base_revision"], pairs, row["saved_at"])


# Named table filters that console users have saved.


async def list_saved(tx: Transaction, user_id: int) -> list[Record]:
    return await tx.fetch_all(
        Sql(
            "SELECT name, query FROM saved_filters WHERE site_id = ? AND user_id = ? ORDER BY lower(name), name",
            tx.site.id,
            user_id,
        )
    )


async def save(tx: Transaction, user_id: int, name: str, query: str) -> None:
    """Save a filter, replacing any filter with the same name."""
    await tx.execute(
        Sql(
            """INSERT INTO saved_filters (site_id, user_id, name, query) VALUES (?, ?, ?, ?)
                ON CONFLICT (site_id, user_id, name) DO UPDATE SET query = excluded.query""",
            *(tx.site.id, user_id, name, query),
        )
    )


async def remove(tx: Transaction, user_id: int, name: str) -> None:
    await tx.execute(
        Sql("DELETE FROM saved_filters WHERE site_id = ? AND user_id = ? AND name = ?", tx.site.id, user_id, name)
    )
