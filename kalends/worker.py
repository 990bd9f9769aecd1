"""The worker process, which runs queued jobs and periodic tasks.

Jobs that change records are idempotent: they read the record while holding the site's lock and do nothing if the work
is already done. If a worker dies, another worker retries its jobs.
"""

import asyncio
import logging
import math
import os
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final, get_args
from urllib.parse import urlsplit

from procrastinate import App, RetryStrategy
from procrastinate.exceptions import ConnectorException

from kalends.accounts.operations import user_accounts
from kalends.adapters import metrics, smtp_client
from kalends.adapters.purge_client import send_purges
from kalends.adapters.safe_fetch import Fetcher
from kalends.adapters.tracing import JobObserver, Tracer, announce_tasks, is_news
from kalends.bootstrap import database_options, open_import_tools, open_library, open_replica, open_tracer
from kalends.calendar import jobs as calendar_jobs
from kalends.calendar.access import caching
from kalends.core.egress import read_allowed_network
from kalends.core.times import utc_now
from kalends.core.urls import to_ascii_url
from kalends.fleet.storage.replica import Replica
from kalends.follow.operations import event_follows
from kalends.imports import jobs as imports_jobs
from kalends.media import jobs as media_jobs
from kalends.proposals import jobs as proposals_jobs
from kalends.proposals.rules import Mail
from kalends.push.operations.follower import Follower
from kalends.push.operations.webhook_delivery import MAX_REQUESTS, Notice, WebhookDelivery
from kalends.push.operations.webhook_messages import PublicUrls
from kalends.push.rules import TOTAL_SECONDS, Effect
from kalends.series import jobs as series_jobs
from kalends.settings import Settings
from kalends.store import job_queue, problems
from kalends.store.database import Database
from kalends.store.job_queue import Queue
from kalends.store.problems import DatabaseUnavailable
from kalends.store.queue_connector import QueueConnector
from kalends.store.sites import Site

if TYPE_CHECKING:
    from kalends.follow.jobs import DigestSender

log = logging.getLogger(__name__)

type Periodic = Callable[[int], Awaitable[None]]

# Concurrent jobs per queue. Other jobs cannot occupy the slots for urgent jobs. Together, the queues need no more
# connections than the default KALENDS_POOL_SIZE.
# One slot sends digests through several SMTP connections, which use up to four more for milliseconds at a time.
SLOTS: Final = {Queue.URGENT: 4, Queue.EMAIL: 2, Queue.DIGESTS: 1, Queue.BACKGROUND: 2, Queue.IMAGES: 2}
# Within a queue, jobs with a higher priority start first. `enqueue_job` assigns the same priority to `publish`.
PUBLISHING_PRIORITY: Final = 1
# After SIGTERM, running jobs have GRACE_SECONDS to finish before they are interrupted and retried. After
# STOP_SECONDS, the process ends even if PostgreSQL does not respond.
GRACE_SECONDS: Final = 5.0
STOP_SECONDS: Final = 9.0
# Seconds to wait before reconnecting after the database connection is lost.
RESTART_DELAY = 2.0
RETRY = RetryStrategy(max_attempts=10, exponential_wait=2)
# Seconds without a heartbeat after which a worker counts as dead and its jobs are retried.
STALLED_AFTER = 20.0
# Seconds after which each purge is repeated, to remove responses that were rendered before a write but reached the
# cache after its purge.
PURGE_REPEAT_DELAY = 2
# Before sending, a purge checks up to PURGE_WAITS times, PURGE_WAIT_SECONDS apart, whether the replica has the write.
PURGE_WAITS = 10
PURGE_WAIT_SECONDS = 0.05


def create_queue(settings: Settings) -> tuple[App, QueueConnector]:
    """Create the queue without its tasks, for inspecting jobs."""
    connector = QueueConnector(settings.queue_url or settings.database_url)
    return App(connector=connector), connector


@asynccontextmanager
async def open_queue(settings: Settings) -> AsyncIterator[tuple[App, asyncio.Event]]:
    """Open the queue and yield it with an event that is set when the connection is lost.

    Raise DatabaseUnavailable if the queue cannot be opened.
    """
    # The queue's pool would retry for half a minute without reporting the reason.
    async with problems.connect(settings.queue_url or settings.database_url):
        pass
    queue, connector = create_queue(settings)
    async with queue.open_async():
        yield queue, connector.is_broken


