"""A small site moves in: plan, apply, compare, repeat, undo, interruptions."""

import asyncio
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import psycopg
import pytest

from kalends.imports.rules.import_records import ImportedRecord
from kalends.move_in.operations.move_planning import compare
from kalends.move_in.operations.move_runs import count_missing
from kalends.move_in.operations.old_snapshot import Snapshot
from kalends.move_in.operations.verify import OWN_CHANGE, OWN_CURRENCY
from kalends.move_in.rules.exchanges import read_records, tribe_event_address, wp_address
from kalends.move_in.rules.old_records import MoveIn, SiteFacts
from tests.conftest import replace_database, temporary_database
from tests.lifecycle.processes import Worker, wait_until
from tests.move_in.commands import TABLES, NewSite
from tests.move_in.conftest import launch_site, stop
from tests.soak import SOAK

OPTIONS = ("--page-size", "100")


@dataclass
class MovedIn:
    """A site that has moved in, which tests copy: a move-in takes seconds."""

    database: str
    site: NewSite
    run_id: int
    before: dict[str, list[str]]


@pytest.fixture(scope="module")
def moved_in(
    postgres_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MovedIn]:
    old = launch_site(*OPTIONS)
    with temporary_database(postgres_url, template=template_database) as name:
        site = NewSite(replace_database(postgres_url, name), tmp_path_factory.mktemp("moved-in"), old)
        before = read_whole_site(site)
        asyncio.run(old.crawl(site.snapshot))
        run_id = plan_offline(site)
        site.apply(run_id)
        yield MovedIn(name, site, run_id, before)
    stop(old.process)


def copy_site(moved_in: MovedIn, database_url: str, directory: Path) -> NewSite:
    """Return a copy with the files of the site, for which its snapshot is at another path."""
    shutil.copytree(moved_in.site.directory, directory, dirs_exist_ok=True)
    site = NewSite(database_url, directory, moved_in.site.old)
    names = str(moved_in.site.snapshot), str(site.snapshot)
    site.sql("UPDATE import_runs SET options = replace(options::text, %s, %s)::jsonb", *names)
    return site


@pytest.fixture
def site(postgres_url: str, moved_in: MovedIn, tmp_path: Path) -> Iterator[NewSite]:
    """Return a site that has moved in."""
    with temporary_database(postgres_url, template=moved_in.database) as name:
        yield copy_site(moved_in, replace_database(postgres_url, name), tmp_path)


@pytest.fixture
def empty_site(database_url: str, moved_in: MovedIn, tmp_path: Path) -> NewSite:
    """Return a site into which the snapshot has not moved yet."""
    return copy_site(moved_in, database_url, tmp_path)


def plan_offline(site: NewSite, *options: str) -> int:
    output = site.run("tec", "plan", site.old.url, "--snapshot", site.snapshot, *options)
    return int(output.splitlines()[-1])


def read_whole_site(site: NewSite) -> dict[str, list[str]]:
    """Return the rows of all tables that a move-in writes, apart from counters, revisions and the log."""
    counters = "'{revision,last_post_id,last_term_id,last_user_id,created_at,secret}'::text[]"
    tables = [table for table in TABLES if table not in ("import_items", "changes")]
    return {
        table: sorted(
            row["text"] for row in site.sql(f"SELECT (to_jsonb(t) - {counters})::text AS text FROM {table} t")
        )
        for table in (*tables, "prefix_redirects")
    }


def test_a_site_moves_in_and_out(site: NewSite, moved_in: MovedIn) -> None:
    run_id = moved_in.run_id
    output = site.run("tec", "verify", run_id)
    assert ": 0 differences." in output
    assert "None." in (site.directory / f"move-in-{run_id}.md").read_text()
    states = {row["state"] for row in site.sql("SELECT state FROM import_rows WHERE run_id = %s", run_id)}
    assert states == {"applied"}
    check_secrets(site)
    check_identities(site)
    revision, state = site.read_revision(), site.read_state()
    assert "0 records to write" in site.run("tec", "plan", site.old.url, "--snapshot", site.snapshot)
    assert (site.read_revision(), site.read_state()) == (revision, state)
    # The undo removes accounts, images, addresses and settings, too.
    site.run("undo", run_id, "--yes")
    assert read_whole_site(site) == moved_in.before


