"""Kill -9 at any moment: no record without its file, no file lost that an answer named, no rest left for long."""

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg

from tests.lifecycle.processes import Worker, run_command, wait_until
from tests.media.conftest import UserDatabase
from tests.media.file_checks import age_files, assert_no_lost_files, delete_orphans, list_files, list_referenced_files
from tests.media.image_fixtures import EXTENSION_PATH, make_image, report
from tests.servers import Server, find_free_port
from tests.soak import scaled

UPLOADER_COUNT = 3


class Uploaders:
    """Send images, each once, whatever happens to the server meanwhile."""

    def __init__(self, address: str, place: UserDatabase, images: int) -> None:
        self.acknowledged: dict[int, str] = {}
        self.unknown = 0
        self._address = f"{address}{EXTENSION_PATH}/media"
        user = place.users["author"]
        self._auth = (user.login, user.password)
        self._remaining: Iterator[int] = iter(range(images))
        self._threads = [threading.Thread(target=self._send) for _ in range(UPLOADER_COUNT)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    @property
    def are_done(self) -> bool:
        return not any(thread.is_alive() for thread in self._threads)

    def _send(self) -> None:
        for number in self._remaining:
            content = make_image("JPEG" if number % 2 else "PNG", 200, 150, seed=number)
            response = self._post(content)
            if response is not None and response.status_code == 201:
                self.acknowledged[response.json()["id"]] = response.json()["url"]
            else:
                self.unknown += 1

    def _post(self, content: bytes) -> httpx.Response | None:
        """None: the connection broke, who knows when. While there is no server, nothing has begun."""
        while True:
            try:
                response = httpx.post(self._address, auth=self._auth, files={"file": ("a.jpg", content)}, timeout=30)
                if response.status_code != 429:
                    return response
            except httpx.ConnectError:
                pass
            except httpx.TransportError:
                return None
            time.sleep(0.02)


def test_killed_server_loses_no_acknowledged_image(user_database: UserDatabase, tmp_path: Path) -> None:
    root, port = tmp_path / "media", find_free_port()
    numbers = random.Random(7)
    options = {"log": tmp_path / "log", "port": port, "environment": {"KALENDS_MEDIA_DIR": str(root)}}
    server = Server.start(user_database.url, **options)
    senders = Uploaders(server.base_url, user_database, scaled(10, 500))
    kills = 0
    senders.start()
    try:
        while not senders.are_done:
            # At least one more is acknowledged, however slow the machine is; then at any moment.
            known = len(senders.acknowledged)
            wait_until(lambda: senders.are_done or len(senders.acknowledged) > known, 60, 0.01)  # noqa: B023
            time.sleep(numbers.uniform(0, 0.8))
            server.kill()
            kills += 1
            server = Server.start(user_database.url, **options)
    finally:
        server.kill()
    assert_no_lost_files(user_database.url, root, senders.acknowledged)
    files_before, needed = list_files(root), list_referenced_files(user_database.url)
    leftover_count = len(list((root / "incoming").glob("*")))
    delete_orphans(user_database.url, root)
    assert list_files(root) == files_before, "what is young is left alone"
    age_files(root)
    removed = delete_orphans(user_database.url, root)
    report(
        f"{len(senders.acknowledged)} images acknowledged, {senders.unknown} uploads interrupted by {kills} kills; "
        f"{len(files_before - needed)} orphaned and {leftover_count} partial files left, {removed} files removed"
    )
    assert removed == len(files_before - needed)
    assert list_files(root) == needed
    assert list((root / "incoming").glob("*")) == []
    assert kills >= scaled(1, 3)
    assert len(senders.acknowledged) >= kills - 1
    assert_no_lost_files(user_database.url, root, senders.acknowledged)


def test_killed_worker_leaves_complete_sizes_or_none(user_database: UserDatabase, tmp_path: Path) -> None:
    root, directory = tmp_path / "media", tmp_path / "sent"
    directory.mkdir()
    images = scaled(3, 60)
    for number in range(images):
        (directory / f"{number}.jpg").write_bytes(make_image("JPEG", 1200, 900, seed=number))
    added = run_command(
        user_database.url,
        "media",
        "add",
        str(directory),
        "--login",
        "editor",
        settings={"KALENDS_MEDIA_DIR": str(root)},
    )
    assert added.exit_code == 0, added.output

    def count_with_sizes() -> int:
        with psycopg.connect(user_database.url) as connection:
            rows = connection.execute("SELECT count(*) FROM media WHERE sizes <> '{}'").fetchone()
        return rows[0] if rows else 0

    numbers = random.Random(9)
    kills = 0
    while kills < scaled(1, 12) and count_with_sizes() < images:
        with Worker.start(user_database.url, tmp_path / "worker.log", {"KALENDS_MEDIA_DIR": str(root)}):
            time.sleep(numbers.uniform(1.2, 3))
        kills += 1
        assert_no_lost_files(user_database.url, root, {})
    # A job whose worker died is taken over after a while; here it need not be waited for.
    with psycopg.connect(user_database.url) as connection:
        connection.execute("UPDATE procrastinate_jobs SET status = 'todo', worker_id = NULL WHERE status = 'doing'")
    with Worker.start(user_database.url, tmp_path / "worker.log", {"KALENDS_MEDIA_DIR": str(root)}):
        wait_until(lambda: count_with_sizes() == images, 120, 0.2)
    assert_no_lost_files(user_database.url, root, {})
    removed = delete_orphans(user_database.url, root, days=2)
    report(f"{kills} kills of the worker; {removed} orphans removed")
    assert list_files(root) == list_referenced_files(user_database.url)
