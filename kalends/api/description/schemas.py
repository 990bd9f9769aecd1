"""JSON Schemas of all responses: records, lists, errors.

They list every key and allow no others. Descriptions are marked here and translated when the document is built.
"""

from typing import Any, Final

from kalends.core.messages import gettext_noop as N_
from kalends.core.params import MAX_ID
from kalends.core.statuses import STATUSES
from kalends.kinds import KINDS
from kalends.kinds.kind import Kind
from kalends.kinds.media import MEDIA

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
    """Return the schema of an object with these keys and no others."""
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


def schema_name(kind: Kind) -> str:
    return kind.singular.capitalize()


# Records -------------------------------------------------------------------------------------

POST: Final[Schema] = {
    "id": ID,
    "global_id": with_description(TEXT, N_("Host name of the site and ID of the record")),
    "global_id_lineage": array(TEXT),
    "author": {
        "type": "string",
        "pattern": "^[0-9]+$",
        "description": N_("Author ID as a string of digits"),
    },
    "status": {"type": "string", "enum": list(STATUSES)},
    "date": with_description(DATETIME, N_("The publication date, in the site's time zone")),
    "date_utc": with_description(DATETIME, N_("The publication date in UTC")),
    "modified": with_description(DATETIME, N_("The last change, in the site's time zone")),
    "modified_utc": with_description(DATETIME, N_("The last change in UTC")),
    "url": with_description(URL, N_("URL of the record's page on the site")),
}
JSON_LD: Final[Schema] = {
    "type": "object",
    "description": N_("schema.org structured data; only when a single record is read"),
    "required": ["@context", "@type"],
    "properties": {"@context": {"const": "https://schema.org"}, "@type": TEXT},
    "additionalProperties": True,
}
DATE_DETAILS: Final = record(
    {
        "year": {"type": "string", "pattern": r"^\d{4}$"},
        **{key: {"type": "string", "pattern": r"^\d\d$"} for key in ("month", "day", "hour", "minutes", "seconds")},
    },
    description=N_("The parts of a date, zero-padded"),
)
IMAGE_SIZE: Final = record(
    {
        "width": NON_NEGATIVE,
        "height": NON_NEGATIVE,
        "mime-type": TEXT,
        "filesize": NON_NEGATIVE,
        "url": URL,
        "webp": {
            **record({"url": URL, "filesize": NON_NEGATIVE}),
            "description": N_("This size as WebP"),
            "x-extension": True,
        },
    },
    optional=("width", "height", "mime-type", "filesize", "url", "webp"),
)
FRACTION: Final[Schema] = {"type": "number", "minimum": 0, "maximum": 1, "x-extension": True}
IMAGE_KEYS: Final[Schema] = {
    "url": URL,
    "id": ID,
    "extension": TEXT,
    "width": NON_NEGATIVE,
    "height": NON_NEGATIVE,
    "filesize": NON_NEGATIVE,
    "sizes": {
        "type": "object",
        "description": N_("thumbnail, medium, large and full; absent until generated"),
        "additionalProperties": ref("ImageSize"),
    },
    "alt_text": {
        "type": "string",
        "description": N_("Alternative text"),
        "x-extension": True,
    },
    "caption": {
        "type": "string",
        "description": N_("Sanitized HTML, or empty"),
        "x-extension": True,
    },
    "focus_x": with_description(FRACTION, N_("Horizontal focal point, from 0 (left) to 1 (right)")),
    "focus_y": with_description(FRACTION, N_("Vertical focal point, from 0 (top) to 1 (bottom)")),
}
IMAGE: Final = record(IMAGE_KEYS, optional=("sizes",))
MEDIA_KEYS: Final[Schema] = {
    **IMAGE_KEYS,
    "title": TEXT,
    "mime_type": TEXT,
    "author": {
        "type": "string",
        "pattern": "^[0-9]+$",
        "description": N_("Author ID as a string of digits"),
    },
    "date": with_description(DATETIME, N_("Date added, in the site's time zone")),
    "date_utc": with_description(DATETIME, N_("Date added, in UTC")),
    "modified": with_description(DATETIME, N_("The last change, in the site's time zone")),
    "modified_utc": with_description(DATETIME, N_("The last change in UTC")),
    "source_url": with_description(TEXT, N_("URL the image was fetched from; empty if it was uploaded")),
}
COST_DETAILS: Final = record(
    {
        "currency_symbol": TEXT,
        "currency_code": TEXT,
        "currency_position": {"type": "string", "enum": ["prefix", "postfix", ""]},
        "values": array(TEXT),
    }
)
EVENT_KEYS: Final[Schema] = {
    **POST,
    "rest_url": with_description(URL, N_("URL of the record in this API")),
    "title": TEXT,
    "description": HTML,
    "excerpt": HTML,
    "slug": TEXT,
    "image": {"anyOf": [ref("Image"), {"const": False}]},
    "all_day": MAYBE_FLAG,
    "start_date": with_description(DATETIME, N_("The start, in the event's time zone")),
    "start_date_details": ref("DateDetails"),
    "end_date": with_description(DATETIME, N_("The end, in the event's time zone")),
    "end_date_details": ref("DateDetails"),
    "utc_start_date": with_description(DATETIME, N_("The start in UTC")),
    "utc_start_date_details": ref("DateDetails"),
    "utc_end_date": with_description(DATETIME, N_("The end in UTC")),
    "utc_end_date_details": ref("DateDetails"),
    "timezone": with_description(TEXT, N_("IANA time zone such as Europe/Paris, or a fixed offset such as UTC+5")),
    "timezone_abbr": TEXT,
    "cost": with_description(TEXT, N_("The formatted cost, with its currency")),
    "cost_details": ref("CostDetails"),
    "website": TEXT,
    "show_map": MAYBE_FLAG,
    "show_map_link": MAYBE_FLAG,
    "hide_from_listings": MAYBE_FLAG,
    "sticky": MAYBE_FLAG,
    "featured": MAYBE_FLAG,
    "categories": array(ref("TermInEvent")),
    "tags": array(ref("TermInEvent")),
    "venue": {
        "anyOf": [ref("Venue"), array(ref("Venue"))],
        "description": N_("An object for one venue, an empty list for none, a list for several"),
    },
    "organizer": array(ref("Organizer")),
    "custom_fields": EMPTY_LIST,
    "ticket_url": {"type": "string", "description": N_("URL where tickets are sold"), "x-extension": True},
    "uid": {
        "type": "string",
        "format": "uuid",
        "description": N_("Globally unique, permanent ID of the event"),
        "x-extension": True,
    },
    "json_ld": JSON_LD,
}
VENUE_KEYS: Final[Schema] = {
    **POST,
    "venue": TEXT,
    "description": HTML,
    "slug": TEXT,
    "image": ref("Image"),
    "address": TEXT,
    "city": TEXT,
    "country": TEXT,
    "province": TEXT,
    "state": TEXT,
    "zip": TEXT,
    "phone": TEXT,
    "website": TEXT,
    "stateprovince": TEXT,
    "geo_lat": {"type": "number", "minimum": -90, "maximum": 90},
    "geo_lng": {"type": "number", "minimum": -180, "maximum": 180},
    "show_map": FLAG,
    "show_map_link": FLAG,
    "json_ld": JSON_LD,
}
ORGANIZER_KEYS: Final[Schema] = {
    **POST,
    "organizer": TEXT,
    "description": HTML,
    "slug": TEXT,
    "image": ref("Image"),
    "phone": TEXT,
    "website": TEXT,
    "email": TEXT,
    "json_ld": JSON_LD,
}
# Venues and organizers omit empty values.
OPTIONAL_KEYS: Final = (
    "description",
    "slug",
    "image",
    "address",
    "city",
    "country",
    "province",
    "state",
    "zip",
    "phone",
    "website",
    "stateprovince",
    "geo_lat",
    "geo_lng",
    "email",
    "json_ld",
)
TERM_URLS: Final = record({"self": URL, "collection": URL, "up": URL}, optional=("up",))
TERM_KEYS: Final[Schema] = {
    "id": ID,
    "count": with_description(NON_NEGATIVE, N_("Number of published events with this term")),
    "description": TEXT,
    "name": TEXT,
    "slug": TEXT,
    "taxonomy": {"type": "string", "enum": ["tribe_events_cat", "post_tag"]},
    "urls": TERM_URLS,
    "meta": EMPTY_LIST,
    "url": URL,
}
PARENT: Final = with_description(NON_NEGATIVE, N_("The parent category; 0 for none"))
TERM_IN_EVENT: Final = record(
    {
        "name": TEXT,
        "slug": TEXT,
        "term_group": NON_NEGATIVE,
        "term_taxonomy_id": ID,
        "taxonomy": {"type": "string", "enum": ["tribe_events_cat", "post_tag"]},
        "description": TEXT,
        "parent": NON_NEGATIVE,
        "count": NON_NEGATIVE,
        "filter": {"const": "raw"},
        "id": ID,
        "urls": TERM_URLS,
    }
)
KEYS: Final[dict[str, Schema]] = {
    "events": EVENT_KEYS,
    "venues": VENUE_KEYS,
    "organizers": ORGANIZER_KEYS,
    "categories": {**TERM_KEYS, "parent": PARENT},
    "tags": TERM_KEYS,
    "media": MEDIA_KEYS,
}