def test_sizes_that_the_worker_makes_are_no_difference(site: NewSite, moved_in: MovedIn) -> None:
    """Records with images get new bodies, but nobody has edited them (decision 0033)."""
    images = site.sql("SELECT count(*) AS n FROM media")[0]["n"]
    assert site.sql("SELECT count(*) AS n FROM events WHERE image_id IS NOT NULL")[0]["n"] > 0

    def has_sizes() -> bool:
        return bool(site.sql("SELECT count(*) AS n FROM media WHERE sizes <> '{}'")[0]["n"] == images)

    revision = site.read_revision()
    with Worker.start(site.database_url, site.directory / "worker.log", site.environment):
        wait_until(has_sizes, 120)
    assert site.read_revision() > revision
    assert ": 0 differences." in site.run("tec", "verify", moved_in.run_id)
    assert "0 records to write" in site.run("tec", "plan", site.old.url, "--snapshot", site.snapshot)


def check_secrets(site: NewSite) -> None:
    """The password of the old site is stored nowhere, passwords of events only as hashes."""
    assert site.old.password.encode() not in site.snapshot.read_bytes()
    with Snapshot.open(site.snapshot) as snapshot:
        assert all(site.old.password.encode() not in exchange.body for exchange in snapshot.list(""))
    assert site.snapshot.stat().st_mode & 0o777 == 0o600
    for table in ("import_rows", "import_items", "import_runs", "import_sources"):
        rows = site.sql(f"SELECT to_jsonb(t)::text AS text FROM {table} t")
        assert rows
        assert not any("new_password" in row["text"] or site.old.password in row["text"] for row in rows)
    assert site.sql("SELECT id FROM events WHERE password_hash IS NOT NULL")


def check_identities(site: NewSite) -> None:
    """Records keep their IDs, and new ones begin at the next thousand."""
    for table in ("events", "venues", "organizers", "categories", "tags", "users"):
        ids = site.sql(
            f"SELECT i.identity, r.id FROM import_items i LEFT JOIN {table} r ON r.id = i.record_id WHERE kind = %s",
            table,
        )
        assert ids
        assert all(row["identity"] == str(row["id"]) for row in ids)
    row = site.sql("SELECT last_post_id, former_host, former_last_id FROM sites WHERE id = 1")[0]
    assert (row["last_post_id"] >= 1000, row["former_host"], row["former_last_id"]) == (True, "127.0.0.1", 1000)


def test_a_slow_site_is_planned_with_lines_of_progress(empty_site: NewSite) -> None:
    """A request may take a minute, and a command without a terminal says every ten seconds that it works."""
    old = launch_site(*OPTIONS, "--delay-of", "wp/v2/settings", "10.5")
    try:
        options = ("--snapshot", empty_site.directory / "slow.snapshot", *empty_site.credentials())
        process = empty_site.start("tec", "plan", old.url, *options)
        _, errors = process.communicate(timeout=120)
    finally:
        stop(old.process)
    assert process.returncode == 0, errors
    assert "starting\n" in errors


