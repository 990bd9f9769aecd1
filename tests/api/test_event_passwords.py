"""Events behind a password: nothing of them leaks, by whatever way they are reached (behaviour 6.3)."""

from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from tests.api.running_app import Caller, RunningApp, assert_error, expect_json
from tests.api.sample_records import DATES, unique

PASSWORD = "öpen Sesame"
SECRETS = (
    "Hidden description",
    "Hidden excerpt",
    "Hidden hall",
    "Hidden host",
    "Hidden category",
    "Hidden tag",
    "hidden.example",
    "$4321",
)
_client_numbers = count(1)


@pytest.fixture
def reader(anonymous: Caller) -> Caller:
    """Somebody without an account, from an address of their own: wrong guesses are counted by address."""
    return replace(anonymous, client_ip=f"10.0.0.{next(_client_numbers)}")


@pytest.fixture(scope="module")
def protected_event(editor: Caller) -> dict[str, Any]:
    return editor.create(
        "events", title=unique("Protected"), description="Hidden description", excerpt="Hidden excerpt", cost="4321",
        website="https://hidden.example", ticket_url="https://hidden.example/t", venue={"venue": "Hidden hall"},
        organizer={"organizer": "Hidden host"}, categories=["Hidden category"], tags=["Hidden tag"], featured=True,
        sticky=True, show_map=True, new_password=PASSWORD, **DATES,
    )  # fmt: skip


def event_paths(secret: dict[str, Any]) -> list[str]:
    return [f"/events/{secret['id']}", f"/events/by-slug/{secret['slug']}"]


def test_write_response_contains_everything_except_password(protected_event: dict[str, Any]) -> None:
    text = str(protected_event)
    assert all(word in text for word in SECRETS)
    assert PASSWORD not in text
    assert "password" not in text


def test_correct_password_unlocks_event(reader: Caller, protected_event: dict[str, Any]) -> None:
    for path in event_paths(protected_event):
        unlocked = expect_json(reader.get(path, {"password": PASSWORD}))
        unlocked.pop("json_ld", None)
        assert unlocked == protected_event


@pytest.mark.quick("anonymous", "administrator")
@pytest.mark.parametrize("role", ["anonymous", "subscriber", "contributor", "author", "editor", "administrator"])
def test_event_is_locked_without_password_for_all_roles(
    app: RunningApp, protected_event: dict[str, Any], role: str
) -> None:
    caller = app.caller(role)
    for path in event_paths(protected_event):
        response = caller.get(path)
        assert_error(response, 403, "event-password-protected")
        assert not any(word in response.text for word in SECRETS)
        assert caller.request("HEAD", path).status_code == 403


@pytest.mark.quick("wrong", "wrong5")
@pytest.mark.parametrize("wrong", ["wrong", PASSWORD.upper(), PASSWORD + " ", " " + PASSWORD, "0", "x" * 255])
def test_wrong_password_does_not_unlock(reader: Caller, protected_event: dict[str, Any], wrong: str) -> None:
    for path in event_paths(protected_event):
        assert_error(reader.get(path, {"password": wrong}), 403, "event-password-protected")


def test_malformed_password_is_rejected(reader: Caller, protected_event: dict[str, Any]) -> None:
    path = event_paths(protected_event)[0]
    for query in ("password=", "password[]=a", f"password={'x' * 256}"):
        assert_error(reader.get(f"{path}?{query}"), 400, "rest_invalid_param", "password")


def test_editors_read_protected_event_with_edit_context(app: RunningApp, protected_event: dict[str, Any]) -> None:
    for role, status in (
        ("editor", 200),
        ("administrator", 200),
        ("author", 403),
        ("subscriber", 403),
        ("anonymous", 403),
    ):
        for path in event_paths(protected_event):
            response = app.caller(role).get(path, {"context": "edit"})
            assert response.status_code == status, role
            assert ("Hidden hall" in response.text) == (status == 200)
    assert_error(
        app.caller("editor").get(event_paths(protected_event)[0], {"context": "view"}),
        403,
        "event-password-protected",
    )


