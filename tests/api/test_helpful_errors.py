"""Errors that name the mistake and the fix: suggestions, unread bodies, credentials, linked records."""

import base64
from typing import Any

import orjson
import pytest

from tests.api.running_app import Caller, RunningApp, assert_error, expect_json

FORM = "application/x-www-form-urlencoded"
EVENT = {"title": "Concert", "start_date": "2027-05-01 19:00:00", "end_date": "2027-05-01 21:00:00"}
EXTENSION_URL = "//api/kalends/v1"


@pytest.mark.quick("status-published-publish", "status-value13-None")
@pytest.mark.parametrize(
    ("field", "value", "suggestion"),
    [
        ("status", "published", "publish"),
        ("status", "scheduled", "future"),
        ("status", "deleted", "trash"),
        ("timezone", "Berlin", "Europe/Berlin"),
        ("timezone", "CEST", "Europe/Berlin"),
        ("timezone", "Europe/Belrin", "Europe/Berlin"),
        ("timezone", "new york", "America/New_York"),
        ("timezone", "Calcutta", "Asia/Kolkata"),
        ("timezone", "Zürich", "Europe/Zurich"),
        ("timezone", "GMT+2", "UTC+2"),
        ("timezone", "GMT+05:30", "UTC+5:30"),
        ("timezone", "Mars/Phobos", None),
        ("timezone", "x" * 10_000, None),
        ("status", "x" * 10_000, None),
    ],
)
def test_value_of_a_write_is_suggested(editor: Caller, field: str, value: str, suggestion: str | None) -> None:
    data = assert_error(editor.post("/events", {**EVENT, field: value}), 400, "rest_invalid_param", field)
    message = data["params"][field]
    assert (f"Did you mean {suggestion}?" in message) == (suggestion is not None), message
    assert ("Did you mean" in message) == (suggestion is not None)


@pytest.mark.quick("/events-query0-title", "/tags-query4-name")
@pytest.mark.parametrize(
    ("path", "query", "suggestion"),
    [
        ("/events", {"orderby": "titel", "strict": "1"}, "title"),
        ("/events", {"orderby": "event_date", "strict": "1"}, "start_date"),
        ("/events", {"order": "descending", "strict": "1"}, "desc"),
        ("/events", {"status": "publish,drafts"}, "draft"),
        ("/tags", {"orderby": "nmae"}, "name"),
        (f"{EXTENSION_URL}/changes", {"kind": "venue"}, "venues"),
    ],
)
def test_value_of_a_read_is_suggested(editor: Caller, path: str, query: dict[str, str], suggestion: str) -> None:
    name = next(iter(query))
    data = assert_error(editor.get(path, query), 400, "rest_invalid_param", name)
    assert data["params"][name].endswith(f" Did you mean {suggestion}?")


def test_suggestion_is_translated(editor: Caller) -> None:
    response = editor.post("/events", {**EVENT, "timezone": "Berlin"}, headers={"Accept-Language": "de"})
    assert response.json()["data"]["params"]["timezone"].endswith("Meinten Sie Europe/Berlin?")


@pytest.mark.quick("text/plain-The request body", "application/x-www-form-urlencoded-")
@pytest.mark.parametrize(
    ("content_type", "message"),
    [
        ("text/plain", "The request body is text/plain and was not read; send application/json."),
        ("application/xml; charset=utf-8", "The request body is application/xml and was not read; send "
                                           "application/json."),
        ("", "The request body has no Content-Type and was not read; send application/json."),
        (FORM, f"The request body looks like JSON, but its Content-Type is {FORM}; send application/json."),
    ],
)  # fmt: skip
def test_unread_body_is_named(editor: Caller, content_type: str, message: str) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    content = orjson.dumps(EVENT)
    created = editor.request("POST", "/events", content=content, headers=headers)
    data = assert_error(created, 400, "rest_missing_callback_param", "title", "start_date", "end_date")
    assert (created.json()["message"], data["status"]) == (message, 400)
    event = editor.create("events", **EVENT)
    for method in ("PATCH", "PUT", "POST"):
        changed = editor.request(method, f"/events/{event['id']}", content=b'{"title": "x"}', headers=headers)
        assert_error(changed, 415, "rest_unsupported_media_type")
        assert changed.json()["message"] == message
    assert editor.read("events", event["id"])["title"] == "Concert"


def test_unread_body_is_ignored_if_the_request_is_complete_without_it(editor: Caller) -> None:
    text = {"content": b"x", "headers": {"Content-Type": "text/plain"}}
    tag = expect_json(editor.request("POST", "/tags?name=From+the+query", **text), 201)
    changed = editor.request("PATCH", f"/tags/{tag['id']}?description=New", **text)
    assert expect_json(changed)["description"] == "New"
    assert editor.request("DELETE", f"/tags/{tag['id']}", **text).status_code == 200


