"""Series rows: definitions as JSON, history, and batch writes of events."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import chain
from typing import Any, LiteralString

import orjson
from asyncpg import Record

from kalends.calendar.storage import record_tables
from kalends.core.recurrence import format_rule, read_rule
from kalends.core.slugs import add_number
from kalends.series.rules.series_slots import ContentChange, Definition, Part
from kalends.store.change_log import encode_columns
from kalends.store.database import Database, Transaction
from kalends.store.sql import Sql, join

DEFINITION_COLUMNS: tuple[LiteralString, ...] = ("parts", "template", "content_changes", "added", "removed")


def decode_definition(row: Record | Mapping[str, Any]) -> Definition:
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
    """Decode a series' rules; cached because many events in a list belong to the same series."""
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
    """Return the changes to events and other series that a series change caused, in order."""
    return await tx.fetch_all(
        Sql(
            """SELECT revision, kind, record_id, action, before, after FROM changes
                WHERE site_id = ? AND cause = ? ORDER BY revision""",
            tx.site.id,
            cause,
        )
    )


async def list_trashed_together(tx: Transaction, series_id: int) -> set[int]:
    """Return the IDs of the events that were trashed together with their series."""
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
    """Return whether a series has any events, including trashed events."""
    found = await tx.fetch_value(
        Sql("SELECT true FROM events WHERE site_id = ? AND series_id = ? LIMIT 1", tx.site.id, series_id)
    )
    return bool(found)


async def has_other_dates(tx: Transaction, series_id: int, event_id: int) -> bool:
    """Return whether a series has another event that is not in the trash."""
    found = await tx.fetch_value(
        Sql(
            "SELECT true FROM events WHERE site_id = ? AND series_id = ? AND id <> ? AND status <> 'trash' LIMIT 1",
            *(tx.site.id, series_id, event_id),
        )
    )
    return bool(found)


async def find_incomplete(database: Database, horizon: datetime, limit: int) -> list[Record]:
    """Return series on all sites that still lack dates before the horizon."""
    return await database.fetch_unscoped(Sql("SELECT site_id, id FROM incomplete_series(?, ?)", horizon, limit))


async def fetch_incomplete(tx: Transaction, ids: Sequence[int], horizon: datetime) -> list[Record]:
    """Return the given series that still lack dates before the horizon."""
    columns: LiteralString = ", ".join(DEFINITION_COLUMNS)
    return await tx.fetch_all(
        Sql(
            "SELECT id, slug, published_at, modified_utc, created_until, " + columns + " FROM series "
            "WHERE site_id = ? AND id = ANY(?) AND created_until < ? AND status <> 'trash' "
            "ORDER BY created_until, id",
            *(tx.site.id, list(ids), horizon),
        )
    )


async def list_slots(tx: Transaction, series: Sequence[Record]) -> set[tuple[int, datetime]]:
    """Return the series ID and slot of each event after the earliest `created_until` of these series."""
    if not series:
        return set()
    # Slots are local times, which differ from UTC by less than a day.
    first = min(row["created_until"] for row in series).replace(tzinfo=None) - timedelta(days=1)
    rows = await tx.fetch_all(
        Sql(
            "SELECT series_id, slot FROM events WHERE site_id = ? AND series_id = ANY(?) AND slot > ?",
            *(tx.site.id, [row["id"] for row in series], first),
        )
    )
    return {(row["series_id"], row["slot"]) for row in rows}


async def set_created_until(tx: Transaction, series_id: int, created_until: datetime | None) -> None:
    """Store how far ahead a series' events have been created. The series keeps its revision."""
    await tx.execute(
        Sql("UPDATE series SET created_until = ? WHERE site_id = ? AND id = ?", created_until, tx.site.id, series_id)
    )


