"""Parsed sources as JSON, for the way from the process that parses them.

A file may have taken over that process. Therefore a decoded record has only what a client could send to the API:
neither columns nor a wanted ID.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any, Final

import orjson

from kalends.core.imports.records import ImportedRecord, ParsedSource, Rejection
from kalends.core.messages import Message

_MESSAGE: Final = "$message"
_KINDS: Final = frozenset({"events", "series", "venues", "organizers", "categories", "tags"})


def encode_result(result: Mapping[str, object]) -> bytes:
    """Encode a result that contains messages, dates and parsed sources at any depth."""
    return orjson.dumps(result, default=_encode_value, option=orjson.OPT_PASSTHROUGH_DATACLASS)


def decode_message(value: Any) -> Message:
    """Decode a message that is expected here."""
    message = decode_values(value)
    if not isinstance(message, Message):
        raise ValueError("not a message")
    return message


def decode_values(value: Any) -> Any:
    """Decode the messages in a value, at any depth."""
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
    names = ("identity", "recurrence_id", "title", "column", "value")
    texts = {name: str(stored[name]) for name in names}
    return Rejection(decode_message(stored["reason"]), stored["line"], **texts)


def _encode_value(value: object) -> object:
    if isinstance(value, Message):
        return {_MESSAGE: value.text, "values": value.values}
    if isinstance(value, ParsedSource):
        return {name: getattr(value, name) for name in ("records", "rejections", "span", "name", "unused_columns")}
    if isinstance(value, ImportedRecord):
        names = ("kind", "identity", "values", "recurrence_id", "links", "line", "warnings")
        return {name: getattr(value, name) for name in (*names, "is_linked", "question", "dates")}
    if isinstance(value, Rejection):
        names = ("reason", "line", "identity", "recurrence_id", "title", "column", "value")
        return {name: getattr(value, name) for name in names}
    return _encode_other(value)


def _encode_other(value: Any) -> object:
    """Encode a value by the names of its fields, as a list or as text."""
    if is_dataclass(value):
        return {entry.name: getattr(value, entry.name) for entry in fields(value)}
    return list(value) if isinstance(value, tuple | set | frozenset) else str(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
