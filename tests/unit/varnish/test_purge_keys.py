"""The cache tags that changes touch, and their form in shared caches."""

import json
import re
from types import SimpleNamespace
from typing import Any, cast

from kalends.calendar.access.caching import (
    MAX_TAGS_PER_REQUEST,
    batch_tags,
    format_surrogate_key,
    read_touched,
    record_tag,
)
from kalends.core.times import utc_now
from kalends.store import Row
from kalends.store.sites import Site

JUNE = {"start_local": "2030-06-10T10:00:00", "end_local": "2030-06-10T12:00:00"}
JUNE_TAG, JULY_TAG, AUGUST_TAG = (f"events:m{12 * 2030 + month - 1}" for month in (6, 7, 8))
EVENT = {"events/5", "events", "many"}
SETS = {"events:set", "events:search"}


def make_site(number: int) -> Site:
    return cast(Site, SimpleNamespace(id=number, secret=bytes([number]) * 32))


def change(kind="events", record_id=5, before=None, after=None, present=None, **more: Any) -> dict[str, Any]:
    encoded = {"old": before, "new": after, "present": present}
    row = {"kind": kind, "record_id": record_id, "action": "update", "was_public": True}
    row |= {"changed_at": utc_now(), "hides": False, "protects": False}
    row["columns"] = sorted({*(before or {}), *(after or {})})
    return {**row, **{name: value and json.dumps(value) for name, value in encoded.items()}, **more}


def touch(*changes: dict[str, Any]) -> list[set[str]]:
    rows = [{**row, "revision": number, "last_revision": 10 + len(changes)} for number, row in enumerate(changes, 11)]
    touched = read_touched(cast(list[Row], rows), 10)
    assert touched is not None
    assert [entry.revision for entry in touched] == [row["revision"] for row in rows]
    return [set(entry.tags) for entry in touched]


def test_texts_and_images_touch_event_and_lists_that_depend_on_them() -> None:
    assert touch(change(before={"excerpt": "a"}, after={"excerpt": "b"}, present=JUNE)) == [EVENT | {"events:search"}]
    assert touch(change(before={"image_id": 1}, after={"image_id": 2}, present=JUNE)) == [EVENT | {"events:image"}]


def test_other_columns_touch_sets_of_event() -> None:
    present = {**JUNE, "tag_ids": [7], "venue_ids": [3], "series_id": 9}
    (tags,) = touch(change(before={"title": "a"}, after={"title": "b"}, present=present))
    assert tags == EVENT | SETS | {"events:t7", "events:v3", "events:s9", JUNE_TAG}


def test_columns_that_are_not_declared_touch_sets() -> None:
    (tags,) = touch(change(before={"future_column": 1}, after={"future_column": 2, "excerpt": ""}, present=JUNE))
    assert tags == EVENT | SETS | {JUNE_TAG}


def test_status_touches_terms_with_their_counts() -> None:
    present = {**JUNE, "tag_ids": [7], "category_ids": [8]}
    (tags,) = touch(change(before={"status": "draft"}, after={"status": "publish"}, present=present))
    terms = {"tags/7", "tags", "categories/8", "categories", "events:t7", "events:c8"}
    assert tags == EVENT | SETS | terms | {JUNE_TAG}


def test_links_touch_old_and_new_records() -> None:
    present = {**JUNE, "tag_ids": [9], "category_ids": [8]}
    (tags,) = touch(change(before={"tag_ids": [7]}, after={"tag_ids": [9]}, present=present))
    assert tags == EVENT | SETS | {"tags/7", "tags/9", "tags", "events:t7", "events:t9", "events:c8", JUNE_TAG}


def test_moved_events_touch_all_months_they_were_in() -> None:
    first = change(before={"start_local": "2030-06-10T10:00:00", "end_local": "2030-06-10T12:00:00"},
                   after={"start_local": "2030-07-10T10:00:00", "end_local": "2030-07-10T12:00:00"})  # fmt: skip
    second = change(before={"end_local": "2030-07-10T12:00:00"}, after={"end_local": "2030-08-20T12:00:00"})
    present = json.dumps({"start_local": "2030-07-10T10:00:00", "end_local": "2030-08-20T12:00:00"})
    moved, extended = touch({**first, "present": present}, {**second, "present": present})
    assert moved >= {JUNE_TAG, JULY_TAG}
    assert AUGUST_TAG not in moved
    assert extended >= {JULY_TAG, AUGUST_TAG}
    assert JUNE_TAG not in extended


def test_events_near_the_end_of_a_month_touch_both_months() -> None:
    present = {"start_local": "2030-06-30T23:00:00", "end_local": "2030-06-30T23:30:00"}
    (tags,) = touch(change(before={"title": "a"}, after={"title": "b"}, present=present))
    assert tags >= {JUNE_TAG, JULY_TAG}


def test_long_events_touch_one_tag() -> None:
    present = {"start_local": "2030-06-10T10:00:00", "end_local": "2040-06-10T12:00:00"}
    (tags,) = touch(change(before={"title": "a"}, after={"title": "b"}, present=present))
    assert tags == EVENT | SETS | {"events:long"}


def test_changes_of_unknown_effect_touch_all_narrowed_lists_or_the_site() -> None:
    assert "events:any" in touch(change(present=JUNE))[0]  # no columns
    assert "site" in touch(change(before={"title": "a"}, after={"title": "b"}))[0]  # deleted since
    assert touch(change(action="delete", was_public=True)) == [{"site"}]
    assert "site" not in touch(change(action="delete", was_public=False))[0]


def test_other_kinds_and_settings() -> None:
    assert touch(change("venues", 3), change("sites", 1)) == [{"venues/3", "venues", "many"}, {"site"}]


def test_incomplete_log_is_detected() -> None:
    assert read_touched([], 10) is None
    rows = [{**change(), "revision": 12, "last_revision": 12}]
    assert read_touched(cast(list[Row], rows), 10) is None
    assert read_touched(cast(list[Row], [{"revision": None, "last_revision": 5000}]), 10) is None


def test_public_tags_do_not_reveal_ids() -> None:
    tags = [record_tag(kind, number) for kind in ("events", "venues") for number in range(1, 40)]
    tags += [f"events:v{number}" for number in range(1, 10)]
    keys = format_surrogate_key(1, b"1" * 32, tags).split()
    assert len(set(keys)) == len(tags)
    assert all(re.fullmatch("s1-[0-9a-f]{18}", entry) for entry in keys)
    assert not set(keys) & set(format_surrogate_key(1, b"2" * 32, tags).split())
    assert format_surrogate_key(1, b"1" * 32, ["site", "venues"]) == "s1 s1-venues"


def test_long_lists_have_one_tag_in_shared_caches() -> None:
    tags = ["site", "events:set", *[record_tag("events", number) for number in range(101)]]
    keys = format_surrogate_key(1, b"1" * 32, tags).split()
    assert [keys[0], keys[-1]] == ["s1", "s1-many"]
    assert len(keys) == 3


def test_purge_headers_are_split() -> None:
    headers = list(batch_tags(make_site(1), {record_tag("events", number) for number in range(2000)}))
    assert len(headers) == 2000 / MAX_TAGS_PER_REQUEST
    assert max(map(len, headers)) < 8000
    assert len({key for header in headers for key in header.split()}) == 2000
