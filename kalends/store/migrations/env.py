"""Entry point of Alembic: one connection, one advisory lock, one transaction per revision."""

from collections.abc import Mapping

from alembic import context
from sqlalchemy import Connection, create_engine, pool, text

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


def run() -> None:
    url = str(context.config.attributes["database_url"])
    _, _, location = url.partition("://")
    engine = create_engine(f"postgresql+psycopg://{location}", poolclass=pool.NullPool)
    with engine.connect() as connection:
        connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": MIGRATION_LOCK})
        # Readers must not queue behind a migration that is waiting for a lock.
        connection.execute(text("SET lock_timeout = '5s'"))
        connection.commit()
        try:
            context.configure(connection=connection, transaction_per_migration=True)
            with context.begin_transaction():
                context.run_migrations()
            grant_rights(connection, context.config.attributes["logins"])
        finally:
            connection.rollback()
            connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": MIGRATION_LOCK})
            connection.commit()


run()
