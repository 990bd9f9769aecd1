"""Hostile calendars end quickly and within little memory, whatever is in them."""

import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from kalends.imports.adapters import import_worker
from tests.imports.hostile_calendars import CALENDARS, make_calendar, make_event
from tests.media.image_fixtures import report
from tests.soak import slowdown

MAX_SECONDS = 2.0
# Files of thousands of recurring events, which honest ones can be as well.
MAX_SECONDS_OF_MANY = 8.0
MAX_MEGABYTES = 200
# A small process in between: the memory of a process counts as that of its child until the child runs its program.
LAUNCHER = """
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], {})
_, status, usage = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss, file=sys.stderr)
"""


@dataclass(frozen=True)
class Usage:
    status: int
    result: dict[str, Any]
    seconds: float  # of CPU
    megabytes: float


def measure(path: Path) -> Usage:
    """Run the parser as the server does, and return what it took."""
    job = {
        "path": str(path),
        "format": "ical",
        "options": {"now": "2026-11-16T12:00:00+00:00"},
        "limits": asdict(import_worker.LIMITS),
        "tz_path": "",
    }
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as source:
        source.write(orjson.dumps(job))
        source.seek(0)
        command = [sys.executable, "-I", "-S", "-c", LAUNCHER, *import_worker.COMMAND]
        launched = subprocess.run(command, stdin=source, stdout=output, stderr=subprocess.PIPE, env={}, check=True)
        status, seconds, kilobytes = launched.stderr.split()[-3:]
        output.seek(0)
        content = output.read()
    return Usage(int(status), orjson.loads(content) if content else {}, float(seconds), int(kilobytes) / 1024)


@pytest.mark.parametrize("name", CALENDARS)
def test_hostile_calendar_ends_within_limits(name: str, tmp_path: Path) -> None:
    path = tmp_path / "hostile.ics"
    path.write_bytes(CALENDARS[name]())
    usage = measure(path)
    report(f"{name}: {usage.seconds:.2f} s, {usage.megabytes:.0f} MB, {_summarize(usage.result)}")
    assert usage.status == 0
    assert "failed" not in usage.result
    seconds = usage.seconds / slowdown()
    assert seconds < (MAX_SECONDS_OF_MANY if name.startswith("many_") else MAX_SECONDS)
    assert usage.megabytes < MAX_MEGABYTES


def _summarize(result: dict[str, Any]) -> str:
    if "refused" in result:
        return f"refused: {result['refused']['$message']}"
    return f"{len(result['parsed']['records'])} records, {len(result['parsed']['rejections'])} rejections"


def test_five_thousand_events_are_parsed(tmp_path: Path) -> None:
    description = "DESCRIPTION:" + "A text of some length about what happens. " * 8
    lines = (description, "LOCATION:Hall\\, Street 5\\, Town", "CATEGORIES:Music,Town", "URL:https://example.org/1")
    path = tmp_path / "events.ics"
    path.write_bytes(make_calendar(make_event(number, *lines) for number in range(5000)))
    usage = measure(path)
    report(f"5,000 events, {path.stat().st_size / 1e6:.1f} MB: {usage.seconds:.2f} s, {usage.megabytes:.0f} MB")
    assert len(usage.result["parsed"]["records"]) == 5001
    assert usage.seconds < 10
