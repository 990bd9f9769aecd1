"""`kalends media add DIR`: a whole directory, with a bar, and again without doing it twice."""

import re
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from tests.life.processes import Worker, run_command, wait_until
from tests.media.conftest import Place
from tests.media.disk import assert_nothing_is_lost
from tests.media.kit import picture, tell
from tests.servers import make_environment
from tests.soak import scaled


@pytest.mark.slow
def test_a_directory_of_images_is_added_with_a_bar(place: Place, tmp_path: Path) -> None:
    images, root, directory = scaled(24, 1000), tmp_path / "media", tmp_path / "sent"
    for number in range(images):
        path = directory / f"{number % 7}" / f"picture {number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture("JPEG", *scaled_size(), seed=number))
    (directory / ".hidden").write_bytes(b"x")
    settings = {"KALENDS_MEDIA_DIR": str(root)}
    began = time.monotonic()
    command = [sys.executable, "-m", "kalends", "media", "add", str(directory), "--login", "editor"]
    environment = {**make_environment(place.url, settings), "COLUMNS": "100", "FORCE_COLOR": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    took = time.monotonic() - began
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(
        rf"Added {images:,} images in [\d.,]+ s; 0 were there already, 0 are refused\.\n", done.stdout
    )
    assert f"{images}/{images}" in done.stderr, "the bar"
    tell(f"{images} images in {took:.1f} s, {images / took:.0f} a second")
    with psycopg.connect(place.url) as connection:
        rows = connection.execute("SELECT id, title, author_id, url FROM media").fetchall()
    assert {title for _, title, _, _ in rows} == {f"picture {number}" for number in range(images)}
    assert {author for _, _, author, _ in rows} == {place.people["editor"].id}
    named = {number: f"/media/1/{url[:2]}/{url}" for number, _, _, url in rows}
    assert_nothing_is_lost(place.url, root, named)

    (directory / "new.png").write_bytes(picture("PNG", seed=-1))
    (directory / "letter.jpg").write_bytes(b"Dear Sir")
    again = run_command(place.url, "media", "add", str(directory), "--login", "editor", settings=settings)
    assert again.exit_code == 1
    assert f"{directory}/letter.jpg: this is not an image" in again.stderr
    assert re.search(rf"Added 1 images in .*; {images:,} were there already, 1 are refused", again.stdout)

    if scaled(0, 1):
        with Worker.start(place.url, tmp_path / "worker.log", settings):
            began = time.monotonic()
            wait_until(lambda: unsized(place.url) == 0, 3600, 1)
        tell(f"all sizes of {images + 1} images in {time.monotonic() - began:.0f} s")
        checked = run_command(place.url, "media", "check", settings=settings)
        assert f"{images + 1:,} images" in checked.stdout
        assert "0 of them wrong" in checked.stdout


def scaled_size() -> tuple[int, int]:
    return scaled(200, 1200), scaled(150, 900)


def unsized(database_url: str) -> int:
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT count(*) FROM media WHERE sizes = '{}'").fetchone()
    return row[0] if row else 0


def test_what_cannot_be_added_is_a_sentence(place: Place, tmp_path: Path) -> None:
    settings = {"KALENDS_MEDIA_DIR": str(tmp_path / "media")}
    nobody = run_command(place.url, "media", "add", str(tmp_path), "--login", "nobody", settings=settings)
    assert (nobody.exit_code, "There is no user nobody." in nobody.stderr) == (1, True)
    nowhere = run_command(place.url, "media", "add", str(tmp_path / "none"), "--login", "editor", settings=settings)
    assert nowhere.exit_code == 2
    assert not (tmp_path / "media" / "1").exists()
