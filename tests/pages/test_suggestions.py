"""Suggestions in the search field: their content, what they never show, and the list that visitors use."""

import json
from datetime import date, timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from kalends.website.assets import asset_name, find_asset
from tests.api.running_app import RunningApp
from tests.pages.browser_page import find_violations, open_browser_page
from tests.pages.demo_calendar import DemoCalendar
from tests.pages.page_client import add_event
from tests.series.series_client import SeriesClient

PATH = "/events/suggest.json"
EVENING = ("2031-03-14 19:30", "2031-03-14 22:00")


def suggest(app: RunningApp, query: str) -> dict[str, list[tuple[str, str, str]]]:
    status, headers, body = app.raw("GET", PATH, query=query.encode())
    assert status == 200, body
    assert headers["content-type"] == "application/json"
    groups: list[dict[str, Any]] = json.loads(body)
    return {
        group["label"]: [(item["name"], item["note"], item["url"]) for item in group["items"]] for group in groups
    }


def test_suggestions_have_events_venues_and_categories(app: RunningApp) -> None:
    editor = app.caller("editor")
    hall = editor.create("venues", venue="The Blue & Jazz Hall", city="Soria")["id"]
    for n in range(5):
        editor.create("venues", venue=f"Jazz cellar {n}", description="Not the Hall")
        editor.create("categories", name=f"Jazz {n}")
    add_event(app, "Jazz & <em>more</em>", *EVENING, venue=hall)
    add_event(app, "Evening with a jazz band", "2031-03-15", "2031-03-15", all_day=True, event_status="cancelled")
    # What only the description contains, or is over, is left to the search.
    add_event(app, "Other music", *EVENING, description="Jazz")
    add_event(app, "Jazz long ago", "2020-03-14 19:30", "2020-03-14 22:00")
    assert suggest(app, "q=jazz") == {
        "Events": [
            ("Jazz & more", "Fri, Mar 14 · 7:30\xa0PM · The Blue & Jazz Hall", "/event/jazz-more/"),
            ("Evening with a jazz band", "Cancelled · Sat, Mar 15", "/event/evening-with-a-jazz-band/"),
        ],
        "Venues": [(f"Jazz cellar {n}", "", f"/venue/jazz-cellar-{n}/") for n in range(3)],
        "Categories": [(f"Jazz {n}", "", f"/events/category/jazz-{n}/") for n in range(3)],
    }
    assert suggest(app, "q=jazz+hall") == {
        "Venues": [("The Blue & Jazz Hall", "Soria", "/venue/the-blue-jazz-hall/")]
    }
    assert suggest(app, "q=JÁ&lang=de")["Veranstaltungen"][0][1:] == (
        "Fr., 14. März · 19:30 · The Blue & Jazz Hall",
        "/event/jazz-more/?lang=de",
    )


def test_only_public_records_are_suggested(app: RunningApp) -> None:
    today = app.sql("SELECT (now() AT TIME ZONE 'Europe/Berlin')::date::text AS day")[0]["day"]
    editor = app.caller("editor")
    cellar = editor.create("venues", venue="Quiet cellar")["id"]
    hours = (f"{today} 00:00", f"{today} 23:59")
    add_event(app, "Quiet evening", *hours, venue=cellar)
    editor.change("venues", cellar, status="draft")
    add_event(app, "Quiet and protected", *hours, new_password="open sesame")
    add_event(app, "Quiet draft", *hours, status="draft")
    add_event(app, "Quiet and pending", *hours, status="pending")
    add_event(app, "Quiet and hidden", *hours, hide_from_listings=True)
    trashed = add_event(app, "Quiet and trashed", *hours)
    editor.trash("events", trashed["id"])
    for query in ("q=quiet", "q=qu", "q=quiet+today", "q=today"):
        found = suggest(app, query)
        assert [name for name, *_ in found.pop("Events")] == ["Quiet evening"], query
        assert set(found) <= {"Filters"}
        assert "cellar" not in str(found)


def test_a_series_is_suggested_once(app: RunningApp) -> None:
    dates = {"start_date": "2050-01-04 19:30:00", "end_date": "2050-01-04 21:00:00"}
    SeriesClient(app.caller("editor")).create(rule="FREQ=WEEKLY;COUNT=30", title="Story time", **dates)
    add_event(app, "Story of a town", "2050-02-01 10:00", "2050-02-01 11:00")
    assert [name for name, *_ in suggest(app, "q=story")["Events"]] == ["Story time", "Story of a town"]


def test_words_that_begin_alike_come_first(app: RunningApp) -> None:
    add_event(app, "Community lunch", *EVENING)
    add_event(app, "Chamber <em>Mus</em>ic", "2031-03-15 19:30", "2031-03-15 22:00")
    assert [name for name, *_ in suggest(app, "q=mu")["Events"]] == ["Chamber Music", "Community lunch"]


