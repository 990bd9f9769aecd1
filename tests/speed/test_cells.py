"""The small form of `just bench-cells`: lookups, the loss of a cell, and the limits."""

import asyncio
import shutil
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from bench.cells import NAMES, ROUTED, Lookups, Loss, Result, Routing, fill_cells, measure_lookups, measure_losses
from bench.load import Sample
from bench.periodic_jobs import JobWork
from tools.postgres import throwaway

pytestmark = pytest.mark.process

PLAIN, SAME, MORE = Sample(0, 0, 0, 2.0, 1.0), Sample(0, 0, 0, 2.1, 1.0), Sample(0, 0, 0, 2.4, 1.0)


@pytest.mark.skipif(shutil.which("wrk") is None, reason="wrk is not installed (Debian: wrk)")
def test_sites_of_other_cells_are_served_while_one_is_lost(tmp_path: Path) -> None:
    with ExitStack() as stack:
        cells = fill_cells({name: stack.enter_context(throwaway()) for name in NAMES}, 9, {})
        hosts = cells.list_hosts(9)
        assert sorted(hosts) == [f"s{number}.example" for number in range(1, 10)]
        assert asyncio.run(measure_lookups(cells, hosts)).queries <= 2
        losses = measure_losses(cells, tmp_path, rounds=1, seconds=1)
    assert [loss.name for loss in losses] == ["a suspended cell", "a stopped cell"]
    for loss in losses:
        assert set(loss.statuses) == {503}


@pytest.mark.parametrize(
    ("routed", "memory", "blocks", "during", "failures"),
    [
        (SAME, 100.0, 40, 25.0, 0),
        (MORE, 100.0, 40, 25.0, 1),  # a directory that costs something
        (SAME, 200.0, 40, 25.0, 1),  # more than the budgets of the caches
        (SAME, 100.0, 200, 25.0, 1),  # a job that visits all sites
        (SAME, 100.0, 40, 60.0, 1),  # a lost cell that delays the others
    ],
)
def test_limits(routed: Sample, memory: float, blocks: int, during: float, failures: int) -> None:
    runs: Sequence[Sample] = [routed] * 3
    result = Result(
        hosts=100_000,
        seconds={},
        routing=[Routing(ROUTED[0], [PLAIN] * 3, runs)],
        lookups=Lookups(0.1, 20.0, 10.0, 1_000),
        memory_mb=memory,
        few_jobs={"job": JobWork([], 10)},
        jobs={"a": {"job": JobWork([], blocks)}},
        losses=[Loss("a stopped cell", [22.0] * 3, [during] * 3, Counter())],
    )
    assert len(result.find_failures()) == failures