async def run_worker(settings: Settings) -> None:
    """Run jobs until SIGINT or SIGTERM, then finish or interrupt running jobs within STOP_SECONDS.

    Reconnect whenever the database connection is lost.
    """
    stopping = asyncio.Event()

    def stop() -> None:
        if not stopping.is_set():
            stopping.set()
            # Use a thread, because an unresponsive database connection could keep the event loop from ending.
            deadline = threading.Timer(STOP_SECONDS, _end_process)
            deadline.daemon = True
            deadline.start()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    logging.getLogger("procrastinate.worker").addFilter(is_news)
    log.info("worker started: %s", ", ".join(f"{slots} slots in {name}" for name, slots in SLOTS.items()))
    tracer = open_tracer(settings)
    database = await Database.open(database_options(settings, tracer))
    replica = await open_replica(settings, database)
    follower = asyncio.create_task(follow_changes(database, settings))
    try:
        while not stopping.is_set():
            try:
                await _run_until_stopped(stopping, settings, database, replica, tracer)
            except (ConnectorException, OSError, TimeoutError, DatabaseUnavailable) as error:
                if not stopping.is_set():
                    _log_restart(error)
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), RESTART_DELAY)
    finally:
        follower.cancel()
        await asyncio.wait([follower])
        await database.close()
        if replica is not None:
            await replica.database.close()
        if tracer is not None:
            tracer.close()
    log.info("worker stopped")


async def follow_changes(database: Database, settings: Settings) -> None:
    """Deliver webhooks and plan alerts, beside the queue: a job per delivery would fill it."""
    urls = PublicUrls(settings.base_url, settings.api_root, settings.media_url)
    fetcher = Fetcher(
        [read_allowed_network(text) for text in settings.fetch_allowed_networks],
        seconds=TOTAL_SECONDS,
        max_concurrent=MAX_REQUESTS,
    )
    for effect in get_args(Effect):
        metrics.find_series(metrics.WEBHOOK_MESSAGES, effect)
    handlers = {
        "webhook": WebhookDelivery(database, fetcher, urls).handle,
        event_follows.CONSUMER: event_follows.AlertPlanner(database).handle,
    }
    await Follower(database, handlers).run()


def _end_process() -> None:
    log.warning("worker stopped without waiting any longer; another worker retries jobs that were running")
    os._exit(0)


def _log_restart(error: Exception) -> None:
    states = {getattr(cause, "sqlstate", None) for cause in problems.iterate_causes(error)}
    reason = getattr(error, "detail", "")
    if not reason and not states.isdisjoint(problems.SCHEMA_STATES):
        reason = problems.UNMIGRATED.detail
    log.warning("restarting the worker: %s", reason or repr(error))


async def _run_until_stopped(
    stopping: asyncio.Event, settings: Settings, database: Database, replica: Replica | None, tracer: Tracer | None
) -> None:
    """Run jobs until `stopping` is set; raise if the queue's connection is lost.

    After a failed queue statement, a job may be marked as running when it is not. It is retried once the worker has a
    new ID.
    """
    async with open_queue(settings) as (queue, is_broken):
        register_tasks(queue, database, settings, replica)
        # Names of the queue's built-in tasks contain a dot.
        announce_tasks({task.name for task in queue.tasks.values() if "." not in task.name})
        workers = [asyncio.create_task(_run_queue(queue, name, tracer)) for name in SLOTS]
        reasons = [asyncio.create_task(event.wait()) for event in (stopping, is_broken)]
        await asyncio.wait((*workers, *reasons), return_when=asyncio.FIRST_COMPLETED)
        for task in (*workers, *reasons):
            task.cancel()
        for result in await asyncio.gather(*workers, return_exceptions=True):
            if isinstance(result, Exception):
                raise result
        if is_broken.is_set():
            raise ConnectorException("a statement of the queue failed")


