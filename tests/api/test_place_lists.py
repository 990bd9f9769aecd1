"""Lists of venues and organizers: order, search, the events that use them (behaviour 8.5)."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.api.running_app import Caller, Interface, assert_refused
from tests.api.sample_records import DATES, LINKED, Sample

STAMP = "%Y-%m-%d %H:%M:%S"


class Town:
    """Places of one kind in a database of their own, and events of every sort at them."""

    def __init__(self, interface: Interface, place: Sample) -> None:
        self.editor, self.anonymous = interface.caller("editor"), interface.caller()
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
        self.add_event([self.running], (now - hour).strftime(STAMP), (now + hour).strftime(STAMP))
        self.draft = self.add_event([self.drafted], DATES["start_date"], DATES["end_date"], status="draft")
        self.editor.trash("events", self.add_event([self.drafted], DATES["start_date"], DATES["end_date"]))

    def add_place(self, name: str, **fields: Any) -> int:
        if self.kind == "organizers":
            fields.pop("address", None)
        number: int = self.editor.create(self.kind, **{self.place.name: name}, **fields)["id"]
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
def town(request: pytest.FixtureRequest, fresh_for_module: Callable[..., Interface]) -> Town:
    return Town(fresh_for_module(), request.param)


def test_newest_places_come_first(town: Town) -> None:
    assert town.ids() == town.all
    old = town.add_place("Old", date="2001-01-01 00:00:00")
    future = town.add_place("Scheduled", date="2090-01-01 00:00:00")
    assert town.ids() == [*town.all, old]
    assert town.editor.ids(town.kind)[0] == future
    for gone in (old, future):
        town.editor.trash(town.kind, gone)


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("hall", ["past", "upcoming"]), ("HALL upcoming", ["upcoming"]), ("upcoming hall", ["upcoming"]),
        ("777", ["upcoming"]),
        ("warm", ["upcoming"]), ("warm room", ["upcoming"]), ('"warm room"', ["upcoming"]),
        ("hall -past", ["upcoming"]),
        ("and", ["running"]), ("änd", ["running"]), ("100%", ["unused"]), ("%", ["unused"]), ("_", []), ("<b>", []),
        ("zzz", []), ("日本", []), ("???", []),
    ],
)  # fmt: skip
def test_search_finds_words_phrases_and_exclusions(town: Town, search: str, found: list[str]) -> None:
    assert town.ids(search=search) == [getattr(town, name) for name in found]


def test_search_covers_all_text_fields(editor: Caller, place: Sample) -> None:
    texts = {
        "venues": ["address", "city", "province", "state", "zip", "phone", "stateprovince"],
        "organizers": ["phone", "email"],
    }
    for name in texts[place.kind]:
        word = f"needle{name}{place.kind}"
        sent = f"{word}@example.org" if name == "email" else f"a {word} b"
        made = editor.create(place.kind, **place.body(**{name: sent}))
        assert editor.ids(place.kind, search=word.upper()) == [made["id"]]
        editor.change(place.kind, made["id"], **{name: ""})
        assert editor.ids(place.kind, search=word) == []


def test_invalid_searches_are_rejected(town: Town) -> None:
    for wrong in ("", " ", "x" * 201, " ".join(map(str, range(21)))):
        assert_refused(town.anonymous.get(f"/{town.kind}", {"search": wrong}), 400, "rest_invalid_param", "search")


def test_event_filter_lists_linked_places(town: Town) -> None:
    assert town.ids(event=town.event) == [town.upcoming]
    assert town.ids(event=town.both) == [town.past, town.upcoming]
    assert town.ids(event=town.both, search="past") == [town.past]
    for wrong in ("999999", "x", "0", "", str(town.upcoming)):
        assert_refused(town.anonymous.get(f"/{town.kind}", {"event": wrong}), 400, "rest_invalid_param", "event")


def test_places_of_unpublished_event_need_read_permission(town: Town) -> None:
    assert town.editor.ids(town.kind, event=town.draft) == [town.drafted]
    answer = town.anonymous.get(f"/{town.kind}", {"event": town.draft})
    assert answer.status_code == 400 or answer.json()["total"] == 0, answer.text


def test_places_of_protected_event_need_password(town: Town) -> None:
    secret = town.add_event([town.past], DATES["start_date"], DATES["end_date"], new_password="a word")
    assert town.editor.ids(town.kind, event=secret) == [town.past]
    answer = town.anonymous.get(f"/{town.kind}", {"event": secret})
    town.editor.trash("events", secret)
    assert answer.status_code == 400 or answer.json()["total"] == 0, answer.text


def test_has_events_filter(town: Town) -> None:
    used = [town.running, town.past, town.upcoming]
    for yes in ("true", "1", "yes", "on"):
        assert town.ids(has_events=yes) == used
    for no in ("false", "0", "no", "off"):
        assert town.ids(has_events=no) == [town.unused, town.drafted]


def test_only_with_upcoming_filter(town: Town) -> None:
    assert town.ids(only_with_upcoming="true") == [town.upcoming]
    assert town.ids(only_with_upcoming=1, search="past") == []
    assert town.ids(only_with_upcoming="false") == town.all


@pytest.mark.parametrize("name", ["has_events", "only_with_upcoming"])
def test_invalid_booleans_are_rejected(town: Town, name: str) -> None:
    for wrong in ("", "bogus", "2"):
        assert_refused(town.anonymous.get(f"/{town.kind}", {name: wrong}), 400, "rest_invalid_param", name)


def test_only_with_upcoming_covers_more_than_one_page(editor: Caller, place: Sample) -> None:
    ids = []
    for _ in range(14):
        made = editor.create(place.kind, **place.body())
        editor.create("events", title="Up", **DATES, **{place.singular: made["id"]})
        ids.append(made["id"])
    assert set(ids) <= set(editor.ids(place.kind, only_with_upcoming=1))


def test_event_filters_follow_event_changes(editor: Caller, anonymous: Caller, place: Sample) -> None:
    made = editor.create(place.kind, **place.body())
    event = editor.create("events", title="Moves", **DATES, **{place.singular: made["id"]})
    word = made[place.name]

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
    made: dict[str, dict[tuple[str, str], int]] = {}
    for place in LINKED:
        made[place.kind] = {}
        for owner in ("contributor", "administrator"):
            for status in STATUSES:
                fields = {"author": editor.interface.people[owner].id, "status": status}
                fields |= {"date": "2090-01-01"} if status == "future" else {}
                name = f"Owned by {owner} {status}"
                record = editor.create(place.kind, **place.body(**{place.name: name}, **fields))
                assert record["status"] == status
                made[place.kind][owner, status] = record["id"]
            trashed = editor.create(
                place.kind, **place.body(**{place.name: f"Owned by {owner} trash", **fields, "status": "draft"})
            )
            made[place.kind][owner, "trash"] = editor.trash(place.kind, trashed["id"])["id"]
    return made


@pytest.mark.parametrize("role", ["anonymous", "subscriber", "contributor", "author", "editor", "administrator"])
def test_lists_contain_exactly_readable_records(interface: Interface, place: Sample, owned: Any, role: str) -> None:
    caller = interface.caller(role)
    for status in (None, *STATUSES, "trash", "publish,draft", ""):
        asked = ["publish", "private"] if status == "" else status.split(",") if status else list(STATUSES)
        expected = {
            record
            for (owner, held), record in owned[place.kind].items()
            if held in asked and (held == "publish" or owner == role or role in ("editor", "administrator"))
        }
        query = {"search": "owned by", **({"status": status} if status is not None else {})}
        answer = caller.get(f"/{place.kind}", query)
        if role in ("anonymous", "subscriber") and status not in (None, "publish"):
            assert_refused(answer, 400, "rest_invalid_param", "status")
        else:
            assert set(caller.ids(place.kind, **query)) == expected, status


def test_unknown_statuses_are_rejected(editor: Caller, post: Sample) -> None:
    for wrong in ("any", "auto-draft", "PUBLISH", "publish,bogus", ",", "inherit"):
        assert_refused(editor.get(f"/{post.kind}", {"status": wrong}), 400, "rest_invalid_param", "status")
