"""The complete recording moves in: the numbers of the acceptance list, and the site as it was edited later.

The recording is not part of this project; without it, these tests are skipped.
"""

import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kalends.move_in.operations.old_snapshot import Snapshot
from tests.conftest import replace_database, temporary_database
from tests.move_in.commands import NewSite
from tests.move_in.conftest import RECORDING, OldSite, stop, wait_for
from tests.move_in.recorded_answers import compare_records, find_broken_addresses, open_client
from tests.servers import Server
from tests.soak import SOAK

OLD = "http://old.example"
# Queries and the rows that they return.
NUMBERS = {
    "SELECT status, count(*) FROM events GROUP BY status ORDER BY status": [
        *(("draft", 11), ("future", 15), ("pending", 11), ("private", 16), ("publish", 237), ("trash", 10)),
    ],
    # One venue and one organizer are protected, which only events can be: they are private.
    "SELECT status, count(*) FROM venues GROUP BY status ORDER BY status": [
        *(("draft", 1), ("pending", 1), ("private", 3), ("publish", 33), ("trash", 2)),
    ],
    "SELECT status, count(*) FROM organizers GROUP BY status ORDER BY status": [
        *(("draft", 1), ("pending", 1), ("private", 2), ("publish", 28), ("trash", 2)),
    ],
    "SELECT count(*), count(parent) AS nested FROM categories": [(25, 9)],
    "SELECT count(*) FROM tags": [(40,)],
    "SELECT role, count(*) FROM users GROUP BY role ORDER BY role": [
        *(("administrator", 1), ("author", 2), ("contributor", 1), ("editor", 2), ("subscriber", 1)),
    ],
    "SELECT mime_type, count(*) FROM media GROUP BY mime_type ORDER BY mime_type": [
        *(("image/jpeg", 20), ("image/png", 10)),
    ],
    "SELECT count(*) FROM media WHERE alt_text <> ''": [(24,)],
    "SELECT count(*) FROM media WHERE caption <> ''": [(25,)],
    "SELECT count(*) FROM legacy_files": [(94,)],
    "SELECT status, count(*) FROM events WHERE hide_from_listings GROUP BY status ORDER BY status": [
        *(("draft", 1), ("future", 3), ("private", 1), ("publish", 13), ("trash", 1)),
    ],
    "SELECT count(*) FROM events WHERE featured": [(52,)],
    # `sticky` of event 239, which is hidden in the trash, cannot be read.
    "SELECT count(*) FROM events WHERE sticky": [(26,)],
    "SELECT count(*) FROM events WHERE all_day": [(56,)],
    "SELECT status, count(*) FROM events WHERE password_hash IS NOT NULL GROUP BY status ORDER BY status": [
        *(("publish", 12), ("trash", 1)),
    ],
    "SELECT event_status, count(*) FROM events WHERE event_status <> 'scheduled' GROUP BY 1 ORDER BY 1": [
        *(("cancelled", 3), ("postponed", 6)),
    ],
    "SELECT count(*) FROM events WHERE cost <> ''": [(206,)],
    "SELECT count(*) FROM events WHERE timezone = 'UTC+5:30'": [(17,)],
    "SELECT count(*) FROM event_venues": [(236,)],
    "SELECT count(*) FROM event_organizers": [(287,)],
    "SELECT count(*) FROM event_categories": [(408,)],
    "SELECT count(*) FROM event_tags": [(374,)],
    "SELECT count(image_id) FROM events": [(94,)],
    "SELECT count(image_id) FROM venues": [(12,)],
    "SELECT count(image_id) FROM organizers": [(9,)],
    "SELECT status, count(*) FROM events WHERE slug = '' GROUP BY status ORDER BY status": [
        *(("draft", 6), ("pending", 9)),
    ],
    "SELECT count(*) FROM events WHERE slug LIKE '%%\\%%%%'": [(8,)],
    "SELECT count(*) FROM organizers WHERE slug LIKE '%%__trashed' AND status <> 'trash'": [(0,)],
    "SELECT count(*) FROM slug_redirects": [(8,)],
    "SELECT count(*) FROM events WHERE uid LIKE id || '-%%@old.example' AND feed_guid LIKE 'http%%'": [(300,)],
    "SELECT count(*) FROM events WHERE description LIKE '%%<!-- wp:%%' OR description LIKE '%%[caption%%'": [(0,)],
    "SELECT count(*) FROM events WHERE description LIKE '%%old.example/wp-content%%'": [(0,)],
    "SELECT last_post_id, former_host, name, timezone, first_weekday FROM sites": [
        (1000, "old.example", "Old Example Calendar", "America/New_York", 1)
    ],
    "SELECT count(*) FROM procrastinate_jobs WHERE task_name = 'publish'": [(15,)],
}


