"""Lists, feeds, sitemap and pages with the dates of series."""

import json
import re
from datetime import timedelta
from typing import Any
from unittest.mock import patch
from xml.etree import ElementTree

import pytest

from kalends.calendar.operations import calendar_months
from kalends.core.times import utc_now
from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp, assert_error
from tests.series.series_client import EXTENSION, SeriesClient

START = (utc_now() + timedelta(days=7)).replace(hour=18, minute=0, second=0, tzinfo=None)
END = START + timedelta(hours=2)
SITEMAP = "{http://www.sitemaps.org/schemas/sitemap/0.9}loc"
TIMES = {"start_date": f"{START:%Y-%m-%d %H:%M}", "end_date": f"{END:%Y-%m-%d %H:%M}", "timezone": "UTC"}


@pytest.fixture
def app(start_app: StartApp) -> RunningApp:
    return start_app()


@pytest.fixture
def client(app: RunningApp) -> SeriesClient:
    return SeriesClient(app.caller("editor"))


def create(client: SeriesClient, title: str, rule: str = "FREQ=WEEKLY;COUNT=30", **fields: object) -> Any:
    return client.create(**{**TIMES, "title": title, "rule": rule, **fields})


def get(app: RunningApp, path: str, query: str = "") -> str:
    status, _, body = app.raw("GET", path, query=query.encode())
    assert status == 200, body
    return body.decode()


def test_filter_by_series(app: RunningApp, client: SeriesClient) -> None:
    first, second, draft = (create(client, name) for name in ("Yoga", "Choir", "Secret"))
    client.caller.patch(f"{EXTENSION}/series/{draft['id']}", {"status": "draft"})
    anonymous, editor = app.caller(), client.caller
    assert anonymous.page("events", series=first["id"])["total"] == 30
    both = anonymous.page("events", series=f"{first['id']},{second['id']}", per_page=50)
    assert both["total"] == 60
    assert {event["series"]["id"] for event in both["events"]} == {first["id"], second["id"]}
    # A series that is not public does not differ from one that does not exist.
    hidden, unknown = (anonymous.get("/events", {"series": number}) for number in (draft["id"], 987654))
    assert_error(hidden, 400, "rest_invalid_param")
    assert hidden.text.replace(str(draft["id"]), "#") == unknown.text.replace("987654", "#")
    assert editor.page("events", series=draft["id"])["total"] == 30


def test_free_filter_follows_the_cost_of_the_dates(app: RunningApp, client: SeriesClient) -> None:
    def count_free() -> int:
        total: int = app.caller().page("events", series=series["id"], free="true")["total"]
        return total

    series = create(client, "Concert", "FREQ=WEEKLY;COUNT=10", cost="Eintritt frei")
    assert count_free() == 10
    event, revision = client.events(series["id"])[3], client.revision(series["id"])
    client.edit(event["id"], "all", cost="5")
    assert count_free() == 0
    client.restore(series["id"], revision=revision)
    assert count_free() == 10
    client.edit(event["id"], "this", cost="12")
    client.edit(event["id"], "all", title="Late concert")
    assert count_free() == 9
    client.caller.change("events", event["id"], cost="0")
    assert count_free() == 10


def test_filter_does_not_reveal_protected_dates(app: RunningApp, client: SeriesClient) -> None:
    series = create(client, "Rehearsal")
    event = client.events(series["id"])[3]
    client.edit(event["id"], "this", new_password="lilacs")
    anonymous = app.caller()
    assert anonymous.page("events", series=series["id"])["total"] == 29
    assert anonymous.page("events", series=series["id"], password="lilacs")["total"] == 30
    # It counts as an event without a series, so the list does not tell that it belongs to one.
    listed = anonymous.page("events", hide_subsequent_recurrences="true")
    assert [entry["id"] for entry in listed["events"]] == [client.events(series["id"])[0]["id"], event["id"]]
    assert listed["total"] == 2


