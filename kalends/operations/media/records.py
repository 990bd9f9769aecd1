"""Operations of the media library that differ from those of other records: adding a file, removing an image."""

from typing import Final

from kalends.core import errors
from kalends.kinds import BY_NAME
from kalends.kinds.kind import Kind
from kalends.operations import permissions
from kalends.operations.context import Call, Outcome
from kalends.operations.media.images import add_image
from kalends.operations.quotas import count_new_record
from kalends.operations.records import changeable_row, outcome_of
from kalends.operations.writes import remove_record
from kalends.store import media
from kalends.store.sql import Sql

# How many records are named to somebody who wants to remove their image.
MOST_NAMED: Final = 20


async def create_media(kind: Kind, call: Call) -> Outcome:
    """The file is kept already; here it becomes a record."""
    permissions.require_writer(call.actor, kind)
    if call.upload is None or call.library is None:
        raise errors.missing_params(["file"])
    await count_new_record(call)
    media_id = await add_image(
        call.transaction, call.library, call.upload, user_id=call.actor.user_id, sent=call.values
    )
    return await outcome_of(kind, call, media_id, status=201)


async def delete_media(kind: Kind, call: Call) -> Outcome:
    """For good. An image that is shown somewhere is kept, unless `force` takes it away there, too."""
    tx = call.transaction
    row = await changeable_row(kind, call)
    outcome = await outcome_of(kind, call, row["id"])
    users = await media.find_references(tx, row["id"], MOST_NAMED)
    if users and not call.values.get("force"):
        raise errors.in_use([{"kind": name, "id": record_id} for name, record_id in users[:MOST_NAMED]])
    for name in dict.fromkeys(name for name, _ in users):
        rows = await tx.fetch_all(
            BY_NAME[name].select(Sql("r.site_id = ? AND r.image_id = ?", tx.site.id, row["id"]))
        )
        for shown_by in rows:
            permissions.require_edit(call.actor, BY_NAME[name], shown_by)
    await media.detach_image(tx, row["id"])
    await media.replace_files(tx, row["id"], [])
    await remove_record(kind, tx, row)
    return outcome
