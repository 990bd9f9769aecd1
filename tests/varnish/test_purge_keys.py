"""The cache tags that a write purges."""

import json
import re
from types import SimpleNamespace
from typing import cast

from kalends.operations.cache_tags import (
    MAX_PURGED_TAGS,
    MAX_TAGS_PER_REQUEST,
    batch_tags,
    tags_for_change,
    tags_for_changes,
)
from kalends.store.sites import Site


def change_row(kind="events", record_id=5, before=None, after=None, **now) -> dict:
    encoded = {"before": before and json.dumps(before), "after": after and json.dumps(after)}
    return {"kind": kind, "record_id": record_id, "category_ids": [], "tag_ids": [], **encoded, **now}


def make_site(number: int) -> Site:
    return cast(Site, SimpleNamespace(id=number, secret=bytes([number]) * 32))


def surrogate_key(kind: str, record_id: int) -> str:
    return tags_for_change(make_site(1), kind, record_id, []).difference({f"s1-{kind}", "s1-many"}).pop()


EVENT_KEYS = {surrogate_key("events", 5), "s1-events", "s1-many"}


def test_changed_fields_purge_event():
    assert (
        tags_for_changes(make_site(1), [change_row(before={"title": "a"}, after={"title": "b"}, tag_ids=[7])])
        == EVENT_KEYS
    )


def test_status_change_purges_terms():
    keys = tags_for_changes(
        make_site(1),
        [change_row(before={"status": "draft"}, after={"status": "publish"}, tag_ids=[7], category_ids=[8])],
    )
    assert keys == EVENT_KEYS | {surrogate_key("tags", 7), "s1-tags", surrogate_key("categories", 8), "s1-categories"}


def test_term_change_purges_old_and_new_terms():
    keys = tags_for_changes(
        make_site(1), [change_row(before={"tag_ids": [7]}, after={"tag_ids": [9]}, tag_ids=[9], category_ids=[8])]
    )
    assert keys == EVENT_KEYS | {surrogate_key("tags", 7), surrogate_key("tags", 9), "s1-tags"}


def test_creation_and_deletion():
    record = tags_for_changes(make_site(1), [change_row(after={"status": "publish", "tag_ids": [7]})])
    assert record == EVENT_KEYS | {surrogate_key("tags", 7), "s1-tags"}
    assert tags_for_changes(make_site(1), [change_row("venues", 3)]) == {
        surrogate_key("venues", 3),
        "s1-venues",
        "s1-many",
    }


def test_surrogate_keys_do_not_reveal_ids():
    keys = {surrogate_key(kind, number) for kind in ("events", "venues") for number in range(1, 50)}
    assert len(keys) == 98
    assert all(re.fullmatch("s1-[0-9a-f]{18}", entry) for entry in keys)
    assert tags_for_change(make_site(2), "events", 5, []) & EVENT_KEYS == set()


def test_settings_and_large_changes_purge_entire_site():
    assert tags_for_changes(make_site(2), [change_row("sites", 2)]) == {"s2"}
    assert tags_for_changes(
        make_site(2), [change_row(record_id=number) for number in range(MAX_PURGED_TAGS + 1)]
    ) == {"s2"}


def test_purge_headers_are_split():
    headers = list(batch_tags({surrogate_key("events", number) for number in range(MAX_PURGED_TAGS)}))
    assert len(headers) == MAX_PURGED_TAGS / MAX_TAGS_PER_REQUEST
    assert max(map(len, headers)) < 8000
    assert len({key for header in headers for key in header.split()}) == MAX_PURGED_TAGS
