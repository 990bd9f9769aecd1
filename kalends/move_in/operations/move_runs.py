"""The steps of the move-in commands `plan`, `apply`, `verify` and `switch`, without their output."""

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from kalends.adapters.safe_fetch import Fetcher, resolve_host
from kalends.core.egress import AllowedNetwork, read_target
from kalends.core.errors import InvalidValue
from kalends.core.times import utc_now
from kalends.imports.storage import import_lists, import_tables
from kalends.imports.storage.import_tables import Columns
from kalends.media.adapters.library import Library
from kalends.move_in.operations import move_planning, verify
from kalends.move_in.operations.crawl import CRAWL_TIMEOUT, CrawlResult, crawl
from kalends.move_in.operations.move_apply import MoveInJob, Progress, apply_move
from kalends.move_in.operations.old_snapshot import Snapshot
from kalends.move_in.operations.verify import Difference, Verification
from kalends.move_in.rules.mapping import map_snapshot
from kalends.move_in.rules.old_records import MoveIn
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.site_database import SiteDatabase
from kalends.store.sql import Sql

# Options that the commands `plan`, `apply` and `switch` add to a run.
COMPUTED_OPTIONS: Final = ("keep_ids", "kinds", "site_before", "accepted_differences")
ACCEPTED_FIELDS: Final = ("kind", "identity", "field", "expected", "found")
CHECKLIST: Final = (
    "Point DNS or the proxy to this server, and set KALENDS_API_ALIASES=/wp-json/tribe/events/v1.",
    "Set the URL of the site: kalends site set base_url https://HOST",
    "Invite the people: kalends import tec invite",
    "Watch what is requested and not found for a week: kalends import tec missing LOGFILE",
    "Delete copies of the snapshot; it contains email addresses and event passwords.",
)
MAX_PATHS: Final = 100


@dataclass(frozen=True, slots=True)
class Session:
    """The target site of a move-in, and how to read the old site."""

    database: SiteDatabase
    library: Library
    site_id: int
    base_url: str
    progress: Progress
    allowed_networks: Sequence[AllowedNetwork] = ()
    login: str = ""
    password: str = ""
    rate: float | None = None

    def open(self, *, writing: bool = False) -> AbstractAsyncContextManager[Transaction]:
        return self.database.transaction(self.site_id, utc_now(), writing=writing)


@dataclass(frozen=True, slots=True)
class PlannedRun:
    run: Row
    rows: Sequence[Row]  # rows for missing or rejected records
    move_in: MoveIn


