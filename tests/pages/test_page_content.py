"""What pages say about events, and to those who share them."""

import json
import re
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch
from zoneinfo import ZoneInfo

import pytest

from kalends.core import errors
from kalends.core.html_text import to_single_line
from kalends.rendering.page_locale import make_page_locale
from kalends.website import page_server
from tests.api.running_app import RunningApp
from tests.pages.page_client import HTML_HEADERS, add_event, get_page

EVENING = ("2031-03-14 19:30", "2031-03-14 22:00")


def open_graph(page: str, name: str) -> str:
    match = re.search(rf'<meta property="og:{name}" content="([^"]*)">', page)
    assert match, name
    return match[1]


@pytest.mark.parametrize(
    ("language", "expected", "with_year"),
    [("en", "Nov 2, 10:00 AM – Nov 29, 6:00 PM", "Nov 2, 2031, 10:00 AM – Nov 29, 2031, 6:00 PM"),
     ("de", "2. Nov., 10:00 – 29. Nov., 18:00", "2. Nov. 2031, 10:00 – 29. Nov. 2031, 18:00")],
)  # fmt: skip
def test_multi_day_times_include_dates(language: str, expected: str, with_year: str) -> None:
    page_locale = make_page_locale(language, language, str)
    days = datetime(2031, 11, 2, 10), datetime(2031, 11, 29, 18)
    formatted = [re.sub(r"\s", " ", page_locale.range(*days, year=year)) for year in (False, True)]
    assert formatted == [expected, with_year]
    later = page_locale.range(days[0], datetime(2032, 1, 1, 9), year=False)
    assert "2031" in later
    assert "2032" in later


def test_multi_day_times_are_rendered_together(app: RunningApp) -> None:
    event = add_event(app, "Show", "2031-11-02 10:00", "2031-11-29 18:00")
    for path in ("/events/list/", f"/event/{event['slug']}/"):
        text = re.sub(r"<[^>]+>|\s", " ", get_page(app, path))
        assert re.search(r"Nov 2,( 2031,)? 10:00 AM – Nov 29,( 2031,)? 6:00 PM", text), path
        assert "10:00 AM – 6:00 PM" not in text
        assert "All day" not in text


@pytest.mark.parametrize(
    ("html", "run"),
    [("<h2>Programm</h2><p>Mozart</p><ul><li>Eins</li><li>Zwei</li></ul>", "Programm · Mozart · Eins · Zwei"),
     ("<p>It begins. </p><p>It ends!</p><p>So: </p><p>what</p>", "It begins. It ends! So: what"),
     ("<p>One &amp; <em>two</em><br />three</p>", "One & two · three"), ("", ""), ("Plain\nwords", "Plain · words")],
)  # fmt: skip
def test_excerpt_separates_blocks(html: str, run: str) -> None:
    assert to_single_line(html) == run


def test_week_names_the_venue_of_open_events(app: RunningApp) -> None:
    editor = app.caller("editor")
    cellar, hall, barn = (editor.create("venues", venue=name) for name in ("Secret cellar", "Hall &amp; bar", "Barn"))
    event = add_event(app, "Concert", *EVENING, venue=[cellar["id"], hall["id"]])
    # Publishing the event would publish a venue that was a draft before.
    editor.change("venues", cellar["id"], status="draft")
    add_event(app, "For friends", *EVENING, venue=barn["id"], new_password="open sesame")

    def places() -> list[str]:
        return re.findall(r"<small>([^<]+)</small>", get_page(app, "/events/week/2031-03-14/"))

    assert places() == ["Hall &amp; bar"]
    editor.change("venues", hall["id"], venue="Town hall")
    assert places() == ["Town hall"]
    editor.change("events", event["id"], venue=barn["id"])
    assert places() == ["Barn"]


def test_past_events_have_no_calendar_links(app: RunningApp) -> None:
    old = add_event(app, "Old", "2020-03-14 19:30", "2020-03-14 22:00")
    new = add_event(app, "New", *EVENING)
    assert "Add to calendar" not in get_page(app, f"/event/{old['slug']}/")
    assert "Add to calendar" in get_page(app, f"/event/{new['slug']}/")


