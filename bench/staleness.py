"""Staleness: cached reads during writes must never return a state older than an acknowledged write.

wrk reads from two servers with 64 connections in total, while an event is written 20 times per second. Each write
sets the cost of the event to a larger number. Each read sends the last acknowledged number as its X-Request-ID, which
the response repeats next to the cost that it contains.
The exit code is 1 after one stale response, or if p99 of the reads is not below 4 × p50.
"""

import argparse
import itertools
import mmap
import re
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx

from bench.seeded_sites import NS, SeededSite, find_cluster, make_site, start_server

CONNECTION_COUNT = 64
WRITES_PER_SECOND = 20
MAX_SPREAD = 4.0
# The acknowledged number is in shared memory, in eight bytes of a file.
CHECK_SCRIPT = """
local ffi = require("ffi")
ffi.cdef[[int open(const char *, int); void *mmap(void *, size_t, int, int, int, long);]]
local known = ffi.cast("volatile int64_t *", ffi.C.mmap(nil, 8, 1, 1, ffi.C.open("{file}", 0), 0))
local threads = {{}}
setup = function(thread) table.insert(threads, thread) end
init = function() checked, stale, others, last = 0, 0, 0, 0 end
request = function()
  return wrk.format("GET", nil, {{["X-Request-ID"] = "r." .. tostring(tonumber(known[0]))}})
end
response = function(status, headers, body)
  local shown, asked
  for name, value in pairs(headers) do
    if name:lower() == "x-request-id" then asked = tonumber(value:match("^r%.(%d+)$")) end
  end
  local at = body:find('"id":{event},', 1, true)
  if at then shown = tonumber(body:match('"cost":"[^"%d]*(%d+)', at)) end
  if status ~= 200 or not shown or not asked then others = others + 1
  else
    checked = checked + 1
    if shown < asked then stale = stale + 1 end
    last = math.max(last, shown)
  end
end
done = function(summary, latency, requests)
  local sums = {{checked = 0, stale = 0, others = 0, last = 0}}
  for _, thread in ipairs(threads) do
    for name in pairs(sums) do sums[name] = sums[name] + thread:get(name) end
  end
  local e = summary.errors
  io.write(string.format("RESULT %d %d %d %d %d %f %f %f\\n", sums.checked, sums.stale, sums.others + e.connect
    + e.read + e.write + e.timeout, sums.last, summary.duration, latency:percentile(50), latency:percentile(99),
    latency.max))
end
"""


@dataclass(frozen=True)
class ReadResult:
    """The results of wrk for one server; times in milliseconds."""

    checked: int
    stale: int
    others: int
    last_number: int
    rate: float
    p50: float
    p99: float
    maximum: float


@dataclass(frozen=True)
class StalenessResult:
    results: list[ReadResult]
    writes: int
    first_number: int
    last_number: int

    @property
    def spread(self) -> float:
        return max(one.p99 / one.p50 for one in self.results)


class SharedNumber:
    """The last acknowledged number, in shared memory."""

    def __init__(self, file: Path) -> None:
        file.write_bytes(bytes(8))
        with file.open("r+b") as opened:
            self._memory = mmap.mmap(opened.fileno(), 8)

    def set(self, number: int) -> None:
        # Eight aligned bytes are written atomically.
        self._memory[:] = struct.pack("<q", number)


def check_staleness(
    base_urls: Sequence[str], site: SeededSite, seconds: float, writes: int = WRITES_PER_SECOND, *, ahead: int = 0
) -> StalenessResult:
    """Read and write for some time. `ahead` acknowledges numbers before they are written: all reads are stale."""
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        shared_number = SharedNumber(Path(directory) / "number")
        script = Path(directory) / "checking.lua"
        script.write_text(CHECK_SCRIPT.format(file=Path(directory) / "number", event=site.event_id))
        auth = (site.login, site.password)
        clients = [stack.enter_context(httpx.Client(base_url=f"{base_url}{NS}", auth=auth)) for base_url in base_urls]
        path, first = f"{NS}/events?include={site.event_id}", _write(clients[0], site)
        shared_number.set(first + ahead)
        for base_url in base_urls:
            httpx.get(f"{base_url}{path}").raise_for_status()
        readers = [
            _start_reader(f"{base_url}{path}", seconds, script, CONNECTION_COUNT // len(base_urls))
            for base_url in base_urls
        ]
        numbers: list[int] = []

        def write_one(client: httpx.Client) -> None:
            numbers.append(_write(client, site))
            shared_number.set(numbers[-1] + ahead)

        def write_continuously() -> None:
            _run_at_rate(writes, seconds, lambda number: write_one(clients[number % len(clients)]))

        writer = threading.Thread(target=write_continuously)
        writer.start()
        outputs = [reader.communicate()[0] for reader in readers]
        writer.join()
    return StalenessResult([_parse_result(text) for text in outputs], len(numbers), first, numbers[-1])


def _write(client: httpx.Client, site: SeededSite) -> int:
    """Write a larger number than before; return it once it is acknowledged."""
    number = time.time_ns() // 10**6 % 10**12
    client.patch(f"/events/{site.event_id}", json={"cost": str(number)}).raise_for_status()
    return number


def _run_at_rate(per_second: int, seconds: float, work: Callable[[int], None]) -> None:
    started = time.monotonic()
    for number in itertools.count():
        due = started + number / per_second
        if due - started > seconds:
            return
        time.sleep(max(0.0, due - time.monotonic()))
        work(number)


def _start_reader(url: str, seconds: float, script: Path, connections: int) -> subprocess.Popen[str]:
    size = ["-t", "1", "-c", str(connections), "-d", f"{round(seconds)}s", "--timeout", "20s"]
    command = ["wrk", *size, "-s", str(script), url]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # noqa: S603


def _parse_result(text: str) -> ReadResult:
    match = re.search(r"RESULT (\d+) (\d+) (\d+) (\d+) (\d+) ([\d.]+) ([\d.]+) ([\d.]+)", text)
    if match is None:
        raise AssertionError(f"wrk said:\n{text}")
    checked, stale, others, last, duration = (int(part) for part in match.groups()[:5])
    p50, p99, longest = (float(part) / 1000 for part in match.groups()[5:])
    return ReadResult(checked, stale, others, last, 1e6 * checked / duration, p50, p99, longest)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--writes", type=int, default=WRITES_PER_SECOND, help="a second")
    parser.add_argument("--directory", type=Path, default=Path(".local/speed"))
    arguments = parser.parse_args()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        site = make_site(find_cluster(arguments.directory, stack), arguments.events)
        logs = [arguments.directory / f"stale-{number}.log" for number in (1, 2)]
        base_urls = [start_server(site, log, stack, megabytes=64).base_url for log in logs]
        outcome = check_staleness(base_urls, site, arguments.seconds, arguments.writes)
    for one in outcome.results:
        print(  # noqa: T201
            f"{one.checked:,} answers checked, {one.stale} stale, {one.others} others; {one.rate:,.0f} a second, "
            f"p50 {one.p50:.1f} ms, p99 {one.p99:.1f} ms ({one.p99 / one.p50:.1f} ×), longest {one.maximum:.0f} ms"
        )
    pace = outcome.writes / arguments.seconds
    print(f"{outcome.writes} writes acknowledged, {pace:.1f} a second; p99 is to stay below {MAX_SPREAD:.0f} × p50")  # noqa: T201
    is_wrong = any(one.stale or one.others for one in outcome.results)
    return 1 if is_wrong or outcome.spread >= MAX_SPREAD else 0


if __name__ == "__main__":
    sys.exit(main())
