"""The database engine: connections, transactions, the job queue and migrations."""

from asyncpg import Record as Row

__all__ = ["Row"]
