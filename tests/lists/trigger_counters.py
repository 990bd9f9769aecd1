"""What the triggers keep beside the records: counters by day, copies in links, counts of terms."""

from datetime import UTC, date, datetime

from tests.lists.dataset import Dataset, linked_ids
from tests.lists.event_model import day_counts
from tests.lists.list_site import ListSite
from tests.lists.place_and_term_models import term_counts

LINKS = (
    ("venues", "event_venues", "venue_id"),
    ("organizers", "event_organizers", "organizer_id"),
    ("categories", "event_categories", "category_id"),
    ("tags", "event_tags", "tag_id"),
)


def compare_counters(site: ListSite, dataset: Dataset) -> None:
    """Check that all counters equal those computed from the records of the data set."""
    days = site.rows("SELECT status, day, starts, ends FROM event_days WHERE starts <> 0 OR ends <> 0")
    midnight = datetime.min.time()
    stored = {(status, datetime.combine(day, midnight, UTC)): (starts, ends) for status, day, starts, ends in days}
    assert stored == day_counts(dataset)
    for kind, table, column in LINKS:
        link_copies = site.rows(
            f"SELECT event_id, {column}, start_utc, listed, published FROM {table} ORDER BY event_id, position"
        )
        assert link_copies == [
            (event.id, entry, event.start, event.status == "publish" and not event.hidden, event.status == "publish")
            for event in dataset.events
            for entry in linked_ids(event, kind)
        ]
    links = site.rows("SELECT kind::text, record_id, status, day, starts, protected FROM link_days WHERE starts <> 0")
    assert {tuple(row[:4]): tuple(row[4:]) for row in links} == link_day_counts(dataset)
    for kind in ("categories", "tags"):
        assert dict(site.rows(f"SELECT id, count FROM {kind}")) == term_counts(dataset, kind)


def link_day_counts(dataset: Dataset) -> dict[tuple[str, int, str, date], tuple[int, int]]:
    """Events of each record by status and day, and the protected ones among them. Kinds have their first letter."""
    counts: dict[tuple[str, int, str, date], tuple[int, int]] = {}
    for kind, _, _ in LINKS:
        for event in dataset.events:
            for entry in () if event.hidden else linked_ids(event, kind):
                key = (kind[0], entry, event.status, event.start.astimezone(UTC).date())
                starts, protected = counts.get(key, (0, 0))
                counts[key] = starts + 1, protected + bool(event.password)
    return counts
