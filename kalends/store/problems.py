"""Explanations of why the database cannot be used, for commands, the log, /readyz and pages.

The detail is for operators and contains addresses and names, but never a password. The summary is for everyone.
"""

import getpass
import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import parse_qs, unquote, urlsplit

import asyncpg

from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.messages import Message

# A table, function, column or schema is missing.
SCHEMA_STATES: Final = ("42P01", "42883", "42703", "3F000")
# The role kalends_app does not exist, or the login is not a member of it.
ROLE_STATES: Final = ("22023", "42501")
# An extension is not available on the server, or its files are missing.
EXTENSION_STATES: Final = ("0A000", "58P01")
CONNECT_TIMEOUT: Final = 5.0
# Errors that asyncpg raises when a connection is lost. InternalClientError occurs during type introspection.
CONNECTION_ERRORS: Final = (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError)
# All errors that a statement raises if the database cannot be used.
DRIVER_ERRORS: Final = (*CONNECTION_ERRORS, TimeoutError, asyncpg.PostgresError)
# Names for SQLSTATEs that lead to status 503 or 507, used in metrics and the log.
CAUSES: Final = {
    "25006": "read_only",
    "40001": "serialization_failure",
    "40P01": "deadlock",
    "53100": "disk_full",
    "53200": "out_of_memory",
    "53300": "too_many_connections",
    "55P03": "lock_timeout",
    "57014": "statement_timeout",
    "57P01": "database_shutdown",
    "57P02": "database_crash",
    "57P03": "database_starting",
}
# Causes that have no SQLSTATE.
OTHER_CAUSES: Final = (
    "connection_lost",
    "database",
    "database_timeout",
    "other",
    "outcome_unknown",
    "pool_exhausted",
    "site_moving",
    "slow_write",
    "storage",
    "too_many_requests",
)


@dataclass(frozen=True, slots=True)
class Problem:
    detail: str
    summary: Message


class DatabaseUnavailable(ApiError):
    """The database is unusable until an operator follows the instructions in `detail`."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(503, "rest_unavailable", problem.summary, headers={"Retry-After": "1"})
        self.detail = problem.detail


class NotOwner(DatabaseUnavailable):
    """Raised if a command needs a table's rows for all sites, but its login does not own the table."""

    def __init__(self, table: str) -> None:
        detail = (
            "This command needs the login that owns the tables. Set `KALENDS_MIGRATION_URL`, or, with cells, "
            "`KALENDS_CELL_OWNERS`."
            if table == "sites"
            else "This command needs the login that owns the directory. Set `KALENDS_DIRECTORY_URL` to it."
        )
        super().__init__(Problem(detail, NO_RIGHTS.summary))


@dataclass(frozen=True, slots=True)
class Target:
    address: str
    database: str
    user: str

    @classmethod
    def from_url(cls, url: str) -> Self:
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        host = parts.hostname or query.get("host", [""])[0] or os.environ.get("PGHOST") or "localhost"
        port = parts.port or query.get("port", [""])[0] or os.environ.get("PGPORT") or 5432
        user = unquote(parts.username or "") or query.get("user", [""])[0] or os.environ.get("PGUSER")
        user = user or getpass.getuser()
        database = unquote(parts.path.lstrip("/")) or query.get("dbname", [""])[0] or os.environ.get("PGDATABASE")
        return cls(f"{unquote(host)}:{port}", database or user, user)


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    number: str  # the last migration; "" if there is no schema
    oldest_code: str = ""  # the oldest compatible code (decision 0027); "" if not declared

    def supports(self, code: str) -> bool:
        """Return whether code whose newest migration is `code` is compatible with the schema."""
        return self.number == code or (self.number > code and bool(self.oldest_code) and self.oldest_code <= code)


