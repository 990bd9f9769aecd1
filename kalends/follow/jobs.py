"""The sender of digests, alerts and reminders, which checks just before each email that it still holds.

Nothing waits in a queue: a follow is due or not. An email is marked as sent with the check of the next one, so that a
worker that dies repeats at most one email per connection.
"""

import asyncio
import logging
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from kalends.adapters.smtp_client import RCPT, Refused, ServerAway, SmtpSession
from kalends.core.errors import ApiError
from kalends.core.times import utc_now
from kalends.follow import storage
from kalends.follow.mails.message_bytes import PreparedMessage, Recipient
from kalends.follow.mails.rendering_cache import DigestKey, EventKey, Mailbox, MailKey, Rendering, RenderingCache
from kalends.follow.operations.event_follows import encode_known
from kalends.follow.operations.followings import read_rhythm
from kalends.follow.rules.event_alerts import ALERT_DELAY, ALERT_INTERVAL
from kalends.follow.rules.follow_limits import DEAD_CODES, REFUSED_DELAY, RETRY_DELAY, ends_emails, is_credible
from kalends.follow.rules.slots import DAY, MAX_DELAY, find_next, find_slot
from kalends.store import Row, job_queue
from kalends.store.database import Database, Transaction

log = logging.getLogger(__name__)

CONNECTIONS: Final = 4
BATCH: Final = 500
MAX_SECONDS: Final = 9.0  # less than the time between two runs, so that no run waits
MAX_ATTEMPTS: Final = 10  # renderings for one email; then the next run tries again

RHYTHM_COLUMNS: Final = ("rhythm", "weekday", "hour")


class Mark(NamedTuple):
    """What is still to be written about a follow, unless its next email has been planned again."""

    row: Row
    columns: storage.Columns
    rendering: Rendering | None  # what was known about an event


class Refusal(NamedTuple):
    row: Row
    code: str
    retry_at: datetime


@dataclass(slots=True)
class Lane:
    """A connection with its marks, of which at most one is about an email that was sent."""

    session: SmtpSession
    marks: list[Mark] = field(default_factory=list[Mark])


