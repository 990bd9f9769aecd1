"""What pages say about events, and to those who share them."""

import json
import re
from datetime import datetime
from typing import Any

import pytest

from kalends.core.html_text import to_single_line
from kalends.website.models.page_locale import make_page_locale
from tests.api.interface import Interface
from tests.pages.asking import add, get

EVENING = ("2031-03-14 19:30", "2031-03-14 22:00")


def told(page: str, name: str) -> str:
    found = re.search(rf'<meta property="og:{name}" content="([^"]*)">', page)
    assert found, name
    return found[1]


@pytest.mark.parametrize(
    ("language", "wanted", "with_year"),
    [("en", "Nov 2, 10:00 AM – Nov 29, 6:00 PM", "Nov 2, 2031, 10:00 AM – Nov 29, 2031, 6:00 PM"),
     ("de", "2. Nov., 10:00 – 29. Nov., 18:00", "2. Nov. 2031, 10:00 – 29. Nov. 2031, 18:00")],
)  # fmt: skip
def test_times_on_several_days_stand_beside_their_days(language: str, wanted: str, with_year: str) -> None:
    speech = make_page_locale(language, language, str)
    days = datetime(2031, 11, 2, 10), datetime(2031, 11, 29, 18)
    said = [re.sub(r"\s", " ", speech.range(*days, year=year)) for year in (False, True)]
    assert said == [wanted, with_year]
    later = speech.range(days[0], datetime(2032, 1, 1, 9), year=False)
    assert "2031" in later
    assert "2032" in later


def test_the_times_of_several_days_are_never_torn_apart(interface: Interface) -> None:
    event = add(interface, "Show", "2031-11-02 10:00", "2031-11-29 18:00")
    for path in ("/events/list/", f"/event/{event['slug']}/"):
        text = re.sub(r"<[^>]+>|\s", " ", get(interface, path))
        assert re.search(r"Nov 2,( 2031,)? 10:00 AM – Nov 29,( 2031,)? 6:00 PM", text), path
        assert "10:00 AM – 6:00 PM" not in text
        assert "All day" not in text


@pytest.mark.parametrize(
    ("html", "run"),
    [("<h2>Programm</h2><p>Mozart</p><ul><li>Eins</li><li>Zwei</li></ul>", "Programm · Mozart · Eins · Zwei"),
     ("<p>It begins. </p><p>It ends!</p><p>So: </p><p>what</p>", "It begins. It ends! So: what"),
     ("<p>One &amp; <em>two</em><br />three</p>", "One & two · three"), ("", ""), ("Plain\nwords", "Plain · words")],
)  # fmt: skip
def test_blocks_do_not_run_together_in_an_excerpt(html: str, run: str) -> None:
    assert to_single_line(html) == run


def test_what_is_over_is_not_offered_to_calendars(interface: Interface) -> None:
    old = add(interface, "Old", "2020-03-14 19:30", "2020-03-14 22:00")
    new = add(interface, "New", *EVENING)
    assert "Add to calendar" not in get(interface, f"/event/{old['slug']}/")
    assert "Add to calendar" in get(interface, f"/event/{new['slug']}/")


def test_the_page_of_an_event_says_where_before_it_says_what(interface: Interface) -> None:
    event = add(interface, "Concert", *EVENING, venue={"venue": "Hall", "city": "Lindenstadt"}, description="Songs",
                ticket_url="https://tickets.example/")  # fmt: skip
    page = get(interface, f"/event/{event['slug']}/")
    body = page[page.index("<article") :]
    order = ["<time", ">Hall</a>, Lindenstadt", "Add to calendar", "Tickets", "<p>Songs", '<dl class="facts">']
    assert [body.index(part) for part in order] == sorted(body.index(part) for part in order)


def test_every_page_leads_to_the_views(interface: Interface) -> None:
    event = add(interface, "Concert", *EVENING, venue={"venue": "Hall"})
    for path, status in ((f"/event/{event['slug']}/", 200), ("/venue/hall/", 200), ("/events/search/", 200),
                         ("/event/none/", 404)):  # fmt: skip
        page = get(interface, path, status=status)
        views = page[page.index('class="view-nav"') : page.index("<main")]
        assert len(re.findall(r"<li><a ", views)) == 5
        assert "aria-current" not in views
    assert 'href="/events/month/2031-03/"' in get(interface, f"/event/{event['slug']}/")


def test_a_page_that_is_not_there_helps_to_find_another(interface: Interface) -> None:
    page = get(interface, "/event/none/", status=404)
    main = page[page.index("<main") :]
    assert 'action="/events/search/"' in main
    assert 'name="search"' in main
    assert 'href="/events/list/"' in main
    assert "<p></p>" not in main


