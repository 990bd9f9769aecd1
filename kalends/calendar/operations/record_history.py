"""A record's history, its earlier versions and the trash, for users who may edit the record."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext, Outcome
from kalends.calendar.kinds import BY_NAME, KINDS
from kalends.calendar.kinds.kind import Actor, Kind, Link, Values
from kalends.calendar.kinds.posts import strip_trashed_suffix
from kalends.calendar.operations.record_verbs import fetch_editable_row, read_outcome
from kalends.calendar.operations.writes import DERIVED_COLUMNS, build_write_context, publish_with_event, write_changes
from kalends.calendar.storage import history_tables, record_tables
from kalends.core import errors, times
from kalends.core.errors import InvalidValue
from kalends.core.params import MAX_ID
from kalends.core.times import DateTimeInput
from kalends.store import Row
from kalends.store.change_log import decode_columns, encode_columns
from kalends.store.database import Transaction
from kalends.store.sql import Sql

# Columns whose parameters have different names.
PARAM_NAMES = {
    "author_id": "author",
    "published_at": "date_utc",
    "image_id": "image",
    "start_local": "start_date",
    "end_local": "end_date",
    "venue_ids": "venue",
    "organizer_ids": "organizer",
    "category_ids": "categories",
    "tag_ids": "tags",
    "password_hash": "new_password",
}
# Columns without a parameter: trash status, folds of repeated hours, generated values, the position in a series.
INTERNAL_COLUMNS = {
    *("trashed_status", "trashed_at", "start_fold", "end_fold", "uid", "feed_guid", "modified_utc"),
    *("series_id", "slot", "own_fields"),
}
# A restore recomputes these columns from the restored status and slug.
RECOMPUTED_COLUMNS = {"status", "slug", "trashed_status", "trashed_at"}
MAX_TRASHED: Final = 200  # per kind; older records appear once these are restored or deleted


async def read_history(kind: Kind, context: OperationContext) -> Outcome:
    row = await fetch_editable_row(kind, context)
    before: int = context.values.get("before", MAX_ID)
    limit: int = context.values.get("per_page", 100)
    changes = await history_tables.list_record_changes(
        context.transaction, kind.name, row["id"], before=before, limit=limit + 1
    )
    page = changes[:limit]
    next_before = page[-1]["revision"] if len(changes) > limit else None
    return Outcome({"history": [serialize_change(kind, change) for change in page], "next_before": next_before})


async def list_history(tx: Transaction, kind_name: str, record_id: int) -> list[dict[str, Any]]:
    """Return the changes to a post, newest first. The kind can be singular or plural."""
    posts = [kind for kind in KINDS if kind.is_post]
    kind = next((kind for kind in posts if kind_name.lower() in (kind.singular, kind.name)), None)
    if kind is None:
        allowed = ", ".join(kind.singular for kind in posts)
        raise InvalidValue(f"KIND must be one of {allowed}.")
    rows = await history_tables.list_record_changes(tx, kind.name, record_id, limit=1000)
    if not rows:
        raise InvalidValue(f"There is no {kind.singular} {record_id}, or its history has expired.")
    return [serialize_change(kind, row) for row in rows]


def serialize_change(kind: Kind, change: Row) -> dict[str, Any]:
    before, after = (to_public(kind, decode_columns(change[side])) for side in ("before", "after"))
    return {
        "revision": change["revision"],
        "action": change["action"],
        "date_utc": times.format_datetime(change["changed_at"]),
        "user": {"id": change["user_id"], "login": change["login"]} if change["user_id"] else None,
        "changes": {
            name: {"before": before.get(name), "after": after.get(name)} for name in dict.fromkeys([*before, *after])
        },
    }


async def restore_record(kind: Kind, context: OperationContext) -> Outcome:
    """Restore a record from the trash, or to an earlier revision."""
    row = await fetch_editable_row(kind, context)
    revision: int | None = context.values.get("revision")
    if revision is None:
        if row["status"] != "trash":
            raise errors.missing_params(["revision"])
        columns: dict[str, Any] = {"status": row["trashed_status"] or "draft"}
    else:
        columns = {}
        for change in await list_changes_since(context.transaction, kind, row["id"], revision):
            columns.update(decode_columns(change["before"]))
    await write_back(kind, context, row, columns)
    await publish_with_event(context.transaction, context.actor, kind, row["id"])
    return await read_outcome(kind, context, row["id"])


async def list_changes_since(tx: Transaction, kind: Kind, record_id: int, revision: int) -> list[Row]:
    """Return the changes to undo, newest first. Raise if the log does not reach back to the revision."""
    if revision < tx.site.trimmed_revision:
        raise errors.expired(tx.site.trimmed_revision)
    if revision > _latest_revision(tx):
        raise errors.invalid("revision", "is newer than the latest revision.")
    changes = await list_edits(tx, kind, record_id, revision)
    if any(change["action"] == "create" for change in changes):
        raise errors.invalid("revision", "is older than the record.")
    return changes


async def list_edits(tx: Transaction, kind: Kind, record_id: int, after: int) -> list[Any]:
    """Return a record's edits since a revision, newest first, with those that this transaction has not logged yet."""
    names = {"user_id": tx.changes.user_id if tx.has_lock else None, "display_name": "", "login": ""}
    unlogged = [
        {"revision": change.revision, "action": change.action, "before": change.before, **names}
        for change in reversed(tx.changes.entries if tx.has_lock else ())
        if (change.kind, change.record_id, change.is_derived) == (kind.name, record_id, False)
        and change.revision > after
    ]
    return [*unlogged, *await history_tables.list_record_changes(tx, kind.name, record_id, after=after)]


