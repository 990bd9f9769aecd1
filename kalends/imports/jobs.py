"""Jobs that plan and apply import runs, and start runs for sources that are due."""

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from kalends.accounts.operations.user_accounts import enqueue_email
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.messages import DEFAULT, Message, find_language, translator
from kalends.core.times import utc_now
from kalends.imports.operations import apply, import_runs, undo
from kalends.imports.operations.sources import Input, Tools, fetch_run, fetch_source, load_request, read_input
from kalends.imports.storage import import_lists, import_tables
from kalends.imports.storage.import_tables import encode
from kalends.store import Row, job_queue
from kalends.store.database import Database, Transaction
from kalends.store.site_database import SiteDatabase
from kalends.store.sql import Sql

# Consecutive failures before a source is paused.
MAX_FAILURES: Final = 5
# Fetches are shifted by up to this fraction of the interval, to spread the load.
JITTER: Final = 0.1

GetNow = Callable[[], datetime]


async def plan_run(
    database: SiteDatabase, tools: Tools, site_id: int, run_id: int, *, get_now: GetNow = utc_now
) -> str:
    """Fetch the input of a started run and plan the run; return its state.

    If the run's options request it, also apply the plan. An interrupted job can run again. A run that has already
    been planned does not change.
    """
    async with database.transaction(site_id, get_now(), writing=True) as tx:
        run = await fetch_run(tx, run_id)
        if run["state"] != "planning":
            return str(run["state"])
        request = await load_request(tx, run, await fetch_source(tx, run["source_id"]))
    if run["undoes"] is not None:
        return await _plan_undo(database, site_id, run, get_now())
    try:
        found = await read_input(tools, request)
    except InvalidValue as error:
        await _record_failure(database, site_id, run, error.message, get_now())
        return "failed"
    if found is None:
        await _end_unchanged(database, site_id, run, get_now())
        return "unchanged"
    await _note_input(database, site_id, run, found, get_now())
    await import_runs.fill_run(
        database, site_id, run_id, found.parsed, now=get_now(), find_candidates=tools.find_candidates
    )
    planned = await _settle(database, site_id, run_id, get_now())
    if planned["state"] != "planned" or not request.options.get("apply") or import_runs.read_question(planned):
        return str(planned["state"])
    await apply.apply(database, site_id, run_id, library=tools.library, get_now=get_now)
    return str((await _settle(database, site_id, run_id, get_now()))["state"])


async def apply_run(
    database: SiteDatabase, tools: Tools, site_id: int, run_id: int, *, get_now: GetNow = utc_now
) -> None:
    """Apply a plan, or only the rows whose numbers are in the run's options. An interrupted job can run again."""
    async with database.transaction(site_id, get_now(), writing=False) as tx:
        run = await fetch_run(tx, run_id)
    if run["state"] == "applying":
        numbers = import_tables.decode(run["options"]).get("numbers")
        try:
            await apply.apply(database, site_id, run_id, numbers=numbers, library=tools.library, get_now=get_now)
        except ApiError as error:
            if error.status >= 500:
                raise  # the queue retries
            await import_runs.fail_run(database, site_id, run_id, error.message, get_now())


async def fetch_and_plan(
    database: SiteDatabase,
    tools: Tools,
    site_id: int,
    source_id: int,
    *,
    user_id: int | None,
    get_now: GetNow = utc_now,
    options: dict[str, Any] | None = None,
) -> int:
    """Fetch or read a source's file, and make a plan. Return the ID of the run; the run's state shows the outcome."""
    run_id = await import_runs.begin_run(
        database, site_id, source_id, now=get_now(), user_id=user_id, options=options
    )
    await plan_run(database, tools, site_id, run_id, get_now=get_now)
    return run_id


async def start_due(database: Database, now: datetime) -> int:
    """Start a run for each source that is due, on all sites; return the number of runs."""
    started = 0
    for row in await import_tables.find_due_sources(database):
        async with database.transaction(row["site_id"], now, writing=True) as tx:
            await tx.lock_site(None)
            started += await _start(tx, row["id"])
    return started


