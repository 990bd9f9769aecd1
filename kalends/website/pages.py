"""Page models: one dataclass per template, with the variables that the template uses.

The classes inherit from each other like their templates: `ListPage` has the variables of `list.html` and of the
templates that `list.html` extends. `Layout` has the variables that all pages of a request share.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import ClassVar

from markupsafe import Markup

from kalends.rendering.cards import Badge, Card, PageImage, When
from kalends.rendering.page_locale import PageLocale
from kalends.rendering.page_urls import Frame, UrlBuilder
from kalends.store.sites import Site
from kalends.website.models.front import FrontParts, StripLink
from kalends.website.models.grid import Day, Slot
from kalends.website.models.page_parts import Discovery, Highlights
from kalends.website.models.series_models import DateItem, RuleLine, SeriesNote
from kalends.website.models.week import HourGrid

NamedUrls = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class PeriodLink:
    url: str
    name: str


@dataclass(frozen=True, slots=True)
class Chip:
    """An active filter, and the URL that removes it.

    If the filter was a word in the search, `word_url` searches for the word instead.
    """

    name: str
    url: str
    word: str = ""
    word_url: str = ""


@dataclass(frozen=True, slots=True)
class Paging:
    """The position in a list with several pages.

    `before` and `after` are URLs; they are empty at the ends of the list.
    """

    page: int = 1
    total: int = 0
    total_pages: int = 0
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class EmptyState:
    """What a page says if it has no events, and links to the nearest ones."""

    text: str
    links: NamedUrls = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CardList:
    """One page of event cards, grouped by day, with the cache tags of the records."""

    heading: str
    groups: Sequence[tuple[str, Sequence[Card]]]  # headings and cards; the heading is empty on a day page
    paging: Paging
    total: int  # number of events in the whole list, including all dates of series
    image: PageImage | None = None  # of the first event that has one, even if the cards have no room for it
    empty: EmptyState | None = None  # None if there are cards
    past_url: str = ""
    upcoming_url: str = ""
    all_url: str = ""  # the whole list, if a frame shows only its beginning
    cache_tags: tuple[str, ...] = ()
    repeats_link: tuple[str, str] | None = None  # shows or hides later dates of series, if there are any

    @property
    def cards(self) -> list[Card]:
        return [card for _, cards in self.groups for card in cards]

    @property
    def image_urls(self) -> tuple[str, ...]:
        return tuple(card.image.src for card in self.cards if card.image)


@dataclass(frozen=True, slots=True)
class SearchForm:
    search: str
    overlaps_from: str
    overlaps_to: str
    near: str
    geoloc_radius: str
    free: bool
    kept: Sequence[tuple[str, str]]  # other parameters, which the form keeps


@dataclass(frozen=True, slots=True)
class Choice:
    """A checkbox in the search form, with the number of events that it would list."""

    value: str
    name: str
    count: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class FacetField:
    """The checkboxes for one kind. `total` counts all available records; `text` is the name searched for."""

    name: str
    label: str
    choices: Sequence[Choice]
    total: int
    text: str
    has_search: bool


@dataclass(frozen=True, slots=True)
class QuickFilter:
    """A link that sets a frequently used filter, or removes the filter if it is active."""

    name: str
    url: str
    is_active: bool


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a fact, such as a phone number or a link to the venue."""

    text: str
    url: str = ""
    is_external: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A venue listed beside a map: its page URL, its address or number of events, and the URL for directions."""

    name: str
    note: str
    url: str = ""  # empty on the venue's own page
    directions_url: str = ""


Facts = Sequence[tuple[str, Sequence[Line]]]  # labels (message IDs) and lines


@dataclass(frozen=True, slots=True)
class LanguageLink:
    """A link to this page in another language. `offer` is the link's text in that language."""

    tag: str
    name: str
    url: str
    offer: str


@dataclass(frozen=True, slots=True)
class CategoryLink:
    """A link to a category; `current` is its `aria-current`, empty if the page is not about this category."""

    name: str
    url: str
    current: str = ""


