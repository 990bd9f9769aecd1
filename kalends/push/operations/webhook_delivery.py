"""Delivers pages of messages to an endpoint: sends, logs, schedules retries, and moves the cursor.

A page is read in one transaction, sent without any, and recorded in another one. If the process dies in between, the
page is sent again.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, Literal

from kalends.adapters import metrics
from kalends.adapters.safe_fetch import Fetcher, PostResult, Session
from kalends.core.times import utc_now
from kalends.push import rules
from kalends.push.operations.webhook_messages import Message, MessagePage, PublicUrls, read_page
from kalends.push.storage import delivery_tables, log_consumers
from kalends.push.storage.delivery_tables import Delivery, Pending, RecordKey, Webhook
from kalends.push.storage.log_consumers import Lease, Position
from kalends.store.database import Database, Transaction
from kalends.store.job_queue import Task, enqueue

# A page ends early after this time, so that little is sent twice after a crash.
PAGE_SECONDS: Final = 20.0
MAX_REQUESTS: Final = 256  # of one process at a time

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
    def is_refused(self) -> bool:
        """Return whether the endpoint as a whole is down or overloaded."""
        return self.effects["waits"] > 0 and self.effects["delivered"] == 0


class WebhookDelivery:
    """The follower's handler of webhooks."""

    def __init__(self, database: Database, fetcher: Fetcher, urls: PublicUrls) -> None:
        self._database = database
        self._fetcher = fetcher
        self._urls = urls

    async def handle(self, lease: Lease) -> bool:
        """Deliver pages until nothing is due or the endpoint has to wait."""
        goes_on = True
        while goes_on:
            async with self._database.transaction(lease.site_id, utc_now(), writing=False) as tx:
                position = await log_consumers.read_position(tx, lease)
                webhook = await delivery_tables.find_webhook(tx, lease.name)
                if webhook is None:
                    return False
                is_behind_log = position.cursor < tx.site.trimmed_revision
                page = MessagePage() if is_behind_log else await read_page(tx, webhook, position, self._urls)
            if is_behind_log:
                await self._reset(lease, webhook)
                continue
            sent = SentPage()
            if page.messages:
                secrets = rules.derive_valid_secrets(
                    *(tx.site.secret, tx.site.id, webhook.id, webhook.generation),
                    rotated_at=webhook.rotated_at,
                    now=utc_now(),
                )
                async with self._fetcher.open_session(webhook.url) as session:
                    sent = await send_page(session, secrets, page.messages)
            goes_on = await self._record(lease, webhook, position, page, sent)
        return True

    async def _reset(self, lease: Lease, webhook: Webhook) -> None:
        """Continue at the current revision, after a message that tells the receiver to synchronize again."""
        async with self._database.transaction(lease.site_id, utc_now(), writing=True) as tx:
            reset = Pending(rules.RESET_KIND, 0, tx.site.revision, next_attempt_at=tx.now)
            await delivery_tables.reset_pending(tx, webhook.id, reset)
            await log_consumers.advance(tx, lease, tx.site.revision, due_at=tx.now)

    async def _record(
        self, lease: Lease, webhook: Webhook, position: Position, page: MessagePage, sent: SentPage
    ) -> bool:
        """Store the outcome of a page; return whether to go on. Otherwise the lease is released.

        Locks are taken in the order in which the management of endpoints takes them: endpoint, records, consumer.
        """
        async with self._database.transaction(lease.site_id, utc_now(), writing=True) as tx:
            if sent.attempts:
                await delivery_tables.log_deliveries(tx, webhook.id, [_make_entry(entry) for entry in sent.attempts])
            health = assess_health(webhook, sent, tx.now)
            await _store_health(tx, webhook, health)
            if not sent.is_refused:
                await delivery_tables.store_pending(tx, webhook.id, _plan_retries(sent, tx.now))
                await delivery_tables.delete_pending(tx, webhook.id, _find_settled(page, sent))
            if health.disabled_reason:
                await delivery_tables.disable(tx, webhook.id, health.disabled_reason)
                goes_on = False
            else:
                goes_on = await self._advance(tx, lease, webhook.id, position, page, sent, health.due_at)
        for effect, number in sent.effects.items():
            metrics.find_series(metrics.WEBHOOK_MESSAGES, effect).inc(number)
        return goes_on

    async def _advance(
        self,
        tx: Transaction,
        lease: Lease,
        webhook_id: str,
        position: Position,
        page: MessagePage,
        sent: SentPage,
        check_at: datetime | None,
    ) -> bool:
        waiting, _, retry_at = await delivery_tables.measure_pending(tx, webhook_id)
        waits = 0 if sent.effects["delivered"] else position.waits
        not_before: datetime | None = None
        if sent.is_refused or waiting >= rules.MAX_PENDING:
            waits += 1
            demanded = [entry.result.retry_after for entry in sent.attempts if entry.result.retry_after is not None]
            not_before = rules.plan_wait(waits, tx.now, max(demanded, default=None))
        goes_on = not_before is None and (page.has_more or bool(sent.unsent))
        await log_consumers.advance(
            tx,
            lease,
            position.cursor if sent.is_refused else _find_cursor(page, sent),
            waits=waits,
            not_before=not_before,
            due_at=min((moment for moment in (retry_at, check_at) if moment is not None), default=None),
            release=not goes_on,
        )
        return goes_on


