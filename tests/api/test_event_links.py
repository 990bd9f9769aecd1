"""Venues and organizers of an event: as ID, list or data, made in one transaction, shown to those who may."""

from typing import Any

import pytest

from tests.api.running_app import Caller, Interface, assert_refused, done
from tests.api.sample_records import DATES, SAMPLES, Sample, unique


def event(caller: Caller, **fields: Any) -> dict[str, Any]:
    return caller.create("events", **{"title": unique("event"), **DATES, **fields})


def linked(record: dict[str, Any], place: Sample) -> list[int]:
    """The IDs that an event shows, in their order."""
    shown = record[place.singular]
    return [one["id"] for one in (shown if isinstance(shown, list) else [shown])]


def total(interface: Interface, kind: str) -> int:
    (row,) = interface.sql(f"SELECT count(*) AS n FROM {kind}")
    number: int = row["n"]
    return number


@pytest.fixture
def three(editor: Caller, place: Sample) -> list[int]:
    return [editor.create(place.kind, **place.body())["id"] for _ in range(3)]


def test_records_are_linked_by_id_in_all_notations(editor: Caller, place: Sample, three: list[int]) -> None:
    a, b, c = three
    forms: list[tuple[Any, list[int]]] = [
        (a, [a]),
        (str(a), [a]),
        ([a], [a]),
        ([c, a], [c, a]),
        ([str(b), a], [b, a]),
        (f"{b},{c}", [b, c]),
        (f" {b} , {c} ,", [b, c]),
        ([f"{a},{b}", c], [a, b, c]),
        ({"id": a}, [a]),
        ({"id": str(a), place.name: "ignored"}, [a]),
        ([{"id": b}, c], [b, c]),
        ([a, a, b, a], [a, b]),
        (float(a), [a]),
        ("", []),
        ([], []),
        ({}, []),
        (0, []),
        ("0", []),
        (False, []),
        (None, []),
        ([{}], []),
    ]
    for sent, ids in forms:
        made = event(editor, **{place.singular: sent})
        assert linked(made, place) == ids, sent


def test_venue_is_empty_list_object_or_list(editor: Caller) -> None:
    a, b = (editor.create("venues", venue=unique("v")) for _ in range(2))
    assert event(editor)["venue"] == []
    assert event(editor, venue=a["id"])["venue"] == a
    assert event(editor, venue=[b["id"], a["id"]])["venue"] == [b, a]
    assert event(editor, organizer=[])["organizer"] == []


def test_forms_link_records_with_brackets(editor: Caller, place: Sample, three: list[int]) -> None:
    base = {"title": "Form", **DATES}
    name = place.singular
    pairs = [*base.items(), (f"{name}[]", str(three[1])), (f"{name}[]", str(three[0]))]
    body = "&".join(f"{key}={value}" for key, value in pairs)
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    made = done(editor.request("POST", "/events", content=body, headers=headers), 201)
    assert linked(made, place) == [three[1], three[0]]
    new = unique("of form")
    inline = {**base, f"{name}[{name}]": new, f"{name}[phone]": "12"}
    record = done(editor.request("POST", "/events", data=inline), 201)[name]
    shown = record[0] if isinstance(record, list) else record
    assert (shown[name], shown["phone"]) == (new, "12")
    two = {**base, f"{name}[0][{name}]": unique("first"), f"{name}[1][{name}]": unique("second")}
    assert len(linked(done(editor.request("POST", "/events", data=two), 201), place)) == 2


@pytest.mark.parametrize(
    "wrong",
    [999999, "999999", "a name", [1.5], [True], [None], [[1]], {"id": 999999}, {"id": "x"}, {"id": None},
    {"id": [1]}, -1,
     {"phone": "1"}, {"NAME": ""}, {"NAME": " "}, {"NAME": 5}, {"NAME": "x", "website": "ftp://x"},
     {"NAME": "x", "date": "x"},
     {"NAME": "x", "status": "bogus"}, list(range(1, 60)), 1.5, True],
)  # fmt: skip
def test_invalid_links_are_rejected(editor: Caller, place: Sample, wrong: Any) -> None:
    if isinstance(wrong, dict):
        wrong = {key.replace("NAME", place.name): value for key, value in wrong.items()}
    before = total(editor.interface, place.kind)
    answer = editor.post("/events", {"title": "x", **DATES, place.singular: wrong})
    assert_refused(answer, 400, "rest_invalid_param", place.singular)
    assert total(editor.interface, place.kind) == before