async def _run_queue(queue: App, name: Queue, tracer: Tracer | None) -> None:
    runner = App(connector=queue.connector)
    runner.tasks = queue.tasks
    if name is Queue.URGENT:
        runner.periodic_registry = queue.periodic_registry  # this worker enqueues the periodic tasks for all queues
    await runner.run_worker_async(
        queues=[name],
        concurrency=SLOTS[name],
        fetch_job_polling_interval=2,
        update_heartbeat_interval=5,
        stalled_worker_timeout=STALLED_AFTER,
        shutdown_graceful_timeout=GRACE_SECONDS,
        delete_jobs="successful",
        install_signal_handlers=False,
        worker_middleware=[JobObserver(tracer), end_without_site],
    )


async def end_without_site(call_next: Callable[[], Awaitable[Any]], _context: Any, _worker: Any) -> Any:
    """Skip a job whose site was removed from this database, or moved to another one together with its jobs."""
    with job_queue.skipping_unknown_sites():
        return await call_next()


def register_tasks(queue: App, database: Database, settings: Settings, replica: Replica | None = None) -> None:
    """Register all tasks and schedule the periodic tasks."""

    @queue.task(name=job_queue.Task.PUBLISH, queue=Queue.URGENT, priority=PUBLISHING_PRIORITY, retry=RETRY)
    async def publish(kind: str, record_id: int, site_id: int) -> None:
        async with database.transaction(site_id, utc_now(), writing=True) as tx:
            await calendar_jobs.publish_due(tx, kind, record_id)

    register_purge(queue, database, settings, replica)
    periodic = make_periodic(queue)
    register_emails(queue, periodic, database, settings)
    library = open_library(settings)

    @queue.task(name=job_queue.Task.MAKE_SIZES, queue=Queue.IMAGES, retry=RETRY)
    async def make_sizes(media_id: int, site_id: int) -> None:
        await media_jobs.make_sizes(database, library, utc_now(), site_id, media_id)

    import_tools = open_import_tools(settings, library)

    @queue.task(name=job_queue.Task.PLAN_IMPORT, queue=Queue.BACKGROUND, retry=RETRY)
    async def plan_import(run_id: int, site_id: int) -> None:
        await imports_jobs.plan_run(database, import_tools, site_id, run_id)

    @queue.task(name=job_queue.Task.APPLY_IMPORT, queue=Queue.BACKGROUND, retry=RETRY)
    async def apply_import(run_id: int, site_id: int) -> None:
        await imports_jobs.apply_run(database, import_tools, site_id, run_id)

    # In a six-field schedule, the last field holds the seconds.
    @periodic("* * * * * */30")
    async def start_imports(timestamp: int) -> None:
        await imports_jobs.start_due(database, utc_now())

    @periodic("23 4 * * *", retry=RETRY)
    async def collect_orphans(timestamp: int) -> None:
        await media_jobs.collect_orphans(database, library, utc_now())

    @periodic("* * * * * */5", queue=Queue.URGENT, priority=PUBLISHING_PRIORITY)
    async def publish_overdue(timestamp: int) -> None:
        """Publish records that are overdue because a worker died while running their job."""
        for row in await job_queue.find_due_records(database):
            try:
                with job_queue.skipping_unknown_sites():
                    await publish(row["kind"], row["id"], row["site_id"])
            except Exception:
                # A record that cannot be published must not block the others.
                log.exception("cannot publish overdue %s %s of site %s", row["kind"], row["id"], row["site_id"])

    register_maintenance(periodic, database, settings)

    @periodic("* * * * * */10", former_name="settle_places")
    async def update_event_locations(timestamp: int) -> None:
        await update_all_event_locations(database)

    @periodic("* * * * * */10", former_name="take_over", queue=Queue.URGENT, priority=PUBLISHING_PRIORITY)
    async def retry_stalled_jobs(timestamp: int) -> None:
        for job in await queue.job_manager.get_stalled_jobs(seconds_since_heartbeat=STALLED_AFTER):
            await queue.job_manager.retry_job(job)


