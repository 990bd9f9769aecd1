"""What answers look like, exactly: JSON Schema for every record, list and refusal of the interface.

Every key is named; no other may come. Descriptions are marked here and translated where /doc is made.
"""

from typing import Any, Final

from kalends.api.batch import run_batch
from kalends.api.catalog import Operation
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
    "description": N_("null where the event is protected and its password was not given"),
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
HTML: Final[Schema] = {"type": "string", "description": N_("HTML that was cleaned, or empty")}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def array(entry: Schema) -> Schema:
    return {"type": "array", "items": entry}


def record(keys: Schema, *, optional: tuple[str, ...] = (), description: str = "") -> Schema:
    """An object with these keys and no others."""
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
    "global_id": with_description(TEXT, N_("The host of the site and the ID")),
    "global_id_lineage": array(TEXT),
    "author": {
        "type": "string",
        "pattern": "^[0-9]+$",
        "description": N_("The ID of the author, as digits"),
    },
    "status": {"type": "string", "enum": list(STATUSES)},
    "date": with_description(DATETIME, N_("The publication date, in the zone of the site")),
    "date_utc": with_description(DATETIME, N_("The publication date in UTC")),
    "modified": with_description(DATETIME, N_("The last change, in the zone of the site")),
    "modified_utc": with_description(DATETIME, N_("The last change in UTC")),
    "url": with_description(URL, N_("The page of the record on the site")),
}
JSON_LD: Final[Schema] = {
    "type": "object",
    "description": N_("Structured data of schema.org; only where one record is read"),
    "required": ["@context", "@type"],
    "properties": {"@context": {"const": "https://schema.org"}, "@type": TEXT},
    "additionalProperties": True,
}
DATE_DETAILS: Final = record(
    {
        "year": {"type": "string", "pattern": r"^\d{4}$"},
        **{key: {"type": "string", "pattern": r"^\d\d$"} for key in ("month", "day", "hour", "minutes", "seconds")},
    },
    description=N_("The parts of a date, padded with zeros"),
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
            "description": N_("The same size as WebP"),
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
        "description": N_("thumbnail, medium, large and full; absent until they are made"),
        "additionalProperties": ref("ImageSize"),
    },
    "alt_text": {
        "type": "string",
        "description": N_("What the image shows, for those who do not see it"),
        "x-extension": True,
    },
    "caption": {
        "type": "string",
        "description": N_("HTML that was cleaned, or empty"),
        "x-extension": True,
    },
    "focus_x": with_description(FRACTION, N_("The point that must stay visible, from the left: 0 to 1")),
    "focus_y": with_description(FRACTION, N_("The point that must stay visible, from the top: 0 to 1")),
}
IMAGE: Final = record(IMAGE_KEYS, optional=("sizes",))
MEDIA_KEYS: Final[Schema] = {
    **IMAGE_KEYS,
    "title": TEXT,
    "mime_type": TEXT,
    "author": {
        "type": "string",
        "pattern": "^[0-9]+$",
        "description": N_("The ID of the author, as digits"),
    },
    "date": with_description(DATETIME, N_("When it was added, in the zone of the site")),
    "date_utc": with_description(DATETIME, N_("When it was added, in UTC")),
    "modified": with_description(DATETIME, N_("The last change, in the zone of the site")),
    "modified_utc": with_description(DATETIME, N_("The last change in UTC")),
    "source_url": with_description(TEXT, N_("Where it was fetched from; empty: it was sent")),
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
    "rest_url": with_description(URL, N_("The address of the record in this interface")),
    "title": TEXT,
    "description": HTML,
    "excerpt": HTML,
    "slug": TEXT,
    "image": {"anyOf": [ref("Image"), {"const": False}]},
    "all_day": MAYBE_FLAG,
    "start_date": with_description(DATETIME, N_("The start, in the zone of the event")),
    "start_date_details": ref("DateDetails"),
    "end_date": with_description(DATETIME, N_("The end, in the zone of the event")),
    "end_date_details": ref("DateDetails"),
    "utc_start_date": with_description(DATETIME, N_("The start in UTC")),
    "utc_start_date_details": ref("DateDetails"),
    "utc_end_date": with_description(DATETIME, N_("The end in UTC")),
    "utc_end_date_details": ref("DateDetails"),
    "timezone": with_description(TEXT, N_("An IANA name such as Europe/Paris, or a fixed offset such as UTC+5")),
    "timezone_abbr": TEXT,
    "cost": with_description(TEXT, N_("The cost as it is shown, with its currency")),
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
        "description": N_("One venue is an object, none an empty list, several are a list"),
    },
    "organizer": array(ref("Organizer")),
    "custom_fields": EMPTY_LIST,
    "ticket_url": {"type": "string", "description": N_("Where tickets are sold"), "x-extension": True},
    "uid": {"type": "string", "format": "uuid", "description": N_("The name of the event for life, worldwide"),
            "x-extension": True},
    "json_ld": JSON_LD,
}  # fmt: skip
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
# Venues and organizers leave out what is empty.
OPTIONAL_KEYS: Final = (
    "description", "slug", "image", "address", "city", "country", "province", "state", "zip", "phone", "website",
    "stateprovince", "geo_lat", "geo_lng", "email", "json_ld",
)  # fmt: skip
TERM_URLS: Final = record({"self": URL, "collection": URL, "up": URL}, optional=("up",))
TERM_KEYS: Final[Schema] = {
    "id": ID,
    "count": with_description(NON_NEGATIVE, N_("How many published events have it")),
    "description": TEXT,
    "name": TEXT,
    "slug": TEXT,
    "taxonomy": {"type": "string", "enum": ["tribe_events_cat", "post_tag"]},
    "urls": TERM_URLS,
    "meta": EMPTY_LIST,
    "url": URL,
}
PARENT: Final = with_description(NON_NEGATIVE, N_("The parent category; 0 is none"))
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
        "rest_url": with_description(URL, N_("The address of this page")),
        "next_rest_url": with_description(URL, N_("The address of the next page, if there is one")),
        "previous_rest_url": with_description(URL, N_("The address of the page before, if there is one")),
        "total": with_description(NON_NEGATIVE, N_("How many records the whole list has")),
        "total_pages": with_description(NON_NEGATIVE, N_("How many pages the list has")),
    }
    if kind.reads.next_cursor:
        description = N_("What `cursor` takes for the next page; null at the end")
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
                        "description": N_("Who did it; null: the server itself"),
                    },
                    "changes": {
                        "type": "object",
                        "description": N_("By parameter, what it was and what it became"),
                        "additionalProperties": record({"before": ANY, "after": ANY}),
                    },
                }
            )
        ),
        "next_before": {
            "type": ["integer", "null"],
            "description": N_("What `before` takes for the next page; null at the end"),
        },
    }
)


