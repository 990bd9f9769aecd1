"""Recordings of responses and statements (`just wire`) are repeatable, and differences are found."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.api.conftest import StartApp
from tools.examples import freeze
from tools.wire import Recorder, compare

CONCERT = {"title": "Concert", "start_date": "2027-04-01", "end_date": "2027-04-01"}


def record(start_single_site: StartApp, directory: Path, **fields: Any) -> Path:
    recorder, app = Recorder(), start_single_site()
    with freeze(), recorder.attach():
        record_id = app.caller("editor").create("events", **CONCERT, **fields)["id"]
        app.caller().read("events", record_id)
        app.caller().read("events", record_id)
    recorder.write(directory)
    return directory


def test_recordings_are_equal_byte_by_byte(start_single_site: StartApp, tmp_path: Path) -> None:
    # The process remembers the passwords whose use it has recorded.
    _, first, second = [record(start_single_site, tmp_path / name) for name in ("warm-up", "first", "second")]
    for file in ("exchanges.json", "statements.json", "texts.json"):
        assert (first / file).read_bytes() == (second / file).read_bytes()
    names = list(json.loads((first / "exchanges.json").read_text()))
    assert [name.split()[1] for name in names] == ["POST", "GET", "GET"]
    assert names[1].replace("#1", "#2") == names[2]
    assert compare([first, second], "") == 0


def test_differences_are_printed(
    start_single_site: StartApp, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = record(start_single_site, tmp_path / "first")
    second = record(start_single_site, tmp_path / "second", cost="12", categories=["Music"])
    assert compare([first, second], "") == 1
    printed = capsys.readouterr().out
    assert "GET /api/calendar/events/v1/events/" in printed
    assert "+ INSERT INTO" in printed
    assert compare([first, second], "/events") == 0
