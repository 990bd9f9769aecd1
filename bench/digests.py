"""The sender of digests: renderings, CPU per email, throughput with a slow server, and the gap before DATA.

The SMTP server is a separate process that accepts everything after a delay per email. The CPU of the SMTP client is
also measured alone, with ready bytes. Print the figures as JSON.
"""

import argparse
import asyncio
import json
import multiprocessing
import resource
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
from rich.console import Console

from bench.seeded_sites import SETTINGS, make_site
from kalends.adapters.smtp_client import SmtpSession
from kalends.core.times import local_of, utc_now
from kalends.follow.jobs import CONNECTIONS, DigestSender
from kalends.follow.mails.rendering_cache import Mailbox
from kalends.store.database import Database, Options
from tests.servers import find_free_port
from tools import postgres

SENDER = "calendar@calendar.test"
PEOPLE = """WITH p AS (INSERT INTO followers (site_id, id, email, key)
        SELECT 1, gen_random_uuid(), 'p' || n || '@example.org', uuid_send(gen_random_uuid())
        FROM generate_series(1, %(people)s) n RETURNING id, substring(email from '[0-9]+')::integer AS n)
    INSERT INTO follows (site_id, id, follower_id, query, weekday, hour, confirmed_at, next_at, created_at)
    SELECT 1, gen_random_uuid(), p.id,
        'geoloc_lat=48.20&geoloc_lng=16.30&geoloc_radius=' || 15000 + p.n %% %(lists)s,
        %(weekday)s, %(hour)s, now(), date_trunc('hour', now()), now() FROM p"""


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float) -> None:
    """Accept every email of a session."""
    writer.write(b"220 ready\r\n")
    is_content = False
    while line := await reader.readline():
        if is_content:
            is_content = line != b".\r\n"
            if is_content:
                continue
            await asyncio.sleep(delay)
        is_content = line.upper().startswith(b"DATA")
        writer.write(b"354 go on\r\n" if is_content else b"250 ok\r\n")
        if line.upper().startswith(b"QUIT"):
            break
    writer.close()


def serve(port: int, delay: float) -> None:
    async def run() -> None:
        server = await asyncio.start_server(lambda r, w: _answer(r, w, delay), "127.0.0.1", port, limit=2**20)
        await server.serve_forever()

    asyncio.run(run())


def read_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def read_database_cpu(directory: Path) -> float:
    """Return the CPU seconds of all processes of the cluster that still run."""
    postmaster = (directory / "postmaster.pid").read_text().split()[0]
    total = 0.0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[1] == postmaster or path.parent.name == postmaster:
            total += sum(map(int, fields[11:13])) / 100
    return total


async def send_ready(url: str, content: bytes, number: int) -> float:
    """Send the same bytes to many recipients with as many connections; return the CPU seconds."""
    before = read_cpu()

    async def work(lane: int) -> None:
        session = SmtpSession(url)
        for index in range(lane, number, CONNECTIONS):
            await session.begin(SENDER, f"p{index}@example.org")
            await session.send(content)
        await session.close()

    await asyncio.gather(*[work(lane) for lane in range(CONNECTIONS)])
    return read_cpu() - before


async def measure(url: str, smtp_url: str, directory: Path, alone: int) -> dict[str, Any]:
    database = await Database.open(Options(url=url, size=10))
    gaps: list[float] = []
    contents: list[bytes] = []

    class Session(SmtpSession):
        """Note how long after the check the content is sent, and one content."""

        async def send(self, content: bytes) -> None:
            started = time.perf_counter()
            contents[:] = [content]
            await SmtpSession.send(self, content)
            gaps.append(time.perf_counter() - started)

    mailbox = Mailbox("https://calendar.test", lambda site: SENDER)
    sender = DigestSender(database, smtp_url, mailbox, open_session=Session)
    cpu, database_cpu, started = read_cpu(), read_database_cpu(directory), time.perf_counter()
    total = 0
    while sent := (await sender.send_due())["sent"]:
        total += sent
    seconds, cpu, database_cpu = (
        time.perf_counter() - started,
        read_cpu() - cpu,
        read_database_cpu(directory) - database_cpu,
    )
    client = await send_ready(smtp_url, contents[0], alone)
    await database.close()
    return {
        "emails": total,
        "renderings": sender.cache.number,
        "bytes per email": len(contents[0]),
        "seconds": round(seconds, 1),
        "emails per second": round(total / seconds, 1),
        "ms of CPU per email": round(cpu / total * 1000, 2),
        "of these, the SMTP client": round(client / alone * 1000, 2),
        "ms of CPU in PostgreSQL per email": round(database_cpu / total * 1000, 2),
        "p99 of the step DATA in ms": round(statistics.quantiles(gaps, n=100)[98] * 1000, 1),
    }


def run(people: int, lists: int, events: int, delay: float) -> dict[str, Any]:
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kalends-digests-")))
        directory.chmod(0o755)
        cluster = postgres.start(directory / "postgres", settings=SETTINGS)
        stack.callback(cluster.stop)
        site = make_site(cluster, events)
        local = local_of(utc_now(), "UTC")
        with psycopg.connect(site.url, autocommit=True) as connection:
            connection.execute("UPDATE sites SET follow_by_email = true, timezone = 'UTC'")
            values = {"people": people, "lists": lists, "weekday": local.isoweekday(), "hour": local.hour}
            connection.execute(PEOPLE, values)
            connection.execute("VACUUM ANALYZE followers, follows")
        port = find_free_port()
        server = multiprocessing.Process(target=serve, args=(port, delay), daemon=True)
        server.start()
        stack.callback(server.terminate)
        time.sleep(1)
        return asyncio.run(measure(site.url, f"smtp://127.0.0.1:{port}", directory / "postgres", 2000))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=100_000)
    parser.add_argument("--lists", type=int, default=500)
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds that the SMTP server takes per email")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    people, lists = (4_000, 20) if options.quick else (options.people, options.lists)
    Console().print_json(json.dumps(run(people, lists, options.events, options.delay)))


if __name__ == "__main__":
    main()
