"""Rows of accounts as the page of people shows them."""

from asyncpg import Record

from kalends.store.database import Transaction
from kalends.store.sql import Sql


async def find_people(tx: Transaction, user_id: int | None = None) -> list[Record]:
    """Return all accounts by name, or the one with this ID.

    `last_seen_at` is the last sign-in or use of an application password. `has_access` is false as long as the user
    has nothing to sign in with except an invitation.
    """
    return await tx.fetch_all(
        Sql(
            """
            SELECT u.id, u.login, u.display_name, u.email, u.role, u.disabled_at,
                greatest(u.last_signed_in_at, p.last_used_at) AS last_seen_at,
                u.last_signed_in_at IS NOT NULL OR u.password_hash <> '' OR p.count > 0
                    OR EXISTS (SELECT FROM passkeys k WHERE k.site_id = u.site_id AND k.user_id = u.id) AS has_access
            FROM users u CROSS JOIN LATERAL (
                SELECT count(*) AS count, max(a.last_used_at) AS last_used_at FROM application_passwords a
                WHERE a.site_id = u.site_id AND a.user_id = u.id) p
            WHERE u.site_id = ?
            """,
            tx.site.id,
        )
        + (Sql("AND u.id = ?", user_id) if user_id is not None else Sql(""))
        + Sql("ORDER BY lower(u.display_name), u.id")
    )
