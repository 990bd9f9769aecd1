"""The fonts of the pages: vendored unchanged, from the site's own host, and only where a page uses them."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from kalends.website.assets import FONT_RANGES, STATIC, WEB_FONTS
from tests.api.running_app import RunningApp
from tests.pages.browser_page import open_browser_page
from tests.pages.demo_calendar import DemoCalendar

NODE_MODULES = Path(__file__).resolve().parent.parent / "node" / "node_modules"
FAMILIES = [family.lower() for family in WEB_FONTS["serif"]]
MAX_FONT_BYTES = 60_000


@pytest.fixture
def font_packages() -> Path:
    packages = NODE_MODULES / "@fontsource-variable"
    assert packages.exists(), "run `just setup-node`"
    return packages


@pytest.mark.parametrize("family", FAMILIES)
def test_committed_fonts_are_those_of_the_packages(font_packages: Path, family: str) -> None:
    package = font_packages / family
    for subset in FONT_RANGES:
        name = f"{family}-{subset}-wght-normal.woff2"
        assert (STATIC / name).read_bytes() == (package / "files" / name).read_bytes(), name
    assert (STATIC / f"{family}.LICENSE").read_bytes() == (package / "LICENSE").read_bytes()
    ranges = json.loads((package / "unicode.json").read_text())
    for subset, letters in FONT_RANGES.items():
        assert letters == re.sub(r"(?<![0-9A-F])0+(?=[0-9A-F])", "", ranges[subset])


@pytest.mark.parametrize(
    ("fonts", "language", "families"),
    [
        ("serif", "de", ["figtree", "fraunces"]),
        ("sans", "de", ["figtree"]),
        ("serif", "ja", []),
        ("classic", "de", []),
    ],
)
def test_page_preloads_the_fonts_that_it_uses(
    app: RunningApp, fonts: str, language: str, families: list[str]
) -> None:
    app.set_site("fonts", fonts)
    response = app.caller().get(f"//events/month/?lang={language}", headers={"Accept": "text/html"})
    assert "; font-src 'self'; " in response.headers["Content-Security-Policy"]
    preloads = re.findall(
        r'<link rel="preload" href="([^"]+)" as="font" type="font/woff2" crossorigin>', response.text
    )
    assert [path.split("/")[-1].split("-")[0] for path in preloads] == families
    for path in preloads:
        font = app.caller().get(f"/{path}", headers={"Accept-Encoding": "gzip"})
        assert (font.headers["Content-Type"], font.content[:4]) == ("font/woff2", b"wOF2")
        assert "Content-Encoding" not in font.headers
        assert "immutable" in font.headers["Cache-Control"]


def test_pages_show_web_fonts_of_few_bytes(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, viewport={"width": 1280, "height": 900}) as browser:
        page, sizes = browser.page, dict[str, int]()
        page.on(
            "response",
            lambda found: (
                sizes.update({found.url: len(found.body())}) if found.request.resource_type == "font" else None
            ),
        )
        page.goto(f"{demo_calendar.server.base_url}/events/week/2031-08-13/?lang=de", wait_until="networkidle")
        assert len(sizes) == 2
        assert sum(sizes.values()) <= MAX_FONT_BYTES
        used = "[...document.fonts].filter((font) => font.status === 'loaded').map((font) => font.family)"
        assert sorted(page.evaluate(used)) == ["Figtree", "Fraunces"]
        page.goto(f"{demo_calendar.server.base_url}/events/week/2031-08-13/?lang=ja", wait_until="networkidle")
        assert page.evaluate(used) == []
        assert browser.errors == []
