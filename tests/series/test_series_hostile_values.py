"""Wrong types and hostile values in every parameter of the series routes never cause a server error."""

from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from typing import Any

import httpx
import pytest

from kalends.calendar.kinds.events import EVENTS
from kalends.core.params import DATE_TIME, Param
from kalends.http.router import Endpoint, Route
from kalends.routes import SERIES_INTERFACE
from tests.api.hostile_values import EXTREME_DATES, HOSTILE_DATES, WORST_VALUES
from tests.api.running_app import Caller, assert_error
from tests.api.test_hostile_fields import assert_no_errors, describe_server_error, parser_identity, send
from tests.series.series_client import EXTENSION, WEEKLY, SeriesClient

STRUCTURES = ({}, {"a": [1]}, [[1]], [None], [{}], True, 1.5, -1, 2**70, "x" * 600)
RULES = (
    "FREQ=DAILY;COUNT=1000",
    "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29",
    "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=DAILY;UNTIL=99991231",
    "FREQ=DAILY;UNTIL=00010101T000000Z",
    "FREQ=WEEKLY;BYDAY=TU;BYSETPOS=2",
    "RRULE:FREQ=DAILY\nRRULE:FREQ=DAILY",
    {"frequency": []},
    {"frequency": "daily", "interval": "x"},
    {"frequency": "weekly", "weekdays": [{"weekday": 1, "ordinal": {}}]},
    {"frequency": "daily", "until": 5},
    {"frequency": "daily", "count": 10**30},
)
DATES = ("0002-01-01", "9797-12-31", "2027-03-28 02:30", "now", "+9999 years", "-2000 years", "23:59:59")
LISTS = (["2027-01-05"] * 1100, ["0002-01-05", "9797-01-05"], ["0001-01-01", "9998-12-31"], ["now", None])
# The arguments that the operations need to reach the hostile value.
COMPLETE = {**WEEKLY, "rule": "FREQ=WEEKLY;COUNT=3", "dry_run": True}
EVENT_FIELDS = {field.name for field in EVENTS.fields}
TIMES = ("start_date", "end_date")
LIST_PARAMS = ("add_dates", "remove_dates", "add", "remove", "fields")


@pytest.fixture(scope="module")
def series(editor: Caller) -> Any:
    return SeriesClient(editor).create(rule="FREQ=WEEKLY;INTERVAL=20")


@pytest.fixture(scope="module")
def event(editor: Caller, series: Any) -> Any:
    return SeriesClient(editor).events(series["id"])[1]


def list_writes(series: Any, event: Any) -> Iterator[tuple[str, Endpoint]]:
    """Yield the path and the endpoint of every write."""
    for route in SERIES_INTERFACE.routes:
        for endpoint in route.endpoints:
            if endpoint.methods != ("GET",):
                yield make_path(route, event["id"] if "/events" in route.pattern else series["id"]), endpoint


def make_path(route: Route, record_id: int) -> str:
    return route.pattern.replace(r"(?P<id>\d+)", str(record_id))


def list_values(param: Param, *, is_first: bool) -> Sequence[object]:
    """Return the values for a parameter. What its parser rejects is sent once, to the first route that has it."""
    if param.name == "dry_run":
        return ()  # Values that mean false would delete what the others need.
    values = (*STRUCTURES, *WORST_VALUES) if is_first else (2**70, "a\x00b")
    if param.name == "rule":
        return *values, *RULES
    if param.name in LIST_PARAMS:
        return *values, *LISTS, *EXTREME_DATES
    if param.name in TIMES or (param.type is DATE_TIME and param.name not in EVENT_FIELDS):
        return *values, *(HOSTILE_DATES if is_first else EXTREME_DATES), *DATES
    # The values of the other fields of events are tested with events.
    return values[::10] if param.name in EVENT_FIELDS else values


