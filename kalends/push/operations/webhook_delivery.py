"""Delivers pages of messages to an endpoint: sends, logs, schedules retries, and moves the cursor.

A page is read in one transaction, sent without any, and recorded in another one. If the process dies in between, the
page is sent again.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal, LiteralString

from kalends.adapters import metrics
from kalends.adapters.safe_fetch import Fetcher, PostResult, Session
from kalends.core.errors import ApiError
from kalends.core.times import utc_now
from kalends.push import rules
from kalends.push.operations.webhook_messages import Message, MessagePage, PublicUrls, read_page
from kalends.push.storage import delivery_tables, log_consumers, webhook_tables
from kalends.push.storage.delivery_tables import Delivery, Pending, RecordKey, Webhook
from kalends.push.storage.log_consumers import Lease
from kalends.store.database import Database, Transaction
from kalends.store.job_queue import Task, enqueue
from kalends.store.sites import Site

# A page ends early after this time, so that little is sent twice after a crash.
PAGE_SECONDS: Final = 20.0
MAX_REQUESTS: Final = 256  # of one process at a time
# Database connections of one process for deliveries. Jobs share the pool.
MAX_CONNECTIONS: Final = 3
# Attempts to record a page while the database is unavailable. Without a record, the page would be sent again.
MAX_RECORDINGS: Final = 5

Notice = Literal["failing", "disabled", "gone"]


@dataclass(frozen=True, slots=True)
class Attempt:
    message: Message
    sent_at: datetime
    result: PostResult

    @property
    def effect(self) -> rules.Effect:
        return rules.classify(self.result.status)


@dataclass(slots=True)
class SentPage:
    """Attempts in the order of their results, and the messages that were not sent."""

    attempts: list[Attempt] = field(default_factory=list[Attempt])
    unsent: Sequence[Message] = ()

    @property
    def effects(self) -> Counter[rules.Effect]:
        return Counter(attempt.effect for attempt in self.attempts)

    @property
    def is_complete(self) -> bool:
        return self.effects["delivered"] == len(self.attempts)

    @property
    def is_refused(self) -> bool:
        """Return whether the endpoint as a whole is down or overloaded."""
        return self.effects["waits"] > 0 and self.effects["delivered"] == 0


@dataclass(frozen=True, slots=True)
class Round:
    """One page on its way to an endpoint."""

    lease: Lease
    webhook: Webhook
    page: MessagePage
    sent: SentPage

    def find_place(self) -> tuple[int, int | None]:
        """Return the consumer's new cursor and position. If the endpoint is down or gone, they stay."""
        webhook, page = self.webhook, self.page
        if self.sent.is_refused or self.sent.effects["gone"]:
            return webhook.cursor, webhook.position
        unsent = [message.revision for message in self.sent.unsent if not message.is_retry]
        return (webhook.cursor, min(unsent) - 1) if unsent else (page.cursor, page.position)

    @property
    def settled(self) -> list[RecordKey]:
        """Return the pending records that are delivered, or have nothing left to say."""
        delivered = [attempt.message.pending for attempt in self.sent.attempts if attempt.effect == "delivered"]
        return [*self.page.dropped, *[pending.key for pending in delivered if pending.is_stored]]

    def plan_retries(self, now: datetime) -> list[Pending]:
        failed = [attempt for attempt in self.sent.attempts if attempt.effect in ("failed", "waits")]
        return [] if self.sent.is_refused else [_plan_retry(attempt, now) for attempt in failed]

    def plan_wait(self, waits: int, now: datetime) -> datetime:
        demanded = [attempt.result.retry_after for attempt in self.sent.attempts]
        return rules.plan_wait(waits, now, max((each for each in demanded if each is not None), default=None))


