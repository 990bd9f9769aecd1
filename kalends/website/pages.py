"""Models of the pages: one dataclass per template, with the variables that the template reads.

The classes inherit from each other as their templates do, so `ListPage` has the variables of `list.html` and of the
templates that it extends. `Layout` has the variables that are the same for all pages of a request.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import ClassVar

from markupsafe import Markup

from kalends.store.sites import Site
from kalends.website.models.cards import Card, PageImage, When
from kalends.website.models.discovery import Discovery
from kalends.website.models.grid import Day
from kalends.website.models.highlights import Highlights
from kalends.website.models.month_cells import Slot
from kalends.website.models.page_locale import PageLocale
from kalends.website.models.series import DateItem, RuleLine, SeriesNote
from kalends.website.models.states import Badge
from kalends.website.models.urls import UrlBuilder
from kalends.website.models.week import HourGrid


@dataclass(frozen=True, slots=True)
class PeriodLink:
    """A link to another month, week or day."""

    url: str
    name: str


@dataclass(frozen=True, slots=True)
class Chip:
    """An active filter, and the URL of the page without it."""

    name: str
    url: str


@dataclass(frozen=True, slots=True)
class Paging:
    """The position in a paged list; `before` and `after` are URLs, empty at the ends of the list."""

    page: int = 1
    total: int = 0
    total_pages: int = 0
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardList:
    """One page of event cards by day, and the cache tags of the records in it."""

    heading: str
    groups: Sequence[tuple[str, Sequence[Card]]]  # headings and cards; no heading if the page is about one day
    paging: Paging
    empty_text: str  # a message ID, shown instead of an empty list
    past_url: str = ""
    upcoming_url: str = ""
    cache_tags: tuple[str, ...] = ()
    first_only_url: str = ""  # empty if no event of the page belongs to a series, or if the filter is active

    @property
    def cards(self) -> list[Card]:
        return [card for _, cards in self.groups for card in cards]

    @property
    def image_urls(self) -> tuple[str, ...]:
        return tuple(card.image.src for card in self.cards if card.image)


@dataclass(frozen=True, slots=True)
class SearchForm:
    """The submitted values of the search form, as text."""

    search: str
    overlaps_from: str
    overlaps_to: str
    near: str
    geoloc_radius: str
    free: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """A checkbox of the search form, with the number of events that it would list."""

    value: str
    name: str
    count: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class FacetField:
    """The checkboxes for one kind of record. `total` counts those that could be listed, `text` is a searched name."""

    name: str
    label: str
    choices: Sequence[Choice]
    total: int
    text: str
    has_search: bool


@dataclass(frozen=True, slots=True)
class QuickFilter:
    """A link that sets a frequent filter, or removes it if it is active."""

    name: str
    url: str
    is_active: bool


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a fact, such as a phone number or a link to the venue."""

    text: str
    url: str = ""
    is_external: bool = False


Facts = Sequence[tuple[str, Sequence[Line]]]  # labels (message IDs) and lines
NamedUrls = Sequence[tuple[str, str]]  # names and URLs


@dataclass(frozen=True, slots=True)
class LanguageLink:
    """This page in another language; `offer` says so in that language."""

    tag: str
    name: str
    url: str
    offer: str


