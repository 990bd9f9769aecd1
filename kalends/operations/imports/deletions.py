"""Which records are removed because their source no longer has them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from kalends.core.messages import Message

# A record is removed if it is missing in this many successful fetches, one after the other.
MIN_ABSENCES: Final = 2
# If more records are missing at once, a person decides.
MAX_SHARE: Final = 0.2
MAX_NUMBER: Final = 10

REMOVE: Final = "remove"
WAIT: Final = "wait"  # it may come back
ASK: Final = "ask"  # too many are missing
KEEP: Final = "keep"  # it is over, or the source does not reach that far


@dataclass(frozen=True, slots=True)
class MissingRecord:
    """A record that the source does not have now."""

    start: datetime
    end: datetime
    absences: int  # successful fetches without it, including this one


@dataclass(frozen=True, slots=True)
class Fetch:
    """What is known about the input, and how many records came from the source until now."""

    now: datetime
    is_complete: bool
    span: tuple[datetime, datetime] | None
    total: int
    allows_mass_deletion: bool = False


def decide(fetch: Fetch, missing: Sequence[MissingRecord]) -> list[str]:
    """Return the decision on each missing record."""
    decisions = [_decide_one(fetch, record) for record in missing]
    count = sum(decision != KEEP for decision in decisions)
    is_mass = count > MAX_NUMBER or count > MAX_SHARE * fetch.total
    if is_mass and not fetch.allows_mass_deletion:
        return [ASK if decision == REMOVE else decision for decision in decisions]
    return decisions


def _decide_one(fetch: Fetch, record: MissingRecord) -> str:
    if not fetch.is_complete or fetch.span is None or record.end < fetch.now:
        return KEEP
    if record.end < fetch.span[0] or record.start > fetch.span[1]:
        return KEEP
    return REMOVE if record.absences >= MIN_ABSENCES else WAIT


def explain(decision: str, record: MissingRecord) -> Message:
    """Return the reason that a plan shows."""
    if decision == WAIT:
        return Message("Missing in the source for the first time. It is removed if it is still missing next time.")
    if decision == ASK:
        return Message("Missing in the source, like many others. Check the source before you remove it.")
    return Message("Missing in the last {count} fetches of the source.", count=record.absences)
