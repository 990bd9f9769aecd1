"""The source of a move-in, its snapshot and its runs, as commands use them."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from kalends.core.clock import utc_now
from kalends.core.errors import InvalidValue
from kalends.core.tec.mapping import map_snapshot
from kalends.core.tec.move_in import MoveIn
from kalends.operations.media.library import Library
from kalends.operations.move_in.apply import MoveInJob
from kalends.operations.move_in.snapshot import Snapshot
from kalends.store import Row, imports
from kalends.store.database import Transaction
from kalends.store.imports import Columns
from kalends.store.site_database import SiteDatabase

# The options that plan, apply and switch add to those of their run.
COMPUTED_OPTIONS: Final = ("keep_ids", "kinds", "site_before", "accepted_differences")


@dataclass(frozen=True, slots=True)
class Target:
    """The site into which another one moves."""

    site_id: int
    base_url: str


async def find_target(database: SiteDatabase, site: str | int) -> Target:
    async with database.transaction(site, utc_now(), writing=False) as tx:
        return Target(tx.site.id, tx.site.base_url)


async def open_source(database: SiteDatabase, site_id: int, url: str) -> int:
    """Return the source of an address; add it in the first run."""
    async with database.transaction(site_id, utc_now(), writing=True) as tx:
        await tx.lock_site(None)
        known = await _find_source(tx, url)
        if known is not None:
            return int(known["id"])
        host = urlsplit(url).hostname or url
        values: Columns = {
            "kind": "tec",
            "name": host[:200],
            "url": url,
            "authority": "source",
            "default_status": "draft",
        }
        return await imports.add_source(tx, values)


async def _find_source(tx: Transaction, url: str) -> Row | None:
    return next((row for row in await imports.list_sources(tx) if row["kind"] == "tec" and row["url"] == url), None)


async def find_open_source(database: SiteDatabase, site_id: int, url: str) -> Row:
    """Return the move-in that is not over; the one from `url` if there are several."""
    async with database.transaction(site_id, utc_now(), writing=False) as tx:
        rows = [row for row in await imports.list_sources(tx) if row["kind"] == "tec" and row["state"] != "closed"]
    rows = [row for row in rows if not url or row["url"] == url]
    if len(rows) != 1:
        raise InvalidValue("There is no move-in, or there are several; pass the URL of the old site.")
    return rows[0]


def map_move_in(snapshot: Snapshot, base_url: str, options: Mapping[str, Any]) -> MoveIn:
    """Return what the site of a snapshot becomes here."""
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


def hash_input(snapshot: Snapshot) -> bytes:
    """Return a hash that names the crawl of a snapshot."""
    facts = [snapshot.read_fact(name) for name in ("url", "crawl")]
    return hashlib.sha256(orjson.dumps(facts)).digest()


async def find_run(database: SiteDatabase, site_id: int, run_id: int) -> Row:
    """Return a run of a move-in."""
    async with database.transaction(site_id, utc_now(), writing=False) as tx:
        run = await imports.find_run(tx, run_id)
        source = await imports.find_source(tx, run["source_id"]) if run else None
    if run is None or source is None or source["kind"] != "tec":
        raise InvalidValue("There is no run {number} of a move-in.", number=run_id)
    return run


async def find_last_run(database: SiteDatabase, site_id: int, source_id: int) -> Row:
    async with database.transaction(site_id, utc_now(), writing=False) as tx:
        runs = await imports.list_runs(tx, source_id, 1)
    if not runs:
        raise InvalidValue("Nothing was planned yet; run `plan` first.")
    return runs[0]


def read_options(run: Row) -> dict[str, Any]:
    """Return the options with which a run was planned, for the next one."""
    options: dict[str, Any] = orjson.loads(run["options"])
    return {name: value for name, value in options.items() if name not in COMPUTED_OPTIONS}


def open_snapshot(run: Row) -> Snapshot:
    """Open the snapshot that a run was planned from."""
    path = Path(orjson.loads(run["options"]).get("snapshot", ""))
    if not path.is_file():
        raise InvalidValue("The snapshot {path} does not exist any more; run `plan` again.", path=str(path))
    return Snapshot.open(path)


def make_job(
    database: SiteDatabase,
    library: Library,
    target: Target,
    run: Row,
    snapshot: Snapshot,
    *,
    move_in: MoveIn | None = None,
    is_same: bool = True,
) -> MoveInJob:
    """Return the job of a run. `is_same`: its snapshot must be the one that was planned, which `move_in` may be."""
    if is_same and run["input_hash"] != hash_input(snapshot):
        raise InvalidValue(
            "The snapshot is newer than run {number}; run `plan` again, with --snapshot to plan without a crawl.",
            number=run["id"],
        )
    mapped = move_in or map_move_in(snapshot, target.base_url, orjson.loads(run["options"]))
    return MoveInJob(database, library, target.site_id, run["id"], mapped, snapshot)


async def read_rows(database: SiteDatabase, site_id: int, run_id: int, actions: tuple[str, ...]) -> list[Row]:
    """Return all rows of these actions."""
    rows: list[Row] = []
    async with database.transaction(site_id, utc_now(), writing=False) as tx:
        while page := await imports.list_rows(tx, run_id, actions=actions, after=rows[-1]["number"] if rows else 0):
            rows += page
    return rows