class WebhookDelivery:
    """The follower's handler of webhooks."""

    def __init__(self, database: Database, fetcher: Fetcher, urls: PublicUrls) -> None:
        self._database = database
        self._fetcher = fetcher
        self._urls = urls
        self._connections = asyncio.Semaphore(MAX_CONNECTIONS)

    @asynccontextmanager
    async def _transaction(self, lease: Lease, *, writing: bool) -> AsyncIterator[Transaction]:
        async with self._connections, self._database.transaction(lease.site_id, utc_now(), writing=writing) as tx:
            yield tx

    async def handle(self, lease: Lease) -> bool:
        """Deliver pages until nothing is due or the endpoint has to wait."""
        goes_on = True
        while goes_on:
            async with self._transaction(lease, writing=False) as tx:
                webhook = await delivery_tables.read_webhook(tx, lease)
                is_behind_log = webhook.cursor < tx.site.trimmed_revision
                page = MessagePage() if is_behind_log else await read_page(tx, webhook, self._urls)
            if is_behind_log:
                await self._reset(lease, webhook)
                continue
            sent = SentPage()
            if page.messages:
                async with self._fetcher.open_session(webhook.url) as session:
                    sent = await send_page(session, _find_secrets(tx.site, webhook), page.messages)
            goes_on = await self._record_surely(Round(lease, webhook, page, sent))
        return True

    async def _record_surely(self, done: Round) -> bool:
        for number in range(1, MAX_RECORDINGS + 1):
            try:
                return await self._record(done)
            except ApiError as error:
                if error.status != 503 or number == MAX_RECORDINGS:
                    raise
                await asyncio.sleep(number)
        raise AssertionError("the last attempt returns or raises")

    async def _reset(self, lease: Lease, webhook: Webhook) -> None:
        """Continue at the current revision, after a message that tells the receiver to synchronize again."""
        async with self._transaction(lease, writing=True) as tx:
            reset = Pending(rules.RESET_KIND, 0, tx.site.revision, next_attempt_at=tx.now)
            await delivery_tables.reset_pending(tx, webhook.id, reset)
            await log_consumers.advance(tx, lease, tx.site.revision, due_at=tx.now, former_due_at=webhook.due_at)

    async def _record(self, done: Round) -> bool:
        """Store the outcome of a page; return whether to go on. Otherwise the lease is released.

        Locks are taken in the same order as by the management of endpoints: endpoint, records, consumer.
        """
        webhook, sent = done.webhook, done.sent
        async with self._transaction(done.lease, writing=True) as tx:
            if sent.attempts:
                await delivery_tables.log_deliveries(tx, webhook.id, [_make_entry(entry) for entry in sent.attempts])
            health = assess_health(webhook, sent, tx.now)
            await _store_health(tx, webhook, health)
            await delivery_tables.store_pending(tx, webhook.id, done.plan_retries(tx.now))
            await delivery_tables.delete_pending(tx, webhook.id, done.settled)
            goes_on = await _advance(tx, done, health.due_at)
            if health.disabled_reason:
                goes_on = False
                await webhook_tables.stop_consumer(tx, webhook.id)
        for effect, number in sent.effects.items():
            metrics.find_series(metrics.WEBHOOK_MESSAGES, effect).inc(number)
        return goes_on


async def _advance(tx: Transaction, done: Round, check_at: datetime | None) -> bool:
    """Move the cursor, plan when to look again, and return whether more is due now."""
    has_pending = done.webhook.pending > 0 or not done.sent.is_complete
    waiting, retry_at = await delivery_tables.count_waiting(tx, done.webhook.id) if has_pending else (0, None)
    must_wait = done.sent.is_refused or waiting >= rules.MAX_PENDING
    waits = (0 if done.sent.effects["delivered"] else done.webhook.waits) + must_wait
    goes_on = not must_wait and (done.page.has_more or bool(done.sent.unsent))
    cursor, position = done.find_place()
    await log_consumers.advance(
        tx,
        done.lease,
        cursor,
        position=position,
        waits=waits,
        not_before=done.plan_wait(waits, tx.now) if must_wait else None,
        due_at=min((moment for moment in (retry_at, check_at) if moment is not None), default=None),
        former_due_at=done.webhook.due_at,
        release=not goes_on,
    )
    return goes_on


def _find_secrets(site: Site, webhook: Webhook) -> list[str]:
    now = utc_now()
    return rules.derive_valid_secrets(
        site.secret, site.id, webhook.id, webhook.generation, rotated_at=webhook.rotated_at, now=now
    )


