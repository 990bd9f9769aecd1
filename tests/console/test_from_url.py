"""The event form filled in from a web page of a local server: values, picture, duplicates, choice, refusals."""

import html
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from kalends.adapters.sandbox import Limits
from kalends.calendar.access.permissions import count_attempt
from kalends.calendar.console.from_url import PAGE_LIMIT, PATH
from kalends.core.errors import InvalidValue
from kalends.imports.adapters.import_worker import ImportWorker
from kalends.imports.operations.page_reader import MAX_BYTES
from kalends.store.database import Transaction
from tests.api.running_app import RunningApp
from tests.console.console_client import ConsoleClient, Page, set_passwords
from tests.media.image_fixtures import EXTENSION_URL, make_image
from tests.media.image_source import ImageSource, serve_images
from tests.unit.imports.test_web_page import EXPECTED, PAGES, URL, describe, with_event, with_json


@pytest.fixture(scope="module")
def running() -> Iterator[ImageSource]:
    with serve_images() as source:
        yield source


@pytest.fixture(scope="module")
def forbidden() -> Iterator[ImageSource]:
    """A server that runs, but on a port that the settings do not allow."""
    with serve_images() as source:
        source.files["/page"] = with_event(name="Secret")
        yield source


@pytest.fixture(scope="module")
def app(start_app_for_module: Callable[..., RunningApp], running: ImageSource) -> RunningApp:
    started = start_app_for_module({"KALENDS_FETCH_ALLOWED_NETWORKS": f"{running.host}:{running.port}"})
    set_passwords(started)
    return started


@pytest.fixture
def source(running: ImageSource, app: RunningApp) -> ImageSource:
    """As new for each test, in a site without records."""
    running.files, running.statuses = {"/picture.jpg": make_image()}, {}
    running.headers = {"Content-Type": "text/html; charset=utf-8"}
    running.requests.clear()
    for table in ("events", "venues", "organizers", "media", "login_failures", "drafts"):
        app.sql(f"DELETE FROM {table}")
    return running


def serve(source: ImageSource, **values: object) -> str:
    """Serve a page with an event, and return its address."""
    source.files["/page"] = with_event(**values)
    return source.url("/page")


def submit(client: ConsoleClient, url: str, status: int = 200) -> Page:
    response = client.post(PATH, {"url": url})
    assert response.status_code == status, response.text[:1500]
    return Page.parse(response.text)


def refuse(client: ConsoleClient, url: str, status: int = 400) -> str:
    """Return the message beside the address, which the page keeps."""
    page = submit(client, url, status)
    assert page.fields["url"] == [url]
    message = re.search(r'(?:id="url-error"|role="alert")>([^<]+)<', page.html)
    assert message is not None
    return html.unescape(message[1])


def save(client: ConsoleClient, page: Page, **changes: Any) -> httpx.Response:
    return client.post("/console/events/new", page.form(**{"action": "publish", **changes}))


def read_saved(app: RunningApp, response: httpx.Response) -> dict[str, Any]:
    assert response.status_code == 303, Page.parse(response.text).text[:2000]
    event_id = response.headers["location"].partition("?")[0].rpartition("/")[2]
    event: dict[str, Any] = app.caller("editor").get(f"/events/{event_id}").json()
    return event


def list_warnings(page: Page) -> list[str]:
    notice = re.search(r'class="notice from-page".*?</div>', page.html, re.DOTALL)
    return [html.unescape(text) for text in re.findall(r"<li>([^<]*)</li>", notice[0])] if notice else []


def count_stored(app: RunningApp) -> list[int]:
    tables = ("events", "venues", "organizers", "media", "drafts", "changes")
    return [app.sql(f"SELECT count(*) AS n FROM {table}")[0]["n"] for table in tables]


# One event ------------------------------------------------------------------------------------


