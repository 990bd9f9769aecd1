"""The small form of `just bench-imports`: a plan, its application, a second sync and an undo beside other work."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.imports import make_calendar, measure
from bench.seeded_sites import fill_site
from tests.servers import Server

pytestmark = pytest.mark.process

EVENTS = 40
# The machine may be busy; `just bench-imports` has the real limit.
MAX_WAIT = 10.0


def test_an_import_leaves_gaps_for_others(
    database_url: str, tmp_path: Path, start_server: Callable[..., Server]
) -> None:
    fill_site(database_url, 60)
    server = start_server(database_url)
    result = measure(database_url, server.base_url, os.getpid(), EVENTS, tmp_path)
    assert set(result.steps) == {"apply", "second sync", "undo"}
    for effects in result.steps.values():
        # Another writer gets its turn again and again.
        assert len(effects.waits) > 10
        assert effects.longest_wait < MAX_WAIT
        assert effects.latencies
    assert result.plan_cpu[0] > 0


def test_a_later_edition_has_changes_and_new_events() -> None:
    first, second = make_calendar(100), make_calendar(100, edition=1)
    assert (first.count("BEGIN:VEVENT"), second.count("BEGIN:VEVENT")) == (100, 102)
    assert second.count("(edition 1)") == 21
