"""Lists of categories and tags: every parameter (behaviour 8.5)."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.api.running_app import RunningApp, assert_error
from tests.api.sample_records import DATES, TERMS, Sample


class TermSet:
    """Four terms in a database of their own: Äpfel (2 events), bananas (1), Cherry, and a draft's date."""

    def __init__(self, app: RunningApp, term: Sample) -> None:
        self.editor, self.anonymous = app.caller("editor"), app.caller()
        self.kind = term.kind
        texts = {"Äpfel": "red fruit", "bananas": "a yellow one", "Cherry 100%": "", "date_palm": "z"}
        self.terms = [
            self.editor.create(term.kind, name=name, description=text)["id"] for name, text in texts.items()
        ]
        self.foreign = self.editor.create("tags" if term.kind == "categories" else "categories", name="Other")["id"]
        self.apple, self.banana, self.cherry, self.date = self.terms
        self.both = self.add_event(self.apple, self.banana)
        self.one = self.add_event(self.apple)
        self.draft = self.add_event(self.date, status="draft")

    def add_event(self, *terms: int, **fields: Any) -> int:
        event = self.editor.create("events", title="On the shelf", **{self.kind: list(terms)}, **DATES, **fields)
        number: int = event["id"]
        return number

    def ids(self, **query: Any) -> list[int]:
        return self.anonymous.ids(self.kind, **query)

    def assert_rejected(self, name: str, **query: Any) -> None:
        assert_error(self.anonymous.get(f"/{self.kind}", query), 400, "rest_invalid_param", name)


@pytest.fixture(scope="module", params=TERMS, ids=lambda term: term.kind)
def term_set(request: pytest.FixtureRequest, start_app_for_module: Callable[..., RunningApp]) -> TermSet:
    return TermSet(start_app_for_module(), request.param)


def test_terms_without_published_events_are_hidden_by_default(term_set: TermSet) -> None:
    assert term_set.ids() == term_set.ids(hide_empty=1) == [term_set.apple, term_set.banana]
    for no in ("0", "false", "no", "off", "FALSE"):
        assert term_set.ids(hide_empty=no) == term_set.terms
    for yes in ("1", "true", "yes", "on"):
        assert term_set.ids(hide_empty=yes) == [term_set.apple, term_set.banana]
    for wrong in ("", "2", "maybe"):
        term_set.assert_rejected("hide_empty", hide_empty=wrong)


@pytest.mark.quick("categories-name-order0", "tags-description-order5")
@pytest.mark.parametrize(
    ("orderby", "order"),
    [
        ("name", [0, 1, 2, 3]),
        ("id", [0, 1, 2, 3]),
        ("term_id", [0, 1, 2, 3]),
        ("slug", [0, 1, 2, 3]),
        ("count", [2, 3, 1, 0]),
        ("description", [2, 1, 0, 3]),
    ],
)
def test_term_orders(term_set: TermSet, orderby: str, order: list[int]) -> None:
    expected = [term_set.terms[n] for n in order]
    assert term_set.ids(hide_empty=0, orderby=orderby) == expected
    assert term_set.ids(hide_empty=0, orderby=orderby, order="asc") == expected
    assert term_set.ids(hide_empty=0, orderby=orderby.upper(), order="DESC") == expected[::-1]


def test_names_are_ordered_ignoring_case_and_accents(term_set: TermSet) -> None:
    assert term_set.ids(hide_empty=0) == term_set.terms
    assert term_set.ids(hide_empty=0, order="desc") == term_set.terms[::-1]


def test_order_of_include_list(term_set: TermSet) -> None:
    ids = [term_set.cherry, term_set.apple, term_set.date]
    text = ",".join(map(str, ids))
    assert term_set.ids(hide_empty=0, include=text, orderby="include") == ids
    assert term_set.ids(hide_empty=0, include=text, orderby="include", order="desc") == ids[::-1]
    assert term_set.ids(hide_empty=0, include=text) == [term_set.apple, term_set.cherry, term_set.date]


@pytest.mark.quick("categories-order-wrong0", "tags-orderby-wrong1")
@pytest.mark.parametrize(
    ("name", "wrong"), [("order", ["up", "", "asc,desc"]), ("orderby", ["salary", "", "id;--", "r.id"])]
)
def test_unknown_orders_are_rejected(term_set: TermSet, name: str, wrong: list[str]) -> None:
    for value in wrong:
        term_set.assert_rejected(name, **{name: value})


@pytest.mark.quick("categories-pf-expected0", "tags-e-expected13")
@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ("pf", [0]), ("APFEL", [0]), ("äpfel", [0]), ("an", [1]), ("banana", [1]), ("100%", [2]), ("%", [2]),
        ("_", [3]),
        ("date_", [3]), ("cherry-100", [2]), ("red fruit", []), ("\\", []), ("zzz", []), ("e", [0, 2, 3]),
    ],
)  # fmt: skip
def test_search_covers_names_and_slugs(term_set: TermSet, search: str, expected: list[int]) -> None:
    assert term_set.ids(hide_empty=0, search=search) == [term_set.terms[n] for n in expected]


