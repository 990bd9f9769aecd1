"""The addresses that a page links to: its views with their filters, feeds, and other people's calendars."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode

from kalends.core.html_text import to_plain_lines, to_plain_text
from kalends.core.slugs import normalize_lookup
from kalends.feeds.ics import format_address

VIEWS: Final = ("month", "week", "day", "list", "map")
# What a view keeps when it is left for another: the filters, not its place in time or in a list.
POSITION_PARAMS: Final = ("page", "per_page", "past", "lang", "cursor")
FEEDS: Final = ("ics", "rss", "atom", "json")
MAX_DETAILS: Final = 1000
FIRST_YEAR, LAST_YEAR = 1000, 9000


@dataclass(frozen=True, slots=True)
class UrlBuilder:
    """`filters` are the parameters of the list that the page shows."""

    base_url: str
    filters: tuple[tuple[str, str], ...] = ()
    stable_filters: tuple[tuple[str, str], ...] = ()  # the same, for what people keep: feeds and frames
    language: str = ""  # where another than the site's was asked for
    embedded: bool = False

    def url(self, path: str, *more: tuple[str, Any], filtered: bool = True) -> str:
        pairs = [*(self.filters if filtered else ()), *[(name, str(value)) for name, value in more]]
        pairs += [("lang", self.language)] if self.language else []
        prefix = "/embed" if self.embedded else ""
        return f"{prefix}{path}" + (f"?{urlencode(pairs)}" if pairs else "")

    def top_level(self, path: str) -> str:
        """A page of its own, also from within a frame."""
        return path + (f"?lang={quote(self.language)}" if self.language else "")

    def month(self, day: date) -> str:
        return self.url(f"/events/month/{day.isoformat()[:7]}/")

    def week(self, day: date) -> str:
        return self.url(f"/events/week/{day.isoformat()}/")

    def day(self, day: date) -> str:
        return self.url(f"/events/day/{day.isoformat()}/")

    def view(self, name: str, day: date | None = None) -> str:
        """A view at the day that the page shows."""
        if day is None or not has_page(day) or name in ("list", "map"):
            return self.url(f"/events/{name}/")
        return {"month": self.month, "week": self.week, "day": self.day}[name](day)

    def event(self, slug: str) -> str:
        return self.top_level(f"/event/{readable_slug(slug)}/")

    def feed(self, kind: str) -> str:
        return f"/events.{kind}" + (f"?{urlencode(self.stable_filters)}" if self.stable_filters else "")

    def absolute_feed_url(self, kind: str) -> str:
        return self.base_url + self.feed(kind)

    def with_filters(self, pairs: Iterable[tuple[str, str]]) -> "UrlBuilder":
        filters = tuple(pairs)
        return replace(self, filters=filters, stable_filters=filters)

    def embed_url(self, view: str) -> str:
        """A view of this list as another site keeps it."""
        return replace(self, embedded=False, filters=self.stable_filters).url(f"/events/{view}/")

    def subscriptions(self) -> dict[str, str]:
        """The feed for the calendars that people have."""
        url = self.absolute_feed_url("ics")
        webcal = "webcal://" + url.partition("://")[2]
        return {
            "ics": url,
            "webcal": webcal,
            "google": f"https://calendar.google.com/calendar/render?{urlencode({'cid': webcal})}",
            "outlook": f"https://outlook.live.com/calendar/0/addfromweb?{urlencode({'url': url})}",
        }


def has_page(day: date) -> bool:
    """Far days have no calendar around them."""
    return FIRST_YEAR <= day.year <= LAST_YEAR


def readable_slug(slug: str) -> str:
    """A slug in its own letters, which weigh a third of their escapes; browsers write these themselves."""
    decoded = unquote(slug)
    return decoded if normalize_lookup(decoded) == slug else slug


def make_calendar_links(record: dict[str, Any]) -> dict[str, str]:
    """One event for the calendars that people have. Times are instants, so that no zone can be misread."""
    title = to_plain_text(record["title"])
    venues = record["venue"] if isinstance(record["venue"], list) else [record["venue"]]
    location = "; ".join(map(format_address, venues))
    details = f"{to_plain_lines(record['excerpt'] or record['description'])[:MAX_DETAILS]}\n\n{record['url']}".strip()
    google = {
        "action": "TEMPLATE",
        "text": title,
        "dates": "/".join(_google_times(record)),
        "details": details,
        "location": location,
    }
    outlook = {
        "path": "/calendar/action/compose",
        "rru": "addevent",
        "subject": title,
        "body": details,
        "location": location,
        **_outlook_times(record),
    }
    return {
        "google": f"https://calendar.google.com/calendar/render?{urlencode(google)}",
        "outlook": f"https://outlook.live.com/calendar/0/action/compose?{urlencode(outlook)}",
        "ics": f"/event/{record['slug']}.ics",
    }


def _google_times(record: dict[str, Any]) -> tuple[str, str]:
    if record["all_day"]:
        first, last = date.fromisoformat(record["start_date"][:10]), date.fromisoformat(record["end_date"][:10])
        return f"{first:%Y%m%d}", f"{date.fromordinal(last.toordinal() + 1):%Y%m%d}"
    start, end = (datetime.fromisoformat(record[f"utc_{side}_date"]) for side in ("start", "end"))
    return f"{start:%Y%m%dT%H%M%SZ}", f"{end:%Y%m%dT%H%M%SZ}"


def _outlook_times(record: dict[str, Any]) -> dict[str, str]:
    if record["all_day"]:
        return {"startdt": record["start_date"][:10], "enddt": record["end_date"][:10], "allday": "true"}
    return {f"{side}dt": record[f"utc_{side}_date"].replace(" ", "T") + "Z" for side in ("start", "end")}
