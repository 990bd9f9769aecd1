"""The trash: deleting, restoring, and the slugs of events, venues and organizers on the way (behaviour 4.7, 7.3)."""

from typing import Any

import pytest

from tests.api.running_app import Caller, assert_error, expect_json
from tests.api.sample_records import DATES, Sample, unique

# A venue or organizer with a date is always a new record, even if another one has the same data.
DATED = {"date": "2026-01-01"}
NOT_READABLE_CODES = {
    "events": "event-no-longer-available",
    "venues": "venue-not-accessible",
    "organizers": "organizer-not-accessible",
}


def without_times(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if not key.startswith("modified") and key != "json_ld"}


@pytest.fixture
def record(editor: Caller, post: Sample) -> dict[str, Any]:
    return editor.create(post.kind, **post.body(description="kept"))


def test_delete_moves_record_to_trash(editor: Caller, post: Sample, record: dict[str, Any]) -> None:
    trashed = expect_json(editor.delete(f"/{post.kind}/{record['id']}?force=true"))
    expected = {
        **record,
        "status": "trash",
        "slug": record["slug"] + "__trashed",
        "url": f"{editor.app.base_url}/?p={record['id']}",
    }
    if post.kind == "events":
        expected["website"] = expected["url"]
    assert without_times(trashed) == without_times(expected)
    assert record["id"] in editor.ids(post.kind, status="trash")
    assert record["id"] not in editor.ids(post.kind)


def test_status_trash_moves_record_to_trash(editor: Caller, post: Sample, record: dict[str, Any]) -> None:
    trashed = editor.change(post.kind, record["id"], status="trash")
    assert (trashed["status"], trashed["slug"]) == ("trash", record["slug"] + "__trashed")
    assert editor.change(post.kind, record["id"], status="trash") == trashed


def test_deleting_twice_is_410(editor: Caller, post: Sample, record: dict[str, Any]) -> None:
    editor.trash(post.kind, record["id"])
    assert_error(editor.delete(f"/{post.kind}/{record['id']}"), 410, f"{post.singular}-is-in-trash")
    by_slug = editor.delete(f"/{post.kind}/by-slug/{record['slug']}__trashed")
    assert_error(by_slug, 410, f"{post.singular}-is-in-trash")
    assert_error(editor.delete(f"/{post.kind}/by-slug/{record['slug']}"), 404, f"rest-{post.singular}-not-found")


def test_delete_by_slug(editor: Caller, post: Sample, record: dict[str, Any]) -> None:
    trashed = expect_json(editor.delete(f"/{post.kind}/by-slug/{record['slug'].upper()}"))
    assert (trashed["id"], trashed["status"]) == (record["id"], "trash")


def test_read_permissions_of_trashed_records(
    anonymous: Caller, author: Caller, editor: Caller, post: Sample, record: dict[str, Any]
) -> None:
    assert anonymous.read(post.kind, record["id"])["id"] == record["id"]
    trashed = editor.trash(post.kind, record["id"])
    for path in (f"/{post.kind}/{record['id']}", f"/{post.kind}/by-slug/{trashed['slug']}"):
        for caller in (anonymous, author):
            assert_error(caller.get(path), 403, NOT_READABLE_CODES[post.kind])
        if post.kind == "events":
            assert_error(editor.get(path), 403, "event-no-longer-available")
        else:
            assert without_times(expect_json(editor.get(path))) == without_times(trashed)


@pytest.mark.quick("events-publish", "organizers-private")
@pytest.mark.parametrize("status", ["publish", "draft", "pending", "private"])
def test_setting_status_restores_record_with_old_slug(
    editor: Caller, post: Sample, record: dict[str, Any], status: str
) -> None:
    editor.trash(post.kind, record["id"])
    restored = editor.change(post.kind, record["id"], status=status)
    assert (restored["status"], restored["slug"], restored["description"]) == (status, record["slug"], "<p>kept</p>")
    assert editor.read(post.kind, record["id"])["status"] == status


def test_other_updates_leave_record_in_trash(editor: Caller, post: Sample, record: dict[str, Any]) -> None:
    trashed = editor.trash(post.kind, record["id"])
    changed = editor.change(post.kind, record["id"], description="new")
    assert without_times(changed) == without_times({**trashed, "description": "<p>new</p>"})


def test_slug_is_free_while_record_is_trashed(editor: Caller, post: Sample) -> None:
    name = unique("twin")
    first = editor.create(post.kind, **post.body(**{post.name_param: name}))
    editor.trash(post.kind, first["id"])
    second = editor.create(post.kind, **post.body(**{post.name_param: name}))
    assert second["slug"] == first["slug"]
    assert editor.trash(post.kind, second["id"])["slug"] == f"{first['slug']}__trashed-2"
    assert editor.change(post.kind, second["id"], status="publish")["slug"] == first["slug"]
    assert editor.change(post.kind, first["id"], status="publish")["slug"] == f"{first['slug']}-2"


def test_slug_of_maximum_length_is_restored(editor: Caller, post: Sample) -> None:
    """The mark of the trash does not fit behind a slug of full length."""
    name = unique("a" * 195 + " b")[:198]
    body = post.body(**{post.name_param: name}, **DATED)
    first, second = (editor.create(post.kind, **body)["slug"] for _ in range(2))
    by_slug = {slug: expect_json(editor.get(f"/{post.kind}/by-slug/{slug}"))["id"] for slug in (first, second)}
    for slug, record_id in by_slug.items():
        trashed = editor.trash(post.kind, record_id)["slug"]
        assert (trashed != slug, trashed.endswith("__trashed")) == (True, True)
    for slug, record_id in by_slug.items():
        assert editor.change(post.kind, record_id, status="publish")["slug"] == slug


