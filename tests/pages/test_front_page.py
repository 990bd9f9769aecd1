"""The front page: what is on today, tomorrow, at the weekend and in the next seven days."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from unittest.mock import patch

import pytest

from tests.api.running_app import RunningApp, expect_json
from tests.media.image_fixtures import EXTENSION_URL, make_image
from tests.pages.page_client import add_event, get_page

WEDNESDAY = date(2031, 6, 11)
EVENTS_PER_DAY = 12


@contextmanager
def at(day: date, hour: int = 8) -> Iterator[None]:
    """Serve requests as at an hour of a day in Berlin, which is two hours ahead of UTC then."""
    with patch("kalends.asgi.utc_now", lambda: datetime(day.year, day.month, day.day, hour - 2, tzinfo=UTC)):
        yield


def add(app: RunningApp, title: str, day: int, hours: str = "19:00 21:00", **more: object) -> int:
    """Add an event on a day, counted from the Wednesday."""
    begin, end = hours.split()
    on = WEDNESDAY + timedelta(days=day)
    event_id: int = add_event(app, title, f"{on} {begin}", f"{on} {end}", **more)["id"]
    return event_id


def list_sections(page: str) -> dict[str, list[str]]:
    """Return the titles of the cards below each heading."""
    main = page[page.index("<main") : page.index("</main>")]
    return {
        re.sub("<[^>]+>", "", name): re.findall(r"<h3><a [^>]+>([^<&]+)", text)
        for name, text in re.findall(r'<section class="row">\s*<h2>(.+?)</h2>(.*?)</section>', main, re.DOTALL)
    }


def list_days(page: str) -> dict[str, list[str]]:
    """Return the titles and the rest below each day of the next seven days."""
    if "More in the next seven days" not in page:
        return {}
    part = page[page.index("More in the next seven days") :]
    return {
        name: re.findall(r'<a href="[^"]+">([^<]+)', text)
        for name, text in re.findall(r"<h3><a [^>]+>([^<]+)</a></h3>(.*?)</section>", part, re.DOTALL)
    }


def list_strip(page: str) -> dict[str, tuple[int, str]]:
    """Return the number and the URL of each link of the strip."""
    links = re.findall(r'<a class="pill" href="([^"]+)">([^<]+) <span class="count">(\d+)', page)
    return {name: (int(count), url.replace("&amp;", "&")) for url, name, count in links}


def read_lead(page: str) -> tuple[str, str]:
    return re.findall(r'<h1>([^<]+)</h1>\s*<p class="lead">([^<]+)</p>', page)[0]


def fill(app: RunningApp) -> None:
    add(app, "Breakfast", 0, "09:00 10:00", cost="0")
    add(app, "Quiz", 0)
    add(app, "Lunch", 1, "12:00 13:00")
    for n in range(4):
        add(app, f"Talk {n}", 1, f"18:0{n} 20:00")
    add(app, "Market", 3, "08:00 12:00", cost="0")
    add(app, "Walk", 4, "10:00 12:00")
    add(app, "Choir", 6)
    add_event(app, "Old maps", "2031-05-01", "2031-08-01", all_day=True)
    add(app, "Gala", 40, featured=True)
    add(app, "Premiere", 3, "20:00 22:00", featured=True)


def test_front_page_shows_each_event_of_the_coming_days_once(app: RunningApp) -> None:
    fill(app)
    with at(WEDNESDAY):
        page = get_page(app, "/")
    assert read_lead(page) == ("Wednesday, June 11", "3 things on today")
    assert list_sections(page) == {
        "Today": ["Breakfast", "Quiz", "Old maps"],
        "Tomorrow": ["Lunch", "Talk 0", "Talk 1"],
        "This weekend": ["Market", "Premiere", "Walk"],
        "Featured events": ["Gala"],
    }
    assert list_days(page) == {"Thursday, June 12": ["Talk 2", "Talk 3"], "Tuesday, June 17": ["Choir"]}
    links = re.findall(r'href="/event/([^/]+)/"', page)
    assert len(links) == len(set(links)) == 13


def test_counts_are_those_of_the_lists_that_the_strip_links_to(app: RunningApp) -> None:
    fill(app)
    with at(WEDNESDAY):
        strip = list_strip(get_page(app, "/"))
        assert {name: count for name, (count, _) in strip.items()} == {
            "Today": 3, "Tonight": 1, "Tomorrow": 6, "This weekend": 4, "Free": 2,
        }  # fmt: skip
        for name, (count, url) in strip.items():
            path, _, query = url.partition("?")
            assert len(re.findall('<article class="card', get_page(app, path, query))) == count, name
    with at(WEDNESDAY + timedelta(days=2)):
        assert list(list_strip(get_page(app, "/"))) == ["Today", "Tomorrow", "This weekend", "Free"]


def test_counts_include_the_night_before_as_lists_do(app: RunningApp) -> None:
    for night in (-1, 2):
        begin = WEDNESDAY + timedelta(days=night)
        add_event(app, "Party", f"{begin} 22:00", f"{begin + timedelta(days=1)} 02:00", cost="0")
    add(app, "Market", 3, "08:00 12:00")
    add(app, "Quiz", 0)
    for day in range(5):
        with at(WEDNESDAY + timedelta(days=day)):
            strip = list_strip(get_page(app, "/"))
            for name, (count, url) in strip.items():
                path, _, query = url.partition("?")
                assert len(re.findall('<article class="card', get_page(app, path, query))) == count, (day, name)
            assert day > 0 or (strip["This weekend"][0], strip["Free"][0]) == (2, 2)


def test_cancelled_events_are_not_on(app: RunningApp) -> None:
    add(app, "Quiz", 0)
    add(app, "Walk", 0, event_status="cancelled")
    add_event(app, "Festival", "2031-06-10 19:00", "2031-06-13 23:00")
    for n in range(6):
        add(app, f"Talk {n}", 0, f"18:0{n} 20:00")
    with at(WEDNESDAY):
        page = get_page(app, "/")
    assert read_lead(page)[1] == "8 things on today"
    assert list_strip(page)["Today"][0] == 9
    # The festival began on another day, so its hours say nothing about today.
    assert '<span class="time">Ongoing</span>' in page


@pytest.mark.parametrize(
    ("day", "sections"),
    [
        (2, {"Today": 6, "Tomorrow": 3, "This weekend": 6}),
        (3, {"Today": 6, "Tomorrow": 3}),
        (4, {"Today": 6, "Tomorrow": 3}),
        (5, {"Today": 6, "Tomorrow": 3, "This weekend": 6}),
    ],
)
def test_full_days_have_a_link_to_the_rest(app: RunningApp, day: int, sections: dict[str, int]) -> None:
    first = WEDNESDAY + timedelta(days=day)
    for n in range(7):
        for number in range(EVENTS_PER_DAY):
            add(app, f"Event {n}-{number}", day + n, f"{8 + number:02}:00 {8 + number:02}:30")
    with at(first):
        page = get_page(app, "/")
    found = list_sections(page)
    assert {name: len(titles) for name, titles in found.items()} == sections
    days = list(list_days(page).values())
    assert len(days) == 7
    shown = sum(len(titles) for titles in found.values()) + sum(len(titles) - 1 for titles in days)
    rest = sum(int(titles[-1].removesuffix(" more")) for titles in days)
    assert shown + rest == 7 * EVENTS_PER_DAY
    assert all(len(titles) == 6 for titles in days[2:] if len(titles) > 1)


def test_day_without_events_leads_to_the_next_one(app: RunningApp) -> None:
    with at(WEDNESDAY):
        page = get_page(app, "/")
        assert read_lead(page)[1] == "Nothing on today"
        assert "No upcoming events." in page
        for n in range(7):
            add(app, f"Far away {n}", 60, cost="0")
        page = get_page(app, "/")
        assert {name: len(titles) for name, titles in list_sections(page).items()} == {"Sunday, August 10": 6}
        assert (list_strip(page), list_days(page)) == ({}, {})
        add(app, "Choir", 5)
        page = get_page(app, "/")
        assert read_lead(page)[1] == "Nothing on today"
        assert list_sections(page) == {"Monday, June 16": ["Choir"]}
        add(app, "Lunch", 1)
        assert list_sections(get_page(app, "/")) == {"Tomorrow": ["Lunch"]}


def test_what_is_over_comes_last_in_the_evening(app: RunningApp) -> None:
    add(app, "Breakfast", 0, "09:00 10:00")
    add(app, "Quiz", 0)
    for hour, titles in ((8, ["Breakfast", "Quiz"]), (17, ["Quiz", "Breakfast"])):
        with at(WEDNESDAY, hour):
            assert list_sections(get_page(app, "/")) == {"Today": titles}


def test_page_is_made_again_in_the_evening_and_at_midnight(app: RunningApp) -> None:
    add(app, "Breakfast", 0, "09:00 10:00")
    add(app, "Quiz", 0)
    with at(WEDNESDAY):
        get_page(app, "/")
    with at(WEDNESDAY, 17):
        assert list_sections(get_page(app, "/")) == {"Today": ["Quiz", "Breakfast"]}
    with at(WEDNESDAY + timedelta(days=1)):
        assert read_lead(get_page(app, "/"))[1] == "Nothing on today"


def test_another_date_of_a_shown_series_comes_last(app: RunningApp) -> None:
    series = {"title": "Story time", "start_date": "2031-06-11 09:00", "end_date": "2031-06-11 10:00"}
    with at(WEDNESDAY):  # Dates exist two years ahead.
        expect_json(
            app.caller("editor").post(f"{EXTENSION_URL}/series", {**series, "rule": "FREQ=DAILY;COUNT=9"}), 201
        )
    for n in range(3):
        add(app, f"Talk {n}", 1)
    with at(WEDNESDAY):
        sections = list_sections(get_page(app, "/"))
    assert sections["Today"] == ["Story time"]
    assert sections["Tomorrow"] == ["Talk 0", "Talk 1", "Talk 2"]
    assert sections["This weekend"] == ["Story time", "Story time"]


def test_hidden_and_protected_events(app: RunningApp) -> None:
    add(app, "Secret", 0, hide_from_listings=True)
    add(app, "Draft", 0, status="draft")
    add(app, "Club", 0, new_password="open sesame", cost="0", featured=True)
    with at(WEDNESDAY):
        page = get_page(app, "/")
    assert read_lead(page)[1] == "One thing on today"
    assert list_sections(page) == {"Today": ["Club"]}
    assert "Free" not in list_strip(page)


def test_categories_have_the_picture_of_their_next_event(app: RunningApp) -> None:
    editor = app.caller("editor")
    ids: list[int] = []
    for n in range(2):
        upload = editor.post(
            f"{EXTENSION_URL}/media", files={"file": (f"{n}.png", make_image("PNG", 60, 40, seed=n))}
        )
        ids.append(upload.json()["id"])
    music = editor.create("categories", name="Music")["id"]
    jazz = editor.create("categories", name="Jazz", parent=music)["id"]
    editor.create("categories", name="Empty")
    add(app, "Later", 9, categories=[music], image=ids[1])
    add(app, "Next", 8, categories=[jazz], image=ids[0])
    add(app, "Without", 7, categories=[music])
    with at(WEDNESDAY):
        page = get_page(app, "/")
        part = page[page.index('<section class="subjects">') :]
        assert re.findall(r"<b>([^<]+)</b>", part) == ["Music"]
        picture = re.findall(r'<img [^>]*src="([^"]+)"', part)
        assert picture == [editor.get(f"/events/{find_id(app, 'Next')}").json()["image"]["url"]]
        editor.change("events", find_id(app, "Without"), image=ids[1])
        assert picture != re.findall(r'<img [^>]*src="([^"]+)"', get_page(app, "/").partition("subjects")[2])
        editor.change("events", find_id(app, "Without"), image=0)
        editor.change("events", find_id(app, "Next"), image=0)
        assert picture != re.findall(r'<img [^>]*src="([^"]+)"', get_page(app, "/").partition("subjects")[2])


def find_id(app: RunningApp, title: str) -> int:
    found: int = app.caller().page("events", search=title, start_date="2031-01-01")["events"][0]["id"]
    return found


def test_calendar_stays_where_it_was(app: RunningApp) -> None:
    """List parameters and embedding lead to the default view, as does the setting."""
    category = app.caller("editor").create("categories", name="Music")
    add(app, "Concert", 0, categories=[category["id"]])
    with at(WEDNESDAY):
        assert "front-page" in get_page(app, "/")
        assert "front-page" in get_page(app, "/", "lang=de&utm_source=poster")
        for path, query in (
            ("/events/", ""), ("/embed/", ""), ("/embed/events/", ""), ("/", "categories=music"),
            ("/", "categories=x"),
            ("/", "page=1"), ("/", "start_date=2031-06-01"), ("/", "search=concert"),
        ):  # fmt: skip
            page = get_page(app, path, query)
            assert 'class="container month-page"' in page, (path, query)
            assert '<div class="highlights">' not in page, (path, query)
        app.set_site("start_page", "calendar")
        add(app, "Gala", 40, featured=True)
        page = get_page(app, "/")
        assert page == get_page(app, "/events/")
        assert 'class="container month-page"' in page
        assert '<div class="highlights">' in page


def test_addresses_of_the_front_page(app: RunningApp) -> None:
    add(app, "Concert", 0)
    with at(WEDNESDAY):
        page = get_page(app, "/")
        calendar = get_page(app, "/events/")
    canonical = re.compile(r'<link rel="canonical" href="https?://[^/]+(/[^"]*)">')
    assert canonical.findall(page) == ["/"]
    assert canonical.findall(calendar) == ["/events/"]
    assert "noindex" not in page