def test_syndication_has_the_next_date_of_each_series(app: RunningApp, client: SeriesClient) -> None:
    series = [create(client, f"Class {number}") for number in range(3)]
    client.caller.create("events", title="Concert", **TIMES)
    client.edit(client.events(series[0]["id"])[0]["id"], "all", title="Class 0, new")
    titles = ["Class 0, new", "Class 1", "Class 2", "Concert"]
    items = json.loads(get(app, "/events.json"))["items"]
    assert sorted(item["title"] for item in items) == titles
    rss, atom = (ElementTree.fromstring(get(app, f"/events.{form}")) for form in ("rss", "atom"))
    assert len(list(rss.iter("item"))) == len(list(atom.iter("{http://www.w3.org/2005/Atom}entry"))) == 4
    # All dates for those who ask for them, or for a series.
    assert len(json.loads(get(app, "/events.json", "hide_subsequent_recurrences=false"))["items"]) == 50
    assert len(json.loads(get(app, "/events.json", f"series={series[1]['id']}"))["items"]) == 30


def test_calendar_has_all_dates(app: RunningApp, client: SeriesClient) -> None:
    create(client, "Class")
    assert get(app, "/events.ics").count("BEGIN:VEVENT") == 30
    assert get(app, "/events.ics", "hide_subsequent_recurrences=true").count("BEGIN:VEVENT") == 1


def test_calendar_cancels_all_dates_of_a_long_series(app: RunningApp, client: SeriesClient) -> None:
    series = create(client, "Daily", "FREQ=DAILY")
    total = series["total"]
    assert total > 750
    query = f"series={series['id']}"
    assert get(app, "/events.ics", query).count("STATUS:CONFIRMED") == total
    assert client.caller.delete(f"{EXTENSION}/series/{series['id']}").status_code == 200
    for filters in ("", query):
        feed = get(app, "/events.ics", filters)
        assert (feed.count("STATUS:CANCELLED"), feed.count("STATUS:CONFIRMED")) == (total, 0)


def test_sitemap_has_series_and_their_next_dates(app: RunningApp, client: SeriesClient) -> None:
    public, draft, locked = (create(client, name) for name in ("Yoga", "Choir", "Club"))
    client.caller.patch(f"{EXTENSION}/series/{draft['id']}", {"status": "draft"})
    client.caller.patch(f"{EXTENSION}/series/{locked['id']}", {"new_password": "lilacs"})
    urls = [node.text or "" for node in ElementTree.fromstring(get(app, "/sitemap/0.xml")).iter(SITEMAP)]
    assert [url for url in urls if "/series/" in url] == [public["url"]]
    dates = [url for url in urls if "/event/yoga-" in url]
    limit = START.date() + timedelta(days=92 - 7)
    assert 11 <= len(dates) <= 14
    assert all(url[-11:-1] <= str(limit) for url in dates)
    assert not [url for url in urls if "choir" in url or "club" in url]


def test_list_page_can_be_reduced_to_first_dates(app: RunningApp, client: SeriesClient) -> None:
    create(client, "Class")
    client.caller.create("events", title="Concert", **TIMES)
    page = get(app, "/events/list/")
    switch = re.search(r'<a class="pill" href="([^"]+)"[^>]*>Hide repeats', page)
    assert switch
    path, _, query = switch[1].partition("?")
    reduced = get(app, path, query)
    assert (page.count('<article class="card'), reduced.count('<article class="card')) == (12, 2)
    assert 'aria-label="Remove filter: Hide repeats"' in reduced
    assert reduced.count('<i class="repeats"><b>repeats</b></i>') == 1
    month = get(app, f"/events/month/{START:%Y-%m}/")
    assert '<i class="repeats"><b>repeats</b></i>' in month
    # Subscribers get all dates.
    assert 'href="/events.rss"' in reduced
    assert "/events.ics?" not in reduced
    assert '<p class="dates-note">' not in reduced


