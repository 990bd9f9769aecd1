"""The statuses of events, venues and organizers: what each means, who may make which move, and how
a wish becomes one. docs/statuses.md and its picture are made from these tables by `just statuses`."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

# What a move takes: the right to edit the record, the right to publish, or the time that passes.
Right = Literal["edit", "publish", "schedule"]

NEW: Final = "new"  # before the first status
DELETED: Final = "deleted"  # after the last: the row is removed, a tombstone stays in the log


@dataclass(frozen=True, slots=True)
class Status:
    """What it means to be in a status: for readers, lists, counts, events that link to it, and its slug."""

    name: str
    meaning: str
    read: str
    lists: str
    embedded: str
    slug: str
    is_public: bool = False  # everybody sees it, and it counts
    is_listed: bool = True  # in lists that ask for no status, for those who may read it
    contributor_may_edit: bool = True  # the contributor who made it may still edit it


_EDITORS = "author, editors"
_OWN_SLUG = "unchanged"

# In the order of the interface description.
TABLE: Final = (
    Status("publish", "public", "everyone", "everyone", "everyone", _OWN_SLUG,
           is_public=True, contributor_may_edit=False),
    Status("draft", "in progress", _EDITORS, _EDITORS, _EDITORS, "unchanged; an event may not have one yet"),
    Status("pending", "submitted for review", _EDITORS, _EDITORS, _EDITORS, "as for a draft"),
    Status("private", "finished, not public", _EDITORS, _EDITORS, _EDITORS, _OWN_SLUG),
    Status("future", "published on its publication date", _EDITORS, _EDITORS, _EDITORS, _OWN_SLUG,
           contributor_may_edit=False),
    Status(
        "trash", "in the trash, deleted permanently after some days",
        "venues and organizers: users who may edit the record; events: no one",
        "users who may edit the record, with `status=trash`", "no one", "ends in `__trashed`; the slug is free again",
        is_listed=False,
    ),
)  # fmt: skip

STATUSES: Final = tuple(status.name for status in TABLE)
WRITABLE: Final = STATUSES
# What those who may read it see in a list when no status is asked for.
LISTED: Final = tuple(status.name for status in TABLE if status.is_listed)


@dataclass(frozen=True, slots=True)
class Transition:
    """From any of some statuses to one, and what it takes."""

    sources: tuple[str, ...]
    target: str
    right: Right
    when: str


TRANSITIONS: Final = (
    Transition((NEW, *STATUSES), "draft", "edit", "requested; the initial status without the right to publish"),
    Transition(
        (NEW, *STATUSES), "pending", "edit", "requested; or another status requested without the right to publish"
    ),
    Transition((NEW, *STATUSES), "private", "publish", "requested"),
    Transition(
        (NEW, *STATUSES),
        "publish",
        "publish",
        "requested, and the date is not in the future; the usual initial status",
    ),
    Transition(
        (NEW, *STATUSES), "future", "publish", "`publish` or `future` requested, and the date is in the future"
    ),
    Transition(STATUSES, "trash", "edit", "requested, or DELETE; not an initial status"),
    Transition(("future",), "publish", "schedule", "its date is reached; the worker creates an ordinary revision"),
    Transition(("trash",), DELETED, "schedule", "`KALENDS_TRASH_DAYS` have passed; links are deleted, too"),
)
# What it takes to ask for a status: where a record comes from makes no difference.
REQUIRED_RIGHTS: Final = {
    transition.target: transition.right for transition in TRANSITIONS if transition.right != "schedule"
}


def resolve_status(requested: str, *, may_publish: bool, published_at: datetime, now: datetime) -> str:
    """The status that a record gets: publishing needs the right, and the future is scheduled."""
    if REQUIRED_RIGHTS[requested] == "publish" and not may_publish:
        return "pending"
    if requested in ("publish", "future"):
        return "future" if published_at > now else "publish"
    return requested
