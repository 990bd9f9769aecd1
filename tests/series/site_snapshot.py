"""The events and series of a site, as the database has them."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import asyncpg

Row = dict[str, Any]

EVENTS = """
    SELECT e.*, e.uid::text AS uid, ARRAY(
        SELECT t.name FROM event_tags l JOIN tags t ON t.site_id = l.site_id AND t.id = l.tag_id
        WHERE l.site_id = e.site_id AND l.event_id = e.id ORDER BY l.position) AS tags
    FROM events e WHERE e.site_id = $1 ORDER BY e.id"""
SERIES = "SELECT id, status, created_until FROM series WHERE site_id = $1"
REVISION = "SELECT revision FROM sites WHERE id = $1"

MOVE_INSTANTS = "UPDATE events SET start_utc = start_utc + $2, end_utc = end_utc + $2 WHERE site_id = $1"


@dataclass(frozen=True)
class Snapshot:
    revision: int
    rows: dict[int, Row]  # events by ID
    series: dict[int, Row]


class SiteReader:
    """Reads a site, once until `forget` is called."""

    def __init__(self, runner: asyncio.Runner, connection: "asyncpg.Connection[Any]", site_id: int) -> None:
        self._runner, self._connection, self._site_id = runner, connection, site_id
        self._latest: Snapshot | None = None

    def forget(self) -> None:
        """Note that the site may have changed."""
        self._latest = None

    def read(self) -> Snapshot:
        self._latest = self._latest or self._runner.run(self._read())
        return self._latest

    def read_revision(self) -> int:
        """Return the revision of the site, read anew."""
        revision: int = self._runner.run(self._connection.fetchval(REVISION, self._site_id))
        return revision

    def move_instants(self, by: timedelta) -> None:
        """Move the instants of all events, but not their local times."""
        self.forget()
        self._runner.run(self._connection.execute(MOVE_INSTANTS, self._site_id, by))

    async def _read(self) -> Snapshot:
        revision = await self._connection.fetchval(REVISION, self._site_id)
        events = await self._connection.fetch(EVENTS, self._site_id)
        series = await self._connection.fetch(SERIES, self._site_id)
        return Snapshot(revision, {row["id"]: dict(row) for row in events}, {row["id"]: dict(row) for row in series})