def test_empty_or_too_long_search_is_rejected(term_set: TermSet) -> None:
    for wrong in ("", "x" * 201):
        term_set.assert_rejected("search", search=wrong)


def test_include_and_exclude(term_set: TermSet) -> None:
    assert term_set.ids(include=term_set.cherry, hide_empty=0) == [term_set.cherry]
    assert term_set.ids(exclude=f"{term_set.apple}, {term_set.date}", hide_empty=0) == [
        term_set.banana,
        term_set.cherry,
    ]
    assert term_set.ids(include=f"{term_set.apple},{term_set.banana}", exclude=term_set.apple) == [term_set.banana]
    assert term_set.ids(**{"include[]": [term_set.apple, term_set.cherry]}, hide_empty=0) == [
        term_set.apple,
        term_set.cherry,
    ]


@pytest.mark.quick("categories-999999-include", "tags-{foreign}-exclude")
@pytest.mark.parametrize("name", ["include", "exclude"])
@pytest.mark.parametrize("wrong", ["999999", "apfel", "", "0", "-1", "1.5", ",", "{apple},999999", "{foreign}"])
def test_ids_of_other_kinds_are_rejected(term_set: TermSet, name: str, wrong: str) -> None:
    term_set.assert_rejected(name, **{name: wrong.format(apple=term_set.apple, foreign=term_set.foreign)})


def test_slug_filter(term_set: TermSet) -> None:
    assert term_set.ids(slug="bananas") == term_set.ids(slug="BANANAS") == [term_set.banana]
    assert term_set.ids(slug="apfel") == term_set.ids(slug="Äpfel") == [term_set.apple]
    assert term_set.ids(slug="cherry-100", hide_empty=0) == [term_set.cherry]
    assert term_set.ids(slug="cherry-100") == term_set.ids(slug="nothing") == []
    term_set.assert_rejected("slug", slug="")


@pytest.mark.quick("categories-post", "tags-event")
@pytest.mark.parametrize("name", ["post", "event"])
def test_event_filter_lists_linked_terms(term_set: TermSet, name: str) -> None:
    assert term_set.ids(**{name: term_set.both}) == [term_set.apple, term_set.banana]
    assert term_set.ids(**{name: term_set.both}, order="desc") == [term_set.banana, term_set.apple]
    assert term_set.ids(**{name: term_set.one}) == [term_set.apple]
    for wrong in (999999, "x", 0, "", "1,2"):
        term_set.assert_rejected(name, **{name: wrong})


def test_event_overrides_post(term_set: TermSet) -> None:
    assert term_set.ids(post=term_set.both, event=term_set.one) == [term_set.apple]


def test_terms_of_unpublished_event_need_read_permission(term_set: TermSet) -> None:
    assert term_set.editor.ids(term_set.kind, event=term_set.draft) == [term_set.date]
    for name in ("event", "post"):
        response = term_set.anonymous.get(f"/{term_set.kind}", {name: term_set.draft})
        assert response.status_code == 400 or response.json()["total"] == 0, response.text


def test_filters_combine(term_set: TermSet) -> None:
    assert term_set.ids(search="an", event=term_set.both) == [term_set.banana]
    assert term_set.ids(search="an", event=term_set.one) == []
    assert term_set.ids(slug="apfel", exclude=term_set.apple) == []


def test_unsupported_parameters_are_ignored(term_set: TermSet) -> None:
    plain = term_set.anonymous.page(term_set.kind)
    for query in ({"offset": 1}, {"context": "edit"}, {"number": 1}):
        assert term_set.anonymous.page(term_set.kind, **query) == plain
    if term_set.kind == "tags":
        assert term_set.anonymous.page("tags", parent=999999) == plain


def test_all_roles_see_same_terms(term_set: TermSet) -> None:
    pages = [
        term_set.editor.app.caller(role).page(term_set.kind, hide_empty=0)
        for role in ("anonymous", "subscriber", "editor")
    ]
    assert pages[0] == pages[1] == pages[2]


def test_equal_names_are_ordered_by_id(start_app: Callable[..., RunningApp], term: Sample) -> None:
    editor = start_app().caller("editor")
    ids = [editor.create(term.kind, name="Same", slug=f"same-{n}")["id"] for n in range(5)]
    pages = [editor.page(term.kind, hide_empty=0, per_page=2, page=page)[term.kind] for page in (1, 2, 3)]
    assert [entry["id"] for page in pages for entry in page] == ids
