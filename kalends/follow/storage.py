"""The tables of followers: people, what they follow, what is due, and the numbers of emails per day."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Final, LiteralString

from asyncpg import Record

from kalends.core.times import local_of
from kalends.store.database import Database, Transaction
from kalends.store.sql import Sql, join

Columns = Mapping[LiteralString, object]
MAIL_COUNTS: Final = ("confirmed", "sent", "refused", "failed", "ended")

FOLLOW_COLUMNS: Final[LiteralString] = (
    "f.id::text AS id, f.follower_id::text AS follower_id, f.query, f.event_id, f.rhythm, f.weekday, f.hour, "
    "f.since, f.known::text AS known, f.confirmed_at, f.paused, f.next_at, f.alerted_at, f.created_at"
)
FOLLOWER_COLUMNS: Final[LiteralString] = (
    "p.id::text AS id, p.email, p.key, p.language, p.refusals, p.refusal_code, p.suppressed_at"
)
_SELECT: Final[LiteralString] = "SELECT " + FOLLOW_COLUMNS + " FROM follows f WHERE f.site_id = ?"
_SELECT_FOLLOWER: Final[LiteralString] = "SELECT " + FOLLOWER_COLUMNS + " FROM followers p WHERE p.site_id = ?"
_JOINED: Final[LiteralString] = (
    "SELECT " + FOLLOW_COLUMNS + ", p.email, p.key, p.language, p.suppressed_at, p.refusals FROM follows f "
    "JOIN followers p ON p.site_id = f.site_id AND p.id = f.follower_id WHERE f.site_id = ? AND f.id = ?"
)
# Everyone who follows nothing.
_REMOVE_IDLE: Final[LiteralString] = """DELETE FROM followers p WHERE p.site_id = ? AND NOT EXISTS (
    SELECT FROM follows f WHERE f.site_id = p.site_id AND f.follower_id = p.id) """

# People ----------------------------------------------------------------------------------------------


async def ensure_follower(tx: Transaction, new_id: str, email: str, key: bytes, language: str) -> str:
    """Return the ID of the person with this address. Only a new person gets the values."""
    query = """WITH added AS (
            INSERT INTO followers (site_id, id, email, key, language) VALUES (?, ?, ?, ?, ?)
            ON CONFLICT (site_id, lower(email)) DO UPDATE SET email = followers.email RETURNING id)
        SELECT id::text FROM added"""
    follower_id: str = await tx.fetch_value(Sql(query, tx.site.id, new_id, email, key, language))
    return follower_id


async def find_follower(tx: Transaction, follower_id: str, *, locked: bool = False) -> Record | None:
    where = Sql(_SELECT_FOLLOWER + " AND p.id = ?", tx.site.id, follower_id)
    return await tx.fetch_one(where + Sql("FOR NO KEY UPDATE") if locked else where)


async def find_by_email(tx: Transaction, email: str) -> Record | None:
    return await tx.fetch_one(Sql(_SELECT_FOLLOWER + " AND lower(p.email) = lower(?)", tx.site.id, email))


async def change_follower(tx: Transaction, follower_id: str, values: Columns) -> None:
    assignments = [Sql(name + " = ?", value) for name, value in values.items()]
    where = Sql("WHERE site_id = ? AND id = ?", tx.site.id, follower_id)
    await tx.execute(Sql("UPDATE followers SET") + join(", ", assignments) + where)


async def remove_follower(tx: Transaction, follower_id: str) -> None:
    """Delete a person with everything about them."""
    await tx.execute(Sql("DELETE FROM followers WHERE site_id = ? AND id = ?", tx.site.id, follower_id))


async def remove_stale(tx: Transaction, confirmed_by: datetime, ended_by: datetime, suppressed_by: datetime) -> None:
    """Delete unconfirmed follows, those of events that are over or deleted, and people who follow nothing."""
    # The followers of a deleted event still hear of it.
    follows = """DELETE FROM follows f WHERE f.site_id = ? AND (f.confirmed_at IS NULL AND f.created_at < ?
        OR f.confirmed_at IS NOT NULL AND f.event_id IS NOT NULL AND coalesce(
            (SELECT e.end_utc <= ? FROM events e WHERE e.site_id = f.site_id AND e.id = f.event_id),
            f.next_at IS NULL))"""
    await tx.execute(Sql(follows, tx.site.id, confirmed_by, ended_by))
    await tx.execute(Sql(_REMOVE_IDLE + "AND p.suppressed_at IS NULL", tx.site.id))
    await tx.execute(Sql("DELETE FROM followers WHERE site_id = ? AND suppressed_at < ?", tx.site.id, suppressed_by))


async def remove_if_idle(tx: Transaction, follower_id: str) -> None:
    """Delete a person who follows nothing, unless the address is suppressed."""
    await tx.execute(Sql(_REMOVE_IDLE + "AND p.suppressed_at IS NULL AND p.id = ?", tx.site.id, follower_id))


# What they follow --------------------------------------------------------------------------------------


async def add_follow(tx: Transaction, follow_id: str, follower_id: str, values: Columns) -> None:
    """Store an unconfirmed list or event, or change it if it is still unconfirmed."""
    names: tuple[LiteralString, ...] = ("query", "event_id", "rhythm", "weekday", "hour")
    query = """INSERT INTO follows AS f (site_id, id, follower_id, query, event_id, rhythm, weekday, hour, created_at)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (site_id, follower_id, query, event_id) DO UPDATE SET rhythm = excluded.rhythm,
            weekday = excluded.weekday, hour = excluded.hour, created_at = excluded.created_at
            WHERE f.confirmed_at IS NULL"""
    await tx.execute(Sql(query, tx.site.id, follow_id, follower_id, *map(values.get, names), tx.now))


async def find_follow(tx: Transaction, follow_id: str) -> Record | None:
    """Return a follow with `email`, `key`, `language` and `suppressed_at` of the person."""
    return await tx.fetch_one(Sql(_JOINED, tx.site.id, follow_id))


async def list_follows(tx: Transaction, follower_id: str) -> list[Record]:
    where = " AND f.follower_id = ? ORDER BY f.created_at, f.id"
    return await tx.fetch_all(Sql(_SELECT + where, tx.site.id, follower_id))


async def change_follow(
    tx: Transaction, follow_id: str, values: Columns, *, expected: datetime | None = None
) -> None:
    """Write columns; with `expected`, only if this is still when an email is due."""
    assignments = [Sql(name + " = ?", value) for name, value in values.items()]
    where = Sql("WHERE site_id = ? AND id = ?", tx.site.id, follow_id)
    unchanged = Sql("AND next_at = ?", expected) if expected is not None else Sql("")
    await tx.execute(Sql("UPDATE follows SET") + join(", ", assignments) + where + unchanged)


async def remove_follow(tx: Transaction, follow_id: str) -> None:
    await tx.execute(Sql("DELETE FROM follows WHERE site_id = ? AND id = ?", tx.site.id, follow_id))


async def stop_follows(tx: Transaction, follower_id: str) -> None:
    """Stop all emails to a person."""
    query = "UPDATE follows SET next_at = NULL WHERE site_id = ? AND follower_id = ?"
    await tx.execute(Sql(query, tx.site.id, follower_id))


async def plan_alerts(
    tx: Transaction, event_ids: Sequence[int] | None, earliest: datetime, interval: timedelta
) -> None:
    """Let emails about some events or all become due: not before a moment, and an interval after the last alert."""
    chosen = Sql("f.event_id IS NOT NULL") if event_ids is None else Sql("f.event_id = ANY(?)", list(event_ids))
    # The sender locks rows in the same order.
    due = """WITH due AS (
        SELECT f.id, greatest(?::timestamptz, f.alerted_at + ?::interval) AS at
        FROM follows f JOIN followers p ON p.site_id = f.site_id AND p.id = f.follower_id
        WHERE f.site_id = ? AND f.confirmed_at IS NOT NULL AND NOT f.paused AND p.suppressed_at IS NULL
            AND (f.next_at IS NULL OR f.next_at > greatest(?::timestamptz, f.alerted_at + ?::interval)) AND"""
    update = """ORDER BY f.id FOR NO KEY UPDATE OF f)
        UPDATE follows f SET next_at = due.at FROM due WHERE f.site_id = ? AND f.id = due.id"""
    times = earliest, interval
    await tx.execute(Sql(due, *times, tx.site.id, *times) + chosen + Sql(update, tx.site.id))


async def has_event_follows(tx: Transaction) -> bool:
    query = "SELECT EXISTS (SELECT FROM follows WHERE site_id = ? AND event_id IS NOT NULL)"
    found: bool = await tx.fetch_value(Sql(query, tx.site.id))
    return found


# What a job has to look at -----------------------------------------------------------------------------


async def find_due(database: Database, cutoff: datetime, limit: int) -> list[Record]:
    columns: LiteralString = (
        "site_id, timezone, id::text AS id, follower_id::text AS follower_id, email, language, query, event_id, "
        "rhythm, weekday, hour, since, known::text AS known, alerted_at, next_at"
    )
    return await database.fetch_unscoped(Sql("SELECT " + columns + " FROM due_follows(?, ?)", cutoff, limit))


async def find_sites_to_clean(database: Database, confirmed_by: datetime, suppressed_by: datetime) -> list[int]:
    query = "SELECT site_id FROM sites_with_stale_follows(?, ?)"
    return [row["site_id"] for row in await database.fetch_unscoped(Sql(query, confirmed_by, suppressed_by))]


# Numbers -------------------------------------------------------------------------------------------------


async def count_mails(tx: Transaction, numbers: Mapping[str, int]) -> None:
    """Add to the numbers of the current day in the site's time zone."""
    query = """INSERT INTO mail_days AS d (site_id, day, confirmed, sent, refused, failed, ended)
        VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (site_id, day) DO UPDATE SET
            confirmed = d.confirmed + excluded.confirmed, sent = d.sent + excluded.sent,
            refused = d.refused + excluded.refused, failed = d.failed + excluded.failed,
            ended = d.ended + excluded.ended"""
    if any(numbers.values()):
        day = local_of(tx.now, tx.site.timezone).date()
        await tx.execute(Sql(query, tx.site.id, day, *(numbers.get(name, 0) for name in MAIL_COUNTS)))


