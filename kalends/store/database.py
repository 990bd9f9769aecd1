"""The pool, one transaction per request, deadlines, and SQLSTATE -> error in one table.

A transaction steps down to an unprivileged role and enters exactly one site. Reads see one
snapshot; writes lock the clock of the site when they begin to write.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

import asyncpg
from asyncpg import Record

from kalends.core import errors
from kalends.core.errors import Refusal
from kalends.core.limiter import Shares, Turns
from kalends.core.messages import Sentence
from kalends.core.throttle import counted_as
from kalends.store.change_log import MAX_NEW_RECORDS, Clock, locked_clock
from kalends.store.sites import Site
from kalends.store.sql import Sql

log = logging.getLogger(__name__)

# The session is on a server that takes no writes, such as a primary that has been demoted.
READ_ONLY = "25006"
# What a client is told when PostgreSQL refuses. States that are not listed are faults of ours: 500.
SQLSTATES: dict[str, Callable[[], Refusal]] = {
    "23503": errors.conflict,  # foreign key: the other record vanished at the same moment
    "23505": errors.conflict,  # unique index: somebody took the name at the same moment
    "40001": errors.unavailable,  # serialization failure
    "40P01": errors.unavailable,  # deadlock
    "55P03": errors.unavailable,  # lock not available in time
    "57014": errors.unavailable,  # statement took too long
    "53100": errors.out_of_storage,  # disk full
    "53200": errors.unavailable,  # out of memory
    "53300": errors.unavailable,  # too many connections
    "57P01": errors.unavailable,  # the server shuts down
    "57P02": errors.unavailable,
    "57P03": errors.unavailable,  # the server starts up
    READ_ONLY: errors.unavailable,  # a standby: the primary has moved
    "08P01": errors.unavailable,  # a pooler in between gave up waiting
}
# The connection broke, or PostgreSQL ended it: whether a commit was done is not known.
BROKEN = ("08", "57P0")
# What asyncpg raises when the other side is gone: an InternalClientError if that happens while it learns types.
GONE = (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError)
# The same, and when it is slow or unwilling.
LOST = (*GONE, TimeoutError, asyncpg.PostgresError)
ENTER_HOST = "SELECT * FROM enter_site($1)"
ENTER_NUMBER = "SELECT * FROM enter_site_number($1)"
# Connections for the lookup of revisions and for /readyz: both work while all others are in use.
LOOKUP_CONNECTIONS = 2
# For so long they wait for an answer: a database that hangs is away, too.
LOOKUP_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Options:
    url: str
    size: int = 10
    wait: float = 1.0  # seconds a request waits for a connection before it is refused
    deadline: float = 10.0  # seconds one statement may take
    public_deadline: float = 3.0  # the same, for reads without credentials
    transaction_deadline: float = 10.0  # seconds one write may take, from its beginning to its commit
    prepared: bool = True  # False behind a pooler in transaction mode
    purging: bool = False  # True: shared caches are told of every write, by a job
    per_client: int = 0  # connections that one client has in use at a time; 0: any number


class Transaction:
    """What an operation may do with the database."""

    def __init__(
        self, connection: Any, site: Site, now: datetime, *, purging: bool = False, max_new: int | None = None
    ) -> None:
        self._connection = connection
        self._purging = purging
        self._max_new = max_new
        self.site = site
        self.now = now
        self.statements = 0
        self._clock: Clock | None = None

    async def rows(self, sql: Sql) -> list[Record]:
        self.statements += 1
        rows: list[Record] = await self._connection.fetch(sql.numbered(), *sql.values)
        return rows

    async def row(self, sql: Sql) -> Record | None:
        self.statements += 1
        row: Record | None = await self._connection.fetchrow(sql.numbered(), *sql.values)
        return row

    async def value(self, sql: Sql) -> Any:
        self.statements += 1
        return await self._connection.fetchval(sql.numbered(), *sql.values)

    async def run(self, sql: Sql) -> None:
        self.statements += 1
        await self._connection.execute(sql.numbered(), *sql.values)

    async def lock(self, user_id: int | None) -> None:
        """From here on this transaction is the only writer of the site."""
        row = await self.row(locked_clock(self.site.id))
        if row is None:
            raise errors.unknown_site()
        self._clock = Clock(
            site_id=self.site.id,
            revision=row["revision"],
            last_post_id=row["last_post_id"],
            last_term_id=row["last_term_id"],
            now=self.now,
            user_id=user_id,
            max_new=self._max_new,
        )

    @property
    def clock(self) -> Clock:
        if self._clock is None:
            raise AssertionError("the clock is read without the lock")
        return self._clock

    @asynccontextmanager
    async def attempt(self) -> AsyncIterator[None]:
        """A part that may fail by itself: what it wrote, and what the clock counted, is undone then."""
        clock = self.clock
        held = (clock.revision, clock.last_post_id, clock.last_term_id, len(clock.changes))
        await self._connection.execute("SAVEPOINT attempt")
        try:
            yield
        except (Refusal, asyncpg.PostgresError) as error:
            await self._connection.execute("ROLLBACK TO SAVEPOINT attempt")
            clock.revision, clock.last_post_id, clock.last_term_id, size = held
            del clock.changes[size:]
            raise translated(error) if isinstance(error, asyncpg.PostgresError) else error from error
        await self._connection.execute("RELEASE SAVEPOINT attempt")

    async def write_clock(self) -> None:
        if self._clock is not None and self._clock.changes:
            await self.run(self._clock.written())
            if self._purging:
                await self.run(self._clock.purge())


class Database:
    def __init__(self, pool: Any, lookups: Any, options: Options) -> None:
        self._pool = pool
        self._lookups = lookups
        self._options = options
        self._turns = Turns(
            Shares(options.per_client or options.size, total=options.size, waiting_per_owner=100, waiting=400)
        )
        self._recovering: set[asyncio.Task[None]] = set()
        idle = f"SET LOCAL idle_in_transaction_session_timeout = {int(options.deadline * 1000)}; "
        step_down = f"{idle}SET LOCAL ROLE kalends_app"
        reading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; "
        timeout = f"SET LOCAL statement_timeout = {int(options.deadline * 1000)}; "
        public = f"SET LOCAL statement_timeout = {int(min(options.public_deadline, options.deadline) * 1000)}; "
        self._begin_read = f"{reading}{timeout}{step_down}"
        self._begin_public_read = f"{reading}{public}{step_down}"
        self._begin_write = f"BEGIN; {timeout}{step_down}"

    @classmethod
    async def open(cls, options: Options) -> Self:
        """Opens the pools without a connection: the server starts also while the database is away."""
        return cls(await _open_pool(options, options.size), await _open_pool(options, LOOKUP_CONNECTIONS), options)

    async def close(self) -> None:
        for pool in (self._pool, self._lookups):
            try:
                await asyncio.wait_for(pool.close(), 5)
            except TimeoutError:
                pool.terminate()

    @asynccontextmanager
    async def transaction(
        self,
        site: str | int,
        now: datetime,
        *,
        writing: bool,
        anonymous: bool = False,
        client: str = "",
    ) -> AsyncIterator[Transaction]:
        """Run one transaction in a site, named by its host or its ID; commit it unless something is raised.

        `anonymous`: a read without credentials, whose statements have a shorter deadline. `client` has a fair share
        of the connections; with credentials it waits longer for one, because writes come one after another.
        """
        patience = self._options.wait if anonymous else max(self._options.wait, self._options.deadline)
        async with AsyncExitStack() as stack:
            if client:
                await stack.enter_async_context(self._turns.of(counted_as(client), patience))
            begin = self._begin(writing=writing, anonymous=anonymous)
            yield await stack.enter_async_context(self._transaction(site, now, begin, writing=writing))

    @asynccontextmanager
    async def _transaction(
        self, site: str | int, now: datetime, begin: str, *, writing: bool
    ) -> AsyncIterator[Transaction]:
        connection = await self._acquire(self._pool)
        committing = False
        held = True
        limit = asyncio.timeout(self._options.transaction_deadline if writing else None)
        try:
            async with limit:
                await connection.execute(begin)
                row = await connection.fetchrow(ENTER_HOST if isinstance(site, str) else ENTER_NUMBER, site)
                if row is None:
                    raise errors.unknown_site()
                transaction = Transaction(
                    connection, Site.of(row), now, purging=self._options.purging, max_new=MAX_NEW_RECORDS
                )
                yield transaction
                await transaction.write_clock()
                # A commit that is cut short has an unknown outcome; the driver's own limit is enough for it.
                limit.reschedule(None)
                committing = writing
                await self._commit(connection, writing)
        except asyncpg.PostgresError as error:
            await self._roll_back(connection)
            if error.sqlstate == READ_ONLY:
                await self._reconnect(connection)
            broken = (error.sqlstate or "").startswith(BROKEN)
            raise (errors.outcome_unknown() if committing and broken else translated(error)) from error
        except TimeoutError as error:
            # The statement is being cancelled. Who asked need not wait for that, but the connection must:
            # while its backend is busy, another one in its place would be one too many.
            held = False
            self._recover(connection)
            if limit.expired():
                raise errors.too_slow(self._options.transaction_deadline) from error
            raise (errors.outcome_unknown() if committing else errors.unavailable()) from error
        except GONE as error:
            _end(connection)
            log.warning("database connection lost: %r", error)
            raise (errors.outcome_unknown() if committing else errors.unavailable()) from error
        except Exception:
            await self._roll_back(connection)
            raise
        except asyncio.CancelledError:
            # The client is gone. A connection that is closed in the middle of a statement would keep the lock of
            # the site until that statement ends, so it is cancelled and rolled back instead.
            held = False
            self._recover(connection)
            raise
        except BaseException:
            _end(connection)
            raise
        finally:
            if held:
                await self._pool.release(connection)

    async def ask(self, sql: Sql, *, seconds: float | None = None) -> list[Record]:
        """One statement by itself, for functions of the owner that need no site; `seconds` is its own deadline."""
        connection = await self._acquire(self._lookups)
        try:
            rows: list[Record] = await connection.fetch(sql.numbered(), *sql.values, timeout=seconds)
        except BaseException as error:
            _end(connection)
            raise (errors.unavailable() if isinstance(error, LOST) else error) from error
        finally:
            await self._lookups.release(connection)
        return rows

    async def answers(self) -> str:
        """Return the schema revision. Raises 503 while the database is away or is a standby."""
        connection = await self._acquire(self._lookups)
        try:
            version, standby = await connection.fetchrow(
                "SELECT version_num, pg_is_in_recovery() FROM alembic_version", timeout=LOOKUP_SECONDS
            )
            if standby:
                await self._reconnect(connection)
        except LOST as error:
            _end(connection)
            raise errors.unavailable(Sentence("The database does not answer.")) from error
        finally:
            await self._lookups.release(connection)
        if standby:
            raise errors.unavailable(Sentence("The database is a standby and does not accept writes."))
        return str(version)

    def _begin(self, *, writing: bool, anonymous: bool) -> str:
        if writing:
            return self._begin_write
        return self._begin_public_read if anonymous else self._begin_read

    async def _acquire(self, pool: Any) -> Any:
        try:
            return await pool.acquire(timeout=self._options.wait)
        except TimeoutError as error:
            raise errors.unavailable(Sentence("All database connections are in use.")) from error
        except asyncpg.PostgresError as error:
            raise translated(error) from error
        except GONE as error:
            raise errors.unavailable(Sentence("The database cannot be reached.")) from error

    @staticmethod
    async def _commit(connection: Any, writing: bool) -> None:
        if not writing:
            await connection.execute("COMMIT")
            return
        # A commit whose wait for a standby was cancelled succeeds with a mere warning: the write
        # is stored here but perhaps nowhere else, so it is not acknowledged.
        notices: list[Any] = []
        listener = lambda _, message: notices.append(message)  # noqa: E731
        connection.add_log_listener(listener)
        try:
            await connection.execute("COMMIT")
            await asyncio.sleep(0)
        finally:
            with suppress(asyncpg.InterfaceError):  # The connection is gone, and the listener with it.
                connection.remove_log_listener(listener)
        if any(notice.sqlstate == "01000" for notice in notices):
            raise errors.outcome_unknown()

    async def _reconnect(self, connection: Any) -> None:
        """Close this connection, and replace each of the others before its next use.

        They reached the same server by the same address, so each of them would fail one more write.
        """
        _end(connection)
        for pool in (self._pool, self._lookups):
            await pool.expire_connections()

    def _recover(self, connection: Any) -> None:
        async def roll_back() -> None:
            await self._roll_back(connection)
            await self._pool.release(connection)

        task = asyncio.create_task(roll_back())
        self._recovering.add(task)
        task.add_done_callback(self._recovering.discard)

    @staticmethod
    async def _roll_back(connection: Any) -> None:
        try:
            # Not the driver's own limit: that one begins only when a cancellation under way has been answered.
            async with asyncio.timeout(2):
                await connection.execute("ROLLBACK")
        except LOST:
            _end(connection)


async def _open_pool(options: Options, size: int) -> Any:
    return await asyncpg.create_pool(
        options.url,
        min_size=0,
        max_size=size,
        timeout=max(options.wait, 1.0),
        # The server's own limit does not cover a dead network; this one does.
        command_timeout=options.deadline + 1,
        statement_cache_size=1024 if options.prepared else 0,
        max_inactive_connection_lifetime=300,
        # Every transaction ends by its own COMMIT or ROLLBACK and leaves nothing to clean up.
        reset=_nothing_to_reset,
    )


def _end(connection: Any) -> None:
    with suppress(asyncpg.InterfaceError):  # The driver has seen the end already, and given the place back.
        connection.terminate()


def translated(error: asyncpg.PostgresError) -> Exception:
    """The answer for a refusal of PostgreSQL's, or the error itself where it is a fault of ours."""
    state = error.sqlstate or ""
    make = SQLSTATES.get(state) or (errors.unavailable if state.startswith("08") else None)
    return make() if make else error


async def _nothing_to_reset(_: Any) -> None:
    return None
