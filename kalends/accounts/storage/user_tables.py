"""SQL for users, application passwords and failed logins."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, LiteralString
from uuid import UUID

import orjson
from asyncpg import Record

from kalends.accounts.storage.session_tables import delete_row
from kalends.calendar.storage import record_tables
from kalends.series.storage import replace_author
from kalends.store.database import Transaction
from kalends.store.sql import Sql

# Tables whose records have an author.
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
    may_propose: bool
    name: str


Failures = dict[str, tuple[float, datetime]]  # number of failed logins and time of the last one, by subject


async def find_credentials(
    tx: Transaction, login: str, subjects: list[str], prefixes: list[str]
) -> tuple[list[Credential], Failures]:
    """Return a login's application passwords and its recent failures.

    Failures are counted by subject, and by each prefix combined with the user ID. Unknown logins use ID 0, so they
    take equally long.
    """
    query = """
        WITH found AS (
            SELECT u.id AS user_id, u.login, u.role, p.id AS password_id, p.hash, p.read_only,
                p.may_propose, p.name
            FROM users u JOIN application_passwords p ON p.site_id = u.site_id AND p.user_id = u.id
            WHERE u.site_id = ? AND u.disabled_at IS NULL
                AND (lower(u.login) = lower(?) OR (u.email <> '' AND lower(u.email) = lower(?)))
        ), failures AS (
            SELECT subject, count, counted_at FROM login_failures
            WHERE site_id = ? AND subject = ANY(
                ?::text[] || ARRAY(SELECT prefix || 'user ' || u.id FROM unnest(?::text[]) AS prefix,
                    (SELECT coalesce((SELECT user_id FROM found LIMIT 1), 0) AS id) u)
            )
        )
        SELECT * FROM found FULL JOIN failures ON false
    """
    rows = await tx.fetch_all(Sql(query, tx.site.id, login, login, tx.site.id, subjects, prefixes))
    passwords = [Credential(*list(row.values())[:8]) for row in rows if row["password_id"] is not None]
    return passwords, {row["subject"]: (row["count"], row["counted_at"]) for row in rows if row["subject"]}


async def find_credential(tx: Transaction, password_id: UUID) -> Credential | None:
    """Return an application password, or None if it was revoked or its user is disabled."""
    query = """
        SELECT u.id AS user_id, u.login, u.role, p.id AS password_id, p.hash, p.read_only, p.may_propose, p.name
        FROM users u JOIN application_passwords p ON p.site_id = u.site_id AND p.user_id = u.id
        WHERE p.site_id = ? AND p.id = ? AND u.disabled_at IS NULL
    """
    row = await tx.fetch_one(Sql(query, tx.site.id, password_id))
    return Credential(*row.values()) if row else None


async def record_use(tx: Transaction, password_id: UUID, client_ip: str, user_agent: str) -> None:
    """Log the use of an application password, at most once per hour and IP address."""
    hour = tx.now.replace(minute=0, second=0)
    statement = """
        WITH used AS (
            UPDATE application_passwords SET last_used_at = ? WHERE site_id = ? AND id = ? RETURNING site_id, id
        )
        INSERT INTO application_password_uses (site_id, password_id, used_at, client_ip, user_agent)
        SELECT site_id, id, ?::timestamptz, ?::text, ?::text FROM used ON CONFLICT DO NOTHING
    """
    await tx.execute(Sql(statement, tx.now, tx.site.id, password_id, hour, client_ip, user_agent))


async def list_uses(tx: Transaction, user_id: int) -> list[Record]:
    query = """
        SELECT p.name, u.used_at, u.client_ip, u.user_agent FROM application_passwords p
        JOIN application_password_uses u ON u.site_id = p.site_id AND u.password_id = p.id
        WHERE p.site_id = ? AND p.user_id = ? ORDER BY u.used_at DESC, p.name LIMIT 1000
    """
    return await tx.fetch_all(Sql(query, tx.site.id, user_id))


async def is_known_client_ip(tx: Transaction, login: str, client_ip: str) -> bool:
    query = """
        SELECT true FROM users u
        WHERE u.site_id = ? AND (lower(u.login) = lower(?) OR (u.email <> '' AND lower(u.email) = lower(?))) AND (
            EXISTS (SELECT FROM sessions s
                WHERE s.site_id = u.site_id AND s.user_id = u.id AND s.client_ip = ?)
            OR EXISTS (SELECT FROM application_passwords p
                JOIN application_password_uses s ON s.site_id = p.site_id AND s.password_id = p.id
                WHERE p.site_id = u.site_id AND p.user_id = u.id AND s.client_ip = ?))
    """
    return bool(await tx.fetch_value(Sql(query, tx.site.id, login, login, client_ip, client_ip)))


async def find_failures(tx: Transaction, subjects: list[str]) -> Failures:
    query = "SELECT subject, count, counted_at FROM login_failures WHERE site_id = ? AND subject = ANY(?)"
    rows = await tx.fetch_all(Sql(query, tx.site.id, subjects))
    return {row["subject"]: (row["count"], row["counted_at"]) for row in rows}


async def record_failures(tx: Transaction, subjects: Mapping[str, float]) -> None:
    """Add one failure per subject, after subtracting the failures forgiven since its last one.

    `subjects` maps each subject to the number of seconds after which one failure is forgiven.
    """
    statement = """
        WITH old AS (
            DELETE FROM login_failures WHERE site_id = ? AND counted_at < ?::timestamptz - interval '1 day'
        )
        INSERT INTO login_failures AS f (site_id, subject, count, counted_at)
        SELECT ?::bigint, s.subject, 1, ?::timestamptz FROM unnest(?::text[], ?::float8[]) AS s (subject, seconds)
        ON CONFLICT (site_id, subject) DO UPDATE SET counted_at = excluded.counted_at, count = 1 + greatest(0,
            f.count - greatest(0, extract(epoch FROM excluded.counted_at - f.counted_at)) / (
                SELECT s.seconds FROM unnest(?::text[], ?::float8[]) AS s (subject, seconds)
                WHERE s.subject = f.subject))
    """
    names, seconds, site_id, now = list(subjects), list(subjects.values()), tx.site.id, tx.now
    await tx.execute(Sql(statement, site_id, now, site_id, now, names, seconds, names, seconds))


async def count_attempt(tx: Transaction, subject: str, burst: int, seconds: float) -> bool:
    """Count a subject's attempt, or return False if `burst` attempts have not been forgiven yet.

    One attempt is forgiven every `seconds`. A single statement checks and counts, so concurrent attempts cannot
    exceed the limit.
    """
    remaining: LiteralString = (
        "greatest(0, f.count - greatest(0, extract(epoch FROM excluded.counted_at - f.counted_at)) / ?::float8)"
    )
    statement: LiteralString = (
        """
        WITH old AS (
            DELETE FROM login_failures WHERE site_id = ? AND counted_at < ?::timestamptz - interval '1 day'
        )
        INSERT INTO login_failures AS f (site_id, subject, count, counted_at) VALUES (?, ?, 1, ?)
        ON CONFLICT (site_id, subject) DO UPDATE
        SET counted_at = greatest(f.counted_at, excluded.counted_at), count = 1 + """
        + remaining + " WHERE " + remaining + " <= ?::float8 RETURNING true"
    )  # fmt: skip
    values = (tx.site.id, tx.now, tx.site.id, subject, tx.now, seconds, seconds, burst - 1)
    return bool(await tx.fetch_value(Sql(statement, *values)))


async def refund_attempt(tx: Transaction, subject: str, condition: Sql) -> bool:
    """Undo one counted attempt by a subject if the condition holds; return whether one was undone."""
    update = Sql(
        "UPDATE login_failures f SET count = greatest(0, f.count - 1) WHERE f.site_id = ? AND f.subject = ? AND",
        tx.site.id,
        subject,
    )
    return bool(await tx.fetch_value(update + condition + Sql("RETURNING true")))


async def find_account(tx: Transaction, login: str) -> Record | None:
    """Return the account with this login or email address, unless it is disabled."""
    query = """SELECT id, login, email, role, password_hash FROM users WHERE site_id = ? AND disabled_at IS NULL
        AND (lower(login) = lower(?) OR (email <> '' AND lower(email) = lower(?)))"""
    return await tx.fetch_one(Sql(query, tx.site.id, login, login))


async def find_preferred_language(tx: Transaction, user_id: int) -> str:
    language: str | None = await tx.fetch_value(
        Sql("SELECT language FROM users WHERE site_id = ? AND id = ?", tx.site.id, user_id)
    )
    return language or ""


async def find_user(tx: Transaction, login: str, email: str) -> int | None:
    query = """SELECT id FROM users WHERE site_id = ?
        AND (lower(login) = lower(?) OR (email <> '' AND lower(email) = lower(?)))"""
    user_id: int | None = await tx.fetch_value(Sql(query, tx.site.id, login, email))
    return user_id


async def list_users(tx: Transaction, role: str = "", search: str = "", limit: int | None = None) -> list[Record]:
    """Return users sorted by ID, each with the last console sign-in or application password use.

    `search` matches text in the login or email address.
    """
    query = """
        SELECT u.id, u.login, u.email, u.role, u.disabled_at,
            greatest(u.last_signed_in_at, (SELECT max(p.last_used_at) FROM application_passwords p
             WHERE p.site_id = u.site_id AND p.user_id = u.id)) AS last_used_at
        FROM users u WHERE u.site_id = ?
    """
    return await tx.fetch_all(
        Sql(query, tx.site.id)
        + (Sql("AND u.role = ?", role) if role else Sql(""))
        + (Sql("AND strpos(lower(u.login || ' ' || u.email), ?) > 0", search.lower()) if search else Sql(""))
        + Sql("ORDER BY u.id LIMIT ?", limit)
    )


async def find_profiles(tx: Transaction, *, user_id: int | None, limit: int, offset: int) -> list[Record]:
    """Return enabled accounts sorted by name, or only the account with this ID. Each row includes the total count."""
    return await tx.fetch_all(
        Sql("SELECT id, login, display_name, email, role, created_at, count(*) OVER () AS total FROM users")
        + Sql("WHERE site_id = ? AND disabled_at IS NULL", tx.site.id)
        + (Sql("AND id = ?", user_id) if user_id is not None else Sql(""))
        + Sql("ORDER BY display_name, id LIMIT ? OFFSET ?", limit, offset)
    )


async def find_first_administrator(tx: Transaction) -> int | None:
    query = "SELECT min(id) FROM users WHERE site_id = ? AND role = 'administrator' AND disabled_at IS NULL"
    user_id: int | None = await tx.fetch_value(Sql(query, tx.site.id))
    return user_id


async def is_last_administrator(tx: Transaction, user_id: int) -> bool:
    """Return whether a user is the site's only enabled administrator."""
    return [row["id"] for row in await find_administrators(tx)] == [user_id]


