"""The five verbs, written once for every kind: list, read, create, update, delete."""

from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from kalends.core import errors
from kalends.core.slugs import normalize_lookup
from kalends.kinds.kind import Clause, Kind, Listing
from kalends.operations import cache_tags, event_passwords, permissions
from kalends.operations.context import Call, Outcome, Page
from kalends.operations.links import load_linked, resolve_links
from kalends.operations.writes import add_record, change_record, remove_record, write_changes
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sql import Sql

MOST_PER_PAGE = 50
# Records that `page` may skip: the database reads all of them to find the page behind them.
MAX_OFFSET = 10_000


async def list_records(kind: Kind, call: Call, *, counted: bool = True) -> Outcome:
    """`counted`: whether the total is wanted; without it the total is that of the page."""
    permissions.require_reader(call.actor, kind)
    tx = call.transaction
    listing = listing_of(kind, call)
    clauses = await clauses_of(kind, call, listing)
    page = kind.page(kind, listing, clauses)
    if listing.offset > MAX_OFFSET and "cursor" not in listing.values:
        rows: list[Row] = []
        total = await _total_above(tx, kind, listing, clauses)
    elif counted:
        rows, total = await _rows_and_total(tx, page, kind.total(kind, listing, clauses))
    else:
        rows = await tx.fetch_all(page)
        total = len(rows)
    if not rows and listing.page > 1 and kind.is_post:
        raise errors.no_such_page(kind.singular)
    return await _page(kind, call, listing, rows, total)


async def read_record(kind: Kind, call: Call) -> Outcome:
    permissions.require_reader(call.actor, kind)
    visible = permissions.readable(call.actor) if kind.is_post else Sql("true")
    row = await call.transaction.fetch_one(kind.select(_address(call) + Sql("AND") + visible))
    if row is None:
        raise await _why_not(kind, call)
    if kind.links and row["status"] == "trash":
        raise errors.no_longer_available(kind.singular)
    if event_passwords.is_shut(call, row):
        raise errors.password_needed()
    return await _outcome(kind, call, row, in_full=True)


async def create_record(kind: Kind, call: Call) -> Outcome:
    permissions.require_writer(call.actor, kind)
    links = await resolve_links(kind, call, call.values)
    record_id = await add_record(kind, call, call.values, links)
    return await outcome_of(kind, call, record_id, status=201)


async def update_record(kind: Kind, call: Call) -> Outcome:
    row = await changeable_row(kind, call)
    links = await resolve_links(kind, call, call.values)
    await change_record(kind, call, row, call.values, links)
    return await outcome_of(kind, call, row["id"])


async def delete_record(kind: Kind, call: Call) -> Outcome:
    """Posts go to the trash; terms go for good and answer with what they were."""
    row = await changeable_row(kind, call)
    if kind.is_post:
        if row["status"] == "trash":
            raise errors.in_trash(kind.singular)
        await change_record(kind, call, row, {"status": "trash"})
        return await outcome_of(kind, call, row["id"])
    outcome = await _outcome(kind, call, row)
    await _remove_term(kind, call, row)
    return outcome


# Helpers, in the order they are called -------------------------------------------------------


async def clauses_of(kind: Kind, call: Call, listing: Listing) -> list[Clause]:
    """What the parameters of a list ask for, besides where in time it looks."""
    values = call.values
    clauses: list[Clause] = []
    for row in kind.filters:
        if row.param.name in values:
            clauses.append(await row.clause(values[row.param.name], listing))
        elif row.param.default is True:
            clauses.append(await row.clause(True, listing))
    if kind.guarded & set(values):
        clauses.append(event_passwords.opened(call))
    return clauses


async def _total_above(tx: Transaction, kind: Kind, listing: Listing, clauses: list[Clause]) -> int:
    """Return the total of a list that ends before the page asked for; refuse a page that is too far into it."""
    total: int = await tx.fetch_value(kind.total(kind, listing, clauses))
    if total <= listing.offset:
        return total
    if kind.continues:
        raise errors.invalid(
            "page",
            "at most {most} records can be skipped; continue with `cursor`, the `next_cursor` of an answer.",
            most=MAX_OFFSET,
        )
    raise errors.invalid(
        "page", "at most {most} records can be skipped; use filters to narrow the list.", most=MAX_OFFSET
    )


async def _rows_and_total(tx: Transaction, page: Sql, total: Sql) -> tuple[list[Row], int]:
    """Both in one statement; an empty page is a row without an ID."""
    rows = await tx.fetch_all(
        Sql("SELECT t.total, p.* FROM (SELECT (") + total + Sql(") AS total) t LEFT JOIN LATERAL (") + page
        + Sql(") p ON true")
    )  # fmt: skip
    return (rows if rows[0]["id"] is not None else []), rows[0]["total"]


