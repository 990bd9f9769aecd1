"""Users and their application passwords: rows only, the rules are elsewhere."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import LiteralString
from uuid import UUID

from asyncpg import Record

from kalends.store import records
from kalends.store.database import Transaction
from kalends.store.sql import Sql

# A password that was used within this time is not noted again.
NOTED_EVERY = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Credential:
    user_id: int
    login: str
    role: str
    password_id: UUID
    hash: bytes
    last_used_at: datetime | None


async def find_credentials(tx: Transaction, login: str) -> list[Credential]:
    """All application passwords of the user with this login or e-mail address."""
    rows = await tx.rows(
        Sql(
            """
            SELECT u.id AS user_id, u.login, u.role, p.id AS password_id, p.hash, p.last_used_at
            FROM users u JOIN application_passwords p ON p.site_id = u.site_id AND p.user_id = u.id
            WHERE u.site_id = ? AND (lower(u.login) = lower(?) OR (u.email <> '' AND lower(u.email) = lower(?)))
            """,
            tx.site.id,
            login,
            login,
        )
    )
    return [Credential(*row.values()) for row in rows]


async def note_use(tx: Transaction, password_id: UUID) -> None:
    await tx.run(
        Sql(
            "UPDATE application_passwords SET last_used_at = ? WHERE site_id = ? AND id = ?",
            tx.now,
            tx.site.id,
            password_id,
        )
    )


async def find_user(tx: Transaction, login: str, email: str) -> int | None:
    found: int | None = await tx.value(
        Sql(
            """SELECT id FROM users WHERE site_id = ?
                AND (lower(login) = lower(?) OR (email <> '' AND lower(email) = lower(?)))""",
            tx.site.id,
            login,
            email,
        )
    )
    return found


async def list_users(tx: Transaction) -> list[Record]:
    return await tx.rows(Sql("SELECT id, login, email, role FROM users WHERE site_id = ? ORDER BY id", tx.site.id))


async def add_user(tx: Transaction, login: str, email: str, role: str) -> int:
    """The new ID. The row of the site hands it out, and stays locked by that."""
    user_id: int = await tx.value(
        Sql("UPDATE sites SET last_user_id = last_user_id + 1 WHERE id = ? RETURNING last_user_id", tx.site.id)
    )
    values: dict[LiteralString, object] = {"id": user_id, "login": login, "email": email, "role": role}
    await records.add(tx, "users", {**values, "display_name": login})
    return user_id


async def set_role(tx: Transaction, user_id: int, role: str) -> None:
    await records.change(tx, "users", user_id, {"role": role})


async def set_password_hash(tx: Transaction, user_id: int, password_hash: str) -> None:
    await records.change(tx, "users", user_id, {"password_hash": password_hash})


async def list_application_passwords(tx: Transaction, user_id: int) -> list[Record]:
    return await tx.rows(
        Sql(
            """SELECT name, created_at, last_used_at FROM application_passwords
                WHERE site_id = ? AND user_id = ? ORDER BY created_at, name""",
            tx.site.id,
            user_id,
        )
    )


async def add_application_password(tx: Transaction, user_id: int, name: str, password_hash: bytes) -> None:
    await records.add(tx, "application_passwords", {"user_id": user_id, "name": name, "hash": password_hash})


async def remove_application_password(tx: Transaction, user_id: int, name: str) -> bool:
    gone = await tx.value(
        Sql(
            "DELETE FROM application_passwords WHERE site_id = ? AND user_id = ? AND name = ? RETURNING true",
            tx.site.id,
            user_id,
            name,
        )
    )
    return bool(gone)


async def is_user(tx: Transaction, user_id: int) -> bool:
    found = await tx.value(Sql("SELECT true FROM users WHERE site_id = ? AND id = ?", tx.site.id, user_id))
    return bool(found)
