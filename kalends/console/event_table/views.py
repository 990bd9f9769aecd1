"""The table of events, and the filters that users save."""

from dataclasses import dataclass, replace
from typing import Any, Final

from starlette.responses import Response

from kalends.console.event_table.bulk import list_actions
from kalends.console.event_table.filters import (
    PAGE_SIZES,
    PATH,
    PERIODS,
    TableFilter,
    clean_query,
    make_back_url,
    make_params,
)
from kalends.console.event_table.rows import build_rows
from kalends.console.field_texts import STATUS_FILTERS
from kalends.console.rendering import show
from kalends.console.request import ConsoleRequest, ConsoleRoute, redirect
from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.statuses import LISTED
from kalends.http.table_files import respond_with_table
from kalends.kinds.event_list.dates import ANY_DATE
from kalends.kinds.organizers import ORGANIZERS
from kalends.kinds.venues import VENUES
from kalends.operations import event_table
from kalends.operations.bulk_changes import find_changed
from kalends.operations.context import OperationContext
from kalends.operations.event_table import TablePage
from kalends.operations.exports import export_event_table
from kalends.operations.records import MAX_OFFSET
from kalends.store import saved_filters

MAX_NAME_LENGTH: Final = 100
MAX_QUERY_LENGTH: Final = 1900
MAX_SAVED: Final = 50
# Saved filters of this table begin so, because other tables may have some, too.
SAVED_PREFIX: Final = "events?"
REVIEW_ROWS: Final = 50
NO_ROWS: Final = TablePage([], 0, 0)


@dataclass(frozen=True, slots=True)
class TableData:
    """The contents of the table: its page, and the group of drafts that wait for review."""

    page: TablePage
    review: TablePage
    unknown: tuple[str, ...]  # names in the filter that no record has


async def show_events(console_request: ConsoleRequest) -> Response:
    """Show the table of events."""
    filter_ = TableFilter.read(console_request)
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx)
        choices = await _read_choices(context, console_request)
        if filter_.category not in {str(entry) for entry, _ in choices["categories"]}:
            filter_ = replace(filter_, category="")
        data = await _read_data(context, filter_, console_request)
        values = await _read_surroundings(context, filter_, console_request, data)
    return show(
        console_request,
        "events.html",
        filter=filter_,
        rows=build_rows(console_request, data.page),
        review=build_rows(console_request, data.review),
        data=data,
        **_describe_pages(filter_, data.page),
        **choices,
        **values,
    )


async def _read_data(context: OperationContext, filter_: TableFilter, console_request: ConsoleRequest) -> TableData:
    raw, extra = make_params(filter_, console_request)
    named, unknown = await _resolve_names(context, filter_)
    is_reviewer = console_request.has_role("editor") and filter_.shows_review_group
    review = NO_ROWS
    if is_reviewer:
        queue = {name: value for name, value in raw.items() if not _is_date(name)}
        queue |= {"status": ["pending"], "per_page": REVIEW_ROWS, "page": 1, "orderby": "start_date", "order": "asc"}
        review = await _read_page(context, queue, {ANY_DATE: True, **named})
    if console_request.has_role("editor") and not filter_.status:
        raw["status"] = [status for status in LISTED if status != "pending"]
    return TableData(await _read_page(context, raw, {**extra, **named}), review, unknown)


def _is_date(name: str) -> bool:
    return name in ("overlaps_from", "overlaps_to", "ends_before", "strict_dates")


async def _read_page(context: OperationContext, raw: dict[str, Any], extra: dict[str, Any]) -> TablePage:
    """Read a page; one behind the last is empty."""
    try:
        return await event_table.read_table(replace(context, values=event_table.make_values(raw, extra)))
    except ApiError as error:
        if error.status == 404:
            return NO_ROWS
        raise


async def _resolve_names(
    context: OperationContext, filter_: TableFilter
) -> tuple[dict[str, list[int]], tuple[str, ...]]:
    """Return the IDs of the venues and organizers that the filter names, and the names without a match."""
    texts = [("venue", VENUES, filter_.venue), ("organizer", ORGANIZERS, filter_.organizer)]
    found = {name: await event_table.find_named(context, kind, text) for name, kind, text in texts if text}
    return found, tuple(text for name, _, text in texts if text and not found[name])


async def _read_choices(context: OperationContext, console_request: ConsoleRequest) -> dict[str, Any]:
    """Return the choices of the filter form."""
    return {
        "categories": await event_table.list_category_choices(context),
        "authors": await event_table.list_author_choices(context) if console_request.has_role("editor") else [],
        "venue_names": await event_table.suggest_names(context, VENUES),
        "organizer_names": await event_table.suggest_names(context, ORGANIZERS),
        "statuses": STATUS_FILTERS,
        "periods": PERIODS,
        "page_sizes": PAGE_SIZES,
    }