# Each injected difference: the statement and the field that must be reported.
DIFFERENCES = (
    ("UPDATE events SET title = 'Other' WHERE id = {event}", "title"),
    ("UPDATE events SET description = 'Other' WHERE id = {event}", "description"),
    ("UPDATE events SET excerpt = 'Other' WHERE id = {event}", "excerpt"),
    ("UPDATE events SET slug = 'other' WHERE id = {event}", "slug"),
    ("UPDATE events SET uid = 'other' WHERE id = {event}", "uid"),
    ("UPDATE events SET feed_guid = 'other' WHERE id = {event}", "feed_guid"),
    ("UPDATE events SET status = 'private' WHERE id = {event}", "status"),
    ("UPDATE events SET cost = '99' WHERE id = {event}", "cost"),
    ("UPDATE events SET website = 'http://other.example/' WHERE id = {event}", "website"),
    ("UPDATE events SET featured = NOT featured WHERE id = {event}", "featured"),
    ("UPDATE events SET event_status = 'sold_out' WHERE id = {event}", "event_status"),
    ("UPDATE events SET start_local = start_local - interval '1 hour' WHERE id = {event}", "start_date"),
    ("UPDATE events SET start_utc = start_utc - interval '1 hour' WHERE id = {event}", "utc_start_date"),
    ("UPDATE events SET published_at = published_at - interval '1 hour' WHERE id = {event}", "date_utc"),
    ("UPDATE events SET modified_utc = modified_utc - interval '1 hour' WHERE id = {event}", "modified_utc"),
    ("UPDATE events SET password_hash = decode('00', 'hex') WHERE id = {event}", "password_hash"),
    ("DELETE FROM event_venues WHERE event_id = {linked}", "venue"),
    ("UPDATE venues SET city = 'Other' WHERE id = {venue}", "city"),
    ("UPDATE organizers SET email = 'other@example.org' WHERE id = {organizer}", "email"),
    ("UPDATE categories SET name = 'Other' WHERE id = {category}", "name"),
    ("UPDATE media SET alt_text = 'Other' WHERE id = {media}", "alt_text"),
    ("UPDATE media SET upload_sha256 = decode('00', 'hex') WHERE id = {media}", "sha256"),
    ("UPDATE users SET role = 'subscriber' WHERE role = 'administrator'", "role"),
    ("DELETE FROM slug_redirects", "redirect from"),
    ("DELETE FROM legacy_files", "redirect from /wp-content/"),
    ("UPDATE sites SET timezone = 'Europe/Berlin' WHERE id = 1", "timezone"),
)


def test_every_difference_is_found(site: NewSite, moved_in: MovedIn) -> None:
    names = find_records(site)
    with psycopg.connect(site.database_url, autocommit=True) as connection:
        connection.execute("ALTER TABLE events DISABLE TRIGGER USER")
        for statement, _ in DIFFERENCES:
            connection.execute(statement.format(**names).encode())
    report = site.directory / "report.md"
    site.run("tec", "verify", moved_in.run_id, "--report", report, status=1)
    differences = report.read_text().partition("## Differences")[2].partition("## Explained")[0]
    differences = differences.partition("## Accepted")[0]
    fields = [line.split(" | ")[2] for line in differences.splitlines() if line.count(" | ") == 4]
    missing = [field for _, field in DIFFERENCES if not any(found.startswith(field) for found in fields)]
    assert not missing


def find_records(site: NewSite) -> dict[str, int]:
    """Return the records that are damaged."""
    names = {
        "event": "SELECT min(id) AS id FROM events WHERE status = 'publish' AND password_hash IS NULL AND cost <> ''",
        "linked": "SELECT max(event_id) AS id FROM event_venues",
        "venue": "SELECT min(id) AS id FROM venues WHERE status = 'publish'",
        "organizer": "SELECT min(id) AS id FROM organizers WHERE status = 'publish'",
        "category": "SELECT min(id) AS id FROM categories",
        "media": "SELECT min(id) AS id FROM media",
    }
    found = {name: site.sql(query)[0]["id"] for name, query in names.items()}
    assert all(found.values())
    return found


def test_an_interrupted_run_gives_the_same_site(empty_site: NewSite, moved_in: MovedIn) -> None:
    """The process is killed at random moments, and started again."""
    numbers, run_id = random.Random(19), plan_offline(empty_site)
    for _ in range(20 if SOAK else 2):
        empty_site.kill_during_apply(run_id, empty_site.count_applied(run_id) + numbers.randrange(1, 25))
    empty_site.apply(run_id)
    assert empty_site.read_state() == moved_in.site.read_state()


@contextmanager
def edit_old_site(site: NewSite, *options: str) -> Iterator[None]:
    """Serve the old site as it was edited later, at the same port."""
    port = ("--port", str(site.old.port))
    stop(site.old.process)
    site.old.process = launch_site(*OPTIONS, *port, "--change-after", "0", *options).process
    try:
        yield
    finally:
        stop(site.old.process)
        site.old.process = launch_site(*OPTIONS, *port).process


@pytest.fixture
def changed_site(site: NewSite) -> Iterator[tuple[NewSite, int]]:
    """Return a site that moved in and whose former site has been edited since, and the run that finds that."""
    with edit_old_site(site):
        yield site, site.plan()


