"""SQL for sessions, one-time tokens and passkeys."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, LiteralString

from asyncpg import Record

from kalends.calendar.storage import record_tables
from kalends.store.database import Transaction
from kalends.store.sql import Sql

# A session ends after this idle time, and in any case at its maximum age.
IDLE: Final = timedelta(days=14)
MAX_AGE: Final = timedelta(days=90)
ADMINISTRATOR_IDLE: Final = timedelta(hours=12)
ADMINISTRATOR_MAX_AGE: Final = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Session:
    token_hash: bytes
    created_at: datetime
    seen_at: datetime
    reauthenticated_at: datetime
    user_id: int
    login: str
    display_name: str
    email: str
    role: str
    language: str


async def add_session(tx: Transaction, token_hash: bytes, user_id: int, client_ip: str, user_agent: str) -> None:
    now = tx.now
    await record_tables.add(
        tx,
        "sessions",
        {
            "token_hash": token_hash,
            "user_id": user_id,
            "created_at": now,
            "seen_at": now,
            "reauthenticated_at": now,
            "client_ip": client_ip[:100],
            "user_agent": user_agent[:200],
        },
    )
    await record_tables.change(tx, "users", user_id, {"last_signed_in_at": now})


async def find_session(tx: Transaction, token_hash: bytes) -> Session | None:
    """Return the session with this token, or None if it has ended or its user is disabled."""
    query = """
        SELECT s.token_hash, s.created_at, s.seen_at, s.reauthenticated_at, u.id AS user_id, u.login,
            u.display_name, u.email, u.role, u.language
        FROM sessions s JOIN users u ON u.site_id = s.site_id AND u.id = s.user_id
        WHERE s.site_id = ? AND s.token_hash = ? AND u.disabled_at IS NULL AND
    """
    row = await tx.fetch_one(Sql(query, tx.site.id, token_hash) + _is_current(tx.now))
    return Session(*row.values()) if row else None


def _is_current(now: datetime) -> Sql:
    query = """CASE WHEN u.role = 'administrator' THEN s.seen_at > ? AND s.created_at > ?
        ELSE s.seen_at > ? AND s.created_at > ? END"""
    return Sql(query, now - ADMINISTRATOR_IDLE, now - ADMINISTRATOR_MAX_AGE, now - IDLE, now - MAX_AGE)


async def list_sessions(tx: Transaction, user_id: int) -> list[Record]:
    """Return a user's unexpired sessions, most recently used first."""
    query = """
        SELECT s.token_hash, s.created_at, s.seen_at, s.client_ip, s.user_agent
        FROM sessions s JOIN users u ON u.site_id = s.site_id AND u.id = s.user_id
        WHERE s.site_id = ? AND s.user_id = ? AND
    """
    return await tx.fetch_all(
        Sql(query, tx.site.id, user_id) + _is_current(tx.now) + Sql("ORDER BY s.seen_at DESC, s.created_at DESC")
    )


async def touch_session(tx: Transaction, token_hash: bytes, client_ip: str) -> None:
    statement = "UPDATE sessions SET seen_at = ?, client_ip = ? WHERE site_id = ? AND token_hash = ?"
    await tx.execute(Sql(statement, tx.now, client_ip[:100], tx.site.id, token_hash))


async def confirm_session(tx: Transaction, token_hash: bytes) -> None:
    """Record that a session's user has proved their identity."""
    statement = "UPDATE sessions SET reauthenticated_at = ? WHERE site_id = ? AND token_hash = ?"
    await tx.execute(Sql(statement, tx.now, tx.site.id, token_hash))


async def end_session(tx: Transaction, user_id: int, token_hash: bytes) -> bool:
    return await delete_row(tx, "sessions", {"user_id": user_id, "token_hash": token_hash})


async def end_sessions(tx: Transaction, user_id: int, except_hash: bytes = b"") -> None:
    statement = "DELETE FROM sessions WHERE site_id = ? AND user_id = ? AND token_hash <> ?"
    await tx.execute(Sql(statement, tx.site.id, user_id, except_hash))


