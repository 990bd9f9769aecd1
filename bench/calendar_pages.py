"""The cost of a month with 1,000 events and a feed of 5,000: cached, uncached, and on a much larger site.

`just bench-calendar` builds 20,000 and 2,000,000 events; `--quick` builds 2,000 and 40,000. The exit code is 1 if a
limit is exceeded. CPU time includes the server and its database sessions.
"""

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from time import perf_counter

import psycopg
from rich.console import Console
from rich.table import Table

from bench.cpu_time import APPLICATION_NAME
from bench.measurement import RunningServer
from bench.scaling import SETTINGS
from bench.sized_sites import SizedSite, make_site
from tests.servers import Server
from tools import postgres

MONTH = "/events/month/2040-03/"
FEED = "/events.ics?start_date=2041-01-01&end_date=2041-12-31"
# Milliseconds of CPU time; of elapsed time for the feed.
MAX_WARM_MONTH_MS, MAX_COLD_MONTH_MS, MAX_WARM_FEED_MS = 5.0, 40.0, 1000.0
MAX_RATIO = 1.5
# One in ten events lasts several days, one in seven has a category.
_ADD_EVENTS = """
    WITH raised AS (
        UPDATE sites SET last_post_id = last_post_id + %(n)s, revision = revision + %(n)s
        RETURNING id, last_post_id - %(n)s AS post, revision - %(n)s AS revision),
    added AS (
        INSERT INTO events (site_id, id, uid, revision, author_id, status, slug, published_at, modified_utc, title,
            description, timezone, start_local, end_local, start_utc, end_utc, search_text)
        SELECT r.id, r.post + n, gen_random_uuid(), r.revision + n, (SELECT min(u.id) FROM users u), 'publish',
            %(name)s || '-' || n, now(), now(), 'Concert number ' || n || ' in the town hall',
            repeat('Songs of the river and of those who live on it. ', 12), 'Europe/Berlin', t.at, t.at + t.span,
            t.at AT TIME ZONE 'Europe/Berlin', (t.at + t.span) AT TIME ZONE 'Europe/Berlin', 'concert'
        FROM raised r, generate_series(1, %(n)s) n, LATERAL (SELECT
            %(first)s::timestamp + (n %% %(days)s) * interval '1 day' + (8 + n %% 14) * interval '1 hour' AS at,
            CASE WHEN n %% 10 = 0 THEN (1 + n %% 7) * interval '1 day' ELSE interval '2 hours' END AS span) t
        RETURNING site_id, id, start_utc)
    INSERT INTO event_categories (site_id, event_id, category_id, position, start_utc, listed, published)
    SELECT a.site_id, a.id, (SELECT min(c.id) FROM categories c WHERE c.site_id = a.site_id), 1, a.start_utc, true,
        true
    FROM added a WHERE a.id %% 7 = 0
"""


def main() -> int:
    arguments = _read_arguments()
    console = Console(width=120)
    with ExitStack() as stack:
        directory = arguments.directory.absolute() / "postgres"
        cluster = postgres.find_running(directory)
        if cluster is None:
            cluster = postgres.start(directory, settings=SETTINGS)
            stack.callback(cluster.stop)
        sites = [
            make_site(cluster.url, events, max(events // 20, 400)) for events in (arguments.small, arguments.large)
        ]
        for site in sites:
            add_events(site.url)
        cold = [_start(site, arguments.directory, stack, megabytes=0) for site in sites]
        warm = _start(sites[0], arguments.directory, stack, megabytes=64)
        is_broken = _compare_months(console, cold, warm, arguments)
        return 1 if _time_feeds(console, cold[0], warm) | is_broken else 0


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", type=int, default=20_000)
    parser.add_argument("--large", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=30)
    parser.add_argument("--quick", action="store_true", help="2,000 against 40,000 events")
    parser.add_argument("--directory", type=Path, default=Path(".local/growth"))
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.small, arguments.large = 2_000, 40_000
    return arguments


def add_events(url: str) -> None:
    """Add the events of the month and of the feed, unless the site has them."""
    with psycopg.connect(url, autocommit=True, application_name=APPLICATION_NAME) as connection:
        for name, first, days, number in (("month", "2040-03-01", 31, 1000), ("feed", "2041-01-10", 300, 5000)):
            if not connection.execute("SELECT true FROM events WHERE slug = %s", [f"{name}-1"]).fetchone():
                connection.execute(_ADD_EVENTS, {"n": number, "name": name, "first": first, "days": days})
        connection.execute("ANALYZE events")


def _start(site: SizedSite, directory: Path, stack: ExitStack, *, megabytes: int) -> RunningServer:
    environment = {"KALENDS_POOL_SIZE": "2", "KALENDS_CACHE_MB": str(megabytes), "KALENDS_STATEMENT_TIMEOUT": "120"}
    server = Server.start(site.url, log=directory / f"calendar-{site.name}.log", environment=environment)
    return stack.enter_context(RunningServer(stack.enter_context(server), site))


def _compare_months(
    console: Console, cold: list[RunningServer], warm: RunningServer, arguments: argparse.Namespace
) -> bool:
    times: dict[str, list[float]] = {"warm": [], "cold": [], "cold, larger site": []}
    rows = [("warm", warm), ("cold", cold[0]), ("cold, larger site", cold[1])]
    for _, running in rows:
        running.measure([running.server.base_url + MONTH], 12)
    for _ in range(arguments.rounds):
        for name, running in rows:
            requests = arguments.requests * (10 if name == "warm" else 1)
            times[name].append(sum(running.measure([running.server.base_url + MONTH], requests)))
    ratio = median(b / a for a, b in zip(times["cold"], times["cold, larger site"], strict=True))
    table = Table(title="a month of 1,000 events: milliseconds of CPU")
    for heading in ("", "lowest", "median", "limit"):
        table.add_column(heading, justify="right")
    limits = {"warm": MAX_WARM_MONTH_MS, "cold": MAX_COLD_MONTH_MS, "cold, larger site": MAX_COLD_MONTH_MS}
    for name, values in times.items():
        table.add_row(name, f"{min(values):.2f}", f"{median(values):.2f}", f"{limits[name]:.0f}")
    table.add_row(f"{arguments.large:,} : {arguments.small:,} events", "", f"{ratio:.2f}", f"{MAX_RATIO}")
    console.print(table)
    return ratio > MAX_RATIO or any(median(values) > limits[name] for name, values in times.items())


def _time_feeds(console: Console, cold: RunningServer, warm: RunningServer) -> bool:
    table = Table(title="a feed of 5,000 events: milliseconds until it is there")
    for heading in ("", "lowest", "median", "limit"):
        table.add_column(heading, justify="right")
    medians: list[float] = []
    for name, running, limit in (("warm", warm, f"{MAX_WARM_FEED_MS:.0f}"), ("cold", cold, "")):
        url = running.server.base_url + FEED
        count = running.get(url).text.count("BEGIN:VEVENT")
        if count != 5000:
            raise AssertionError(f"{count} events in the feed")
        times: list[float] = []
        for _ in range(5):
            started = perf_counter()
            running.get(url)
            times.append(1000 * (perf_counter() - started))
        medians.append(median(times))
        table.add_row(name, f"{min(times):.0f}", f"{median(times):.0f}", limit)
    console.print(table)
    return medians[0] > MAX_WARM_FEED_MS


if __name__ == "__main__":
    sys.exit(main())