def test_event_page_displays_place_before_description(app: RunningApp) -> None:
    event = add_event(app, "Concert", *EVENING, venue={"venue": "Hall", "city": "Lindenstadt"}, description="Songs",
                ticket_url="https://tickets.example/")  # fmt: skip
    page = get_page(app, f"/event/{event['slug']}/")
    body = page[page.index("<article") :]
    order = ['<dl class="facts">', "<time", ">Hall</a>", "Lindenstadt", "Tickets", "Add to calendar", "<p>Songs"]
    assert [body.index(part) for part in order] == sorted(body.index(part) for part in order)


def test_all_pages_link_to_views(app: RunningApp) -> None:
    event = add_event(app, "Concert", *EVENING, venue={"venue": "Hall"})
    for path, status in ((f"/event/{event['slug']}/", 200), ("/venue/hall/", 200), ("/events/search/", 200),
                         ("/event/none/", 404)):  # fmt: skip
        page = get_page(app, path, status=status)
        views = page[page.index('class="view-nav"') : page.index("<main")]
        assert len(re.findall(r"<li><a ", views)) == 5
        assert "aria-current" not in views
    assert 'href="/events/month/2031-03/"' in get_page(app, f"/event/{event['slug']}/")


def test_not_found_page_offers_search(app: RunningApp) -> None:
    page = get_page(app, "/event/none/", status=404)
    main = page[page.index("<main") :]
    assert 'action="/events/search/"' in main
    assert 'name="search"' in main
    assert 'href="/events/list/"' in main
    assert "There’s no page at this address." in main
    assert page.count('type="search"') == 1


def test_main_categories_are_on_all_views(app: RunningApp) -> None:
    editor = app.caller("editor")
    music = editor.create("categories", name="Music")["id"]
    jazz = editor.create("categories", name="Jazz", parent=music)["id"]
    editor.create("categories", name="Unused")
    add_event(app, "Loud", *EVENING, categories=[jazz])
    for number in range(9):
        term = editor.create("categories", name=f"C{number}")["id"]
        for _ in range(2 + number):
            add_event(app, "E", *EVENING, categories=[term])
    add_event(app, "Louder", *EVENING, categories=[jazz, music])
    for path in ("/events/month/2031-03/", "/events/week/2031-03-14/", "/events/day/2031-03-14/", "/events/list/",
                 "/events/search/"):  # fmt: skip
        page = get_page(app, path, "lang=de")
        bar = page.partition('id="more-categories"')[0]
        links = re.findall(r'<li><a href="/events/category/([^/]+)/\?lang=de">([^<]+)</a></li>', bar)
        assert links == [*[(f"c{n}", f"C{n}") for n in range(8, 1, -1)], ("music", "Music")], path
        assert f"s{app.site_id}-categories" in app.raw("GET", path)[1]["surrogate-key"].split()
        if path != "/events/search/":
            assert '<a class="pill" href="/events/search/?lang=de">Filtern</a>' in page
    assert "/events/category/" not in get_page(app, "/embed/events/list/")


def read_empty_state(page: str) -> tuple[str, list[tuple[str, str]]]:
    """Return what an empty page says, and its links."""
    match = re.search(r'<div class="empty-state">\n<p>(.*?)</p>(.*?)</div>', page, re.DOTALL)
    assert match, page
    return match[1], re.findall(r'<a class="pill" href="([^"]+)"[^>]*>([^<]+)</a>', match[2])


