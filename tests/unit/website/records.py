"""Typed records and a locale for tests of pages and feeds that need no database."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from kalends.calendar.rules.record_types import Event, Image, Organizer, Term, Venue
from kalends.core.times import utc_of
from kalends.rendering.page_locale import PageLocale, make_page_locale

WRITTEN = datetime(2031, 1, 2, 3, 4, 5, tzinfo=UTC)
POST: dict[str, Any] = {
    "author": 1,
    "status": "publish",
    "date_utc": WRITTEN,
    "modified_utc": WRITTEN,
    "description": "",
    "image": None,
}
IMAGE = Image(
    id=9,
    url="https://x.example/1600.jpg",
    extension="jpg",
    width=1600,
    height=900,
    filesize=1,
    alt_text="A boat",
    caption="By <em>Ada</em>",
    focus_x=0.24,
    focus_y=0.9,
    sizes={},
)
HALL = Venue(
    **POST,
    id=2,
    slug="hall",
    url="https://x.example/venue/hall/",
    name="The &amp; Hall",
    address="Am Markt 1",
    city="Lindenstadt",
    country="Germany",
    province="",
    state="",
    zip="12345",
    phone="",
    stateprovince="",
    website="",
    latitude=52.5186,
    longitude=13.4081,
    show_map=True,
    show_map_link=True,
)
CLUB = Organizer(
    **POST,
    id=3,
    slug="club",
    url="https://x.example/organizer/club/",
    name="Club",
    phone="1",
    website="",
    email="a@example.org",
)
MUSIC = Term(
    id=4, name="Music, loud", slug="music", description="", count=1, url="https://x.example/events/category/music/"
)
EVENT = Event(
    **POST,
    id=1,
    slug="tea",
    url="https://x.example/event/tea/",
    uid="01900000-0000-7000-8000-000000000000",
    title="Tea &amp; <em>talk</em>",
    excerpt="",
    timezone="Europe/Berlin",
    all_day=False,
    start_local=datetime(2031, 3, 14, 19, 30),
    end_local=datetime(2031, 3, 14, 22, 0),
    start_utc=datetime(2031, 3, 14, 18, 30, tzinfo=UTC),
    end_utc=datetime(2031, 3, 14, 21, 0, tzinfo=UTC),
    cost="",
    cost_details={"currency_symbol": "", "currency_code": "", "currency_position": "", "values": []},
    website="",
    ticket_url="",
    show_map=False,
    show_map_link=False,
    hide_from_listings=False,
    sticky=False,
    featured=False,
    categories=(),
    tags=(),
    venues=(),
    organizers=(),
)


def at(start: str, end: str, zone: str = "Europe/Berlin", **changes: Any) -> Event:
    """Return the event at other wall times."""
    start_local, end_local = datetime.fromisoformat(start), datetime.fromisoformat(end)
    return replace(
        EVENT,
        timezone=zone,
        start_local=start_local,
        end_local=end_local,
        start_utc=utc_of(start_local, zone),
        end_utc=utc_of(end_local, zone),
        **changes,
    )


def locale(language: str = "en", site_language: str = "") -> PageLocale:
    return make_page_locale(language, site_language or language, lambda text: text)
