"""Runs of imports: starting, applying, undoing and discarding them. The worker plans and applies."""

from collections.abc import Mapping
from typing import Any

from kalends.core import errors
from kalends.operations.context import OperationContext, Outcome
from kalends.operations.import_requests.serialize import read_json, serialize_row, serialize_run
from kalends.operations.import_requests.sources import fetch_changeable, require_importer
from kalends.operations.imports import runs as import_runs
from kalends.store import Row, import_lists, imports, jobs
from kalends.store.database import Transaction

PENDING = ("pending",)


async def list_runs(_: None, context: OperationContext) -> Outcome:
    """List the runs of a source or of all, the newest first."""
    require_importer(context)
    values, limit = context.values, context.values.get("per_page", 20)
    rows = await import_lists.list_runs(
        context.transaction, source_id=values.get("source"), before=values.get("before"), limit=limit + 1
    )
    next_before = rows[limit - 1]["id"] if len(rows) > limit else None
    return Outcome({"runs": [serialize_run(row) for row in rows[:limit]], "next_before": next_before})


async def read_run(_: None, context: OperationContext) -> Outcome:
    require_importer(context)
    return Outcome(serialize_run(await fetch_run(context.transaction, context.record_id)))


async def list_rows(_: None, context: OperationContext) -> Outcome:
    """List rows of a plan in the order in which they are applied."""
    require_importer(context)
    tx, values, limit = context.transaction, context.values, context.values.get("per_page", 100)
    run = await fetch_run(tx, context.record_id)
    rows = await import_lists.list_rows(
        tx,
        run["id"],
        actions=values.get("action"),
        states=values.get("state"),
        after=values.get("cursor", 0),
        limit=limit + 1,
    )
    next_cursor = rows[limit - 1]["number"] if len(rows) > limit else None
    return Outcome({"rows": [serialize_row(row) for row in rows[:limit]], "next_cursor": next_cursor})


async def start_run(_: None, context: OperationContext) -> Outcome:
    """Have the worker fetch the source or read its file, and make a plan."""
    require_importer(context)
    tx, source = context.transaction, await fetch_changeable(context)
    await _require_idle(tx, source["id"])
    if context.file is not None:
        await import_lists.save_file(tx, source["id"], context.file.name[:255], context.file.content)
    elif not source["url"] and source["file_name"] is None:
        raise errors.missing_params(["file"])
    reads_file = context.file is not None or not source["url"] or context.values.get("input") == "file"
    options = {"apply": context.values.get("apply", False), "input": "file" if reads_file else "url"}
    return await _add_run(context, source["id"], options)


async def apply_run(_: None, context: OperationContext) -> Outcome:
    """Have the worker apply a plan, or some of its rows."""
    require_importer(context)
    tx, run = context.transaction, await fetch_run(context.transaction, context.record_id)
    if run["state"] != "planned":
        raise errors.import_state(run["state"])
    await _require_idle(tx, run["source_id"])
    if context.values.get("confirm"):
        await import_runs.confirm(tx, run)
        run = await fetch_run(tx, run["id"])
    elif (question := import_runs.read_question(run)) is not None:
        raise errors.import_unconfirmed(question)
    numbers = await _select_rows(tx, run, context.values)
    options = {**read_json(run["options"]), "numbers": numbers}
    total = len(numbers) if numbers is not None else await import_lists.count_pending(tx, run["id"])
    progress = imports.encode({"done": 0, "total": total})
    await imports.change_run(
        tx, run["id"], {"state": "applying", "options": imports.encode(options), "progress": progress}
    )
    await jobs.enqueue(tx, jobs.Task.APPLY_IMPORT, {"run_id": run["id"]})
    return Outcome(serialize_run(await fetch_run(tx, run["id"])))


async def undo_run(_: None, context: OperationContext) -> Outcome:
    """Have the worker plan to undo a run. The plan is a run of its own, which can be reviewed and applied."""
    require_importer(context)
    tx, run = context.transaction, await fetch_run(context.transaction, context.record_id)
    if run["first_revision"] is None or run["undone_by"] is not None:
        raise errors.import_state(run["state"])
    if run["first_revision"] <= tx.site.trimmed_revision:
        raise errors.expired(tx.site.trimmed_revision)
    await _require_idle(tx, run["source_id"])
    return await _add_run(context, run["source_id"], {}, undoes=run["id"])


async def discard_run(_: None, context: OperationContext) -> Outcome:
    """Give up what is left of a plan, or one that is being made."""
    require_importer(context)
    tx, run = context.transaction, await fetch_run(context.transaction, context.record_id)
    if run["state"] not in ("planning", "planned"):
        raise errors.import_state(run["state"])
    # Rows that have been applied stay, and can be undone.
    state = "applied" if run["first_revision"] is not None else "discarded"
    await imports.change_run(tx, run["id"], {"state": state, "finished_at": tx.now})
    return Outcome(serialize_run(await fetch_run(tx, run["id"])))


async def decide_row(_: None, context: OperationContext) -> Outcome:
    """Decide whether a possible duplicate is the record that the plan names, or a new one."""
    require_importer(context)
    tx, run = context.transaction, await fetch_run(context.transaction, context.record_id)
    await import_runs.decide_row(tx, run["id"], context.values["row"], is_same=context.values["same"])
    return Outcome(serialize_run(await fetch_run(tx, run["id"])))


async def fetch_run(tx: Transaction, run_id: int | None) -> Row:
    row = await import_lists.find_run(tx, run_id or 0)
    if row is None:
        raise errors.import_not_found()
    return row


async def _require_idle(tx: Transaction, source_id: int) -> None:
    if await import_lists.find_busy_run(tx, source_id) is not None:
        raise errors.import_busy()


async def _add_run(
    context: OperationContext, source_id: int, options: Mapping[str, Any], undoes: int | None = None
) -> Outcome:
    """Add a run that the worker plans."""
    tx = context.transaction
    values: imports.Columns = {"user_id": context.actor.user_id, "options": imports.encode(options), "undoes": undoes}
    run_id = await imports.add_run(tx, source_id, values)
    await jobs.enqueue(tx, jobs.Task.PLAN_IMPORT, {"run_id": run_id})
    location = f"{context.extension_url}/imports/runs/{run_id}"
    return Outcome(serialize_run(await fetch_run(tx, run_id)), 201, location=location)


async def _select_rows(tx: Transaction, run: Row, values: Mapping[str, Any]) -> list[int] | None:
    """Return the numbers of the rows to apply: the named ones, those with some actions, or None for all."""
    if "rows" in values:
        await import_runs.require_decided(tx, run["id"], values["rows"])
        return sorted(set(values["rows"]))
    if "action" in values:
        return await import_lists.list_numbers(tx, run["id"], values["action"], PENDING)
    return None