async def replace_linked_ids(tx: Transaction, column: str, old_id: int, new_id: int) -> None:
    """Replace a linked record's ID in the content of all series after a merge."""
    rows = await tx.fetch_all(
        Sql(
            """SELECT id, status = 'publish' AND NOT hide_from_listings AS public,
                    template, content_changes FROM series
                WHERE site_id = ? AND (template::text LIKE ? OR content_changes::text LIKE ?)""",
            *(tx.site.id, f'%"{column}"%{old_id}%', f'%"{column}"%{old_id}%'),
        )
    )
    for row in rows:
        template = _replace_id(orjson.loads(row["template"]), column, old_id, new_id)
        changes = [
            {**change, "set": _replace_id(change["set"], column, old_id, new_id)}
            for change in orjson.loads(row["content_changes"])
        ]
        columns: dict[LiteralString, str] = {"template": _encode(template), "content_changes": _encode(changes)}
        before = encode_columns({name: row[name] for name in columns})
        revision = tx.changes.record(
            "series", row["id"], "update", before=before, after=encode_columns({**columns}), was_public=row["public"]
        )
        values: dict[LiteralString, object] = {**columns, "revision": revision, "modified_utc": tx.now}
        await record_tables.change(tx, "series", row["id"], values)


async def replace_author(tx: Transaction, old_id: int, new_id: int) -> None:
    """Replace an author in the content of all series, because events created later copy it."""
    await tx.execute(
        Sql(
            """UPDATE series SET template = jsonb_set(template, '{author_id}', to_jsonb(?::bigint))
                WHERE site_id = ? AND template -> 'author_id' = to_jsonb(?::bigint)""",
            *(new_id, tx.site.id, old_id),
        )
    )
    await tx.execute(
        Sql(
            """UPDATE series SET content_changes = (
                    SELECT jsonb_agg(CASE WHEN c #> '{set,author_id}' = to_jsonb(?::bigint)
                        THEN jsonb_set(c, '{set,author_id}', to_jsonb(?::bigint)) ELSE c END ORDER BY n)
                    FROM jsonb_array_elements(content_changes) WITH ORDINALITY AS e (c, n))
                WHERE site_id = ? AND content_changes <> '[]'""",
            *(old_id, new_id, tx.site.id),
        )
    )


def _replace_id(content: dict[str, Any], column: str, old_id: int, new_id: int) -> dict[str, Any]:
    if column not in content:
        return content
    ids = [new_id if entry == old_id else entry for entry in content[column]]
    return {**content, column: list(dict.fromkeys(ids))}


async def count_caused_changes(tx: Transaction, causes: Sequence[int]) -> dict[int, int]:
    """Return the number of events that each series change affected."""
    rows = await tx.fetch_all(
        Sql(
            """SELECT cause, count(DISTINCT record_id) AS count FROM changes
                WHERE site_id = ? AND cause = ANY(?) AND kind = 'events' GROUP BY cause""",
            tx.site.id,
            list(causes),
        )
    )
    return {row["cause"]: row["count"] for row in rows}


# Batch writes of events, with one statement per set of columns -------------------------------

Columns = Mapping[LiteralString, object]


async def insert_events(tx: Transaction, rows: Sequence[Columns]) -> None:
    """Insert events that all have the same columns."""
    if not rows:
        return
    names: list[LiteralString] = list(rows[0])
    shared = _find_shared(rows, names)
    selected = join(", ", [Sql("?", shared[name]) if name in shared else Sql("s." + name) for name in names])
    await tx.execute(
        Sql("INSERT INTO events (site_id, " + ", ".join(names) + ") SELECT ?,", tx.site.id)
        + selected
        + Sql("FROM jsonb_populate_recordset(NULL::events, ?::jsonb) s", _encode_varying(rows, shared))
    )


