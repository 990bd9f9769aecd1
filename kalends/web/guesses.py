"""The password of an event in a request: each one is a guess until it has opened something."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from kalends.core.errors import Refusal
from kalends.operations import protection
from kalends.web.exchange import NOBODY, Exchange, client_of

if TYPE_CHECKING:
    from kalends.web.visit import Visit


@asynccontextmanager
async def admit_password(request: "Exchange | Visit", values: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
    """Yield the parameters with the password replaced by its hashes; raise 429 after too many wrong ones.

    The guess is counted in a transaction of its own before anything is compared, because the request itself only
    reads, and so that requests at the same moment cannot pass together. A right password is given back afterwards.
    """
    if not values.get("password"):
        yield dict(values)
        return
    database, client = request.service.database, client_of(request.request, request.service)
    async with database.transaction(request.host, request.now, writing=True) as tx:
        await protection.count_guess(tx, client)
        site = tx.site
    hashes = protection.hash_guess(site, values["password"])
    try:
        yield {**values, "password": hashes}
    finally:
        actor = request.actor if isinstance(request, Exchange) else NOBODY
        # If this fails the guess stays counted, which does no harm.
        with suppress(Refusal):
            async with database.transaction(request.host, request.now, writing=True) as tx:
                await protection.give_back_guess(tx, actor, client, hashes)