@dataclass(slots=True)
class Run:
    """One run of the sender: what it has learned so far."""

    lanes: list[Lane]
    stop_at: float  # as `time.monotonic`
    earlier: tuple[int, int]  # recipients of earlier runs, and the refused ones
    recipients: int = 0
    progress: int = 0
    refusals: dict[str, Refusal] = field(default_factory=dict[str, Refusal])  # by person
    counts: defaultdict[int, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    is_ending: bool = False

    @property
    def may_continue(self) -> bool:
        return not self.is_ending and time.monotonic() < self.stop_at

    @property
    def is_credible(self) -> bool:
        recipients, refused = self.earlier
        return is_credible(recipients + self.recipients, refused + len(self.refusals))


@dataclass(slots=True)
class DigestSender:
    database: Database
    smtp_url: str
    mailbox: Mailbox
    read_now: Callable[[], datetime] = utc_now
    connections: int = CONNECTIONS
    open_session: Callable[[str], SmtpSession] = SmtpSession
    cache: RenderingCache = field(init=False)

    def __post_init__(self) -> None:
        self.cache = RenderingCache(self.database, self.mailbox, self.read_now)

    async def send_due(self) -> Counter[str]:
        """Send what is due, for some seconds; return what happened, by name. A failing relay means a pause."""
        total: Counter[str] = Counter()
        rows = await storage.find_due(self.database, self.read_now(), BATCH)
        earlier = await storage.count_recipients(self.database, self.read_now(), 0, 0) if rows else (0, 0)
        if not rows or not is_credible(*earlier):
            return total
        lanes = [Lane(self.open_session(self.smtp_url)) for _ in range(self.connections)]
        run = Run(lanes, time.monotonic() + MAX_SECONDS, earlier)
        try:
            while True:
                run.progress = 0
                try:
                    await self._send_batch(run, rows)
                finally:
                    for numbers in run.counts.values():
                        total.update(numbers)
                    await self._store_counts(run)
                if not run.progress or not run.may_continue:
                    return total
                rows = await storage.find_due(self.database, self.read_now(), BATCH)
        finally:
            await self._store_refusals(run)
            await asyncio.gather(*[lane.session.close() for lane in run.lanes])

    async def _send_batch(self, run: Run, rows: list[Row]) -> None:
        waiting = deque(rows)
        serving = [self._serve(run, lane, waiting) for lane in run.lanes]
        try:
            results = await asyncio.gather(*serving, return_exceptions=True)
        finally:
            written = await asyncio.gather(*map(self._write_marks, run.lanes), return_exceptions=True)
        for result in (*results, *written):
            if isinstance(result, BaseException):
                raise result

    async def _serve(self, run: Run, lane: Lane, waiting: deque[Row]) -> None:
        while waiting and run.may_continue:
            row = waiting.popleft()
            try:
                with job_queue.skipping_unknown_sites():
                    await self._send(run, lane, row)
            except ServerAway as error:
                if not run.is_ending:
                    log.warning("emails to followers wait for the SMTP server: %s", error)
                run.is_ending = True
                if error.has_begun:
                    self._mark(run, lane, row, {"next_at": self.read_now() + RETRY_DELAY})
            except Exception as error:  # One row must not stop all others. The text may contain an address.
                if isinstance(error, ApiError) and error.status >= 500:
                    raise
                reason = error.code if isinstance(error, ApiError) else type(error).__name__
                log.warning("cannot send an email to a follower on site %s: %s", row["site_id"], reason)
                self._skip_slot(run, lane, row, "failed")

    async def _send(self, run: Run, lane: Lane, row: Row) -> None:
        """Render and send one email, or plan when to try again."""
        key = _make_key(row)
        if isinstance(key, DigestKey) and self.read_now() - key.slot.begin > MAX_DELAY:
            self._skip_slot(run, lane, row)
            return
        for _ in range(MAX_ATTEMPTS):
            rendering = await self.cache.get(key)
            if rendering.is_off:
                self._skip_slot(run, lane, row)
                return
            if rendering.message is None:
                self._mark_done(run, lane, row, rendering)
                return
            if (may_alert_at := _find_pause_end(row, rendering)) is not None and self.read_now() < may_alert_at:
                self._mark(run, lane, row, {"next_at": may_alert_at})
                return
            if await self._try(run, lane, row, rendering, rendering.message):
                return
            self.cache.discard(key, rendering)

    async def _try(self, run: Run, lane: Lane, row: Row, rendering: Rendering, message: PreparedMessage) -> bool:
        """Send a rendering unless it is outdated; return False if it is."""
        try:
            await lane.session.begin(self.mailbox.find_sender(message.reader.site), row["email"])
            run.recipients += 1
            follow, is_current = await self._check(lane, row, rendering)
            if follow is None or not is_current:
                return follow is None
            recipient = Recipient(follow["email"], follow["key"], follow["follower_id"], follow["id"])
            await lane.session.send(message.make_bytes(recipient, _name_purpose(row, rendering), self.read_now()))
        except Refused as error:
            self._note_refusal(run, lane, row, error)
            return True
        self._mark_done(run, lane, row, rendering)
        run.counts[row["site_id"]]["sent"] += 1
        return True

    async def _check(self, lane: Lane, row: Row, rendering: Rendering) -> tuple[Row | None, bool]:
        """Read the follow again, or None if it must not get this email, and whether the rendering is current."""
        await self._write_marks(lane, other_than=row["site_id"])
        async with self.database.transaction(row["site_id"], self.read_now(), writing=True) as tx:
            follow = await storage.find_follow(tx, row["id"])
            # Like all transactions, it locks people before what they follow.
            if follow is not None and follow["refusals"]:
                await storage.change_follower(tx, follow["follower_id"], {"refusals": 0, "refusal_code": ""})
            await _write(tx, lane.marks)
            is_current = await rendering.is_current(tx)
        lane.marks.clear()
        is_due = (
            follow is not None
            and follow["next_at"] == row["next_at"]
            and follow["suppressed_at"] is None
            and not follow["paused"]
            and all(follow[name] == row[name] for name in RHYTHM_COLUMNS)
            and tx.site.timezone == row["timezone"]
        )
        return (follow if is_due else None), is_current

    def _mark_done(self, run: Run, lane: Lane, row: Row, rendering: Rendering) -> None:
        """Plan the next email, which covers what changes from this rendering onward."""
        decision = rendering.decision
        if decision is None:
            self._mark(run, lane, row, {"next_at": self._find_next(row), "since": rendering.revision})
            return
        alerted: storage.Columns = {"alerted_at": self.read_now()} if decision.kinds else {}
        columns: storage.Columns = {"next_at": decision.next_at, "known": encode_known(decision.known), **alerted}
        self._mark(run, lane, row, columns, rendering)

    def _find_next(self, row: Row) -> datetime:
        if row["query"] is None:
            return self.read_now() + DAY
        return find_next(read_rhythm(row), max(row["next_at"], self.read_now()), row["timezone"])

    def _mark(
        self, run: Run, lane: Lane, row: Row, columns: storage.Columns, rendering: Rendering | None = None
    ) -> None:
        lane.marks.append(Mark(row, columns, rendering))
        run.progress += 1

    def _skip_slot(self, run: Run, lane: Lane, row: Row, count: str = "") -> None:
        """Wait for the next slot. `since` stays, so the next email covers the changes of this one."""
        self._mark(run, lane, row, {"next_at": self._find_next(row)})
        if count:
            run.counts[row["site_id"]][count] += 1

    def _note_refusal(self, run: Run, lane: Lane, row: Row, error: Refused) -> None:
        if error.is_temporary:
            self._mark(run, lane, row, {"next_at": self.read_now() + RETRY_DELAY})
        elif error.step == RCPT:
            run.recipients += 1
            retry_at = self.read_now() + REFUSED_DELAY
            self._mark(run, lane, row, {"next_at": retry_at})
            run.refusals[row["follower_id"]] = Refusal(row, error.code, retry_at)
            run.is_ending = run.is_ending or not run.is_credible
        else:
            log.warning("the SMTP server refused an email to a follower on site %s: %s", row["site_id"], error)
            self._skip_slot(run, lane, row, "failed")

    async def _write_marks(self, lane: Lane, other_than: int | None = None) -> None:
        """Write marks, of all sites or of all but one."""
        by_site: defaultdict[int, list[Mark]] = defaultdict(list)
        for mark in lane.marks:
            by_site[mark.row["site_id"]].append(mark)
        for site_id, marks in by_site.items():
            if site_id != other_than:
                with job_queue.skipping_unknown_sites():
                    async with self.database.transaction(site_id, self.read_now(), writing=True) as tx:
                        await _write(tx, marks)
        lane.marks[:] = by_site.get(other_than, []) if other_than is not None else []

    async def _store_counts(self, run: Run) -> None:
        for site_id, numbers in run.counts.items():
            with job_queue.skipping_unknown_sites():
                async with self.database.transaction(site_id, self.read_now(), writing=True) as tx:
                    await storage.count_mails(tx, numbers)
        run.counts.clear()

    async def _store_refusals(self, run: Run) -> None:
        """Store refusals if they are about addresses."""
        await storage.count_recipients(self.database, self.read_now(), run.recipients, len(run.refusals))
        if run.refusals and not run.is_credible:
            log.warning("emails to followers pause: the SMTP server refused %s addresses", len(run.refusals))
            await storage.forget_refusals(self.database)
            return
        for refusal in run.refusals.values():
            with job_queue.skipping_unknown_sites():
                async with self.database.transaction(refusal.row["site_id"], self.read_now(), writing=True) as tx:
                    await self._store_refusal(tx, refusal)

    async def _store_refusal(self, tx: Transaction, refusal: Refusal) -> None:
        row = refusal.row
        follower = await storage.find_follower(tx, row["follower_id"], locked=True)
        if follower is None:
            return
        number = follower["refusals"] + 1
        columns: dict[Any, object] = {"refusals": number, "refusal_code": refusal.code}
        if ends_emails(number, refusal.code):
            columns["suppressed_at"] = tx.now
            await storage.stop_follows(tx, row["follower_id"])
        elif refusal.code not in DEAD_CODES:
            await storage.change_follow(tx, row["id"], {"next_at": self._find_next(row)}, expected=refusal.retry_at)
        await storage.change_follower(tx, row["follower_id"], columns)
        await storage.count_mails(tx, {"refused": 1})


def _make_key(row: Row) -> MailKey:
    if row["query"] is None:
        return EventKey(row["site_id"], row["event_id"], row["language"], row["known"], row["next_at"])
    slot = find_slot(read_rhythm(row), row["next_at"], row["timezone"])
    return DigestKey(row["site_id"], row["query"], row["language"], slot, row["since"])


def _find_pause_end(row: Row, rendering: Rendering) -> datetime | None:
    """Return when the person may get another alert about the event."""
    is_alert = rendering.decision is not None and rendering.decision.kinds
    return row["alerted_at"] + ALERT_INTERVAL if is_alert and row["alerted_at"] is not None else None


def _name_purpose(row: Row, rendering: Rendering) -> str:
    """Return what only a repetition has in common with an email: the slot, or the last alert and the new state."""
    if rendering.decision is not None:
        return f"{row['alerted_at']} {encode_known(rendering.decision.known)}"
    return find_slot(read_rhythm(row), row["next_at"], row["timezone"]).begin.isoformat()


async def _write(tx: Transaction, marks: Iterable[Mark]) -> None:
    """Write marks in the order of rows in which all transactions lock them."""
    for mark in sorted(marks, key=lambda mark: str(mark.row["id"])):
        columns: dict[Any, object] = dict(mark.columns)
        if mark.rendering is not None and not await mark.rendering.is_current(tx):
            # The event has changed since it was looked at, while the email was still due.
            columns["next_at"] = tx.now + ALERT_DELAY
        await storage.change_follow(tx, mark.row["id"], columns, expected=mark.row["next_at"])
