"""The operations that all kinds share: list, read, create, update and delete."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from kalends.core import errors
from kalends.core.slugs import normalize_lookup
from kalends.kinds.kind import Actor, Clause, Kind, ListQuery, RenderContext, has_condition
from kalends.kinds.linked_records import NO_LINKED_RECORDS, LinkedRecords
from kalends.operations import cache_tags, event_passwords, permissions
from kalends.operations.context import OperationContext, Outcome, PageInfo
from kalends.operations.fragments import render_records
from kalends.operations.linked_drafts import publish_with_event
from kalends.operations.links import find_identical, load_linked, resolve_links
from kalends.operations.writes import add_record, change_record, remove_record, write_changes
from kalends.store import Row, history
from kalends.store.database import Transaction
from kalends.store.sql import Sql

# Maximum number of records before a page, because the database has to read all of them.
MAX_OFFSET = 10_000


@dataclass(frozen=True, slots=True)
class RowPage:
    """The rows of one page of a list, and the number of records in the whole list."""

    query: ListQuery
    clauses: Sequence[Clause]
    rows: list[Row]
    total: int
    next_cursor: str | None

    @property
    def total_pages(self) -> int:
        return -(-self.total // self.query.per_page)


async def list_records(kind: Kind, context: OperationContext) -> Outcome:
    return await _build_list_outcome(kind, context, await find_page(kind, context))


async def read_record(kind: Kind, context: OperationContext) -> Outcome:
    return await _build_outcome(kind, context, await fetch_readable_row(kind, context), in_full=True)


async def create_record(kind: Kind, context: OperationContext) -> Outcome:
    permissions.require_writer(context.actor, kind)
    # A sync script that sends its venues again must not double them.
    if kind.is_shared and (identical_id := await find_identical(kind, context, context.values)) is not None:
        return await read_outcome(kind, context, identical_id)
    links = await resolve_links(kind, context, context.values)
    record_id = await add_record(kind, context, context.values, links.ids)
    await publish_with_event(context.transaction, context.actor, kind, record_id)
    outcome = await read_outcome(kind, context, record_id, status=201)
    return replace(outcome, ignored_params=links.ignored_params)


async def update_record(kind: Kind, context: OperationContext) -> Outcome:
    row = await fetch_editable_row(kind, context)
    links = await resolve_links(kind, context, context.values, row)
    await change_record(kind, context, row, context.values, links.ids)
    await publish_with_event(context.transaction, context.actor, kind, row["id"])
    outcome = await read_outcome(kind, context, row["id"])
    return replace(outcome, ignored_params=links.ignored_params)


async def delete_record(kind: Kind, context: OperationContext) -> Outcome:
    """Move a post to the trash, or delete a term permanently and return it as it was."""
    row = await fetch_editable_row(kind, context)
    if kind.is_post:
        if row["status"] == "trash":
            raise errors.in_trash(kind.singular)
        await change_record(kind, context, row, {"status": "trash"})
        return await read_outcome(kind, context, row["id"])
    outcome = await _build_outcome(kind, context, row)
    await remove_term(kind, context, row, row.get("parent"))
    return outcome


# Helpers, in call order -----------------------------------------------------------------------


async def find_page(kind: Kind, context: OperationContext, *, with_total: bool = True) -> RowPage:
    """Find the rows of one page of a list. Without `with_total`, the total is that of the page."""
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
    """Build the conditions for the parameters of a list, except those of its date window."""
    values = context.values
    by_name: dict[str, Clause] = {}
    for row in kind.filters:
        if row.param.name in values:
            by_name[row.param.name] = await row.clause(values[row.param.name], query)
        elif row.param.default is True:
            by_name[row.param.name] = await row.clause(True, query)
    clauses = list(by_name.values())
    # Protected events are not found by what they hide.
    filtering = {name for name, clause in by_name.items() if has_condition(clause)}
    if kind.reads.password_guarded_filters & filtering:
        clauses.append(event_passwords.unlocked_condition(context))
    return clauses


async def _total_beyond_offset(tx: Transaction, kind: Kind, query: ListQuery, clauses: list[Clause]) -> int:
    """Return the total of a list that ends before the requested page. Raise ApiError if the list is longer."""
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
    """Return the condition for the records of a list. Lists of events select hidden ones themselves."""
    if not kind.is_post:
        return _visible_condition(kind, actor)
    listed = permissions.listed_condition(actor, statuses)
    return listed if kind.is_event else listed + Sql("AND") + permissions.unhidden_condition(actor, kind)


def _visible_condition(kind: Kind, actor: Actor) -> Sql:
    """Return the condition for records of a kind without statuses."""
    return Sql("true") if kind.reads.visible is None else kind.reads.visible(actor)


async def _build_list_outcome(kind: Kind, context: OperationContext, page: RowPage) -> Outcome:
    """Build the envelope of a list. Its links keep every parameter of the request."""
    query, rows, total, pages = page.query, page.rows, page.total, page.total_pages
    collection, parameters = f"{context.collection_url(kind)}/", urlencode(context.query_pairs)

    def page_url(page: int) -> str:
        parts = [part for part in (parameters, f"page={page}" if page > 1 else "") if part]
        return f"{collection}?{'&'.join(parts)}" if parts else collection

    render_context = await make_render_context(kind, context, rows)
    body: dict[str, Any] = {
        kind.name: render_records(kind, context, rows, render_context),
        "rest_url": page_url(query.page),
    }
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
        cache_tags=cache_tags.tags_for_page(kind, query, page.clauses, rows),
    )


async def make_render_context(
    kind: Kind,
    context: OperationContext,
    rows: list[Row],
    *,
    is_readable: bool = False,
    known: LinkedRecords = NO_LINKED_RECORDS,
) -> RenderContext:
    """Load the linked records of these rows, except those that this transaction has loaded already (`known`).

    If the rows are known to be readable in full, none of them is locked.
    """
    linked = await load_linked(kind, context, rows, known) if kind.links and rows else known
    locked_ids = frozenset[int]() if is_readable else event_passwords.locked_ids(context, rows)
    return context.make_render_context(linked, locked_ids)


async def fetch_readable_row(kind: Kind, context: OperationContext) -> Row:
    """Fetch the row that the path names; raise if it does not exist or the caller may not read it in full."""
    row = await fetch_visible_row(kind, context)
    if event_passwords.is_locked(context, row):
        raise errors.password_needed()
    return row


async def fetch_visible_row(kind: Kind, context: OperationContext) -> Row:
    """Fetch the row that the path names, which may be locked; raise if it does not exist for the caller."""
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
    """Return the error for a read without a result: the record does not exist, or the caller may not read it."""
    row = await context.transaction.fetch_one(kind.select(_record_condition(context)))
    if row is None:
        return errors.not_found(kind.singular)
    if kind.is_event and row["status"] == "trash":
        return errors.no_longer_available(kind.singular)
    return errors.not_accessible(kind.singular)


async def _build_outcome(
    kind: Kind, context: OperationContext, row: Row, status: int = 200, *, in_full: bool = False
) -> Outcome:
    render_context = await make_render_context(kind, context, [row], is_readable=True)
    (body,) = render_records(kind, context, [row], render_context, in_full=in_full)
    location = f"{context.collection_url(kind)}/{row['id']}" if status == 201 else ""
    tags = cache_tags.tags_for_record(kind, row)
    expires_at = context.transaction.now if kind.reads.depends_on_now else None
    return Outcome(body, status, revision=row["revision"], location=location, cache_tags=tags, expires_at=expires_at)


async def read_outcome(kind: Kind, context: OperationContext, record_id: int, status: int = 200) -> Outcome:
    """Read the record after a write and return it as the outcome, if the caller needs it."""
    if not context.returns_record:
        return Outcome({}, status)
    site_id = context.transaction.site.id
    row = await context.transaction.fetch_one(kind.select(Sql("r.site_id = ? AND r.id = ?", site_id, record_id)))
    if row is None:
        raise AssertionError(f"{kind.singular} {record_id} vanished inside its own transaction")
    return await _build_outcome(kind, context, row, status)


async def fetch_editable_row(kind: Kind, context: OperationContext) -> Row:
    """Lock the site and return the row. Raise ApiError if the caller may not edit it or If-Match does not match."""
    permissions.require_writer(context.actor, kind)
    row = await context.transaction.fetch_one(kind.select(_record_condition(context)))
    if row is None:
        raise errors.not_found(kind.singular)
    permissions.require_edit(context.actor, kind, row)
    if context.if_match is not None:
        await require_unedited(context.transaction, kind, row, context.if_match)
    return row


async def require_unedited(tx: Transaction, kind: Kind, row: Row, revisions: Collection[int]) -> None:
    """Raise ApiError if the record has been edited since the latest of these revisions.

    A revision that only derived changes separate from the current one is as good as it.
    """
    if row["revision"] in revisions:
        return
    since = max((number for number in revisions if number < row["revision"]), default=0)
    is_logged = tx.site.trimmed_revision <= since
    if not since or not is_logged or not await history.is_only_derived(tx, kind.name, row["id"], since):
        raise errors.precondition_failed()


async def remove_term(kind: Kind, context: OperationContext, row: Row, new_parent: int | None) -> None:
    """Delete a term; the children of a category get another parent."""
    tx = context.transaction
    if kind.is_nested:
        children = await tx.fetch_all(
            kind.select(Sql("r.site_id = ? AND r.parent = ? ORDER BY r.id", tx.site.id, row["id"]))
        )
        for child in children:
            await write_changes(kind, tx, child, {"parent": new_parent}, {})
    await remove_record(kind, tx, row)
