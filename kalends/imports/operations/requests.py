"""API and console requests for sources, runs and rows, with their parameters and JSON."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, LiteralString

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext, Outcome
from kalends.calendar.kinds.kind import JsonObject
from kalends.calendar.rules.record_types import SCHEDULED
from kalends.core import errors, params, times
from kalends.core.errors import InvalidValue
from kalends.core.messages import Message
from kalends.core.params import BOOLEAN, ZONE, Param, Type, param
from kalends.core.sanitize import clean_text
from kalends.imports.operations import import_runs
from kalends.imports.operations.import_runs import read_question
from kalends.imports.operations.sources import read_source_url
from kalends.imports.storage import import_lists, import_tables
from kalends.imports.storage.import_tables import decode, decode_message, encode
from kalends.store import Row, job_queue
from kalends.store.database import Transaction
from kalends.store.sql import Sql

MAX_NAME_LENGTH: Final = 200
MAX_URL_LENGTH: Final = 2000
MAX_COLUMNS: Final = 200
MAX_FILE_BYTES: Final = 10 * 1024 * 1024
KINDS: Final = ("ical", "table")
STATUSES: Final = ("publish", "draft", "pending", "private")
AUTHORITIES: Final = ("source", "local", "new_only")
# A `tec` source is closed once the site has moved; requests cannot close a source.
STATES: Final = ("active", "paused")
ACTIONS: Final = ("new", "changed", "moved", "unchanged", "gone", "rejected", "duplicate", "linked")
ROW_STATES: Final = ("pending", "waiting", "applied", "skipped", "failed")
RUN_STATES: Final = ("planning", "planned", "applying", "applied", "unchanged", "failed", "discarded")


# The default of `limit` is the maximum length shown in /doc.
def read_name(value: str, limit: int = MAX_NAME_LENGTH) -> str:
    return clean_text(value, limit)


def read_url(value: str, limit: int = MAX_URL_LENGTH) -> str:
    """Validate a calendar or table URL, which may be empty."""
    url = value.strip()
    if not url:
        return ""
    if len(url) > limit:
        raise InvalidValue("must have at most {limit} characters.", limit=limit)
    return read_source_url(url)


def _read_columns(value: object) -> dict[str, str]:
    """Parse a mapping from column headers to fields. A column with an empty field is not imported."""
    if not isinstance(value, dict) or len(value) > MAX_COLUMNS:  # pyright: ignore[reportUnknownArgumentType]
        raise InvalidValue("must be an object with at most {limit} columns.", limit=MAX_COLUMNS)
    columns: dict[Any, Any] = value  # pyright: ignore[reportUnknownVariableType]
    for header, field in columns.items():
        if not isinstance(header, str) or not isinstance(field, str) or "\0" in header or "\0" in field:
            raise InvalidValue("must be an object with the field of each column, by the header of the column.")
    return {str(header)[:1000]: str(field)[:100] for header, field in columns.items()}


def read_rows(value: object) -> list[int]:
    numbers = [params.read_integer(entry) for entry in params.read_list(value)]
    if not numbers or any(not 0 < number <= params.MAX_ID for number in numbers) or len(numbers) > MAX_ROWS:
        raise InvalidValue("must be 1 to {limit} numbers of rows.", limit=MAX_ROWS)
    return numbers


MAX_ROWS: Final = 5000
COLUMNS: Final = Type(
    {"type": "object"},
    _read_columns,
    null_value={},
    exact_schema={"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": MAX_COLUMNS},
)
ROW_NUMBERS: Final = Type(
    {"type": "array", "items": {"type": "integer"}},
    read_rows,
    accepts_lists=True,
    exact_schema={
        "type": "array",
        "items": {"type": "integer", "minimum": 1, "maximum": params.MAX_ID},
        "minItems": 1,
        "maxItems": MAX_ROWS,
    },
)
INTERVAL: Final = params.integer(minimum=15, maximum=10080, null_value=None)
CATEGORY: Final = params.integer(minimum=1, null_value=None)
KIND: Final = param("kind", params.one_of(*KINDS), "ical: an iCalendar; table: a CSV file or a spreadsheet")
CHANGES: Final[tuple[Param, ...]] = (
    param("name", params.text(read_name, allow_empty=False), "The name of the source for people"),
    param("url", params.text(read_url), "The URL of the source; empty for uploaded files"),
    param("interval", INTERVAL, "Minutes between two fetches; null: only on request"),
    param("default_status", params.one_of(*STATUSES), "The status for new events that have none in the source"),
    param("default_category", CATEGORY, "The category ID for new events; null: none"),
    param(
        "authority",
        params.one_of(*AUTHORITIES),
        "Which value counts if the source and a person have both changed a field: the source’s, the person’s "
        "(local), or always the stored one, which imports new events only (new_only)",
    ),
    param(
        "timezone",
        ZONE,
        "The time zone for times that have none in the source; if empty, such events are rejected in calendars and "
        "use the site’s time zone in tables",
    ),
    param("columns", COLUMNS, "What the columns of a table mean: the field of each column, by its header"),
    param(
        "trust_rank",
        params.integer(minimum=0, maximum=1000),
        "Of several sources of an event, the one with the lowest rank supplies a field",
    ),
    param(
        "allow_mass_deletion", BOOLEAN, "Remove many events at once if they vanish from the source, without asking"
    ),
    param(
        "organizer_emails",
        BOOLEAN,
        "Import organizers’ email addresses from calendars; like all organizers’ addresses, they are public",
    ),
    param("state", params.one_of(*STATES), "paused: the source is not fetched at its interval"),
)
DEFAULTS: Final = {
    "default_status": "draft",
    "authority": "local",
    "trust_rank": 100,
    "allow_mass_deletion": False,
    "organizer_emails": False,
    "state": "active",
}


def _make_new(row: Param) -> Param:
    if row.name in DEFAULTS:
        return replace(row, default=DEFAULTS[row.name], has_default=True)
    return replace(row, required=row.name == "name")


NEW: Final = (replace(KIND, required=True), *map(_make_new, CHANGES))
SOURCE: Final = param("source", params.integer(minimum=1), "Only runs of this source")
BEFORE: Final = param("before", params.integer(minimum=1), "Only runs before this ID, or a `next_before`")
RUNS_PER_PAGE: Final = param("per_page", params.integer(minimum=1, maximum=100), "Maximum number of runs", default=20)
APPLY: Final = param("apply", BOOLEAN, "Apply the plan without a review, except for rows that wait", default=False)
ACTION: Final = param("action", params.several_of(*ACTIONS), "Only rows with these actions")
STATE: Final = param("state", params.several_of(*ROW_STATES), "Only rows in these states")
CURSOR: Final = param("cursor", params.integer(), "Only rows behind this number, or a `next_cursor`", default=0)
ROWS_PER_PAGE: Final = param(
    "per_page", params.integer(minimum=1, maximum=500), "Maximum number of rows", default=100
)
ROW: Final = param("row", params.integer(minimum=1), "The number of a row that may be a duplicate", required=True)
SAME: Final = param("same", BOOLEAN, "Whether it is the record that the plan names", required=True)
CONFIRM: Final = param("confirm", BOOLEAN, "Apply the plan although it asks a question", default=False)
ROWS: Final = param("rows", ROW_NUMBERS, "Apply only these rows; rows that wait are applied only if they are named")


# Sources, runs and plan rows as JSON ----------------------------------------------------------

_SOURCE_PARAMS: Final[tuple[LiteralString, ...]] = (
    *("kind", "name", "url", "interval", "owner", "default_status", "default_category", "authority", "timezone"),
    *("columns", "trust_rank", "allow_mass_deletion", "organizer_emails", "state"),
)
_OTHER_COLUMNS: Final[Mapping[str, LiteralString]] = {
    "interval": "interval_minutes",
    "owner": "owner_id",
    "default_category": "default_category_id",
}
# The columns of a source by parameter name, in JSON order.
SOURCE_COLUMNS: Final[Mapping[str, LiteralString]] = {name: _OTHER_COLUMNS.get(name, name) for name in _SOURCE_PARAMS}


def serialize_source(row: Row) -> JsonObject:
    file = {"name": row["file_name"], "size": row["file_size"], "uploaded_utc": format_moment(row["uploaded_at"])}
    return {
        "id": row["id"],
        **{name: row[column] for name, column in SOURCE_COLUMNS.items()},
        "columns": decode(row["columns"]),
        "created_utc": format_moment(row["created_at"]),
        "next_run_utc": format_moment(row["next_run_at"]),
        "last_success_utc": format_moment(row["last_success_at"]),
        "failures": row["failures"],
        "last_run": row["run_id"],
        "file": file if row["file_name"] is not None else None,
    }


def serialize_run(row: Row) -> JsonObject:
    done, total = read_progress(row)
    return {
        "id": row["id"],
        "source": row["source_id"],
        "user": row["user_id"],
        "undoes": row["undoes"],
        "state": row["state"],
        "started_utc": format_moment(row["started_at"]),
        "planned_utc": format_moment(row["planned_at"]),
        "finished_utc": format_moment(row["finished_at"]),
        "counts": decode(row["counts"]),
        "progress": {"done": done, "total": total},
        "failure": decode_message(decode(row["failure"])) if row["failure"] is not None else None,
        "warnings": read_messages(row["warnings"]),
        "question": read_question(row),
        "first_revision": row["first_revision"],
        "last_revision": row["last_revision"],
    }


def read_progress(row: Row) -> tuple[int, int]:
    """Return how many rows of a plan have been processed, and how many rows it has."""
    stored = decode(row["progress"])
    return stored.get("done", 0), stored.get("total", 0)


def serialize_row(row: Row) -> JsonObject:
    changes = decode(row["changes"])
    return {
        **{name: row[name] for name in ("number", "action", "kind", "identity", "recurrence_id", "title")},
        "event": serialize_event(row),
        "record": row["record_id"],
        "changes": {name: {key: change.get(key) for key in CHANGE_KEYS} for name, change in changes.items()},
        "reasons": read_messages(row["reasons"]),
        **{name: row[name] for name in ("line", "state", "revision")},
    }


CHANGE_KEYS: Final = ("stored", "before", "now", "decision")


def serialize_event(row: Row) -> JsonObject | None:
    """Return when an imported event or series takes place, or None for a record of another kind."""
    imported = decode(row["imported"]) if row["imported"] is not None else {}
    values = imported.get("values", {})
    if row["kind"] not in ("events", "series") or "start_date" not in values:
        return None
    return {
        "start_date": values["start_date"],
        "end_date": values.get("end_date"),
        "all_day": bool(values.get("all_day")),
        "event_status": values.get("event_status") or SCHEDULED,
        "dates": imported.get("dates") if row["kind"] == "series" else 1,
    }


def read_messages(stored: str) -> list[Message]:
    return [decode_message(entry) for entry in decode(stored)]


def format_moment(moment: datetime | None) -> str | None:
    return times.format_datetime(moment) if moment is not None else None


# Sources ---------------------------------------------------------------------------------------

# Fields that affect how an input is read.
READING = ("url", "columns", "timezone", "organizer_emails")
# Fields that affect the next fetch.
SCHEDULE = ("url", "interval", "state")


async def list_sources(_: None, context: OperationContext) -> Outcome:
    require_importer(context)
    rows = await import_lists.list_sources(context.transaction)
    return Outcome({"sources": [serialize_source(row) for row in rows]})


async def read_source(_: None, context: OperationContext) -> Outcome:
    require_importer(context)
    return Outcome(serialize_source(await fetch_source(context.transaction, context.record_id)))


async def create_source(_: None, context: OperationContext) -> Outcome:
    require_importer(context)
    tx, values = context.transaction, {**DEFAULTS, **context.values}
    await _check(tx, values)
    columns: dict[LiteralString, object] = {
        **_to_columns(values),
        **_schedule(tx, values),
        "owner_id": context.actor.user_id,
    }
    source_id = await import_tables.add_source(tx, columns)
    row = await fetch_source(tx, source_id)
    return Outcome(serialize_source(row), 201, location=f"{context.extension_url}/imports/sources/{source_id}")


async def update_source(_: None, context: OperationContext) -> Outcome:
    """Change a source. If the owner's account no longer exists, the caller becomes the owner."""
    require_importer(context)
    tx, row = context.transaction, await fetch_changeable(context)
    stored = serialize_source(row)
    values = {**stored, **context.values}
    await _check(tx, values)
    columns = _to_columns(context.values)
    if any(name in context.values and context.values[name] != stored[name] for name in SCHEDULE):
        columns |= {**_schedule(tx, values), "failures": 0}
    if any(name in context.values and context.values[name] != stored[name] for name in READING):
        columns |= {"etag": "", "last_modified": "", "input_hash": None}
    if row["owner_id"] is None:
        columns["owner_id"] = context.actor.user_id
    if columns:
        await import_tables.change_source(tx, row["id"], columns)
    return Outcome(serialize_source(await fetch_source(tx, row["id"])))


