"""Filters of pages and feeds: what they are called, how they are taken off, and what is left when a record goes."""

import html
import re

import pytest

from tests.api.running_app import RunningApp
from tests.feeds.ical_readers import unfold_lines
from tests.pages.page_client import add_event, get_page

EVENING = ("2031-03-14 19:30", "2031-03-14 22:00")
VIEWS = ("/events/month/2031-03/", "/events/week/2031-03-14/", "/events/day/2031-03-14/", "/events/list/",
         "/events/search/")  # fmt: skip
FEED_FORMATS = ("ics", "rss", "atom", "json")
NOT_FOUND_MESSAGE = "“{}” was not found."


@pytest.fixture
def music(app: RunningApp) -> int:
    """Some music and something else; the ID of the category."""
    editor = app.caller("editor")
    category_id = editor.create("categories", name="Music")["id"]
    add_event(app, "Loud", *EVENING, categories=[category_id], tags=[editor.create("tags", name="Free")["id"]])
    add_event(app, "Quiet", *EVENING)
    return category_id


def read_feed(app: RunningApp, query: str, form: str = "ics") -> str:
    status, _, body = app.raw("GET", f"/events.{form}", query=query.encode())
    assert status == 200, body
    return body.decode()


def parse_chips(page: str) -> dict[str, str]:
    matches = re.findall(r'<li><span>([^<]+)</span><a href="([^"]+)"', page)
    return {html.unescape(name): html.unescape(url) for name, url in matches}


@pytest.mark.quick("ics", "json")
@pytest.mark.parametrize("form", FEED_FORMATS)
def test_feed_filter_survives_renames_and_deletions(app: RunningApp, music: int, form: str) -> None:
    editor = app.caller("editor")
    page = get_page(app, "/events/list/", "categories=music")
    lasting = re.search(rf'href="/events\.{form}\?(categories=\d+)"', page)
    assert lasting
    assert "Loud" in read_feed(app, lasting[1], form)
    editor.change("categories", music, name="Sound", slug="sound")
    assert "Loud" in read_feed(app, lasting[1], form)
    # The former slug still leads to the category.
    assert "Loud" in read_feed(app, "categories=music", form)
    editor.trash("categories", music)
    for query in (lasting[1], "categories=music", "tags=nothing", "venue=9999", "organizer=9999"):
        body = read_feed(app, query, form)
        assert "Loud" not in body
        assert "Quiet" not in body
    # Where one of two is gone, the other is left.
    assert "Loud" in read_feed(app, "tags=free,nothing", form)
    assert editor.get("/events", {"categories": "music"}).status_code == 400


def test_page_reports_unknown_filter_values(app: RunningApp, music: int) -> None:
    for path in (*VIEWS, "/events/map/"):
        page = get_page(app, path, "categories=gone")
        assert NOT_FOUND_MESSAGE.format("gone") in page
        assert "Loud" not in page
        assert "Quiet" not in page
        page = get_page(app, path, "near=Nowhere")
        assert "No venue matches “Nowhere”." in page
        assert "Loud" not in page


@pytest.mark.parametrize("path", ["/events/list/", "/events/map/"])
def test_unknown_place_is_the_only_message(app: RunningApp, music: int, path: str) -> None:
    assert get_page(app, path, "near=Nowhere").count("empty-state") == 1


def test_feed_and_embed_links_use_ids_and_coordinates(app: RunningApp, music: int) -> None:
    app.caller("editor").create("venues", venue="Hall", city="Lindenstadt", geo_lat=52.5, geo_lng=13.4)
    page = get_page(app, "/events/list/", "categories=music&near=lindenstadt")
    filters = f"categories={music}&amp;geoloc_lat=52.50000&amp;geoloc_lng=13.40000"
    for link in (f"/events.ics?{filters}", f"/events/embed/?{filters}&amp;view=list"):
        assert link in page
    assert 'href="/events/month/?categories=music&amp;near=lindenstadt"' in page


