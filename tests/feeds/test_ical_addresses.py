"""The iCalendar addresses of The Events Calendar: pages with `?ical=1` and `?outlook-ical=1`."""

import re

import pytest

from kalends.rendering.page_urls import DISPLAY, EMBEDDING
from kalends.routes import PAGES
from tests.api.running_app import RunningApp
from tests.feeds.ical_readers import IcalJs, read_with_icalendar
from tests.series.series_client import SeriesClient

EVENTS = {
    "Market": {"start_date": "2031-12-05 10:00", "end_date": "2031-12-05 12:00"},
    "Ball": {"start_date": "2031-12-31 20:00", "end_date": "2032-01-01 02:00"},
    "Fair": {"start_date": "2032-02-10 10:00", "end_date": "2032-02-12 12:00", "featured": True},
    "Past one": {"start_date": "2020-01-05 10:00", "end_date": "2020-01-05 12:00"},
    "Past two": {"start_date": "2021-01-05 10:00", "end_date": "2021-01-05 12:00"},
}
ALL, PAST = ["Market", "Ball", "Fair"], ["Past two", "Past one"]
# Addresses with the titles that they contain, in order.
ADDRESSES = {
    "/events/?{}": ALL,
    "/events?{}": ALL,
    "/events/list/?{}": ALL,
    "/?{}": ALL,
    "/events/?{}&tribe_display=list": ALL,
    "/?post_type=tribe_events&{}&eventDisplay=list": ALL,
    "/events/list/page/7/?{}": ALL,
    "/events/page/2/?{}": ALL,
    "/events/map/?{}": ALL,
    "/events/search/?search=market&{}": ["Market"],
    "/index.php?{}": ALL,
    "/events/month/2031-12/?{}": ["Market", "Ball"],
    "/events/2031-12/?{}": ["Market", "Ball"],
    "/events/month/2032-01/?{}": ["Ball"],
    "/events/month/2032-03/?{}": [],
    "/events/month/?{}": [],
    "/events/week/2032-02-13/?{}": ["Fair"],
    "/events/day/2031-12-05/?{}": ["Market"],
    "/events/2031-12-05/?{}": ["Market"],
    "/events/day/2032-02-11/?{}": ["Fair"],
    "/events/day/2031-12-06/?{}": [],
    "/events/today/?{}": [],
    "/events/list/?eventDisplay=past&{}": PAST,
    "/events/list/?tribe_event_display=past&{}": PAST,
    "/events/list/page/3/?eventDisplay=past&{}": PAST,
    "/events/list/?eventDisplay=past&{}&tribe_events_cat=loud": ["Past two"],
    "/events/category/music/loud/?{}": ["Market"],
    "/events/category/loud/?{}": ["Market"],
    "/events/category/music/?{}": ["Market", "Ball"],
    "/events/category/music/list/?{}": ["Market", "Ball"],
    "/events/category/music/month/2032-01/?{}": ["Ball"],
    "/events/?{}&tribe_events_cat=music": ["Market", "Ball"],
    "/events/month/2031-12/?{}&tribe_events_cat=loud": ["Market"],
    "/?post_type=tribe_events&{}&eventDisplay=list&tribe_events_cat=loud": ["Market"],
    "/events/?{}&tribe_events_cat=unknown": [],
    "/events/tag/winter/?{}": ["Ball"],
    "/tag/winter/?{}": ["Ball"],
    "/venue/hall/?{}": ["Fair"],
    "/organizer/club/?{}": ["Market"],
    "/events/featured/?{}": ["Fair"],
    "/events/?tribe-bar-search=ball&{}": ["Ball"],
    "/events/list/?tribe-bar-date=2020-06-01&{}": ["Past two"],
    "/events/month/?tribe-bar-date=2031-12-09&{}": ["Market", "Ball"],
    "/events/?eventDisplay=month&eventDate=2032-01&{}": ["Ball"],
    "/event/market/?{}": ["Market"],
    "/?tribe_events=market&{}": ["Market"],
}
HTML = [("accept", "text/html,*/*")]


@pytest.fixture(scope="module")
def app(shared_app_with_purges: RunningApp) -> RunningApp:
    started = shared_app_with_purges.add_site()
    started.set_site("timezone", "Europe/Berlin")
    editor = started.caller("editor")
    music = editor.create("categories", name="Music")
    loud = editor.create("categories", name="Loud", parent=music["id"])
    links = {
        "Market": {"categories": [loud["id"]], "organizer": [{"organizer": "Club"}]},
        "Ball": {"categories": [music["id"]], "tags": ["winter"]},
        "Fair": {"venue": {"venue": "Hall"}},
        "Past two": {"categories": [loud["id"]]},
    }
    for title, fields in EVENTS.items():
        editor.create("events", title=title, **fields, **links.get(title, {}))
    return started


