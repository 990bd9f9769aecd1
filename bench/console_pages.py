"""The time of the server for pages of the console: wall-clock time of requests one after the other, and CPU time.

`just bench-console-pages` uses 20,000 events; `--events 200000` builds a larger site. The queue of proposals has 500
entries: half of them new events, half changes of events. The exit code is 1 if p95 of a page, or of counting the
queue, exceeds its limit.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg
from rich.console import Console
from rich.table import Table

from bench.console_editors import add_sessions, start_console
from kalends.core.times import utc_now
from kalends.http.auth import COOKIE
from kalends.proposals.storage import count_queue
from kalends.store.database import Database, Options
from tests.console.console_client import Page

MAX_MS = 100.0
MAX_TABLE_MS = 300.0
MAX_TODAY_MS = 150.0
MAX_QUEUE_MS = 150.0
MAX_COUNT_MS = 1.0
QUEUED = 500
TABLE = "/console/events?per_page=500&period=all"
DRAFT = {"fields": [["title", "Concert"], ["description", "<p>Text of the event.</p>" * 20]]}


@dataclass(frozen=True)
class Case:
    """A page: how it is requested, and the limit of p95 in milliseconds."""

    name: str
    send: Callable[[httpx.Client, int], httpx.Response]
    prepare: Callable[[httpx.Client, int], Any] | None = None
    max_ms: float = MAX_MS


@dataclass(frozen=True)
class Result:
    """Milliseconds per request: percentiles of the elapsed time, and the mean of the CPU time."""

    case: Case
    p50: float
    p95: float
    server_cpu: float
    database_cpu: float
    kilobytes: float

    @property
    def is_slow(self) -> bool:
        return self.p95 > self.case.max_ms


def open_page(path: str) -> Callable[[httpx.Client, int], httpx.Response]:
    return lambda client, event_id: client.get(path.format(id=event_id))


def read_form(client: httpx.Client, event_id: int) -> dict[str, Any]:
    return Page.parse(client.get(f"/console/events/{event_id}").raise_for_status().text).form()


class FormCase:
    """A form that is read from its page before each request, which is not measured, and then sent."""

    def __init__(self, path: str, **changes: Any) -> None:
        self.path, self.changes = path, changes
        self._form: dict[str, Any] = {}

    def prepare(self, client: httpx.Client, event_id: int) -> None:
        self._form = {**read_form(client, event_id), **self.changes}

    def send(self, client: httpx.Client, event_id: int) -> httpx.Response:
        number = time.monotonic_ns()
        return client.post(self.path.format(id=event_id), data={**self._form, "title": f"Concert {number}"})


@contextmanager
def filled_queue(site_url: str) -> Iterator[list[str]]:
    """Yield the IDs of waiting proposals, which are removed at the end."""
    with psycopg.connect(site_url, autocommit=True) as connection:
        rows = connection.execute(
            """INSERT INTO proposals (site_id, id, record_id, base_revision, values, origin, user_id, guessed, state,
                    starts_at, created_at, expires_at)
                SELECT e.site_id, gen_random_uuid(), CASE WHEN n %% 2 = 0 THEN e.id END,
                    CASE WHEN n %% 2 = 0 THEN e.revision END,
                    CASE WHEN n %% 2 = 0
                        THEN jsonb_build_object('title', e.title || ' moved', 'description', e.description || ' Text')
                        ELSE jsonb_build_object('title', e.title, 'start_date', to_char(e.start_local, %(format)s),
                            'end_date', to_char(e.end_local, %(format)s), 'description', e.description,
                            'venue', (SELECT min(venue_id) FROM event_venues l WHERE l.event_id = e.id)) END,
                    'agent', (SELECT min(id) FROM users), '{title}', 'waiting', e.start_utc, now(),
                    now() + interval '1 day'
                FROM (SELECT *, row_number() OVER () AS n FROM events WHERE listed AND start_utc > now()
                    AND EXISTS (SELECT FROM event_venues l WHERE l.event_id = events.id)
                    ORDER BY start_utc LIMIT %(count)s) e RETURNING id::text""",
            {"format": "YYYY-MM-DD HH24:MI:SS", "count": QUEUED},
        ).fetchall()
        connection.execute("ANALYZE proposals")
        try:
            yield [row[0] for row in rows]
        finally:
            connection.execute("DELETE FROM proposals")


def measure_count(site_url: str, requests: int) -> float:
    """Return p95 of counting the queue, in milliseconds."""

    async def count() -> list[float]:
        database = await Database.open(Options(url=site_url))
        elapsed: list[float] = []
        try:
            async with database.transaction(1, utc_now(), writing=False) as tx:
                for _ in range(requests):
                    started = time.perf_counter()
                    number = await count_queue(tx)
                    elapsed.append(1000 * (time.perf_counter() - started))
                    if number < QUEUED:
                        raise AssertionError(f"{number} entries in the queue")
        finally:
            await database.close()
        return sorted(elapsed)

    return asyncio.run(count())[int(requests * 0.95)]


def make_cases(proposal_ids: list[str]) -> Iterator[Case]:
    yield Case("event form", open_page("/console/events/{id}"))
    yield Case("form of a new event", open_page("/console/events/new"))
    for name, form in (
        ("save an event", FormCase("/console/events/{id}", action="save")),
        ("checks while typing", FormCase("/console/events/checks")),
    ):
        yield Case(name, form.send, form.prepare)
    yield Case("autosave", lambda client, event_id: client.post(f"/console/drafts/events/{event_id}", json=DRAFT))
    yield Case("history", open_page("/console/events/{id}/history"))
    yield Case("today", open_page("/console/"), max_ms=MAX_TODAY_MS)
    yield Case("queue", open_page("/console/queue"), max_ms=MAX_QUEUE_MS)

    def open_entry(client: httpx.Client, event_id: int) -> httpx.Response:
        return client.get(f"/console/queue/{proposal_ids[event_id % len(proposal_ids)]}")

    yield Case("queue, an entry", open_entry, max_ms=MAX_QUEUE_MS)
    yield Case("calendar, month", open_page("/console/calendar"))
    yield Case("calendar, week", open_page("/console/calendar?view=week"))
    yield Case("one line", open_page("/console/events/quick?line=Concert+Tue+8pm+Town+Hall+free+%23music"))
    yield Case("table of events", open_page("/console/events"))
    yield Case("table, 500 rows", open_page(TABLE), max_ms=MAX_TABLE_MS)
    yield Case("table, 500 drafts", open_page(f"{TABLE}&status=draft"), max_ms=MAX_TABLE_MS)
    yield Case("table, search", open_page("/console/events?period=all&search=concert"))
    for path in ("venues", "categories", "media", "people", "settings", "settings/appearance", "account"):
        yield Case(path, open_page(f"/console/{path}"))


def measure(
    case: Case, client: httpx.Client, event_ids: list[int], read_cpu: Callable[[], tuple[float, float]]
) -> Result:
    """Send a request for each event, after one that is not counted.

    `read_cpu` returns the seconds of the server and of the database so far.
    """
    elapsed: list[float] = []
    size, server, database = 0, 0.0, 0.0
    for event_id in (event_ids[0], *event_ids):
        if case.prepare:
            case.prepare(client, event_id)
        before, started = read_cpu(), time.perf_counter()
        response = case.send(client, event_id)
        elapsed.append(time.perf_counter() - started)
        after = read_cpu()
        if response.status_code not in (200, 303):
            raise AssertionError(f"{case.name}: {response.status_code} {response.text[:500]}")
        size, server, database = len(response.content), server + after[0] - before[0], database + after[1] - before[1]
    times = sorted(1000 * seconds for seconds in elapsed[1:])
    mean = 1000 / len(elapsed)
    return Result(
        case, times[len(times) // 2], times[int(len(times) * 0.95)], server * mean, database * mean, size / 1000
    )


def open_client(base_url: str, site_url: str) -> httpx.Client:
    token = add_sessions(site_url, 1, "administrator")[0].token
    headers = {"Cookie": f"{COOKIE}={token}", "Sec-Fetch-Site": "same-origin"}
    return httpx.Client(base_url=base_url, headers=headers, timeout=60)


def find_event_ids(site_url: str, count: int) -> list[int]:
    """Return published events with a venue, spread over the whole site."""
    with psycopg.connect(site_url) as connection:
        rows = connection.execute(
            """SELECT e.id FROM events e
                WHERE e.listed AND EXISTS (SELECT FROM event_venues l WHERE l.event_id = e.id)
                ORDER BY md5(e.id::text) LIMIT %s""",
            [count],
        ).fetchall()
    return [row[0] for row in rows]


def main() -> int:
    arguments = _read_arguments()
    with ExitStack() as stack:
        site, server, processes = start_console(arguments.directory, arguments.events, stack)
        client = stack.enter_context(open_client(server.base_url, site.url))
        ids = find_event_ids(site.url, arguments.requests)
        proposal_ids = stack.enter_context(filled_queue(site.url))
        cases = [case for case in make_cases(proposal_ids) if arguments.only in case.name]
        results = [measure(case, client, ids, processes.seconds) for case in cases]
        count_ms = measure_count(site.url, arguments.requests)
    console = Console(width=120)
    console.print(_make_table(results, arguments.events))
    console.print(f"Counting {QUEUED} entries of the queue: p95 {count_ms:.2f} ms, limit {MAX_COUNT_MS:.0f} ms")
    return 1 if count_ms > MAX_COUNT_MS or any(result.is_slow for result in results) else 0


def _make_table(results: list[Result], events: int) -> Table:
    table = Table(title=f"Pages of the console at {events:,} events, in milliseconds")
    for name in ("page", "p50", "p95", "limit", "CPU of the server", "CPU of the database", "kB"):
        table.add_column(name, justify="left" if name == "page" else "right")
    for row in results:
        values = (row.p50, row.p95, row.case.max_ms, row.server_cpu, row.database_cpu, row.kilobytes)
        table.add_row(row.case.name, *(f"{value:.1f}" for value in values), style="red" if row.is_slow else "")
    return table


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--requests", type=int, default=100, help="of each page")
    parser.add_argument("--only", default="", metavar="TEXT", help="measure only pages with this text in their name")
    parser.add_argument("--directory", type=Path, default=Path(".local/speed"), help="where the databases are kept")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
