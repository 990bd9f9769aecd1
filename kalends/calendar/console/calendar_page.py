"""The calendar of the console: a month or a week with all statuses, where events are moved by dragging or by keys."""

from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from starlette.responses import Response

from kalends.calendar.access import permissions
from kalends.calendar.console.cancelling import redirect_with_undo
from kalends.calendar.console.event_table import STATUS_STYLES, UNTITLED
from kalends.calendar.console.quick_entry import describe_form
from kalends.calendar.console.table_filters import TableFilter, make_table_values, read_day
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.operations import duplicates, event_queries
from kalends.calendar.operations.record_verbs import fetch_editable_row, update_record
from kalends.calendar.rules.when import find_offset
from kalends.console.console_rendering import respond_json, show
from kalends.console.console_request import PREFIX, ConsoleRequest, ConsoleRoute, form_error, safe_next
from kalends.console.field_texts import STATUS_FILTERS, make_locale
from kalends.core import errors, times
from kalends.core.errors import ApiError, field_errors
from kalends.core.html_text import to_plain_text
from kalends.core.params import parse_id
from kalends.core.times import local_of, utc_of
from kalends.rendering.cards import last_day, make_state_badge
from kalends.rendering.page_locale import PageLocale
from kalends.series.console.series_scopes import SAVE, ScopedEdit, ask_scope
from kalends.store import Row
from kalends.website.models.grid import find_month_bounds, find_week_start

PATH: Final = f"{PREFIX}/calendar"
DAY: Final = timedelta(days=1)
MAX_EVENTS: Final = 500
MAX_OF_DAY: Final = 8  # in a month; the week shows all
VIEWS: Final = ("month", "week")


@dataclass(frozen=True, slots=True)
class CalendarEntry:
    """An event on one of its days. Only on the first of them it can be moved."""

    id: int
    title: str
    url: str  # empty if the user may not open it
    time: str  # empty for all-day events, and on further days
    start: str  # day and time, machine-readable
    status: str
    status_label: str  # empty for published events
    status_style: str
    state: str  # such as "Cancelled"
    is_movable: bool
    is_further: bool


@dataclass(slots=True)
class CalendarDay:
    date: date
    label: str
    is_today: bool
    is_outside: bool
    entries: list[CalendarEntry] = field(default_factory=list[CalendarEntry])
    more_count: int = 0  # events without room in the month


async def show_calendar(console_request: ConsoleRequest) -> Response:
    site, locale = console_request.site, make_locale(console_request)
    today = local_of(console_request.now, site.timezone).date()
    view = console_request.query_value("view")
    view = view if view in VIEWS else VIEWS[0]
    day = _read_shown_day(console_request.query_value("date")) or today
    first, last = _find_bounds(view, day, site.first_weekday)
    async with console_request.transaction() as tx:
        table = TableFilter(first=f"{first}", last=f"{last}")
        values = make_table_values(table, console_request, per_page=MAX_EVENTS)
        page = await event_queries.find_table_rows(replace(console_request.make_context(tx), values=values))
    days = [
        CalendarDay(at, locale.long_day(at), at == today, view == "month" and at.month != day.month)
        for at in (first + n * DAY for n in range((last - first).days + 1))
    ]
    _fill_days(days, page.rows, console_request, locale, MAX_OF_DAY if view == "month" else MAX_EVENTS)
    previous, following = _find_neighbours(view, day)
    return show(
        console_request,
        "calendar.html",
        view=view,
        heading=locale.month(day) if view == "month" else locale.days(first, last),
        weekdays=locale.weekdays(site.first_weekday),
        weeks=[days[at : at + 7] for at in range(0, len(days), 7)],
        day=day,
        today_url=f"{PATH}?view={view}#today",
        previous_url=f"{PATH}?view={view}&date={previous}",
        next_url=f"{PATH}?view={view}&date={following}",
        here=f"{PATH}?view={view}&date={day}",
        left_out=max(0, page.total - MAX_EVENTS),
        table_url=table.url(),
        **describe_form(console_request),
    )


def _read_shown_day(text: str) -> date | None:
    day = read_day(text)
    # The neighbouring months must exist, too.
    return day if day is not None and 2 <= day.year <= times.LAST_YEAR - 1 else None


def _find_bounds(view: str, day: date, first_weekday: int) -> tuple[date, date]:
    if view == "month":
        return find_month_bounds(day.replace(day=1), first_weekday)
    first = find_week_start(day, first_weekday)
    return first, first + 6 * DAY


def _find_neighbours(view: str, day: date) -> tuple[date, date]:
    if view == "week":
        return day - 7 * DAY, day + 7 * DAY
    first = day.replace(day=1)
    return (first - DAY).replace(day=1), (first + 31 * DAY).replace(day=1)


def _fill_days(
    days: list[CalendarDay], rows: list[Row], console_request: ConsoleRequest, locale: PageLocale, limit: int
) -> None:
    by_date = {day.date: day for day in days}
    for row in rows:
        start, end = row["start_local"], row["end_local"]
        last = last_day(start, end, all_day=row["all_day"])
        for at in (start.date() + n * DAY for n in range((last - start.date()).days + 1)):
            if at > days[-1].date:
                break
            day = by_date.get(at)
            if day is not None and len(day.entries) < limit:
                day.entries.append(_make_entry(row, console_request, locale, is_first=at == start.date()))
            elif day is not None:
                day.more_count += 1