READ_VERSION: Final = """
    SELECT v.version_num, c.oldest_code, pg_is_in_recovery() AS is_standby
    FROM alembic_version v LEFT JOIN schema_compatibility c ON c.revision = v.version_num
"""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a request got status 503 or 507: a short name, the SQLSTATE if PostgreSQL reported one, and a sentence."""

    name: str
    sqlstate: str
    detail: str


def find_cause(error: ApiError) -> Cause:
    sources = [source for source in iterate_causes(error) if source is not error]
    source = next((source for source in sources if getattr(source, "sqlstate", None)), None)
    state: str = getattr(source, "sqlstate", "")
    detail = getattr(error, "detail", "") or str(source or next(iter(sources), error)) or error.text
    if isinstance(error, DatabaseUnavailable):
        return Cause("database", state, detail)
    by_state = CAUSES.get(state) or ("connection_lost" if state.startswith("08") else "")
    return Cause(error.cause or by_state or _name_driver_error(sources), state, detail)


def _name_driver_error(sources: Sequence[BaseException]) -> str:
    """Name a failure reported by the driver rather than PostgreSQL."""
    if any(isinstance(source, TimeoutError) for source in sources):
        return "database_timeout"
    return "connection_lost" if any(isinstance(source, DRIVER_ERRORS) for source in sources) else "other"


UNMIGRATED: Final = Problem(
    "The database has no Kalends schema. Run `kalends migrate`.",
    Message("The database has no Kalends schema; run `kalends migrate`."),
)
NO_RIGHTS: Final = Problem(
    "The database login lacks the role kalends_app. Run `kalends migrate` as the owner of the database.",
    Message("The database denies this server the rights it needs; run `kalends migrate`."),
)
NOT_SUPERUSER: Final = Problem(
    "The first migration creates extensions and a role. Run it once as a superuser: set `KALENDS_MIGRATION_URL`.",
    Message("The database denies this server the rights it needs; run `kalends migrate`."),
)


def explain(error: BaseException, url: str) -> Problem | None:
    """Return why connecting to the URL or running the first statement failed; None if the error has another cause."""
    target = Target.from_url(url)
    for cause in iterate_causes(error):
        state = getattr(cause, "sqlstate", None)
        if state == "3D000":
            return Problem(
                f"The database {target.database} does not exist. Create it with `createdb {target.database}`.",
                Message("The database of this server does not exist."),
            )
        if state in ("28P01", "28000"):
            return Problem(
                f"PostgreSQL rejected the user {target.user}. Check `KALENDS_DATABASE_URL`.",
                Message("The database rejects the login of this server."),
            )
        if isinstance(cause, PermissionError) and cause.filename:
            # The driver looks for certificates in the HOME directory, which may belong to another user.
            return Problem(
                f"This user may not read {cause.filename}. Set `HOME` to its own home directory.",
                Message("The database is unreachable."),
            )
        if state is None and isinstance(cause, CONNECTION_ERRORS):
            return Problem(
                f"Cannot reach PostgreSQL at {target.address}. Is it running? Check `KALENDS_DATABASE_URL`.",
                Message("The database is unreachable."),
            )
    return None


def no_response(url: str) -> Problem:
    """Describe a server that accepts connections too slowly or not at all."""
    return Problem(
        f"PostgreSQL at {Target.from_url(url).address} does not respond. Is it overloaded, or behind a firewall?",
        Message("The database is not responding."),
    )


def explain_migration(error: BaseException) -> Problem | None:
    """Return why a migration failed: missing rights, a locked table or a missing extension; None for other causes."""
    for cause in iterate_causes(error):
        state = getattr(cause, "sqlstate", None)
        if state == "42501":
            return NOT_SUPERUSER
        if state == "55P03":
            return Problem(
                "A table is in use by another transaction. Run `kalends migrate` again.", UNMIGRATED.summary
            )
        if state in EXTENSION_STATES and "extension" in str(cause):
            return Problem(
                "PostGIS is not installed on the database server (Debian: `postgresql-15-postgis-3`, with the major "
                f"version of the server). PostgreSQL says: {str(cause).splitlines()[0]}",
                UNMIGRATED.summary,
            )
    return None


def compare_schema(found: SchemaVersion, wanted: str) -> Problem | None:
    """Return what to do if the code is incompatible with the schema; None if it is compatible."""
    if found.supports(wanted):
        return None
    if not found.number:
        return UNMIGRATED
    if found.number < wanted:
        return Problem(
            f"The schema is {found.number}, this version needs {wanted}. Run `kalends migrate`.",
            _describe_older(found, wanted),
        )
    return Problem(
        f"The schema is {found.number}, this version needs {wanted}. Upgrade Kalends.",
        Message("Schema version is {found}, expected {wanted}; upgrade Kalends.", found=found.number, wanted=wanted),
    )


def explain_replaced(found: SchemaVersion, first: str, last_replaced: str) -> Problem:
    """Explain how to upgrade a schema older than the baseline, which replaced all earlier migrations."""
    if found.number == last_replaced:
        detail = (
            f"The schema is {found.number}. Version {first} has the same schema under a new number. "
            "Run the statement in CHANGELOG.md that sets it, then `kalends migrate` again."
        )
    else:
        detail = (
            f"The schema is {found.number}, which this version cannot upgrade. Upgrade to {last_replaced} first: "
            "CHANGELOG.md explains how."
        )
    return Problem(detail, _describe_older(found, first))


def _describe_older(found: SchemaVersion, wanted: str) -> Message:
    return Message(
        "Schema version is {found}, expected {wanted}; run `kalends migrate`.", found=found.number, wanted=wanted
    )


def describe_newer(found: SchemaVersion, code: str) -> str:
    """Describe a newer, compatible schema; "" if the versions match."""
    if found.number == code:
        return ""
    return f"{found.number}, newer than this version ({code}) and compatible with it"


@asynccontextmanager
async def connect_owner(url: str, table: str = "sites") -> AsyncIterator[Any]:
    """Open a connection; raise NotOwner unless its login owns `table`, a Kalends or directory table.

    A missing table passes this check; the caller's first statement then fails.
    """
    async with connect(url) as connection:
        is_owner: bool | None = await connection.fetchval(
            "SELECT pg_has_role(current_user, relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass($1)", table
        )
        if is_owner is False:
            raise NotOwner(table)
        yield connection


@asynccontextmanager
async def connect(url: str, *, prepared: bool = True) -> AsyncIterator[Any]:
    """Open a connection outside the pools; raise DatabaseUnavailable with the reason if that fails.

    `prepared` allows prepared statements, which a pooler in transaction mode does not support.
    """
    try:
        connection = await asyncpg.connect(url, timeout=CONNECT_TIMEOUT, statement_cache_size=100 if prepared else 0)
    except DRIVER_ERRORS as error:
        raise DatabaseUnavailable(explain(error, url) or _quote(error, url)) from error
    try:
        yield connection
    finally:
        # A graceful close would wait for the server, but the server may be gone behind a proxy that keeps connections
        # open.
        connection.terminate()


def _quote(error: BaseException, url: str) -> Problem:
    """Quote PostgreSQL's message for an unexplained problem."""
    detail = f"PostgreSQL at {Target.from_url(url).address} says: {str(error) or type(error).__name__}"
    return Problem(detail, Message("The database is not responding."))