def make_periodic(queue: App) -> Callable[..., Callable[[Periodic], object]]:
    """Return the function that registers periodic tasks."""

    def periodic(cron: str, former_name: str = "", **options: Any) -> Callable[[Periodic], object]:
        """Register a function under its name. Jobs queued under its former name still run."""

        def register(run: Periodic) -> object:
            name, aliases = run.__name__, [former_name] if former_name else None
            given: dict[str, Any] = {"queue": Queue.BACKGROUND, "queueing_lock": name, **options}
            task: Any = queue.task(name=name, aliases=aliases, **given)
            return queue.periodic(cron=cron)(task(run))

        return register

    return periodic


def register_emails(
    queue: App, periodic: Callable[..., Callable[[Periodic], object]], database: Database, settings: Settings
) -> None:
    """Register the tasks that send emails. Most workers need no template engine, so tasks import it themselves."""

    def find_sender(site: Site, offered_url: str = "") -> str:
        host = urlsplit(to_ascii_url(site.base_url or settings.base_url or offered_url)).hostname or "localhost"
        return settings.email_from or f"calendar@{host}"

    async def deliver(site: Site, to: str, subject: str, text: str, offered_url: str = "") -> None:
        email = smtp_client.Email(find_sender(site, offered_url), site.name, to, subject, text)
        try:
            await smtp_client.send_email(settings.smtp_url.get_secret_value(), email, utc_now())
        except smtp_client.Refused as error:
            if error.is_temporary:
                raise
            log.warning("the SMTP server refused an email of site %s: %s", site.id, error)

    @queue.task(name=job_queue.Task.SEND_EMAIL, queue=Queue.EMAIL, retry=RETRY)
    async def send_email(to: str, subject: str, text: str, site_id: int, link: dict[str, Any] | None = None) -> None:
        if not to:
            return  # A reset was requested for an account that does not exist or has no address.
        async with database.transaction(site_id, utc_now(), writing=True) as tx:
            site = tx.site
            if link is not None:
                text = await user_accounts.insert_link(tx, text, link["user_id"], link["purpose"], link["base_url"])
        await deliver(site, to, subject, text, (link or {}).get("base_url", ""))

    @queue.task(name=job_queue.Task.SEND_PROPOSAL_EMAIL, queue=Queue.EMAIL, retry=RETRY)
    async def send_proposal_email(mail: str, key: str, version: int, site_id: int) -> None:
        from kalends.proposals.mails import send_mail

        if settings.smtp_url.get_secret_value():
            await send_mail(database, deliver, settings.base_url, site_id, mail=Mail(mail), key=key, version=version)

    @queue.task(name=job_queue.Task.SEND_WEBHOOK_NOTICE, queue=Queue.EMAIL, retry=RETRY)
    async def send_webhook_notice(webhook_id: str, notice: Notice, site_id: int) -> None:
        from kalends.push.mails import write_notice

        if settings.smtp_url.get_secret_value():
            async with database.transaction(site_id, utc_now(), writing=True) as tx:
                await write_notice(tx, webhook_id, notice, settings.base_url)

    @queue.task(name=job_queue.Task.SEND_FOLLOW_EMAIL, queue=Queue.EMAIL, retry=RETRY)
    async def send_follow_email(follower_id: str, site_id: int) -> None:
        from kalends.follow.mails.link_mail import send_link_mail

        if settings.smtp_url.get_secret_value():
            await send_link_mail(database, deliver, settings.base_url, site_id, follower_id)

    smtp_url = settings.smtp_url.get_secret_value()

    @cache
    def make_sender() -> "DigestSender":
        from kalends.follow.jobs import DigestSender
        from kalends.follow.mails.rendering_cache import Mailbox

        return DigestSender(database, smtp_url, Mailbox(settings.base_url, find_sender))

    # The lock gives each database one sender. A queueing lock would keep the job of a dead worker from being retried
    # while the next one waits for the lock.
    @periodic("* * * * * */10", queue=Queue.DIGESTS, lock="send_mails", queueing_lock=None)
    async def send_mails(timestamp: int) -> None:
        if smtp_url:
            await make_sender().send_due()


