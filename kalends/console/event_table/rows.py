"""The rows of the table of events, as the template shows them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from kalends.console.event_table.filters import PATH
from kalends.console.field_texts import STATUS_FILTERS
from kalends.console.request import ConsoleRequest
from kalends.core import times
from kalends.core.html.sanitize import to_plain_text
from kalends.core.messages import gettext_noop as N_
from kalends.http.language import translator
from kalends.operations import permissions
from kalends.operations.event_table import TablePage
from kalends.store import Row
from kalends.website.models.page_locale import PageLocale, make_page_locale
from kalends.website.models.states import Badge, make_state_badge

STATUS_STYLES: Final = {"pending": "is-warning", "publish": "is-positive", "trash": "is-negative"}
UNTITLED: Final = N_("(no title)")
ALL_DAY: Final = N_("All day")


@dataclass(frozen=True, slots=True)
class TableRow:
    id: int
    revision: int
    title: str
    edit_url: str  # empty if the user may not change the event
    public_url: str  # empty if the event has no public page
    start: str  # for machines
    day: str
    hours: str
    zone: str  # empty if it is the one of the site
    series_id: int | None  # if the user may change the event
    venue: str
    categories: str
    badges: tuple[Badge, ...]
    author: str
    changed: str  # for machines
    changed_day: str
    changed_time: str
    is_in_trash: bool


@dataclass(frozen=True, slots=True)
class RowContext:
    """Everything that rows have in common. Texts are translated once, because a page has up to 500 rows."""

    page: TablePage
    locale: PageLocale
    actor: Any
    timezone: str
    status_badges: dict[str, Badge]
    flag_badges: dict[str, Badge]
    untitled: str
    all_day: str


def build_rows(console_request: ConsoleRequest, page: TablePage) -> list[TableRow]:
    """Build the rows of a page in the language of the user."""
    context = _make_context(console_request, page)
    return [_build_row(context, row) for row in page.rows]


def _make_context(console_request: ConsoleRequest, page: TablePage) -> RowContext:
    site, translate = console_request.site, translator(console_request.language)
    return RowContext(
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
        is_in_trash=row["status"] == "trash",
    )


def _join(names: Any, ids: list[int]) -> str:
    return ", ".join([names[entry] for entry in ids if entry in names])


def _list_badges(context: RowContext, row: Row, *, is_locked: bool) -> tuple[Badge, ...]:
    """Return the status, the state and the flags of an event."""
    state = None if is_locked else make_state_badge(row["event_status"], context.locale.translate)
    flags = [] if is_locked else [badge for name, badge in context.flag_badges.items() if row[name]]
    return (context.status_badges[row["status"]], *([state] if state else []), *flags)


def format_time(locale: PageLocale, row: Row, all_day: str) -> tuple[str, str]:
    """Return the day or days of an event and its hours, in its own time zone."""
    start: datetime = row["start_local"]
    end: datetime = row["end_local"]
    if start.date() != end.date():
        hours = all_day if row["all_day"] else f"{locale.time(start)} – {locale.time(end)}"
        return locale.days(start.date(), end.date()), hours
    day = locale.dated_weekday(start.date())
    if row["all_day"]:
        return day, all_day
    return day, locale.time(start) if start == end else f"{locale.time(start)} – {locale.time(end)}"