async def _start(tx: Transaction, source_id: int) -> bool:
    source = await import_tables.find_source(tx, source_id)
    if source is None or source["state"] != "active" or source["next_run_at"] is None:
        return False
    await import_tables.change_source(tx, source_id, {"next_run_at": _choose_next(source, tx.now)})
    await import_tables.release_stale_runs(tx, source_id, tx.now - import_runs.STALE_AFTER)
    if await import_lists.find_busy_run(tx, source_id) is not None:
        return False
    run_id = await import_tables.add_run(tx, source_id, {"options": encode({"apply": True, "input": "url"})})
    await job_queue.enqueue(tx, job_queue.Task.PLAN_IMPORT, {"run_id": run_id})
    return True


def _choose_next(source: Row, now: datetime) -> datetime | None:
    if source["interval_minutes"] is None:
        return None
    factor = 1 + random.uniform(-JITTER, JITTER)  # noqa: S311
    return now + timedelta(minutes=source["interval_minutes"] * factor)


async def _plan_undo(database: SiteDatabase, site_id: int, run: Row, now: datetime) -> str:
    try:
        await undo.fill_undo(database, site_id, run["id"], now)
    except ApiError as error:
        if error.status >= 500:
            raise  # the queue retries
        await import_runs.fail_run(database, site_id, run["id"], error.message, now)
        return "failed"
    return "planned"


async def _note_input(database: SiteDatabase, site_id: int, run: Row, found: Input, now: datetime) -> None:
    """Store the input's fingerprint and validators, and the preview of a table."""
    options = {**import_tables.decode(run["options"]), "etag": found.etag, "last_modified": found.last_modified}
    preview = encode(found.preview) if found.preview is not None else None
    async with database.transaction(site_id, now, writing=True) as tx:
        await import_tables.change_run(
            tx, run["id"], {"input_hash": found.fingerprint, "options": encode(options), "preview": preview}
        )


async def _end_unchanged(database: SiteDatabase, site_id: int, run: Row, now: datetime) -> None:
    async with database.transaction(site_id, now, writing=True) as tx:
        await import_tables.change_run(tx, run["id"], {"state": "unchanged", "planned_at": now, "finished_at": now})
        await import_tables.change_source(tx, run["source_id"], {"last_success_at": now, "failures": 0})
        await import_tables.remove_unchanged_runs(tx, run["source_id"], run["id"])


async def _settle(database: SiteDatabase, site_id: int, run_id: int, now: datetime) -> Row:
    """Return a run. If it is unchanged, remove the source's earlier unchanged scheduled runs."""
    async with database.transaction(site_id, now, writing=True) as tx:
        run = await fetch_run(tx, run_id)
        if run["state"] == "unchanged":
            await import_tables.remove_unchanged_runs(tx, run["source_id"], run_id)
        return run


async def _record_failure(database: SiteDatabase, site_id: int, run: Row, reason: Message, now: datetime) -> None:
    """End a run whose input could not be read. Pause the source after repeated failures."""
    await import_runs.fail_run(database, site_id, run["id"], reason, now)
    if run["user_id"] is not None or import_tables.decode(run["options"]).get("by_command"):
        return  # shown to the person who started the run
    async with database.transaction(site_id, now, writing=True) as tx:
        source = await fetch_source(tx, run["source_id"])
        failures = source["failures"] + 1
        await import_tables.change_source(tx, source["id"], {"failures": failures})
        if failures >= MAX_FAILURES and source["state"] == "active":
            await import_tables.change_source(tx, source["id"], {"state": "paused", "next_run_at": None})
            await _notify_owner(tx, source, reason)


async def _notify_owner(tx: Transaction, source: Row, reason: Message) -> None:
    """Notify the owner by email, in the owner's language, that a source is paused."""
    owner = await tx.fetch_one(
        Sql("SELECT email, language FROM users WHERE site_id = ? AND id = ?", tx.site.id, source["owner_id"])
    )
    if owner is None or not owner["email"]:
        return
    translate = translator(find_language(owner["language"] or tx.site.language) or DEFAULT)
    subject = Message("The import “{name}” is paused", name=source["name"])
    text = Message(
        "The source “{name}” of {site} could not be imported {count} times in a row and is paused.\n\n"
        "Address: {url}\nLast error: {reason}\n\n"
        "Events that were imported before stay as they are. Check the address, and start the source again in the "
        "console.",
        name=source["name"],
        site=tx.site.name,
        count=MAX_FAILURES,
        url=source["url"],
        reason=reason,
    )
    await enqueue_email(tx, owner["email"], subject.render(translate), text.render(translate))
