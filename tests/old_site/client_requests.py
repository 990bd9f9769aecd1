"""77 requests of existing clients, and the responses that they get."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

API = "/wp-json/tribe/events/v1"
CORE = "/wp-json/wp/v2"
JSON, HTML = "application/json", "text/html"
CALENDAR, RSS = "text/calendar", "application/rss+xml"
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360f8cfc0f01f00050001ff56c72f0d0000000049454e44ae426082"
)
TIMES = {"start_date": "2031-12-06 10:00:00", "end_date": "2031-12-06 12:00:00"}
PREFLIGHT = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
ALLOWED, ASKED = "access-control-allow-headers", "Access-Control-Request-Headers"


@dataclass(frozen=True)
class ClientRequest:
    """A request and its response. `{event}` is the ID of an event."""

    path: str
    status: int = 200
    media_type: str = JSON
    location: str = ""
    method: str = "GET"
    role: str = "anonymous"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: Mapping[str, Any] = field(default_factory=dict[str, Any])  # arguments of the HTTP library
    response_headers: Mapping[str, str] = field(default_factory=dict[str, str])  # texts that they contain

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}{' as ' + self.role if self.role != 'anonymous' else ''}"


def _page(path: str) -> ClientRequest:
    return ClientRequest(path, 200, HTML)


def _calendar(path: str) -> ClientRequest:
    return ClientRequest(path, 200, CALENDAR)


def _moved(path: str, location: str) -> ClientRequest:
    return ClientRequest(path, 301, "", location)


LISTS = (
    ClientRequest(f"{API}/events"),
    ClientRequest(f"{API}/events/"),
    ClientRequest(f"{API}/events?per_page=1"),
    ClientRequest(f"{API}/events?per_page=1&page=2"),
    ClientRequest(f"{API}/events?per_page=1&page=3"),
    ClientRequest(f"{API}/events?per_page=1&page=99", 404),
    ClientRequest(f"{API}/events?per_page=50&page=4", 404),
    ClientRequest(f"{API}/events?per_page=100"),
    ClientRequest(f"{API}/events?per_page=999"),
    ClientRequest(f"{API}/events?status=publish"),
    ClientRequest(f"{API}/events?_locale=user"),
    ClientRequest(f"{API}/events?_=1794725909"),
    ClientRequest(f"{API}/venues"),
    ClientRequest(f"{API}/organizers"),
    ClientRequest(f"{API}/categories"),
    ClientRequest(f"{API}/tags"),
    ClientRequest(f"{API}/events/{{event}}"),
    ClientRequest(f"{API}/events/by-slug/concert"),
    ClientRequest(f"{API}/events/999999", 404),
)
CREDENTIALS_AND_BODIES = (
    ClientRequest(f"{API}/events", headers={"Authorization": "Bearer eyJhbGciOiJub25lIn0"}),
    ClientRequest(f"{API}/events", headers={"X-WP-Nonce": "0123456789"}),
    ClientRequest(f"{API}/events?status=draft", role="editor with spaces"),
    ClientRequest(f"{API}/events", 201, method="POST", role="editor", body={"json": {"title": "JSON", **TIMES}}),
    ClientRequest(f"{API}/events", 201, method="POST", role="editor", body={"data": {"title": "Form", **TIMES}}),
    ClientRequest(f"{API}/events/{{event}}", method="POST", role="editor", body={"json": {"featured": True}},
                  headers={"X-HTTP-Method-Override": "PATCH"}),
    ClientRequest(f"{API}/events", method="OPTIONS", headers={**PREFLIGHT, ASKED: "authorization"},
                  response_headers={ALLOWED: "Authorization"}),
    ClientRequest(f"{API}/events", method="OPTIONS", headers={**PREFLIGHT, ASKED: "x-wp-nonce"},
                  response_headers={ALLOWED: "X-WP-Nonce"}),
)  # fmt: skip
DATES = (
    ClientRequest(f"{API}/events?start_date=now&per_page=50"),
    ClientRequest(f"{API}/events?start_date=today"),
    ClientRequest(f"{API}/events?start_date=2026/11/15T11:30"),
)
OTHER_PATHS = (
    ClientRequest("/?rest_route=/tribe/events/v1/events"),
    ClientRequest("/?rest_route=%2Ftribe%2Fevents%2Fv1%2Fevents"),
    ClientRequest("/index.php?rest_route=/tribe/events/v1/events"),
    ClientRequest("/index.php/wp-json/tribe/events/v1/events"),
    ClientRequest("/wp-json/"),
    ClientRequest("/wp-json"),
)
CORE_ROUTES = (
    ClientRequest(f"{CORE}/users/me", 401),
    ClientRequest(f"{CORE}/users/me?context=edit", role="administrator"),
    ClientRequest(f"{CORE}/users", 401),
    ClientRequest(f"{CORE}/tribe_events"),
    ClientRequest(f"{CORE}/tribe_events_cat"),
    ClientRequest(f"{CORE}/tags"),
    ClientRequest(f"{CORE}/tribe_venue"),
    ClientRequest(f"{CORE}/media"),
    ClientRequest(f"{CORE}/types"),
    ClientRequest(f"{CORE}/settings", 401),
    ClientRequest(f"{CORE}/media", 201, method="POST", role="editor", body={"content": PNG},
                  headers={"Content-Type": "image/png", "Content-Disposition": 'attachment; filename="a.png"'}),
    ClientRequest(f"{CORE}/media", 201, method="POST", role="editor",
                  body={"files": {"file": ("a.png", PNG, "image/png")}}),
)  # fmt: skip
CALENDARS = (
    _calendar("/events/?ical=1"),
    _calendar("/events/list/?ical=1"),
    _calendar("/?ical=1"),
    _calendar("/?post_type=tribe_events&ical=1&eventDisplay=list"),
    _calendar("/events/month/2031-12/?ical=1"),
    _calendar("/events/category/music/loud/?ical=1"),
    _calendar("/events/?ical=1&tribe_events_cat=music"),
    _calendar("/events/tag/winter/?ical=1"),
    _calendar("/event/concert/?ical=1"),
)
PAGES = (
    _page("/event/concert/"),
    _page("/venue/hall/"),
    _page("/organizer/club/"),
    _page("/events/category/music/loud/"),
    _page("/tag/winter/"),
    _page("/events/month/2031-12/"),
    _moved("/event/concert", "/event/concert/"),
    ClientRequest("/", media_type=HTML,
                  response_headers={"x-tec-api-root": "http://calendar.test/wp-json/tribe/events/v1/"}),
)  # fmt: skip
OLD_ADDRESSES = (
    _moved("/events/feed/", "/events.rss"),
    _moved("/feed/?post_type=tribe_events", "/events.rss"),
    _moved("/events/category/music/feed/", "/events.rss?categories={category}"),
    _moved("/events/2031-12/", "/events/month/2031-12/"),
    _moved("/events/2031-12-05/", "/events/day/2031-12-05/"),
    _moved("/events/today/", "/events/day/"),
    _moved("/events/list/page/2/?per_page=1", "/events/list/?per_page=1&page=2"),
    _moved("/events/tag/winter/", "/tag/winter/"),
    _moved("/events/?tribe-bar-date=2031-12-05", "/events/list/?start_date=2031-12-05"),
    _moved("/events/list/?eventDisplay=past", "/events/list/?past=1"),
    _moved("/?p={event}", "/event/concert/"),
    _moved("/?tribe_events=concert", "/event/concert/"),
)
REQUESTS = (
    *LISTS, *CREDENTIALS_AND_BODIES, *DATES, *OTHER_PATHS, *CORE_ROUTES, *CALENDARS, *PAGES, *OLD_ADDRESSES
)  # fmt: skip
# Responses that differ from those of The Events Calendar; docs/compatibility.md lists them.
DECISIONS = (
    _page("/events/day/2031-12-05/"),
    ClientRequest("/sitemap.xml", media_type="application/xml"),
    _moved("/?p={venue}", "/venue/hall/"),
    _moved("/events/category/loud/", "http://calendar.test/events/category/music/loud/"),
    ClientRequest("/wp-json/tec/v1/events", 404),
    ClientRequest("/wp-json/tribe/views/v2/html", 404),
    ClientRequest("/event/concert/feed/", 404),
    ClientRequest("/xmlrpc.php", 404),
    ClientRequest("/author/admin/", 404),
    ClientRequest("/events/summary/", 404),
    ClientRequest("/event/concert/embed/", 301, "", "/embed/event/concert/"),
)
