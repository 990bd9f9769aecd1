"""Rows of users, application passwords and failed logins."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString
from uuid import UUID

import orjson
from asyncpg import Record

from kalends.store import records
from kalends.store.database import Transaction
from kalends.store.series import replace_author
from kalends.store.sql import Sql

# The tables whose records have an author.
AUTHORED_TABLES: Final[tuple[LiteralString, ...]] = ("events", "series", "venues", "organizers", "media")

ACCOUNT_COLUMNS: Final[tuple[LiteralString, ...]] = ("login", "email", "role", "display_name")


@dataclass(frozen=True, slots=True)
class Credential:
    user_id: int
    login: str
    role: str
    password_id: UUID
    hash: bytes
    read_only: bool


async def find_credentials(tx: Transaction, login: str) -> list[Credential]:
    """Return all application passwords of the user with this login or e-mail address."""
    rows = await tx.fetch_all(
        Sql(
            """
            SELECT u.id AS user_id, u.login, u.role, p.id AS password_id, p.hash, p.read_only
            FROM users u JOIN application_passwords p ON p.site_id = u.site_id AND p.user_id = u.id
            WHERE u.site_id = ? AND u.disabled_at IS NULL
                AND (lower(u.login) = lower(?) OR (u.email <> '' AND lower(u.email) = lower(?)))
            """,
            tx.site.id,
            login,
            login,
        )
    )
    return [Credential(*row.values()) for row in rows]


async def find_credential(tx: Transaction, password_id: UUID) -> Credential | None:
    """Return an application password with its user, or None if it was revoked."""
    row = await tx.fetch_one(
        Sql(
            """
            SELECT u.id AS user_id, u.login, u.role, p.id AS password_id, p.hash, p.read_only
            FROM users u JOIN application_passwords p ON p.site_id = u.site_id AND p.user_id = u.id
            WHERE p.site_id = ? AND p.id = ? AND u.disabled_at IS NULL
            """,
            tx.site.id,
            password_id,
        )
    )
    return Credential(*row.values()) if row else None


async def record_use(tx: Transaction, password_id: UUID, client_ip: str, user_agent: str) -> None:
    """Add the use to the log of the password, at most once per hour and IP address."""
    hour = tx.now.replace(minute=0, second=0)
    await tx.execute(
        Sql(
            """
            WITH used AS (
                UPDATE application_passwords SET last_used_at = ? WHERE site_id = ? AND id = ? RETURNING site_id, id
            )
            INSERT INTO application_password_uses (site_id, password_id, used_at, client_ip, user_agent)
            SELECT site_id, id, ?::timestamptz, ?::text, ?::text FROM used ON CONFLICT DO NOTHING
            """,
            tx.now,
            tx.site.id,
            password_id,
            hour,
            client_ip,
            user_agent,
        )
    )


async def list_uses(tx: Transaction, user_id: int) -> list[Record]:
    """Return the uses of the application passwords of a user, newest first."""
    return await tx.fetch_all(
        Sql(
            """
            SELECT p.name, u.used_at, u.client_ip, u.user_agent FROM application_passwords p
            JOIN application_password_uses u ON u.site_id = p.site_id AND u.password_id = p.id
            WHERE p.site_id = ? AND p.user_id = ? ORDER BY u.used_at DESC, p.name LIMIT 1000
            """,
            tx.site.id,
            user_id,
        )
    )


async def is_known_client_ip(tx: Transaction, login: str, client_ip: str) -> bool:
    """Return whether this user has signed in from this IP address before."""
    known = await tx.fetch_value(
        Sql(
            """
            SELECT true FROM users u
            WHERE u.site_id = ? AND (lower(u.login) = lower(?) OR (u.email <> '' AND lower(u.email) = lower(?))) AND (
                EXISTS (SELECT FROM sessions s
                    WHERE s.site_id = u.site_id AND s.user_id = u.id AND s.client_ip = ?)
                OR EXISTS (SELECT FROM application_passwords p
                    JOIN application_password_uses s ON s.site_id = p.site_id AND s.password_id = p.id
                    WHERE p.site_id = u.site_id AND p.user_id = u.id AND s.client_ip = ?))
            """,
            tx.site.id,
            login,
            login,
            client_ip,
            client_ip,
        )
    )
    return bool(known)


async def find_failures(tx: Transaction, subjects: list[str]) -> dict[str, tuple[float, datetime]]:
    rows = await tx.fetch_all(
        Sql(
            "SELECT subject, count, counted_at FROM login_failures WHERE site_id = ? AND subject = ANY(?)",
            tx.site.id,
            subjects,
        )
    )
    return {row["subject"]: (row["count"], row["counted_at"]) for row in rows}


async def record_failures(tx: Transaction, subjects: Mapping[str, float]) -> None:
    """Count a failure of each subject, minus those forgiven since. `subjects` maps to seconds per forgiven one."""
    await tx.execute(
        Sql(
            """
            WITH old AS (
                DELETE FROM login_failures WHERE site_id = ? AND counted_at < ?::timestamptz - interval '1 day'
            )
            INSERT INTO login_failures AS f (site_id, subject, count, counted_at)
            SELECT ?::bigint, s.subject, 1, ?::timestamptz FROM unnest(?::text[], ?::float8[]) AS s (subject, seconds)
            ON CONFLICT (site_id, subject) DO UPDATE SET counted_at = excluded.counted_at, count = 1 + greatest(0,
                f.count - extract(epoch FROM excluded.counted_at - f.counted_at) / (
                    SELECT s.seconds FROM unnest(?::text[], ?::float8[]) AS s (subject, seconds)
                    WHERE s.subject = f.subject))
            """,
            tx.site.id,
            tx.now,
            tx.site.id,
            tx.now,
            list(subjects),
            list(subjects.values()),
            list(subjects),
            list(subjects.values()),
        )
    )


async def count_attempt(tx: Transaction, subject: str, burst: int, seconds: float) -> bool:
    """Count an attempt of a subject and return True, or return False if `burst` attempts are not yet forgiven.

    One attempt is forgiven every `seconds`. Check and count are one statement, so that concurrent attempts cannot
    exceed the limit.
    """
    remaining: LiteralString = (
        "greatest(0, f.count - greatest(0, extract(epoch FROM excluded.counted_at - f.counted_at)) / ?::float8)"
    )
    counted = await tx.fetch_value(
        Sql(
            """
            WITH old AS (
                DELETE FROM login_failures WHERE site_id = ? AND counted_at < ?::timestamptz - interval '1 day'
            )
            INSERT INTO login_failures AS f (site_id, subject, count, counted_at) VALUES (?, ?, 1, ?)
            ON CONFLICT (site_id, subject) DO UPDATE
            SET counted_at = greatest(f.counted_at, excluded.counted_at), count = 1 + """
            + remaining + " WHERE " + remaining + " <= ?::float8 RETURNING true",
            tx.site.id,
            tx.now,
            tx.site.id,
            subject,
            tx.now,
            seconds,
            seconds,
            burst - 1,
        )
    )  # fmt: skip
    return bool(counted)


async def refund_attempt(tx: Transaction, subject: str, condition: Sql) -> bool:
    """Take back an attempt of a subject if the condition holds; return whether it does."""
    update = Sql(
        "UPDATE login_failures f SET count = greatest(0, f.count - 1) WHERE f.site_id = ? AND f.subject = ? AND",
        tx.site.id,
        subject,
    )
    return bool(await tx.fetch_value(update + condition + Sql("RETURNING true")))


async def find_account(tx: Transaction, login: str) -> Record | None:
    """Return the account with this login or e-mail address, unless it is disabled."""
    return await tx.fetch_one(
        Sql(
            """SELECT id, login, email, role, password_hash FROM users WHERE site_id = ? AND disabled_at IS NULL
                AND (lower(login) = lower(?) OR (email <> '' AND lower(email) = lower(?)))""",
            tx.site.id,
            login,
            login,
        )
    )


async def find_preferred_language(tx: Transaction, user_id: int) -> str:
    """Return the language that a user has chosen for the console; empty if none."""
    language: str | None = await tx.fetch_value(
        Sql("SELECT language FROM users WHERE site_id = ? AND id = ?", tx.site.id, user_id)
    )
    return language or ""


async def find_user(tx: Transaction, login: str, email: str) -> int | None:
    user_id: int | None = await tx.fetch_value(
        Sql(
            """SELECT id FROM users WHERE site_id = ?
                AND (lower(login) = lower(?) OR (email <> '' AND lower(email) = lower(?)))""",
            tx.site.id,
            login,
            email,
        )
    )
    return user_id


async def list_users(tx: Transaction, role: str = "", search: str = "", limit: int | None = None) -> list[Record]:
    """Return users by ID, each with the last sign-in to the console or use of an application password.

    The others leave out users with another role, and users whose login and e-mail address lack a text.
    """
    return await tx.fetch_all(
        Sql(
            """
            SELECT u.id, u.login, u.email, u.role, u.disabled_at,
                greatest(u.last_signed_in_at, (SELECT max(p.last_used_at) FROM application_passwords p
                 WHERE p.site_id = u.site_id AND p.user_id = u.id)) AS last_used_at
            FROM users u WHERE u.site_id = ?
            """,
            tx.site.id,
        )
        + (Sql("AND u.role = ?", role) if role else Sql(""))
        + (Sql("AND strpos(lower(u.login || ' ' || u.email), ?) > 0", search.lower()) if search else Sql(""))
        + Sql("ORDER BY u.id LIMIT ?", limit)
    )


async def find_profiles(tx: Transaction, *, user_id: int | None, limit: int, offset: int) -> list[Record]:
    """Return the accounts that can sign in by name, or the one with this ID; each row has the total."""
    return await tx.fetch_all(
        Sql("SELECT id, login, display_name, email, role, created_at, count(*) OVER () AS total FROM users")
        + Sql("WHERE site_id = ? AND disabled_at IS NULL", tx.site.id)
        + (Sql("AND id = ?", user_id) if user_id is not None else Sql(""))
        + Sql("ORDER BY display_name, id LIMIT ? OFFSET ?", limit, offset)
    )


async def find_first_administrator(tx: Transaction) -> int | None:
    """Return the ID of the oldest administrator who is not disabled."""
    user_id: int | None = await tx.fetch_value(
        Sql(
            "SELECT min(id) FROM users WHERE site_id = ? AND role = 'administrator' AND disabled_at IS NULL",
            tx.site.id,
        )
    )
    return user_id


async def is_last_administrator(tx: Transaction, user_id: int) -> bool:
    """Return whether a user is the only administrator of the site who can sign in."""
    return [row["id"] for row in await find_administrators(tx)] == [user_id]


async def find_administrators(tx: Transaction) -> list[Record]:
    """Return `id`, `email` and `language` of the administrators who can sign in."""
    return await tx.fetch_all(
        Sql("SELECT id, email, language FROM users WHERE site_id = ?", tx.site.id)
        + Sql("AND role = 'administrator' AND disabled_at IS NULL ORDER BY id")
    )


async def set_disabled(tx: Transaction, user_id: int, *, disabled: bool) -> None:
    await records.change(tx, "users", user_id, {"disabled_at": tx.now if disabled else None})


async def set_login(tx: Transaction, user_id: int, login: str) -> None:
    """Change the login, and the display name if it was the login."""
    await tx.execute(
        Sql(
            """UPDATE users SET display_name = CASE WHEN display_name = login THEN ? ELSE display_name END, login = ?
                WHERE site_id = ? AND id = ?""",
            login,
            login,
            tx.site.id,
            user_id,
        )
    )


async def set_email(tx: Transaction, user_id: int, email: str) -> None:
    await records.change(tx, "users", user_id, {"email": email})


async def count_own_records(tx: Transaction, user_id: int) -> int:
    """Return the number of posts and images of an author."""
    counts = [
        await tx.fetch_value(
            Sql("SELECT count(*) FROM " + table + " WHERE site_id = ? AND author_id = ?", tx.site.id, user_id)
        )
        for table in AUTHORED_TABLES
    ]
    return sum(counts)


async def reassign_records(tx: Transaction, user_id: int, new_author_id: int) -> None:
    """Make another user the author of all records of a user. Each record gets a new revision."""
    before, after = (orjson.dumps({"author_id": author}).decode() for author in (user_id, new_author_id))
    for table in AUTHORED_TABLES:
        is_public = Sql("true" if table == "media" else "status = 'publish'")
        rows = await tx.fetch_all(
            Sql("SELECT id,")
            + is_public
            + Sql("AS public FROM " + table + " WHERE site_id = ? AND author_id = ? ORDER BY id", tx.site.id, user_id)
        )
        await records.record_changes(tx, table, rows, before=before, after=after)
        await tx.execute(
            Sql(
                "UPDATE " + table + " SET author_id = ? WHERE site_id = ? AND author_id = ?",
                new_author_id,
                tx.site.id,
                user_id,
            )
        )
    await replace_author(tx, user_id, new_author_id)


async def remove_user(tx: Transaction, user_id: int) -> None:
    await tx.execute(Sql("DELETE FROM idempotency WHERE site_id = ? AND user_id = ?", tx.site.id, user_id))
    await records.remove(tx, "users", user_id)


async def add_user(tx: Transaction, login: str, email: str, role: str) -> int:
    """Add a user and return the ID. Assigning the ID locks the row of the site."""
    user_id: int = await tx.fetch_value(
        Sql("UPDATE sites SET last_user_id = last_user_id + 1 WHERE id = ? RETURNING last_user_id", tx.site.id)
    )
    values: dict[LiteralString, object] = {"id": user_id, "login": login, "email": email, "role": role}
    await records.add(tx, "users", {**values, "display_name": login})
    return user_id


async def add_imported_user(tx: Transaction, wanted_id: int | None, values: Mapping[str, object]) -> int:
    """Add a user with the wanted ID if it is free, else with the next one; return the ID. The site is locked."""
    is_free = wanted_id is not None and not await has_user(tx, wanted_id)
    user_id: int = await tx.fetch_value(
        Sql(
            "UPDATE sites SET last_user_id = CASE WHEN ? THEN greatest(last_user_id, ?::bigint) "
            "ELSE last_user_id + 1 END WHERE id = ? RETURNING CASE WHEN ? THEN ?::bigint ELSE last_user_id END",
            is_free,
            wanted_id,
            tx.site.id,
            is_free,
            wanted_id,
        )
    )
    columns: dict[LiteralString, object] = {name: values[name] for name in ACCOUNT_COLUMNS}
    await records.add(tx, "users", {"id": user_id, **columns})
    return user_id


async def set_account(tx: Transaction, user_id: int, values: Mapping[str, object]) -> None:
    """Change login, e-mail address, role and name of a user."""
    await records.change(tx, "users", user_id, {name: values[name] for name in ACCOUNT_COLUMNS})


async def set_profile(tx: Transaction, user_id: int, display_name: str, language: str) -> None:
    await records.change(tx, "users", user_id, {"display_name": display_name, "language": language})


async def set_role(tx: Transaction, user_id: int, role: str) -> None:
    await records.change(tx, "users", user_id, {"role": role})


async def set_password_hash(tx: Transaction, user_id: int, password_hash: str) -> None:
    await records.change(tx, "users", user_id, {"password_hash": password_hash})


async def list_application_passwords(tx: Transaction, user_id: int) -> list[Record]:
    return await tx.fetch_all(
        Sql(
            """SELECT name, created_at, last_used_at, read_only FROM application_passwords
                WHERE site_id = ? AND user_id = ? ORDER BY created_at, name""",
            tx.site.id,
            user_id,
        )
    )


async def add_application_password(
    tx: Transaction, user_id: int, name: str, password_hash: bytes, *, read_only: bool
) -> None:
    values: dict[LiteralString, object] = {"user_id": user_id, "name": name, "hash": password_hash}
    await records.add(tx, "application_passwords", {**values, "read_only": read_only})


async def remove_application_password(tx: Transaction, user_id: int, name: str) -> bool:
    deleted = await tx.fetch_value(
        Sql(
            "DELETE FROM application_passwords WHERE site_id = ? AND user_id = ? AND name = ? RETURNING true",
            tx.site.id,
            user_id,
            name,
        )
    )
    return bool(deleted)


async def is_used(tx: Transaction, user_id: int) -> bool:
    """Return whether somebody has signed in to an account, or can, or has written with it."""
    key = (tx.site.id, user_id)
    used = await tx.fetch_value(
        Sql(
            "SELECT EXISTS (SELECT FROM users WHERE site_id = ? AND id = ? AND (password_hash <> '' "
            "OR last_signed_in_at IS NOT NULL)) "
            "OR EXISTS (SELECT FROM sessions WHERE site_id = ? AND user_id = ?) "
            "OR EXISTS (SELECT FROM passkeys WHERE site_id = ? AND user_id = ?) "
            "OR EXISTS (SELECT FROM application_passwords WHERE site_id = ? AND user_id = ?)",
            *key * 4,
        )
    )
    return bool(used)


async def has_user(tx: Transaction, user_id: int) -> bool:
    exists = await tx.fetch_value(Sql("SELECT true FROM users WHERE site_id = ? AND id = ?", tx.site.id, user_id))
    return bool(exists)