async def send_page(session: Session, secrets: Sequence[str], messages: Sequence[Message]) -> SentPage:
    """Send several messages at a time; after a failure, one at a time until one succeeds.

    A few messages share few connections, because each of them costs a TLS handshake.
    Stop if the endpoint refuses all of the first ones, if it is gone, or if the page takes too long.
    """
    page, running, sent = SentPage(), set[asyncio.Task[Attempt]](), 0
    most = min(max(len(messages) // 4, 4), rules.MAX_IN_FLIGHT)
    width, deadline = most, time.monotonic() + PAGE_SECONDS
    try:
        while sent < len(messages) or running:
            is_over = page.effects["gone"] > 0 or time.monotonic() > deadline or (page.is_refused and not running)
            while not is_over and sent < len(messages) and len(running) < width:
                running.add(asyncio.create_task(_send(session, secrets, messages[sent])))
                sent += 1
            if not running:
                break
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for attempt in [task.result() for task in done]:
                page.attempts.append(attempt)
                width = most if attempt.effect == "delivered" else 1
    finally:
        for task in running:
            task.cancel()
    page.unsent = messages[sent:]
    return page


async def _send(session: Session, secrets: Sequence[str], message: Message) -> Attempt:
    sent_at = utc_now()
    timestamp = int(sent_at.timestamp())
    headers = {
        "Content-Type": "application/json",
        "webhook-id": message.id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": rules.sign(secrets, message.id, timestamp, message.body),
    }
    return Attempt(message, sent_at, await session.post(headers, message.body))


def _make_entry(attempt: Attempt) -> Delivery:
    """Return a log entry. It has no response body, because that could disclose internal servers."""
    message, result = attempt.message, attempt.result
    return Delivery(
        *(attempt.sent_at, message.id, message.type, *message.pending.key, message.revision),
        attempt=message.pending.attempts + 1,
        status=result.status,
        error=result.error,
        milliseconds=result.milliseconds,
    )


def _plan_retry(attempt: Attempt, now: datetime) -> Pending:
    pending, result = attempt.message.pending, attempt.result
    attempts = pending.attempts + 1
    spread = random.uniform(-1, 1)  # noqa: S311 - no secret depends on it
    next_attempt_at = rules.plan_retry(attempts, now, spread)
    return replace(
        pending, attempts=attempts, next_attempt_at=next_attempt_at, status=result.status, error=result.error
    )


@dataclass(frozen=True, slots=True)
class Health:
    """Since when an endpoint fails, and what follows from that."""

    failing_since: datetime | None = None
    notified_at: datetime | None = None
    notice: Notice | None = None
    disabled_reason: Literal["", "gone", "failing"] = ""
    due_at: datetime | None = None  # when to look again, even without a change


def assess_health(webhook: Webhook, sent: SentPage, now: datetime) -> Health:
    """Return an endpoint's state after these attempts; its owner gets a notice after a day and at the end."""
    failing_since, notified_at = webhook.failing_since, webhook.notified_at
    for attempt in sent.attempts:
        if attempt.effect == "delivered":
            failing_since = notified_at = None
        else:
            failing_since = failing_since or attempt.sent_at
    if sent.effects["gone"]:
        return Health(failing_since, notified_at, "gone", "gone")
    if failing_since is None:
        return Health()
    notice_at, disabled_at = failing_since + rules.NOTICE_AFTER, failing_since + rules.DISABLED_AFTER
    if now >= disabled_at:
        return Health(failing_since, notified_at, "disabled", "failing")
    if notified_at is not None or now < notice_at:
        return Health(failing_since, notified_at, due_at=disabled_at if notified_at else notice_at)
    return Health(failing_since, now, "failing", due_at=disabled_at)


async def _store_health(tx: Transaction, webhook: Webhook, health: Health) -> None:
    columns: dict[LiteralString, object] = {}
    if (health.failing_since, health.notified_at) != (webhook.failing_since, webhook.notified_at):
        columns |= {"failing_since": health.failing_since, "notified_at": health.notified_at}
    if health.disabled_reason:
        columns |= {"disabled_at": tx.now, "disabled_reason": health.disabled_reason}
    if columns:
        await webhook_tables.change_webhook(tx, webhook.id, columns)
    if health.notice is not None:
        await enqueue(tx, Task.SEND_WEBHOOK_NOTICE, {"webhook_id": webhook.id, "notice": health.notice})
