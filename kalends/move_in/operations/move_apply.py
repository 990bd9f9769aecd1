"""Applies a move-in plan to records, settings, ID counters and addresses."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import orjson

from kalends.accounts.storage import user_tables
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds import BY_NAME
from kalends.calendar.operations import site_options
from kalends.calendar.storage import record_tables
from kalends.core.errors import InvalidValue
from kalends.core.times import utc_now
from kalends.imports.operations.apply import Images, ImportRun, apply_rows
from kalends.imports.operations.row_writing import Applied
from kalends.imports.operations.sources import make_administrator_context
from kalends.imports.storage import import_tables
from kalends.media.adapters.library import FetchResult, Library
from kalends.move_in.operations.move_planning import require_source
from kalends.move_in.operations.move_records import write_old_record
from kalends.move_in.operations.old_snapshot import read_file
from kalends.move_in.rules.exchanges import Exchanges
from kalends.move_in.rules.old_records import MoveIn, SiteFacts
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.site_database import SiteDatabase
from kalends.store.sql import Sql

# New record IDs start at the next thousand above the old site's IDs.
ID_STEP: Final = 1000
SETTINGS: Final = ("name", "timezone", "language", "currency_symbol", "currency_code", "currency_position")

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class MoveInJob:
    """Writes the planned rows of a move-in run."""

    database: SiteDatabase
    library: Library
    site_id: int
    run_id: int
    move_in: MoveIn
    exchanges: Exchanges

    async def fetch_images(self, run: ImportRun, rows: Sequence[Row]) -> Images:
        media = [row["identity"] for row in rows if row["kind"] == "media" and row["imported"]]
        return {self._url(identity): await self._store_image(run.site_id, identity) for identity in media}

    async def begin(self, tx: Transaction, run: Row, source: Row) -> OperationContext:
        """Lock the site and return an administrator's context. Records keep their authors from the old site."""
        context = await make_administrator_context(tx, self.library)
        await tx.lock_site(None)
        return context

    async def write(self, context: OperationContext, source: Row, row: Row) -> Applied:
        return await write_old_record(context, source, row, context.fetched_images.get(self._url(row["identity"])))

    def _url(self, identity: str) -> str:
        return self.move_in.image_urls.get(identity, "")

    async def _store_image(self, site_id: int, identity: str) -> FetchResult | InvalidValue:
        """Store an image's file, or return the reason for rejecting the image."""
        content, name = read_file(self.move_in, self.exchanges, identity), unquote(urlsplit(self._url(identity)).path)
        if len(content) > self.library.max_bytes:
            return InvalidValue("exceeds {limit} bytes.", limit=self.library.max_bytes)
        async with self.library.open_work_directory() as directory:
            path = directory / "file"
            await asyncio.to_thread(path.write_bytes, content)
            try:
                return FetchResult(await self.library.store_image(site_id, path, title=Path(name).name), "", "")
            except InvalidValue as error:
                return error


async def apply_move(job: MoveInJob, progress: Progress, *, accept_deletions: bool = False) -> dict[str, int]:
    """Apply a plan and return the number of rows by action and result."""
    source = await _begin(job, accept_deletions=accept_deletions)
    run = ImportRun(job.database, job.site_id, job.run_id)
    await apply_rows(run, job, lambda done, known: progress("records", done, known))
    return await _finish(job, source)


async def _begin(job: MoveInJob, *, accept_deletions: bool) -> Row:
    async with job.database.transaction(job.site_id, utc_now(), writing=True) as tx:
        await tx.lock_site(None)
        run = await import_tables.find_run(tx, job.run_id)
        if run is None or run["undoes"] is not None:
            raise InvalidValue("There is no run {number} of a move-in.", number=job.run_id)
        source = await require_source(tx, run["source_id"])
        if run["state"] not in ("planned", "applying", "applied", "unchanged"):
            raise InvalidValue("Run {number} is {state}; plan again.", number=job.run_id, state=run["state"])
        options = orjson.loads(run["options"])
        if "site_before" not in options:
            options["site_before"] = await _read_site(tx, source, job.move_in)
            await import_tables.change_run(tx, job.run_id, {"options": import_tables.encode(options)})
        await write_settings(tx, source, job.move_in.site, map_ids=not options["keep_ids"])
        await keep_identity(tx, job.move_in.site, keep_ids=options["keep_ids"])
        if accept_deletions:
            await import_tables.accept_waiting(tx, job.run_id, "gone")
        if await import_tables.count_next_rows(tx, job.run_id):
            await import_tables.change_run(tx, job.run_id, {"state": "applying"})
        return source


