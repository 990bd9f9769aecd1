"""The search page: facets with counts, names that are found on the server, quick filters, and what nothing gives."""

import html
import re
from datetime import date, timedelta
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page

from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp
from tests.pages.browser_page import find_violations, open_browser_page
from tests.pages.demo_calendar import DemoCalendar
from tests.pages.page_client import add_event, get_page

SEARCH = "/events/search/"
EVENING = ("2031-03-14 19:30", "2031-03-14 22:00")
VENUES, ORGANIZERS = 98, 65


def choices(page: str, name: str) -> dict[str, str]:
    """Return the names of a facet with their counts."""
    facet = page.partition(f'<div id="live-{name}"')[2].partition("</fieldset>")[0]
    return {html.unescape(key): n for key, n in re.findall(r"<span>([^<]*)</span> <small>([^<]*)</small>", facet)}


def hint(page: str, name: str) -> str:
    found = re.search(r'class="hint">([^<]*)', page.partition(f'id="live-{name}"')[2].partition("</fieldset>")[0])
    return html.unescape(found[1]) if found else ""


@pytest.fixture(scope="module")
def town(start_app_for_module: StartApp) -> RunningApp:
    """Return a site with many venues and organizers, four of which have the same name."""
    app = start_app_for_module({})
    app.set_site("timezone", "Europe/Berlin")
    editor = app.caller("editor")
    names = [f"Place {n:02}" if n % 25 else "Town hall" for n in range(VENUES)]
    venues = [editor.create("venues", venue=name, city=f"Town {n}")["id"] for n, name in enumerate(names)]
    names = [f"Club {n:02}" if n % 20 else "Rive Gauche" for n in range(ORGANIZERS)]
    organizers = [editor.create("organizers", organizer=name, phone=str(n))["id"] for n, name in enumerate(names)]
    for n in range(VENUES):
        add_event(app, f"E{n}", *EVENING, venue=venues[n], organizer=organizers[n % ORGANIZERS])
    return app


def test_every_venue_and_organizer_can_be_chosen(town: RunningApp) -> None:
    page = get_page(town, SEARCH)
    assert (len(choices(page, "venue")), hint(page, "venue")) == (7, "7 of 98")
    assert hint(page, "organizer") == "7 of 65"
    for n in (1, 33, 97):
        found = choices(get_page(town, SEARCH, f"find_venue=place+{n:02}"), "venue")
        assert found == {f"Place {n:02}": "1"}
    # More than can be listed: the page says so.
    page = get_page(town, SEARCH, "find_venue=PLACE")
    assert (len(choices(page, "venue")), hint(page, "venue")) == (20, "20 of 94")
    assert hint(get_page(town, SEARCH, "find_venue=nowhere"), "venue") == "“nowhere” was not found."


def test_equal_names_have_their_town(town: RunningApp) -> None:
    found = choices(get_page(town, SEARCH, "find_venue=town+hall"), "venue")
    assert sorted(found) == [f"Town hall, Town {n}" for n in (0, 25, 50, 75)]
    # The town of an organizer is that of its latest event.
    found = choices(get_page(town, SEARCH, "find_organizer=rive"), "organizer")
    assert sorted(re.sub(r"\d+", "", name) for name in found) == ["Rive Gauche, Town "] * 4
    assert len(found) == 4


def test_counts_are_those_of_the_other_filters(app: RunningApp) -> None:
    editor = app.caller("editor")
    music = editor.create("categories", name="Music")["id"]
    jazz = editor.create("categories", name="Jazz", parent=music)["id"]
    talks = editor.create("categories", name="Talks")["id"]
    tag = editor.create("tags", name="Outdoors")["id"]
    add_event(app, "Loud trio", *EVENING, categories=[jazz, music], tags=[tag])
    add_event(app, "Quiet trio", *EVENING, categories=[jazz])
    add_event(app, "Loud talk", *EVENING, categories=[talks], cost="0")
    add_event(app, "Past talk", "2020-03-14 19:30", "2020-03-14 20:00", categories=[talks])
    add_event(app, "Secret talk", *EVENING, categories=[talks], new_password="open sesame")
    assert choices(get_page(app, SEARCH), "categories") == {"Music": "2", "Jazz": "2", "Talks": "1"}
    page = get_page(app, SEARCH, "search=loud&categories=talks")
    # A chosen category does not restrict the counts of the others: each adds its events.
    assert list(choices(page, "categories").items()) == [("Talks", "1"), ("Jazz", "1"), ("Music", "1")]
    assert choices(page, "tags") == {}
    assert choices(get_page(app, SEARCH, "free=1"), "categories") == {"Talks": "1"}
    page = get_page(app, SEARCH, "categories=talks&categories=jazz")
    assert all(title in page for title in ("Loud trio</a>", "Quiet trio</a>", "Loud talk</a>"))


