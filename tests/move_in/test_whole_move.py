"""Sites move in from the plan to the switch while a worker makes sizes of images, and nothing is lost unsaid."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.seeded_sites import run_command
from bench.whole_move import NewSite, StartOld, measure, move
from tests.conftest import replace_database, temporary_database
from tests.move_in.conftest import RECORDING, stop, wait_for
from tests.move_in.replay_server import choose_samples, list_images, load
from tests.move_in.samples import OLD, SAMPLES, list_losses

pytestmark = pytest.mark.process

EVENTS, PICTURES = 40, 8


def test_a_generated_site_moves_in_and_switches(
    database_url: str, postgres_url: str, template_database: str, tmp_path: Path
) -> None:
    """The small form of `just bench-whole-move`."""
    with temporary_database(postgres_url, template=template_database) as name:
        seeded = replace_database(postgres_url, name)
        run_command(seeded, "seed", "--events", str(EVENTS))
        result = measure(seeded, database_url, tmp_path, delay=0, pictures=PICTURES)
    assert result.problems == []
    assert (result.events, result.images) == (EVENTS, PICTURES)
    assert sorted(result.seconds) == [
        *("apply", "plan", "switch", "sync 1: apply", "sync 1: plan", "sync 2: apply", "sync 2: plan"),
    ]


@contextmanager
def serve_recording(port: int) -> Iterator[StartOld]:
    """Yield a function that serves the recording with the samples, in place of the one before."""
    processes: list[subprocess.Popen[str]] = []

    def start(is_edited: bool) -> None:
        for process in processes:
            stop(process)
        processes.clear()
        command = [sys.executable, "-m", "tests.move_in.replay_server", str(RECORDING / "replay.py")]
        options = ["--port", str(port), "--base", OLD, *(["--change-after", "0"] if is_edited else []), "--samples"]
        processes.append(
            subprocess.Popen(
                [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                cwd=Path(__file__).parents[2],
            )
        )  # fmt: skip
        wait_for(port)

    yield start
    for process in processes:
        stop(process)


def test_the_recorded_site_moves_in_and_switches(
    database_url: str, tmp_path: Path, find_port: Callable[[], int]
) -> None:
    if not (RECORDING / "replay.py").exists():
        pytest.skip(f"{RECORDING} has no recording; KALENDS_RECORDED_SITE names its directory")
    port, module = find_port(), load(str(RECORDING / "replay.py"))
    table = module.load()
    images = list_images(module, table)
    samples = {event_id: (sample, images) for event_id, sample in choose_samples(module, table).items()}
    assert len(samples) == len(SAMPLES)
    expected = [*list_losses(samples, OLD), *(("6 comments stay behind.", str(entry)) for entry in list(samples)[:3])]
    site = NewSite(database_url, tmp_path, f"http://127.0.0.1:{port}", password="replay", home=OLD)
    with serve_recording(port) as start_old:
        result = move(site, start_old, expected, samples)
    assert result.problems == []
    assert (result.events, result.images) == (300, 30)
