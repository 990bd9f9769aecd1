"""Venues and organizers of an event: as ID, list or data, made in one transaction, shown to those who may."""

from typing import Any

import pytest

from tests.api.running_app import Caller, RunningApp, assert_error, expect_json
from tests.api.sample_records import DATES, SAMPLES, Sample, unique


def create_event(caller: Caller, **fields: Any) -> dict[str, Any]:
    return caller.create("events", **{"title": unique("event"), **DATES, **fields})


def linked_ids(record: dict[str, Any], place: Sample) -> list[int]:
    """The IDs that an event shows, in their order."""
    linked_records = record[place.singular]
    return [one["id"] for one in (linked_records if isinstance(linked_records, list) else [linked_records])]


def count_rows(app: RunningApp, kind: str) -> int:
    (row,) = app.sql(f"SELECT count(*) AS n FROM {kind}")
    number: int = row["n"]
    return number


@pytest.fixture
def record_ids(editor: Caller, place: Sample) -> list[int]:
    return [editor.create(place.kind, **place.body())["id"] for _ in range(3)]


def test_records_are_linked_by_id_in_all_notations(editor: Caller, place: Sample, record_ids: list[int]) -> None:
    a, b, c = record_ids
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
        ({"id": str(a), place.name_param: "ignored"}, [a]),
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
    for value, ids in forms:
        record = create_event(editor, **{place.singular: value})
        assert linked_ids(record, place) == ids, value


def test_venue_is_empty_list_object_or_list(editor: Caller) -> None:
    a, b = (editor.create("venues", venue=unique("v")) for _ in range(2))
    assert create_event(editor)["venue"] == []
    assert create_event(editor, venue=a["id"])["venue"] == a
    assert create_event(editor, venue=[b["id"], a["id"]])["venue"] == [b, a]
    assert create_event(editor, organizer=[])["organizer"] == []


def test_forms_link_records_with_brackets(editor: Caller, place: Sample, record_ids: list[int]) -> None:
    base = {"title": "Form", **DATES}
    name = place.singular
    pairs = [*base.items(), (f"{name}[]", str(record_ids[1])), (f"{name}[]", str(record_ids[0]))]
    body = "&".join(f"{key}={value}" for key, value in pairs)
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    created = expect_json(editor.request("POST", "/events", content=body, headers=headers), 201)
    assert linked_ids(created, place) == [record_ids[1], record_ids[0]]
    new = unique("of form")
    inline = {**base, f"{name}[{name}]": new, f"{name}[phone]": "12"}
    record = expect_json(editor.request("POST", "/events", data=inline), 201)[name]
    linked_record = record[0] if isinstance(record, list) else record
    assert (linked_record[name], linked_record["phone"]) == (new, "12")
    two = {**base, f"{name}[0][{name}]": unique("first"), f"{name}[1][{name}]": unique("second")}
    assert len(linked_ids(expect_json(editor.request("POST", "/events", data=two), 201), place)) == 2


@pytest.mark.quick("venues-999999_0", "organizers-True")
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
        wrong = {key.replace("NAME", place.name_param): value for key, value in wrong.items()}
    before = count_rows(editor.app, place.kind)
    response = editor.post("/events", {"title": "x", **DATES, place.singular: wrong})
    assert_error(response, 400, "rest_invalid_param", place.singular)
    assert count_rows(editor.app, place.kind) == before


def test_record_of_another_kind_cannot_be_linked(editor: Caller, place: Sample) -> None:
    other = create_event(editor)["id"]
    response = editor.post("/events", {"title": "x", **DATES, place.singular: other})
    assert_error(response, 400, "rest_invalid_param", place.singular)


