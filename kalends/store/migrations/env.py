"""Alembic's entry point: run pending migrations over one connection while holding an advisory lock."""

import random
import time
from collections.abc import Collection, Mapping
from typing import Any

from alembic import context
from alembic.runtime.migration import MigrationContext, MigrationInfo
from sqlalchemy import Connection, create_engine, pool, text
from sqlalchemy.exc import OperationalError, ProgrammingError

from kalends.store import checks, problems
from kalends.store.migrations import Report, compatibility, list_revisions, newest_revision
from kalends.store.migrations.steps import LOCK_TIMEOUT_MS

# Key of the advisory lock that serializes migrations of one database; an arbitrary number.
MIGRATION_LOCK = 5_254_637_101
# Seconds between attempts to get this lock.
LOCK_INTERVAL = 0.2
# SQLSTATEs after which the migration starts again: a lock timeout, and a deadlock with requests.
BUSY_STATES = ("55P03", "40P01")
# Range for a random pause before the next attempt, in seconds. During the pause, waiting requests are served.
RETRY_PAUSE = (0.5, 2.0)
# After this many seconds, the command gives up.
MAX_RETRY_SECONDS = 300.0
# The version whose schema the first migration creates.
LAST_REPLACED = "0034"


def grant_rights(connection: Connection, logins: Mapping[str, str]) -> None:
    """Grant each role in `logins` to its login, and revoke everyone's right to create temporary tables.

    This runs after each migration, because a restored dump lacks rights on the database itself.
    """
    quote = connection.dialect.identifier_preparer.quote
    owner, database = connection.execute(text("SELECT current_user, current_database()")).one()
    connection.execute(text(f"REVOKE TEMPORARY ON DATABASE {quote(database)} FROM PUBLIC"))
    for role, login in logins.items():
        if login and login != owner:
            connection.execute(text(f"GRANT {quote(role)} TO {quote(login)}"))
    connection.commit()


def restore_marks(connection: Connection, report: Report) -> None:
    """Mark search functions LEAKPROOF if they lack the mark; a dump does not contain these marks."""
    statements = connection.exec_driver_sql(checks.FIND_MISSING).scalars().all()
    if not statements:
        return
    try:
        for statement in statements:
            connection.exec_driver_sql(statement)
        connection.commit()
        report(f"Marked {len(statements)} functions LEAKPROOF.")
    except ProgrammingError as error:
        connection.rollback()
        if getattr(error.orig, "sqlstate", None) != "42501":
            raise
        report(
            "Warning: searches are slow, because functions lack the mark LEAKPROOF, which only a superuser can set. "
            "Run these statements in this database:"
        )
        for statement in statements:
            report(f"  {statement}")


class StepTimer:
    def __init__(self, report: Report) -> None:
        self._report = report
        self._started_at = time.monotonic()
        self.count = 0

    def note(self, step: MigrationInfo) -> None:
        now = time.monotonic()
        title = str(getattr(step.up_revision, "doc", "")).partition("\n")[0]
        self._report(f"{step.up_revision_id}  {now - self._started_at:5.1f} s  {title}")
        self._started_at = now
        self.count += 1


def has_declarations(connection: Connection) -> bool:
    return bool(connection.execute(text("SELECT to_regclass('schema_compatibility') IS NOT NULL")).scalar())


def store_declaration(connection: Connection, revision: str) -> None:
    """Store which code is compatible with the new schema, in the same transaction as the migration."""
    oldest = compatibility.OLDEST_CODE.get(revision)
    if oldest and has_declarations(connection):
        connection.execute(
            text(
                "INSERT INTO schema_compatibility VALUES (:revision, :oldest) "
                "ON CONFLICT (revision) DO UPDATE SET oldest_code = excluded.oldest_code"
            ),
            {"revision": revision, "oldest": oldest},
        )


def lock(connection: Connection, report: Report) -> None:
    is_waiting = False
    while not connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": MIGRATION_LOCK}).scalar():
        if not is_waiting:
            report("Another migration is running; waiting for it.")
        is_waiting = True
        # Release the snapshot: a concurrent migration's CREATE INDEX CONCURRENTLY would wait for it.
        connection.rollback()
        time.sleep(LOCK_INTERVAL)
    connection.execute(text(f"SET lock_timeout = {LOCK_TIMEOUT_MS}"))
    connection.commit()


def upgrade(connection: Connection, report: Report) -> None:
    found = read_version(connection)
    newest = newest_revision()
    if found.number > newest:
        if problem := problems.compare_schema(found, newest):
            raise problems.DatabaseUnavailable(problem)
        report(f"The schema is {problems.describe_newer(found, newest)}.")
        return
    first = list_revisions()[0]
    if found.number and found.number < first:
        raise problems.DatabaseUnavailable(problems.explain_replaced(found, first, LAST_REPLACED))
    if found.number != newest:
        report(f"The schema is {found.number or 'empty'}, the target is {newest}.")
    timer = StepTimer(report)
    run_revisions(connection, timer, report)
    if not timer.count:
        report(f"The schema is up to date ({found.number}).")


def read_version(connection: Connection) -> problems.SchemaVersion:
    """Return the schema's version, without a declaration if the table for declarations does not exist yet."""
    context.configure(connection=connection)
    number = context.get_context().get_current_revision() or ""
    query = text("SELECT oldest_code FROM schema_compatibility WHERE revision = :number")
    oldest = connection.execute(query, {"number": number}).scalar() if has_declarations(connection) else None
    connection.rollback()
    return problems.SchemaVersion(number, str(oldest or ""))


def run_revisions(connection: Connection, timer: StepTimer, report: Report) -> None:
    """Run each pending revision in a separate transaction, and start it again if it cannot get its locks."""

    def finish(
        ctx: MigrationContext, step: MigrationInfo, heads: Collection[Any], run_args: Mapping[str, Any]
    ) -> None:
        store_declaration(connection, str(step.up_revision_id))
        timer.note(step)

    give_up_at = time.monotonic() + MAX_RETRY_SECONDS
    while True:
        context.configure(connection=connection, transaction_per_migration=True, on_version_apply=finish)
        try:
            with context.begin_transaction():
                context.run_migrations()
            return
        except OperationalError as error:
            connection.rollback()
            if getattr(error.orig, "sqlstate", None) not in BUSY_STATES or time.monotonic() > give_up_at:
                raise
        pause = random.uniform(*RETRY_PAUSE)  # noqa: S311  (a fixed pause could collide with periodic requests)
        report(f"A table is in use by another transaction; trying again in {pause:.1f} s.")
        time.sleep(pause)


def run() -> None:
    attributes = context.config.attributes
    _, _, location = str(attributes["database_url"]).partition("://")
    report: Report = attributes["report"]
    engine = create_engine(f"postgresql+psycopg://{location}", poolclass=pool.NullPool)
    with engine.connect() as connection:
        lock(connection, report)
        try:
            upgrade(connection, report)
            grant_rights(connection, attributes["logins"])
            restore_marks(connection, report)
        finally:
            connection.rollback()
            connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": MIGRATION_LOCK})
            connection.commit()


run()
