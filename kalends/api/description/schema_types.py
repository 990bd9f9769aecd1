"""Building blocks for the schemas: simple types, and functions that build objects, arrays and references."""

from typing import Any, Final

from kalends.calendar.kinds.kind import Kind
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import MAX_ID

Schema = dict[str, Any]

ANY: Final[Schema] = {}
TEXT: Final[Schema] = {"type": "string"}
FLAG: Final[Schema] = {"type": "boolean"}
MAYBE_FLAG: Final[Schema] = {
    "type": ["boolean", "null"],
    "description": N_("null if the event is protected and its password was not sent"),
}
NON_NEGATIVE: Final[Schema] = {"type": "integer", "minimum": 0}
ID: Final[Schema] = {"type": "integer", "minimum": 1, "maximum": MAX_ID}
URL: Final[Schema] = {"type": "string", "format": "uri"}
EMPTY_LIST: Final[Schema] = {"type": "array", "items": {}, "maxItems": 0}
DATETIME: Final[Schema] = {
    "type": "string",
    "pattern": r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$",
    "examples": ["2027-04-01 19:30:00"],
}
HTML: Final[Schema] = {"type": "string", "description": N_("Sanitized HTML, or empty")}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def array(entry: Schema) -> Schema:
    return {"type": "array", "items": entry}


def record(keys: Schema, *, optional: tuple[str, ...] = (), description: str = "") -> Schema:
    """Return the schema for an object with exactly these keys."""
    described: Schema = {"description": description} if description else {}
    return {
        "type": "object",
        **described,
        "properties": keys,
        "required": [key for key in keys if key not in optional],
        "additionalProperties": False,
    }


def with_description(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description}


def nullable(schema: Schema, description: str) -> Schema:
    return {"anyOf": [schema, {"type": "null"}], "description": description}


def extension(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description, "x-extension": True}


def schema_name(kind: Kind) -> str:
    return kind.singular.capitalize()