def test_the_main_categories_are_on_every_view(interface: Interface) -> None:
    editor = interface.caller("editor")
    music = editor.create("categories", name="Music")["id"]
    jazz = editor.create("categories", name="Jazz", parent=music)["id"]
    editor.create("categories", name="Unused")
    add(interface, "Loud", *EVENING, categories=[jazz])
    for number in range(9):
        term = editor.create("categories", name=f"C{number}")["id"]
        for _ in range(2 + number):
            add(interface, "E", *EVENING, categories=[term])
    add(interface, "Louder", *EVENING, categories=[jazz, music])
    for path in ("/events/month/2031-03/", "/events/week/2031-03-14/", "/events/day/2031-03-14/", "/events/list/",
                 "/events/search/"):  # fmt: skip
        page = get(interface, path, "lang=de")
        found = re.findall(r'<li><a href="/events/category/([^/]+)/\?lang=de">([^<]+)</a></li>', page)
        assert found == [*[(f"c{n}", f"C{n}") for n in range(2, 9)], ("music", "Music")], path
        assert "s1-categories" in interface.raw("GET", path)[1]["surrogate-key"].split()
        if path != "/events/search/":
            assert '<a class="pill" href="/events/search/?lang=de">Filtern</a>' in page
    assert "/events/category/" not in get(interface, "/embed/events/list/")


def test_an_empty_venue_has_no_upcoming_events(interface: Interface) -> None:
    interface.caller("editor").create("venues", venue="Hall")
    assert "No upcoming events." in get(interface, "/venue/hall/")
    assert "No events in this period." in get(interface, "/venue/hall/", "past=1")


def test_steps_of_weeks_say_that_they_are(interface: Interface) -> None:
    add(interface, "Concert", *EVENING)
    assert "<span>Week of Mon, Mar 10</span>" in get(interface, "/events/week/2031-03-20/")


@pytest.mark.parametrize("year", ["0500", "0999", "9001"])
def test_far_years_have_no_links_to_pages_that_are_not_there(interface: Interface, year: str) -> None:
    event = add(interface, "Far", f"{year}-06-14 19:30", f"{year}-06-14 22:00")
    page = get(interface, f"/event/{event['slug']}/")
    assert f"/{year}-06" not in page
    assert "/500-06" not in page
    near = "1000-01" if year < "1000" else "9000-12"
    page = get(interface, f"/events/month/{near}/")
    assert re.findall(r'<a rel="(?:prev|next)" href="([^"]+)"', page) == []


def test_a_shared_page_has_a_language_words_and_a_picture(interface: Interface) -> None:
    interface.sql(
        "INSERT INTO media (site_id, id, revision, url, extension, width, height, filesize, alt_text) "
        "SELECT id, 1000, 0, 'http://calendar.test/hall.png', 'png', 1200, 700, 100, 'A hall' FROM sites"
    )
    event = add(interface, "Concert", *EVENING, venue={"venue": "Hall", "city": "Lindenstadt", "image": 1000})
    page = get(interface, f"/event/{event['slug']}/")
    assert told(page, "locale") == "en_US"
    assert told(get(interface, "/events/list/", "lang=de"), "locale") == "de_DE"
    assert told(page, "description") == ("Friday, March 14, 2031, 7:30\xa0PM – 10:00\xa0PM CET · Hall, Lindenstadt")
    assert "og:image" not in page
    venue = get(interface, "/venue/hall/")
    assert (told(venue, "image"), told(venue, "image:alt")) == ("http://calendar.test/hall.png", "A hall")
    interface.set_site("logo_url", "https://cdn.example/logo.svg")
    assert told(get(interface, f"/event/{event['slug']}/"), "image") == "https://cdn.example/logo.svg"
    assert told(get(interface, "/events/list/"), "description") == "Upcoming events · Kalends"


def test_whole_days_are_told_as_days(interface: Interface) -> None:
    event = add(interface, "Fair", "2031-03-28", "2031-03-30", all_day=True)
    page = get(interface, f"/event/{event['slug']}/")
    found = re.search(r'<script type="application/ld\+json">(.*?)</script>', page, re.DOTALL)
    assert found
    days: dict[str, Any] = json.loads(found[1])
    assert (days["startDate"], days["endDate"]) == ("2031-03-28", "2031-03-30")


def test_a_venue_shows_the_way_on_a_map_of_the_world(interface: Interface) -> None:
    interface.caller("editor").create("venues", venue="Hall", city="Lindenstadt", geo_lat=52.5, geo_lng=13.4,
                                      show_map_link=True)  # fmt: skip
    assert "https://www.openstreetmap.org/?mlat=52.50000" in get(interface, "/venue/hall/")
