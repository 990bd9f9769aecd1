"""Run programs that parse untrusted files, each in a separate process with memory, time and output limits."""

import asyncio
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, Final

import orjson

from kalends.core import errors

# Maximum number of waiting jobs; more are rejected with 503.
MAX_WAITING: Final = 20


@dataclass(frozen=True, slots=True)
class Limits:
    megabytes: int
    file_megabytes: int  # limit per written file, including the result
    cpu_seconds: int
    timeout: float  # elapsed seconds; the process has low priority, so it can take much longer than its CPU time
    niceness: int


class SandboxedProcess:
    """Starts a program once per job, up to a fixed number at the same time.

    The program calls `sandboxed.read_job`, which sets the limits, and exits with `sandboxed.finish`.
    """

    def __init__(self, command: Sequence[str], limits: Limits, max_concurrent: int) -> None:
        self._command = command
        self._limits = limits
        self._threads = ThreadPoolExecutor(max_concurrent, "sandbox")
        self._max_pending = max_concurrent + MAX_WAITING
        self._pending = 0

    async def run(self, job: Mapping[str, Any]) -> bytes | None:
        """Return a job's result, or None if the process failed, for example because it exceeded a limit."""
        if self._pending >= self._max_pending:
            raise errors.overloaded()
        self._pending += 1
        started: list[subprocess.Popen[bytes]] = []
        try:
            # Starting a process would block the uvloop event loop for ten milliseconds.
            return await asyncio.get_running_loop().run_in_executor(
                self._threads, self._run, orjson.dumps({**job, "limits": asdict(self._limits)}), started
            )
        except asyncio.CancelledError:
            for process in started:
                process.kill()
            raise
        finally:
            self._pending -= 1

    def _run(self, job: bytes, started: list[subprocess.Popen[bytes]]) -> bytes | None:
        # The output is a file, because the kernel can limit file sizes but not pipes.
        with tempfile.TemporaryFile() as output:
            with subprocess.Popen(  # noqa: S603
                self._command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.DEVNULL,
                env={},  # The server's environment contains secrets.
                start_new_session=True,
            ) as process:
                started.append(process)
                try:
                    process.communicate(job, self._limits.timeout)
                except subprocess.TimeoutExpired:
                    process.kill()
                    raise errors.overloaded() from None  # The machine is too busy; the file might be fine.
            output.seek(0)
            return output.read() if process.returncode == 0 else None