def read_rows(site: NewSite, run_id: int) -> list[tuple[str, str, str]]:
    rows = site.sql(
        "SELECT action, kind, state FROM import_rows WHERE run_id = %s AND kind <> 'media' ORDER BY number", run_id
    )
    return [(row["action"], row["kind"], row["state"]) for row in rows]


def read_hashes(site: NewSite) -> dict[str, list[str]]:
    """Return what visitors see of all records."""
    columns = "(to_jsonb(t) - '{revision,sequence,modified_utc,withdrawn_at,feed_guid,uid}'::text[])::text"
    return {
        table: sorted(row["text"] for row in site.sql(f"SELECT {columns} AS text FROM {table} t"))
        for table in ("events", "venues", "organizers", "categories", "tags")
    }


def test_changes_are_written_and_undone(changed_site: tuple[NewSite, int]) -> None:
    site, run_id = changed_site
    assert read_rows(site, run_id) == [
        ("changed", "venues", "pending"),
        *[("changed", "events", "pending")] * 3,
        ("gone", "events", "waiting"),
    ]
    before = read_hashes(site)
    assert "4 records written, 0 refused, 1 waiting" in site.apply(run_id)
    assert {row["title"] for row in site.sql("SELECT title FROM events WHERE title = 'Edited'")} == {"Edited"}
    assert read_hashes(site) != before
    site.run("undo", run_id, "--yes")
    assert read_hashes(site) == before


@pytest.mark.skipif(not SOAK, reason="runs in a soak")
def test_a_site_moves_in_again_after_an_undo(site: NewSite, moved_in: MovedIn) -> None:
    site.run("undo", moved_in.run_id, "--yes")
    # It has its IDs again.
    again = plan_offline(site)
    site.apply(again)
    assert ": 0 differences." in site.run("tec", "verify", again)
    check_identities(site)
    # An account that somebody uses stays, and so does what people have changed.
    user, event = (site.sql(f"SELECT min(id) AS id FROM {table}")[0]["id"] for table in ("users", "events"))
    site.sql("UPDATE users SET password_hash = 'x' WHERE id = %s", user)
    site.sql(
        "INSERT INTO changes (site_id, revision, kind, record_id, action, before, after, was_public, user_id, "
        "changed_at) SELECT 1, revision + 1, 'events', %s, 'update', '{}', '{}', true, %s, now() FROM sites",
        event,
        user,
    )
    site.sql("UPDATE sites SET revision = revision + 1")
    site.run("undo", again, "--yes")
    assert [row["id"] for row in site.sql("SELECT id FROM events")] == [event]
    assert user in [row["id"] for row in site.sql("SELECT id FROM users")]
    kept = site.sql("SELECT kind, record_id FROM import_rows WHERE state = 'skipped' AND action = 'gone'")
    assert {("events", event), ("users", user)} <= {(row["kind"], row["record_id"]) for row in kept}


def test_a_record_that_is_gone_twice_goes_to_the_trash(changed_site: tuple[NewSite, int]) -> None:
    site, run_id = changed_site
    site.apply(run_id)
    again = site.plan()
    assert read_rows(site, again) == [("gone", "events", "pending")]
    site.apply(again)
    gone = site.sql("SELECT e.status FROM events e JOIN import_rows r ON r.record_id = e.id WHERE r.action = 'gone'")
    assert {row["status"] for row in gone} == {"trash"}
    assert read_rows(site, site.plan()) == []


@pytest.mark.skipif(not SOAK, reason="runs in a soak")
def test_a_change_without_a_new_time_of_change_is_found(site: NewSite) -> None:
    with edit_old_site(site, "--silently"):
        run_id = site.plan()
        site.apply(run_id)
        assert site.sql("SELECT count(*) AS n FROM events WHERE title = 'Edited silently'") == [{"n": 1}]
        assert ": 0 differences." in site.run("tec", "verify", run_id)


def make_items(number: int, absences: int) -> dict[tuple[str, str], Any]:
    return {
        ("events", str(entry)): {"record_id": entry, "absences": absences, "source_values": '{"title": "Event"}'}
        for entry in range(number)
    }


