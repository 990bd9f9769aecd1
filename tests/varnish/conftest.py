"""A server, a worker and a real Varnish in front, on a database of their own."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.api.running_app import add_people
from tests.conftest import address, temporary_database
from tests.servers import Server, find_free_port, make_environment
from tools.varnish import PROGRAM, Varnish

NS = "/api/calendar/events/v1"


@dataclass
class Stage:
    """`public` asks through Varnish, `editor` writes to the server directly."""

    server: Server
    varnish: Varnish
    public: httpx.Client
    editor: httpx.Client
    database_url: str

    def count_jobs(self) -> int:
        with psycopg.connect(self.database_url) as connection:
            row = connection.execute("SELECT count(*) FROM procrastinate_jobs WHERE task_name = 'purge'").fetchone()
        return row[0] if row else 0

    def get(self, path: str, **options) -> httpx.Response:
        return self.visit(f"{NS}{path}", **options)

    def visit(self, path: str, **options) -> httpx.Response:
        """A path beside the interface."""
        answer = self.public.get(path, **options)
        assert answer.status_code == 200, answer.text
        assert "surrogate-key" not in answer.headers
        assert "xkey" not in answer.headers
        return answer

    def is_hit(self, path: str, **options) -> bool:
        return self.get(path, **options).headers["x-cache"] == "hit"

    def fill(self, *paths: str) -> None:
        """Asks until each is answered from Varnish."""
        for path in paths:
            tries = 0
            while not self.is_hit(path):  # A purge may come between.
                tries += 1
                assert tries < 5, path

    def write(self, method: str, path: str, **fields) -> dict:
        answer = self.editor.request(method, f"{NS}{path}", json=fields or None)
        assert answer.is_success, answer.text
        return answer.json()


@pytest.fixture(scope="module")
def stage(
    postgres_url: str,
    template_database: str,
    tmp_path_factory: pytest.TempPathFactory,
    start_server: Callable[..., Server],
) -> Iterator[Stage]:
    if PROGRAM is None:
        pytest.skip("varnishd is not installed (Debian: varnish, varnish-modules)")
    directory, port = tmp_path_factory.mktemp("varnish"), find_free_port()
    settings = {"KALENDS_SHARED_CACHE_SECONDS": "3600", "KALENDS_PURGE_URLS": f"http://127.0.0.1:{port}/"}
    with temporary_database(postgres_url, template=template_database) as name:
        url = address(postgres_url, name)
        editor = asyncio.run(add_people(url))["editor"]
        server = start_server(url, environment=settings)
        worker = _start_worker(url, settings, directory / "worker.log")
        try:
            with (
                Varnish.start(directory, server.address, port=port) as varnish,
                httpx.Client(base_url=varnish.address, timeout=10) as public,
                server.client(login=editor.login, password=editor.password) as direct,
            ):
                yield Stage(server, varnish, public, direct, url)
        finally:
            worker.terminate()
            worker.wait(30)
            server.stop()


def _start_worker(url: str, settings: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "kalends", "worker"],
            env=make_environment(url, settings),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
