"""All permission rules, quotas and event passwords. Each read rule is followed by its SQL equivalent."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, Protocol

from kalends.accounts.storage import user_tables
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.events import HASHES, hash_fast
from kalends.calendar.kinds.kind import Actor, Kind, PasswordCondition
from kalends.core import credentials, errors
from kalends.core.credentials import ROLES
from kalends.core.errors import OUTCOME_UNKNOWN, ApiError
from kalends.core.limits import Limit, rate_limit_key, seconds_to_wait
from kalends.core.messages import Message
from kalends.core.statuses import LISTED
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sites import Site
from kalends.store.sql import Sql

ANONYMOUS, SUBSCRIBER, CONTRIBUTOR, AUTHOR, EDITOR, ADMINISTRATOR = range(len(ROLES))

# The minimum role for creating records of a kind, and for changing and deleting one's own records.
MIN_WRITER_ROLES: Final = {
    "events": CONTRIBUTOR,
    "series": CONTRIBUTOR,
    "venues": CONTRIBUTOR,
    "organizers": CONTRIBUTOR,
    "categories": AUTHOR,
    "tags": EDITOR,
    "media": AUTHOR,
}
# The minimum role for creating a term by naming it in an event.
MIN_NAMING_ROLE: Final = AUTHOR
# The minimum role for reading kinds that are not public. Images may belong to unpublished events.
MIN_READER_ROLES: Final = {"media": CONTRIBUTOR}
# Once a record is published or scheduled, contributors may no longer edit it.
PUBLISHED_STATUSES: Final = ("publish", "future")


class PostRow(Protocol):
    def __getitem__(self, key: str, /) -> object: ...


def rank(actor: Actor) -> int:
    return ROLES.index(actor.role)


def may_write(actor: Actor, kind: Kind | None) -> bool:
    """Return whether the actor may write records of a kind; None means any kind."""
    return rank(actor) >= _min_writer_role(kind)


def _min_writer_role(kind: Kind | None) -> int:
    return MIN_WRITER_ROLES[kind.name] if kind is not None else min(MIN_WRITER_ROLES.values())


def may_name_new_terms(actor: Actor) -> bool:
    return rank(actor) >= MIN_NAMING_ROLE


def may_publish(actor: Actor) -> bool:
    return rank(actor) >= AUTHOR


def may_name_authors(actor: Actor) -> bool:
    return rank(actor) >= EDITOR


def may_edit(actor: Actor, row: PostRow) -> bool:
    """Return whether the actor may change and delete an event, venue or organizer."""
    if rank(actor) >= EDITOR:
        return True
    if rank(actor) < CONTRIBUTOR or row["author_id"] != actor.user_id:
        return False
    status = row["trashed_status"] if row["status"] == "trash" else row["status"]
    return rank(actor) >= AUTHOR or status not in PUBLISHED_STATUSES


def may_propose_changes(actor: Actor, row: PostRow) -> bool:
    """Return whether the actor's own event has been published, so that only editors may change it."""
    return rank(actor) == CONTRIBUTOR and is_own(actor, row) and row["status"] in PUBLISHED_STATUSES


def editable_condition(actor: Actor) -> Sql:
    """Return the SQL equivalent of `may_edit`."""
    if rank(actor) >= EDITOR:
        return Sql("true")
    if rank(actor) < CONTRIBUTOR:
        return Sql("false")
    if rank(actor) >= AUTHOR:
        return Sql("r.author_id = ?", actor.user_id)
    return Sql(
        "(r.author_id = ? AND NOT CASE WHEN r.status = 'trash' THEN r.trashed_status ELSE r.status END = ANY(?))",
        actor.user_id,
        list(PUBLISHED_STATUSES),
    )


def may_read(actor: Actor, row: PostRow) -> bool:
    if row["status"] == "trash":
        return may_edit(actor, row)
    return row["status"] == "publish" or rank(actor) >= EDITOR or is_own(actor, row)


def readable_condition(actor: Actor) -> Sql:
    """Return the SQL equivalent of `may_read`."""
    if rank(actor) >= EDITOR:
        return Sql("true")
    if actor.user_id is None:
        return Sql("r.status = 'publish'")
    return (
        Sql(
            "(r.status = 'publish' OR (r.author_id = ? AND r.status <> 'trash') OR (r.status = 'trash' AND",
            actor.user_id,
        )
        + editable_condition(actor)
        + Sql("))")
    )


def embeddable_condition(actor: Actor) -> Sql:
    """Return the condition for showing a record inside another one: readable, and not in the trash."""
    return (
        Sql("r.status <> 'trash' AND") + readable_condition(actor)
        if actor.user_id is not None
        else readable_condition(actor)
    )


def complete_statuses(actor: Actor, statuses: Sequence[str] | None) -> list[str] | None:
    """Return the statuses that alone decide what a list shows; None if the authors of records matter, too."""
    if rank(actor) >= EDITOR:
        return list(LISTED if statuses is None else statuses)
    if actor.user_id is None or statuses == ["publish"]:
        return ["publish"]
    return None


