"""What every public page has: its texts, its links, its filters, its headers."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Final
from urllib.parse import urlsplit

from kalends.core import times
from kalends.core.times import DateTimeInput
from kalends.core.zones import SECOND
from kalends.http.language import translator
from kalends.http.requests import plain_name
from kalends.kinds.kind import Represented
from kalends.operations import calendar
from kalends.operations.context import Call
from kalends.operations.page_filters import Filters
from kalends.store.sites import Site
from kalends.website.feed_views import FEED_PARAMS
from kalends.website.handler import Shown, Visit
from kalends.website.models.cards import Card, make_card, origin_of
from kalends.website.models.page_locale import Speech, make_speech
from kalends.website.models.urls import Addresses
from kalends.website.rendering import render

PAGE_TYPE: Final = "text/html; charset=utf-8"
FILTERS: Final = frozenset(row.name for row in FEED_PARAMS) | {"near"}
PLACE: Final = ("geoloc_lat", "geoloc_lng")
CIRCLE: Final = ("near", *PLACE, "geoloc_radius")
HOMES: Final = ("/", "/events/")


@dataclass(frozen=True, slots=True)
class Frame:
    """What the views of one visit share."""

    visit: Visit
    call: Call
    speech: Speech
    links: Addresses

    @property
    def site(self) -> Site:
        return self.call.transaction.site

    @property
    def filters(self) -> Filters:
        return self.visit.filters

    @property
    def today(self) -> date:
        return times.local_of(self.call.transaction.now, self.site.timezone).date()

    @property
    def midnight(self) -> datetime:
        """When the site's today ends: until then a page is right unless something changes."""
        day = DateTimeInput(times.local_of(self.call.transaction.now, self.site.timezone), None, True)
        return times.day_ends(day, self.site.timezone) + SECOND

    def card(self, record: Represented) -> Card:
        return make_card(record, self.speech, self.links, self.site.timezone)


def make_frame(visit: Visit, call: Call, *, dated: bool = True) -> Frame:
    """`dated`: the dates among the filters count; a view of its own time drops them."""
    site = call.transaction.site
    speech = make_speech(visit.language, site.language, translator(visit.language))
    filters = [
        (name, value)
        for name, value in visit.query
        if value and plain_name(name) in FILTERS and (dated or plain_name(name) not in calendar.DATES)
    ]
    if "near" in dict(filters):
        filters = [pair for pair in filters if pair[0] not in PLACE]
    links = Addresses(
        call.base_url,
        tuple(filters),
        tuple(_last(visit.filters, filters)),
        language=visit.language if visit.asked_language else "",
        embedded=visit.embedded,
    )
    return Frame(visit, call, speech, links)


def _last(settled: Filters, filters: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The same filters by IDs and coordinates, which stay when a slug or a name changes: for what people keep."""
    for name, value in filters:
        if name == "near":
            if settled.place:
                yield from zip(PLACE, (f"{degrees:.5f}" for degrees in settled.place), strict=True)
            continue
        found = settled.named.get(plain_name(name), {})
        entries = [entry.strip() for entry in value.split(",")] if found else []
        ids = [found[key].id for entry in entries for key in (entry, as_number(entry)) if key in found]
        # What is not known may come back.
        yield name, ",".join(map(str, ids)) if ids and len(ids) == len(entries) else value


def as_number(entry: str) -> int:
    return int(entry) if entry.isdecimal() and len(entry) < 20 else 0


def show_page(
    frame: Frame,
    template: str,
    *,
    keys: tuple[str, ...] = (),
    until: datetime | None = None,
    status: int = 200,
    kept: bool = True,
    pictures: tuple[str, ...] = (),
    browse: Sequence[tuple[str, str]] = (),
    **model: Any,
) -> Shown:
    visit, site = frame.visit, frame.site
    model = {
        "view": "",
        "shown_day": None,
        "canonical": "",
        "robots": "",
        "summary": "",
        "picture": None,
        "browse": browse,
        "unknown": frame.filters.unknown,
        "unknown_place": frame.filters.unknown_place,
        "searched": dict(frame.links.filters).get("search", ""),
        "tiles": visit.look.tiles_url,
        "tiles_host": urlsplit(visit.look.tiles_url).netloc.removeprefix("{s}."),
        "credit": visit.look.tiles_credit,
        "has_map": bool(visit.look.tiles_url),
        **model,
    }
    if visit.path in HOMES:
        # Which view it is and what it shows today may change; the address stays, and is what a crawler is to keep.
        model["canonical"], model["robots"] = frame.call.base_url + HOMES[-1], ""
    if frame.links.filters and not model["robots"]:
        model["robots"] = "noindex"
    if browse:
        keys = (*keys, f"s{site.id}-categories")
    body = render(template, speech=frame.speech, links=frame.links, site=site, embedded=visit.embedded, **model)
    headers = {
        "Content-Security-Policy": _policy(visit, (site.logo_url, *pictures)),
        "Referrer-Policy": "strict-origin-when-cross-origin",
    }
    until = min(until, frame.midnight) if until else frame.midnight
    return Shown(body, PAGE_TYPE, until, keys, status, headers, kept)


def _policy(visit: Visit, pictures: tuple[str, ...]) -> str:
    """Nothing inline, nothing from other hosts but pictures of the library and, once agreed to, of the map."""
    # Tile servers that share their work are named by {s}.
    origins = {origin_of(url) for url in (*pictures, visit.look.tiles_url.replace("{s}.", "*."))} - {""}
    sources = ["'self'", *sorted(origins)]
    ancestors = "*" if visit.embedded else "'self'"
    return (
        "default-src 'none'; style-src 'self'; script-src 'self'; form-action 'self'; base-uri 'none'; "
        f"img-src {' '.join(sources)}; "
        f"frame-ancestors {ancestors}"
    )


def with_values(call: Call, **more: Any) -> Call:
    return replace(call, values={**call.values, **more})


def moment_of(day: date) -> DateTimeInput:
    return DateTimeInput(datetime.combine(day, datetime.min.time()), None, True)
