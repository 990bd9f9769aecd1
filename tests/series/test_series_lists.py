"""Lists, feeds, sitemap and pages with the dates of series."""

import json
import re
from datetime import timedelta
from typing import Any
from xml.etree import ElementTree

import pytest

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
    switch = re.search(r'<a class="chip" href="([^"]+)"[^>]*>Hide repeats', page)
    assert switch
    path, _, query = switch[1].partition("?")
    reduced = get(app, path, query)
    assert (page.count('<article class="card'), reduced.count('<article class="card')) == (12, 2)
    assert 'aria-label="Remove filter: Hide repeats"' in reduced
    assert reduced.count('<i class="repeats"><b>repeats</b></i>') == 1
    month = get(app, f"/events/month/{START:%Y-%m}/")
    assert '<i class="repeats"><b>repeats</b></i>' in month
    # Feeds of the reduced list are reduced, too.
    assert "/events.ics?hide_subsequent_recurrences=1" in reduced


def test_lists_without_series_have_no_switch(app: RunningApp, client: SeriesClient) -> None:
    client.caller.create("events", title="Concert", **TIMES)
    page = get(app, "/events/list/")
    assert "Hide repeats" not in page
    assert "repeats" not in page
    assert get(app, "/events/list/", "series=987654").count('<article class="card') == 0