def is_published(row: Row | Mapping[str, Any]) -> bool:
    """Return whether anonymous users may read the record, even if lists do not contain it."""
    return row.get("status", "publish") == "publish"


def is_public(row: Row | Mapping[str, Any]) -> bool:
    """Return whether lists show the record to anonymous users. Terms are always public."""
    return is_published(row) and not row.get("hide_from_listings", False)


def is_own(actor: Actor, row: PostRow) -> bool:
    return actor.user_id is not None and row["author_id"] == actor.user_id


def listed_condition(actor: Actor, statuses: Sequence[str] | None) -> Sql:
    """Return the condition for a list: records that the caller may read, in the requested statuses."""
    if statuses is None:
        if actor.user_id is None:
            return Sql("r.status = 'publish'")
        return Sql("r.status <> 'trash' AND") + readable_condition(actor)
    if rank(actor) < CONTRIBUTOR and set(statuses) != {"publish"}:
        raise errors.invalid("status", "must be publish; other values require the role contributor or higher.")
    if list(statuses) == ["publish"]:
        return Sql("r.status = 'publish'")
    # This condition is redundant, but enables the partial index on unpublished records.
    unpublished = Sql("") if "publish" in statuses else Sql("r.status <> 'publish' AND")
    return unpublished + Sql("r.status = ANY(?) AND", list(statuses)) + readable_condition(actor)


def unhidden_condition(actor: Actor, kind: Kind) -> Sql:
    """Return the condition for records in lists. Hidden records appear only if the caller may edit them."""
    if "hide_from_listings" not in kind.reads.columns.names:
        return Sql("true")
    return Sql("(NOT r.hide_from_listings OR") + editable_condition(actor) + Sql(")")


def require_writer(actor: Actor, kind: Kind | None) -> None:
    if not may_write(actor, kind):
        raise permission_error(actor, _role_message(_min_writer_role(kind)))


def require_reader(actor: Actor, kind: Kind) -> None:
    require_role(actor, MIN_READER_ROLES.get(kind.name, ANONYMOUS))


def shown_media_condition(actor: Actor) -> Sql:
    """Return the condition for visible images: all for readers of the library, else images of public records."""
    if rank(actor) >= MIN_READER_ROLES["media"]:
        return Sql("true")
    return Sql(
        """(EXISTS (SELECT FROM events e WHERE e.site_id = r.site_id AND e.image_id = r.id AND e.status = 'publish'
                AND NOT e.hide_from_listings AND e.password_hash IS NULL)
            OR EXISTS (SELECT FROM venues v WHERE v.site_id = r.site_id AND v.image_id = r.id
                AND v.status = 'publish')
            OR EXISTS (SELECT FROM organizers o WHERE o.site_id = r.site_id AND o.image_id = r.id
                AND o.status = 'publish')
            OR EXISTS (SELECT FROM series s WHERE s.site_id = r.site_id AND s.image_id = r.id AND s.status = 'publish'
                AND NOT s.hide_from_listings AND s.template ->> 'password_hash' IS NULL))"""
    )


def require_role(actor: Actor, min_role: int) -> None:
    if rank(actor) < min_role:
        raise permission_error(actor, _role_message(min_role))


def require_edit(actor: Actor, kind: Kind, row: PostRow) -> None:
    if kind.is_media and rank(actor) < EDITOR and not is_own(actor, row):
        raise permission_error(actor, Message("the image belongs to another user."))
    if kind.is_post and not may_edit(actor, row):
        raise permission_error(actor, Message("the record belongs to another user or is already published."))


def require_author_right(actor: Actor, author: int | None) -> None:
    if author is not None and author != actor.user_id and not may_name_authors(actor):
        raise permission_error(actor, Message("only editors and administrators can make another user the author."))


def _role_message(min_role: int) -> Message:
    return Message("requires the role {role} or higher.", role=ROLES[min_role])


def naming_message() -> Message:
    return _role_message(MIN_NAMING_ROLE)


def permission_error(actor: Actor, reason: Message, data: Mapping[str, object] | None = None) -> ApiError:
    return errors.forbidden(reason, anonymous=actor.user_id is None, data=data)


# A daily quota of new records per account keeps a leaked password from filling the database.


async def count_new_record(context: OperationContext, number: int = 1) -> None:
    """Count records before they are created, in the same transaction; raise 429 if there are too many today."""
    limit, now = context.max_daily_records, context.transaction.now
    if not await _count(context, number):
        midnight = now.replace(hour=0, minute=0, second=0) + timedelta(days=1)
        raise errors.quota_exceeded(limit, int((midnight - now).total_seconds()))


async def count_failed_write(context: OperationContext) -> None:
    """Count a failed write that locked the site as one new record, because other writes had to wait for it."""
    await _count(context, 1)


