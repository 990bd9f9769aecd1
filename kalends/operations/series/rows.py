"""Reading and writing the row of a series."""

from typing import Any, Final, LiteralString

from kalends.core import errors
from kalends.core.series import Definition
from kalends.core.slugs import TRASHED_SUFFIX
from kalends.kinds.kind import Values
from kalends.kinds.posts import strip_trashed_suffix
from kalends.kinds.series import SERIES
from kalends.operations import permissions
from kalends.store import Row, records
from kalends.store.database import Transaction
from kalends.store.history import encode_columns
from kalends.store.series import decode_definition, encode_definition
from kalends.store.sql import Sql

# The columns whose change raises the SEQUENCE of a series in calendar feeds.
SEQUENCE_COLUMNS = frozenset({"parts", "added", "removed", "status", "template", "content_changes"})

# The columns that are copies from the template.
COPIED_COLUMNS: Final[tuple[LiteralString, ...]] = ("title", "description", "image_id", "status", "author_id")


async def fetch_series(tx: Transaction, series_id: int) -> Row:
    row = await tx.fetch_one(SERIES.select(Sql("r.site_id = ? AND r.id = ?", tx.site.id, series_id)))
    if row is None:
        raise errors.not_found(SERIES.singular)
    return row


async def write_definition(
    tx: Transaction, row: Row, definition: Definition, further: Values | None = None
) -> int | None:
    """Write a changed definition and further columns of a series; return the revision of the change, None if none.

    Some columns are copies from the template.
    """
    values: Values = {**_copied_columns(definition), **encode_definition(definition), **(further or {})}
    if values["image_id"] != row["image_id"]:
        values["image_id"] = await _find_image(tx, definition.template["image_id"])
    # JSON is compared as Kalends writes it, because PostgreSQL stores it in another form.
    stored = {**dict(row), **encode_definition(decode_definition(row))}
    changed: Values = {name: value for name, value in values.items() if stored[name] != value}
    return await write_series(tx, row, changed) if changed else None


async def _find_image(tx: Transaction, image_id: int | None) -> int | None:
    """Return the image of a template if it has not been deleted since."""
    exists = image_id is not None and bool(await records.find_existing_ids(tx, "media", [image_id]))
    return image_id if exists else None


def _copied_columns(definition: Definition) -> Values:
    template = definition.template
    return {name: template[name] for name in COPIED_COLUMNS}


async def write_series(tx: Transaction, row: Row, changed: Values, *, cause: int | None = None) -> int:
    """Log and write changed columns of a series; return the revision. `cause` is that of another series."""
    revision = tx.changes.record(
        SERIES.name,
        row["id"],
        choose_action(row, changed),
        before=encode_columns({name: row[name] for name in changed if name in row}),
        after=encode_columns({**changed}),
        was_public=permissions.is_public(row),
        cause=cause,
    )
    sequence: Values = {"sequence": revision} if SEQUENCE_COLUMNS & set(changed) else {}
    await records.change(
        tx, SERIES.name, row["id"], {**changed, **sequence, "revision": revision, "modified_utc": tx.now}
    )
    return revision


async def trash_series(tx: Transaction, row: Row, *, cause: int | None = None) -> int:
    """Move the row of a series to the trash; return the revision."""
    slug = await records.find_free_slug(tx, "series", str(row["slug"]) + TRASHED_SUFFIX, row["id"])
    changed: Values = {"status": "trash", "trashed_status": row["status"], "trashed_at": tx.now, "slug": slug}
    return await write_series(tx, row, changed, cause=cause)


async def untrash_series(tx: Transaction, row: Row) -> int:
    """Restore the row of a series from the trash; return the revision."""
    slug = await records.find_free_slug(tx, "series", strip_trashed_suffix(str(row["slug"])), row["id"])
    changed: Values = {"status": row["trashed_status"], "trashed_status": "", "trashed_at": None, "slug": slug}
    return await write_series(tx, row, changed)


def choose_action(row: Row, changed: Values) -> Any:
    if "status" not in changed:
        return "update"
    if changed["status"] == "trash":
        return "trash"
    return "restore" if row["status"] == "trash" else "update"
