"""Many writes in one request: all or nothing, or each by itself."""

from typing import Any

from tests.api.conftest import Start
from tests.api.running_app import HOST, Interface

PATH = "/api/kalends/v1/batch"
TAG = {"method": "POST", "path": "/tags"}


def batch(interface: Interface, role: str, operations: list[Any], **more: Any) -> Any:
    caller = interface.caller(role)
    return caller.request("POST", f"http://{HOST}{PATH}", json={"operations": operations, **more})


def names(interface: Interface) -> list[str]:
    return [row["name"] for row in interface.sql("SELECT name FROM tags ORDER BY id")]


def test_operations_run_in_order_with_one_result_each(fresh: Start) -> None:
    interface = fresh()
    tag = batch(interface, "editor", [{**TAG, "body": {"name": "one"}}]).json()["results"][0]["body"]
    answer = batch(
        interface,
        "editor",
        [
            {**TAG, "body": {"name": "two"}},
            {"method": "PATCH", "path": f"/tags/{tag['id']}", "body": {"name": "first"}},
            {"method": "POST", "path": "/venues", "body": {"venue": "Hall"}},
            {"method": "DELETE", "path": "/venues/by-slug/hall"},
        ],
    )
    assert answer.status_code == 200
    assert [result["status"] for result in answer.json()["results"]] == [201, 200, 201, 200]
    assert names(interface) == ["first", "two"]


def test_failed_operation_rolls_back_atomic_batch_and_is_identified(fresh: Start) -> None:
    interface = fresh()
    before = interface.sql("SELECT revision, last_term_id FROM sites")[0]
    answer = batch(interface, "editor", [{**TAG, "body": {"name": "one"}}, {**TAG, "body": {"name": "ONE"}}])
    assert (answer.status_code, answer.json()["code"]) == (400, "rest_batch_failed")
    assert answer.json()["data"]["operation"] == 1
    assert answer.json()["data"]["error"]["code"] == "term_exists"
    assert names(interface) == []
    assert interface.sql("SELECT revision, last_term_id FROM sites")[0] == before


def test_failed_operation_of_non_atomic_batch_leaves_no_revision_gap(fresh: Start) -> None:
    interface = fresh()
    operations = [{**TAG, "body": {"name": name}} for name in ("one", "one", "two")]
    answer = batch(interface, "editor", operations, atomic=False)
    assert [result["status"] for result in answer.json()["results"]] == [201, 400, 201]
    assert names(interface) == ["one", "two"]
    revisions = [row["revision"] for row in interface.sql("SELECT revision FROM changes ORDER BY revision")]
    assert revisions == list(range(1, len(revisions) + 1))
    assert interface.sql("SELECT revision FROM sites")[0]["revision"] == len(revisions)


def test_permissions_are_checked_per_operation(fresh: Start) -> None:
    interface = fresh()
    operations = [{"method": "POST", "path": "/venues", "body": {"venue": "Hall"}}, {**TAG, "body": {"name": "one"}}]
    answer = batch(interface, "contributor", operations, atomic=False)
    assert [result["status"] for result in answer.json()["results"]] == [201, 403]
    assert batch(interface, "subscriber", operations).status_code == 403
    assert batch(interface, "anonymous", operations).status_code == 401


def test_malformed_batch_is_rejected(fresh: Start) -> None:
    interface = fresh()
    for operations in ([], "x", [1], [{"method": "GET", "path": "/tags"}], [{**TAG, "body": []}], [TAG] * 501):
        answer = batch(interface, "editor", operations)
        assert (answer.status_code, answer.json()["code"]) == (400, "rest_invalid_param"), operations
    unknown = batch(interface, "editor", [{"method": "POST", "path": "/nothing", "body": {}}])
    assert unknown.json()["data"]["error"]["code"] == "rest_no_route"
