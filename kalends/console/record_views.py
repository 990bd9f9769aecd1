"""Tables and forms for venues, organizers, categories and tags: create, change, merge, trash, restore, delete."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext, PageInfo
from kalends.calendar.kinds.kind import PAGING, Kind
from kalends.calendar.operations.form_work import INTO, merge_record
from kalends.calendar.operations.record_history import read_versions, restore_record
from kalends.calendar.operations.record_verbs import (
    ORDERS,
    create_record,
    delete_record,
    fetch_editable_row,
    find_page,
    list_tree,
    make_render_context,
    sort_by,
)
from kalends.calendar.storage import record_tables
from kalends.console.conflicts import read_choices, save_merged
from kalends.console.console_rendering import show
from kalends.console.console_request import ConsoleRequest, ConsoleRoute, form_error, redirect
from kalends.console.field_texts import STATUS_FILTERS, make_locale
from kalends.console.record_forms import (
    FORMS,
    RecordForm,
    find_changes,
    load_options,
    read_defaults,
    read_row,
    read_submitted,
    read_version,
)
from kalends.core import times
from kalends.core.errors import ApiError, field_errors
from kalends.core.html_text import to_plain_text
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import parse_id, read_params
from kalends.store import Row
from kalends.store.database import Transaction

# Tables for venues, organizers, categories and tags.

PER_PAGE: Final = 50
ORDER_NAMES: Final = {"modified": N_("Last change"), "name": N_("Name")}


@dataclass(frozen=True, slots=True)
class TableRow:
    """A record in a table. `url` is empty if the user may not edit the record and the record has no public page."""

    id: int
    name: str
    url: str
    is_editable: bool
    count: int  # upcoming events or, for a term, published events
    status: str = ""
    modified: str = ""
    cells: tuple[str, ...] = ()
    depth: int = 0


async def show_table(console_request: ConsoleRequest) -> Response:
    """Show a page of records. Unless there is a search, categories form a tree."""
    form = find_form(console_request)
    query = {name: console_request.query_value(name) for name in ("search", "status", "sort", "page")}
    async with console_request.transaction() as tx:
        if form.kind.is_nested and not query["search"]:
            permissions.require_writer(console_request.actor, form.kind)
            rows = [_make_term_row(form, entry.row, entry.depth) for entry in await list_tree(tx)]
            page = PageInfo(0, 1)
        else:
            rows, page = await _read_page(console_request, tx, form, query)
    return show(
        console_request,
        "records_list.html",
        form=form,
        rows=rows,
        page=page,
        query=query,
        statuses=STATUS_FILTERS,
        orders=ORDER_NAMES,
        links=make_page_links(form.path, query, page.total_pages),
        may_create=permissions.may_write(console_request.actor, form.kind),
    )


def find_form(console_request: ConsoleRequest) -> RecordForm:
    return FORMS[console_request.path_params["kind"]]


def make_page_links(path: str, query: Mapping[str, str], pages: int) -> dict[str, str]:
    number = parse_id(query["page"]) or 1
    sent = {name: value for name, value in query.items() if value and name != "page"}
    numbers = {"previous": number - 1, "next": number + 1}
    return {name: f"{path}?{urlencode({**sent, 'page': n})}" for name, n in numbers.items() if 1 <= n <= pages}


async def _read_page(
    console_request: ConsoleRequest, tx: Transaction, form: RecordForm, query: Mapping[str, str]
) -> tuple[list[TableRow], PageInfo]:
    values = read_list_values(form.kind, query)
    order = query["sort"] if query["sort"] in ORDERS else "modified"
    kind = sort_by(form.kind, order) if form.kind.is_post else form.kind
    context = console_request.make_context(tx, values)
    found = await find_page(kind, context)
    page = PageInfo(found.total, found.total_pages)
    if not kind.is_post:
        return [_make_term_row(form, row) for row in found.rows], page
    return await _make_post_rows(console_request, context, form, found.rows), page


def read_list_values(kind: Kind, query: Mapping[str, str]) -> dict[str, Any]:
    sent: dict[str, Any] = {name: value for name, value in query.items() if value}
    declared = (*PAGING, *[row.param for row in kind.filters])
    defaults = (
        {"per_page": PER_PAGE} if kind.is_post or kind.is_media else {"per_page": PER_PAGE, "hide_empty": False}
    )
    return read_params(declared, {**defaults, **sent})


async def _make_post_rows(
    console_request: ConsoleRequest, context: OperationContext, form: RecordForm, rows: list[Row]
) -> list[TableRow]:
    tx, link, locale = context.transaction, form.link, make_locale(console_request)
    upcoming = await record_tables.count_upcoming(tx, link.table, link.column, [row["id"] for row in rows])
    render_context = await make_render_context(form.kind, context, rows)
    table: list[TableRow] = []
    for row in rows:
        is_editable = permissions.may_edit(console_request.actor, row)
        public_url = form.kind.reads.from_row(row, render_context).url if row["status"] == "publish" else ""
        table.append(
            TableRow(
                id=row["id"],
                name=to_plain_text(row["title"]),
                url=f"{form.path}/{row['id']}" if is_editable else public_url,
                is_editable=is_editable,
                count=upcoming.get(row["id"], 0),
                status=row["status"],
                modified=locale.bare_day(times.local_of(row["modified_utc"], tx.site.timezone)),
                cells=tuple(str(row[column]) for column, _ in form.columns),
            )
        )
    return table


def _make_term_row(form: RecordForm, row: Row, depth: int = 0) -> TableRow:
    return TableRow(
        id=row["id"],
        name=row["name"],
        url=f"{form.path}/{row['id']}",
        is_editable=True,
        count=row["count"],
        cells=(row["slug"],),
        depth=min(depth, 6),
    )


LIST_ROUTES: Final = (
    ConsoleRoute(r"/(?P<kind>venues|organizers)", show_table),
    ConsoleRoute(r"/(?P<kind>categories)", show_table, min_role="author"),
    ConsoleRoute(r"/(?P<kind>tags)", show_table, min_role="editor"),
)


# Errors with these statuses are shown in the form with the submitted values; all others get a separate page.
FORM_ERRORS: Final = (400, 409, 429)


async def show_new(console_request: ConsoleRequest) -> Response:
    form = find_form(console_request)
    permissions.require_writer(console_request.actor, form.kind)
    texts = {**read_defaults(form, console_request), form.kind.title_param: console_request.query_value("name")}
    return await show_form(console_request, form, texts)


async def create(console_request: ConsoleRequest) -> Response:
    """Create a record. If the API returns an identical published record instead, show that record."""
    form = find_form(console_request)
    defaults = read_defaults(form, console_request)
    texts = {**defaults, **read_submitted(form, console_request.form)}
    raw = {name: value for name, value in find_changes(form, texts, defaults).items() if value not in ("", None)}
    try:
        outcome = await console_request.perform(create_record, form.kind, raw)
    except ApiError as error:
        if error.status not in FORM_ERRORS:
            raise
        return await show_form(console_request, form, texts, error=error)
    is_new = outcome.status == 201
    # The existing record may belong to another user.
    path = f"{form.path}/{outcome.body['id']}" if is_new or console_request.has_role("editor") else form.path
    return redirect(path, "saved" if is_new else "existing")


async def show_record(console_request: ConsoleRequest) -> Response:
    form, row = find_form(console_request), await read_editable(console_request)
    return await show_form(console_request, form, read_row(form, row, console_request.site.timezone), row)


async def save(console_request: ConsoleRequest) -> Response:
    """Save the changed fields, merged with changes that other users have made since the form was shown."""
    form, row = find_form(console_request), await read_editable(console_request)
    submitted, base = read_submitted(form, console_request.form), await read_base(console_request, form, row)
    changes = read_choices(console_request.form)
    if changes is None:
        changes = find_changes(form, submitted, base)
    revision = read_revision(console_request) or row["revision"]
    try:
        saved = await save_merged(console_request, form.kind, row["id"], revision, changes)
    except ApiError as error:
        if error.status not in FORM_ERRORS:
            raise
        return await show_form(console_request, form, {**base, **submitted}, row, error=error)
    return saved if isinstance(saved, Response) else redirect(f"{form.path}/{row['id']}", "saved")


async def read_base(console_request: ConsoleRequest, form: RecordForm, row: Row) -> dict[str, str]:
    """Return the original values of the form, or the current values if the change log no longer has them."""
    zone, revision = console_request.site.timezone, read_revision(console_request)
    if revision is None or revision == row["revision"]:
        return read_row(form, row, zone)
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx, record_id=row["id"])
        versions = await read_versions(form.kind, context, revision)
    return read_version(form, versions.base or versions.current, zone)


async def trash(console_request: ConsoleRequest) -> Response:
    await perform_on_record(console_request, delete_record)
    return redirect(find_form(console_request).path, "trashed")


async def restore(console_request: ConsoleRequest) -> Response:
    await perform_on_record(console_request, restore_record)
    return redirect(f"{find_form(console_request).path}/{read_id(console_request)}", "restored")


async def confirm_deletion(console_request: ConsoleRequest) -> Response:
    form, row = find_form(console_request), await read_editable(console_request)
    async with console_request.transaction() as tx:
        events = await record_tables.count_links(tx, form.link.table, form.link.column, row["id"])
    return show(
        console_request, "record_delete.html", form=form, row=row, name=show_name(form.kind, row), events=events
    )


async def delete(console_request: ConsoleRequest) -> Response:
    await perform_on_record(console_request, delete_record)
    return redirect(find_form(console_request).path, "deleted")


def read_id(console_request: ConsoleRequest) -> int:
    return int(console_request.path_params["id"])


def read_revision(console_request: ConsoleRequest) -> int | None:
    """Return the revision that the form was rendered with, or None if the form did not send it."""
    return parse_id(console_request.form_text("base_revision"))


def show_name(kind: Kind, row: Row) -> str:
    name: str = to_plain_text(row["title"]) if kind.is_post else row["name"]
    return name


async def read_editable(console_request: ConsoleRequest) -> Row:
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx, record_id=read_id(console_request))
        return await fetch_editable_row(find_form(console_request).kind, context)


async def perform_on_record(console_request: ConsoleRequest, operation: Any) -> None:
    """Run an API operation on the record in the path, if the record still has the revision of the form."""
    kind, revision = find_form(console_request).kind, read_revision(console_request)
    await console_request.perform(operation, kind, {}, record_id=read_id(console_request), revision=revision)


def make_map_url(console_request: ConsoleRequest, texts: Mapping[str, str]) -> str:
    """Return the URL of a venue's map, or "" if there is no position or no tile server."""
    latitude, longitude = texts.get("geo_lat", ""), texts.get("geo_lng", "")
    if not (console_request.map_settings.tiles_url and latitude and longitude):
        return ""
    return f"/console/map?{urlencode({'lat': latitude, 'lng': longitude})}"


