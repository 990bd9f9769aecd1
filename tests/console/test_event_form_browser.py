"""The form of an event in Chromium, with and without script."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.api.running_app import API_PATH, User
from tests.conftest import replace_database, temporary_database
from tests.console.form_browser import Person, open_console, prepare_site
from tests.media.image_fixtures import make_image
from tests.pages.browser_page import find_violations
from tests.servers import Server

TILES = "https://tiles.example/{z}/{x}/{y}.png"


@pytest.fixture(scope="module")
def server(
    postgres_url: str,
    user_template: tuple[str, dict[str, User]],
    start_server: Callable[..., Server],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Server]:
    template, _ = user_template
    with temporary_database(postgres_url, template=template) as name:
        url = replace_database(postgres_url, name)
        prepare_site(url, timezone="Europe/Berlin", name="Lindenstadt")
        media = tmp_path_factory.mktemp("media")
        started = start_server(url, environment={"KALENDS_MEDIA_DIR": str(media), "KALENDS_TILES_URL": TILES})
        yield started
        started.stop()


@pytest.fixture(scope="module")
def api(server: Server, user_template: tuple[str, dict[str, User]]) -> Iterator[httpx.Client]:
    editor = user_template[1]["editor"]
    with httpx.Client(
        base_url=server.base_url + API_PATH, auth=(editor.login, editor.password), timeout=30
    ) as client:
        yield client


@pytest.fixture(scope="module")
def browser(server: Server, api: httpx.Client, chromium: Browser) -> Browser:
    """Return Chromium, started after everything that runs an event loop."""
    return chromium


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pictures") / "stage.jpg"
    path.write_bytes(make_image(width=640, height=400))
    return path


def create(api: httpx.Client, kind: str, **fields: Any) -> dict[str, Any]:
    response = api.post(f"/{kind}", json=fields)
    assert response.status_code == 201, response.text
    created: dict[str, Any] = response.json()
    return created


def make_event(api: httpx.Client, title: str, **fields: Any) -> dict[str, Any]:
    dates = {"start_date": "2031-03-04 19:00:00", "end_date": "2031-03-04 21:00:00"}
    return create(api, "events", title=title, **{**dates, **fields})


def test_newcomer_publishes_event_in_twelve_interactions(
    server: Server, browser: Browser, api: httpx.Client, picture: Path
) -> None:
    with open_console(browser, server, "author") as opened:
        page, person = opened.page, Person(opened.page)
        page.goto("/console/events/new")
        person.fill("#title", "Summer concert")
        person.fill("[name=start_day]", "2031-07-05")
        person.fill("[name=start_time]", "20:00")
        person.fill("#venue", "Old Mill")
        person.click('[role=option]:has-text("Create “Old Mill” here")')
        person.fill("#new_venue-address", "Mill Lane 2")
        person.fill("#new_venue-city", "Lindenstadt")
        person.choose_file("#file", picture)
        expect(page.locator("#picture-preview")).to_be_visible()
        person.fill("#image_alt", "A choir on a stage")
        person.fill("#description", "<p>Songs of the season.</p>")
        person.click(".form-actions [value=publish]")
        page.wait_for_url("**/console/events/*?notice=published")
        assert person.interactions <= 12
        record_id = page.url.partition("?")[0].rpartition("/")[2]
    event = api.get(f"/events/{record_id}").json()
    assert (event["status"], event["start_date"], event["end_date"]) == (
        "publish",
        "2031-07-05 20:00:00",
        "2031-07-05 22:00:00",
    )
    assert (event["venue"]["venue"], event["venue"]["city"]) == ("Old Mill", "Lindenstadt")
    assert event["image"]["alt_text"] == "A choir on a stage"
    assert event["description"] == "<p>Songs of the season.</p>"


def test_newcomer_publishes_event_without_script(
    server: Server, browser: Browser, api: httpx.Client, picture: Path
) -> None:
    with open_console(browser, server, "author", script=False) as opened:
        page, person = opened.page, Person(opened.page)
        page.goto("/console/events/new")
        person.fill("#title", "Winter concert")
        person.fill("[name=start_day]", "2031-12-05")
        person.fill("[name=end_time]", "22:15")
        person.click("#new-venue summary")
        person.fill("#new_venue-venue", "New Mill")
        person.fill("#new_venue-city", "Lindenstadt")
        person.choose_file("#file", picture)
        person.fill("#image_alt", "Snow")
        person.fill("#description", "<p>Carols.</p>")
        person.click(".form-actions [value=publish]")
        assert page.url.endswith("?notice=published"), page.inner_text("main")
        assert person.interactions <= 12
        record_id = page.url.partition("?")[0].rpartition("/")[2]
    event = api.get(f"/events/{record_id}").json()
    assert (event["start_date"], event["end_date"]) == ("2031-12-05 19:00:00", "2031-12-05 22:15:00")
    assert (event["venue"]["venue"], event["image"]["alt_text"]) == ("New Mill", "Snow")


@pytest.mark.parametrize("script", [True, False])
def test_copy_is_moved_by_a_week_in_six_interactions(
    server: Server, browser: Browser, api: httpx.Client, script: bool
) -> None:
    event = make_event(api, f"Weekly market {script}", featured=True)
    with open_console(browser, server, script=script) as opened:
        page, person = opened.page, Person(opened.page)
        page.goto(f"/console/events/{event['id']}")
        person.click("text=Copy to next week")
        person.click(".form-actions [value=publish]")
        page.wait_for_url("**/console/events/*?notice=published")
        assert person.interactions <= 6
        copy_id = page.url.partition("?")[0].rpartition("/")[2]
    copy = api.get(f"/events/{copy_id}").json()
    assert (copy["title"], copy["start_date"], copy["featured"]) == (event["title"], "2031-03-11 19:00:00", True)
    assert copy["slug"] != event["slug"]


@pytest.mark.parametrize("width", [320, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_form_is_accessible_and_small(
    server: Server, browser: Browser, api: httpx.Client, width: int, scheme: str
) -> None:
    event = make_event(api, f"Fair {width} {scheme}", description="<p>Rides</p>", cost="5", organizer=[])
    options: dict[str, Any] = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    with open_console(browser, server, **options) as opened:
        page, sizes = opened.page, opened.measure_bytes()
        page.goto(f"/console/events/{event['id']}", wait_until="load")
        own = {name: size for name, size in sizes.items() if name != "other"}
        assert sum(own.values()) < 60_000, own
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert find_violations(page) == []
        page.evaluate("for (const group of document.querySelectorAll('details')) group.open = true")
        assert find_violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
