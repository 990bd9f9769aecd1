"""Images on their way in: a file that comes with a request, and those that it names by their addresses."""

import asyncio
from collections.abc import Hashable
from typing import Any

from kalends.api import uploads
from kalends.api.catalog import Endpoint
from kalends.api.image_urls import MOST_ADDRESSES
from kalends.api.request import Exchange, identify
from kalends.core import errors
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.params import read_params
from kalends.http.requests import Raw
from kalends.kinds.kind import Kind
from kalends.operations import permissions
from kalends.operations.media.images import Wanted, find_unfetched
from kalends.operations.media.library import Fetched, Library
from kalends.store.sites import Site


async def take_file(
    exchange: Exchange, endpoint: Endpoint, library: Library, site_id: int
) -> tuple[Raw, dict[str, Any]]:
    """A request with a file, which is kept before it is recorded."""
    async with library.turns.slot((site_id, exchange.actor.user_id)), library.working() as directory:
        raw, sent = await uploads.read_upload(exchange.request, directory, library.limit)
        values = read_params(endpoint.params, raw.values)
        if sent is None:
            raise errors.missing_params([uploads.FIELD])
        try:
            exchange.upload = await library.take(site_id, sent.path, title=sent.name)
        except InvalidValue as problem:
            raise errors.invalid_params(
                {uploads.FIELD: errors.for_param(uploads.FIELD, problem.message)}
            ) from problem
    raw.body = uploads.fingerprinted(exchange.upload.sent_hash, raw.values)
    return raw, values


async def fetch_images(exchange: Exchange, site_id: int, named: list[str]) -> None:
    """Asks for images that are named by an address and not in the library yet. Nothing is locked meanwhile."""
    library = exchange.service.library
    if library is None or not named or not permissions.may_publish(exchange.actor):
        return
    if len(named) > MOST_ADDRESSES:
        raise errors.invalid("image", "at most {most} addresses are fetched at once.", most=MOST_ADDRESSES)
    async with exchange.transaction() as tx:
        wanted = await find_unfetched(tx, named)
    owner = (site_id, exchange.actor.user_id)
    answers = await asyncio.gather(*[_fetch(library, site_id, row, owner) for row in wanted])
    for row, found in zip(wanted, answers, strict=True):
        if isinstance(found, ApiError):
            raise found
        exchange.fetched[row.address] = found


async def _fetch(
    library: Library, site_id: int, wanted: Wanted, owner: Hashable
) -> Fetched | InvalidValue | ApiError:
    try:
        async with library.turns.slot(owner):
            return await library.fetch(site_id, wanted.address, etag=wanted.etag, date=wanted.date)
    except (InvalidValue, ApiError) as problem:
        return problem


async def sign_in_writer(exchange: Exchange, kind: Kind | None) -> Site:
    """Signs the caller in, refuses who has not signed in, and returns the site."""
    async with exchange.transaction() as tx:
        exchange.site_language = tx.site.language
        await identify(exchange, tx)
        if exchange.actor.user_id is None:
            require_writer(exchange, kind)
        return tx.site


def require_writer(exchange: Exchange, kind: Kind | None) -> None:
    """Refuses callers who may not write records of a kind."""
    if exchange.actor.read_only:
        raise errors.read_only()
    permissions.require_writer(exchange.actor, kind)