@dataclass(frozen=True, slots=True)
class AppliedRun:
    run_id: int
    counts: Mapping[str, int]
    refused: Sequence[Row]
    seconds: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a comparison. Unexplained differences are either accepted or remaining."""

    result: Verification
    remaining: Sequence[Difference]
    accepted: Sequence[Difference]
    report: Path


@dataclass(frozen=True, slots=True)
class ClosedMove:
    run_id: int
    accepted: int


Step = CrawlResult | PlannedRun | AppliedRun | Comparison | ClosedMove


async def plan_move(
    session: Session, url: str, options: Mapping[str, Any], *, full: bool = False, old_urls: Iterable[str] = ()
) -> AsyncIterator[Step]:
    """Read the old site into the snapshot if there is a login, and store the plan."""
    with Snapshot.open(Path(options["snapshot"])) as snapshot:
        if session.login or snapshot.read_fact("crawl") is None:
            yield await _read_old_site(session, snapshot, url, full=full, old_urls=old_urls)
        session.progress("plan", 0, 1)
        move_in = _map_move_in(snapshot, session.base_url, options)
        source_id = await _open_source(session, url)
        run_id = await move_planning.plan(
            session.database, session.site_id, source_id, move_in, snapshot, options=options,
            input_hash=_hash_input(snapshot),
        )  # fmt: skip
        session.progress("plan", 1, 1)
    yield PlannedRun(await _find_run(session, run_id), await _list_rows(session, run_id, "gone", "rejected"), move_in)


async def apply_run(
    session: Session, run_id: int, move_in: MoveIn | None = None, *, accept_deletions: bool = False
) -> AsyncIterator[Step]:
    run, started = await _find_run(session, run_id), time.monotonic()
    with _open_snapshot(run) as snapshot:
        job = _make_job(session, run, snapshot, move_in)
        counts = await apply_move(job, session.progress, accept_deletions=accept_deletions)
    rows = await _list_rows(session, run_id, "new", "changed", "gone")
    refused = [row for row in rows if row["state"] == "failed"]
    yield AppliedRun(run_id, counts, refused, time.monotonic() - started)


async def verify_run(
    session: Session, run_id: int, report: Path | None, *, live: bool = False
) -> AsyncIterator[Step]:
    """Compare the site with the snapshot and write the report. With `live`, read the old site again first."""
    run = await _find_run(session, run_id)
    with _open_snapshot(run) as snapshot:
        if live:
            yield await _read_old_site(session, snapshot, snapshot.read_fact("url"), full=True)
        yield await _compare(session, _make_job(session, run, snapshot, is_same=not live), report)


async def switch(
    session: Session, url: str, report: Path | None, accepted_report: str, *, full: bool, keep_snapshot: bool
) -> AsyncIterator[Step]:
    """Perform the last run, and close the source if no unaccepted differences remain."""
    source = await _find_open_source(session, url)
    options = await _read_last_options(session, source["id"])
    planned: PlannedRun | None = None
    async for step in plan_move(session, source["url"], options, full=full):
        planned = step if isinstance(step, PlannedRun) else planned
        yield step
    if planned is None:
        raise AssertionError("planning ended without a plan")
    run_id, move_in = planned.run["id"], planned.move_in
    async for step in apply_run(session, run_id, move_in):
        yield step
    run = await _find_run(session, run_id)
    with _open_snapshot(run) as snapshot:
        compared = await _compare(session, _make_job(session, run, snapshot, move_in), report, accepted_report)
    yield compared
    if compared.remaining:
        return
    await _close_source(session, run, compared.accepted)
    yield ClosedMove(run_id, len(compared.accepted))
    if not keep_snapshot:
        await asyncio.to_thread(Path(options["snapshot"]).unlink, missing_ok=True)


# The old site and its snapshot ----------------------------------------------------------------


async def _read_old_site(
    session: Session, snapshot: Snapshot, url: str, *, full: bool = False, old_urls: Iterable[str] = ()
) -> CrawlResult:
    networks = [*session.allowed_networks, *await _find_named_networks(url)]
    return await crawl(
        Fetcher(networks, seconds=CRAWL_TIMEOUT), url, session.login, session.password, snapshot, rate=session.rate,
        full=full, old_urls=old_urls, progress=lambda step: session.progress(step.step, step.done, step.total),
    )  # fmt: skip


async def _find_named_networks(url: str) -> list[AllowedNetwork]:
    """Return networks that contain the old site's IP addresses.

    They may be private, because the operator chose the site.
    """
    target = read_target(url)
    try:
        ips = [target.ip_literal] if target.ip_literal else await resolve_host(target.host, target.port)
    except OSError:
        return []  # The crawl reports the error.
    return [AllowedNetwork(ip_network(ip), target.port) for ip in ips]


def _open_snapshot(run: Row) -> Snapshot:
    path = Path(orjson.loads(run["options"]).get("snapshot", ""))
    if not path.is_file():
        raise InvalidValue("The snapshot {path} does not exist any more; run `plan` again.", path=str(path))
    return Snapshot.open(path)


def _map_move_in(snapshot: Snapshot, base_url: str, options: Mapping[str, Any]) -> MoveIn:
    if not snapshot.is_complete:
        raise InvalidValue(
            "The snapshot {path} is not complete, because the crawl was interrupted. Run `plan` again; it continues.",
            path=str(snapshot.path),
        )
    return map_snapshot(
        snapshot,
        base_url=base_url,
        keep_shortcodes=bool(options.get("keep_shortcodes")),
        without_trash=bool(options.get("without_trash")),
    )


def _hash_input(snapshot: Snapshot) -> bytes:
    facts = [snapshot.read_fact(name) for name in ("url", "crawl")]
    return hashlib.sha256(orjson.dumps(facts)).digest()


def _make_job(
    session: Session, run: Row, snapshot: Snapshot, move_in: MoveIn | None = None, *, is_same: bool = True
) -> MoveInJob:
    """Return a run's job. If `is_same`, the snapshot must be the one that the run was planned from."""
    if is_same and run["input_hash"] != _hash_input(snapshot):
        raise InvalidValue(
            "The snapshot is newer than run {number}; run `plan` again, with --snapshot to plan without a crawl.",
            number=run["id"],
        )
    mapped = move_in or _map_move_in(snapshot, session.base_url, orjson.loads(run["options"]))
    return MoveInJob(session.database, session.library, session.site_id, run["id"], mapped, snapshot)


