"""Event passwords in requests: rate limiting of guesses, and hashing."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.http.context import RequestContext
from kalends.kinds.event_passwords import HASHES
from kalends.operations import event_passwords
from kalends.store.sites import Site

# Different event passwords that one batch may set: hashing each takes about a tenth of a second.
MAX_NEW_PASSWORDS: Final = 20


@asynccontextmanager
async def admit_password(context: RequestContext[Any], values: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
    """Yield the parameters with the password replaced by its hashes; raise 429 after too many wrong ones.

    The guess is counted in a separate transaction beforehand, because the request itself is read-only, and because
    concurrent requests must not pass together. A correct password is refunded afterwards.
    """
    if not values.get("password"):
        yield dict(values)
        return
    async with context.transaction(writing=True) as tx:
        await event_passwords.count_guess(tx, context.client_ip)
        site, has_protected = tx.site, await event_passwords.has_passwords(tx)
    # Hashing is slow, so no database connection is held meanwhile.
    hashes = await event_passwords.hash_guess(site, values["password"]) if has_protected else []
    try:
        yield {**values, "password": hashes}
    finally:
        # If the refund fails, the guess stays counted, which is harmless.
        with suppress(ApiError):
            if hashes:
                async with context.transaction(writing=True) as tx:
                    await event_passwords.refund_guess(tx, context.actor, context.client_ip, hashes)


async def hash_new_passwords(site: Site, values: Mapping[str, Any]) -> None:
    """Hash the event passwords that a write or a batch sets, before the site is locked."""
    writes = [values, *[operation.values for operation in values.get("operations", ())]]
    passwords = {password for write in writes if isinstance(password := write.get("new_password"), str) and password}
    if len(passwords) > MAX_NEW_PASSWORDS:
        raise errors.invalid(
            "operations", "must set at most {maximum} different event passwords.", maximum=MAX_NEW_PASSWORDS
        )
    for password in passwords:
        await HASHES.compute_and_add(site.secret, password)