def list_bodies(endpoint: Endpoint, seen: set[object]) -> Iterator[dict[str, object]]:
    """Yield bodies with a hostile value each; those of edits have one of the scopes in turn."""
    known = {param.name for param in endpoint.params}
    complete = {name: value for name, value in COMPLETE.items() if name in known}
    # The other fields would replace what follows from the hostile value.
    edits = [{"scope": scope, "from": "2027-02-02", "dry_run": True} for scope in ("this", "following", "all")]
    bodies = cycle(edits if "scope" in known else [complete])
    for param in endpoint.params:
        parser = parser_identity(param)
        for value in list_values(param, is_first=parser not in seen):
            for _ in edits if param.name in TIMES and "scope" in known else ("once",):
                yield {**next(bodies), param.name: value}
        seen.add(parser)


def test_hostile_bodies_cause_no_server_error(editor: Caller, series: Any, event: Any) -> None:
    errors, seen = list[str | None](), set[object]()
    for path, endpoint in list_writes(series, event):
        for body in list_bodies(endpoint, seen):
            response = send(editor, endpoint.methods[-1], EXTENSION + path, body)
            errors.append(describe_server_error(response, endpoint.operation_id, body))
    assert_no_errors(errors)


def test_hostile_values_in_batches_cause_no_server_error(editor: Caller, series: Any, event: Any) -> None:
    errors: list[str | None] = []
    for path, endpoint in list_writes(series, event):
        operations = [
            {"method": endpoint.methods[-1], "path": path, "body": body}
            for body in islice(list_bodies(endpoint, set()), 0, None, 7)
        ]
        for first in range(0, len(operations), 50):
            body = {"operations": operations[first : first + 50], "atomic": False}
            response = send(editor, "POST", f"{EXTENSION}/batch", body)
            errors.append(describe_server_error(response, endpoint.operation_id, first))
            errors += [
                f"{endpoint.operation_id}: {result}"
                for result in response.json().get("results", [])
                if result["status"] >= 500
            ]
    assert_no_errors(errors)


def test_hostile_queries_cause_no_server_error(editor: Caller, anonymous: Caller, series: Any) -> None:
    paths = {
        f"/series/{series['id']}/occurrences": ("from", "to", "state"),
        "/series": ("page", "per_page", "status"),
        f"/series/{series['id']}": ("context", "password"),
    }
    errors: list[str | None] = []
    for path, names in paths.items():
        for name in names:
            dates = (*DATES, *HOSTILE_DATES) if name in ("from", "to") else DATES[:2]
            for value in (*dates, "made,x", "", "planned", "\ud7ff", "-1", "9" * 30):
                response = editor.get(EXTENSION + path, {name: value})
                errors.append(describe_server_error(response, path, name, value))
            for query in (f"{name}[]=made&{name}[]=x", f"{name}[a][b]=1", f"{name}[=", name):
                errors.append(describe_server_error(anonymous.get(f"{EXTENSION}{path}?{query}"), query))
    for path in ("/series/by-slug/%00", "/series/by-slug/%ff", f"/series/{'9' * 40}", "/series/0/occurrences"):
        errors.append(describe_server_error(editor.get(EXTENSION + path), path))
    assert_no_errors(errors)


# Precise errors ------------------------------------------------------------------------------


@pytest.mark.quick("fields0-start_date", "fields7-remove_dates")
@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"start_date": "0001-01-02", "end_date": "0001-01-02"}, "start_date"),
        ({"start_date": "9998-12-31", "end_date": "9998-12-31"}, "start_date"),
        ({"end_date": "9000-01-01"}, "end_date"),
        ({"start_date": "0002-01-01", "end_date": "0002-01-01", "rule": "FREQ=DAILY"}, "rule"),
        ({"start_date": "2020-01-01", "end_date": "2020-01-01", "rule": "FREQ=DAILY"}, "rule"),
        ({"add_dates": ["0001-01-01"]}, "add_dates"),
        ({"add_dates": ["2027-01-05"] * 501}, "add_dates"),
        ({"remove_dates": ["9998-01-01"]}, "remove_dates"),
    ],
)
def test_new_series_outside_the_limits_are_rejected(editor: Caller, fields: dict[str, object], name: str) -> None:
    assert_error(editor.post(f"{EXTENSION}/series", {**WEEKLY, "rule": "FREQ=WEEKLY", **fields}), 400,
                 "rest_invalid_param", name)  # fmt: skip