def test_record_of_another_kind_cannot_be_linked(editor: Caller, place: Sample) -> None:
    other = event(editor)["id"]
    answer = editor.post("/events", {"title": "x", **DATES, place.singular: other})
    assert_refused(answer, 400, "rest_invalid_param", place.singular)


def test_inline_data_creates_record_by_rules_of_its_kind(editor: Caller, place: Sample) -> None:
    name = unique("Inline")
    sent = {
        place.name: f"<b>{name}</b><script>x</script>",
        "phone": " 1 ",
        "website": "https://i.example",
        "unknown": 1,
    }
    made = event(editor, status="draft", **{place.singular: sent})
    (record_id,) = linked(made, place)
    record = editor.read(place.kind, record_id)
    assert (record[place.name], record["phone"], record["website"]) == (f"<b>{name}</b>", "1", "https://i.example")
    assert (record["status"], record["author"]) == ("publish", str(editor.id))
    assert record["slug"] == name.lower().replace(" ", "-")


def test_inline_data_and_ids_can_be_mixed(editor: Caller, place: Sample, three: list[int]) -> None:
    made = event(editor, **{place.singular: [three[2], {place.name: unique("mixed")}, {"id": three[0]}]})
    ids = linked(made, place)
    assert (ids[0], ids[2]) == (three[2], three[0])
    assert ids[1] not in three


def test_identical_inline_data_reuses_record_without_changing_it(
    author: Caller, editor: Caller, place: Sample
) -> None:
    data = {place.name: unique("Same"), "phone": "12", "description": "d"}
    record = editor.create(place.kind, **data)
    before = editor.get(f"/{place.kind}/{record['id']}").headers["etag"]
    for sent in (data, {place.name: data[place.name]}, {place.name: data[place.name], "phone": "12"}):
        assert linked(event(author, **{place.singular: sent}), place) == [record["id"]]
    for sent in ({**data, "phone": "13"}, {**data, "description": "e"}, {**data, "website": "https://x.example"}):
        assert linked(event(author, **{place.singular: sent}), place) != [record["id"]]
    assert editor.get(f"/{place.kind}/{record['id']}").headers["etag"] == before


def test_drafts_and_trashed_records_are_not_reused(author: Caller, editor: Caller, place: Sample) -> None:
    draft = editor.create(place.kind, **place.body(status="draft"))
    trashed = editor.create(place.kind, **place.body())
    editor.trash(place.kind, trashed["id"])
    for record in (draft, trashed):
        made = event(author, **{place.singular: {place.name: record[place.name]}})
        assert linked(made, place) != [record["id"]]


def test_repeated_inline_data_creates_one_record(editor: Caller, place: Sample) -> None:
    data = {place.name: unique("Twice")}
    assert len(linked(event(editor, **{place.singular: [data, data]}), place)) == 1


def test_failed_write_leaves_no_linked_records(editor: Caller) -> None:
    interface = editor.interface
    tables = ("venues", "organizers", "categories", "tags", "events", "changes", "event_venues", "event_organizers")
    before = [total(interface, table) for table in tables]
    (counters,) = interface.sql("SELECT revision, last_post_id, last_term_id FROM sites")
    good = {
        "venue": {"venue": unique("v")},
        "organizer": [{"organizer": unique("o")}],
        "categories": ["New"],
        "tags": ["New"],
    }
    failing: list[dict[str, Any]] = [
        {**good, "organizer": [{"organizer": unique("o")}, {"organizer": "x", "email": "none"}]},
        {**good, "organizer": [{"organizer": unique("o")}, 999999]},
        {**good, "tags": ["New", 999999]},
        {**good, "start_date": "2027-01-02", "end_date": "2027-01-01"},
        {**good, "image": 999999},
        {**good, "author": 999999},
    ]
    for fields in failing:
        assert editor.post("/events", {"title": "x", **DATES, **fields}).status_code == 400
    assert [total(interface, table) for table in tables] == before
    assert interface.sql("SELECT revision, last_post_id, last_term_id FROM sites") == [counters]
    assert len(linked(event(editor, **good), SAMPLES["venues"])) == 1


