"""The operations that all kinds share: list, read, create, update and delete."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from kalends.calendar.access import caching, permissions
from kalends.calendar.access.operation_context import OperationContext, Outcome, PageInfo
from kalends.calendar.kinds.events import EVENTS, build_event
from kalends.calendar.kinds.kind import (
    NO_LINKED_RECORDS,
    Actor,
    Clause,
    Columns,
    Kind,
    LinkedRecord,
    LinkedRecords,
    ListQuery,
    RenderContext,
    has_condition,
)
from kalends.calendar.kinds.organizers import ORGANIZERS
from kalends.calendar.kinds.series_kind import SERIES, build_series
from kalends.calendar.kinds.terms import CATEGORIES
from kalends.calendar.kinds.venues import VENUES
from kalends.calendar.operations.event_links import find_identical, load_linked, resolve_links
from kalends.calendar.operations.writes import (
    add_record,
    change_record,
    publish_with_event,
    remove_record,
    write_changes,
)
from kalends.calendar.rules.record_types import Event, Organizer, Series, Term, Venue
from kalends.calendar.storage import history_tables
from kalends.core import errors
from kalends.core.slugs import normalize_lookup
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sql import Sql, any_of

# Maximum number of records to skip before a page. The database has to read all of them.
MAX_OFFSET = 10_000
# Venues and organizers in these statuses are published together with an event.
DRAFTS: Final = ("draft", "pending", "future")
# Events with nothing but their sort columns.
EVENT_KEYS: Final = replace(EVENTS, reads=replace(EVENTS.reads, columns=Columns()))


@dataclass(frozen=True, slots=True)
class RowPage:
    """The rows of one page, and the number of records in the whole list."""

    query: ListQuery
    clauses: Sequence[Clause]
    rows: list[Row]
    total: int
    next_cursor: str | None

    @property
    def total_pages(self) -> int:
        return -(-self.total // self.query.per_page)


async def list_records(kind: Kind, context: OperationContext) -> Outcome:
    """Return a page of a list in its envelope. Links to other pages keep the request's other parameters."""
    # All callers without an account or password get the same JSON for an event.
    is_anonymous = context.actor.user_id is None and "password" not in context.values
    if kind is EVENTS and context.fragments is not None and is_anonymous:
        page = await find_page(EVENT_KEYS, context)
        entries = await _find_fragments(context, context.fragments, page.rows)
        records: list[Any] = [entry.json for entry in entries]
        shown = dict.fromkeys(tag for entry in entries for tag in entry.tags)
        tags = caching.tags_for_events(page.query, page.clauses, shown)
    else:
        page = await find_page(kind, context)
        render_context = await make_render_context(kind, context, page.rows)
        records = [kind.reads.row_to_json(row, render_context) for row in page.rows]
        tags = caching.tags_for_page(kind, page.query, page.clauses, page.rows)
    query, total, pages = page.query, page.total, page.total_pages
    collection, parameters = f"{context.collection_url(kind)}/", urlencode(context.query_pairs)

    def page_url(page: int) -> str:
        parts = [part for part in (parameters, f"page={page}" if page > 1 else "") if part]
        return f"{collection}?{'&'.join(parts)}" if parts else collection

    body: dict[str, Any] = {kind.name: records, "rest_url": page_url(query.page)}
    next_url = page_url(query.page + 1) if query.page < pages and "cursor" not in query.values else ""
    previous_url = page_url(query.page - 1) if query.page > 1 else ""
    if next_url:
        body["next_rest_url"] = next_url
    if previous_url:
        body["previous_rest_url"] = previous_url
    body.update({"total": total, "total_pages": pages})
    if kind.reads.next_cursor:
        body["next_cursor"] = page.next_cursor
    return Outcome(
        body,
        page=PageInfo(total, pages, next_url, previous_url),
        expires_at=kind.reads.expires_at(query),
        cache_tags=tags,
    )


