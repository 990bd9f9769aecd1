"""An event of a web page in Chromium, with and without script: three interactions, nothing from the other site."""

import json
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Browser

from tests.api.running_app import API_PATH, User
from tests.conftest import replace_database, temporary_database
from tests.console.form_browser import Person, open_console, prepare_site
from tests.media.image_fixtures import make_image
from tests.media.image_source import ImageSource, serve_images
from tests.pages.browser_page import find_violations
from tests.servers import Server
from tests.unit.imports.test_web_page import with_event, with_json


@pytest.fixture(scope="module")
def source() -> Iterator[ImageSource]:
    with serve_images() as served:
        place = {"@type": "Place", "name": "Corn Exchange", "address": {"addressLocality": "Larkford"}}
        details = {"url": "", "image": "/poster.jpg", "location": place, "description": "<p>With brass.</p>"}
        served.files = {
            "/fair": with_event(name="Spring fair", **details),
            "/season": with_json(
                json.dumps([{"@type": "Event", "name": f"No. {n}", "startDate": f"2027-05-0{n}"} for n in (1, 2)])
            ),
            "/poster.jpg": make_image(),
        }
        served.headers = {"Content-Type": "text/html"}
        yield served


@pytest.fixture(scope="module")
def server(
    postgres_url: str,
    user_template: tuple[str, dict[str, User]],
    start_server: Callable[..., Server],
    source: ImageSource,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Server]:
    template, _ = user_template
    with temporary_database(postgres_url, template=template) as name:
        url = replace_database(postgres_url, name)
        prepare_site(url, timezone="Europe/London", name="Larkford")
        settings = {
            "KALENDS_MEDIA_DIR": str(tmp_path_factory.mktemp("media")),
            "KALENDS_FETCH_ALLOWED_NETWORKS": f"{source.host}:{source.port}",
        }
        started = start_server(url, environment=settings)
        yield started
        started.stop()


@pytest.fixture(scope="module")
def browser(server: Server, chromium: Browser) -> Browser:
    """Return Chromium, started after everything that runs an event loop."""
    return chromium


@pytest.mark.parametrize("has_script", [True, False], ids=["script", "no-script"])
def test_event_of_a_page_is_published_in_three_interactions(
    server: Server, browser: Browser, source: ImageSource, has_script: bool
) -> None:
    source.requests.clear()
    hosts: set[str] = set()
    with open_console(browser, server, script=has_script) as console:
        page = console.page
        page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
        page.goto("/console/events/new")
        person = Person(page)
        person.fill("#url", source.url("/fair"))
        person.click(".address-form button")
        page.wait_for_selector(".from-page")
        assert page.input_value("[name=title]") == "Spring fair"
        assert source.paths == ["/fair"]
        person.click("button[value=publish]")
        page.wait_for_url("**/console/events/*?notice=published")
        assert page.locator("#picture-preview").is_visible()
    assert person.interactions == 3
    assert hosts == {urlsplit(server.base_url).netloc}
    events = httpx.get(f"{server.base_url}{API_PATH}/events", params={"start_date": "2027-01-01"}).json()["events"]
    assert {(event["title"], event["venue"]["venue"], bool(event["image"])) for event in events} == {
        ("Spring fair", "Corn Exchange", True)
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible_on_phones(server: Server, browser: Browser, source: ImageSource, scheme: str) -> None:
    size = {"width": 390, "height": 844}
    with open_console(browser, server, viewport=size, color_scheme=scheme) as console:
        page = console.page
        for path, selector in (
            ("/fair", ".from-page"),
            ("/season", ".found-events"),
        ):
            page.goto("/console/events/from-url")
            page.fill("#url", source.url(path))
            page.press("#url", "Enter")
            page.wait_for_selector(selector)
            assert find_violations(page) == []
            assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
