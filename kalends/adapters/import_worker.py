"""Starts the process that parses a calendar or table (import_worker_main.py) and reads its result."""

import asyncio
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import orjson

from kalends.core import errors
from kalends.core.clock import utc_now
from kalends.core.errors import InvalidValue
from kalends.core.imports.records import ParsedSource
from kalends.core.imports.transport import decode_message, decode_source, decode_values
from kalends.core.messages import Message

COMMAND: Final = (sys.executable, "-I", "-m", "kalends.adapters.import_worker_main")
MAX_MEGABYTES: Final = 512
MAX_OUTPUT_MEGABYTES: Final = 64
MAX_CPU_SECONDS: Final = 30
PROCESS_TIMEOUT: Final = 20.0 * MAX_CPU_SECONDS  # elapsed seconds, for a busy machine
# Maximum number of waiting files; further ones are rejected with 503.
MAX_WAITING: Final = 20
LOG: Final = logging.getLogger(__name__)

type Format = Literal["ical", "csv", "xlsx", "ods", "xls"]
type Options = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ParsedTable:
    """The rows of a table, the field of each of its columns, and its first rows with the invalid cells."""

    parsed: ParsedSource
    columns: Any
    preview: Any


class ImportWorker:
    """Runs parser processes, at most a fixed number at the same time."""

    def __init__(self, max_concurrent: int = 1) -> None:
        self._threads = ThreadPoolExecutor(max_concurrent, "imports")
        self._max_pending = max_concurrent + MAX_WAITING
        self._pending = 0

    async def parse(self, path: Path, file_format: Format, options: Options) -> ParsedSource:
        """Parse a file. Raise InvalidValue if it cannot be read at all; parts of it become rejections.

        Options of calendars: `timezone`, the zone of times without one; `now`, the time up to two years after which
        dates are listed. Options of tables: `columns`, the field by the header of the column; `defaults`.
        """
        return _decode((await self._run_job(path, file_format, options))["parsed"])

    async def parse_table(self, path: Path, file_format: Format, options: Options) -> ParsedTable:
        """Parse a table, and return its columns and a preview as well."""
        result = await self._run_job(path, file_format, options)
        return ParsedTable(
            _decode(result["parsed"]), decode_values(result["columns"]), decode_values(result["preview"])
        )

    async def _run_job(self, path: Path, file_format: Format, options: Options) -> dict[str, Any]:
        job = {
            "path": str(path),
            "format": file_format,
            "options": {"now": utc_now(), **options},
            "megabytes": MAX_MEGABYTES,
            "output_megabytes": MAX_OUTPUT_MEGABYTES,
            "seconds": MAX_CPU_SECONDS,
            "tz_path": os.environ.get("PYTHONTZPATH", ""),
        }
        if self._pending >= self._max_pending:
            raise errors.overloaded()
        self._pending += 1
        started: list[subprocess.Popen[bytes]] = []
        try:
            result = await asyncio.get_running_loop().run_in_executor(
                self._threads, _run_process, orjson.dumps(job), started
            )
        except asyncio.CancelledError:
            for process in started:
                process.kill()
            raise
        finally:
            self._pending -= 1
        _check_result(result)
        return result


def _run_process(job: bytes, started: list[subprocess.Popen[bytes]]) -> dict[str, Any]:
    """Run one process for one file, with an empty environment because that of the server contains secrets.

    The process is added to `started`, so that the caller can kill it. Its output is a file, because the kernel limits
    the size of files, but not that of pipes. This runs in a thread, because forking would block the event loop.
    """
    with tempfile.TemporaryFile() as output:
        with subprocess.Popen(  # noqa: S603
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.DEVNULL,
            env={},
            start_new_session=True,
        ) as process:
            started.append(process)
            try:
                process.communicate(job, PROCESS_TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()
                raise errors.overloaded() from None  # The machine is too busy; the file may be fine.
        if process.returncode != 0:
            return {"failed": "too_costly"}  # The process was ended by one of its limits.
        output.seek(0)
        return _read_output(output.read())


def _read_output(output: bytes) -> dict[str, Any]:
    try:
        result = orjson.loads(output)
    except orjson.JSONDecodeError:
        return {"failed": "damaged", "cause": "output is not JSON"}
    return result if isinstance(result, dict) else {"failed": "damaged", "cause": "output is not an object"}


def _check_result(result: Mapping[str, Any]) -> None:
    """Raise the error that the process reports."""
    if "refused" in result:
        raise _as_error(decode_message(result["refused"]))
    if result.get("failed") == "too_costly":
        raise InvalidValue("takes too much memory or time to read.")
    if "parsed" not in result:
        raise _damaged(result.get("cause"))


def _decode(stored: Any) -> ParsedSource:
    try:
        return decode_source(stored)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(type(error).__name__) from error


def _damaged(cause: object) -> InvalidValue:
    LOG.warning("a file could not be parsed: %s", cause)
    return InvalidValue("is damaged or incomplete and cannot be read.")


def _as_error(message: Message) -> InvalidValue:
    error = InvalidValue(message.text)
    error.message = message
    return error
