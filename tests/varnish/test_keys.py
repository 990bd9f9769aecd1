"""What a write makes wrong, as keys."""

import json

from kalends.operations.purging import IN_ONE_REQUEST, MOST, keys_of, requests_for


def change(kind="events", record_id=5, before=None, after=None, **now) -> dict:
    encoded = {"before": before and json.dumps(before), "after": after and json.dumps(after)}
    return {"kind": kind, "record_id": record_id, "category_ids": [], "tag_ids": [], **encoded, **now}


EVENT = {"s1-e5", "s1-events", "s1-many"}


def test_plain_change():
    assert keys_of(1, [change(before={"title": "a"}, after={"title": "b"}, tag_ids=[7])]) == EVENT


def test_appearing_and_disappearing():
    found = keys_of(
        1, [change(before={"status": "draft"}, after={"status": "publish"}, tag_ids=[7], category_ids=[8])]
    )
    assert found == EVENT | {"s1-t7", "s1-tags", "s1-c8", "s1-categories"}


def test_other_terms():
    found = keys_of(1, [change(before={"tag_ids": [7]}, after={"tag_ids": [9]}, tag_ids=[9], category_ids=[8])])
    assert found == EVENT | {"s1-t7", "s1-t9", "s1-tags"}


def test_creation_and_deletion():
    made = keys_of(1, [change(after={"status": "publish", "tag_ids": [7]})])
    assert made == EVENT | {"s1-t7", "s1-tags"}
    assert keys_of(1, [change("venues", 3)]) == {"s1-v3", "s1-venues", "s1-many"}


def test_settings_and_very_much():
    assert keys_of(2, [change("sites", 2)]) == {"s2"}
    assert keys_of(2, [change(record_id=number) for number in range(MOST + 1)]) == {"s2"}


def test_headers():
    headers = list(requests_for({f"s1-e{number}" for number in range(MOST)}))
    assert len(headers) == MOST / IN_ONE_REQUEST
    assert max(map(len, headers)) < 8000
    assert len({key for header in headers for key in header.split()}) == MOST
