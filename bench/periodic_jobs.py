"""The statements of the periodic jobs of the worker, and the blocks of tables and indexes that they read."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import asyncpg
from procrastinate import App

from kalends.bootstrap import database_options
from kalends.settings import Settings
from kalends.store.database import Database
from kalends.worker import create_queue, register_tasks


@dataclass
class JobWork:
    """What one run of a job does. Blocks are those that its queries read, from memory or from disk."""

    statements: list[str] = field(default_factory=list[str])
    blocks: int = 0


class _StatementLog:
    """Collects the statements of the application (`StatementTracer`)."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, tuple[Any, ...]]] = []

    def record_statement(self, record: Any) -> None:
        self.entries.append((record.query, tuple(record.args)))

    def make_traceparent(self) -> str:
        return ""

    def take(self) -> list[tuple[str, tuple[Any, ...]]]:
        entries, self.entries = self.entries, []
        return entries


async def measure_periodic_jobs(database_url: str, media_dir: Path) -> Mapping[str, JobWork]:
    """Run each periodic job of the worker once, and read the plans of its queries.

    The job is run first, so that work which is due is done before its queries are measured.
    """
    settings = Settings(database_url=database_url, media_dir=str(media_dir))
    log = _StatementLog()
    database = await Database.open(replace(database_options(settings), tracer=log))
    connection = await asyncpg.connect(database_url)
    queue, _ = create_queue(settings)
    try:
        async with queue.open_async():
            register_tasks(queue, database, settings)
            return {name: await _measure(queue, name, log, connection) for name in _list_names(queue)}
    finally:
        await connection.close()
        await database.close()


def _list_names(queue: App) -> list[str]:
    return sorted(periodic.task.name for periodic in queue.periodic_registry.periodic_tasks.values())


async def _measure(queue: App, name: str, log: _StatementLog, connection: Any) -> JobWork:
    await queue.tasks[name](timestamp=0)
    log.take()
    await queue.tasks[name](timestamp=0)
    work = JobWork()
    for query, values in log.take():
        work.statements.append(query)
        if query.startswith("SELECT"):
            work.blocks += await _count_blocks(connection, query, values)
    return work


async def _count_blocks(connection: Any, query: str, values: tuple[Any, ...]) -> int:
    explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {query}"
    # The first run in a session also reads the catalogue.
    await connection.fetchval(explain, *values)
    plan = json.loads(await connection.fetchval(explain, *values))[0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