@pytest.mark.parametrize(
    ("number", "absences", "allow", "state", "reasons"),
    [
        (10, 1, False, "pending", 0),
        (10, 0, False, "waiting", 1),
        (11, 1, False, "waiting", 1),
        (11, 0, False, "waiting", 2),
        (11, 1, True, "pending", 0),
    ],
)
def test_the_brake_stops_mass_deletions(number: int, absences: int, allow: bool, state: str, reasons: int) -> None:
    """No more than ten records vanish at once, and only those that were missing in two runs."""
    gone, others = make_items(number, absences), make_items(100, 0)
    stored = {key: {"columns.status": "publish"} for key in others}
    facts = SiteFacts("http://old.example", "old.example", "Old", "UTC", "en", 1)
    records = [ImportedRecord("tags", str(entry), {"name": "Tag"}) for entry in range(100 - number)]
    items = {**gone, **{("tags", record.identity): make_tag() for record in records}}
    plan = compare(records, MoveIn(facts, records), items, stored, allow_deletions=allow)
    assert {(row.action, row.state, len(row.reasons)) for row in plan.rows} == {("gone", state, reasons)}
    assert (len(plan.rows), plan.unchanged) == (number, {"tags": 100 - number})


def make_tag() -> dict[str, Any]:
    return {"record_id": 1, "absences": 0, "source_values": '{"name": "Tag"}', "stored_values": "{}"}


def test_switch_closes_the_move_in(site: NewSite) -> None:
    output = site.run("tec", "switch", "--report", site.directory / "report.md", *site.credentials())
    assert "The move-in is over." in output
    assert not site.snapshot.exists()
    assert [row["state"] for row in site.sql("SELECT state FROM import_sources")] == ["closed"]
    assert "http" in site.run("tec", "invite")
    site.run("tec", "plan", site.old.url, "--snapshot", site.snapshot, *site.credentials(), status=1)


def test_switch_accepts_the_differences_of_a_report(site: NewSite) -> None:
    """Differences that a person has read and accepts no longer stop the switch; those that came later do."""
    venue, other = (
        row["id"] for row in site.sql("SELECT id FROM venues WHERE status = 'publish' ORDER BY id LIMIT 2")
    )
    first, second = site.directory / "first.md", site.directory / "second.md"
    site.sql("UPDATE venues SET description = %s WHERE id = %s", "Long. " * 100, venue)
    site.run("tec", "switch", "--report", first, *site.credentials(), status=1)
    site.sql("UPDATE venues SET city = 'Other | <city>' WHERE id = %s", other)
    accept = ("--accept-differences", first)
    assert ": 1 differences." in site.run("tec", "switch", "--report", second, *accept, *site.credentials(), status=1)
    assert f"| venues | {other} | city |" in second.read_text().partition("## Accepted")[0]
    # The rest of the text, which the report does not show, is another one.
    site.sql("UPDATE venues SET description = %s WHERE id = %s", "Long. " * 101, venue)
    site.run("tec", "switch", "--report", second, *accept, *site.credentials(), status=1)
    output = site.run("tec", "switch", "--accept-differences", second, *site.credentials())
    assert "2 differences were accepted" in output
    options = site.sql("SELECT options FROM import_runs ORDER BY id DESC LIMIT 1")[0]["options"]
    accepted = {(entry["kind"], entry["identity"], entry["field"]) for entry in options["accepted_differences"]}
    assert accepted == {("venues", str(venue), "description"), ("venues", str(other), "city")}
    assert [row["state"] for row in site.sql("SELECT state FROM import_sources")] == ["closed"]


def test_only_a_report_on_the_old_site_can_be_accepted(site: NewSite, tmp_path: Path) -> None:
    report = tmp_path / "other.md"
    report.write_text("# Comparison of run 1 with http://other.example\n\n## Differences\n\nNone.\n")
    site.run("tec", "switch", "--accept-differences", report, *site.credentials(), status=1)
    assert site.sql("SELECT state FROM import_sources") != [{"state": "closed"}]


