"""Categories and tags of an event: by ID, slug or name; new ones need the right (behaviour 4.10)."""

from typing import Any

import pytest

from tests.api.running_app import Caller, assert_error, expect_json
from tests.api.sample_records import DATES, Sample, unique

HEADER = "X-Kalends-Ignored-Params"


def create_event(caller: Caller, **fields: Any) -> dict[str, Any]:
    return caller.create("events", **{"title": unique("event"), **DATES, **fields})


def term_names(record: dict[str, Any], term: Sample) -> list[str]:
    return [one["name"] for one in record[term.kind]]


@pytest.fixture
def term_pair(editor: Caller, term: Sample) -> list[dict[str, Any]]:
    """B before A, so that the order of names shows."""
    return [editor.create(term.kind, name=unique(letter), slug=f"own {letter} {unique('s')}") for letter in "ba"]


def test_terms_are_accepted_in_all_notations(editor: Caller, term: Sample, term_pair: list[dict[str, Any]]) -> None:
    b, a = term_pair
    for value in (
        [b["id"], a["id"]],
        f"{b['id']},{a['id']}",
        [str(b["id"]), a["slug"]],
        [b["name"], a["name"].upper()],
        f"{b['slug']}, {a['name']}",
        [b["id"], b["slug"], b["name"], a["id"]],
    ):
        assert term_names(create_event(editor, **{term.kind: value}), term) == [a["name"], b["name"]], value
    assert term_names(create_event(editor, **{term.kind: b["id"]}), term) == [b["name"]]
    assert term_names(create_event(editor, **{term.kind: b["slug"].upper()}), term) == [b["name"]]
    for nothing in ("", [], None, ","):
        assert term_names(create_event(editor, **{term.kind: nothing}), term) == []


def test_slug_takes_precedence_over_name(editor: Caller, term: Sample) -> None:
    word = unique("word")
    named = editor.create(term.kind, name=word, slug=unique("other"))
    slugged = editor.create(term.kind, name=unique("other"), slug=word)
    assert term_names(create_event(editor, **{term.kind: [word.lower().replace(" ", "-")]}), term) == [
        slugged["name"]
    ]
    assert term_names(create_event(editor, **{term.kind: [word]}), term) == [named["name"]]


def test_omitted_terms_are_unchanged_and_empty_ones_removed(
    editor: Caller, term: Sample, term_pair: list[dict[str, Any]]
) -> None:
    b, a = term_pair
    record = create_event(editor, **{term.kind: [b["id"]]})
    assert term_names(editor.change("events", record["id"], title="x"), term) == [b["name"]]
    assert term_names(editor.change("events", record["id"], **{term.kind: [a["id"]]}), term) == [a["name"]]
    for empty in ("", [], None):
        assert term_names(editor.change("events", record["id"], **{term.kind: empty}), term) == []
        editor.change("events", record["id"], **{term.kind: [a["id"]]})


def test_unknown_names_create_terms(anonymous: Caller, editor: Caller, term: Sample) -> None:
    one, two = unique("New & fine"), unique("Äther")
    record = create_event(editor, **{term.kind: [one, two, one.upper()]})
    assert term_names(record, term) == [two, one]
    terms_by_name = {entry["name"]: entry for entry in record[term.kind]}
    assert terms_by_name[one]["slug"] == one.lower().replace(" & ", "-").replace(" ", "-")
    assert anonymous.read(term.kind, terms_by_name[two]["id"])["count"] == 1
    assert term_names(create_event(editor, **{term.kind: [one.lower()]}), term) == [one]


@pytest.mark.quick("categories-wrong0", "tags-wrong17")
@pytest.mark.parametrize(
    "wrong",
    [[999999], "999999", 0, [0], "2027", [-1], [1.5], [True], True, [None], [[1]], [{}], {"name": "x"},
    [{"id": 1}], [["a"]],
     [f"n{n}" for n in range(201)], ["<b></b>"], ["\x00"]],
)  # fmt: skip
def test_invalid_terms_are_rejected(editor: Caller, term: Sample, wrong: object) -> None:
    response = editor.post("/events", {"title": "x", **DATES, term.kind: wrong})
    assert_error(response, 400, "rest_invalid_param", term.kind)