async def find_administrators(tx: Transaction) -> list[Record]:
    """Return `id`, `email` and `language` of all enabled administrators."""
    return await tx.fetch_all(
        Sql("SELECT id, email, language FROM users WHERE site_id = ?", tx.site.id)
        + Sql("AND role = 'administrator' AND disabled_at IS NULL ORDER BY id")
    )


async def change_user(tx: Transaction, user_id: int, values: Mapping[LiteralString, object]) -> None:
    await record_tables.change(tx, "users", user_id, values)


async def set_login(tx: Transaction, user_id: int, login: str) -> None:
    """Change the login, and the display name too if it equals the login."""
    statement = """
        UPDATE users SET display_name = CASE WHEN display_name = login THEN ? ELSE display_name END, login = ?
        WHERE site_id = ? AND id = ?"""
    await tx.execute(Sql(statement, login, login, tx.site.id, user_id))


async def count_own_records(tx: Transaction, user_id: int) -> int:
    counts = [
        await tx.fetch_value(
            Sql("SELECT count(*) FROM " + table + " WHERE site_id = ? AND author_id = ?", tx.site.id, user_id)
        )
        for table in AUTHORED_TABLES
    ]
    return sum(counts)


async def reassign_records(tx: Transaction, user_id: int, new_author_id: int) -> None:
    """Reassign all of a user's records to another author. Each record gets a new revision."""
    before, after = (orjson.dumps({"author_id": author}).decode() for author in (user_id, new_author_id))
    for table in AUTHORED_TABLES:
        is_public = Sql("true" if table == "media" else "status = 'publish'")
        rows = await tx.fetch_all(
            Sql("SELECT id,")
            + is_public
            + Sql("AS public FROM " + table + " WHERE site_id = ? AND author_id = ? ORDER BY id", tx.site.id, user_id)
        )
        await record_tables.record_changes(tx, table, rows, before=before, after=after)
        statement = "UPDATE " + table + " SET author_id = ? WHERE site_id = ? AND author_id = ?"
        await tx.execute(Sql(statement, new_author_id, tx.site.id, user_id))
    await replace_author(tx, user_id, new_author_id)


