"""Cards for events in lists, with all text, dates and images ready for the template."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import accumulate, groupby
from typing import Final
from urllib.parse import quote, urlsplit

from kalends.calendar.rules.record_types import CANCELLED, MOVED_ONLINE, POSTPONED, SCHEDULED, SOLD_OUT, Event, Image
from kalends.core.cost import FREE
from kalends.core.html_text import to_plain_text, to_single_line
from kalends.core.messages import Translate, gettext_noop as N_
from kalends.core.times import abbreviation, offset_of
from kalends.rendering.page_locale import PageLocale
from kalends.rendering.page_urls import UrlBuilder

ONLINE: Final = N_("Online")
MARKED_TITLE: Final = N_("{state}: {title}")
STATE_LABELS: Final = {
    SCHEDULED: N_("Going ahead"),
    CANCELLED: N_("Cancelled"),
    POSTPONED: N_("Postponed"),
    MOVED_ONLINE: N_("Moved online"),
    SOLD_OUT: N_("Sold out"),
}
# Each badge's style and icon. Scheduled events have no badge.
_STYLES: Final = {
    CANCELLED: ("is-negative", "×"),
    POSTPONED: ("is-warning", "→"),
    MOVED_ONLINE: ("is-positive", "↗"),
    SOLD_OUT: ("is-warning", "!"),
}


@dataclass(frozen=True, slots=True)
class Badge:
    """A short label; `style` is a class of the `.badge` component."""

    label: str
    style: str = ""
    is_cancelled: bool = False  # strikes out the title
    icon: str = ""  # replaces the label where space is tight


def make_state_badge(event_status: str, translate: Translate) -> Badge | None:
    if event_status not in _STYLES:
        return None
    style, icon = _STYLES[event_status]
    return Badge(translate(STATE_LABELS[event_status]), style, event_status == CANCELLED, icon)


def mark_title(title: str, event_status: str, translate: Translate) -> str:
    """Prefix the title with the status, because feed readers show no badges."""
    badge = make_state_badge(event_status, translate)
    return translate(MARKED_TITLE).format(state=badge.label, title=title) if badge else title


HUES: Final = 12
MAX_EXCERPT: Final = 220  # columns
MAX_TITLE: Final = 160  # columns
# An event ending at exactly 06:00:00 still belongs to the previous night.
NIGHT: Final = timedelta(hours=6, seconds=1)
RANGE: Final = " – "
FREE_TEXT: Final = N_("Free")
REPEATS: Final = N_("repeats")
_SPACED_SIGN: Final = re.compile(r" (?=[:;!?»])|(?<=«) ")


@dataclass(frozen=True, slots=True)
class PageImage:
    src: str
    srcset: str
    width: int
    height: int
    alt: str
    caption: str = ""
    focus_classes: str = ""  # CSS classes for the focus point of a cropped image
    hue: int | None = None  # dominant hue in 24 steps; -1: gray


@dataclass(frozen=True, slots=True)
class When:
    """An event's times: `start` and `end` in ISO 8601, `day` and `time` as localized texts in the event's zone."""

    first: date
    last: date
    start: str
    end: str
    all_day: bool
    day: str
    time: str
    zone: str  # an abbreviation; empty if it can be omitted
    timezone: str

    @property
    def begin(self) -> str:
        return self.time.partition(RANGE)[0]

    @property
    def until(self) -> str:
        return self.time.partition(RANGE)[2]

    @property
    def text(self) -> str:
        return " ".join(filter(None, (", ".join(filter(None, (self.day, self.time))), self.zone)))


@dataclass(frozen=True, slots=True)
class Card:
    id: int
    title: str
    url: str
    when: When
    place: str
    town: str
    excerpt: str
    image: PageImage | None
    cost: str
    featured: bool
    is_locked: bool
    hue: int
    categories: tuple[str, ...]
    latitude: float | None
    longitude: float | None
    state: Badge | None = None  # None if the event is scheduled
    repeats: str = ""  # for screen readers, if the event belongs to a series
    dates: str = ""  # the series' rule and how many of its dates the list hides; empty if none
    series_url: str = ""


def make_card(event: Event, locale: PageLocale, links: UrlBuilder, zone: str) -> Card:
    """Make an event's card; `zone` is the site's time zone."""
    venue = event.places[0] if event.places else None
    return Card(
        id=event.id,
        title=shorten(read_title(event.title), MAX_TITLE),
        url=links.event(event.slug),
        when=make_when(event, locale, zone),
        place=to_plain_text(venue.name) if venue else locale.text(ONLINE) if event.is_online else "",
        town=venue.city if venue else "",
        excerpt=shorten(to_single_line(event.excerpt or event.description), MAX_EXCERPT),
        image=make_page_image(event.image),
        cost=locale.text(FREE_TEXT) if event.cost == FREE else event.cost,
        featured=event.featured,
        is_locked=event.is_locked,
        hue=pick_hue(event.categories[0].id if event.categories else None),
        categories=tuple(term.name for term in event.categories),
        latitude=venue.latitude if venue else None,
        longitude=venue.longitude if venue else None,
        state=make_state_badge(event.event_status, locale.translate),
        repeats=locale.text(REPEATS) if event.series else "",
    )


def read_title(html: str) -> str:
    """Return a title as text, keeping French punctuation on the same line as its word."""
    return _SPACED_SIGN.sub("\u00a0", to_plain_text(html))


def make_when(event: Event, locale: PageLocale, zone: str, *, long: bool = False, names_zone: bool = False) -> When:
    """Format an event's times for readers in `zone`; `long` adds the year.

    Include the event's time zone if its UTC offset differs from the offset in `zone`, or if `names_zone` is set
    because readers may be elsewhere. All-day events have none.
    """
    start, end, all_day, event_zone = event.start_local, event.end_local, event.all_day, event.timezone
    first, last = start.date(), last_day(start, end, all_day=all_day)
    spans_days = first != last and not all_day
    is_foreign = event_zone != zone and offset_of(event.start_utc, event_zone) != offset_of(event.start_utc, zone)
    return When(
        first=first,
        last=last,
        start=first.isoformat() if all_day else _iso(start, event.start_utc, event_zone),
        end=last.isoformat() if all_day else _iso(end, event.end_utc, event_zone),
        all_day=all_day,
        day=_format_days(start, end, last, locale, spans_days=spans_days, long=long),
        time="" if all_day or spans_days else format_time_range(start, end, locale),
        zone=abbreviation(event.start_utc, event_zone) if (is_foreign or names_zone) and not all_day else "",
        timezone=event_zone,
    )


def last_day(start: datetime, end: datetime, *, all_day: bool) -> date:
    """Return an event's last day. A night counts as part of the day on which it began."""
    return max(start, end if all_day or end.year < 2 else end - NIGHT).date()


