"""URLs in pages: views with their filters, feeds, and links to calendar services."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode

from kalends.calendar.kinds.event_shortcuts import HIDE_SUBSEQUENT
from kalends.calendar.rules.record_types import Event
from kalends.core.html_text import to_plain_lines, to_plain_text
from kalends.core.slugs import normalize_lookup
from kalends.core.times import format_datetime
from kalends.feeds.ics import format_location

EMBED: Final = "/embed"  # prefix of the pages that other websites may frame
EMBEDDING: Final = "/events/embed/"
DISPLAY: Final = "/display/"
VIEWS: Final = ("month", "week", "day", "list", "map")
FEEDS: Final = ("ics", "rss", "atom", "json")
MAX_DETAILS: Final = 500
THEMES: Final = ("auto", "light", "dark")
FIRST_YEAR, LAST_YEAR = 1000, 9000


@dataclass(frozen=True, slots=True)
class Frame:
    """How a page appears in a frame of another website: the parameters that only `/embed/` has."""

    limit: int = 0  # maximum number of events of a list; 0 if it has pages
    tabs: bool = False
    theme: str = THEMES[0]

    @property
    def pairs(self) -> list[tuple[str, Any]]:
        """Return the parameters that differ from the defaults."""
        chosen = {"limit": self.limit, "tabs": int(self.tabs), "theme": "" if self.theme == THEMES[0] else self.theme}
        return [(name, value) for name, value in chosen.items() if value]


@dataclass(frozen=True, slots=True)
class UrlBuilder:
    """Builds a page's URLs. `filters` are the parameters of the list on the page."""

    base_url: str
    filters: tuple[tuple[str, str], ...] = ()
    stable_filters: tuple[tuple[str, str], ...] = ()  # the same filters by ID, for feeds and embedded views
    language: str = ""  # the requested language; empty for the site's language
    frame: Frame | None = None

    def url(self, path: str, *more: tuple[str, Any], filtered: bool = True) -> str:
        pairs = [*(self.filters if filtered else ()), *[(name, str(value)) for name, value in more]]
        pairs += [("lang", self.language)] if self.language else []
        pairs += self.frame.pairs if self.frame else []
        prefix = EMBED if self.frame else ""
        return f"{prefix}{path}" + (f"?{urlencode(pairs)}" if pairs else "")

    def top_level(self, path: str) -> str:
        """Return the URL for opening a page outside any frame."""
        return path + (f"?lang={quote(self.language)}" if self.language else "")

    def month(self, day: date) -> str:
        return self.url(f"/events/month/{day.isoformat()[:7]}/")

    def week(self, day: date) -> str:
        return self.url(f"/events/week/{day.isoformat()}/")

    def day(self, day: date) -> str:
        return self.url(f"/events/day/{day.isoformat()}/")

    def view(self, name: str, day: date | None = None) -> str:
        if day is None or not has_page(day) or name in ("list", "map"):
            return self.url(f"/events/{name}/")
        return {"month": self.month, "week": self.week, "day": self.day}[name](day)

    def event(self, slug: str) -> str:
        return self.top_level(f"/event/{readable_slug(slug)}/")

    def feed(self, kind: str) -> str:
        """Return the path of a feed. Subscribers get all dates of series, even if the page hides some."""
        filters = [pair for pair in self.stable_filters if pair[0] != HIDE_SUBSEQUENT]
        return f"/events.{kind}" + (f"?{urlencode(filters)}" if filters else "")

    def follow(self) -> str:
        """Return the path of the form for getting this list by email."""
        return self._list_path("/follow/")

    def with_filters(self, pairs: Iterable[tuple[str, str]]) -> "UrlBuilder":
        filters = tuple(pairs)
        return replace(self, filters=filters, stable_filters=filters)

    def embed(self, view: str, frame: Frame) -> str:
        """Return the path of a view of this list in a frame."""
        return replace(self, frame=frame, filters=self.stable_filters).url(f"/events/{view}/")

    def embedding(self, view: str) -> str:
        """Return the path of the page with the code that embeds a view of this list."""
        return replace(self, frame=None, filters=self.stable_filters).url(EMBEDDING, ("view", view))

    def display(self) -> str:
        """Return the path of the hall display with the events of this list."""
        return self._list_path(DISPLAY)

    def _list_path(self, path: str) -> str:
        pairs = [*self.stable_filters, ("lang", self.language)] if self.language else self.stable_filters
        return path + (f"?{urlencode(pairs)}" if pairs else "")

    def subscriptions(self) -> dict[str, str]:
        url = self.base_url + self.feed("ics")
        webcal = "webcal://" + url.partition("://")[2]
        return {
            "ics": url,
            "webcal": webcal,
            "google": f"https://calendar.google.com/calendar/render?{urlencode({'cid': webcal})}",
            "outlook": f"https://outlook.live.com/calendar/0/addfromweb?{urlencode({'url': url})}",
        }


def has_page(day: date) -> bool:
    """Return whether a day has calendar pages; very early and very late years have none."""
    return FIRST_YEAR <= day.year <= LAST_YEAR


def readable_slug(slug: str) -> str:
    """Decode a slug's percent-escapes to make the page smaller. Browsers encode the slug again."""
    if "%" not in slug:
        return slug
    decoded = unquote(slug)
    return decoded if normalize_lookup(decoded) == slug else slug


def make_calendar_links(event: Event) -> dict[str, str]:
    """Return links that add an event to a calendar. Times are instants, so no service can misinterpret them."""
    title = to_plain_text(event.title)
    location = format_location(event)
    details = f"{to_plain_lines(event.excerpt or event.description)[:MAX_DETAILS]}\n\n{event.url}".strip()
    google = {
        "action": "TEMPLATE",
        "text": title,
        "dates": "/".join(_google_times(event)),
        "details": details,
        "location": location,
    }
    outlook = {
        "path": "/calendar/action/compose",
        "rru": "addevent",
        "subject": title,
        "body": details,
        "location": location,
        **_outlook_times(event),
    }
    return {
        "google": f"https://calendar.google.com/calendar/render?{urlencode(google)}",
        "outlook": f"https://outlook.live.com/calendar/0/action/compose?{urlencode(outlook)}",
        "ics": f"/event/{event.slug}.ics",
    }


def _google_times(event: Event) -> tuple[str, str]:
    if event.all_day:
        first, last = event.start_local.date(), event.end_local.date()
        return f"{first:%Y%m%d}", f"{date.fromordinal(last.toordinal() + 1):%Y%m%d}"
    return f"{event.start_utc:%Y%m%dT%H%M%SZ}", f"{event.end_utc:%Y%m%dT%H%M%SZ}"


def _outlook_times(event: Event) -> dict[str, str]:
    if event.all_day:
        first, last = event.start_local.date(), event.end_local.date()
        return {"startdt": first.isoformat(), "enddt": last.isoformat(), "allday": "true"}
    start, end = (format_datetime(utc).replace(" ", "T") + "Z" for utc in (event.start_utc, event.end_utc))
    return {"startdt": start, "enddt": end}
