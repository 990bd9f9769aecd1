"""The pages of a time: month, week and day."""

from collections.abc import Callable
from datetime import date, timedelta
from typing import Final

from kalends.core import errors
from kalends.core.messages import gettext_noop as N_
from kalends.kinds.events import EVENTS
from kalends.operations import cache_tags, calendar
from kalends.operations.context import Call
from kalends.website.context import make_frame, show_page, with_values
from kalends.website.filter_views import browse, make_chips
from kalends.website.handler import Shown, Visit
from kalends.website.list_views import NOTHING, ON_ONE_PAGE, Step, make_cards, make_paging, pictures_of
from kalends.website.models.grid import make_agenda, make_entry, make_weeks, month_span, week_start
from kalends.website.models.page_budget import is_light
from kalends.website.models.urls import has_page

DAY: Final = timedelta(days=1)
IN_A_MONTH: Final = 3  # events that a day of the month shows by name
IN_A_WEEK: Final = 12
IN_AN_AGENDA: Final = 6  # days that a phone lists below the month


async def show_month(visit: Visit, call: Call, address: dict[str, str]) -> Shown:
    frame = make_frame(visit, call, dated=False)
    month = _read_day(f"{address['month']}-01") if "month" in address else frame.today.replace(day=1)
    last_day = (month.replace(day=28) + 4 * DAY).replace(day=1) - DAY
    first, last = month_span(month, frame.site.first_weekday)
    rows = await calendar.list_days(call, first, last, IN_A_MONTH)
    entries = [make_entry(row, frame.speech, frame.links, frame.site.timezone) for row in rows]
    before, after = await _around(call, month, last_day, [(entry.first, entry.last) for entry in entries])
    is_empty = not any(entry.first <= last_day and entry.last >= month for entry in entries)
    path, heading = f"/events/month/{month.isoformat()[:7]}/", frame.speech.month(month)
    most, listed = IN_A_MONTH, IN_AN_AGENDA
    while True:
        weeks = make_weeks(first, last, rows, entries, today=frame.today, month=month, most=most)
        agenda = make_agenda(weeks, frame.today)
        if most * listed == 1 or is_light(weeks, agenda[:listed]):
            break
        most, listed = (most - 1, listed) if most > 1 else (most, listed - 1)
    return show_page(
        frame, "month.html", browse=await browse(frame),
        keys=_list_keys(call), kind="month-page", view="month", title=heading, heading=heading,
        weeks=weeks, agenda=agenda[:listed], agenda_goes_on=len(agenda) > listed, is_empty=is_empty,
        shown_day=frame.today if month <= frame.today <= last_day else month,
        before=_step(frame.links.month, before, frame.speech.month_step),
        after=_step(frame.links.month, after, frame.speech.month_step), today_url=frame.links.of("/events/month/"),
        active=make_chips(frame, path), robots="noindex, nofollow" if is_empty and "month" in address else "",
        canonical=call.base_url + (path if "month" in address else "/events/month/"),
    )  # fmt: skip


async def show_week(visit: Visit, call: Call, address: dict[str, str]) -> Shown:
    frame = make_frame(visit, call, dated=False)
    first = week_start(_read_day(address["day"]) if "day" in address else frame.today, frame.site.first_weekday)
    last = first + 6 * DAY
    rows = await calendar.list_days(call, first, last, IN_A_WEEK)
    entries = [make_entry(row, frame.speech, frame.links, frame.site.timezone) for row in rows]
    before, after = await _around(call, first, last, [(entry.first, entry.last) for entry in entries])
    path, heading = f"/events/week/{first.isoformat()}/", frame.speech.days(first, last)

    def name(day: date) -> str:
        first = frame.speech.short_day(week_start(day, frame.site.first_weekday))
        return frame.speech.plain(N_("Week of {day}"), day=first)

    return show_page(
        frame, "week.html", browse=await browse(frame),
        keys=_list_keys(call), kind="week-page", view="week", title=heading, heading=heading,
        week=make_weeks(first, last, rows, entries, today=frame.today, most=IN_A_WEEK)[0], is_empty=not entries,
        shown_day=first, before=_step(frame.links.week, before, name), after=_step(frame.links.week, after, name),
        today_url=frame.links.of("/events/week/"), active=make_chips(frame, path), robots="noindex",
        canonical=call.base_url + path,
    )  # fmt: skip


async def show_day(visit: Visit, call: Call, address: dict[str, str]) -> Shown:
    frame = make_frame(visit, call, dated=False)
    day = _read_day(address["day"]) if "day" in address else frame.today
    outcome = await calendar.list_day(with_values(call, per_page=ON_ONE_PAGE), day)
    cards = make_cards(frame, outcome)
    before, after = await _around(call, day, day, [(card.when.first, card.when.last) for card in cards])
    path, heading = f"/events/day/{day.isoformat()}/", frame.speech.day(day)
    return show_page(
        frame, "list.html", browse=await browse(frame),
        keys=outcome.keys, pictures=pictures_of(cards), kind="day-page", view="day",
        title=heading, heading=heading, groups=[(None, cards)] if cards else [], shown_day=day,
        paging=make_paging(frame, outcome, path), before=_step(frame.links.day, before, frame.speech.short_day),
        after=_step(frame.links.day, after, frame.speech.short_day), today_url=frame.links.of("/events/day/"),
        active=make_chips(frame, path), robots="noindex", canonical=call.base_url + path, past_url="",
        coming_url="", nothing=NOTHING,
    )  # fmt: skip


# Helpers, in the order they are called -----------------------------------------------------------


def _read_day(text: str) -> date:
    """A day of the address."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise errors.no_route() from None
    if not has_page(day):
        raise errors.no_route()
    return day


def _list_keys(call: Call) -> tuple[str, ...]:
    return cache_tags.of_list(EVENTS, call.transaction.site, [], call.values)


async def _around(
    call: Call, first: date, last: date, spans: list[tuple[date, date]]
) -> tuple[date | None, date | None]:
    """The nearest days before and after that have something; what goes beyond these days is there already."""
    before: date | None = first - DAY
    if not any(begin < first for begin, _ in spans):
        before = await calendar.find_before(call, first)
    after: date | None = last + DAY
    if not any(end > last for _, end in spans):
        after = await calendar.find_after(call, last)
    return before, after


def _step(address: Callable[[date], str], day: date | None, name: Callable[[date], str]) -> Step | None:
    return Step(address(day), name(day)) if day is not None and has_page(day) else None
