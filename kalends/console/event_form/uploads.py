"""The submitted form, which may contain a picture."""

from dataclasses import replace
from typing import Any, Final

from kalends.api.forms import FormLimits
from kalends.api.uploads import FIELD, FORM, Upload, read_upload
from kalends.console.request import ConsoleRequest
from kalends.core import errors
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.params import read_params
from kalends.http import requests
from kalends.kinds.media import MEDIA
from kalends.operations import permissions
from kalends.operations.media.library import Library, StoredImage
from kalends.operations.media.records import create_media

LIMITS: Final = FormLimits(fields=1000, field_bytes=1024 * 1024, total_bytes=2 * 1024 * 1024)
# Actions of the form that do not save it, for which a picture is not stored.
UNSAVED_ACTIONS: Final = frozenset(["preview", "trash", "find-image", "repeat"])


async def read_form(console_request: ConsoleRequest) -> StoredImage | ApiError | None:
    """Read the form of the request and store its picture, if it has one; return the reason if that is invalid."""
    request, library = console_request.request, console_request.state.library
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != FORM or library is None:
        body = await requests.read_body(request, LIMITS.total_bytes)
        console_request.form = (await requests.read_values(request, body)).values
        return None
    owner = (console_request.site.id, console_request.actor.user_id)
    async with library.limiter.slot(owner), library.open_work_directory() as directory:
        raw, upload = await read_upload(request, directory, library.max_bytes, LIMITS)
        console_request.form = raw.values
        if upload is None or not upload.path.stat().st_size or raw.values.get("action") in UNSAVED_ACTIONS:
            return None
        return await _store(console_request, library, upload)


async def _store(console_request: ConsoleRequest, library: Library, upload: Upload) -> StoredImage | ApiError:
    try:
        permissions.require_writer(console_request.actor, MEDIA)
        return await library.store_image(console_request.site.id, upload.path, title=upload.name)
    except InvalidValue as error:
        return errors.invalid_params({FIELD: errors.for_param(FIELD, error.message)})
    except ApiError as error:
        return error


async def add_picture(console_request: ConsoleRequest, image: StoredImage, raw: dict[str, Any]) -> int:
    """Add a stored picture to the media library and return its ID."""
    values = read_params(MEDIA.fields, raw)
    async with console_request.write() as tx:
        await tx.lock_site(console_request.actor.user_id)
        context = replace(console_request.make_context(tx, values), upload=image)
        return int((await create_media(MEDIA, context)).body["id"])
