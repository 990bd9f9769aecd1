"""/healthz and /readyz, for process managers and load balancers, and detection of a missing worker."""

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

from starlette.responses import PlainTextResponse, Response

from kalends.core.errors import ApiError
from kalends.store import job_queue
from kalends.store.site_database import SiteDatabase

if TYPE_CHECKING:
    from kalends.http.request import ReadSources

log = logging.getLogger(__name__)

# A worker counts as missing after this many seconds without a heartbeat. After startup, the check waits as long
# before its first warning.
MAX_HEARTBEAT_AGE: Final = 60.0
CHECK_INTERVAL: Final = 15.0
CONSEQUENCE: Final = (
    "nothing is published on schedule, and images get no sizes. Start `kalends worker` or "
    "`kalends serve --with-worker`."
)

NO_PRIMARY: Final = "the primary is away: public reads are answered by the replica, writes are not."


def show_health() -> Response:
    return PlainTextResponse("ok\n")


async def show_readiness(watch: "WorkerWatch", schema: str, sources: "ReadSources") -> Response:
    """Report that the database, or at least one cell, is available with the expected schema; otherwise raise 503.

    Requests are served without a worker, so a missing worker causes a warning but does not change the status. The
    same applies if the primary is missing while a replica answers public reads, because another server could do no
    more.
    """
    try:
        states = await watch.database.check_schema(schema)
    except ApiError:
        if not sources.answers_without_primary:
            raise
        return PlainTextResponse(f"ready\nWarning: {NO_PRIMARY}\n")
    warning = await watch.find_warning()
    return PlainTextResponse("\n".join(["ready", *states, *([f"Warning: {warning}"] if warning else []), ""]))


class WorkerWatch:
    """Checks for a worker's heartbeat."""

    def __init__(self, database: SiteDatabase, *, max_age: float = MAX_HEARTBEAT_AGE) -> None:
        self.database = database
        self._max_age = max_age
        self._started_at = time.monotonic()

    async def find_warning(self) -> str:
        """Return a warning if no worker has been seen for longer than the maximum age, or an empty string."""
        if time.monotonic() - self._started_at < self._max_age:
            return ""
        databases = self.database.by_cell
        lookups = [job_queue.find_heartbeat_age(database) for database in databases.values()]
        ages = await asyncio.gather(*lookups, return_exceptions=True)
        for cell, age in zip(databases, ages, strict=True):
            where = f" for the cell {cell}" if cell else ""
            if isinstance(age, BaseException):
                if not cell or not isinstance(age, ApiError):
                    raise age
            elif age is None:
                return f"no worker is running{where}: {CONSEQUENCE}"
            elif age > self._max_age:
                return f"no worker has been seen{where} for {age:.0f} s: {CONSEQUENCE}"
        return ""

    async def run(self, interval: float = CHECK_INTERVAL) -> None:
        """Log a warning when the worker goes missing, and a message when a worker is back."""
        is_missing = False
        while True:
            await asyncio.sleep(interval)
            try:
                warning = await self.find_warning()
            except ApiError:
                continue  # requests already log the database outage
            if warning and not is_missing:
                log.warning("%s", warning)
            elif is_missing and not warning:
                log.warning("a worker is running again")
            is_missing = bool(warning)
