"""Tables, connections and transactions. The only package that imports the database driver."""

from asyncpg import Record as Row

__all__ = ["Row"]