def test_all_views_support_near_filter(app: RunningApp) -> None:
    editor = app.caller("editor")
    for town, latitude in (("Lindenstadt", 52.5), ("Fernau", 48.1)):
        hall = editor.create("venues", venue=f"Hall of {town}", city=town, geo_lat=latitude, geo_lng=13.4)
        add_event(app, f"In {town}", *EVENING, venue=hall["id"])
    for path in (*VIEWS, "/events/map/"):
        page = get_page(app, path, "near=Fernau&geoloc_radius=10")
        assert "In Fernau" in page
        assert "In Lindenstadt" not in page


def test_filter_chips_remove_one_filter_each(app: RunningApp, music: int) -> None:
    editor = app.caller("editor")
    talks = editor.create("categories", name="Talks")["id"]
    editor.create("venues", venue="Hall", city="Lindenstadt", geo_lat=52.5, geo_lng=13.4)
    path = "/events/list/"
    assert parse_chips(get_page(app, path, f"categories[]=music&categories[]={talks}&search=a,b")) == {
        "Music": f"{path}?categories%5B%5D={talks}&search=a%2Cb",
        "Talks": f"{path}?categories%5B%5D=music&search=a%2Cb",
        "a,b": f"{path}?categories%5B%5D=music&categories%5B%5D={talks}",
    }
    assert parse_chips(get_page(app, path, "categories=music,talks")) == {
        "Music": f"{path}?categories=talks",
        "Talks": f"{path}?categories=music",
    }
    assert parse_chips(get_page(app, path, "overlaps_from=2031-03-01&end_date=2031-04-01")) == {
        "From: Mar 1, 2031": f"{path}?end_date=2031-04-01",
        "Until: Apr 1, 2031": f"{path}?overlaps_from=2031-03-01",
    }
    near = "near=Lindenstadt&geoloc_radius=10&geoloc_lat=1&geoloc_lng=1"
    assert parse_chips(get_page(app, path, near)) == {
        "Lindenstadt": path,
        "Within 10 km": f"{path}?near=Lindenstadt",
    }
    assert parse_chips(get_page(app, path, "geoloc_lat=1&geoloc_lng=1&featured=1")) == {
        "Within 40 km": f"{path}?featured=1",
    }
    assert parse_chips(get_page(app, path, "geoloc_radius=10")) == {}
    assert parse_chips(get_page(app, path, "free=1")) == {"Free": path}


def test_search_form_preserves_selected_terms(app: RunningApp, music: int) -> None:
    editor = app.caller("editor")
    for number in range(45):
        term = editor.create("categories", name=f"More {number}")["id"]
        for _ in range(2):
            add_event(app, f"E{number}", *EVENING, categories=[term])
    rare = editor.create("categories", name="Rare")["id"]

    def chosen(query: str) -> list[tuple[str, str]]:
        page = get_page(app, "/events/search/", query)
        return re.findall(r'value="([^"]*)" checked> <span>([^<]*)</span>', page)

    assert chosen("categories=rare") == [("rare", "Rare")]
    assert chosen(f"categories={rare}") == [("rare", "Rare")]
    assert chosen("categories=more-43") == [("more-43", "More 43")]
    together = [("more-43", "More 43"), ("rare", "Rare")]
    assert chosen("categories[]=rare&categories[]=more-43") == together
    assert chosen(f"categories={rare},more-43") == together
    assert "E43</a>" in get_page(app, "/events/search/", "categories=rare&categories=more-43")


@pytest.mark.quick("ics", "json")
@pytest.mark.parametrize("form", FEED_FORMATS)
def test_feed_title_contains_filters(app: RunningApp, music: int, form: str) -> None:
    app.set_site("name", "Lindenstadt")
    for query, name in (
        ("", "Lindenstadt"),
        (f"categories={music}", "Lindenstadt: Music"),
        ("search=loud&tags=free&categories=music,gone", "Lindenstadt: Music, Free, loud"),
    ):
        body = read_feed(app, query, form)
        lines = unfold_lines(body.replace("\\,", ","))
        expected = {"ics": f"X-WR-CALNAME:{name}", "rss": f"<title>{name}</title>", "atom": f"<title>{name}</title>",
                    "json": f'"title":"{name}"'}[form]  # fmt: skip
        assert any(expected in line for line in lines), body[:600]
