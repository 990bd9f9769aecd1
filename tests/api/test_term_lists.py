"""Lists of categories and tags: every parameter (behaviour 8.5)."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.api.running_app import Interface, assert_refused
from tests.api.sample_records import DATES, TERMS, Sample


class Shelf:
    """Four terms in a database of their own: Äpfel (2 events), bananas (1), Cherry, and a draft's date."""

    def __init__(self, interface: Interface, term: Sample) -> None:
        self.editor, self.anonymous = interface.caller("editor"), interface.caller()
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

    def refused(self, name: str, **query: Any) -> None:
        assert_refused(self.anonymous.get(f"/{self.kind}", query), 400, "rest_invalid_param", name)


@pytest.fixture(scope="module", params=TERMS, ids=lambda term: term.kind)
def shelf(request: pytest.FixtureRequest, fresh_for_module: Callable[..., Interface]) -> Shelf:
    return Shelf(fresh_for_module(), request.param)


def test_terms_without_published_events_are_hidden_by_default(shelf: Shelf) -> None:
    assert shelf.ids() == shelf.ids(hide_empty=1) == [shelf.apple, shelf.banana]
    for no in ("0", "false", "no", "off", "FALSE"):
        assert shelf.ids(hide_empty=no) == shelf.terms
    for yes in ("1", "true", "yes", "on"):
        assert shelf.ids(hide_empty=yes) == [shelf.apple, shelf.banana]
    for wrong in ("", "2", "maybe"):
        shelf.refused("hide_empty", hide_empty=wrong)


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
def test_term_orders(shelf: Shelf, orderby: str, order: list[int]) -> None:
    expected = [shelf.terms[n] for n in order]
    assert shelf.ids(hide_empty=0, orderby=orderby) == expected
    assert shelf.ids(hide_empty=0, orderby=orderby, order="asc") == expected
    assert shelf.ids(hide_empty=0, orderby=orderby.upper(), order="DESC") == expected[::-1]


def test_names_are_ordered_ignoring_case_and_accents(shelf: Shelf) -> None:
    assert shelf.ids(hide_empty=0) == shelf.terms
    assert shelf.ids(hide_empty=0, order="desc") == shelf.terms[::-1]


def test_order_of_include_list(shelf: Shelf) -> None:
    wanted = [shelf.cherry, shelf.apple, shelf.date]
    text = ",".join(map(str, wanted))
    assert shelf.ids(hide_empty=0, include=text, orderby="include") == wanted
    assert shelf.ids(hide_empty=0, include=text, orderby="include", order="desc") == wanted[::-1]
    assert shelf.ids(hide_empty=0, include=text) == [shelf.apple, shelf.cherry, shelf.date]


@pytest.mark.parametrize(
    ("name", "wrong"), [("order", ["up", "", "asc,desc"]), ("orderby", ["salary", "", "id;--", "r.id"])]
)
def test_unknown_orders_are_rejected(shelf: Shelf, name: str, wrong: list[str]) -> None:
    for value in wrong:
        shelf.refused(name, **{name: value})


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("pf", [0]), ("APFEL", [0]), ("äpfel", [0]), ("an", [1]), ("banana", [1]), ("100%", [2]), ("%", [2]),
        ("_", [3]),
        ("date_", [3]), ("cherry-100", [2]), ("red fruit", []), ("\\", []), ("zzz", []), ("e", [0, 2, 3]),
    ],
)  # fmt: skip
def test_search_covers_names_and_slugs(shelf: Shelf, search: str, found: list[int]) -> None:
    assert shelf.ids(hide_empty=0, search=search) == [shelf.terms[n] for n in found]


def test_empty_or_too_long_search_is_rejected(shelf: Shelf) -> None:
    for wrong in ("", "x" * 201):
        shelf.refused("search", search=wrong)