def test_omitted_links_are_unchanged_and_empty_ones_removed(editor: Caller, place: Sample, three: list[int]) -> None:
    made = event(editor, **{place.singular: three})
    assert linked(editor.change("events", made["id"], title="x"), place) == three
    for empty in ("", [], None, 0):
        assert linked(editor.change("events", made["id"], **{place.singular: empty}), place) == []
        assert linked(editor.change("events", made["id"], **{place.singular: three[::-1]}), place) == three[::-1]
    assert linked(editor.change("events", made["id"], **{place.singular: three[1]}), place) == [three[1]]


# Rights ---------------------------------------------------------------------------------------


def test_inline_records_of_contributor_are_pending(contributor: Caller, anonymous: Caller, place: Sample) -> None:
    made = event(contributor, **{place.singular: {place.name: unique("Drafted"), "status": "publish"}})
    (record_id,) = linked(made, place)
    record = contributor.read(place.kind, record_id)
    assert (record["status"], record["author"]) == ("pending", str(contributor.id))
    assert_refused(anonymous.get(f"/{place.kind}/{record_id}"), 403, f"{place.singular}-not-accessible")


def test_inline_data_cannot_set_another_author(author: Caller, editor: Caller, place: Sample) -> None:
    sent = {place.name: unique("Foreign"), "author": editor.id}
    answer = author.post("/events", {"title": "x", **DATES, place.singular: sent})
    assert_refused(answer, 403, "rest_forbidden")


@pytest.mark.parametrize("status", ["draft", "pending", "private", "future"])
def test_unpublished_linked_records_are_hidden_from_others(interface: Interface, place: Sample, status: str) -> None:
    editor, author = interface.caller("editor"), interface.caller("author")
    hidden = editor.create(
        place.kind,
        **place.body(status=status, author=author.id, **({"date": "2090-01-01"} if status == "future" else {})),
    )
    shown = editor.create(place.kind, **place.body())
    assert hidden["status"] == status
    made = event(editor, **{place.singular: [hidden["id"], shown["id"]]})
    for role, ids in (
        ("editor", [hidden["id"], shown["id"]]),
        ("administrator", [hidden["id"], shown["id"]]),
        ("author", [hidden["id"], shown["id"]]),
        ("contributor", [shown["id"]]),
        ("subscriber", [shown["id"]]),
        ("anonymous", [shown["id"]]),
    ):
        caller = interface.caller(role)
        assert linked(caller.read("events", made["id"]), place) == ids, role
        (listed,) = caller.page("events", include=made["id"])["events"]
        assert linked(listed, place) == ids, role
        if hidden["id"] not in ids:
            assert hidden[place.name] not in caller.get(f"/events/{made['id']}").text


def test_hidden_records_cannot_be_linked_by_others(contributor: Caller, editor: Caller, place: Sample) -> None:
    hidden = editor.create(place.kind, **place.body(status="private"))
    trashed = editor.create(place.kind, **place.body())
    editor.trash(place.kind, trashed["id"])
    for record, caller in ((hidden, contributor), (trashed, contributor), (trashed, editor)):
        answer = caller.post("/events", {"title": "x", **DATES, place.singular: record["id"]})
        assert_refused(answer, 400, "rest_invalid_param", place.singular)
    assert linked(event(editor, **{place.singular: hidden["id"]}), place) == [hidden["id"]]
    own = contributor.create(place.kind, **place.body())
    assert linked(event(contributor, **{place.singular: own["id"]}), place) == [own["id"]]