@pytest.mark.quick("categories-201", "tags-5000")
@pytest.mark.parametrize("length", [201, 5000])
def test_too_long_name_is_rejected(editor: Caller, term: Sample, length: int) -> None:
    response = editor.post("/events", {"title": "x", **DATES, term.kind: ["x" * length]})
    assert_error(response, 400, "rest_invalid_param", term.kind)


def test_term_of_other_taxonomy_is_rejected(editor: Caller, term: Sample) -> None:
    other = editor.create("tags" if term.kind == "categories" else "categories", name=unique("other"))
    response = editor.post("/events", {"title": "x", **DATES, term.kind: [other["id"]]})
    assert_error(response, 400, "rest_invalid_param", term.kind)


@pytest.mark.quick("categories-contributor", "tags-editor")
@pytest.mark.parametrize("role", ["contributor", "author", "editor"])
def test_creating_terms_needs_permission_but_using_them_does_not(
    editor: Caller, term: Sample, term_pair: list[dict[str, Any]], role: str
) -> None:
    caller = editor.app.caller(role)
    assert term_names(create_event(caller, **{term.kind: [term_pair[0]["id"], term_pair[1]["slug"]]}), term) == [
        term_pair[1]["name"],
        term_pair[0]["name"],
    ]
    new = unique("new")
    response = caller.post("/events", {"title": "x", **DATES, term.kind: [new]})
    if role != "contributor":
        assert term_names(response.json(), term) == [new]
        return
    if term.kind == "categories":
        data = assert_error(response, 403, "rest_forbidden")
        assert data == {"status": 403, "params": {"categories": new}}
    else:
        assert term_names(expect_json(response, 201), term) == []
    assert editor.ids(term.kind, search=new, hide_empty=0) == []


def test_new_tags_of_contributor_are_left_out_and_reported(contributor: Caller, editor: Caller) -> None:
    known, new = editor.create("tags", name=unique("known")), unique("new")
    body = {"title": unique("event"), **DATES, "tags": [known["name"], new, "Nie & nimmer"]}
    created = contributor.post("/events?utm=1", body)
    record = expect_json(created, 201)
    assert ([tag["id"] for tag in record["tags"]], created.headers[HEADER]) == ([known["id"]], "utm, tags")
    changed = contributor.patch(f"/events/{record['id']}", {"tags": [new]})
    assert (expect_json(changed)["tags"], changed.headers[HEADER]) == ([], "tags")
    assert HEADER not in contributor.patch(f"/events/{record['id']}", {"tags": [known["id"]]}).headers
    data = assert_error(contributor.post("/events?strict=1", body), 400, "rest_invalid_param", "tags")
    assert data["params"]["tags"] == (
        "`tags`: some names do not exist yet, and creating them requires the role author or higher."
    )
    assert editor.ids("events", search=body["title"], status="draft") == [record["id"]]
    assert_error(contributor.post("/tags", {"name": new}), 403, "rest_forbidden")
    assert_error(contributor.app.caller("author").post("/tags", {"name": new}), 403, "rest_forbidden")


def test_new_names_of_authors_create_tags_that_anyone_sees(anonymous: Caller, author: Caller) -> None:
    new = unique("brand new")
    record = expect_json(author.post("/events", {"title": "Own", **DATES, "tags": [new]}), 201)
    assert anonymous.read("tags", record["tags"][0]["id"])["name"] == new


def test_parent_categories_are_not_added(editor: Caller) -> None:
    parent = editor.create("categories", name=unique("parent"))
    child = editor.create("categories", name=unique("child"), parent=parent["id"])
    record = create_event(editor, categories=[child["id"]])
    assert [(one["id"], one["parent"]) for one in record["categories"]] == [(child["id"], parent["id"])]
