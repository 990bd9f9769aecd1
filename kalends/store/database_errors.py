"""Errors of the database driver and of PostgreSQL, and the API errors that they become."""

from collections.abc import Callable
from typing import Final

import asyncpg

from kalends.core import errors
from kalends.core.errors import ApiError

# The server does not accept writes, for example because it is a demoted primary.
READ_ONLY_STATE: Final = "25006"
# API errors for errors of PostgreSQL. States that are not listed are bugs and become status 500.
SQLSTATES: Final[dict[str, Callable[[], ApiError]]] = {
    "23503": errors.conflict,  # foreign key: the other record was deleted concurrently
    "23P01": errors.conflict,  # exclusion constraint: two dates of a series have the same slot
    "23505": errors.conflict,  # unique index: the name was taken concurrently
    "40001": errors.unavailable,  # serialization failure, or a standby that replays a conflicting change
    "40P01": errors.unavailable,  # deadlock
    "55P03": errors.unavailable,  # lock timeout
    "57014": errors.unavailable,  # statement timeout
    "53100": errors.out_of_storage,  # disk full
    "53200": errors.unavailable,  # out of memory
    "53300": errors.unavailable,  # too many connections
    "57P01": errors.unavailable,  # server shutting down
    "57P02": errors.unavailable,
    "57P03": errors.unavailable,  # server starting up
    READ_ONLY_STATE: errors.unavailable,  # standby after a failover
    "08P01": errors.unavailable,  # timeout of a connection pooler
}
# The connection broke or PostgreSQL closed it, so the outcome of a commit is unknown.
BROKEN_CONNECTION_STATES: Final = ("08", "57P0")
# Raised by asyncpg on a lost connection: an InternalClientError if it was introspecting types.
CONNECTION_ERRORS: Final = (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError)
# The same, plus timeouts and errors of the server.
UNAVAILABLE_ERRORS: Final = (*CONNECTION_ERRORS, TimeoutError, asyncpg.PostgresError)


def translate_error(error: asyncpg.PostgresError) -> Exception:
    """Return the API error for an error of PostgreSQL, or the error itself if it is a bug."""
    state = error.sqlstate or ""
    factory = SQLSTATES.get(state) or (errors.unavailable if state.startswith("08") else None)
    return factory() if factory else error
