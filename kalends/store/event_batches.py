"""Writing many events with one statement per group of equal columns."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, LiteralString

import orjson

from kalends.core.slugs import add_number
from kalends.store.database import Transaction
from kalends.store.sql import Sql, join

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
    """Link new events, given by ID, to records in their order."""
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
            list(event_ids),
            list(linked_ids),
            list(positions),
            tx.site.id,
        )
    )


async def update_events(tx: Transaction, changes: Mapping[int, Columns]) -> None:
    """Update events, given by ID, in groups that change the same columns."""
    groups: dict[tuple[LiteralString, ...], list[Columns]] = {}
    for event_id, columns in changes.items():
        groups.setdefault(tuple(sorted(columns)), []).append({"id": event_id, **columns})
    for names, rows in groups.items():
        await _update_group(tx, names, rows)


async def _update_group(tx: Transaction, names: Sequence[LiteralString], rows: Sequence[Columns]) -> None:
    shared = _find_shared(rows, names)
    assignments = join(
        ", ", [Sql(name + " = ?", shared[name]) if name in shared else Sql(name + " = s." + name) for name in names]
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
    """Return the columns with one value in all rows: a long description is then sent once."""
    first = rows[0]
    return {name: first[name] for name in names if all(row[name] == first[name] for row in rows)}


def _encode_varying(rows: Sequence[Columns], shared: Mapping[LiteralString, object]) -> str:
    varying = [{name: value for name, value in row.items() if name not in shared or name == "id"} for row in rows]
    return orjson.dumps(varying, default=_encode_value).decode()


def _encode_value(value: Any) -> str:
    return "\\x" + bytes(value).hex() if isinstance(value, bytes | memoryview) else str(value)


async def find_free_slugs(tx: Transaction, wanted: Mapping[int, str]) -> dict[int, str]:
    """Return a free slug for each event, given by ID: the wanted one, with a number if it is in use.

    One statement looks up as many numbers of each slug as events want it. Only if stored events have some of them,
    more statements follow, each with eight times as many numbers.
    """
    counts = Counter(wanted.values())
    free: dict[int, str] = {}
    used: set[str] = set()
    waiting, reserve = dict(wanted), 0
    while waiting:
        slugs = {*waiting.values()}
        numbered = {slug: [add_number(slug, n) for n in range(1, counts[slug] + reserve + 1)] for slug in slugs}
        owners = await _find_owners(tx, list(chain.from_iterable(numbered.values())))
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


async def _find_owners(tx: Transaction, slugs: list[str]) -> dict[str, int]:
    """Return the IDs of the events that have these slugs."""
    rows = await tx.fetch_all(
        Sql("SELECT slug, id FROM events WHERE site_id = ? AND slug = ANY(?)", tx.site.id, slugs)
    )
    return {row["slug"]: row["id"] for row in rows}
