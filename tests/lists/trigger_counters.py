"""What the triggers keep beside the records: counters by day, copies in links, counts of terms."""

from datetime import UTC, datetime

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
    for kind in ("categories", "tags"):
        assert dict(site.rows(f"SELECT id, count FROM {kind}")) == term_counts(dataset, kind)
