"""How many requests per second one, two and four processes serve: 70 % cached lists, 20 % misses, 10 % cold lists.

A miss has the records of its response in the cache, but not the response. A cold list is one of many that nobody has
requested yet. The knee is the least number of connections with 90 % of the highest rate. Four processes reach
PostgreSQL through PgBouncer.
"""

import argparse
import sys
import tempfile
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.load import Processes, Sample, run_wrk
from bench.optimized_python import find_optimized_python
from bench.seeded_sites import NS, SeededSite, find_cluster, make_site
from tests.robustness.test_pgbouncer import run_pgbouncer
from tests.servers import Server

CONNECTIONS = (1, 2, 4, 8, 16, 32, 64)
KNEE = 0.9  # share of the highest rate
BASE_URL = "http://127.0.0.1"
FIRST_DAY = datetime.now(UTC).date()
SCRIPT = f"""
math.randomseed(os.time() * 1000 + os.clock() * 1000000)
local port = math.random(60000)
request = function()
  local kind = math.random()
  wrk.headers["Host"] = "127.0.0.1"
  if kind < 0.7 then return wrk.format("GET", "{NS}/events?page=" .. math.random(3)) end
  if kind < 0.9 then
    port = port % 60000 + 1
    wrk.headers["Host"] = "127.0.0.1:" .. port
    return wrk.format("GET", "{NS}/events?page=" .. math.random(3))
  end
  local minute = math.random(1440 * 300)
  local start = os.date("!%Y-%m-%d%%20%H:%M:00", {int(datetime.now(UTC).timestamp())} + 60 * minute)
  return wrk.format("GET", "{NS}/events?start_date=" .. start .. "&end_date={FIRST_DAY + timedelta(days=400)}")
end
"""
# Processes of the server, and whether PgBouncer is in front of PostgreSQL.
SETUPS = ((1, False), (2, False), (4, True))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--seconds", type=int, default=5, help="of each run")
    parser.add_argument("--directory", type=Path, default=Path(".local/speed"), help="where the databases are kept")
    arguments = parser.parse_args()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        cluster = find_cluster(arguments.directory, stack)
        site = make_site(cluster, arguments.events)
        for workers, is_pooled in SETUPS:
            samples = _measure(site, cluster.pid, workers, arguments, is_pooled=is_pooled)
            _print_setup(workers, samples, is_pooled=is_pooled)
    return 0


def _measure(
    site: SeededSite, postmaster: int, workers: int, arguments: argparse.Namespace, *, is_pooled: bool
) -> dict[int, Sample]:
    with ExitStack() as stack:
        settings = {"KALENDS_BASE_URL": BASE_URL, "KALENDS_POOL_TIMEOUT": "30"}
        url = site.url
        if is_pooled:
            directory = stack.enter_context(tempfile.TemporaryDirectory())
            url = stack.enter_context(run_pgbouncer(site.url, Path(directory)))
            settings["KALENDS_PREPARED_STATEMENTS"] = "false"
        kalends = (*find_optimized_python(), "-m", "kalends")
        log = arguments.directory / "knee.log"
        server = stack.enter_context(
            Server.start(url, log=log, workers=workers, environment=settings, kalends=kalends)
        )
        processes = Processes(postmaster, server.process.pid)
        run_wrk(server.base_url, 16, 2, processes, script=SCRIPT)  # Fill the cache of each process.
        return {
            number: run_wrk(server.base_url, number, arguments.seconds, processes, script=SCRIPT)
            for number in CONNECTIONS
        }


def _print_setup(workers: int, samples: dict[int, Sample], *, is_pooled: bool) -> None:
    highest = max(sample.rate for sample in samples.values())
    knee = next(number for number, sample in samples.items() if sample.rate >= KNEE * highest)
    title = f"{workers} {'process' if workers == 1 else 'processes'}{', PgBouncer' if is_pooled else ''}"
    table = Table("connections", "requests/s", "p50 ms", "p99 ms", "CPU ms", "database", title=title)
    for number, sample in samples.items():
        table.add_row(
            f"{number}{' (knee)' if number == knee else ''}", f"{sample.rate:,.0f}", f"{sample.p50:.1f}",
            f"{sample.p99:.1f}", f"{sample.cpu:.2f}", f"{sample.database:.2f}",
        )  # fmt: skip
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