async def read_schema_version(url: str) -> SchemaVersion:
    async with connect(url, prepared=False) as connection:
        try:
            return await fetch_version(connection)
        except asyncpg.InsufficientPrivilegeError as error:
            raise DatabaseUnavailable(NO_RIGHTS) from error
        except DRIVER_ERRORS as error:
            raise DatabaseUnavailable(_quote(error, url)) from error


async def fetch_version(connection: Any) -> SchemaVersion:
    # Older schemas have no `schema_compatibility` table.
    for query in (READ_VERSION, "SELECT version_num, NULL AS oldest_code FROM alembic_version"):
        try:
            row = await connection.fetchrow(query, timeout=CONNECT_TIMEOUT)
            return to_schema_version(row)
        except asyncpg.UndefinedTableError:
            continue
    return SchemaVersion("")


def to_schema_version(row: Any) -> SchemaVersion:
    return SchemaVersion(row["version_num"], row["oldest_code"] or "") if row else SchemaVersion("")


def iterate_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes. SQLAlchemy stores the driver's error in `orig`."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        cause = waiting.pop(0)
        if cause is not None and id(cause) not in seen:
            seen.add(id(cause))
            yield cause
            waiting += [getattr(cause, "orig", None), cause.__cause__, cause.__context__]


# The server does not accept writes, for example because it is a demoted primary.
READ_ONLY_STATE: Final = "25006"
# API errors by SQLSTATE. Unlisted states are bugs and become status 500.
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
    "08P01": errors.unavailable,  # connection pooler timeout
}
# The connection broke or PostgreSQL closed it, so a commit's outcome is unknown.
BROKEN_CONNECTION_STATES: Final = ("08", "57P0")


def translate_error(error: asyncpg.PostgresError) -> Exception:
    """Return the API error for a PostgreSQL error, or the error itself if it indicates a bug."""
    state = error.sqlstate or ""
    factory = SQLSTATES.get(state) or (errors.unavailable if state.startswith("08") else None)
    return factory() if factory else error