def test_include_and_exclude(shelf: Shelf) -> None:
    assert shelf.ids(include=shelf.cherry, hide_empty=0) == [shelf.cherry]
    assert shelf.ids(exclude=f"{shelf.apple}, {shelf.date}", hide_empty=0) == [shelf.banana, shelf.cherry]
    assert shelf.ids(include=f"{shelf.apple},{shelf.banana}", exclude=shelf.apple) == [shelf.banana]
    assert shelf.ids(**{"include[]": [shelf.apple, shelf.cherry]}, hide_empty=0) == [shelf.apple, shelf.cherry]


@pytest.mark.parametrize("name", ["include", "exclude"])
@pytest.mark.parametrize("wrong", ["999999", "apfel", "", "0", "-1", "1.5", ",", "{apple},999999", "{foreign}"])
def test_ids_of_other_kinds_are_rejected(shelf: Shelf, name: str, wrong: str) -> None:
    shelf.refused(name, **{name: wrong.format(apple=shelf.apple, foreign=shelf.foreign)})


def test_slug_filter(shelf: Shelf) -> None:
    assert shelf.ids(slug="bananas") == shelf.ids(slug="BANANAS") == [shelf.banana]
    assert shelf.ids(slug="apfel") == shelf.ids(slug="Äpfel") == [shelf.apple]
    assert shelf.ids(slug="cherry-100", hide_empty=0) == [shelf.cherry]
    assert shelf.ids(slug="cherry-100") == shelf.ids(slug="nothing") == []
    shelf.refused("slug", slug="")


@pytest.mark.parametrize("name", ["post", "event"])
def test_event_filter_lists_linked_terms(shelf: Shelf, name: str) -> None:
    assert shelf.ids(**{name: shelf.both}) == [shelf.apple, shelf.banana]
    assert shelf.ids(**{name: shelf.both}, order="desc") == [shelf.banana, shelf.apple]
    assert shelf.ids(**{name: shelf.one}) == [shelf.apple]
    for wrong in (999999, "x", 0, "", "1,2"):
        shelf.refused(name, **{name: wrong})


def test_event_overrides_post(shelf: Shelf) -> None:
    assert shelf.ids(post=shelf.both, event=shelf.one) == [shelf.apple]


def test_terms_of_unpublished_event_need_read_permission(shelf: Shelf) -> None:
    assert shelf.editor.ids(shelf.kind, event=shelf.draft) == [shelf.date]
    for name in ("event", "post"):
        answer = shelf.anonymous.get(f"/{shelf.kind}", {name: shelf.draft})
        assert answer.status_code == 400 or answer.json()["total"] == 0, answer.text


def test_filters_combine(shelf: Shelf) -> None:
    assert shelf.ids(search="an", event=shelf.both) == [shelf.banana]
    assert shelf.ids(search="an", event=shelf.one) == []
    assert shelf.ids(slug="apfel", exclude=shelf.apple) == []


def test_unsupported_parameters_are_ignored(shelf: Shelf) -> None:
    plain = shelf.anonymous.page(shelf.kind)
    for query in ({"offset": 1}, {"context": "edit"}, {"number": 1}):
        assert shelf.anonymous.page(shelf.kind, **query) == plain
    if shelf.kind == "tags":
        assert shelf.anonymous.page("tags", parent=999999) == plain


def test_all_roles_see_same_terms(shelf: Shelf) -> None:
    pages = [
        shelf.editor.interface.caller(role).page(shelf.kind, hide_empty=0)
        for role in ("anonymous", "subscriber", "editor")
    ]
    assert pages[0] == pages[1] == pages[2]


def test_equal_names_are_ordered_by_id(fresh: Callable[..., Interface], term: Sample) -> None:
    editor = fresh().caller("editor")
    ids = [editor.create(term.kind, name="Same", slug=f"same-{n}")["id"] for n in range(5)]
    pages = [editor.page(term.kind, hide_empty=0, per_page=2, page=page)[term.kind] for page in (1, 2, 3)]
    assert [entry["id"] for page in pages for entry in page] == ids