def is_counted_failure(tx: Transaction, error: BaseException) -> bool:
    """Return whether a failed write counts toward the quota.

    Dry runs do not count, and neither does input that was rejected before anything was written. A write with an
    unknown outcome does not count either: if it was committed, so was the count of its new records. A write beyond
    the quota is rejected anyway.
    """
    if not tx.has_lock or tx.is_dry_run:
        return False
    if isinstance(error, ApiError):
        return error.status != 429 and (tx.has_written or error.status >= 500) and error.code != OUTCOME_UNKNOWN
    return True


async def _count(context: OperationContext, number: int) -> bool:
    """Add to today's count and return True, or return False if that would exceed the quota."""
    limit, actor, tx = context.max_daily_records, context.actor, context.transaction
    if not limit or actor.user_id is None or rank(actor) >= EDITOR:
        return True
    is_within_limit: bool | None = await tx.fetch_value(
        Sql(
            """INSERT INTO daily_records AS d (site_id, user_id, day, count) VALUES (?, ?, ?, ?)
                ON CONFLICT (site_id, user_id) DO UPDATE SET day = excluded.day,
                    count = CASE WHEN d.day = excluded.day THEN d.count + excluded.count ELSE excluded.count END
                WHERE d.day <> excluded.day OR d.count + excluded.count <= ? RETURNING true""",
            *(tx.site.id, actor.user_id, tx.now.date(), number, limit),
        )
    )
    return bool(is_within_limit)


# Password-protected events (behavior 6.3), and the limit on guesses.

# Number of wrong passwords allowed per client, across all paths and processes: 20 at once, then one every 6 seconds.
GUESS_LIMIT: Final = Limit(burst=20, seconds=6)


async def count_guess(tx: Transaction, client_ip: str) -> None:
    """Count a password as wrong before checking it; raise 429 after too many recent guesses."""
    if seconds := await count_attempt(tx, _subject(client_ip), GUESS_LIMIT):
        raise errors.too_many_attempts(seconds)


async def count_attempt(tx: Transaction, subject: str, limit: Limit) -> int:
    """Count an attempt, or return the seconds until the next one is allowed."""
    if await user_tables.count_attempt(tx, subject, limit.burst, limit.seconds):
        return 0
    (failure,) = (await user_tables.find_failures(tx, [subject])).values()
    return max(1, seconds_to_wait(limit, *failure, tx.now))


async def has_passwords(tx: Transaction) -> bool:
    """Return whether any of the site's events has a password. If not, the slow hash is unnecessary."""
    exists = await tx.fetch_value(
        Sql("SELECT true FROM events WHERE site_id = ? AND password_hash IS NOT NULL LIMIT 1", tx.site.id)
    )
    return bool(exists)


async def refund_guess(tx: Transaction, actor: Actor, client_ip: str, hashes: list[bytes]) -> None:
    """Undo `count_guess` if the password unlocks any event that the caller may read, even outside this list."""
    unlocks = Sql(
        "EXISTS (SELECT FROM events r WHERE r.site_id = ? AND r.password_hash = ANY(?) AND", tx.site.id, hashes
    )
    if await user_tables.refund_attempt(tx, _subject(client_ip), unlocks + readable_condition(actor) + Sql(")")):
        HASHES.add(*hashes)


async def hash_guess(site: Site, password: str) -> list[bytes]:
    """Return the hashes that an event with this password may have: fast (from earlier versions) and slow."""
    return [hash_fast(site.secret, password), await HASHES.compute(site.secret, password)]


def is_locked(context: OperationContext, row: Row) -> bool:
    """Return whether an event is locked for this request: protected, and without the password.

    Callers who may edit the event need no password, but must send `context=edit`.
    """
    if not locked_ids(context, [row]):
        return False
    return context.values.get("context") != "edit" or not may_edit(context.actor, row)


def locked_ids(context: OperationContext, rows: list[Row]) -> frozenset[int]:
    """Return the IDs of protected events that the password does not unlock."""
    hashes = _password_hashes(context)
    return frozenset(
        row["id"]
        for row in rows
        if (stored := row.get("password_hash")) is not None
        and not any(credentials.constant_time_equals(stored, entry) for entry in hashes)
    )


def unlocked_condition(context: OperationContext) -> PasswordCondition:
    """Match only events that the caller can read in full. Otherwise, filters would disclose protected fields."""
    hashes = _password_hashes(context)
    by_password = Sql("OR r.password_hash = ANY(?)", hashes) if hashes else Sql("")
    editable = editable_condition(context.actor)
    condition = Sql("(r.password_hash IS NULL OR") + editable + by_password + Sql(")")
    return PasswordCondition(condition, _unlocks_protected(context.actor, hashes))


def _unlocks_protected(actor: Actor, hashes: list[bytes]) -> bool | None:
    """Return True if the caller can read all protected events, False if none, and None if some."""
    if rank(actor) >= EDITOR:
        return True
    return None if hashes or rank(actor) >= CONTRIBUTOR else False


def _password_hashes(context: OperationContext) -> list[bytes]:
    """Return the password's hashes. They replace the plain text before the operation begins."""
    hashes: list[bytes] = context.values.get("password", [])
    return hashes


def _subject(client_ip: str) -> str:
    return f"event passwords from {rate_limit_key(client_ip)}"
