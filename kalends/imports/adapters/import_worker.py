"""Runs import_worker_main.py, which parses a calendar, table or web page in a separate process."""

import logging
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import orjson

from kalends.adapters.sandbox import Limits, SandboxedProcess
from kalends.core.errors import InvalidValue
from kalends.core.messages import Message
from kalends.core.times import utc_now
from kalends.imports.rules.import_records import ParsedSource, decode_message, decode_source, decode_values

COMMAND: Final = (sys.executable, "-I", "-m", "kalends.imports.adapters.import_worker_main")
# The priority is low, but not the lowest, because people are waiting for their uploads.
LIMITS: Final = Limits(megabytes=512, file_megabytes=64, cpu_seconds=30, timeout=600.0, niceness=5)
LOG: Final = logging.getLogger(__name__)

type Format = Literal["ical", "csv", "xlsx", "ods", "xls", "html"]
type Options = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ParsedTable:
    """A parsed table: the records, the field for each column, and a preview that marks invalid cells."""

    parsed: ParsedSource
    columns: Any
    preview: Any


class ImportWorker:
    def __init__(self, max_concurrent: int = 1, limits: Limits | None = None) -> None:
        self._process = SandboxedProcess(COMMAND, limits or LIMITS, max_concurrent)

    async def parse(self, path: Path, file_format: Format, options: Options) -> ParsedSource:
        """Parse a file. Raise InvalidValue if the file cannot be read at all; unreadable parts become rejections.

        See `read_calendar` for calendar options, and `read_page` for page options; `now` is the current time by
        default. Table options are `columns`, which maps column headers to fields, and `defaults`.
        """
        return _decode((await self._run_job(path, file_format, options))["parsed"])

    async def parse_table(self, path: Path, file_format: Format, options: Options) -> ParsedTable:
        result = await self._run_job(path, file_format, options)
        return ParsedTable(
            _decode(result["parsed"]), decode_values(result["columns"]), decode_values(result["preview"])
        )

    async def _run_job(self, path: Path, file_format: Format, options: Options) -> dict[str, Any]:
        job = {
            "path": str(path),
            "format": file_format,
            "options": {"now": utc_now(), **options},
            "tz_path": os.environ.get("PYTHONTZPATH", ""),
        }
        output = await self._process.run(job)
        result = {"failed": "too_costly"} if output is None else _read_output(output)
        _check_result(result)
        return result


def _read_output(output: bytes) -> dict[str, Any]:
    try:
        result = orjson.loads(output)
    except orjson.JSONDecodeError:
        return {"failed": "damaged", "cause": "output is not JSON"}
    return result if isinstance(result, dict) else {"failed": "damaged", "cause": "output is not an object"}


def _check_result(result: Mapping[str, Any]) -> None:
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
