"""The form of an event in Chromium, with and without script."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, Response, Route, expect

from kalends.core.messages import LANGUAGES
from tests.api.running_app import API_PATH, User
from tests.conftest import replace_database, temporary_database
from tests.console.form_browser import Person, open_console, prepare_site, show_picture
from tests.media.image_fixtures import make_image
from tests.pages.browser_page import find_violations
from tests.servers import Server
from tests.soak import some

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


def make_full_event(api: httpx.Client, title: str) -> dict[str, Any]:
    """Create an event with a picture, a venue on the map, an organizer, terms and a text."""
    upload = {"file": ("fair.jpg", make_image(seed=len(title)), "image/jpeg")}
    image = api.post(api.base_url.copy_with(path="/api/kalends/v1/media"), files=upload)
    assert image.status_code in (200, 201), image.text
    return make_event(
        api,
        title,
        image=image.json()["id"],
        venue={"venue": f"Fairground {title}", "city": "Ulm", "geo_lat": 48.4, "geo_lng": 10.0},
        organizer={"organizer": f"Showmen {title}"},
        categories=["Markets", "Families"],
        tags=["rides", "music"],
        description="<h2>Rides</h2><p>Every <strong>half hour</strong>.</p>",
        cost="5",
    )


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
        person.fill("[name='new_venue[address]']", "Mill Lane 2")
        person.fill("[name='new_venue[city]']", "Lindenstadt")
        show_picture(page)
        person.choose_file("#file", picture)
        expect(page.locator("#picture-preview")).to_be_visible()
        person.fill("#image_alt", "A choir on a stage")
        person.fill(".rich-text-content", "Songs of the season.")
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
        person.fill("[name='new_venue[venue]']", "New Mill")
        person.fill("[name='new_venue[city]']", "Lindenstadt")
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


def collect_files(page: Page) -> list[Response]:
    """Collect what a page needs from here on, except the bundle of the editor, pictures and frames."""
    files: list[Response] = []

    def collect(response: Response) -> None:
        is_part = response.request.resource_type in ("document", "stylesheet", "script")
        if is_part and not response.url.endswith("/rich-text.js") and response.frame == page.main_frame:
            files.append(response)

    page.on("response", collect)
    return files


def measure(files: list[Response]) -> dict[str, int]:
    """Return the uncompressed size of each file."""
    return {file.url.rpartition("/")[2]: len(file.body()) for file in files}


def measure_languages(page: Page) -> dict[str, int]:
    """Return the uncompressed size of the HTML of a page in each language."""
    pages = {name: page.request.get(page.url, headers={"Accept-Language": name}) for name in LANGUAGES}
    return {name: len(response.body()) for name, response in pages.items()}


@pytest.mark.parametrize(
    ("width", "scheme"), some([(320, "light"), (1280, "dark"), (320, "dark"), (1280, "light")], 2)
)
def test_form_is_accessible_and_small(
    server: Server, browser: Browser, api: httpx.Client, width: int, scheme: str
) -> None:
    event = make_full_event(api, f"Fair {width} {scheme}")
    options: dict[str, Any] = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    with open_console(browser, server, **options) as opened:
        page, files = opened.page, collect_files(opened.page)
        page.goto(f"/console/events/{event['id']}")
        page.locator(".rich-text-content").wait_for()
        sizes = measure(files)
        assert {"rich-text.css", "event-form.css", "event-dates.js", "combobox.js"} < sizes.keys()
        page_sizes = measure_languages(page)
        assert sum(sizes.values()) - sizes[str(event["id"])] + max(page_sizes.values()) < 60_000, (sizes, page_sizes)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert find_violations(page) == []
        page.evaluate("for (const group of document.querySelectorAll('details')) group.open = true")
        assert find_violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def paste(page: Page, selector: str, text: str) -> None:
    page.locator(selector).evaluate(
        """(input, text) => {
            const data = new DataTransfer();
            data.setData("text/plain", text);
            const options = { clipboardData: data, bubbles: true, cancelable: true };
            input.dispatchEvent(new ClipboardEvent("paste", options));
        }""",
        text,
    )


def test_end_follows_start_and_pasted_times_are_understood(server: Server, browser: Browser) -> None:
    with open_console(browser, server) as opened:
        page = opened.page
        page.goto("/console/events/new")
        page.fill("[name=start_day]", "2031-05-01")
        for text, start, end in (("23h", "23:00", "01:00"), ("7:30 pm", "19:30", "21:30")):
            paste(page, "[name=start_time]", text)
            expect(page.locator("[name=start_time]")).to_have_value(start)
            expect(page.locator("[name=end_time]")).to_have_value(end)
        paste(page, "[name=start_time]", "2031-06-02T10:15:00+02:00")
        expect(page.locator("[name=start_day]")).to_have_value("2031-06-02")
        expect(page.locator("[name=end_day]")).to_have_value("2031-06-02")
        expect(page.locator("[name=end_time]")).to_have_value("12:15")
        page.check("#all_day")
        expect(page.locator("[name=start_time]")).to_be_hidden()


def test_repeated_and_skipped_times_are_explained_at_once(
    server: Server, browser: Browser, api: httpx.Client
) -> None:
    with open_console(browser, server) as opened:
        page = opened.page
        page.goto("/console/events/new")
        page.fill("#title", "Night shift")
        page.fill("[name=start_day]", "2031-03-30")
        page.fill("[name=start_time]", "02:30")
        expect(page.locator("[data-moment=start] .time-problem")).to_contain_text("does not exist in Europe/Berlin")
        page.fill("[name=start_day]", "2031-10-26")
        page.select_option("[name=start_offset]", "+01:00")
        page.click(".form-actions [value=draft]")
        page.wait_for_url("**/console/events/*?notice=saved")
        record_id = page.url.partition("?")[0].rpartition("/")[2]
    assert api.get(f"/events/{record_id}").json()["utc_start_date"] == "2031-10-26 01:30:00"


def test_venue_is_chosen_by_keyboard_and_shown_on_a_map(server: Server, browser: Browser, api: httpx.Client) -> None:
    venue = create(api, "venues", venue="Riverside Stage", city="Ulm", geo_lat=48.4, geo_lng=10.0)
    with open_console(browser, server) as opened:
        page = opened.page
        page.goto("/console/events/new")
        page.focus("#venue")
        page.keyboard.type("Riverside")
        expect(page.locator("#venue")).to_have_attribute("aria-expanded", "true")
        page.keyboard.press("ArrowDown")
        expect(page.locator("[role=option][aria-selected=true]")).to_contain_text("Riverside Stage")
        page.keyboard.press("Enter")
        expect(page.locator("#venue")).to_have_value("Riverside Stage (Ulm)")
        expect(page.locator("#venue")).to_have_attribute("aria-expanded", "false")
        assert page.input_value("[name=venue_ref]") == f"{venue['id']}|Riverside Stage (Ulm)"
        expect(
            page.frame_locator("#venue-map").locator("text=The map loads images from tiles.example.")
        ).to_be_visible()
        page.fill("#title", "River music")
        page.fill("[name=start_day]", "2031-08-02")
        expect(page.locator("[data-check=missing]")).to_contain_text("a picture")
        page.keyboard.press("Escape")


def test_map_shows_the_chosen_venue(server: Server, browser: Browser, api: httpx.Client) -> None:
    first = create(api, "venues", venue="North Quay", geo_lat=53.5, geo_lng=10.0)
    create(api, "venues", venue="South Quay", geo_lat=48.1, geo_lng=11.5)
    create(api, "venues", venue="Unmapped Quay")
    event = make_event(api, "Harbour day", venue=first["id"])
    with open_console(browser, server) as opened:
        page, tiles = opened.page, list[str]()

        def serve_tile(route: Route) -> None:
            tiles.append(route.request.url)
            route.fulfill(body=make_image("PNG", 256, 256), content_type="image/png")

        page.context.route("https://tiles.example/**", serve_tile)
        page.goto(f"/console/events/{event['id']}")
        markers = page.frame_locator("#venue-map").locator(".map-marker")
        page.frame_locator("#venue-map").get_by_role("button", name="Show the map").click()
        expect(markers).to_have_attribute("aria-label", "North Quay")
        expect(markers).to_be_in_viewport()
        # The browser remembers the consent to load tiles.
        choose_venue(page, "South Quay")
        expect(markers).to_have_attribute("aria-label", "South Quay")
        expect(markers).to_be_in_viewport()
        assert tiles
        choose_venue(page, "Unmapped Quay")
        expect(page.locator("#venue-map")).to_be_hidden()


def choose_venue(page: Page, name: str) -> None:
    page.fill("#venue", "")
    page.locator("#venue").press_sequentially(name)
    page.click(f"[role=option]:has-text('{name}')")


def test_warnings_preview_and_drafts_with_script(server: Server, browser: Browser, api: httpx.Client) -> None:
    make_event(api, "Poetry night")
    event = make_event(api, "Reading")
    revision = api.get("/changes?since=0").json()
    with open_console(browser, server) as opened:
        page = opened.page
        page.clock.install()
        page.goto(f"/console/events/{event['id']}")
        page.fill("#title", "Poetry night")
        expect(page.locator("[data-check=duplicates]")).to_contain_text("Poetry night")
        page.click(".form-actions [value=preview]")
        expect(page.frame_locator("[name=preview]").locator("h1")).to_have_text("Poetry night")
        page.keyboard.press("Escape")
        pass_autosave_delay(page)
        expect(page.locator("[data-autosave]")).to_contain_text("Draft saved at")
        page.fill("#title", "Poetry night again")
        # Leaving the page sends the rest at once.
        page.goto("about:blank")
        page.goto(f"/console/events/{event['id']}")
        expect(page.locator(".draft-notice")).to_contain_text("Unsaved changes from")
        page.click("text=Restore")
        expect(page.locator("#title")).to_have_value("Poetry night again")
    assert api.get("/changes?since=0").json() == revision
    assert api.get(f"/events/{event['id']}").json()["title"] == "Reading"


def test_typing_without_a_pause_is_kept(server: Server, browser: Browser, api: httpx.Client) -> None:
    event = make_event(api, "Typed")
    with open_console(browser, server) as opened:
        page = opened.page
        page.clock.install()
        page.goto(f"/console/events/{event['id']}")
        with page.expect_request(f"**/console/drafts/events/{event['id']}") as saved:
            for letter in "abcdef":
                page.locator("#title").press_sequentially(letter)
                page.clock.run_for(500)
        titles = [value for name, value in saved.value.post_data_json["fields"] if name == "title"]
        # Three seconds have passed; with a timer that restarts, nothing would have been sent.
        assert "abcd" in titles[0]


def test_changes_are_kept_once_the_server_is_back(server: Server, browser: Browser, api: httpx.Client) -> None:
    event = make_event(api, "Offline")
    with open_console(browser, server) as opened:
        page = opened.page
        page.clock.install()
        page.goto(f"/console/events/{event['id']}")
        page.context.set_offline(True)
        page.fill("#title", "Written offline")
        pass_autosave_delay(page)
        expect(page.locator("[data-autosave]")).not_to_be_empty()
        page.context.set_offline(False)
        pass_autosave_delay(page)
        expect(page.locator("[data-autosave]")).to_contain_text("Draft saved at")
        assert page.evaluate("localStorage.length") == 0
        opened.errors.clear()


def pass_autosave_delay(page: Page) -> None:
    """Let the delay of the autosave pass at once. The clock of the page must be installed."""
    page.clock.run_for(2500)


def write_summary(page: Page, text: str) -> None:
    """Enter a text at once, because typing a long one takes seconds."""
    page.locator("#excerpt").evaluate("(field, text) => { field.value = text }", text)
    page.locator("#excerpt").dispatch_event("input")


def test_long_text_is_kept(server: Server, browser: Browser, api: httpx.Client) -> None:
    event, text = make_event(api, "Long"), "Lorem ipsum. " * 8000
    path = f"/console/events/{event['id']}"
    with open_console(browser, server) as opened:
        page = opened.page
        page.clock.install()
        page.goto(path)
        write_summary(page, text)
        pass_autosave_delay(page)
        expect(page.locator("[data-autosave]")).to_contain_text("Draft saved at")
        page.goto(f"{path}?draft={event['id']}")
        assert len(page.input_value("#excerpt")) == len(text)
        # A beacon cannot carry the text, so the browser keeps it when the page is left at once.
        write_summary(page, f"{text}Amen.")
        with page.expect_response(f"**/console/drafts/events/{event['id']}") as resent:
            page.goto(path)
        assert resent.value.status == 200
        page.goto(f"{path}?draft={event['id']}")
        assert page.input_value("#excerpt")[-5:] == "Amen."


@pytest.mark.parametrize(
    ("length", "message"),
    [
        (400_000, "The draft has more than 400000 characters and can’t be kept."),
        (2_200_000, "The request body exceeds 2097152 bytes."),
    ],
)
def test_text_beyond_the_maximum_is_explained(
    server: Server, browser: Browser, api: httpx.Client, length: int, message: str
) -> None:
    event = make_event(api, f"Too long {length}")
    with open_console(browser, server) as opened:
        page = opened.page
        page.clock.install()
        page.goto(f"/console/events/{event['id']}")
        write_summary(page, "x" * length)
        pass_autosave_delay(page)
        expect(page.locator("[data-autosave]")).to_contain_text(message)
        page.goto("about:blank")
        # Chromium reports the status of each refused draft.
        assert all("status of 413" in text for text in opened.errors), opened.errors
        opened.errors.clear()


def test_changes_by_others_are_noticed(server: Server, browser: Browser, api: httpx.Client) -> None:
    event = make_event(api, "Watched")
    with open_console(browser, server, "administrator") as opened:
        page = opened.page
        page.clock.install()
        page.goto(f"/console/events/{event['id']}")
        api.patch(f"/events/{event['id']}", json={"cost": "9"})
        page.clock.run_for(16_000)
        expect(page.locator("#changed-notice")).to_contain_text("editor just changed this event.")
        page.fill("#title", "Watched twice")
        page.click(".form-actions [value=save]")
        expect(page.locator("main")).to_contain_text("Both changes are saved: Cost")


def test_focus_point_is_moved_by_keys_and_pointer(
    server: Server, browser: Browser, api: httpx.Client, picture: Path
) -> None:
    event = make_event(api, "Focused")
    with open_console(browser, server) as opened:
        page = opened.page
        page.goto(f"/console/events/{event['id']}")
        show_picture(page)
        page.set_input_files("#file", picture)
        page.click("#picture-preview", position={"x": 1, "y": 1})
        assert float(page.input_value("[name=focus_x]")) < 0.02
        page.focus(".focus-point")
        for _ in range(5):
            page.keyboard.press("ArrowRight")
        page.click(".form-actions [value=save]")
        page.wait_for_url("**?notice=saved")
    image = api.get(f"/events/{event['id']}").json()["image"]
    assert 0.1 <= image["focus_x"] <= 0.13
