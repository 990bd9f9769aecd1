"""/healthz and /readyz, for process managers and load balancers."""

from starlette.responses import PlainTextResponse, Response

from kalends.core import errors
from kalends.core.messages import Message
from kalends.core.messages import gettext_noop as N_
from kalends.store.database import Database


def show_health() -> Response:
    """Respond that the process is running."""
    return PlainTextResponse("ok\n")


async def show_readiness(database: Database, schema: str) -> Response:
    """Respond that the database is available and has the expected schema; raise 503 otherwise."""
    found = await database.schema_version()
    if found != schema:
        why = N_("Schema version is {found}, expected {wanted}; run `kalends migrate`.")
        raise errors.unavailable(Message(why, found=found, wanted=schema))
    return PlainTextResponse("ready\n")
