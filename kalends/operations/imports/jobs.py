"""The jobs of imports: fetching and planning, applying, and starting sources that are due."""

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from kalends.core.clock import utc_now
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.languages import DEFAULT, find_language
from kalends.core.messages import Message
from kalends.core.translations import translator
from kalends.operations.emails import enqueue_email
from kalends.operations.imports import applying, runs, undo
from kalends.operations.imports.inputs import Input, Tools, load_request, read_input
from kalends.operations.imports.sources import fetch_run, fetch_source
from kalends.store import Row, import_lists, imports, jobs
from kalends.store.database import Database, Transaction
from kalends.store.imports import encode
from kalends.store.site_database import SiteDatabase
from kalends.store.sql import Sql

# A source is paused after this many failures, one after the other.
MAX_FAILURES: Final = 5
# The next fetch is earlier or later by up to this part of the interval, so that sources spread out.
JITTER: Final = 0.1

GetNow = Callable[[], datetime]


async def plan_run(
    database: SiteDatabase, tools: Tools, site_id: int, run_id: int, *, get_now: GetNow = utc_now
) -> str:
    """Fetch and plan a run that has begun, and apply it if its options say so; return its state.

    The job may run again after it was interrupted; a run that has been planned stays as it is.
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
    await runs.fill_run(database, site_id, run_id, found.parsed, now=get_now(), find_candidates=tools.find_candidates)
    state = await _settle(database, site_id, run_id, get_now())
    if state == "planned" and request.options.get("apply") and not await _has_question(database, site_id, run_id):
        await applying.apply(database, site_id, run_id, library=tools.library, get_now=get_now)
        state = await _settle(database, site_id, run_id, get_now())
    return state


async def _has_question(database: SiteDatabase, site_id: int, run_id: int) -> bool:
    async with database.transaction(site_id, utc_now(), writing=False) as tx:
        return runs.read_question(await fetch_run(tx, run_id)) is not None


async def apply_run(
    database: SiteDatabase, tools: Tools, site_id: int, run_id: int, *, get_now: GetNow = utc_now
) -> None:
    """Apply a plan, or the rows that its options name. An interrupted job continues."""
    async with database.transaction(site_id, get_now(), writing=False) as tx:
        run = await fetch_run(tx, run_id)
    if run["state"] == "applying":
        numbers = imports.decode(run["options"]).get("numbers")
        try:
            await applying.apply(database, site_id, run_id, numbers=numbers, library=tools.library, get_now=get_now)
        except ApiError as error:
            if error.status >= 500:
                raise  # The queue tries again.
            await runs.fail_run(database, site_id, run_id, error.message, get_now())


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
    """Fetch or read the file of a source, and plan; return the ID of the run, whose state tells the result."""
    run_id = await runs.begin_run(database, site_id, source_id, now=get_now(), user_id=user_id, options=options)
    await plan_run(database, tools, site_id, run_id, get_now=get_now)
    return run_id


async def start_due(database: Database, now: datetime) -> int:
    """Start runs of the sources of all sites that are due; return their number."""
    started = 0
    for row in await imports.find_due_sources(database):
        async with database.transaction(row["site_id"], now, writing=True) as tx:
            await tx.lock_site(None)
            started += await _start(tx, row["id"])
    return started


async def _start(tx: Transaction, source_id: int) -> bool:
    source = await imports.find_source(tx, source_id)
    if source is None or source["state"] != "active" or source["next_run_at"] is None:
        return False
    await imports.change_source(tx, source_id, {"next_run_at": _choose_next(source, tx.now)})
    await imports.release_stale_runs(tx, source_id, tx.now - runs.STALE_AFTER)
    if await import_lists.find_busy_run(tx, source_id) is not None:
        return False
    run_id = await imports.add_run(tx, source_id, {"options": encode({"apply": True, "input": "url"})})
    await jobs.enqueue(tx, jobs.Task.PLAN_IMPORT, {"run_id": run_id})
    return True


def _choose_next(source: Row, now: datetime) -> datetime | None:
    if source["interval_minutes"] is None:
        return None
    factor = 1 + random.uniform(-JITTER, JITTER)  # noqa: S311
    return now + timedelta(minutes=source["interval_minutes"] * factor)


# Results -------------------------------------------------------------------------------------


async def _plan_undo(database: SiteDatabase, site_id: int, run: Row, now: datetime) -> str:
    try:
        await undo.fill_undo(database, site_id, run["id"], now)
    except ApiError as error:
        if error.status >= 500:
            raise  # The queue tries again.
        await runs.fail_run(database, site_id, run["id"], error.message, now)
        return "failed"
    return "planned"


async def _note_input(database: SiteDatabase, site_id: int, run: Row, found: Input, now: datetime) -> None:
    """Store what identifies the input, and the preview of a table."""
    options = {**imports.decode(run["options"]), "etag": found.etag, "last_modified": found.last_modified}
    preview = encode(found.preview) if found.preview is not None else None
    async with database.transaction(site_id, now, writing=True) as tx:
        await imports.change_run(
            tx, run["id"], {"input_hash": found.fingerprint, "options": encode(options), "preview": preview}
        )


async def _end_unchanged(database: SiteDatabase, site_id: int, run: Row, now: datetime) -> None:
    """End a run whose input is the same as last time."""
    async with database.transaction(site_id, now, writing=True) as tx:
        await imports.change_run(tx, run["id"], {"state": "unchanged", "planned_at": now, "finished_at": now})
        await imports.change_source(tx, run["source_id"], {"last_success_at": now, "failures": 0})
        await imports.remove_unchanged_runs(tx, run["source_id"], run["id"])


async def _settle(database: SiteDatabase, site_id: int, run_id: int, now: datetime) -> str:
    """Return the state of a run; of scheduled runs without changes only the last one is kept."""
    async with database.transaction(site_id, now, writing=True) as tx:
        run = await fetch_run(tx, run_id)
        if run["state"] == "unchanged":
            await imports.remove_unchanged_runs(tx, run["source_id"], run_id)
        return str(run["state"])


async def _record_failure(database: SiteDatabase, site_id: int, run: Row, reason: Message, now: datetime) -> None:
    """End a run that could not read its input; pause a source that fails again and again."""
    await runs.fail_run(database, site_id, run["id"], reason, now)
    if run["user_id"] is not None or imports.decode(run["options"]).get("by_command"):
        return  # A person sees the failure.
    async with database.transaction(site_id, now, writing=True) as tx:
        source = await fetch_source(tx, run["source_id"])
        failures = source["failures"] + 1
        await imports.change_source(tx, source["id"], {"failures": failures})
        if failures >= MAX_FAILURES and source["state"] == "active":
            await imports.change_source(tx, source["id"], {"state": "paused", "next_run_at": None})
            await _notify_owner(tx, source, reason)


async def _notify_owner(tx: Transaction, source: Row, reason: Message) -> None:
    """Tell the owner by e-mail that a source is paused, in the language of the owner."""
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
