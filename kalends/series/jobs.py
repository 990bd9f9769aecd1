"""Creates the events for upcoming series dates ahead of time.

The job extends a series by a block of 31 days, so it writes each series only about once a month. Each transaction
holds the site lock and starts at `created_until`, so repeated and interrupted runs create every event once.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import batched, groupby
from typing import Final

from kalends.core import times
from kalends.core.errors import UNKNOWN_SITE, ApiError
from kalends.series import storage as series_storage
from kalends.series.operations.series_matching import Match, compute_horizon, load_occurrences
from kalends.series.operations.series_writing import (
    NewDate,
    SeriesWrite,
    create_events,
    resolve_contents,
    write_dates,
)
from kalends.series.rules.series_slots import Date, Definition, has_dates_after, list_dates
from kalends.series.storage import decode_definition
from kalends.store import Row
from kalends.store.database import Database, Transaction

log = logging.getLogger(__name__)

BLOCK: Final = timedelta(days=31)
SERIES_PER_BATCH: Final = 25
MAX_ROWS: Final = 500  # new events per transaction
SERIES_PER_SEARCH: Final = 1000
UNAVAILABLE: Final = 503


@dataclass(frozen=True, slots=True)
class Extension:
    """A series' next dates that need events. Once these exist, the series is complete up to `until`."""

    series: Row
    definition: Definition
    dates: Sequence[Date]
    until: datetime


async def extend_all(database: Database, now: datetime) -> int:
    """Create missing events up to the horizon; return how many. Between batches, other writers can run."""
    created, failed = 0, set[tuple[int, int]]()
    while batches := await _find_batches(database, now, failed):
        for site_id, ids in batches:
            created += await _extend(database, site_id, ids, now, failed)
    return created


async def _find_batches(
    database: Database, now: datetime, failed: set[tuple[int, int]]
) -> list[tuple[int, list[int]]]:
    """Return the IDs of series to extend, in batches per site."""
    found = await series_storage.find_incomplete(database, compute_horizon(now, now), SERIES_PER_SEARCH)
    waiting = [(row["site_id"], row["id"]) for row in found if (row["site_id"], row["id"]) not in failed]
    return [
        (site_id, [series_id for _, series_id in batch])
        for site_id, entries in groupby(waiting, key=lambda entry: entry[0])
        for batch in batched(entries, SERIES_PER_BATCH)
    ]


async def _extend(
    database: Database, site_id: int, ids: list[int], now: datetime, failed: set[tuple[int, int]]
) -> int:
    """Extend series in one transaction. If it fails, extend them one by one, so a failure affects only one series."""
    try:
        async with database.transaction(site_id, now, writing=True) as tx:
            return await extend_batch(tx, ids)
    except Exception as error:
        if isinstance(error, ApiError) and error.status >= UNAVAILABLE:
            raise  # Nothing can be extended without the database; the job is retried.
        if isinstance(error, ApiError) and error.code == UNKNOWN_SITE:
            failed.update((site_id, series_id) for series_id in ids)  # The site has moved to another cell.
            return 0
        if len(ids) > 1:
            return sum([await _extend(database, site_id, [series_id], now, failed) for series_id in ids])
        log.exception("cannot extend series %s of site %s", ids[0], site_id)
        failed.add((site_id, ids[0]))
        return 0


async def extend_batch(tx: Transaction, ids: Sequence[int]) -> int:
    """Extend series by one block each; return the number of new events. The event limit can end a batch early."""
    await tx.lock_site(None)
    rows = await series_storage.fetch_incomplete(tx, ids, compute_horizon(tx.now, tx.now))
    slots = await series_storage.list_slots(tx, rows)
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
    """Return a series' dates in its next block."""
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
    resolved = await resolve_contents(tx, [(extension.definition, extension.dates) for extension in extensions])
    for extension, contents in zip(extensions, resolved, strict=True):
        series_id = extension.series["id"]
        # New dates get their series' modification time, so feeds do not present them as new.
        modified_at = extension.series["modified_utc"]
        write = SeriesWrite(extension.series, extension.definition, None, modified_at=modified_at)
        missing = [date for date in extension.dates if (series_id, date.slot) not in slots]
        new += [NewDate(write, date, contents[date.slot]) for date in missing]
        if len(missing) < len(extension.dates):
            # The other events exist: as added dates, or in the trash because of an earlier edit of the rule.
            occurrences = await load_occurrences(tx, write.series["id"], extension.dates[0].slot)
            trashed = [
                Match(occurrences.trashed[date.slot], date)
                for date in extension.dates
                if date.slot in occurrences.trashed
            ]
            await write_dates(tx, write, trashed, {})
        until = extension.until if has_dates_after(extension.definition, extension.until) else None
        await series_storage.set_created_until(tx, series_id, until)
    await create_events(tx, new)
    return len(new)
