"""Real worker processes, and PostgreSQL killed and started again. Servers are tests/servers.py."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from typer.testing import CliRunner, Result

from bench.cpu_time import list_process_tree
from kalends.commands import app
from tests.conftest import keep_logging
from tests.servers import KALENDS, make_environment
from tools import postgres


@dataclass
class Worker:
    """`kalends worker`."""

    process: subprocess.Popen[bytes]
    log: Path

    @classmethod
    def start(
        cls,
        database_url: str,
        log: Path,
        settings: Mapping[str, str] | None = None,
        kalends: Sequence[str] = KALENDS,
        options: Sequence[str] = (),
    ) -> Self:
        with log.open("ab") as output:
            process = subprocess.Popen(
                [*kalends, "worker", *options],
                env=make_environment(database_url, settings),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        return cls(process, log)

    def is_running(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        """At once, with whatever it has in hand."""
        if self.is_running():
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def stop(self) -> int:
        if self.is_running():
            self.process.terminate()
        return self.process.wait(30)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()


def run_command(
    database_url: str, *arguments: str, settings: Mapping[str, str] | None = None, answers: str | None = None
) -> Result:
    """Run `kalends …` in this process and return its output: a new process takes seconds to start."""
    inherited: dict[str, str | None] = {name: None for name in os.environ if name.startswith("KALENDS_")}
    with keep_logging():
        return CliRunner().invoke(
            app,
            arguments,
            input=answers,
            env={**inherited, "KALENDS_DATABASE_URL": database_url, **(settings or {})},
        )


def kill_postgres(server: postgres.Server) -> None:
    """Kill all processes of the cluster. Committed data is on disk or in the page cache."""
    pids = [server.pid, *_children(server.pid)]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not any(Path(f"/proc/{pid}/exe").exists() for pid in pids), 10)
    # Where nobody collects dead processes the number in this file still looks alive.
    (server.directory / "postmaster.pid").unlink()


@contextmanager
def suspend_postgres(server: postgres.Server) -> Iterator[None]:
    """Suspend all processes of the cluster, as if its machine or the network to it did not respond."""
    pids = list_process_tree(server.pid)

    def send(number: signal.Signals) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):  # A connection may have ended just before.
                os.kill(pid, number)

    send(signal.SIGSTOP)
    try:
        yield
    finally:
        send(signal.SIGCONT)


def _children(pid: int) -> list[int]:
    """PostgreSQL's processes are all children of the first one."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_until(condition: Callable[[], bool], timeout: float, step: float = 0.05) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"not so after {timeout} s"
        time.sleep(step)