async def remove_user(tx: Transaction, user_id: int) -> None:
    await tx.execute(Sql("DELETE FROM idempotency WHERE site_id = ? AND user_id = ?", tx.site.id, user_id))
    await record_tables.remove(tx, "users", user_id)


async def add_user(tx: Transaction, login: str, email: str, role: str) -> int:
    """Add a user and return the ID. Assigning the ID locks the site's row."""
    user_id: int = await tx.fetch_value(
        Sql("UPDATE sites SET last_user_id = last_user_id + 1 WHERE id = ? RETURNING last_user_id", tx.site.id)
    )
    values: dict[LiteralString, object] = {"id": user_id, "login": login, "email": email, "role": role}
    await record_tables.add(tx, "users", {**values, "display_name": login})
    return user_id


async def add_imported_user(tx: Transaction, wanted_id: int | None, values: Mapping[str, object]) -> int:
    """Add a user with the wanted ID if it is free, or else the next ID; return the ID. The site must be locked."""
    is_free = wanted_id is not None and not await has_user(tx, wanted_id)
    statement = (
        "UPDATE sites SET last_user_id = CASE WHEN ? THEN greatest(last_user_id, ?::bigint) "
        "ELSE last_user_id + 1 END WHERE id = ? RETURNING CASE WHEN ? THEN ?::bigint ELSE last_user_id END"
    )
    user_id: int = await tx.fetch_value(Sql(statement, is_free, wanted_id, tx.site.id, is_free, wanted_id))
    columns: dict[LiteralString, object] = {name: values[name] for name in ACCOUNT_COLUMNS}
    await record_tables.add(tx, "users", {"id": user_id, **columns})
    return user_id


