"""The connection pool, one transaction per request, and timeouts.

A transaction switches to an unprivileged role and enters exactly one site. Reads use one snapshot; writes lock the
site's row before the first change.
"""

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol, Self

import asyncpg
from asyncpg import Record

from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.limits import ConcurrencyLimits, PerOwnerLimiter, WriteTurn, WriteTurns, rate_limit_key
from kalends.core.messages import Message
from kalends.core.times import utc_now
from kalends.store import problems
from kalends.store.change_log import MAX_NEW_RECORDS, ChangeLog, select_site_for_update
from kalends.store.migrations import newest_revision
from kalends.store.problems import DatabaseUnavailable
from kalends.store.site_revisions import SiteRevisions
from kalends.store.sites import SITE_COLUMNS, Site
from kalends.store.sql import Sql

log = logging.getLogger(__name__)

# With `*`, a column that a later version adds would change the result type of the prepared statement.
ENTER_SITE_BY_HOST = f"SELECT {SITE_COLUMNS} FROM enter_site($1)"
ENTER_SITE_BY_ID = f"SELECT {SITE_COLUMNS} FROM enter_site_number($1)"
# The write-ahead log position, in bytes, up to which a connection's data is current.
LOG_POSITION: Final = (
    "(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END - '0/0')::bigint"
)
# On a standby, each transaction also reports its log position.
ENTER_STANDBY_BY_HOST = f"SELECT {SITE_COLUMNS}, {LOG_POSITION} AS log_position FROM enter_site($1)"
# Connections reserved for looking up revisions and for /readyz, which must work while all others are in use.
LOOKUP_CONNECTIONS = 2
# The share of connections for reads without credentials. A few connections keep a process busy. With more, expensive
# queries would take CPU time from other requests, and connections from signed-in users.
PUBLIC_SHARE: Final = 0.4
# Seconds after which a lookup treats the database as unavailable.
LOOKUP_TIMEOUT = 2.0
# Seconds to wait for the server when closing a connection.
CLOSE_TIMEOUT = 1.0
# After a timeout, replace all connections at most once in this many seconds.
DISTRUST_INTERVAL = 5.0
# Seconds to reuse the result of a schema check.
SCHEMA_CHECK_SECONDS = 5.0


# The site whose pages the server renders during the warm-up.
FIRST_SITE: Final = 1


