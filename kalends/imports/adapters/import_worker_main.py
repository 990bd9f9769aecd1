"""A separate program that parses one calendar, table or web page within memory and time limits.

The job and the result are JSON. The program has no environment, network connections or database access, so a
malicious file can compromise only this process. Libraries are imported only after the limits are set.
"""

import os
from importlib import import_module
from pathlib import Path
from typing import Any

from kalends.adapters.sandboxed import finish, read_job


def main() -> None:
    finish(run_job(read_job()))


def run_job(job: dict[str, Any]) -> bytes:
    """Return the encoded result, which includes errors caused by the file."""
    from kalends.core.errors import InvalidValue
    from kalends.imports.rules.import_records import encode_result

    if job["tz_path"]:
        os.environ["PYTHONTZPATH"] = job["tz_path"]  # the server's time zones
    try:
        return encode_result(parse(Path(job["path"]), job["format"], job["options"]))
    except InvalidValue as error:
        return encode_result({"refused": error.message})
    except (MemoryError, RecursionError):
        return encode_result({"failed": "too_costly"})
    except Exception as error:  # treat any other exception as caused by the file
        return encode_result({"failed": "damaged", "cause": describe(error)})


def parse(path: Path, file_format: str, options: dict[str, Any]) -> dict[str, object]:
    if file_format == "ical":
        from kalends.imports.rules.ical_calendar import read_calendar

        return {"parsed": read_calendar(path.read_bytes(), options)}
    if file_format == "html":
        from kalends.imports.rules.web_page import read_page

        return {"parsed": read_page(path.read_bytes(), options)}
    read_table = import_module("kalends.imports.adapters.table_reader").read_table
    columns, parsed, preview = read_table(path, file_format, options.get("columns"), options.get("defaults") or {})
    return {"parsed": parsed, "columns": columns, "preview": preview}


def describe(error: Exception) -> str:
    """Describe an exception and where it occurred. Omit its message, because it may contain file content."""
    places: list[str] = []
    trace = error.__traceback__
    while trace is not None:
        places.append(f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}")
        trace = trace.tb_next
    return f"{type(error).__name__} at {' '.join(places[-3:])}"


if __name__ == "__main__":
    main()
