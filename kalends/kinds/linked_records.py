"""Linked records: the venues, organizers, categories and tags of events, as dataclasses and as JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kalends.core.record_types import Organizer, Term, Venue


@dataclass(frozen=True, slots=True)
class LinkedRecord[R]:
    """A record that an event links to, with the JSON object that represents it inside of events."""

    record: R
    json: dict[str, Any]


@dataclass(frozen=True, slots=True)
class LinkedRecords:
    """The records that some events link to and that the caller may see, by ID."""

    venues: Mapping[int, LinkedRecord[Venue]] = field(default_factory=dict[int, LinkedRecord[Venue]])
    organizers: Mapping[int, LinkedRecord[Organizer]] = field(default_factory=dict[int, LinkedRecord[Organizer]])
    categories: Mapping[int, LinkedRecord[Term]] = field(default_factory=dict[int, LinkedRecord[Term]])
    tags: Mapping[int, LinkedRecord[Term]] = field(default_factory=dict[int, LinkedRecord[Term]])


NO_LINKED_RECORDS = LinkedRecords()
