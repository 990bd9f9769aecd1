"""The buttons of the form: the statuses that a user may give an event, by role and current status."""

from dataclasses import dataclass
from typing import Final

from kalends.console.field_texts import STATUS_NAMES
from kalends.core.messages import gettext_noop as N_
from kalends.kinds.kind import Actor
from kalends.operations import permissions

# The status that an action requests; others keep the status.
STATUSES: Final = {"publish": "publish", "pending": "pending", "draft": "draft", "private": "private"}
NEW: Final = ""
STATUS_LABELS: Final = {NEW: N_("New"), **STATUS_NAMES}


@dataclass(frozen=True, slots=True)
class Action:
    """A button: the value that it sends, its text and its style."""

    value: str
    label: str  # a message ID
    style: str = "secondary"


_PUBLISH: Final = Action("publish", N_("Publish"), "")
_SUBMIT: Final = Action("pending", N_("Submit for review"), "")
_SAVE: Final = Action("save", N_("Save"), "")
_DRAFT: Final = Action("draft", N_("Save draft"))
_TO_DRAFT: Final = Action("draft", N_("Change to draft"))
_RESTORE: Final = Action("restore", N_("Restore"), "")
_KEEP: Final = Action("save", N_("Save"))


def list_actions(actor: Actor, status: str) -> list[Action]:
    """Return the actions that save the event; the first one is the primary button."""
    release = _PUBLISH if permissions.may_publish(actor) else _SUBMIT
    return {
        NEW: [release, _DRAFT],
        "draft": [release, _DRAFT],
        "pending": [release, _KEEP] if permissions.may_publish(actor) else [_SAVE, _TO_DRAFT],
        "publish": [_SAVE, _TO_DRAFT],
        "future": [_SAVE, _TO_DRAFT],
        "private": [_SAVE, Action("publish", N_("Publish"))],
        "trash": [_RESTORE],
    }[status]