def get(app: RunningApp, address: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    path, _, query = address.partition("?")
    return app.raw(method, path, query=query.encode(), headers=[*HTML, *headers.items()])


def test_two_readers_find_the_same_events_as_in_the_feed(app: RunningApp, ical_js: IcalJs) -> None:
    whole = get(app, "/events.ics?start_date=2000-01-01&end_date=2040-01-01")[2].decode()
    uids = {entry.summary: entry.uid for entry in read_with_icalendar(whole)}
    assert set(uids) == set(EVENTS)
    for parameter in ("ical=1", "outlook-ical=1"):
        for template, titles in ADDRESSES.items():
            address = template.format(parameter)
            status, headers, body = get(app, address)
            assert (status, headers["content-type"]) == (200, "text/calendar; charset=utf-8"), address
            assert headers["content-disposition"].startswith('attachment; filename="event'), address
            assert headers["x-robots-tag"] == "noindex, nofollow"
            entries = read_with_icalendar(body.decode())
            assert [entry.summary for entry in entries] == titles, address
            assert [entry.uid for entry in entries] == [uids[title] for title in titles]
            assert ical_js.read(body.decode()) == entries


def test_addresses_of_the_whole_calendar_have_the_events_of_the_feed(app: RunningApp) -> None:
    feed = read_with_icalendar(get(app, "/events.ics")[2].decode())
    for address in [template.format("ical=1") for template, titles in ADDRESSES.items() if titles == ALL]:
        assert read_with_icalendar(get(app, address)[2].decode()) == feed, address


def test_responses_are_cached_by_what_they_contain(app: RunningApp) -> None:
    """The page, the calendar and each translated calendar of one path have separate entries."""
    for _ in range(2):
        assert get(app, "/events/")[1]["content-type"].startswith("text/html")
        for template in ("/events/?{}", "/events/?eventDisplay=month&eventDate=2032-01&{}", "/events/month/?{}"):
            body = get(app, template.format("ical=1"))[2].decode()
            assert [entry.summary for entry in read_with_icalendar(body)] == ADDRESSES[template]
    tags = get(app, "/venue/hall/?ical=1")[1]["surrogate-key"].split()
    assert {f"s{app.site_id}{kind}" for kind in ("", "-events", "-venues")} <= set(tags)


@pytest.mark.quick("/events/?ical=1", "/events/month/2031-12/?ical=yes")
@pytest.mark.parametrize("address", ["/events/?ical=1", "/event/market/?ical=1", "/events/month/2031-12/?ical=yes"])
def test_conditional_and_head_requests(app: RunningApp, address: str) -> None:
    _, headers, body = get(app, address)
    assert get(app, address, **{"if-none-match": headers["etag"]})[0] == 304
    status, head, nothing = get(app, address, "HEAD")
    assert (status, head["etag"], head["content-type"], nothing) == (
        200,
        headers["etag"],
        headers["content-type"],
        b"",
    )
    assert get(app, address, "POST")[0] == 405
    assert body.startswith(b"BEGIN:VCALENDAR\r\n")


def test_empty_values_and_zero_show_the_page(app: RunningApp) -> None:
    for query in ("ical=", "ical=0", "outlook-ical=0&ical="):
        for path in ("/events/", "/events/month/2031-12/", "/event/market/"):
            status, headers, _ = get(app, f"{path}?{query}")
            assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8"), (path, query)


def test_unknown_records_and_periods_are_missing(app: RunningApp) -> None:
    for path in ("/event/x/", "/venue/x/", "/events/category/x/", "/tag/x/", "/events/month/2031-13/", "/events/x/"):
        assert get(app, f"{path}?ical=1")[0] == 404, path


def test_protected_event_has_title_and_time(app: RunningApp) -> None:
    event = app.caller("editor").create(
        "events", title="Secret", start_date="2018-01-05 10:00", end_date="2018-01-05 12:00",
        new_password="lilacs", description="Hidden text", venue={"venue": "Hidden hall"},
    )  # fmt: skip
    status, headers, body = get(app, f"/event/{event['slug']}/?ical=1")
    assert (status, headers["content-type"]) == (200, "text/calendar; charset=utf-8")
    assert [(entry.uid, entry.summary) for entry in read_with_icalendar(body.decode())] == [(event["uid"], "Secret")]
    assert b"Hidden" not in body
    app.caller("editor").trash("events", event["id"])


def test_former_slug_redirects_with_its_query(app: RunningApp) -> None:
    editor = app.caller("editor")
    times = {"start_date": "2019-01-05 10:00", "end_date": "2019-01-05 12:00"}
    event = editor.create("events", title="Renamed", slug="before", **times)
    editor.change("events", event["id"], slug="after")
    tag = editor.create("tags", name="Renamed", slug="before")
    editor.change("tags", tag["id"], slug="after")
    for address, location in {
        "/event/before/?ical=1": "/event/after/?ical=1",
        "/tag/before/?outlook-ical=1": "/tag/after/?ical=1",
        "/events/tag/before/?ical=1": "/tag/after/?ical=1",
        f"/?p={event['id']}&ical=1": "/event/after/?ical=1",
        f"/?post_type=tribe_events&p={event['id']}&outlook-ical=1": "/event/after/?outlook-ical=1",
    }.items():
        status, headers, _ = get(app, address)
        assert (status, headers["location"]) == (301, location), address
        assert get(app, location)[1]["content-type"] == "text/calendar; charset=utf-8"
    editor.trash("events", event["id"])


def test_no_page_ignores_the_parameter(app: RunningApp) -> None:
    """An address with the parameter never shows a page, which a calendar would read as empty or broken.

    The page with the code for embedding and forms have no events of their own.
    """
    examples = ("/", "/events/", "/events/month/", "/events/week/", "/events/weekend/", "/events/day/",
                "/events/list/", "/events/map/", "/events/search/", "/events/mine/", "/event/market/", "/venue/hall/",
                "/organizer/club/", "/events/category/music/", "/tag/winter/", "/series/yoga/")  # fmt: skip
    dates = {"start_date": "2050-01-04 19:30:00", "end_date": "2050-01-04 21:00:00"}
    SeriesClient(app.caller("editor")).create(rule="FREQ=WEEKLY;COUNT=3", **dates)
    pages = [route for route in PAGES.pages if route.is_page and route.handle is None]
    for route in [route for route in pages if route.pattern not in (EMBEDDING, DISPLAY)]:
        matching = [path for path in examples if re.fullmatch(route.pattern, path)]
        assert matching, route.pattern
        for path in matching:
            assert get(app, f"{path}?utm=1&ical=1")[1]["content-type"].startswith("text/calendar"), path
            assert get(app, f"/embed{path}?utm=1&ical=1")[0] == 404, path
