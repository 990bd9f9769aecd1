"""What random data seldom hits: the ends of the calendar, very long events, cursors, moments at midnight."""

import base64
import json
from datetime import UTC, datetime

import pytest

from tests.lists.comparison import compare_with_model
from tests.lists.dataset import Dataset, Event, Query
from tests.lists.event_model import DATE_PARAMS
from tests.lists.list_site import ListSite

NOW = datetime(2027, 1, 15, 12, tzinfo=UTC)


def make_event(event_id: int, start: str, end: str, *, title: str = "x", password: str = "") -> Event:
    starts, ends = datetime.fromisoformat(start), datetime.fromisoformat(end)
    return Event(
        event_id,
        published=NOW,
        modified=NOW,
        title=title,
        password=password,
        start_local=starts,
        end_local=ends,
        start=starts.replace(tzinfo=UTC),
        end=ends.replace(tzinfo=UTC),
    )


def load_events(site: ListSite, *events: Event, zone: str = "UTC") -> Dataset:
    dataset = Dataset(NOW, zone, per_page=50, events=events)
    site.load(dataset)
    return dataset


@pytest.mark.parametrize(
    "params",
    [
        (("ends_after", "2027-01-01"),),
        (("ends_after", "2027-01-01"), ("featured", "false")),
        (("overlaps_from", "1700-01-01"), ("overlaps_to", "1700-01-31")),
        (("start_date", "1700-01-01"), ("end_date", "1800-01-01")),
    ],
)
def test_event_lasting_centuries_is_listed(site: ListSite, params: tuple[tuple[str, str], ...]) -> None:
    dataset = load_events(site, make_event(1, "1400-01-01", "2027-06-01"), make_event(2, "0900-01-01", "8000-01-01"))
    compare_with_model(site, dataset, Query("events", params=params))


def test_event_starting_on_first_supported_day_is_listed(site: ListSite) -> None:
    dataset = load_events(site, make_event(1, "0001-01-01 00:00:01", "0001-01-05"))
    compare_with_model(site, dataset, Query("events", params=(("overlaps_from", "0001-01-03"),)))


def test_event_may_start_on_first_supported_day(site: ListSite) -> None:
    load_events(site)
    values = {"title": "x", "start_date": "0001-01-01 00:00:00", "end_date": "0001-01-02 00:00:00"}
    assert site.send("POST", "/events", "editor", json=values).status_code in (201, 400)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York"])
def test_dates_at_supported_limits_are_accepted_or_rejected(site: ListSite, zone: str) -> None:
    load_events(site, zone=zone)
    for name in DATE_PARAMS:
        for text in ("0001-01-01", "0001-01-01T00:00:00Z", "9998-12-31", "9998-12-31T23:59:59-12:00"):
            for strict in ("0", "1"):
                response = site.get_list("/events", "anonymous", [(name, text), ("strict_dates", strict)])
                error = f"{name}={text}, strict {strict}, {zone}: {response.status_code}"
                assert response.status_code in (200, 400), error
                assert response.status_code == 200 or name in response.json()["data"]["params"], error


def test_list_ordered_by_long_titles_can_be_paged(site: ListSite) -> None:
    titles = ("é" * 5000, "é" * 4999 + "f", "a")
    events = (make_event(n, "2027-02-01", "2027-02-02", title=title) for n, title in enumerate(titles, 1))
    dataset = load_events(site, *events)
    params = (("orderby", "title"), ("per_page", "1"))
    compare_with_model(site, dataset, Query("events", params=params, paging="cursors"))


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
def test_forged_cursor_is_rejected(site: ListSite, keys: object) -> None:
    load_events(site, make_event(1, "2027-02-01", "2027-02-02"))
    cursor = base64.urlsafe_b64encode(json.dumps(keys).encode()).decode()
    response = site.get_list("/events", "anonymous", [("orderby", "title"), ("cursor", cursor)])
    assert (response.status_code, list(response.json()["data"]["params"])) == (400, ["cursor"])


def test_cursor_of_other_order_is_rejected(site: ListSite) -> None:
    load_events(site, make_event(1, "2027-02-01", "2027-02-02"), make_event(2, "2027-02-01", "2027-02-02"))
    cursor = site.get_list("/events", "anonymous", [("per_page", "1")]).json()["next_cursor"]
    response = site.get_list("/events", "anonymous", [("order", "desc"), ("cursor", cursor)])
    assert (response.status_code, list(response.json()["data"]["params"])) == (400, ["cursor"])


def test_password_unlocks_one_of_many_protected_events(site: ListSite) -> None:
    dataset = load_events(
        site, *(make_event(n, "2027-02-01", "2027-02-02", password=f"secret {n}") for n in range(1, 9))
    )
    compare_with_model(site, dataset, Query("events", params=(("password", "secret 8"),)))


def test_zero_length_event_at_midnight_is_listed_on_its_day(site: ListSite) -> None:
    load_events(site, make_event(1, "2027-02-01 00:00:00", "2027-02-01 00:00:00"))
    response = site.get_list("/events", "anonymous", [("overlaps_from", "2027-02-01"), ("overlaps_to", "2027-02-28")])
    assert [event_json["id"] for event_json in response.json()["events"]] == [1]