def _make_entry(row: Row, console_request: ConsoleRequest, locale: PageLocale, *, is_first: bool) -> CalendarEntry:
    start, status = row["start_local"], row["status"]
    may_edit = permissions.may_edit(console_request.actor, row)
    state = make_state_badge(row["event_status"], locale.translate)
    public = f"/event/{row['slug']}/" if status == "publish" else ""
    return CalendarEntry(
        row["id"],
        to_plain_text(row["title"]) or locale.text(UNTITLED),
        f"{PREFIX}/events/{row['id']}" if may_edit else public,
        locale.time(start) if is_first and not row["all_day"] else "",
        _format_start(row),
        status,
        locale.text(STATUS_FILTERS[status]) if status != "publish" else "",
        STATUS_STYLES.get(status, ""),
        state.label if state else "",
        is_movable=may_edit and is_first,
        is_further=not is_first,
    )


def _format_start(row: Row) -> str:
    start: datetime = row["start_local"]
    return start.isoformat(timespec="minutes")


# Moving ----------------------------------------------------------------------------------------


async def show_move(console_request: ConsoleRequest) -> Response:
    """Show the form that moves an event, for use without script."""
    event_id = parse_id(console_request.query_value("event"))
    row = await _fetch_event(console_request, event_id)
    return _show_form(console_request, row, row["start_local"], console_request.query_value("back"))


async def move(console_request: ConsoleRequest) -> Response:
    """Move an event to a day and time. For a date of a series, ask which dates to move."""
    row = await _fetch_event(console_request, parse_id(console_request.form_text("event")))
    back = console_request.form_text("back")
    try:
        # Another editor may have moved the event while this one looked at the calendar.
        if console_request.form_text("start") not in ("", _format_start(row)):
            raise errors.precondition_failed()
        start = _read_moment(console_request.form_text("day"), console_request.form_text("time"), row)
        params = move_times(row, start)
    except ApiError as error:
        return _show_form(console_request, row, row["start_local"], back, error)
    revision = row["revision"]
    if row["series_id"] is not None:
        return await ask_scope(console_request, ScopedEdit(row, SAVE, params, revision))
    try:
        outcome = await console_request.perform(update_record, EVENTS, params, record_id=row["id"], revision=revision)
    except ApiError as error:
        if error.status >= 500:
            raise
        return _show_form(console_request, row, start, back, error)
    return redirect_with_undo(_find_back(back), (row["id"], revision, outcome.revision or 0), "moved")


async def check_move(console_request: ConsoleRequest) -> Response:
    """Return the titles of events that are at the same venue at the new time."""
    row = await _fetch_event(console_request, parse_id(console_request.query_value("event")))
    moved = move_times(
        row, _read_moment(console_request.query_value("day"), console_request.query_value("time"), row)
    )
    start, end = (_to_utc(moved[name], row["timezone"]) for name in ("start_date", "end_date"))
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx)
        venues = await duplicates.list_venue_ids(context, row["id"])
        found = await duplicates.find_venue_conflicts(context, venues, start, end, row["id"])
    locale = make_locale(console_request)
    texts = [f"{event.title} ({event.venue}, {locale.time(event.start_local)})" for event in found]
    return respond_json(console_request, {"conflicts": texts})


async def _fetch_event(console_request: ConsoleRequest, event_id: int | None) -> Row:
    async with console_request.transaction() as tx:
        return await fetch_editable_row(EVENTS, console_request.make_context(tx, record_id=event_id or 0))


def _read_moment(day: str, hour: str, row: Row) -> datetime:
    """Read a day and, unless the event keeps its time, a time."""
    at = _read_shown_day(day)
    if at is None:
        raise errors.invalid("day", "must be a day, such as 2026-12-24.")
    try:
        return datetime.combine(at, time.fromisoformat(hour) if hour else row["start_local"].time())
    except ValueError:
        raise errors.invalid("time", "must be a time, such as 19:30.") from None


def move_times(row: Row, start: datetime) -> dict[str, Any]:
    """Return the parameters that move an event to a local time in its zone.

    An event of up to a day keeps its duration; a longer one, such as an exhibition, its hours.
    """
    zone, length = row["timezone"], row["end_local"] - row["start_local"]
    if row["all_day"] or length > DAY:
        return {"start_date": times.format_datetime(start), "end_date": times.format_datetime(start + length)}
    start_utc = utc_of(start, zone)
    end_utc = start_utc + (row["end_utc"] - row["start_utc"])
    texts: list[str] = []
    for utc in (start_utc, end_utc):
        wall = local_of(utc, zone)
        texts.append(times.format_datetime(wall) + find_offset(wall, zone, utc))
    return {"start_date": texts[0], "end_date": texts[1]}


def _to_utc(text: str, zone: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.astimezone(UTC) if moment.tzinfo else utc_of(moment, zone)


def _find_back(back: str) -> str:
    return safe_next(back) if back else PATH


def _show_form(
    console_request: ConsoleRequest, row: Row, start: datetime, back: str, error: ApiError | None = None
) -> Response:
    return show(
        console_request,
        "calendar_move.html",
        status=error.status if error else 200,
        title=to_plain_text(row["title"]),
        row=row,
        start=_format_start(row),
        day=f"{start:%Y-%m-%d}",
        time="" if row["all_day"] else f"{start:%H:%M}",
        back=_find_back(back),
        error=form_error(error) if error else None,
        errors=field_errors(error) if error else {},
    )


ROUTES: Final = (
    ConsoleRoute("/calendar", show_calendar),
    ConsoleRoute("/calendar/move", show_move, move),
    ConsoleRoute("/calendar/check", check_move),
)