def test_words_are_suggested_as_filters(app: RunningApp) -> None:
    today = date.fromisoformat(app.sql("SELECT (now() AT TIME ZONE 'Europe/Berlin')::date::text AS day")[0]["day"])
    tomorrow = today + timedelta(days=1)
    add_event(app, "Jazz now", f"{today} 00:00", f"{today} 23:59")
    add_event(app, "Jazz soon", f"{tomorrow} 11:00", f"{tomorrow} 12:00", cost="0")
    days = f"overlaps_from={tomorrow}&overlaps_to={tomorrow}"
    found = suggest(app, "q=jazz+tomorrow")
    assert found["Filters"] == [("Tomorrow", "jazz", f"/events/search/?search=jazz&{days}")]
    assert [name for name, *_ in found["Events"]] == ["Jazz soon"]
    assert suggest(app, "q=free+tomorrow")["Filters"][0] == ("Free · Tomorrow", "", f"/events/search/?free=1&{days}")
    assert [name for name, *_ in suggest(app, "q=jazz+to")["Filters"]] == ["Today", "Tonight", "Tomorrow"]
    assert suggest(app, "q=kost&lang=de")["Filter"] == [("Kostenlos", "", "/events/search/?free=1&lang=de")]


@pytest.mark.parametrize(
    "text", ["x", "%22", "-", "%25_%5C%5C", "%00%00", "a+b+c+d+e+f+g+h+i+j+k+l+m+n+o+p+q+r+s+t+u+v+w", "-to", "%22to"]
)
def test_unusual_texts_have_few_suggestions(app: RunningApp, text: str) -> None:
    add_event(app, "Jazz", *EVENING)
    assert "Events" not in suggest(app, f"q={text}")


@pytest.mark.parametrize("query", ["", "q=", f"q={'x' * 61}", "q=%ff"])
def test_missing_and_long_texts_are_errors(app: RunningApp, query: str) -> None:
    assert app.raw("GET", PATH, query=query.encode())[0] == 400


def test_suggestions_are_cached_until_a_change(app: RunningApp) -> None:
    add_event(app, "Jazz", *EVENING)
    names = [suggest(app, "q=jazz")["Events"][0][0]]
    status, headers, _ = app.raw("GET", PATH, query=b"q=jazz")
    assert (status, "etag" in headers) == (200, True)
    event = app.sql("SELECT id FROM events WHERE title = 'Jazz' ORDER BY id DESC LIMIT 1")[0]["id"]
    app.caller("editor").change("events", event, title="Jazz trio")
    names.append(suggest(app, "q=jazz")["Events"][0][0])
    assert names == ["Jazz", "Jazz trio"]


def test_script_is_small() -> None:
    script = find_asset(asset_name("search.js"))
    assert script is not None
    assert len(script.body) <= 3000


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_suggestions_are_a_combobox(demo_calendar: DemoCalendar, chromium: Browser, width: int, scheme: Any) -> None:
    with open_browser_page(chromium, viewport={"width": width, "height": 900}, color_scheme=scheme) as browser:
        page = browser.page
        requests: list[str] = []
        page.on("request", lambda request: requests.append(request.url.partition("127.0.0.1")[2].partition("/")[2]))
        page.goto(f"{demo_calendar.server.base_url}/events/month/2031-03/")
        assert not any("assets/search" in url for url in requests)
        field, options = page.locator("#q"), page.get_by_role("option")
        field.click()
        page.keyboard.type("ch")
        expect(field).to_have_attribute("aria-expanded", "true")
        expect(options.first).to_be_visible()
        # Chess club, Choir rehearsal, and none that only contains the letters in its description.
        assert [text.split("\n")[0] for text in options.locator("b").all_inner_texts()][:2] == [
            "Choir rehearsal",
            "Chess club",
        ]
        expect(page.get_by_role("status").last).to_contain_text("Choose a suggestion with the arrow keys.")
        assert find_violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") == width
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        expect(options.nth(1)).to_have_attribute("aria-selected", "true")
        assert field.get_attribute("aria-activedescendant") == options.nth(1).get_attribute("id")
        assert find_violations(page) == []
        page.keyboard.press("Escape")
        expect(field).to_have_attribute("aria-expanded", "false")
        assert field.input_value() == "ch"
        # Arrows open the list again, and Enter follows the suggestion; without one it searches.
        page.keyboard.press("ArrowUp")
        expect(options.first).to_be_visible()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_url("**/event/choir-rehearsal/")
        page.locator("#q").fill("chess")
        expect(page.get_by_role("option").first).to_be_visible()
        page.keyboard.press("Enter")
        page.wait_for_url("**/events/search/?search=chess")
        page.locator("#q").fill("kultur")
        page.get_by_role("option").filter(has_text="Kulturhaus an der Linde").click()
        page.wait_for_url("**/venue/kulturhaus-an-der-linde/")
        assert browser.errors == []