async def _finish(job: MoveInJob, source: Row) -> dict[str, int]:
    async with job.database.transaction(job.site_id, utc_now(), writing=True) as tx:
        await tx.lock_site(None)
        await save_addresses(tx, source, job.move_in)
        run = await import_tables.find_run(tx, job.run_id)
        counts = {**(orjson.loads(run["counts"]) if run else {}), **await import_tables.count_states(tx, job.run_id)}
        state = "applied" if counts.get("applied") else "unchanged"
        await import_tables.change_run(
            tx, job.run_id, {"state": state, "finished_at": tx.now, "counts": import_tables.encode(counts)}
        )
        owner_id = source["owner_id"] or await user_tables.find_first_administrator(tx)
        await import_tables.change_source(
            tx, source["id"], {"last_success_at": tx.now, "failures": 0, "owner_id": owner_id}
        )
    return counts


async def save_addresses(tx: Transaction, source: Row, move_in: MoveIn) -> None:
    """Store newly found former slugs, image file paths and path prefixes."""
    for kind in BY_NAME.values():
        slugs = {entry.slug: entry.identity for entry in move_in.redirects if entry.kind == kind.name}
        if slugs:
            ids = await import_tables.find_record_ids(tx, source["id"], kind.name, set(slugs.values()))
            known = {slug: ids[identity] for slug, identity in slugs.items() if identity in ids}
            await record_tables.add_redirects(tx, kind.name, known)
    media_ids = await import_tables.find_record_ids(
        tx, source["id"], "media", {file.identity for file in move_in.legacy_files}
    )
    files = [
        {"path": file.path, "media_id": media_ids[file.identity], "width": file.width}
        for file in move_in.legacy_files
        if file.identity in media_ids
    ]
    await record_tables.save_files(tx, files)
    await record_tables.save_prefixes(tx, {entry.old: entry.new for entry in move_in.prefixes})


# Settings and IDs -----------------------------------------------------------------------------


async def _read_site(tx: Transaction, source: Row, move_in: MoveIn) -> dict[str, Any]:
    """Return the state of everything that the run will change besides records, to allow undoing the run."""
    current, prefixes = await site_options.read_settings(tx), await record_tables.list_prefixes(tx)
    wanted = read_settings(move_in.site)
    return {
        "settings": {name: {"before": current[name], "after": value} for name, value in wanted.items()},
        "known_settings": orjson.loads(source["facts"]).get("settings", {}),
        "former_host": tx.site.former_host,
        "former_last_id": tx.site.former_last_id,
        "prefixes": [entry.old for entry in move_in.prefixes if entry.old not in prefixes],
    }


async def write_settings(tx: Transaction, source: Row, site: SiteFacts, *, map_ids: bool) -> None:
    """Apply settings that changed on the old site since the last run, and store them for the next run."""
    facts: dict[str, Any] = orjson.loads(source["facts"])
    wanted = read_settings(site)
    known: Mapping[str, str] = facts.get("settings", {})
    changed = {name: value for name, value in wanted.items() if known.get(name) != value}
    current = await site_options.read_settings(tx)
    different = {name: value for name, value in changed.items() if current[name] != value}
    if different:
        await site_options.set_several(tx, different)
    if changed:
        facts = {**facts, "settings": wanted, "host": site.host, "map_ids": map_ids}
        await import_tables.change_source(tx, source["id"], {"facts": import_tables.encode(facts)})


def read_settings(site: SiteFacts) -> dict[str, str]:
    """Return the old site's settings in the format of `kalends site set`, without unknown or invalid settings."""
    values = {name: str(getattr(site, name)) for name in SETTINGS}
    values["first_weekday"] = site_options.WEEKDAYS[site.first_weekday - 1]
    values["per_page"] = str(min(site.per_page, 50)) if site.per_page else ""
    given = {name: value for name, value in values.items() if value}
    problems = site_options.find_problems(given)
    return {name: value for name, value in given.items() if name not in problems}


async def keep_identity(tx: Transaction, site: SiteFacts, *, keep_ids: bool) -> None:
    """Raise the counters above the old site's IDs, and store its host."""
    if not keep_ids:
        return
    changes, last_id = tx.changes, _round_up(site.highest_post_id)
    changes.last_post_id = max(changes.last_post_id, last_id)
    changes.last_term_id = max(changes.last_term_id, _round_up(site.highest_term_id))
    statement = (
        "UPDATE sites SET former_host = ?, former_last_id = greatest(former_last_id, ?), "
        "last_post_id = ?, last_term_id = ?, last_user_id = greatest(last_user_id, ?) WHERE id = ?"
    )
    values = (site.host, last_id, changes.last_post_id, changes.last_term_id, site.highest_user_id, tx.site.id)
    await tx.execute(Sql(statement, *values))


def _round_up(number: int) -> int:
    return -(-number // ID_STEP) * ID_STEP
