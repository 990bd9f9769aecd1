"""Background jobs."""

from typing import Annotated, Any

import typer

from kalends.cli.errors import fail
from kalends.cli.runtime import load_settings, run_command
from kalends.core.clock import utc_now

job = typer.Typer(no_args_is_help=True, help="Inspect and retry background jobs.")

STATUSES = ("todo", "doing", "failed")
# A job without a time was due when it was enqueued, which is its first event.
SUMMARY = """
    SELECT count(*) FILTER (WHERE is_due) AS waiting,
        count(*) FILTER (WHERE status = 'todo' AND NOT is_due) AS scheduled,
        count(*) FILTER (WHERE status = 'failed') AS failed,
        extract(epoch FROM now() - min(due_at) FILTER (WHERE is_due))::float8 AS oldest,
        (SELECT extract(epoch FROM now() - max(last_heartbeat))::float8 FROM procrastinate_workers) AS heartbeat
    FROM (
        SELECT status, due_at, status = 'todo' AND due_at <= now() AS is_due FROM (
            SELECT j.status, coalesce(j.scheduled_at, (
                SELECT min(e.at) FROM procrastinate_events e WHERE e.job_id = j.id), now()) AS due_at
            FROM procrastinate_jobs j WHERE j.status IN ('todo', 'failed')) d) s
"""


@job.command("list")
def list_jobs(
    status: Annotated[str, typer.Option(help="Only jobs with this status: todo, doing or failed.")] = "",
) -> None:
    """List waiting, running and failed jobs, and whether a worker is running."""
    if status and status not in STATUSES:
        fail(f"--status must be {', '.join(STATUSES[:-1])} or {STATUSES[-1]}.")
    rows, summary = run_command(_list_jobs(status))
    for row in rows:
        when = f"{row.scheduled_at:%Y-%m-%d %H:%M:%S}" if row.scheduled_at else "-"
        attempts = f"attempts {row.attempts}"
        typer.echo(f"{row.id:>8}  {row.status:<8} {row.task_name:<16} {when:<19}  {attempts}  {row.task_kwargs}")
    if not status:
        typer.echo(summarize(summary))


@job.command("retry")
def retry_job(job_id: Annotated[int, typer.Argument(help="ID of the job, as listed by job list.")]) -> None:
    """Retry a failed or stalled job immediately."""
    run_command(_retry_job(job_id))
    typer.echo(f"Job {job_id} runs again.")


def summarize(counts: dict[str, Any]) -> str:
    """Return a line such as "12 waiting, oldest 31 min; 2 failed; no worker seen"."""
    oldest = f", oldest {format_age(counts['oldest'])}" if counts["waiting"] else ""
    parts = [f"{counts['waiting']} waiting{oldest}"]
    parts += [f"{counts[name]} {name}" for name in ("scheduled", "failed") if counts[name]]
    age = counts["heartbeat"]
    parts.append("no worker seen" if age is None else f"worker seen {format_age(age)} ago")
    return "; ".join(parts)


def format_age(seconds: float) -> str:
    """Return a duration in its largest unit, such as "31 min"."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


async def _list_jobs(status: str) -> tuple[list[Any], dict[str, Any]]:
    from kalends.worker import open_queue

    async with open_queue(load_settings()) as queue:
        jobs = await queue.job_manager.list_jobs_async(status=status or None)
        summary = await queue.connector.execute_query_one_async(SUMMARY)
    return [entry for entry in jobs if status or entry.status in STATUSES], summary


async def _retry_job(job_id: int) -> None:
    from procrastinate.exceptions import ConnectorException

    from kalends.worker import open_queue

    async with open_queue(load_settings()) as queue:
        try:
            await queue.job_manager.retry_job_by_id_async(job_id, retry_at=utc_now())
        except ConnectorException:
            fail(f"There is no failed or stalled job {job_id}.")