def test_empty_pages_name_their_days_and_lead_to_the_nearest_events(app: RunningApp) -> None:
    editor = app.caller("editor")
    music = editor.create("categories", name="Music")["id"]
    add_event(app, "Before", "2031-02-07 19:00", "2031-02-07 21:00", categories=[music])
    add_event(app, "After", "2031-06-12 19:00", "2031-06-12 21:00", categories=[music])
    add_event(app, "Talk", "2031-05-21 19:00", "2031-05-21 21:00")
    app.set_site("language", "en-GB")
    filters = f"categories={music}"
    everything = ("/events/list/", "All upcoming events")

    def days(path: str, back: str, ahead: str, query: str = "") -> list[tuple[str, str]]:
        names = (("Next: ", "Thu, 12 Jun 2031", ahead), ("Back to ", "Fri, 7 Feb 2031", back))
        links = [(f"/events/{path}/{day}/{query}", f"{label}{name}") for label, name, day in names]
        return [*links, (f"/events/list/{query}", "All upcoming events")]

    for path, text, links in (
        ("day/2031-05-20", "Nothing on Tuesday 20 May", days("day", "2031-02-07", "2031-06-12", f"?{filters}")),
        ("week/2031-05-20", "Nothing from Mon 19 May to Sun, 25 May 2031",
         days("week", "2031-02-07", "2031-06-12", f"?{filters}")),
        ("month/2031-05", "Nothing in May 2031", days("month", "2031-02", "2031-06", f"?{filters}")),
        ("weekend/2031-05-20", "Nothing from Fri 23 May to Sun, 25 May 2031",
         days("day", "2031-02-07", "2031-06-12", f"?{filters}")),
    ):  # fmt: skip
        assert read_empty_state(get_page(app, f"/events/{path}/", filters)) == (text, links), path
    dated = f"{filters}&start_date=2031-03-01&end_date=2031-03-31"
    links = [*days("day", "2031-02-07", "2031-06-12", f"?{filters}")[:2], everything]
    text = "Nothing from Sat 1 Mar to Mon, 31 Mar 2031"
    assert read_empty_state(get_page(app, "/events/list/", dated)) == (text, links)
    for dates, text in (
        ("start_date=2033-01-01", "Nothing from Sat, 1 Jan 2033 onward"),
        ("end_date=2020-01-01", "Nothing until Wed, 1 Jan 2020"),
        ("start_date=2031-03-01&end_date=2031-03-01", "Nothing on Saturday 1 March"),
        ("include=987654", "No events match these filters."),
    ):
        assert read_empty_state(get_page(app, "/events/list/", dates))[0] == text


def test_lists_without_upcoming_or_past_events_lead_to_the_others(app: RunningApp) -> None:
    hall = app.caller("editor").create("venues", venue="Hall")["id"]
    everything = ("/events/list/", "All upcoming events")
    assert read_empty_state(get_page(app, "/venue/hall/")) == ("No upcoming events.", [everything])
    assert read_empty_state(get_page(app, "/events/list/")) == ("No upcoming events.", [])
    past = app.caller("editor").create(
        "events", title="Then", start_date="2020-05-05 19:00", end_date="2020-05-05 21:00", venue=hall
    )
    day = (f"/events/day/2020-05-05/?venue={hall}", "Back to Tue, May 5, 2020")
    assert read_empty_state(get_page(app, "/venue/hall/")) == ("No upcoming events.", [day, everything])
    app.caller("editor").delete(f"/events/{past['id']}")
    add_event(app, "Concert", *EVENING, venue=hall)
    day = (f"/events/day/2031-03-14/?venue={hall}", "Next: Fri, Mar 14, 2031")
    assert read_empty_state(get_page(app, "/venue/hall/", "past=1")) == ("No past events.", [day, everything])
    # A frame stays with the events that it was embedded for.
    framed = read_empty_state(get_page(app, "/embed/events/list/", f"venue={hall}&past=1"))
    assert [url for url, _ in framed[1]] == [f"/embed{day[0]}", f"/embed/events/list/?venue={hall}"]


def add_image(app: RunningApp, image_id: int) -> str:
    url = f"http://calendar.test/{image_id}.png"
    app.sql(
        "INSERT INTO media (site_id, id, revision, url, extension, width, height, filesize, alt_text) "
        "SELECT id, $1, 0, $2, 'png', 1200, 700, 100, '' FROM sites",
        image_id,
        url,
    )
    return url


def read_intro(app: RunningApp, path: str, query: str = "") -> tuple[str, list[str], list[str]]:
    """Return what the page of a record says about its events, the links to views, and its picture."""
    page = get_page(app, path, query)
    intro = page[page.index('<div class="record-intro">') : page.index("</ul>", page.index("record-events"))]
    return (
        re.findall(r"<b>([^<]+)</b>", intro)[0],
        re.findall(r'<a href="([^"]+)"', intro),
        re.findall(r'<img src="([^"]+)"', intro),
    )


