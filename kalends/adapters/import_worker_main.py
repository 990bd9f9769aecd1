"""A separate program that parses one calendar or table within limits of memory and time.

It reads one job as JSON from standard input and writes the result as JSON to standard output, which is a file. It has
no environment, no network connections and no access to the database, so that a malicious file can compromise this
process only. Libraries are imported late, after the limits are set.
"""

import json
import os
import resource
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

MEGABYTE = 1024 * 1024
NICENESS = 5  # People wait for uploads, but requests of others come first.


def main() -> None:
    job = json.load(sys.stdin)
    set_limits(job)
    result = run_job(job)
    with open(1, "wb", closefd=False) as output:
        output.write(result)
    os._exit(0)  # The libraries need no cleanup.


def set_limits(job: dict[str, Any]) -> None:
    """Limit memory, CPU time and output, and lower the priority, before anything is read."""
    memory, output = job["megabytes"] * MEGABYTE, job["output_megabytes"] * MEGABYTE
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (job["seconds"], job["seconds"] + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (output, output))
    resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(NICENESS)
    # With autogroup scheduling the priority of the session counts, and this process has a separate session.
    with suppress(OSError), open("/proc/self/autogroup", "w", encoding="ascii") as group:  # noqa: PTH123
        group.write(str(NICENESS))


def run_job(job: dict[str, Any]) -> bytes:
    """Return the encoded result; an error of the file is part of it."""
    from kalends.core.errors import InvalidValue
    from kalends.core.imports.transport import encode_result

    if job["tz_path"]:
        os.environ["PYTHONTZPATH"] = job["tz_path"]  # The zones are those of the server.
    try:
        return encode_result(parse(Path(job["path"]), job["format"], job["options"]))
    except InvalidValue as error:
        return encode_result({"refused": error.message})
    except (MemoryError, RecursionError):
        return encode_result({"failed": "too_costly"})
    except Exception as error:  # Any other exception of a library is caused by the file.
        return encode_result({"failed": "damaged", "cause": describe(error)})


def parse(path: Path, file_format: str, options: dict[str, Any]) -> dict[str, object]:
    if file_format == "ical":
        from kalends.core.imports.ical import read_calendar

        return {"parsed": read_calendar(path.read_bytes(), options)}
    read_table = import_module("kalends.adapters.table_reader").read_table
    columns, parsed, preview = read_table(path, file_format, options.get("columns"), options.get("defaults") or {})
    return {"parsed": parsed, "columns": columns, "preview": preview}


def describe(error: Exception) -> str:
    """Name an exception and its place for the log, without its text, which may contain parts of the file."""
    places: list[str] = []
    trace = error.__traceback__
    while trace is not None:
        places.append(f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}")
        trace = trace.tb_next
    return f"{type(error).__name__} at {' '.join(places[-3:])}"


if __name__ == "__main__":
    main()