def test_form_is_filled_in_and_nothing_is_stored(app: RunningApp, author: ConsoleClient, source: ImageSource) -> None:
    source.files["/page"] = (PAGES / "ticket_platform.html").read_bytes()
    stored = count_stored(app)
    page = submit(author, source.url("/page"))
    expected = {
        "title": "Makers Night",
        "start_day": "2027-02-11",
        "start_time": "18:00",
        "end_day": "2027-02-11",
        "end_time": "21:00",
        "timezone": "UTC-5",
        "cost": "10.50–35",
        "currency_code": "",  # the currency of the site
        "website": "https://ticketly.example/e/makers-night-123",
        "image_url": "https://img.ticketly.example/makers.jpg?w=940&h=470",
        "new_venue[venue]": "Foundry 9",
        "new_venue[address]": "9 Iron Street",
        "new_venue[stateprovince]": "NY",
        "new_organizer[organizer]": "Makers of Brookport",
    }
    assert {name: page.fields[name] for name in expected} == {name: [text] for name, text in expected.items()}
    assert f'href="{source.url("/page")}"' in page.html
    assert 'src="https://img' not in page.html
    assert (source.paths, count_stored(app)) == (["/page"], stored)
    event = read_saved(app, save(author, page, image_url=None))
    assert (event["title"], event["utc_start_date"]) == ("Makers Night", "2027-02-11 23:00:00")
    assert (event["venue"]["stateprovince"], event["organizer"][0]["organizer"]) == ("NY", "Makers of Brookport")


def test_other_currency_is_filled_in(author: ConsoleClient, source: ImageSource) -> None:
    page = submit(author, serve(source, offers={"price": "8.00", "priceCurrency": "GBP"}))
    names = ("cost", "currency_code", "currency_symbol")
    assert [page.fields[name] for name in names] == [["8"], ["GBP"], ["£"]]


def test_picture_is_fetched_when_event_is_saved(app: RunningApp, author: ConsoleClient, source: ImageSource) -> None:
    page = submit(author, serve(source, image="/picture.jpg"))
    assert source.paths == ["/page"]
    event = read_saved(app, save(author, page, image_alt="A brass band"))
    assert source.paths == ["/page", "/picture.jpg"]
    (image,) = app.caller("editor").get(f"{EXTENSION_URL}/media").json()["media"]
    assert (image["id"], image["alt_text"]) == (event["image"]["id"], "A brass band")
    assert image["source_url"] == source.url("/picture.jpg")
    again = read_saved(app, save(author, submit(author, source.url("/page")), title="Second day"))
    assert again["image"]["id"] == image["id"]
    assert source.paths.count("/picture.jpg") == 1


def test_picture_can_be_left_out_or_replaced(app: RunningApp, author: ConsoleClient, source: ImageSource) -> None:
    page = submit(author, serve(source, image="/picture.jpg"))
    assert read_saved(app, save(author, page, image_url=None))["image"] is False
    upload = {"file": ("own.png", make_image("PNG", seed=4), "image/png")}
    response = author.request("POST", "/console/events/new", data=page.form(action="draft"), files=upload)
    assert read_saved(app, response)["image"]["extension"] == "png"
    assert source.paths == ["/page"]


def test_picture_that_cannot_be_fetched_keeps_the_form(
    app: RunningApp, author: ConsoleClient, source: ImageSource, forbidden: ImageSource
) -> None:
    stored, page = count_stored(app), submit(author, serve(source))
    for url in (source.url("/missing.jpg"), source.url("/page"), forbidden.url("/picture.jpg"), "file:///etc/passwd"):
        response = save(author, page, image_url=url, cost="7")
        assert response.status_code == 400
        shown = Page.parse(response.text)
        assert (shown.fields["cost"], shown.fields["image_url"]) == (["7"], [url])
        assert "Picture" in shown.text
    assert (count_stored(app), forbidden.paths) == (stored, [])
    assert read_saved(app, save(author, page, image_url=None, cost="7"))["cost"].endswith("7")


def test_picture_address_of_contributor_is_refused(
    app: RunningApp, contributor: ConsoleClient, source: ImageSource
) -> None:
    form = contributor.page("/console/events/new").form(
        title="Fair", start_day="2027-05-01", action="pending", image_url=source.url("/picture.jpg")
    )
    assert contributor.post("/console/events/new", form).status_code == 400
    assert source.paths == []


