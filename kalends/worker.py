"""The worker: runs the jobs of the queues in PostgreSQL, and periodic tasks.

Every job is idempotent: it reads the record under the lock of its site and does nothing if the work is already done.
If a worker dies, another one retries its jobs.
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
from typing import Any, Final
from urllib.parse import urlsplit

from procrastinate import App, RetryStrategy
from procrastinate.exceptions import ConnectorException

from kalends.adapters import smtp_client
from kalends.adapters.job_observer import JobObserver, announce_tasks, is_news
from kalends.adapters.purge_client import send_purges
from kalends.adapters.tracing import Tracer
from kalends.bootstrap import database_options, open_import_tools, open_library, open_replica, open_tracer
from kalends.core.clock import utc_now
from kalends.operations import cache_tags, emails, lifecycle, touched_tags
from kalends.operations.imports import jobs as import_jobs
from kalends.operations.media import maintenance
from kalends.operations.series import horizon
from kalends.settings import Settings
from kalends.store import jobs, problems
from kalends.store.database import Database
from kalends.store.jobs import Queue
from kalends.store.problems import DatabaseUnavailable
from kalends.store.queue_connector import QueueConnector
from kalends.store.replica import Replica

log = logging.getLogger(__name__)

# How many jobs of each queue run at the same time: images in at most half of all slots, and none of them in the slots
# of urgent jobs. All together, they need no more connections than the default of KALENDS_POOL_SIZE.
SLOTS: Final = {Queue.URGENT: 4, Queue.EMAIL: 2, Queue.BACKGROUND: 2, Queue.IMAGES: 2}
# In a queue, jobs with a higher priority start first. `enqueue_job` gives the same to `publish`.
PUBLISHING_PRIORITY: Final = 1
# Seconds that running jobs have to finish after SIGTERM, then they are interrupted and retried; and seconds after
# which the process ends in any case, also if PostgreSQL does not respond.
GRACE_SECONDS: Final = 5.0
STOP_SECONDS: Final = 9.0
# Seconds before a worker that has lost its connection to the database reconnects.
RESTART_DELAY = 2.0
RETRY = RetryStrategy(max_attempts=10, exponential_wait=2)
# Seconds without a heartbeat after which a worker counts as dead and its jobs are retried.
STALLED_AFTER = 20.0
# Seconds after which each purge is repeated, to remove responses that were rendered before a write but reached the
# cache after its purge.
PURGE_REPEAT_DELAY = 2
# How often a purge asks whether the replica shows the write before it is sent, and the seconds between.
PURGE_WAITS = 10
PURGE_WAIT_SECONDS = 0.05


def create_queue(settings: Settings) -> tuple[App, QueueConnector]:
    """Create the queue without its tasks, which is enough to inspect jobs."""
    connector = QueueConnector(settings.queue_url or settings.database_url)
    return App(connector=connector), connector


@asynccontextmanager
async def open_queue(settings: Settings) -> AsyncIterator[tuple[App, asyncio.Event]]:
    """Open the queue, with an event for a lost connection; raise DatabaseUnavailable if there is no database."""
    # The pool of the queue would try for half a minute and not say why.
    async with problems.connect(settings.queue_url or settings.database_url):
        pass
    queue, connector = create_queue(settings)
    async with queue.open_async():
        yield queue, connector.is_broken


async def run_worker(settings: Settings) -> None:
    """Run jobs until SIGINT or SIGTERM, then finish or interrupt the running ones, within STOP_SECONDS.

    Reconnect whenever the database is lost.
    """
    stopping = asyncio.Event()

    def stop() -> None:
        if not stopping.is_set():
            stopping.set()
            # A thread, because a connection to a database that does not respond may keep the loop from ending.
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
        await database.close()
        if replica is not None:
            await replica.database.close()
        if tracer is not None:
            tracer.close()
    log.info("worker stopped")


def _end_process() -> None:
    log.warning("worker stopped without waiting any longer; another worker retries jobs that were running")
    os._exit(0)


def _log_restart(error: Exception) -> None:
    """Log why the worker restarts: the detail of an unavailable database, a missing schema, or the error."""
    states = {getattr(cause, "sqlstate", None) for cause in problems.iterate_causes(error)}
    reason = getattr(error, "detail", "")
    if not reason and not states.isdisjoint(problems.SCHEMA_STATES):
        reason = problems.UNMIGRATED.detail
    log.warning("restarting the worker: %s", reason or repr(error))


async def _run_until_stopped(
    stopping: asyncio.Event, settings: Settings, database: Database, replica: Replica | None, tracer: Tracer | None
) -> None:
    """Run jobs until `stopping` is set; raise if the connection of the queue is lost.

    After a statement of the queue has failed, a job may seem to be running that is not. It is retried when the worker
    has another number.
    """
    async with open_queue(settings) as (queue, is_broken):
        register_tasks(queue, database, settings, replica)
        announce_tasks(name for name in queue.tasks if "." not in name)  # Tasks of the queue itself have a dot.
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
    """Run the jobs of one queue in its slots."""
    runner = App(connector=queue.connector)
    runner.tasks = queue.tasks
    if name is Queue.URGENT:
        runner.periodic_registry = queue.periodic_registry  # It enqueues the periodic tasks of all queues.
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
    """End a job whose site is not in this database any more: it has been removed, or has taken its jobs along."""
    with jobs.skipping_unknown_sites():
        return await call_next()


def register_tasks(queue: App, database: Database, settings: Settings, replica: Replica | None = None) -> None:
    """Register all tasks and the schedules of the periodic ones."""

    @queue.task(name=jobs.Task.PUBLISH, queue=Queue.URGENT, priority=PUBLISHING_PRIORITY, retry=RETRY)
    async def publish(kind: str, record_id: int, site_id: int) -> None:
        async with database.transaction(site_id, utc_now(), writing=True) as tx:
            await lifecycle.publish_due(tx, kind, record_id)

    register_purge(queue, database, settings, replica)
    library = open_library(settings)

    @queue.task(name=jobs.Task.MAKE_SIZES, queue=Queue.IMAGES, retry=RETRY)
    async def make_sizes(media_id: int, site_id: int) -> None:
        await maintenance.make_sizes(database, library, utc_now(), site_id, media_id)

    @queue.task(name=jobs.Task.SEND_EMAIL, queue=Queue.EMAIL, retry=RETRY)
    async def send_email(to: str, subject: str, text: str, site_id: int, link: dict[str, Any] | None = None) -> None:
        if not to:
            return  # A reset was requested for an account that does not exist or has no address.
        async with database.transaction(site_id, utc_now(), writing=True) as tx:
            site, now = tx.site, tx.now
            if link is not None:
                text = await emails.insert_link(tx, text, link["user_id"], link["purpose"], link["base_url"])
        base_url = site.base_url or settings.base_url or (link or {}).get("base_url", "")
        sender = settings.email_from or f"calendar@{urlsplit(base_url).hostname or 'localhost'}"
        email = smtp_client.Email(sender, site.name, to, subject, text)
        await smtp_client.send_email(settings.smtp_url.get_secret_value(), email, now)

    import_tools = open_import_tools(settings, library)

    @queue.task(name=jobs.Task.PLAN_IMPORT, queue=Queue.BACKGROUND, retry=RETRY)
    async def plan_import(run_id: int, site_id: int) -> None:
        await import_jobs.plan_run(database, import_tools, site_id, run_id)

    @queue.task(name=jobs.Task.APPLY_IMPORT, queue=Queue.BACKGROUND, retry=RETRY)
    async def apply_import(run_id: int, site_id: int) -> None:
        await import_jobs.apply_run(database, import_tools, site_id, run_id)

    @queue.periodic(cron="* * * * * */30")
    @queue.task(name="start_imports", queue=Queue.BACKGROUND, queueing_lock="start_imports")
    async def start_imports(timestamp: int) -> None:
        await import_jobs.start_due(database, utc_now())

    @queue.periodic(cron="23 4 * * *")
    @queue.task(name="collect_orphans", queue=Queue.BACKGROUND, queueing_lock="collect_orphans", retry=RETRY)
    async def collect_orphans(timestamp: int) -> None:
        await maintenance.collect_orphans(database, library, utc_now())

    # A safety net for `publish`: publishes overdue records whose job was lost with its worker.
    # In a schedule of six fields the last one is the second.
    @queue.periodic(cron="* * * * * */5")
    @queue.task(
        name="publish_overdue", queue=Queue.URGENT, priority=PUBLISHING_PRIORITY, queueing_lock="publish_overdue"
    )
    async def publish_overdue(timestamp: int) -> None:
        for row in await jobs.find_due_records(database):
            try:
                with jobs.skipping_unknown_sites():
                    await publish(row["kind"], row["id"], row["site_id"])
            except Exception:
                # A record that cannot be published must not block the others.
                log.exception("cannot publish overdue %s %s of site %s", row["kind"], row["id"], row["site_id"])

    @queue.periodic(cron="17 * * * *")
    @queue.task(name="empty_trash", queue=Queue.BACKGROUND, queueing_lock="empty_trash", retry=RETRY)
    async def empty_trash(timestamp: int) -> None:
        await empty_old_trash(database, settings.trash_days)

    @queue.periodic(cron="7 2 * * *")
    @queue.task(name="extend_series", queue=Queue.BACKGROUND, queueing_lock="extend_series", retry=RETRY)
    async def extend_series(timestamp: int) -> None:
        await horizon.extend_all(database, utc_now())

    @queue.periodic(cron="41 3 * * *")
    @queue.task(name="forget_changes", queue=Queue.BACKGROUND, queueing_lock="forget_changes", retry=RETRY)
    async def trim_change_logs(timestamp: int) -> None:
        await trim_old_changes(database, settings.history_days)

    @queue.periodic(cron="* * * * * */10")
    @queue.task(name="settle_places", queue=Queue.BACKGROUND, queueing_lock="settle_places")
    async def update_event_locations(timestamp: int) -> None:
        await update_all_event_locations(database)

    @queue.periodic(cron="* * * * * */10")
    @queue.task(name="take_over", queue=Queue.URGENT, priority=PUBLISHING_PRIORITY, queueing_lock="take_over")
    async def retry_stalled_jobs(timestamp: int) -> None:
        for job in await queue.job_manager.get_stalled_jobs(seconds_since_heartbeat=STALLED_AFTER):
            await queue.job_manager.retry_job(job)


def register_purge(queue: App, database: Database, settings: Settings, replica: Replica | None) -> None:
    """Register the task that removes outdated responses from shared caches."""

    @queue.task(name=jobs.Task.PURGE, queue=Queue.URGENT, retry=RETRY)
    async def purge(first: int, last: int, site_id: int, *, again: bool = True, attempt: int = 0) -> None:
        async with database.transaction(site_id, utc_now(), writing=False) as tx:
            tags = list(cache_tags.batch_tags(tx.site, await touched_tags.find_touched(tx, first, last)))
        is_reached = replica is None or await _wait_for_revision(replica, site_id, last)
        await asyncio.gather(*[send_purges(url, tags) for url in settings.purge_urls])
        if again:
            max_lag = math.ceil(settings.replica_max_lag) if replica is not None else 0
            # Until the replica shows the write, a cache may have fetched the old response again. After the maximum
            # lag no replica answers that does not show it, so the purge after that is the last one.
            is_last = is_reached or attempt * PURGE_REPEAT_DELAY >= max_lag
            delay = PURGE_REPEAT_DELAY + (max_lag if is_last else 0)
            repeat = purge.configure(schedule_in={"seconds": delay})
            await repeat.defer_async(first=first, last=last, site_id=site_id, again=not is_last, attempt=attempt + 1)


async def _wait_for_revision(replica: Replica, site_id: int, revision: int) -> bool:
    """Return whether the replica reaches a revision of a site within a short time."""
    for _ in range(PURGE_WAITS):
        if await replica.has_reached(site_id, revision, utc_now()):
            return True
        await asyncio.sleep(PURGE_WAIT_SECONDS)
    return False


async def empty_old_trash(database: Database, days: int) -> int:
    """Delete records permanently that have been in the trash for `days`; return their number."""
    removed = 0
    cutoff = utc_now() - timedelta(days=days)
    while old := await jobs.find_old_trash(database, cutoff):
        for row in old:
            with jobs.skipping_unknown_sites():
                async with database.transaction(row["site_id"], utc_now(), writing=True) as tx:
                    removed += await lifecycle.remove_old_trash(tx, row["kind"], row["id"], cutoff)
    return removed


async def update_all_event_locations(database: Database) -> None:
    """Copy changed coordinates of venues with many events to those events, in small transactions."""
    for row in await jobs.find_relocated_venues(database):
        has_more = True
        with jobs.skipping_unknown_sites():
            while has_more:
                async with database.transaction(row["site_id"], utc_now(), writing=True) as tx:
                    has_more = await jobs.update_event_places(tx, row["id"])


async def trim_old_changes(database: Database, days: int) -> None:
    """Remove entries older than `days` from the change logs of all sites."""
    cutoff = utc_now() - timedelta(days=days)
    for site_id in await jobs.find_sites_with_old_changes(database, cutoff):
        with jobs.skipping_unknown_sites():
            async with database.transaction(site_id, utc_now(), writing=True) as tx:
                await lifecycle.trim_change_log(tx, cutoff)
