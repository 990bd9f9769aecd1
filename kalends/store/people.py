"""Users and their application passwords."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

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


async def is_user(tx: Transaction, user_id: int) -> bool:
    found = await tx.value(Sql("SELECT true FROM users WHERE site_id = ? AND id = ?", tx.site.id, user_id))
    return bool(found)
