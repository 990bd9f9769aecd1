"""The first page of the console: what waits, what is incomplete, what others have changed, and the next events."""

from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any, Final

from starlette.responses import Response

from kalends.calendar.console.event_table import build_rows
from kalends.calendar.console.quick_entry import describe_form
from kalends.calendar.console.table_filters import TableFilter, find_week, make_table_values
from kalends.calendar.operations import duplicates, event_queries
from kalends.calendar.operations.duplicates import OtherEvent
from kalends.calendar.storage import history_tables
from kalends.console.console_rendering import show
from kalends.console.console_request import PREFIX, ConsoleRequest, ConsoleRoute, redirect
from kalends.console.field_texts import make_locale
from kalends.console.history_views import ACTIONS
from kalends.core import times
from kalends.core.html_text import to_plain_text
from kalends.core.messages import gettext_noop as N_
from kalends.rendering.page_locale import PageLocale
from kalends.store import Row

DAYS_AHEAD: Final = 30
DAYS_OF_CHANGES: Final = 7
MAX_CHANGES: Final = 10
MAX_BOOKINGS: Final = 5
NEXT_EVENTS: Final = 5


@dataclass(frozen=True, slots=True)
class Tally:
    """A number of events, which links to the table with exactly these events."""

    name: str  # a message ID
    table: TableFilter
    number: int = 0


async def show_today(console_request: ConsoleRequest) -> Response:
    if not console_request.has_role("contributor"):
        return redirect(f"{PREFIX}/account")
    today = times.in_zone(console_request.now, console_request.site.timezone).date()
    groups = _list_tallies(console_request, today)
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx)
        tables = [make_table_values(row.table, console_request) for group in groups.values() for row in group]
        numbers = iter(await event_queries.count_tables(context, tables))
        counted = {name: [replace(row, number=next(numbers)) for row in group] for name, group in groups.items()}
        bookings = await duplicates.find_double_bookings(
            context,
            console_request.now,
            console_request.now + timedelta(days=DAYS_AHEAD),
            _own_id(console_request),
            MAX_BOOKINGS,
        )
        changes = await history_tables.list_recent_changes(
            tx,
            console_request.actor.user_id or 0,
            console_request.now - timedelta(days=DAYS_OF_CHANGES),
            _own_id(console_request),
            MAX_CHANGES,
        )
        values = make_table_values(TableFilter(), console_request, per_page=NEXT_EVENTS)
        coming = await event_queries.read_table(replace(context, values=values))
    locale = make_locale(console_request)
    waiting, lacking = ([row for row in counted[name] if row.number] for name in ("waiting", "lacking"))
    return show(
        console_request,
        "today.html",
        **describe_form(console_request),
        today=locale.long_day(today),
        waiting_events=waiting,
        lacking=lacking,
        weeks=counted["weeks"],
        bookings=[[_describe_event(event, locale) for event in (pair.first, pair.second)] for pair in bookings],
        changes=[_describe_change(console_request, row, locale) for row in changes],
        coming=build_rows(console_request, coming),
        is_all_done=not (waiting or lacking or bookings or any(console_request.waiting.values())),
    )


def _own_id(console_request: ConsoleRequest) -> int | None:
    """Return the user whose events the page is limited to, or None for all events."""
    return None if console_request.has_role("editor") else console_request.actor.user_id


def _list_tallies(console_request: ConsoleRequest, today: date) -> dict[str, list[Tally]]:
    is_editor = console_request.has_role("editor")
    own = str(console_request.actor.user_id) if is_editor else ""
    soon = TableFilter(status="publish", first=f"{today}", last=f"{today + timedelta(days=DAYS_AHEAD)}")
    first, last = (day - timedelta(days=7) for day in find_week(console_request))
    return {
        "waiting": [
            # Editors have the queue, whose number every page of the console has.
            *([] if is_editor else [Tally(N_("Waiting for review"), TableFilter(status="pending"))]),
            Tally(N_("My drafts"), TableFilter(status="draft", author=own)),
        ],
        "lacking": [
            Tally(N_("Without picture"), replace(soon, lacking="image")),
            Tally(N_("Without venue"), replace(soon, lacking="venue")),
            Tally(N_("Without category"), replace(soon, lacking="category")),
        ],
        "weeks": [
            Tally(N_("This week"), TableFilter(status="publish", period="week")),
            Tally(N_("Last week"), TableFilter(status="publish", first=f"{first}", last=f"{last}")),
        ],
    }


def _describe_event(event: OtherEvent, locale: PageLocale) -> dict[str, Any]:
    return {
        "title": event.title,
        "venue": event.venue,
        "path": f"{PREFIX}/events/{event.id}",
        "day": locale.dated_weekday(event.start_local.date()),
        "time": locale.time(event.start_local),
    }


def _describe_change(console_request: ConsoleRequest, row: Row, locale: PageLocale) -> dict[str, Any]:
    changed: datetime = times.in_zone(row["changed_at"], console_request.site.timezone)
    return {
        "title": to_plain_text(row["title"]),
        "path": f"{PREFIX}/events/{row['id']}/history",
        "action": ACTIONS[row["action"]],
        "user": row["user_name"],
        "time": changed.isoformat(timespec="minutes"),
        "day": locale.bare_day(changed.date()),
        "hour": locale.time(changed),
    }


ROUTES: Final = (ConsoleRoute("/?", show_today, min_role="subscriber"),)
