"""Records as pages show them: what a list, a day or a page of one event says, ready to be put into a template."""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate, groupby
from typing import Any, Final
from urllib.parse import quote, urlsplit

from kalends.core.html_text import to_plain_text, to_single_line
from kalends.core.times import abbreviation, offset_of
from kalends.website.models.page_locale import PageLocale
from kalends.website.models.urls import UrlBuilder

HUES: Final = 12
MAX_EXCERPT: Final = 220  # columns
MAX_TITLE: Final = 160
# What ends at six sharp is still of the night.
NIGHT: Final = timedelta(hours=6, seconds=1)
SIDES: Final = ("width", "height")


@dataclass(frozen=True, slots=True)
class PageImage:
    src: str
    srcset: str
    width: int
    height: int
    alt: str
    caption: str = ""
    focus_classes: str = ""  # classes that say which part is to be seen where it is cut


@dataclass(frozen=True, slots=True)
class When:
    """`starts` and `ends` are for programs; `day` and `clock` for people, on the event's own clock."""

    first: date
    last: date
    start: str
    end: str
    all_day: bool
    day: str
    time: str
    zone: str  # where it is not the site's, or where it is to be said anyway
    timezone: str

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


def make_card(record: dict[str, Any], locale: PageLocale, links: UrlBuilder, zone: str) -> Card:
    """`zone` is the site's."""
    venues = list_venues(record)
    venue = venues[0] if venues else {}
    text = to_single_line(record["excerpt"] or record["description"])
    return Card(
        id=record["id"],
        title=shorten(to_plain_text(record["title"]), MAX_TITLE),
        url=links.event(record["slug"]),
        when=make_when(record, locale, zone),
        place=to_plain_text(venue.get("venue", "")),
        town=venue.get("city", ""),
        excerpt=shorten(text, MAX_EXCERPT),
        image=make_page_image(record["image"]),
        cost=record["cost"],
        featured=bool(record["featured"]),
        is_locked=record["all_day"] is None,
        hue=pick_hue(record["categories"][0]["id"] if record["categories"] else None),
        categories=tuple(term["name"] for term in record["categories"]),
        latitude=venue.get("geo_lat"),
        longitude=venue.get("geo_lng"),
    )


def make_when(record: dict[str, Any], locale: PageLocale, zone: str, *, long: bool = False) -> When:
    start, end = (datetime.fromisoformat(record[f"{side}_date"]) for side in ("start", "end"))
    start_utc, end_utc = (
        datetime.fromisoformat(record[f"utc_{side}_date"]).replace(tzinfo=UTC) for side in ("start", "end")
    )
    all_day, event_zone = bool(record["all_day"]), record["timezone"]
    first, last = start.date(), last_day(start, end, all_day=all_day)
    spans_days = first != last and not all_day
    is_foreign = event_zone != zone and offset_of(start_utc, event_zone) != offset_of(start_utc, zone)
    return When(
        first=first,
        last=last,
        start=first.isoformat() if all_day else _iso(start, start_utc, event_zone),
        end=last.isoformat() if all_day else _iso(end, end_utc, event_zone),
        all_day=all_day,
        day=_format_days(start, end, last, locale, spans_days=spans_days, long=long),
        time="" if all_day or spans_days else format_time_range(start, end, locale),
        zone=abbreviation(start_utc, event_zone) if (is_foreign or long) and not all_day else "",
        timezone=event_zone,
    )


def last_day(start: datetime, end: datetime, *, all_day: bool) -> date:
    """A night belongs to the day on which it began."""
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
    return locale.time(start) if start == end else f"{locale.time(start)} – {locale.time(end)}"


def _iso(local: datetime, utc: datetime, zone: str) -> str:
    """With the offset of its zone at that instant."""
    seconds = int(offset_of(utc, zone).total_seconds())
    sign, size = "-" if seconds < 0 else "+", abs(seconds)
    return f"{local.isoformat()}{sign}{size // 3600:02}:{size // 60 % 60:02}"


def group_by_month(cards: Iterable[Card], today: date | None) -> list[tuple[date, list[Card]]]:
    """Cards under the months in which they begin; given today, what runs already stands under its month."""

    def find_month(card: Card) -> date:
        first, last = card.when.first, card.when.last
        return max(first, min(today or first, last)).replace(day=1)

    return [(first, list(group)) for first, group in groupby(cards, key=find_month)]


def list_venues(record: dict[str, Any]) -> list[dict[str, Any]]:
    venues = record["venue"]
    return venues if isinstance(venues, list) else [venues]


def make_page_image(image: dict[str, Any] | bool | None) -> PageImage | None:
    if not isinstance(image, dict) or not str(image.get("url", "")).startswith(("http://", "https://", "/")):
        return None
    width, height = image["width"], image["height"]
    sizes: dict[int, str] = {width: image["url"]}
    for size in (image.get("sizes") or {}).values():
        # Some sizes are cut; those are other pictures.
        if (
            size.get("url")
            and size.get("height")
            and abs(size["width"] * height / (size["height"] * width) - 1) < 0.02
        ):
            sizes.setdefault(size["width"], size["url"])
    srcset = ", ".join(f"{quote(url, safe=':/?&=%#+@~')} {at}w" for at, url in sorted(sizes.items()))
    middle = min(sizes, key=lambda at: abs(at - 800))
    return PageImage(
        src=sizes[middle],
        srcset=srcset,
        width=width,
        height=height,
        alt=image.get("alt_text") or "",
        caption=to_plain_text(image.get("caption") or ""),
        focus_classes=f"x{round(10 * image.get('focus_x', 0.5))} y{round(10 * image.get('focus_y', 0.5))}",
    )


def find_origin(url: str) -> str:
    """For the policy of a page: where a picture of the media library comes from."""
    parts = urlsplit(url)
    is_safe = parts.netloc and not set(parts.netloc) & set(" ;,'\"")
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme in ("http", "https") and is_safe else ""


def pick_hue(category_id: int | None) -> int:
    """Each category has one of a few colours; 0 is none."""
    return 0 if category_id is None else 1 + category_id * 7 % HUES


def shorten(text: str, max_columns: int) -> str:
    """At most so many columns, cut at a word where there is one."""
    if len(text) * (1 if text.isascii() else 2) <= max_columns:
        return text
    ends = accumulate(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
    length = next((at for at, end in enumerate(ends) if end > max_columns), len(text))
    if length == len(text):
        return text
    head, _, _ = text[:length].rpartition(" ")
    return (head if len(head) > length // 2 else text[:length]).rstrip(" ,.;:") + "…"
