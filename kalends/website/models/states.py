"""The state of an event as pages and feeds show it: a badge, and a mark before the title."""

from dataclasses import dataclass
from typing import Final

from kalends.core.event_states import CANCELLED, MOVED_ONLINE, POSTPONED, SCHEDULED, SOLD_OUT
from kalends.core.messages import Translate
from kalends.core.messages import gettext_noop as N_

ONLINE: Final = N_("Online")
MARKED_TITLE: Final = N_("{state}: {title}")
STATE_LABELS: Final = {
    SCHEDULED: N_("As announced"),
    CANCELLED: N_("Cancelled"),
    POSTPONED: N_("Postponed"),
    MOVED_ONLINE: N_("Moved online"),
    SOLD_OUT: N_("Sold out"),
}
# An event that takes place as announced has no badge.
_STYLES: Final = {
    CANCELLED: "is-negative",
    POSTPONED: "is-warning",
    MOVED_ONLINE: "is-positive",
    SOLD_OUT: "is-warning",
}


@dataclass(frozen=True, slots=True)
class Badge:
    """A fact at a glance; `style` is a class of the component `.badge`."""

    label: str
    style: str = ""
    is_cancelled: bool = False  # strikes out the title


def make_state_badge(event_status: str, translate: Translate) -> Badge | None:
    """Make the badge of a state; an event that takes place as announced has none."""
    if event_status not in _STYLES:
        return None
    return Badge(translate(STATE_LABELS[event_status]), _STYLES[event_status], event_status == CANCELLED)


def mark_title(title: str, event_status: str, translate: Translate) -> str:
    """Put the state before the title, for feeds, whose readers show no badges."""
    badge = make_state_badge(event_status, translate)
    return translate(MARKED_TITLE).format(state=badge.label, title=title) if badge else title
