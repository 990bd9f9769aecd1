"""Background jobs."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from kalends.cli.cells import CellOption, load_cell
from kalends.cli.errors import fail
from kalends.cli.lists import JsonOption, LimitOption, print_list
from kalends.core.clock import utc_now

if TYPE_CHECKING:
    from kalends.settings import Settings
    from kalends.store.job_queue import QueueSummary

job = typer.Typer(no_args_is_help=True, help="Inspect and retry background jobs.")


@job.command("list")
def list_jobs(
    status: Annotated[str, typer.Option(help="Only jobs with this status: todo, doing or failed.")] = "",
    task: Annotated[str, typer.Option(help="Only jobs of this task, such as purge.")] = "",
    limit: LimitOption = None,
    as_json: JsonOption = False,
    cell: CellOption = "",
) -> None:
    """List waiting, running and failed jobs; the last line says whether a worker is running."""
    settings = load_cell(cell)
    from kalends.store import job_queue

    if status and status not in job_queue.STATUSES:
        fail("--status must be todo, doing or failed.")
    url = settings.queue_url or settings.database_url
    rows, summary = asyncio.run(job_queue.list_jobs(url, status, task, limit and limit + 1))
    print_list(
        rows,
        lambda row: [
            row.id,
            row.status,
            row.task_name,
            f"{row.scheduled_at:%Y-%m-%d %H:%M:%S}" if row.scheduled_at else "-",
            f"attempts {row.attempts}",
            row.arguments,
        ],
        as_json=as_json,
        limit=limit,
    )
    if not (status or task or as_json):
        typer.echo(summarize(summary))


@job.command("retry")
def retry_job(
    job_id: Annotated[int, typer.Argument(help="ID of the job, as listed by job list.")], cell: CellOption = ""
) -> None:
    """Retry a failed or stalled job immediately."""
    asyncio.run(_retry_job(load_cell(cell), job_id))
    typer.echo(f"Job {job_id} runs again.")


def summarize(summary: "QueueSummary") -> str:
    """Return a line such as "12 waiting, oldest 31 min; 2 failed; no worker seen"."""
    oldest = "" if summary.oldest_seconds is None else f", oldest {format_age(summary.oldest_seconds)}"
    parts = [f"{summary.waiting} waiting{oldest}"]
    parts += [f"{summary.scheduled} scheduled"] if summary.scheduled else []
    parts += [f"{summary.failed} failed"] if summary.failed else []
    age = summary.heartbeat_seconds
    parts.append("no worker seen" if age is None else f"worker seen {format_age(age)} ago")
    return "; ".join(parts)


def format_age(seconds: float) -> str:
    """Return a duration in its largest unit, such as "31 min"."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


async def _retry_job(settings: "Settings", job_id: int) -> None:
    from procrastinate.exceptions import ConnectorException

    from kalends.worker import open_queue

    async with open_queue(settings) as (queue, _):
        try:
            await queue.job_manager.retry_job_by_id_async(job_id, retry_at=utc_now())
        except ConnectorException:
            fail(f"There is no failed or stalled job {job_id}.")
