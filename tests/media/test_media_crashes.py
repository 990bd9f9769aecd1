"""Kill -9 at any moment: no record without its file, no file lost that an answer named, no rest left for long."""

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.lifecycle.processes import Worker, run_command, wait_until
from tests.media.conftest import Place
from tests.media.file_checks import assert_nothing_is_lost, collect, files_in, grow_old, needed_files
from tests.media.image_fixtures import EXTENSION_PATH, picture, tell
from tests.servers import Server, find_free_port
from tests.soak import scaled

SENDERS = 3


class Senders:
    """Send images, each once, whatever happens to the server meanwhile."""

    def __init__(self, address: str, place: Place, images: int) -> None:
        self.acknowledged: dict[int, str] = {}
        self.unknown = 0
        self._address = f"{address}{EXTENSION_PATH}/media"
        person = place.people["author"]
        self._auth = (person.login, person.password)
        self._left: Iterator[int] = iter(range(images))
        self._threads = [threading.Thread(target=self._send) for _ in range(SENDERS)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    @property
    def are_done(self) -> bool:
        return not any(thread.is_alive() for thread in self._threads)

    def _send(self) -> None:
        for number in self._left:
            content = picture("JPEG" if number % 2 else "PNG", 200, 150, seed=number)
            answer = self._post(content)
            if answer is not None and answer.status_code == 201:
                self.acknowledged[answer.json()["id"]] = answer.json()["url"]
            else:
                self.unknown += 1

    def _post(self, content: bytes) -> httpx.Response | None:
        """None: the connection broke, who knows when. While there is no server, nothing has begun."""
        while True:
            try:
                return httpx.post(self._address, auth=self._auth, files={"file": ("a.jpg", content)}, timeout=30)
            except httpx.ConnectError:
                time.sleep(0.02)
            except httpx.TransportError:
                return None


@pytest.mark.slow
def test_killed_server_loses_no_acknowledged_image(place: Place, tmp_path: Path) -> None:
    root, port = tmp_path / "media", find_free_port()
    numbers = random.Random(7)
    options = {"log": tmp_path / "log", "port": port, "environment": {"KALENDS_MEDIA_DIR": str(root)}}
    server = Server.start(place.url, **options)
    senders = Senders(server.address, place, scaled(24, 500))
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
            server = Server.start(place.url, **options)
    finally:
        server.kill()
    assert_nothing_is_lost(place.url, root, senders.acknowledged)
    kept, needed = files_in(root), needed_files(place.url)
    rests = len(list((root / "incoming").glob("*")))
    collect(place.url, root)
    assert files_in(root) == kept, "what is young is left alone"
    grow_old(root)
    removed = collect(place.url, root)
    tell(
        f"{len(senders.acknowledged)} images acknowledged, {senders.unknown} broken off by {kills} kills; "
        f"{len(kept - needed)} orphans and {rests} rests were left, {removed} files removed"
    )
    assert removed == len(kept - needed)
    assert files_in(root) == needed
    assert list((root / "incoming").glob("*")) == []
    assert kills >= 3
    assert len(senders.acknowledged) >= kills - 1
    assert_nothing_is_lost(place.url, root, senders.acknowledged)


@pytest.mark.slow
def test_killed_worker_leaves_complete_sizes_or_none(place: Place, tmp_path: Path) -> None:
    root, directory = tmp_path / "media", tmp_path / "sent"
    directory.mkdir()
    images = scaled(3, 60)
    for number in range(images):
        (directory / f"{number}.jpg").write_bytes(picture("JPEG", 1200, 900, seed=number))
    added = run_command(
        place.url, "media", "add", str(directory), "--login", "editor", settings={"KALENDS_MEDIA_DIR": str(root)}
    )
    assert added.exit_code == 0, added.output

    def sized() -> int:
        with psycopg.connect(place.url) as connection:
            rows = connection.execute("SELECT count(*) FROM media WHERE sizes <> '{}'").fetchone()
        return rows[0] if rows else 0

    numbers = random.Random(9)
    kills = 0
    while kills < scaled(1, 12) and sized() < images:
        with Worker.start(place.url, tmp_path / "worker.log", {"KALENDS_MEDIA_DIR": str(root)}):
            time.sleep(numbers.uniform(1.2, 3))
        kills += 1
        assert_nothing_is_lost(place.url, root, {})
    # A job whose worker died is taken over after a while; here it need not be waited for.
    with psycopg.connect(place.url) as connection:
        connection.execute("UPDATE procrastinate_jobs SET status = 'todo', worker_id = NULL WHERE status = 'doing'")
    with Worker.start(place.url, tmp_path / "worker.log", {"KALENDS_MEDIA_DIR": str(root)}):
        wait_until(lambda: sized() == images, 120, 0.2)
    assert_nothing_is_lost(place.url, root, {})
    removed = collect(place.url, root, days=2)
    tell(f"{kills} kills of the worker; {removed} orphans removed")
    assert files_in(root) == needed_files(place.url)
