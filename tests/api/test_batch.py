"""Many writes in one request: atomic or independent."""

from typing import Any

from tests.api.conftest import StartApp
from tests.api.running_app import HOST, RunningApp

PATH = "/api/kalends/v1/batch"
TAG = {"method": "POST", "path": "/tags"}


def run_batch(app: RunningApp, role: str, operations: list[Any], **options: Any) -> Any:
    caller = app.caller(role)
    return caller.request("POST", f"http://{HOST}{PATH}", json={"operations": operations, **options})


def tag_names(app: RunningApp) -> list[str]:
    return [row["name"] for row in app.sql("SELECT name FROM tags ORDER BY id")]


def test_operations_run_in_order_with_one_result_each(start_app: StartApp) -> None:
    app = start_app()
    tag = run_batch(app, "editor", [{**TAG, "body": {"name": "one"}}]).json()["results"][0]["body"]
    response = run_batch(
        app,
        "editor",
        [
            {**TAG, "body": {"name": "two"}},
            {"method": "PATCH", "path": f"/tags/{tag['id']}", "body": {"name": "first"}},
            {"method": "POST", "path": "/venues", "body": {"venue": "Hall"}},
            {"method": "DELETE", "path": "/venues/by-slug/hall"},
        ],
    )
    assert response.status_code == 200
    assert [result["status"] for result in response.json()["results"]] == [201, 200, 201, 200]
    assert tag_names(app) == ["first", "two"]


def test_failed_operation_rolls_back_atomic_batch_and_is_identified(start_app: StartApp) -> None:
    app = start_app()
    before = app.sql("SELECT revision, last_term_id FROM sites")[0]
    response = run_batch(app, "editor", [{**TAG, "body": {"name": "one"}}, {**TAG, "body": {"name": "ONE"}}])
    assert (response.status_code, response.json()["code"]) == (400, "rest_batch_failed")
    assert response.json()["data"]["operation"] == 1
    assert response.json()["data"]["error"]["code"] == "term_exists"
    assert tag_names(app) == []
    assert app.sql("SELECT revision, last_term_id FROM sites")[0] == before


def test_failed_operation_of_non_atomic_batch_leaves_no_revision_gap(start_app: StartApp) -> None:
    app = start_app()
    operations = [{**TAG, "body": {"name": name}} for name in ("one", "one", "two")]
    response = run_batch(app, "editor", operations, atomic=False)
    assert [result["status"] for result in response.json()["results"]] == [201, 400, 201]
    assert tag_names(app) == ["one", "two"]
    revisions = [row["revision"] for row in app.sql("SELECT revision FROM changes ORDER BY revision")]
    assert revisions == list(range(1, len(revisions) + 1))
    assert app.sql("SELECT revision FROM sites")[0]["revision"] == len(revisions)


def test_permissions_are_checked_per_operation(start_app: StartApp) -> None:
    app = start_app()
    operations = [{"method": "POST", "path": "/venues", "body": {"venue": "Hall"}}, {**TAG, "body": {"name": "one"}}]
    response = run_batch(app, "contributor", operations, atomic=False)
    assert [result["status"] for result in response.json()["results"]] == [201, 403]
    assert run_batch(app, "subscriber", operations).status_code == 403
    assert run_batch(app, "anonymous", operations).status_code == 401


def test_malformed_batch_is_rejected(start_app: StartApp) -> None:
    app = start_app()
    for operations in ([], "x", [1], [{"method": "GET", "path": "/tags"}], [{**TAG, "body": []}], [TAG] * 501):
        response = run_batch(app, "editor", operations)
        assert (response.status_code, response.json()["code"]) == (400, "rest_invalid_param"), operations
    unknown = run_batch(app, "editor", [{"method": "POST", "path": "/nothing", "body": {}}])
    assert unknown.json()["data"]["error"]["code"] == "rest_no_route"
