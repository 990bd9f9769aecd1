"""The statuses of events, venues and organizers: what each means, who may make which move, and how
a wish becomes one. docs/statuses.md and its picture are made from these tables by `just statuses`."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

# What a move takes: the right to edit the record, the right to publish, or the time that passes.
Right = Literal["edit", "publish", "schedule"]

NEW: Final = "new"  # before the first status
DELETED: Final = "gone"  # after the last: the row is removed, a tombstone stays in the log


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


_EDITORS = "its author, editors"
_OWN_SLUG = "its own"

# In the order of the interface description.
TABLE: Final = (
    Status("publish", "public", "everybody", "everybody", "everybody", _OWN_SLUG,
           is_public=True, contributor_may_edit=False),
    Status("draft", "being written", _EDITORS, _EDITORS, _EDITORS, "its own; an event may have none yet"),
    Status("pending", "handed in, waits for somebody who may publish", _EDITORS, _EDITORS, _EDITORS, "as a draft"),
    Status("private", "finished, not for the public", _EDITORS, _EDITORS, _EDITORS, _OWN_SLUG),
    Status("future", "published when its date comes", _EDITORS, _EDITORS, _EDITORS, _OWN_SLUG,
           contributor_may_edit=False),
    Status(
        "trash", "deleted, removed for good after some days",
        "venues and organizers: who may edit it; events: nobody",
        "who may edit it, with `status=trash`", "nobody", "ends in `__trashed`; the slug itself is free",
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
    Transition((NEW, *STATUSES), "draft", "edit", "asked for; the beginning for those who may not publish"),
    Transition(
        (NEW, *STATUSES), "pending", "edit", "asked for; or another was asked for without the right to publish"
    ),
    Transition((NEW, *STATUSES), "private", "publish", "asked for"),
    Transition((NEW, *STATUSES), "publish", "publish", "asked for, and its date is not to come; the usual beginning"),
    Transition((NEW, *STATUSES), "future", "publish", "`publish` or `future` asked for, and its date is to come"),
    Transition(STATUSES, "trash", "edit", "asked for, or DELETE; a record does not begin here"),
    Transition(("future",), "publish", "schedule", "its date has come; an ordinary revision, made by the worker"),
    Transition(("trash",), DELETED, "schedule", "`KALENDS_TRASH_DAYS` are over; with its links"),
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
