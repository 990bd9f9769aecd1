"""Images of the media library as the logo of the site."""

from dataclasses import dataclass
from typing import Any, Final

from kalends.api import uploads
from kalends.console.request import ConsoleRequest
from kalends.core import errors
from kalends.core.errors import InvalidValue
from kalends.core.messages import Message
from kalends.core.record_types import MediaItem
from kalends.kinds.media import MEDIA, build_media_item
from kalends.operations.context import OperationContext
from kalends.operations.media.records import create_media, read_images
from kalends.operations.records import find_page
from kalends.operations.sites import MEDIA_PATH
from kalends.store.database import Transaction

MAX_SHOWN: Final = 12


@dataclass(frozen=True, slots=True)
class Logo:
    """An image that can become the logo: the value of the setting, and what shows it in the form."""

    value: str
    thumbnail: str
    name: str


async def list_logos(console_request: ConsoleRequest, tx: Transaction) -> list[Logo]:
    """Return the newest images of the library."""
    context = console_request.make_context(tx, {"per_page": MAX_SHOWN})
    found = await find_page(MEDIA, context, with_total=False)
    return [_make_logo(build_media_item(row, context.render_context), context) for row in found.rows]


async def store_logo(console_request: ConsoleRequest) -> tuple[dict[str, Any], str | Message]:
    """Store an uploaded image in the library.

    Return the other fields of the form, and the value of the setting or the reason why the image was rejected.
    """
    library, site_id = console_request.state.library, console_request.site.id
    if library is None:
        raise errors.unavailable()
    owner = (site_id, console_request.actor.user_id)
    async with library.limiter.slot(owner), library.open_work_directory() as directory:
        raw, upload = await uploads.read_upload(console_request.request, directory, library.max_bytes)
        if upload is None or not upload.name:
            return raw.values, Message("Choose a file first.")
        try:
            image = await library.store_image(site_id, upload.path, title=upload.name)
        except InvalidValue as error:
            return raw.values, error.message
    async with console_request.write() as tx:
        await tx.lock_site(console_request.actor.user_id)
        context = console_request.make_context(tx, {}, upload=image)
        outcome = await create_media(MEDIA, context)
        [(item, _)] = await read_images(context, [outcome.body["id"]])
    return raw.values, _make_logo(item, context).value


def _make_logo(item: MediaItem, context: OperationContext) -> Logo:
    """Return an image of this site by its path, which stays valid on every host."""
    own = f"{context.base_url}{MEDIA_PATH}"
    value = item.url.removeprefix(context.base_url) if item.url.startswith(own) else item.url
    thumbnail = item.sizes.get("thumbnail", {}).get("url", item.url)
    return Logo(value, thumbnail, item.alt_text or item.title)