async def set_account(tx: Transaction, user_id: int, values: Mapping[str, object]) -> None:
    await record_tables.change(tx, "users", user_id, {name: values[name] for name in ACCOUNT_COLUMNS})


async def list_application_passwords(tx: Transaction, user_id: int) -> list[Record]:
    query = """SELECT name, created_at, last_used_at, read_only FROM application_passwords
        WHERE site_id = ? AND user_id = ? ORDER BY created_at, name"""
    return await tx.fetch_all(Sql(query, tx.site.id, user_id))


async def add_application_password(
    tx: Transaction, user_id: int, name: str, password_hash: bytes, *, read_only: bool, may_propose: bool = False
) -> None:
    values: dict[LiteralString, object] = {"user_id": user_id, "name": name, "hash": password_hash}
    rights: dict[LiteralString, object] = {"read_only": read_only, "may_propose": may_propose}
    await record_tables.add(tx, "application_passwords", {**values, **rights})


async def remove_application_password(tx: Transaction, user_id: int, name: str) -> bool:
    return await delete_row(tx, "application_passwords", {"user_id": user_id, "name": name})


async def is_used(tx: Transaction, user_id: int) -> bool:
    """Return whether an account has signed in or has credentials."""
    key = (tx.site.id, user_id)
    query = (
        "SELECT EXISTS (SELECT FROM users WHERE site_id = ? AND id = ? AND (password_hash <> '' "
        "OR last_signed_in_at IS NOT NULL)) "
        "OR EXISTS (SELECT FROM sessions WHERE site_id = ? AND user_id = ?) "
        "OR EXISTS (SELECT FROM passkeys WHERE site_id = ? AND user_id = ?) "
        "OR EXISTS (SELECT FROM application_passwords WHERE site_id = ? AND user_id = ?)"
    )
    return bool(await tx.fetch_value(Sql(query, *key * 4)))


async def has_user(tx: Transaction, user_id: int) -> bool:
    return bool(await tx.fetch_value(Sql("SELECT true FROM users WHERE site_id = ? AND id = ?", tx.site.id, user_id)))


async def find_people(tx: Transaction, user_id: int | None = None) -> list[Record]:
    """Return all accounts sorted by name, or only the account with this ID.

    `last_seen_at` is the last sign-in or application password use. `has_access` is false until the user has signed in
    or has a password, a passkey or an application password.
    """
    query = """
        SELECT u.id, u.login, u.display_name, u.email, u.role, u.disabled_at,
            greatest(u.last_signed_in_at, p.last_used_at) AS last_seen_at,
            u.last_signed_in_at IS NOT NULL OR u.password_hash <> '' OR p.count > 0
                OR EXISTS (SELECT FROM passkeys k WHERE k.site_id = u.site_id AND k.user_id = u.id) AS has_access
        FROM users u CROSS JOIN LATERAL (
            SELECT count(*) AS count, max(a.last_used_at) AS last_used_at FROM application_passwords a
            WHERE a.site_id = u.site_id AND a.user_id = u.id) p
        WHERE u.site_id = ?
    """
    return await tx.fetch_all(
        Sql(query, tx.site.id)
        + (Sql("AND u.id = ?", user_id) if user_id is not None else Sql(""))
        + Sql("ORDER BY lower(u.display_name), u.id")
    )
