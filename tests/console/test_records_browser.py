"""Records and the media library in Chromium: uploads, focus point, hostile texts, accessibility."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.api.running_app import User
from tests.conftest import replace_database, temporary_database
from tests.console.records_browser import Site, open_console, start_sessions
from tests.media.image_fixtures import make_image
from tests.pages.browser_page import find_violations
from tests.pages.payloads import BREAKOUT_PAYLOADS, TAG_PAYLOADS
from tests.servers import Server
from tests.soak import SOAK, some

EVENT = {"title": "Concert", "start_date": "2035-05-01 19:00:00", "end_date": "2035-05-01 21:00:00"}
# The strongest payloads: those that break out of attributes and elements, and one of each kind of tag.
HOSTILE = [*BREAKOUT_PAYLOADS[:7], *BREAKOUT_PAYLOADS[11:15], *TAG_PAYLOADS[:1], *TAG_PAYLOADS[7:10],
           TAG_PAYLOADS[13], TAG_PAYLOADS[26], TAG_PAYLOADS[33], TAG_PAYLOADS[42], TAG_PAYLOADS[53]]  # fmt: skip
FIELDS = {
    "venues": ("venue", ("address", "zip", "city", "country", "phone", "state", "province", "stateprovince",
                         "description")),
    "organizers": ("organizer", ("phone", "description")),
    "categories": ("name", ("description", "slug")),
    "tags": ("name", ("description", "slug")),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)  # before Chromium: while Playwright runs, no event loop can run
def site(
    postgres_url: str,
    user_template: tuple[str, dict[str, User]],
    start_server: Callable[..., Server],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Site]:
    template, users = user_template
    with temporary_database(postgres_url, template=template) as name:
        url = replace_database(postgres_url, name)
        tokens = start_sessions(url, users)
        media = tmp_path_factory.mktemp("media")
        server = start_server(url, environment={"KALENDS_MEDIA_DIR": str(media)})
        yield Site(server, tokens)
        server.stop()


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    directory = tmp_path_factory.mktemp("images")
    paths = [directory / f"image {number:02}.jpg" for number in range(20)]
    for number, path in enumerate(paths):
        path.write_bytes(make_image(width=320, height=240, seed=100 + number))
    return paths


def add_image(site: Site, seed: int, **fields: str) -> int:
    image = make_image(width=640, height=400, seed=seed)
    response = site.post("/console/media", fields, files={"file": (f"photo {seed}.jpg", image, "image/jpeg")})
    assert response.status_code == 303, response.text[:500]
    return int(re.search(r"/media/(\d+)", response.headers["location"])[1])  # type: ignore[index]


def test_twenty_uploads_request_alternative_texts(chromium: Browser, site: Site, images: list[Path]) -> None:
    with open_console(chromium, site, "author") as console:
        page = console.page
        page.goto("/console/media")
        page.set_input_files("#file", images)
        expect(page.locator(".upload[data-id]")).to_have_count(20, timeout=120_000)
        assert page.locator("[data-summary]").inner_text() == "20 of 20 pictures uploaded."
        for number in range(20):
            # The focus is in the field of an image without a text: of the first that was stored, then of the others.
            expect(page.locator(".upload[data-id]:not([data-saved]) input:focus")).to_have_count(1)
            page.keyboard.type(f"Described {number}")
            page.keyboard.press("Enter")
            expect(page.locator(".upload[data-saved]")).to_have_count(number + 1)
        page.goto("/console/media?search=described")
        assert page.locator(".media-grid li").count() == 20
        assert page.locator(".media-grid .badge").count() == 0


def test_rejected_file_shows_reason(chromium: Browser, site: Site, tmp_path: Path) -> None:
    (tmp_path / "text.jpg").write_text("no image")
    with open_console(chromium, site, "author") as console:
        console.page.goto("/console/media")
        console.page.set_input_files("#file", tmp_path / "text.jpg")
        expect(console.page.locator(".upload .field-error")).to_be_visible()
        # Chromium itself reports the status of the response.
        console.reports.clear()


def test_files_can_be_dropped(chromium: Browser, site: Site) -> None:
    with open_console(chromium, site, "author") as console:
        page = console.page
        page.goto("/console/media")
        page.evaluate(
            """(bytes) => {
                const transfer = new DataTransfer();
                transfer.items.add(new File([new Uint8Array(bytes)], "dropped.jpg", { type: "image/jpeg" }));
                document.querySelector(".drop-area").dispatchEvent(
                    new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
            }""",
            list(make_image(seed=300)),
        )
        expect(page.locator(".upload[data-id] input")).to_be_focused()


def test_focus_point_moves_by_keys_and_click(chromium: Browser, site: Site) -> None:
    image_id = add_image(site, 301)
    with open_console(chromium, site) as console:
        page = console.page
        page.goto(f"/console/media/{image_id}")
        page.locator(".focus-marker").focus()
        for key in ["ArrowRight"] * 3 + ["ArrowUp", "Shift+ArrowDown", "Shift+ArrowLeft"]:
            page.keyboard.press(key)
        assert (page.input_value("#focus_x"), page.input_value("#focus_y")) == ("0.43", "0.59")
        assert page.locator("#focus-place").inner_text() == "43 % from the left, 59 % from the top"
        position = "getComputedStyle(document.querySelector('.crop.is-wide')).objectPosition"
        assert page.evaluate(position) == "43% 59%"
        box = page.locator(".focus-image img").bounding_box()
        assert box is not None
        page.mouse.click(box["x"] + box["width"] * 0.25, box["y"] + box["height"] * 0.8)
        assert (page.input_value("#focus_x"), page.input_value("#focus_y")) == ("0.25", "0.8")
        page.fill("#alt_text", "Chosen")
        page.click("form .buttons button")
        expect(page.locator("main .notice")).to_be_visible()
        assert (page.input_value("#focus_x"), page.input_value("#alt_text")) == ("0.25", "Chosen")


def test_image_is_found_in_form(chromium: Browser, site: Site) -> None:
    for seed in range(310, 323):
        add_image(site, seed, title="Needle" if seed == 310 else "Hay")
    with open_console(chromium, site) as console:
        page = console.page
        page.goto("/console/venues/new")
        page.click("summary:has-text('Picture')")
        page.fill("#image-search", "needle")
        page.click(".image-choices label:has-text('Needle')")
        page.fill("#venue", "Hall with image")
        page.click(".save-bar button")
        expect(page.locator("main .notice")).to_be_visible()
        assert page.locator(".image-choices label:has(:checked) span").text_content() == "Needle"


# Hostile texts -------------------------------------------------------------------------------


def visit(page: Page, *paths: str) -> None:
    for path in paths:
        response = page.goto(path)
        assert response is not None
        assert response.status == 200, path


@pytest.mark.parametrize("kind", FIELDS)
def test_hostile_texts_of_records_run_no_script(chromium: Browser, site: Site, kind: str) -> None:
    name_field, others = FIELDS[kind]
    ids: list[int] = []
    for number in range(0, 20, 5):
        sample = HOSTILE[number : number + 5]
        fields = {name: " ".join(sample) for name in others} | {name_field: f"Zz{number} {' '.join(sample)}"[:195]}
        response = site.post(f"/console/{kind}/new", fields)
        assert response.status_code == 303, response.text[:3000]
        ids.append(int(re.search(r"/(\d+)\?", response.headers["location"])[1]))  # type: ignore[index]
    with open_console(chromium, site) as console:
        page = console.page
        visit(page, f"/console/{kind}", f"/console/{kind}/{ids[0]}/merge?search=zz")
        visit(page, *[f"/console/{kind}/{record_id}" for record_id in ids])
        visit(page, *[f"/console/{kind}/{ids[n]}/merge?into={ids[n + 1]}" for n in (0, 2)])
        if kind in ("categories", "tags"):
            visit(page, *[f"/console/{kind}/{record_id}/delete" for record_id in ids])
        # The rejected form shows everything again, as it was sent.
        page.goto(f"/console/{kind}/new")
        page.evaluate(
            """(texts) => {
                const form = document.querySelector("#record-form");
                const others = "[type=hidden], [type=radio], [type=checkbox]";
                const fields = form.querySelectorAll(`input:not(${others}), textarea`);
                fields.forEach((field, n) => { field.value = texts[n % texts.length]; });
                form.submit();
            }""",
            ["x" * 11_000, *HOSTILE],
        )
        page.wait_for_selector("[role=alert]")
        # Chromium itself reports the status of the response.
        console.reports[:] = [report for report in console.reports if "status of 400" not in report]


def test_hostile_texts_of_images_run_no_script(chromium: Browser, site: Site) -> None:
    ids = []
    for number in range(0, 20, 5):
        text = " ".join(HOSTILE[number : number + 5])
        ids.append(add_image(site, 400 + number, title=f"Zz {text}"[:490], alt_text=text, caption=text))
    site.create("events", **{**EVENT, "title": f"Zz {HOSTILE[0]} {HOSTILE[7]}"}, image=ids[0])
    with open_console(chromium, site) as console:
        visit(console.page, "/console/media?search=zz", "/console/venues/new")
        for image_id in ids:
            visit(console.page, f"/console/media/{image_id}", f"/console/media/{image_id}/delete")


# Accessibility -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def records(site: Site) -> dict[str, int]:
    category = site.create("categories", name="Music", description="Concerts, choirs and more")
    image = add_image(site, 500, title="Town hall", alt_text="The town hall at night")
    venue = site.create(
        "venues", venue="Town hall", address="Market 1", city="Linden", zip="12345", country="Germany", image=image
    )
    names = {
        "category": category,
        "child": site.create("categories", name="Jazz", parent=category),
        "tag": site.create("tags", name="Outdoors"),
        "image": image,
        "venue": venue,
        "other": site.create("venues", venue="Town hall (old)", city="Linden", phone="01234 5678"),
        "organizer": site.create("organizers", organizer="Choir", email="choir@example.org"),
        "draft": site.create("venues", venue="Barn", status="draft"),
    }
    site.create("events", **EVENT, venue=[venue], categories=[category], image=image)
    return names


PAGES = {
    "venues": "/console/venues",
    "venue": "/console/venues/{venue}",
    "new-venue": "/console/venues/new",
    "merge": "/console/venues/{other}/merge?search=hall",
    "merge-confirm": "/console/venues/{other}/merge?into={venue}",
    "organizer": "/console/organizers/{organizer}",
    "categories": "/console/categories",
    "category": "/console/categories/{child}",
    "category-delete": "/console/categories/{category}/delete",
    "tags": "/console/tags",
    "media": "/console/media",
    "image": "/console/media/{image}",
    "image-delete": "/console/media/{image}/delete",
}


# Pages with most kinds of components, which are checked in all combinations of width and colors.
MAIN_PAGES = ("venues", "venue", "merge-confirm", "media", "image")


@pytest.mark.skipif(not SOAK, reason="test_console_pages.py checks one variant of each page")
@pytest.mark.parametrize(("width", "scheme"), some([(320, "dark"), (1280, "light"), (320, "light"), (1280, "dark")]))
def test_pages_are_accessible(
    chromium: Browser, site: Site, records: dict[str, int], width: int, scheme: Any
) -> None:
    is_full = (width == 320) == (scheme == "dark")
    options = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme, "reduced_motion": "reduce"}
    with open_console(chromium, site, **options) as console:
        for name, path in PAGES.items():
            if is_full or name in MAIN_PAGES:
                check_accessibility(console.page, path.format(**records))


def check_accessibility(page: Page, path: str) -> None:
    visit(page, path)
    page.evaluate("document.querySelectorAll('details').forEach((element) => { element.open = true })")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
    assert find_violations(page) == [], path
