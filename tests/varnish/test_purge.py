"""Behind Varnish a write is seen within a second, and nothing else is forgotten by it."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.servers import Server, find_free_port
from tests.varnish.conftest import NS, Stage
from tools.varnish import Varnish

DATES = {"start_date": "2031-05-01 10:00:00", "end_date": "2031-05-01 12:00:00"}
WINDOW = "start_date=2031-01-01&end_date=2031-12-31"
LIST = f"/events?{WINDOW}"


@dataclass
class WrittenRecords:
    """Paths of records that were written before the tests."""

    one: str
    other: str
    venue: str
    event_at_venue: str
    tagged_event: str
    tag: str
    unused_venue: str


@pytest.fixture(scope="module")
def records(stage: Stage) -> WrittenRecords:
    venue = stage.write("POST", "/venues", venue="Hall", geo_lat=1.0, geo_lng=1.0)["id"]
    elsewhere = stage.write("POST", "/events", title="elsewhere", tags=["counted"], **DATES)
    record = WrittenRecords(
        one=add_event(stage, "one"),
        other=add_event(stage, "other"),
        venue=f"/venues/{venue}",
        event_at_venue=add_event(stage, "there", venue=[venue]),
        tagged_event=f"/events/{elsewhere['id']}",
        tag=f"/tags/{elsewhere['tags'][0]['id']}",
        unused_venue=f"/venues/{stage.write('POST', '/venues', venue='Quiet')['id']}",
    )
    # Every purge is repeated after two seconds; only then do the remaining entries show.
    wait_until(lambda: stage.count_jobs() == 0, 30)
    return record


def wait_until(condition: Callable[[], bool], timeout: float = 1.0) -> float:
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < timeout, f"not so after {timeout} s"
        time.sleep(0.02)
    return time.monotonic() - started


def add_event(stage: Stage, title: str, **more: object) -> str:
    return f"/events/{stage.write('POST', '/events', title=title, **DATES, **more)['id']}"


def read_title(stage: Stage, path: str) -> str:
    return stage.get(path).json()["title"]


def test_event_change_is_visible_within_one_second(stage: Stage, records: WrittenRecords) -> None:
    stage.warm_cache(records.one, records.other, LIST, "/venues")
    stage.write("PATCH", records.one, title="changed")
    wait_until(lambda: read_title(stage, records.one) == "changed")
    wait_until(lambda: "changed" in [event["title"] for event in stage.get(LIST).json()["events"]])
    assert stage.is_hit(records.other)
    assert stage.is_hit("/venues")
    add_event(stage, "new")
    wait_until(lambda: "new" in [event["title"] for event in stage.get(LIST).json()["events"]])
    assert stage.is_hit(records.other)


def test_change_of_a_text_purges_only_responses_that_show_or_search_the_event(
    stage: Stage, records: WrittenRecords
) -> None:
    dates = {"start_date": "2032-03-01 10:00:00", "end_date": "2032-03-01 12:00:00"}
    far = f"/events/{stage.write('POST', '/events', title='In the attic', **dates)['id']}"
    month = "/events?start_date=2032-03-01&end_date=2032-03-31"
    shown = [far, month, f"{month}&search=attic"]
    others = [records.other, LIST, f"{LIST}&venue={records.venue.rpartition('/')[2]}", "/venues", "/tags"]
    wait_until(lambda: stage.count_jobs() == 0, 30)
    stage.warm_cache(*shown, *others)
    stage.write("PATCH", far, excerpt="Bring a torch")
    for path in shown:
        wait_until(lambda path=path: "Bring a torch" in stage.get(path).text)
    wait_until(lambda: stage.count_jobs() == 0, 30)
    assert [path for path in others if not stage.is_hit(path)] == []


def test_venue_change_is_visible_within_one_second(stage: Stage, records: WrittenRecords) -> None:
    near, far = (f"/events?{WINDOW}&geoloc_lat={degrees}&geoloc_lng={degrees}" for degrees in (1, 40))
    stage.warm_cache(records.event_at_venue, records.tagged_event, records.unused_venue, near, far)
    stage.write("PATCH", records.venue, venue="Theatre", geo_lat=40.0, geo_lng=40.0)
    wait_until(lambda: stage.get(records.event_at_venue).json()["venue"]["venue"] == "Theatre")
    wait_until(lambda: stage.get(near).json()["total"] == 0)
    wait_until(lambda: stage.get(far).json()["total"] == 1)
    assert stage.is_hit(records.tagged_event)
    assert stage.is_hit(records.unused_venue)


def test_page_and_feed_changes_are_visible_within_one_second(stage: Stage) -> None:
    """Purge only the pages that show the changed record."""
    dates = {"start_date": "2031-06-01 10:00:00", "end_date": "2031-06-01 12:00:00"}
    record = stage.write("POST", "/events", title="On the page", slug="on-the-page", **dates)
    stage.write("POST", "/events", title="Beside it", slug="beside-it", **dates)
    page, feed, one = "/events/month/2031-06/", "/events.ics", "/event/on-the-page/"
    wait_until(lambda: stage.count_jobs() == 0, 30)
    for path in (page, feed, one, "/event/beside-it.ics"):
        stage.get_page(path)
        assert stage.get_page(path).headers["x-cache"] == "hit", path
    stage.write("PATCH", f"/events/{record['id']}", title="Moved to the garden")
    for path in (page, feed, one):
        wait_until(lambda path=path: "Moved to the garden" in stage.get_page(path).text)
    assert stage.get_page("/event/beside-it.ics").headers["x-cache"] == "hit"


def test_term_count_change_is_visible_within_one_second(stage: Stage, records: WrittenRecords) -> None:
    """It is on the page of the term and on every event that shows it."""
    stage.warm_cache(records.tag, records.tagged_event, records.other)
    assert stage.get(records.tag).json()["count"] == 1
    add_event(stage, "another", tags=["counted"])
    wait_until(lambda: stage.get(records.tag).json()["count"] == 2)
    wait_until(lambda: stage.get(records.tagged_event).json()["tags"][0]["count"] == 2)
    stage.write("DELETE", records.tagged_event)
    wait_until(lambda: stage.get(records.tag).json()["count"] == 1)
    wait_until(lambda: stage.public.get(f"{NS}{records.tagged_event}").status_code != 200)
    assert stage.is_hit(records.other)


def test_parameter_order_does_not_affect_cache_key(stage: Stage) -> None:
    stage.warm_cache(f"{LIST}&per_page=3")
    assert stage.is_hit("/events?per_page=3&end_date=2031-12-31&start_date=2031-01-01")
    # Among equal names it may matter.
    stage.warm_cache("/tags?hide_empty=false&search=b&search=a")
    assert not stage.is_hit("/tags?hide_empty=false&search=a&search=b")


def test_protected_and_authenticated_responses_are_not_cached(stage: Stage) -> None:
    event = add_event(stage, "secret", new_password="sesame")
    unlocked_url = f"{NS}{event}?password=sesame"
    for _ in range(3):
        assert stage.public.get(unlocked_url).headers["x-cache"] == "miss"
        assert stage.public.get(unlocked_url).status_code == 200
        assert stage.public.get(f"{NS}{event}?password=wrong").status_code == 403
        assert stage.public.get(f"{NS}{event}").status_code == 403
    stage.warm_cache(LIST)
    for _ in range(3):
        assert not stage.is_hit(LIST, auth=stage.editor.auth)
        assert stage.public.get(f"{NS}{LIST}", auth=("editor", "wrong")).status_code == 401
    changes = f"{NS.replace('calendar/events', 'kalends')}/changes"
    assert [stage.public.get(changes).headers["x-cache"] for _ in range(2)] == ["miss", "miss"]


def test_purge_needs_key(stage: Stage) -> None:
    assert stage.public.request("PURGE", "/").status_code == 400
    assert stage.public.request("PURGE", "/", headers={"xkey": "s1-nothing"}).reason_phrase == "Purged 0"


def test_stale_response_is_served_while_server_is_down(
    stage: Stage, start_server: Callable[..., Server], tmp_path: Path
) -> None:
    """An answer that is too old by its own account is served while there is no other."""
    settings = {"KALENDS_SHARED_CACHE_SECONDS": "1", "KALENDS_PURGE_URLS": "http://127.0.0.1:9/"}
    short = start_server(stage.database_url, environment=settings)
    path = f"{NS}{LIST}"
    with Varnish.start(tmp_path, short.base_url, port=find_free_port()) as varnish:
        first = httpx.get(f"{varnish.address}{path}")
        short.stop()
        wait_until(lambda: httpx.get(f"{varnish.address}{NS}/events?page=77").status_code == 503, 10)
        time.sleep(2)
        response = httpx.get(f"{varnish.address}{path}")
    assert (response.status_code, response.headers["x-cache"], response.content) == (200, "hit", first.content)
    assert int(response.headers["age"]) >= 2


def test_publishing_private_venue_purges_event(stage: Stage) -> None:
    """Its key is on the response of the event although the venue is not shown there."""
    venue = stage.write("POST", "/venues", venue="Back room", status="private")["id"]
    event = add_event(stage, "in the back room", venue=[venue])
    wait_until(lambda: stage.count_jobs() == 0, 30)
    stage.warm_cache(event)
    assert stage.get(event).json()["venue"] == []
    stage.write("PATCH", f"/venues/{venue}", status="publish")
    wait_until(lambda: stage.get(event).json()["venue"] != [])
    assert stage.get(event).json()["venue"]["venue"] == "Back room"