def _latest_revision(tx: Transaction) -> int:
    return tx.changes.revision if tx.has_lock else tx.site.revision


async def write_back(kind: Kind, context: OperationContext, row: Row, columns: dict[str, Any]) -> None:
    """Write columns as parameters, to apply the usual rules. Write passthrough columns unchanged."""
    links = {
        link: await _filter_existing(context, link, columns) for link in kind.links if f"{link.column}s" in columns
    }
    for link in links:
        del columns[f"{link.column}s"]
    if columns.get("image_id") and not await record_tables.find_existing_ids(
        context.transaction, "media", [columns["image_id"]]
    ):
        columns["image_id"] = None
    if "slug" in columns:
        columns["slug"] = strip_trashed_suffix(columns["slug"])
    arguments = to_params(kind, columns, row)
    stored = await kind.writes.to_columns(build_write_context(context, arguments, row, row["id"]))
    values: Values = {
        name: value
        for name, value in stored.items()
        if name in columns or name in DERIVED_COLUMNS | RECOMPUTED_COLUMNS
    }
    values.update(
        {name: columns[name] for name in values if name in columns and name in kind.writes.passthrough_columns}
    )
    if columns.get("slug") == "" and values.get("status", row["status"]) in ("draft", "pending", "trash"):
        # The earlier version had no slug. An empty parameter would keep the current slug.
        values["slug"] = ""
    await write_changes(kind, context.transaction, row, values, links)


async def _filter_existing(context: OperationContext, link: Link, columns: dict[str, Any]) -> list[int]:
    ids: list[int] = columns[f"{link.column}s"]
    known = await record_tables.find_existing_ids(context.transaction, BY_NAME[link.kind].name, ids)
    return [entry for entry in ids if entry in known]


async def list_trash(tx: Transaction, actor: Actor) -> list[tuple[Kind, Row]]:
    """Return the trashed records that the user may edit, latest first."""
    found: list[tuple[Kind, Row]] = []
    for kind in KINDS:
        if kind.is_post:
            columns = Sql("SELECT r.id, r.title, r.trashed_at, r.trashed_status FROM " + kind.name + " r")
            rows = await tx.fetch_all(
                columns
                + Sql("WHERE r.site_id = ? AND r.status = 'trash' AND", tx.site.id)
                + permissions.editable_condition(actor)
                + Sql("ORDER BY r.trashed_at DESC, r.id LIMIT ?", MAX_TRASHED)
            )
            found += [(kind, row) for row in rows]
    return sorted(found, key=lambda entry: entry[1]["trashed_at"], reverse=True)


# Two versions of a record for a merge: when a user opened it, and now -------------------------------

# The fold column for each local time. The fold is 1 for the second occurrence of a repeated time.
FOLDS: Final = {"start_date": "start_fold", "end_date": "end_fold"}


