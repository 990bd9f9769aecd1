"""The normal form of imported records, which is the same for all sources."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kalends.core.messages import Message


@dataclass(frozen=True, slots=True)
class ImportedRecord:
    """A record as its source describes it.

    Its values are those that a client would send to the API, by parameter: they are validated and sanitized in the
    same way. Dates of series that differ from their rule are records of the kind `events` with a `recurrence_id`.
    """

    kind: str  # the name of the kind: events, series, venues, organizers, categories, tags, media, users
    identity: str
    values: Mapping[str, Any]
    recurrence_id: str = ""
    # Columns that no parameter sets, as JSON: the slug, the times of publication and change, the UID.
    columns: Mapping[str, Any] = field(default_factory=dict[str, Any])
    # Linked records by parameter: the identities of other records of the source, in order.
    links: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    # The ID that the record gets on an empty site.
    wanted_id: int | None = None
    line: int | None = None  # the line or row of the input
    warnings: Sequence[Message] = ()  # what is lost
    is_linked: bool = False  # created for the events that link to it, and published with them
    question: Message | None = None  # why a person has to look at the record before it is written
    dates: int | None = None  # of a series; None means without an end

    @property
    def key(self) -> tuple[str, str, str]:
        return self.kind, self.identity, self.recurrence_id

    @property
    def title(self) -> str:
        """Return the text that names the record in a plan."""
        names = ("title", "name", "venue", "organizer", "login")
        return str(next((self.values[name] for name in names if self.values.get(name)), self.identity))


@dataclass(frozen=True, slots=True)
class Rejection:
    """A part of the input that cannot become a record, with the place and the reason."""

    reason: Message
    line: int | None = None
    identity: str = ""
    recurrence_id: str = ""
    title: str = ""
    column: str = ""  # the header of the column of a table
    value: str = ""


@dataclass(frozen=True, slots=True)
class ParsedSource:
    """The content of a source. Records are in the order in which they are to be written."""

    records: Sequence[ImportedRecord]
    rejections: Sequence[Rejection] = ()
    # The first and the last instant of the events in the source; a record outside is not missing. None: no events.
    span: tuple[datetime, datetime] | None = None
    name: str = ""  # the name that the source gives itself
    # The headers of columns with values that are not imported; True: times that nobody has chosen to leave out.
    unused_columns: Mapping[str, bool] = field(default_factory=dict[str, bool])
