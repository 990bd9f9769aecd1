"""Background jobs."""

from typing import Annotated, Any

import typer

from kalends.cli.runtime import fail, load_settings, run_command
from kalends.core.clock import utc_now

job = typer.Typer(no_args_is_help=True, help="Inspect and retry background jobs.")


@job.command("list")
def list_jobs(
    status: Annotated[str, typer.Option(help="Only jobs with this status: todo, doing or failed.")] = "",
) -> None:
    """List waiting, running and failed jobs."""
    for row in run_command(_list_jobs(status)):
        when = f"{row.scheduled_at:%Y-%m-%d %H:%M:%S}" if row.scheduled_at else "-"
        attempts = f"attempts {row.attempts}"
        typer.echo(f"{row.id:>8}  {row.status:<8} {row.task_name:<16} {when:<19}  {attempts}  {row.task_kwargs}")


@job.command("retry")
def retry_job(job_id: Annotated[int, typer.Argument(help="ID of the job, as listed by job list.")]) -> None:
    """Retry a failed or stalled job immediately."""
    run_command(_retry_job(job_id))


async def _list_jobs(status: str) -> list[Any]:
    from kalends.worker import open_queue

    async with open_queue(load_settings()) as queue:
        jobs = await queue.job_manager.list_jobs_async(status=status or None)
    return [entry for entry in jobs if status or entry.status in ("todo", "doing", "failed")]


async def _retry_job(job_id: int) -> None:
    from procrastinate.exceptions import ConnectorException

    from kalends.worker import open_queue

    async with open_queue(load_settings()) as queue:
        try:
            await queue.job_manager.retry_job_by_id_async(job_id, retry_at=utc_now())
        except ConnectorException:
            fail(f"There is no failed or stalled job {job_id}.")
