"""Merging a record into another one of its kind: choose the target, confirm, merge."""

from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from kalends.console.field_texts import STATUS_FILTERS
from kalends.console.records.edit_views import read_editable, read_id, read_revision, show_name
from kalends.console.records.forms import RecordForm
from kalends.console.records.list_views import TableRow, find_form, read_list_values
from kalends.console.records.values import read_row
from kalends.console.rendering import show
from kalends.console.request import ConsoleRequest, ConsoleRoute, redirect
from kalends.core.html.sanitize import to_plain_text
from kalends.core.params import read_params
from kalends.operations.merges import INTO, merge_record
from kalends.operations.records import fetch_editable_row, find_page
from kalends.store import Row, link_moves
from kalends.store.database import Transaction

MAX_CANDIDATES: Final = 20
# Fields that a comparison leaves out: they describe the record, not the place or the people.
UNCOMPARED: Final = {"image", "author", "date"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A field of both records, as plain text."""

    label: str
    value: str
    target_value: str


async def show_merge(console_request: ConsoleRequest) -> Response:
    """Show the search for a target or, with `?into=ID`, both records beside each other."""
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
    """Merge the record; a large one in several transactions, so that others can write in between."""
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
        counts = [await link_moves.count_links(tx, link.table, link.column, entry["id"]) for entry in (row, target)]
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
    """Return the fields of which at least one record has a value."""
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
    """Find possible targets by the search words; without any, those that resemble the name of the record."""
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


ROUTES: Final = (
    ConsoleRoute(
        r"/(?P<kind>venues|organizers|categories|tags)/(?P<id>\d{1,15})/merge", show_merge, merge, min_role="editor"
    ),
)
