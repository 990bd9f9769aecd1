"""The events of a feed: those of a list with the same parameters, as everybody sees them, and those that are off."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from kalends.core import errors, times
from kalends.core.slugs import TRASHED_SUFFIX, normalize_lookup
from kalends.core.times import DateTimeInput
from kalends.core.zones import SECOND
from kalends.kinds.event_window import BOUNDS, window_of
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Represented, for_each
from kalends.operations import cache_tags, event_passwords
from kalends.operations.context import Call
from kalends.operations.records import clauses_of, listing_of, represent_rows
from kalends.store import Row
from kalends.store.sql import Sql, and_

# Of a larger site a feed has the next ones; filters make it smaller.
MOST: Final = 5000
# For so long it is said of an event that it is off.
REMEMBERED: Final = timedelta(days=30)
MOST_WITHDRAWN: Final = 500
# Events that are represented in one go; in between, others get their turn.
BATCH: Final = 25
WITHDRAWN_COLUMNS: Final = (
    "r.id, r.uid, r.sequence, r.modified_utc, r.withdrawn_at, r.timezone, r.all_day, "
    "r.start_local, r.end_local, r.start_utc, r.end_utc"
)


@dataclass(frozen=True, slots=True)
class Feed:
    """What a feed shows. `sequences` are those of the rows by ID; `until` is when time alone changes it."""

    rows: list[Row]
    sequences: Mapping[int, int]
    withdrawn: list[Row]
    until: datetime | None
    keys: tuple[str, ...]


async def find_feed(call: Call, most: int = MOST, *, coming_only: bool = False) -> Feed:
    """Without dates: what runs and what is to come, and what there is room for since the beginning of last month.

    `coming_only`: news of what is to come, without the past and without what is off.
    """
    if _is_dated(call):
        listing = listing_of(EVENTS, call)
        rows, until = await _find(call, {}, most), EVENTS.until(listing)
    else:
        rows, until = await _find_around_today(call, most, coming_only=coming_only)
    sequences = await read_sequences(call, [row["id"] for row in rows])
    withdrawn = [] if coming_only else await find_withdrawn(call)
    forgotten = [row["withdrawn_at"] + REMEMBERED for row in withdrawn]
    return Feed(
        rows,
        sequences,
        withdrawn,
        min([*([until] if until else []), *forgotten], default=None),
        cache_tags.of_list(EVENTS, call.transaction.site, rows, call.values),
    )


def _is_dated(call: Call) -> bool:
    return any(name in call.values for name, *_ in BOUNDS) or "include" in call.values


async def represent_feed(call: Call, rows: Sequence[Row]) -> AsyncIterator[list[Represented]]:
    """The records of a feed, batch by batch."""
    for begin in range(0, len(rows), BATCH):
        batch = list(rows[begin : begin + BATCH])
        yield await represent_rows(EVENTS, call, batch, event_passwords.shut_of(call, batch))
        await asyncio.sleep(0)


async def _find_around_today(call: Call, most: int, *, coming_only: bool) -> tuple[list[Row], datetime]:
    zone, now = call.transaction.site.timezone, call.transaction.now
    today = times.local_of(now, zone).replace(hour=0, minute=0, second=0)
    month = today.replace(day=1)
    last_month = (month - timedelta(days=1)).replace(day=1) if month.year > 1 else month
    begins = DateTimeInput(today, None, True)
    coming = await _find(call, {"overlaps_from": begins}, most)
    past: list[Row] = []
    if len(coming) < most and not coming_only:
        asked = {
            "overlaps_from": DateTimeInput(last_month, None, True),
            # What ended exactly at midnight is past.
            "ends_before": _instant(times.day_begins(begins, zone) + SECOND),
            "strict_dates": True,
            "orderby": "start_date",
            "order": "desc",
        }
        past = await _find(call, asked, most - len(coming))
    return [*reversed(past), *coming], times.day_ends(begins, zone) + SECOND


def _instant(utc: datetime) -> DateTimeInput:
    return DateTimeInput(utc.replace(tzinfo=None), timedelta(0), False)


async def _find(call: Call, more: Mapping[str, Any], most: int) -> list[Row]:
    """The first rows of a list, with these parameters added."""
    asked = replace(call, values={**call.values, **more})
    listing = replace(listing_of(EVENTS, asked), page=1, per_page=most)
    return await call.transaction.fetch_all(EVENTS.page(EVENTS, listing, await clauses_of(EVENTS, asked, listing)))


async def read_sequences(call: Call, ids: list[int]) -> dict[int, int]:
    rows = await call.transaction.fetch_all(
        Sql(
            """SELECT e.id, greatest(e.sequence, (
                    SELECT max(v.sequence) FROM event_venues l JOIN venues v ON v.site_id = l.site_id
                        AND v.id = l.venue_id WHERE l.site_id = e.site_id AND l.event_id = e.id)) AS sequence
                FROM events e WHERE e.site_id = ? AND e.id = ANY(?)""",
            call.transaction.site.id,
            ids,
        )
    )
    return {row["id"]: row["sequence"] for row in rows}


async def find_withdrawn(call: Call) -> list[Row]:
    """What lists showed until lately; a rewritten event has no `withdrawn_at`, so no more is told than was known."""
    tx = call.transaction
    listing = replace(listing_of(EVENTS, call), statuses=None)
    clauses = for_each(await clauses_of(EVENTS, call, listing))
    if _is_dated(call):
        clauses += window_of(listing).clauses()
    lately = Sql("r.site_id = ? AND r.withdrawn_at > ? AND r.status <> 'publish'"
                 " AND NOT r.hide_from_listings", tx.site.id, tx.now - REMEMBERED)  # fmt: skip
    return await tx.fetch_all(
        Sql("SELECT " + WITHDRAWN_COLUMNS + " FROM events r WHERE")
        + and_([lately, *clauses])
        + Sql("ORDER BY r.start_utc, r.id LIMIT ?", MOST_WITHDRAWN)
    )


async def find_withdrawn_one(call: Call) -> Row:
    """The event that had this slug until lately."""
    tx, slug = call.transaction, normalize_lookup(call.slug or "")
    row = await tx.fetch_one(
        Sql(
            "SELECT "
            + WITHDRAWN_COLUMNS
            + """ FROM events r WHERE r.site_id = ? AND r.slug = ANY(?)
                AND r.withdrawn_at > ? AND r.status <> 'publish' ORDER BY r.slug""",
            tx.site.id,
            [slug, slug + TRASHED_SUFFIX],
            tx.now - REMEMBERED,
        )
    )
    if row is None:
        raise errors.not_found("event")
    return row
