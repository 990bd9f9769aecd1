"""Lists of venues and organizers: order, search, the events that use them (behaviour 8.5)."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.api.running_app import Caller, RunningApp, assert_error
from tests.api.sample_records import DATES, LINKED, Sample

DATE_FORMAT = "%Y-%m-%d %H:%M:%S"


class Places:
    """Places of one kind in a database of their own, and events of every sort at them."""

    def __init__(self, app: RunningApp, place: Sample) -> None:
        self.editor, self.anonymous = app.caller("editor"), app.caller()
        self.place, self.kind = place, place.kind
        self.upcoming = self.add_place("Upcoming hall", phone="+44 (0) 777", description="warm <b>room</b>")
        self.past = self.add_place("Past Hall", website="https://past.example")
        self.drafted = self.add_place("Drafted")
        self.running = self.add_place("Running Änd")
        self.unused = self.add_place("Unused 100%")
        now = datetime.now(UTC)
        self.event = self.add_event([self.upcoming], DATES["start_date"], DATES["end_date"])
        self.both = self.add_event([self.past, self.upcoming], "2020-01-01 10:00", "2020-01-01 11:00")
        hour = timedelta(hours=1)
        self.add_event([self.running], (now - hour).strftime(DATE_FORMAT), (now + hour).strftime(DATE_FORMAT))
        self.draft = self.add_event([self.drafted], DATES["start_date"], DATES["end_date"], status="draft")
        self.editor.trash("events", self.add_event([self.drafted], DATES["start_date"], DATES["end_date"]))

    def add_place(self, name: str, **fields: Any) -> int:
        if self.kind == "organizers":
            fields.pop("address", None)
        number: int = self.editor.create(self.kind, **{self.place.name_param: name}, **fields)["id"]
        return number

    def add_event(self, places: list[int], start: str, end: str, **fields: Any) -> int:
        event = self.editor.create(
            "events", title="Used", start_date=start, end_date=end, **{self.place.singular: places}, **fields
        )
        number: int = event["id"]
        return number

    def ids(self, **query: Any) -> list[int]:
        return self.anonymous.ids(self.kind, **query)

    @property
    def all(self) -> list[int]:
        return [self.unused, self.running, self.drafted, self.past, self.upcoming]


@pytest.fixture(scope="module", params=LINKED, ids=lambda place: place.kind)
def places(request: pytest.FixtureRequest, start_app_for_module: Callable[..., RunningApp]) -> Places:
    return Places(start_app_for_module(), request.param)


def test_newest_places_come_first(places: Places) -> None:
    assert places.ids() == places.all
    old = places.add_place("Old", date="2001-01-01 00:00:00")
    future = places.add_place("Scheduled", date="2090-01-01 00:00:00")
    assert places.ids() == [*places.all, old]
    assert places.editor.ids(places.kind)[0] == future
    for gone in (old, future):
        places.editor.trash(places.kind, gone)


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ("hall", ["past", "upcoming"]), ("HALL upcoming", ["upcoming"]), ("upcoming hall", ["upcoming"]),
        ("777", ["upcoming"]),
        ("warm", ["upcoming"]), ("warm room", ["upcoming"]), ('"warm room"', ["upcoming"]),
        ("hall -past", ["upcoming"]),
        ("and", ["running"]), ("änd", ["running"]), ("100%", ["unused"]), ("%", ["unused"]), ("_", []), ("<b>", []),
        ("zzz", []), ("日本", []), ("???", []),
    ],
)  # fmt: skip
def test_search_finds_words_phrases_and_exclusions(places: Places, search: str, expected: list[str]) -> None:
    assert places.ids(search=search) == [getattr(places, name) for name in expected]


def test_search_covers_all_text_fields(editor: Caller, place: Sample) -> None:
    texts = {
        "venues": ["address", "city", "province", "state", "zip", "phone", "stateprovince"],
        "organizers": ["phone", "email"],
    }
    for name in texts[place.kind]:
        word = f"needle{name}{place.kind}"
        value = f"{word}@example.org" if name == "email" else f"a {word} b"
        record = editor.create(place.kind, **place.body(**{name: value}))
        assert editor.ids(place.kind, search=word.upper()) == [record["id"]]
        editor.change(place.kind, record["id"], **{name: ""})
        assert editor.ids(place.kind, search=word) == []


def test_invalid_searches_are_rejected(places: Places) -> None:
    for wrong in ("", " ", "x" * 201, " ".join(map(str, range(21)))):
        assert_error(places.anonymous.get(f"/{places.kind}", {"search": wrong}), 400, "rest_invalid_param", "search")


def test_event_filter_lists_linked_places(places: Places) -> None:
    assert places.ids(event=places.event) == [places.upcoming]
    assert places.ids(event=places.both) == [places.past, places.upcoming]
    assert places.ids(event=places.both, search="past") == [places.past]
    for wrong in ("999999", "x", "0", "", str(places.upcoming)):
        assert_error(places.anonymous.get(f"/{places.kind}", {"event": wrong}), 400, "rest_invalid_param", "event")


def test_places_of_unpublished_event_need_read_permission(places: Places) -> None:
    assert places.editor.ids(places.kind, event=places.draft) == [places.drafted]
    response = places.anonymous.get(f"/{places.kind}", {"event": places.draft})
    assert response.status_code == 400 or response.json()["total"] == 0, response.text


def test_places_of_protected_event_need_password(places: Places) -> None:
    secret = places.add_event([places.past], DATES["start_date"], DATES["end_date"], new_password="a word")
    assert places.editor.ids(places.kind, event=secret) == [places.past]
    response = places.anonymous.get(f"/{places.kind}", {"event": secret})
    places.editor.trash("events", secret)
    assert response.status_code == 400 or response.json()["total"] == 0, response.text


def test_has_events_filter(places: Places) -> None:
    used = [places.running, places.past, places.upcoming]
    for yes in ("true", "1", "yes", "on"):
        assert places.ids(has_events=yes) == used
    for no in ("false", "0", "no", "off"):
        assert places.ids(has_events=no) == [places.unused, places.drafted]


def test_only_with_upcoming_filter(places: Places) -> None:
    assert places.ids(only_with_upcoming="true") == [places.upcoming]
    assert places.ids(only_with_upcoming=1, search="past") == []
    assert places.ids(only_with_upcoming="false") == places.all


@pytest.mark.parametrize("name", ["has_events", "only_with_upcoming"])
def test_invalid_booleans_are_rejected(places: Places, name: str) -> None:
    for wrong in ("", "bogus", "2"):
        assert_error(places.anonymous.get(f"/{places.kind}", {name: wrong}), 400, "rest_invalid_param", name)


def test_only_with_upcoming_covers_more_than_one_page(editor: Caller, place: Sample) -> None:
    ids = []
    for _ in range(14):
        record = editor.create(place.kind, **place.body())
        editor.create("events", title="Up", **DATES, **{place.singular: record["id"]})
        ids.append(record["id"])
    assert set(ids) <= set(editor.ids(place.kind, only_with_upcoming=1))


def test_event_filters_follow_event_changes(editor: Caller, anonymous: Caller, place: Sample) -> None:
    record = editor.create(place.kind, **place.body())
    event = editor.create("events", title="Moves", **DATES, **{place.singular: record["id"]})
    word = record[place.name_param]

    def seen() -> tuple[bool, bool]:
        upcoming = anonymous.ids(place.kind, search=word, only_with_upcoming=1)
        return bool(anonymous.ids(place.kind, search=word, has_events=1)), bool(upcoming)

    assert seen() == (True, True)
    editor.change("events", event["id"], start_date="2020-01-01", end_date="2020-01-02")
    assert seen() == (True, False)
    editor.change("events", event["id"], start_date=DATES["start_date"], end_date=DATES["end_date"], status="draft")
    assert seen() == (False, False)
    editor.change("events", event["id"], status="publish")
    assert seen() == (True, True)
    editor.change("events", event["id"], **{place.singular: []})
    assert seen() == (False, False)


# Statuses -------------------------------------------------------------------------------------

STATUSES = ("publish", "draft", "pending", "private", "future")


@pytest.fixture(scope="module")
def owned(editor: Caller) -> dict[str, dict[tuple[str, str], int]]:
    """A record of every status, of the contributor and of the administrator, for each kind."""
    created: dict[str, dict[tuple[str, str], int]] = {}
    for place in LINKED:
        created[place.kind] = {}
        for owner in ("contributor", "administrator"):
            for status in STATUSES:
                fields = {"author": editor.app.users[owner].id, "status": status}
                fields |= {"date": "2090-01-01"} if status == "future" else {}
                name = f"Owned by {owner} {status}"
                record = editor.create(place.kind, **place.body(**{place.name_param: name}, **fields))
                assert record["status"] == status
                created[place.kind][owner, status] = record["id"]
            trashed = editor.create(
                place.kind, **place.body(**{place.name_param: f"Owned by {owner} trash", **fields, "status": "draft"})
            )
            created[place.kind][owner, "trash"] = editor.trash(place.kind, trashed["id"])["id"]
    return created


@pytest.mark.parametrize("role", ["anonymous", "subscriber", "contributor", "author", "editor", "administrator"])
def test_lists_contain_exactly_readable_records(app: RunningApp, place: Sample, owned: Any, role: str) -> None:
    caller = app.caller(role)
    for status in (None, *STATUSES, "trash", "publish,draft", ""):
        statuses = ["publish", "private"] if status == "" else status.split(",") if status else list(STATUSES)
        expected = {
            record
            for (owner, status_of_record), record in owned[place.kind].items()
            if status_of_record in statuses
            and (status_of_record == "publish" or owner == role or role in ("editor", "administrator"))
        }
        query = {"search": "owned by", **({"status": status} if status is not None else {})}
        response = caller.get(f"/{place.kind}", query)
        if role in ("anonymous", "subscriber") and status not in (None, "publish"):
            assert_error(response, 400, "rest_invalid_param", "status")
        else:
            assert set(caller.ids(place.kind, **query)) == expected, status


def test_unknown_statuses_are_rejected(editor: Caller, post: Sample) -> None:
    for wrong in ("any", "auto-draft", "PUBLISH", "publish,bogus", ",", "inherit"):
        assert_error(editor.get(f"/{post.kind}", {"status": wrong}), 400, "rest_invalid_param", "status")