def test_quick_filters_set_and_remove_their_filter(app: RunningApp) -> None:
    today = date.fromisoformat(app.sql("SELECT (now() AT TIME ZONE 'Europe/Berlin')::date::text AS day")[0]["day"])
    add_event(app, "Free today", f"{today} 00:00", f"{today} 23:59", cost="0", all_day=True)
    add_event(app, "Much later", *EVENING, cost="12")

    def quick(query: str) -> dict[str, str]:
        rows = re.findall(r'<a class="chip" href="([^"]*)"[^>]*>([^<]*)', get_page(app, SEARCH, query))
        return {name: html.unescape(url).partition("?")[2] for url, name in rows}

    links = quick("search=day")
    sunday = today + timedelta(days=7 - today.isoweekday())
    saturday, tomorrow = max(today, sunday - timedelta(days=1)), today + timedelta(days=1)
    assert links == {
        "Today": f"search=day&overlaps_from={today}&overlaps_to={today}",
        "Tonight": f"search=day&start_date={today}T17%3A00&starts_before={tomorrow}&strict_dates=1",
        "Tomorrow": f"search=day&overlaps_from={tomorrow}&overlaps_to={tomorrow}",
        "This weekend": f"search=day&overlaps_from={saturday}&overlaps_to={sunday}",
        "Free": "search=day&free=1",
    }
    for name in ("Today", "Free"):
        page = get_page(app, SEARCH, quick("")[name])
        assert "Free today</a>" in page
        assert "Much later</a>" not in page
    assert quick(links["Free"])["Free"] == "search=day"
    # A day replaces another one.
    assert quick(links["Tonight"])["Today"] == links["Today"]
    assert quick(links["Tonight"])["Tonight"] == "search=day"


def test_words_in_the_search_become_filters(app: RunningApp) -> None:
    today = date.fromisoformat(app.sql("SELECT (now() AT TIME ZONE 'Europe/Berlin')::date::text AS day")[0]["day"])
    add_event(app, "Free jazz matinee", f"{today} 11:00", f"{today} 12:00", cost="0")
    add_event(app, "Free jazz at last", f"{today} 17:00", f"{today} 23:00", cost="0")
    add_event(app, "Jazz for money", f"{today} 20:00", f"{today} 23:00", cost="12")
    add_event(app, "Free jazz one day", *EVENING, cost="0")

    def titles(query: str) -> list[str]:
        return re.findall(r"<h[23]><a [^>]*>([^<]*)</a></h[23]>", get_page(app, SEARCH, query))

    def chips(query: str) -> dict[str, tuple[str, str]]:
        """Return the active filters: the URL that removes each, and the URL that searches for its word."""
        found = get_page(app, SEARCH, query).partition('<ul class="chips"')[2].partition("</ul>")[0]
        rows = re.findall(
            r'<li><span>([^<]*)</span><a href="([^"]*)"[^>]*>×</a></li>\s*(?:<li class="instead">(.*))?', found
        )
        urls = [
            [html.unescape(url).partition("?")[2] for url in (url, *re.findall('href="([^"]*)"', more))]
            for _, url, more in rows
        ]
        return {
            html.unescape(name): (found[0], "".join(found[1:])) for (name, *_), found in zip(rows, urls, strict=True)
        }

    assert titles("search=jazz+tonight") == ["Free jazz at last", "Jazz for money"]
    assert titles("search=kostenlos+jazz+heute") == ["Free jazz matinee", "Free jazz at last"]
    tonight = {"start_date": f"{today}T17:00", "starts_before": f"{today + timedelta(days=1)}", "strict_dates": "1"}
    assert chips("search=free+jazz+tonight&venue=") == {
        "Tonight": ("search=jazz&free=1", "search=%22tonight%22+jazz&free=1"),
        "Free": (urlencode({"search": "jazz", **tonight}), urlencode({"search": '"free" jazz', **tonight})),
        "jazz": (urlencode({"free": "1", **tonight}), ""),
    }
    assert titles("search=%22free%22+jazz") == ["Free jazz matinee", "Free jazz at last", "Free jazz one day"]
    # The form keeps the evening, and its own days are those of the word.
    page = get_page(app, SEARCH, "search=jazz+tonight")
    assert all(f'<input type="hidden" name="{name}" value="{value}">' in page for name, value in tonight.items())
    assert f'name="overlaps_from" type="date" value="{today}"' in get_page(
        app, SEARCH, "search=today&overlaps_from=2031-01-01"
    )
    # Only words: no search remains, and nothing found offers to search for them.
    page = get_page(app, SEARCH, "search=tomorrow+free")
    assert "No events match these filters." in page
    assert "Search for “tomorrow” instead" in page
    assert 'name="search" type="search" maxlength="200" value=""' in page
    # Elsewhere, words are text.
    assert "Tonight" not in get_page(app, "/events/list/", "search=tonight")


