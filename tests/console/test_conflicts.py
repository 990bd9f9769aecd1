"""Two people change the same record: disjoint changes are merged, and none is lost silently."""

from itertools import combinations
from typing import Any

import orjson
import pytest
from starlette.responses import JSONResponse, Response

from kalends import routes
from kalends.calendar.kinds import BY_NAME
from kalends.console import conflicts
from kalends.console.console_request import ConsoleRequest, ConsoleRoute
from kalends.core.errors import ApiError
from kalends.http.router import Router
from tests.api.running_app import RunningApp
from tests.console.console_client import ConsoleClient, Page

DATES = {"start_date": "2030-05-01 10:00:00", "end_date": "2030-05-01 11:00:00"}
# Two values for each field, as a form sends them.
FIELDS: dict[str, tuple[Any, Any]] = {
    "title": ("Spring concert", "Summer concert"),
    "description": ("<p>One text</p>", "<p>Another text</p>"),
    "excerpt": ("Short", "Shorter"),
    "cost": ("5", "7"),
    "website": ("https://one.example/", "https://two.example/"),
    "start_date": ("2030-05-01 09:00:00", "2030-05-01 09:30:00"),
    "featured": ("true", "false"),
}
PAIRS = list(combinations(FIELDS, 2))[:20]


async def save(console_request: ConsoleRequest) -> Response:
    """Save a record as the forms of the console do."""
    form, kind = console_request.form, BY_NAME[console_request.path_params["kind"]]
    chosen = conflicts.read_choices(form)
    mine = orjson.loads(form["mine"]) if chosen is None else chosen
    revision, record_id = int(form["base_revision"]), int(console_request.path_params["id"])
    try:
        saved = await conflicts.save_merged(console_request, kind, record_id, revision, mine)
    except ApiError as error:
        return JSONResponse({"code": error.code}, error.status)
    return saved if isinstance(saved, Response) else JSONResponse(saved.body)


@pytest.fixture(autouse=True)
def save_route(monkeypatch: pytest.MonkeyPatch) -> None:
    route = ConsoleRoute(r"/(?P<kind>events|venues|organizers)/(?P<id>\d+)", post=save)
    monkeypatch.setattr(routes, "CONSOLE_ROUTER", Router((route, *routes.CONSOLE)))


def create(app: RunningApp, kind: str = "events", **fields: Any) -> tuple[int, int]:
    """Create a record and return its ID and revision."""
    names = {
        "events": {"title": "Concert", **DATES},
        "venues": {"venue": "Hall"},
        "organizers": {"organizer": "Choir"},
    }
    record = app.caller("editor").create(kind, **{**names[kind], "status": "draft", **fields})
    return record["id"], read_revision(app, kind, record["id"])


def read_revision(app: RunningApp, kind: str, record_id: int) -> int:
    revision: int = app.sql(f"SELECT revision FROM {kind} WHERE id = $1", record_id)[0]["revision"]
    return revision


def read(app: RunningApp, record_id: int, kind: str = "events") -> dict[str, Any]:
    body: dict[str, Any] = app.caller("editor").get(f"/{kind}/{record_id}").json()
    return body


def submit(client: ConsoleClient, record_id: int, revision: int, mine: dict[str, Any], kind: str = "events") -> Any:
    fields = {"mine": orjson.dumps(mine).decode(), "base_revision": str(revision)}
    return client.post(f"/console/{kind}/{record_id}", fields)


@pytest.mark.quick("title-description", "website-featured")
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_changes_of_different_fields_both_survive(
    app: RunningApp, editor: ConsoleClient, first: str, second: str
) -> None:
    record_id, revision = create(app)
    app.caller("administrator").change("events", record_id, **{first: FIELDS[first][0]})
    response = submit(editor, record_id, revision, {second: FIELDS[second][0]})
    assert response.status_code == 200, response.text
    expected_id, _ = create(app, **{first: FIELDS[first][0], second: FIELDS[second][0]})
    record, expected = read(app, record_id), read(app, expected_id)
    for name in (first, second):
        assert record[name] == expected[name]


@pytest.mark.quick("title", "featured")
@pytest.mark.parametrize("name", FIELDS)
def test_same_field_is_never_lost_silently(app: RunningApp, editor: ConsoleClient, name: str) -> None:
    record_id, revision = create(app, featured="true" if name == "featured" else "false")
    theirs, own = FIELDS[name][::-1]
    app.caller("administrator").change("events", record_id, **{name: theirs})
    before = read(app, record_id)
    if name == "featured":  # With two values, both changed it to the same one.
        assert submit(editor, record_id, revision, {name: theirs}).status_code == 200
        return
    response = submit(editor, record_id, revision, {name: own})
    assert response.status_code == 409
    assert read(app, record_id) == before
    page = Page.parse(response.text)
    kept = editor.post(f"/console/events/{record_id}", page.form(**{_radio(page): "theirs"}))
    assert kept.json()[name] == before[name]
    saved = editor.post(f"/console/events/{record_id}", page.form())
    assert saved.json()[name] != before[name]


def _radio(page: Page) -> str:
    return next(name for name in page.fields if name.startswith("choice["))


def test_same_value_is_no_conflict(app: RunningApp, editor: ConsoleClient) -> None:
    record_id, revision = create(app)
    app.caller("administrator").change("events", record_id, title="New title", cost="3")
    response = submit(editor, record_id, revision, {"title": " New title ", "website": "https://a.example/"})
    assert (response.status_code, response.json()["title"]) == (200, "New title")
    assert response.json()["website"] == "https://a.example/"