CARD = re.compile(r'<article class="card.*?</article>', re.DOTALL)


def list_dates(page: str) -> list[tuple[str, str]]:
    """Return what the cards of a page say about further dates, with their links."""
    found = [re.search(r'<p class="dates-note"><a href="([^"]+)">([^<]+)<', card) for card in CARD.findall(page)]
    return [(match[2], match[1]) if match else ("", "") for match in found]


def find_switch(page: str) -> tuple[str, str] | None:
    match = re.search(r'<a class="pill" href="([^"]+)"[^>]*>(Hide repeats|Show every date)<', page)
    return (match[2], match[1].replace("&amp;", "&")) if match else None


def make_collapsed_records(client: SeriesClient) -> tuple[dict[str, str], Any]:
    """Add a weekly series of 12 dates, an irregular one of two, and an event; return the pages that list them."""
    music = client.caller.create("categories", name="Music")["id"]
    tag = client.caller.create("tags", name="Loud")["id"]
    hall = client.caller.create("venues", venue="Hall")["id"]
    choir = client.caller.create("organizers", organizer="Choir")["id"]
    links = {"categories": [music], "tags": [tag], "venue": hall, "organizer": choir}
    series = create(client, "Class", "FREQ=WEEKLY;COUNT=12", **links)
    later = START + timedelta(days=3)
    create(client, "Talk", "FREQ=DAILY;COUNT=1", add_dates=[f"{later:%Y-%m-%d %H:%M}"], **links)
    client.caller.create("events", title="Concert", **TIMES, **links)
    paths = {"/events/category/music/": f"categories={music}", "/tag/loud/": f"tags={tag}",
             "/venue/hall/": f"venue={hall}", "/organizer/choir/": f"organizer={choir}"}  # fmt: skip
    return paths, series


def test_record_and_search_pages_hide_repeats(app: RunningApp, client: SeriesClient) -> None:
    paths, series = make_collapsed_records(client)
    shown = [(f"Every {START:%A} · 11 more dates", f"/series/{series['slug']}/"), ("One more date", "/series/talk/"),
             ("", "")]  # fmt: skip
    for path, filters in [*paths.items(), ("/events/search/", "")]:
        page = get(app, path)
        assert sorted(list_dates(page)) == sorted(shown), path
        assert find_switch(page) == ("Show every date", f"{path}?repeats=all")
        assert ("15 upcoming events" if filters else "15 events") in page
        assert get(app, path, "hide_subsequent_recurrences=1").count('<article class="card') == 3
        # Subscribers get all dates; other views list them.
        assert f'href="/events.rss{"?" + filters if filters else ""}"' in page
        every = get(app, path, "repeats=all")
        assert set(list_dates(every)) == {("", "")}
        assert find_switch(every) == ("Hide repeats", path)
        assert ("15 upcoming events" if filters else "15 events") in every
        first, second = (get(app, path, f"repeats=all&per_page=8&page={number}") for number in (1, 2))
        assert [page.count('<article class="card') for page in (first, second)] == [8, 7]
        assert f'href="{path}?repeats=all&amp;per_page=8&amp;page=2"' in first
        assert not re.search(r"/events\.\w+\?[^\"]*repeats", every)
    canonical = f'<link rel="canonical" href="{app.base_url}/tag/loud/">'
    assert all(canonical in get(app, "/tag/loud/", query) for query in ("", "repeats=all"))


def test_first_dates_are_paged_and_all_dates_are_counted(app: RunningApp, client: SeriesClient) -> None:
    make_collapsed_records(client)
    pages = [get(app, "/tag/loud/", f"per_page=2&page={number}") for number in (1, 2)]
    assert [len(list_dates(page)) for page in pages] == [2, 1]
    assert all("Page" in page and "15 upcoming events" in page for page in pages)
    assert app.raw("GET", "/tag/loud/", query=b"per_page=2&page=3")[0] == 404
    with patch.object(calendar_months, "count_dates", wraps=calendar_months.count_dates) as count:
        get(app, "/tag/loud/", "lang=de")
        assert count.call_count == 1
        client.caller.create("categories", name="Quiet")
        get(app, "/events/category/quiet/")
        get(app, "/tag/loud/", "repeats=all")
        get(app, "/events/list/")
        assert count.call_count == 1


