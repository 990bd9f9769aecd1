"""Sources and runs of imports in the API: parameters, permissions, states, and the jobs that they enqueue."""

from typing import Any

import httpx
import orjson
import pytest

from kalends.core.messages import Message
from kalends.imports.storage import import_tables
from kalends.store.database import Transaction
from tests.api.running_app import Caller, RunningApp, assert_error

ROOT = "//api/kalends/v1/imports"
CALENDAR = {"kind": "ical", "name": "Town hall", "url": "https://town.example/events.ics", "interval": 60}
ROLES = ("anonymous", "subscriber", "contributor", "author")


@pytest.fixture
def editor(app: RunningApp) -> Caller:
    return app.caller("editor")


def create(caller: Caller, **fields: object) -> Any:
    response = caller.post(f"{ROOT}/sources", {**CALENDAR, **fields})
    assert response.status_code == 201, response.text
    return response.json()


def start(caller: Caller, source_id: int, **options: Any) -> httpx.Response:
    return caller.request("POST", f"{ROOT}/sources/{source_id}/runs", **options)


def list_jobs(app: RunningApp, run_id: int) -> list[str]:
    return [job["task_name"] for job in app.jobs() if job["args"].get("run_id") == run_id]


def add_plan(app: RunningApp, source_id: int, *rows: dict[str, Any], state: str = "planned") -> int:
    """Add a run with a plan, as the worker does."""

    async def add(tx: Transaction) -> int:
        await tx.lock_site(None)
        run_id = await import_tables.add_run(tx, source_id, {})
        numbered = [{"number": number, "kind": "events", **row} for number, row in enumerate(rows, 1)]
        await import_tables.add_rows(tx, run_id, numbered)
        counts = import_tables.encode(await import_tables.count_rows(tx, run_id))
        await import_tables.change_run(tx, run_id, {"state": state, "planned_at": tx.now, "counts": counts})
        return run_id

    return app.run_operation(add)


def test_source_is_created_read_changed_and_deleted(app: RunningApp, editor: Caller) -> None:
    category = editor.create("categories", name="Council")
    response = editor.post(f"{ROOT}/sources", {**CALENDAR, "default_category": category["id"]})
    source = response.json()
    path = f"{ROOT}/sources/{source['id']}"
    assert (response.status_code, response.headers["location"]) == (201, app.make_url(path))
    assert {name: source[name] for name in CALENDAR} == CALENDAR
    assert (source["owner"], source["default_category"]) == (editor.id, category["id"])
    assert (source["default_status"], source["authority"], source["state"]) == ("draft", "local", "active")
    assert source["next_run_utc"] > source["created_utc"]
    assert editor.get(path).json() == source
    assert source in editor.get(f"{ROOT}/sources").json()["sources"]
    changed = editor.patch(path, {"state": "paused", "default_category": None, "timezone": "Europe/Berlin"}).json()
    assert changed == {
        **source,
        "state": "paused",
        "default_category": None,
        "timezone": "Europe/Berlin",
        "next_run_utc": None,
    }
    assert editor.delete(path).json() == changed
    assert_error(editor.get(path), 404, "import_not_found")


@pytest.mark.quick("fields0-url-user name or a password", "fields10-name-non-empty")
@pytest.mark.parametrize(
    ("fields", "name", "reason"),
    [
        ({"url": "https://anna:secret@town.example/a.ics"}, "url", "user name or a password"),
        ({"url": "file:///etc/passwd"}, "url", "http"),
        ({"url": "", "interval": 60}, "interval", "requires a `url`"),
        ({"interval": 5}, "interval", "15 to 10080"),
        ({"kind": "tec"}, "kind", "must be one of ical, table"),
        ({"authority": "nobody"}, "authority", "must be one of"),
        ({"default_category": 99999}, "default_category", "there is no category with ID 99999"),
        ({"columns": {"Title": 7}}, "columns", "the field of each column"),
        ({"columns": ["Title"]}, "columns", "must be an object"),
        ({"timezone": "Mars/Olympus"}, "timezone", ""),
        ({"name": " "}, "name", "non-empty"),
    ],
)
def test_invalid_source_is_rejected(editor: Caller, fields: dict[str, Any], name: str, reason: str) -> None:
    response = editor.post(f"{ROOT}/sources", {**CALENDAR, **fields})
    assert_error(response, 400, "rest_invalid_param", name)
    assert reason in response.json()["data"]["params"][name]


def test_webcal_url_becomes_https(editor: Caller) -> None:
    assert create(editor, url="webcal://town.example/a.ics")["url"] == "https://town.example/a.ics"


