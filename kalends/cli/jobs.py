"""Background jobs."""

from typing import Annotated, Any

import typer

from kalends.cli.runtime import fail, load_settings, run_command
from kalends.core.clock import utc_now

job = typer.Typer(help="Background jobs.")


@job.callback(invoke_without_command=True)
def list_jobs(
    context: typer.Context,
    status: Annotated[str, typer.Option(help="todo, doing or failed; none: all three.")] = "",
) -> None:
    """Show jobs: waiting, running and failed ones."""
    if context.invoked_subcommand:
        return
    for row in run_command(_list_jobs(status)):
        when = f"{row.scheduled_at:%Y-%m-%d %H:%M:%S}" if row.scheduled_at else "-"
        attempts = f"tries {row.attempts}"
        typer.echo(f"{row.id:>8}  {row.status:<8} {row.task_name:<16} {when:<19}  {attempts}  {row.task_kwargs}")


@job.command("retry")
def retry_job(job_id: int) -> None:
    """Run a job again, now."""
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
            fail(f"There is no job {job_id} that failed or hangs.")
