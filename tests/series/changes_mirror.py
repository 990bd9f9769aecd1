"""A copy of the events of a site that is kept by `changes` alone and knows nothing about series."""

from collections.abc import Callable
from typing import Any

import httpx

Get = Callable[[str, dict[str, Any]], httpx.Response]

EVENTS_PATH = "/api/calendar/events/v1/events"
CHANGES_PATH = "/api/kalends/v1/changes"
SERIES_PATH = "/api/kalends/v1/series"
WINDOW = {"start_date": "2000-01-01", "end_date": "2100-01-01", "per_page": 50}
LINKS = ("venue", "organizer", "categories", "tags")


class ChangesMirror:
    def __init__(self, get: Get, page_size: int = 100) -> None:
        self.get, self.page_size = get, page_size
        self.token: int | str = 0
        self.events: dict[int, Any] = {}
        self.last_revision = 0

    def synchronize(self) -> None:
        more = True
        while more:
            page = self._read(CHANGES_PATH, {"since": self.token, "per_page": self.page_size})
            for change in page["changes"]:
                assert change["revision"] > self.last_revision, "a revision comes twice"
                self.last_revision = change["revision"]
                if change["kind"] == "events":
                    self._apply(change)
            self.token, more = page["next_since"], page["more"]

    def _apply(self, change: dict[str, Any]) -> None:
        if change["deleted"]:
            self.events.pop(change["id"], None)
        else:
            self.events[change["id"]] = change["record"]

    def assert_equals_site(self) -> None:
        """Synchronize the copy and compare it with the lists of the site."""
        self.synchronize()
        copies = {event_id: _sort_terms(event) for event_id, event in self.events.items()}
        site = {event["id"]: _flatten(event) for event in self._list_events()}
        assert copies.keys() == site.keys()
        hidden = set[int]()
        for event_id, event in site.items():
            copy = copies[event_id]
            if event["series"] is None and copy["series"] is not None:
                hidden.add(copy["series"]["id"])
                copy = {**copy, "series": None}
            names = [name for name in {*copy, *event} if copy.get(name) != event.get(name)]
            assert not names, (event_id, {name: (copy.get(name), event.get(name)) for name in names})
        assert not any(map(self._is_public, hidden))

    def _is_public(self, series_id: int) -> bool:
        """Return whether a series is public. If it is not, records of public events do not name it."""
        response = self.get(f"{SERIES_PATH}/{series_id}", {})
        return response.status_code == 200 and response.json()["status"] == "publish"

    def _list_events(self) -> list[Any]:
        page = self._read(EVENTS_PATH, WINDOW)
        events = list(page["events"])
        for number in range(2, page["total_pages"] + 1):
            events += self._read(EVENTS_PATH, {**WINDOW, "page": number})["events"]
        return events

    def _read(self, path: str, query: dict[str, Any]) -> Any:
        response = self.get(path, query)
        assert response.status_code == 200, response.text
        return response.json()


def _flatten(event: dict[str, Any]) -> dict[str, Any]:
    """Return a listed event in the form of `changes`: linked records are IDs."""
    flat = _sort_terms({**event, **{name: _list_ids(event[name]) for name in LINKS}})
    if event["series"] is None:
        return flat
    return {**flat, "series": {name: event["series"][name] for name in ("id", "slot", "own")}}


def _sort_terms(event: dict[str, Any]) -> dict[str, Any]:
    """Sort terms by ID: lists sort them by name, which `changes` does not tell."""
    return {**event, "categories": sorted(event["categories"]), "tags": sorted(event["tags"])}


def _list_ids(linked: Any) -> list[int]:
    records = linked if isinstance(linked, list) else [linked]
    return [record["id"] for record in records]
