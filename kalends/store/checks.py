"""The state of a migrated database, for `kalends check`."""

from dataclasses import dataclass

from kalends.store import leakproof
from kalends.store.problems import connect


@dataclass(frozen=True, slots=True)
class DatabaseState:
    missing_marks: tuple[str, ...]  # statements that set the missing LEAKPROOF marks
    heartbeat_age: float | None  # seconds since the last heartbeat of a worker


async def read_state(database_url: str) -> DatabaseState:
    """Read the state as the owner of the tables."""
    connection = await connect(database_url)
    try:
        marks = await connection.fetch(leakproof.FIND_MISSING)
        age = await connection.fetchval("SELECT extract(epoch FROM now() - worker_heartbeat())::float8")
        return DatabaseState(tuple(row["statement"] for row in marks), age)
    finally:
        await connection.close()
