"""Linked records of an event: resolves IDs, slugs, names and objects to IDs, and loads their JSON."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.html.sanitize import clean_name, fold
from kalends.core.messages import Message
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import MAX_ID, find_missing, read_integer, read_params
from kalends.core.slugs import normalize_lookup
from kalends.kinds import BY_NAME, KINDS
from kalends.kinds.categories import serialize_category_in_event
from kalends.kinds.kind import Kind, Link
from kalends.kinds.linked_records import NO_LINKED_RECORDS, LinkedRecord, LinkedRecords
from kalends.kinds.posts import resolve_publication
from kalends.kinds.tags import TAGS, serialize_tag_in_event
from kalends.operations import permissions
from kalends.operations.context import OperationContext
from kalends.operations.representation_cache import RepresentationCache, build_key, build_scope
from kalends.operations.writes import add_record, build_write_context
from kalends.store import Row
from kalends.store.sql import Sql, any_of, join

# Terms have another form inside of events; venues and organizers are the same everywhere.
EMBEDDED_JSON: Final = {"categories": serialize_category_in_event, "tags": serialize_tag_in_event}


@dataclass(frozen=True, slots=True)
class ResolvedLinks:
    """The IDs of linked records by link, and the names of the parameters with entries that were ignored."""

    ids: dict[Link, list[int]]
    ignored_params: tuple[str, ...]


async def resolve_links(
    kind: Kind, context: OperationContext, arguments: Mapping[str, Any], row: Row | None = None
) -> ResolvedLinks:
    """Return the IDs for each link parameter in the arguments; create new records as needed.

    `row` is the event that a write changes; None means a new one.
    """
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

    Those that this transaction has loaded already (`known`) are part of the result.
    """
    loaded: dict[str, dict[int, LinkedRecord[Any]]] = {
        link.kind: dict(getattr(known, link.kind)) for link in kind.links
    }
    ids_by_kind = {
        link.kind: list({entry for row in rows for entry in row[f"{link.column}s"]} - loaded[link.kind].keys())
        for link in kind.links
    }
    render_context, scope = context.render_context, b""
    if context.representation_cache is not None and any(ids_by_kind.values()):
        scope = build_scope(render_context)
        ids_by_kind = await _from_cache(context, context.representation_cache, scope, ids_by_kind, loaded)
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
    # One statement reads all kinds. Their columns differ, so each row comes as one composite value.
    for kind_name, values in await context.transaction.fetch_all(join(" UNION ALL ", parts)) if parts else ():
        other = BY_NAME[kind_name]
        row: Any = dict(zip(other.reads.columns.names, values, strict=True))
        record = other.reads.from_row(row, render_context)
        to_json = EMBEDDED_JSON.get(kind_name, other.reads.to_json)
        linked = LinkedRecord(record, partial(to_json, record, render_context))
        loaded[kind_name][row["id"]] = linked
        if context.representation_cache is not None:
            linked.key = build_key(scope, kind_name, row["id"], row["revision"], row.get("count", 0))
            context.representation_cache.put(linked, values)
    return LinkedRecords(**loaded)


async def _from_cache(
    context: OperationContext,
    cache: RepresentationCache,
    scope: bytes,
    ids_by_kind: dict[str, list[int]],
    loaded: dict[str, dict[int, LinkedRecord[Any]]],
) -> dict[str, list[int]]:
    """Fill in the cached records, after one query for their revisions; return the IDs of the others."""
    parts = [
        Sql(
            "SELECT '"
            + other.name
            + "' AS kind, r.id, r.revision, "
            + ("0::bigint AS count" if other.is_post else "r.count")
            + " FROM "
            + other.name
            + " r WHERE r.site_id = ? AND",
            context.transaction.site.id,
        )
        + _visibility_condition(other, context, ids_by_kind[other.name])
        for other in KINDS
        if ids_by_kind.get(other.name)
    ]
    missing: dict[str, list[int]] = {}
    for row in await context.transaction.fetch_all(join(" UNION ALL ", parts)):
        linked = cache.get(build_key(scope, row["kind"], row["id"], row["revision"], row["count"]))
        if linked is None:
            missing.setdefault(row["kind"], []).append(row["id"])
        else:
            loaded[row["kind"]][row["id"]] = linked
    return missing


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
    """Return the ID of a venue or an organizer. `written`: the arguments and the row of the event that names it."""
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
        arguments = await asyncio.to_thread(read_params, kind.fields, entry)
    except ApiError as error:
        raise errors.invalid_params({link.param: errors.for_param(link.param, error.message)}) from error
    permissions.require_writer(context.actor, kind)
    event = build_write_context(context, *written, record_id=0)
    if "status" in arguments or resolve_publication(event)[0] == "publish":
        return await find_identical(kind, context, arguments) or await add_record(kind, context, arguments)
    # The address of an event that is not public is published with it. Its author, who may publish it, can edit both.
    author = event.arguments.get("author", event.row["author_id"] if event.row else event.user_id)
    identical_id = await find_identical(kind, context, arguments, draft_of=author)
    return identical_id or await add_record(kind, context, {"author": author, **arguments, "status": "draft"})


def _invalid_id_error(link: Link) -> errors.ApiError:
    message = N_("`id` must be a positive integer.")
    return errors.invalid(link.param, message)


def _parse_entry_id(link: Link, value: object) -> int:
    try:
        number = read_integer(value)
    except errors.InvalidValue as error:
        raise _invalid_id_error(link) from error
    if not 0 < number <= MAX_ID:
        raise _invalid_id_error(link)
    return number


async def find_identical(
    kind: Kind, context: OperationContext, arguments: Mapping[str, Any], *, draft_of: int | None = None
) -> int | None:
    """Find a published record, or a draft of an author, with exactly these values; it is reused and never changed."""
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

    If the caller may not create terms, return None for a tag, which is left out; raise for a category.
    """
    if isinstance(entry, int):
        if not await _fetch_rows(kind, context, Sql("r.id = ?", entry)):
            raise errors.unknown_ids(link.param, kind.name, str(entry))
        return entry
    try:
        name = clean_name(entry)
    except errors.InvalidValue as error:
        raise errors.invalid_params({link.param: errors.for_param(link.param, error.message)}) from error
    if not name:
        message = N_("must not contain empty names.")
        raise errors.invalid(link.param, message)
    rows = await _fetch_rows(
        kind,
        context,
        Sql(
            "(r.slug = ? OR r.name_folded = ?) ORDER BY r.slug <> ?, r.id LIMIT 1",
            normalize_lookup(entry),
            fold(name),
            normalize_lookup(entry),
        ),
    )
    if rows:
        term_id: int = rows[0]["id"]
        return term_id
    if permissions.may_name_new_terms(context.actor):
        return await add_record(kind, context, {"name": name})
    if kind is TAGS:
        return None  # The event is worth more than the tag, but a draft must not create public terms.
    message = N_("{name} does not exist yet, and creating it {requirement}")
    raise permissions.permission_error(
        context.actor,
        Message(message, name=name, requirement=permissions.naming_message()),
        data={"params": {link.param: name}},
    )
