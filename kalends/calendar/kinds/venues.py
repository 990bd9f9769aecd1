"""Venues: where events take place."""

from typing import LiteralString

from kalends.calendar.kinds.json_ld import describe_venue
from kalends.calendar.kinds.kind import Columns, JsonObject, Kind, Reads, RenderContext, Values, WriteContext, Writes
from kalends.calendar.kinds.posts import (
    DESCRIPTION,
    POST_COLUMNS,
    build_post,
    build_post_columns,
    build_search_text,
    expires_at_next_start,
    linked_filters,
    merge_value,
    newest_first,
    omit_empty,
    post_fields,
    serialize_image,
    serialize_post,
)
from kalends.calendar.rules.fields import VENUE_FIELDS, Plain, names_of, pick
from kalends.calendar.rules.record_types import Venue
from kalends.core import errors, params
from kalends.core.params import param
from kalends.core.sanitize import clean_title
from kalends.store import Row

SEARCH_COLUMNS: tuple[LiteralString, ...] = ("address", "city", "province", "state", "stateprovince", "zip", "phone")
PLAIN = Plain(VENUE_FIELDS)
# The first parameters, in the order of The Events Calendar's documentation.
FIRST_PARAMS = (
    *("show_map", "show_map_link", "address", "city", "country", "province", "state", "zip", "phone"),
    *("stateprovince", "website"),
)


def build_venue(row: Row, context: RenderContext) -> Venue:
    plain = zip(PLAIN.attributes, PLAIN.get_columns(row), strict=True)
    return Venue(**build_post(row, context, "venue"), name=row["title"], **dict(plain))


def serialize_venue(venue: Venue, context: RenderContext) -> JsonObject:
    return omit_empty(
        {
            **serialize_post(venue, context),
            "venue": venue.name,
            "description": venue.description,
            "slug": venue.slug,
            "image": serialize_image(venue.image) if venue.image else None,
            **dict(zip(PLAIN.names, PLAIN.get_attributes(venue), strict=True)),
        }
    )


async def build_venue_columns(context: WriteContext) -> Values:
    arguments, row = context.arguments, context.row
    values = await build_post_columns(context, "venues", "venue")
    values.update({row.name: arguments[row.name] for row in VENUE_FIELDS if row.name in arguments})
    if (merge_value(values, row, "geo_lat") in ("", None)) != (merge_value(values, row, "geo_lng") in ("", None)):
        raise errors.invalid("geo_lat", "`geo_lat` and `geo_lng` must be sent together.")
    # Keep a `stateprovince` that was set explicitly. Recompute it only if the stored value was derived.
    is_derived = row is None or row["stateprovince"] == _derive_state_province({}, row)
    if "stateprovince" not in arguments and is_derived:
        values["stateprovince"] = _derive_state_province(values, row)
    values["search_text"] = build_search_text(values, row, ("title", "description"), SEARCH_COLUMNS)
    return values


def _derive_state_province(values: Values, row: Row | None) -> object:
    """Prefer the state if the country is the United States or empty, and the province otherwise."""
    state, province = merge_value(values, row, "state"), merge_value(values, row, "province")
    is_american = merge_value(values, row, "country") in ("", "US", "United States")
    return (state or province) if is_american else (province or state)


VENUES = Kind(
    name="venues",
    singular="venue",
    title_param="venue",
    fields=(
        param("venue", params.text(clean_title, allow_empty=False), "The venue name", required=True),
        *post_fields(),
        DESCRIPTION,
        *(row.param for row in dict.fromkeys((*pick(VENUE_FIELDS, *FIRST_PARAMS), *VENUE_FIELDS))),
    ),
    filters=linked_filters("event_venues", "venue_id"),
    reads=Reads(
        columns=POST_COLUMNS + Columns(*names_of(VENUE_FIELDS)),
        from_row=build_venue,
        to_json=serialize_venue,
        order=newest_first,
        expires_at=expires_at_next_start,
        to_json_ld=describe_venue,
    ),
    writes=Writes(
        to_columns=build_venue_columns,
        passthrough_columns=("title", "description", *names_of(VENUE_FIELDS)),
        sequence_columns=frozenset({"title", "status", *(row.name for row in VENUE_FIELDS if row.in_sequence)}),
    ),
)
