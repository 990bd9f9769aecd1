"""Events that people follow: who hears after which change, and what an alert or a reminder says."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import orjson

from kalends.calendar.access import caching
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.operations.record_verbs import build_events, find_page
from kalends.calendar.operations.site_feeds import read_sequences
from kalends.calendar.rules.record_types import Event
from kalends.calendar.storage.history_tables import list_changed_records
from kalends.core.times import utc_now
from kalends.follow import storage
from kalends.follow.operations.digest_content import read_state
from kalends.follow.rules.event_alerts import ALERT_DELAY, ALERT_INTERVAL, Decision, KnownState, decide
from kalends.follow.rules.follow_limits import MAX_EVENTS
from kalends.follow.rules.net_changes import EventState
from kalends.push.storage import log_consumers
from kalends.push.storage.log_consumers import Lease
from kalends.store import Row
from kalends.store.database import Database, Transaction
from kalends.store.sql import Sql

CONSUMER: Final = "alerts"
PAGE_RECORDS: Final = 500


@dataclass(frozen=True, slots=True)
class EventNews:
    """What there is to tell about an event. `event` is None if it is no longer in the calendar."""

    decision: Decision
    former: EventState  # what the person knew
    event: Event | None
    uid: str  # empty if the event was deleted
    sequence: int
    read_at: datetime
    cache_tags: frozenset[str]


async def read_event_news(context: OperationContext, event_id: int, known_text: str) -> EventNews:
    tx = context.transaction
    known = KnownState.from_columns(orjson.loads(known_text))
    row = await _find_row(tx, event_id)
    state = read_state(row) if row is not None else None
    decision = decide(known, state, tx.now)
    events = await build_events(context, [row]) if row is not None and state is not None and state.is_listed else []
    sequences = await read_sequences(context, [event_id]) if decision.sends else {}
    tags = caching.tags_for_record(EVENTS, row) if row is not None else ()
    return EventNews(
        decision=decision,
        former=known.state,
        event=events[0] if events else None,
        uid=row["uid"] if row is not None else "",
        sequence=sequences.get(event_id, 0),
        read_at=tx.now,
        cache_tags=frozenset((*tags, *caching.tags_for_event(event_id))),
    )


async def list_followable(context: OperationContext, ids: Sequence[int]) -> list[Event]:
    """Return those of some events that people can follow: public ones that are not over."""
    values = {"include": list(ids), "per_page": EVENTS.reads.max_per_page}
    rows = (await find_page(EVENTS, replace(context, values=values), with_total=False)).rows
    upcoming = [row for row in rows if row["end_utc"] > context.transaction.now]
    return await build_events(context, upcoming[:MAX_EVENTS])


async def find_public_event(context: OperationContext, event_id: int) -> Event | None:
    """Return an event if it is in the calendar."""
    row = await _find_row(context.transaction, event_id)
    return (await build_events(context, [row]))[0] if row is not None and read_state(row).is_listed else None


async def confirm_event(tx: Transaction, follow: Row, *, is_suppressed: bool) -> None:
    """Let a follow begin, from the event's present state. A change at the same time is found by looking again."""
    row = await _find_row(tx, follow["event_id"])
    if row is None:
        await storage.remove_follow(tx, follow["id"])
        return
    known = KnownState.first(read_state(row), tx.now)
    next_at = None if is_suppressed else tx.now + ALERT_DELAY
    columns: storage.Columns = {"confirmed_at": tx.now, "next_at": next_at, "known": encode_known(known)}
    await storage.change_follow(tx, follow["id"], columns)
    await log_consumers.add_consumer(tx, CONSUMER, tx.site.revision)


def encode_known(known: KnownState) -> str:
    return orjson.dumps(known.to_columns()).decode()


async def _find_row(tx: Transaction, event_id: int) -> Row | None:
    return await tx.fetch_one(EVENTS.select(Sql("r.site_id = ? AND r.id = ?", tx.site.id, event_id)))


@dataclass(frozen=True, slots=True)
class AlertPlanner:
    """Schedules alerts after changes: a handler of the change log."""

    database: Database

    async def handle(self, lease: Lease) -> bool:
        has_more = True
        while has_more:
            async with self.database.transaction(lease.site_id, utc_now(), writing=True) as tx:
                cursor, has_more = await self._plan_page(tx, lease)
                await log_consumers.advance(tx, lease, cursor, release=not has_more)
        return True

    async def _plan_page(self, tx: Transaction, lease: Lease) -> tuple[int, bool]:
        """Plan the emails about a page of changes; return the new cursor and whether there are more."""
        cursor = await log_consumers.read_cursor(tx, lease)
        times = tx.now + ALERT_DELAY, ALERT_INTERVAL
        if cursor < tx.site.trimmed_revision:
            await storage.plan_alerts(tx, None, *times)
            return tx.site.revision, False
        rows = await list_changed_records(tx, cursor, cursor, (EVENTS.name,), PAGE_RECORDS)
        await storage.plan_alerts(tx, [row["id"] for row in rows], *times)
        has_more = len(rows) == PAGE_RECORDS
        return rows[-1]["revision"] if has_more else tx.site.revision, has_more


async def drop_idle_consumer(tx: Transaction) -> None:
    """Stop reading the change log of a site where nobody follows an event."""
    if not await storage.has_event_follows(tx):
        await log_consumers.remove_consumer(tx, CONSUMER)
