"""Files are removed when nobody needs them, and never before; `media check` finds and repairs what is wrong."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kalends.adapters.file_store import DiskFileStore
from kalends.core.clock import utc_now
from kalends.core.errors import ApiError
from kalends.operations.media import maintenance
from kalends.operations.media.images import add_image
from kalends.operations.media.library import Library, StoredImage
from kalends.store.database import Database, Options
from tests.api.interface import Caller, Interface, assert_refused, done
from tests.life.processes import run_command
from tests.media.disk import collect, files_in, grow_old, needed_files
from tests.media.kit import EXTENSION, picture
from tests.media.library import add, file_of, library_of, make_sizes, read, root_of, send


@pytest.fixture
def here(interface: Interface) -> Interface:
    """The application of the module, with nothing in it."""
    for table in ("events", "venues", "organizers", "media"):
        interface.sql(f"DELETE FROM {table}")
    for key in files_in(root_of(interface)):
        (root_of(interface) / key).unlink()
    return interface


def collected(here: Interface, days: float = 0) -> int:
    return collect(here.database_url, root_of(here), days)


def test_files_of_a_removed_image_are_collected_after_a_day(here: Interface, author: Caller) -> None:
    root = root_of(here)
    kept, gone = add(author, picture(width=400, seed=1)), add(author, picture(width=400, seed=2))
    for image in (kept, gone):
        make_sizes(here, image)
    assert files_in(root) == needed_files(here.database_url)
    assert len(files_in(root)) == 12
    done(author.delete(f"{EXTENSION}/media/{gone['id']}"))
    assert (collected(here), len(files_in(root))) == (0, 12)
    grow_old(root, days=90)  # Files may be old: it counts since when nobody needs them.
    assert (collected(here, 0.9), len(files_in(root))) == (0, 12)
    assert collected(here, 1.1) == 6
    assert here.sql("SELECT * FROM orphan_files") == []
    assert files_in(root) == needed_files(here.database_url)
    assert author.get(kept["url"]).status_code == 200
    assert_refused(author.get(gone["url"]), 404, "rest_no_route")


def test_a_file_that_two_records_need_stays_until_both_are_gone(here: Interface, author: Caller) -> None:
    first, second = add(author, picture(seed=3)), add(author, picture(seed=3))
    for image in (first, second):
        done(author.delete(f"{EXTENSION}/media/{image['id']}"))
        assert collected(here, 2) == (0 if image is first else 1)


def test_sizes_that_were_replaced_are_collected(here: Interface, author: Caller) -> None:
    image = add(author, picture(width=900, height=300, seed=4))
    make_sizes(here, image)
    before = read(author, image)["sizes"]["thumbnail"]["url"]
    done(author.patch(f"{EXTENSION}/media/{image['id']}", {"focus_x": 0}))
    make_sizes(here, image)
    assert read(author, image)["sizes"]["thumbnail"]["url"] != before
    assert collected(here, 2) == 2


def test_what_is_sent_again_is_young_again(here: Interface, author: Caller) -> None:
    first = add(author, picture(seed=5))
    done(author.delete(f"{EXTENSION}/media/{first['id']}"))
    grow_old(root_of(here))
    second = add(author, picture(seed=5))
    assert (second["url"], collected(here)) == (first["url"], 0)
    assert author.get(second["url"]).status_code == 200


def test_a_record_is_not_written_for_a_file_that_was_collected_meanwhile(here: Interface, author: Caller) -> None:
    """The file was there, nobody's and old, and vanished between the look at it and the lock."""
    image = add(author, picture(seed=6))
    row = here.sql("SELECT url, width, height, filesize, upload_sha256 FROM media WHERE id = $1", image["id"])[0]
    (root_of(here) / image["url"].partition("/media/")[2]).unlink()
    from kalends.core.image_types import JPEG

    taken = StoredImage(row["url"], JPEG, row["width"], row["height"], row["filesize"], row["upload_sha256"])

    async def write() -> None:
        database = await Database.open(Options(url=here.database_url))
        try:
            async with database.transaction(1, utc_now(), writing=True) as tx:
                await tx.lock_site(None)
                await add_image(tx, library_of(here), taken, user_id=author.id)
        finally:
            await database.close()

    with pytest.raises(ApiError) as refused:
        here.run(write())
    assert refused.value.status == 503


