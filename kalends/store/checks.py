"""The state of the database, for metrics, `kalends check` and `kalends status`."""

import asyncio
import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from kalends.core.clock import utc_now
from kalends.store import leakproof, problems
from kalends.store.database import LOG_POSITION
from kalends.store.problems import SchemaVersion, connect

READ_HEARTBEAT: Final = "SELECT extract(epoch FROM now() - worker_heartbeat())::float8"
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
    missing_marks: tuple[str, ...]  # statements that set the missing LEAKPROOF marks
    heartbeat_age: float | None  # seconds since the last heartbeat of a worker


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What a login sees of its PostgreSQL server and database."""

    version_number: int
    version: str
    database: str
    login: str
    is_standby: bool
    missing_extensions: tuple[str, ...]
    has_role: bool  # whether the login is a member of kalends_app
    max_connections: int  # without those that are reserved for superusers
    connections: int
    has_fsync: bool
    synchronous_commit: str
    size: int  # of the database, in bytes
    seconds_ahead: float  # of the time of this machine; negative if the database is behind


async def read_state(database_url: str) -> DatabaseState:
    """Read the state with the login of the server or of the owner."""
    async with connect(database_url, prepared=False) as connection:
        schema = await problems.fetch_version(connection)
        if not schema.number:
            return DatabaseState(schema, (), None)
        marks = await connection.fetch(leakproof.FIND_MISSING)
        age = await connection.fetchval(READ_HEARTBEAT)
        return DatabaseState(schema, tuple(row["statement"] for row in marks), age)


async def read_facts(database_url: str) -> ServerFacts:
    """Read facts that do not depend on the schema."""
    async with connect(database_url, prepared=False) as connection:
        row = await connection.fetchrow(READ_FACTS, list(EXTENSIONS))
        seconds_ahead = await _measure_time(connection)
    return ServerFacts(**{**row, "missing_extensions": tuple(row["missing_extensions"])}, seconds_ahead=seconds_ahead)


@dataclass(frozen=True, slots=True)
class ReplicaState:
    is_standby: bool
    seconds_behind: float | None  # until it had what the primary had written; None if that took longer than allowed
    bytes_behind: int


async def read_replica(primary_url: str, replica_url: str, max_seconds: float) -> ReplicaState:
    """Wait until a replica has what the primary has written up to now, for at most `max_seconds`."""
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
    """Return how far the time of the database is ahead; half of the round trip belongs to each direction."""
    sent = time.monotonic()
    theirs: datetime = await connection.fetchval("SELECT clock_timestamp()")
    return (theirs - utc_now()).total_seconds() + (time.monotonic() - sent) / 2
