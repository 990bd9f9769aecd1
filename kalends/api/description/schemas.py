"""JSON Schemas of all responses: records, lists, history, changes, errors.

They list every key and allow no others. Descriptions are marked here and translated when the document is built.
"""

from typing import Final

from kalends.api.description.import_schemas import SCHEMAS as IMPORT_SCHEMAS
from kalends.api.description.record_schemas import (
    COST_DETAILS,
    DATE_CHANGE,
    DATE_DETAILS,
    EVENT_PAIR,
    IMAGE,
    IMAGE_SIZE,
    KEYS,
    OCCURRENCES,
    OPTIONAL_KEYS,
    OWN_FIELDS,
    RULE,
    SERIES_EDIT,
    SERIES_PART,
    SERIES_PREVIEW,
    SERIES_REFERENCE,
    TERM_IN_EVENT,
    list_schema,
    record_schema,
)
from kalends.api.description.schema_types import (
    ANY,
    DATETIME,
    FLAG,
    ID,
    NON_NEGATIVE,
    TEXT,
    URL,
    Schema,
    array,
    record,
    ref,
    schema_name,
    with_description,
)
from kalends.core.messages import gettext_noop as N_
from kalends.kinds import KINDS, LOGGED_KINDS
from kalends.kinds.kind import Kind
from kalends.kinds.media import MEDIA
from kalends.kinds.series import SERIES

# History and changes -------------------------------------------------------------------------

HISTORY: Final = record(
    {
        "history": array(
            record(
                {
                    "revision": NON_NEGATIVE,
                    "action": {"type": "string", "enum": ["create", "update", "trash", "restore"]},
                    "date_utc": DATETIME,
                    "user": {
                        "anyOf": [record({"id": ID, "login": {"type": ["string", "null"]}}), {"type": "null"}],
                        "description": N_("User who made the change; null for the server itself"),
                    },
                    "changes": {
                        "type": "object",
                        "description": N_("Old and new value of each changed parameter"),
                        "additionalProperties": record({"before": ANY, "after": ANY}),
                    },
                }
            )
        ),
        "next_before": {
            "type": ["integer", "null"],
            "description": N_("Value of `before` for the next page; null on the last page"),
        },
    }
)


# The fields of the series of an event that change only with the event.
CHANGED_SERIES_REFERENCE: Final = record(
    {name: SERIES_REFERENCE["properties"][name] for name in ("id", "slot", "own")}
)


def changed_record_schema(kind: Kind) -> Schema:
    """Return the schema of a record in `/changes`: links are IDs, and computed values such as counts are omitted."""
    keys = dict(KEYS[kind.name])
    for link in kind.links:
        keys[link.param] = array(ID)
    if kind.is_event:
        keys["series"] = {**keys["series"], "anyOf": [CHANGED_SERIES_REFERENCE, {"type": "null"}]}
    for name in ("json_ld", "occurrences", "possible_duplicates") if kind.is_post else ("count", "url"):
        keys.pop(name, None)
    return record(keys, optional=() if kind.is_event or not kind.is_post else OPTIONAL_KEYS)


def changes_schema() -> Schema:
    entry: Schema = {
        "revision": NON_NEGATIVE,
        "kind": {"type": "string", "enum": [kind.name for kind in LOGGED_KINDS]},
        "id": ID,
    }
    deleted = record(
        {**entry, "deleted": {"const": True}},
        description=N_("The record was deleted or is hidden from the user"),
    )
    existing = [
        record(
            {
                **entry,
                "kind": {"const": kind.name},
                "deleted": {"const": False},
                "record": changed_record_schema(kind),
            }
        )
        for kind in LOGGED_KINDS
    ]
    return record(
        {
            "changes": array({"anyOf": [deleted, *existing]}),
            "since": NON_NEGATIVE,
            "next_since": with_description(TEXT, N_("Value of `since` for the next request")),
            "more": with_description(FLAG, N_("Whether more changes can be fetched immediately")),
        }
    )


RESULTS: Final = record(
    {
        "results": with_description(
            array(record({"status": {"type": "integer"}, "body": {"type": "object"}})),
            N_("One result per operation, in order: the response it would receive on its own"),
        )
    }
)

# Errors --------------------------------------------------------------------------------------


def _error(code: Schema, data: Schema, *, optional: tuple[str, ...] = ()) -> Schema:
    return record(
        {
            "code": code,
            "message": with_description(TEXT, N_("Human-readable message, in the language of the response")),
            "data": record(data, optional=optional),
        }
    )


