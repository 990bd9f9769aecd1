"""Files are removed when nobody needs them, and never before; `media check` finds and repairs what is wrong."""

import asyncio
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from kalends.core.errors import ApiError
from kalends.core.times import utc_now
from kalends.media import jobs as media_jobs
from kalends.media.adapters.file_store import DiskFileStore
from kalends.media.adapters.library import Library, StoredImage
from kalends.media.images import add_image
from kalends.store.database import Database, Options
from tests.api.running_app import Caller, RunningApp, assert_error, expect_json
from tests.lifecycle.processes import run_command
from tests.media.file_checks import age_files, delete_orphans, list_files, list_referenced_files
from tests.media.image_fixtures import EXTENSION_URL, encode_image, make_image
from tests.media.media_client import (
    create_image,
    generate_sizes,
    media_root,
    open_media_library,
    read_file,
    read_image,
    upload_file,
)


@pytest.fixture
def empty_app(app: RunningApp) -> RunningApp:
    """The application of the module, with nothing in it."""
    for table in ("events", "venues", "organizers", "media"):
        app.sql(f"DELETE FROM {table}")
    for key in list_files(media_root(app)):
        (media_root(app) / key).unlink()
    return app


def run_collection(here: RunningApp, days: float = 0) -> int:
    return delete_orphans(here.database_url, media_root(here), days)


def test_files_of_deleted_image_are_deleted_after_one_day(empty_app: RunningApp, author: Caller) -> None:
    root = media_root(empty_app)
    current, deleted = (
        create_image(author, make_image(width=400, seed=1)),
        create_image(author, make_image(width=400, seed=2)),
    )
    for image in (current, deleted):
        generate_sizes(empty_app, image)
    assert list_files(root) == list_referenced_files(empty_app.database_url)
    assert len(list_files(root)) == 12
    expect_json(author.delete(f"{EXTENSION_URL}/media/{deleted['id']}"))
    assert (run_collection(empty_app), len(list_files(root))) == (0, 12)
    age_files(root, days=90)  # Files may be old: it counts since when nobody needs them.
    assert (run_collection(empty_app, 0.9), len(list_files(root))) == (0, 12)
    assert run_collection(empty_app, 1.1) == 6
    assert empty_app.sql("SELECT * FROM orphan_files") == []
    assert list_files(root) == list_referenced_files(empty_app.database_url)
    assert author.get(current["url"]).status_code == 200
    assert_error(author.get(deleted["url"]), 404, "rest_no_route")


def test_shared_file_is_deleted_with_last_record(empty_app: RunningApp, author: Caller) -> None:
    first, second = create_image(author, make_image(seed=3)), create_image(author, make_image(seed=3))
    for image in (first, second):
        expect_json(author.delete(f"{EXTENSION_URL}/media/{image['id']}"))
        assert run_collection(empty_app, 2) == (0 if image is first else 1)


def test_replaced_sizes_are_deleted(empty_app: RunningApp, author: Caller) -> None:
    image = create_image(author, make_image(width=900, height=300, seed=4))
    generate_sizes(empty_app, image)
    before = read_image(author, image)["sizes"]["thumbnail"]["url"]
    expect_json(author.patch(f"{EXTENSION_URL}/media/{image['id']}", {"focus_x": 0}))
    generate_sizes(empty_app, image)
    assert read_image(author, image)["sizes"]["thumbnail"]["url"] != before
    assert run_collection(empty_app, 2) == 2


def test_uploading_again_renews_orphan_file(empty_app: RunningApp, author: Caller) -> None:
    first = create_image(author, make_image(seed=5))
    expect_json(author.delete(f"{EXTENSION_URL}/media/{first['id']}"))
    age_files(media_root(empty_app))
    second = create_image(author, make_image(seed=5))
    assert (second["url"], run_collection(empty_app)) == (first["url"], 0)
    assert author.get(second["url"]).status_code == 200


def test_record_is_not_written_for_concurrently_deleted_file(empty_app: RunningApp, author: Caller) -> None:
    """The file was there, nobody's and old, and vanished between the look at it and the lock."""
    image = create_image(author, make_image(seed=6))
    row = empty_app.sql("SELECT url, width, height, filesize, upload_sha256 FROM media WHERE id = $1", image["id"])[0]
    (media_root(empty_app) / image["url"].partition("/media/")[2]).unlink()
    from kalends.core.image_types import JPEG

    stored_image = StoredImage(row["url"], JPEG, row["width"], row["height"], row["filesize"], row["upload_sha256"])

    async def write() -> None:
        database = await Database.open(Options(url=empty_app.database_url))
        try:
            async with database.transaction(1, utc_now(), writing=True) as tx:
                await tx.lock_site(None)
                await add_image(tx, open_media_library(empty_app), stored_image, user_id=author.id)
        finally:
            await database.close()

    with pytest.raises(ApiError) as error:
        empty_app.run(write())
    assert error.value.status == 503


