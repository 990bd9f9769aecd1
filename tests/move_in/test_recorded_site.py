"""The complete recording of a site, against its database: every record, every field.

The recording is not part of this project; its own server answers, and 501 to anything that was not recorded.
"""

import asyncio
import gzip
import hashlib
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kalends.move_in.operations.old_snapshot import Snapshot
from kalends.move_in.rules.old_records import MoveIn
from tests.move_in.conftest import RECORDING, OldSite, StartSite
from tests.move_in.truth import compare
from tests.soak import SOAK

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def truth_text(start_recording: StartSite) -> str:
    with gzip.open(RECORDING / "truth.json.gz", "rt", encoding="utf-8") as file:
        return file.read()


@pytest.fixture(scope="module")
def recorded(start_recording: StartSite) -> OldSite:
    return start_recording()


@pytest.fixture(scope="module")
def path(recorded: OldSite, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recorded") / "old.snapshot"
    result = asyncio.run(recorded.crawl(path))
    assert (result.events, result.passes, result.warnings) == (300, 2, [])
    return path


@pytest.fixture(scope="module")
def move_in(recorded: OldSite, path: Path) -> MoveIn:
    return recorded.map(path)


# test_crawl.py has the same with a small site.
long_only = pytest.mark.skipif(not SOAK, reason="runs in a soak")


def count_statuses(move_in: MoveIn, kind: str) -> dict[str, int]:
    return dict(Counter(record.values["status"] for record in move_in.of_kind(kind)))


def test_every_field_of_every_record(recorded: OldSite, move_in: MoveIn, truth_text: str) -> None:
    assert compare(move_in.records, recorded.read_truth(truth_text), "127.0.0.1") == []
    assert move_in.rejections == []


def test_nothing_was_requested_that_is_not_recorded(path: Path) -> None:
    with Snapshot.open(path) as snapshot:
        statuses = Counter(exchange.status for exchange in snapshot.list(""))
    assert (set(statuses), statuses[403]) == ({200, 301, 403}, 10)  # Trashed events are 403 in `tribe`.


def test_numbers_of_the_design(move_in: MoveIn) -> None:
    assert count_statuses(move_in, "events") == {
        "publish": 237,
        "private": 16,
        "future": 15,
        "pending": 11,
        "draft": 11,
        "trash": 10,
    }
    # One venue and one organizer are protected, which makes them private.
    assert count_statuses(move_in, "venues") == {"publish": 33, "private": 3, "draft": 1, "pending": 1, "trash": 2}
    assert count_statuses(move_in, "organizers") == {
        "publish": 28,
        "private": 2,
        "draft": 1,
        "pending": 1,
        "trash": 2,
    }
    assert [len(move_in.of_kind(kind)) for kind in ("categories", "tags", "users", "media")] == [25, 40, 7, 30]
    assert sum(bool(record.links["parent"]) for record in move_in.of_kind("categories")) == 9
    events = move_in.of_kind("events")
    flags = ("hide_from_listings", "featured", "sticky", "all_day")
    assert [sum(record.values[name] for record in events) for name in flags] == [19, 52, 26, 56]
    assert sum(bool(record.values["new_password"]) for record in events) == 13
    states = Counter(record.values["event_status"] for record in events)
    assert states == {"scheduled": 291, "cancelled": 3, "postponed": 6}
    assert sum(bool(record.values["cost"]) for record in events) == 206
    assert sum(record.values["timezone"] == "UTC+5:30" for record in events) == 17
    links = ("venue", "organizer", "categories", "tags", "image")
    assert [sum(len(record.links[name]) for record in events) for name in links] == [236, 287, 408, 374, 94]
    assert sum(record.columns["slug"] == "" for record in events) == 15


def test_terms_and_linked_records_come_first(move_in: MoveIn) -> None:
    written: set[tuple[str, str]] = set()
    kinds = {
        "parent": "categories",
        "venue": "venues",
        "organizer": "organizers",
        "image": "media",
        "author": "users",
    }
    for record in move_in.records:
        linked = {(kinds.get(name, name), identity) for name, ids in record.links.items() for identity in ids}
        assert linked <= written
        written.add((record.kind, record.identity))


def test_files_and_redirects(path: Path, recorded: OldSite, move_in: MoveIn, truth_text: str) -> None:
    images: list[dict[str, Any]] = [
        post for post in recorded.read_truth(truth_text)["posts"] if post["type"] == "attachment"
    ]
    with Snapshot.open(path) as snapshot:
        files = {identity: snapshot.find(url) for identity, url in move_in.image_urls.items()}
    hashes = {identity: hashlib.sha256(file.body).hexdigest() for identity, file in files.items() if file}
    assert hashes == {str(image["id"]): image["sha256"] for image in images}
    assert len(move_in.legacy_files) == len({file.path for file in move_in.legacy_files}) == 94
    assert len(move_in.redirects) == 8
    assert {(redirect.kind, redirect.identity) for redirect in move_in.redirects} <= {
        record.key[:2] for record in move_in.records
    }
    assert move_in.prefixes == []


def test_settings_of_the_site(recorded: OldSite, move_in: MoveIn) -> None:
    site = move_in.site
    assert (site.url, site.host, site.name) == (recorded.url, "127.0.0.1", "Old Example Calendar")
    assert (site.timezone, site.language, site.first_weekday, site.per_page) == ("America/New_York", "en", 1, 12)
    assert (site.currency_symbol, site.currency_code, site.currency_position) == ("$", "USD", "prefix")
    assert (site.highest_post_id, site.highest_term_id, site.highest_user_id) == (481, 66, 7)


def test_warnings(move_in: MoveIn) -> None:
    assert {str(warning.cause): len(warning.records) for warning in move_in.warnings} == {
        "It has a caption and a description; the description is lost.": 5,
        "It is protected by a password, which only events can be; it becomes private.": 2,
        "Its embedded media become links.": 10,
    }


@pytest.mark.exhaustive
@long_only
@pytest.mark.parametrize("options", [("--fail-every", "7"), ("--drop-every", "11")])
async def test_faults(start_recording: StartSite, tmp_path: Path, truth_text: str, options: tuple[str, ...]) -> None:
    site = start_recording(*options)
    await site.crawl(tmp_path / "snapshot")
    truth = site.read_truth(truth_text)
    assert compare(site.map(tmp_path / "snapshot").records, truth, "127.0.0.1") == []


@pytest.mark.exhaustive
@long_only
async def test_changes_during_the_crawl(start_recording: StartSite, tmp_path: Path, truth_text: str) -> None:
    """Five events are edited and one is deleted while single events are read."""
    site = start_recording("--change-after", "400")
    result = await site.crawl(tmp_path / "snapshot")
    assert (result.events, result.passes) == (299, 3)
    events = site.map(tmp_path / "snapshot").of_kind("events")
    assert sum(record.values["title"].startswith("Edited: ") for record in events) == 5


@pytest.mark.exhaustive
async def test_incremental_crawl(start_recording: StartSite, recorded: OldSite, path: Path, tmp_path: Path) -> None:
    """A second crawl reads five edited events and notices the deleted one."""
    # The server cannot edit the index, which is read first. Another address in its texts would be a change.
    site = start_recording("--change-after", "2", "--base", recorded.url)
    copy = Path(shutil.copy(path, tmp_path))
    with Snapshot.open(copy) as snapshot:
        snapshot.write_fact("url", site.url)
    result = await site.crawl(copy)
    assert (result.number, result.events, result.passes) == (2, 299, 2)
    with Snapshot.open(copy) as snapshot:
        singles = [exchange for exchange in snapshot.list("wp/v2/tribe_events/") if exchange.crawl == 2]
    assert Counter(exchange.status for exchange in singles) == {200: 5, 404: 1}
