"""Sources of imports: their checks, and the rights with which they write."""

from kalends.core import errors
from kalends.core.messages import Message
from kalends.kinds.kind import Actor
from kalends.operations import permissions
from kalends.operations.context import OperationContext
from kalends.operations.media.library import Library
from kalends.store import Row, imports, users
from kalends.store.database import Transaction
from kalends.store.sql import Sql


async def fetch_source(tx: Transaction, source_id: int) -> Row:
    """Return a source. Raise ApiError if it does not exist."""
    source = await imports.find_source(tx, source_id)
    if source is None:
        raise errors.import_not_found()
    return source


async def fetch_run(tx: Transaction, run_id: int) -> Row:
    """Return a run. Raise ApiError if it does not exist."""
    run = await imports.find_run(tx, run_id)
    if run is None:
        raise errors.import_not_found()
    return run


async def find_owner(tx: Transaction, source: Row) -> Actor:
    """Return the user whose rights apply to what a source writes. Raise ApiError if the account cannot write."""
    row = await tx.fetch_one(
        Sql(
            "SELECT id, login, role FROM users WHERE site_id = ? AND id = ? AND disabled_at IS NULL",
            tx.site.id,
            source["owner_id"],
        )
    )
    actor = Actor(row["id"], row["role"], row["login"]) if row is not None else None
    if actor is None or permissions.rank(actor) < permissions.EDITOR:
        raise errors.forbidden(
            Message("the owner of the source must be an active account with the role editor or higher."),
            anonymous=False,
        )
    return actor


async def make_undo_context(tx: Transaction, source: Row, library: Library | None = None) -> OperationContext:
    """Return the context in which a run is undone. A site that moved in may have no account afterwards."""
    if source["kind"] != "tec":
        return await make_context(tx, source, library)
    user_id = await users.find_first_administrator(tx)
    return OperationContext(tx, Actor(user_id or 0, "administrator"), "", "", library=library, returns_record=False)


async def make_context(tx: Transaction, source: Row, library: Library | None = None) -> OperationContext:
    """Return the context in which a source writes. Permissions are those of its owner."""
    actor = await find_owner(tx, source)
    return OperationContext(tx, actor, "", "", library=library, returns_record=False)
