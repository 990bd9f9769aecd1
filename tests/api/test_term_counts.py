"""The count of a term is that of its published events, whatever happens to events and terms."""

from typing import Any

import pytest

from tests.api.running_app import Caller, done
from tests.api.sample_records import DATES, Sample, unique


class Counted:
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
        wanted = term_id or self.term
        count: int = self.anonymous.read(self.kind, wanted)["count"]
        (listed,) = self.anonymous.page(self.kind, include=wanted, hide_empty=0)[self.kind]
        assert listed["count"] == count
        shown = self.anonymous.ids(self.kind, include=wanted)
        assert shown == ([wanted] if count else [])
        return count


@pytest.fixture
def counted(editor: Caller, anonymous: Caller, term: Sample) -> Counted:
    return Counted(editor, anonymous, term)


def test_published_event_is_counted(counted: Counted) -> None:
    assert (counted.count(), counted.count(counted.other)) == (1, 0)
    assert counted.event[counted.kind][0]["count"] == 1


@pytest.mark.parametrize("status", ["draft", "pending", "private"])
def test_unpublished_event_is_not_counted(counted: Counted, status: str) -> None:
    assert counted.count() == 1
    counted.change(status=status)
    assert counted.count() == 0
    counted.change(status="publish")
    assert counted.count() == 1


def test_scheduled_event_is_counted_once_published(counted: Counted) -> None:
    counted.change(date="2090-01-01 00:00:00")
    assert counted.count() == 0
    counted.change(date="2020-01-01 00:00:00")
    assert counted.count() == 1


def test_trashed_event_is_not_counted_until_restored(counted: Counted) -> None:
    counted.editor.trash("events", counted.event["id"])
    assert counted.count() == 0
    counted.change(status="draft")
    assert counted.count() == 0
    counted.change(status="publish")
    assert counted.count() == 1


def test_hidden_event_is_counted(counted: Counted) -> None:
    """Hiding concerns lists of events; the event is published all the same."""
    counted.change(hide_from_listings=True)
    assert counted.count() == 1
    counted.editor.trash("events", counted.event["id"])
    assert counted.count() == 0


def test_unrelated_changes_do_not_change_count(counted: Counted) -> None:
    counted.change(title="Other", start_date="2027-05-01", end_date="2027-05-02", featured=True)
    counted.change(**{counted.kind: [counted.term]})
    counted.change(**{counted.kind: [counted.term, counted.term]})
    assert counted.count() == 1


def test_replacing_terms_updates_counts(counted: Counted) -> None:
    counted.change(**{counted.kind: [counted.other]})
    assert (counted.count(), counted.count(counted.other)) == (0, 1)
    counted.change(**{counted.kind: [counted.other, counted.term]})
    assert (counted.count(), counted.count(counted.other)) == (1, 1)
    counted.change(**{counted.kind: []})
    assert (counted.count(), counted.count(counted.other)) == (0, 0)


def test_changing_terms_and_status_together_updates_counts(counted: Counted) -> None:
    counted.change(status="draft", **{counted.kind: [counted.term, counted.other]})
    assert (counted.count(), counted.count(counted.other)) == (0, 0)
    counted.change(status="publish", **{counted.kind: [counted.other]})
    assert (counted.count(), counted.count(counted.other)) == (0, 1)


def test_each_event_is_counted(counted: Counted) -> None:
    for status in ("publish", "draft", "publish"):
        fields = {counted.kind: [counted.term], "status": status, **DATES}
        counted.editor.create("events", title=unique("more"), **fields)
    assert counted.count() == 3


def test_deleting_term_unlinks_it_and_keeps_other_counts(counted: Counted) -> None:
    counted.change(**{counted.kind: [counted.term, counted.other]})
    done(counted.editor.delete(f"/{counted.kind}/{counted.term}"))
    event = counted.anonymous.read("events", counted.event["id"])
    assert [term["id"] for term in event[counted.kind]] == [counted.other]
    assert counted.count(counted.other) == 1


def test_children_are_not_counted_for_parent(anonymous: Caller, editor: Caller) -> None:
    parent = editor.create("categories", name=unique("parent"))["id"]
    child = editor.create("categories", name=unique("child"), parent=parent)["id"]
    editor.create("events", title=unique("of child"), categories=[child], **DATES)
    counts = [anonymous.read("categories", one)["count"] for one in (parent, child)]
    assert counts == [0, 1]
    done(editor.delete(f"/categories/{parent}"))
    assert anonymous.read("categories", child)["count"] == 1


def test_counters_equal_number_of_published_events(counted: Counted) -> None:
    """After all of the above, for every term of the module: the kept counter is the counted number."""
    rows = counted.editor.interface.sql(
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
