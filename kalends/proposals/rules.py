"""States and origins of proposals, the parameters that origins may send, and when a row ends or loses its data."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Literal, Protocol

from kalends.core.limits import Limit
from kalends.core.messages import gettext_noop as N_

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
# What the sender reads.
REASON_TEXTS: Final = {
    "no_event": N_("It isn’t an event."),
    "wrong_area": N_("It takes place outside the area of this calendar."),
    "duplicate": N_("The calendar already has this event."),
    "advertising": N_("It’s advertising."),
    "incomplete": N_("Important details are missing."),
    "other": N_("It doesn’t fit this calendar."),
}

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


class Mail(StrEnum):
    """What an email is about. Its job names a proposal; for `LINKS` a submitter, for `SUMMARY` an editor."""

    CONFIRM = "confirm"
    LINKS = "links"
    DECISION = "decision"
    SUMMARY = "summary"


DECISION_DELAY: Final = timedelta(minutes=5)  # in which an editor can undo a decision before its sender hears of it
SUMMARY_HOUR: Final = 8  # of the site's time zone
MAX_LINKS: Final = 10  # per proposal, and per email

# Posts of the public form in a burst, and seconds until one is forgiven.
PER_NETWORK: Final = Limit(burst=5, seconds=600)
PER_ADDRESS: Final = Limit(burst=3, seconds=1200)
PER_DOMAIN: Final = Limit(burst=20, seconds=60)
PER_SITE: Final = Limit(burst=60, seconds=30)
MAX_PICTURE_BYTES: Final = 8 * 1024 * 1024  # as sent
MAX_STORED_BYTES: Final = 600_000  # of a picture after it was encoded again
MAX_UNCONFIRMED_BYTES: Final = 100 * 1024 * 1024  # of all unconfirmed pictures of a site
PICTURE_EDGE: Final = 1600
MIN_FORM_AGE: Final = timedelta(seconds=3)
MAX_FORM_AGE: Final = timedelta(hours=24)
MAX_TYPED_LINKS: Final = 5

UNCONFIRMED_PERIOD: Final = timedelta(hours=48)
BLOCKED_PERIOD: Final = timedelta(days=365)  # after which a blocked address without posts is forgotten
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
