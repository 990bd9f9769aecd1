"""`kalends media add DIR`: a whole directory, with a bar, and again without doing it twice."""

import re
import subprocess
import sys
import time
from pathlib import Path

import psycopg

from tests.lifecycle.processes import Worker, run_command, wait_until
from tests.media.conftest import UserDatabase
from tests.media.file_checks import assert_no_lost_files
from tests.media.image_fixtures import make_image, report
from tests.servers import make_environment
from tests.soak import scaled


def test_media_add_imports_directory_with_progress_bar(user_database: UserDatabase, tmp_path: Path) -> None:
    images, root, directory = scaled(24, 1000), tmp_path / "media", tmp_path / "sent"
    for number in range(images):
        path = directory / f"{number % 7}" / f"picture {number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(make_image("JPEG", *image_size(), seed=number))
    (directory / ".hidden").write_bytes(b"x")
    settings = {"KALENDS_MEDIA_DIR": str(root)}
    started = time.monotonic()
    command = [sys.executable, "-m", "kalends", "media", "add", str(directory), "--login", "editor"]
    environment = {**make_environment(user_database.url, settings), "COLUMNS": "100", "FORCE_COLOR": "1"}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    took = time.monotonic() - started
    assert result.returncode == 0, result.stderr
    assert re.fullmatch(
        rf"Added {images:,} images in [\d.,]+ s; skipped 0 existing ones, rejected 0\.\n", result.stdout
    )
    assert f"{images}/{images}" in result.stderr, "the bar"
    report(f"{images} images in {took:.1f} s, {images / took:.0f} per second")
    with psycopg.connect(user_database.url) as connection:
        rows = connection.execute("SELECT id, title, author_id, url FROM media").fetchall()
    assert {title for _, title, _, _ in rows} == {f"picture {number}" for number in range(images)}
    assert {author for _, _, author, _ in rows} == {user_database.users["editor"].id}
    named = {number: f"/media/1/{url[:2]}/{url}" for number, _, _, url in rows}
    assert_no_lost_files(user_database.url, root, named)

    (directory / "new.png").write_bytes(make_image("PNG", seed=-1))
    (directory / "letter.jpg").write_bytes(b"Dear Sir")
    again = run_command(user_database.url, "media", "add", str(directory), "--login", "editor", settings=settings)
    assert again.exit_code == 1
    assert f"{directory}/letter.jpg: is not a supported image type" in again.stderr
    assert re.search(rf"Added 1 images in .*; skipped {images:,} existing ones, rejected 1", again.stdout)

    if scaled(0, 1):
        with Worker.start(user_database.url, tmp_path / "worker.log", settings):
            started = time.monotonic()
            wait_until(lambda: count_without_sizes(user_database.url) == 0, 3600, 1)
        report(f"all sizes of {images + 1} images in {time.monotonic() - started:.0f} s")
        checked = run_command(user_database.url, "media", "check", settings=settings)
        assert f"{images + 1:,} images" in checked.stdout
        assert "0 of them damaged or missing" in checked.stdout


def image_size() -> tuple[int, int]:
    return scaled(200, 1200), scaled(150, 900)


def count_without_sizes(database_url: str) -> int:
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT count(*) FROM media WHERE sizes = '{}'").fetchone()
    return row[0] if row else 0


def test_media_add_reports_errors(user_database: UserDatabase, tmp_path: Path) -> None:
    settings = {"KALENDS_MEDIA_DIR": str(tmp_path / "media")}
    nobody = run_command(user_database.url, "media", "add", str(tmp_path), "--login", "nobody", settings=settings)
    assert (nobody.exit_code, "There is no user nobody." in nobody.stderr) == (1, True)
    nowhere = run_command(
        user_database.url, "media", "add", str(tmp_path / "none"), "--login", "editor", settings=settings
    )
    assert nowhere.exit_code == 2
    assert not (tmp_path / "media" / "1").exists()
