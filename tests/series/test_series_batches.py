"""Series in batches, and the options that every write has: If-Match, Idempotency-Key."""

from typing import Any

import pytest

from tests.api.running_app import Caller, RunningApp, assert_error
from tests.series.series_client import EXTENSION, WEEKLY, SeriesClient


@pytest.fixture
def client(editor: Caller) -> SeriesClient:
    return SeriesClient(editor)


def run(caller: Caller, *operations: dict[str, Any]) -> Any:
    return caller.post(f"{EXTENSION}/batch", {"operations": list(operations)})


def test_a_batch_edits_series(client: SeriesClient, editor: Caller) -> None:
    series = client.create(title="Batch")
    events = client.events(series["id"])
    response = run(
        editor,
        {"method": "PATCH", "path": f"/events/{events[2]['id']}", "body": {"scope": "following", "title": "Later"}},
        {"method": "PATCH", "path": f"/events/{events[0]['id']}", "body": {"title": "Single"}},
        {"method": "POST", "path": f"/series/{series['id']}/dates", "body": {"remove": ["2027-01-12"]}},
        {"method": "POST", "path": "/series", "body": {**WEEKLY, "title": "Other"}},
        {"method": "DELETE", "path": f"/series/{series['id']}", "body": {"scope": "following", "from": "2027-03-02"}},
    )
    assert [result["status"] for result in response.json()["results"]] == [200, 200, 200, 201, 200]
    titles = [event["title"] for event in client.events(series["id"])]
    assert titles == ["Single", *["Later"] * 6]


def test_each_date_counts_against_the_limit_of_a_batch(client: SeriesClient, app: RunningApp, editor: Caller) -> None:
    series = client.create(title="Many", rule="FREQ=DAILY;COUNT=300")
    before = app.sql("SELECT revision FROM sites")
    path = f"/series/{series['id']}"
    response = run(
        editor,
        {"method": "PATCH", "path": path, "body": {"title": "One"}},
        {"method": "PATCH", "path": path, "body": {"title": "Two"}},
    )
    assert_error(response, 400, "rest_invalid_param", "operations")
    assert app.sql("SELECT revision FROM sites") == before


def test_a_batch_runs_no_preview(editor: Caller) -> None:
    response = run(editor, {"method": "POST", "path": "/series/preview", "body": WEEKLY})
    assert_error(response, 405, "rest_batch_failed")


PATHS = ["restore", "dates", "split", "merge", "dissolve"]


@pytest.mark.quick("restore", "dissolve")
@pytest.mark.parametrize("path", PATHS)
def test_a_stale_if_match_is_refused(client: SeriesClient, editor: Caller, path: str) -> None:
    series, other = client.create(title="Match"), client.create(title="Other", start_date="2028-01-04 10:00",
        end_date="2028-01-04 11:00", rule="FREQ=DAILY;COUNT=2")  # fmt: skip
    old = editor.get(f"{EXTENSION}/series/{series['id']}").headers["etag"]
    revision = client.revision(series["id"])
    client.edit(client.events(series["id"])[0]["id"], "all", title="Changed")
    body = {"revision": revision, "remove": ["2027-01-12"], "from": "2027-02-02", "series": other["id"]}
    url = f"{EXTENSION}/series/{series['id']}/{path}"
    assert_error(editor.post(url, body, headers={"If-Match": old}), 412, "rest_precondition_failed")
    current = editor.get(f"{EXTENSION}/series/{series['id']}").headers["etag"]
    before = client.read(series["id"])
    dry = editor.post(url, {**body, "dry_run": True}, headers={"If-Match": current}).json()
    assert client.read(series["id"]) == before
    headers = {"If-Match": current, "Idempotency-Key": f"series-{path}"}
    first, second = editor.post(url, body, headers=headers), editor.post(url, body, headers=headers)
    assert first.status_code == 200, first.text
    assert (second.headers["idempotent-replay"], second.json()) == ("true", first.json())
    names = ("changed", "created", "trashed")
    assert [dry[name] for name in names] == [first.json()[name] for name in names]