async def _find_fragments(
    context: OperationContext, fragments: caching.EventFragments, page: Sequence[Row]
) -> list[caching.EventFragment]:
    """Return the encoded JSON of these events. One statement loads all events that are not in memory."""
    ids = [row["id"] for row in page]
    found = await fragments.find(context.render_context, ids)
    if missing := [event_id for event_id in ids if event_id not in found]:
        site_id = context.transaction.site.id
        rows = await context.transaction.fetch_all(
            EVENTS.select(Sql("r.site_id = ? AND r.id =", site_id) + any_of(missing))
        )
        render_context = await make_render_context(EVENTS, context, rows)
        for row in rows:
            found[row["id"]] = fragments.add(render_context, row, EVENTS.reads.row_to_json(row, render_context))
    return [found[event_id] for event_id in ids]


async def read_record(kind: Kind, context: OperationContext) -> Outcome:
    return await _build_outcome(kind, context, await fetch_readable_row(kind, context), in_full=True)


async def create_record(kind: Kind, context: OperationContext) -> Outcome:
    permissions.require_writer(context.actor, kind)
    # A sync script that sends its venues again must not create duplicates.
    if kind.is_shared and (identical_id := await find_identical(kind, context, context.values)) is not None:
        return await read_outcome(kind, context, identical_id)
    links = await resolve_links(kind, context, context.values)
    record_id = await add_record(kind, context, context.values, links.ids)
    outcome = await _publish_and_read(kind, context, record_id, status=201)
    return replace(outcome, ignored_params=links.ignored_params)


async def update_record(kind: Kind, context: OperationContext) -> Outcome:
    row = await fetch_editable_row(kind, context)
    links = await resolve_links(kind, context, context.values, row)
    written = await change_record(kind, context, row, context.values, links.ids)
    outcome = await _publish_and_read(kind, context, row["id"], row=written)
    return replace(outcome, ignored_params=links.ignored_params)


async def _publish_and_read(
    kind: Kind, context: OperationContext, record_id: int, status: int = 200, *, row: Row | None = None
) -> Outcome:
    """Publish a saved event's linked drafts, and return the saved record. `row` is its new row, if known."""
    if not context.returns_record:
        await publish_with_event(context.transaction, context.actor, kind, record_id)
        return Outcome({}, status)
    row = row or await _fetch_written(kind, context, record_id)
    linked = await load_linked(kind, context, [row]) if kind.links else NO_LINKED_RECORDS
    places: list[LinkedRecord[Any]] = [*linked.venues.values(), *linked.organizers.values()]
    # Callers can read every draft that they may publish, so no draft is missing here.
    if any(place.record.status in DRAFTS for place in places):
        await publish_with_event(context.transaction, context.actor, kind, record_id)
        return await read_outcome(kind, context, record_id, status)
    return await _build_outcome(kind, context, row, status, known=linked)


async def delete_record(kind: Kind, context: OperationContext) -> Outcome:
    """Move a post to the trash, or delete a term permanently and return it as it was."""
    row = await fetch_active_row(kind, context)
    if kind.is_post:
        await change_record(kind, context, row, {"status": "trash"})
        return await read_outcome(kind, context, row["id"])
    outcome = await _build_outcome(kind, context, row)
    await remove_term(kind, context, row, row.get("parent"))
    return outcome


# Lists ---------------------------------------------------------------------------------------


async def find_page(kind: Kind, context: OperationContext, *, with_total: bool = True) -> RowPage:
    """Find the rows on one page of a list. Without `with_total`, the total is the number of these rows."""
    if kind.reads.visible is None:
        permissions.require_reader(context.actor, kind)
    tx = context.transaction
    query = build_list_query(kind, context)
    clauses = await build_clauses(kind, context, query)
    if query.offset > MAX_OFFSET and "cursor" not in query.values:
        rows: list[Row] = []
        total = await _total_beyond_offset(tx, kind, query, clauses)
    elif with_total:
        rows = await tx.fetch_all(kind.reads.page_and_total_query(kind, query, clauses))
        total = rows[0]["total"]
        rows = rows if rows[0]["id"] is not None else []
    else:
        rows = await tx.fetch_all(kind.reads.page_query(kind, query, clauses))
        total = len(rows)
    if not rows and query.page > 1 and kind.is_post:
        raise errors.no_such_page(kind.singular)
    if kind.reads.next_cursor is None:
        return RowPage(query, clauses, rows, total, None)
    return RowPage(query, clauses, rows[: query.per_page], total, kind.reads.next_cursor(query, rows, total))


