"""Linked records: the venues, organizers, categories and tags of events, as dataclasses and as JSON."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kalends.core.record_types import Organizer, Term, Venue


class LinkedRecord[R]:
    """A record that an event links to, with the JSON object that represents it inside of events.

    The JSON is built when it is first used: pages and feeds do without it.
    """

    __slots__ = ("_build_json", "_json", "key", "record")

    def __init__(self, record: R, build_json: Callable[[], dict[str, Any]]) -> None:
        self.record = record
        self.key: tuple[object, ...] = ()  # everything that the JSON depends on, if it is kept between requests
        self._build_json = build_json
        self._json: dict[str, Any] | None = None

    @property
    def json(self) -> dict[str, Any]:
        if self._json is None:
            self._json = self._build_json()
        return self._json


@dataclass(frozen=True, slots=True)
class LinkedRecords:
    """The records that some events link to and that the caller may see, by ID."""

    venues: Mapping[int, LinkedRecord[Venue]] = field(default_factory=dict[int, LinkedRecord[Venue]])
    organizers: Mapping[int, LinkedRecord[Organizer]] = field(default_factory=dict[int, LinkedRecord[Organizer]])
    categories: Mapping[int, LinkedRecord[Term]] = field(default_factory=dict[int, LinkedRecord[Term]])
    tags: Mapping[int, LinkedRecord[Term]] = field(default_factory=dict[int, LinkedRecord[Term]])


NO_LINKED_RECORDS = LinkedRecords()
