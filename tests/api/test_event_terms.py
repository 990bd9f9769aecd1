"""Categories and tags of an event: by ID, slug or name; new ones need the right (behaviour 4.10)."""

from typing import Any

import pytest

from tests.api.running_app import Caller, assert_refused
from tests.api.sample_records import DATES, Sample, unique


def event(caller: Caller, **fields: Any) -> dict[str, Any]:
    return caller.create("events", **{"title": unique("event"), **DATES, **fields})


def names(record: dict[str, Any], term: Sample) -> list[str]:
    return [one["name"] for one in record[term.kind]]


@pytest.fixture
def two(editor: Caller, term: Sample) -> list[dict[str, Any]]:
    """B before A, so that the order of names shows."""
    return [editor.create(term.kind, name=unique(letter), slug=f"own {letter} {unique('s')}") for letter in "ba"]


def test_terms_are_accepted_in_all_notations(editor: Caller, term: Sample, two: list[dict[str, Any]]) -> None:
    b, a = two
    for sent in (
        [b["id"], a["id"]],
        f"{b['id']},{a['id']}",
        [str(b["id"]), a["slug"]],
        [b["name"], a["name"].upper()],
        f"{b['slug']}, {a['name']}",
        [b["id"], b["slug"], b["name"], a["id"]],
    ):
        assert names(event(editor, **{term.kind: sent}), term) == [a["name"], b["name"]], sent
    assert names(event(editor, **{term.kind: b["id"]}), term) == [b["name"]]
    assert names(event(editor, **{term.kind: b["slug"].upper()}), term) == [b["name"]]
    for nothing in ("", [], None, ","):
        assert names(event(editor, **{term.kind: nothing}), term) == []


def test_slug_takes_precedence_over_name(editor: Caller, term: Sample) -> None:
    word = unique("word")
    named = editor.create(term.kind, name=word, slug=unique("other"))
    slugged = editor.create(term.kind, name=unique("other"), slug=word)
    assert names(event(editor, **{term.kind: [word.lower().replace(" ", "-")]}), term) == [slugged["name"]]
    assert names(event(editor, **{term.kind: [word]}), term) == [named["name"]]


def test_omitted_terms_are_unchanged_and_empty_ones_removed(
    editor: Caller, term: Sample, two: list[dict[str, Any]]
) -> None:
    b, a = two
    made = event(editor, **{term.kind: [b["id"]]})
    assert names(editor.change("events", made["id"], title="x"), term) == [b["name"]]
    assert names(editor.change("events", made["id"], **{term.kind: [a["id"]]}), term) == [a["name"]]
    for empty in ("", [], None):
        assert names(editor.change("events", made["id"], **{term.kind: empty}), term) == []
        editor.change("events", made["id"], **{term.kind: [a["id"]]})


def test_unknown_names_create_terms(anonymous: Caller, editor: Caller, term: Sample) -> None:
    one, two = unique("New & fine"), unique("Äther")
    made = event(editor, **{term.kind: [one, two, one.upper()]})
    assert names(made, term) == [two, one]
    shown = {entry["name"]: entry for entry in made[term.kind]}
    assert shown[one]["slug"] == one.lower().replace(" & ", "-").replace(" ", "-")
    assert anonymous.read(term.kind, shown[two]["id"])["count"] == 1
    assert names(event(editor, **{term.kind: [one.lower()]}), term) == [one]


@pytest.mark.parametrize(
    "wrong",
    [[999999], "999999", 0, [0], "2027", [-1], [1.5], [True], True, [None], [[1]], [{}], {"name": "x"},
    [{"id": 1}], [["a"]],
     [f"n{n}" for n in range(201)], ["<b></b>"], ["\x00"]],
)  # fmt: skip
def test_invalid_terms_are_rejected(editor: Caller, term: Sample, wrong: object) -> None:
    answer = editor.post("/events", {"title": "x", **DATES, term.kind: wrong})
    assert_refused(answer, 400, "rest_invalid_param", term.kind)


@pytest.mark.parametrize("length", [201, 5000])
def test_too_long_name_is_rejected(editor: Caller, term: Sample, length: int) -> None:
    answer = editor.post("/events", {"title": "x", **DATES, term.kind: ["x" * length]})
    assert_refused(answer, 400, "rest_invalid_param", term.kind)


def test_term_of_other_taxonomy_is_rejected(editor: Caller, term: Sample) -> None:
    other = editor.create("tags" if term.kind == "categories" else "categories", name=unique("other"))
    answer = editor.post("/events", {"title": "x", **DATES, term.kind: [other["id"]]})
    assert_refused(answer, 400, "rest_invalid_param", term.kind)


@pytest.mark.parametrize("role", ["contributor", "author", "editor"])
def test_creating_terms_needs_permission_but_using_them_does_not(
    editor: Caller, term: Sample, two: list[dict[str, Any]], role: str
) -> None:
    caller = editor.interface.caller(role)
    assert names(event(caller, **{term.kind: [two[0]["id"], two[1]["slug"]]}), term) == [
        two[1]["name"],
        two[0]["name"],
    ]
    new = unique("new")
    answer = caller.post("/events", {"title": "x", **DATES, term.kind: [new]})
    if role == "editor" or (role == "author" and term.kind == "categories"):
        assert names(answer.json(), term) == [new]
    else:
        assert_refused(answer, 403, "rest_forbidden")
        assert editor.ids(term.kind, search=new, hide_empty=0) == []


def test_parent_categories_are_not_added(editor: Caller) -> None:
    parent = editor.create("categories", name=unique("parent"))
    child = editor.create("categories", name=unique("child"), parent=parent["id"])
    made = event(editor, categories=[child["id"]])
    assert [(one["id"], one["parent"]) for one in made["categories"]] == [(child["id"], parent["id"])]
