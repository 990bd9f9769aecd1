"""The JSON of events that lists keep between requests: when it is used again, and when it is not."""

from collections.abc import Callable
from itertools import count
from typing import Any
from unittest.mock import patch

import orjson
import pytest

from kalends.calendar.access.caching import EventFragments
from tests.api.conftest import start_app
from tests.api.running_app import API_PATH, Caller, RunningApp
from tests.api.sample_records import DATES

__all__ = ["start_app"]


class Site:
    """An application, and the number of events that it has rendered."""

    def __init__(self, app: RunningApp) -> None:
        self.app = app
        self.editor: Caller = app.caller("editor")
        self._ports = count(1)

    def read(self, path: str, query: str = "") -> tuple[int, Any]:
        """Read a list that is not cached; return the number of rendered events and its JSON.

        Another port in the Host header makes another cache key, and `KALENDS_BASE_URL` the same response.
        """
        host = [("Host", f"{self.app.host}:{next(self._ports)}")]
        with patch.object(EventFragments, "add", autospec=True, side_effect=EventFragments.add) as add:
            status, _, body = self.app.raw("GET", f"{API_PATH}{path}", query=query.encode(), headers=host)
        assert status == 200, body
        return add.call_count, orjson.loads(body)

    def add(self, kind: str, **values: object) -> int:
        response = self.editor.post(f"/{kind}", values)
        assert response.status_code == 201, response.text
        record_id: int = response.json()["id"]
        return record_id


@pytest.fixture
def site(start_app: Callable[..., RunningApp]) -> Site:
    return Site(start_app({"KALENDS_BASE_URL": "http://calendar.test"}))


def test_events_are_rendered_once(site: Site) -> None:
    for number in range(3):
        site.add("events", title=f"Concert {number}", **DATES)
    first = site.read("/events", "per_page=2")
    assert first[0] == 2
    assert site.read("/events", "per_page=2") == (0, first[1])
    rendered, body = site.read("/events", "orderby=title&order=desc")
    assert (rendered, [event["title"] for event in body["events"]]) == (1, ["Concert 2", "Concert 1", "Concert 0"])
    assert "json_ld" not in body["events"][0]


def test_accounts_see_more_than_anonymous_callers(site: Site) -> None:
    venue = site.add("venues", venue="Hall")
    event = site.add("events", title="Concert", venue=venue, **DATES)
    site.editor.patch(f"/venues/{venue}", {"status": "draft"})
    assert site.read("/events")[1]["events"][0]["venue"] == []
    for _ in range(2):
        (listed,) = site.editor.get("/events").json()["events"]
        assert (listed["id"], listed["venue"]["venue"]) == (event, "Hall")
        assert site.read("/events")[1]["events"][0]["venue"] == []


def test_changed_records_are_rendered_again(site: Site) -> None:
    venue = site.add("venues", venue="Hall")
    event = site.add("events", title="Concert", venue=venue, tags=["jazz"], **DATES)
    site.add("events", title="Lecture", **DATES)
    site.read("/events")
    site.editor.patch(f"/events/{event}", {"title": "Recital"})
    rendered, body = site.read("/events")
    assert (rendered, {record["title"] for record in body["events"]}) == (1, {"Recital", "Lecture"})
    site.editor.patch(f"/venues/{venue}", {"venue": "Yard"})
    rendered, body = site.read("/events")
    assert (rendered, [record["venue"]["venue"] for record in body["events"] if record["venue"]]) == (1, ["Yard"])
    # The number of events is part of each tag.
    site.add("events", title="Opening", tags=["jazz"], **DATES)
    rendered, body = site.read("/events")
    assert rendered == 2
    assert {tag["count"] for record in body["events"] for tag in record["tags"]} == {2}


def test_settings_are_part_of_each_record(site: Site) -> None:
    site.add("events", title="Concert", **DATES)
    before = site.read("/events")[1]["events"][0]["date"]
    site.app.set_site("timezone", "Pacific/Auckland")
    rendered, body = site.read("/events")
    assert (rendered, body["events"][0]["date"] == before) == (1, False)


def test_protected_events_are_kept_apart_from_unlocked_ones(site: Site) -> None:
    event = site.add("events", title="Concert", description="Backstage", new_password="secret", **DATES)
    for _ in range(2):
        assert "Backstage" in site.read(f"/events/{event}", "password=secret")[1]["description"]
        assert site.read("/events")[1]["events"][0]["description"] == ""
        assert "Backstage" in site.read("/events", "password=secret")[1]["events"][0]["description"]


def test_selected_fields_are_taken_from_objects(site: Site) -> None:
    site.add("events", title="Concert", venue={"venue": "Hall"}, **DATES)
    for _ in range(2):
        body = site.read("/events", "_fields=events.title,events.venue.venue")[1]
        assert body == {"events": [{"title": "Concert", "venue": {"venue": "Hall"}}]}
    assert site.read("/events", "_envelope=1")[1]["body"]["events"][0]["title"] == "Concert"