@dataclass(frozen=True, slots=True)
class CategoryNav:
    """The main categories: in the bar and under "More"."""

    shown: Sequence[CategoryLink] = ()
    more: Sequence[CategoryLink] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Variables that depend only on the site and the request."""

    locale: PageLocale
    links: UrlBuilder
    site: Site
    frame: Frame | None  # set if another website frames the page
    search_text: str
    unknown_names: Sequence[str]  # filter values that match no record
    unknown_place: str
    tiles_url: str
    tiles_host: str
    tiles_attribution: str
    has_map: bool
    highlights: Highlights
    parent_name: str  # the website that the calendar belongs to
    languages: Sequence[LanguageLink]
    takes_events: bool = False  # whether the public form is open
    category_nav: CategoryNav = CategoryNav()
    discovery: Discovery | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    template: ClassVar[str] = "base.html"
    # Style sheets (besides site.css) and scripts, in the order in which to load them.
    styles: ClassVar[tuple[str, ...]] = ()
    scripts: ClassVar[tuple[str, ...]] = ("site.js",)
    kind: str  # the CSS class of the main element
    title: str
    summary: str = ""
    canonical: str = ""
    robots: str = ""
    og_type: str = "website"
    image: PageImage | None = None
    view: str = ""  # the current view, one of page_urls.VIEWS
    current_day: date | None = None  # the day to show when the visitor switches views


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePage(Page):
    template: ClassVar[str] = "message.html"
    kind: str = "message-page"
    message: str
    asks_password: bool = False
    cards: Sequence[Card] = ()  # today's events
    when: When | None = None  # the time of a protected event


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontPage(Page):
    template: ClassVar[str] = "front.html"
    styles: ClassVar[tuple[str, ...]] = ("home.css",)
    kind: str = "front-page"
    heading: str
    lead: str
    strip: Sequence[StripLink]
    parts: FrontParts


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPage(Page):
    template: ClassVar[str] = "event.html"
    styles: ClassVar[tuple[str, ...]] = ("event.css", "map.css")
    scripts: ClassVar[tuple[str, ...]] = ("site.js", "mine.js")
    kind: str = "event-page"
    id: int
    og_type: str = "article"
    when: When
    is_past: bool
    has_month: bool
    state: Badge | None  # None if the event is going ahead
    reason: str
    badges: Sequence[Badge]
    description: Markup
    calendar_links: dict[str, str]
    follow_url: str
    ticket_url: str
    directions_url: str  # directions to the first locatable venue; empty if there is none
    facts: Facts
    points: str  # JSON for the map; empty if there is none
    places: Sequence[Place]  # the venues on the map
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
    timezone: str  # empty if it goes without saying
    state: Badge | None  # None if the series is going ahead
    reason: str
    badges: Sequence[Badge]
    description: Markup
    calendar_url: str
    series_links: UrlBuilder  # used to subscribe to the dates
    ticket_url: str
    facts: Facts
    points: str  # JSON for the map; empty if there is none
    places: Sequence[Place]  # the venues on the map
    hue: int
    categories: NamedUrls
    tags: NamedUrls
    json_ld: str
    dates: Sequence[DateItem] = ()
    dates_heading: str = ""
    empty_text: str = ""  # a message ID, shown instead of an empty list
    next_url: str = ""  # next page of dates
    first_url: str = ""  # first page of dates, on later pages
    past_url: str = ""  # set on pages of upcoming dates if there are past dates
    upcoming_url: str = ""  # set on pages of past dates
    has_more: bool = False  # whether more dates will be created


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
    weeks: Sequence[Sequence[tuple[Day, Sequence[Slot]]]]  # the days of each week, with their slots
    agenda: Sequence[Day]
    has_more_days: bool  # whether the agenda omits days with events
    empty: EmptyState | None  # None if there are events


@dataclass(frozen=True, slots=True, kw_only=True)
class WeekPage(ViewPage):
    template: ClassVar[str] = "week.html"
    styles: ClassVar[tuple[str, ...]] = ("week.css", "print.css")
    scripts: ClassVar[tuple[str, ...]] = ("site.js", "week.js")
    kind: str = "week-page"
    view: str = "week"
    grid: HourGrid
    empty: EmptyState | None  # None if there are events


@dataclass(frozen=True, slots=True, kw_only=True)
class WeekendPage(ViewPage):
    template: ClassVar[str] = "weekend.html"
    styles: ClassVar[tuple[str, ...]] = ("weekend.css", "print.css")
    scripts: ClassVar[tuple[str, ...]] = ("site.js", "mine.js")
    kind: str = "weekend-page"
    view: str = "weekend"
    dates: str
    groups: Sequence[tuple[str, Sequence[Card]]]  # headings and events
    more_count: int
    more_url: str
    empty: EmptyState | None  # None if there are events


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage(ViewPage):
    template: ClassVar[str] = "list.html"
    scripts: ClassVar[tuple[str, ...]] = ("site.js", "mine.js")
    kind: str = "list-page"
    card_list: CardList


@dataclass(frozen=True, slots=True, kw_only=True)
class MinePage(ListPage):
    """The events that a visitor has chosen."""

    template: ClassVar[str] = "mine.html"
    ids: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class MapPage(ListPage):
    template: ClassVar[str] = "map.html"
    styles: ClassVar[tuple[str, ...]] = ("map.css",)
    kind: str = "map-page"
    view: str = "map"
    points: str
    places: Sequence[Place]  # with their numbers of events


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
class EmbedPage(Page):
    """The codes that embed a view, their preview, and the form that changes what they show."""

    template: ClassVar[str] = "embed.html"
    styles: ClassVar[tuple[str, ...]] = ("filters.css", "embed.css")
    scripts: ClassVar[tuple[str, ...]] = ("site.js", "filters.js")
    kind: str = "embed-page"
    views: Sequence[tuple[str, str]]  # the views to choose from, and their labels
    shown_view: str
    options: Frame
    search: str
    kept: Sequence[tuple[str, str]]  # other parameters, which the form keeps
    facets: Sequence[FacetField]
    preview_url: str
    codes: Sequence[tuple[str, str]]  # labels and codes


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPage(ListPage):
    """Variables of `place.html`: a venue, organizer, category or tag with its events."""

    template: ClassVar[str] = "place.html"
    styles: ClassVar[tuple[str, ...]] = ("event.css", "map.css")
    kind: str = "place-page"
    count: str  # "24 upcoming events"
    description: Markup
    facts: Facts
    points: str  # JSON for the map; empty if there is none
    places: Sequence[Place]  # the venue on the map
    subcategories: NamedUrls
    json_ld: str
