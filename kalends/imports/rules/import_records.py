"""The common form of imported records from all sources."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import datetime
from typing import Any, Final

import orjson

from kalends.core.messages import Message
from kalends.core.sanitize import fold


@dataclass(frozen=True, slots=True)
class ImportedRecord:
    """A record as its source supplies it.

    Values are keyed by API parameter. They are validated and sanitized like the values that a client sends. An event
    that overrides a date of a series has the kind `events` and a `recurrence_id`.
    """

    kind: str  # events, series, venues, organizers, categories, tags, media or users
    identity: str
    values: Mapping[str, Any]
    recurrence_id: str = ""
    # Columns that cannot be set by a parameter, as JSON: the slug, publication and modification times, and the UID.
    columns: Mapping[str, Any] = field(default_factory=dict[str, Any])
    # Linked records by parameter. The values are identities of other records in the source, in order.
    links: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    # The ID to use if it is free, as on an empty site.
    wanted_id: int | None = None
    line: int | None = None  # line or row in the input
    warnings: Sequence[Message] = ()  # about data that cannot be imported
    is_linked: bool = False  # created for the events that link to the record, and published with these events
    question: Message | None = None  # why a person must review the record before it is imported
    dates: int | None = None  # number of dates in a series; None if it is endless or too long to count

    @property
    def key(self) -> tuple[str, str, str]:
        return self.kind, self.identity, self.recurrence_id

    @property
    def title(self) -> str:
        names = ("title", "name", "venue", "organizer", "login")
        return str(next((self.values[name] for name in names if self.values.get(name)), self.identity))


@dataclass(frozen=True, slots=True)
class Rejection:
    """An entry in the input that cannot become a record, with its position and the reason."""

    reason: Message
    line: int | None = None
    identity: str = ""
    recurrence_id: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class ParsedSource:
    """A source's content. The records are in writing order."""

    records: Sequence[ImportedRecord]
    rejections: Sequence[Rejection] = ()
    # The first and last instant of the source's events; None if there are no events. Records outside this span do not
    # count as missing.
    span: tuple[datetime, datetime] | None = None
    name: str = ""  # name stated in the source
    # Headers of non-empty columns that are not imported. True if a column contains times and was not excluded on
    # purpose.
    unused_columns: Mapping[str, bool] = field(default_factory=dict[str, bool])


# Fields, compared one by one ----------------------------------------------------------------------

# Prefix for columns that cannot be set by a parameter.
COLUMN_PREFIX: Final = "columns."
# Parameters that only make sense together.
TIME_FIELDS: Final = ("start_date", "end_date", "timezone", "all_day", "rule")


def list_fields(imported: ImportedRecord) -> dict[str, Any]:
    """Return an imported record's values by field: parameters, links by identity, and columns."""
    return {
        **imported.values,
        **{name: {"linked": list(identities)} for name, identities in imported.links.items()},
        **{COLUMN_PREFIX + name: value for name, value in imported.columns.items()},
    }


def select_fields(imported: ImportedRecord, names: Collection[str]) -> ImportedRecord:
    return replace(
        imported,
        values={name: value for name, value in imported.values.items() if name in names},
        links={name: value for name, value in imported.links.items() if name in names},
        columns={name: value for name, value in imported.columns.items() if COLUMN_PREFIX + name in names},
    )


def group_of(field: str) -> str:
    """Return the group of a field. The time fields form one group, because they are decided together."""
    return "times" if field in TIME_FIELDS else field


def compute_fingerprint(imported: ImportedRecord) -> str:
    """Return a fingerprint of title, start and place.

    It identifies a record whose identity in the source has changed.
    """
    start = " ".join(str(imported.values.get(name, "")) for name in ("start_date", "timezone"))
    parts = (imported.kind, fold(imported.title), start, fold(_name_place(imported)), imported.recurrence_id)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _name_place(imported: ImportedRecord) -> str:
    linked = imported.links.get("venue")
    return ",".join(linked) if linked else _name_venue(imported.values.get("venue"))


def _name_venue(venue: object) -> str:
    entry: Any = venue[0] if isinstance(venue, list) and venue else venue  # pyright: ignore[reportUnknownVariableType]
    return str(entry.get("venue", "")) if isinstance(entry, Mapping) else str(entry or "")  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]


# JSON from the process that parses files ----------------------------------------------------------

_MESSAGE: Final = "$message"
_KINDS: Final = frozenset({"events", "series", "venues", "organizers", "categories", "tags"})


def encode_result(result: Mapping[str, object]) -> bytes:
    """Encode a result with nested messages, dates and parsed sources."""
    return orjson.dumps(result, default=_encode_value, option=orjson.OPT_PASSTHROUGH_DATACLASS)


def decode_message(value: Any) -> Message:
    """Decode a message. Raise ValueError for any other value."""
    message = decode_values(value)
    if not isinstance(message, Message):
        raise ValueError("not a message")
    return message


def decode_values(value: Any) -> Any:
    """Decode the messages nested in a value."""
    if isinstance(value, list):
        return [decode_values(entry) for entry in value]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, dict):
        return value
    if _MESSAGE in value:
        return Message(str(value[_MESSAGE]), **decode_values(value.get("values") or {}))
    return {str(name): decode_values(entry) for name, entry in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def decode_source(stored: Mapping[str, Any]) -> ParsedSource:
    """Decode a parsed source. Raise KeyError, TypeError or ValueError for any other value."""
    span = stored["span"]
    return ParsedSource(
        [_decode_record(record) for record in stored["records"]],
        [_decode_rejection(rejection) for rejection in stored["rejections"]],
        (datetime.fromisoformat(span[0]), datetime.fromisoformat(span[1])) if span else None,
        str(stored["name"]),
        {str(header): bool(has_times) for header, has_times in stored["unused_columns"].items()},
    )


def _decode_record(stored: Mapping[str, Any]) -> ImportedRecord:
    if stored["kind"] not in _KINDS:
        raise ValueError("not a kind that a file can contain")
    return ImportedRecord(
        stored["kind"],
        str(stored["identity"]),
        dict(stored["values"]),
        str(stored["recurrence_id"]),
        links={name: [str(entry) for entry in entries] for name, entries in stored["links"].items()},
        line=stored["line"],
        warnings=[decode_message(warning) for warning in stored["warnings"]],
        is_linked=bool(stored["is_linked"]),
        question=decode_message(stored["question"]) if stored["question"] is not None else None,
        dates=int(stored["dates"]) if stored["dates"] is not None else None,
    )


def _decode_rejection(stored: Mapping[str, Any]) -> Rejection:
    names = ("identity", "recurrence_id", "title")
    texts = {name: str(stored[name]) for name in names}
    return Rejection(decode_message(stored["reason"]), stored["line"], **texts)


def _encode_value(value: Any) -> object:
    if isinstance(value, Message):
        return {_MESSAGE: value.text, "values": value.values}
    if is_dataclass(value):
        return {entry.name: getattr(value, entry.name) for entry in fields(value)}
    return list(value) if isinstance(value, tuple | set | frozenset) else str(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
