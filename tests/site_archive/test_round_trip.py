"""`kalends site export` and `site import`: a site that was moved in a file is the same site."""

import hashlib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import psycopg
import pytest

from tests.servers import Server
from tests.site_archive.conftest import HOST, Place
from tests.site_archive.edited_archives import Archive
from tests.site_archive.responses import Serving, compare_responses
from tests.site_archive.site_rows import read_counters, read_rows, read_stored_counters

CHANGING = ("exported_at", "site")


def read_members(path: Path) -> dict[str, str]:
    with zipfile.ZipFile(path) as file:
        hashes = {name: hashlib.sha256(file.read(name)).hexdigest() for name in file.namelist()}
    hashes.pop("manifest.json")
    return hashes


def read_manifest(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as file:
        manifest: dict[str, Any] = orjson.loads(file.read("manifest.json"))
    return manifest


@pytest.mark.parametrize("accounts", [False, True])
def test_archive_of_the_imported_site_is_equal(
    archives: Callable[[bool], Path], new_place: Place, tmp_path: Path, accounts: bool
) -> None:
    first, second = archives(accounts), tmp_path / "second.zip"
    new_place.run("site", "import", str(first), "--host", "new.example", "--first-host", "old.example")
    new_place.run("site", "export", "new.example", "--to", str(second), *(["--accounts"] if accounts else []))
    assert read_members(second) == read_members(first)
    manifests = [read_manifest(first), read_manifest(second)]
    assert manifests[0]["site"]["hosts"] == [HOST]
    assert manifests[1]["site"]["hosts"] == ["new.example"]
    for manifest in manifests:
        for name in CHANGING:
            del manifest[name]
    assert manifests[0] == manifests[1]


def test_every_table_is_in_the_archive(archives: Callable[[bool], Path]) -> None:
    """A table without rows in the site that has everything would make the other tests vacuous."""
    tables = read_manifest(archives(True))["tables"]
    assert [name for name, entry in tables.items() if entry["rows"] == 0] == []
    personal = {"drafts", "saved_filters", "submitters", "proposals", "proposal_pictures", "followers", "follows"}
    assert set(tables) - set(read_manifest(archives(False))["tables"]) == personal


def test_imported_rows_and_counters_are_equal(
    full_site: Place, archives: Callable[[bool], Path], tmp_path: Path, database_url: str
) -> None:
    place = Place(database_url, tmp_path / "media")
    place.run("site", "import", str(archives(True)), "--host", "new.example", "--first-host", "old.example")
    source, target = read_rows(full_site.url, 1), read_rows(place.url, 2)
    for table, rows in source.items():
        assert target[table] == rows, table
    counters = read_stored_counters(place.url, 2)
    assert counters == read_counters(place.url, 2) == read_stored_counters(full_site.url, 1)
    assert all(counters.values())
    # The empty site that was there before is untouched.
    assert [table for table, rows in read_rows(place.url, 1).items() if rows] == ["sites"]


def test_imported_sites_send_no_emails(archives: Callable[[bool], Path], new_place: Place) -> None:
    new_place.run("site", "import", str(archives(True)), "--host", "new.example", "--first-host", "old.example")
    with psycopg.connect(new_place.url) as connection:
        query = "SELECT follow_by_email, (SELECT count(*) FROM follows) FROM sites WHERE id = 2"
        assert connection.execute(query).fetchone() == (False, 1)


def test_wrong_places_are_corrected(archives: Callable[[bool], Path], new_place: Place, tmp_path: Path) -> None:
    """Whether an event has a place is derived from its venues, whatever the archive says."""
    archive = Archive.load(archives(False))
    archive.set_rows("events", [{**row, "geoloc_known": not row["geoloc_known"]} for row in archive.rows("events")])
    path = archive.save(tmp_path / "wrong.zip")
    new_place.run("site", "import", str(path), "--host", "new.example", "--first-host", "old.example")
    assert read_stored_counters(new_place.url, 2) == read_counters(new_place.url, 2)


def test_site_can_be_imported_beside_itself(
    full_site: Place, archives: Callable[[bool], Path], start_server: Callable[..., Server]
) -> None:
    output = full_site.run("site", "import", str(archives(False)), "--host", "copy.example")
    site_id = int(output.split("Imported site ", 1)[1].split()[0])
    try:
        assert site_id > 1
        server = start_server(full_site.url, environment=full_site.settings)
        compare_responses(Serving(server, HOST, 1), Serving(server, "copy.example", site_id))
    finally:
        full_site.run("site", "remove", str(site_id), "--yes")


def test_both_servers_give_the_same_responses(
    full_site: Place, archives: Callable[[bool], Path], new_place: Place, start_server: Callable[..., Server]
) -> None:
    new_place.run("site", "import", str(archives(True)), "--host", "copy.example", "--first-host", "old.example")
    servers = [start_server(place.url, environment=place.settings) for place in (full_site, new_place)]
    compare_responses(Serving(servers[0], HOST, 1), Serving(servers[1], "copy.example", 2))