async def _read_surroundings(
    context: OperationContext, filter_: TableFilter, console_request: ConsoleRequest, data: TableData
) -> dict[str, Any]:
    """Return the saved filters, the actions and the notice of a bulk change."""
    user_id = console_request.actor.user_id or 0
    saved = await saved_filters.list_saved(context.transaction, user_id)
    has_rows = bool(data.page.rows or data.review.rows)
    author = None if console_request.has_role("editor") else user_id
    return {
        "saved": [_describe_saved(row["name"], row["query"]) for row in saved if _is_own_table(row["query"])],
        "actions": list_actions(console_request, in_trash=filter_.status == "trash"),
        "changed": await _find_bulk_change(context, console_request),
        "is_first": not has_rows and filter_.is_empty and not await event_table.has_events(context, author),
    }


def _is_own_table(query: str) -> bool:
    return query.startswith(SAVED_PREFIX)


def _describe_saved(name: str, query: str) -> dict[str, str]:
    return {
        "name": name,
        "query": query.removeprefix(SAVED_PREFIX),
        "url": f"{PATH}?{query.removeprefix(SAVED_PREFIX)}",
    }


async def _find_bulk_change(context: OperationContext, console_request: ConsoleRequest) -> dict[str, int] | None:
    """Return the bulk change that `?changed=` names by its revisions, if this user has made it."""
    first, _, last = console_request.query_value("changed").partition("-")
    if not (first.isdecimal() and last.isdecimal() and len(first + last) < 32):
        return None
    count = len(await find_changed(context, int(first), int(last)))
    return {"first": int(first), "last": int(last), "count": count} if count else None


def _describe_pages(filter_: TableFilter, page: TablePage) -> dict[str, Any]:
    """Return the links to other pages. Rows behind a limit are not reachable, and the page says so."""
    reachable = min(page.total_pages, MAX_OFFSET // filter_.rows_per_page + 1)
    number = filter_.page_number
    return {
        "page_number": number,
        "total_pages": page.total_pages,
        "previous_url": filter_.url(page=str(number - 1)) if number > 1 else "",
        "export_query": filter_.query,
        "next_url": filter_.url(page=str(number + 1)) if number < reachable else "",
        "is_cut_off": reachable < page.total_pages and number >= reachable,
    }


async def export_events(console_request: ConsoleRequest) -> Response:
    """Download all events of the table, on all of its pages, as a file."""
    filter_ = TableFilter.read(console_request)
    format_ = console_request.path_params["format"]
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx)
        raw, extra = make_params(filter_, console_request)
        named, _ = await _resolve_names(context, filter_)
        selected = {name: value for name, value in raw.items() if name not in ("page", "per_page")}
        values = event_table.make_values(selected, {**extra, **named, "format": format_})
        table = await export_event_table(replace(context, values=values))
    return await respond_with_table(table, console_request.language)


# Saved filters --------------------------------------------------------------------------------


async def save_filter(console_request: ConsoleRequest) -> Response:
    """Save the filter of the form under a name."""
    query = clean_query(console_request.form_text("query"))
    name = " ".join(console_request.form_text("name").split())[:MAX_NAME_LENGTH]
    if not name:
        raise errors.missing_params(["name"])
    if len(query) > MAX_QUERY_LENGTH:
        raise errors.invalid("query", "must have at most {maximum} characters.", maximum=MAX_QUERY_LENGTH)
    async with console_request.write() as tx:
        user_id = console_request.actor.user_id or 0
        existing = {row["name"] for row in await saved_filters.list_saved(tx, user_id)}
        if len(existing | {name}) > MAX_SAVED:
            raise errors.invalid("name", "there must be at most {maximum} saved filters.", maximum=MAX_SAVED)
        await saved_filters.save(tx, user_id, name, f"{SAVED_PREFIX}{query}")
    return redirect(make_back_url(query), "filter-saved")


async def delete_filter(console_request: ConsoleRequest) -> Response:
    """Delete a saved filter."""
    async with console_request.write() as tx:
        await saved_filters.remove(tx, console_request.actor.user_id or 0, console_request.form_text("name"))
    return redirect(make_back_url(console_request.form_text("query")), "filter-deleted")


ROUTES: Final = (
    ConsoleRoute("/events", show_events),
    ConsoleRoute(r"/events/events\.(?P<format>csv|xlsx)", export_events),
    ConsoleRoute("/events/filters", post=save_filter),
    ConsoleRoute("/events/filters/delete", post=delete_filter),
)