def test_duplicates_are_shown(app: RunningApp, author: ConsoleClient, source: ImageSource) -> None:
    dates = {"start_date": "2027-05-02 10:00:00", "end_date": "2027-05-02 12:00:00"}
    stored = app.caller("editor").create("events", title="Spring fair", **dates)
    page = submit(author, serve(source, name="Spring Fair!"))
    assert f'href="/console/events/{stored["id"]}">Spring fair' in page.html


def test_known_venue_is_chosen_and_similar_one_is_named(
    app: RunningApp, author: ConsoleClient, source: ImageSource
) -> None:
    editor = app.caller("editor")
    hall = editor.create("venues", venue="Riverside Park", city="Larkford")
    editor.create("organizers", organizer="Brass Band Larkford")
    editor.create("venues", venue="Hidden barn", status="draft")
    place = {"@type": "Place", "name": "Riverside park", "address": {"addressLocality": "Larkford"}}
    organizer = {"name": "Brass-Band Larkfort"}
    page = submit(author, serve(source, location=place, organizer=organizer))
    assert page.fields["venue_ref"][0] == f"{hall['id']}|Riverside Park"
    assert page.fields["new_venue[venue]"] == [""]
    assert list_warnings(page) == [
        "“Brass-Band Larkfort” may be the same as “Brass Band Larkford”. If so, choose it from the list."
    ]
    event = read_saved(app, save(author, page))
    assert event["venue"]["id"] == hall["id"]
    assert event["organizer"][0]["organizer"] == "Brass-Band Larkfort"

    elsewhere = submit(author, serve(source, location={**place, "address": {"addressLocality": "Brookport"}}))
    assert elsewhere.fields["new_venue[city]"] == ["Brookport"]
    assert list_warnings(elsewhere) == [
        "“Riverside park” may be the same as “Riverside Park”. If so, choose it from the list."
    ]
    secret = submit(author, serve(source, location={"@type": "Place", "name": "Hidden barn"}))
    assert (secret.fields["new_venue[venue]"], list_warnings(secret)) == (["Hidden barn"], [])


def test_missing_date_is_named(author: ConsoleClient, source: ImageSource) -> None:
    page = submit(author, serve(source, startDate="soon"))
    assert (page.fields["start_day"], page.fields["start_time"]) == ([""], [""])
    assert list_warnings(page) == ["The date “soon” can’t be read."]


def test_page_of_kalends_itself_is_read_back(app: RunningApp, author: ConsoleClient, source: ImageSource) -> None:
    values: dict[str, Any] = {
        "title": "Jazz & wine",
        "start_date": "2027-07-02 19:30:00",
        "end_date": "2027-07-03 01:15:00",
        "description": "<p>With wine.</p>",
        "cost": "12–15",
        "event_status": "postponed",
        "venue": {"venue": "Cellar", "address": "Rue 1", "city": "Lyon", "zip": "69000"},
        "organizer": {"organizer": "Jazz club"},
    }
    stored = app.caller("editor").create("events", **values)
    source.files["/page"] = author.get(f"/event/{stored['slug']}/").content
    event = read_saved(app, save(author, submit(author, source.url("/page"))))
    names = ("title", "utc_start_date", "utc_end_date", "timezone", "cost", "event_status")
    assert {name: event[name] for name in names} == {name: stored[name] for name in names}
    assert (event["venue"]["id"], event["organizer"][0]["id"]) == (
        stored["venue"]["id"],
        stored["organizer"][0]["id"],
    )


# Several events -------------------------------------------------------------------------------


def list_choices(page: Page) -> dict[str, dict[str, str]]:
    """Return the fields of the form of each event, by its title and date."""
    forms = re.findall(
        r'name="url" value="([^"]*)"><input type="hidden" name="chosen" value="([^"]*)">\s*'
        r'<button class="quiet">([^<]*)</button> <span class="hint">([^<]*)</span>',
        page.html,
    )
    return {
        html.unescape(f"{title}: {hint}"): {"url": html.unescape(url), "chosen": html.unescape(chosen)}
        for url, chosen, title, hint in forms
    }