STATUS: Final[Schema] = {"type": "integer", "minimum": 400, "maximum": 599}
PARAM_ERROR: Final = record(
    {"code": {"const": "rest_invalid_param"}, "message": TEXT, "data": record({"param": TEXT})},
)
ERRORS: Final[Schema] = {
    "Error": _error(with_description(TEXT, N_("Machine-readable code; never changes")), {"status": STATUS}),
    "rest_missing_callback_param": _error(
        {"const": "rest_missing_callback_param"}, {"status": {"const": 400}, "params": array(TEXT)}
    ),
    "rest_invalid_param": _error(
        {"const": "rest_invalid_param"},
        {
            "status": {"const": 400},
            "params": {"type": "object", "additionalProperties": TEXT},
            "details": {"type": "object", "additionalProperties": PARAM_ERROR},
        },
    ),
    "rest_invalid_json": _error(
        {"const": "rest_invalid_json"},
        {"status": {"const": 400}, "json_error_code": {"enum": [4, 5]}, "json_error_message": TEXT},
    ),
    "rest_forbidden": _error(
        {"const": "rest_forbidden"},
        {
            "status": {"enum": [401, 403]},
            "params": with_description(
                {"type": "object", "additionalProperties": TEXT},
                N_("New names that the caller may not create, by parameter"),
            ),
        },
        optional=("params",),
    ),
    "term_exists": _error({"const": "term_exists"}, {"status": {"const": 400}, "term_id": ID}),
    "rest_too_many_records": _error(
        {"const": "rest_too_many_records"}, {"status": {"const": 400}, "limit": NON_NEGATIVE}
    ),
    "rest_batch_failed": _error(
        {"const": "rest_batch_failed"},
        {
            "status": STATUS,
            "operation": NON_NEGATIVE,
            "error": {"type": "object", "required": ["code", "message", "data"]},
        },
    ),
    "rest_media_in_use": _error(
        {"const": "rest_media_in_use"},
        {"status": {"const": 409}, "used_by": array(record({"kind": TEXT, "id": ID}))},
    ),
    "series_overrides_lost": _error(
        {"const": "series_overrides_lost"}, {"status": {"const": 409}, "dates": OWN_FIELDS}
    ),
    "series_undo_conflicts": _error(
        {"const": "series_undo_conflicts"}, {"status": {"const": 409}, "dates": OWN_FIELDS}
    ),
    "rest_history_expired": _error(
        {"const": "rest_history_expired"}, {"status": {"const": 410}, "oldest": NON_NEGATIVE}
    ),
}

# Index and document --------------------------------------------------------------------------

LINKS: Final = {"type": "object", "additionalProperties": array(record({"href": URL}))}
METHODS: Final = array({"type": "string", "enum": ["GET", "POST", "PUT", "PATCH", "DELETE"]})
ROUTE: Final = record(
    {
        "namespace": TEXT,
        "methods": METHODS,
        "endpoints": array(
            record({"methods": METHODS, "args": {"type": "object", "additionalProperties": ref("Argument")}})
        ),
        "_links": LINKS,
    },
    optional=("_links",),
)
ARGUMENT: Final = record(
    {
        "type": TEXT,
        "items": ANY,
        "enum": array(TEXT),
        "description": TEXT,
        "required": FLAG,
        "default": ANY,
    },
    optional=("type", "items", "enum", "description", "default"),
)
INDEX: Final = record(
    {"namespace": TEXT, "routes": {"type": "object", "additionalProperties": ref("Route")}, "_links": LINKS}
)
DOCUMENT: Final[Schema] = {
    "type": "object",
    "required": ["openapi", "info", "servers", "paths", "components"],
    "additionalProperties": True,
}


def components(*, of_interface: bool) -> dict[str, Schema]:
    """Return all schemas of the interface or of the extension, by name."""
    schemas: dict[str, Schema] = {
        "DateDetails": DATE_DETAILS,
        "ImageSize": IMAGE_SIZE,
        "Image": IMAGE,
        "CostDetails": COST_DETAILS,
        "TermInEvent": TERM_IN_EVENT,
        "SeriesReference": SERIES_REFERENCE,
    }
    for kind in KINDS:
        schemas[schema_name(kind)] = record_schema(kind)
        if of_interface:
            schemas[f"{schema_name(kind)}List"] = list_schema(kind)
    if not of_interface:
        schemas |= {"Media": record_schema(MEDIA), "MediaList": list_schema(MEDIA)}
        schemas |= {"Series": record_schema(SERIES), "SeriesList": list_schema(SERIES)}
        schemas |= {"Rule": RULE, "SeriesPart": SERIES_PART, "DateChange": DATE_CHANGE}
        schemas |= {"SeriesPreview": SERIES_PREVIEW, "Occurrences": OCCURRENCES}
        schemas |= {"SeriesEdit": {"anyOf": [SERIES_EDIT, ref("Event")]}}
        schemas |= {"ExportedFile": {"type": "string"}, "EventPair": EVENT_PAIR}
        schemas |= {"History": HISTORY, "Changes": changes_schema(), "Results": RESULTS}
        schemas |= IMPORT_SCHEMAS
        del schemas["Category"], schemas["Tag"]
    return {**schemas, **ERRORS, "Route": ROUTE, "Argument": ARGUMENT, "Index": INDEX, "Document": DOCUMENT}
