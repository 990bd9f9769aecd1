"""Rows of passkeys: public keys of authenticators with which users sign in."""

from dataclasses import dataclass
from datetime import datetime

from asyncpg import Record

from kalends.store.database import Transaction
from kalends.store.sql import Sql


@dataclass(frozen=True, slots=True)
class Passkey:
    """A passkey of a user who can sign in."""

    user_id: int
    public_key: bytes
    sign_count: int


async def add_passkey(tx: Transaction, credential_id: bytes, passkey: Passkey, name: str) -> bool:
    """Add a passkey; return False if it exists already."""
    added = await tx.fetch_value(
        Sql(
            """INSERT INTO passkeys (site_id, credential_id, user_id, public_key, sign_count, name, created_at)
                VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING true""",
            tx.site.id,
            credential_id,
            passkey.user_id,
            passkey.public_key,
            passkey.sign_count,
            name,
            tx.now,
        )
    )
    return bool(added)


async def find_passkey(tx: Transaction, credential_id: bytes) -> Passkey | None:
    """Return a passkey, locked; None if it does not exist or its user is disabled."""
    row = await tx.fetch_one(
        Sql(
            """SELECT p.user_id, p.public_key, p.sign_count FROM passkeys p
                JOIN users u ON u.site_id = p.site_id AND u.id = p.user_id
                WHERE p.site_id = ? AND p.credential_id = ? AND u.disabled_at IS NULL FOR UPDATE OF p""",
            tx.site.id,
            credential_id,
        )
    )
    return Passkey(*row.values()) if row else None


async def list_passkeys(tx: Transaction, user_id: int) -> list[Record]:
    """Return the passkeys of a user, the first one first."""
    return await tx.fetch_all(
        Sql(
            """SELECT credential_id, name, created_at, last_used_at FROM passkeys
                WHERE site_id = ? AND user_id = ? ORDER BY created_at, credential_id""",
            tx.site.id,
            user_id,
        )
    )


async def record_passkey_use(tx: Transaction, credential_id: bytes, sign_count: int, used_at: datetime) -> None:
    await tx.execute(
        Sql(
            "UPDATE passkeys SET sign_count = ?, last_used_at = ? WHERE site_id = ? AND credential_id = ?",
            sign_count,
            used_at,
            tx.site.id,
            credential_id,
        )
    )


async def remove_passkey(tx: Transaction, user_id: int, credential_id: bytes) -> bool:
    """Remove a passkey of a user; return whether it existed."""
    removed = await tx.fetch_value(
        Sql(
            "DELETE FROM passkeys WHERE site_id = ? AND user_id = ? AND credential_id = ? RETURNING true",
            tx.site.id,
            user_id,
            credential_id,
        )
    )
    return bool(removed)