async def delete_source(_: None, context: OperationContext) -> Outcome:
    """Delete a source and its runs, but keep the events imported from it."""
    require_importer(context)
    row = await fetch_changeable(context)
    await import_runs.require_idle(context.transaction, row["id"])
    await import_tables.remove_source(context.transaction, row["id"])
    return Outcome(serialize_source(row))


def require_importer(context: OperationContext) -> None:
    permissions.require_role(context.actor, permissions.EDITOR)


async def fetch_source(tx: Transaction, source_id: int | None) -> Row:
    row = await import_lists.find_source(tx, source_id or 0)
    if row is None:
        raise errors.import_not_found()
    return row


async def fetch_changeable(context: OperationContext) -> Row:
    """Return the source in the path.

    Raise ApiError for a move-in, because only commands can change it.
    """
    row = await fetch_source(context.transaction, context.record_id)
    if row["kind"] == "tec":
        raise errors.import_by_command()
    return row


async def _check(tx: Transaction, values: Mapping[str, Any]) -> None:
    if values.get("interval") and not values.get("url"):
        raise errors.invalid("interval", "requires a `url`.")
    category_id = values.get("default_category")
    condition = Sql("SELECT 1 FROM categories WHERE site_id = ? AND id = ?", tx.site.id, category_id)
    if category_id is not None and await tx.fetch_value(condition) is None:
        raise errors.unknown_ids("default_category", "categories", str(category_id))


