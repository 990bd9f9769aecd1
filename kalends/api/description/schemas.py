"""JSON Schemas for all responses: records, lists, history, changes, errors.

They list every key and allow no others. Descriptions are marked here and translated when the document is built.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from kalends.api.description.schema_types import (
    ANY,
    DATETIME,
    EMPTY_LIST,
    FLAG,
    HTML,
    ID,
    MAYBE_FLAG,
    NON_NEGATIVE,
    TEXT,
    URL,
    Schema,
    array,
    extension,
    record,
    ref,
    schema_name,
    with_description,
)
from kalends.calendar.kinds import KINDS, LOGGED_KINDS
from kalends.calendar.kinds.kind import Kind
from kalends.calendar.kinds.media_kind import MEDIA
from kalends.calendar.kinds.series_kind import SERIES
from kalends.calendar.rules.fields import EVENT_FIELDS, ORGANIZER_FIELDS, VENUE_FIELDS, Field
from kalends.core.messages import gettext_noop as N_
from kalends.core.statuses import STATUSES

# JSON Schemas for records and lists.

AUTHOR: Final[Schema] = {
    "type": "string",
    "pattern": "^[0-9]+$",
    "description": N_("Author ID as a string of digits"),
}
POST: Final[Schema] = {
    "id": ID,
    "global_id": with_description(TEXT, N_("Host name of the site and ID of the record")),
    "global_id_lineage": array(TEXT),
    "author": AUTHOR,
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
POSSIBLE_DUPLICATE: Final = record(
    {
        "id": ID,
        "title": with_description(TEXT, N_("The event title as plain text")),
        "status": {"type": "string", "enum": list(STATUSES)},
        "start_date": with_description(DATETIME, N_("The start, in the event's time zone")),
        "score": with_description(
            {"type": "number", "minimum": 0, "maximum": 1},
            N_("How likely the events are the same; imports link them at 0.85 and above"),
        ),
    }
)
EVENT_PAIR: Final = record({"id": ID, "other": ID})
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
        "webp": extension(record({"url": URL, "filesize": NON_NEGATIVE}), N_("This size as WebP")),
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
    "alt_text": extension(TEXT, N_("Alternative text")),
    "caption": extension(TEXT, N_("Sanitized HTML, or empty")),
    "focus_x": with_description(FRACTION, N_("Horizontal focal point, from 0 (left) to 1 (right)")),
    "focus_y": with_description(FRACTION, N_("Vertical focal point, from 0 (top) to 1 (bottom)")),
}
IMAGE: Final = record(IMAGE_KEYS, optional=("sizes",))
MEDIA_KEYS: Final[Schema] = {
    **IMAGE_KEYS,
    "title": TEXT,
    "mime_type": TEXT,
    "author": AUTHOR,
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


def _plain_keys(fields: Iterable[Field]) -> Schema:
    return {row.name: row.response_schema for row in fields}


# A protected event's flags are null.
_EVENT_PLAIN: Final[Schema] = {row.name: MAYBE_FLAG if row.is_flag else row.response_schema for row in EVENT_FIELDS}
EVENT_KEYS: Final[Schema] = {
    **POST,
    "rest_url": with_description(URL, N_("URL of the record in this API")),
    "title": TEXT,
    "description": HTML,
    "excerpt": _EVENT_PLAIN["excerpt"],
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
    "cost": _EVENT_PLAIN["cost"],
    "cost_details": ref("CostDetails"),
    **{row.name: _EVENT_PLAIN[row.name] for row in EVENT_FIELDS if not row.param.is_extension},
    "categories": array(ref("TermInEvent")),
    "tags": array(ref("TermInEvent")),
    "venue": {
        "anyOf": [ref("Venue"), array(ref("Venue"))],
        "description": N_("An object for one venue, an empty list for none, a list for several"),
    },
    "organizer": array(ref("Organizer")),
    "custom_fields": EMPTY_LIST,
    **_EVENT_PLAIN,
    "uid": extension(TEXT, N_("Globally unique, permanent ID of the event")),
    "series": extension(
        {"anyOf": [ref("SeriesReference"), {"type": "null"}]},
        N_("The series that the event belongs to; null if none, or if a password protects the event"),
    ),
    "possible_duplicates": {
        "type": "array",
        "description": N_("Stored events that may be the same, if a write asks for them"),
        "items": POSSIBLE_DUPLICATE,
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
    **_plain_keys(VENUE_FIELDS),
    "json_ld": JSON_LD,
}
ORGANIZER_KEYS: Final[Schema] = {
    **POST,
    "organizer": TEXT,
    "description": HTML,
    "slug": TEXT,
    "image": ref("Image"),
    **_plain_keys(ORGANIZER_FIELDS),
    "json_ld": JSON_LD,
}
# Venues and organizers omit empty values.
OPTIONAL_KEYS: Final = (
    *("description", "slug", "image", "json_ld"),
    *(row.name for row in (*VENUE_FIELDS, *ORGANIZER_FIELDS) if not row.is_flag),
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
SERIES_REFERENCE: Final = record(
    {
        "id": ID,
        "slug": TEXT,
        "url": with_description(URL, N_("URL of the page of the series")),
        "rest_url": with_description(URL, N_("URL of the record in this API")),
        "slot": with_description(DATETIME, N_("The date’s time by the rule, which identifies it")),
        "own": with_description(array(TEXT), N_("Fields that differ from the series; `times` stands for the dates")),
    }
)
MAYBE_DATETIME: Final[Schema] = {"type": ["string", "null"], "pattern": DATETIME["pattern"]}
RULE: Final = record(
    {
        "rrule": with_description(TEXT, N_("The rule in the form of RFC 5545")),
        "frequency": {"type": "string", "enum": ["daily", "weekly", "monthly", "yearly"]},
        "interval": NON_NEGATIVE,
        "weekdays": array({"anyOf": [TEXT, record({"weekday": TEXT, "ordinal": {"type": "integer"}})]}),
        "month_days": array({"type": "integer"}),
        "months": array({"type": "integer"}),
        "set_positions": array({"type": "integer"}),
        "count": NON_NEGATIVE,
        "until": TEXT,
        "week_start": TEXT,
    },
    optional=("weekdays", "month_days", "months", "set_positions", "count", "until", "week_start"),
)
MAYBE_RULE: Final[Schema] = {"anyOf": [ref("Rule"), {"type": "null"}]}
SERIES_PART: Final = record(
    {
        "from": with_description(DATETIME, N_("The first date of the part")),
        "uid": TEXT,
        "rule": MAYBE_RULE,
        "start_date": DATETIME,
        "end_date": DATETIME,
        "timezone": TEXT,
        "all_day": FLAG,
    }
)
SERIES_KEYS: Final[Schema] = {
    **{
        name: schema
        for name, schema in EVENT_KEYS.items()
        if name not in ("series", "json_ld", "possible_duplicates")
    },
    "rule": MAYBE_RULE,
    "parts": with_description(array(ref("SeriesPart")), N_("Later rules and times, each starting with a date")),
    "content_changes": with_description(
        array(record({"from": DATETIME, "fields": array(TEXT)})), N_("Fields that differ, starting with a date")
    ),
    "added": with_description(array(DATETIME), N_("Dates that no rule produces")),
    "removed": with_description(array(DATETIME), N_("Skipped dates of a rule")),
    "first": with_description(MAYBE_DATETIME, N_("Start of the first date")),
    "last": with_description(MAYBE_DATETIME, N_("Start of the last date that has an event")),
    "total": with_description(NON_NEGATIVE, N_("Number of dates that have an event")),
    "upcoming": with_description(NON_NEGATIVE, N_("Number of these dates that have not ended")),
    "created_until": with_description(
        MAYBE_DATETIME, N_("Dates before this time, in UTC, have an event; null: all dates do")
    ),
    "warnings": array(TEXT),
    "occurrences": with_description(
        array(ref("DateChange")), N_("The first dates; only in the response to a new series")
    ),
}
DATE_CHANGE: Final = record(
    {
        "event": ID,
        "before": with_description(MAYBE_DATETIME, N_("Start before the edit; null for a new date")),
        "after": with_description(MAYBE_DATETIME, N_("Start after the edit; null for a date in the trash")),
    }
)
OWN_FIELDS: Final = array(record({"event": ID, "slot": DATETIME, "fields": array(TEXT)}))
SERIES_EDIT: Final = record(
    {
        "dry_run": FLAG,
        "scope": TEXT,
        "from": MAYBE_DATETIME,
        "changed": NON_NEGATIVE,
        "created": NON_NEGATIVE,
        "trashed": NON_NEGATIVE,
        "kept_own": with_description(OWN_FIELDS, N_("Dates that keep their overrides")),
        "lost_own": with_description(OWN_FIELDS, N_("Dates in the trash that had overrides")),
        "dates": array(ref("DateChange")),
        "warnings": array(TEXT),
        "series": ref("Series"),
        "new_series": with_description(ref("Series"), N_("The second series, after one was split")),
    },
    optional=("warnings", "series", "new_series"),
)
SERIES_PREVIEW: Final = record(
    {
        "rule": MAYBE_RULE,
        "text": with_description(
            {"type": ["string", "null"]},
            N_("The rule in the language of the response; null if no short sentence describes it"),
        ),
        "dates": with_description(
            array(record({"start_date": DATETIME, "end_date": DATETIME})), N_("The first dates, at most 50")
        ),
        "last": with_description(MAYBE_DATETIME, N_("Start of the last date; null if there is no last one")),
        "count": with_description(
            {"type": ["integer", "null"], "minimum": 0},
            N_("Number of dates; null if the rule has no end or a distant one"),
        ),
        "warnings": array(TEXT),
    }
)
OCCURRENCE: Final = record(
    {
        "slot": with_description(DATETIME, N_("The date’s time by the rule, which identifies it")),
        "state": with_description(
            {"type": "string", "enum": ["made", "removed", "planned"]},
            N_("`planned`: a date that has no event yet"),
        ),
        "event": {"anyOf": [ID, {"type": "null"}], "description": N_("ID of the event, if there is one")},
        "start_date": DATETIME,
        "end_date": DATETIME,
        "timezone": TEXT,
        "status": with_description({"type": ["string", "null"]}, N_("Post status of the event, if there is one")),
        "own": with_description(array(TEXT), N_("Fields that differ from the series; `times` stands for the dates")),
    }
)
OCCURRENCES: Final = record(
    {
        "occurrences": array(OCCURRENCE),
        "more": with_description(FLAG, N_("Whether there are more dates; continue with a later `from`")),
    }
)
KEYS: Final[dict[str, Schema]] = {
    "events": EVENT_KEYS,
    "venues": VENUE_KEYS,
    "organizers": ORGANIZER_KEYS,
    "categories": {**TERM_KEYS, "parent": PARENT},
    "tags": TERM_KEYS,
    "series": SERIES_KEYS,
    "media": MEDIA_KEYS,
}


def record_schema(kind: Kind) -> Schema:
    if kind.is_media:
        return record(KEYS[kind.name], optional=("sizes",))
    if kind.name == "series":
        return record(SERIES_KEYS, optional=("occurrences",))
    optional = ("json_ld", "possible_duplicates") if kind.is_event else OPTIONAL_KEYS if kind.is_post else ()
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
        keys["next_cursor"] = extension({"type": ["string", "null"]}, description)
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


# The fields in an event's series reference that change only if the event itself changes.
CHANGED_SERIES_REFERENCE: Final = record(
    {name: SERIES_REFERENCE["properties"][name] for name in ("id", "slot", "own")}
)


def changed_record_schema(kind: Kind) -> Schema:
    """Return the schema for a record in `/changes`: links are IDs, and computed values such as counts are omitted."""
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
        {**entry, "deleted": {"const": True}}, description=N_("The record was deleted or is hidden from the user")
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


def _error(code: Schema, data: Schema) -> Schema:
    return record(
        {
            "code": code,
            "message": with_description(TEXT, N_("Human-readable message, in the language of the response")),
            "data": record(data, optional=("params",) if code == {"const": "rest_forbidden"} else ()),
        }
    )


STATUS: Final[Schema] = {"type": "integer", "minimum": 400, "maximum": 599}
PARAM_ERROR: Final = record(
    {"code": {"const": "rest_invalid_param"}, "message": TEXT, "data": record({"param": TEXT})}
)
# Codes of errors with additional data: their statuses, and the schemas of the data.
_ERROR_DATA: Final[dict[str, tuple[Schema, Schema]]] = {
    "rest_missing_callback_param": ({"const": 400}, {"params": array(TEXT)}),
    "rest_invalid_param": (
        {"const": 400},
        {
            "params": {"type": "object", "additionalProperties": TEXT},
            "details": {"type": "object", "additionalProperties": PARAM_ERROR},
        },
    ),
    "rest_invalid_json": ({"const": 400}, {"json_error_code": {"enum": [4, 5]}, "json_error_message": TEXT}),
    "rest_forbidden": (
        {"enum": [401, 403]},
        {
            "params": with_description(
                {"type": "object", "additionalProperties": TEXT},
                N_("New names that the caller may not create, by parameter"),
            )
        },
    ),
    "term_exists": ({"const": 400}, {"term_id": ID}),
    "rest_too_many_records": ({"const": 400}, {"limit": NON_NEGATIVE}),
    "rest_batch_failed": (
        STATUS,
        {"operation": NON_NEGATIVE, "error": {"type": "object", "required": ["code", "message", "data"]}},
    ),
    "rest_media_in_use": ({"const": 409}, {"used_by": array(record({"kind": TEXT, "id": ID}))}),
    "series_overrides_lost": ({"const": 409}, {"dates": OWN_FIELDS}),
    "series_undo_conflicts": ({"const": 409}, {"dates": OWN_FIELDS}),
    "rest_proposal_decided": ({"const": 409}, {"state": TEXT}),
    "rest_proposal_conflict": (
        {"const": 409},
        {
            "conflicts": {
                "type": "object",
                "additionalProperties": record({"base": ANY, "record": ANY, "proposal": ANY}),
                "description": N_("By field: the value that the sender saw, the record’s and the proposed one"),
            },
            "revision": NON_NEGATIVE,
        },
    ),
    "rest_history_expired": ({"const": 410}, {"oldest": NON_NEGATIVE}),
}
ERRORS: Final[Schema] = {
    "Error": _error(with_description(TEXT, N_("Machine-readable code; never changes")), {"status": STATUS}),
    **{code: _error({"const": code}, {"status": status, **data}) for code, (status, data) in _ERROR_DATA.items()},
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
    {"type": TEXT, "items": ANY, "enum": array(TEXT), "description": TEXT, "required": FLAG, "default": ANY},
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


def components(rooms: Mapping[str, Schema], *, of_interface: bool) -> dict[str, Schema]:
    """Return the schemas of the API or the extension by name. `rooms` holds additional schemas for the extension."""
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
        schemas |= rooms
        del schemas["Category"], schemas["Tag"]
    return {**schemas, **ERRORS, "Route": ROUTE, "Argument": ARGUMENT, "Index": INDEX, "Document": DOCUMENT}