def test_one_of_several_events_is_chosen(app: RunningApp, author: ConsoleClient, source: ImageSource) -> None:
    source.files["/page"] = (PAGES / "several_dates.html").read_bytes()
    stored = count_stored(app)
    page = submit(author, source.url("/page"))
    choices = list_choices(page)
    assert list(choices) == [
        "The Wren: Friday, April 2, 2027, 8:00\xa0PM · Stage Two",
        "The Wren: Saturday, April 3, 2027, 8:00\xa0PM · Stage Two",
        "The Wren: matinee: Sunday, April 4, 2027, 3:00\xa0PM · Stage Two",
    ]
    response = author.post(PATH, choices["The Wren: Saturday, April 3, 2027, 8:00\xa0PM · Stage Two"])
    form = Page.parse(response.text)
    assert (form.fields["title"], form.fields["start_day"]) == (["The Wren"], ["2027-04-03"])
    assert form.fields["new_venue[venue]"] == ["Stage Two"]
    assert (source.paths, count_stored(app)) == (["/page"], stored)


@pytest.mark.parametrize("chosen", ["x", "[]", "{}", '{"parsed": {"records": [{"kind": "users"}]}}', '{"parsed": 1}'])
def test_changed_choice_is_refused(author: ConsoleClient, source: ImageSource, chosen: str) -> None:
    response = author.post(PATH, {"url": URL, "chosen": chosen})
    assert response.status_code == 400
    assert "there is no event on the page." in response.text


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"title": "A\0B", "description": "\0"}, 200),
        ({"title": {"a": 1}, "cost": [1], "repeat": "x", "categories": "x", "author": "0", "slug": "x"}, 200),
        ({"start_date": 5, "end_date": "now", "all_day": None}, 200),
        ({"start_date": "2027-05-01 10:00:00+02:00", "timezone": "Nowhere"}, 400),
        ({"image": "javascript:alert(1)"}, 400),
    ],
)
def test_changed_values_of_a_choice_are_read_as_texts(
    author: ConsoleClient, source: ImageSource, changes: dict[str, Any], status: int
) -> None:
    source.files["/page"] = (PAGES / "festival.html").read_bytes()
    *_, fields = list_choices(submit(author, source.url("/page"))).values()
    chosen = json.loads(fields["chosen"])
    *places, event = chosen["parsed"]["records"]
    by_identity = {"venue": [place["identity"] for place in places]}
    linked: list[dict[str, list[str]]] = [{}, {"venue": []}, {"venue": ["x"], "categorie": ["y"]}, by_identity]
    for links in linked:
        event |= {
            "values": {**event["values"], **changes},
            "links": links,
            "warnings": [{"$message": "{a}", "values": {}}],
        }
        response = author.post(PATH, {**fields, "chosen": json.dumps(chosen)})
        assert response.status_code == status
        assert "javascript:" not in response.text
    assert author.post(PATH, {**fields, "url": "javascript:alert(1)"}).status_code == 400


def test_text_that_postgresql_cannot_store_is_removed(
    app: RunningApp, author: ConsoleClient, source: ImageSource
) -> None:
    page = submit(author, serve(source, name="Spring\0 fair", location="Hall\0 1", organizer="Band\0"))
    assert read_saved(app, save(author, page))["title"] == "Spring fair"


def test_choice_shows_warnings_but_does_not_send_them(author: ConsoleClient, source: ImageSource) -> None:
    events = [{"@type": "Event", "name": name, "startDate": start} for name, start in (("A", "soon"), ("B", ""))]
    source.files["/page"] = with_json(json.dumps(events))
    choices = list_choices(submit(author, source.url("/page")))
    assert [text.strip() for text in choices] == [
        "A:  The date “soon” can’t be read.",
        "B:  The page doesn’t say when the event takes place.",
    ]
    response = author.post(PATH, choices[next(iter(choices))])
    assert list_warnings(Page.parse(response.text)) == []


# Refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_event.html", "there is no event on the page."),
        ("scripts_only.html", "can’t be read, because scripts build the page in the browser."),
    ],
)
def test_page_without_event_is_refused(author: ConsoleClient, source: ImageSource, name: str, message: str) -> None:
    source.files["/page"] = (PAGES / name).read_bytes()
    assert refuse(author, source.url("/page")) == message


