"""A digest in words: sections with entries, ready for every format."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.event_list import RESOLVED_SERIES
from kalends.calendar.operations.page_filters import ResolvedFilters
from kalends.calendar.rules.record_types import CANCELLED, MOVED_ONLINE, POSTPONED, Event
from kalends.core.errors import ApiError
from kalends.core.messages import find_language, gettext_noop as N_, translator
from kalends.core.times import local_of
from kalends.follow.operations.digest_content import Change, DigestContent, News
from kalends.follow.operations.followed_queries import list_names, resolve_query
from kalends.follow.rules.net_changes import CONFIRMED, NEW_PLACE, NEW_TIME, EventState
from kalends.follow.rules.slots import Slot
from kalends.rendering.cards import (
    FREE_TEXT,
    RANGE,
    STATE_LABELS,
    Card,
    format_time_range,
    group_by_day,
    last_day,
    make_card,
    read_title,
)
from kalends.rendering.page_locale import PageLocale, make_page_locale
from kalends.rendering.page_urls import UrlBuilder
from kalends.store.sites import Site

SUBJECT: Final = N_("{site}: {period}")
COMING: Final = N_("Coming up")
CHANGED: Final = N_("Changed since your last email")
NEW: Final = N_("Newly announced")
ONGOING: Final = N_("Ongoing")
ALL_DAY: Final = N_("All day")
MORE: Final = N_("And {n} more")
WITHDRAWN: Final = N_("An event on {when} is no longer in the calendar.")
SEVERAL_DATES: Final = N_("{n} dates, the first on {day}")
BEFORE: Final = N_("before: {when}")
SEARCH: Final = N_("Search: “{text}”")
WITHIN: Final = N_("Within {n} km")
OTHER_FILTERS: Final = N_("More filters")
ALL_EVENTS: Final = N_("All events")
SEE_LIST: Final = N_("See the whole list")
ADD_TO_CALENDAR: Final = N_("Subscribe in your calendar")
CHANGE_TEXTS: Final = {
    CANCELLED: STATE_LABELS[CANCELLED],
    POSTPONED: STATE_LABELS[POSTPONED],
    MOVED_ONLINE: STATE_LABELS[MOVED_ONLINE],
    CONFIRMED: N_("Takes place after all"),
    NEW_TIME: N_("New time"),
    NEW_PLACE: N_("New place"),
}
DEFAULT_RADIUS: Final = 40.0  # kilometres
# Parameters that a list's name tells of, besides those that name records.
NAMED_PARAMS: Final = {"search", "free", "geoloc_lat", "geoloc_lng", "geoloc_radius", RESOLVED_SERIES}
# The end of a window less than this belongs to the period's last day.
HALF_DAY: Final = timedelta(hours=12)


@dataclass(frozen=True, slots=True)
class Entry:
    title: str  # empty: only `notes`
    url: str
    when: str
    place: str
    notes: tuple[str, ...] = ()
    is_struck: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    heading: str
    groups: Sequence[tuple[str, Sequence[Entry]]]  # an empty heading: the group has none
    more: str = ""


@dataclass(frozen=True, slots=True)
class DigestModel:
    language: str
    subject: str
    title: str
    period: str
    about: str  # the list's filters; empty for all events
    sections: Sequence[Section]
    links: Sequence[tuple[str, str]]
    is_event: bool = False  # an alert or a reminder


@dataclass(frozen=True, slots=True)
class Reader:
    """What the texts depend on besides the content: site, language, and URL prefix."""

    site: Site
    locale: PageLocale
    base_url: str

    @classmethod
    def make(cls, site: Site, language: str, base_url: str) -> "Reader":
        return cls(site, make_page_locale(language, site.language, translator(language)), base_url.rstrip("/"))

    @property
    def links(self) -> UrlBuilder:
        own = find_language(self.site.language) == self.locale.language
        return UrlBuilder(self.base_url, language="" if own else self.locale.language)

    def url(self, path: str) -> str:
        """Return a URL with the language if it is not the site's."""
        return self.base_url + self.links.top_level(path)

    def card(self, event: Event) -> Card:
        return make_card(event, self.locale, self.links, self.site.timezone)


