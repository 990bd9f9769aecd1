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
from kalends.core.times import utc_now
from kalends.media import jobs as media_jobs
from kalends.media.adapters.library import Library
from kalends.settings import InvalidSettings, read_settings
from kalends.store.database import Database, Options
from tests.api.running_app import RunningApp, assert_error, expect_json
from tests.media.file_checks import list_referenced_files
from tests.media.image_fixtures import EXTENSION_URL, make_image
from tests.media.media_client import create_image, read_image, upload_file
from tools.s3 import PROGRAM, Bucket, bucket

pytestmark = pytest.mark.skipif(not PROGRAM, reason="there is no moto_server; `just setup-s3` installs it")


@pytest.fixture
def bucket_server(tmp_path: Path) -> Iterator[tuple[Bucket, "subprocess.Popen[bytes]"]]:
    with bucket(tmp_path / "bucket.log") as running:
        yield running


@pytest.fixture
def empty_app(start_app: Callable[..., RunningApp], bucket_server: tuple[Bucket, object]) -> RunningApp:
    return start_app(bucket_server[0].settings)


def open_bucket_library(bucket: Bucket, directory: Path) -> Library:
    settings = {name.removeprefix("KALENDS_").lower(): value for name, value in bucket.settings.items()}
    return open_library(read_settings(media_dir=str(directory), **settings))


def test_bucket_behaves_like_disk(
    empty_app: RunningApp, bucket_server: tuple[Bucket, object], tmp_path: Path
) -> None:
    store, _ = bucket_server
    author, library = empty_app.caller("author"), open_bucket_library(store, tmp_path)
    current, deleted = (
        create_image(author, make_image(width=400, seed=1)),
        create_image(author, make_image("PNG", 400, seed=2)),
    )

    async def run_maintenance(offset: timedelta = timedelta(0)) -> tuple[bool, int, list[media_jobs.ImageCheck]]:
        """Sizes of what is kept, collection at a moment, and a check of everything."""
        database = await Database.open(Options(url=empty_app.database_url))
        try:
            sized = await media_jobs.make_sizes(database, library, utc_now(), 1, current["id"])
            removed = await media_jobs.collect_orphans(database, library, utc_now() + offset)
            checked = [entry async for entry in media_jobs.check_media(database, library, 1, utc_now())]
        finally:
            await database.close()
        return sized, removed, checked

    def list_keys() -> set[str]:
        return {entry.key for entry in library.files.iter_files()}

    sized, removed, checked = empty_app.run(run_maintenance())
    assert (sized, removed, [(entry.file_count, entry.damaged_files) for entry in checked]) == (
        True,
        0,
        [(6, ()), (1, ())],
    )
    assert list_keys() == list_referenced_files(empty_app.database_url)
    details = read_image(author, current)
    for url in (current["url"], details["sizes"]["thumbnail"]["webp"]["url"]):
        response = empty_app.caller().get(url)
        assert response.status_code == 200
        assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert response.headers["content-type"] == ("image/webp" if url.endswith("webp") else "image/jpeg")
        direct = store.client.get_object(store.name, url.partition("/media/")[2])
        assert direct.data == response.content
        assert direct.headers["content-type"] == response.headers["content-type"]
        assert direct.headers["cache-control"] == response.headers["cache-control"]
    assert_error(empty_app.caller().get(f"http://calendar.test/media/1/ab/ab{'0' * 62}.jpg"), 404, "rest_no_route")

    expect_json(author.delete(f"{EXTENSION_URL}/media/{deleted['id']}"))
    assert empty_app.run(run_maintenance(timedelta(hours=23)))[1] == 0
    assert empty_app.run(run_maintenance(timedelta(hours=25)))[1] == 6
    assert list_keys() == list_referenced_files(empty_app.database_url)

    # One size is lost and another damaged: both are regenerated.
    sizes = details["sizes"]
    lost, wrong = (sizes[name]["url"].partition("/media/")[2] for name in ("thumbnail", "medium"))
    content = library.files.read(wrong)
    library.files.remove(lost)
    (tmp_path / "wrong").write_bytes(b"x")
    library.files.put(wrong, tmp_path / "wrong")
    assert empty_app.run(check_library(empty_app, library)) == [(2, True)]
    assert (library.files.read(wrong), library.files.modified(lost) is not None) == (content, True)


async def check_library(here: RunningApp, library: Library) -> list[tuple[int, bool]]:
    database = await Database.open(Options(url=here.database_url))
    try:
        checks = media_jobs.check_media(database, library, 1, utc_now())
        return [(len(entry.damaged_files), entry.is_complete) async for entry in checks]
    finally:
        await database.close()


def test_unavailable_bucket_is_503_and_affects_nothing_else(
    empty_app: RunningApp, bucket_server: tuple[Bucket, "subprocess.Popen[bytes]"]
) -> None:
    author, (_, process) = empty_app.caller("author"), bucket_server
    image = create_image(author)
    process.terminate()
    process.wait(30)
    started = time.monotonic()
    assert_error(upload_file(author, make_image(seed=3)), 503, "rest_unavailable")
    assert_error(author.get(image["url"]), 503, "rest_unavailable")
    assert time.monotonic() - started < 20
    assert read_image(author, image) == image
    assert author.create("venues", venue="x", image=image["id"])["image"]["url"] == image["url"]


def test_hanging_bucket_blocks_only_media_requests(start_app: Callable[..., RunningApp]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = Bucket(f"http://127.0.0.1:{silent.getsockname()[1]}").settings
        app = start_app(settings)
        editor, url = app.caller("editor"), f"http://calendar.test/media/1/ab/ab{'0' * 62}.jpg"

        async def measure_write() -> float:
            async with asyncio.TaskGroup() as group:
                readers = [group.create_task(app.caller().request_async("GET", url)) for _ in range(12)]
                await asyncio.sleep(0.5)
                started = time.monotonic()
                # So much text is read in a thread.
                response = await editor.request_async(
                    "POST", "/venues", json={"venue": "x", "description": "<p>word</p>" * 3000}
                )
                took = time.monotonic() - started
                assert response.status_code == 201
                for reader in readers:
                    reader.cancel()
            return took

        assert app.run(measure_write()) < 2


def test_missing_bucket_key_is_reported_at_startup() -> None:
    with pytest.raises(InvalidSettings, match=r"KALENDS_S3_SECRET_KEY.*is required if KALENDS_S3_BUCKET is set"):
        read_settings(s3_bucket="pictures", s3_access_key="name")
    assert read_settings(s3_bucket="pictures", s3_access_key="name", s3_secret_key="key").s3_bucket == "pictures"


def test_wrong_bucket_credentials_are_503(
    start_app: Callable[..., RunningApp], bucket_server: tuple[Bucket, object]
) -> None:
    wrong = ({"access_key": "nobody"}, {"secret_key": "not the one"}, {"name": "none"})
    for settings in (replace(bucket_server[0], **change).settings for change in wrong):
        assert_error(upload_file(start_app(settings).caller("author"), make_image()), 503, "rest_unavailable")