def test_form_with_braces_in_values_is_read(editor: Caller) -> None:
    headers = {"Content-Type": FORM}
    created = editor.request("POST", "/tags", content=b"name=%7Ba%7D&description={b}", headers=headers)
    assert expect_json(created, 201)["description"] == "{b}"


def test_unsupported_scheme_is_named(app: RunningApp, anonymous: Caller) -> None:
    bearer = {"Authorization": "Bearer abc"}
    assert anonymous.get("/events", headers=bearer).status_code == 200
    created = anonymous.post("/events", EVENT, headers=bearer)
    assert_error(created, 401, "rest_forbidden")
    assert created.json()["message"] == "Bearer is not supported; use Basic with an application password."
    listed = anonymous.get(f"{EXTENSION_URL}/media", headers=bearer)
    assert listed.json()["message"] == "Bearer is not supported; use Basic with an application password."
    for header in ("Basic", "Basic !!", f"Basic {base64.b64encode(b'anna').decode()}", "<script>alert(1)</script>"):
        created = anonymous.post("/events", EVENT, headers={"Authorization": header})
        assert_error(created, 401, "rest_forbidden")
        assert created.json()["message"].startswith("The Authorization header cannot be read; send Basic with ")


def test_401_has_a_challenge_except_for_browsers(app: RunningApp, anonymous: Caller) -> None:
    wrong = {"Authorization": f"Basic {base64.b64encode(b'editor:wrong').decode()}"}

    def challenges(headers: dict[str, str]) -> list[str | None]:
        responses = [
            anonymous.post("/events", EVENT, headers=headers),
            anonymous.get("/events", headers={**headers, **wrong}),
            anonymous.get(f"{EXTENSION_URL}/media", headers=headers),
        ]
        assert [response.status_code for response in responses] == [401, 401, 401]
        return [response.headers.get("www-authenticate") for response in responses]

    app.set_site("name", 'Kultur "Tübingen"')
    assert challenges({}) == ['Basic realm="Kultur Tubingen", charset="UTF-8"'] * 3
    app.set_site("name", "松本")
    assert challenges({}) == ['Basic realm="Kalends", charset="UTF-8"'] * 3
    assert challenges({"Sec-Fetch-Mode": "cors"}) == [None] * 3
    assert "www-authenticate" not in anonymous.get("/events/999999").headers


def test_anonymous_write_is_401_before_its_parameters_are_read(anonymous: Caller) -> None:
    for body in ({}, {"title": "x"}, {**EVENT, "status": "published"}):
        assert_error(anonymous.post("/events", body), 401, "rest_forbidden")
    assert_error(anonymous.request("POST", "/events", content=b"{", headers={"Content-Type": FORM}), 401,
                 "rest_forbidden")  # fmt: skip


@pytest.mark.quick("body0-venue-`venue.venue` (its", "body5-tags-`tags`: there is")
@pytest.mark.parametrize(
    ("body", "name", "message"),
    [
        ({"venue": {"city": "Bonn"}}, "venue", "`venue.venue` (its name) is required."),
        ({"organizer": [{"phone": "1"}]}, "organizer", "`organizer.organizer` (its name) is required."),
        ({"venue": 999_999}, "venue", "`venue`: there is no venue with ID 999999."),
        ({"organizer": 999_999}, "organizer", "`organizer`: there is no organizer with ID 999999."),
        ({"categories": [999_999]}, "categories", "`categories`: there is no category with ID 999999."),
        ({"tags": [999_999]}, "tags", "`tags`: there is no tag with ID 999999."),
    ],
)
def test_linked_record_is_named(editor: Caller, body: dict[str, Any], name: str, message: str) -> None:
    data = assert_error(editor.post("/events", {**EVENT, **body}), 400, "rest_invalid_param", name)
    assert data["params"][name] == message


@pytest.mark.quick("query0-`categories`: \\u201cnope\\u201d", "query3-`organizer`: there is")
@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"categories": "nope"}, "`categories`: “nope” is not the ID, the slug or the unique name of a category."),
        ({"tags": "nope"}, "`tags`: “nope” is not the ID, the slug or the unique name of a tag."),
        ({"venue": "999999"}, "`venue`: there is no venue with ID 999999."),
        ({"organizer": "999999"}, "`organizer`: there is no organizer with ID 999999."),
    ],
)
def test_filter_by_unknown_record_is_named(anonymous: Caller, query: dict[str, str], message: str) -> None:
    name = next(iter(query))
    data = assert_error(anonymous.get("/events", query), 400, "rest_invalid_param", name)
    assert data["params"][name] == message
