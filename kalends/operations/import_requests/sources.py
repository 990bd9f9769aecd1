"""Sources of imports: list, read, create, change and delete."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, LiteralString

from kalends.core import errors
from kalends.operations import permissions
from kalends.operations.context import OperationContext, Outcome
from kalends.operations.import_requests.fields import DEFAULTS
from kalends.operations.import_requests.serialize import serialize_source
from kalends.store import Row, import_lists, imports
from kalends.store.database import Transaction
from kalends.store.sql import Sql

# The columns whose names differ from those of their parameters.
COLUMN_NAMES: Mapping[str, LiteralString] = {
    "kind": "kind",
    "name": "name",
    "url": "url",
    "interval": "interval_minutes",
    "default_status": "default_status",
    "default_category": "default_category_id",
    "authority": "authority",
    "timezone": "timezone",
    "columns": "columns",
    "trust_rank": "trust_rank",
    "allow_mass_deletion": "allow_mass_deletion",
    "organizer_emails": "organizer_emails",
    "state": "state",
}
# The fields that the result of reading the same input depends on.
READING = ("url", "columns", "timezone", "organizer_emails")
# The fields that the next fetch depends on.
SCHEDULE = ("url", "interval", "state")


async def list_sources(_: None, context: OperationContext) -> Outcome:
    """List all sources by name."""
    require_importer(context)
    rows = await import_lists.list_sources(context.transaction)
    return Outcome({"sources": [serialize_source(row) for row in rows]})


async def read_source(_: None, context: OperationContext) -> Outcome:
    require_importer(context)
    return Outcome(serialize_source(await fetch_source(context.transaction, context.record_id)))


async def create_source(_: None, context: OperationContext) -> Outcome:
    """Add a source that belongs to the caller."""
    require_importer(context)
    tx, values = context.transaction, {**DEFAULTS, **context.values}
    await _check(tx, values)
    columns: dict[LiteralString, object] = {
        **_to_columns(values),
        **_schedule(tx, values),
        "owner_id": context.actor.user_id,
    }
    source_id = await imports.add_source(tx, columns)
    row = await fetch_source(tx, source_id)
    return Outcome(serialize_source(row), 201, location=f"{context.extension_url}/imports/sources/{source_id}")


async def update_source(_: None, context: OperationContext) -> Outcome:
    """Change a source. One whose owner was deleted gets the caller as its owner."""
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
        await imports.change_source(tx, row["id"], columns)
    return Outcome(serialize_source(await fetch_source(tx, row["id"])))


async def delete_source(_: None, context: OperationContext) -> Outcome:
    """Delete a source with its runs. Its events stay."""
    require_importer(context)
    row = await fetch_changeable(context)
    if await import_lists.find_busy_run(context.transaction, row["id"]) is not None:
        raise errors.import_busy()
    await imports.remove_source(context.transaction, row["id"])
    return Outcome(serialize_source(row))


def require_importer(context: OperationContext) -> None:
    permissions.require_role(context.actor, permissions.EDITOR)


async def fetch_source(tx: Transaction, source_id: int | None) -> Row:
    row = await import_lists.find_source(tx, source_id or 0)
    if row is None:
        raise errors.import_not_found()
    return row


async def fetch_changeable(context: OperationContext) -> Row:
    """Return the source of the path, unless it belongs to a site that has moved in, which only commands change."""
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
        COLUMN_NAMES[name]: value for name, value in values.items() if name in COLUMN_NAMES
    }
    if "timezone" in columns:
        columns["timezone"] = columns["timezone"] or ""
    if "columns" in columns:
        columns["columns"] = imports.encode(columns["columns"])
    return columns


def _schedule(tx: Transaction, values: Mapping[str, Any]) -> dict[LiteralString, object]:
    """Return when the source is fetched next: at its interval, if it is active."""
    interval: int = values.get("interval") or 0
    is_due = interval and values.get("url") and values["state"] == "active"
    return {"next_run_at": tx.now + timedelta(minutes=interval) if is_due else None}
