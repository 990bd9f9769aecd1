"""Database state for metrics, `kalends check` and `kalends status`."""

import asyncio
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import asyncpg

from kalends.core.times import utc_now
from kalends.store import problems
from kalends.store.database import LOG_POSITION
from kalends.store.problems import DRIVER_ERRORS, SchemaVersion, connect

# Search indexes need functions marked LEAKPROOF (decision 0004). A dump does not contain these marks, so they are
# missing after a restore.

# Returns an ALTER FUNCTION statement for each search function without the mark.
FIND_MISSING: Final = """
    SELECT 'ALTER FUNCTION ' || p.oid::regprocedure || ' LEAKPROOF;' AS statement
    FROM unnest(ARRAY[
        to_regprocedure('pg_catalog.textlike(text, text)'),
        to_regprocedure('pg_catalog.textnlike(text, text)'),
        to_regprocedure('pg_catalog.arrayoverlap(anyarray, anyarray)'),
        to_regprocedure('st_dwithin(geography, geography, double precision, boolean)'),
        to_regprocedure('geography_overlaps(geography, geography)')]) AS f (oid)
    JOIN pg_proc p ON p.oid = f.oid
    WHERE NOT p.proleakproof
    ORDER BY 1
"""


READ_HEARTBEAT: Final = "SELECT extract(epoch FROM now() - worker_heartbeat())::float8"
COUNT_OPEN_SITES: Final = "SELECT open_sites, nameless_sites FROM count_open_sites()"
MEASURE_WEBHOOKS: Final = "SELECT active, paused, disabled, oldest_seconds FROM measure_webhooks()"
EXTENSIONS: Final = ("postgis", "pg_trgm", "unaccent", "btree_gist", "btree_gin")
READ_FACTS: Final = """
    SELECT current_setting('server_version_num')::int AS version_number, current_setting('server_version') AS version,
        current_database() AS database, current_user AS login, pg_is_in_recovery() AS is_standby,
        ARRAY(SELECT n FROM unnest($1::text[]) n WHERE n NOT IN (SELECT extname FROM pg_extension))
            AS missing_extensions,
        EXISTS (SELECT FROM pg_roles WHERE rolname = 'kalends_app'
            AND pg_has_role(current_user, oid, 'MEMBER')) AS has_role,
        current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
            AS max_connections,
        (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS connections,
        current_setting('fsync')::bool AS has_fsync, current_setting('synchronous_commit') AS synchronous_commit,
        pg_database_size(current_database()) AS size
"""


@dataclass(frozen=True, slots=True)
class DatabaseState:
    schema: SchemaVersion
    missing_marks: tuple[str, ...]
    heartbeat_age: float | None
    open_sites: int = 0  # sites with a public form or with followers
    nameless_sites: int = 0  # those of them without a base URL
    webhooks: "WebhookState | None" = None  # None in an earlier schema


@dataclass(frozen=True, slots=True)
class WebhookState:
    """Endpoints of all sites, and the age of the oldest change that an active one has yet to receive."""

    active: int
    paused: int
    disabled: int
    oldest_seconds: float | None


@dataclass(frozen=True, slots=True)
class ServerFacts:
    version_number: int
    version: str
    database: str
    login: str
    is_standby: bool
    missing_extensions: tuple[str, ...]
    has_role: bool  # whether the login is a member of kalends_app
    max_connections: int  # excluding connections reserved for superusers
    connections: int
    has_fsync: bool
    synchronous_commit: str
    size: int  # database size in bytes
    seconds_ahead: float  # relative to this machine; negative if the database is behind


async def read_state(database_url: str) -> DatabaseState:
    async with connect(database_url, prepared=False) as connection:
        schema = await problems.fetch_version(connection)
        if not schema.number:
            return DatabaseState(schema, (), None)
        marks = await connection.fetch(FIND_MISSING)
        age = await connection.fetchval(READ_HEARTBEAT)
        # Earlier schemas lack these functions.
        counts = await connection.fetchrow(COUNT_OPEN_SITES) if schema.number >= "0038" else (0, 0)
        webhooks = WebhookState(*await connection.fetchrow(MEASURE_WEBHOOKS)) if schema.number >= "0039" else None
        return DatabaseState(schema, tuple(row["statement"] for row in marks), age, counts[0], counts[1], webhooks)


async def read_facts(database_url: str) -> ServerFacts:
    async with connect(database_url, prepared=False) as connection:
        row = await connection.fetchrow(READ_FACTS, list(EXTENSIONS))
        seconds_ahead = await _measure_time(connection)
    return ServerFacts(**{**row, "missing_extensions": tuple(row["missing_extensions"])}, seconds_ahead=seconds_ahead)


@dataclass(frozen=True, slots=True)
class ReplicaState:
    is_standby: bool
    seconds_behind: float | None  # None if the replica did not catch up in time
    bytes_behind: int


async def read_replica(primary_url: str, replica_url: str, max_seconds: float) -> ReplicaState:
    """Measure how long a replica takes to catch up with the primary, up to `max_seconds`."""
    query = f"SELECT {LOG_POSITION}"
    async with connect(primary_url, prepared=False) as primary, connect(replica_url, prepared=False) as replica:
        is_standby: bool = await replica.fetchval("SELECT pg_is_in_recovery()")
        started = time.monotonic()
        target: int = await primary.fetchval(query)
        while (position := await replica.fetchval(query)) < target:
            if time.monotonic() - started > max_seconds:
                return ReplicaState(is_standby, None, target - position)
            await asyncio.sleep(0.1)
        return ReplicaState(is_standby, time.monotonic() - started, 0)


async def _measure_time(connection: Any) -> float:
    """Return how many seconds the database's time is ahead, assuming a symmetric round trip."""
    sent = time.monotonic()
    theirs: datetime = await connection.fetchval("SELECT clock_timestamp()")
    return (theirs - utc_now()).total_seconds() + (time.monotonic() - sent) / 2


async def find_excess_rights(database_url: str) -> str:
    """Describe the login's rights beyond the role `kalends_app`; "" if it has none or the database is unavailable."""
    try:
        connection = await asyncpg.connect(database_url, timeout=2, command_timeout=2)
    except DRIVER_ERRORS:
        return ""
    try:
        row = await connection.fetchrow(
            """
            SELECT r.rolsuper, EXISTS (
                SELECT FROM pg_tables t
                WHERE t.tablename = 'sites' AND pg_has_role(current_user, t.tableowner, 'USAGE')) AS owner
            FROM pg_roles r WHERE r.rolname = current_user
            """
        )
    except DRIVER_ERRORS:
        return ""
    finally:
        connection.terminate()
    if row is None:
        return ""
    if row["rolsuper"]:
        return "is a superuser"
    return "owns the tables" if row["owner"] else ""
