"""Full disks and a name server that does not answer: what clients get, what the log says, how it recovers.

One server: its database is in a tablespace on a small disk, its images are on another one, and its names are resolved
by a name server of the test.
"""

import json
import os
import secrets
import shutil
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest
from psycopg import sql

from tests.conftest import replace_database
from tests.faults.small_disks import SmallDisk, mount_small_disk
from tests.media.image_fixtures import make_image
from tests.robustness.site_fixtures import API_PATH, DATES, add_editor
from tests.servers import Server

NAME_SERVER = "127.0.0.54"
# Large texts that cannot be compressed fill a table quickly.
MAX_WRITES = 400

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root and unshare, for mounts"
)


class NameServer:
    """Answers each query with "no such name", or only once it is no longer silent."""

    def __init__(self) -> None:
        self.is_silent = False
        self.queries = 0
        self._held: list[tuple[bytes, Any]] = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((NAME_SERVER, 53))
        self._socket.settimeout(0.2)
        self._is_running = True
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while self._is_running:
            try:
                query, client = self._socket.recvfrom(4096)
                self.queries += 1
                self._held.append((query, client))
            except TimeoutError:
                pass
            while self._held and not self.is_silent:
                query, client = self._held.pop()
                self._socket.sendto(query[:2] + b"\x81\x83" + query[4:6] + bytes(6) + query[12:], client)

    def close(self) -> None:
        self._is_running = False
        self._thread.join()
        self._socket.close()


@dataclass(frozen=True)
class Site:
    server: Server
    login: tuple[str, str]
    database_disk: SmallDisk
    media_disk: SmallDisk
    names: NameServer

    def post(self, path: str, **options: Any) -> httpx.Response:
        return httpx.post(f"{self.server.base_url}{path}", auth=self.login, timeout=60, **options)

    def read_causes(self) -> Counter[tuple[str, str]]:
        """Return the causes in the log with their SQLSTATEs."""
        lines = [json.loads(line) for line in self.server.read_log().splitlines()]
        return Counter(
            (line["cause"], line.get("sqlstate", "")) for line in lines if line.get("event") == "unavailable"
        )


@contextmanager
def create_database_on(disk: SmallDisk, postgres_url: str, template: str) -> Iterator[str]:
    """Create a database whose tables are on a disk; the write-ahead log is elsewhere."""
    name = f"kalends_test_disk_{secrets.token_hex(4)}"
    names = {"name": sql.Identifier(name), "template": sql.Identifier(template), "path": sql.Literal(str(disk.path))}
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE TABLESPACE {name} LOCATION {path}").format(**names))
        admin.execute(sql.SQL("CREATE DATABASE {name} TEMPLATE {template} TABLESPACE {name}").format(**names))
        try:
            yield replace_database(postgres_url, name)
        finally:
            admin.execute(sql.SQL("DROP DATABASE {name} WITH (FORCE)").format(**names))
            admin.execute(sql.SQL("DROP TABLESPACE {name}").format(**names))


@pytest.fixture(scope="module")
def names() -> Iterator[NameServer]:
    server = NameServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def site(postgres_url: str, template_database: str, names: NameServer) -> Iterator[Site]:
    if urlsplit(postgres_url).hostname != "127.0.0.1":
        pytest.skip("needs a PostgreSQL on this machine")
    with tempfile.TemporaryDirectory(prefix="kalends-faults-") as text:
        directory = Path(text)
        directory.chmod(0o755)
        (directory / "resolv.conf").write_text(f"nameserver {NAME_SERVER}\noptions timeout:30 attempts:1\n")
        (directory / "nsswitch.conf").write_text("hosts: files dns\n")
        mounts = [f"mount --bind {directory}/{name} /etc/{name}" for name in ("resolv.conf", "nsswitch.conf")]
        prefix = ["unshare", "-m", "sh", "-c", " && ".join([*mounts, 'exec "$@"']), "sh"]
        with (
            mount_small_disk(directory / "database", 100, "postgres") as database_disk,
            mount_small_disk(directory / "media", 4) as media_disk,
            create_database_on(database_disk, postgres_url, template_database) as url,
            Server.start(
                url,
                log=directory / "log",
                environment={"KALENDS_MEDIA_DIR": str(media_disk.path), "KALENDS_BASE_URL": "http://localhost"},
                timeout=90,
                prefix=prefix,
            ) as server,
        ):
            yield Site(server, add_editor(url), database_disk, media_disk, names)


