"""Parts of pages: descriptions, API addresses, highlights, and the size budget."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape, unescape
from itertools import accumulate
from typing import Final
from urllib.parse import quote, urlsplit

from markupsafe import Markup

from kalends.rendering.cards import Card, PageImage
from kalends.website.models.grid import Entry, MonthLayout
from kalends.website.models.week import HourGrid

# Tags, typed URLs and typed email addresses in sanitized HTML, whose attributes contain no "<" or ">". A URL ends at
# a space, a quotation mark, or the punctuation and letters of scripts that put no spaces around it.
_TOKEN: Final = re.compile(
    r"<(?P<slash>/?)(?P<name>[a-z][a-z0-9]*)(?P<rest>[^<>]*)>"
    r"|(?<![\w/])(?P<url>https?://(?:[\w!#$%()*+,./:;=?@\[\]~\u00c0-\u024f-]|&amp;)+)"
    r"|(?<![\w.%+@/-])(?P<email>[\w.%+-]{1,64}@[a-z0-9-]+(?:\.[a-z0-9-]+)+)(?![\w@-])",
    re.IGNORECASE | re.ASCII,
)
_ATTRIBUTE: Final = re.compile(r'([a-z]+)="([^"]*)"', re.IGNORECASE)
MAX_HEADING_LEVEL: Final = 6
HEADINGS: Final = {f"h{level}" for level in range(1, MAX_HEADING_LEVEL + 1)}


def adapt(html: str, own_hosts: frozenset[str]) -> Markup:
    """Adapt a sanitized description for a page.

    Images on other hosts would reveal visitors to those hosts, so they become links. Typed URLs and email addresses
    become links as well. Headings start at level 2 and never skip a level; equal levels stay equal.
    """
    inside_link = False
    open_levels: list[int] = []
    outline: list[int] = []  # original levels of the last heading and its parent headings

    def adapt_token(tag: re.Match[str]) -> str:
        nonlocal inside_link
        if tag["name"] is None:
            return tag[0] if inside_link else _link_typed(tag["url"], tag["email"])
        name = tag["name"].lower()
        if name == "a":
            inside_link = not tag["slash"]
            return tag[0] if tag["slash"] else f'<a rel="nofollow noopener"{tag["rest"]}>'
        if name == "img":
            return _adapt_image(tag[0], own_hosts, inside_link=inside_link)
        if name not in HEADINGS:
            return tag[0]
        if tag["slash"]:
            return f"</h{open_levels.pop()}>" if open_levels else ""
        while outline and outline[-1] >= int(name[1]):
            outline.pop()
        outline.append(int(name[1]))
        level = min(MAX_HEADING_LEVEL, len(outline) + 1)
        open_levels.append(level)
        return f"<h{level}{tag['rest']}>"

    return Markup(_TOKEN.sub(adapt_token, html))  # noqa: S704  Sanitized with an allow-list on write.


def _link_typed(url: str | None, email: str | None) -> str:
    """Link a typed address, which is escaped already. Punctuation after it belongs to the sentence."""
    typed = url or email or ""
    end = len(typed)
    unopened = {close: typed.count(close) - typed.count(start) for close, start in ((")", "("), ("]", "["))}
    while end and (typed[end - 1] in ".,:;!?*" or unopened.get(typed[end - 1], 0) > 0):
        end -= 1
        if typed[end] in unopened:
            unopened[typed[end]] -= 1
    text = typed[:end]
    if text.endswith("://"):
        return typed
    target = text if url else f"mailto:{text}"
    return f'<a rel="nofollow noopener" href="{target}">{text}</a>{typed[end:]}'


def _adapt_image(tag: str, own_hosts: frozenset[str], *, inside_link: bool) -> str:
    attributes = {name.lower(): value for name, value in _ATTRIBUTE.findall(tag)}
    source = unescape(attributes.get("src", ""))
    host = urlsplit(source).netloc.lower() if "//" in source else ""
    if not host or host in own_hosts:
        alt = attributes.get("alt", "")
        sizes = "".join(f' {side}="{attributes[side]}"' for side in ("width", "height") if side in attributes)
        return f'<img loading="lazy" src="{attributes.get("src", "")}" alt="{alt}"{sizes}>'
    text = attributes.get("alt") or escape(host)
    if inside_link:
        return text
    return f'<a rel="nofollow noopener" class="picture" href="{attributes["src"]}">{text}</a>'


# Headers and links that tell other sites and aggregators a page's API address, as in WordPress.

API_LINK: Final = "https://api.w.org/"


@dataclass(frozen=True, slots=True)
class ApiAddress:
    """The API path for a page's content, relative to the namespace, and the event's ID on an event page."""

    path: str = "/"
    event_id: int = 0

    @classmethod
    def of_event(cls, event_id: int) -> "ApiAddress":
        return cls(f"/events/{event_id}", event_id)

    @classmethod
    def of_term(cls, filter_name: str, slug: str) -> "ApiAddress":
        """Return the API address for the events in a category or tag. Slugs are stored percent-encoded."""
        return cls(f"/events/?{filter_name}={quote(slug, safe='%')}")


WHOLE_API: Final = ApiAddress()


@dataclass(frozen=True, slots=True)
class Discovery:
    root_url: str
    api_url: str  # the API URL for the page's content
    headers: dict[str, str]


def make_discovery(base_url: str, api_prefix: str, address: ApiAddress) -> Discovery | None:
    """Return the API addresses that a page announces, or None if `api_prefix` is empty (no API for old clients)."""
    if not api_prefix:
        return None
    root_url = f"{base_url}{'/'.join(api_prefix.split('/')[:-3])}/"
    api_url = f"{base_url}{api_prefix}{address.path}"
    link = f'<{root_url}>; rel="{API_LINK}"'
    if address.event_id:
        link += f", <{base_url}/?p={address.event_id}>; rel=shortlink"
    headers = {"X-TEC-API-ROOT": api_url, "X-TEC-API-VERSION": "v1", "X-TEC-API-ORIGIN": base_url, "Link": link}
    return Discovery(root_url, api_url, headers)


# Home page highlights: featured events and weekend events.


@dataclass(frozen=True, slots=True)
class Highlights:
    featured: Sequence[Card] = ()
    weekend: Sequence[Card] = ()
    cache_tags: tuple[str, ...] = ()

    @property
    def image_urls(self) -> tuple[str, ...]:
        return tuple(card.image.src for card in self.featured if card.image)


# The size budget: a page's HTML, styles and scripts total less than 60 kB before compression. If text is long or days
# are full, a page shows less and links to the rest.

# The budget that remains for events after styles, scripts and the page layout.
MAX_CARDS_BYTES: Final = 26_000
MAX_RESULTS_BYTES: Final = 13_500  # for search results, because the filters also count against the page's budget
MAX_ENTRIES_BYTES: Final = 18_800
MAX_WEEK_BYTES: Final = 13_000  # a week has more styles and scripts than a month
MAX_FEATURED_BYTES: Final = 5_000
# Bytes of markup per card, image, entry, bar, free place, link or tile, without the text.
CARD_BYTES: Final = 635
IMAGE_BYTES: Final = 220
ENTRY_BYTES: Final = 62
BAR_BYTES: Final = 130
BLOCK_BYTES: Final = 75  # in addition to ENTRY_BYTES
PLACE_BYTES: Final = 30  # in addition to the name
REST_BYTES: Final = 220
SPACE_BYTES: Final = 48
MORE_BYTES: Final = 115
TILE_BYTES: Final = 370
ROW_BYTES: Final = 330
DATES_BYTES: Final = 45
STATE_BYTES: Final = 72  # in addition to the badge's label
REPEATS_BYTES: Final = 35  # in addition to the text itself


def trim(cards: Sequence[Card], budget: int) -> list[Card]:
    """Drop all excerpts if the cards exceed the budget. If they still exceed it, drop all images, too."""
    if _measure_cards(cards) > budget:
        cards = [replace(card, excerpt="") for card in cards]
    if _measure_cards(cards) > budget:
        cards = [replace(card, image=None) for card in cards]
    return list(cards)


def fit_rows(cards: Sequence[Card]) -> list[Card]:
    """Return rows without excerpts that fit the budget. If needed, drop all images, then the last rows."""
    saved = CARD_BYTES - ROW_BYTES
    rows = trim([replace(card, excerpt="") for card in cards], MAX_CARDS_BYTES + saved * len(cards))
    return take_fitting(rows, MAX_CARDS_BYTES, lambda row: _measure_card(row) - saved)


def take_fitting[T](items: Sequence[T], budget: int, measure: Callable[[T], int]) -> list[T]:
    """Return the first items whose sizes together do not exceed the budget."""
    sizes = accumulate(map(measure, items))
    return [item for item, size in zip(items, sizes, strict=True) if size <= budget]


def find_preview_image(cards: Iterable[Card]) -> PageImage | None:
    """Return the image for link previews of a page, from the first featured event that has one."""
    return next((card.image for card in cards if card.featured and card.image), None)


def measure_month(layout: MonthLayout, highlights: Highlights) -> int:
    """Return the size of a month with its highlights, in bytes. The limit is MAX_ENTRIES_BYTES."""
    days = [day for week in layout.weeks for day, _ in week] + list(layout.agenda)
    slots = [slot for week in layout.weeks for _, cell in week for slot in cell]
    entries = [slot.entry for slot in slots if slot.entry]
    entries += [entry for day in layout.agenda for entry in (*day.starting, *day.entries)]
    bars, spaces = sum(slot.days > 0 for slot in slots), sum(slot.entry is None for slot in slots)
    links = sum(day.more_count > 0 for day in days)
    markup = BAR_BYTES * bars + SPACE_BYTES * spaces + MORE_BYTES * links + _measure_highlights(highlights)
    return markup + sum(map(measure_entry, entries))


def _measure_highlights(highlights: Highlights) -> int:
    return measure_tiles([*highlights.featured, *[replace(card, image=None) for card in highlights.weekend]])


def measure_tiles(tiles: Sequence[Card]) -> int:
    return _measure_cards(tiles) - (CARD_BYTES - TILE_BYTES) * len(tiles)


def week_fits(grid: HourGrid) -> bool:
    all_blocks = [block for day in grid.days for block in day.blocks]
    blocks = [block.entry for block in all_blocks if block.entry]
    bars = [*[bar.entry for bar in grid.bars], *[entry for day in grid.days for entry in day.all_day]]
    markup = BLOCK_BYTES * len(blocks) + BAR_BYTES * len(bars) + REST_BYTES * (len(all_blocks) - len(blocks))
    return sum(map(measure_entry, [*blocks, *bars])) + markup <= MAX_WEEK_BYTES


def _measure_cards(cards: Iterable[Card]) -> int:
    return sum(map(_measure_card, cards))


def _measure_card(card: Card) -> int:
    image = card.image
    texts = [card.title, card.url, card.excerpt, card.place, card.town, card.cost, card.dates, card.series_url]
    texts += [image.src, image.srcset, image.alt] if image else []
    return (
        CARD_BYTES
        + (IMAGE_BYTES if image else 0)
        + (DATES_BYTES if card.dates else 0)
        + sum(map(_count_bytes, texts))
        + _measure_state(card)
    )


def measure_entry(entry: Entry) -> int:
    place = PLACE_BYTES + _count_bytes(entry.place) if entry.place else 0
    return ENTRY_BYTES + _count_bytes(entry.title) + _count_bytes(entry.url) + place + _measure_state(entry)


def _measure_state(shown: Card | Entry) -> int:
    state = STATE_BYTES + _count_bytes(shown.state.label) if shown.state else 0
    return state + (REPEATS_BYTES + _count_bytes(shown.repeats) if shown.repeats else 0)


def _count_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
