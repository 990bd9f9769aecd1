"""Categories under categories: moving, loops, what happens to children, slugs that name the parent."""

from typing import Any

import pytest

from tests.api.running_app import NS, Caller, assert_refused, done
from tests.api.sample_records import unique


def category(caller: Caller, parent: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    body = {"name": unique("category"), **fields}
    return caller.create("categories", **body, **({"parent": parent["id"]} if parent else {}))


def test_child_links_to_parent_and_has_nested_url(anonymous: Caller, author: Caller) -> None:
    top = category(author)
    middle = category(author, top)
    leaf = category(author, middle)
    assert (top["parent"], middle["parent"], leaf["parent"]) == (0, top["id"], middle["id"])
    assert "up" not in top["urls"]
    assert leaf["urls"]["up"] == f"{NS}/categories/{middle['id']}"
    assert leaf["url"] == f"http://calendar.test/events/category/{top['slug']}/{middle['slug']}/{leaf['slug']}/"
    for made in (top, middle, leaf):
        assert anonymous.read("categories", made["id"]) == made


def test_category_moves_with_its_descendants(author: Caller) -> None:
    first, second = category(author), category(author)
    middle = category(author, first)
    leaf = category(author, middle)
    moved = author.change("categories", middle["id"], parent=second["id"])
    assert moved["parent"] == second["id"]
    assert author.read("categories", leaf["id"])["url"] == (
        f"http://calendar.test/events/category/{second['slug']}/{middle['slug']}/{leaf['slug']}/"
    )


@pytest.mark.parametrize("top", [0, "0", None])
def test_category_moves_to_top_level(author: Caller, top: object) -> None:
    child = category(author, category(author))
    moved = author.change("categories", child["id"], parent=top)
    assert moved["parent"] == 0
    assert moved["url"] == f"http://calendar.test/events/category/{child['slug']}/"
    assert category(author, parent=None)["parent"] == 0
    assert done(author.post("/categories", {"name": unique("c"), "parent": top}), 201)["parent"] == 0


def test_omitted_parent_is_unchanged(author: Caller) -> None:
    parent = category(author)
    child = category(author, parent)
    assert author.change("categories", child["id"], description="x")["parent"] == parent["id"]


@pytest.mark.parametrize("parent", [999999, "999999", "music", -1, 1.5, True, [], [1], {}, "", "1,2", 2**60])
def test_invalid_parent_is_rejected(author: Caller, parent: object) -> None:
    answer = author.post("/categories", {"name": unique("c"), "parent": parent})
    assert_refused(answer, 400, "rest_invalid_param", "parent")
    made = category(author)
    answer = author.patch(f"/categories/{made['id']}", {"parent": parent})
    assert_refused(answer, 400, "rest_invalid_param", "parent")


def test_tag_cannot_be_parent(author: Caller, editor: Caller) -> None:
    tag = editor.create("tags", name=unique("tag"))
    answer = author.post("/categories", {"name": unique("c"), "parent": tag["id"]})
    assert_refused(answer, 400, "rest_invalid_param", "parent")


def test_cyclic_parents_are_rejected(author: Caller) -> None:
    top = category(author)
    middle = category(author, top)
    leaf = category(author, middle)
    for above, below in ((top, top), (top, middle), (top, leaf), (middle, leaf)):
        answer = author.patch(f"/categories/{above['id']}", {"parent": below["id"]})
        assert_refused(answer, 400, "rest_invalid_param", "parent")
    assert author.read("categories", top["id"]) == top
    assert author.change("categories", leaf["id"], parent=top["id"])["parent"] == top["id"]


def test_children_of_deleted_category_move_up(author: Caller) -> None:
    top = category(author)
    middle = category(author, top)
    leaves = [category(author, middle) for _ in range(2)]
    done(author.delete(f"/categories/{middle['id']}"))
    for leaf in leaves:
        assert author.read("categories", leaf["id"])["parent"] == top["id"]
    done(author.delete(f"/categories/{top['id']}"))
    for leaf in leaves:
        moved = author.read("categories", leaf["id"])
        assert (moved["parent"], moved["url"]) == (0, f"http://calendar.test/events/category/{leaf['slug']}/")


def test_children_that_move_up_get_new_revision(author: Caller) -> None:
    top = category(author)
    child = category(author, top)
    before = author.get(f"/categories/{child['id']}").headers["etag"]
    done(author.delete(f"/categories/{top['id']}"))
    stale = author.patch(f"/categories/{child['id']}", {"name": unique("x")}, headers={"If-Match": before})
    assert_refused(stale, 412, "rest_precondition_failed")


def test_name_is_unique_among_siblings_only(author: Caller) -> None:
    top, other = category(author), category(author)
    name = unique("shared")
    child = category(author, top, name=name)
    data = assert_refused(author.post("/categories", {"name": name, "parent": top["id"]}), 400, "term_exists")
    assert data["term_id"] == child["id"]
    second = category(author, other, name=name)
    assert second["slug"] == f"{child['slug']}-{other['slug']}"
    third = category(author, name=name)
    assert third["slug"] == f"{child['slug']}-2"


def test_parent_filter_lists_direct_children(anonymous: Caller, author: Caller) -> None:
    top = category(author)
    middle = category(author, top)
    leaf = category(author, middle)
    assert anonymous.ids("categories", parent=top["id"], hide_empty=0) == [middle["id"]]
    assert anonymous.ids("categories", parent=middle["id"], hide_empty=0) == [leaf["id"]]
    assert anonymous.ids("categories", parent=leaf["id"], hide_empty=0) == []
    tops = anonymous.ids("categories", parent=0, hide_empty=0, include=f"{top['id']},{middle['id']},{leaf['id']}")
    assert tops == [top["id"]]
    assert_refused(anonymous.get("/categories", {"parent": 999999}), 400, "rest_invalid_param", "parent")


def test_deep_tree_can_be_displayed_and_searched(anonymous: Caller, author: Caller, editor: Caller) -> None:
    line = [category(author)]
    for _ in range(30):
        line.append(category(author, line[-1]))
    path = "/".join(made["slug"] for made in line)
    assert anonymous.read("categories", line[-1]["id"])["url"] == f"http://calendar.test/events/category/{path}/"
    event = editor.create(
        "events", title="Deep", start_date="2027-01-01", end_date="2027-01-01", categories=line[-1]["id"]
    )
    assert anonymous.ids("events", categories=line[0]["slug"]) == [event["id"]]
    answer = author.patch(f"/categories/{line[0]['id']}", {"parent": line[-1]["id"]})
    assert_refused(answer, 400, "rest_invalid_param", "parent")
