"""Event states, and typed records (events, venues, organizers, terms, images) for pages, feeds and the API.

`kinds` builds the records from rows. Records contain only data that the caller may see. Texts that allow markup are
sanitized HTML. Instants (`…_utc`) are aware; wall times (`…_local`) are naive and belong to `timezone`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, dataclass_transform

from kalends.core.cost import NO_CURRENCY, Currency
from kalends.series.rules.series_slots import Definition, Part

# Event states (`event_status`): whether the event takes place as announced.

SCHEDULED, CANCELLED, POSTPONED, MOVED_ONLINE, SOLD_OUT = STATES = (
    "scheduled",
    "cancelled",
    "postponed",
    "moved_online",
    "sold_out",
)
MAX_REASON_LENGTH: Final = 500


@dataclass_transform(frozen_default=True, kw_only_default=True)
def record[T](cls: type[T]) -> type[T]:
    """Make a class a keyword-only dataclass that is frozen for type checkers.

    The class is not frozen at run time, because creating a frozen instance takes four times as long.
    """
    return dataclass(slots=True, kw_only=True)(cls)


@record
class Image:
    id: int
    url: str
    extension: str
    width: int
    height: int
    filesize: int
    alt_text: str
    caption: str  # HTML
    focus_x: float
    focus_y: float
    # By name, as stored but with absolute URLs. Any key may be missing in a size from another system.
    sizes: Mapping[str, Mapping[str, Any]]
    hue: int | None = None  # dominant hue in 24 steps, for pages; -1: gray, None: not examined yet


@record
class MediaItem(Image):
    title: str
    mime_type: str
    author: int | None
    date_utc: datetime
    modified_utc: datetime
    source_url: str  # where the image was fetched from; empty for uploads


@record
class Term:
    id: int
    name: str
    slug: str
    description: str  # HTML
    count: int  # published events
    url: str
    parent: int = 0  # ID of the parent category; 0 for top-level categories and tags


@record
class Post:
    """The attributes that events, venues and organizers share."""

    id: int
    author: int | None
    status: str
    date_utc: datetime  # publication date
    modified_utc: datetime
    slug: str
    url: str
    description: str  # HTML in paragraphs
    image: Image | None


@record
class Venue(Post):
    name: str  # HTML
    address: str
    city: str
    country: str
    province: str
    state: str
    zip: str
    phone: str
    stateprovince: str
    website: str
    latitude: float | None
    longitude: float | None
    show_map: bool
    show_map_link: bool

    @property
    def coordinates(self) -> tuple[float, float] | None:
        """Return the latitude and longitude, or None if the venue has not been located."""
        if self.latitude is None or self.longitude is None:
            return None
        return self.latitude, self.longitude


@record
class Organizer(Post):
    name: str  # HTML
    phone: str
    website: str
    email: str


@record
class SeriesReference:
    """The series of an event: its identity and rules, and the event's slot and overridden fields."""

    id: int
    slug: str
    url: str
    uid: str
    title: str  # HTML
    parts: tuple[Part, ...]  # rules
    slot: datetime
    own_fields: tuple[str, ...]


@record
class Event(Post):
    """A calendar entry. If it `is_locked`, all attributes that the password protects have default values."""

    uid: str
    title: str  # HTML
    excerpt: str  # HTML in paragraphs
    timezone: str
    all_day: bool
    start_local: datetime
    end_local: datetime
    start_utc: datetime
    end_utc: datetime
    cost: str  # with the currency symbol
    cost_details: Mapping[str, Any]  # as in the API
    currency: Currency = NO_CURRENCY
    website: str
    ticket_url: str
    show_map: bool
    show_map_link: bool
    hide_from_listings: bool
    sticky: bool
    featured: bool
    # Both are sorted by name. Renaming an ancestor can make a `url` outdated, but never a slug.
    categories: tuple[Term, ...]
    tags: tuple[Term, ...]
    venues: tuple[Venue, ...]  # in the event's order
    organizers: tuple[Organizer, ...]  # in the event's order
    event_status: str = SCHEDULED
    status_reason: str = ""
    online_url: str = ""
    feed_guid: str = ""  # ID in the feeds of the former site; if empty, feeds use `uid`
    series: SeriesReference | None = None
    is_locked: bool = False

    @property
    def places(self) -> tuple[Venue, ...]:
        """Return the venues that visitors go to: none if the event has moved online."""
        return () if self.event_status == MOVED_ONLINE else self.venues

    @property
    def is_online(self) -> bool:
        return bool(self.online_url) or self.event_status == MOVED_ONLINE

    @property
    def virtual_url(self) -> str:
        return self.online_url or self.url

    @property
    def reason(self) -> str:
        """Return why the event does not take place as announced, or an empty string if it does."""
        return "" if self.event_status == SCHEDULED else self.status_reason


@record
class Series(Post):
    """A series of events. `content` is an event on the first date, with the content that all dates share."""

    uid: str
    sequence: int
    title: str  # HTML
    content: Event
    definition: Definition
    # Start of the first and last date that has an event; None if no date has one.
    first_local: datetime | None
    last_local: datetime | None
    total: int
    upcoming: int
    created_until: datetime | None  # None if events exist for all dates
