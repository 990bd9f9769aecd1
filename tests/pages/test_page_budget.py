"""However full a site is and however long its texts are, a page stays light."""

import re
from datetime import UTC, date, datetime, timedelta
from unittest.mock import patch
from urllib.parse import urlsplit

import pytest

from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp

MAX_PAGE_BYTES = 60_000  # bytes of a page, its style and its script together, uncompressed
# Three bytes a letter, and an address of nine a letter up to its greatest length.
LONG_TEXT = "市民合唱団と吹奏楽団による春の合同演奏会および地域の子どもたちの発表会のご案内"
FIRST_DAY = date(2031, 3, 1)
EVENTS_PER_DAY = 5


@pytest.fixture(scope="module")
def full(start_app_for_module: StartApp) -> RunningApp:
    """Every day has more than it can show, every text is as long as it may be."""
    app = start_app_for_module({"KALENDS_TILES_URL": "https://tiles.example/{z}/{x}/{y}.png"})
    app.set_site("timezone", "Asia/Tokyo")
    app.set_site("language", "ja")
    app.set_site("name", LONG_TEXT)
    app.sql(
        "INSERT INTO media (site_id, id, revision, url, extension, width, height, filesize, alt_text) "
        "SELECT id, 1000000, 0, $1, 'webp', 1200, 700, 100, $2 FROM sites",
        f"https://images.example/{'f0' * 40}.webp",
        LONG_TEXT,
    )
    editor = app.caller("editor")
    terms = {
        kind: [editor.create(kind, name=f"{LONG_TEXT}{n}")["id"] for n in range(60)]
        for kind in ("categories", "tags")
    }
    venues = [
        editor.create("venues", venue=f"{LONG_TEXT}{n}", city=f"{LONG_TEXT[:20]}{n}", address=LONG_TEXT,
                      geo_lat=35 + n / 100,
                      geo_lng=139, image=1000000)["id"] for n in range(60)
    ]  # fmt: skip
    organizers = [
        editor.create("organizers", organizer=f"{LONG_TEXT}{n}", email="a@b.example")["id"] for n in range(60)
    ]
    for n in range(42 * EVENTS_PER_DAY):
        day = FIRST_DAY + timedelta(days=n % 42 - 3)
        until = day + timedelta(days=3) if n < 42 * 2 else day
        editor.create(
            "events", title=f"{LONG_TEXT * 3}{n}", description=f"<p>{LONG_TEXT * 20}</p>", start_date=f"{day} 18:00",
            end_date=f"{until} 21:00", categories=[terms["categories"][n % 60]], tags=[terms["tags"][n % 60]],
            venue=venues[n % 60], organizer=organizers[n % 60], image=1000000, cost="12 - 18", show_map=True,
            featured=n % 7 == 0, event_status="moved_online" if n % 2 else "cancelled", status_reason=LONG_TEXT * 5,
            online_url=f"https://meet.example/{'a' * 200}",
        )  # fmt: skip
    return app


def get(app: RunningApp, path: str) -> bytes:
    place, _, query = path.partition("?")
    status, _, body = app.raw("GET", place, query=query.encode(), headers=[("accept", "text/html")])
    assert status == 200, body[:500]
    return body


@pytest.mark.quick("/events/", "/events/search/?per_page=50")
@pytest.mark.parametrize(
    "path",
    ["/events/", "/events/month/2031-03/", "/embed/events/month/2031-03/?lang=en", "/events/week/2031-03-12/",
     "/events/weekend/2031-03-12/", "/events/day/2031-03-12/", "/events/list/?per_page=50", "/events/map/",
     "/events/search/?per_page=50"],
)  # fmt: skip
def test_full_page_fits_size_budget(full: RunningApp, path: str) -> None:
    assert page_bytes(full, path) < MAX_PAGE_BYTES


@pytest.mark.quick("11")
@pytest.mark.parametrize("hour", [11, 20])
def test_full_front_page_fits_size_budget_and_keeps_its_first_pictures(full: RunningApp, hour: int) -> None:
    """In Tokyo, 11:00 UTC is the evening, and at 20:00 UTC the next day has begun."""
    with patch("kalends.asgi.utc_now", lambda: datetime(2031, 3, 5, hour, tzinfo=UTC)):
        assert page_bytes(full, "/") < MAX_PAGE_BYTES
        first = get(full, "/").decode().split('<section class="row">')[1]
    assert (first.count("<article"), first.count("<img ")) == (6, 6)


@pytest.mark.quick("events", "tags")
@pytest.mark.parametrize("kind", ["events", "venues", "organizers", "categories", "tags"])
def test_record_page_fits_size_budget(full: RunningApp, kind: str) -> None:
    window = {"start_date": "2031-01-01", "end_date": "2032-01-01"} if kind == "events" else {}
    record = full.caller().page(kind, per_page=1, **window)[kind][0]
    assert page_bytes(full, urlsplit(record["url"]).path) < MAX_PAGE_BYTES


def page_bytes(app: RunningApp, path: str) -> int:
    page = get(app, path)
    files = [
        f"/assets/{name.decode()}"
        for name in re.findall(rb'(?:stylesheet" href|<script src)="/assets/([^"]+)"', page)
    ]
    assert len(files) >= 2
    return len(page) + sum(len(get(app, file)) for file in files)
