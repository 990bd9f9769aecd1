"""However full a site is and however long its texts are, a page stays light."""

import re
from datetime import date, timedelta
from urllib.parse import urlsplit

import pytest

from tests.api.conftest import Start
from tests.api.running_app import Interface

MOST = 60_000  # bytes of a page, its style and its script together, uncompressed
# Three bytes a letter, and an address of nine a letter up to its greatest length.
WORDS = "市民合唱団と吹奏楽団による春の合同演奏会および地域の子どもたちの発表会のご案内"
FIRST = date(2031, 3, 1)
IN_A_DAY = 5


@pytest.fixture(scope="module")
def full(fresh_for_module: Start) -> Interface:
    """Every day has more than it can show, every text is as long as it may be."""
    interface = fresh_for_module({"KALENDS_TILES_URL": "https://tiles.example/{z}/{x}/{y}.png"})
    interface.set_site("timezone", "Asia/Tokyo")
    interface.set_site("language", "ja")
    interface.set_site("name", WORDS)
    interface.sql(
        "INSERT INTO media (site_id, id, revision, url, extension, width, height, filesize, alt_text) "
        "SELECT id, 1000000, 0, $1, 'webp', 1200, 700, 100, $2 FROM sites",
        f"https://images.example/{'f0' * 40}.webp",
        WORDS,
    )
    editor = interface.caller("editor")
    terms = {
        kind: [editor.create(kind, name=f"{WORDS}{n}")["id"] for n in range(60)] for kind in ("categories", "tags")
    }
    venues = [
        editor.create("venues", venue=f"{WORDS}{n}", city=f"{WORDS[:20]}{n}", address=WORDS, geo_lat=35 + n / 100,
                      geo_lng=139, image=1000000)["id"] for n in range(60)
    ]  # fmt: skip
    organizers = [editor.create("organizers", organizer=f"{WORDS}{n}", email="a@b.example")["id"] for n in range(60)]
    for n in range(42 * IN_A_DAY):
        day = FIRST + timedelta(days=n % 42 - 3)
        until = day + timedelta(days=3) if n < 42 * 2 else day
        editor.create(
            "events", title=f"{WORDS * 3}{n}", description=f"<p>{WORDS * 20}</p>", start_date=f"{day} 18:00",
            end_date=f"{until} 21:00", categories=[terms["categories"][n % 60]], tags=[terms["tags"][n % 60]],
            venue=venues[n % 60], organizer=organizers[n % 60], image=1000000, cost="12 - 18", show_map=True,
        )  # fmt: skip
    return interface


def get(interface: Interface, path: str) -> bytes:
    place, _, query = path.partition("?")
    status, _, body = interface.raw("GET", place, query=query.encode(), headers=[("accept", "text/html")])
    assert status == 200, body[:500]
    return body


@pytest.mark.parametrize(
    "path",
    ["/events/month/2031-03/", "/embed/events/month/2031-03/?lang=en", "/events/week/2031-03-12/",
     "/events/day/2031-03-12/", "/events/list/?per_page=50", "/events/map/", "/events/search/?per_page=50"],
)  # fmt: skip
def test_full_page_fits_size_budget(full: Interface, path: str) -> None:
    assert weigh(full, path) < MOST


@pytest.mark.parametrize("kind", ["events", "venues", "organizers", "categories", "tags"])
def test_record_page_fits_size_budget(full: Interface, kind: str) -> None:
    asked = {"start_date": "2031-01-01", "end_date": "2032-01-01"} if kind == "events" else {}
    found = full.caller().page(kind, per_page=1, **asked)[kind][0]
    assert weigh(full, urlsplit(found["url"]).path) < MOST


def weigh(interface: Interface, path: str) -> int:
    page = get(interface, path)
    files = [
        f"/assets/{name.decode()}"
        for name in re.findall(rb'(?:stylesheet" href|<script src)="/assets/([^"]+)"', page)
    ]
    assert len(files) == 2
    return len(page) + sum(len(get(interface, file)) for file in files)
