"""Events behind a password: nothing of them leaks, by whatever way they are reached (behaviour 6.3)."""

from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from tests.api.running_app import Caller, Interface, assert_refused, done
from tests.api.sample_records import DATES, unique

WORD = "öpen Sesame"
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
_addresses = count(1)


@pytest.fixture
def reader(anonymous: Caller) -> Caller:
    """Somebody without an account, from an address of their own: wrong guesses are counted by address."""
    return replace(anonymous, address=f"10.0.0.{next(_addresses)}")


@pytest.fixture(scope="module")
def secret(editor: Caller) -> dict[str, Any]:
    return editor.create(
        "events", title=unique("Protected"), description="Hidden description", excerpt="Hidden excerpt", cost="4321",
        website="https://hidden.example", ticket_url="https://hidden.example/t", venue={"venue": "Hidden hall"},
        organizer={"organizer": "Hidden host"}, categories=["Hidden category"], tags=["Hidden tag"], featured=True,
        sticky=True, show_map=True, new_password=WORD, **DATES,
    )  # fmt: skip


def paths(secret: dict[str, Any]) -> list[str]:
    return [f"/events/{secret['id']}", f"/events/by-slug/{secret['slug']}"]


def test_write_response_contains_everything_except_password(secret: dict[str, Any]) -> None:
    text = str(secret)
    assert all(word in text for word in SECRETS)
    assert WORD not in text
    assert "password" not in text


def test_correct_password_unlocks_event(reader: Caller, secret: dict[str, Any]) -> None:
    for path in paths(secret):
        opened = done(reader.get(path, {"password": WORD}))
        opened.pop("json_ld", None)
        assert opened == secret


@pytest.mark.parametrize("role", ["anonymous", "subscriber", "contributor", "author", "editor", "administrator"])
def test_event_is_locked_without_password_for_all_roles(
    interface: Interface, secret: dict[str, Any], role: str
) -> None:
    caller = interface.caller(role)
    for path in paths(secret):
        answer = caller.get(path)
        assert_refused(answer, 403, "event-password-protected")
        assert not any(word in answer.text for word in SECRETS)
        assert caller.request("HEAD", path).status_code == 403


@pytest.mark.parametrize("wrong", ["wrong", WORD.upper(), WORD + " ", " " + WORD, "0", "x" * 255])
def test_wrong_password_does_not_unlock(reader: Caller, secret: dict[str, Any], wrong: str) -> None:
    for path in paths(secret):
        assert_refused(reader.get(path, {"password": wrong}), 403, "event-password-protected")


def test_malformed_password_is_rejected(reader: Caller, secret: dict[str, Any]) -> None:
    path = paths(secret)[0]
    for query in ("password=", "password[]=a", f"password={'x' * 256}"):
        assert_refused(reader.get(f"{path}?{query}"), 400, "rest_invalid_param", "password")


def test_editors_read_protected_event_with_edit_context(interface: Interface, secret: dict[str, Any]) -> None:
    for role, status in (
        ("editor", 200),
        ("administrator", 200),
        ("author", 403),
        ("subscriber", 403),
        ("anonymous", 403),
    ):
        for path in paths(secret):
            answer = interface.caller(role).get(path, {"context": "edit"})
            assert answer.status_code == status, role
            assert ("Hidden hall" in answer.text) == (status == 200)
    assert_refused(
        interface.caller("editor").get(paths(secret)[0], {"context": "view"}), 403, "event-password-protected"
    )


def test_lists_contain_only_title_dates_and_urls(interface: Interface, secret: dict[str, Any]) -> None:
    blank = {
        "description": "", "excerpt": "", "image": False, "all_day": None, "cost": "", "website": "",
        "ticket_url": "",
        "cost_details": {"currency_symbol": "", "currency_code": "", "currency_position": "", "values": []},
        **dict.fromkeys(("show_map", "show_map_link", "hide_from_listings", "sticky", "featured")),
        "categories": [], "tags": [], "venue": [], "organizer": [], "custom_fields": [],
    }  # fmt: skip
    for role in ("anonymous", "subscriber", "author", "editor", "administrator"):
        for query in (
            {"include": secret["id"]},
            {"start_date": DATES["start_date"]},
            {"include": secret["id"], "context": "edit"},
        ):
            answer = interface.caller(role).get("/events", query)
            (listed,) = [event for event in done(answer)["events"] if event["id"] == secret["id"]]
            assert listed == {**secret, **blank}
            assert not any(word in answer.text for word in SECRETS)


def test_correct_password_unlocks_event_in_list(reader: Caller, secret: dict[str, Any]) -> None:
    (listed,) = reader.page("events", include=secret["id"], password=WORD)["events"]
    assert listed == secret
    (shut,) = reader.page("events", include=secret["id"], password="wrong")["events"]
    assert (shut["description"], shut["venue"]) == ("", [])


def test_password_unlocks_only_its_own_events(editor: Caller, reader: Caller, secret: dict[str, Any]) -> None:
    other = editor.create("events", title=unique("Other"), excerpt="other text", new_password="other one", **DATES)
    events = reader.page("events", include=f"{secret['id']},{other['id']}", password="other one")["events"]
    assert {event["id"]: event["excerpt"] for event in events} == {secret["id"]: "", other["id"]: "<p>other text</p>"}


