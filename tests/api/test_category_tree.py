"""Categories under categories: moving, loops, what happens to children, slugs that name the parent."""

from typing import Any

import pytest

from tests.api.running_app import Caller, assert_error, expect_json
from tests.api.sample_records import unique


def create_category(caller: Caller, parent: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    body = {"name": unique("category"), **fields}
    return caller.create("categories", **body, **({"parent": parent["id"]} if parent else {}))


def test_child_links_to_parent_and_has_nested_url(anonymous: Caller, author: Caller) -> None:
    top = create_category(author)
    middle = create_category(author, top)
    leaf = create_category(author, middle)
    assert (top["parent"], middle["parent"], leaf["parent"]) == (0, top["id"], middle["id"])
    assert "up" not in top["urls"]
    assert leaf["urls"]["up"] == f"{author.app.api_url}/categories/{middle['id']}"
    assert leaf["url"] == f"{author.app.base_url}/events/category/{top['slug']}/{middle['slug']}/{leaf['slug']}/"
    for record in (top, middle, leaf):
        assert anonymous.read("categories", record["id"]) == record


def test_category_moves_with_its_descendants(author: Caller) -> None:
    first, second = create_category(author), create_category(author)
    middle = create_category(author, first)
    leaf = create_category(author, middle)
    moved = author.change("categories", middle["id"], parent=second["id"])
    assert moved["parent"] == second["id"]
    assert author.read("categories", leaf["id"])["url"] == (
        f"{author.app.base_url}/events/category/{second['slug']}/{middle['slug']}/{leaf['slug']}/"
    )


@pytest.mark.quick("0_0", "None")
@pytest.mark.parametrize("top", [0, "0", None])
def test_category_moves_to_top_level(author: Caller, top: object) -> None:
    child = create_category(author, create_category(author))
    moved = author.change("categories", child["id"], parent=top)
    assert moved["parent"] == 0
    assert moved["url"] == f"{author.app.base_url}/events/category/{child['slug']}/"
    assert create_category(author, parent=None)["parent"] == 0
    assert expect_json(author.post("/categories", {"name": unique("c"), "parent": top}), 201)["parent"] == 0


def test_omitted_parent_is_unchanged(author: Caller) -> None:
    parent = create_category(author)
    child = create_category(author, parent)
    assert author.change("categories", child["id"], description="x")["parent"] == parent["id"]


@pytest.mark.quick("999999_0", "1152921504606846976")
@pytest.mark.parametrize("parent", [999999, "999999", "music", -1, 1.5, True, [], [1], {}, "", "1,2", 2**60])
def test_invalid_parent_is_rejected(author: Caller, parent: object) -> None:
    response = author.post("/categories", {"name": unique("c"), "parent": parent})
    assert_error(response, 400, "rest_invalid_param", "parent")
    record = create_category(author)
    response = author.patch(f"/categories/{record['id']}", {"parent": parent})
    assert_error(response, 400, "rest_invalid_param", "parent")


def test_tag_cannot_be_parent(author: Caller, editor: Caller) -> None:
    tag = editor.create("tags", name=unique("tag"))
    response = author.post("/categories", {"name": unique("c"), "parent": tag["id"]})
    assert_error(response, 400, "rest_invalid_param", "parent")


def test_cyclic_parents_are_rejected(author: Caller) -> None:
    top = create_category(author)
    middle = create_category(author, top)
    leaf = create_category(author, middle)
    for above, below in ((top, top), (top, middle), (top, leaf), (middle, leaf)):
        response = author.patch(f"/categories/{above['id']}", {"parent": below["id"]})
        assert_error(response, 400, "rest_invalid_param", "parent")
    assert author.read("categories", top["id"]) == top
    assert author.change("categories", leaf["id"], parent=top["id"])["parent"] == top["id"]


def test_children_of_deleted_category_move_up(author: Caller) -> None:
    top = create_category(author)
    middle = create_category(author, top)
    leaves = [create_category(author, middle) for _ in range(2)]
    expect_json(author.delete(f"/categories/{middle['id']}"))
    for leaf in leaves:
        assert author.read("categories", leaf["id"])["parent"] == top["id"]
    expect_json(author.delete(f"/categories/{top['id']}"))
    for leaf in leaves:
        moved = author.read("categories", leaf["id"])
        assert (moved["parent"], moved["url"]) == (0, f"{author.app.base_url}/events/category/{leaf['slug']}/")


def test_children_that_move_up_get_new_revision(author: Caller) -> None:
    top = create_category(author)
    child = create_category(author, top)
    before = author.get(f"/categories/{child['id']}").headers["etag"]
    expect_json(author.delete(f"/categories/{top['id']}"))
    stale = author.patch(f"/categories/{child['id']}", {"name": unique("x")}, headers={"If-Match": before})
    assert_error(stale, 412, "rest_precondition_failed")


def test_name_is_unique_among_siblings_only(author: Caller) -> None:
    top, other = create_category(author), create_category(author)
    name = unique("shared")
    child = create_category(author, top, name=name)
    data = assert_error(author.post("/categories", {"name": name, "parent": top["id"]}), 400, "term_exists")
    assert data["term_id"] == child["id"]
    second = create_category(author, other, name=name)
    assert second["slug"] == f"{child['slug']}-{other['slug']}"
    third = create_category(author, name=name)
    assert third["slug"] == f"{child['slug']}-2"


def test_parent_filter_lists_direct_children(anonymous: Caller, author: Caller) -> None:
    top = create_category(author)
    middle = create_category(author, top)
    leaf = create_category(author, middle)
    assert anonymous.ids("categories", parent=top["id"], hide_empty=0) == [middle["id"]]
    assert anonymous.ids("categories", parent=middle["id"], hide_empty=0) == [leaf["id"]]
    assert anonymous.ids("categories", parent=leaf["id"], hide_empty=0) == []
    tops = anonymous.ids("categories", parent=0, hide_empty=0, include=f"{top['id']},{middle['id']},{leaf['id']}")
    assert tops == [top["id"]]
    assert_error(anonymous.get("/categories", {"parent": 999999}), 400, "rest_invalid_param", "parent")


def test_deep_tree_can_be_displayed_and_searched(anonymous: Caller, author: Caller, editor: Caller) -> None:
    ancestors = [create_category(author)]
    for _ in range(30):
        ancestors.append(create_category(author, ancestors[-1]))
    path = "/".join(record["slug"] for record in ancestors)
    url = f"{author.app.base_url}/events/category/{path}/"
    assert anonymous.read("categories", ancestors[-1]["id"])["url"] == url
    event = editor.create(
        "events", title="Deep", start_date="2027-01-01", end_date="2027-01-01", categories=ancestors[-1]["id"]
    )
    assert anonymous.ids("events", categories=ancestors[0]["slug"]) == [event["id"]]
    response = author.patch(f"/categories/{ancestors[0]['id']}", {"parent": ancestors[-1]["id"]})
    assert_error(response, 400, "rest_invalid_param", "parent")