def test_inline_data_creates_record_by_rules_of_its_kind(editor: Caller, place: Sample) -> None:
    name = unique("Inline")
    fields = {
        place.name_param: f"<b>{name}</b><script>x</script>",
        "phone": " 1 ",
        "website": "https://i.example",
        "unknown": 1,
    }
    created = create_event(editor, status="draft", **{place.singular: fields})
    (record_id,) = linked_ids(created, place)
    record = editor.read(place.kind, record_id)
    assert (record[place.name_param], record["phone"], record["website"]) == (
        f"<b>{name}</b>",
        "1",
        "https://i.example",
    )
    assert (record["status"], record["author"]) == ("draft", str(editor.id))
    assert record["slug"] == name.lower().replace(" ", "-")


def test_inline_data_and_ids_can_be_mixed(editor: Caller, place: Sample, record_ids: list[int]) -> None:
    record = create_event(
        editor, **{place.singular: [record_ids[2], {place.name_param: unique("mixed")}, {"id": record_ids[0]}]}
    )
    ids = linked_ids(record, place)
    assert (ids[0], ids[2]) == (record_ids[2], record_ids[0])
    assert ids[1] not in record_ids


def test_identical_inline_data_reuses_record_without_changing_it(
    author: Caller, editor: Caller, place: Sample
) -> None:
    data = {place.name_param: unique("Same"), "phone": "12", "description": "d"}
    record = editor.create(place.kind, **data)
    before = editor.get(f"/{place.kind}/{record['id']}").headers["etag"]
    for fields in (
        data,
        {place.name_param: data[place.name_param]},
        {place.name_param: data[place.name_param], "phone": "12"},
    ):
        assert linked_ids(create_event(author, **{place.singular: fields}), place) == [record["id"]]
    for fields in ({**data, "phone": "13"}, {**data, "description": "e"}, {**data, "website": "https://x.example"}):
        assert linked_ids(create_event(author, **{place.singular: fields}), place) != [record["id"]]
    assert editor.get(f"/{place.kind}/{record['id']}").headers["etag"] == before


def test_repeated_creation_returns_identical_published_record(
    contributor: Caller, editor: Caller, place: Sample
) -> None:
    data = {place.name_param: unique("Twice"), "phone": "12", "website": "https://x.example/"}
    data |= {"geo_lat": 48.5, "geo_lng": 9, "show_map": False} if place.kind == "venues" else {}
    record = editor.create(place.kind, **data)
    for caller, fields in ((editor, data), (contributor, data), (editor, {**data, "status": "publish"})):
        response = caller.post(f"/{place.kind}", fields)
        assert (expect_json(response, 200)["id"], "location" in response.headers) == (record["id"], False)
    others = ({**data, "phone": "13"}, {**data, "status": "draft"}, {**data, "date": "2026-01-01"})
    ids = {editor.create(place.kind, **fields)["id"] for fields in others}
    assert len(ids | {record["id"]}) == 4
    for record_id in (record["id"], *ids):
        editor.trash(place.kind, record_id)
    assert editor.create(place.kind, **data)["id"] not in ids | {record["id"]}


def test_drafts_and_trashed_records_are_not_reused(author: Caller, editor: Caller, place: Sample) -> None:
    draft = editor.create(place.kind, **place.body(status="draft"))
    trashed = editor.create(place.kind, **place.body())
    editor.trash(place.kind, trashed["id"])
    for record in (draft, trashed):
        created = create_event(author, **{place.singular: {place.name_param: record[place.name_param]}})
        assert linked_ids(created, place) != [record["id"]]


def test_repeated_inline_data_creates_one_record(editor: Caller, place: Sample) -> None:
    data = {place.name_param: unique("Twice")}
    assert len(linked_ids(create_event(editor, **{place.singular: [data, data]}), place)) == 1


def test_failed_write_leaves_no_linked_records(editor: Caller) -> None:
    app = editor.app
    tables = ("venues", "organizers", "categories", "tags", "events", "changes", "event_venues", "event_organizers")
    before = [count_rows(app, table) for table in tables]
    (counters,) = app.sql("SELECT revision, last_post_id, last_term_id FROM sites")
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
    assert [count_rows(app, table) for table in tables] == before
    assert app.sql("SELECT revision, last_post_id, last_term_id FROM sites") == [counters]
    assert len(linked_ids(create_event(editor, **good), SAMPLES["venues"])) == 1


