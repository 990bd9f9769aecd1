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
from kalends.core.errors import ApiError
from kalends.core.limiter import ConcurrencyLimits, PerOwnerLimiter
from kalends.core.messages import Message
from kalends.core.throttle import rate_limit_key
from kalends.store.change_log import MAX_NEW_RECORDS, ChangeLog, select_site_for_update
from kalends.store.sites import Site
from kalends.store.sql import Sql

log = logging.getLogger(__name__)

# The session is on a server that takes no writes, such as a primary that has been demoted.
READ_ONLY_STATE = "25006"
# What a client is told when PostgreSQL refuses. States that are not listed are faults of ours: 500.
SQLSTATES: dict[str, Callable[[], ApiError]] = {
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
    READ_ONLY_STATE: errors.unavailable,  # a standby: the primary has moved
    "08P01": errors.unavailable,  # a pooler in between gave up waiting
}
# The connection broke, or PostgreSQL ended it: whether a commit was done is not known.
BROKEN_CONNECTION_STATES = ("08", "57P0")
# What asyncpg raises when the other side is gone: an InternalClientError if that happens while it learns types.
CONNECTION_ERRORS = (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError)
# The same, and when it is slow or unwilling.
UNAVAILABLE_ERRORS = (*CONNECTION_ERRORS, TimeoutError, asyncpg.PostgresError)
ENTER_SITE_BY_HOST = "SELECT * FROM enter_site($1)"
ENTER_SITE_BY_ID = "SELECT * FROM enter_site_number($1)"
# Connections for the lookup of revisions and for /readyz: both work while all others are in use.
LOOKUP_CONNECTIONS = 2
# For so long they wait for an answer: a database that hangs is away, too.
LOOKUP_TIMEOUT = 2.0


@dataclass(frozen=True, slots=True)
class Options:
    url: str
    size: int = 10
    pool_timeout: float = 1.0  # seconds a request waits for a connection before it is refused
    statement_timeout: float = 10.0  # seconds one statement may take
    public_statement_timeout: float = 3.0  # the same, for reads without credentials
    transaction_timeout: float = 10.0  # seconds one write may take, from its beginning to its commit
    prepared: bool = True  # False behind a pooler in transaction mode
    enqueue_purges: bool = False  # True: shared caches are told of every write, by a job
    max_per_client: int = 0  # connections that one client has in use at a time; 0: any number


class Transaction:
    """What an operation may do with the database."""

    def __init__(
        self,
        connection: Any,
        site: Site,
        now: datetime,
        *,
        enqueue_purges: bool = False,
        max_new_records: int | None = None,
    ) -> None:
        self._connection = connection
        self._enqueue_purges = enqueue_purges
        self._max_new_records = max_new_records
        self.site = site
        self.now = now
        self.statements = 0
        self._changes: ChangeLog | None = None

    async def fetch_all(self, sql: Sql) -> list[Record]:
        self.statements += 1
        rows: list[Record] = await self._connection.fetch(sql.render(), *sql.values)
        return rows

    async def fetch_one(self, sql: Sql) -> Record | None:
        self.statements += 1
        row: Record | None = await self._connection.fetchrow(sql.render(), *sql.values)
        return row

    async def fetch_value(self, sql: Sql) -> Any:
        self.statements += 1
        return await self._connection.fetchval(sql.render(), *sql.values)

    async def execute(self, sql: Sql) -> None:
        self.statements += 1
        await self._connection.execute(sql.render(), *sql.values)

    async def lock_site(self, user_id: int | None) -> None:
        """From here on this transaction is the only writer of the site."""
        row = await self.fetch_one(select_site_for_update(self.site.id))
        if row is None:
            raise errors.unknown_site()
        self._changes = ChangeLog(
            site_id=self.site.id,
            revision=row["revision"],
            last_post_id=row["last_post_id"],
            last_term_id=row["last_term_id"],
            now=self.now,
            user_id=user_id,
            max_new_records=self._max_new_records,
        )

    @property
    def changes(self) -> ChangeLog:
        if self._changes is None:
            raise AssertionError("the clock is read without the lock")
        return self._changes

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        """A part that may fail by itself: what it wrote, and what the clock counted, is undone then."""
        changes = self.changes
        saved = (changes.revision, changes.last_post_id, changes.last_term_id, len(changes.entries))
        await self._connection.execute("SAVEPOINT attempt")
        try:
            yield
        except (ApiError, asyncpg.PostgresError) as error:
            await self._connection.execute("ROLLBACK TO SAVEPOINT attempt")
            changes.revision, changes.last_post_id, changes.last_term_id, change_count = saved
            del changes.entries[change_count:]
            raise translate_error(error) if isinstance(error, asyncpg.PostgresError) else error from error
        await self._connection.execute("RELEASE SAVEPOINT attempt")

    async def flush_changes(self) -> None:
        if self._changes is not None and self._changes.entries:
            await self.execute(self._changes.flush())
            if self._enqueue_purges:
                await self.execute(self._changes.enqueue_purge())


