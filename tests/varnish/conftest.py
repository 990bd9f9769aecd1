"""A server and a worker on a separate database, with Varnish in front."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.api.running_app import add_users
from tests.conftest import replace_database, temporary_database
from tests.servers import Server, find_free_port, make_environment
from tools.varnish import PROGRAM, Varnish

NS = "/api/calendar/events/v1"


@dataclass
class Stage:
    """The running processes. `public` reads through Varnish, `editor` writes to the server directly."""

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
        return self.get_page(f"{NS}{path}", **options)

    def get_page(self, path: str, **options) -> httpx.Response:
        """A path beside the interface."""
        response = self.public.get(path, **options)
        assert response.status_code == 200, response.text
        assert "surrogate-key" not in response.headers
        assert "xkey" not in response.headers
        return response

    def is_hit(self, path: str, **options) -> bool:
        return self.get(path, **options).headers["x-cache"] == "hit"

    def warm_cache(self, *paths: str) -> None:
        """Request each path until Varnish serves it from its cache."""
        for path in paths:
            tries = 0
            while not self.is_hit(path):  # A purge may come between.
                tries += 1
                assert tries < 5, path

    def write(self, method: str, path: str, **fields) -> dict:
        reply = self.editor.request(method, f"{NS}{path}", json=fields or None)
        assert reply.is_success, reply.text
        return reply.json()


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
    settings = {
        "KALENDS_API_ALIASES": "/wp-json/tribe/events/v1",
        "KALENDS_SHARED_CACHE_SECONDS": "3600",
        "KALENDS_PURGE_URLS": f"http://127.0.0.1:{port}/",
    }
    with temporary_database(postgres_url, template=template_database) as name:
        url = replace_database(postgres_url, name)
        editor = asyncio.run(add_users(url))["editor"]
        server = start_server(url, environment=settings)
        worker = _start_worker(url, settings, directory / "worker.log")
        try:
            with (
                Varnish.start(directory, server.base_url, port=port) as varnish,
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
