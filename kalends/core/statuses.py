"""The statuses of events, venues and organizers: what each means, who may make which move, and how
a wish becomes one. docs/statuses.md and its picture are made from these tables by `just statuses`."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

# What a move takes: the right to edit the record, the right to publish, or the time that passes.
Right = Literal["edit", "publish", "clock"]

NEW: Final = "new"  # before the first status
GONE: Final = "gone"  # after the last: the row is removed, a tombstone stays in the log


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
    is_contributors: bool = True  # the contributor who made it may still edit it


_OWN = "its author, editors"
_SLUG = "its own"

# In the order of the interface description.
TABLE: Final = (
    Status("publish", "public", "everybody", "everybody", "everybody", _SLUG, is_public=True, is_contributors=False),
    Status("draft", "being written", _OWN, _OWN, _OWN, "its own; an event may have none yet"),
    Status("pending", "handed in, waits for somebody who may publish", _OWN, _OWN, _OWN, "as a draft"),
    Status("private", "finished, not for the public", _OWN, _OWN, _OWN, _SLUG),
    Status("future", "published when its date comes", _OWN, _OWN, _OWN, _SLUG, is_contributors=False),
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
class Move:
    """From any of some statuses to one, and what it takes."""

    origins: tuple[str, ...]
    to: str
    right: Right
    when: str


MOVES: Final = (
    Move((NEW, *STATUSES), "draft", "edit", "asked for; the beginning for those who may not publish"),
    Move((NEW, *STATUSES), "pending", "edit", "asked for; or another was asked for without the right to publish"),
    Move((NEW, *STATUSES), "private", "publish", "asked for"),
    Move((NEW, *STATUSES), "publish", "publish", "asked for, and its date is not to come; the usual beginning"),
    Move((NEW, *STATUSES), "future", "publish", "`publish` or `future` asked for, and its date is to come"),
    Move(STATUSES, "trash", "edit", "asked for, or DELETE; a record does not begin here"),
    Move(("future",), "publish", "clock", "its date has come; an ordinary revision, made by the worker"),
    Move(("trash",), GONE, "clock", "`KALENDS_TRASH_DAYS` are over; with its links"),
)
# What it takes to ask for a status: where a record comes from makes no difference.
RIGHTS: Final = {move.to: move.right for move in MOVES if move.right != "clock"}


def settle_status(asked: str, *, may_publish: bool, date_utc: datetime, now: datetime) -> str:
    """The status that a record gets: publishing needs the right, and the future is scheduled."""
    if RIGHTS[asked] == "publish" and not may_publish:
        return "pending"
    if asked in ("publish", "future"):
        return "future" if date_utc > now else "publish"
    return asked