@pytest.mark.quick("fields0-start_date", "fields4-rule")
@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"start_date": "9998-12-31 10:00"}, "start_date"),
        ({"start_date": "0001-01-01 10:00", "end_date": "0001-01-01 11:00"}, "start_date"),
        ({"start_date": "9797-12-31 10:00", "end_date": "9797-12-31 11:00"}, "start_date"),
        ({"end_date": "9000-01-01"}, "end_date"),
        ({"start_date": "0009-01-01", "end_date": "0009-01-01", "rule": "FREQ=DAILY"}, "rule"),
    ],
)
def test_edits_outside_the_limits_are_rejected(
    editor: Caller, series: Any, event: Any, fields: dict[str, object], name: str
) -> None:
    for path in (f"/series/{series['id']}?scope=all", f"/events/{event['id']}?scope=all"):
        response = editor.patch(f"{EXTENSION}{path}&dry_run=true", fields)
        assert_error(response, 400, "rest_invalid_param", name)


def test_a_date_far_from_the_others_can_be_added(editor: Caller, series: Any) -> None:
    dates = ["0002-01-05", "5000-01-05", "9797-01-05"]
    response = editor.post(f"{EXTENSION}/series/{series['id']}/dates", {"add": dates, "dry_run": True})
    assert response.json()["created"] == 3, response.text


def test_one_date_accepts_a_time_alone_and_a_dry_run(editor: Caller, event: Any) -> None:
    url = f"{EXTENSION}/events/{event['id']}"
    fields = {"start_date": "18:00", "end_date": "20:15"}
    planned = editor.patch(f"{url}?dry_run=true", fields).json()
    assert (planned["start_date"], planned["end_date"]) == ("2027-05-25 18:00:00", "2027-05-25 20:15:00")
    assert editor.delete(f"{url}?dry_run=true").status_code == 200
    assert editor.read("events", event["id"])["start_date"] == event["start_date"]
    assert editor.patch(url, fields).json()["start_date"] == "2027-05-25 18:00:00"


def test_a_long_event_does_not_become_a_series(editor: Caller) -> None:
    event = editor.create("events", title="Epoch", start_date="0100-01-01", end_date="9000-01-01")
    response = editor.post(f"{EXTENSION}/events/{event['id']}/series", {"rule": "FREQ=WEEKLY"})
    assert_error(response, 400, "rest_invalid_param", "rule")


def test_a_series_that_moves_far_to_the_past_creates_no_past_dates(editor: Caller) -> None:
    client = SeriesClient(editor)
    series = client.create(title="Moved to the past", rule="FREQ=WEEKLY")
    fields = {"start_date": "1990-01-02 19:30", "end_date": "1990-01-02 21:00"}
    assert edit_series(editor, series["id"], fields).status_code == 200
    moved = client.read(series["id"])
    assert (moved["total"], moved["created_until"] > "2026") == (series["total"], True)


def test_a_series_has_a_limited_number_of_changes(editor: Caller) -> None:
    client = SeriesClient(editor)
    series = client.create(title="Changed often", rule="FREQ=DAILY;COUNT=110")
    for number in range(100):
        response = edit_series(
            editor, series["id"], {"cost": str(number)}, since=f"2028-01-01 {number // 5:02}:{number % 5:02}"
        )
        assert response.status_code == 200, response.text
    refused = edit_series(editor, series["id"], {"cost": "100"}, since="2028-01-02")
    assert_error(refused, 400, "rest_invalid_param", "scope")
    assert edit_series(editor, series["id"], {"cost": "100"}).status_code == 200


def edit_series(editor: Caller, series_id: int, fields: dict[str, object], since: str = "") -> httpx.Response:
    scope = f"?scope=following&from={since}" if since else ""
    return editor.patch(f"{EXTENSION}/series/{series_id}{scope}", fields)
