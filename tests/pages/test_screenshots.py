"""`just screenshots --all`: pictures, contact sheet, and the faults that end it with an error."""

from functools import partial
from pathlib import Path
from urllib.parse import urljoin

from PIL import Image
from playwright.sync_api import Browser

from tests.pages.demo_calendar import DemoCalendar
from tools.page_pictures import PublicPage, take_pictures

FAULTY = """<!doctype html><meta name="viewport" content="width=device-width"><body style="margin: 0">
<p style="width: 100px; overflow: hidden; white-space: nowrap">A title that ends without a mark</p>
<p style="width: 100px; overflow: hidden; white-space: nowrap; text-overflow: ellipsis">A title that ends with one</p>
<p style="width: 100px; overflow: auto; white-space: nowrap">A title that can be scrolled into view</p>
<p style="width: 1px; overflow: hidden; white-space: nowrap">A title for screen readers</p>
<script>console.error("lost")</script>"""


def test_pictures_and_contact_sheet_are_written(
    demo_calendar: DemoCalendar, chromium: Browser, tmp_path: Path
) -> None:
    pages = [
        PublicPage("month", "/events/month/2031-03/", ("en", "de")),
        PublicPage("not-found", "/nowhere/", status=404),
    ]
    find_url = partial(urljoin, demo_calendar.server.base_url)
    assert take_pictures(chromium, tmp_path, pages, find_url, widths=(390,)) == []
    names = [f"{row}-390-{theme}.png" for row in ("month", "month-de", "not-found") for theme in ("light", "dark")]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names, "index.html"])
    sheet = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert [name for name in names if f'src="{name}"' in sheet] == names
    with Image.open(tmp_path / "month-390-light.png") as light, Image.open(tmp_path / "month-390-dark.png") as dark:
        assert light.width == dark.width == 390
        assert sum(light.convert("L").histogram()[200:]) > sum(dark.convert("L").histogram()[200:])


def test_faults_name_page_and_width(demo_calendar: DemoCalendar, chromium: Browser, tmp_path: Path) -> None:
    faulty, wide = tmp_path / "faulty.html", tmp_path / "wide.html"
    faulty.write_text(FAULTY, encoding="utf-8")
    wide.write_text("<body style='margin: 0'><div style='width: 800px'>Wide", encoding="utf-8")
    pages = [
        PublicPage("faulty", faulty.as_uri()),
        PublicPage("gone", f"{demo_calendar.server.base_url}/nowhere/"),
        PublicPage("wide", wide.as_uri()),
    ]
    found = take_pictures(chromium, tmp_path / "pictures", pages, lambda path: path, widths=(768,))
    logged = "Failed to load resource: the server responded with a status of 404 (Not Found)"
    assert found == [
        "faulty at 768 px: logs an error: lost",
        "faulty at 768 px: clips “A title that ends without a mark” in p",
        f"gone at 768 px: logs an error: {logged}",
        "gone at 768 px: responds with 404",
        "wide at 768 px: scrolls sideways by 32 px",
    ]
