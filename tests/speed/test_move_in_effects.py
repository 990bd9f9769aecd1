"""The small form of `just bench-move-in`: a made-up WordPress site moves in while others read."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.move_in import measure
from bench.seeded_sites import run_command
from tests.conftest import replace_database, temporary_database
from tests.servers import Server

pytestmark = pytest.mark.process

EVENTS = 60


def test_a_made_up_site_moves_in(
    database_url: str, postgres_url: str, template_database: str, tmp_path: Path, start_server: Callable[..., Server]
) -> None:
    with temporary_database(postgres_url, template=template_database) as name:
        seeded = replace_database(postgres_url, name)
        run_command(seeded, "seed", "--events", str(EVENTS))
        server = start_server(database_url)
        result = measure(seeded, database_url, server.base_url, tmp_path, quiet=0.5)
    assert result.events == EVENTS
    # The lists are read, and the three events that have changed, but no others.
    assert "The move-in is over." in result.switch.output
    assert result.switch.requests < 70
    assert result.switch.seconds < result.max_switch
    assert result.effects.latencies
    # Another writer gets its turn; `just bench-move-in` has the real limits.
    assert len(result.effects.waits) > 10
    assert result.effects.longest_wait < 10
