"""Who may do what with a record, said a second time and apart from the code: the matrix is compared with this.

Written from behaviour 2.2, 4.6, 6.1 to 6.3, 7.3 and 8.6 with their recommendations; nothing is imported.
"""

from dataclasses import dataclass
from typing import Literal

ROLES = ("anonymous", "subscriber", "contributor", "author", "editor", "administrator")
STATUSES = ("publish", "draft", "pending", "private", "future", "trash")

Guard = Literal["open", "hidden", "protected"]
Offer = Literal["nothing", "right", "wrong", "edit"]  # what a reader sends: a password, or context=edit


@dataclass(frozen=True)
class Case:
    """Somebody and a record. `was` is the status from which a record went into the trash."""

    kind: str
    role: str
    own: bool
    status: str
    was: str = ""
    guard: Guard = "open"
    offer: Offer = "nothing"

    @property
    def singular(self) -> str:
        return self.kind.removesuffix("s")

    @property
    def rank(self) -> int:
        return ROLES.index(self.role)

    @property
    def writes(self) -> bool:
        return self.role not in ("anonymous", "subscriber")


@dataclass(frozen=True)
class Answer:
    """A status, and the code of an error or the status that the record is shown with."""

    http: int
    says: str = ""


Sight = Literal["whole", "blank", "absent", "gone", "refused"]


def may_edit(case: Case) -> bool:
    if case.role in ("editor", "administrator"):
        return True
    if not case.own or not case.writes:
        return False
    # What is published, or about to be, is out of a contributor's hands, in the trash too.
    return case.role == "author" or (case.was or case.status) not in ("publish", "future")


def may_read(case: Case) -> bool:
    if case.status == "trash":
        return may_edit(case)
    return case.status == "publish" or case.own or case.role in ("editor", "administrator")


def reading(case: Case) -> Answer:
    if case.status == "trash" and case.kind == "events":
        return Answer(403, "event-no-longer-available")
    if not may_read(case):
        return Answer(403, f"{case.singular}-not-accessible")
    opened = case.offer == "right" or (case.offer == "edit" and may_edit(case))
    if case.guard == "protected" and not opened:
        return Answer(403, "event-password-protected")
    return Answer(200, case.status)


def refusal(case: Case) -> Answer | None:
    if case.role == "anonymous":
        return Answer(401, "rest_forbidden")
    return None if may_edit(case) else Answer(403, "rest_forbidden")


def updating(case: Case) -> Answer:
    """Without a status the status stays, whoever writes; in the trash too."""
    return refusal(case) or Answer(200, case.status)


def deleting(case: Case) -> Answer:
    if case.status == "trash":
        return refusal(case) or Answer(410, f"{case.singular}-is-in-trash")
    return refusal(case) or Answer(200, "trash")


def history(case: Case) -> Answer:
    return refusal(case) or Answer(200)


def restoring(case: Case) -> Answer:
    """Out of the trash, and back to the status from before it."""
    if case.status == "trash":
        return refusal(case) or Answer(200, case.was)
    return refusal(case) or Answer(400, "rest_missing_callback_param")


def listing(case: Case, asked: str) -> Sight:
    """A list shows what could be read one by one, never what is hidden, and the trash only when asked."""
    if asked not in ("", "publish") and not case.writes:
        return "refused"
    in_question = case.status == asked if asked else case.status != "trash"
    if not in_question or not may_read(case) or case.guard == "hidden":
        return "absent"
    return "blank" if case.guard == "protected" and case.offer != "right" else "whole"


def embedding(case: Case) -> Sight:
    return "whole" if case.status != "trash" and may_read(case) else "absent"


def following(case: Case) -> Sight:
    """The feed of changes, read from before the record was made."""
    if case.status != "trash" and may_read(case) and (case.guard != "hidden" or may_edit(case)):
        return "blank" if case.guard == "protected" else "whole"
    # Nobody is told of a record that they cannot have seen, except those who write.
    was_public = "publish" in (case.status, case.was) and case.guard != "hidden"
    return "gone" if case.writes or case.own or was_public else "absent"


def settled(role: str, asked: str, *, scheduled: bool) -> str:
    """The status that a wish becomes: publishing needs the right, and the date says whether it is now."""
    if asked in ("draft", "pending", "trash"):
        return asked
    if role == "contributor":
        return "pending"
    if asked == "private":
        return "private"
    return "future" if scheduled else "publish"


def creating(role: str, asked: str) -> Answer:
    """A new record without a date, with this status or none."""
    if role in ("anonymous", "subscriber"):
        return Answer(401 if role == "anonymous" else 403, "rest_forbidden")
    if asked == "trash":
        return Answer(400, "rest_invalid_param")
    default = "draft" if role == "contributor" else "publish"
    return Answer(201, settled(role, asked or default, scheduled=False))


def moving(case: Case, asked: str) -> Answer:
    """An update with a status. Only scheduled records have a date that is still to come."""
    scheduled = case.status == "future"
    return refusal(case) or Answer(200, settled(case.role, asked, scheduled=scheduled))


def writing_terms(kind: str, role: str) -> Answer | None:
    """Why not; None: they may create, change and delete categories or tags."""
    if ROLES.index(role) >= ROLES.index("author" if kind == "categories" else "editor"):
        return None
    return Answer(401 if role == "anonymous" else 403, "rest_forbidden")