def test_lists_contain_only_title_dates_and_urls(app: RunningApp, protected_event: dict[str, Any]) -> None:
    blank = {
        "description": "", "excerpt": "", "image": False, "all_day": None, "cost": "", "website": "",
        "ticket_url": "", "event_status": None, "status_reason": "", "online_url": "",
        "currency_symbol": None, "currency_code": None, "currency_position": None,
        "cost_details": {"currency_symbol": "", "currency_code": "", "currency_position": "", "values": []},
        **dict.fromkeys(("show_map", "show_map_link", "hide_from_listings", "sticky", "featured")),
        "categories": [], "tags": [], "venue": [], "organizer": [], "custom_fields": [],
    }  # fmt: skip
    for role in ("anonymous", "subscriber", "author", "editor", "administrator"):
        for query in (
            {"include": protected_event["id"]},
            {"start_date": DATES["start_date"]},
            {"include": protected_event["id"], "context": "edit"},
        ):
            response = app.caller(role).get("/events", query)
            (listed,) = [event for event in expect_json(response)["events"] if event["id"] == protected_event["id"]]
            assert listed == {**protected_event, **blank}
            assert not any(word in response.text for word in SECRETS)


def test_correct_password_unlocks_event_in_list(reader: Caller, protected_event: dict[str, Any]) -> None:
    (listed,) = reader.page("events", include=protected_event["id"], password=PASSWORD)["events"]
    assert listed == protected_event
    (locked,) = reader.page("events", include=protected_event["id"], password="wrong")["events"]
    assert (locked["description"], locked["venue"]) == ("", [])


def test_password_unlocks_only_its_own_events(
    editor: Caller, reader: Caller, protected_event: dict[str, Any]
) -> None:
    other = editor.create("events", title=unique("Other"), excerpt="other text", new_password="other one", **DATES)
    events = reader.page("events", include=f"{protected_event['id']},{other['id']}", password="other one")["events"]
    assert {event["id"]: event["excerpt"] for event in events} == {
        protected_event["id"]: "",
        other["id"]: "<p>other text</p>",
    }


@pytest.mark.exhaustive
def test_list_of_many_protected_events_is_not_throttled(start_app: Any) -> None:
    app = start_app()
    editor = app.caller("editor")
    for n in range(25):
        editor.create("events", title=f"Protected {n}", excerpt=f"text {n}", new_password=f"word {n}", **DATES)
    reader = replace(app.caller(), client_ip="10.9.9.9")
    for _ in range(2):
        response = reader.get("/events", {"password": "word 3", "per_page": 50})
        excerpts = [event["excerpt"] for event in expect_json(response)["events"] if event["excerpt"]]
        assert excerpts == ["<p>text 3</p>"]


@pytest.mark.exhaustive
def test_password_guessing_is_throttled(editor: Caller, reader: Caller) -> None:
    event = editor.create("events", title=unique("Guessed"), new_password="right one", **DATES)
    path = f"/events/{event['id']}"
    statuses = [reader.get(path, {"password": f"guess {n}"}).status_code for n in range(30)]
    assert set(statuses) == {403, 429}
    assert statuses.index(429) <= 25
    slowed = reader.get(path, {"password": "guess"})
    assert_error(slowed, 429, "rest_too_many_attempts")
    assert int(slowed.headers["retry-after"]) > 0
    elsewhere = replace(reader, client_ip="10.1.1.1")
    assert expect_json(elsewhere.get(path, {"password": "right one"}))["id"] == event["id"]
    assert reader.get("/events").status_code == 200


def test_search_does_not_reveal_protected_content(app: RunningApp, protected_event: dict[str, Any]) -> None:
    title = protected_event["title"].split()[-1]
    for role in ("anonymous", "subscriber", "contributor", "author"):
        caller = app.caller(role)
        for words in ("hidden description", title, "hidden excerpt"):
            assert protected_event["id"] not in caller.ids("events", search=words)
    for role in ("editor", "administrator"):
        assert protected_event["id"] in app.caller(role).ids("events", search="hidden description")