def test_differences_that_the_server_made_are_explained(site: NewSite, moved_in: MovedIn) -> None:
    """The server publishes a scheduled event, and later a person edits it."""
    event = site.sql("SELECT min(id) AS id FROM events WHERE status = 'future'")[0]["id"]
    site.sql("UPDATE events SET status = 'publish', modified_utc = now() WHERE id = %s", event)
    add_change(site, event, None)
    output = site.run("tec", "verify", moved_in.run_id)
    assert f"warning: a difference is explained: {OWN_CHANGE} (events {event}" in output
    site.sql("UPDATE events SET title = 'Other' WHERE id = %s", event)
    site.run("tec", "verify", moved_in.run_id, status=1)
    site.sql(
        "UPDATE events SET title = (SELECT source_values ->> 'title' FROM import_items "
        "WHERE kind = 'events' AND record_id = %s) WHERE id = %s",
        event,
        event,
    )
    assert ": 0 differences." in site.run("tec", "verify", moved_in.run_id)
    add_change(site, event, site.sql("SELECT min(id) AS id FROM users")[0]["id"])
    site.run("tec", "verify", moved_in.run_id, status=1)
    # Without the rows of the runs, nothing tells the changes of imports from those of the server.
    site.sql("DELETE FROM changes WHERE user_id IS NOT NULL")
    assert ": 0 differences." in site.run("tec", "verify", moved_in.run_id)
    site.sql("DELETE FROM import_rows")
    site.run("tec", "verify", moved_in.run_id, status=1)


def add_change(site: NewSite, event: int, user: int | None) -> None:
    site.sql("UPDATE sites SET revision = revision + 1")
    site.sql(
        "INSERT INTO changes (site_id, revision, kind, record_id, action, before, after, was_public, user_id, "
        "changed_at) SELECT 1, revision, 'events', %s, 'update', '{}', '{\"status\": \"publish\"}', true, %s, now() "
        "FROM sites",
        event,
        user,
    )


def test_costs_in_another_currency_are_explained(empty_site: NewSite) -> None:
    """The old site shows `$8` for `€ 8`; `8$` for `8` is a mistake of the import, and no explanation fits."""
    with Snapshot.open(empty_site.snapshot) as snapshot:
        ids = [entry["id"] for entry in read_records(snapshot, "events").values() if entry["status"] == "publish"]
        for event, cost, shown in ((ids[0], "€ 8", "$8"), (ids[1], "8", "8$")):
            for address in (wp_address("events", event), tribe_event_address(event)):
                exchange = snapshot.find(address)
                assert exchange is not None
                record = exchange.json
                record |= {"cost": shown} if "tribe/" in address else {}
                record.setdefault("meta", {})["_EventCost"] = cost
                snapshot.add(replace(exchange, body=orjson.dumps(record)))
    run_id = plan_offline(empty_site)
    empty_site.apply(run_id)
    output = empty_site.run("tec", "verify", run_id, status=1)
    assert f"warning: a difference is explained: {OWN_CURRENCY} (events {ids[0]})" in output
    assert f"events {ids[1]}: cost (API): '8$' expected, '$8' found" in output
    assert ": 1 differences." in output


def test_a_site_with_records_needs_consent(empty_site: NewSite) -> None:
    empty_site.sql(
        "INSERT INTO tags (site_id, id, revision, name, name_folded, slug) VALUES (1, 1, 1, 'A', 'a', 'a')"
    )
    empty_site.run("tec", "plan", empty_site.old.url, "--snapshot", empty_site.snapshot, status=1)
    run_id = plan_offline(empty_site, "--map-ids")
    empty_site.apply(run_id)
    events = empty_site.sql("SELECT i.identity, i.record_id FROM import_items i WHERE kind = 'events'")
    assert events
    assert all(row["identity"] != str(row["record_id"]) for row in events)
    assert ": 0 differences." in empty_site.run("tec", "verify", run_id)


def test_missing_pages_are_counted(tmp_path: Path) -> None:
    with write_log(tmp_path).open() as lines:
        assert count_missing(lines) == [(2, "/wp-content/a.pdf"), (1, "/old/")]


def write_log(directory: Path) -> Path:
    lines = [
        '{"event":"request","status":404,"path":"/wp-content/a.pdf"}',
        'Nov 16 kalends: {"event":"request","status":404,"path":"/wp-content/a.pdf"}',
        '{"event":"request","status":404,"path":"/old/"}',
        '{"event":"request","status":200,"path":"/"}',
        "no JSON {",
    ]
    path = directory / "server.log"
    path.write_text("\n".join(lines))
    return path
