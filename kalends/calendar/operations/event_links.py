"""An event's linked records: resolves IDs, slugs, names and objects to IDs, and loads the JSON of the records."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds import BY_NAME, KINDS
from kalends.calendar.kinds.kind import NO_LINKED_RECORDS, Actor, Kind, Link, LinkedRecord, LinkedRecords
from kalends.calendar.kinds.posts import resolve_publication
from kalends.calendar.kinds.terms import TAGS, serialize_category_in_event, serialize_tag_in_event
from kalends.calendar.operations.writes import add_record, build_write_context
from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.messages import Message
from kalends.core.params import MAX_ID, find_missing, read_integer, read_params
from kalends.core.sanitize import clean_name, fold
from kalends.core.slugs import normalize_lookup
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sql import Sql, any_of, join

# The JSON of terms is different inside events; venues and organizers look the same everywhere.
EMBEDDED_JSON: Final = {"categories": serialize_category_in_event, "tags": serialize_tag_in_event}


@dataclass(frozen=True, slots=True)
class ResolvedLinks:
    """The IDs of linked records by link, and the parameters with ignored entries."""

    ids: dict[Link, list[int]]
    ignored_params: tuple[str, ...]


async def resolve_links(
    kind: Kind, context: OperationContext, arguments: Mapping[str, Any], row: Row | None = None
) -> ResolvedLinks:
    """Return the IDs for each link parameter. Create new records if needed. Without a `row`, the event is new."""
    resolved: dict[Link, list[int]] = {}
    ignored: list[str] = []
    for link in kind.links:
        if link.param in arguments:
            other = BY_NAME[link.kind]
            ids = [
                await _resolve_post(link, other, context, entry, (arguments, row))
                if other.is_post
                else await _resolve_term(link, other, context, entry)
                for entry in arguments[link.param]
            ]
            resolved[link] = list(dict.fromkeys(entry for entry in ids if entry is not None))
            ignored += [link.param] if None in ids else []
    return ResolvedLinks(resolved, tuple(ignored))


async def load_linked(
    kind: Kind, context: OperationContext, rows: list[Row], known: LinkedRecords = NO_LINKED_RECORDS
) -> LinkedRecords:
    """Load the records that these events link to and that the caller may read.

    The result includes the records in `known`, which were already loaded in this transaction.
    """
    loaded: dict[str, dict[int, LinkedRecord[Any]]] = {
        link.kind: dict(getattr(known, link.kind)) for link in kind.links
    }
    ids_by_kind = {
        link.kind: list({entry for row in rows for entry in row[f"{link.column}s"]} - loaded[link.kind].keys())
        for link in kind.links
    }
    render_context = context.render_context
    parts = [
        Sql("SELECT '" + other.name + "' AS kind, x AS row FROM (")
        + other.select(
            Sql("r.site_id = ? AND", context.transaction.site.id)
            + _visibility_condition(other, context, ids_by_kind[other.name])
        )
        + Sql(") x")
        for other in KINDS
        if ids_by_kind.get(other.name)
    ]
    # One statement reads all kinds. Each row is one composite value, because kinds have different columns.
    for kind_name, values in await context.transaction.fetch_all(join(" UNION ALL ", parts)) if parts else ():
        other = BY_NAME[kind_name]
        row: Any = dict(zip(other.reads.columns.names, values, strict=True))
        record = other.reads.from_row(row, render_context)
        to_json = EMBEDDED_JSON.get(kind_name, other.reads.to_json)
        loaded[kind_name][row["id"]] = LinkedRecord(record, partial(to_json, record, render_context))
    return LinkedRecords(**loaded)


def _visibility_condition(kind: Kind, context: OperationContext, ids: list[int]) -> Sql:
    visible = permissions.embeddable_condition(context.actor) if kind.is_post else Sql("true")
    return Sql("r.id =") + any_of(ids) + Sql("AND") + visible


async def _fetch_rows(kind: Kind, context: OperationContext, where: Sql) -> list[Row]:
    return await context.transaction.fetch_all(
        kind.select(Sql("r.site_id = ? AND", context.transaction.site.id) + where)
    )


async def _resolve_post(
    link: Link,
    kind: Kind,
    context: OperationContext,
    entry: int | dict[str, Any],
    written: tuple[Mapping[str, Any], Row | None],
) -> int:
    """Return the ID of a venue or organizer. `written` holds the arguments and the row of the event to write."""
    arguments = await read_linked(link, kind, context, entry)
    if isinstance(arguments, int):
        return arguments
    permissions.require_writer(context.actor, kind)
    event = build_write_context(context, *written, record_id=0)
    if "status" in arguments or resolve_publication(event)[0] == "publish":
        return await find_identical(kind, context, arguments) or await add_record(kind, context, arguments)
    # If the event is not public, a new venue or organizer stays a draft until the event is published. The author of
    # the event owns the draft, so the same person can edit both.
    author = event.arguments.get("author", event.row["author_id"] if event.row else event.user_id)
    identical_id = await find_identical(kind, context, arguments, draft_of=author)
    return identical_id or await add_record(kind, context, {"author": author, **arguments, "status": "draft"})


async def read_linked(
    link: Link, kind: Kind, context: OperationContext, entry: int | dict[str, Any]
) -> int | dict[str, Any]:
    """Return the ID of a venue or organizer that the caller may see, or the parsed parameters of a new one."""
    if isinstance(entry, dict) and "id" in entry:
        entry = _parse_entry_id(link, entry["id"])
    if isinstance(entry, int):
        visible = permissions.embeddable_condition(context.actor)
        if not await _fetch_rows(kind, context, Sql("r.id = ? AND", entry) + visible):
            raise errors.unknown_ids(link.param, kind.name, str(entry))
        return entry
    if kind.title_param in find_missing(kind.fields, entry):
        raise errors.missing_name(link.param, kind.title_param)
    try:
        # Sanitizing long texts would block the event loop.
        return await asyncio.to_thread(read_params, kind.fields, entry)
    except ApiError as error:
        raise errors.invalid_params({link.param: errors.for_param(link.param, error.message)}) from error


def _parse_entry_id(link: Link, value: object) -> int:
    try:
        number = read_integer(value)
    except errors.InvalidValue:
        number = 0
    if not 0 < number <= MAX_ID:
        raise errors.invalid(link.param, "`id` must be a positive integer.")
    return number


async def find_identical(
    kind: Kind, context: OperationContext, arguments: Mapping[str, Any], *, draft_of: int | None = None
) -> int | None:
    """Find a published record, or a draft by the given author, with exactly these values, in order to reuse it."""
    compared = {name: value for name, value in arguments.items() if name in kind.writes.passthrough_columns}
    others = set(arguments) - set(compared) - {kind.title_param, "status"}
    if others or arguments.get("status", "publish") != "publish":
        return None
    title = Sql("r.title = ? AND length(r.title) < 500", arguments[kind.title_param])
    status = Sql("AND (r.status = 'publish' OR r.status = 'draft' AND r.author_id = ?)", draft_of or 0)
    rows = await _fetch_rows(kind, context, title + status + Sql("ORDER BY r.status = 'draft', r.id LIMIT 5"))
    identical = (row["id"] for row in rows if all(row[name] == value for name, value in compared.items()))
    return next(identical, None)


async def _resolve_term(link: Link, kind: Kind, context: OperationContext, entry: int | str) -> int | None:
    """Find a term by ID, slug or name; create it if the name is unknown.

    If the caller may not create terms, raise for a category, but return None for a tag: the tag is then ignored.
    """
    term_id, name = await find_term(link, kind, context, entry)
    if term_id is not None:
        return term_id
    if permissions.may_name_new_terms(context.actor):
        return await add_record(kind, context, {"name": name})
    if kind is TAGS:
        return None  # Saving the event matters more than the tag, and a draft must not create public terms.
    requirement = permissions.naming_message()
    message = Message("{name} does not exist yet, and creating it {requirement}", name=name, requirement=requirement)
    raise permissions.permission_error(context.actor, message, data={"params": {link.param: name}})


async def find_term(
    link: Link, kind: Kind, context: OperationContext, entry: int | str
) -> tuple[int, str] | tuple[None, str]:
    """Return the ID of a term, given by ID, slug or name; None and the cleaned name if the name is unknown."""
    if isinstance(entry, int):
        if not await _fetch_rows(kind, context, Sql("r.id = ?", entry)):
            raise errors.unknown_ids(link.param, kind.name, str(entry))
        return entry, ""
    try:
        name = clean_name(entry)
    except errors.InvalidValue as error:
        raise errors.invalid_params({link.param: errors.for_param(link.param, error.message)}) from error
    if not name:
        raise errors.invalid(link.param, "must not contain empty names.")
    rows = await _fetch_rows(
        kind,
        context,
        Sql(
            "(r.slug = ? OR r.name_folded = ?) ORDER BY r.slug <> ?, r.id LIMIT 1",
            *(normalize_lookup(entry), fold(name), normalize_lookup(entry)),
        ),
    )
    return (rows[0]["id"], name) if rows else (None, name)


# For pages: the names of records that parameters refer to by ID ------------------------------

Names = dict[str, dict[int, str]]  # by parameter and ID


async def find_names(tx: Transaction, actor: Actor, kind: Kind, versions: Iterable[Mapping[str, Any]]) -> Names:
    """Return the names of the records that these versions refer to and that the user may read."""
    values = list(versions)
    names: Names = {}
    for link in kind.links:
        if ids := _collect_ids(values, link.param):
            rows = await tx.fetch_all(_select_names(BY_NAME[link.kind], actor, tx.site.id, ids))
            names[link.param] = {row["id"]: row["name"] for row in rows}
    if ids := _collect_ids(values, "author"):
        users = Sql("SELECT id, coalesce(nullif(display_name, ''), login) AS name FROM users")
        rows = await tx.fetch_all(users + Sql("WHERE site_id = ? AND id = ANY(?)", tx.site.id, ids))
        names["author"] = {row["id"]: row["name"] for row in rows}
    return names


def _select_names(kind: Kind, actor: Actor, site_id: int, ids: list[int]) -> Sql:
    condition = Sql("WHERE r.site_id = ? AND r.id = ANY(?)", site_id, ids)
    if not kind.is_post:
        return Sql("SELECT r.id, r.name FROM " + kind.name + " r") + condition
    visible = Sql("AND") + permissions.readable_condition(actor)
    return Sql("SELECT r.id, r.title AS name FROM " + kind.name + " r") + condition + visible


def _collect_ids(versions: Iterable[Mapping[str, Any]], param: str) -> list[int]:
    found: set[int] = set()
    for version in versions:
        value = version.get(param)
        entries: list[Any] = value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]
        found.update(entry for entry in entries if isinstance(entry, int) and not isinstance(entry, bool))
    return sorted(found)