async def build_clauses(kind: Kind, context: OperationContext, query: ListQuery) -> list[Clause]:
    """Build the conditions for the list parameters, except for the window of dates."""
    values = context.values
    by_name: dict[str, Clause] = {}
    for row in kind.filters:
        if row.param.name in values:
            by_name[row.param.name] = await row.clause(values[row.param.name], query)
        elif row.param.default is True:
            by_name[row.param.name] = await row.clause(True, query)
    clauses = list(by_name.values())
    # A filter on a hidden field must not match protected events.
    filtering = {name for name, clause in by_name.items() if has_condition(clause)}
    if kind.reads.password_guarded_filters & filtering:
        clauses.append(permissions.unlocked_condition(context))
    return clauses


async def _total_beyond_offset(tx: Transaction, kind: Kind, query: ListQuery, clauses: list[Clause]) -> int:
    """Return the list's total if the list ends before the requested page; otherwise raise ApiError."""
    total: int = await tx.fetch_value(kind.reads.total_query(kind, query, clauses))
    if total <= query.offset:
        return total
    if kind.reads.next_cursor:
        raise errors.invalid(
            "page",
            "must not skip more than {maximum} records; continue with `cursor` set to the `next_cursor` of a "
            "response.",
            maximum=MAX_OFFSET,
        )
    raise errors.invalid(
        "page", "must not skip more than {maximum} records; narrow the list with filters.", maximum=MAX_OFFSET
    )


def build_list_query(kind: Kind, context: OperationContext) -> ListQuery:
    tx, values, actor = context.transaction, context.values, context.actor
    statuses = values.get("status") if kind.is_post else None
    return ListQuery(
        transaction=tx,
        values=values,
        actor=actor,
        page=values.get("page", 1),
        per_page=min(values.get("per_page", tx.site.per_page), kind.reads.max_per_page),
        visible=_listed_condition(kind, actor, statuses),
        statuses=permissions.complete_statuses(actor, statuses),
        editable=permissions.editable_condition(actor),
        readable=permissions.readable_condition(actor),
    )


def _listed_condition(kind: Kind, actor: Actor, statuses: Sequence[str] | None) -> Sql:
    """Return the condition for listed records. Event lists exclude hidden events elsewhere."""
    if not kind.is_post:
        return _visible_condition(kind, actor)
    listed = permissions.listed_condition(actor, statuses)
    return listed if kind.is_event else listed + Sql("AND") + permissions.unhidden_condition(actor, kind)


def _visible_condition(kind: Kind, actor: Actor) -> Sql:
    """Return the condition for records of a kind without statuses."""
    return Sql("true") if kind.reads.visible is None else kind.reads.visible(actor)


async def make_render_context(
    kind: Kind,
    context: OperationContext,
    rows: list[Row],
    *,
    is_readable: bool = False,
    known: LinkedRecords = NO_LINKED_RECORDS,
) -> RenderContext:
    """Load the rows' linked records that are not in `known`. With `is_readable`, no row is locked."""
    linked = await load_linked(kind, context, rows, known) if kind.links and rows else known
    locked_ids = frozenset[int]() if is_readable else permissions.locked_ids(context, rows)
    return context.make_render_context(linked, locked_ids)


# Single records ------------------------------------------------------------------------------


async def fetch_readable_row(kind: Kind, context: OperationContext) -> Row:
    """Fetch the row for the path. Raise if the record does not exist or the caller may not read it in full."""
    row = await fetch_visible_row(kind, context)
    if permissions.is_locked(context, row):
        raise errors.password_needed()
    return row


async def fetch_visible_row(kind: Kind, context: OperationContext) -> Row:
    """Fetch the row for the path; a protected event may be locked. Raise if the caller may not see the record."""
    actor = context.actor
    if kind.reads.visible is None:
        permissions.require_reader(actor, kind)
    visible = permissions.readable_condition(actor) if kind.is_post else _visible_condition(kind, actor)
    row = await context.transaction.fetch_one(kind.select(_record_condition(context) + Sql("AND") + visible))
    if row is None:
        raise await _not_found_error(kind, context)
    if kind.is_event and row["status"] == "trash":
        raise errors.no_longer_available(kind.singular)
    return row


