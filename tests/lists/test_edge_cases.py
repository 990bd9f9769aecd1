"""What random data seldom hits: the ends of the calendar, very long events, cursors, moments at midnight."""

import base64
import json
from datetime import UTC, datetime

import pytest

from tests.lists.comparison import compare
from tests.lists.dataset import Event, Query, World
from tests.lists.event_model import DATES
from tests.lists.list_site import Site

NOW = datetime(2027, 1, 15, 12, tzinfo=UTC)


def event(event_id: int, start: str, end: str, *, title: str = "x", password: str = "") -> Event:
    begins, ends = datetime.fromisoformat(start), datetime.fromisoformat(end)
    return Event(
        event_id,
        published=NOW,
        modified=NOW,
        title=title,
        password=password,
        start_wall=begins,
        end_wall=ends,
        start=begins.replace(tzinfo=UTC),
        end=ends.replace(tzinfo=UTC),
    )


def fill(site: Site, *events: Event, zone: str = "UTC") -> World:
    world = World(NOW, zone, per_page=50, events=events)
    site.fill(world)
    return world


@pytest.mark.parametrize(
    "params",
    [
        (("ends_after", "2027-01-01"),),
        (("ends_after", "2027-01-01"), ("featured", "false")),
        (("overlaps_from", "1700-01-01"), ("overlaps_to", "1700-01-31")),
        (("start_date", "1700-01-01"), ("end_date", "1800-01-01")),
    ],
)
def test_event_lasting_centuries_is_listed(site: Site, params: tuple[tuple[str, str], ...]) -> None:
    world = fill(site, event(1, "1400-01-01", "2027-06-01"), event(2, "0900-01-01", "8000-01-01"))
    compare(site, world, Query("events", params=params))


def test_event_starting_on_first_supported_day_is_listed(site: Site) -> None:
    world = fill(site, event(1, "0001-01-01 00:00:01", "0001-01-05"))
    compare(site, world, Query("events", params=(("overlaps_from", "0001-01-03"),)))


def test_event_may_start_on_first_supported_day(site: Site) -> None:
    fill(site)
    values = {"title": "x", "start_date": "0001-01-01 00:00:00", "end_date": "0001-01-02 00:00:00"}
    assert site.send("POST", "/events", "editor", json=values).status_code in (201, 400)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York"])
def test_dates_at_supported_limits_are_accepted_or_rejected(site: Site, zone: str) -> None:
    fill(site, zone=zone)
    for name in DATES:
        for text in ("0001-01-01", "0001-01-01T00:00:00Z", "9998-12-31", "9998-12-31T23:59:59-12:00"):
            for strict in ("0", "1"):
                answer = site.ask("/events", "anonymous", [(name, text), ("strict_dates", strict)])
                fault = f"{name}={text}, strict {strict}, {zone}: {answer.status_code}"
                assert answer.status_code in (200, 400), fault
                assert answer.status_code == 200 or name in answer.json()["data"]["params"], fault


def test_list_ordered_by_long_titles_can_be_paged(site: Site) -> None:
    titles = ("é" * 5000, "é" * 4999 + "f", "a")
    events = (event(n, "2027-02-01", "2027-02-02", title=title) for n, title in enumerate(titles, 1))
    world = fill(site, *events)
    params = (("orderby", "title"), ("per_page", "1"))
    compare(site, world, Query("events", params=params, walk="cursors"))


@pytest.mark.parametrize(
    "keys",
    [
        ["title", "asc", "a\x00b", 1],
        ["title", "asc", 7, 1],
        ["title", "asc", "a", 10**30],
        ["title", "asc", "a"],
        ["title", "up", "a", 1],
        ["date", "asc", "2027-01-01T00:00:00+00:00", 1],
        ["title"],
        [],
        {"title": 1},
        "title",
    ],
)
def test_forged_cursor_is_rejected(site: Site, keys: object) -> None:
    fill(site, event(1, "2027-02-01", "2027-02-02"))
    cursor = base64.urlsafe_b64encode(json.dumps(keys).encode()).decode()
    answer = site.ask("/events", "anonymous", [("orderby", "title"), ("cursor", cursor)])
    assert (answer.status_code, list(answer.json()["data"]["params"])) == (400, ["cursor"])


def test_cursor_of_other_order_is_rejected(site: Site) -> None:
    fill(site, event(1, "2027-02-01", "2027-02-02"), event(2, "2027-02-01", "2027-02-02"))
    cursor = site.ask("/events", "anonymous", [("per_page", "1")]).json()["next_cursor"]
    answer = site.ask("/events", "anonymous", [("order", "desc"), ("cursor", cursor)])
    assert (answer.status_code, list(answer.json()["data"]["params"])) == (400, ["cursor"])


def test_password_unlocks_one_of_many_protected_events(site: Site) -> None:
    world = fill(site, *(event(n, "2027-02-01", "2027-02-02", password=f"secret {n}") for n in range(1, 9)))
    compare(site, world, Query("events", params=(("password", "secret 8"),)))


def test_zero_length_event_at_midnight_is_listed_on_its_day(site: Site) -> None:
    fill(site, event(1, "2027-02-01 00:00:00", "2027-02-01 00:00:00"))
    answer = site.ask("/events", "anonymous", [("overlaps_from", "2027-02-01"), ("overlaps_to", "2027-02-28")])
    assert [found["id"] for found in answer.json()["events"]] == [1]
