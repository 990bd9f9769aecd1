"""Images of a write: an uploaded file, and image URLs in the body. Both are stored before the site is locked."""

import asyncio
from collections.abc import Hashable, Mapping
from typing import Any, Final

from kalends.api import uploads
from kalends.api.batch import BatchOperation, BatchTarget
from kalends.api.catalog import Endpoint
from kalends.api.ignored_params import check_write
from kalends.api.request import ApiRequest, OperationInput
from kalends.core import errors
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.params import IMAGE, read_params
from kalends.kinds import BY_NAME
from kalends.kinds.kind import Kind
from kalends.operations import permissions
from kalends.operations.media.images import PendingFetch, find_unfetched
from kalends.operations.media.library import FetchResult, Library

MAX_IMAGE_URLS: Final = 10


async def store_upload(api_request: ApiRequest, endpoint: Endpoint, library: Library, site_id: int) -> OperationInput:
    """Read a request with a file and store the image in the library."""
    async with library.limiter.slot((site_id, api_request.actor.user_id)), library.open_work_directory() as directory:
        raw, upload = await uploads.read_upload(api_request.request, directory, library.max_bytes)
        check_write(api_request, endpoint, raw, [uploads.FIELD])
        values = read_params(endpoint.params, raw.values)
        if upload is None:
            raise errors.missing_params([uploads.FIELD])
        try:
            image = await library.store_image(site_id, upload.path, title=upload.name)
        except InvalidValue as error:
            raise errors.invalid_params({uploads.FIELD: errors.for_param(uploads.FIELD, error.message)}) from error
    raw.body = uploads.fingerprint_upload(image.upload_sha256, raw.values)
    return OperationInput(raw, values, upload=image)


async def fetch_images(
    api_request: ApiRequest, site_id: int, urls: list[str]
) -> dict[str, FetchResult | InvalidValue]:
    """Fetch the images that are not in the library yet, and return the result of each URL.

    An invalid image is a result too, because the operation reports it together with the parameter.
    """
    library = api_request.state.library
    if library is None or not urls or not permissions.may_publish(api_request.actor):
        return {}
    if len(urls) > MAX_IMAGE_URLS:
        raise errors.invalid("image", "must have at most {maximum} image URLs per request.", maximum=MAX_IMAGE_URLS)
    async with api_request.transaction() as tx:
        pending = await find_unfetched(tx, urls)
    owner = (site_id, api_request.actor.user_id)
    results = await asyncio.gather(*[_fetch(library, site_id, row, owner) for row in pending])
    fetched: dict[str, FetchResult | InvalidValue] = {}
    for row, result in zip(pending, results, strict=True):
        if isinstance(result, ApiError):
            raise result
        fetched[row.url] = result
    return fetched


async def _fetch(
    library: Library, site_id: int, pending: PendingFetch, owner: Hashable
) -> FetchResult | InvalidValue | ApiError:
    try:
        async with library.limiter.slot(owner):
            return await library.fetch(site_id, pending.url, etag=pending.etag, last_modified=pending.last_modified)
    except (InvalidValue, ApiError) as error:
        return error


def find_image_urls(kind: Kind | None, values: Mapping[str, Any]) -> list[str]:
    """Return the distinct image URLs of a record, of the new records linked to it, and of the writes of a batch.

    Values that are not valid URLs are skipped here; the operation rejects them.
    """
    urls: dict[str, None] = {}
    if kind is not None:
        _collect_image_urls(kind, values, urls)
    for operation in values.get("operations", ()):
        if isinstance(operation, BatchOperation) and isinstance(operation.target, BatchTarget):
            urls |= dict.fromkeys(find_image_urls(operation.target.endpoint.kind, operation.values))
    return list(urls)


def _collect_image_urls(kind: Kind, values: Mapping[str, Any], urls: dict[str, None]) -> None:
    image = values.get("image")
    if isinstance(image, str) and image:
        try:
            image_url = IMAGE.read(image)
        except InvalidValue:
            image_url = None
        if isinstance(image_url, str):
            urls[image_url] = None
    for link in kind.links:
        linked_kind, linked = BY_NAME[link.kind], values.get(link.param)
        if not any(field.name == "image" for field in linked_kind.fields):
            continue
        for entry in linked if isinstance(linked, list) else [linked]:  # pyright: ignore[reportUnknownVariableType]
            if isinstance(entry, dict):
                _collect_image_urls(linked_kind, entry, urls)  # pyright: ignore[reportUnknownArgumentType]