def listing_of(kind: Kind, call: Call) -> Listing:
    tx, values, actor = call.transaction, call.values, call.actor
    statuses = values.get("status") if kind.is_post else None
    return Listing(
        transaction=tx,
        values=values,
        actor=actor,
        page=values.get("page", 1),
        per_page=min(values.get("per_page", tx.site.per_page), MOST_PER_PAGE),
        visible=permissions.listed(actor, statuses) if kind.is_post else Sql("true"),
        statuses=permissions.whole_statuses(actor, statuses),
        editable=permissions.editable(actor),
        readable=permissions.readable(actor),
    )


async def _page(kind: Kind, call: Call, listing: Listing, rows: list[Row], total: int) -> Outcome:
    """The envelope of a list. Links keep every parameter that was sent."""
    pages = -(-total // listing.per_page)
    collection = f"{call.collection(kind)}/"
    shut = event_passwords.shut_of(call, rows)

    def link(page: int) -> str:
        pairs = [*call.sent, *([("page", str(page))] if page > 1 else [])]
        return f"{collection}?{urlencode(pairs)}" if pairs else collection

    more: dict[str, Any] = {}
    if kind.continues:
        more["next_cursor"] = kind.continues(listing, rows, total)
        rows = rows[: listing.per_page]
    body: dict[str, Any] = {
        kind.name: await represent_rows(kind, call, rows, shut),
        "rest_url": link(listing.page),
    }
    following = link(listing.page + 1) if listing.page < pages and "cursor" not in listing.values else ""
    previous = link(listing.page - 1) if listing.page > 1 else ""
    if following:
        body["next_rest_url"] = following
    if previous:
        body["previous_rest_url"] = previous
    body.update({"total": total, "total_pages": pages, **more})
    return Outcome(
        body,
        page=Page(total, pages, following, previous),
        until=kind.until(listing),
        keys=cache_tags.of_list(kind, call.transaction.site, rows, listing.values),
    )


async def represent_rows(
    kind: Kind, call: Call, rows: list[Row], shut: frozenset[int] = frozenset()
) -> list[dict[str, Any]]:
    view = replace(call.view, linked=await load_linked(kind, call, rows), shut=shut)
    return [kind.represent(row, view) for row in rows]


def _address(call: Call) -> Sql:
    site_id = call.transaction.site.id
    if call.slug is not None:
        return Sql("r.site_id = ? AND r.slug = ?", site_id, normalize_lookup(call.slug))
    return Sql("r.site_id = ? AND r.id = ?", site_id, call.record_id)


async def _why_not(kind: Kind, call: Call) -> Exception:
    """Why a read found nothing: there is no such record, or the caller may not see it."""
    row = await call.transaction.fetch_one(kind.select(_address(call)))
    if row is None:
        return errors.not_found(kind.singular)
    if kind.links and row["status"] == "trash":
        return errors.no_longer_available(kind.singular)
    return errors.not_accessible(kind.singular)


async def _outcome(kind: Kind, call: Call, row: Row, status: int = 200, *, in_full: bool = False) -> Outcome:
    body = (await represent_rows(kind, call, [row]))[0]
    if in_full and kind.complete:
        body = kind.complete(body, row, call.view)
    location = f"{call.collection(kind)}/{row['id']}" if status == 201 else ""
    named = cache_tags.of_record(kind, call.transaction.site, row)
    return Outcome(body, status, revision=row["revision"], location=location, keys=named)


async def outcome_of(kind: Kind, call: Call, record_id: int, status: int = 200) -> Outcome:
    """The answer to a write: the record as it is now."""
    site_id = call.transaction.site.id
    row = await call.transaction.fetch_one(kind.select(Sql("r.site_id = ? AND r.id = ?", site_id, record_id)))
    if row is None:
        raise AssertionError(f"{kind.singular} {record_id} vanished inside its own transaction")
    return await _outcome(kind, call, row, status)


async def changeable_row(kind: Kind, call: Call) -> Row:
    """The row as it is under the lock, if the caller may change it and expects it so."""
    permissions.require_writer(call.actor, kind)
    row = await call.transaction.fetch_one(kind.select(_address(call)))
    if row is None:
        raise errors.not_found(kind.singular)
    permissions.require_edit(call.actor, kind, row)
    if call.expected is not None and row["revision"] not in call.expected:
        raise errors.precondition_failed()
    return row


async def _remove_term(kind: Kind, call: Call, row: Row) -> None:
    """Children of a category move up to its parent before it goes."""
    tx = call.transaction
    if kind.name == "categories":
        children = await tx.fetch_all(
            kind.select(Sql("r.site_id = ? AND r.parent = ? ORDER BY r.id", tx.site.id, row["id"]))
        )
        for child in children:
            await write_changes(kind, tx, child, {"parent": row["parent"]}, {})
    await remove_record(kind, tx, row)