@dataclass(frozen=True, slots=True)
class CategoryNav:
    """The main categories: those in the bar, and those behind "More"."""

    shown: NamedUrls = ()
    more: NamedUrls = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Variables that depend on the site and the request only."""

    locale: PageLocale
    links: UrlBuilder
    site: Site
    embedded: bool
    search_text: str
    unknown_names: Sequence[str]  # values of filters that match no record
    unknown_place: str
    tiles_url: str
    tiles_host: str
    tiles_attribution: str
    has_map: bool
    highlights: Highlights
    parent_name: str  # of the website that the calendar belongs to
    languages: Sequence[LanguageLink]
    discovery: Discovery | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Variables of `base.html`."""

    template: ClassVar[str] = "base.html"
    # Files besides site.css and the scripts, in the order in which they are loaded.
    styles: ClassVar[tuple[str, ...]] = ()
    scripts: ClassVar[tuple[str, ...]] = ("site.js",)
    kind: str  # the CSS class of the main element
    title: str
    summary: str = ""
    canonical: str = ""
    robots: str = ""
    og_type: str = "website"
    image: PageImage | None = None
    view: str = ""  # the current view, one of urls.VIEWS
    current_day: date | None = None  # the day that the links to the other views lead to
    category_nav: CategoryNav = CategoryNav()


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePage(Page):
    template: ClassVar[str] = "message.html"
    kind: str = "message-page"
    message: str
    asks_password: bool = False
    when: When | None = None  # the time of a protected event


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPage(Page):
    template: ClassVar[str] = "event.html"
    styles: ClassVar[tuple[str, ...]] = ("event.css", "map.css")
    kind: str = "event-page"
    og_type: str = "article"
    when: When
    is_past: bool
    has_month: bool
    state: Badge | None  # None: the event takes place as announced
    reason: str
    badges: Sequence[Badge]
    description: Markup
    calendar_links: dict[str, str]
    ticket_url: str
    facts: Facts
    points: str  # JSON for the map; empty: no map
    similar: Sequence[Card]
    hue: int
    categories: NamedUrls
    tags: NamedUrls
    json_ld: str
    series: SeriesNote | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPage(Page):
    template: ClassVar[str] = "series.html"
    styles: ClassVar[tuple[str, ...]] = ("event.css", "map.css")
    kind: str = "series-page"
    rules: Sequence[RuleLine]
    timezone: str
    state: Badge | None  # None: the dates take place as announced
    reason: str
    badges: Sequence[Badge]
    description: Markup
    calendar_url: str
    series_links: UrlBuilder  # of the list of the dates, for subscriptions
    ticket_url: str
    facts: Facts
    points: str  # JSON for the map; empty: no map
    hue: int
    categories: NamedUrls
    tags: NamedUrls
    json_ld: str
    dates: Sequence[DateItem] = ()
    dates_heading: str = ""
    empty_text: str = ""  # a message ID, shown instead of an empty list
    next_url: str = ""  # of the next page of dates
    first_url: str = ""  # of the first page, on other pages
    past_url: str = ""  # on pages of upcoming dates, if there are past ones
    upcoming_url: str = ""  # on pages of past dates
    has_more: bool = False  # further dates will exist


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewPage(Page):
    """Variables of `view.html`, which the calendar views and all lists extend."""

    template: ClassVar[str] = "view.html"
    heading: str
    before: PeriodLink | None = None
    after: PeriodLink | None = None
    today_url: str = ""
    active_filters: Sequence[Chip] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthPage(ViewPage):
    template: ClassVar[str] = "month.html"
    styles: ClassVar[tuple[str, ...]] = ("month.css",)
    scripts: ClassVar[tuple[str, ...]] = ("site.js", "month.js")
    kind: str = "month-page"
    view: str = "month"
    weeks: Sequence[Sequence[tuple[Day, Sequence[Slot]]]]  # the days of each week, with what their cells show
    agenda: Sequence[Day]
    has_more_days: bool  # the agenda does not list all days with events
    is_empty: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WeekPage(ViewPage):
    template: ClassVar[str] = "week.html"
    styles: ClassVar[tuple[str, ...]] = ("week.css",)
    kind: str = "week-page"
    view: str = "week"
    grid: HourGrid
    is_empty: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage(ViewPage):
    template: ClassVar[str] = "list.html"
    kind: str = "list-page"
    card_list: CardList


@dataclass(frozen=True, slots=True, kw_only=True)
class MapPage(ListPage):
    template: ClassVar[str] = "map.html"
    styles: ClassVar[tuple[str, ...]] = ("map.css",)
    kind: str = "map-page"
    view: str = "map"
    points: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage(ListPage):
    template: ClassVar[str] = "search.html"
    styles: ClassVar[tuple[str, ...]] = ("filters.css",)
    kind: str = "search-page"
    form: SearchForm
    facets: Sequence[FacetField]
    quick_filters: Sequence[QuickFilter]
    towns: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPage(ListPage):
    """Variables of `place.html`: a venue, organizer, category or tag with its events."""

    template: ClassVar[str] = "place.html"
    styles: ClassVar[tuple[str, ...]] = ("event.css", "map.css")
    kind: str = "place-page"
    description: Markup
    facts: Facts
    points: str  # JSON for the map; empty: no map
    subcategories: NamedUrls
    json_ld: str