def _to_columns(values: Mapping[str, Any]) -> dict[LiteralString, object]:
    columns: dict[LiteralString, object] = {
        SOURCE_COLUMNS[name]: value for name, value in values.items() if name in SOURCE_COLUMNS
    }
    if "timezone" in columns:
        columns["timezone"] = columns["timezone"] or ""
    if "columns" in columns:
        columns["columns"] = encode(columns["columns"])
    return columns


def _schedule(tx: Transaction, values: Mapping[str, Any]) -> dict[LiteralString, object]:
    """Return `next_run_at`: one interval from now, or None if the source is inactive or has no interval."""
    interval: int = values.get("interval") or 0
    is_due = interval and values.get("url") and values["state"] == "active"
    return {"next_run_at": tx.now + timedelta(minutes=interval) if is_due else None}


# Runs: the worker plans and applies them -------------------------------------------------------


async def list_runs(_: None, context: OperationContext) -> Outcome:
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
    """Enqueue a job that fetches the source or reads its file, and makes a plan."""
    require_importer(context)
    tx, source = context.transaction, await fetch_changeable(context)
    await import_runs.require_idle(tx, source["id"])
    if context.file is not None:
        await import_lists.save_file(tx, source["id"], context.file.name[:255], context.file.content)
    elif not source["url"] and source["file_name"] is None:
        raise errors.missing_params(["file"])
    reads_file = context.file is not None or not source["url"] or context.values.get("input") == "file"
    options = {"apply": context.values.get("apply", False), "input": "file" if reads_file else "url"}
    return await _add_run(context, source["id"], options)


