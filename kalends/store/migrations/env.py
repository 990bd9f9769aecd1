"""Entry point of Alembic: one connection, one advisory lock, one transaction per revision."""

import time
from collections.abc import Collection, Mapping
from typing import Any

from alembic import context
from alembic.runtime.migration import MigrationContext, MigrationInfo
from sqlalchemy import Connection, create_engine, pool, text
from sqlalchemy.exc import ProgrammingError

from kalends.store import leakproof, problems
from kalends.store.migrations import Report, newest_revision

# An arbitrary number that serializes migrations of one database.
MIGRATION_LOCK = 5_254_637_101


def grant_rights(connection: Connection, logins: Mapping[str, str]) -> None:
    """Grant roles to logins after each migration, because a restored dump has no rights on the database itself.

    `logins` maps each of the roles `kalends_app` and `kalends_queue` to the login that gets it.
    """
    quote = connection.dialect.identifier_preparer.quote
    owner, database = connection.execute(text("SELECT current_user, current_database()")).one()
    connection.execute(text(f"REVOKE TEMPORARY ON DATABASE {quote(database)} FROM PUBLIC"))
    for role, login in logins.items():
        if login and login != owner:
            connection.execute(text(f"GRANT {quote(role)} TO {quote(login)}"))
    connection.commit()


def restore_marks(connection: Connection, report: Report) -> None:
    """Mark the functions of searches LEAKPROOF again, because a dump does not contain the marks."""
    statements = connection.exec_driver_sql(leakproof.FIND_MISSING).scalars().all()
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
    """Reports each applied revision with its duration."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._started_at = time.monotonic()
        self.count = 0

    def __call__(
        self, ctx: MigrationContext, step: MigrationInfo, heads: Collection[Any], run_args: Mapping[str, Any]
    ) -> None:
        now = time.monotonic()
        title = str(getattr(step.up_revision, "doc", "")).partition("\n")[0]
        self._report(f"{step.up_revision_id}  {now - self._started_at:5.1f} s  {title}")
        self._started_at = now
        self.count += 1


def lock(connection: Connection, report: Report) -> None:
    """Become the only migration of this database."""
    if not connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": MIGRATION_LOCK}).scalar():
        report("Another migration is running; waiting for it.")
        connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": MIGRATION_LOCK})
    # Readers must not queue behind a migration that is waiting for a lock.
    connection.execute(text("SET lock_timeout = '5s'"))
    connection.commit()


def upgrade(connection: Connection, report: Report) -> None:
    """Apply the pending revisions and report them."""
    timer = StepTimer(report)
    context.configure(connection=connection, transaction_per_migration=True, on_version_apply=timer)
    current = context.get_context().get_current_revision() or ""
    connection.rollback()
    newest = newest_revision()
    if current > newest and (problem := problems.compare_schema(current, newest)):
        raise problems.DatabaseUnavailable(problem)
    if current != newest:
        report(f"The schema is {current or 'empty'}, the target is {newest}.")
    with context.begin_transaction():
        context.run_migrations()
    if not timer.count:
        report(f"The schema is up to date ({current}).")


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
