"""States and origins of proposals, the parameters that origins may send, and when a row ends or loses its data."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal, Protocol

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
# How long decisions can be undone and senders can open their links. Then personal data are erased.
KEPT_PERIOD: Final = timedelta(days=30)
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
    """What time does to a row, and when to look at it again."""

    due_at: datetime
    expires: bool = False
    is_deleted: bool = False
    erases_content: bool = False  # values, name, note, source, picture
    erases_sender: bool = False  # sender, links, comment


class ProposalRow(Protocol):
    def __getitem__(self, key: str, /) -> Any: ...


def plan_ageing(row: ProposalRow, ends_at: datetime, now: datetime, trimmed_revision: int = 0) -> Ageing:
    """Return what is due for a proposal.

    `ends_at` is the end of its event as it is now, or in the past if the event was deleted. `trimmed_revision` is the
    last revision that the change log no longer has.
    """
    state, decided_at, recheck_at = row["state"], row["decided_at"], now + RECHECK
    if state == "unconfirmed":
        due_at = row["created_at"] + UNCONFIRMED_PERIOD
        return Ageing(due_at, is_deleted=due_at <= now)
    if state in OPEN and ends_at <= now:
        return Ageing(now + KEPT_PERIOD, expires=True)
    if state == "waiting":
        return Ageing(min(ends_at, recheck_at))
    if state == "returned":
        deleted_at = decided_at + KEPT_PERIOD
        return Ageing(min(ends_at, recheck_at, deleted_at), is_deleted=deleted_at <= now)
    if state == "accepted":
        content_at, sender_at = decided_at + KEPT_PERIOD, ends_at + KEPT_PERIOD
        if content_at <= now and sender_at <= now and row["last_revision"] <= trimmed_revision:
            return Ageing(now, is_deleted=True)
        # An event may move or be deleted.
        due_at = min([recheck_at, *[at for at in (content_at, sender_at) if at > now]])
        return Ageing(due_at, erases_content=content_at <= now, erases_sender=sender_at <= now)
    # Rejected, withdrawn or expired: the change of the state has set the time.
    return Ageing(row["expires_at"], is_deleted=row["expires_at"] <= now)