def test_lists_with_dates_and_past_events_show_repeats(app: RunningApp, client: SeriesClient) -> None:
    paths, _ = make_collapsed_records(client)
    path, filters = next(iter(paths.items()))
    dates = f"overlaps_from={START:%Y-%m-%d}&overlaps_to={START + timedelta(days=20):%Y-%m-%d}"
    for query in (f"{filters}&{dates}", f"{dates}&search=class"):
        page = get(app, "/events/search/", query)
        assert page.count('<article class="card') >= 3, query
        assert list_dates(page)[0] == ("", "")
        label, url = find_switch(page) or ("", "")
        assert label == "Hide repeats"
        reduced = get(app, *url.partition("?")[::2])
        assert reduced.count('<article class="card') < page.count('<article class="card')
        assert 'aria-label="Remove filter: Hide repeats"' in reduced
    assert find_switch(get(app, "/events/list/", filters)) == (
        "Hide repeats", f"/events/list/?{filters}&hide_subsequent_recurrences=1"
    )  # fmt: skip
    app.sql("UPDATE events SET start_utc = start_utc - interval '2 years', end_utc = end_utc - interval '2 years', "
            "start_local = start_local - interval '2 years', end_local = end_local - interval '2 years' "
            "WHERE site_id = $1", app.site_id)  # fmt: skip
    page = get(app, path, "past=1&per_page=20")
    assert len(list_dates(page)) == 15
    assert find_switch(page) is None
    assert "No upcoming events" in page


def test_search_keeps_the_choice_of_all_dates(app: RunningApp, client: SeriesClient) -> None:
    make_collapsed_records(client)
    page = get(app, "/events/search/", "search=class&repeats=all")
    assert '<input type="hidden" name="repeats" value="all">' in page
    assert 'href="/events/search/?repeats=all" target="_self" aria-label="Remove filter: class"' in page
    # The filter is the default here, so it is no chip.
    assert "Remove filter: Hide repeats" not in get(app, "/events/search/", "hide_subsequent_recurrences=1")


def test_further_dates_are_those_that_the_list_hides(app: RunningApp, client: SeriesClient) -> None:
    _, series = make_collapsed_records(client)
    path = "/venue/hall/"
    assert f"Every {START:%A} · 11 more dates" in get(app, path)
    events = client.events(series["id"])
    client.edit(events[4]["id"], "this", venue=client.caller.create("venues", venue="Barn")["id"])
    client.edit(events[5]["id"], "this", new_password="lilacs")
    client.caller.patch(f"/events/{events[6]['id']}", {"status": "draft"})
    page = get(app, path)
    assert f"Every {START:%A} · 8 more dates" in page
    # A protected date is not listed by venue; in the search, it is an event without a series.
    search = [text for text, _ in list_dates(get(app, "/events/search/", "per_page=12"))]
    assert sorted(search) == ["", "", f"Every {START:%A} · 9 more dates", "One more date"]
    assert get(app, "/venue/barn/").count("dates-note") == 0
    assert "12 upcoming events" in page
    client.edit(client.events(series["id"])[0]["id"], "all", rule="FREQ=WEEKLY;COUNT=10")
    assert "· 6 more dates" in get(app, path)


def test_lists_without_series_have_no_switch(app: RunningApp, client: SeriesClient) -> None:
    client.caller.create("events", title="Concert", **TIMES)
    page = get(app, "/events/list/")
    assert "Hide repeats" not in page
    assert "repeats" not in page
    assert get(app, "/events/list/", "series=987654").count('<article class="card') == 0
