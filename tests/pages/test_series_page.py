"""The page of a series, and the place of a date among the others on its own page."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from tests.api.running_app import RunningApp
from tests.pages.page_client import get_page
from tests.series.series_client import EXTENSION, SeriesClient

WEEKLY: dict[str, Any] = {
    "start_date": "2031-01-07 19:30:00",
    "end_date": "2031-01-07 21:00:00",
    "timezone": "Europe/Berlin",
    "rule": "FREQ=WEEKLY;BYDAY=TU;UNTIL=20310503",
}
PAST: dict[str, Any] = {
    "start_date": "2019-01-01 10:00:00",
    "end_date": "2019-01-01 12:00:00",
    "rule": "FREQ=WEEKLY;COUNT=30",
}


@pytest.fixture
def client(app: RunningApp) -> SeriesClient:
    return SeriesClient(app.caller("editor"))


def list_dates(text: str) -> list[str]:
    return re.findall(r'<li><a href="/event/([^"]+)/"><time', text)


def read_json_ld(text: str) -> Any:
    (found,) = re.findall(r'<script type="application/ld\+json">(.*?)</script>', text, re.DOTALL)
    return orjson.loads(found)


def follow(text: str, relation: str) -> str:
    (url,) = re.findall(rf'<a rel="{relation}" href="([^"#]+)', text)
    return str(url).replace("&amp;", "&")


def test_page_shows_content_and_dates(app: RunningApp, client: SeriesClient) -> None:
    venue = client.caller.create("venues", venue="Town hall", city="Lindenstadt")
    series = client.create(**WEEKLY, title="Yoga", description="<p>For everyone.</p>", venue=venue["id"])
    text = get_page(app, "/series/yoga/")
    assert "<h1>Yoga</h1>" in text
    assert "<p>For everyone.</p>" in text
    assert "Town hall" in text
    assert f'<link rel="canonical" href="{series["url"]}">' in text
    assert 'href="/series/yoga.ics"' in text
    assert f"/events.ics?series={series['id']}" in text
    assert list_dates(text) == [event["slug"] for event in client.events(series["id"])]
    assert "More dates will follow." not in text


def test_dates_are_paged_by_cursor(app: RunningApp, client: SeriesClient) -> None:
    series = client.create(**{**WEEKLY, "rule": "FREQ=WEEKLY;COUNT=50"}, title="Chess")
    slugs = list_dates(text := get_page(app, "/series/chess/"))
    pages = [len(slugs)]
    while 'rel="next" href="/series' in text:
        path, _, query = follow(text, "next").partition("?")
        text = get_page(app, path, query)
        slugs += (found := list_dates(text))
        pages.append(len(found))
    assert pages == [24, 24, 2]
    assert slugs == [event["slug"] for event in client.events(series["id"])]
    assert "First page" in text


@pytest.mark.quick("x", "2031-01-07T18:30:00Z-")
@pytest.mark.parametrize("after", ["x", "2031-01-07T18:30:00Z", "2031-13-07T18:30:00Z-4", "2031-01-07T18:30:00Z-"])
def test_wrong_cursor_is_named(app: RunningApp, client: SeriesClient, after: str) -> None:
    client.create(**WEEKLY, title="Chess")
    assert "link to the next dates" in get_page(app, "/series/chess/", f"after={after}", status=400)


def test_past_dates_are_behind_a_link(app: RunningApp, client: SeriesClient) -> None:
    series = client.create(**PAST, title="History")
    text = get_page(app, "/series/history/")
    assert "No upcoming dates." in text
    assert list_dates(text) == []
    assert '<a href="/series/history/?past=1#dates">' in text
    # A series that has ended is nothing to put into a calendar.
    assert "history.ics" not in text
    past = get_page(app, "/series/history/", "past=1")
    events = client.events(series["id"])
    assert list_dates(past) == [event["slug"] for event in events[::-1]][:24]
    assert len(list_dates(get_page(app, "/series/history/", follow(past, "next").partition("?")[2]))) == 6


def test_exceptions_are_named(app: RunningApp, client: SeriesClient) -> None:
    series = client.create(**WEEKLY, title="Choir")
    events = client.events(series["id"])
    client.edit(events[1]["id"], "this", start_date="2031-01-15 18:00:00", end_date="2031-01-15 19:00:00")
    client.edit(events[2]["id"], "this", title="Choir with guests")
    client.edit(events[3]["id"], "this", event_status="cancelled")
    items = re.findall(r"<li><a href=\"/event/.*?</li>", get_page(app, "/series/choir/"))
    assert "Moved from Tuesday, January 14, 2031, 7:30" in items[1]
    assert "<span>Choir with guests</span>" in items[2]
    assert "Cancelled" in items[3]
    assert "<s>" in items[3]
    assert not any(word in items[4] for word in ("Moved", "guests", "Cancelled"))


def test_endless_series_says_that_dates_follow(app: RunningApp, client: SeriesClient) -> None:
    client.create(**{**WEEKLY, "rule": "FREQ=YEARLY"}, title="Fair")
    assert "More dates will follow." in get_page(app, "/series/fair/")


# Addresses -----------------------------------------------------------------------------------


def test_former_slug_and_permanent_link_redirect(app: RunningApp, client: SeriesClient) -> None:
    series = client.create(**WEEKLY, title="Yoga")
    client.caller.patch(f"{EXTENSION}/series/{series['id']}", {"slug": "gentle-yoga"})
    for path, query, target in (
        ("/series/yoga/", b"", "/series/gentle-yoga/"),
        ("/series/yoga/", b"past=1", "/series/gentle-yoga/?past=1"),
        ("/series/yoga.ics", b"", "/series/gentle-yoga.ics"),
        ("/series/gentle-yoga", b"", "/series/gentle-yoga/"),
        ("/", f"p={series['id']}".encode(), "/series/gentle-yoga/"),
    ):
        status, headers, _ = app.raw("GET", path, query=query)
        assert (status, headers["location"]) == (301, target)


@pytest.mark.quick("draft", "pending")
@pytest.mark.parametrize("status", ["draft", "private", "pending"])
def test_series_that_is_not_public_has_no_page(app: RunningApp, client: SeriesClient, status: str) -> None:
    series = client.create(**WEEKLY, title="Secret plans", status=status)
    slug = series["slug"] or "secret-plans"
    assert "Secret plans" not in get_page(app, f"/series/{slug}/", status=404)
    assert app.raw("GET", f"/series/{slug}.ics")[0] in (401, 403, 404)
    assert app.raw("GET", "/", query=f"p={series['id']}".encode())[0] == 404


def test_trashed_series_has_no_page(app: RunningApp, client: SeriesClient) -> None:
    series = client.create(**WEEKLY, title="Yoga")
    slug = client.events(series["id"])[0]["slug"]
    assert "Yoga" in get_page(app, "/series/yoga/")
    assert client.caller.delete(f"{EXTENSION}/series/{series['id']}").status_code == 200
    assert "Yoga" not in get_page(app, "/series/yoga/", status=404)
    get_page(app, f"/event/{slug}/", status=404)


def test_dates_that_are_not_public_are_left_out(app: RunningApp, client: SeriesClient) -> None:
    series = client.create(**WEEKLY, title="Yoga")
    events = client.events(series["id"])
    assert client.caller.post(f"/events/{events[1]['id']}", {"status": "draft"}).status_code == 200
    client.edit(events[2]["id"], "this", hide_from_listings=True)
    assert client.caller.delete(f"/events/{events[3]['id']}").status_code == 200
    shown = list_dates(get_page(app, "/series/yoga/"))
    assert shown == [event["slug"] for event in (events[0], *events[4:])]
    page = get_page(app, f"/event/{events[0]['slug']}/")
    assert follow(page, "next") == f"/event/{events[4]['slug']}/"
    assert "One of 14 dates" in page
    calendar = app.raw("GET", "/series/yoga.ics")[2].decode()
    assert calendar.count("EXDATE") == 3


def test_password_protects_series(app: RunningApp, client: SeriesClient) -> None:
    series = client.create(
        **WEEKLY, title="Closed group", description="<p>The secret.</p>", new_password="opensesame"
    )
    locked = get_page(app, f"/series/{series['slug']}/", status=403)
    assert "The secret" not in locked
    assert "/event/" not in locked
    status, headers, body = app.raw(
        "POST", f"/series/{series['slug']}/", body=[b"password=opensesame"],
        headers=[("content-type", "application/x-www-form-urlencoded"), ("accept", "text/html")],
    )  # fmt: skip
    assert status == 200
    assert "The secret" in body.decode()
    assert len(list_dates(body.decode())) == 17
    assert "public" not in headers.get("cache-control", "")
    assert app.raw("GET", f"/series/{series['slug']}.ics")[0] == 403


# The page of a date --------------------------------------------------------------------------


@pytest.fixture
def dates(client: SeriesClient) -> list[Any]:
    return client.events(client.create(**WEEKLY, title="Yoga")["id"])


def test_event_page_leads_to_other_dates(app: RunningApp, dates: list[Any]) -> None:
    first, second, last = (get_page(app, f"/event/{dates[index]['slug']}/") for index in (0, 1, -1))
    assert 'rel="prev"' not in first
    assert follow(first, "next") == f"/event/{dates[1]['slug']}/"
    assert follow(second, "prev") == f"/event/{dates[0]['slug']}/"
    assert follow(second, "next") == f"/event/{dates[2]['slug']}/"
    assert 'rel="next"' not in last
    for text in (first, second, last):
        assert '<a href="/series/yoga/">All dates</a>' in text
        assert "One of 17 dates" in text
        assert "Moved from" not in text


def test_event_page_of_moved_date_says_from_when(app: RunningApp, client: SeriesClient, dates: list[Any]) -> None:
    client.edit(dates[1]["id"], "this", start_date="2031-01-30 18:00:00", end_date="2031-01-30 19:00:00")
    text = get_page(app, f"/event/{dates[1]['slug']}/")
    assert "Moved from Tuesday, January 14, 2031, 7:30" in text
    # The order is that of the times: it is now after 28 January.
    assert follow(text, "prev") == f"/event/{dates[3]['slug']}/"
    # Another end is no move.
    client.edit(dates[5]["id"], "this", end_date="2031-02-11 22:00:00")
    assert "Moved from" not in get_page(app, f"/event/{dates[5]['slug']}/")


def test_event_without_series_has_no_note(app: RunningApp, client: SeriesClient) -> None:
    event = client.caller.create("events", title="Once", start_date="2031-01-07 10:00", end_date="2031-01-07 11:00")
    text = get_page(app, f"/event/{event['slug']}/")
    assert "All dates" not in text
    assert "superEvent" not in text
    assert "superEvent" not in client.caller.get(f"/events/{event['id']}").text


def test_similar_events_are_not_dates_of_the_same_series(app: RunningApp, client: SeriesClient) -> None:
    day = (datetime.now(UTC) + timedelta(days=3)).date()
    series = client.create(
        title="Yoga", start_date=f"{day} 10:00", end_date=f"{day} 11:00", rule="FREQ=DAILY;COUNT=9"
    )
    later = day + timedelta(days=30)
    client.caller.create("events", title="Once", start_date=f"{later} 10:00", end_date=f"{later} 11:00")
    similar = get_page(app, f"/event/{client.events(series['id'])[0]['slug']}/").partition('class="similar"')[2]
    assert re.findall(r'<h3><a href="/event/([^"]+)/">', similar) == ["once"]


# Structured data -----------------------------------------------------------------------------


def test_json_ld_describes_series(app: RunningApp, client: SeriesClient, dates: list[Any]) -> None:
    schedule = {
        "@type": "Schedule",
        "startDate": "2031-01-07",
        "endDate": "2031-05-03",
        "startTime": "19:30:00",
        "endTime": "21:00:00",
        "scheduleTimezone": "Europe/Berlin",
        "repeatFrequency": "P1W",
        "byDay": ["https://schema.org/Tuesday"],
    }
    series = {"@type": "EventSeries", "name": "Yoga", "url": dates[0]["series"]["url"], "eventSchedule": schedule}
    described = read_json_ld(get_page(app, f"/event/{dates[0]['slug']}/"))
    assert described["@type"] == "Event"
    assert described["superEvent"] == series
    assert client.caller.get(f"/events/{dates[0]['id']}").json()["json_ld"]["superEvent"] == series
    page = read_json_ld(get_page(app, "/series/yoga/"))
    assert {name: page[name] for name in series} == series
    assert page["@context"] == "https://schema.org"


# Caches --------------------------------------------------------------------------------------


def test_change_of_series_is_visible_at_once(app: RunningApp, client: SeriesClient, dates: list[Any]) -> None:
    path = f"/event/{dates[0]['slug']}/"
    assert "One of 17 dates" in get_page(app, path)
    assert len(list_dates(get_page(app, "/series/yoga/"))) == 17
    assert client.caller.delete(f"/events/{dates[3]['id']}").status_code == 200
    assert "One of 16 dates" in get_page(app, path)
    assert len(list_dates(get_page(app, "/series/yoga/"))) == 16


def test_pages_and_calendar_have_the_tag_of_the_series(app: RunningApp, dates: list[Any]) -> None:
    def read_tags(path: str) -> set[str]:
        return set(app.raw("GET", path)[1]["surrogate-key"].split())

    shared = read_tags("/series/yoga/") & read_tags("/series/yoga.ics")
    (tag,) = (
        shared
        & read_tags(f"/event/{dates[0]['slug']}/")
        & read_tags(f"/event/{dates[1]['slug']}/")
        - {f"s{app.site_id}{kind}" for kind in ("", "-events", "-venues", "-categories")}
    )
    assert tag.startswith(f"s{app.site_id}-")