async def apply_run(_: None, context: OperationContext) -> Outcome:
    require_importer(context)
    tx, run = context.transaction, await fetch_run(context.transaction, context.record_id)
    if run["state"] != "planned":
        raise errors.import_state(run["state"])
    await import_runs.require_idle(tx, run["source_id"])
    if context.values.get("confirm"):
        await import_runs.confirm_run(tx, run)
        run = await fetch_run(tx, run["id"])
    elif (question := import_runs.read_question(run)) is not None:
        raise errors.import_unconfirmed(question)
    numbers = await _select_rows(tx, run, context.values)
    options = {**decode(run["options"]), "numbers": numbers}
    progress = encode({"done": 0, "total": await import_tables.count_next_rows(tx, run["id"], numbers)})
    await import_tables.change_run(
        tx, run["id"], {"state": "applying", "options": encode(options), "progress": progress}
    )
    await job_queue.enqueue(tx, job_queue.Task.APPLY_IMPORT, {"run_id": run["id"]})
    return Outcome(serialize_run(await fetch_run(tx, run["id"])))


async def undo_run(_: None, context: OperationContext) -> Outcome:
    """Enqueue a job that plans to undo a run. The plan is a separate run, which people can review and apply."""
    require_importer(context)
    tx, run = context.transaction, await fetch_run(context.transaction, context.record_id)
    if run["first_revision"] is None or run["undone_by"] is not None:
        raise errors.import_state(run["state"])
    if run["first_revision"] <= tx.site.trimmed_revision:
        raise errors.expired(tx.site.trimmed_revision)
    await import_runs.require_idle(tx, run["source_id"])
    return await _add_run(context, run["source_id"], {}, undoes=run["id"])


