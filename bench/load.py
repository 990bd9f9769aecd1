"""Load generators with CPU measurement: wrk for requests, pgbench for plain SQL."""

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import httpx

from bench.cpu_time import TICKS, cpu_seconds, list_process_tree

# Prints one line at the end: requests, microseconds, p50, p99, errors.
DONE_SCRIPT = """
done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format("RESULT %d %d %f %f %d\\n", summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), e.connect + e.read + e.write + e.status + e.timeout))
end
"""
# Every write differs from the previous one; otherwise nothing would be written.
PATCH_SCRIPT = """
local count = 0
request = function()
  count = count + 1
  return wrk.format("PATCH", nil, nil, '{"cost":"' .. (os.time() % 100000) * 1000 + count .. '"}')
end
"""
# Each request has another port in its Host header, which is part of the cache key of a response. The response itself
# is the same if the server has a base URL.
MISS_SCRIPT = """
local count = os.time() * 997
request = function()
  count = count + 1
  wrk.headers["Host"] = "127.0.0.1:" .. (1 + count % 60000)
  return wrk.format()
end
"""


@dataclass(frozen=True)
class Sample:
    """One run: latencies in milliseconds, CPU time in milliseconds per request."""

    rate: float
    p50: float
    p99: float
    server: float
    database: float

    @property
    def cpu(self) -> float:
        return self.server + self.database


@dataclass
class Samples:
    """Runs of the same request. Noise only adds work, so the lowest CPU time and the highest rate count."""

    runs: list[Sample] = field(default_factory=list[Sample])

    @property
    def cpu(self) -> float:
        return min(run.cpu for run in self.runs)

    @property
    def median_cpu(self) -> float:
        return median(run.cpu for run in self.runs)

    @property
    def cheapest(self) -> Sample:
        return min(self.runs, key=lambda run: run.cpu)

    @property
    def best(self) -> Sample:
        return max(self.runs, key=lambda run: run.rate)

    @property
    def median_rate(self) -> float:
        return median(run.rate for run in self.runs)


@dataclass(frozen=True)
class Processes:
    """The processes whose CPU time is counted."""

    postmaster: int
    server: int | None = None

    def seconds(self) -> tuple[float, float]:
        server = sum(map(cpu_seconds, list_process_tree(self.server))) if self.server else 0.0
        return server, _cluster_seconds(self.postmaster)


def run_wrk(
    url: str,
    connections: int,
    seconds: float,
    processes: Processes,
    *,
    headers: Mapping[str, str] | None = None,
    script: str = "",
) -> Sample:
    """Send requests with wrk. `script` is Lua that creates them."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script + DONE_SCRIPT)
        file.flush()
        header_options = [part for name, value in (headers or {}).items() for part in ("-H", f"{name}: {value}")]
        size = ["-t", "1", "-c", str(connections), "-d", f"{max(1, round(seconds))}s", "--timeout", "20s"]
        command = ["wrk", *size, *header_options, "-s", file.name, url]
        output, server, database = _measure_cpu(lambda: _run(command), processes)
    match = re.search(r"RESULT (\d+) (\d+) ([\d.]+) ([\d.]+) (\d+)", output)
    if match is None:
        raise LoadError(f"wrk said:\n{output}")
    requests, duration, p50, p99, errors = (float(part) for part in match.groups())
    if errors or not requests:
        raise LoadError(f"{errors:.0f} errors in {requests:.0f} requests for {url}:\n{output}")
    return Sample(
        1e6 * requests / duration, p50 / 1000, p99 / 1000, 1000 * server / requests, 1000 * database / requests
    )


def run_requests(url: str, count: int, processes: Processes) -> Sample:
    """Send a number of requests one after the other; wrk would count the CPU time of a slow one that it abandons."""
    times: list[float] = []

    def send() -> str:
        with httpx.Client(timeout=120, headers={"Accept-Encoding": "identity"}) as client:
            for _ in range(count):
                started = time.perf_counter()
                client.get(url).raise_for_status()
                times.append(1000 * (time.perf_counter() - started))
        return ""

    _, server, database = _measure_cpu(send, processes)
    times.sort()
    p50, p99 = _percentile(times, 0.5), _percentile(times, 0.99)
    return Sample(1000 * count / sum(times), p50, p99, 1000 * server / count, 1000 * database / count)


def run_pgbench(url: str, script: str, values: Mapping[str, str], seconds: float, processes: Processes) -> Sample:
    """Run a script with pgbench in the role of the server, to which row-level security applies."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "script.sql"
        file.write_text(script)
        variables = [part for name, value in values.items() for part in ("-D", f"{name}={value}")]
        options = ["-n", "-M", "prepared", "-c", "1", "-T", str(max(1, round(seconds))), "-f", str(file), "--log"]
        command = ["pgbench", *options, f"--log-prefix={directory}/log", *variables, url]
        environment = {**os.environ, "PGOPTIONS": "-c role=kalends_app"}
        output, _, database = _measure_cpu(lambda: _run(command, environment), processes)
        logs = [line.split() for log in Path(directory).glob("log.*") for line in log.read_text().splitlines()]
    times = sorted(int(line[2]) / 1000 for line in logs)
    if not times or "aborted" in output:
        raise LoadError(f"pgbench said:\n{output}")
    match = re.search(r"tps = ([\d.]+)", output)
    rate = float(match[1]) if match else 0.0
    return Sample(rate, _percentile(times, 0.5), _percentile(times, 0.99), 0.0, 1000 * database / len(times))


class LoadError(Exception):
    pass


def _measure_cpu(work: Callable[[], str], processes: Processes) -> tuple[str, float, float]:
    before = processes.seconds()
    output = work()
    time.sleep(0.1)  # The CPU time of ending sessions is counted once they are gone.
    after = processes.seconds()
    return output, after[0] - before[0], after[1] - before[1]


def _run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    completed = subprocess.run(  # noqa: S603  Our own command.
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if completed.returncode:
        raise LoadError(f"{command[0]} ended with {completed.returncode}:\n{completed.stdout}")
    return completed.stdout


def _cluster_seconds(postmaster: int) -> float:
    """Return the CPU time of all processes of a cluster; that of ended ones is part of the postmaster's."""
    fields = Path(f"/proc/{postmaster}/stat").read_text().rpartition(")")[2].split()
    ended = (int(fields[13]) + int(fields[14])) / TICKS
    total = ended
    for pid in list_process_tree(postmaster):
        try:
            total += cpu_seconds(pid)
        except FileNotFoundError:
            continue  # It has just ended and is counted next time.
    return total


def _percentile(times: Sequence[float], share: float) -> float:
    return times[min(len(times) - 1, int(share * len(times)))]
