"""Alembic's entry: one connection, one advisory lock, one transaction per revision."""

from alembic import context
from sqlalchemy import create_engine, pool, text

# Any fixed number will do; it keeps two migrations of one database apart.
MIGRATION_LOCK = 5_254_637_101


def run() -> None:
    url = str(context.config.attributes["database_url"])
    _, _, address = url.partition("://")
    engine = create_engine(f"postgresql+psycopg://{address}", poolclass=pool.NullPool)
    with engine.connect() as connection:
        connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": MIGRATION_LOCK})
        # A reader must not queue behind a migration that itself waits for a lock.
        connection.execute(text("SET lock_timeout = '5s'"))
        connection.commit()
        try:
            context.configure(connection=connection, transaction_per_migration=True)
            with context.begin_transaction():
                context.run_migrations()
        finally:
            connection.rollback()
            connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": MIGRATION_LOCK})
            connection.commit()


run()
