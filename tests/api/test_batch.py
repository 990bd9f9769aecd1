"""Many writes in one request: atomic or independent."""

from typing import Any

import pytest

from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp

PATH = "/api/kalends/v1/batch"
TAG = {"method": "POST", "path": "/tags"}


def run_batch(app: RunningApp, role: str, operations: list[Any], **options: Any) -> Any:
    caller = app.caller(role)
    return caller.request("POST", f"/{PATH}", json={"operations": operations, **options})


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


def test_precondition_of_each_operation(start_app: StartApp) -> None:
    app = start_app()
    tags = [app.caller("editor").create("tags", name=name) for name in ("one", "two", "three")]
    revisions = [row["revision"] for row in app.sql("SELECT revision FROM tags ORDER BY id")]
    etag = app.caller("editor").get(f"/tags/{tags[1]['id']}").headers["etag"]
    app.caller("editor").change("tags", tags[2]["id"], description="changed by another user")
    preconditions = [revisions[0], etag, revisions[2]]
    operations = [
        {"method": "PATCH", "path": f"/tags/{tag['id']}", "body": {"name": f"new {n}"}, "if_match": precondition}
        for n, (tag, precondition) in enumerate(zip(tags, preconditions, strict=True))
    ]
    failed = run_batch(app, "editor", operations)
    assert (failed.status_code, failed.json()["data"]["error"]["code"]) == (412, "rest_precondition_failed")
    assert tag_names(app) == ["one", "two", "three"]
    response = run_batch(app, "editor", operations, atomic=False)
    assert [result["status"] for result in response.json()["results"]] == [200, 200, 412]
    assert response.json()["results"][2]["body"]["code"] == "rest_precondition_failed"
    assert tag_names(app) == ["new 0", "new 1", "three"]


def test_forms_of_a_precondition(start_app: StartApp) -> None:
    app = start_app()
    tag = app.caller("editor").create("tags", name="one")
    revision = app.sql("SELECT revision FROM tags")[0]["revision"]
    expected = {revision: 200, str(revision): 200, f'"{revision}-"': 200, f'W/"{revision}-x", "1-y"': 200, "*": 200,
                None: 200, revision + 1: 412, "other": 412, '"x-y"': 412, -1: 412, "9" * 5000: 412}  # fmt: skip
    for precondition, status in expected.items():
        operation = {"method": "PUT", "path": f"/tags/{tag['id']}", "body": {"name": "one"}, "if_match": precondition}
        response = run_batch(app, "editor", [operation], atomic=False)
        assert response.json()["results"][0]["status"] == status, precondition
    for malformed in (True, [1], {}, 1.5):
        response = run_batch(app, "editor", [{**TAG, "body": {"name": "x"}, "if_match": malformed}])
        assert (response.status_code, response.json()["code"]) == (400, "rest_invalid_param"), malformed


@pytest.mark.quick("", ",")
@pytest.mark.parametrize("empty", ["", " ", ","])
def test_empty_precondition_is_rejected(start_app: StartApp, empty: str) -> None:
    app = start_app()
    tag = app.caller("editor").create("tags", name="one")
    operation = {"method": "PATCH", "path": f"/tags/{tag['id']}", "body": {"name": "two"}, "if_match": empty}
    response = run_batch(app, "editor", [operation], atomic=False)
    assert (response.status_code, response.json()["code"]) == (400, "rest_invalid_header")
    assert "`if_match`" in response.json()["message"]
    assert tag_names(app) == ["one"]


def test_precondition_requires_a_record(start_app: StartApp) -> None:
    app = start_app()
    response = run_batch(app, "editor", [{**TAG, "body": {"name": "x"}, "if_match": 1}])
    assert (response.status_code, response.json()["data"]["error"]["code"]) == (400, "rest_invalid_param")
    assert tag_names(app) == []


def test_second_change_of_a_record_in_a_batch_fails_its_precondition(start_app: StartApp) -> None:
    app = start_app()
    tag = app.caller("editor").create("tags", name="one")
    revision = app.sql("SELECT revision FROM tags")[0]["revision"]
    operation = {"method": "PATCH", "path": f"/tags/{tag['id']}", "if_match": revision}
    operations = [{**operation, "body": {"name": name}} for name in ("two", "three")]
    response = run_batch(app, "editor", operations, atomic=False)
    assert [result["status"] for result in response.json()["results"]] == [200, 412]
    assert tag_names(app) == ["two"]