def test_shared_slug_of_maximum_length_is_restored(editor: Caller, post: Sample) -> None:
    name = unique("c" * 195 + " d")[:200]
    ids, slugs = [], []
    for _ in range(2):
        record = editor.create(post.kind, **post.body(**{post.name_param: name}))
        ids.append(record["id"])
        slugs.append(record["slug"])
        editor.trash(post.kind, record["id"])
    assert slugs[0] == slugs[1]
    assert editor.change(post.kind, ids[1], status="publish")["slug"] == slugs[1]


def test_slug_containing_trash_suffix_is_unchanged(editor: Caller) -> None:
    record = editor.create("events", title="Marked", slug="a__trashed-story", status="draft", **DATES)
    assert record["slug"] == "a__trashed-story"
    assert editor.change("events", record["id"], status="publish")["slug"] == "a__trashed-story"


def test_trashed_links_disappear_from_events_until_restored(anonymous: Caller, editor: Caller, place: Sample) -> None:
    ids = [editor.create(place.kind, **place.body())["id"] for _ in range(2)]
    event = editor.create("events", title="Linked", **DATES, **{place.singular: ids})["id"]

    def linked_ids() -> list[int]:
        records = anonymous.read("events", event)[place.singular]
        return [one["id"] for one in (records if isinstance(records, list) else [records])]

    assert linked_ids() == ids
    editor.trash(place.kind, ids[0])
    assert linked_ids() == [ids[1]]
    editor.change(place.kind, ids[0], status="publish")
    assert linked_ids() == ids


# Slugs ----------------------------------------------------------------------------------------


def test_equal_names_are_numbered(editor: Caller, post: Sample) -> None:
    name = unique("many")
    slugs = [editor.create(post.kind, **post.body(**{post.name_param: name}, **DATED))["slug"] for _ in range(42)]
    base = name.lower().replace(" ", "-")
    assert slugs == [base, *(f"{base}-{n}" for n in range(2, 43))]


def test_slugs_are_unique_per_kind_only(editor: Caller) -> None:
    name = unique("shared")
    slugs = [
        editor.create("events", title=name, **DATES)["slug"],
        editor.create("venues", venue=name)["slug"],
        editor.create("organizers", organizer=name)["slug"],
    ]
    assert set(slugs) == {name.lower().replace(" ", "-")}


@pytest.mark.quick("events-Caf\\xe9 Z\\xfcrich \\u2014", "organizers-title3-slug3")
@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("Café Zürich — <b>Jazz</b> & Blues!", "cafe-zurich-jazz-blues"),
        ("日本 2027", "%e6%97%a5%e6%9c%ac-2027"),
        ("under_score / slash.dot", "under_score-slash-dot"),
        ("x" * 300, "x" * 200),
    ],
)
def test_slugs_are_derived_from_names(anonymous: Caller, editor: Caller, post: Sample, title: str, slug: str) -> None:
    record = editor.create(post.kind, **post.body(**{post.name_param: title}))
    assert record["slug"] == slug
    assert anonymous.get(f"/{post.kind}/by-slug/{slug.replace('%', '%25')}").status_code == 200
    decoded = "日本-2027" if slug.startswith("%") else slug
    assert expect_json(anonymous.get(f"/{post.kind}/by-slug/{decoded}"))["id"] == record["id"]


def test_name_without_letters_gets_id_as_slug(editor: Caller, post: Sample) -> None:
    record = editor.create(post.kind, **post.body(**{post.name_param: "!!! ???"}))
    assert record["slug"] == str(record["id"])


def test_draft_event_gets_slug_on_publication(editor: Caller, post: Sample) -> None:
    record = editor.create(post.kind, **post.body(status="draft"))
    slug = record[post.name_param].lower().replace(" ", "-")
    assert record.get("slug", "") == ("" if post.kind == "events" else slug)
    assert editor.change(post.kind, record["id"], status="publish")["slug"] == slug


def test_draft_event_without_slug_survives_trash(editor: Caller) -> None:
    record = editor.create("events", title=unique("draft"), status="draft", **DATES)
    editor.trash("events", record["id"])
    assert editor.change("events", record["id"], status="draft")["slug"] == ""
    assert editor.change("events", record["id"], status="private")["slug"] == record["title"].lower().replace(
        " ", "-"
    )


def test_explicit_event_slug_is_preserved(editor: Caller) -> None:
    record = editor.create("events", title=unique("own"), slug="My Own Slug!", status="draft", **DATES)
    assert record["slug"] == "my-own-slug"
    assert editor.change("events", record["id"], title="Other", status="publish")["slug"] == "my-own-slug"
    assert editor.change("events", record["id"], slug="my-own-slug")["slug"] == "my-own-slug"
    for nothing in ("", "!!!", None):
        assert editor.change("events", record["id"], slug=nothing)["slug"] == "my-own-slug"
    second = editor.create("events", title=unique("own"), slug="MY own-slug", **DATES)
    assert second["slug"] == "my-own-slug-2"
    assert editor.change("events", second["id"], slug="my-own-slug")["slug"] == "my-own-slug-2"
    assert_error(editor.post("/events", {"title": "x", **DATES, "slug": 5}), 400, "rest_invalid_param", "slug")