def test_unknown_files_are_not_deleted(empty_app: RunningApp, author: Caller) -> None:
    root = media_root(empty_app)
    create_image(author)
    name = f"ab{'0' * 62}.jpg"
    for path in (root / "77" / "ab" / name, root / "1" / "ab" / "README.txt", root / "notes.txt"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    rest = root / "incoming" / "left-behind"
    rest.mkdir()
    (rest / "sent").write_bytes(b"x")
    age_files(root)
    assert run_collection(empty_app) == 0
    assert (root / "77" / "ab" / name).exists()
    assert (root / "1" / "ab" / "README.txt").exists()
    assert (root / "notes.txt").exists()
    assert not rest.exists()
    (root / "77" / "ab" / name).unlink()
    (root / "1" / "ab" / "README.txt").unlink()


def test_many_orphan_files_are_deleted_in_batches(empty_app: RunningApp) -> None:
    root = media_root(empty_app)
    for number in range(120):
        path = root / "1" / f"{number:02x}" / f"{number:02x}{number:062x}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    age_files(root)
    assert (run_collection(empty_app), list_files(root)) == (120, set())


def test_concurrent_upload_is_not_lost_to_slow_deletion(empty_app: RunningApp, author: Caller) -> None:
    """Reject an upload with Retry-After while the collector removes the same file; the next one is kept."""
    first = create_image(author, make_image(seed=7))
    expect_json(author.delete(f"{EXTENSION_URL}/media/{first['id']}"))
    age_files(media_root(empty_app))
    responses: list[int] = []

    class Slow(DiskFileStore):
        def remove(self, key: str) -> None:
            responses.append(upload_file(empty_app.caller("editor"), make_image(seed=7)).status_code)
            super().remove(key)

    async def collect_slowly() -> int:
        database = await Database.open(Options(url=empty_app.database_url))
        try:
            library = Library(Slow(media_root(empty_app)), media_root(empty_app), max_bytes=1000)
            return await media_jobs.collect_orphans(database, library, utc_now() + timedelta(days=2))
        finally:
            await database.close()

    assert asyncio.run(collect_slowly()) == 1
    assert responses == [503]
    again = create_image(author, make_image(seed=7))
    assert again["url"] == first["url"]
    assert author.get(again["url"]).status_code == 200


def test_stale_deletion_mark_expires(empty_app: RunningApp, author: Caller) -> None:
    first = create_image(author, make_image(seed=8))
    expect_json(author.delete(f"{EXTENSION_URL}/media/{first['id']}"))
    empty_app.sql("UPDATE orphan_files SET deleting_since = now()")
    assert upload_file(author, make_image(seed=8)).status_code == 503
    empty_app.sql("UPDATE orphan_files SET deleting_since = now() - interval '11 minutes'")
    assert create_image(author, make_image(seed=8))["url"] == first["url"]
    assert run_collection(empty_app, 2) == 0


# Checking -------------------------------------------------------------------------------------


def run_check(here: RunningApp) -> tuple[int, str]:
    result = run_command(here.database_url, "media", "check", settings={"KALENDS_MEDIA_DIR": str(media_root(here))})
    return result.exit_code, result.stdout


def file_path(here: RunningApp, url: str) -> Path:
    return media_root(here) / url.partition("/media/")[2]


def test_check_reports_no_errors_for_intact_library(empty_app: RunningApp, author: Caller) -> None:
    for seed in (1, 2):
        generate_sizes(empty_app, create_image(author, make_image(width=400, seed=seed)))
    assert run_check(empty_app) == (0, "2 images, 12 files, 0 of them damaged or missing; 0 images incomplete.\n")


def test_check_regenerates_missing_and_damaged_sizes(empty_app: RunningApp, author: Caller) -> None:
    image = create_image(author, make_image(width=400, seed=3))
    generate_sizes(empty_app, image)
    details = read_image(author, image)
    lost, changed = details["sizes"]["thumbnail"]["url"], details["sizes"]["medium"]["webp"]["url"]
    contents = {url: read_file(empty_app, url) for url in (lost, changed)}
    file_path(empty_app, lost).unlink()
    file_path(empty_app, changed).write_bytes(b"RIFF" + contents[changed][4:-1] + b"x")
    code, out = run_check(empty_app)
    assert code == 0
    assert out == (
        f"image {image['id']}: 2 damaged or missing files; regenerated\n"
        "1 images, 6 files, 2 of them damaged or missing; 0 images incomplete.\n"
    )
    assert {url: read_file(empty_app, url) for url in contents} == contents
    assert read_image(author, image) == details
    assert run_check(empty_app)[1].startswith("1 images, 6 files, 0 of them damaged or missing")


def test_check_generates_missing_sizes(empty_app: RunningApp, author: Caller) -> None:
    image = create_image(author, make_image(width=400, seed=6))
    empty_app.sql("DELETE FROM procrastinate_jobs")
    code, out = run_check(empty_app)
    assert (code, out.splitlines()) == (
        0,
        [
            f"image {image['id']}: 0 damaged or missing files; missing sizes were generated",
            "1 images, 1 files, 0 of them damaged or missing; 0 images incomplete.",
        ],
    )
    assert set(read_image(author, image)["sizes"]) == {"thumbnail", "medium", "full"}


def test_check_continues_after_unreadable_file(empty_app: RunningApp, author: Caller) -> None:
    images = [create_image(author, make_image(width=400, seed=seed)) for seed in (7, 8)]
    for image in images:
        generate_sizes(empty_app, image)
    path = file_path(empty_app, images[0]["url"])
    path.unlink()
    path.mkdir()
    code, out = run_check(empty_app)
    path.rmdir()
    assert (code, out.splitlines()[-1]) == (
        1,
        "2 images, 12 files, 1 of them damaged or missing; 1 images incomplete.",
    )


def test_job_and_check_find_the_hue_that_event_pages_show(empty_app: RunningApp, author: Caller) -> None:
    blue, gray = (
        create_image(author, encode_image(Image.new("RGB", (size, 300), colour)))
        for size, colour in ((400, (20, 60, 190)), (100, (90, 90, 90)))
    )
    event = empty_app.caller("editor").create("events", title="Blue", image=blue["id"],
                                              start_date="2031-05-02 19:00", end_date="2031-05-02 21:00")  # fmt: skip

    def read_class() -> str:
        status, _, body = empty_app.raw("GET", f"/event/{event['slug']}/")
        assert status == 200
        return re.findall(r'<header class="(w\d*)"', body.decode())[0]

    def read_hues() -> list[int | None]:
        return [row["hue"] for row in empty_app.sql("SELECT hue FROM media ORDER BY id")]

    assert (read_class(), read_hues()) == ("w", [None, None])
    assert generate_sizes(empty_app, blue)
    assert (read_class(), read_hues()) == ("w15", [15, None])
    # The check fills gaps, and the pages in the cache follow.
    generate_sizes(empty_app, gray)
    empty_app.sql("UPDATE media SET hue = NULL")
    code, out = run_check(empty_app)
    assert (code, out.count("\n"), read_hues(), read_class()) == (0, 1, [15, -1], "w15")


@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_bytes(b"x")], ids=["lost", "damaged"])
def test_check_reports_unrecoverable_image(
    empty_app: RunningApp, author: Caller, harm: Callable[[Path], Any]
) -> None:
    image = create_image(author, make_image(width=400, seed=4))
    generate_sizes(empty_app, image)
    harm(file_path(empty_app, image["url"]))
    code, out = run_check(empty_app)
    assert code == 1
    assert out == (
        f"image {image['id']}: 1 damaged or missing files; the original image is missing\n"
        "1 images, 6 files, 1 of them damaged or missing; 1 images incomplete.\n"
    )


def test_concurrent_workers_generate_sizes_once(empty_app: RunningApp, author: Caller) -> None:
    image = create_image(author, make_image(width=400, seed=5))

    async def several() -> list[bool]:
        database = await Database.open(Options(url=empty_app.database_url))
        try:
            libraries = [open_media_library(empty_app) for _ in range(3)]
            work = [media_jobs.make_sizes(database, library, utc_now(), 1, image["id"]) for library in libraries]
            return list(await asyncio.gather(*work))
        finally:
            await database.close()

    assert empty_app.run(several()) == [True, True, True]
    assert list_files(media_root(empty_app)) == list_referenced_files(empty_app.database_url)
    rows = empty_app.sql("SELECT count(*) FROM changes WHERE kind = 'media' AND record_id = $1", image["id"])
    assert rows[0][0] == 2  # It was made, and then its sizes, once.
