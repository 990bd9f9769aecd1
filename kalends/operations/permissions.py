"""All permission rules. Each rule for reading is followed by its SQL equivalent."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.messages import Message
from kalends.core.roles import ROLES
from kalends.core.statuses import LISTED
from kalends.kinds.kind import Actor, Kind
from kalends.store import Row
from kalends.store.sql import Sql

ANONYMOUS, SUBSCRIBER, CONTRIBUTOR, AUTHOR, EDITOR, ADMINISTRATOR = range(len(ROLES))

# The minimum role to create records of a kind, and to change and delete its own.
MIN_WRITER_ROLES: Final = {
    "events": CONTRIBUTOR,
    "series": CONTRIBUTOR,
    "venues": CONTRIBUTOR,
    "organizers": CONTRIBUTOR,
    "categories": AUTHOR,
    "tags": EDITOR,
    "media": AUTHOR,
}
# The minimum role to create a term by naming it in an event.
MIN_NAMING_ROLE: Final = AUTHOR
# Kinds that are not public: an image in the library may belong to an event that is not published yet.
MIN_READER_ROLES: Final = {"media": CONTRIBUTOR}
# Contributors may no longer edit their record once it is published or scheduled.
PUBLISHED_STATUSES: Final = ("publish", "future")


class PostRow(Protocol):
    def __getitem__(self, key: str, /) -> object: ...


def rank(actor: Actor) -> int:
    return ROLES.index(actor.role)


def may_write(actor: Actor, kind: Kind | None) -> bool:
    """Return whether the actor may write records of a kind; None stands for any kind."""
    return rank(actor) >= _min_writer_role(kind)


def _min_writer_role(kind: Kind | None) -> int:
    return MIN_WRITER_ROLES[kind.name] if kind is not None else min(MIN_WRITER_ROLES.values())


def may_name_new_terms(actor: Actor) -> bool:
    """Return whether the actor may create a category or tag by naming it in an event."""
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
    """Return whether the actor may read an event, venue or organizer."""
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
    """Return the condition for showing a record inside another one: readable and not in the trash."""
    return (
        Sql("r.status <> 'trash' AND") + readable_condition(actor)
        if actor.user_id is not None
        else readable_condition(actor)
    )


def complete_statuses(actor: Actor, statuses: Sequence[str] | None) -> list[str] | None:
    """Return the statuses that a list shows in full; None if that depends on the author of each record."""
    if rank(actor) >= EDITOR:
        return list(LISTED if statuses is None else statuses)
    if actor.user_id is None or statuses == ["publish"]:
        return ["publish"]
    return None


def is_published(row: Row | Mapping[str, Any]) -> bool:
    """Return whether anonymous users may read the record, whether or not lists contain it."""
    return row.get("status", "publish") == "publish"


def is_public(row: Row | Mapping[str, Any]) -> bool:
    """Return whether anonymous users see the record in lists. Terms are always public."""
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
    # This redundant condition lets the planner use the partial index of unpublished records.
    unpublished = Sql("") if "publish" in statuses else Sql("r.status <> 'publish' AND")
    return unpublished + Sql("r.status = ANY(?) AND", list(statuses)) + readable_condition(actor)


def unhidden_condition(actor: Actor, kind: Kind) -> Sql:
    """Return the condition for records that lists contain: those that are hidden only if the caller may edit them."""
    if "hide_from_listings" not in kind.reads.columns.names:
        return Sql("true")
    return Sql("(NOT r.hide_from_listings OR") + editable_condition(actor) + Sql(")")


def require_writer(actor: Actor, kind: Kind | None) -> None:
    if not may_write(actor, kind):
        raise permission_error(actor, role_message(kind))


def require_reader(actor: Actor, kind: Kind) -> None:
    require_role(actor, MIN_READER_ROLES.get(kind.name, ANONYMOUS))


def shown_media_condition(actor: Actor) -> Sql:
    """Return the condition for images that the caller may see: readers of the library all of them, others those
    that a published record in lists shows."""
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


def role_message(kind: Kind | None) -> Message:
    return _role_message(_min_writer_role(kind))


def _role_message(min_role: int) -> Message:
    return Message("requires the role {role} or higher.", role=ROLES[min_role])


def naming_message() -> Message:
    """Return the requirement for new terms in an event."""
    return _role_message(MIN_NAMING_ROLE)


def permission_error(actor: Actor, reason: Message, data: Mapping[str, object] | None = None) -> ApiError:
    return errors.forbidden(reason, anonymous=actor.user_id is None, data=data)
