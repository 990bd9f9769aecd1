"""Uploads and changes of images, by the operations of the media library."""

from dataclasses import replace

from kalends.api.core_routes.errors import translate_error
from kalends.api.core_routes.reads import make_outcome
from kalends.core.errors import ApiError
from kalends.kinds.kind import Kind
from kalends.operations.context import OperationContext, Outcome
from kalends.operations.core_kinds import CORE_MEDIA
from kalends.operations.media.records import create_media
from kalends.operations.records import fetch_visible_row, update_record


async def upload_media(kind: Kind, context: OperationContext) -> Outcome:
    return await _respond(context, await create_media(kind, context))


async def update_media(kind: Kind, context: OperationContext) -> Outcome:
    try:
        outcome = await update_record(kind, context)
    except ApiError as error:
        raise translate_error(error, kind, context.actor) if error.status == 404 else error from error
    return await _respond(context, outcome)


async def _respond(context: OperationContext, outcome: Outcome) -> Outcome:
    """Return a written image in the form of WordPress, with its texts as they are stored."""
    written = replace(context, record_id=outcome.body["id"], values={"context": "edit"})
    return await make_outcome(CORE_MEDIA, written, await fetch_visible_row(CORE_MEDIA, written), outcome.status)
