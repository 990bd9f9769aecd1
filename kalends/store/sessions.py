"""Rows of sessions, and of the tokens that sign in once."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from asyncpg import Record

from kalends.store import records
from kalends.store.database import Transaction
from kalends.store.sql import Sql

# A session ends after this time without a request, and after this time in any case.
IDLE: Final = timedelta(days=14)
MAX_AGE: Final = timedelta(days=90)
ADMINISTRATOR_IDLE: Final = timedelta(hours=12)
ADMINISTRATOR_MAX_AGE: Final = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Session:
    """A valid session with its user."""

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
    await records.add(
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
    await records.change(tx, "users", user_id, {"last_signed_in_at": now})


async def find_session(tx: Transaction, token_hash: bytes) -> Session | None:
    """Return the session with this token, or None if it has ended or its user is disabled."""
    row = await tx.fetch_one(
        Sql(
            """
            SELECT s.token_hash, s.created_at, s.seen_at, s.reauthenticated_at, u.id AS user_id, u.login,
                u.display_name, u.email, u.role, u.language
            FROM sessions s JOIN users u ON u.site_id = s.site_id AND u.id = s.user_id
            WHERE s.site_id = ? AND s.token_hash = ? AND u.disabled_at IS NULL AND
            """,
            tx.site.id,
            token_hash,
        )
        + _is_current(tx.now)
    )
    return Session(*row.values()) if row else None


def _is_current(now: datetime) -> Sql:
    """Return the condition for sessions that have not expired."""
    return Sql(
        """CASE WHEN u.role = 'administrator' THEN s.seen_at > ? AND s.created_at > ?
            ELSE s.seen_at > ? AND s.created_at > ? END""",
        now - ADMINISTRATOR_IDLE,
        now - ADMINISTRATOR_MAX_AGE,
        now - IDLE,
        now - MAX_AGE,
    )


async def list_sessions(tx: Transaction, user_id: int) -> list[Record]:
    """Return the sessions of a user that have not expired, the last used first."""
    return await tx.fetch_all(
        Sql(
            """
            SELECT s.token_hash, s.created_at, s.seen_at, s.client_ip, s.user_agent
            FROM sessions s JOIN users u ON u.site_id = s.site_id AND u.id = s.user_id
            WHERE s.site_id = ? AND s.user_id = ? AND
            """,
            tx.site.id,
            user_id,
        )
        + _is_current(tx.now)
        + Sql("ORDER BY s.seen_at DESC, s.created_at DESC")
    )


async def touch_session(tx: Transaction, token_hash: bytes, client_ip: str) -> None:
    """Record that a session is in use."""
    await tx.execute(
        Sql(
            "UPDATE sessions SET seen_at = ?, client_ip = ? WHERE site_id = ? AND token_hash = ?",
            tx.now,
            client_ip[:100],
            tx.site.id,
            token_hash,
        )
    )


async def confirm_session(tx: Transaction, token_hash: bytes) -> None:
    """Record that the user of a session has proved their identity."""
    await tx.execute(
        Sql(
            "UPDATE sessions SET reauthenticated_at = ? WHERE site_id = ? AND token_hash = ?",
            tx.now,
            tx.site.id,
            token_hash,
        )
    )


async def end_session(tx: Transaction, user_id: int, token_hash: bytes) -> bool:
    """End one session of a user; return whether it existed."""
    ended = await tx.fetch_value(
        Sql(
            "DELETE FROM sessions WHERE site_id = ? AND user_id = ? AND token_hash = ? RETURNING true",
            tx.site.id,
            user_id,
            token_hash,
        )
    )
    return bool(ended)


async def end_sessions(tx: Transaction, user_id: int, except_hash: bytes = b"") -> None:
    """End all sessions of a user, except for one."""
    await tx.execute(
        Sql(
            "DELETE FROM sessions WHERE site_id = ? AND user_id = ? AND token_hash <> ?",
            tx.site.id,
            user_id,
            except_hash,
        )
    )


async def remove_expired(tx: Transaction) -> None:
    """Remove the sessions and one-time tokens of the site that have expired."""
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
    """Store a one-time token; return False if it exists already."""
    added = await tx.fetch_value(
        Sql(
            """INSERT INTO one_time_tokens (site_id, token_hash, purpose, user_id, expires_at) VALUES (?, ?, ?, ?, ?)
                ON CONFLICT DO NOTHING RETURNING true""",
            tx.site.id,
            token_hash,
            purpose,
            user_id,
            expires_at,
        )
    )
    return bool(added)


async def find_token(tx: Transaction, token_hash: bytes) -> Record | None:
    """Return the purpose and the user of a token that has not expired."""
    return await tx.fetch_one(
        Sql(
            """SELECT t.purpose, u.id AS user_id, u.login, u.role FROM one_time_tokens t
                JOIN users u ON u.site_id = t.site_id AND u.id = t.user_id
                WHERE t.site_id = ? AND t.token_hash = ? AND t.expires_at > ? AND u.disabled_at IS NULL""",
            tx.site.id,
            token_hash,
            tx.now,
        )
    )


async def remove_token(tx: Transaction, token_hash: bytes) -> bool:
    """Remove a one-time token; return whether it existed."""
    removed = await tx.fetch_value(
        Sql("DELETE FROM one_time_tokens WHERE site_id = ? AND token_hash = ? RETURNING true", tx.site.id, token_hash)
    )
    return bool(removed)


async def remove_tokens(tx: Transaction, user_id: int, purpose: str | None = None) -> None:
    """Remove the one-time tokens of a user, or only those with a purpose."""
    await tx.execute(
        Sql("DELETE FROM one_time_tokens WHERE site_id = ? AND user_id = ?", tx.site.id, user_id)
        + (Sql("AND purpose = ?", purpose) if purpose else Sql(""))
    )
