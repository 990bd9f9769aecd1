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

pytestmark = pytest.mark.slow

DATES = {"start_date": "2031-05-01 10:00:00", "end_date": "2031-05-01 12:00:00"}
WINDOW = "start_date=2031-01-01&end_date=2031-12-31"
LIST = f"/events?{WINDOW}"


@dataclass
class Records:
    """Paths of records that were written before the tests."""

    one: str
    other: str
    venue: str
    there: str
    elsewhere: str
    tag: str
    quiet: str


@pytest.fixture(scope="module")
def records(stage: Stage) -> Records:
    venue = stage.write("POST", "/venues", venue="Hall", geo_lat=1.0, geo_lng=1.0)["id"]
    elsewhere = stage.write("POST", "/events", title="elsewhere", tags=["counted"], **DATES)
    made = Records(
        one=add_event(stage, "one"),
        other=add_event(stage, "other"),
        venue=f"/venues/{venue}",
        there=add_event(stage, "there", venue=[venue]),
        elsewhere=f"/events/{elsewhere['id']}",
        tag=f"/tags/{elsewhere['tags'][0]['id']}",
        quiet=f"/venues/{stage.write('POST', '/venues', venue='Quiet')['id']}",
    )
    # Every purge is sent a second time, two seconds later: what stays is told from what went after that.
    wait(lambda: stage.count_jobs() == 0, 30)
    return made


def wait(condition: Callable[[], bool], patience: float = 1.0) -> float:
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < patience, f"not so after {patience} s"
        time.sleep(0.02)
    return time.monotonic() - began


def add_event(stage: Stage, title: str, **more: object) -> str:
    return f"/events/{stage.write('POST', '/events', title=title, **DATES, **more)['id']}"


def title_of(stage: Stage, path: str) -> str:
    return stage.get(path).json()["title"]


def test_event_change_is_visible_within_one_second(stage: Stage, records: Records) -> None:
    stage.fill(records.one, records.other, LIST, "/venues")
    stage.write("PATCH", records.one, title="changed")
    wait(lambda: title_of(stage, records.one) == "changed")
    wait(lambda: "changed" in [event["title"] for event in stage.get(LIST).json()["events"]])
    assert stage.is_hit(records.other)
    assert stage.is_hit("/venues")
    add_event(stage, "new")
    wait(lambda: "new" in [event["title"] for event in stage.get(LIST).json()["events"]])
    assert stage.is_hit(records.other)


def test_venue_change_is_visible_within_one_second(stage: Stage, records: Records) -> None:
    near, far = (f"/events?{WINDOW}&geoloc_lat={degrees}&geoloc_lng={degrees}" for degrees in (1, 40))
    stage.fill(records.there, records.elsewhere, records.quiet, near, far)
    stage.write("PATCH", records.venue, venue="Theatre", geo_lat=40.0, geo_lng=40.0)
    wait(lambda: stage.get(records.there).json()["venue"]["venue"] == "Theatre")
    wait(lambda: stage.get(near).json()["total"] == 0)
    wait(lambda: stage.get(far).json()["total"] == 1)
    assert stage.is_hit(records.elsewhere)
    assert stage.is_hit(records.quiet)


def test_page_and_feed_changes_are_visible_within_one_second(stage: Stage) -> None:
    """They are purged by the same keys: a change is on the pages that show it, and no other page is made anew."""
    dates = {"start_date": "2031-06-01 10:00:00", "end_date": "2031-06-01 12:00:00"}
    made = stage.write("POST", "/events", title="On the page", slug="on-the-page", **dates)
    stage.write("POST", "/events", title="Beside it", slug="beside-it", **dates)
    page, feed, one = "/events/month/2031-06/", "/events.ics", "/event/on-the-page/"
    wait(lambda: stage.count_jobs() == 0, 30)
    for path in (page, feed, one, "/event/beside-it.ics"):
        stage.visit(path)
        assert stage.visit(path).headers["x-cache"] == "hit", path
    stage.write("PATCH", f"/events/{made['id']}", title="Moved to the garden")
    for path in (page, feed, one):
        wait(lambda path=path: "Moved to the garden" in stage.visit(path).text)
    assert stage.visit("/event/beside-it.ics").headers["x-cache"] == "hit"


def test_term_count_change_is_visible_within_one_second(stage: Stage, records: Records) -> None:
    """It is on the page of the term and on every event that shows it."""
    stage.fill(records.tag, records.elsewhere, records.other)
    assert stage.get(records.tag).json()["count"] == 1
    add_event(stage, "another", tags=["counted"])
    wait(lambda: stage.get(records.tag).json()["count"] == 2)
    wait(lambda: stage.get(records.elsewhere).json()["tags"][0]["count"] == 2)
    stage.write("DELETE", records.elsewhere)
    wait(lambda: stage.get(records.tag).json()["count"] == 1)
    wait(lambda: stage.public.get(f"{NS}{records.elsewhere}").status_code != 200)
    assert stage.is_hit(records.other)


def test_parameter_order_does_not_affect_cache_key(stage: Stage) -> None:
    stage.fill(f"{LIST}&per_page=3")
    assert stage.is_hit("/events?per_page=3&end_date=2031-12-31&start_date=2031-01-01")
    # Among equal names it may matter.
    stage.fill("/tags?hide_empty=false&search=b&search=a")
    assert not stage.is_hit("/tags?hide_empty=false&search=a&search=b")


def test_protected_and_authenticated_responses_are_not_cached(stage: Stage) -> None:
    event = add_event(stage, "secret", new_password="sesame")
    opened = f"{NS}{event}?password=sesame"
    for _ in range(3):
        assert stage.public.get(opened).headers["x-cache"] == "miss"
        assert stage.public.get(opened).status_code == 200
        assert stage.public.get(f"{NS}{event}?password=wrong").status_code == 403
        assert stage.public.get(f"{NS}{event}").status_code == 403
    stage.fill(LIST)
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
    with Varnish.start(tmp_path, short.address, port=find_free_port()) as varnish:
        first = httpx.get(f"{varnish.address}{path}")
        short.stop()
        wait(lambda: httpx.get(f"{varnish.address}{NS}/events?page=77").status_code == 503, 10)
        time.sleep(2)
        answer = httpx.get(f"{varnish.address}{path}")
    assert (answer.status_code, answer.headers["x-cache"], answer.content) == (200, "hit", first.content)
    assert int(answer.headers["age"]) >= 2


def test_publishing_private_venue_purges_event(stage: Stage) -> None:
    """Its key is on the response of the event although the venue is not shown there."""
    venue = stage.write("POST", "/venues", venue="Back room", status="private")["id"]
    event = add_event(stage, "in the back room", venue=[venue])
    wait(lambda: stage.count_jobs() == 0, 30)
    stage.fill(event)
    assert stage.get(event).json()["venue"] == []
    stage.write("PATCH", f"/venues/{venue}", status="publish")
    wait(lambda: stage.get(event).json()["venue"] != [])
    assert stage.get(event).json()["venue"]["venue"] == "Back room"
