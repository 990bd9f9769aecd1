"""The work of the worker in the process of a test: the jobs of imports that wait in the queue."""

import orjson

from kalends.adapters.import_worker import ImportWorker
from kalends.operations.imports import jobs
from kalends.operations.imports.fetching import make_fetcher
from kalends.operations.imports.inputs import Tools
from kalends.store.database import Database, Options
from tests.api.running_app import RunningApp

WORK = {"plan_import": jobs.plan_run, "apply_import": jobs.apply_run}


def run_import_jobs(app: RunningApp) -> list[str]:
    """Run the waiting jobs of imports, and return their names."""
    rows = app.sql(
        "DELETE FROM procrastinate_jobs WHERE task_name = ANY($1) RETURNING id, task_name, args", list(WORK)
    )
    waiting = sorted(rows, key=lambda row: row["id"])

    async def run() -> None:
        database = await Database.open(Options(url=app.database_url))
        tools = Tools(ImportWorker(), make_fetcher([]))
        try:
            for row in waiting:
                arguments = orjson.loads(row["args"])
                await WORK[row["task_name"]](database, tools, arguments["site_id"], arguments["run_id"])
        finally:
            await database.close()

    app.run(run())
    return [row["task_name"] for row in waiting]