def test_files_of_unknown_sites_and_other_files_are_left_alone(here: Interface, author: Caller) -> None:
    root = root_of(here)
    add(author)
    name = f"ab{'0' * 62}.jpg"
    for path in (root / "77" / "ab" / name, root / "1" / "ab" / "README.txt", root / "notes.txt"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    rest = root / "incoming" / "left-behind"
    rest.mkdir()
    (rest / "sent").write_bytes(b"x")
    grow_old(root)
    assert collected(here) == 0
    assert (root / "77" / "ab" / name).exists()
    assert (root / "1" / "ab" / "README.txt").exists()
    assert (root / "notes.txt").exists()
    assert not rest.exists()
    (root / "77" / "ab" / name).unlink()
    (root / "1" / "ab" / "README.txt").unlink()


def test_many_orphans_are_collected_in_several_goes(here: Interface) -> None:
    root = root_of(here)
    for number in range(120):
        path = root / "1" / f"{number:02x}" / f"{number:02x}{number:062x}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    grow_old(root)
    assert (collected(here), files_in(root)) == (120, set())


def test_a_file_is_not_lost_to_a_slow_storage(here: Interface, author: Caller) -> None:
    """While the collector removes a file, whoever sends the same one is asked to come again; then it is kept."""
    first = add(author, picture(seed=7))
    done(author.delete(f"{EXTENSION}/media/{first['id']}"))
    grow_old(root_of(here))
    answers: list[int] = []

    class Slow(DiskFileStore):
        def remove(self, key: str) -> None:
            answers.append(send(here.caller("editor"), picture(seed=7)).status_code)
            super().remove(key)

    async def collect_slowly() -> int:
        database = await Database.open(Options(url=here.database_url))
        try:
            library = Library(Slow(root_of(here)), root_of(here), max_bytes=1000)
            return await maintenance.collect_orphans(database, library, utc_now() + timedelta(days=2))
        finally:
            await database.close()

    assert asyncio.run(collect_slowly()) == 1
    assert answers == [503]
    again = add(author, picture(seed=7))
    assert again["url"] == first["url"]
    assert author.get(again["url"]).status_code == 200


def test_the_mark_of_a_collector_that_was_killed_is_forgotten(here: Interface, author: Caller) -> None:
    first = add(author, picture(seed=8))
    done(author.delete(f"{EXTENSION}/media/{first['id']}"))
    here.sql("UPDATE orphan_files SET deleting_since = now()")
    assert send(author, picture(seed=8)).status_code == 503
    here.sql("UPDATE orphan_files SET deleting_since = now() - interval '11 minutes'")
    assert add(author, picture(seed=8))["url"] == first["url"]
    assert collected(here, 2) == 0


# Checking -------------------------------------------------------------------------------------


def check(here: Interface) -> tuple[int, str]:
    result = run_command(here.database_url, "media", "check", settings={"KALENDS_MEDIA_DIR": str(root_of(here))})
    return result.exit_code, result.stdout


def path_of(here: Interface, url: str) -> Path:
    return root_of(here) / url.partition("/media/")[2]


def test_check_finds_nothing_wrong_where_all_is_well(here: Interface, author: Caller) -> None:
    for seed in (1, 2):
        make_sizes(here, add(author, picture(width=400, seed=seed)))
    assert check(here) == (0, "2 images, 12 files, 0 of them wrong; 0 images not whole.\n")


def test_check_makes_lost_and_damaged_sizes_again(here: Interface, author: Caller) -> None:
    image = add(author, picture(width=400, seed=3))
    make_sizes(here, image)
    shown = read(author, image)
    lost, changed = shown["sizes"]["thumbnail"]["url"], shown["sizes"]["medium"]["webp"]["url"]
    contents = {url: file_of(here, url) for url in (lost, changed)}
    path_of(here, lost).unlink()
    path_of(here, changed).write_bytes(b"RIFF" + contents[changed][4:-1] + b"x")
    code, out = check(here)
    assert code == 0
    assert out == (
        f"image {image['id']}: 2 files wrong, made again\n1 images, 6 files, 2 of them wrong; 0 images not whole.\n"
    )
    assert {url: file_of(here, url) for url in contents} == contents
    assert read(author, image) == shown
    assert check(here)[1].startswith("1 images, 6 files, 0 of them wrong")


def test_check_makes_sizes_that_were_never_made(here: Interface, author: Caller) -> None:
    image = add(author, picture(width=400, seed=6))
    here.sql("DELETE FROM procrastinate_jobs")
    code, out = check(here)
    assert (code, out.splitlines()) == (
        0,
        [
            f"image {image['id']}: 0 files wrong, its sizes were missing and are made",
            "1 images, 1 files, 0 of them wrong; 0 images not whole.",
        ],
    )
    assert set(read(author, image)["sizes"]) == {"thumbnail", "medium", "full"}


def test_check_goes_on_after_a_file_that_cannot_be_read(here: Interface, author: Caller) -> None:
    images = [add(author, picture(width=400, seed=seed)) for seed in (7, 8)]
    for image in images:
        make_sizes(here, image)
    path = path_of(here, images[0]["url"])
    path.unlink()
    path.mkdir()
    code, out = check(here)
    path.rmdir()
    assert (code, out.splitlines()[-1]) == (1, "2 images, 12 files, 1 of them wrong; 1 images not whole.")


@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_bytes(b"x")], ids=["lost", "damaged"])
def test_check_says_which_image_cannot_be_repaired(
    here: Interface, author: Caller, harm: Callable[[Path], Any]
) -> None:
    image = add(author, picture(width=400, seed=4))
    make_sizes(here, image)
    harm(path_of(here, image["url"]))
    code, out = check(here)
    assert code == 1
    assert out == (
        f"image {image['id']}: 1 files wrong, the image itself is lost\n"
        "1 images, 6 files, 1 of them wrong; 1 images not whole.\n"
    )


def test_jobs_of_several_workers_do_not_disturb_each_other(here: Interface, author: Caller) -> None:
    image = add(author, picture(width=400, seed=5))

    async def several() -> list[bool]:
        database = await Database.open(Options(url=here.database_url))
        try:
            libraries = [library_of(here) for _ in range(3)]
            work = [maintenance.make_sizes(database, library, utc_now(), 1, image["id"]) for library in libraries]
            return list(await asyncio.gather(*work))
        finally:
            await database.close()

    assert here.run(several()) == [True, True, True]
    assert files_in(root_of(here)) == needed_files(here.database_url)
    rows = here.sql("SELECT count(*) FROM changes WHERE kind = 'media' AND record_id = $1", image["id"])
    assert rows[0][0] == 2  # It was made, and then its sizes, once.
