"""Parameters and body fields as people read them: flat names, short types, limits."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from kalends.core.messages import Message, Translate
from kalends.core.params import MAX_ID

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter of an operation, or a field of its body, whose location is empty."""

    name: str
    type: str
    location: str
    description: str
    limits: str
    default: str
    is_required: bool
    is_extension: bool


@dataclass(frozen=True, slots=True)
class SchemaField:
    """A field of an object, named by its path: `operations[].method` is one of the objects in a list."""

    name: str
    schema: Json
    is_required: bool


def flatten_fields(schema: Json, prefix: str = "") -> Iterator[SchemaField]:
    """Yield the fields of an object, each followed by those of the objects inside of it."""
    required = schema.get("required", [])
    for name, field in schema.get("properties", {}).items():
        yield SchemaField(f"{prefix}{name}", field, name in required)
        inner = field.get("items", {}) if field.get("type") == "array" else field
        mark = "[]" if inner is not field else ""
        yield from flatten_fields(inner, f"{prefix}{name}{mark}.")


def format_type(schema: Json) -> str:
    """Return a short form of a schema: integer, string | null, asc | desc, array of integer."""
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(format_type(entry) for entry in schema["anyOf"]))
    type_name = schema.get("type", "any")
    if isinstance(type_name, list):
        return " | ".join(format_type({**schema, "type": name}) for name in type_name)
    return f"array of {format_type(schema.get('items', {}))}" if type_name == "array" else str(type_name)


def format_limits(schema: Json, translate: Translate) -> str:
    """Return the range of a number, of the length of a text and of the size of a list, or an empty string."""
    # A minimum of 0 is no limit here.
    length = _format_range(schema.get("minLength") or None, schema.get("maxLength"))
    size = _format_range(schema.get("minItems") or None, schema.get("maxItems"))
    parts = [
        _format_range(schema.get("minimum"), schema.get("maximum")),
        Message("{range} characters", range=length).render(translate) if "maxLength" in schema else "",
        Message("{range} entries", range=size).render(translate) if "maxItems" in schema else "",
    ]
    return ", ".join(filter(None, parts))


def _format_range(minimum: float | None, maximum: float | None) -> str:
    if maximum is None or maximum >= MAX_ID:  # The maximum of all integers says nothing about the parameter.
        return "" if minimum is None else f"≥ {_format_number(minimum)}"
    if minimum is None:
        return f"≤ {_format_number(maximum)}"
    dash = " – " if minimum < 0 else "–"
    return f"{_format_number(minimum)}{dash}{_format_number(maximum)}"


def _format_number(number: float) -> str:
    """Return a number with a real minus sign, which is not taken for the dash of a range."""
    return f"{number:.10g}".replace("-", "−")


def format_default(schema: Json) -> str:
    """Return the default as JSON, or an empty string."""
    return orjson.dumps(schema["default"]).decode() if "default" in schema else ""