async def count_recipients(database: Database, now: datetime, more: int, more_refused: int) -> tuple[int, int]:
    """Add to the recipients of this hour on all sites; return those of the last one to two hours, and the refused."""
    query = "SELECT recipients, refused FROM count_recipients(?, ?, ?)"
    [row] = await database.fetch_unscoped(Sql(query, now, more, more_refused))
    return row["recipients"], row["refused"]


async def forget_refusals(database: Database) -> None:
    """Begin again to count the refusals of all addresses."""
    await database.fetch_unscoped(Sql("SELECT forget_refusals()"))


async def list_days(tx: Transaction, since: date) -> Sequence[Record]:
    query = """SELECT day, confirmed, sent, refused, failed, ended FROM mail_days
        WHERE site_id = ? AND day >= ? ORDER BY day DESC"""
    return await tx.fetch_all(Sql(query, tx.site.id, since))


async def count_people(tx: Transaction) -> Record:
    """Return the numbers of people with a confirmed follow: `people`, and `suppressed` among all."""
    query = """SELECT count(*) FILTER (WHERE EXISTS (SELECT FROM follows f WHERE f.site_id = p.site_id
            AND f.follower_id = p.id AND f.confirmed_at IS NOT NULL)) AS people,
            count(p.suppressed_at) AS suppressed FROM followers p WHERE p.site_id = ?"""
    [row] = await tx.fetch_all(Sql(query, tx.site.id))
    return row


async def count_by_list(tx: Transaction) -> list[Record]:
    """Return the lists with their numbers of followers, the most popular first."""
    query = """SELECT query, count(*) AS number FROM follows
        WHERE site_id = ? AND query IS NOT NULL AND confirmed_at IS NOT NULL GROUP BY query ORDER BY 2 DESC, 1"""
    return await tx.fetch_all(Sql(query, tx.site.id))
