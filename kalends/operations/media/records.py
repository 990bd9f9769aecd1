"""Creating and deleting images, which differ from the operations of other kinds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kalends.core import errors
from kalends.core.record_types import MediaItem
from kalends.kinds import BY_NAME
from kalends.kinds.kind import Kind
from kalends.kinds.media import MEDIA, build_media_item
from kalends.operations import permissions
from kalends.operations.context import OperationContext, Outcome
from kalends.operations.media.images import add_image
from kalends.operations.quotas import count_new_record
from kalends.operations.records import fetch_editable_row, read_outcome
from kalends.operations.writes import remove_record
from kalends.store import Row, media
from kalends.store.sql import Sql

# Maximum number of records named in the error about an image in use.
MAX_NAMED_RECORDS: Final = 20


async def create_media(kind: Kind, context: OperationContext) -> Outcome:
    """Create the record of an uploaded file, which is stored already."""
    permissions.require_writer(context.actor, kind)
    if context.upload is None or context.library is None:
        raise errors.missing_params(["file"])
    await count_new_record(context)
    media_id = await add_image(
        context.transaction, context.library, context.upload, user_id=context.actor.user_id, arguments=context.values
    )
    return await read_outcome(kind, context, media_id, status=201)


async def read_images(context: OperationContext, image_ids: Sequence[int]) -> list[tuple[MediaItem, Row]]:
    """Read the images of records that the caller may see, each with its row."""
    if not image_ids:
        return []
    tx = context.transaction
    rows = await tx.fetch_all(MEDIA.select(Sql("r.site_id = ? AND r.id = ANY(?)", tx.site.id, list(image_ids))))
    return [(build_media_item(row, context.render_context), row) for row in rows]


@dataclass(frozen=True, slots=True)
class Usage:
    """A record that has an image, as far as the caller may read it."""

    kind: Kind
    row: Row


async def find_usages(context: OperationContext, media_id: int) -> tuple[list[Usage], int]:
    """Return the records that have an image and that the caller may read, and the number of the others.

    At most `MAX_NAMED_RECORDS` of each kind are found.
    """
    tx, readable = context.transaction, permissions.readable_condition(context.actor)
    usages: list[Usage] = []
    for name, _ in media.REFERENCING_TABLES:
        kind = BY_NAME[name]
        uses_image = Sql("r.site_id = ? AND", tx.site.id) + media.uses_image(name, media_id)
        condition = uses_image + Sql("AND") + readable
        order = Sql("ORDER BY r.modified_utc DESC LIMIT ?", MAX_NAMED_RECORDS)
        usages += [Usage(kind, row) for row in await tx.fetch_all(kind.select(condition + order))]
    references = await media.find_references(tx, media_id, MAX_NAMED_RECORDS)
    return usages, len(references) - len(usages)


async def delete_media(kind: Kind, context: OperationContext) -> Outcome:
    """Delete an image permanently. Raise ApiError if records use it, unless `force` removes it from them."""
    tx = context.transaction
    row = await fetch_editable_row(kind, context)
    outcome = await read_outcome(kind, context, row["id"])
    usages = await media.find_references(tx, row["id"], MAX_NAMED_RECORDS)
    if usages and not context.values.get("force"):
        raise errors.in_use([{"kind": name, "id": record_id} for name, record_id in usages[:MAX_NAMED_RECORDS]])
    for name in dict.fromkeys(name for name, _ in usages):
        condition = Sql("r.site_id = ? AND", tx.site.id) + media.uses_image(name, row["id"])
        rows = await tx.fetch_all(BY_NAME[name].select(condition))
        for using_row in rows:
            permissions.require_edit(context.actor, BY_NAME[name], using_row)
    await media.detach_image(tx, row["id"])
    await media.replace_files(tx, row["id"], [])
    await remove_record(kind, tx, row)
    return outcome