async def show_form(
    console_request: ConsoleRequest,
    form: RecordForm,
    texts: Mapping[str, str],
    row: Row | None = None,
    *,
    error: ApiError | None = None,
) -> Response:
    async with console_request.transaction() as tx:
        loaded = await load_options(console_request, tx, form, texts, row)
        public_url = await _find_public_url(console_request.make_context(tx), form.kind, row)
    errors = field_errors(error) if error else {}
    response = show(
        console_request,
        "record_form.html",
        status=error.status if error else 200,
        form=form,
        row=row,
        public_url=public_url,
        name=show_name(form.kind, row) if row else "",
        texts=texts,
        loaded=loaded,
        map_url=make_map_url(console_request, texts),
        base_revision=(read_revision(console_request) or row["revision"]) if row else "",
        error=form_error(error) if error else None,
        errors=errors,
        statuses=STATUS_FILTERS,
        labels={name: label for name, label in form.labels.items() if name in errors},
    )
    if error:
        response.headers.update(error.headers)
    return response


async def _find_public_url(context: OperationContext, kind: Kind, row: Row | None) -> str:
    """Return the address of a record's page; empty if it has none."""
    if row is None or (kind.is_post and row["status"] != "publish"):
        return ""
    url: str = kind.reads.from_row(row, await make_render_context(kind, context, [row])).url
    return url


