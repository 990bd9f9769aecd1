"""A dump is restored in a fresh cluster by the documented commands; `kalends migrate` adds what it lacks."""

import base64
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from kalends.store.migrations import newest_revision
from tests.backup.backup_page import PAGE, read_blocks
from tests.backup.records import hash_records
from tests.lifecycle.processes import run_command
from tests.servers import make_environment
from tools.postgres import Server, throwaway

IMAGE = base64.b64decode("R0lGODdhCAAGAIAAAAAAAAAAACwAAAAACAAGAAAIDgABCBxIsKDBgwgTDgwIADs=")


@pytest.fixture
def fresh_cluster() -> Iterator[Server]:
    with throwaway() as server:
        yield server


def test_dump_is_restored_in_a_fresh_cluster(database_url: str, fresh_cluster: Server, tmp_path: Path) -> None:
    media = {"KALENDS_MEDIA_DIR": str(tmp_path / "media")}
    fill(database_url, tmp_path / "photos", media)
    location = urlsplit(fresh_cluster.url)
    new_server = {"PGHOST": str(location.hostname), "PGPORT": str(location.port), "PGUSER": str(location.username)}
    completed = subprocess.run(
        ["bash", "-eu", "-c", "\n".join(read_blocks("Dump and restore"))],
        cwd=tmp_path,
        env=make_environment(database_url, {**media, **new_server}),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr

    url = fresh_cluster.build_url("calendar")
    assert run_command(url, "check").exit_code == 1
    migrated = run_command(url, "migrate")
    expected = f"The schema is up to date ({newest_revision()}).\nMarked 5 functions LEAKPROOF.\n"
    assert (migrated.exit_code, migrated.stdout) == (0, expected)
    assert expected.replace(newest_revision(), "…") in PAGE.read_text()
    assert run_command(url, "check").exit_code == 0
    assert hash_records(url) == hash_records(database_url)

    copied = {"KALENDS_MEDIA_DIR": str(tmp_path / "media-backup")}
    checked = run_command(url, "media", "check", settings=copied)
    assert (checked.exit_code, "0 of them damaged or missing" in checked.stdout) == (0, True), checked.output


def fill(database_url: str, photos: Path, media: dict[str, str]) -> None:
    """Add events and an image."""
    photos.mkdir()
    (photos / "gate.gif").write_bytes(IMAGE)
    for command in (
        ("seed", "--events", "20"),
        ("user", "add", "anna", "--role", "administrator"),
        ("media", "add", str(photos), "--login", "anna"),
    ):
        result = run_command(database_url, *command, settings=media)
        assert result.exit_code == 0, result.output
