"""Applies one plan row and decides on its fields again, because the record may have changed since it was planned."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time
from typing import Any, Final, LiteralString

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds import BY_NAME, LOGGED_KINDS
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import Kind, Links, Values, link_columns
from kalends.calendar.kinds.media_kind import MEDIA
from kalends.calendar.kinds.series_kind import CONTENT_DEFAULTS, LINK_COLUMNS, SERIES, decode_content, span_columns
from kalends.calendar.operations import writes
from kalends.calendar.operations.duplicates import remember_different
from kalends.calendar.operations.event_links import find_identical, resolve_links
from kalends.calendar.storage import record_tables
from kalends.core.messages import Message
from kalends.core.params import MAX_ID, NOT_NULLABLE, read_params
from kalends.core.sanitize import fold
from kalends.core.slugs import make_slug
from kalends.imports.operations import import_rows
from kalends.imports.operations.import_rows import FieldChange
from kalends.imports.rules import import_records
from kalends.imports.rules.import_records import ImportedRecord
from kalends.imports.storage import import_tables
from kalends.imports.storage.import_tables import decode_imported
from kalends.media.images import resolve_image_url
from kalends.series.consequences import fetch_series
from kalends.series.operations import series_matching
from kalends.series.operations.series_create import add_series, explain_dates, read_dates, read_part
from kalends.series.operations.series_edit import ALL, Edit, Target, compute_until, trash_dates, write_edit
from kalends.series.operations.series_matching import Match, Occurrences
from kalends.series.operations.series_requests import make_event_row, read_content
from kalends.series.operations.series_undo import restore_series
from kalends.series.rules import series_slots
from kalends.series.rules.series_slots import Date, Definition
from kalends.series.storage import decode_definition
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sql import Sql, join

# Columns that an import sets to exact values, besides `password_hash`.
TIME_COLUMNS: Final[tuple[LiteralString, ...]] = ("published_at", "modified_utc", "trashed_at")
TEXT_COLUMNS: Final[tuple[LiteralString, ...]] = ("slug", "uid", "feed_guid", "status", "trashed_status")


@dataclass(frozen=True, slots=True)
class Applied:
    record_id: int | None
    warnings: tuple[Message, ...] = ()
    changes: Mapping[str, FieldChange] | None = None  # new decisions, if the record has changed since it was planned
    is_done: bool = True  # False if the row needs another step


async def apply_row(context: OperationContext, source: Row, row: Row) -> Applied:
    """Apply a row. Raise ApiError on failure."""
    if row["action"] == "gone":
        await trash_record(context, BY_NAME[row["kind"]], row["record_id"])
        return Applied(row["record_id"])
    if row["imported"] is None:
        return await _revert_date(context, source, row)
    imported, warnings = _without_failed_image(context, decode_imported(row))
    if row["action"] == "moved":
        former = import_tables.decode(row["changes"])["identity"]["before"]
        key = row["kind"], former, row["recurrence_id"]
        await import_tables.rename_item(context.transaction, source["id"], key, row["identity"])
    # If a new image cannot be fetched now, keep the previous image.
    skipped = {"image"} if warnings else set[str]()
    applied = await _write_row(context, source, row, imported, skipped)
    if applied.record_id is not None and imported.kind == "events":
        for event_id in row["different_from"]:
            await remember_different(context.transaction, applied.record_id, event_id)
    return replace(applied, warnings=(*warnings, *applied.warnings))


async def _write_row(
    context: OperationContext, source: Row, row: Row, imported: ImportedRecord, skipped: set[str]
) -> Applied:
    tx, kind = context.transaction, BY_NAME[imported.kind]
    item = await import_tables.find_item(tx, source["id"], imported.key)
    record_id = item["record_id"] if item is not None else row["record_id"]
    record = await kind.fetch(tx, record_id) if record_id is not None else None
    if record is None:
        return await write_imported(context, source, imported, None)
    if imported.is_linked and item is None:
        # Use the existing record as it is.
        await save_item(tx, source, imported, record["id"], written=())
        return Applied(record["id"])
    if record.get("status") == "trash":
        if item is None or item["absences"] < import_rows.MIN_ABSENCES:
            await save_item(tx, source, imported, record["id"], written=())
            return Applied(record["id"])
        record = await _restore(context, record)
    items = (await import_rows.load_items(tx, kind.name, [record["id"]])).get(record["id"], [])
    changes = import_rows.compare_with_row(source, item, imported, record, items)
    taken = import_rows.list_taken(changes) - skipped
    written = await write_imported(context, source, imported, record, fields=taken)
    is_stale = row["record_revision"] not in (None, record["revision"])
    return replace(written, changes=changes if is_stale else None)


def _without_failed_image(
    context: OperationContext, imported: ImportedRecord
) -> tuple[ImportedRecord, list[Message]]:
    """Return the record and warnings. If its image could not be fetched, omit the image."""
    url = imported.values.get("image")
    fetched = context.fetched_images.get(url) if isinstance(url, str) else None
    message = getattr(fetched, "message", None)
    if message is None and (context.library is not None or not isinstance(url, str)):
        return imported, []
    values = {name: value for name, value in imported.values.items() if name != "image"}
    reason = message or Message("images are not fetched here.")
    return replace(imported, values=values), [Message("The image is left out: {reason}", reason=reason)]


# The trash -----------------------------------------------------------------------------------


async def trash_record(context: OperationContext, kind: Kind, record_id: int, *, with_past: bool = False) -> None:
    """Move a record to the trash.

    A series goes together with its upcoming events or, if `with_past`, with all events.
    """
    tx = context.transaction
    record = await kind.fetch(tx, record_id)
    if record is None or record["status"] == "trash":
        return
    if kind is not SERIES:
        await writes.change_record(kind, context, record, {"status": "trash"})
        return
    await trash_dates(context, Target(record, None, ALL))
    for event in (await series_matching.load_occurrences(tx, record["id"])).active.values() if with_past else ():
        await writes.change_record(EVENTS, context, event, {"status": "trash"})


async def _restore(context: OperationContext, record: Row) -> Row:
    """Restore a record that an import has moved to the trash."""
    tx = context.transaction
    if "parts" in record:
        await restore_series(SERIES, replace(context, record_id=record["id"], values={}))
        return await fetch_series(tx, record["id"])
    await writes.change_record(EVENTS, context, record, {"status": record["trashed_status"] or "draft"})
    restored = await EVENTS.fetch(tx, record["id"])
    return restored if restored is not None else record


# Dates of series -----------------------------------------------------------------------------


async def _revert_date(context: OperationContext, source: Row, row: Row) -> Applied:
    """Reset an event to the values of its series, unless a person has changed an imported field."""
    tx = context.transaction
    key = row["kind"], row["identity"], row["recurrence_id"]
    item = await import_tables.find_item(tx, source["id"], key)
    record = await EVENTS.fetch(tx, row["record_id"])
    if item is not None:
        await import_tables.remove_item(tx, source["id"], key)
    if item is None or record is None or record["series_id"] is None or record["status"] == "trash":
        return Applied(row["record_id"])
    written = import_tables.decode(item["stored_values"])
    if import_rows.read_stored_fields(EVENTS, record, written) == written:
        await _follow_series(context, record)
    return Applied(record["id"])


async def _follow_series(context: OperationContext, record: Row) -> None:
    definition = decode_definition(await fetch_series(context.transaction, record["series_id"]))
    date = series_slots.date_at(definition, record["slot"])
    content: dict[str, Any] = {**CONTENT_DEFAULTS, **series_slots.content_at(definition, record["slot"])}
    links = {link: content[column] for link, column in zip(EVENTS.links, LINK_COLUMNS, strict=True)}
    values: Values = {**decode_content(content), **span_columns(date.part, date.span())}
    await writes.write_changes(EVENTS, context.transaction, record, values, links)


# Writing records: all imports do this here, under the same rules as the API --------------------


async def write_imported(
    context: OperationContext,
    source: Row,
    imported: ImportedRecord,
    row: Row | None,
    *,
    fields: Collection[str] | None = None,
) -> Applied:
    """Create or change a record and save its item. `row` is the record's current row, or None for a new record.

    `fields` are the fields to write, named as in `list_fields`; None means all. If no field differs, only the item is
    saved. The site must be locked. Raise ApiError if the record is rejected.
    """
    kind = BY_NAME[imported.kind]
    permissions.require_writer(context.actor, kind)
    row = row or await _find_existing(kind, context, source, imported)
    if row is not None:
        permissions.require_edit(context.actor, kind, row)
    wanted = imported if fields is None else _select(imported, fields)
    links, warnings = await _resolve_identities(context.transaction, source, wanted)
    record_id = await _write(context, source, wanted, row, links)
    if kind.is_event and source["kind"] != "tec":
        await writes.publish_with_event(context.transaction, context.actor, kind, record_id)
    await save_item(context.transaction, source, imported, record_id, written=fields)
    return Applied(record_id, tuple(warnings))


def _select(imported: ImportedRecord, fields: Collection[str]) -> ImportedRecord:
    """Return the record with only these fields. A field that the source no longer has is null."""
    cleared = {name: None for name in fields if name not in import_records.list_fields(imported) and "." not in name}
    selected = import_records.select_fields(imported, fields)
    return replace(selected, values={**selected.values, **cleared})


async def save_item(
    tx: Transaction, source: Row, imported: ImportedRecord, record_id: int, *, written: Collection[str] | None = None
) -> None:
    """Save what the source sent, and what was stored as a result.

    `written` are the fields that were written; None means all. Other fields keep the values that an import stored
    earlier, because their current values are edits by people.
    """
    kind = BY_NAME[imported.kind]
    row = await kind.fetch(tx, record_id)
    if row is None:
        raise AssertionError(f"{kind.singular} {record_id} vanished inside its own transaction")
    values = import_records.list_fields(imported)
    item = await import_tables.find_item(tx, source["id"], imported.key) if written is not None else None
    stored = import_tables.decode(item["stored_values"]) if item is not None else {}
    stored.update(import_rows.read_stored_fields(kind, row, values if written is None else written))
    saved = {
        "kind": imported.kind,
        "identity": imported.identity,
        "recurrence_id": imported.recurrence_id,
        "record_id": record_id,
        "fingerprint": import_records.compute_fingerprint(imported),
        "source_values": values,
        "stored_values": stored,
    }
    await import_tables.save_items(tx, source["id"], [saved])


async def _write(
    context: OperationContext,
    source: Row,
    imported: ImportedRecord,
    row: Row | None,
    identities: Mapping[str, list[int]],
) -> int:
    kind, tx = BY_NAME[imported.kind], context.transaction
    values = _complete_values(kind, source, imported, identities, is_new=row is None)
    # Sanitizing long texts would block the event loop.
    arguments = await asyncio.to_thread(read_params, kind.fields, values, update=row is not None)
    links = {link: identities[link.param] for link in kind.links if link.param in identities}
    wanted_id = None if row is not None else await _choose_id(tx, kind, imported.wanted_id)
    if kind is SERIES:
        return await _write_series(replace(context, values=arguments), imported, row, wanted_id, links)
    links = {**(await resolve_links(kind, context, arguments, row)).ids, **links}
    columns = await _read_columns(tx, kind, imported.columns, row)
    if row is None:
        return await writes.add_record(kind, context, arguments, links, record_id=wanted_id, columns=columns)
    resolved = await resolve_image_url(context, arguments)
    stored = await kind.writes.to_columns(writes.build_write_context(context, resolved, row, row["id"]))
    await writes.write_changes(kind, tx, row, {**stored, **columns}, links)
    return int(row["id"])


async def _write_series(
    context: OperationContext, imported: ImportedRecord, row: Row | None, wanted_id: int | None, links: Links
) -> int:
    if row is not None:
        await change_imported_series(context, row, links)
        return int(row["id"])
    series_id = context.transaction.changes.take_post_id(wanted_id)
    await add_imported_series(context, series_id, imported.columns, links)
    return series_id


# Values --------------------------------------------------------------------------------------


def _complete_values(
    kind: Kind, source: Row, imported: ImportedRecord, identities: Mapping[str, list[int]], *, is_new: bool
) -> dict[str, Any]:
    """Return the parameters for a write: the record's values, its linked records, and the source's defaults."""
    single = {
        name: next(iter(ids), None)
        for name, ids in identities.items()
        if not any(name == link.param for link in kind.links)
    }
    known = {param.name: param for param in kind.fields}
    values = {**imported.values, **single}
    if is_new:
        return {
            **_read_defaults(kind, source, is_linked=imported.is_linked),
            **{name: value for name, value in values.items() if value is not None},
        }
    # Clear values that the source no longer has, if the parameter can be empty.
    return {
        name: value
        for name, value in values.items()
        if value is not None or known[name].type.null_value is not NOT_NULLABLE
    }


def _read_defaults(kind: Kind, source: Row, *, is_linked: bool) -> dict[str, Any]:
    """Return the source's defaults for new records.

    A linked record stays a draft until its first event is published.
    """
    defaults: dict[str, Any] = {}
    if kind.is_post:
        defaults["status"] = "draft" if is_linked else source["default_status"]
    if source["default_category_id"] is not None and any(link.param == "categories" for link in kind.links):
        defaults["categories"] = [source["default_category_id"]]
    return defaults


async def _read_columns(tx: Transaction, kind: Kind, columns: Mapping[str, Any], row: Row | None) -> Values:
    """Return the columns to set to exact values. Choose a free slug, and omit a UID that another record has."""
    values: Values = {name: columns[name] for name in TEXT_COLUMNS if name in columns}
    for name in TIME_COLUMNS:
        if name in columns:
            values[name] = datetime.fromisoformat(columns[name]) if columns[name] else None
    if "password_hash" in columns:
        values["password_hash"] = bytes.fromhex(columns["password_hash"]) if columns["password_hash"] else None
    if unknown := set(columns) - set(values):
        raise AssertionError(f"columns that an import does not set: {sorted(unknown)}")
    record_id = row["id"] if row is not None else 0
    if columns.get("slug"):
        values["slug"] = await record_tables.find_free_slug(tx, kind.name, columns["slug"], record_id)
    if "uid" in values and await _has_uid(tx, kind, columns["uid"], record_id):
        del values["uid"]
    if "feed_guid" in values and row is not None and await _has_guid(tx, record_id, columns["feed_guid"]):
        del values["feed_guid"]
    return values


async def _has_uid(tx: Transaction, kind: Kind, uid: str, own_id: int) -> bool:
    others = " WHERE site_id = ? AND uid = ? AND id <> ?"
    return bool(await tx.fetch_value(Sql("SELECT true FROM " + kind.name + others, tx.site.id, uid, own_id)))


async def _has_guid(tx: Transaction, event_id: int, guid: str) -> bool:
    stored = Sql("SELECT feed_guid FROM events WHERE site_id = ? AND id = ?", tx.site.id, event_id)
    return bool(await tx.fetch_value(stored) == guid)


# Identities ----------------------------------------------------------------------------------


async def _resolve_identities(
    tx: Transaction, source: Row, imported: ImportedRecord
) -> tuple[dict[str, list[int]], list[Message]]:
    """Return the IDs of linked records by parameter, and a warning for each record that is missing."""
    resolved: dict[str, list[int]] = {}
    warnings: list[Message] = []
    for name, identities in imported.links.items():
        kind = import_rows.LINKED_KINDS[name]
        known = await import_tables.find_record_ids(tx, source["id"], kind, identities) if identities else {}
        resolved[name] = [known[identity] for identity in dict.fromkeys(identities) if identity in known]
        warnings += [
            Message(
                "`{field}`: the source has no usable record {identity}, so it is left out.",
                field=name,
                identity=identity,
            )
            for identity in identities
            if identity not in known
        ]
    return resolved, warnings


async def _choose_id(tx: Transaction, kind: Kind, wanted_id: int | None) -> int | None:
    """Return the wanted ID if it is free, or None to use the next ID."""
    if wanted_id is None or not 0 < wanted_id <= MAX_ID:
        return None
    parts = [
        Sql("SELECT id FROM " + other.name + " WHERE site_id = ? AND id = ?", tx.site.id, wanted_id)
        for other in (*LOGGED_KINDS, MEDIA)
        if other.is_term == kind.is_term  # terms have a separate ID counter
    ]
    taken = await tx.fetch_all(join(" UNION ALL ", parts))
    return None if taken else wanted_id


async def _find_existing(kind: Kind, context: OperationContext, source: Row, imported: ImportedRecord) -> Row | None:
    """Return the existing record for a new item: a date of a series, a term, or an identical venue or organizer."""
    tx = context.transaction
    if imported.recurrence_id:
        return await _find_date(tx, source, imported)
    if kind.is_term:
        return await _find_term(tx, kind, imported)
    if kind.is_shared and kind is not SERIES and imported.wanted_id is None and not imported.links:
        arguments = read_params(kind.fields, imported.values)
        record_id = await find_identical(kind, context, arguments)
        return await kind.fetch(tx, record_id) if record_id is not None else None
    return None


async def _find_date(tx: Transaction, source: Row, imported: ImportedRecord) -> Row | None:
    """Return the event for a date of a series. Return None if the series did not come from this source."""
    found = await import_tables.find_record_ids(tx, source["id"], "series", [imported.identity])
    if imported.identity not in found:
        return None
    slot = datetime.fromisoformat(imported.recurrence_id)
    return await tx.fetch_one(
        BY_NAME["events"].select(
            Sql("r.site_id = ? AND r.series_id = ? AND r.slot = ?", tx.site.id, found[imported.identity], slot)
        )
    )


async def _find_term(tx: Transaction, kind: Kind, imported: ImportedRecord) -> Row | None:
    slug = imported.columns.get("slug") or imported.values.get("slug") or make_slug(str(imported.values["name"]))
    same_name = Sql("r.name_folded = ?", fold(str(imported.values["name"])))
    condition = Sql("r.slug = ?", slug) if "slug" in {**imported.columns, **imported.values} else same_name
    return await tx.fetch_one(
        kind.select(Sql("r.site_id = ? AND", tx.site.id) + condition + Sql("ORDER BY r.id LIMIT 1"))
    )


# Series: the source supplies the definition, and the dates follow ------------------------------


async def add_imported_series(
    context: OperationContext, series_id: int, columns: Mapping[str, Any], links: Links
) -> None:
    """Create a series and its dates from the values in the context."""
    content = await read_content(context, context.values, None, series_id)
    part = read_part(context, series_id)
    part = replace(part, uid=columns.get("uid", part.uid))
    template = {**CONTENT_DEFAULTS, **content.values, **link_columns(links)}
    definition = read_dates(context, Definition((part,), template), strict=False)
    context = replace(
        context, values={**context.values, **{name: columns[name] for name in ("slug",) if name in columns}}
    )
    await add_series(context, series_id, definition, content.published_at or context.transaction.now)


async def change_imported_series(context: OperationContext, row: Row, links: Links) -> None:
    """Change the definition and the upcoming dates of a series. If the definition is unchanged, write nothing."""
    tx = context.transaction
    before = decode_definition(row)
    first = Date(before.parts[0].start, before.parts[0])
    content = await read_content(context, context.values, make_event_row(row, before, first), row["id"])
    after = series_slots.change_content(before, {**content.values, **link_columns(links)})
    has_times = bool(set(import_records.TIME_FIELDS) & set(context.values))
    if has_times:
        part = replace(read_part(context, row["id"]), uid=before.parts[0].uid)
        after = replace(after, parts=(part,), added=(), removed=_keep_given(part, before.removed))
    after = read_dates(context, after, strict=False)
    if after == before:
        return
    has_times = has_times or (after.added, after.removed) != (before.added, before.removed)
    occurrences = await series_matching.load_occurrences(tx, row["id"])
    with explain_dates():
        until = compute_until(row, after, tx.now)
        matches = _match(occurrences, after, until, tx.now, has_times=has_times)
    # No field counts as edited, so `replaces_own` only allows events with overrides to be trashed.
    await write_edit(context, Edit(row, after, matches, occurrences, until), replaces_own=True)


def _match(
    occurrences: Occurrences, definition: Definition, until: datetime, now: datetime, *, has_times: bool
) -> list[Match]:
    upcoming = [row for row in occurrences.active.values() if not series_matching.is_past(row, now)]
    if not has_times:
        return series_matching.match_same(upcoming, definition)
    past = {row["slot"] for row in occurrences.active.values() if series_matching.is_past(row, now)}
    return series_matching.match_by_rule(upcoming, definition, until, _find_first_day(upcoming), now, taken=past)


def _find_first_day(rows: Sequence[Row]) -> datetime | None:
    """Return the start of the first day with an upcoming event. All earlier events are past."""
    first = min((row["slot"] for row in rows), default=None)
    return datetime.combine(first.date(), time.min) if first is not None else None


def _keep_given(part: Any, removed: Iterable[datetime]) -> tuple[datetime, ...]:
    """Return the skipped dates that the rule still produces."""
    slots = list(removed)
    return tuple(sorted(series_slots.find_given(Definition((part,), {}), slots)))