@pytest.mark.quick("anonymous", "author")
@pytest.mark.parametrize("role", ROLES)
def test_imports_require_an_editor(app: RunningApp, editor: Caller, role: str) -> None:
    source = create(editor)
    run = add_plan(app, source["id"], {"action": "new", "title": "Secret"})
    caller = app.caller(role)
    requests = [
        *[("GET", path) for path in ("/sources", f"/sources/{source['id']}", "/runs", f"/runs/{run}")],
        ("GET", f"/runs/{run}/rows"),
        *[("POST", path) for path in ("/sources", f"/sources/{source['id']}/runs", f"/runs/{run}/apply")],
        *[("POST", f"/runs/{run}/{action}") for action in ("undo", "discard")],
        ("PATCH", f"/sources/{source['id']}"),
        ("DELETE", f"/sources/{source['id']}"),
    ]
    for method, path in requests:
        body = {} if method in ("GET", "DELETE") else {"json": {**CALENDAR}}
        response = caller.request(method, ROOT + path, **body)
        assert_error(response, 401 if role == "anonymous" else 403, "rest_forbidden")
        assert "Secret" not in response.text
    assert editor.get(f"{ROOT}/runs/{run}").json()["state"] == "planned"


def test_run_is_a_job_of_the_worker(app: RunningApp, editor: Caller) -> None:
    source = create(editor)
    response = start(editor, source["id"], json={"apply": True})
    run = response.json()
    assert (response.status_code, response.headers["location"]) == (201, app.make_url(f"{ROOT}/runs/{run['id']}"))
    assert (run["state"], run["source"], run["user"]) == ("planning", source["id"], editor.id)
    assert list_jobs(app, run["id"]) == ["plan_import"]
    options = app.sql("SELECT options FROM import_runs WHERE id = $1", run["id"])[0]["options"]
    assert orjson.loads(options) == {"apply": True, "input": "url"}
    assert_error(start(editor, source["id"]), 409, "import_busy")
    assert_error(editor.delete(f"{ROOT}/sources/{source['id']}"), 409, "import_busy")
    assert editor.post(f"{ROOT}/runs/{run['id']}/discard").json()["state"] == "discarded"
    assert start(editor, source["id"]).status_code == 201


def test_uploaded_file_is_stored_with_its_source(app: RunningApp, editor: Caller) -> None:
    source = create(editor, url="", interval=None)
    assert_error(start(editor, source["id"]), 400, "rest_missing_callback_param")
    response = start(editor, source["id"], files={"file": ("events.ics", b"BEGIN:VCALENDAR")}, data={"apply": "0"})
    assert response.status_code == 201, response.text
    file = editor.get(f"{ROOT}/sources/{source['id']}").json()["file"]
    assert (file["name"], file["size"]) == ("events.ics", 15)
    assert (
        app.sql("SELECT content FROM import_files WHERE source_id = $1", source["id"])[0]["content"][:5] == b"BEGIN"
    )
    editor.post(f"{ROOT}/runs/{response.json()['id']}/discard")
    # Without a new file, the plan is made again from the stored one.
    assert start(editor, source["id"]).status_code == 201


def test_file_that_is_too_large_is_rejected(editor: Caller) -> None:
    source = create(editor, url="", interval=None)
    response = start(editor, source["id"], files={"file": ("events.ics", b"x" * (10 * 1024 * 1024 + 1))})
    assert_error(response, 413, "rest_body_too_large")
    assert editor.get(f"{ROOT}/sources/{source['id']}").json()["file"] is None


def test_repeated_upload_with_the_same_key_starts_one_run(editor: Caller) -> None:
    source = create(editor, url="", interval=None)
    sent = {"files": {"file": ("a.ics", b"BEGIN")}, "headers": {"Idempotency-Key": "upload-1"}}
    first, second = start(editor, source["id"], **sent), start(editor, source["id"], **sent)
    assert (first.json(), second.headers["idempotent-replay"]) == (second.json(), "true")
    other = start(editor, source["id"], files={"file": ("a.ics", b"OTHER")}, headers=sent["headers"])
    assert_error(other, 422, "rest_idempotency_mismatch")


def test_rows_are_filtered_and_paged(app: RunningApp, editor: Caller) -> None:
    source = create(editor)
    reason = import_tables.encode_message(
        Message("{column} {problem}", column="Ende", problem=Message("must be a date."))
    )
    change = {"title": {"stored": "A", "before": "A", "now": "B", "decision": "source"}}
    run = add_plan(
        app,
        source["id"],
        {"action": "new", "title": "One"},
        {"action": "changed", "title": "B", "changes": change},
        {"action": "rejected", "line": 12, "reasons": [reason], "state": "skipped"},
        {"action": "gone", "title": "Four", "state": "waiting"},
    )
    path = f"{ROOT}/runs/{run}/rows"
    rows = editor.get(path).json()
    assert [(row["number"], row["action"]) for row in rows["rows"]] == [
        (1, "new"),
        (2, "changed"),
        (3, "rejected"),
        (4, "gone"),
    ]
    assert rows["next_cursor"] is None
    assert rows["rows"][1]["changes"] == change
    assert (rows["rows"][2]["line"], rows["rows"][2]["reasons"]) == (12, ["Ende must be a date."])
    assert [row["number"] for row in editor.get(path, {"action": "new,gone"}).json()["rows"]] == [1, 4]
    assert [row["number"] for row in editor.get(path, {"state": "waiting"}).json()["rows"]] == [4]
    first = editor.get(path, {"per_page": 3}).json()
    assert first["next_cursor"] == 3
    assert [row["number"] for row in editor.get(path, {"cursor": 3}).json()["rows"]] == [4]
    assert editor.get(f"{ROOT}/runs/{run}").json()["counts"] == {"new": 1, "changed": 1, "rejected": 1, "gone": 1}


