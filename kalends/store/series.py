"""Rows of series: their definition as JSON, and the events that belong to them."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, LiteralString

import orjson
from asyncpg import Record

from kalends.core.recurrence import format_rule, read_rule
from kalends.core.series import ContentChange, Definition, Part
from kalends.store import records
from kalends.store.database import Database, Transaction
from kalends.store.history import encode_columns
from kalends.store.sql import Sql

# The columns that together are the definition of a series.
DEFINITION_COLUMNS: tuple[LiteralString, ...] = ("parts", "template", "content_changes", "added", "removed")


def decode_definition(row: Record | Mapping[str, Any]) -> Definition:
    """Return the definition that a row contains."""
    return Definition(
        parts=decode_parts(row["parts"]),
        template=orjson.loads(row["template"]),
        content_changes=tuple(
            ContentChange(datetime.fromisoformat(change["from"]), change["set"])
            for change in orjson.loads(row["content_changes"])
        ),
        added=tuple(row["added"]),
        removed=tuple(row["removed"]),
    )


def encode_definition(definition: Definition) -> dict[LiteralString, Any]:
    """Return the columns of a definition."""
    return {
        "parts": _encode([_encode_part(part) for part in definition.parts]),
        "template": _encode(definition.template),
        "content_changes": _encode(
            [{"from": change.since.isoformat(), "set": change.values} for change in definition.content_changes]
        ),
        "added": list(definition.added),
        "removed": list(definition.removed),
    }


@lru_cache(maxsize=2048)
def decode_parts(encoded: str) -> tuple[Part, ...]:
    """Decode the rules of a series. They are cached, because all events of a list have the same ones."""
    return tuple(map(_decode_part, orjson.loads(encoded)))


def _decode_part(part: Mapping[str, Any]) -> Part:
    return Part(
        uid=part["uid"],
        rule=read_rule(part["rule"], part["timezone"]) if part["rule"] else None,
        start=datetime.fromisoformat(part["start"]),
        end=datetime.fromisoformat(part["end"]),
        timezone=part["timezone"],
        all_day=part["all_day"],
    )


def _encode_part(part: Part) -> dict[str, Any]:
    return {
        "uid": part.uid,
        "rule": format_rule(part.rule) if part.rule is not None else "",
        "start": part.start.isoformat(),
        "end": part.end.isoformat(),
        "timezone": part.timezone,
        "all_day": part.all_day,
    }


def _encode(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


async def list_caused_changes(tx: Transaction, cause: int) -> list[Record]:
    """Return the changes of events and of other series that a change of a series caused, in order."""
    return await tx.fetch_all(
        Sql(
            """SELECT revision, kind, record_id, action, before, after FROM changes
                WHERE site_id = ? AND cause = ? ORDER BY revision""",
            tx.site.id,
            cause,
        )
    )


async def list_trashed_together(tx: Transaction, series_id: int) -> set[int]:
    """Return the events that went to the trash at the same time as their series."""
    rows = await tx.fetch_all(
        Sql(
            """SELECT e.id FROM events e JOIN series s ON s.site_id = e.site_id AND s.id = e.series_id
                WHERE e.site_id = ? AND e.series_id = ? AND e.status = 'trash' AND e.trashed_at = s.trashed_at""",
            tx.site.id,
            series_id,
        )
    )
    return {row["id"] for row in rows}


async def has_events(tx: Transaction, series_id: int) -> bool:
    """Return whether any event belongs to a series, also one in the trash."""
    found = await tx.fetch_value(
        Sql("SELECT true FROM events WHERE site_id = ? AND series_id = ? LIMIT 1", tx.site.id, series_id)
    )
    return bool(found)


async def has_other_dates(tx: Transaction, series_id: int, event_id: int) -> bool:
    """Return whether a series has an event besides this one that is not in the trash."""
    found = await tx.fetch_value(
        Sql(
            "SELECT true FROM events WHERE site_id = ? AND series_id = ? AND id <> ? AND status <> 'trash' LIMIT 1",
            tx.site.id,
            series_id,
            event_id,
        )
    )
    return bool(found)


async def find_incomplete(database: Database, horizon: datetime, limit: int = 1000) -> list[Record]:
    """Return series of all sites whose dates before the horizon have not all been created."""
    return await database.fetch_unscoped(Sql("SELECT site_id, id FROM incomplete_series(?, ?)", horizon, limit))


async def fetch_incomplete(tx: Transaction, ids: Sequence[int], horizon: datetime) -> list[Record]:
    """Return those of the series whose dates before the horizon have not all been created."""
    columns: LiteralString = ", ".join(DEFINITION_COLUMNS)
    return await tx.fetch_all(
        Sql(
            "SELECT id, slug, published_at, modified_utc, created_until, " + columns + " FROM series "
            "WHERE site_id = ? AND id = ANY(?) AND created_until < ? AND status <> 'trash' "
            "ORDER BY created_until, id",
            tx.site.id,
            list(ids),
            horizon,
        )
    )


async def list_slots(tx: Transaction, series: Sequence[Record]) -> set[tuple[int, datetime]]:
    """Return the IDs of series and the slots of their events after the time until which dates exist."""
    if not series:
        return set()
    # Slots are local times, which differ from UTC by less than a day.
    first = min(row["created_until"] for row in series).replace(tzinfo=None) - timedelta(days=1)
    rows = await tx.fetch_all(
        Sql(
            "SELECT series_id, slot FROM events WHERE site_id = ? AND series_id = ANY(?) AND slot > ?",
            tx.site.id,
            [row["id"] for row in series],
            first,
        )
    )
    return {(row["series_id"], row["slot"]) for row in rows}


async def set_created_until(tx: Transaction, series_id: int, created_until: datetime | None) -> None:
    """Store until when the dates of a series exist. This is no change of the series: its revision stays."""
    await tx.execute(
        Sql("UPDATE series SET created_until = ? WHERE site_id = ? AND id = ?", created_until, tx.site.id, series_id)
    )


async def replace_linked_ids(tx: Transaction, column: str, old_id: int, new_id: int) -> None:
    """Replace the ID of a linked record in the content of all series, after it was merged into another one."""
    rows = await tx.fetch_all(
        Sql(
            """SELECT id, status = 'publish' AND NOT hide_from_listings AS public,
                    template, content_changes FROM series
                WHERE site_id = ? AND (template::text LIKE ? OR content_changes::text LIKE ?)""",
            tx.site.id,
            f'%"{column}"%{old_id}%',
            f'%"{column}"%{old_id}%',
        )
    )
    for row in rows:
        template = _replace_id(orjson.loads(row["template"]), column, old_id, new_id)
        changes = [
            {**change, "set": _replace_id(change["set"], column, old_id, new_id)}
            for change in orjson.loads(row["content_changes"])
        ]
        columns: dict[LiteralString, str] = {"template": _encode(template), "content_changes": _encode(changes)}
        await _write_content(tx, row, columns)


async def replace_author(tx: Transaction, old_id: int, new_id: int) -> None:
    """Replace the author in the content of all series, who is the author of new dates."""
    await tx.execute(
        Sql(
            """UPDATE series SET template = jsonb_set(template, '{author_id}', to_jsonb(?::bigint))
                WHERE site_id = ? AND template -> 'author_id' = to_jsonb(?::bigint)""",
            new_id,
            tx.site.id,
            old_id,
        )
    )
    await tx.execute(
        Sql(
            """UPDATE series SET content_changes = (
                    SELECT jsonb_agg(CASE WHEN c #> '{set,author_id}' = to_jsonb(?::bigint)
                        THEN jsonb_set(c, '{set,author_id}', to_jsonb(?::bigint)) ELSE c END ORDER BY n)
                    FROM jsonb_array_elements(content_changes) WITH ORDINALITY AS e (c, n))
                WHERE site_id = ? AND content_changes <> '[]'""",
            old_id,
            new_id,
            tx.site.id,
        )
    )


async def _write_content(tx: Transaction, row: Record, columns: Mapping[LiteralString, str]) -> None:
    """Log and write the content of a series."""
    before = encode_columns({name: row[name] for name in columns})
    revision = tx.changes.record(
        "series",
        row["id"],
        "update",
        before=before,
        after=encode_columns({**columns}),
        was_public=row["public"],
    )
    values: dict[LiteralString, object] = {**columns, "revision": revision, "modified_utc": tx.now}
    await records.change(tx, "series", row["id"], values)


def _replace_id(content: dict[str, Any], column: str, old_id: int, new_id: int) -> dict[str, Any]:
    if column not in content:
        return content
    ids = [new_id if entry == old_id else entry for entry in content[column]]
    return {**content, column: list(dict.fromkeys(ids))}