def _format_days(
    start: datetime, end: datetime, last: date, locale: PageLocale, *, spans_days: bool, long: bool
) -> str:
    if spans_days:
        return locale.range(start, end, year=long)
    if long or last != start.date():
        return locale.days(start.date(), last)
    return locale.short_day(start.date())


def format_time_range(start: datetime, end: datetime, locale: PageLocale) -> str:
    return locale.time(start) if start == end else f"{locale.time(start)}{RANGE}{locale.time(end)}"


def _iso(local: datetime, utc: datetime, zone: str) -> str:
    seconds = int(offset_of(utc, zone).total_seconds())
    sign, size = "-" if seconds < 0 else "+", abs(seconds)
    return f"{local.isoformat()}{sign}{size // 3600:02}:{size // 60 % 60:02}"


def group_by_day(cards: Iterable[Card], today: date | None) -> list[tuple[date | None, list[Card]]]:
    """Group cards by start day. Given `today`, cards that began earlier form a group without a day."""

    def find_day(card: Card) -> date | None:
        return None if today and card.when.first < today else card.when.first

    return [(day, list(group)) for day, group in groupby(cards, key=find_day)]


def make_page_image(image: Image | None) -> PageImage | None:
    if image is None or not image.url.startswith(("http://", "https://", "/")):
        return None
    sizes: dict[int, str] = {image.width: image.url}
    for size in image.sizes.values():
        # Cropped sizes show only part of the image, so they do not belong in the same srcset.
        if (
            size.get("url")
            and size.get("height")
            and abs(size["width"] * image.height / (size["height"] * image.width) - 1) < 0.02
        ):
            sizes.setdefault(size["width"], size["url"])
    srcset = ", ".join(f"{quote(url, safe=':/?&=%#+@~')} {width}w" for width, url in sorted(sizes.items()))
    middle = min(sizes, key=lambda width: abs(width - 800))
    return PageImage(
        src=sizes[middle],
        srcset=srcset,
        width=image.width,
        height=image.height,
        alt=image.alt_text,
        caption=to_plain_text(image.caption),
        focus_classes=f"x{round(10 * image.focus_x)} y{round(10 * image.focus_y)}",
        hue=image.hue,
    )


def find_origin(url: str) -> str:
    """Return a URL's origin for the Content-Security-Policy; empty unless it is an HTTP URL with a safe host."""
    parts = urlsplit(url)
    is_safe = parts.netloc and not set(parts.netloc) & set(" ;,'\"")
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme in ("http", "https") and is_safe else ""


def pick_hue(category_id: int | None) -> int:
    """Return a category's hue number; 0 means none."""
    return 0 if category_id is None else 1 + category_id * 7 % HUES


def shorten(text: str, max_columns: int) -> str:
    """Cut text to a number of columns, between words if possible. East Asian characters take two columns."""
    if len(text) * (1 if text.isascii() else 2) <= max_columns:
        return text
    ends = accumulate(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
    length = next((index for index, end in enumerate(ends) if end > max_columns), len(text))
    if length == len(text):
        return text
    head, _, _ = text[:length].rpartition(" ")
    return (head if len(head) > length // 2 else text[:length]).rstrip(" ,.;:") + "…"
