"""The plans that PostgreSQL executes for the statements of the server, as auto_explain logs them.

The extension auto_explain sends the plan of every statement back as a notice. So nothing is rebuilt here: the
statements, their arguments, the role behind row-level security and the choice between a plan for these arguments and
a kept one are those of a server that has answered the same request a few times.
"""

import json
import re
from collections.abc import Iterator, Mapping, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg

from kalends.api.wordpress.wordpress_shapes import CORE_EVENTS, complete_values
from kalends.calendar.access.operation_context import OperationContext, Outcome
from kalends.calendar.kinds.kind import PAGING, Actor, Kind
from kalends.calendar.operations.record_verbs import list_records
from kalends.core.params import read_params
from kalends.store.database import Database, Options

ANONYMOUS = Actor()

# After the fifth time PostgreSQL may keep a plan for all arguments.
REPETITIONS = 7

_SETTINGS = """
    LOAD 'auto_explain';
    SET auto_explain.log_min_duration = 0;
    SET auto_explain.log_analyze = on;
    SET auto_explain.log_timing = off;
    SET auto_explain.log_buffers = on;
    SET auto_explain.log_format = json;
    SET auto_explain.log_level = notice;
    SET client_min_messages = notice;
"""
_REMOVED = re.compile(r"Rows Removed by (Filter|Join Filter|Index Recheck)")


@dataclass(frozen=True)
class Statement:
    """A statement with its plan."""

    text: str
    plan: Mapping[str, Any]

    def nodes(self) -> Iterator[Mapping[str, Any]]:
        queue = [self.plan]
        while queue:
            node = queue.pop()
            yield node
            # What is below a condition that is always false never runs.
            if node.get("One-Time Filter") != "false":
                queue.extend(node.get("Plans", ()))

    def sequential_scans(self) -> list[str]:
        """Tables that are read from one end to the other."""
        return [node["Relation Name"] for node in self.nodes() if node["Node Type"] == "Seq Scan"]

    def wasted_rows(self, tables: Set[str]) -> int:
        """Most rows of these tables that one step has read and not used, over all its rounds.

        A step that uses more than it throws away costs in proportion to its answer and does not count.
        """
        wasted = [0]
        for node in self.nodes():
            removed = sum(int(node[name]) for name in node if _REMOVED.fullmatch(name))
            if node.get("Relation Name", "events") in tables and removed > node["Actual Rows"]:
                wasted.append(removed * int(node["Actual Loops"]))
        return max(wasted)

    def outline(self) -> str:
        """The plan in a few lines, for a message."""
        return "\n".join(_outline(self.plan, 0))


class PlanCollector:
    """List requests on one connection that reports its plans."""

    def __init__(self, database: Database, now: datetime) -> None:
        self._database = database
        self._now = now
        self.statements: list[Statement] = []

    def record_plan(self, _: object, message: Any) -> None:
        match = re.search(r"plan:\s*(\{.*)", str(message.message), re.DOTALL)
        if match:
            entry = json.loads(match[1])
            self.statements.append(Statement(entry["Query Text"], entry["Plan"]))

    async def collect_plans(
        self, kind: Kind, raw: Mapping[str, object], actor: Actor = ANONYMOUS, repetitions: int = REPETITIONS
    ) -> list[Statement]:
        """The statements of the last of several equal requests."""
        for _ in range(repetitions):
            self.statements.clear()
            await self.list_records(kind, raw, actor)
        return [statement for statement in self.statements if "enter_site" not in statement.text]

    async def list_records(self, kind: Kind, raw: Mapping[str, object], actor: Actor = ANONYMOUS) -> Outcome:
        values = read_params([*PAGING, *(row.param for row in kind.filters)], raw)
        if kind is CORE_EVENTS:
            values = complete_values(kind, values)
        async with self._database.transaction("", self._now, writing=False) as transaction:
            call = OperationContext(
                transaction, actor, base_url="https://x.example", api_url="https://x.example/api", values=values
            )
            return await list_records(kind, call)


@asynccontextmanager
async def open_plan_collector(url: str, now: datetime):
    connection = await asyncpg.connect(url, statement_cache_size=1024)
    try:
        await connection.execute(_SETTINGS)
        pool = _SingleConnectionPool(connection)
        collector = PlanCollector(Database(pool, pool, Options(url)), now)
        connection.add_log_listener(collector.record_plan)
        yield collector
    finally:
        await connection.close()


class _SingleConnectionPool:
    """A pool of one that never closes it, so that its settings and kept plans stay."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def acquire(self, **_: float) -> asyncpg.Connection:
        return self._connection

    async def release(self, _: asyncpg.Connection, **__: float) -> None:
        return None


def _outline(node: Mapping[str, Any], depth: int) -> Iterator[str]:
    about = [node["Node Type"], node.get("Index Name") or node.get("Relation Name") or ""]
    numbers = f"rows={node['Actual Rows']} loops={node['Actual Loops']}"
    removed = "".join(f" {name.removeprefix('Rows ')}={node[name]}" for name in node if _REMOVED.fullmatch(name))
    conditions = "".join(f" {name}: {node[name]}" for name in ("Index Cond", "Filter", "Join Filter") if name in node)
    yield f"{'  ' * depth}{' '.join(filter(None, about))} {numbers}{removed}{conditions[:300]}"
    for child in node.get("Plans", ()):
        yield from _outline(child, depth + 1)
