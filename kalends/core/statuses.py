"""Statuses for events, venues and organizers, and the transitions between them.

`just statuses` generates docs/statuses.md and its diagram from these tables.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

# What a transition requires: permission to edit the record, permission to publish, or only a point in time.
Right = Literal["edit", "publish", "schedule"]

NEW: Final = "new"  # before the first status
DELETED: Final = "deleted"  # after the last status; the row is removed, but a tombstone stays in the log


@dataclass(frozen=True, slots=True)
class Status:
    """A status and its effect on readers, lists, counts, linked events and the slug."""

    name: str
    meaning: str
    read: str
    lists: str
    embedded: str
    slug: str
    is_public: bool = False  # visible to anonymous users, and counted
    is_listed: bool = True  # in lists without a `status` parameter, if the caller may read the record
    contributor_may_edit: bool = True  # whether the contributor who created the record may still edit it


_EDITORS = "author, editors"
_OWN_SLUG = "unchanged"

# In the same order as the API description.
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
# Common client mistakes.
SYNONYMS: Final = {
    "public": "publish", "live": "publish", "active": "publish", "scheduled": "future", "review": "pending",
    "hidden": "private", "deleted": "trash", "removed": "trash",
}  # fmt: skip
# Statuses in lists without a `status` parameter, if the caller may read the record.
LISTED: Final = tuple(status.name for status in TABLE if status.is_listed)


@dataclass(frozen=True, slots=True)
class Transition:
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
# Permission required to set a status, regardless of the current status.
REQUIRED_RIGHTS: Final = {
    transition.target: transition.right for transition in TRANSITIONS if transition.right != "schedule"
}


def resolve_status(requested: str, *, may_publish: bool, published_at: datetime, now: datetime) -> str:
    """Return the resulting status: pending if the caller may not publish, or scheduled for a future date."""
    if REQUIRED_RIGHTS[requested] == "publish" and not may_publish:
        return "pending"
    if requested in ("publish", "future"):
        return "future" if published_at > now else "publish"
    return requested
