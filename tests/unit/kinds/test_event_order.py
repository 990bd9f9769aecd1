"""The order of a list of events, and the cursor that continues it."""

import base64
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from kalends.calendar.kinds.event_window import (
    ORDERS,
    Cursor,
    build_next_cursor,
    build_order_by,
    cursor_condition,
    join_distance,
    read_cursor,
    read_order,
    read_radius,
)
from kalends.core.errors import InvalidValue
from tests.unit.kinds.conftest import MakeQuery

INSTANT = datetime(2026, 3, 29, 10, 0, 0, 123456, tzinfo=UTC)
KEYS: dict[str, object] = {"id": 41, "title": "Concert", "distance": 12.5}


def make_keys(orderby: str) -> tuple[object, ...]:
    return tuple(KEYS.get(column, INSTANT) for column in ORDERS[orderby])


def encode(*parts: Any) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(list(parts))).decode().rstrip("=")


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("orderby", ORDERS)
def test_cursor_survives_encoding(orderby: str, order: str) -> None:
    cursor = Cursor(orderby, order, make_keys(orderby))
    assert read_cursor(cursor.text()) == cursor


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*",
        "é",
        encode(),
        encode("start_date"),
        encode("unknown", "asc", 1),
        encode("title", "up", "Concert", 1),
        encode("title", "asc", "Concert"),
        encode("title", "asc", "Concert", 1, 2),
        encode("title", "asc", "a\0b", 1),
        encode("title", "asc", 5, 1),
        encode("title", "asc", "Concert", -1),
        encode("title", "asc", "Concert", 10**19),
        encode("title", "asc", "Concert", "x"),
        encode("date", "asc", "yesterday", 1),
        encode("date", "asc", 5, 1),
        encode("distance", "asc", "far", 1),
        encode(["title"], "asc", "Concert", 1),
    ],
)
def test_invalid_cursor_is_rejected(text: str) -> None:
    with pytest.raises(InvalidValue):
        read_cursor(text)


@pytest.mark.parametrize(
    ("values", "order"),
    [
        ({}, ("start_date", "asc")),
        ({"order": "desc"}, ("start_date", "desc")),
        ({"include": [1]}, ("date", "asc")),
        ({"include": [1], "orderby": "title"}, ("title", "asc")),
    ],
)
def test_default_order_depends_on_include(
    make_query: MakeQuery, values: dict[str, Any], order: tuple[str, str]
) -> None:
    assert read_order(make_query(**values)) == order


@pytest.mark.parametrize("orderby", ORDERS)
def test_every_order_ends_with_the_id(make_query: MakeQuery, orderby: str) -> None:
    assert build_order_by(make_query(orderby=orderby), "r.").text.split(", ")[-1] == "r.id"
    assert build_order_by(make_query(orderby=orderby, order="desc"), "r.").text.endswith("r.id DESC")


@pytest.mark.parametrize(("order", "sign"), [("asc", ") > ("), ("desc", ") < (")])
@pytest.mark.parametrize("orderby", ORDERS)
def test_cursor_condition_compares_all_columns(make_query: MakeQuery, orderby: str, order: str, sign: str) -> None:
    keys = make_keys(orderby)
    condition = cursor_condition(make_query(orderby=orderby, order=order, cursor=Cursor(orderby, order, keys)))
    assert sign in condition.text
    assert condition.values == keys
    assert condition.text.count("?") == len(keys)


def test_next_cursor_names_last_record_of_page(make_query: MakeQuery) -> None:
    rows = [{"title": title, "id": n} for n, title in enumerate(("a", "b"), 1)]
    text = build_next_cursor(make_query(orderby="title", per_page=2), rows, total=3)
    assert text is not None
    assert read_cursor(text) == Cursor("title", "asc", ("b", 2))


@pytest.mark.parametrize(("page", "total"), [(1, 2), (2, 4), (3, 4)])
def test_last_page_has_no_next_cursor(make_query: MakeQuery, page: int, total: int) -> None:
    rows = [{"title": "a", "id": 1}, {"title": "b", "id": 2}]
    assert build_next_cursor(make_query(orderby="title", page=page, per_page=2), rows, total) is None


def test_empty_page_has_no_next_cursor(make_query: MakeQuery) -> None:
    assert build_next_cursor(make_query(page=2), [], total=100) is None


def test_list_by_cursor_continues_only_when_another_row_was_read(make_query: MakeQuery) -> None:
    rows = [{"title": letter, "id": n} for n, letter in enumerate("abc", 1)]
    query = make_query(orderby="title", per_page=2, cursor=Cursor("title", "asc", ("", 0)))
    text = build_next_cursor(query, rows, total=0)
    assert text is not None
    assert read_cursor(text).keys == ("b", 2)
    assert build_next_cursor(query, rows[:2], total=0) is None


def test_cursor_contains_only_the_compared_part_of_a_title(make_query: MakeQuery) -> None:
    text = build_next_cursor(make_query(orderby="title", per_page=1), [{"title": "x" * 5000, "id": 1}], total=2)
    assert text is not None
    assert read_cursor(text).keys == ("x" * 200, 1)


def test_distance_is_joined_only_for_its_order(make_query: MakeQuery) -> None:
    place = {"geoloc_lat": 52.5, "geoloc_lng": 13.4}
    assert join_distance(make_query(**place), INSTANT, None).text == ""
    joined = join_distance(make_query(**place, orderby="distance", geoloc_radius=2.0), INSTANT, INSTANT)
    joined.render()
    assert joined.values == (13.4, 52.5, 7, 13.4, 52.5, 2000.0, 7, INSTANT, INSTANT)


def test_default_radius_is_40_kilometres(make_query: MakeQuery) -> None:
    assert read_radius(make_query()) == 40_000