class Database:
    def __init__(self, pool: Any, lookup_pool: Any, options: Options) -> None:
        self._pool = pool
        self._lookup_pool = lookup_pool
        self._options = options
        self._limiter = PerOwnerLimiter(
            ConcurrencyLimits(
                options.max_per_client or options.size, total=options.size, waiting_per_owner=100, waiting=400
            )
        )
        self._recovering: set[asyncio.Task[None]] = set()
        idle = f"SET LOCAL idle_in_transaction_session_timeout = {int(options.statement_timeout * 1000)}; "
        step_down = f"{idle}SET LOCAL ROLE kalends_app"
        reading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; "
        timeout = f"SET LOCAL statement_timeout = {int(options.statement_timeout * 1000)}; "
        public_timeout = min(options.public_statement_timeout, options.statement_timeout)
        public = f"SET LOCAL statement_timeout = {int(public_timeout * 1000)}; "
        self._begin_read = f"{reading}{timeout}{step_down}"
        self._begin_public_read = f"{reading}{public}{step_down}"
        self._begin_write = f"BEGIN; {timeout}{step_down}"

    @classmethod
    async def open(cls, options: Options) -> Self:
        """Opens the pools without a connection: the server starts also while the database is away."""
        return cls(await _open_pool(options, options.size), await _open_pool(options, LOOKUP_CONNECTIONS), options)

    async def close(self) -> None:
        for pool in (self._pool, self._lookup_pool):
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
        client_ip: str = "",
    ) -> AsyncIterator[Transaction]:
        """Run one transaction in a site, named by its host or its ID; commit it unless something is raised.

        `anonymous`: a read without credentials, whose statements have a shorter deadline. `client` has a fair share
        of the connections; with credentials it waits longer for one, because writes come one after another.
        """
        max_wait = (
            self._options.pool_timeout
            if anonymous
            else max(self._options.pool_timeout, self._options.statement_timeout)
        )
        async with AsyncExitStack() as stack:
            if client_ip:
                await stack.enter_async_context(self._limiter.slot(rate_limit_key(client_ip), max_wait))
            begin = self._begin_statement(writing=writing, anonymous=anonymous)
            yield await stack.enter_async_context(self._transaction(site, now, begin, writing=writing))

    @asynccontextmanager
    async def _transaction(
        self, site: str | int, now: datetime, begin: str, *, writing: bool
    ) -> AsyncIterator[Transaction]:
        connection = await self._acquire(self._pool)
        is_committing = False
        owns_connection = True
        limit = asyncio.timeout(self._options.transaction_timeout if writing else None)
        try:
            async with limit:
                await connection.execute(begin)
                row = await connection.fetchrow(
                    ENTER_SITE_BY_HOST if isinstance(site, str) else ENTER_SITE_BY_ID, site
                )
                if row is None:
                    raise errors.unknown_site()
                transaction = Transaction(
                    connection,
                    Site.from_row(row),
                    now,
                    enqueue_purges=self._options.enqueue_purges,
                    max_new_records=MAX_NEW_RECORDS,
                )
                yield transaction
                await transaction.flush_changes()
                # A commit that is cut short has an unknown outcome; the driver's own limit is enough for it.
                limit.reschedule(None)
                is_committing = writing
                await self._commit(connection, writing)
        except asyncpg.PostgresError as error:
            await self._roll_back(connection)
            if error.sqlstate == READ_ONLY_STATE:
                await self._reconnect(connection)
            is_broken = (error.sqlstate or "").startswith(BROKEN_CONNECTION_STATES)
            raise (errors.outcome_unknown() if is_committing and is_broken else translate_error(error)) from error
        except TimeoutError as error:
            # The statement is being cancelled. Who asked need not wait for that, but the connection must:
            # while its backend is busy, another one in its place would be one too many.
            owns_connection = False
            self._recover(connection)
            if limit.expired():
                raise errors.too_slow(self._options.transaction_timeout) from error
            raise (errors.outcome_unknown() if is_committing else errors.unavailable()) from error
        except CONNECTION_ERRORS as error:
            _terminate(connection)
            log.warning("database connection lost: %r", error)
            raise (errors.outcome_unknown() if is_committing else errors.unavailable()) from error
        except Exception:
            await self._roll_back(connection)
            raise
        except asyncio.CancelledError:
            # The client is gone. A connection that is closed in the middle of a statement would keep the lock of
            # the site until that statement ends, so it is cancelled and rolled back instead.
            owns_connection = False
            self._recover(connection)
            raise
        except BaseException:
            _terminate(connection)
            raise
        finally:
            if owns_connection:
                await self._pool.release(connection)

    async def fetch_unscoped(self, sql: Sql, *, seconds: float | None = None) -> list[Record]:
        """One statement by itself, for functions of the owner that need no site; `seconds` is its own deadline."""
        connection = await self._acquire(self._lookup_pool)
        try:
            rows: list[Record] = await connection.fetch(sql.render(), *sql.values, timeout=seconds)
        except BaseException as error:
            _terminate(connection)
            raise (errors.unavailable() if isinstance(error, UNAVAILABLE_ERRORS) else error) from error
        finally:
            await self._lookup_pool.release(connection)
        return rows

    async def schema_version(self) -> str:
        """Return the schema revision. Raises 503 while the database is away or is a standby."""
        connection = await self._acquire(self._lookup_pool)
        try:
            version, is_standby = await connection.fetchrow(
                "SELECT version_num, pg_is_in_recovery() FROM alembic_version", timeout=LOOKUP_TIMEOUT
            )
            if is_standby:
                await self._reconnect(connection)
        except UNAVAILABLE_ERRORS as error:
            _terminate(connection)
            raise errors.unavailable(Message("The database does not answer.")) from error
        finally:
            await self._lookup_pool.release(connection)
        if is_standby:
            raise errors.unavailable(Message("The database is a standby and does not accept writes."))
        return str(version)

    def _begin_statement(self, *, writing: bool, anonymous: bool) -> str:
        if writing:
            return self._begin_write
        return self._begin_public_read if anonymous else self._begin_read

    async def _acquire(self, pool: Any) -> Any:
        try:
            return await pool.acquire(timeout=self._options.pool_timeout)
        except TimeoutError as error:
            raise errors.unavailable(Message("All database connections are in use.")) from error
        except asyncpg.PostgresError as error:
            raise translate_error(error) from error
        except CONNECTION_ERRORS as error:
            raise errors.unavailable(Message("The database cannot be reached.")) from error

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
        _terminate(connection)
        for pool in (self._pool, self._lookup_pool):
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
        except UNAVAILABLE_ERRORS:
            _terminate(connection)


async def _open_pool(options: Options, size: int) -> Any:
    return await asyncpg.create_pool(
        options.url,
        min_size=0,
        max_size=size,
        timeout=max(options.pool_timeout, 1.0),
        # The server's own limit does not cover a dead network; this one does.
        command_timeout=options.statement_timeout + 1,
        statement_cache_size=1024 if options.prepared else 0,
        max_inactive_connection_lifetime=300,
        # Every transaction ends by its own COMMIT or ROLLBACK and leaves nothing to clean up.
        reset=_skip_reset,
    )


def _terminate(connection: Any) -> None:
    with suppress(asyncpg.InterfaceError):  # The driver has seen the end already, and given the place back.
        connection.terminate()


def translate_error(error: asyncpg.PostgresError) -> Exception:
    """The answer for a refusal of PostgreSQL's, or the error itself where it is a fault of ours."""
    state = error.sqlstate or ""
    factory = SQLSTATES.get(state) or (errors.unavailable if state.startswith("08") else None)
    return factory() if factory else error


async def _skip_reset(_: Any) -> None:
    return None
