"""Files in a bucket: the same promises as on a disk, kept by a server with the interface of S3."""

import asyncio
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from kalends.bootstrap import open_library
from kalends.core.clock import utc_now
from kalends.operations.media import maintenance
from kalends.operations.media.library import Library
from kalends.settings import InvalidSettings, read_settings
from kalends.store.database import Database, Options
from tests.api.running_app import Interface, assert_refused, done
from tests.media.file_checks import needed_files
from tests.media.image_fixtures import EXTENSION, picture
from tests.media.media_client import add, read, send
from tools.s3 import PROGRAM, Bucket, bucket

pytestmark = pytest.mark.skipif(not PROGRAM, reason="there is no moto_server; `just setup-s3` installs it")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Bucket, "subprocess.Popen[bytes]"]]:
    with bucket(tmp_path / "bucket.log") as running:
        yield running


@pytest.fixture
def here(fresh: Callable[..., Interface], served: tuple[Bucket, object]) -> Interface:
    return fresh(served[0].settings)


def library_of(found: Bucket, directory: Path) -> Library:
    settings = {name.removeprefix("KALENDS_").lower(): value for name, value in found.settings.items()}
    return open_library(read_settings(media_dir=str(directory), **settings))


def test_bucket_behaves_like_disk(here: Interface, served: tuple[Bucket, object], tmp_path: Path) -> None:
    found, _ = served
    author, library = here.caller("author"), library_of(found, tmp_path)
    kept, gone = add(author, picture(width=400, seed=1)), add(author, picture("PNG", 400, seed=2))

    async def with_database(now_in: timedelta = timedelta(0)) -> tuple[bool, int, list[maintenance.ImageCheck]]:
        """Sizes of what is kept, collection at a moment, and a check of everything."""
        database = await Database.open(Options(url=here.database_url))
        try:
            sized = await maintenance.make_sizes(database, library, utc_now(), 1, kept["id"])
            removed = await maintenance.collect_orphans(database, library, utc_now() + now_in)
            checked = [entry async for entry in maintenance.check_media(database, library, 1, utc_now())]
        finally:
            await database.close()
        return sized, removed, checked

    def keys() -> set[str]:
        return {entry.key for entry in library.files.iter_files()}

    sized, removed, checked = here.run(with_database())
    assert (sized, removed, [(entry.file_count, entry.damaged_files) for entry in checked]) == (
        True,
        0,
        [(6, ()), (1, ())],
    )
    assert keys() == needed_files(here.database_url)
    shown = read(author, kept)
    for url in (kept["url"], shown["sizes"]["thumbnail"]["webp"]["url"]):
        answer = here.caller().get(url)
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["content-type"] == ("image/webp" if url.endswith("webp") else "image/jpeg")
        direct = found.client.get_object(found.name, url.partition("/media/")[2])
        assert direct.data == answer.content
        assert direct.headers["content-type"] == answer.headers["content-type"]
        assert direct.headers["cache-control"] == answer.headers["cache-control"]
    assert_refused(here.caller().get(f"http://calendar.test/media/1/ab/ab{'0' * 62}.jpg"), 404, "rest_no_route")

    done(author.delete(f"{EXTENSION}/media/{gone['id']}"))
    assert here.run(with_database(timedelta(hours=23)))[1] == 0
    assert here.run(with_database(timedelta(hours=25)))[1] == 6
    assert keys() == needed_files(here.database_url)

    # One size is lost and another damaged: both are regenerated.
    sizes = shown["sizes"]
    lost, wrong = (sizes[name]["url"].partition("/media/")[2] for name in ("thumbnail", "medium"))
    content = library.files.read(wrong)
    library.files.remove(lost)
    (tmp_path / "wrong").write_bytes(b"x")
    library.files.put(wrong, tmp_path / "wrong")
    assert here.run(check(here, library)) == [(2, True)]
    assert (library.files.read(wrong), library.files.modified(lost) is not None) == (content, True)


async def check(here: Interface, library: Library) -> list[tuple[int, bool]]:
    database = await Database.open(Options(url=here.database_url))
    try:
        found = maintenance.check_media(database, library, 1, utc_now())
        return [(len(entry.damaged_files), entry.is_complete) async for entry in found]
    finally:
        await database.close()


def test_unavailable_bucket_is_503_and_affects_nothing_else(
    here: Interface, served: tuple[Bucket, "subprocess.Popen[bytes]"]
) -> None:
    author, (_, process) = here.caller("author"), served
    made = add(author)
    process.terminate()
    process.wait(30)
    began = time.monotonic()
    assert_refused(send(author, picture(seed=3)), 503, "rest_unavailable")
    assert_refused(author.get(made["url"]), 503, "rest_unavailable")
    assert time.monotonic() - began < 20
    assert read(author, made) == made
    assert author.create("venues", venue="x", image=made["id"])["image"]["url"] == made["url"]


def test_hanging_bucket_blocks_only_media_requests(fresh: Callable[..., Interface]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = Bucket(f"http://127.0.0.1:{silent.getsockname()[1]}").settings
        interface = fresh(settings)
        editor, address = interface.caller("editor"), f"http://calendar.test/media/1/ab/ab{'0' * 62}.jpg"

        async def meanwhile() -> float:
            async with asyncio.TaskGroup() as group:
                readers = [group.create_task(interface.caller().ask("GET", address)) for _ in range(12)]
                await asyncio.sleep(0.5)
                began = time.monotonic()
                # So much text is read in a thread.
                answer = await editor.ask("POST", "/venues", json={"venue": "x", "description": "<p>word</p>" * 3000})
                took = time.monotonic() - began
                assert answer.status_code == 201
                for reader in readers:
                    reader.cancel()
            return took

        assert interface.run(meanwhile()) < 2


def test_missing_bucket_key_is_reported_at_startup() -> None:
    with pytest.raises(InvalidSettings, match=r"KALENDS_S3_SECRET_KEY.*is required when KALENDS_S3_BUCKET is set"):
        read_settings(s3_bucket="pictures", s3_access_key="name")
    assert read_settings(s3_bucket="pictures", s3_access_key="name", s3_secret_key="key").s3_bucket == "pictures"


def test_wrong_bucket_credentials_are_503(fresh: Callable[..., Interface], served: tuple[Bucket, object]) -> None:
    wrong = ({"access_key": "nobody"}, {"secret_key": "not the one"}, {"name": "none"})
    for settings in (replace(served[0], **change).settings for change in wrong):
        assert_refused(send(fresh(settings).caller("author"), picture()), 503, "rest_unavailable")
