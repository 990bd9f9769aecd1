"""Applying the plan of a move-in, in transactions that hold the lock of the site for a tenth of a second.

A run that was interrupted, even by a power failure, continues with the rows that are still pending.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from kalends.core.clock import utc_now
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.imports.records import ImportedRecord
from kalends.core.messages import Message
from kalends.core.tec.exchanges import Exchanges
from kalends.core.tec.move_in import MoveIn, SiteFacts
from kalends.kinds import BY_NAME
from kalends.kinds.kind import Actor
from kalends.operations import sites
from kalends.operations.context import OperationContext
from kalends.operations.imports.writing import fetch_row, save_item, write_imported
from kalends.operations.media.library import Library, StoredImage
from kalends.operations.move_in.media import fetch_image, store_file, write_image
from kalends.operations.move_in.normal_form import complete, find_references, read_file
from kalends.operations.move_in.planning import require_source
from kalends.operations.move_in.users import write_user
from kalends.operations.writes import change_record
from kalends.store import Row, former_addresses, imports, slug_redirects, users
from kalends.store.database import Transaction
from kalends.store.site_database import SiteDatabase
from kalends.store.sql import Sql

MAX_SECONDS: Final = 0.08
MAX_ROWS: Final = 25
# IDs of new records begin at the next thousand behind those of the old site.
ID_STEP: Final = 1000
SETTINGS: Final = ("name", "timezone", "language", "currency_symbol", "currency_code", "currency_position")

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class MoveInJob:
    """Everything that a run needs to be applied."""

    database: SiteDatabase
    library: Library
    site_id: int
    run_id: int
    move_in: MoveIn
    exchanges: Exchanges


async def apply(job: MoveInJob, progress: Progress, *, accept_deletions: bool = False) -> dict[str, int]:
    """Apply a plan and return the number of rows by action and by result."""
    source, total = await _begin(job, accept_deletions=accept_deletions)
    done = 0
    while True:
        row = await _find_next(job)
        if row is None:
            break
        image = await _store_image(job, row) if row["kind"] == "media" and row["imported"] else None
        done += await _apply_batch(job, source, image)
        progress("records", min(done, total), total)
    return await _finish(job, source)


# Begin and end ----------------------------------------------------------------------------------


async def _begin(job: MoveInJob, *, accept_deletions: bool) -> tuple[Row, int]:
    async with job.database.transaction(job.site_id, utc_now(), writing=True) as tx:
        await tx.lock_site(None)
        run = await imports.find_run(tx, job.run_id)
        if run is None or run["undoes"] is not None:
            raise InvalidValue("There is no run {number} of a move-in.", number=job.run_id)
        source = await require_source(tx, run["source_id"])
        if run["state"] not in ("planned", "applying", "applied", "unchanged"):
            raise InvalidValue("Run {number} is {state}; plan again.", number=job.run_id, state=run["state"])
        options = orjson.loads(run["options"])
        if "site_before" not in options:
            options["site_before"] = await _read_site(tx, source, job.move_in)
            await imports.change_run(tx, job.run_id, {"options": imports.encode(options)})
        await write_settings(tx, source, job.move_in.site, map_ids=not options["keep_ids"])
        await keep_identity(tx, job.move_in.site, keep_ids=options["keep_ids"])
        if accept_deletions:
            await imports.accept_waiting(tx, job.run_id, "gone")
        total = (await imports.count_rows_by_state(tx, job.run_id)).get("pending", 0)
        if total:
            await imports.change_run(tx, job.run_id, {"state": "applying"})
        return source, total


async def _read_site(tx: Transaction, source: Row, move_in: MoveIn) -> dict[str, Any]:
    """Return what the run is about to change besides records, so that it can be undone."""
    current, prefixes = await sites.read_settings(tx), await former_addresses.list_prefixes(tx)
    wanted = read_settings(move_in.site)
    return {
        "settings": {name: {"before": current[name], "after": value} for name, value in wanted.items()},
        "known_settings": orjson.loads(source["facts"]).get("settings", {}),
        "former_host": tx.site.former_host,
        "former_last_id": tx.site.former_last_id,
        "prefixes": [entry.old for entry in move_in.prefixes if entry.old not in prefixes],
    }


async def write_settings(tx: Transaction, source: Row, site: SiteFacts, *, map_ids: bool) -> None:
    """Write the settings that have changed on the old site since the last run, and remember them."""
    facts: dict[str, Any] = orjson.loads(source["facts"])
    wanted = read_settings(site)
    known: Mapping[str, str] = facts.get("settings", {})
    changed = {name: value for name, value in wanted.items() if known.get(name) != value}
    current = await sites.read_settings(tx)
    different = {name: value for name, value in changed.items() if current[name] != value}
    if different:
        await sites.set_several(tx, different)
    if changed:
        facts = {**facts, "settings": wanted, "host": site.host, "map_ids": map_ids}
        await imports.change_source(tx, source["id"], {"facts": imports.encode(facts)})


def read_settings(site: SiteFacts) -> dict[str, str]:
    """Return the settings of the old site as `kalends site set` accepts them, without unknown and invalid ones."""
    values = {name: str(getattr(site, name)) for name in SETTINGS}
    values["first_weekday"] = sites.WEEKDAYS[site.first_weekday - 1]
    values["per_page"] = str(min(site.per_page, 50)) if site.per_page else ""
    given = {name: value for name, value in values.items() if value}
    problems = sites.find_problems(given)
    return {name: value for name, value in given.items() if name not in problems}


async def keep_identity(tx: Transaction, site: SiteFacts, *, keep_ids: bool) -> None:
    """Raise the counters of IDs above those of the old site, and remember its host."""
    if not keep_ids:
        return
    last_id = _round_up(site.highest_post_id)
    tx.changes.last_post_id = max(tx.changes.last_post_id, last_id)
    tx.changes.last_term_id = max(tx.changes.last_term_id, _round_up(site.highest_term_id))
    await tx.execute(
        Sql(
            "UPDATE sites SET former_host = ?, former_last_id = greatest(former_last_id, ?), "
            "last_post_id = ?, last_term_id = ?, last_user_id = greatest(last_user_id, ?) WHERE id = ?",
            site.host,
            last_id,
            tx.changes.last_post_id,
            tx.changes.last_term_id,
            site.highest_user_id,
            tx.site.id,
        )
    )


def _round_up(number: int) -> int:
    return -(-number // ID_STEP) * ID_STEP


async def _finish(job: MoveInJob, source: Row) -> dict[str, int]:
    async with job.database.transaction(job.site_id, utc_now(), writing=True) as tx:
        await tx.lock_site(None)
        await save_addresses(tx, source, job.move_in)
        run = await imports.find_run(tx, job.run_id)
        counts = {**(orjson.loads(run["counts"]) if run else {}), **await imports.count_rows_by_state(tx, job.run_id)}
        revisions = await imports.find_revisions(tx, job.run_id)
        state = "applied" if counts.get("applied") else "unchanged"
        await imports.change_run(
            tx, job.run_id, {"state": state, "finished_at": tx.now, "counts": imports.encode(counts), **revisions}
        )
        owner_id = source["owner_id"] or await users.find_first_administrator(tx)
        await imports.change_source(
            tx, source["id"], {"last_success_at": tx.now, "failures": 0, "owner_id": owner_id}
        )
    return counts


async def save_addresses(tx: Transaction, source: Row, move_in: MoveIn) -> None:
    """Store former slugs, paths of image files and beginnings of paths, as far as they are new."""
    for kind in BY_NAME.values():
        slugs = {entry.slug: entry.identity for entry in move_in.redirects if entry.kind == kind.name}
        if slugs:
            ids = await imports.find_record_ids(tx, source["id"], kind.name, set(slugs.values()))
            known = {slug: ids[identity] for slug, identity in slugs.items() if identity in ids}
            await slug_redirects.add_redirects(tx, kind.name, known)
    media_ids = await imports.find_record_ids(
        tx, source["id"], "media", {file.identity for file in move_in.legacy_files}
    )
    files = [
        {"path": file.path, "media_id": media_ids[file.identity], "width": file.width}
        for file in move_in.legacy_files
        if file.identity in media_ids
    ]
    await former_addresses.save_files(tx, files)
    await former_addresses.save_prefixes(tx, {entry.old: entry.new for entry in move_in.prefixes})


# Rows -------------------------------------------------------------------------------------------


async def _find_next(job: MoveInJob) -> Row | None:
    async with job.database.transaction(job.site_id, utc_now(), writing=False) as tx:
        rows = await imports.list_pending_rows(tx, job.run_id, 1)
    return rows[0] if rows else None


async def _store_image(job: MoveInJob, row: Row) -> StoredImage | Message:
    """Store the file of an image outside of the transaction; return the reason if it is not acceptable."""
    content = read_file(job.move_in, job.exchanges, row["identity"])
    try:
        return await store_file(job.library, job.site_id, job.move_in.image_urls.get(row["identity"], ""), content)
    except InvalidValue as error:
        return error.message


async def _apply_batch(job: MoveInJob, source: Row, image: StoredImage | Message | None) -> int:
    """Apply rows until the time is over; return their number. An image, whose file is stored, is applied alone."""
    number = 0
    async with job.database.transaction(job.site_id, utc_now(), writing=True) as tx:
        context = await _make_context(job, tx)
        rows = await imports.list_pending_rows(tx, job.run_id, 1 if image else MAX_ROWS)
        await tx.lock_site(None)
        started = time.monotonic()
        for row in rows:
            # The next row will take about as long as the ones before.
            is_late = number > 0 and (time.monotonic() - started) / number * (number + 1) > MAX_SECONDS
            if is_late or (row["kind"] == "media" and row["imported"] and image is None):
                break
            await _apply_row(context, source, row, image)
            number += 1
    return number


async def _make_context(job: MoveInJob, tx: Transaction) -> OperationContext:
    """Return the context of an administrator; the author of a record is that of the old site."""
    user_id = await users.find_first_administrator(tx)
    return OperationContext(
        transaction=tx,
        actor=Actor(user_id or 0, "administrator"),
        base_url=tx.site.base_url,
        api_url="",
        library=job.library,
    )


async def _apply_row(context: OperationContext, source: Row, row: Row, image: StoredImage | Message | None) -> None:
    """Apply one row; a record that is refused is marked, and the others go on."""
    tx = context.transaction
    before = tx.changes.revision
    try:
        async with tx.savepoint():
            record_id, warnings = await _write(context, source, row, image)
    except ApiError as error:
        await _mark(tx, row, {"state": "failed"}, [error.message])
        return
    revisions = {"first_revision": before + 1, "revision": tx.changes.revision}
    written = revisions if tx.changes.revision > before else {}
    await _mark(tx, row, {"state": "applied", "record_id": record_id, **written}, warnings)


async def _mark(
    tx: Transaction, row: Row, values: Mapping[Any, object], messages: tuple[Message, ...] | list[Message]
) -> None:
    reasons = [*orjson.loads(row["reasons"]), *[imports.encode_message(message) for message in messages]]
    columns = {**values, "reasons": imports.encode(reasons)} if messages else dict(values)
    await imports.change_row(tx, row["run_id"], row["number"], columns)


async def _write(
    context: OperationContext, source: Row, row: Row, image: StoredImage | Message | None
) -> tuple[int, tuple[Message, ...]]:
    tx = context.transaction
    if row["action"] == "gone":
        return await _trash(context, source, row), ()
    imported = imports.decode_imported(row)
    item = await imports.find_item(tx, source["id"], imported.kind, imported.identity)
    if imported.kind == "users":
        try:
            return await write_user(tx, source, imported, item), ()
        except InvalidValue as error:
            raise ApiError(400, "rest_invalid_user", error.message) from error
    if imported.kind == "media":
        return await _write_media(context, source, imported, item, image), ()
    return await _write_record(context, source, row, imported, item)


async def _write_media(
    context: OperationContext,
    source: Row,
    imported: ImportedRecord,
    item: Row | None,
    image: StoredImage | Message | None,
) -> int:
    if not isinstance(image, StoredImage):
        raise ApiError(400, "rest_invalid_image", image or Message("The file of the image is missing."))
    tx = context.transaction
    authors = await imports.find_record_ids(tx, source["id"], "users", imported.links.get("author", ()))
    row = await fetch_image(tx, item["record_id"]) if item else None
    return await write_image(context, source, imported, image, author_ids=authors, row=row)


async def _write_record(
    context: OperationContext, source: Row, row: Row, imported: ImportedRecord, item: Row | None
) -> tuple[int, tuple[Message, ...]]:
    tx, kind = context.transaction, BY_NAME[imported.kind]
    current = await fetch_row(tx, kind, item["record_id"]) if item else None
    references = await imports.find_record_ids(tx, source["id"], "media", find_references(imported))
    prepared = complete(imported, current, references, tx.now)
    fields = None if current is None else TRASH_FIELDS | {MODIFIED, *orjson.loads(row["changes"])}
    written = await write_imported(context, source, prepared, current, fields=fields)
    if prepared != imported:
        await save_item(tx, source, imported, written.record_id, written=fields and fields - TRASH_FIELDS)
    return written.record_id, written.warnings


TRASH_FIELDS: Final = frozenset({"columns.trashed_status", "columns.trashed_at"})
# The time of change on the old site is kept, also if a field changed without it: this write would replace it.
MODIFIED: Final = "columns.modified_utc"


async def _trash(context: OperationContext, source: Row, row: Row) -> int:
    """Move a record to the trash that is gone on the old site."""
    tx, kind = context.transaction, BY_NAME[row["kind"]]
    current = await fetch_row(tx, kind, row["record_id"])
    if current is not None and current["status"] != "trash":
        await change_record(kind, context, current, {"status": "trash"})
    await imports.remove_item(tx, source["id"], row["kind"], row["identity"], "")
    return int(row["record_id"])
