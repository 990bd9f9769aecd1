"""The state of a migrated database, for metrics and `kalends check`."""

from dataclasses import dataclass
from typing import Final

import asyncpg

from kalends.store import leakproof
from kalends.store.problems import connect

READ_SCHEMA: Final = "SELECT version_num FROM alembic_version"
READ_HEARTBEAT: Final = "SELECT extract(epoch FROM now() - worker_heartbeat())::float8"


@dataclass(frozen=True, slots=True)
class DatabaseState:
    schema: str  # its version; empty if there is none
    missing_marks: tuple[str, ...]  # statements that set the missing LEAKPROOF marks
    heartbeat_age: float | None  # seconds since the last heartbeat of a worker


async def read_state(database_url: str) -> DatabaseState:
    """Read the state with the login of the server or of the owner."""
    connection = await connect(database_url, prepared=False)
    try:
        schema = await connection.fetchval(READ_SCHEMA)
        marks = await connection.fetch(leakproof.FIND_MISSING)
        age = await connection.fetchval(READ_HEARTBEAT)
        return DatabaseState(str(schema or ""), tuple(row["statement"] for row in marks), age)
    except asyncpg.UndefinedTableError:
        return DatabaseState("", (), None)
    finally:
        await connection.close()