async def _compare(session: Session, job: MoveInJob, report: Path | None, accepted_report: str = "") -> Comparison:
    lines = verify.read_accepted(accepted_report, job.move_in.site.url) if accepted_report else ()
    result = await verify.verify(job, session.progress)
    accepted = [entry for entry in result.unexplained if verify.write_row(entry) in lines]
    remaining = [entry for entry in result.unexplained if entry not in accepted]
    path = report or Path(f"move-in-{job.run_id}.md")
    await asyncio.to_thread(path.write_text, verify.write_report(result, job.move_in, job.run_id, accepted))
    return Comparison(result, remaining, accepted, path)


# Sources and runs ---------------------------------------------------------------------------------


async def _open_source(session: Session, url: str) -> int:
    """Return the source for a URL, adding it in the first run."""
    async with session.open(writing=True) as tx:
        await tx.lock_site(None)
        for row in await import_lists.list_sources(tx):
            if row["kind"] == "tec" and row["url"] == url:
                return int(row["id"])
        name = (urlsplit(url).hostname or url)[:200]
        values: Columns = {"kind": "tec", "name": name, "url": url, "authority": "source", "default_status": "draft"}
        return await import_tables.add_source(tx, values)


async def _find_open_source(session: Session, url: str) -> Row:
    """Return the open move-in. If there are several, `url` selects one."""
    async with session.open() as tx:
        rows = [
            row
            for row in await import_lists.list_sources(tx)
            if row["kind"] == "tec" and row["state"] != "closed" and (not url or row["url"] == url)
        ]
    if len(rows) != 1:
        raise InvalidValue("There is no move-in, or there are several; pass the URL of the old site.")
    return rows[0]


async def _find_run(session: Session, run_id: int) -> Row:
    async with session.open() as tx:
        run = await import_lists.find_run(tx, run_id)
    if run is None or run["source_kind"] != "tec":
        raise InvalidValue("There is no run {number} of a move-in.", number=run_id)
    return run


async def _read_last_options(session: Session, source_id: int) -> dict[str, Any]:
    """Return the last run's planning options, which also apply to the next run."""
    async with session.open() as tx:
        runs = await import_lists.list_runs(tx, source_id=source_id, limit=1)
    if not runs:
        raise InvalidValue("Nothing was planned yet; run `plan` first.")
    options: dict[str, Any] = orjson.loads(runs[0]["options"])
    return {name: value for name, value in options.items() if name not in COMPUTED_OPTIONS}


async def _list_rows(session: Session, run_id: int, *actions: str) -> list[Row]:
    rows: list[Row] = []
    async with session.open() as tx:
        while page := await import_lists.list_rows(
            tx, run_id, actions=actions, after=rows[-1]["number"] if rows else 0
        ):
            rows += page
    return rows


async def _close_source(session: Session, run: Row, accepted: Sequence[Difference]) -> None:
    """Close a run's source, so no later run can change UIDs. Store the accepted differences in the run."""
    entries = [{name: getattr(entry, name) for name in ACCEPTED_FIELDS} for entry in accepted]
    async with session.open(writing=True) as tx:
        await tx.lock_site(None)
        if entries:
            options = {**orjson.loads(run["options"]), "accepted_differences": entries}
            await import_tables.change_run(tx, run["id"], {"options": import_tables.encode(options)})
        await import_tables.change_source(tx, run["source_id"], {"state": "closed"})


# After the move -----------------------------------------------------------------------------------


async def list_uninvited(tx: Transaction) -> list[tuple[int, str, str]]:
    """Return the ID, login and email address of each imported account that cannot sign in yet."""
    query = """
        SELECT DISTINCT u.id, u.login, u.email FROM users u
        JOIN import_items i ON i.site_id = u.site_id AND i.kind = 'users' AND i.record_id = u.id
            AND i.fingerprint = 'created'
        WHERE u.site_id = ? AND u.disabled_at IS NULL AND coalesce(u.password_hash, '') = ''
            AND u.last_signed_in_at IS NULL
        ORDER BY u.id
    """
    rows = await tx.fetch_all(Sql(query, tx.site.id))
    return [(row["id"], row["login"], row["email"]) for row in rows]


def count_missing(lines: Iterable[str]) -> list[tuple[int, str]]:
    """Return the counts and paths of 404 responses in access log lines, most frequent first."""
    counts = Counter(filter(None, map(_read_missing, lines)))
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return [(number, path) for path, number in ordered[:MAX_PATHS]]


def _read_missing(line: str) -> str:
    """Return the requested path if the log line reports a 404, otherwise "". The line may have a prefix."""
    try:
        fields = orjson.loads(line[line.index("{") :])
    except ValueError:
        return ""
    is_missing = isinstance(fields, dict) and fields.get("event") == "request" and fields.get("status") == 404
    return str(fields.get("path") or "") if is_missing else ""