async def discard_run(_: None, context: OperationContext) -> Outcome:
    """Discard the rest of a plan, or a plan that is not finished yet."""
    require_importer(context)
    tx, run = context.transaction, await fetch_run(context.transaction, context.record_id)
    await import_runs.discard(tx, run)
    return Outcome(serialize_run(await fetch_run(tx, run["id"])))


async def decide_row(_: None, context: OperationContext) -> Outcome:
    require_importer(context)
    tx, run = context.transaction, await fetch_run(context.transaction, context.record_id)
    await import_runs.decide_row(tx, run["id"], context.values["row"], is_same=context.values["same"])
    return Outcome(serialize_run(await fetch_run(tx, run["id"])))


async def fetch_run(tx: Transaction, run_id: int | None) -> Row:
    row = await import_lists.find_run(tx, run_id or 0)
    if row is None:
        raise errors.import_not_found()
    return row


async def _add_run(
    context: OperationContext, source_id: int, options: Mapping[str, Any], undoes: int | None = None
) -> Outcome:
    tx = context.transaction
    values: import_tables.Columns = {"user_id": context.actor.user_id, "options": encode(options), "undoes": undoes}
    run_id = await import_tables.add_run(tx, source_id, values)
    await job_queue.enqueue(tx, job_queue.Task.PLAN_IMPORT, {"run_id": run_id})
    location = f"{context.extension_url}/imports/runs/{run_id}"
    return Outcome(serialize_run(await fetch_run(tx, run_id)), 201, location=location)


async def _select_rows(tx: Transaction, run: Row, values: Mapping[str, Any]) -> list[int] | None:
    """Return the numbers of the rows to apply, selected by number or by action. None means all rows."""
    if "rows" in values:
        await import_runs.require_decided(tx, run["id"], values["rows"])
        return sorted(set(values["rows"]))
    if "action" in values:
        return await import_lists.list_pending_numbers(tx, run["id"], values["action"])
    return None
