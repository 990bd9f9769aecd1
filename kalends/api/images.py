"""Images on their way in: a file that comes with a request, and those that it names by their addresses."""

import asyncio
from collections.abc import Hashable
from typing import Any

from kalends.api import uploads
from kalends.api.catalog import Endpoint
from kalends.api.image_urls import MAX_IMAGE_URLS
from kalends.api.request import ApiRequest, identify
from kalends.core import errors
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.params import read_params
from kalends.http.requests import RawParams
from kalends.kinds.kind import Kind
from kalends.operations import permissions
from kalends.operations.media.images import PendingFetch, find_unfetched
from kalends.operations.media.library import FetchResult, Library
from kalends.store.sites import Site


async def store_upload(
    api_request: ApiRequest, endpoint: Endpoint, library: Library, site_id: int
) -> tuple[RawParams, dict[str, Any]]:
    """A request with a file, which is kept before it is recorded."""
    async with library.limiter.slot((site_id, api_request.actor.user_id)), library.open_work_directory() as directory:
        raw, upload = await uploads.read_upload(api_request.request, directory, library.max_bytes)
        values = read_params(endpoint.params, raw.values)
        if upload is None:
            raise errors.missing_params([uploads.FIELD])
        try:
            api_request.upload = await library.store_image(site_id, upload.path, title=upload.name)
        except InvalidValue as error:
            raise errors.invalid_params({uploads.FIELD: errors.for_param(uploads.FIELD, error.message)}) from error
    raw.body = uploads.fingerprint_upload(api_request.upload.upload_sha256, raw.values)
    return raw, values


async def fetch_images(api_request: ApiRequest, site_id: int, urls: list[str]) -> None:
    """Asks for images that are named by an address and not in the library yet. Nothing is locked meanwhile."""
    library = api_request.state.library
    if library is None or not urls or not permissions.may_publish(api_request.actor):
        return
    if len(urls) > MAX_IMAGE_URLS:
        raise errors.invalid("image", "at most {most} addresses are fetched at once.", most=MAX_IMAGE_URLS)
    async with api_request.transaction() as tx:
        pending = await find_unfetched(tx, urls)
    owner = (site_id, api_request.actor.user_id)
    results = await asyncio.gather(*[_fetch(library, site_id, row, owner) for row in pending])
    for row, result in zip(pending, results, strict=True):
        if isinstance(result, ApiError):
            raise result
        api_request.fetched_images[row.url] = result


async def _fetch(
    library: Library, site_id: int, pending: PendingFetch, owner: Hashable
) -> FetchResult | InvalidValue | ApiError:
    try:
        async with library.limiter.slot(owner):
            return await library.fetch(site_id, pending.url, etag=pending.etag, last_modified=pending.last_modified)
    except (InvalidValue, ApiError) as error:
        return error


async def authenticate_writer(api_request: ApiRequest, kind: Kind | None) -> Site:
    """Signs the caller in, refuses who has not signed in, and returns the site."""
    async with api_request.transaction() as tx:
        api_request.site_language = tx.site.language
        await identify(api_request, tx)
        if api_request.actor.user_id is None:
            require_writer(api_request, kind)
        return tx.site


def require_writer(api_request: ApiRequest, kind: Kind | None) -> None:
    """Refuses callers who may not write records of a kind."""
    if api_request.actor.read_only:
        raise errors.read_only()
    permissions.require_writer(api_request.actor, kind)