def test_plan_is_applied_in_part(app: RunningApp, editor: Caller) -> None:
    source = create(editor)
    rows = [{"action": action} for action in ("new", "changed", "new")]
    chosen = {"rows": ({"rows": [3, 1]}, [1, 3]), "action": ({"action": "changed"}, [2]), "all": ({}, None)}
    for body, numbers in chosen.values():
        run = add_plan(app, source["id"], *rows)
        response = editor.post(f"{ROOT}/runs/{run}/apply", body)
        assert (response.status_code, response.json()["state"]) == (200, "applying"), response.text
        assert list_jobs(app, run) == ["apply_import"]
        options = app.sql("SELECT options FROM import_runs WHERE id = $1", run)[0]["options"]
        assert orjson.loads(options)["numbers"] == numbers
        assert_error(editor.post(f"{ROOT}/runs/{run}/apply"), 409, "import_state")
        assert_error(editor.post(f"{ROOT}/runs/{run}/discard"), 409, "import_state")
        app.sql("UPDATE import_runs SET state = 'applied', finished_at = now() WHERE id = $1", run)


def test_undo_is_a_run_of_its_own(app: RunningApp, editor: Caller) -> None:
    source = create(editor)
    run = add_plan(app, source["id"], {"action": "new"})
    assert_error(editor.post(f"{ROOT}/runs/{run}/undo"), 409, "import_state")
    app.sql("UPDATE import_runs SET state = 'applied', first_revision = 1, last_revision = 1 WHERE id = $1", run)
    response = editor.post(f"{ROOT}/runs/{run}/undo")
    assert (response.status_code, response.json()["undoes"], response.json()["state"]) == (201, run, "planning")
    assert list_jobs(app, response.json()["id"]) == ["plan_import"]


def test_runs_are_listed_by_source_and_paged(app: RunningApp, editor: Caller) -> None:
    source, other = create(editor), create(editor)
    ids = [add_plan(app, source["id"], state="applied") for _ in range(3)]
    add_plan(app, other["id"], state="failed")
    first = editor.get(f"{ROOT}/runs", {"source": source["id"], "per_page": 2}).json()
    assert [run["id"] for run in first["runs"]] == ids[:0:-1]
    assert first["next_before"] == ids[1]
    rest = editor.get(f"{ROOT}/runs", {"source": source["id"], "before": first["next_before"]}).json()
    assert ([run["id"] for run in rest["runs"]], rest["next_before"]) == (ids[:1], None)


def test_source_without_owner_gets_the_next_editor(app: RunningApp, editor: Caller) -> None:
    source = create(editor)
    app.sql("UPDATE import_sources SET owner_id = NULL WHERE id = $1", source["id"])
    administrator = app.caller("administrator")
    assert administrator.patch(f"{ROOT}/sources/{source['id']}", {"name": "New"}).json()["owner"] == administrator.id


def test_source_of_a_move_in_is_changed_by_commands_only(app: RunningApp, editor: Caller) -> None:
    source = create(editor)
    app.sql("UPDATE import_sources SET kind = 'tec' WHERE id = $1", source["id"])
    path = f"{ROOT}/sources/{source['id']}"
    assert editor.get(path).json()["kind"] == "tec"
    responses = (editor.patch(path, {"name": "x"}), editor.delete(path), start(editor, source["id"]))
    for response in responses:
        assert_error(response, 409, "import_by_command")


@pytest.mark.parametrize(("same", "action"), [(True, "linked"), (False, "new")])
def test_possible_duplicate_is_decided(app: RunningApp, editor: Caller, same: bool, action: str) -> None:
    source = create(editor)
    run = add_plan(app, source["id"], {"action": "duplicate", "state": "waiting", "record_id": 5}, {"action": "new"})
    path = f"{ROOT}/runs/{run}"
    assert_error(editor.post(f"{path}/decide", {"row": 2, "same": same}), 409, "import_state")
    assert_error(editor.post(f"{path}/decide", {"row": 1}), 400, "rest_missing_callback_param")
    assert editor.post(f"{path}/decide", {"row": 1, "same": same}).json()["counts"][action] == (1 if same else 2)
    row = editor.get(f"{path}/rows").json()["rows"][0]
    assert (row["action"], row["state"], row["record"]) == (action, "pending", 5 if same else None)