def _make_routes(kinds: str, min_role: str) -> tuple[ConsoleRoute, ...]:
    collection = rf"/(?P<kind>{kinds})"
    record = rf"{collection}/(?P<id>\d{{1,15}})"
    return (
        ConsoleRoute(f"{collection}/new", show_new, create, min_role=min_role),
        ConsoleRoute(record, show_record, save, min_role=min_role),
    )


EDIT_ROUTES: Final = (
    *_make_routes("venues|organizers", "contributor"),
    *_make_routes("categories", "author"),
    *_make_routes("tags", "editor"),
    ConsoleRoute(r"/(?P<kind>venues|organizers)/(?P<id>\d{1,15})/trash", post=trash),
    ConsoleRoute(r"/(?P<kind>venues|organizers)/(?P<id>\d{1,15})/restore", post=restore),
    ConsoleRoute(r"/(?P<kind>categories)/(?P<id>\d{1,15})/delete", confirm_deletion, delete, min_role="author"),
    ConsoleRoute(r"/(?P<kind>tags)/(?P<id>\d{1,15})/delete", confirm_deletion, delete, min_role="editor"),
)


# Merging a record into another one of the same kind: choose the target, confirm, merge.

MAX_CANDIDATES: Final = 20
# Fields that are not compared, because they describe the record and not the place or the people.
UNCOMPARED: Final = {"image", "author", "date"}