async def insert_links(
    tx: Transaction, table: LiteralString, column: LiteralString, linked: Mapping[int, Sequence[int]]
) -> None:
    """Link new events to records; `linked` maps event IDs to ordered record IDs."""
    entries = [
        (event_id, linked_id, position)
        for event_id, ids in linked.items()
        for position, linked_id in enumerate(ids, start=1)
    ]
    if not entries:
        return
    event_ids, linked_ids, positions = zip(*entries, strict=True)
    await tx.execute(
        Sql(
            "INSERT INTO " + table + " (site_id, event_id, " + column + ", position, start_utc, listed, published) "
            "SELECT e.site_id, e.id, l.id, l.position, e.start_utc, e.listed, e.status = 'publish' "
            "FROM unnest(?::bigint[], ?::bigint[], ?::bigint[]) AS l (event_id, id, position) "
            "JOIN events e ON e.site_id = ? AND e.id = l.event_id",
            *(list(event_ids), list(linked_ids), list(positions), tx.site.id),
        )
    )


async def update_events(tx: Transaction, changes: Mapping[int, Columns]) -> None:
    """Update events by ID, with one statement for each set of columns."""
    groups: dict[tuple[LiteralString, ...], list[Columns]] = {}
    for event_id, columns in changes.items():
        groups.setdefault(tuple(sorted(columns)), []).append({"id": event_id, **columns})
    for names, rows in groups.items():
        shared = _find_shared(rows, names)
        assignments = join(
            ", ",
            [Sql(name + " = ?", shared[name]) if name in shared else Sql(name + " = s." + name) for name in names],
        )
        await tx.execute(
            Sql("UPDATE events r SET")
            + assignments
            + Sql(
                "FROM jsonb_populate_recordset(NULL::events, ?::jsonb) s WHERE r.site_id = ? AND r.id = s.id",
                _encode_varying(rows, shared),
                tx.site.id,
            )
        )


def _find_shared(rows: Sequence[Columns], names: Iterable[LiteralString]) -> dict[LiteralString, object]:
    """Return the columns with the same value in all rows.

    A statement sends them only once, because descriptions can be long.
    """
    first = rows[0]
    return {name: first[name] for name in names if all(row[name] == first[name] for row in rows)}


def _encode_varying(rows: Sequence[Columns], shared: Mapping[LiteralString, object]) -> str:
    varying = [{name: value for name, value in row.items() if name not in shared or name == "id"} for row in rows]
    return orjson.dumps(varying, default=_encode_value).decode()


def _encode_value(value: Any) -> str:
    return "\\x" + bytes(value).hex() if isinstance(value, bytes | memoryview) else str(value)


async def find_free_slugs(tx: Transaction, wanted: Mapping[int, str]) -> dict[int, str]:
    """Return a free slug for each event ID: the wanted slug, with a number if it is in use.

    For each slug, the first statement checks as many numbers as there are events that want it. If stored events use
    some of them, more statements follow, with 8, 64, 512 … extra numbers.
    """
    counts = Counter(wanted.values())
    free: dict[int, str] = {}
    used: set[str] = set()
    waiting, reserve = dict(wanted), 0
    while waiting:
        slugs = {*waiting.values()}
        numbered = {slug: [add_number(slug, n) for n in range(1, counts[slug] + reserve + 1)] for slug in slugs}
        rows = await tx.fetch_all(
            Sql(
                "SELECT slug, id FROM events WHERE site_id = ? AND slug = ANY(?)",
                tx.site.id,
                list(chain.from_iterable(numbered.values())),
            )
        )
        owners = {row["slug"]: row["id"] for row in rows}
        unavailable = used | {slug for slug, owner in owners.items() if owner not in wanted}
        left = {slug: [c for c in candidates if c not in unavailable] for slug, candidates in numbered.items()}
        for event_id, slug in list(waiting.items()):
            available = (c for c in left[slug] if c not in used and owners.get(c, event_id) == event_id)
            if (chosen := next(available, None)) is not None:
                free[event_id] = chosen
                used.add(chosen)
                left[slug].remove(chosen)
                del waiting[event_id]
        reserve = max(8, 8 * reserve)
    return free