def test_both_versions_are_shown_with_words_that_differ(app: RunningApp, editor: ConsoleClient) -> None:
    record_id, revision = create(app, description="<p>Doors open at eight.</p>")
    app.caller("administrator").change("events", record_id, description="<p>Doors open at nine.</p>", cost="4")
    response = submit(editor, record_id, revision, {"description": "<p>Doors open at seven.</p>"})
    assert "<del>eight</del><ins>seven</ins>" in response.text
    assert "<del>eight</del><ins>nine</ins>" in response.text
    page = Page.parse(response.text)
    assert "administrator changed the same fields" in page.text
    assert "Cost" in page.text
    assert page.fields["base_revision"] == [str(read_revision(app, "events", record_id))]


def test_dates_are_one_field(app: RunningApp, editor: ConsoleClient) -> None:
    record_id, revision = create(app)
    app.caller("administrator").change("events", record_id, start_date="2030-05-01 08:00:00")
    response = submit(editor, record_id, revision, {"end_date": "2030-05-01 12:00:00"})
    assert response.status_code == 409
    page = Page.parse(response.text)
    saved = editor.post(f"/console/events/{record_id}", page.form()).json()
    assert (saved["start_date"], saved["end_date"]) == ("2030-05-01 10:00:00", "2030-05-01 12:00:00")


def test_equal_dates_in_another_form_are_no_conflict(app: RunningApp, editor: ConsoleClient) -> None:
    record_id, revision = create(app)
    app.caller("administrator").change("events", record_id, all_day=True)
    mine = {"start_date": "2030-05-01", "end_date": "2030-05-01", "all_day": "true"}
    assert submit(editor, record_id, revision, mine).status_code == 200


def test_linked_records_are_shown_by_name(app: RunningApp, editor: ConsoleClient) -> None:
    caller = app.caller("editor")
    halls = [caller.create("venues", venue=f"Conflict hall {n}")["id"] for n in range(3)]
    record_id, revision = create(app, venue=halls[0])
    app.caller("administrator").change("events", record_id, venue=halls[1])
    response = submit(editor, record_id, revision, {"venue": [str(halls[2])]})
    assert all(f"Conflict hall {n}" in response.text for n in range(3))
    saved = editor.post(f"/console/events/{record_id}", Page.parse(response.text).form())
    assert saved.json()["venue"]["id"] == halls[2]


def test_password_is_never_shown(app: RunningApp, editor: ConsoleClient) -> None:
    record_id, revision = create(app)
    app.caller("administrator").change("events", record_id, new_password="secret of theirs")
    response = submit(editor, record_id, revision, {"new_password": "secret of mine"})
    assert response.status_code == 409
    assert "secret of" not in Page.parse(response.text).text
    assert submit(editor, record_id, revision, {"new_password": "", "cost": "1"}).status_code == 409


@pytest.mark.parametrize(
    ("kind", "first", "second"),
    [("venues", {"city": "Bern"}, {"phone": "123"}), ("organizers", {"email": "a@example.org"}, {"phone": "123"})],
)
def test_venues_and_organizers_are_merged(
    app: RunningApp, editor: ConsoleClient, kind: str, first: dict[str, str], second: dict[str, str]
) -> None:
    record_id, revision = create(app, kind)
    app.caller("administrator").change(kind, record_id, **first)
    saved = submit(editor, record_id, revision, second, kind).json()
    assert {**first, **second}.items() <= saved.items()
    name = BY_NAME[kind].title_param
    app.caller("administrator").change(kind, record_id, **{name: "Theirs"})
    response = submit(editor, record_id, revision, {name: "Mine"}, kind)
    assert response.status_code == 409
    assert editor.post(f"/console/{kind}/{record_id}", Page.parse(response.text).form()).json()[name] == "Mine"


def test_two_versions_are_compared_if_the_base_is_gone(app: RunningApp, editor: ConsoleClient) -> None:
    record_id, revision = create(app)
    app.caller("administrator").change("events", record_id, cost="3")
    app.sql("UPDATE sites SET trimmed_revision = $1", revision + 1)
    try:
        response = submit(editor, record_id, revision, {"title": "Mine"})
        assert response.status_code == 409
        assert "no longer stored" in response.text
        saved = editor.post(f"/console/events/{record_id}", Page.parse(response.text).form())
        assert (saved.json()["title"], saved.json()["cost"]) == ("Mine", read(app, record_id)["cost"])
    finally:
        app.sql("UPDATE sites SET trimmed_revision = 0")


def test_a_third_change_leads_to_another_conflict(app: RunningApp, editor: ConsoleClient) -> None:
    record_id, revision = create(app)
    app.caller("administrator").change("events", record_id, title="Theirs")
    page = Page.parse(submit(editor, record_id, revision, {"title": "Mine"}).text)
    app.caller("administrator").change("events", record_id, title="Theirs again")
    assert editor.post(f"/console/events/{record_id}", page.form()).status_code == 409


def test_other_users_may_not_merge(app: RunningApp, author: ConsoleClient) -> None:
    record_id, revision = create(app)
    app.caller("administrator").change("events", record_id, title="Theirs")
    assert submit(author, record_id, revision, {"title": "Mine"}).status_code == 403


@pytest.mark.quick("", "null")
@pytest.mark.parametrize("values", ["", "[]", "{", "null"])
def test_malformed_choices_are_rejected(app: RunningApp, editor: ConsoleClient, values: str) -> None:
    record_id, revision = create(app)
    form = {"conflict_values": values, "conflict_own": "{}", "base_revision": str(revision)}
    assert editor.post(f"/console/events/{record_id}", form).status_code == 400