@pytest.fixture(scope="module")
def start_old() -> Iterator[Callable[..., OldSite]]:
    """Return a function that serves the recording with its own address, at a port."""
    if not (RECORDING / "replay.py").exists():
        pytest.skip(f"{RECORDING} has no recording; KALENDS_RECORDED_SITE names its directory")
    processes: list[subprocess.Popen[str]] = []

    def start(port: int, *options: str) -> OldSite:
        for process in processes:
            stop(process)
        processes.clear()
        command = [sys.executable, "-m", "tests.move_in.replay_server", str(RECORDING / "replay.py")]
        process = subprocess.Popen(
            [*command, "--port", str(port), "--base", OLD, *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2],
        )  # fmt: skip
        processes.append(process)
        assert process.stdout is not None
        assert "exchanges" in process.stdout.readline()
        wait_for(port)
        return OldSite(port, "replay", process)

    yield start
    for process in processes:
        stop(process)


def test_the_recorded_site_moves_in(
    postgres_url: str,
    template_database: str,
    tmp_path: Path,
    start_old: Callable[..., OldSite],
    find_port: Callable[[], int],
) -> None:
    with temporary_database(postgres_url, template=template_database) as name:
        port = find_port()
        site = NewSite(replace_database(postgres_url, name), tmp_path, start_old(port))
        run_id = site.plan()
        site.apply(run_id)
        assert ": 0 differences." in site.run("tec", "verify", run_id)
        assert {query: [tuple(row.values()) for row in site.sql(query)] for query in NUMBERS} == NUMBERS
        revision = site.read_revision()
        start_old(port, "--change-after", "0")
        again = site.plan()
        rows = site.sql("SELECT action, state, count(*) FROM import_rows WHERE run_id = %s GROUP BY 1, 2", again)
        assert sorted(tuple(row.values()) for row in rows) == [("changed", "pending", 5), ("gone", "waiting", 1)]
        site.apply(again)
        assert site.read_revision() == revision + 5
        with Snapshot.open(site.snapshot) as snapshot:
            assert snapshot.read_fact("crawl") == 2


@pytest.mark.skipif(not SOAK, reason="runs in a soak")
def test_twenty_kills_change_nothing(
    postgres_url: str,
    template_database: str,
    tmp_path: Path,
    start_old: Callable[..., OldSite],
    find_port: Callable[[], int],
) -> None:
    """The process that applies the plan is killed at random moments, and started again."""
    numbers, old, states = random.Random(20), start_old(find_port()), []
    for kills in (0, 20):
        with temporary_database(postgres_url, template=template_database) as name:
            directory = tmp_path / str(kills)
            directory.mkdir()
            site = NewSite(replace_database(postgres_url, name), directory, old)
            if kills:
                shutil.copy(tmp_path / "0" / "old.snapshot", site.snapshot)
            run_id = site.plan()
            for _ in range(kills):
                site.kill_during_apply(run_id, site.count_applied(run_id) + numbers.randrange(1, 25))
            site.apply(run_id)
            assert ": 0 differences." in site.run("tec", "verify", run_id)
            states.append(site.read_state())
    assert states[0] == states[1]


@pytest.mark.skipif(not SOAK, reason="runs in a soak")
def test_public_answers_are_those_of_the_old_site(
    postgres_url: str,
    template_database: str,
    tmp_path: Path,
    start_old: Callable[..., OldSite],
    find_port: Callable[[], int],
    start_server: Callable[..., Server],
) -> None:
    with temporary_database(postgres_url, template=template_database) as name:
        site = NewSite(replace_database(postgres_url, name), tmp_path, start_old(find_port()))
        site.apply(site.plan())
        settings = {
            "KALENDS_API_ALIASES": "/wp-json/tribe/events/v1",
            "KALENDS_MEDIA_DIR": site.environment["KALENDS_MEDIA_DIR"],
        }
        server = start_server(site.database_url, environment=settings, timeout=120)
        with open_client(server.base_url) as client:
            count, hidden, differences = compare_records(client, RECORDING)
            statuses, broken = find_broken_addresses(client, RECORDING)
        server.kill()
    # A venue and an organizer were protected, which only events can be: they are private.
    assert (count, sorted(hidden), differences) == (353, ["organizers/87", "venues/47"], {})
    assert (dict(statuses), broken) == ({200: 325, 301: 28}, [])
