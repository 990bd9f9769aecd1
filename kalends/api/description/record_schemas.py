"""JSON Schemas of the records and their lists."""

from typing import Final

from kalends.api.description.schema_types import (
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
    record,
    ref,
    schema_name,
    with_description,
)
from kalends.core.event_states import STATES
from kalends.core.messages import gettext_noop as N_
from kalends.core.statuses import STATUSES
from kalends.kinds.kind import Kind

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
POSSIBLE_DUPLICATE: Final = record(
    {
        "id": ID,
        "title": with_description(TEXT, N_("The event title as plain text")),
        "status": {"type": "string", "enum": list(STATUSES)},
        "start_date": with_description(DATETIME, N_("The start, in the event's time zone")),
        "score": {
            "type": "number",
            "minimum": 0,
            "maximum": 1,
            "description": N_("How likely the events are the same; from 0.85 on imports link them"),
        },
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
    "event_status": {
        "type": ["string", "null"],
        "enum": [*STATES, None],
        "description": N_("Whether the event takes place as announced; null if a password protects it"),
        "x-extension": True,
    },
    "status_reason": {
        "type": "string",
        "description": N_("Why it does not, as plain text"),
        "x-extension": True,
    },
    "online_url": {
        "type": "string",
        "description": N_("URL where one can take part online"),
        "x-extension": True,
    },
    "currency_symbol": {
        "type": ["string", "null"],
        "description": N_("The currency symbol of the event; null means that of the site"),
        "x-extension": True,
    },
    "currency_code": {
        "type": ["string", "null"],
        "description": N_("The currency code of the event; null means that of the site"),
        "x-extension": True,
    },
    "currency_position": {
        "type": ["string", "null"],
        "enum": ["prefix", "postfix", None],
        "description": N_("The position of the currency symbol; null means as on the site"),
        "x-extension": True,
    },
    "uid": {
        "type": "string",
        "description": N_("Globally unique, permanent ID of the event"),
        "x-extension": True,
    },
    "series": {
        "anyOf": [ref("SeriesReference"), {"type": "null"}],
        "description": N_("The series that the event belongs to; null if none, or if a password protects the event"),
        "x-extension": True,
    },
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
SERIES_REFERENCE: Final = record(
    {
        "id": ID,
        "slug": TEXT,
        "url": with_description(URL, N_("URL of the page of the series")),
        "rest_url": with_description(URL, N_("URL of the record in this API")),
        "slot": with_description(DATETIME, N_("The time that the rule gives to this date, which identifies it")),
        "own": with_description(array(TEXT), N_("Fields that differ from the series; `times` stands for the dates")),
    }
)
MAYBE_DATETIME: Final[Schema] = {"type": ["string", "null"], "pattern": DATETIME["pattern"]}
RULE: Final = record(
    {
        "rrule": with_description(TEXT, N_("The rule in the form of RFC 5545")),
        "frequency": {"type": "string", "enum": ["daily", "weekly", "monthly", "yearly"]},
        "interval": NON_NEGATIVE,
        "weekdays": array(
            {"anyOf": [TEXT, record({"weekday": TEXT, "ordinal": {"type": "integer"}})]},
        ),
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
    "parts": with_description(array(ref("SeriesPart")), N_("Later rules and times, each from a date on")),
    "content_changes": with_description(
        array(record({"from": DATETIME, "fields": array(TEXT)})), N_("Fields that differ from a date on")
    ),
    "added": with_description(array(DATETIME), N_("Dates that no rule gives")),
    "removed": with_description(array(DATETIME), N_("Dates of a rule that are left out")),
    "first": with_description(MAYBE_DATETIME, N_("Start of the first date")),
    "last": with_description(MAYBE_DATETIME, N_("Start of the last date that exists as an event")),
    "total": with_description(NON_NEGATIVE, N_("Number of dates that exist as events")),
    "upcoming": with_description(NON_NEGATIVE, N_("Number of these that have not ended")),
    "created_until": with_description(
        MAYBE_DATETIME, N_("Dates before this time, in UTC, exist as events; null: all dates do")
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
        "kept_own": with_description(OWN_FIELDS, N_("Dates that keep fields of their own")),
        "lost_own": with_description(OWN_FIELDS, N_("Dates in the trash that had fields of their own")),
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
        "slot": with_description(DATETIME, N_("The time that the rule gives to this date, which identifies it")),
        "state": {
            "type": "string",
            "enum": ["made", "removed", "planned"],
            "description": N_("`planned`: a date that does not exist as an event yet"),
        },
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
        "more": with_description(FLAG, N_("Whether there are further dates; continue with a later `from`")),
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
        keys["next_cursor"] = {"type": ["string", "null"], "description": description, "x-extension": True}
    return record(keys, optional=("next_rest_url", "previous_rest_url"))