def changed_record_schema(kind: Kind) -> Schema:
    """A record by itself: links are IDs, and counts, which are others' doing, are left out."""
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
        description=N_("The record is gone, or hidden from the caller"),
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
            "next_since": with_description(TEXT, N_("What `since` takes next")),
            "more": with_description(FLAG, N_("Whether there is more to fetch at once")),
        }
    )


# What other operations answer with. A test asks for a row here, or above, for every operation.
OPERATION_SCHEMAS: Final[dict[Operation, Schema]] = {run_batch: ref("Results")}
RESULTS: Final = record(
    {
        "results": with_description(
            array(record({"status": {"type": "integer"}, "body": {"type": "object"}})),
            N_("For each operation, in order, what it would have answered alone"),
        )
    }
)

# Refusals ------------------------------------------------------------------------------------


def _error(code: Schema, data: Schema) -> Schema:
    return record(
        {"code": code, "message": with_description(TEXT, N_("For people, in their language")), "data": record(data)}
    )


STATUS: Final[Schema] = {"type": "integer", "minimum": 400, "maximum": 599}
PARAM_ERROR: Final = record(
    {"code": {"const": "rest_invalid_param"}, "message": TEXT, "data": record({"param": TEXT})},
)
ERRORS: Final[Schema] = {
    "Error": _error(with_description(TEXT, N_("For programs; never changes")), {"status": STATUS}),
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

# The interface about itself ------------------------------------------------------------------

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
        "type": TEXT, "items": ANY, "enum": array(TEXT), "description": TEXT, "required": FLAG, "default": ANY,
    },
    optional=("type", "items", "enum", "description", "default"),
)  # fmt: skip
INDEX: Final = record(
    {"namespace": TEXT, "routes": {"type": "object", "additionalProperties": ref("Route")}, "_links": LINKS}
)
DOCUMENT: Final[Schema] = {
    "type": "object",
    "required": ["openapi", "info", "servers", "paths", "components"],
    "additionalProperties": True,
}


def components(*, of_interface: bool) -> dict[str, Schema]:
    """All schemas by name: those of the interface, or those of what is ours beside it."""
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
