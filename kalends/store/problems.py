"""Why the database cannot be used: one explanation per cause, for commands, the log, /readyz and pages.

The detail is for operators and contains addresses and names, but never a password. The summary is for everybody.
"""

import getpass
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import parse_qs, unquote, urlsplit

import asyncpg

from kalends.core.errors import ApiError
from kalends.core.messages import Message

# A table, function, column or schema is missing.
SCHEMA_STATES: Final = ("42P01", "42883", "42703", "3F000")
# The role kalends_app does not exist, or the login is not a member of it.
ROLE_STATES: Final = ("22023", "42501")
# An extension is not available on the server, or its files are missing.
EXTENSION_STATES: Final = ("0A000", "58P01")
CONNECT_TIMEOUT: Final = 5.0
# Everything that a statement outside of the pools raises if the database cannot be used.
DRIVER_ERRORS: Final = (
    OSError,
    TimeoutError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
# Names for the SQLSTATEs of responses with status 503 and 507, for metrics and the log.
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
    """The database cannot be used until an operator does something; `detail` says what."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(503, "rest_unavailable", problem.summary, headers={"Retry-After": "1"})
        self.detail = problem.detail


class NotOwner(DatabaseUnavailable):
    """A login is not the owner of a table whose rows of all sites a command needs."""

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
    """The server, database and user that a connection URL names."""

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
    """The version of the schema of a database."""

    number: str  # the last migration, or "" without a schema
    oldest_code: str = ""  # the oldest code that works on it (decision 0027), or "" if this is not declared

    def supports(self, code: str) -> bool:
        """Return whether the code whose newest migration is `code` works on this schema."""
        return self.number == code or (self.number > code and bool(self.oldest_code) and self.oldest_code <= code)


# The version of the schema and its declaration.
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
    """Return the cause of a response with status 503 or 507."""
    sources = [source for source in iterate_causes(error) if source is not error]
    source = next((source for source in sources if getattr(source, "sqlstate", None)), None)
    state: str = getattr(source, "sqlstate", "")
    detail = getattr(error, "detail", "") or str(source or next(iter(sources), error)) or error.text
    if isinstance(error, DatabaseUnavailable):
        return Cause("database", state, detail)
    by_state = CAUSES.get(state) or ("connection_lost" if state.startswith("08") else "")
    return Cause(error.cause or by_state or _name_driver_error(sources), state, detail)


def _name_driver_error(sources: Sequence[BaseException]) -> str:
    """Return the name of a failure that the driver has noticed, not PostgreSQL."""
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
    """Return why a connection to the URL or its first statement failed; None if the error has another cause."""
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
            # The driver looks for certificates in HOME, which may belong to another user.
            return Problem(
                f"This user may not read {cause.filename}. Set `HOME` to its own home directory.",
                Message("The database is unreachable."),
            )
        if state is None and isinstance(cause, OSError | asyncpg.InterfaceError | asyncpg.InternalClientError):
            return Problem(
                f"Cannot reach PostgreSQL at {target.address}. Is it running? Check `KALENDS_DATABASE_URL`.",
                Message("The database is unreachable."),
            )
    return None


def no_response(url: str) -> Problem:
    """Return the problem of a server that accepts connections too slowly, or not at all."""
    return Problem(
        f"PostgreSQL at {Target.from_url(url).address} does not respond. Is it overloaded, or behind a firewall?",
        Message("The database is not responding."),
    )


def explain_migration(error: BaseException) -> Problem | None:
    """Return why a migration failed, if its login or the server lacks something."""
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
    """Return what to do if the code that wants a schema cannot work on the one that was found."""
    if found.supports(wanted):
        return None
    if not found.number:
        return UNMIGRATED
    if found.number < wanted:
        return Problem(
            f"The schema is {found.number}, this version needs {wanted}. Run `kalends migrate`.",
            Message(
                "Schema version is {found}, expected {wanted}; run `kalends migrate`.",
                found=found.number,
                wanted=wanted,
            ),
        )
    return Problem(
        f"The schema is {found.number}, this version needs {wanted}. Upgrade Kalends.",
        Message("Schema version is {found}, expected {wanted}; upgrade Kalends.", found=found.number, wanted=wanted),
    )


def describe_newer(found: SchemaVersion, code: str) -> str:
    """Return the part of a sentence for a schema that supports the code and is newer; "" for the code's own."""
    if found.number == code:
        return ""
    return f"{found.number}, newer than this version ({code}) and compatible with it"


@asynccontextmanager
async def connect_owner(url: str, table: str = "sites") -> AsyncIterator[Any]:
    """Open a connection for which the login has to own a table: of Kalends, or of the directory.

    Without a schema there is no table, and the first statement says so.
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
    """Open a connection outside of the pools; raise DatabaseUnavailable with the reason if that fails.

    `prepared`: whether statements may be prepared, which a pooler in transaction mode does not allow.
    """
    try:
        connection = await asyncpg.connect(url, timeout=CONNECT_TIMEOUT, statement_cache_size=100 if prepared else 0)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
        raise DatabaseUnavailable(explain(error, url) or _quote(error, url)) from error
    try:
        yield connection
    finally:
        # A proper close would wait for the server, which may be gone, or hidden by a proxy that keeps connections.
        connection.terminate()


def _quote(error: BaseException, url: str) -> Problem:
    """Return a problem that has no explanation, in the words of PostgreSQL."""
    detail = f"PostgreSQL at {Target.from_url(url).address} says: {str(error) or type(error).__name__}"
    return Problem(detail, Message("The database is not responding."))


async def read_schema_version(url: str) -> SchemaVersion:
    """Return the version of the schema."""
    async with connect(url, prepared=False) as connection:
        try:
            return await fetch_version(connection)
        except asyncpg.InsufficientPrivilegeError as error:
            raise DatabaseUnavailable(NO_RIGHTS) from error
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
            raise DatabaseUnavailable(_quote(error, url)) from error


async def fetch_version(connection: Any) -> SchemaVersion:
    # Schemas of versions without declarations have only the number.
    for query in (READ_VERSION, "SELECT version_num, NULL AS oldest_code FROM alembic_version"):
        try:
            row = await connection.fetchrow(query, timeout=CONNECT_TIMEOUT)
            return to_schema_version(row)
        except asyncpg.UndefinedTableError:
            continue
    return SchemaVersion("")


def to_schema_version(row: Any) -> SchemaVersion:
    """Return the version in a row of READ_VERSION; a row that is missing means that there is no schema."""
    return SchemaVersion(row["version_num"], row["oldest_code"] or "") if row else SchemaVersion("")


def iterate_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and the errors that led to it. SQLAlchemy has the error of the driver in `orig`."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        cause = waiting.pop(0)
        if cause is not None and id(cause) not in seen:
            seen.add(id(cause))
            yield cause
            waiting += [getattr(cause, "orig", None), cause.__cause__, cause.__context__]