def test_record_pages_count_events_and_show_the_picture_of_the_next_one(app: RunningApp) -> None:
    editor = app.caller("editor")
    first, second, own = (add_image(app, number) for number in (1000, 1001, 1002))
    hall = editor.create("venues", venue="Hall")["id"]
    choir = editor.create("organizers", organizer="Choir", description="We sing.", image=1002)["id"]
    music = editor.create("categories", name="Music", description="Loud.")["id"]
    tag = editor.create("tags", name="Free")["id"]
    links = {"venue": hall, "organizer": choir, "categories": [music], "tags": [tag]}
    paths = {"/venue/hall/": f"venue={hall}", "/organizer/choir/": f"organizer={choir}",
             "/events/category/music/": f"categories={music}", "/tag/free/": f"tags={tag}"}  # fmt: skip
    assert read_intro(app, "/venue/hall/")[::2] == ("No upcoming events", [])
    for number, more in enumerate((
        {"image": 1001, "new_password": "lilacs"}, {"image": 1001, "status": "draft"}, {}, {"image": 1000},
        {"image": 1001},
    )):  # fmt: skip
        day = f"2031-03-{14 + number}"
        add_event(app, f"Concert {number}", f"{day} 19:30", f"{day} 22:00", **links, **more)
        if number == 2:  # The filter must not reveal the first one, which is protected.
            assert read_intro(app, "/venue/hall/")[::2] == ("One upcoming event", [])
    for path, filters in paths.items():
        views = [f"/events/{view}/?{filters}" for view in ("month", "week", "list", "map")]
        picture = own if path.startswith("/organizer/") else first
        for query in ("", "page=2&per_page=1", "past=1"):
            assert read_intro(app, path, query) == ("3 upcoming events", views, [picture]), (path, query)
    page = get_page(app, "/events/category/music/")
    assert open_graph(page, "image") == first
    assert "<p>Loud.</p>" in page
    assert second not in page.partition("record-events")[0]


@pytest.mark.parametrize("query", ["", "page=2&per_page=3", "past=1"])
def test_record_page_follows_the_picture_of_the_next_event(app: RunningApp, query: str) -> None:
    editor = app.caller("editor")
    first, second = (add_image(app, number) for number in (1000, 1001))
    music = editor.create("categories", name="Music")["id"]
    events = [add_event(app, f"Concert {n}", *EVENING, categories=[music]) for n in range(6)]

    def read_picture() -> list[str]:
        return read_intro(app, "/events/category/music/", query)[2]

    assert read_picture() == []
    editor.change("events", events[1]["id"], image=1000)
    assert read_picture() == [first]
    editor.change("events", events[0]["id"], image=1001)
    assert read_picture() == [second]
    editor.change("events", events[0]["id"], new_password="lilacs")
    assert read_picture() == [first]
    editor.change("events", events[1]["id"], categories=[])
    assert read_picture() == []


def test_missing_page_lists_events_of_today(app: RunningApp) -> None:
    now = datetime.now(ZoneInfo("Europe/Berlin"))
    today, last_week, tomorrow = (str((now + timedelta(days=days)).date()) for days in (0, -7, 1))
    for number in range(4):
        add_event(app, f"Concert {number}", f"{today} 1{number}:00", f"{today} 1{number}:30", description="Loud")
    add_event(app, "Exhibition", last_week, tomorrow, all_day=True)
    add_event(app, "Second exhibition", last_week, tomorrow, all_day=True)
    add_event(app, "Tomorrow", tomorrow, tomorrow, all_day=True)
    add_event(app, "Draft", f"{today} 09:00", f"{today} 10:00", status="draft")
    add_event(app, "Unlisted", f"{today} 09:00", f"{today} 10:00", hide_from_listings=True)
    locked = add_event(app, "Protected", "2031-03-14 10:00", "2031-03-14 11:00", new_password="lilacs")

    def list_titles(path: str, status: int) -> list[str]:
        main = get_page(app, path, status=status).partition("<main")[2]
        return re.findall(r'<h3><a href="[^"]+">([^<]+)</a>', main)

    titles = [*[f"Concert {number}" for number in range(4)], "Exhibition"]
    assert list_titles("/event/none/", 404) == list_titles("/nowhere/", 404) == titles
    assert list_titles(f"/event/{locked['slug']}/", 403) == []
    page = get_page(app, "/event/none/", status=404)
    assert (page.count("Loud"), page.count("<img")) == (0, 0)
    assert app.raw("GET", "/event/none/", headers=HTML_HEADERS)[1]["cache-control"] == "private, no-store"
    add_event(app, "Early", f"{today} 07:00", f"{today} 08:00")
    assert list_titles("/event/none/", 404) == ["Early", *titles[:4]]


@pytest.mark.parametrize("failure", [errors.unavailable(), RuntimeError("a bug")], ids=["503", "bug"])
def test_missing_page_does_not_need_the_events_of_today(app: RunningApp, failure: Exception) -> None:
    with patch.object(page_server, "list_today", side_effect=failure) as listing:
        page = get_page(app, "/event/none/", status=404)
    assert listing.called
    assert "There’s no page at this address." in page
    assert "<article" not in page