def test_redirect_to_private_network_is_refused(
    author: ConsoleClient, source: ImageSource, forbidden: ImageSource
) -> None:
    unreachable = "the remote server is unreachable; only public servers are contacted."
    source.statuses["/page"] = 302
    for url in (forbidden.url("/page"), "http://127.0.0.1/page", "http://[::1]/", "http://169.254.169.254/latest/"):
        source.headers["Location"] = url
        assert refuse(author, source.url("/page")) == unreachable
        assert refuse(author, url) == unreachable
    assert forbidden.paths == []
    source.headers["Location"] = "file:///etc/passwd"
    assert refuse(author, source.url("/page")) == "must be an http or https URL of a public server."


def test_redirect_to_public_page_is_followed(author: ConsoleClient, source: ImageSource) -> None:
    serve(source, url="", image="cover.jpg")
    source.files["/deep/page"] = source.files.pop("/page")
    source.statuses["/short"], source.headers["Location"] = 301, "/deep/page"
    page = submit(author, source.url("/short"))
    assert page.fields["website"] == [source.url("/deep/page")]
    assert page.fields["image_url"] == [source.url("/deep/cover.jpg")]


def test_failed_request_is_explained(author: ConsoleClient, source: ImageSource) -> None:
    source.statuses["/page"] = 503
    assert refuse(author, source.url("/page")).startswith("the remote server responded with 503")
    source.files["/large"] = b"<p>" + b"x" * MAX_BYTES
    assert refuse(author, source.url("/large")) == f"exceeds {MAX_BYTES} bytes."
    source.files["/page"], source.headers["Content-Type"] = b"%PDF-1.7", "application/pdf"
    source.statuses.clear()
    assert refuse(author, source.url("/page")) == "leads to a file, not to a web page."
    assert "must not contain a user name" in refuse(author, f"http://a:b@{source.host}:{source.port}/page")


def test_number_of_pages_is_limited_per_account(
    app: RunningApp, author: ConsoleClient, editor: ConsoleClient, source: ImageSource
) -> None:
    url = serve(source)

    async def open_others(tx: Transaction) -> list[int]:
        return [await count_attempt(tx, f"pages of {app.users['author'].id}", PAGE_LIMIT) for _ in range(19)]

    submit(author, url)
    assert app.run_operation(open_others) == [0] * 19
    assert refuse(author, url, 429).startswith("You’ve opened many web pages in a short time. Try again in ")
    assert int(author.post(PATH, {"url": url}).headers["retry-after"]) <= 3
    submit(editor, url)
    assert len(source.paths) == 2


def test_only_authors_open_pages(
    app: RunningApp, contributor: ConsoleClient, visitor: ConsoleClient, author: ConsoleClient, source: ImageSource
) -> None:
    url = serve(source)
    assert contributor.post(PATH, {"url": url}).status_code == 403
    assert visitor.post(PATH, {"url": url}).headers["location"].startswith("/console/sign-in")
    assert author.post(PATH, {"url": url}, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert source.paths == []
    assert PATH in author.get("/console/events/new").text
    assert PATH not in contributor.get("/console/events/new").text
    assert author.page(f"{PATH}?url=https://a.example/").fields["url"] == ["https://a.example/"]


# The process that reads pages -----------------------------------------------------------------


async def test_page_that_takes_too_long_is_refused(tmp_path: Path) -> None:
    """For unclosed tags, the parser needs quadratic time, so the process has a limit."""
    page = tmp_path / "page"
    page.write_bytes(b"<a " * 600_000)
    worker = ImportWorker(limits=Limits(megabytes=512, file_megabytes=16, cpu_seconds=1, timeout=60.0, niceness=5))
    with pytest.raises(InvalidValue, match="too much memory or time"):
        await worker.parse(page, "html", {"url": URL, "content_type": "text/html"})


async def test_page_is_read_in_separate_process() -> None:
    options = {"url": URL, "content_type": "text/html"}
    parsed = await ImportWorker().parse(PAGES / "festival.html", "html", options)
    assert describe(parsed) == EXPECTED["festival.html"]
    with pytest.raises(InvalidValue, match=r"there is no event on the page\."):
        await ImportWorker().parse(PAGES / "no_event.html", "html", options)