def test_authors_can_search_and_edit_their_own_protected_events(author: Caller, contributor: Caller) -> None:
    own = author.create("events", title=unique("Own"), description="ownneedle", new_password=PASSWORD, **DATES)
    assert author.ids("events", search="ownneedle") == [own["id"]]
    assert contributor.ids("events", search="ownneedle") == []
    assert author.read("events", own["id"], context="edit")["description"] == "<p>ownneedle</p>"
    assert_error(author.get(f"/events/{own['id']}"), 403, "event-password-protected")


def test_writing_needs_permission_but_no_password(author: Caller, editor: Caller) -> None:
    event = editor.create("events", title=unique("Written"), new_password=PASSWORD, **DATES)
    path = f"/events/{event['id']}"
    assert_error(author.patch(path, {"title": "x", "password": PASSWORD}), 403, "rest_forbidden")
    assert editor.change("events", event["id"], excerpt="new")["excerpt"] == "<p>new</p>"
    assert_error(editor.get(path), 403, "event-password-protected")
    assert expect_json(editor.delete(path))["excerpt"] == "<p>new</p>"


def test_only_new_password_sets_or_clears_password(editor: Caller, reader: Caller) -> None:
    event = editor.create("events", title=unique("Changed"), excerpt="text", password="ignored", **DATES)
    path = f"/events/{event['id']}"
    assert expect_json(reader.get(path))["excerpt"] == "<p>text</p>"
    editor.change("events", event["id"], new_password="the first")
    assert reader.get(path).status_code == 403
    editor.change("events", event["id"], password="the second", title="x")
    assert expect_json(reader.get(path, {"password": "the first"}))["title"] == "x"
    editor.change("events", event["id"], new_password="the second")
    assert reader.get(path, {"password": "the first"}).status_code == 403
    assert reader.get(path, {"password": "the second"}).status_code == 200
    for clear in ("", None):
        editor.change("events", event["id"], new_password=clear)
        assert reader.get(path).status_code == 200
        editor.change("events", event["id"], new_password="once again")


@pytest.mark.quick("255", "1000")
@pytest.mark.parametrize("length", [255, 256, 1000])
def test_any_accepted_password_can_be_used(editor: Caller, reader: Caller, length: int) -> None:
    response = editor.post("/events", {"title": unique("Long"), "new_password": "x" * length, **DATES})
    if response.status_code == 400:
        assert_error(response, 400, "rest_invalid_param", "new_password")
        assert length > 255
    else:
        event = expect_json(response, 201)
        assert reader.get(f"/events/{event['id']}", {"password": "x" * length}).status_code == 200


def test_unlocked_responses_are_not_shared_cacheable(reader: Caller, protected_event: dict[str, Any]) -> None:
    response = reader.get(event_paths(protected_event)[0], {"password": PASSWORD})
    assert (response.status_code, response.headers["cache-control"]) == (200, "private, no-store")


def test_other_lists_do_not_reveal_links_of_protected_event(
    reader: Caller, editor: Caller, protected_event: dict[str, Any]
) -> None:
    for kind in ("categories", "tags", "venues", "organizers"):
        assert editor.page(kind, event=protected_event["id"])["total"] == 1
        response = reader.get(f"/{kind}", {"event": protected_event["id"]})
        assert response.status_code == 400 or response.json()["total"] == 0, response.text


def test_filters_do_not_reveal_blanked_fields(
    reader: Caller, editor: Caller, protected_event: dict[str, Any]
) -> None:
    filters: list[dict[str, Any]] = [
        {"categories": protected_event["categories"][0]["slug"]},
        {"tags": protected_event["tags"][0]["id"]},
        {"venue": protected_event["venue"]["id"]},
        {"organizer": protected_event["organizer"][0]["id"]},
        {"featured": "true", "include": protected_event["id"]},
        {"ticketed": "true", "include": protected_event["id"]},
    ]
    for query in filters:
        assert protected_event["id"] in editor.ids("events", **query)
    leaking = [query for query in filters if protected_event["id"] in reader.ids("events", **query)]
    assert leaking == []
    for name in ("ticketed", "geoloc"):  # Their false is no filter, so it hides nothing.
        query = {name: "false", "include": protected_event["id"]}
        assert reader.ids("events", **query) == [protected_event["id"]]
