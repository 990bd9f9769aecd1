"""Series on pages: descriptions of rules, lists of dates, and the position of an event in its series."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Final

from kalends.calendar.rules.record_types import Event, Series, SeriesReference
from kalends.core.html_text import to_plain_text
from kalends.core.messages import gettext_noop as N_
from kalends.core.recurrence import Rule
from kalends.core.times import local_of
from kalends.rendering.cards import Badge, When, format_time_range, make_state_badge, make_when, read_title
from kalends.rendering.page_locale import PageLocale
from kalends.rendering.page_urls import UrlBuilder
from kalends.rendering.rule_texts import describe_rule
from kalends.series.rules.series_slots import LAST_SLOT, Date, Part

MAX_NAMED_DATES: Final = 3  # number of dates to show for a rule that no sentence describes
TIMES: Final = "times"
MOVED: Final = N_("Moved from {when}")
ONE_OF: Final = N_("One of {count} dates")


@dataclass(frozen=True, slots=True)
class DateLink:
    """A link to the previous or next event in a series. `label` contains the direction and the date."""

    url: str
    text: str
    label: str


@dataclass(frozen=True, slots=True)
class SeriesNote:
    rule: str
    count: str  # "One of 16 dates"; empty if more dates will be created or there is only one
    moved_from: str
    before: DateLink | None
    after: DateLink | None
    url: str


@dataclass(frozen=True, slots=True)
class DateItem:
    """An event in the list of a series' dates. Title and place are empty if they match the series."""

    url: str
    when: When
    title: str
    place: str
    moved_from: str
    is_locked: bool
    state: Badge | None


@dataclass(frozen=True, slots=True)
class RuleLine:
    text: str
    time: str


def make_date_item(event: Event, series: Series, locale: PageLocale, links: UrlBuilder, zone: str) -> DateItem:
    """Build an entry for the list of dates. `zone` is the site's time zone."""
    title, place = read_title(event.title), _name_places(event)
    return DateItem(
        url=links.event(event.slug),
        # Include the zone only if it differs from the site's; the page already states the series' zone.
        when=make_when(event, locale, zone, long=True),
        title=title if title != read_title(series.title) else "",
        place=place if place != _name_places(series.content) else "",
        moved_from=describe_move(event, event.series, locale) if event.series else "",
        is_locked=event.is_locked,
        state=make_state_badge(event.event_status, locale.translate),
    )


def describe_move(event: Event, series: SeriesReference, locale: PageLocale) -> str:
    """Describe the time that an event was moved from; "" if it was not moved."""
    part = find_part(series.parts, series.slot)
    expected = Date(series.slot, part).span().start.wall
    if TIMES not in series.own_fields or expected == event.start_local:
        return ""
    return locale.text(MOVED, when=_format_moment(expected, locale, all_day=part.all_day))


def describe_current_rules(parts: Sequence[Part], now: datetime, locale: PageLocale) -> list[RuleLine]:
    """Describe the rules of a series that have upcoming dates. If there are none, describe the last rule."""
    upcoming = [part for part in parts if next(_list_upcoming(part, now), None) is not None]
    return [
        RuleLine(text, _format_times(part, locale))
        for part in upcoming or parts[-1:]
        if (text := describe_part(part, now, locale))
    ]


def describe_part(part: Part, now: datetime, locale: PageLocale) -> str:
    """Describe the rule of a part. If no sentence fits, list the next dates."""
    if text := _describe_sentence(part.rule, part, locale):
        return text
    dates = list(islice(_list_upcoming(part, now), MAX_NAMED_DATES))
    return locale.join(locale.bare_day(slot.date()) for slot in dates)


def describe_repeats(series: SeriesReference, more: int, locale: PageLocale) -> str:
    """Describe a series' rule and the number of its dates that a list hides (`more`); empty if it hides none."""
    if more < 1:
        return ""
    part = find_part(series.parts, series.slot)
    # The number of dates makes the rule's end redundant, and a rule for a single date describes no others.
    endless = replace(part.rule, count=None, until=None) if part.rule and part.rule.count != 1 else None
    count = locale.text(N_("{n} more dates"), n=more) if more > 1 else locale.text(N_("One more date"))
    return " · ".join(filter(None, (_describe_sentence(endless, part, locale), count)))


def _describe_sentence(rule: Rule | None, part: Part, locale: PageLocale) -> str | None:
    return describe_rule(rule, part.start.date(), locale.language, str(locale.locale)) if rule is not None else None


def describe_rule_at(series: SeriesReference, now: datetime, locale: PageLocale) -> str:
    return describe_part(find_part(series.parts, series.slot), now, locale)


def find_part(parts: Sequence[Part], slot: datetime) -> Part:
    """Return the part in force at a slot. If the slot is earlier than all parts, return the first one."""
    return next((part for part in reversed(parts) if part.start <= slot), parts[0])


def make_date_link(url: str, start: datetime, label: str, locale: PageLocale) -> DateLink:
    day = locale.short_day(start.date())
    return DateLink(url, day, locale.text(label, when=locale.day(start.date())))


def _list_upcoming(part: Part, now: datetime) -> Iterator[datetime]:
    return part.slots(LAST_SLOT, local_of(now, part.timezone))


def _format_times(part: Part, locale: PageLocale) -> str:
    if part.all_day or part.start.date() != part.end.date():
        return "" if part.all_day else locale.time(part.start)
    return format_time_range(part.start, part.end, locale)


def _format_moment(moment: datetime, locale: PageLocale, *, all_day: bool) -> str:
    day = locale.day(moment.date())
    return day if all_day else f"{day}, {locale.time(moment)}"


def _name_places(event: Event) -> str:
    return ", ".join(to_plain_text(venue.name) for venue in event.places)
