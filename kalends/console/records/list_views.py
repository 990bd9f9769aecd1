"""Tables of venues, organizers, categories and tags."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

from kalends.console.field_texts import STATUS_FILTERS
from kalends.console.records.forms import FORMS, RecordForm
from kalends.console.rendering import show
from kalends.console.request import ConsoleRequest, ConsoleRoute
from kalends.core import times
from kalends.core.html.sanitize import to_plain_text
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import read_params
from kalends.http.language import translator
from kalends.kinds.kind import PAGING, Kind
from kalends.operations import permissions
from kalends.operations.category_tree import list_tree
from kalends.operations.context import OperationContext, PageInfo
from kalends.operations.record_order import ORDERS, sort_by
from kalends.operations.records import find_page, make_render_context
from kalends.store import Row, link_moves
from kalends.store.database import Transaction
from kalends.website.models.page_locale import PageLocale, make_page_locale

PER_PAGE: Final = 50
ORDER_NAMES: Final = {
    "modified": N_("Last change"),
    "name": N_("Name"),
}


@dataclass(frozen=True, slots=True)
class TableRow:
    """A record in a table. `url` is empty if the user may neither edit it nor see a public page."""

    id: int
    name: str
    url: str
    is_editable: bool
    count: int  # upcoming events; of a term, published events
    status: str = ""
    modified: str = ""
    cells: tuple[str, ...] = ()
    depth: int = 0


async def show_table(console_request: ConsoleRequest) -> Response:
    """Show a page of the records of a kind; categories without a search as a tree."""
    form = find_form(console_request)
    query = {name: console_request.query_value(name) for name in ("search", "status", "sort", "page")}
    async with console_request.transaction() as tx:
        if form.kind.is_nested and not query["search"]:
            rows, page = await _read_tree(console_request, tx, form), PageInfo(0, 1)
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
    """Return the description of the kind that the path names."""
    return FORMS[console_request.path_params["kind"]]


def make_locale(console_request: ConsoleRequest) -> PageLocale:
    language = console_request.language
    return make_page_locale(language, console_request.site_language, translator(language))


def make_page_links(path: str, query: Mapping[str, str], pages: int) -> dict[str, str]:
    """Return the URLs of the previous and the next page of a table, as far as they exist."""
    number = int(query["page"]) if query["page"].isdecimal() else 1
    sent = {name: value for name, value in query.items() if value and name != "page"}
    numbers = {"previous": number - 1, "next": number + 1}
    return {name: f"{path}?{urlencode({**sent, 'page': n})}" for name, n in numbers.items() if 1 <= n <= pages}


async def _read_tree(console_request: ConsoleRequest, tx: Transaction, form: RecordForm) -> list[TableRow]:
    permissions.require_writer(console_request.actor, form.kind)
    return [_make_term_row(form, entry.row, entry.depth) for entry in await list_tree(tx)]


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
    """Validate the filters of a table as the API validates those of a list."""
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
    upcoming = await link_moves.count_upcoming(tx, link.table, link.column, [row["id"] for row in rows])
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


ROUTES: Final = (
    ConsoleRoute(r"/(?P<kind>venues|organizers)", show_table),
    ConsoleRoute(r"/(?P<kind>categories)", show_table, min_role="author"),
    ConsoleRoute(r"/(?P<kind>tags)", show_table, min_role="editor"),
)
