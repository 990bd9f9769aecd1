"""A site for tests of imports: its database, a source, and imported records."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.kind import Actor
from kalends.core.times import utc_now
from kalends.imports.operations import apply as applying, import_runs, undo
from kalends.imports.rules.import_records import ImportedRecord, ParsedSource
from kalends.imports.storage import import_tables
from kalends.store import Row
from kalends.store.database import Database, Transaction
from tests.api.running_app import RunningApp


def event(identity: str = "a@x", title: str = "Concert", day: str = "2027-05-01", **values: Any) -> ImportedRecord:
    times = {"start_date": f"{day} 19:00:00", "end_date": f"{day} 21:00:00", "timezone": "Europe/Berlin"}
    return ImportedRecord("events", identity, {"title": title, **times, "all_day": False, **values})


@asynccontextmanager
async def writing(app: RunningApp, database: Database) -> AsyncIterator[tuple[Transaction, OperationContext]]:
    """Open a writing transaction as an editor."""
    user_id = app.users["editor"].id
    async with database.transaction(app.site_id, utc_now(), writing=True) as tx:
        await tx.lock_site(user_id)
        yield tx, OperationContext(tx, Actor(user_id, "editor"), "", "")


def add_source(app: RunningApp, **values: Any) -> int:
    async def add(database: Database) -> int:
        owner_id = app.users["editor"].id
        async with writing(app, database) as (tx, _):
            defaults = {"kind": "ical", "name": "Hall", "owner_id": owner_id, "default_status": "publish"}
            return await import_tables.add_source(tx, {**defaults, **values})

    return app.run_with_database(add)


async def find_source(tx: Transaction, source_id: int) -> Row:
    source = await import_tables.find_source(tx, source_id)
    assert source is not None
    return source


@dataclass
class Subscription:
    """A source in an application, with shortcuts for its runs."""

    app: RunningApp
    source_id: int
    site_id: int
    now: datetime

    @classmethod
    def add(cls, app: RunningApp, **values: Any) -> "Subscription":
        return cls(app, add_source(app, **values), app.site_id, utc_now())

    def plan(self, *records: ImportedRecord, **options: Any) -> int:
        """Plan a fetch an hour after the last one; return the ID of the run."""
        self.now += timedelta(hours=1)
        span = (datetime(2020, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC))
        rejections = options.pop("rejections", ())
        parsed = ParsedSource(records, rejections, span)
        find_candidates = options.pop("find_candidates", None)

        async def plan(database: Database) -> int:
            run_id = await import_runs.begin_run(
                database, self.site_id, self.source_id, user_id=None, now=self.now, **options
            )
            await import_runs.fill_run(
                database, self.site_id, run_id, parsed, now=self.now, find_candidates=find_candidates
            )
            return run_id

        return self.app.run_with_database(plan)

    def apply(self, run_id: int, **options: Any) -> dict[str, int]:
        return self.app.run_with_database(
            lambda database: applying.apply(database, self.site_id, run_id, get_now=lambda: self.now, **options),
        )

    def sync(self, *records: ImportedRecord, **options: Any) -> dict[str, int]:
        """Plan and apply; return the counts."""
        run_id = self.plan(*records, **options)
        if self.state(run_id) == "unchanged":
            return self.counts(run_id)
        return self.apply(run_id)

    def undo(self, run_id: int) -> int:
        """Plan and apply the undo of a run; return the ID of its run."""
        editor = self.app.users["editor"].id
        undo_id = self.app.run_with_database(
            lambda database: undo.plan_undo(database, self.site_id, run_id, user_id=editor, now=self.now),
        )
        self.apply(undo_id)
        return undo_id

    def state(self, run_id: int) -> str:
        return str(self.app.sql("SELECT state FROM import_runs WHERE id = $1", run_id)[0]["state"])

    def counts(self, run_id: int) -> dict[str, int]:
        counts: dict[str, int] = orjson.loads(
            self.app.sql("SELECT counts FROM import_runs WHERE id = $1", run_id)[0]["counts"]
        )
        return counts

    def rows(self, run_id: int) -> list[dict[str, Any]]:
        """Return the rows of a plan, with decoded changes and with reasons as texts."""
        return [
            {
                **dict(row),
                "changes": orjson.loads(row["changes"]),
                "reasons": [str(import_tables.decode_message(entry)) for entry in orjson.loads(row["reasons"])],
            }
            for row in self.app.sql("SELECT * FROM import_rows WHERE run_id = $1 ORDER BY number", run_id)
        ]

    def record_id(self, identity: str) -> int:
        rows = self.app.sql(
            "SELECT record_id FROM import_items WHERE source_id = $1 AND identity = $2", self.source_id, identity
        )
        return int(rows[0]["record_id"])

    def event(self, identity: str) -> dict[str, Any]:
        """Return the event of an identity as the API shows it to an editor."""
        body: dict[str, Any] = self.app.caller("editor").get(f"/events/{self.record_id(identity)}").json()
        return body

    def status(self, identity: str) -> str:
        rows = self.app.sql("SELECT status FROM events WHERE id = $1", self.record_id(identity))
        return str(rows[0]["status"])
