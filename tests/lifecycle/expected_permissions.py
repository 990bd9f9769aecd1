"""The expected permissions, written independently of the code: the permission matrix is compared with them.

Written from behaviour 2.2, 4.6, 6.1 to 6.3, 7.3 and 8.6 with their recommendations; nothing is imported.
"""

from dataclasses import dataclass
from typing import Literal

ROLES = ("anonymous", "subscriber", "contributor", "author", "editor", "administrator")
STATUSES = ("publish", "draft", "pending", "private", "future", "trash")

Visibility = Literal["open", "hidden", "protected"]
Credential = Literal["nothing", "right", "wrong", "edit"]  # what a reader sends: a password, or context=edit


@dataclass(frozen=True)
class Case:
    """Somebody and a record. `was` is the status from which a record went into the trash."""

    kind: str
    role: str
    is_own: bool
    status: str
    status_before_trash: str = ""
    visibility: Visibility = "open"
    credential: Credential = "nothing"

    @property
    def singular(self) -> str:
        return self.kind.removesuffix("s")

    @property
    def rank(self) -> int:
        return ROLES.index(self.role)

    @property
    def can_write(self) -> bool:
        return self.role not in ("anonymous", "subscriber")


@dataclass(frozen=True)
class ExpectedResponse:
    """A status, and the code of an error or the status that the record is shown with."""

    status_code: int
    detail: str = ""


ListVisibility = Literal["whole", "blank", "absent", "gone", "refused"]


def may_edit(case: Case) -> bool:
    if case.role in ("editor", "administrator"):
        return True
    if not case.is_own or not case.can_write:
        return False
    # Contributors cannot edit records that are published or scheduled, or were so before they were trashed.
    return case.role == "author" or (case.status_before_trash or case.status) not in ("publish", "future")


def may_read(case: Case) -> bool:
    if case.status == "trash":
        return may_edit(case)
    return case.status == "publish" or case.is_own or case.role in ("editor", "administrator")


def expect_read(case: Case) -> ExpectedResponse:
    if case.status == "trash" and case.kind == "events":
        return ExpectedResponse(403, "event-no-longer-available")
    if not may_read(case):
        return ExpectedResponse(403, f"{case.singular}-not-accessible")
    unlocked = case.credential == "right" or (case.credential == "edit" and may_edit(case))
    if case.visibility == "protected" and not unlocked:
        return ExpectedResponse(403, "event-password-protected")
    return ExpectedResponse(200, case.status)


def permission_error(case: Case) -> ExpectedResponse | None:
    if case.role == "anonymous":
        return ExpectedResponse(401, "rest_forbidden")
    return None if may_edit(case) else ExpectedResponse(403, "rest_forbidden")


def expect_update(case: Case) -> ExpectedResponse:
    """Without a status the status stays, whoever writes; in the trash too."""
    return permission_error(case) or ExpectedResponse(200, case.status)


def expect_delete(case: Case) -> ExpectedResponse:
    if case.status == "trash":
        return permission_error(case) or ExpectedResponse(410, f"{case.singular}-is-in-trash")
    return permission_error(case) or ExpectedResponse(200, "trash")


def expect_history(case: Case) -> ExpectedResponse:
    return permission_error(case) or ExpectedResponse(200)


def expect_restore(case: Case) -> ExpectedResponse:
    """Out of the trash, and back to the status from before it."""
    if case.status == "trash":
        return permission_error(case) or ExpectedResponse(200, case.status_before_trash)
    return permission_error(case) or ExpectedResponse(400, "rest_missing_callback_param")


def expect_listing(case: Case, status: str) -> ListVisibility:
    """Expect the readable records without hidden ones, and trashed ones only with `status`."""
    if status not in ("", "publish") and not case.can_write:
        return "refused"
    matches_status = case.status == status if status else case.status != "trash"
    if not matches_status or not may_read(case) or case.visibility == "hidden":
        return "absent"
    return "blank" if case.visibility == "protected" and case.credential != "right" else "whole"


def expect_embedding(case: Case) -> ListVisibility:
    return "whole" if case.status != "trash" and may_read(case) else "absent"


def expect_change_feed(case: Case) -> ListVisibility:
    """The feed of changes, read from before the record was made."""
    if case.status != "trash" and may_read(case) and (case.visibility != "hidden" or may_edit(case)):
        return "blank" if case.visibility == "protected" else "whole"
    # Responses do not confirm unreadable records, except to callers who may write them.
    was_public = "publish" in (case.status, case.status_before_trash) and case.visibility != "hidden"
    return "gone" if case.can_write or case.is_own or was_public else "absent"


def resolve_status(role: str, status: str, *, scheduled: bool) -> str:
    """The status that a wish becomes: publishing needs the right, and the date says whether it is now."""
    if status in ("draft", "pending", "trash"):
        return status
    if role == "contributor":
        return "pending"
    if status == "private":
        return "private"
    return "future" if scheduled else "publish"


def expect_create(role: str, status: str) -> ExpectedResponse:
    """A new record without a date, with this status or none."""
    if role in ("anonymous", "subscriber"):
        return ExpectedResponse(401 if role == "anonymous" else 403, "rest_forbidden")
    if status == "trash":
        return ExpectedResponse(400, "rest_invalid_param")
    default = "draft" if role == "contributor" else "publish"
    return ExpectedResponse(201, resolve_status(role, status or default, scheduled=False))


def expect_status_change(case: Case, status: str) -> ExpectedResponse:
    """An update with a status. Only scheduled records have a date that is still to come."""
    scheduled = case.status == "future"
    return permission_error(case) or ExpectedResponse(200, resolve_status(case.role, status, scheduled=scheduled))


def term_write_error(kind: str, role: str) -> ExpectedResponse | None:
    """Why not; None: they may create, change and delete categories or tags."""
    if ROLES.index(role) >= ROLES.index("author" if kind == "categories" else "editor"):
        return None
    return ExpectedResponse(401 if role == "anonymous" else 403, "rest_forbidden")