def _record_condition(context: OperationContext) -> Sql:
    site_id = context.transaction.site.id
    if context.slug is not None:
        return Sql("r.site_id = ? AND r.slug = ? AND r.slug <> ''", site_id, normalize_lookup(context.slug))
    return Sql("r.site_id = ? AND r.id = ?", site_id, context.record_id)


async def _not_found_error(kind: Kind, context: OperationContext) -> Exception:
    """Return the error for a failed read: not found, no longer available, or not accessible."""
    row = await context.transaction.fetch_one(kind.select(_record_condition(context)))
    if row is None:
        return errors.not_found(kind.singular)
    if kind.is_event and row["status"] == "trash":
        return errors.no_longer_available(kind.singular)
    return errors.not_accessible(kind.singular)


async def _build_outcome(
    kind: Kind,
    context: OperationContext,
    row: Row,
    status: int = 200,
    *,
    in_full: bool = False,
    known: LinkedRecords = NO_LINKED_RECORDS,
) -> Outcome:
    """Return the record as the body. `in_full` adds structured data; `known` holds linked records already loaded."""
    render_context = await make_render_context(kind, context, [row], is_readable=True, known=known)
    record = kind.reads.from_row(row, render_context)
    body = kind.reads.to_json(record, render_context)
    if in_full and kind.reads.to_json_ld:
        body["json_ld"] = kind.reads.to_json_ld(record, render_context)
    location = f"{context.collection_url(kind)}/{row['id']}" if status == 201 else ""
    tags = caching.tags_for_record(kind, row)
    expires_at = context.transaction.now if kind.reads.depends_on_now else None
    return Outcome(body, status, revision=row["revision"], location=location, cache_tags=tags, expires_at=expires_at)


async def read_outcome(kind: Kind, context: OperationContext, record_id: int, status: int = 200) -> Outcome:
    """Return a record after a write, or an empty body if the caller does not need it."""
    if not context.returns_record:
        return Outcome({}, status)
    return await _build_outcome(kind, context, await _fetch_written(kind, context, record_id), status)


async def _fetch_written(kind: Kind, context: OperationContext, record_id: int) -> Row:
    row = await kind.fetch(context.transaction, record_id)
    if row is None:
        raise AssertionError(f"{kind.singular} {record_id} vanished inside its own transaction")
    return row


async def fetch_editable_row(kind: Kind, context: OperationContext) -> Row:
    """Fetch the row for the path. Raise ApiError if the caller may not edit the record or If-Match fails."""
    permissions.require_writer(context.actor, kind)
    row = await context.transaction.fetch_one(kind.select(_record_condition(context)))
    if row is None:
        raise errors.not_found(kind.singular)
    permissions.require_edit(context.actor, kind, row)
    if context.if_match is not None:
        await require_unedited(context.transaction, kind, row, context.if_match)
    return row


async def fetch_active_row(kind: Kind, context: OperationContext) -> Row:
    """Fetch a row like `fetch_editable_row`, but also raise if the record is in the trash."""
    row = await fetch_editable_row(kind, context)
    if kind.is_post and row["status"] == "trash":
        raise errors.in_trash(kind.singular)
    return row


async def require_unedited(tx: Transaction, kind: Kind, row: Row, revisions: Collection[int]) -> None:
    """Raise ApiError unless the log shows only derived changes since the latest of these revisions."""
    if row["revision"] in revisions:
        return
    since = max((number for number in revisions if number < row["revision"]), default=0)
    is_logged = tx.site.trimmed_revision <= since
    if not since or not is_logged or not await history_tables.is_only_derived(tx, kind.name, row["id"], since):
        raise errors.precondition_failed()


async def remove_term(kind: Kind, context: OperationContext, row: Row, new_parent: int | None) -> None:
    """Delete a term, and move a category's children to another parent."""
    tx = context.transaction
    if kind.is_nested:
        children = await tx.fetch_all(
            kind.select(Sql("r.site_id = ? AND r.parent = ? ORDER BY r.id", tx.site.id, row["id"]))
        )
        for child in children:
            await write_changes(kind, tx, child, {"parent": new_parent})
    await remove_record(kind, tx, row)


# Typed records for pages and feeds, with the same visibility as in the API --------------------


