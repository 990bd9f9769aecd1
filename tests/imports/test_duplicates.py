"""Duplicates: candidates in the database, warnings of the API, declared differences."""

from typing import Any

from kalends.calendar.operations import duplicates
from kalends.calendar.rules.similarity import SAME_SCORE, SIMILAR_SCORE
from tests.api.conftest import StartApp
from tests.api.running_app import Caller, RunningApp, assert_error, expect_json

EXTENSION = "//api/kalends/v1"


# Candidates -------------------------------------------------------------------------------------


def create(caller: Caller, title: str, start: str = "2031-05-08 19:30:00", **fields: Any) -> dict[str, Any]:
    return caller.create("events", title=title, start_date=start, end_date=start, **fields)


def find(app: RunningApp, **values: Any) -> list[tuple[int, float]]:
    async def run(tx: Any) -> list[tuple[int, float]]:
        found = await duplicates.find_candidates(tx, {"start_date": "2031-05-08 19:30:00", **values})
        return [(row.event_id, row.score) for row in found]

    return app.run_operation(run)


def test_candidates_are_similar_events_at_the_same_time(start_app: StartApp) -> None:
    app = start_app()
    editor = app.caller("editor")
    hall = editor.create("venues", venue="Town Hall", geo_lat=48.4, geo_lng=9.99)
    concert = create(editor, "Spring concert of the brass band", venue=hall["id"])
    create(editor, "Spring concert of the brass band", "2031-05-09 19:30:00", venue=hall["id"])
    create(editor, "Spring concert of the brass band", hide_from_listings=True)
    create(editor, "Flea market", venue=hall["id"])
    editor.trash("events", create(editor, "Spring concert of the brass band", venue=hall["id"])["id"])
    draft = create(editor, "Brass band: spring concert for children", status="draft")
    found = find(app, title="Spring Concert of the Bras Band", venue=[{"venue": "Town hall"}])
    assert [event_id for event_id, _ in found] == [concert["id"], draft["id"]]
    assert found[0][1] >= SAME_SCORE > found[1][1] >= SIMILAR_SCORE
    assert find(app, title="Spring concert of the brass band", venue=hall["id"])[0][1] >= SAME_SCORE
    assert find(app, title="Chess tournament", venue=hall["id"]) == []
    assert find(app, title="Spring concert of the brass band", start_date="nonsense") == []
    assert find(app, title="") == []


def test_candidates_are_compared_in_the_same_zone(start_app: StartApp) -> None:
    app = start_app()
    app.set_site("timezone", "Europe/Berlin")
    event = create(
        app.caller("editor"), "Launch of the rocket", "2031-05-08 10:30:00", timezone="America/Los_Angeles"
    )
    assert [row[0] for row in find(app, title="Launch of the rocket")] == [event["id"]]


# API --------------------------------------------------------------------------------------------


def test_write_warns_of_duplicates_on_request(app: RunningApp) -> None:
    editor = app.caller("editor")
    first = create(editor, "Open mic at the lighthouse")
    second = create(editor, "Open Mic at the Lighthouse!", check_duplicates=True)
    assert second["possible_duplicates"] == [
        {
            "id": first["id"],
            "title": "Open mic at the lighthouse",
            "status": "publish",
            "start_date": "2031-05-08 19:30:00",
            "score": second["possible_duplicates"][0]["score"],
        }
    ]
    assert second["possible_duplicates"][0]["score"] >= SIMILAR_SCORE
    assert "possible_duplicates" not in create(editor, "Open mic at the lighthouse")
    changed = expect_json(editor.patch(f"/events/{first['id']}?check_duplicates=1", {"title": "Something else"}))
    assert changed["possible_duplicates"] == []
    assert "possible_duplicates" not in editor.read("events", first["id"])


def test_warning_names_only_readable_events(app: RunningApp) -> None:
    draft = create(app.caller("editor"), "Secret rehearsal dinner", status="draft")
    seen = create(app.caller("author"), "Secret rehearsal dinner", check_duplicates=True)
    assert seen["possible_duplicates"] == []
    known = create(app.caller("editor"), "Secret rehearsal dinner", check_duplicates=True)["possible_duplicates"]
    assert draft["id"] in [row["id"] for row in known]


def test_declared_difference_is_remembered(app: RunningApp) -> None:
    editor = app.caller("editor")
    first, second = create(editor, "Night of the museums"), create(editor, "Night of the museums")
    path = f"{EXTENSION}/events/{second['id']}/not-duplicates"
    for _ in range(2):
        assert expect_json(editor.post(path, {"other": first["id"]})) == {"id": second["id"], "other": first["id"]}
    for event in (first, second):
        changed = expect_json(editor.patch(f"/events/{event['id']}?check_duplicates=1", {}))
        assert changed["possible_duplicates"] == []
    third = create(editor, "Night of the museums", check_duplicates=True)
    assert {row["id"] for row in third["possible_duplicates"]} == {first["id"], second["id"]}


def test_difference_needs_two_events_and_the_right_to_edit(app: RunningApp) -> None:
    editor, event = app.caller("editor"), create(app.caller("editor"), "Alone at the pier")
    path = f"{EXTENSION}/events/{event['id']}/not-duplicates"
    assert_error(editor.post(path, {"other": event["id"]}), 400, "rest_invalid_param", "other")
    assert_error(editor.post(path, {"other": 999_999}), 400, "rest_invalid_param", "other")
    assert_error(editor.post(path, {}), 400, "rest_missing_callback_param")
    assert_error(app.caller("author").post(path, {"other": event["id"]}), 403, "rest_forbidden")
    assert_error(app.caller().post(path, {"other": event["id"]}), 401, "rest_forbidden")


def test_facts_of_parameters_are_read_leniently(start_app: StartApp) -> None:
    app = start_app()
    event = create(app.caller("editor"), "Reading group")
    for values in ({"venue": "x"}, {"venue": [None]}, {"venue": {"id": "7"}}, {"organizer": [{"organizer": 5}]}):
        assert [row[0] for row in find(app, title="Reading group", **values)] == [event["id"]]