def test_list_of_many_protected_events_is_not_throttled(fresh: Any) -> None:
    interface = fresh()
    editor = interface.caller("editor")
    for n in range(25):
        editor.create("events", title=f"Protected {n}", excerpt=f"text {n}", new_password=f"word {n}", **DATES)
    reader = replace(interface.caller(), address="10.9.9.9")
    for _ in range(2):
        answer = reader.get("/events", {"password": "word 3", "per_page": 50})
        shown = [event["excerpt"] for event in done(answer)["events"] if event["excerpt"]]
        assert shown == ["<p>text 3</p>"]


def test_password_guessing_is_throttled(editor: Caller, reader: Caller) -> None:
    event = editor.create("events", title=unique("Guessed"), new_password="right one", **DATES)
    path = f"/events/{event['id']}"
    statuses = [reader.get(path, {"password": f"guess {n}"}).status_code for n in range(30)]
    assert set(statuses) == {403, 429}
    assert statuses.index(429) <= 25
    slowed = reader.get(path, {"password": "guess"})
    assert_refused(slowed, 429, "rest_too_many_attempts")
    assert int(slowed.headers["retry-after"]) > 0
    elsewhere = replace(reader, address="10.1.1.1")
    assert done(elsewhere.get(path, {"password": "right one"}))["id"] == event["id"]
    assert reader.get("/events").status_code == 200


def test_search_does_not_reveal_protected_content(interface: Interface, secret: dict[str, Any]) -> None:
    title = secret["title"].split()[-1]
    for role in ("anonymous", "subscriber", "contributor", "author"):
        caller = interface.caller(role)
        for words in ("hidden description", title, "hidden excerpt"):
            assert secret["id"] not in caller.ids("events", search=words)
    for role in ("editor", "administrator"):
        assert secret["id"] in interface.caller(role).ids("events", search="hidden description")


def test_authors_can_search_and_edit_their_own_protected_events(author: Caller, contributor: Caller) -> None:
    own = author.create("events", title=unique("Own"), description="ownneedle", new_password=WORD, **DATES)
    assert author.ids("events", search="ownneedle") == [own["id"]]
    assert contributor.ids("events", search="ownneedle") == []
    assert author.read("events", own["id"], context="edit")["description"] == "<p>ownneedle</p>"
    assert_refused(author.get(f"/events/{own['id']}"), 403, "event-password-protected")


def test_writing_needs_permission_but_no_password(author: Caller, editor: Caller) -> None:
    event = editor.create("events", title=unique("Written"), new_password=WORD, **DATES)
    path = f"/events/{event['id']}"
    assert_refused(author.patch(path, {"title": "x", "password": WORD}), 403, "rest_forbidden")
    assert editor.change("events", event["id"], excerpt="new")["excerpt"] == "<p>new</p>"
    assert_refused(editor.get(path), 403, "event-password-protected")
    assert done(editor.delete(path))["excerpt"] == "<p>new</p>"


def test_only_new_password_sets_or_clears_password(editor: Caller, reader: Caller) -> None:
    event = editor.create("events", title=unique("Changed"), excerpt="text", password="ignored", **DATES)
    path = f"/events/{event['id']}"
    assert done(reader.get(path))["excerpt"] == "<p>text</p>"
    editor.change("events", event["id"], new_password="the first")
    assert reader.get(path).status_code == 403
    editor.change("events", event["id"], password="the second", title="x")
    assert done(reader.get(path, {"password": "the first"}))["title"] == "x"
    editor.change("events", event["id"], new_password="the second")
    assert reader.get(path, {"password": "the first"}).status_code == 403
    assert reader.get(path, {"password": "the second"}).status_code == 200
    for clear in ("", None):
        editor.change("events", event["id"], new_password=clear)
        assert reader.get(path).status_code == 200
        editor.change("events", event["id"], new_password="once again")


@pytest.mark.parametrize("length", [255, 256, 1000])
def test_any_accepted_password_can_be_used(editor: Caller, reader: Caller, length: int) -> None:
    answer = editor.post("/events", {"title": unique("Long"), "new_password": "x" * length, **DATES})
    if answer.status_code == 400:
        assert_refused(answer, 400, "rest_invalid_param", "new_password")
        assert length > 255
    else:
        event = done(answer, 201)
        assert reader.get(f"/events/{event['id']}", {"password": "x" * length}).status_code == 200


def test_unlocked_responses_are_not_shared_cacheable(reader: Caller, secret: dict[str, Any]) -> None:
    opened = reader.get(paths(secret)[0], {"password": WORD})
    assert (opened.status_code, opened.headers["cache-control"]) == (200, "private, no-store")


def test_other_lists_do_not_reveal_links_of_protected_event(
    reader: Caller, editor: Caller, secret: dict[str, Any]
) -> None:
    for kind in ("categories", "tags", "venues", "organizers"):
        assert editor.page(kind, event=secret["id"])["total"] == 1
        answer = reader.get(f"/{kind}", {"event": secret["id"]})
        assert answer.status_code == 400 or answer.json()["total"] == 0, answer.text


def test_filters_do_not_reveal_blanked_fields(reader: Caller, editor: Caller, secret: dict[str, Any]) -> None:
    filters: list[dict[str, Any]] = [
        {"categories": secret["categories"][0]["slug"]},
        {"tags": secret["tags"][0]["id"]},
        {"venue": secret["venue"]["id"]},
        {"organizer": secret["organizer"][0]["id"]},
        {"featured": "true", "include": secret["id"]},
        {"ticketed": "true", "include": secret["id"]},
    ]
    for query in filters:
        assert secret["id"] in editor.ids("events", **query)
    told = [query for query in filters if secret["id"] in reader.ids("events", **query)]
    assert told == []
