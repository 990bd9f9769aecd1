"""Venues: the places of events."""

from typing import LiteralString

from kalends.core import errors, params
from kalends.core.html.sanitize import clean_plain, clean_title
from kalends.core.params import param
from kalends.core.record_types import Venue
from kalends.kinds.image_json import serialize_image
from kalends.kinds.json_ld import describe_venue
from kalends.kinds.kind import Columns, JsonObject, Kind, Reads, RenderContext, Values, WriteContext, Writes
from kalends.kinds.posts import (
    DESCRIPTION,
    POST_COLUMNS,
    build_html,
    build_post_columns,
    build_post_image,
    build_post_url,
    build_search_text,
    expires_at_next_start,
    linked_filters,
    merge_value,
    newest_first,
    omit_empty,
    post_fields,
    serialize_post,
)
from kalends.store import Row

# Plain text fields, whose parameter and column have the same name.
TEXT_COLUMNS: tuple[LiteralString, ...] = (
    "address",
    "city",
    "country",
    "province",
    "state",
    "zip",
    "phone",
    "stateprovince",
)
SEARCH_COLUMNS: tuple[LiteralString, ...] = (
    "address",
    "city",
    "province",
    "state",
    "stateprovince",
    "zip",
    "phone",
)


def build_venue(row: Row, context: RenderContext) -> Venue:
    return Venue(
        id=row["id"],
        author=row["author_id"],
        status=row["status"],
        date_utc=row["published_at"],
        modified_utc=row["modified_utc"],
        slug=row["slug"],
        url=build_post_url(row, context, "venue"),
        description=build_html(row, "description", context),
        image=build_post_image(row, context),
        name=row["title"],
        address=row["address"],
        city=row["city"],
        country=row["country"],
        province=row["province"],
        state=row["state"],
        zip=row["zip"],
        phone=row["phone"],
        stateprovince=row["stateprovince"],
        website=row["website"],
        latitude=row["geo_lat"],
        longitude=row["geo_lng"],
        show_map=row["show_map"],
        show_map_link=row["show_map_link"],
    )


def serialize_venue(venue: Venue, context: RenderContext) -> JsonObject:
    return {
        **omit_empty(
            {
                **serialize_post(venue, context),
                "venue": venue.name,
                "description": venue.description,
                "slug": venue.slug,
                "image": serialize_image(venue.image) if venue.image else None,
                "address": venue.address,
                "city": venue.city,
                "country": venue.country,
                "province": venue.province,
                "state": venue.state,
                "zip": venue.zip,
                "phone": venue.phone,
                "website": venue.website,
                "stateprovince": venue.stateprovince,
                "geo_lat": venue.latitude,
                "geo_lng": venue.longitude,
            }
        ),
        "show_map": venue.show_map,
        "show_map_link": venue.show_map_link,
    }


async def build_venue_columns(context: WriteContext) -> Values:
    arguments, row = context.arguments, context.row
    values = await build_post_columns(context, "venues", "venue")
    for name in TEXT_COLUMNS:
        if name in arguments:
            values[name] = arguments[name]
    for name in ("website", "show_map", "show_map_link", "geo_lat", "geo_lng"):
        if name in arguments:
            values[name] = arguments[name]
    if (merge_value(values, row, "geo_lat") in ("", None)) != (merge_value(values, row, "geo_lng") in ("", None)):
        raise errors.invalid("geo_lat", "`geo_lat` and `geo_lng` must be sent together.")
    # Keep an explicit `stateprovince`; recompute it only if the stored value was derived.
    is_derived = row is None or row["stateprovince"] == _derive_state_province({}, row)
    if "stateprovince" not in arguments and is_derived:
        values["stateprovince"] = _derive_state_province(values, row)
    values["search_text"] = build_search_text(values, row, ("title", "description"), SEARCH_COLUMNS)
    return values


def _derive_state_province(values: Values, row: Row | None) -> object:
    """Return the state in the United States and where the country is empty, otherwise the province."""
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
        param("show_map", params.BOOLEAN, "Whether events linked to the venue show a map"),
        param("show_map_link", params.BOOLEAN, "Whether events linked to the venue show a map link"),
        param("address", params.text(clean_plain), "The address"),
        param("city", params.text(clean_plain), "The city"),
        param("country", params.text(clean_plain), "The country"),
        param("province", params.text(clean_plain), "The province"),
        param("state", params.text(clean_plain), "The state"),
        param("zip", params.text(clean_plain), "The ZIP or postal code"),
        param("phone", params.text(clean_plain), "The phone number"),
        param("stateprovince", params.text(clean_plain), "The state and province"),
        param("website", params.WEBSITE, "The website URL"),
        param("geo_lat", params.number(-90, 90), "The latitude", is_extension=True),
        param("geo_lng", params.number(-180, 180), "The longitude", is_extension=True),
    ),
    filters=linked_filters("event_venues", "venue_id"),
    reads=Reads(
        columns=POST_COLUMNS + Columns(*TEXT_COLUMNS, "website", "show_map", "show_map_link", "geo_lat", "geo_lng"),
        from_row=build_venue,
        to_json=serialize_venue,
        order=newest_first,
        expires_at=expires_at_next_start,
        to_json_ld=describe_venue,
    ),
    writes=Writes(
        to_columns=build_venue_columns,
        passthrough_columns=(
            "title",
            "description",
            *TEXT_COLUMNS,
            "website",
            "show_map",
            "show_map_link",
            "geo_lat",
            "geo_lng",
        ),
        sequence_columns=frozenset({"title", *TEXT_COLUMNS, "geo_lat", "geo_lng", "status"}) - {"phone"},
    ),
)
