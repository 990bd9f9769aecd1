"""Server processes: start, watch, stop and kill `python -m kalends serve`."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir
from types import TracebackType
from typing import Self

import httpx
import psycopg

# `just test-cells`: each copy of the template database is one of three cells and has the directory.
WITH_CELLS = bool(os.environ.get("KALENDS_TEST_CELLS"))
# The URLs of the two other cells, which have no sites.
EMPTY_CELLS: dict[str, str] = {}

# The command line of this version.
KALENDS = (sys.executable, "-m", "kalends")


@dataclass(frozen=True)
class Server:
    process: subprocess.Popen[bytes]
    base_url: str
    log: Path

    @classmethod
    def start(
        cls,
        database_url: str,
        *,
        log: Path,
        port: int | None = None,
        workers: int = 1,
        environment: Mapping[str, str] | None = None,
        timeout: float = 30,
        kalends: Sequence[str] = KALENDS,
        prefix: Sequence[str] = (),
        command_name: str = "serve",
    ) -> Self:
        """Start a server and return when it is ready for requests; `prefix` is a program that starts it."""
        port = port or find_free_port()
        command = [*kalends, command_name]
        options = ["--host", "127.0.0.1", "--port", str(port)]
        options += ["--workers", str(workers)] if command_name == "serve" else []
        with log.open("ab") as output:
            process = subprocess.Popen(
                [*prefix, *command, *options],
                env=make_environment(database_url, {**make_cell_settings(database_url), **(environment or {})}),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # One group for the server and its workers, see kill().
            )
        server = cls(process, f"http://127.0.0.1:{port}", log)
        server._wait_until_ready(timeout)
        return server

    def client(self, *, login: str | None = None, password: str = "") -> httpx.Client:
        return httpx.Client(base_url=self.base_url, auth=(login, password) if login else None, timeout=30)

    def is_running(self) -> bool:
        return self.process.poll() is None

    def stop(self, timeout: float = 30) -> int:
        """Stop the server with SIGTERM and return its exit code."""
        if self.is_running():
            self.process.terminate()
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ServerError(f"The server did not stop within {timeout} s.\n{self.read_log()}") from None

    def kill(self) -> None:
        """Kill the server and all its workers with SIGKILL, as a power failure would."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self.process.wait()

    def read_log(self) -> str:
        return self.log.read_text(errors="replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self.kill()  # Workers that outlived their parent.

    def _wait_until_ready(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        last_response = "nothing"
        # One client: each new one loads the certificates, which would take the time of the server that starts.
        with httpx.Client(timeout=5) as client:
            while self.is_running() and time.monotonic() < deadline:
                try:
                    response = client.get(f"{self.base_url}/readyz")
                    if response.is_success:
                        return
                    last_response = f"{response.status_code} {response.text}"
                except httpx.TransportError:
                    pass  # It does not listen yet.
                time.sleep(0.05)
        state = "was not ready in time" if self.is_running() else f"ended with {self.process.returncode}"
        self.kill()
        raise ServerError(f"The server {state}. /readyz last answered: {last_response}. Its log:\n{self.read_log()}")


class ServerError(Exception):
    pass


def make_environment(database_url: str, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a server or command, without the settings of the developer's shell."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("KALENDS_")}
    # Tests of images set a directory; other tests must not create one in the working directory.
    defaults = {"KALENDS_DATABASE_URL": database_url, "KALENDS_MEDIA_DIR": f"{gettempdir()}/kalends-test-media"}
    return {**inherited, **defaults, **(extra or {})}


def make_cell_settings(database_url: str) -> dict[str, str]:
    """Return the settings of a server on three cells, if the database is one of them and has the directory."""
    if not EMPTY_CELLS:
        return {}
    with psycopg.connect(database_url) as connection:
        is_cell = connection.execute("SELECT to_regclass('kalends_directory.cells') IS NOT NULL").fetchone()
        name = connection.execute("SELECT name FROM cell").fetchone() if is_cell and is_cell[0] else None
    if name is None:
        return {}
    cells = ",".join(f"{cell}={url}" for cell, url in [(name[0], database_url), *EMPTY_CELLS.items()])
    return {"KALENDS_DIRECTORY_URL": database_url, "KALENDS_CELLS": cells}


def find_free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