async def send_page(session: Session, secrets: Sequence[str], messages: Sequence[Message]) -> SentPage:
    """Send several messages at a time; after a failure, one at a time until one succeeds.

    Stop if the endpoint refuses all of the first ones, if it is gone, or if the page takes too long.
    """
    page, running, sent = SentPage(), set[asyncio.Task[Attempt]](), 0
    width, deadline = rules.MAX_IN_FLIGHT, time.monotonic() + PAGE_SECONDS
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
                width = rules.MAX_IN_FLIGHT if attempt.effect == "delivered" else 1
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


def _find_cursor(page: MessagePage, sent: SentPage) -> int:
    """Return the revision up to which every change was sent."""
    unsent = [message.revision for message in sent.unsent if not message.is_retry]
    return unsent[0] - 1 if unsent else page.cursor


def _plan_retries(sent: SentPage, now: datetime) -> list[Pending]:
    failed = [attempt for attempt in sent.attempts if attempt.effect in ("failed", "waits")]
    return [
        replace(
            attempt.message.pending,
            attempts=(attempts := attempt.message.pending.attempts + 1),
            next_attempt_at=rules.plan_retry(attempts, now, random.uniform(-1, 1)),
            status=attempt.result.status,
            error=attempt.result.error,
        )
        for attempt in failed
    ]


def _find_settled(page: MessagePage, sent: SentPage) -> list[RecordKey]:
    """Return the pending records that are delivered, or have nothing left to say."""
    delivered = [attempt.message.pending for attempt in sent.attempts if attempt.effect == "delivered"]
    return [*page.dropped, *[pending.key for pending in delivered if pending.is_stored]]


@dataclass(frozen=True, slots=True)
class Health:
    """Since when an endpoint fails, and what follows from that."""

    failing_since: datetime | None = None
    notified_at: datetime | None = None
    notice: Notice | None = None
    disabled_reason: Literal["", "gone", "failing"] = ""
    due_at: datetime | None = None  # when to look again, even without a change


def assess_health(webhook: Webhook, sent: SentPage, now: datetime) -> Health:
    """Return an endpoint's state after these attempts. Its owner gets a notice after a day and when it is disabled."""
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
    if (health.failing_since, health.notified_at) != (webhook.failing_since, webhook.notified_at):
        await delivery_tables.set_failing(tx, webhook.id, health.failing_since, health.notified_at)
    if health.notice is not None:
        await enqueue(tx, Task.SEND_WEBHOOK_NOTICE, {"webhook_id": webhook.id, "notice": health.notice})