class StatementTracer(Protocol):
    """Records statements and provides the request's traceparent (`adapters/tracing.py`)."""

    def record_statement(self, record: Any) -> None: ...

    def make_traceparent(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Options:
    url: str
    size: int = 10
    pool_timeout: float = 1.0  # seconds to wait for a connection before responding 503
    statement_timeout: float = 10.0  # maximum duration of one statement, in seconds
    public_statement_timeout: float = 3.0  # the same limit for reads without credentials
    transaction_timeout: float = 10.0  # maximum duration of a write before its commit, in seconds
    prepared: bool = True  # False behind a pooler in transaction mode
    enqueue_purges: bool = False  # whether each write enqueues a job that purges shared caches
    max_per_client: int = 0  # maximum number of connections in use by one client; 0 means no limit
    tracer: StatementTracer | None = None
    is_standby: bool = False  # whether transactions also report their log position


@dataclass(frozen=True, slots=True)
class PoolUsage:
    size: int
    used: int
    waiting: int


class Transaction:
    """The database interface for operations: statements in one site, and its change log."""

    def __init__(
        self,
        connection: Any,
        site: Site,
        now: datetime,
        *,
        enqueue_purges: bool = False,
        max_new_records: int | None = None,
        traceparent: str = "",
        log_position: int | None = None,
        turn: WriteTurn | None = None,
    ) -> None:
        self._connection = connection
        self._turn = turn  # None for jobs and commands, which do not take turns with users
        self.is_dry_run = False
        self.log_position = log_position  # on a standby, the position in the write-ahead log
        self._enqueue_purges = enqueue_purges
        self._max_new_records = max_new_records
        self.site = site
        self.now = now
        self.traceparent = traceparent  # the request's span, which its jobs continue; empty if untraced
        self.statements = 0
        self._changes: ChangeLog | None = None
        self._release = ""  # the statement that releases the previous savepoint

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
        """Lock the site for writing until the transaction ends.

        Raise 429 if several of the user's writes already wait for the lock in this process.
        """
        waiting: AbstractAsyncContextManager[None] = nullcontext()
        if self._turn is not None and user_id is not None:
            waiting = self._turn.waiting(self.site.id, user_id)
        async with waiting:
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
    def has_lock(self) -> bool:
        return self._changes is not None

    @property
    def has_written(self) -> bool:
        return self._changes is not None and bool(self._changes.entries)

    @property
    def changes(self) -> ChangeLog:
        if self._changes is None:
            raise AssertionError("the change log is used without the lock")
        return self._changes

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        """Undo only this block's writes and change log entries if it fails.

        The next savepoint or the commit releases this one, which saves a round trip. Blocks cannot be nested.
        """
        changes = self.changes
        saved = (changes.revision, changes.last_post_id, changes.last_term_id, len(changes.entries))
        await self._connection.execute(f"{self._release}SAVEPOINT attempt")
        self._release = "RELEASE SAVEPOINT attempt; "
        try:
            yield
        except (ApiError, asyncpg.PostgresError) as error:
            await self._connection.execute("ROLLBACK TO SAVEPOINT attempt")
            changes.revision, changes.last_post_id, changes.last_term_id, change_count = saved
            del changes.entries[change_count:]
            raise problems.translate_error(error) if isinstance(error, asyncpg.PostgresError) else error from error

    @asynccontextmanager
    async def rolled_back(self) -> AsyncIterator[None]:
        """Undo this block's writes and change log entries, for a dry run.

        After an error in the block, the caller must roll back the transaction; it stays marked as a dry run.
        """
        changes = self.changes
        self.is_dry_run = True
        saved = (changes.revision, changes.last_post_id, changes.last_term_id, len(changes.entries))
        await self._connection.execute("SAVEPOINT dry_run")
        yield
        await self._connection.execute("ROLLBACK TO SAVEPOINT dry_run")
        self.is_dry_run = False
        changes.revision, changes.last_post_id, changes.last_term_id, change_count = saved
        del changes.entries[change_count:]

    async def flush_changes(self) -> None:
        if self._changes is not None and self._changes.entries:
            await self.execute(self._changes.flush())
            if self._enqueue_purges:
                await self.execute(self._changes.enqueue_purge(self.traceparent))


class Database:
    def __init__(self, pool: Any, lookup_pool: Any, options: Options) -> None:
        self._pool = pool
        self._lookup_pool = lookup_pool
        self._options = options
        self._limiter = _make_limiter(options.size, options.max_per_client)
        # A client without credentials gets half as many connections, so it cannot occupy the whole share.
        self._public_limiter = _make_limiter(
            math.ceil(options.size * PUBLIC_SHARE), math.ceil(options.max_per_client / 2)
        )
        self._turns = WriteTurns()
        self._acquiring = 0
        self._recovering: set[asyncio.Task[None]] = set()
        self._distrusted_at = -DISTRUST_INTERVAL
        self._schema_problem: tuple[problems.Problem | None, float] = (None, -SCHEMA_CHECK_SECONDS)
        idle = f"SET LOCAL idle_in_transaction_session_timeout = {int(options.statement_timeout * 1000)}; "
        # The cost estimate for a list with many branches would trigger JIT compilation, which takes seconds.
        switch_role = f"{idle}SET LOCAL jit = off; SET LOCAL ROLE kalends_app"
        reading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; "
        timeout = f"SET LOCAL statement_timeout = {int(options.statement_timeout * 1000)}; "
        public_timeout = min(options.public_statement_timeout, options.statement_timeout)
        public = f"SET LOCAL statement_timeout = {int(public_timeout * 1000)}; "
        self._begin_read = f"{reading}{timeout}{switch_role}"
        self._begin_public_read = f"{reading}{public}{switch_role}"
        self._begin_write = f"BEGIN; {timeout}{switch_role}"
        # If a standby does not respond, requests go to the primary instead of waiting.
        self._begin_timeout = LOOKUP_TIMEOUT if options.is_standby else None

    @classmethod
    async def open(cls, options: Options) -> Self:
        """Open the pools without connecting, because the server may start before the database."""
        return cls(await _open_pool(options, options.size), await _open_pool(options, LOOKUP_CONNECTIONS), options)

    async def close(self) -> None:
        for pool in (self._pool, self._lookup_pool):
            try:
                await asyncio.wait_for(pool.close(), 5)
            except TimeoutError:
                pool.terminate()

    @property
    def by_cell(self) -> dict[str, "Database"]:
        """Return only this database, under an empty name, as `SiteDatabase` requires."""
        return {"": self}

    def make_revisions(self) -> SiteRevisions:
        return SiteRevisions(self)

    def read_counts(self) -> dict[str, int]:
        return {}

    def read_usage(self) -> PoolUsage:
        used = self._pool.get_size() - self._pool.get_idle_size()
        waiting = self._limiter.waiting + self._public_limiter.waiting + self._acquiring
        return PoolUsage(self._options.size, used, waiting)

    @asynccontextmanager
    async def transaction(
        self, site: str | int, now: datetime, *, writing: bool, anonymous: bool = False, client_ip: str = ""
    ) -> AsyncIterator[Transaction]:
        """Run one transaction in a site, given by host or ID; commit it unless an exception is raised.

        `anonymous` marks a read without credentials, whose statements have a shorter timeout. Each `client_ip` gets a
        fair share of the connections. Requests with credentials may wait longer for a connection, because writes are
        serialized.
        """
        max_wait = (
            self._options.pool_timeout
            if anonymous
            else max(self._options.pool_timeout, self._options.statement_timeout)
        )
        begin = self._begin_statement(writing=writing, anonymous=anonymous)
        turn = WriteTurn(self._turns)
        transaction = self._transaction(site, now, begin, turn if client_ip else None, writing=writing)
        client = rate_limit_key(client_ip) if client_ip else ""
        public_slot = self._public_limiter.slot(client, max_wait) if client and anonymous else nullcontext()
        slot = self._limiter.slot(client, max_wait) if client else nullcontext()
        with turn:
            async with public_slot, slot, transaction as tx:
                yield tx

    @asynccontextmanager
    async def _transaction(
        self, site: str | int, now: datetime, begin: str, turn: WriteTurn | None, *, writing: bool
    ) -> AsyncIterator[Transaction]:
        connection = await self._acquire(self._pool)
        has_entered = is_committing = False
        owns_connection = True
        limit = asyncio.timeout(self._options.transaction_timeout if writing else None)
        try:
            async with limit:
                await connection.execute(begin, timeout=self._begin_timeout)
                row = await connection.fetchrow(self._enter_statement(site), site)
                if row is None:
                    raise errors.unknown_site()
                has_entered = True
                transaction = Transaction(
                    connection,
                    Site.from_row(row),
                    now,
                    enqueue_purges=self._options.enqueue_purges,
                    max_new_records=MAX_NEW_RECORDS,
                    traceparent=self._options.tracer.make_traceparent() if self._options.tracer else "",
                    log_position=row.get("log_position"),
                    turn=turn,
                )
                yield transaction
                await transaction.flush_changes()
                # If a commit is interrupted, its outcome is unknown, so only the driver's timeout applies.
                limit.reschedule(None)
                is_committing = writing
                await self._commit(connection, writing)
        except asyncpg.PostgresError as error:
            await self._roll_back(connection)
            if error.sqlstate == problems.READ_ONLY_STATE:
                await self._reconnect(connection)
            is_broken = (error.sqlstate or "").startswith(problems.BROKEN_CONNECTION_STATES)
            if is_committing and is_broken:
                raise errors.outcome_unknown() from error
            raise (
                await self._explain_schema(error, has_entered=has_entered) or problems.translate_error(error)
            ) from error
        except TimeoutError as error:
            # The statement is being canceled. The client need not wait, but the connection must not be released yet:
            # while its backend is busy, another connection would exceed the limit.
            owns_connection = False
            self._recover(connection, is_suspicious=True)
            if limit.expired():
                raise errors.too_slow(self._options.transaction_timeout) from error
            raise (errors.outcome_unknown() if is_committing else errors.unavailable()) from error
        except problems.CONNECTION_ERRORS as error:
            _terminate(connection)
            log.warning("database connection lost: %r", error)
            raise (errors.outcome_unknown() if is_committing else errors.unavailable()) from error
        except Exception:
            await self._roll_back(connection)
            raise
        except asyncio.CancelledError:
            # The client disconnected. Closing the connection during a statement would keep the site locked until that
            # statement ends, so cancel the statement and roll back instead.
            owns_connection = False
            self._recover(connection)
            raise
        except BaseException:
            _terminate(connection)
            raise
        finally:
            if owns_connection:
                await _release(self._pool, connection)

    async def fetch_unscoped(self, sql: Sql, *, seconds: float | None = None) -> list[Record]:
        """Run one statement outside any site, to call functions with the owner's rights; `seconds` is its timeout."""
        connection = await self._acquire(self._lookup_pool)
        try:
            rows: list[Record] = await connection.fetch(sql.render(), *sql.values, timeout=seconds)
        except BaseException as error:
            _terminate(connection)
            if isinstance(error, TimeoutError):
                await self._distrust_connections()
            if not isinstance(error, problems.DRIVER_ERRORS):
                raise
            raise (await self._explain_schema(error) or errors.unavailable()) from error
        finally:
            await _release(self._lookup_pool, connection)
        return rows

    async def fetch_revisions(self, hosts: list[str]) -> list[Record]:
        sql = Sql("SELECT host, site_id, revision FROM site_revisions(?)", hosts)
        return await self.fetch_unscoped(sql, seconds=LOOKUP_TIMEOUT)

    async def fetch_for_site(self, site_id: int, sql: Sql) -> list[Record]:
        """Run a statement about a site. `site_id` is unused, because there is only one database."""
        return await self.fetch_unscoped(sql, seconds=LOOKUP_TIMEOUT)

    async def sample_hosts(self) -> list[str]:
        """Return one of the first site's hosts, or an empty list, because a single site needs no host."""
        async with self.transaction(FIRST_SITE, utc_now(), writing=False) as tx:
            return [row["host"] for row in await tx.fetch_all(Sql("SELECT host FROM own_hosts() LIMIT 1"))]

    async def read_log_position(self) -> int:
        """Return the write-ahead log position; raise 503 if this should be a primary but is a standby.

        A standby that has become the primary still answers, but its connections are replaced to make a proxy route
        them to another standby. Otherwise the next failover would break both databases' connections at once.
        """
        sql = Sql(f"SELECT pg_is_in_recovery() AS is_standby, {LOG_POSITION} AS log_position")
        (row,) = await self.fetch_unscoped(sql, seconds=LOOKUP_TIMEOUT)
        if row["is_standby"] and not self._options.is_standby:
            await self._expire_connections()
            raise errors.unavailable()
        if self._options.is_standby and not row["is_standby"]:
            await self._distrust_connections()
        position: int = row["log_position"]
        return position

    async def check_schema(self, wanted: str) -> list[str]:
        """Raise 503 if the database is unavailable, is a standby, or has a schema incompatible with this code."""
        connection = await self._acquire(self._lookup_pool)
        try:
            row = await connection.fetchrow(problems.READ_VERSION, timeout=LOOKUP_TIMEOUT)
            if row and row["is_standby"]:
                await self._reconnect(connection)
        except problems.DRIVER_ERRORS as error:
            _terminate(connection)
            if isinstance(error, TimeoutError):
                await self._distrust_connections()
            not_responding = errors.unavailable(Message("The database is not responding."), cause="database")
            raise (await self._explain_schema(error) or not_responding) from error
        finally:
            await _release(self._lookup_pool, connection)
        if row and row["is_standby"]:
            raise errors.unavailable(
                Message("The database is a standby and does not accept writes."), cause="read_only"
            )
        if problem := problems.compare_schema(problems.to_schema_version(row), wanted):
            raise DatabaseUnavailable(problem)
        return []

    async def _explain_schema(self, error: BaseException, *, has_entered: bool = False) -> ApiError | None:
        """Explain an error caused by a missing or different schema; return None for other errors.

        A missing table, function or column in the right schema is a bug. Before the transaction enters a site, the
        role may be missing too.
        """
        state = getattr(error, "sqlstate", None)
        concerns_role = state in problems.ROLE_STATES and not has_entered
        if state not in problems.SCHEMA_STATES and not concerns_role:
            return None
        problem, checked_at = self._schema_problem
        if time.monotonic() - checked_at >= SCHEMA_CHECK_SECONDS:
            try:
                found = await problems.read_schema_version(self._options.url)
            except DatabaseUnavailable as unavailable:
                return unavailable
            problem = problems.compare_schema(found, newest_revision())
            self._schema_problem = (problem, time.monotonic())
        problem = problem or (problems.NO_RIGHTS if concerns_role else None)
        return DatabaseUnavailable(problem) if problem else None

    def _begin_statement(self, *, writing: bool, anonymous: bool) -> str:
        if writing:
            return self._begin_write
        return self._begin_public_read if anonymous else self._begin_read

    def _enter_statement(self, site: str | int) -> str:
        if isinstance(site, int):
            return ENTER_SITE_BY_ID
        return ENTER_STANDBY_BY_HOST if self._options.is_standby else ENTER_SITE_BY_HOST

    async def _acquire(self, pool: Any) -> Any:
        self._acquiring += 1
        try:
            return await pool.acquire(timeout=self._options.pool_timeout)
        except TimeoutError as error:
            if pool.get_size() < pool.get_max_size():
                raise DatabaseUnavailable(problems.no_response(self._options.url)) from error
            message = Message("All database connections are in use.")
            raise errors.unavailable(message, cause="pool_exhausted") from error
        except (asyncpg.PostgresError, *problems.CONNECTION_ERRORS) as error:
            if problem := problems.explain(error, self._options.url):
                raise DatabaseUnavailable(problem) from error
            raise (problems.translate_error(error) if isinstance(error, asyncpg.PostgresError) else error) from error
        finally:
            self._acquiring -= 1

    @staticmethod
    async def _commit(connection: Any, writing: bool) -> None:
        if not writing:
            await connection.execute("COMMIT")
            return
        # If the wait for a standby is canceled, a commit succeeds with a warning: the write is stored on the primary
        # but perhaps not on the standby, so do not acknowledge it.
        notices: list[Any] = []
        listener = lambda _, message: notices.append(message)  # noqa: E731
        connection.add_log_listener(listener)
        try:
            await connection.execute("COMMIT")
            await asyncio.sleep(0)
        finally:
            with suppress(asyncpg.InterfaceError):  # A closed connection has no listeners.
                connection.remove_log_listener(listener)
        if any(notice.sqlstate == "01000" for notice in notices):
            raise errors.outcome_unknown()

    async def _reconnect(self, connection: Any) -> None:
        """Close this connection and replace all others before their next use.

        The other connections use the same server, so each would cause another failed write.
        """
        _terminate(connection)
        await self._expire_connections()

    async def _distrust_connections(self) -> None:
        """Replace all connections before their next use, after one of them timed out.

        A proxy may keep connections to a dead server open, and each of them would cause another timeout.
        DISTRUST_INTERVAL limits how often this happens, to avoid flooding a slow server with new connections.
        """
        if time.monotonic() - self._distrusted_at >= DISTRUST_INTERVAL:
            self._distrusted_at = time.monotonic()
            await self._expire_connections()

    async def _expire_connections(self) -> None:
        for pool in (self._pool, self._lookup_pool):
            await pool.expire_connections()

    def _recover(self, connection: Any, *, is_suspicious: bool = False) -> None:
        async def roll_back() -> None:
            if is_suspicious:
                await self._distrust_connections()
            await self._roll_back(connection)
            await _release(self._pool, connection)

        task = asyncio.create_task(roll_back())
        self._recovering.add(task)
        task.add_done_callback(self._recovering.discard)

    @staticmethod
    async def _roll_back(connection: Any) -> None:
        try:
            # The driver's timeout starts only after a pending cancellation has finished.
            async with asyncio.timeout(2):
                await connection.execute("ROLLBACK")
        except problems.DRIVER_ERRORS:
            _terminate(connection)


def _make_limiter(total: int, per_client: int) -> PerOwnerLimiter:
    """Return a limiter; 0 per client means no limit."""
    limits = ConcurrencyLimits(min(per_client or total, total), total=total, waiting_per_owner=100, waiting=400)
    return PerOwnerLimiter(limits)


async def _open_pool(options: Options, size: int) -> Any:
    tracer = options.tracer

    async def trace_statements(connection: Any) -> None:
        if tracer is not None:
            connection.add_query_logger(tracer.record_statement)

    return await asyncpg.create_pool(
        options.url,
        min_size=0,
        max_size=size,
        timeout=max(options.pool_timeout, 1.0),
        # Unlike the server's timeout, this one also covers a broken network.
        command_timeout=options.statement_timeout + 1,
        statement_cache_size=1024 if options.prepared else 0,
        max_inactive_connection_lifetime=300,
        init=trace_statements if tracer is not None else None,
        # Every transaction ends with COMMIT or ROLLBACK, so there is nothing to reset.
        reset=_skip_reset,
    )


async def _release(pool: Any, connection: Any) -> None:
    """Return a connection to its pool, which closes it if all connections are being replaced.

    The transaction's outcome is already known, so ignore connection errors.
    """
    with suppress(*problems.DRIVER_ERRORS):
        await pool.release(connection, timeout=CLOSE_TIMEOUT)


def _terminate(connection: Any) -> None:
    with suppress(asyncpg.InterfaceError):  # The driver has already released the connection.
        connection.terminate()


async def _skip_reset(_: Any) -> None:
    return None