def make_event() -> dict[str, str]:
    return {"title": "Concert", "description": secrets.token_hex(20_000), **DATES}


def test_full_disk_of_the_database(site: Site) -> None:
    assert site.post(f"{API_PATH}/events", json=make_event()).status_code == 201
    site.database_disk.fill()
    stored = 1
    try:
        for _ in range(MAX_WRITES):
            response = site.post(f"{API_PATH}/events", json=make_event())
            if response.status_code != 201:
                break
            stored += 1
        assert (response.status_code, response.json()["code"]) == (507, "rest_insufficient_storage")
        assert response.json()["message"] == "The server is out of storage."
        # Stored records can be read, and the server stays in the load balancer.
        for path in (f"{API_PATH}/events?per_page=1", "/events/list/", "/readyz"):
            assert httpx.get(f"{site.server.base_url}{path}", timeout=60).status_code == 200
        assert site.read_causes() == {("disk_full", "53100"): 1}
        assert "No space left on device" in site.server.read_log()
    finally:
        site.database_disk.make_room()
    # No restart, and nothing of the refused write is left.
    assert site.post(f"{API_PATH}/events", json=make_event()).status_code == 201
    listed = httpx.get(f"{site.server.base_url}{API_PATH}/events?per_page=1", timeout=60).json()
    assert listed["total"] == stored + 1


@pytest.mark.parametrize("room", [0, 60_000], ids=["for nothing", "for the upload only"])
def test_full_disk_of_the_images(site: Site, room: int) -> None:
    """The second image fits as it is sent, but not together with what is made of it."""
    path, content = "/api/kalends/v1/media", make_image("PNG", 200, 200, seed=room + 1)
    assert 30_000 < len(content) < 60_000
    site.media_disk.fill(leave=room)
    try:
        response = site.post(path, files={"file": ("a.png", content, "image/png")})
        assert (response.status_code, response.json()["code"]) == (507, "rest_insufficient_storage"), response.text
        assert ("disk_full", "") in site.read_causes()
    finally:
        site.media_disk.make_room()
    assert site.post(path, files={"file": ("a.png", content, "image/png")}).status_code == 201
    assert list((site.media_disk.path / "incoming").iterdir()) == []


def test_name_server_that_does_not_answer_blocks_only_those_who_wait_for_it(site: Site) -> None:
    event = {"title": "Concert", "image": "http://images.example.org/a.jpg", **DATES}
    site.names.is_silent = True
    before = site.names.queries
    responses: list[httpx.Response] = []

    def create() -> None:
        responses.append(site.post(f"{API_PATH}/events", json=event))

    # A third write of the same user that waits at the same time could be refused.
    threads = [threading.Thread(target=create) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        deadline = time.monotonic() + 30
        while site.names.queries == before and time.monotonic() < deadline:
            time.sleep(0.05)
        assert site.names.queries > before
        # The loop is not blocked: others are served while these wait.
        assert httpx.get(f"{site.server.base_url}{API_PATH}/events", timeout=60).status_code == 200
        assert site.post(f"{API_PATH}/events", json={"title": "Another", **DATES}).status_code == 201
        assert any(thread.is_alive() for thread in threads)
    finally:
        site.names.is_silent = False
        for thread in threads:
            thread.join(60)
    # As soon as it answers, they get their response; after ten seconds they would get it anyway.
    problem = "`image`: the remote server is unreachable; only public servers are contacted."
    answers = [(row.status_code, row.json()["data"].get("params")) for row in responses]
    assert answers == [(400, {"image": problem})] * 2
