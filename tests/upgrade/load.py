"""A load that costs little: `python tests/upgrade/load.py PLAN` reads and writes until its input ends.

The plan is a JSON file with the address, the rates per second, the paths to read, and the login of the writer. The
result is printed as JSON. Only the standard library is imported, and connections are kept open.
"""

import asyncio
import base64
import json
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

READERS, WRITERS = 8, 2
API = "/api/calendar/events/v1"
TIMEOUT = 60.0


@dataclass
class Result:
    reads: Counter[str] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    read_seconds: list[float] = field(default_factory=list)
    write_seconds: list[float] = field(default_factory=list)
    acknowledged: list[tuple[str, int, str]] = field(default_factory=list)  # kind, ID and title
    scheduled: list[int] = field(default_factory=list)  # events that the worker has to publish

    def note(self, counter: Counter[str], what: str, status: int | str, body: bytes = b"") -> None:
        counter[str(status)] += 1
        if status not in (200, 201):
            now = datetime.now(UTC).strftime("%H:%M:%S.%f")
            self.failures.append(f"{now} {what}: {status} {body[:200].decode(errors='replace')}")


class Connection:
    """A connection that stays open; opened again only if the other side has announced that it closes."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def request(self, head: str, body: bytes = b"") -> tuple[int, bytes]:
        async with asyncio.timeout(TIMEOUT):
            if self._reader is None or self._writer is None:
                self._reader, self._writer = await asyncio.open_connection(*self._address)
            try:
                self._writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
                return await self._read(self._reader)
            except BaseException:
                self.close()
                raise

    async def _read(self, reader: asyncio.StreamReader) -> tuple[int, bytes]:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines[1:] if ": " in line)
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        if headers.get("connection") == "close":
            self.close()
        return int(lines[0].split(" ")[1]), body

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None


class Load:
    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.result = Result()
        self.stopping = asyncio.Event()

    async def run(self) -> None:
        started_at = time.monotonic()
        tasks = [self.read(number) for number in range(READERS)] + [self.write(number) for number in range(WRITERS)]
        await asyncio.gather(self.wait_for_input(), *tasks)
        self.seconds = time.monotonic() - started_at

    async def wait_for_input(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_reader(sys.stdin, lambda: self.stopping.set() if not sys.stdin.buffer.read1() else None)
        await self.stopping.wait()
        loop.remove_reader(sys.stdin)

    async def pace(self, interval: float, next_at: float) -> float:
        """Wait until a request is due and return when the next one is. Missed ones are left out."""
        now = time.monotonic()
        if next_at > now:
            await asyncio.sleep(next_at - now)
        return max(next_at + interval, now)

    async def read(self, number: int) -> None:
        connection = Connection(self.plan["host"], self.plan["port"])
        interval = READERS / self.plan["reads"]
        due = time.monotonic() + interval * number / READERS
        count = number * 7
        while not self.stopping.is_set():
            due = await self.pace(interval, due)
            site, path = self.plan["paths"][count % len(self.plan["paths"])]
            count += 1
            head = f"GET {path} HTTP/1.1\r\nHost: {site}\r\n"
            await self.send(connection, self.result.reads, self.result.read_seconds, f"GET {path}", head)
        connection.close()

    async def write(self, number: int) -> None:
        connection = Connection(self.plan["host"], self.plan["port"])
        interval = WRITERS / self.plan["writes"]
        due = time.monotonic() + interval * number / WRITERS
        credentials = base64.b64encode(f"{self.plan['login']}:{self.plan['password']}".encode()).decode()
        common = (
            f"Host: {self.plan['site']}\r\nAuthorization: Basic {credentials}\r\nContent-Type: application/json\r\n"
        )
        count = 0
        last_event = 0
        while not self.stopping.is_set():
            due = await self.pace(interval, due)
            title = f"{self.plan['name']} {number} {count}"
            method, path, kind, values = self.choose_write(count, title, last_event)
            head = f"{method} {path} HTTP/1.1\r\n{common}"
            what = f"{method} {path}"
            body = json.dumps(values).encode()
            answer = await self.send(connection, self.result.writes, self.result.write_seconds, what, head, body)
            if answer:
                record = json.loads(answer)
                self.result.acknowledged.append((kind, record["id"], title))
                last_event = record["id"] if kind == "events" else last_event
                if "date_utc" in values:
                    self.result.scheduled.append(record["id"])
            count += 1
        connection.close()

    def choose_write(self, count: int, title: str, last_event: int) -> tuple[str, str, str, dict[str, str]]:
        """Return the next write: new venues, new events, some of them scheduled, and changes."""
        if count % 4 == 1:
            return "POST", f"{API}/venues", "venues", {"venue": title}
        if count % 4 == 3 and last_event:
            return "PATCH", f"{API}/events/{last_event}", "events", {"title": title}
        values = {"title": title, "start_date": "2030-05-01 10:00:00", "end_date": "2030-05-01 12:00:00"}
        if count % 8 == 2:
            soon = datetime.now(UTC) + timedelta(seconds=5)
            values["date_utc"] = soon.strftime("%Y-%m-%d %H:%M:%S")
        return "POST", f"{API}/events", "events", values

    async def send(
        self,
        connection: Connection,
        counter: Counter[str],
        seconds: list[float],
        what: str,
        head: str,
        body: bytes = b"",
    ) -> bytes:
        """Send a request, note its outcome and return the body of a success."""
        started_at = time.monotonic()
        try:
            status, answer = await connection.request(head, body)
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            self.result.note(counter, what, type(error).__name__)
            return b""
        seconds.append(time.monotonic() - started_at)
        self.result.note(counter, what, status, answer)
        return answer if status in (200, 201) else b""


def summarize(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds) or [0.0]
    places = {"median": 0.5, "p99": 0.99, "slowest": 1.0}
    return {name: round(1000 * ordered[int((len(ordered) - 1) * place)], 1) for name, place in places.items()}


def main() -> None:
    load = Load(json.loads(Path(sys.argv[1]).read_text()))
    asyncio.run(load.run())
    result = load.result
    figures = {
        "seconds": round(load.seconds, 1),
        "reads": result.reads,
        "writes": result.writes,
        "failures": result.failures[:50],
        "read_ms": summarize(result.read_seconds),
        "write_ms": summarize(result.write_seconds),
        "acknowledged": result.acknowledged,
        "scheduled": result.scheduled,
        "cpu": round(time.process_time(), 1),
    }
    sys.stdout.write(json.dumps(figures))


if __name__ == "__main__":
    main()