@dataclass(frozen=True, slots=True)
class Versions:
    """A record's parameters at a revision (None if it is no longer logged) and now, in history format."""

    base: dict[str, Any] | None
    current: dict[str, Any]
    revision: int
    users: tuple[str, ...]  # users who changed the record in between


async def read_versions(kind: Kind, context: OperationContext, base_revision: int) -> Versions:
    """Read both versions. Raise ApiError if the caller may not edit the record."""
    row = await fetch_editable_row(kind, context)
    tx = context.transaction
    changes = await list_edits(tx, kind, row["id"], base_revision)
    columns = decode_columns(encode_columns(dict(row)))
    base = dict(columns)
    for change in changes:  # newest first
        base.update(decode_columns(change["before"]))
    is_known = tx.site.trimmed_revision <= base_revision <= _latest_revision(tx)
    users = tuple(dict.fromkeys(name for change in changes if (name := change["display_name"] or change["login"])))
    return Versions(_read(kind, base) if is_known else None, _read(kind, columns), row["revision"], users)


def _read(kind: Kind, columns: dict[str, Any]) -> dict[str, Any]:
    names = {param.name for param in kind.fields}
    values = {name: value for name, value in to_public(kind, columns).items() if name in names}
    if "slug" in values:
        values["slug"] = strip_trashed_suffix(values["slug"])
    for name, fold in FOLDS.items():
        if columns.get(fold):  # The offset identifies the second occurrence of a repeated local time.
            zone = columns["timezone"]
            values[name] += times.format_offset_at(times.utc_of(datetime.fromisoformat(values[name]), zone, 1), zone)
    return values


# From stored columns to API fields and parameters --------------------------------------------


def to_public(kind: Kind, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns by parameter, in history format. Replace a password hash with a boolean."""
    values: dict[str, Any] = {}
    for name in sorted(columns, key=_history_order):
        value = columns[name]
        if name in INTERNAL_COLUMNS:
            continue
        if name == "password_hash":
            values["new_password"] = value is not None
        elif name in ("start_local", "end_local", "published_at"):
            values[param_name(kind, name)] = times.format_datetime(_parse_time(value)) if value else None
        else:
            values[param_name(kind, name)] = value
    return values


def to_params(kind: Kind, columns: Mapping[str, Any], row: Row) -> dict[str, Any]:
    """Return the columns as parsed parameters, to restore them under the same rules as any other write."""
    arguments: dict[str, Any] = {}
    zone = columns.get("timezone", row.get("timezone", "UTC"))
    for name, fold_name in (("start_local", "start_fold"), ("end_local", "end_fold")):
        # The fold of a repeated hour is part of a date, even if the wall time has not changed.
        if {name, fold_name, "timezone", "all_day"} & set(columns):
            wall = _parse_time(columns[name]) if name in columns else row[name]
            arguments[PARAM_NAMES[name]] = _build_moment(wall, columns.get(fold_name, row[fold_name]), zone)
    for name, value in columns.items():
        if name in INTERNAL_COLUMNS or name in ("start_local", "end_local"):
            continue
        if name == "published_at":
            arguments["date_utc"] = DateTimeInput(_parse_time(value).replace(tzinfo=None), timedelta(0), False)
        elif name == "password_hash":
            arguments[name] = bytes.fromhex(value) if value is not None else None
        else:
            arguments[param_name(kind, name)] = value
    return arguments


def param_name(kind: Kind, column: str) -> str:
    return kind.title_param if column == "title" else PARAM_NAMES.get(column, column)


def _history_order(column: str) -> tuple[int, str]:
    """Sort fields by length and name, as jsonb sorts its keys.

    Sort two renamed columns by their former names, still used as parameter names, to keep the order in responses.
    """
    name = PARAM_NAMES[column] if column in ("author_id", "published_at") else column
    return len(name), name


def _parse_time(value: str) -> datetime:
    parsed = datetime.fromisoformat(value)
    return parsed.astimezone(UTC) if parsed.tzinfo else parsed


def _build_moment(wall: datetime, fold: int, zone: str) -> DateTimeInput:
    """Return the input for a wall time, with the UTC offset if it is the second occurrence of a repeated time."""
    if not fold:
        return DateTimeInput(wall, None, False)
    return DateTimeInput(wall, times.offset_of(times.utc_of(wall, zone, fold), zone), False)
