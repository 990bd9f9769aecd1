"""The event table and its saved filters."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from starlette.responses import Response

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.console.bulk_edit import list_actions
from kalends.calendar.console.quick_entry import describe_form
from kalends.calendar.console.table_filters import (
    PAGE_SIZES,
    PATH,
    PERIODS,
    TableFilter,
    clean_query,
    make_back_url,
    make_params,
)
from kalends.calendar.kinds.organizers import ORGANIZERS
from kalends.calendar.kinds.venues import VENUES
from kalends.calendar.operations import event_queries
from kalends.calendar.operations.event_queries import TablePage
from kalends.calendar.operations.form_work import find_changed
from kalends.calendar.operations.record_verbs import MAX_OFFSET
from kalends.calendar.storage import form_drafts
from kalends.console.console_rendering import show
from kalends.console.console_request import ConsoleRequest, ConsoleRoute, redirect
from kalends.console.field_texts import STATUS_FILTERS
from kalends.core import errors, times
from kalends.core.errors import ApiError
from kalends.core.html_text import to_plain_text
from kalends.core.messages import gettext_noop as N_, translator
from kalends.core.params import parse_id
from kalends.imports.api import respond_with_table
from kalends.imports.operations.exports import export_event_table
from kalends.rendering.cards import Badge, make_state_badge
from kalends.rendering.page_locale import PageLocale, make_page_locale
from kalends.store import Row

STATUS_STYLES: Final = {"pending": "is-warning", "publish": "is-positive", "trash": "is-negative"}
UNTITLED: Final = N_("(no title)")
ALL_DAY: Final = N_("All day")
MAX_NAME_LENGTH: Final = 100
MAX_QUERY_LENGTH: Final = 1900
MAX_SAVED: Final = 50
# Marks saved filters for this table, because other tables may have saved filters, too.
SAVED_PREFIX: Final = "events?"
MAX_TAGS: Final = 200
NO_ROWS: Final = TablePage([], 0, 0)


@dataclass(frozen=True, slots=True)
class TableRow:
    id: int
    revision: int
    title: str
    edit_url: str  # empty if the user may not change the event
    propose_url: str  # set if the user may propose changes instead
    public_url: str  # empty if the event has no public page
    start: str  # machine-readable
    day: str
    hours: str
    zone: str  # empty if it is the site's time zone
    series_id: int | None  # set only if the user may change the event
    venue: str
    categories: str
    badges: tuple[Badge, ...]
    author: str
    changed: str  # machine-readable
    changed_day: str
    changed_time: str
    status: str

    @property
    def is_in_trash(self) -> bool:
        return self.status == "trash"


@dataclass(frozen=True, slots=True)
class RowContext:
    """Data shared by all rows. Texts are translated only once, because a page has up to 500 rows."""

    page: TablePage
    locale: PageLocale
    actor: Any
    timezone: str
    status_badges: dict[str, Badge]
    flag_badges: dict[str, Badge]
    untitled: str
    all_day: str


def build_rows(console_request: ConsoleRequest, page: TablePage) -> list[TableRow]:
    site, translate = console_request.site, translator(console_request.language)
    context = RowContext(
        page,
        make_page_locale(console_request.language, site.language, translate),
        console_request.actor,
        site.timezone,
        {name: Badge(translate(label), STATUS_STYLES.get(name, "")) for name, label in STATUS_FILTERS.items()},
        {
            "featured": Badge(translate(N_("Featured")), "is-featured"),
            "hide_from_listings": Badge(translate(N_("Hidden from lists"))),
        },
        translate(UNTITLED),
        translate(ALL_DAY),
    )
    return [_build_row(context, row) for row in page.rows]


def _build_row(context: RowContext, row: Row) -> TableRow:
    page, may_edit = context.page, permissions.may_edit(context.actor, row)
    is_locked = row["id"] in page.locked_ids
    day, hours = format_time(context.locale, row, context.all_day)
    changed = times.in_zone(row["modified_utc"], context.timezone)
    return TableRow(
        id=row["id"],
        revision=row["revision"],
        title=to_plain_text(row["title"]) or context.untitled,
        edit_url=f"{PATH}/{row['id']}" if may_edit else "",
        propose_url=f"{PATH}/{row['id']}/propose" if permissions.may_propose_changes(context.actor, row) else "",
        public_url=f"/event/{row['slug']}/" if row["status"] == "publish" else "",
        start=row["start_local"].isoformat(timespec="minutes"),
        day=day,
        hours=hours,
        zone=row["timezone"] if row["timezone"] != context.timezone else "",
        series_id=row["series_id"] if may_edit else None,
        venue="" if is_locked else _join(page.venues, row["venue_ids"]),
        categories="" if is_locked else _join(page.categories, row["category_ids"]),
        badges=_list_badges(context, row, is_locked=is_locked),
        author=page.authors.get(row["author_id"], ""),
        changed=changed.isoformat(timespec="minutes"),
        changed_day=context.locale.bare_day(changed.date()),
        changed_time=context.locale.time(changed),
        status=row["status"],
    )


def _join(names: Any, ids: list[int]) -> str:
    return ", ".join([names[entry] for entry in ids if entry in names])


def _list_badges(context: RowContext, row: Row, *, is_locked: bool) -> tuple[Badge, ...]:
    state = None if is_locked else make_state_badge(row["event_status"], context.locale.translate)
    flags = [] if is_locked else [badge for name, badge in context.flag_badges.items() if row[name]]
    return (context.status_badges[row["status"]], *([state] if state else []), *flags)


def format_time(locale: PageLocale, row: Row, all_day: str) -> tuple[str, str]:
    """Return an event's dates and times in the event's time zone."""
    start: datetime = row["start_local"]
    end: datetime = row["end_local"]
    if start.date() != end.date():
        hours = all_day if row["all_day"] else f"{locale.time(start)} – {locale.time(end)}"
        return locale.days(start.date(), end.date()), hours
    day = locale.dated_weekday(start.date())
    if row["all_day"]:
        return day, all_day
    return day, locale.time(start) if start == end else f"{locale.time(start)} – {locale.time(end)}"


@dataclass(frozen=True, slots=True)
class TableData:
    page: TablePage
    unknown: tuple[str, ...]  # names in the filter that match no record


async def show_events(console_request: ConsoleRequest) -> Response:
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
        data=data,
        **_describe_pages(filter_, data.page),
        **describe_form(console_request),
        **choices,
        **values,
    )


async def _read_data(context: OperationContext, filter_: TableFilter, console_request: ConsoleRequest) -> TableData:
    raw, extra = make_params(filter_, console_request)
    named, unknown = await _resolve_names(context, filter_)
    return TableData(await _read_page(context, raw, {**extra, **named}), unknown)


async def _read_page(context: OperationContext, raw: dict[str, Any], extra: dict[str, Any]) -> TablePage:
    """Read a page. A page beyond the last one is empty."""
    try:
        return await event_queries.read_table(replace(context, values=event_queries.make_values(raw, extra)))
    except ApiError as error:
        if error.status == 404:
            return NO_ROWS
        raise


async def _resolve_names(
    context: OperationContext, filter_: TableFilter
) -> tuple[dict[str, list[int]], tuple[str, ...]]:
    """Return the IDs of the venues and organizers that the filter names, and the names that match nothing."""
    texts = [("venue", VENUES, filter_.venue), ("organizer", ORGANIZERS, filter_.organizer)]
    found = {name: await event_queries.find_named(context, kind, text) for name, kind, text in texts if text}
    return found, tuple(text for name, _, text in texts if text and not found[name])


async def _read_choices(context: OperationContext, console_request: ConsoleRequest) -> dict[str, Any]:
    return {
        "categories": await event_queries.list_category_choices(context),
        "authors": await event_queries.list_author_choices(context) if console_request.has_role("editor") else [],
        "venue_names": await event_queries.suggest_names(context, VENUES),
        "organizer_names": await event_queries.suggest_names(context, ORGANIZERS),
        "tag_names": await event_queries.list_tag_names(context.transaction, MAX_TAGS),
        "statuses": STATUS_FILTERS,
        "periods": PERIODS,
        "page_sizes": PAGE_SIZES,
    }


async def _read_surroundings(
    context: OperationContext, filter_: TableFilter, console_request: ConsoleRequest, data: TableData
) -> dict[str, Any]:
    user_id = console_request.actor.user_id or 0
    saved = await form_drafts.list_saved(context.transaction, user_id)
    author = None if console_request.has_role("editor") else user_id
    return {
        "saved": [
            _describe_saved(row["name"], row["query"]) for row in saved if row["query"].startswith(SAVED_PREFIX)
        ],
        "actions": list_actions(console_request, in_trash=filter_.status == "trash"),
        "changed": await _find_bulk_change(context, console_request),
        "is_first": not data.page.rows and filter_.is_empty and not await event_queries.has_events(context, author),
    }


def _describe_saved(name: str, query: str) -> dict[str, str]:
    query = query.removeprefix(SAVED_PREFIX)
    return {"name": name, "query": query, "url": f"{PATH}?{query}"}


async def _find_bulk_change(context: OperationContext, console_request: ConsoleRequest) -> dict[str, int] | None:
    """Return the bulk change that `?changed=` identifies by its revisions, if it was made by this user."""
    first, last = (parse_id(part) for part in console_request.query_value("changed").partition("-")[::2])
    if first is None or last is None:
        return None
    count = len(await find_changed(context, first, last))
    return {"first": first, "last": last, "count": count} if count else None


def _describe_pages(filter_: TableFilter, page: TablePage) -> dict[str, Any]:
    """Return the links to other pages. If there are rows beyond the maximum offset, the last page shows a note."""
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
    filter_ = TableFilter.read(console_request)
    format_ = console_request.path_params["format"]
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx)
        raw, extra = make_params(filter_, console_request)
        named, _ = await _resolve_names(context, filter_)
        selected = {name: value for name, value in raw.items() if name not in ("page", "per_page")}
        values = event_queries.make_values(selected, {**extra, **named, "format": format_})
        table = await export_event_table(replace(context, values=values))
    return await respond_with_table(table, console_request.language)


async def save_filter(console_request: ConsoleRequest) -> Response:
    query = clean_query(console_request.form_text("query"))
    name = " ".join(console_request.form_text("name").split())[:MAX_NAME_LENGTH]
    if not name:
        raise errors.missing_params(["name"])
    if len(query) > MAX_QUERY_LENGTH:
        raise errors.invalid("query", "must have at most {maximum} characters.", maximum=MAX_QUERY_LENGTH)
    async with console_request.write() as tx:
        user_id = console_request.actor.user_id or 0
        existing = {row["name"] for row in await form_drafts.list_saved(tx, user_id)}
        if len(existing | {name}) > MAX_SAVED:
            raise errors.invalid("name", "there must be at most {maximum} saved filters.", maximum=MAX_SAVED)
        await form_drafts.save(tx, user_id, name, f"{SAVED_PREFIX}{query}")
    return redirect(make_back_url(query), "filter-saved")


async def delete_filter(console_request: ConsoleRequest) -> Response:
    async with console_request.write() as tx:
        await form_drafts.remove(tx, console_request.actor.user_id or 0, console_request.form_text("name"))
    return redirect(make_back_url(console_request.form_text("query")), "filter-deleted")


ROUTES: Final = (
    ConsoleRoute("/events", show_events),
    ConsoleRoute(r"/events/events\.(?P<format>csv|xlsx)", export_events),
    ConsoleRoute("/events/filters", post=save_filter),
    ConsoleRoute("/events/filters/delete", post=delete_filter),
)
