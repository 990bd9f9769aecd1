"""States and origins of proposals, the parameters that origins may send, and when a row ends or loses its data."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal

State = Literal["unconfirmed", "waiting", "accepted", "returned", "rejected", "withdrawn", "expired"]
Origin = Literal["public", "contributor", "api", "agent"]
Choice = Literal["proposal", "record"]

STATES: Final[tuple[State, ...]] = (
    *("unconfirmed", "waiting", "accepted", "returned", "rejected", "withdrawn", "expired"),
)
ORIGINS: Final[tuple[Origin, ...]] = ("public", "contributor", "api", "agent")
CHOICES: Final[tuple[Choice, ...]] = ("proposal", "record")
# Senders may still change and withdraw these.
OPEN: Final[tuple[State, ...]] = ("waiting", "returned")
DECIDED: Final[tuple[State, ...]] = ("accepted", "returned", "rejected")
# The states in which each action is possible, and the state after it.
TRANSITIONS: Final[Mapping[str, tuple[tuple[State, ...], State]]] = {
    "confirm": (("unconfirmed",), "waiting"),
    "send": (OPEN, "waiting"),
    "withdraw": (OPEN, "withdrawn"),
    "expire": (OPEN, "expired"),
    "accept": (("waiting",), "accepted"),
    "return": (("waiting",), "returned"),
    "reject": (("waiting",), "rejected"),
    "undo": (DECIDED, "waiting"),
}
# Reasons for a rejection, stored as numbers from 1.
REASONS: Final = ("no_event", "wrong_area", "duplicate", "advertising", "incomplete", "other")

# The parameters of an event that each origin may send. Every other parameter is refused, also a new one of the kind.
PUBLIC_PARAMS: Final = (
    *("title", "start_date", "end_date", "all_day", "description", "cost", "website", "ticket_url", "categories"),
    *("venue", "organizer", "event_status", "status_reason"),
)
ACCOUNT_PARAMS: Final = (
    *PUBLIC_PARAMS,
    *("timezone", "excerpt", "tags", "online_url", "show_map", "show_map_link", "currency_symbol", "currency_code"),
    *("currency_position", "image"),
)
ALLOWED_PARAMS: Final[Mapping[Origin, tuple[str, ...]]] = {
    "public": PUBLIC_PARAMS,
    "contributor": ACCOUNT_PARAMS,
    "api": ACCOUNT_PARAMS,
    "agent": ACCOUNT_PARAMS,
}
# The parameters of a new venue or organizer inside an event.
ALLOWED_LINK_PARAMS: Final[Mapping[str, tuple[str, ...]]] = {
    "venue": ("venue", "address", "city", "zip", "state", "country"),
    "organizer": ("organizer", "website"),
}

MAX_BYTES: Final = 64 * 1024  # of `values`
MAX_OPEN: Final = 200  # open proposals per account
MAX_TEXT: Final = 2000  # characters of a note, a comment or a source

UNCONFIRMED_PERIOD: Final = timedelta(hours=48)
KEPT_PERIOD: Final = timedelta(days=30)  # of a decision: undo, the sender's link; afterwards its data are erased
# Rows that depend on an event are looked at this often, because it may move or be deleted.
RECHECK: Final = timedelta(days=1)


def find_refused(origin: Origin, values: Mapping[str, Any]) -> list[str]:
    """Return the names of the parameters that the origin may not send, those of new venues as `venue.phone`."""
    refused = [name for name in values if name not in ALLOWED_PARAMS[origin]]
    for param, allowed in ALLOWED_LINK_PARAMS.items():
        linked = values.get(param)
        for entry in linked if isinstance(linked, list) else [linked]:  # pyright: ignore[reportUnknownVariableType]
            if isinstance(entry, dict):
                refused += [f"{param}.{name}" for name in entry if name not in allowed]  # pyright: ignore[reportUnknownVariableType]
    return refused


@dataclass(frozen=True, slots=True)
class Ageing:
    """What time does to a row. At most one of the flags is set."""

    due_at: datetime  # when to look at the row again
    is_over: bool = False  # the proposal expires
    is_deleted: bool = False
    erases_content: bool = False  # values, name, note, source, picture
    erases_sender: bool = False  # sender, links, comment


def plan_ageing(row: Mapping[str, Any], ends_at: datetime | None, now: datetime) -> Ageing:
    """Return what is due for a proposal. `ends_at`: the end of its event as it is now; None: deleted."""
    raise NotImplementedError