def test_navigation_begins_with_the_category_with_most_upcoming_events(app: RunningApp) -> None:
    editor = app.caller("editor")
    parents = [editor.create("categories", name=f"Main {n:02}")["id"] for n in range(12)]
    child = editor.create("categories", name="Child", parent=parents[11])["id"]
    for n, parent in enumerate(parents[:11]):
        add_event(app, f"Past {n}", "2020-03-14 19:30", "2020-03-14 20:00", categories=[parent])
    for _ in range(2):
        add_event(app, "Upcoming", *EVENING, categories=[child])
    add_event(app, "Upcoming", *EVENING, categories=[parents[7]])
    page = get_page(app, "/events/list/")
    bar, _, sheet = page.partition('<div class="sheet" id="more-categories" popover>')
    shown = re.findall(r">(Main \d\d)</a>", bar)
    assert shown[:2] == ["Main 11", "Main 07"]
    assert len(shown) == 8
    assert 'popovertarget="more-categories"' in bar
    others = re.findall(r">(Main \d\d)</a>", sheet.partition("</nav>")[0])
    assert sorted([*shown, *others]) == [f"Main {n:02}" for n in range(12)]


def test_empty_search_has_one_message_that_repeats_the_query(app: RunningApp) -> None:
    app.caller("editor").create("categories", name="Music")
    page = get_page(app, SEARCH, "search=xyzzy+%3Cb%3E&categories=music&near=Berlin")
    body = html.unescape(page.partition("<main")[2])
    assert body.count("No events match “xyzzy <b>”.") == 1
    assert body.count("No venue matches “Berlin”.") == 1
    for text in ("No events<", "No upcoming events.", "empty-state"):
        assert text not in body
    removers = re.findall(r'<a class="chip" href="([^"]*)" aria-label="Remove filter: ([^"]*)"', page)
    assert [(html.unescape(name), html.unescape(url).partition("?")[2]) for url, name in removers] == [
        ("Music", "near=Berlin&search=xyzzy+%3Cb%3E"),
        ("Berlin", "categories=music&search=xyzzy+%3Cb%3E"),
        ("xyzzy <b>", "categories=music&near=Berlin"),
    ]


def results(page: Page) -> list[str]:
    return page.locator("#live-results .card h3").all_inner_texts()


def test_filters_are_a_sheet_on_phones_without_script(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, script=False, viewport={"width": 390, "height": 844}) as browser:
        page = browser.page
        page.goto(demo_calendar.server.base_url + "/events/search/?search=a")
        first = page.locator(".card").first.bounding_box()
        assert first is not None
        assert first["y"] + first["height"] < 844
        panel = page.locator("#filters")
        assert panel.is_hidden()
        page.get_by_role("button", name="Filters").click()
        assert panel.is_visible()
        targets = page.locator("#filters li label, #filters button, #filters input:not([type=checkbox])").all()
        boxes = [target.bounding_box() for target in targets if target.is_visible()]
        assert all(box is not None and box["height"] >= 44 for box in boxes)
        page.get_by_label("Music").check()
        page.get_by_role("button", name="Show results").click()
        page.wait_for_url("**categories=music**")
        assert "Spring concert: Ewa Dąbek Ensemble" in results(page)


def test_results_and_counts_follow_the_filters(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, viewport={"width": 1280, "height": 900}) as browser:
        page = browser.page
        page.goto(demo_calendar.server.base_url + SEARCH)
        panel, cards = page.locator("#filters").bounding_box(), page.locator("#live-results").bounding_box()
        assert panel is not None
        assert cards is not None
        assert panel["x"] + panel["width"] <= cards["x"]
        page.get_by_label("Keywords").fill("spring concert")
        count = page.locator("#live-count")
        count.filter(has_text=re.compile(r"^One event$")).wait_for()
        assert page.locator("#live-apply").inner_text() == "Show results (1)"
        assert page.url.endswith("?search=spring+concert")
        page.get_by_label("Keywords").fill("")
        count.filter(has_text=re.compile(r"^\d\d events$")).wait_for()
        # A name is searched on the server; what is chosen stays.
        page.get_by_role("searchbox", name="Category").fill("colour 11")
        page.locator("#live-categories li:only-child").wait_for()
        page.get_by_label("Colour 11").check()
        count.filter(has_text=re.compile(r"^2 events$")).wait_for()
        assert sorted(results(page)) == ["Club night 11", "Holidays 11"]
        assert page.url.endswith("?categories=colour-11")
        assert find_violations(page) == []
        page.get_by_label("Keywords").fill("xyzzy")
        page.get_by_role("heading", name="No events match “xyzzy”.").wait_for()
        assert browser.errors == []