def test_week_navigation_is_labelled(app: RunningApp) -> None:
    add_event(app, "Concert", *EVENING)
    assert "<span>Week of Mon, Mar 10</span>" in get_page(app, "/events/week/2031-03-20/")


@pytest.mark.quick("0500", "9001")
@pytest.mark.parametrize("year", ["0500", "0999", "9001"])
def test_far_dates_have_no_links_to_missing_pages(app: RunningApp, year: str) -> None:
    event = add_event(app, "Far", f"{year}-06-14 19:30", f"{year}-06-14 22:00")
    page = get_page(app, f"/event/{event['slug']}/")
    assert f"/{year}-06" not in page
    assert "/500-06" not in page
    near = "1000-01" if year < "1000" else "9000-12"
    page = get_page(app, f"/events/month/{near}/")
    assert re.findall(r'<a rel="(?:prev|next)" href="([^"]+)"', page) == []


def test_open_graph_metadata(app: RunningApp) -> None:
    app.sql(
        "INSERT INTO media (site_id, id, revision, url, extension, width, height, filesize, alt_text) "
        "SELECT id, 1000, 0, 'http://calendar.test/hall.png', 'png', 1200, 700, 100, 'A hall' FROM sites"
    )
    event = add_event(app, "Concert", *EVENING, venue={"venue": "Hall", "city": "Lindenstadt", "image": 1000})
    page = get_page(app, f"/event/{event['slug']}/")
    assert open_graph(page, "locale") == "en_US"
    assert open_graph(get_page(app, "/events/list/", "lang=de"), "locale") == "de_DE"
    assert open_graph(page, "description") == ("Friday, March 14, 2031, 7:30\xa0PM – 10:00\xa0PM · Hall, Lindenstadt")
    assert "og:image" not in page
    venue = get_page(app, "/venue/hall/")
    assert (open_graph(venue, "image"), open_graph(venue, "image:alt")) == ("http://calendar.test/hall.png", "A hall")
    app.set_site("logo_url", "https://cdn.example/logo.svg")
    assert open_graph(get_page(app, f"/event/{event['slug']}/"), "image") == "https://cdn.example/logo.svg"
    assert open_graph(get_page(app, "/events/list/"), "description") == "Upcoming events · Kalends"


def test_all_day_event_has_dates_in_json_ld(app: RunningApp) -> None:
    event = add_event(app, "Fair", "2031-03-28", "2031-03-30", all_day=True)
    page = get_page(app, f"/event/{event['slug']}/")
    match = re.search(r'<script type="application/ld\+json">(.*?)</script>', page, re.DOTALL)
    assert match
    days: dict[str, Any] = json.loads(match[1])
    assert (days["startDate"], days["endDate"]) == ("2031-03-28", "2031-03-30")


def test_venue_links_to_external_map(app: RunningApp) -> None:
    app.caller("editor").create("venues", venue="Hall", city="Lindenstadt", geo_lat=52.5, geo_lng=13.4,
                                      show_map_link=True)  # fmt: skip
    assert "https://www.openstreetmap.org/?mlat=52.50000" in get_page(app, "/venue/hall/")


def test_event_page_names_the_time_zone_only_where_it_matters(app: RunningApp) -> None:
    events = [add_event(app, f"Concert {number}", *EVENING, **fields) for number, fields in enumerate(
        ({}, {"timezone": "Asia/Tokyo"}, {"online_url": "https://video.example/"}))]  # fmt: skip
    pages = [get_page(app, f"/event/{event['slug']}/") for event in events]
    zones = [re.findall(r"<small>Time zone: ([^<]*)</small>", page) for page in pages]
    assert zones == [[], ["Asia/Tokyo"], [events[2]["timezone"]]]
    # The script of the page needs the zone always, for visitors in another one.
    assert all(f'data-zone="{event["timezone"]}"' in page for event, page in zip(events, pages, strict=True))


def test_a_street_with_the_name_of_the_venue_is_written_once(app: RunningApp) -> None:
    venue = {"venue": "Market Square", "address": "Market Square", "city": "Larkford"}
    event = add_event(app, "Fair", *EVENING, venue=venue)
    facts = get_page(app, f"/event/{event['slug']}/").partition('<dl class="facts">')[2].partition("</dl>")[0]
    assert facts.count(">Market Square<") == 1
    assert "Larkford" in facts