async def remove_expired(tx: Transaction) -> None:
    await tx.execute(
        Sql("DELETE FROM sessions s USING users u WHERE u.site_id = s.site_id AND u.id = s.user_id")
        + Sql("AND s.site_id = ? AND NOT (", tx.site.id)
        + _is_current(tx.now)
        + Sql(")")
    )
    await tx.execute(Sql("DELETE FROM one_time_tokens WHERE site_id = ? AND expires_at <= ?", tx.site.id, tx.now))


async def add_token(
    tx: Transaction, token_hash: bytes, purpose: str, user_id: int | None, expires_at: datetime
) -> bool:
    """Store a one-time token; return False if it already exists."""
    statement = """
        INSERT INTO one_time_tokens (site_id, token_hash, purpose, user_id, expires_at) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT DO NOTHING RETURNING true"""
    return bool(await tx.fetch_value(Sql(statement, tx.site.id, token_hash, purpose, user_id, expires_at)))


async def find_token(tx: Transaction, token_hash: bytes) -> Record | None:
    query = """SELECT t.purpose, u.id AS user_id, u.login, u.role FROM one_time_tokens t
        JOIN users u ON u.site_id = t.site_id AND u.id = t.user_id
        WHERE t.site_id = ? AND t.token_hash = ? AND t.expires_at > ? AND u.disabled_at IS NULL"""
    return await tx.fetch_one(Sql(query, tx.site.id, token_hash, tx.now))


async def remove_token(tx: Transaction, token_hash: bytes) -> bool:
    return await delete_row(tx, "one_time_tokens", {"token_hash": token_hash})


async def remove_tokens(tx: Transaction, user_id: int, purpose: str | None = None) -> None:
    await tx.execute(
        Sql("DELETE FROM one_time_tokens WHERE site_id = ? AND user_id = ?", tx.site.id, user_id)
        + (Sql("AND purpose = ?", purpose) if purpose else Sql(""))
    )


@dataclass(frozen=True, slots=True)
class Passkey:
    user_id: int
    public_key: bytes
    sign_count: int


async def add_passkey(tx: Transaction, credential_id: bytes, passkey: Passkey, name: str) -> bool:
    """Add a passkey; return False if it already exists."""
    statement = """INSERT INTO passkeys (site_id, credential_id, user_id, public_key, sign_count, name, created_at)
        VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING true"""
    values = (credential_id, passkey.user_id, passkey.public_key, passkey.sign_count, name, tx.now)
    return bool(await tx.fetch_value(Sql(statement, tx.site.id, *values)))


async def find_passkey(tx: Transaction, credential_id: bytes) -> Passkey | None:
    """Lock and return a passkey, or None if it does not exist or its user is disabled."""
    query = """SELECT p.user_id, p.public_key, p.sign_count FROM passkeys p
        JOIN users u ON u.site_id = p.site_id AND u.id = p.user_id
        WHERE p.site_id = ? AND p.credential_id = ? AND u.disabled_at IS NULL FOR UPDATE OF p"""
    row = await tx.fetch_one(Sql(query, tx.site.id, credential_id))
    return Passkey(*row.values()) if row else None


async def list_passkeys(tx: Transaction, user_id: int) -> list[Record]:
    query = """SELECT credential_id, name, created_at, last_used_at FROM passkeys
        WHERE site_id = ? AND user_id = ? ORDER BY created_at, credential_id"""
    return await tx.fetch_all(Sql(query, tx.site.id, user_id))


async def record_passkey_use(tx: Transaction, credential_id: bytes, sign_count: int, used_at: datetime) -> None:
    statement = "UPDATE passkeys SET sign_count = ?, last_used_at = ? WHERE site_id = ? AND credential_id = ?"
    await tx.execute(Sql(statement, sign_count, used_at, tx.site.id, credential_id))


async def remove_passkey(tx: Transaction, user_id: int, credential_id: bytes) -> bool:
    return await delete_row(tx, "passkeys", {"user_id": user_id, "credential_id": credential_id})


async def delete_row(tx: Transaction, table: LiteralString, key: Mapping[LiteralString, object]) -> bool:
    """Delete one of the site's rows by its key; return whether it existed."""
    conditions: LiteralString = " AND ".join([name + " = ?" for name in ("site_id", *key)])
    statement = Sql("DELETE FROM " + table + " WHERE " + conditions + " RETURNING true", tx.site.id, *key.values())
    return bool(await tx.fetch_value(statement))
