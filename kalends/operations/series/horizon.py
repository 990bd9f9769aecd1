"""Creating the next dates of series, so that they exist as events far enough ahead.

A series is extended by blocks, hence once a month and not once a week. Each call works under the lock of the site
from `created_until` on, so repeated and interrupted runs create every date once.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, islice
from typing import Final

from kalends.core import times
from kalends.core.errors import UNKNOWN_SITE, ApiError
from kalends.core.series import Date, Definition, content_at, has_dates_after, list_dates
from kalends.operations.series.contents import Content, group_by_content, resolve_all
from kalends.operations.series.matching import Match, compute_horizon, load_occurrences
from kalends.operations.series.writing import NewDate, SeriesWrite, create_events, write_dates
from kalends.store import Row
from kalends.store import series as series_store
from kalends.store.database import Database, Transaction
from kalends.store.series import decode_definition

log = logging.getLogger(__name__)

BLOCK: Final = timedelta(days=31)
SERIES_PER_BATCH: Final = 25
MAX_ROWS: Final = 500  # events that one transaction creates
SERIES_PER_SEARCH: Final = 1000
UNAVAILABLE: Final = 503


@dataclass(frozen=True, slots=True)
class Extension:
    """The next dates of a series, and until when its dates exist with them."""

    series: Row
    definition: Definition
    dates: Sequence[Date]
    until: datetime


async def extend_all(database: Database, now: datetime) -> int:
    """Create the dates of all series up to the horizon; return their number.

    Each batch is a transaction, so other writers get their turn in between.
    """
    created, failed = 0, set[tuple[int, int]]()
    while batches := await _find_batches(database, now, failed):
        for site_id, ids in batches:
            created += await _extend(database, site_id, ids, now, failed)
    return created


async def _find_batches(
    database: Database, now: datetime, failed: set[tuple[int, int]]
) -> list[tuple[int, list[int]]]:
    """Return the IDs of series to extend, in batches of one site."""
    found = await series_store.find_incomplete(database, compute_horizon(now, now), SERIES_PER_SEARCH)
    waiting = [(row["site_id"], row["id"]) for row in found if (row["site_id"], row["id"]) not in failed]
    return [
        (site_id, ids[first : first + SERIES_PER_BATCH])
        for site_id, entries in groupby(waiting, key=lambda entry: entry[0])
        for ids in [[series_id for _, series_id in entries]]
        for first in range(0, len(ids), SERIES_PER_BATCH)
    ]


async def _extend(
    database: Database, site_id: int, ids: list[int], now: datetime, failed: set[tuple[int, int]]
) -> int:
    """Extend series in one transaction. If it fails, each is extended alone: one must not stop the others."""
    try:
        async with database.transaction(site_id, now, writing=True) as tx:
            return await extend_batch(tx, ids)
    except Exception as error:
        if isinstance(error, ApiError) and error.status >= UNAVAILABLE:
            raise  # Without the database nothing can be extended; the job is retried.
        if isinstance(error, ApiError) and error.code == UNKNOWN_SITE:
            failed.update((site_id, series_id) for series_id in ids)  # The site has moved to another cell.
            return 0
        if len(ids) > 1:
            return sum([await _extend(database, site_id, [series_id], now, failed) for series_id in ids])
        log.exception("cannot extend series %s of site %s", ids[0], site_id)
        failed.add((site_id, ids[0]))
        return 0


async def extend_batch(tx: Transaction, ids: Sequence[int]) -> int:
    """Extend series of a site by one block each; return the number of new events.

    A batch ends early at the maximum of events. The remaining series are found again.
    """
    await tx.lock_site(None)
    rows = await series_store.fetch_incomplete(tx, ids, compute_horizon(tx.now, tx.now))
    slots = await series_store.list_slots(tx, rows)
    extensions: list[Extension] = []
    count = 0
    for row in rows:
        extension = plan_extension(row)
        if extensions and count + len(extension.dates) > MAX_ROWS:
            break
        extensions.append(extension)
        count += len(extension.dates)
    return await _write_extensions(tx, extensions, slots)


def plan_extension(series: Row) -> Extension:
    """Return the dates of a series in the block after the last one."""
    definition, begin = decode_definition(series), series["created_until"]
    until = begin + BLOCK
    first = min(times.local_of(begin, part.timezone) for part in definition.parts)
    dates = [
        date
        for date in list_dates(definition, until, first, skip_taken=True)
        if date.slot > times.local_of(begin, date.part.timezone)
    ]
    return Extension(series, definition, dates, until)


async def _write_extensions(
    tx: Transaction, extensions: Sequence[Extension], slots: set[tuple[int, datetime]]
) -> int:
    new: list[NewDate] = []
    for extension, contents in await _resolve_contents(tx, extensions):
        series_id = extension.series["id"]
        write = _make_write(extension)
        missing = [date for date in extension.dates if (series_id, date.slot) not in slots]
        new += [NewDate(write, date, contents[date.slot]) for date in missing]
        if len(missing) < len(extension.dates):
            await _restore_dates(tx, write, extension)
        until = extension.until if has_dates_after(extension.definition, extension.until) else None
        await series_store.set_created_until(tx, series_id, until)
    await create_events(tx, new)
    return len(new)


async def _resolve_contents(
    tx: Transaction, extensions: Sequence[Extension]
) -> list[tuple[Extension, dict[datetime, Content]]]:
    """Return the content of each date, with few statements for all series."""
    groups = [group_by_content(extension.definition, extension.dates) for extension in extensions]
    resolved = iter(
        await resolve_all(
            tx,
            [
                content_at(extension.definition, slots[0])
                for extension, periods in zip(extensions, groups, strict=True)
                for slots in periods
            ],
        )
    )
    contents = [
        {
            slot: content
            for slots, content in zip(periods, islice(resolved, len(periods)), strict=True)
            for slot in slots
        }
        for periods in groups
    ]
    return list(zip(extensions, contents, strict=True))


def _make_write(extension: Extension) -> SeriesWrite:
    """New dates are as old as their series, so that feeds do not present them as news."""
    series = extension.series
    return SeriesWrite(
        series_id=series["id"],
        slug=series["slug"],
        published_at=series["published_at"],
        definition=extension.definition,
        cause=None,
        modified_at=series["modified_utc"],
    )


async def _restore_dates(tx: Transaction, write: SeriesWrite, extension: Extension) -> None:
    """Take events back from the trash that an earlier rule moved there."""
    occurrences = await load_occurrences(tx, write.series_id, extension.dates[0].slot)
    trashed = [
        Match(occurrences.trashed[date.slot], date) for date in extension.dates if date.slot in occurrences.trashed
    ]
    await write_dates(tx, write, trashed, {})
