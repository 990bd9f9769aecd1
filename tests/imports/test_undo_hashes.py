"""Undo of every kind of sync: afterwards the whole site equals the one before, by the hash of each row of each table.

Excepted are revisions, times of change, the log and the records of imports themselves, redirects from addresses that
were public in between, and new records, which go to the trash. Fields and records that people have changed since
keep their values, and the plan lists them.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson
import pytest

from kalends.calendar.operations import duplicates
from kalends.imports.operations import apply
from kalends.imports.rules.import_records import ImportedRecord
from tests.api.conftest import StartApp
from tests.api.running_app import RunningApp
from tests.imports.site import Subscription, event

# Columns that an undo does not restore, because they count or log writes.
UNCOMPARED_TABLES = {
    *("changes", "idempotency", "daily_records", "login_failures", "application_password_uses"),
    *("import_sources", "import_items", "import_runs", "import_rows", "import_files", "slug_redirects"),
}
UNCOMPARED_COLUMNS = {
    *("revision", "sequence", "modified_utc", "withdrawn_at", "created_until"),
    *("last_post_id", "last_term_id", "trimmed_revision", "last_used_at", "trashed_at"),
}
# Tables that count events by day, and their numbers.
COUNTERS = {"event_days": ("starts", "ends"), "link_days": ("starts", "protected"), "series_days": ("starts", "ends")}
POSTS = ("events", "series", "venues", "organizers")


@pytest.fixture(scope="module")
def site(start_single_site_for_module: StartApp) -> RunningApp:
    return start_single_site_for_module()


def list_tables(app: RunningApp) -> list[str]:
    rows = app.sql(
        "SELECT c.table_name FROM information_schema.columns c JOIN information_schema.tables t USING (table_name) "
        "WHERE c.table_schema = 'public' AND t.table_type = 'BASE TABLE' "
        "AND (c.column_name = 'site_id' OR c.table_name = 'sites' AND c.column_name = 'id') ORDER BY 1"
    )
    return [row[0] for row in rows if row[0] not in UNCOMPARED_TABLES]


@dataclass
class State:
    """The hashes of the rows of each table, and the IDs of all posts."""

    hashes: dict[str, list[str]]
    ids: set[int]


def read_state(app: RunningApp, before: State | None = None) -> State:
    """Hash all rows of the site; without posts in the trash that did not exist before."""
    tables = list_tables(app)
    rows: dict[str, list[dict[str, Any]]] = {table: [] for table in tables}
    for row in app.sql(" UNION ALL ".join(f"SELECT '{table}', to_jsonb(t) FROM {table} t" for table in tables)):
        rows[row[0]].append(orjson.loads(row[1]))
    posts = [row for table in POSTS for row in rows[table]]
    known = before.ids if before else {row["id"] for row in posts}
    new = {row["id"] for row in posts if row["status"] == "trash"} - known
    return State(
        {table: hash_rows(table, entries, new) for table, entries in rows.items()}, {row["id"] for row in posts}
    )


def hash_rows(table: str, rows: Sequence[dict[str, Any]], ignored: set[int]) -> list[str]:
    hashes: list[str] = []
    for row in rows:
        key = "id" if table in POSTS else "event_id"
        is_ignored = row.get(key) in ignored or row.get("series_id") in ignored
        if not is_ignored and not is_empty_counter(table, row):
            kept = {name: value for name, value in row.items() if name not in UNCOMPARED_COLUMNS}
            hashes.append(f"{row.get('id', '')} {digest(kept)}")
    return sorted(hashes)


def is_empty_counter(table: str, row: dict[str, Any]) -> bool:
    """Return whether a row counts no events, or those in the trash."""
    return table in COUNTERS and (row.get("status") == "trash" or not any(row[name] for name in COUNTERS[table]))


def digest(columns: dict[str, Any]) -> str:
    return hashlib.sha256(orjson.dumps(columns, option=orjson.OPT_SORT_KEYS)).hexdigest()


def record(kind: str, identity: str, **values: Any) -> ImportedRecord:
    return ImportedRecord(kind, identity, values)


def course(title: str = "Course", **values: Any) -> ImportedRecord:
    return ImportedRecord("series", "k@x", {**event(title=title).values, "rule": "FREQ=WEEKLY;COUNT=4", **values})


def override(title: str) -> ImportedRecord:
    return replace(event("k@x", title, "2027-05-08"), recurrence_id="2027-05-08T19:00:00")


def link(record: ImportedRecord, **links: list[str]) -> ImportedRecord:
    return replace(record, links=links)


HALL, PARK = record("venues", "hall", venue="Hall", city="Ulm"), record("venues", "park", venue="Park")
BAND, CLUB = record("organizers", "band", organizer="Band"), record("organizers", "club", organizer="Club")
MUSIC, JAZZ = record("categories", "music", name="Music"), record("categories", "jazz", name="Jazz")
EVENT = event("e@x", "Title", website="https://one.example/", description="<p>One</p>", cost="5", tags=["one"])
OTHERS = [event(f"o{number}@x", f"Other {number}", "2027-06-01") for number in range(11)]


def changed(**values: Any) -> ImportedRecord:
    return replace(EVENT, values={**EVENT.values, **values})


@dataclass(frozen=True)
class Case:
    """A sync: the records of the source before and now."""

    before: Sequence[ImportedRecord] = ()
    now: Sequence[ImportedRecord] = ()
    # The source is fetched once more with these before the sync, so that missing records are removed.
    missing: Sequence[ImportedRecord] | None = None
    options: dict[str, Any] = field(default_factory=dict[str, Any])


CASES = {
    "new event": Case([], [EVENT]),
    "new draft": Case([], [EVENT], options={"default_status": "draft"}),
    "new event with new venue and organizer": Case(
        [], [event("e@x", venue={"venue": "New Hall"}, organizer={"organizer": "New Club"})]
    ),
    "new event at a linked venue": Case([], [HALL, link(EVENT, venue=["hall"])]),
    "new event with new category": Case([], [MUSIC, link(EVENT, categories=["music"])]),
    "new event with known links": Case([HALL, BAND], [HALL, BAND, link(EVENT, venue=["hall"], organizer=["band"])]),
    "new venue": Case([], [HALL]),
    "new organizer": Case([], [BAND]),
    "new category": Case([], [MUSIC]),
    "new nested category": Case([MUSIC], [MUSIC, link(JAZZ, parent=["music"])]),
    "new tag": Case([], [record("tags", "t", name="Outdoors")]),
    "new series": Case([], [course()]),
    "new series with a changed date": Case([], [course(), override("Other room")]),
    "title": Case([EVENT], [changed(title="Other")]),
    "description": Case([EVENT], [changed(description="<p>Two</p>")]),
    "start and end": Case([EVENT], [changed(start_date="2027-07-01 10:00:00", end_date="2027-07-01 11:00:00")]),
    "time zone": Case([EVENT], [changed(timezone="America/New_York")]),
    "whole day": Case(
        [EVENT], [changed(all_day=True, start_date="2027-05-01 00:00:00", end_date="2027-05-01 23:59:59")]
    ),
    "status": Case([changed(status="publish")], [changed(status="draft")]),
    "cleared fields": Case([EVENT], [changed(website=None, cost=None, description=None)]),
    "tags": Case([EVENT], [changed(tags=["two", "three"])]),
    "venue": Case([HALL, link(EVENT, venue=["hall"])], [HALL, PARK, link(EVENT, venue=["park"])]),
    "organizers": Case(
        [BAND, CLUB, link(EVENT, organizer=["band", "club"])], [BAND, CLUB, link(EVENT, organizer=["club"])]
    ),
    "categories": Case(
        [MUSIC, JAZZ, link(EVENT, categories=["music"])], [MUSIC, JAZZ, link(EVENT, categories=["jazz"])]
    ),
    "flags and state": Case([EVENT], [changed(featured=True, event_status="cancelled", status_reason="Rain")]),
    "fields of a venue": Case([HALL], [replace(HALL, values={"venue": "Great Hall", "city": "Bonn"})]),
    "name of a category": Case([MUSIC], [replace(MUSIC, values={"name": "Concerts"})]),
    "title of a series": Case([course()], [course("Other course")]),
    "time of a series": Case([course()], [course(start_date="2027-05-01 20:00:00", end_date="2027-05-01 22:00:00")]),
    "rule of a series": Case([course()], [course(rule="FREQ=WEEKLY;COUNT=6")]),
    "changed date of a series": Case([course()], [course(), override("Other room")]),
    "date that follows its series again": Case([course(), override("Other room")], [course()]),
    "missing event": Case([EVENT, *OTHERS], OTHERS, missing=OTHERS),
    "missing series": Case([course(), *OTHERS], OTHERS, missing=OTHERS),
    "event that is back": Case([EVENT, *OTHERS], [*OTHERS, changed(title="Is back")], missing=[]),
    "several changes": Case(
        [HALL, EVENT, course(), *OTHERS[:3]],
        [
            replace(HALL, values={"venue": "Great Hall", "city": "Bonn"}),
            *(PARK, MUSIC),
            link(changed(title="Other", tags=["two"]), venue=["park"], categories=["music"]),
            course("Other course"),
            *OTHERS[:4],
        ],
    ),
}


def prepare(app: RunningApp, case: Case) -> Subscription:
    feed = Subscription.add(app, **case.options)
    if case.before:
        feed.sync(*case.before)
    if case.missing is not None:
        for _ in range(1 if case.missing else 2):
            feed.sync(*(case.missing or OTHERS))
    return feed


def clear(app: RunningApp) -> None:
    """Remove the records of the case before, which would be found again by their names."""
    for table in ("events", "series", "venues", "organizers", "tags", "categories", "import_sources"):
        app.sql(f"DELETE FROM {table}")


@pytest.mark.quick("new event", "several changes")
@pytest.mark.parametrize("name", CASES)
def test_undo_restores_the_site(site: RunningApp, name: str) -> None:
    clear(site)
    case = CASES[name]
    feed = prepare(site, case)
    before = read_state(site)
    run_id = feed.plan(*case.now)
    counts = feed.apply(run_id)
    assert (counts["rows_applied"] > 0, counts.get("rows_failed", 0)) == (True, 0)
    assert read_state(site, before).hashes != before.hashes
    undo_id = feed.undo(run_id)
    assert {row["state"] for row in feed.rows(undo_id)} == {"applied"}
    after = read_state(site, before)
    differences = {table for table, rows in after.hashes.items() if rows != before.hashes[table]}
    assert differences == set()


def test_undo_of_a_linked_duplicate(site: RunningApp) -> None:
    clear(site)
    first, second = Subscription.add(site), Subscription.add(site)
    first.sync(event("a@x", "Summer concert of the choir", venue={"venue": "Hall"}))
    before = read_state(site)
    same = event("b@y", "Summer Concert of the Choir", venue={"venue": "Hall"}, website="https://b.example/")
    run_id = second.plan(same, find_candidates=duplicates.find_candidates)
    assert [row["action"] for row in second.rows(run_id)] == ["linked"]
    second.apply(run_id)
    assert second.event("b@y")["website"] == "https://b.example/"
    second.undo(run_id)
    assert read_state(site, before).hashes == before.hashes


def test_undo_of_one_of_two_sources_keeps_what_the_other_wrote(site: RunningApp) -> None:
    clear(site)
    first, second = Subscription.add(site, trust_rank=20), Subscription.add(site, trust_rank=10)
    title = "Summer concert of the choir"
    first.sync(event("a@x", title, venue={"venue": "Hall"}, cost="5"))
    second.sync(event("b@y", title, venue={"venue": "Hall"}), find_candidates=duplicates.find_candidates)
    run_id = first.plan(event("a@x", title, venue={"venue": "Hall"}, cost="9", website="https://a.example/"))
    before = read_state(site)
    first.apply(run_id)
    second.sync(event("b@y", title, venue={"venue": "Hall"}, website="https://b.example/"))
    undo_id = first.undo(run_id)
    body = first.event("a@x")
    assert (body["cost"], body["website"]) == ("$5", "https://b.example/")
    decisions = {name: change["decision"] for name, change in first.rows(undo_id)[0]["changes"].items()}
    assert decisions == {"cost": "source", "website": "local"}
    changed_tables = {
        table for table, rows in read_state(site, before).hashes.items() if rows != before.hashes[table]
    }
    assert changed_tables == {"events"}


def test_records_that_people_have_changed_since_are_listed_and_stay(site: RunningApp) -> None:
    clear(site)
    feed = Subscription.add(site)
    run_id = feed.plan(HALL, EVENT, event("untouched@x", "Untouched"))
    feed.apply(run_id)
    editor = site.caller("editor")
    editor.post(f"/events/{feed.record_id('e@x')}", {"title": "By hand"})
    undo_id = feed.undo(run_id)
    rows = {row["title"]: (row["state"], row["reasons"]) for row in feed.rows(undo_id)}
    assert rows["By hand"] == ("skipped", ["It stays, because people have changed it since."])
    assert rows["Untouched"] == rows["Hall"] == ("applied", [])
    statuses = {row["title"]: row["status"] for row in site.sql("SELECT title, status FROM events")}
    assert statuses == {"By hand": "publish", "Untouched": "trash"}


def test_later_syncs_are_no_edits_of_people(site: RunningApp) -> None:
    clear(site)
    feed = Subscription.add(site)
    run_id = feed.plan(EVENT)
    feed.apply(run_id)
    feed.sync(changed(title="Changed by the source"))
    undo_id = feed.undo(run_id)
    rows = [(row["kind"], row["state"], row["reasons"]) for row in feed.rows(undo_id)]
    assert rows == [("events", "applied", []), ("tags", "applied", [])]
    assert site.sql("SELECT status FROM events")[0]["status"] == "trash"


@pytest.mark.parametrize(("seconds", "portions"), [(0.0, [10, 20, 20]), (60.0, [50])])
def test_a_term_loses_its_events_in_portions(
    site: RunningApp, monkeypatch: pytest.MonkeyPatch, seconds: float, portions: list[int]
) -> None:
    """A transaction has as many portions as its time allows."""
    clear(site)
    feed = Subscription.add(site)
    before = read_state(site)
    run_id = feed.plan(*[event(f"t{number}@x", f"Tagged {number}", tags=["many"]) for number in range(50)])
    feed.apply(run_id)
    monkeypatch.setattr(apply, "MAX_SECONDS", seconds)
    undo_id = feed.undo(run_id)
    assert {row["state"] for row in feed.rows(undo_id)} == {"applied"}
    assert read_state(site, before).hashes == before.hashes
    tag = next(row for row in feed.rows(undo_id) if row["kind"] == "tags")
    query = "SELECT count(*) FROM changes WHERE revision BETWEEN $1 AND $2 AND kind = 'events' GROUP BY xmin::text"
    rows = site.sql(query, tag["first_revision"], tag["revision"])
    assert sorted(row[0] for row in rows) == portions
