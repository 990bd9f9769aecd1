"""The process that parses files: its result, its limits, its environment."""

import os
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from kalends.core.errors import InvalidValue
from kalends.core.messages import Message
from kalends.imports.adapters import import_worker
from kalends.imports.adapters.import_worker import ImportWorker
from kalends.imports.rules.import_records import (
    ImportedRecord,
    ParsedSource,
    Rejection,
    decode_source,
    decode_values,
    encode_result,
)

CALENDAR = b"""BEGIN:VCALENDAR\r
X-WR-CALNAME:Town\r
BEGIN:VEVENT\r
UID:1@example.org\r
DTSTART;TZID=Europe/Berlin:20270503T190000\r
DTEND;TZID=Europe/Berlin:20270503T210000\r
SUMMARY:Concert\r
LOCATION:Hall\r
END:VEVENT\r
BEGIN:VEVENT\r
UID:2@example.org\r
DTSTART:20270230T190000Z\r
SUMMARY:On no day\r
END:VEVENT\r
END:VCALENDAR\r
"""


async def test_calendar_becomes_records_and_rejections(tmp_path: Path) -> None:
    path = tmp_path / "calendar.ics"
    path.write_bytes(CALENDAR)
    parsed = await ImportWorker().parse(path, "ical", {})
    venue, event = parsed.records
    assert (venue.kind, venue.identity, venue.values["venue"]) == ("venues", "hall", "Hall")
    assert (event.kind, event.identity, event.links["venue"], event.line) == ("events", "1@example.org", ["hall"], 3)
    assert parsed.rejections == [
        Rejection(
            Message(
                "`{name}`: {problem}",
                name="DTSTART",
                problem=Message("there is no date {value}.", value="20270230T190000Z"),
            ),
            10,
            "2@example.org",
            title="On no day",
        )
    ]
    assert parsed.span == (datetime(2027, 5, 3, 17, tzinfo=UTC), datetime(2027, 5, 3, 19, tzinfo=UTC))
    assert parsed.name == "Town"


async def test_file_that_is_no_calendar_is_refused_with_a_message(tmp_path: Path) -> None:
    path = tmp_path / "page.ics"
    path.write_bytes(b"<html><body>secret</body></html>")
    with pytest.raises(InvalidValue, match="is not an iCalendar file") as caught:
        await ImportWorker().parse(path, "ical", {})
    assert "secret" not in str(caught.value)


PROGRAMS = {
    "takes_memory": "x = bytearray(job['limits']['megabytes'] * sandboxed.MEGABYTE)",
    "takes_time": "while True: pass",
    "writes_too_much": "print('x' * (job['limits']['file_megabytes'] * sandboxed.MEGABYTE), flush=True)",
    "writes_nonsense": "print('nonsense', flush=True); sandboxed.os._exit(0)",
    "writes_another_kind": "print('{\"parsed\": 7}', flush=True); sandboxed.os._exit(0)",
    "dies": "sandboxed.os._exit(3)",
}
CAUSES = dict.fromkeys(PROGRAMS, "takes too much memory or time") | {
    "writes_nonsense": "is damaged",
    "writes_another_kind": "is damaged",
}


@pytest.mark.parametrize("name", PROGRAMS)
async def test_process_cannot_exceed_its_limits(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each program has the place of the parser, with the limits that the parser sets itself."""
    program = tmp_path / "program.py"
    program.write_text(f"from kalends.adapters import sandboxed\njob = sandboxed.read_job()\n{PROGRAMS[name]}\n")
    monkeypatch.setattr(import_worker, "COMMAND", (sys.executable, "-I", str(program)))
    if name == "takes_time":
        monkeypatch.setattr(import_worker, "LIMITS", replace(import_worker.LIMITS, cpu_seconds=1))
    with pytest.raises(InvalidValue, match=CAUSES[name]):
        await ImportWorker().parse(tmp_path, "ical", {})


async def test_process_has_no_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_SERVER", "secret")
    program, seen = tmp_path / "program.py", tmp_path / "environment"
    program.write_text(f"import json, os\nopen({str(seen)!r}, 'w').write(json.dumps(dict(os.environ)))\n")
    monkeypatch.setattr(import_worker, "COMMAND", (sys.executable, "-I", str(program)))
    with pytest.raises(InvalidValue):
        await ImportWorker().parse(tmp_path, "ical", {})
    environment: dict[str, Any] = orjson.loads(seen.read_bytes())
    assert os.environ["SECRET_OF_THE_SERVER"] == "secret"
    assert set(environment) <= {"LC_CTYPE"}  # The interpreter sets it itself.


def test_decoded_records_have_only_what_clients_can_send() -> None:
    record = ImportedRecord(
        "events",
        "1",
        {"title": "A"},
        columns={"uid": "x"},
        links={"venue": ["hall"]},
        wanted_id=7,
        line=3,
        warnings=[Message("`{name}` was left out.", name="URL")],
    )
    decoded = decode_source(orjson.loads(encode_result({"parsed": ParsedSource([record])}))["parsed"]).records[0]
    assert decoded == ImportedRecord(
        "events",
        "1",
        {"title": "A"},
        links={"venue": ["hall"]},
        line=3,
        warnings=[Message("`{name}` was left out.", name="URL")],
    )


@pytest.mark.parametrize("kind", ["users", "media", "sites"])
def test_file_cannot_contain_records_of_other_kinds(kind: str) -> None:
    stored = orjson.loads(encode_result({"parsed": ParsedSource([ImportedRecord(kind, "1", {})])}))["parsed"]
    with pytest.raises(ValueError, match="not a kind"):
        decode_source(stored)


def test_messages_are_decoded_at_any_depth() -> None:
    values = {"rows": [{"cells": [Message("a {b}", b=Message("c"))]}]}
    assert decode_values(orjson.loads(encode_result(values))) == values