def test_omitted_links_are_unchanged_and_empty_ones_removed(
    editor: Caller, place: Sample, record_ids: list[int]
) -> None:
    record = create_event(editor, **{place.singular: record_ids})
    assert linked_ids(editor.change("events", record["id"], title="x"), place) == record_ids
    for empty in ("", [], None, 0):
        assert linked_ids(editor.change("events", record["id"], **{place.singular: empty}), place) == []
        assert (
            linked_ids(editor.change("events", record["id"], **{place.singular: record_ids[::-1]}), place)
            == record_ids[::-1]
        )
    assert linked_ids(editor.change("events", record["id"], **{place.singular: record_ids[1]}), place) == [
        record_ids[1]
    ]


# Rights ---------------------------------------------------------------------------------------


def test_inline_records_of_contributor_are_pending(contributor: Caller, anonymous: Caller, place: Sample) -> None:
    created = create_event(
        contributor, **{place.singular: {place.name_param: unique("Drafted"), "status": "publish"}}
    )
    (record_id,) = linked_ids(created, place)
    record = contributor.read(place.kind, record_id)
    assert (record["status"], record["author"]) == ("pending", str(contributor.id))
    assert_error(anonymous.get(f"/{place.kind}/{record_id}"), 403, f"{place.singular}-not-accessible")


def test_inline_data_cannot_set_another_author(author: Caller, editor: Caller, place: Sample) -> None:
    fields = {place.name_param: unique("Foreign"), "author": editor.id}
    response = author.post("/events", {"title": "x", **DATES, place.singular: fields})
    assert_error(response, 403, "rest_forbidden")


@pytest.mark.quick("venues-draft", "organizers-future")
@pytest.mark.parametrize("status", ["draft", "pending", "private", "future"])
def test_unpublished_linked_records_are_hidden_from_others(app: RunningApp, place: Sample, status: str) -> None:
    editor, author = app.caller("editor"), app.caller("author")
    hidden = editor.create(place.kind, **place.body(author=author.id))
    public = editor.create(place.kind, **place.body())
    record = create_event(editor, **{place.singular: [hidden["id"], public["id"]]})
    # Afterwards, because saving a public event publishes its drafts.
    date = {"date": "2090-01-01"} if status == "future" else {}
    assert editor.change(place.kind, hidden["id"], status=status, **date)["status"] == status
    for role, ids in (
        ("editor", [hidden["id"], public["id"]]),
        ("administrator", [hidden["id"], public["id"]]),
        ("author", [hidden["id"], public["id"]]),
        ("contributor", [public["id"]]),
        ("subscriber", [public["id"]]),
        ("anonymous", [public["id"]]),
    ):
        caller = app.caller(role)
        assert linked_ids(caller.read("events", record["id"]), place) == ids, role
        (listed,) = caller.page("events", include=record["id"])["events"]
        assert linked_ids(listed, place) == ids, role
        if hidden["id"] not in ids:
            assert hidden[place.name_param] not in caller.get(f"/events/{record['id']}").text


def test_hidden_records_cannot_be_linked_by_others(contributor: Caller, editor: Caller, place: Sample) -> None:
    hidden = editor.create(place.kind, **place.body(status="private"))
    trashed = editor.create(place.kind, **place.body())
    editor.trash(place.kind, trashed["id"])
    for record, caller in ((hidden, contributor), (trashed, contributor), (trashed, editor)):
        response = caller.post("/events", {"title": "x", **DATES, place.singular: record["id"]})
        assert_error(response, 400, "rest_invalid_param", place.singular)
    assert linked_ids(create_event(editor, **{place.singular: hidden["id"]}), place) == [hidden["id"]]
    own = contributor.create(place.kind, **place.body())
    assert linked_ids(create_event(contributor, **{place.singular: own["id"]}), place) == [own["id"]]
