"""The jobs in the queue, as the operator sees them. The worker runs them through Procrastinate."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import orjson

from kalends.store.problems import connect

# The statuses of jobs that are not done.
STATUSES: Final = ("todo", "doing", "failed")
# A job without a time was due when it was enqueued, which is its first event.
SUMMARY: Final = """
    SELECT count(*) FILTER (WHERE is_due) AS waiting,
        count(*) FILTER (WHERE status = 'todo' AND NOT is_due) AS scheduled,
        count(*) FILTER (WHERE status = 'failed') AS failed,
        extract(epoch FROM now() - min(due_at) FILTER (WHERE is_due))::float8 AS oldest_seconds,
        (SELECT extract(epoch FROM now() - max(w.last_heartbeat))::float8 FROM procrastinate_workers w)
            AS heartbeat_seconds
    FROM (
        SELECT status, due_at, status = 'todo' AND due_at <= now() AS is_due FROM (
            SELECT j.status, coalesce(j.scheduled_at, (
                SELECT min(e.at) FROM procrastinate_events e WHERE e.job_id = j.id), now()) AS due_at
            FROM procrastinate_jobs j WHERE j.status IN ('todo', 'failed')) d) s
"""


# The statuses of jobs as operators see them: a job that is to be done waits if it is due.
SHOWN_STATUSES: Final = ("waiting", "scheduled", "running", "failed")
COUNT: Final = """
    SELECT task_name, CASE WHEN status = 'doing' THEN 'running' WHEN status = 'failed' THEN 'failed'
        WHEN scheduled_at > now() THEN 'scheduled' ELSE 'waiting' END AS shown_status, count(*) AS number
    FROM procrastinate_jobs WHERE status IN ('todo', 'doing', 'failed') GROUP BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class QueuedJob:
    id: int
    status: str
    task_name: str
    scheduled_at: datetime | None
    attempts: int
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class QueueSummary:
    waiting: int  # jobs that are due
    scheduled: int  # jobs that are due later
    failed: int
    oldest_seconds: float | None  # since the first of the waiting jobs was due
    heartbeat_seconds: float | None  # since the last heartbeat of a worker


async def list_jobs(
    queue_url: str, status: str = "", task: str = "", limit: int | None = None
) -> tuple[list[QueuedJob], QueueSummary]:
    """Return the jobs with a status, or all that are not done, of one task or of all, and a summary of the queue."""
    async with connect(queue_url) as connection:
        rows = await connection.fetch(
            """
            SELECT id, status::text, task_name, scheduled_at, attempts, args::text AS arguments
            FROM procrastinate_jobs WHERE status::text = ANY($1) AND $2 IN ('', task_name) ORDER BY id LIMIT $3
            """,
            [status] if status else list(STATUSES),
            task,
            limit,
        )
        summary = await connection.fetchrow(SUMMARY)
    jobs = [QueuedJob(**{**row, "arguments": orjson.loads(row["arguments"])}) for row in rows]
    return jobs, QueueSummary(**summary)


OLDEST: Final = """
    SELECT j.queue_name, extract(epoch FROM now() - min(coalesce(j.scheduled_at, (
        SELECT min(e.at) FROM procrastinate_events e WHERE e.job_id = j.id), now())))::float8 AS seconds
    FROM procrastinate_jobs j
    WHERE j.status = 'todo' AND (j.scheduled_at <= now() OR j.scheduled_at IS NULL) GROUP BY 1
"""


async def find_oldest(queue_url: str) -> dict[str, float]:
    """Return the seconds since the oldest waiting job was due, by queue; queues without waiting jobs are missing."""
    async with connect(queue_url, prepared=False) as connection:
        return {row["queue_name"]: row["seconds"] for row in await connection.fetch(OLDEST)}


async def count_jobs(queue_url: str) -> tuple[dict[tuple[str, str], int], QueueSummary]:
    """Return the number of jobs by task and shown status, and a summary of the queue."""
    async with connect(queue_url, prepared=False) as connection:
        rows = await connection.fetch(COUNT)
        summary = await connection.fetchrow(SUMMARY)
    return {(row["task_name"], row["shown_status"]): row["number"] for row in rows}, QueueSummary(**summary)
