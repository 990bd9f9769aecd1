"""The work of the worker in the process of a test: the jobs of imports that wait in the queue."""

from kalends.imports import jobs as imports_jobs
from kalends.imports.adapters.import_worker import ImportWorker
from kalends.imports.operations.sources import Tools, make_fetcher
from kalends.store.database import Database
from tests.api.running_app import RunningApp

WORK = {"plan_import": imports_jobs.plan_run, "apply_import": imports_jobs.apply_run}


def run_import_jobs(app: RunningApp) -> list[str]:
    """Run the waiting jobs of imports, and return their names."""
    waiting = [job for job in app.jobs() if job["task_name"] in WORK]
    app.remove_jobs(waiting)

    async def run(database: Database) -> None:
        tools = Tools(ImportWorker(), make_fetcher([]))
        for job in waiting:
            await WORK[job["task_name"]](database, tools, app.site_id, job["args"]["run_id"])

    app.run_with_database(run)
    return [job["task_name"] for job in waiting]