def make_digest(content: DigestContent, query: str, slot: Slot, reader: Reader) -> DigestModel:
    locale, zone, news = reader.locale, reader.site.timezone, content.news
    first, last = local_of(slot.begin, zone).date(), local_of(slot.end - HALF_DAY, zone).date()
    sections = [
        _make_coming(content, first, reader),
        make_changed(news, reader),
        Section(
            locale.text(NEW),
            [("", [make_entry(reader.card(event), reader) for event in news.new])] if news.new else [],
            _count_more(news.new_more, reader),
        ),
    ]
    period = locale.days(first, last)
    language = [("lang", reader.links.language)] if reader.links.language else []
    filters = "&".join(filter(None, (query, urlencode(language))))
    return DigestModel(
        language=locale.language,
        subject=locale.text(SUBJECT, site=reader.site.name, period=period),
        title=reader.site.name,
        period=period,
        about=describe_filters(content.filters, content.values, locale),
        sections=[section for section in sections if section.groups],
        links=[
            (locale.text(SEE_LIST), f"{reader.base_url}/events/list/{f'?{filters}' if filters else ''}"),
            (locale.text(ADD_TO_CALENDAR), f"{reader.base_url}/events.ics{f'?{query}' if query else ''}"),
        ],
    )


def _make_coming(content: DigestContent, first: date, reader: Reader) -> Section:
    cards = [reader.card(event) for event in content.coming]
    groups = [
        (
            reader.locale.long_day(day) if day else reader.locale.text(ONGOING),
            [make_entry(card, reader, day=day) for card in group],
        )
        for day, group in group_by_day(cards, first)
    ]
    return Section(reader.locale.text(COMING), groups, _count_more(content.coming_more, reader))


def make_changed(news: News, reader: Reader) -> Section:
    entries = [make_change(change, reader) for change in news.changes]
    for state in news.withdrawn:
        when = format_state(state, reader.locale)
        entries.append(Entry("", "", "", "", (reader.locale.text(WITHDRAWN, when=when),)))
    more = _count_more(news.changes_more, reader)
    return Section(reader.locale.text(CHANGED), [("", entries)] if entries else [], more)


def make_entry(card: Card, reader: Reader, *, day: date | None = None) -> Entry:
    """Describe an event. Below the heading of its day, the day is left out."""
    when = card.when
    is_named = day is not None and when.first == when.last
    text = (when.time or reader.locale.text(ALL_DAY)) if is_named else when.text
    return Entry(
        title=card.title,
        url=reader.base_url + card.url,
        when=" ".join(filter(None, (text, when.zone if is_named else ""))),
        place=", ".join(filter(None, (card.place, card.town))),
        notes=(card.state.label,) if card.state else (),
        is_struck=bool(card.state and card.state.is_cancelled),
    )


def make_change(change: Change, reader: Reader) -> Entry:
    locale, event = reader.locale, change.event
    card = reader.card(event)
    notes = [name_changes(change.kinds, locale)]
    if NEW_TIME in change.kinds:
        notes.append(locale.text(BEFORE, when=format_state(change.then, locale)))
    if event.reason:
        notes.append(event.reason)
    entry = make_entry(card, reader)
    when = locale.text(SEVERAL_DATES, n=change.number, day=entry.when) if change.number > 1 else entry.when
    return replace(entry, when=when, notes=tuple(notes))


def name_changes(kinds: Sequence[str], locale: PageLocale) -> str:
    return locale.join([locale.text(CHANGE_TEXTS[kind]) for kind in kinds])


def format_state(state: EventState, locale: PageLocale) -> str:
    first, last = state.start.date(), last_day(state.start, state.end, all_day=state.all_day)
    if first != last:
        return locale.days(first, last)
    day = locale.short_day(first)
    return day if state.all_day else f"{day}, {format_time_range(state.start, state.end, locale).partition(RANGE)[0]}"


def _count_more(number: int, reader: Reader) -> str:
    return reader.locale.text(MORE, n=number) if number > 0 else ""


def describe_filters(filters: ResolvedFilters, values: Mapping[str, Any], locale: PageLocale) -> str:
    """Return a list's name for the people who follow it; empty for all events."""
    parts = [read_title(name) for name in list_names(filters)]
    if search := values.get("search"):
        parts.append(locale.text(SEARCH, text=search))
    if values.get("free"):
        parts.append(locale.text(FREE_TEXT))
    if "geoloc_lat" in values:
        parts.append(locale.text(WITHIN, n=f"{values.get('geoloc_radius', DEFAULT_RADIUS):g}"))
    if set(values) - set(filters.named) - NAMED_PARAMS:
        parts.append(locale.text(OTHER_FILTERS))
    return ", ".join(parts)


async def describe_query(context: OperationContext, query: str, locale: PageLocale) -> str:
    """Return the name of the list with a canonical text."""
    try:
        context, filters = await resolve_query(context, query)
    except ApiError:  # A later version may not know a filter any more.
        return query
    return describe_filters(filters, context.values, locale) or locale.text(ALL_EVENTS)