def record_schema(kind: Kind) -> Schema:
    if kind.is_media:
        return record(KEYS[kind.name], optional=("sizes",))
    optional = ("json_ld",) if kind.is_event else OPTIONAL_KEYS if kind.is_post else ()
    return record(KEYS[kind.name], optional=optional)


def list_schema(kind: Kind) -> Schema:
    keys: Schema = {
        kind.name: array(ref(schema_name(kind))),
        "rest_url": with_description(URL, N_("URL of this page")),
        "next_rest_url": with_description(URL, N_("URL of the next page, if any")),
        "previous_rest_url": with_description(URL, N_("URL of the previous page, if any")),
        "total": with_description(NON_NEGATIVE, N_("Total number of records in the list")),
        "total_pages": with_description(NON_NEGATIVE, N_("Number of pages")),
    }
    if kind.reads.next_cursor:
        description = N_("Value of `cursor` for the next page; null on the last page")
        keys["next_cursor"] = {"type": ["string", "null"], "description": description, "x-extension": True}
    return record(keys, optional=("next_rest_url", "previous_rest_url"))


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


def changed_record_schema(kind: Kind) -> Schema:
    """Return the schema of a record in `/changes`: links are IDs, and computed values such as counts are omitted."""
    keys = dict(KEYS[kind.name])
    for link in kind.links:
        keys[link.param] = array(ID)
    for name in ("json_ld",) if kind.is_post else ("count", "url"):
        keys.pop(name)
    return record(keys, optional=() if kind.is_event or not kind.is_post else OPTIONAL_KEYS)


def changes_schema() -> Schema:
    entry: Schema = {
        "revision": NON_NEGATIVE,
        "kind": {"type": "string", "enum": [kind.name for kind in KINDS]},
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
        for kind in KINDS
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


def _error(code: Schema, data: Schema) -> Schema:
    return record(
        {
            "code": code,
            "message": with_description(TEXT, N_("Human-readable message, in the language of the response")),
            "data": record(data),
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
    }
    for kind in KINDS:
        schemas[schema_name(kind)] = record_schema(kind)
        if of_interface:
            schemas[f"{schema_name(kind)}List"] = list_schema(kind)
    if not of_interface:
        schemas |= {"Media": record_schema(MEDIA), "MediaList": list_schema(MEDIA)}
        schemas |= {"History": HISTORY, "Changes": changes_schema(), "Results": RESULTS}
        del schemas["Category"], schemas["Tag"]
    return {**schemas, **ERRORS, "Route": ROUTE, "Argument": ARGUMENT, "Index": INDEX, "Document": DOCUMENT}
