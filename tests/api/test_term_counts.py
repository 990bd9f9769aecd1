"""The count of a term is that of its published events, whatever happens to events and terms."""

from typing import Any

import pytest

from tests.api.running_app import Caller, expect_json
from tests.api.sample_records import DATES, Sample, unique


class CountedEvent:
    """An event with one term of a kind, and the ways to look at the term's count."""

    def __init__(self, editor: Caller, anonymous: Caller, term: Sample) -> None:
        self.editor, self.anonymous, self.kind = editor, anonymous, term.kind
        self.term = editor.create(term.kind, **term.body())["id"]
        self.other = editor.create(term.kind, **term.body())["id"]
        fields = {term.kind: [self.term], **DATES}
        self.event: dict[str, Any] = editor.create("events", title=unique("counted"), **fields)

    def change(self, **fields: Any) -> dict[str, Any]:
        return self.editor.change("events", self.event["id"], **fields)

    def count(self, term_id: int | None = None) -> int:
        """From the term itself; a list and the event must say the same."""
        wanted_id = term_id or self.term
        count: int = self.anonymous.read(self.kind, wanted_id)["count"]
        (listed,) = self.anonymous.page(self.kind, include=wanted_id, hide_empty=0)[self.kind]
        assert listed["count"] == count
        listed_ids = self.anonymous.ids(self.kind, include=wanted_id)
        assert listed_ids == ([wanted_id] if count else [])
        return count


@pytest.fixture
def counted_event(editor: Caller, anonymous: Caller, term: Sample) -> CountedEvent:
    return CountedEvent(editor, anonymous, term)


def test_published_event_is_counted(counted_event: CountedEvent) -> None:
    assert (counted_event.count(), counted_event.count(counted_event.other)) == (1, 0)
    assert counted_event.event[counted_event.kind][0]["count"] == 1


@pytest.mark.quick("categories-draft", "tags-private")
@pytest.mark.parametrize("status", ["draft", "pending", "private"])
def test_unpublished_event_is_not_counted(counted_event: CountedEvent, status: str) -> None:
    assert counted_event.count() == 1
    counted_event.change(status=status)
    assert counted_event.count() == 0
    counted_event.change(status="publish")
    assert counted_event.count() == 1


def test_scheduled_event_is_counted_once_published(counted_event: CountedEvent) -> None:
    counted_event.change(date="2090-01-01 00:00:00")
    assert counted_event.count() == 0
    counted_event.change(date="2020-01-01 00:00:00")
    assert counted_event.count() == 1


def test_trashed_event_is_not_counted_until_restored(counted_event: CountedEvent) -> None:
    counted_event.editor.trash("events", counted_event.event["id"])
    assert counted_event.count() == 0
    counted_event.change(status="draft")
    assert counted_event.count() == 0
    counted_event.change(status="publish")
    assert counted_event.count() == 1


def test_hidden_event_is_counted(counted_event: CountedEvent) -> None:
    """Hiding concerns lists of events; the event is published all the same."""
    counted_event.change(hide_from_listings=True)
    assert counted_event.count() == 1
    counted_event.editor.trash("events", counted_event.event["id"])
    assert counted_event.count() == 0


def test_unrelated_changes_do_not_change_count(counted_event: CountedEvent) -> None:
    counted_event.change(title="Other", start_date="2027-05-01", end_date="2027-05-02", featured=True)
    counted_event.change(**{counted_event.kind: [counted_event.term]})
    counted_event.change(**{counted_event.kind: [counted_event.term, counted_event.term]})
    assert counted_event.count() == 1


def test_replacing_terms_updates_counts(counted_event: CountedEvent) -> None:
    counted_event.change(**{counted_event.kind: [counted_event.other]})
    assert (counted_event.count(), counted_event.count(counted_event.other)) == (0, 1)
    counted_event.change(**{counted_event.kind: [counted_event.other, counted_event.term]})
    assert (counted_event.count(), counted_event.count(counted_event.other)) == (1, 1)
    counted_event.change(**{counted_event.kind: []})
    assert (counted_event.count(), counted_event.count(counted_event.other)) == (0, 0)


def test_changing_terms_and_status_together_updates_counts(counted_event: CountedEvent) -> None:
    counted_event.change(status="draft", **{counted_event.kind: [counted_event.term, counted_event.other]})
    assert (counted_event.count(), counted_event.count(counted_event.other)) == (0, 0)
    counted_event.change(status="publish", **{counted_event.kind: [counted_event.other]})
    assert (counted_event.count(), counted_event.count(counted_event.other)) == (0, 1)


def test_each_event_is_counted(counted_event: CountedEvent) -> None:
    for status in ("publish", "draft", "publish"):
        fields = {counted_event.kind: [counted_event.term], "status": status, **DATES}
        counted_event.editor.create("events", title=unique("more"), **fields)
    assert counted_event.count() == 3


def test_deleting_term_unlinks_it_and_keeps_other_counts(counted_event: CountedEvent) -> None:
    counted_event.change(**{counted_event.kind: [counted_event.term, counted_event.other]})
    expect_json(counted_event.editor.delete(f"/{counted_event.kind}/{counted_event.term}"))
    event = counted_event.anonymous.read("events", counted_event.event["id"])
    assert [term["id"] for term in event[counted_event.kind]] == [counted_event.other]
    assert counted_event.count(counted_event.other) == 1


def test_children_are_not_counted_for_parent(anonymous: Caller, editor: Caller) -> None:
    parent = editor.create("categories", name=unique("parent"))["id"]
    child = editor.create("categories", name=unique("child"), parent=parent)["id"]
    editor.create("events", title=unique("of child"), categories=[child], **DATES)
    counts = [anonymous.read("categories", one)["count"] for one in (parent, child)]
    assert counts == [0, 1]
    expect_json(editor.delete(f"/categories/{parent}"))
    assert anonymous.read("categories", child)["count"] == 1


def test_counters_equal_number_of_published_events(counted_event: CountedEvent) -> None:
    """After all of the above, for every term of the module: the kept counter is the counted number."""
    rows = counted_event.editor.app.sql(
        """
        SELECT t.id, t.count, (SELECT count(*) FROM event_categories l JOIN events e USING (site_id)
            WHERE e.id = l.event_id AND l.category_id = t.id AND e.status = 'publish') AS found FROM categories t
        UNION ALL
        SELECT t.id, t.count, (SELECT count(*) FROM event_tags l JOIN events e USING (site_id)
            WHERE e.id = l.event_id AND l.tag_id = t.id AND e.status = 'publish') FROM tags t
        """
    )
    assert [dict(row) for row in rows if row["count"] != row["found"]] == []
    assert len(rows) >= 2