def register_maintenance(
    periodic: Callable[..., Callable[[Periodic], object]], database: Database, settings: Settings
) -> None:
    """Register the hourly and nightly tasks that need only the database."""

    @periodic("17 * * * *", retry=RETRY)
    async def empty_trash(timestamp: int) -> None:
        await empty_old_trash(database, settings.trash_days)

    @periodic("29 * * * *", retry=RETRY)
    async def age_proposals(timestamp: int) -> None:
        await proposals_jobs.age_proposals(database, utc_now())

    @periodic("3 * * * *", retry=RETRY)
    async def summarize_queues(timestamp: int) -> None:
        if settings.smtp_url.get_secret_value():
            await proposals_jobs.summarize_queues(database, utc_now())

    @periodic("53 3 * * *", retry=RETRY)
    async def clean_follows(timestamp: int) -> None:
        from kalends.follow.operations.followings import clean_follows as clean

        await clean(database, utc_now())

    @periodic("7 2 * * *", retry=RETRY)
    async def extend_series(timestamp: int) -> None:
        await series_jobs.extend_all(database, utc_now())

    @periodic("41 3 * * *", former_name="forget_changes", retry=RETRY)
    async def trim_change_logs(timestamp: int) -> None:
        await trim_old_changes(database, settings.history_days)


def register_purge(queue: App, database: Database, settings: Settings, replica: Replica | None) -> None:
    """Register the task that removes outdated responses from shared caches."""

    @queue.task(name=job_queue.Task.PURGE, queue=Queue.URGENT, retry=RETRY)
    async def purge(first: int, last: int, site_id: int, *, again: bool = True, attempt: int = 0) -> None:
        async with database.transaction(site_id, utc_now(), writing=False) as tx:
            tags = list(caching.batch_tags(tx.site, await caching.find_touched(tx, first, last)))
        is_reached = replica is None or await _wait_for_revision(replica, site_id, last)
        await asyncio.gather(*[send_purges(url, tags) for url in settings.purge_urls])
        if again:
            max_lag = math.ceil(settings.replica_max_lag) if replica is not None else 0
            # Until the replica has the write, a cache may fetch the old response again. After the maximum lag, every
            # replica that answers has the write, so the next purge is the last.
            is_last = is_reached or attempt * PURGE_REPEAT_DELAY >= max_lag
            delay = PURGE_REPEAT_DELAY + (max_lag if is_last else 0)
            repeat = purge.configure(schedule_in={"seconds": delay})
            await repeat.defer_async(first=first, last=last, site_id=site_id, again=not is_last, attempt=attempt + 1)


async def _wait_for_revision(replica: Replica, site_id: int, revision: int) -> bool:
    """Wait briefly for the replica to reach a site's revision; return whether it did."""
    for _ in range(PURGE_WAITS):
        if await replica.has_reached(site_id, revision, utc_now()):
            return True
        await asyncio.sleep(PURGE_WAIT_SECONDS)
    return False


async def empty_old_trash(database: Database, days: int) -> int:
    """Permanently delete records that have been in the trash for at least `days` days; return the number."""
    removed = 0
    cutoff = utc_now() - timedelta(days=days)
    while old := await job_queue.find_old_trash(database, cutoff):
        for row in old:
            with job_queue.skipping_unknown_sites():
                async with database.transaction(row["site_id"], utc_now(), writing=True) as tx:
                    removed += await calendar_jobs.remove_old_trash(tx, row["kind"], row["id"], cutoff)
    return removed


async def update_all_event_locations(database: Database) -> None:
    """Copy changed venue coordinates to events, in small transactions because a venue can have many events."""
    for row in await job_queue.find_relocated_venues(database):
        has_more = True
        with job_queue.skipping_unknown_sites():
            while has_more:
                async with database.transaction(row["site_id"], utc_now(), writing=True) as tx:
                    has_more = await job_queue.update_event_places(tx, row["id"])


async def trim_old_changes(database: Database, days: int) -> None:
    cutoff = utc_now() - timedelta(days=days)
    for site_id in await job_queue.find_sites_with_old_changes(database, cutoff):
        with job_queue.skipping_unknown_sites():
            async with database.transaction(site_id, utc_now(), writing=True) as tx:
                await calendar_jobs.trim_change_log(tx, cutoff)