@dataclass(frozen=True, slots=True)
class Comparison:
    label: str
    value: str
    target_value: str


async def show_merge(console_request: ConsoleRequest) -> Response:
    """Show a search for the target. With `?into=ID`, show both records side by side."""
    form, row = find_form(console_request), await read_editable(console_request)
    if console_request.query_value("into"):
        return await _show_confirmation(console_request, form, row)
    search = console_request.query_value("search")
    async with console_request.transaction() as tx:
        candidates = await _find_candidates(console_request, tx, form, row, search)
    name = show_name(form.kind, row)
    return show(
        console_request, "record_merge.html", form=form, row=row, name=name, search=search, candidates=candidates
    )


async def merge(console_request: ConsoleRequest) -> Response:
    """Merge the record. A large merge uses several transactions, to let other users write in between."""
    form = find_form(console_request)
    values = read_params((INTO,), console_request.form)
    outcome = None
    while outcome is None:
        async with console_request.write() as tx:
            await tx.lock_site(console_request.actor.user_id)
            revision = read_revision(console_request)
            context = console_request.make_context(tx, values, record_id=read_id(console_request), revision=revision)
            outcome = await merge_record(form.kind, context)
    return redirect(f"{form.path}/{outcome.body['id']}", "merged")


async def _show_confirmation(console_request: ConsoleRequest, form: RecordForm, row: Row) -> Response:
    target_id = read_params((INTO,), {"into": console_request.query_value("into")})["into"]
    async with console_request.transaction() as tx:
        target = await fetch_editable_row(form.kind, console_request.make_context(tx, record_id=target_id))
        link = form.link
        counts = [
            await record_tables.count_links(tx, link.table, link.column, entry["id"]) for entry in (row, target)
        ]
    return show(
        console_request,
        "record_merge_confirm.html",
        form=form,
        row=row,
        target=target,
        names=(show_name(form.kind, row), show_name(form.kind, target)),
        counts=counts,
        comparisons=_compare(form, row, target, console_request.site.timezone),
        statuses=STATUS_FILTERS,
    )


def _compare(form: RecordForm, row: Row, target: Row, zone: str) -> list[Comparison]:
    values, target_values = read_row(form, row, zone), read_row(form, target, zone)
    return [
        Comparison(field.label, to_plain_text(values[field.name]), to_plain_text(target_values[field.name]))
        for field in form.fields
        if field.control not in ("checkbox", "select")
        and field.name not in UNCOMPARED
        and (values[field.name] or target_values[field.name])
    ]


async def _find_candidates(
    console_request: ConsoleRequest, tx: Transaction, form: RecordForm, row: Row, search: str
) -> list[TableRow]:
    """Find possible targets by the search text. If it is empty, search for a word from the record's name."""
    words = search or next((word for word in show_name(form.kind, row).split() if word.isalnum()), "")
    query = {"search": words, "status": "publish" if form.kind.is_post else ""}
    values = {**read_list_values(form.kind, query), "per_page": MAX_CANDIDATES + 1}
    found = await find_page(form.kind, console_request.make_context(tx, values), with_total=False)
    rows = [entry for entry in found.rows if entry["id"] != row["id"]][:MAX_CANDIDATES]
    return [
        TableRow(
            id=entry["id"],
            name=show_name(form.kind, entry),
            url=f"{form.path}/{row['id']}/merge?into={entry['id']}",
            is_editable=True,
            count=0,
            cells=tuple(str(entry[column]) for column, _ in form.columns) or (entry["slug"],),
        )
        for entry in rows
    ]


MERGE_ROUTES: Final = (
    ConsoleRoute(
        r"/(?P<kind>venues|organizers|categories|tags)/(?P<id>\d{1,15})/merge", show_merge, merge, min_role="editor"
    ),
)