@dataclass(frozen=True, slots=True)
class RecordRead[R]:
    record: R
    cache_tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RecordList[R]:
    records: tuple[R, ...]
    page: PageInfo
    cache_tags: tuple[str, ...]
    query: ListQuery
    clauses: Sequence[Clause]


async def read_event(context: OperationContext) -> RecordRead[Event]:
    return await _read(EVENTS, context)


async def read_locked_event(context: OperationContext) -> Event:
    """Read the public part of a protected event: its title and time."""
    row = await fetch_visible_row(EVENTS, context)
    return build_event(row, await make_render_context(EVENTS, context, [row]))


async def read_series(context: OperationContext) -> RecordRead[Series]:
    return await _read(SERIES, context)


async def read_locked_series(context: OperationContext) -> Series:
    """Read the public part of a protected series: its title and the time of its first date."""
    row = await fetch_visible_row(SERIES, context)
    return build_series(row, await make_render_context(SERIES, context, [row]))


async def read_venue(context: OperationContext) -> RecordRead[Venue]:
    return await _read(VENUES, context)


async def read_organizer(context: OperationContext) -> RecordRead[Organizer]:
    return await _read(ORGANIZERS, context)


async def read_term(kind: Kind, context: OperationContext) -> RecordRead[Term]:
    return await _read(kind, context)


async def list_events(
    context: OperationContext, *, kind: Kind = EVENTS, with_total: bool = True
) -> RecordList[Event]:
    """List events. `kind` may be a variant of EVENTS with other filters."""
    return await _list(kind, context, with_total=with_total)


async def list_terms(kind: Kind, context: OperationContext) -> RecordList[Term]:
    return await _list(kind, context)


async def build_events(context: OperationContext, rows: Sequence[Row]) -> list[Event]:
    render_context = await make_render_context(EVENTS, context, list(rows))
    return [build_event(row, render_context) for row in rows]


async def _read(kind: Kind, context: OperationContext) -> RecordRead[Any]:
    row = await fetch_readable_row(kind, context)
    render_context = await make_render_context(kind, context, [row], is_readable=True)
    tags = caching.tags_for_record(kind, row)
    return RecordRead(kind.reads.from_row(row, render_context), tags)


async def _list(kind: Kind, context: OperationContext, *, with_total: bool = True) -> RecordList[Any]:
    found = await find_page(kind, context, with_total=with_total)
    render_context = await make_render_context(kind, context, found.rows)
    return RecordList(
        tuple(kind.reads.from_row(row, render_context) for row in found.rows),
        PageInfo(found.total, found.total_pages),
        caching.tags_for_shown(kind, found.query.values, found.rows),
        found.query,
        found.clauses,
    )


# Console tables ------------------------------------------------------------------------------

ORDERS: Final[Mapping[str, Sql]] = {
    "modified": Sql("r.modified_utc DESC, r.id DESC"),
    "name": Sql("lower(r.title), r.id"),
}
MAX_CATEGORIES: Final = 2000


def sort_by(kind: Kind, order: str) -> Kind:
    return replace(kind, reads=replace(kind.reads, order=lambda _: ORDERS[order]))


@dataclass(frozen=True, slots=True)
class TreeEntry:
    row: Row
    depth: int  # 0 at the top level


async def list_tree(tx: Transaction) -> list[TreeEntry]:
    """Return the categories sorted by name, each followed by its children."""
    order = Sql("r.site_id = ? ORDER BY r.name_folded, r.id LIMIT ?", tx.site.id, MAX_CATEGORIES)
    return order_tree(await tx.fetch_all(CATEGORIES.select(order)))


def order_tree(rows: Sequence[Row]) -> list[TreeEntry]:
    """Sort rows into a tree. A category whose parent is not among the rows appears at the top level."""
    ids = {row["id"] for row in rows}
    children: dict[int | None, list[Row]] = {}
    for row in rows:
        children.setdefault(row["parent"] if row["parent"] in ids else None, []).append(row)

    def walk(parent: int | None, depth: int) -> Iterator[TreeEntry]:
        for row in children.get(parent, ()):
            yield TreeEntry(row, depth)
            yield from walk(row["id"], depth + 1)

    return list(walk(None, 0))
