"""Venues: places where events happen."""

from typing import LiteralString

from kalends.core import errors, params
from kalends.core.params import param
from kalends.core.sanitize import clean_plain, clean_title, fold, to_paragraphs, to_plain_text
from kalends.kinds.json_ld import describe_venue
from kalends.kinds.kind import Kind, Represented, Values, View, Writing
from kalends.kinds.posts import (
    DESCRIPTION,
    POST_COLUMNS,
    linked_filters,
    merged,
    newest_first,
    omit_empty,
    post_fields,
    represent_post,
    show_image,
    store_post,
    until_next_start,
)
from kalends.store import Row

# Plain text fields: parameter and column have the same name.
TEXTS: tuple[LiteralString, ...] = (
    "address",
    "city",
    "country",
    "province",
    "state",
    "zip",
    "phone",
    "stateprovince",
)
SEARCHED: tuple[LiteralString, ...] = (
    "address",
    "city",
    "province",
    "state",
    "stateprovince",
    "zip",
    "phone",
)


def represent_venue(row: Row, view: View) -> Represented:
    post = represent_post(row, view, "venue")
    return {
        **omit_empty(
            {
                **post,
                "venue": row["title"],
                "description": to_paragraphs(row["description"]),
                "slug": row["slug"],
                "image": show_image(row, view),
                "address": row["address"],
                "city": row["city"],
                "country": row["country"],
                "province": row["province"],
                "state": row["state"],
                "zip": row["zip"],
                "phone": row["phone"],
                "website": row["website"],
                "stateprovince": row["stateprovince"],
                "geo_lat": row["geo_lat"],
                "geo_lng": row["geo_lng"],
            }
        ),
        "show_map": row["show_map"],
        "show_map_link": row["show_map_link"],
    }


def _searched(values: Values, row: Row | None) -> str:
    texts = [str(merged(values, row, column)) for column in SEARCHED]
    description = to_plain_text(str(merged(values, row, "description")))
    return "\n".join(
        fold(text) for text in [to_plain_text(str(merged(values, row, "title"))), description, *texts] if text
    )


async def store_venue(writing: Writing) -> Values:
    sent, row = writing.sent, writing.row
    values = await store_post(writing, "venues", "venue")
    for name in TEXTS:
        if name in sent:
            values[name] = sent[name]
    for name in ("website", "show_map", "show_map_link", "geo_lat", "geo_lng"):
        if name in sent:
            values[name] = sent[name]
    if (merged(values, row, "geo_lat") in ("", None)) != (merged(values, row, "geo_lng") in ("", None)):
        raise errors.invalid("geo_lat", "`geo_lat` and `geo_lng` are sent together.")
    # One that was written by itself stays until another is; a derived one follows what it is derived from.
    derived = row is None or row["stateprovince"] == _state_or_province({}, row)
    if "stateprovince" not in sent and derived:
        values["stateprovince"] = _state_or_province(values, row)
    values["search_text"] = _searched(values, row)
    return values


def _state_or_province(values: Values, row: Row | None) -> object:
    """Not sent, it is the state where there is no country or it is the US, else the province."""
    state, province = merged(values, row, "state"), merged(values, row, "province")
    american = merged(values, row, "country") in ("", "US", "United States")
    return (state or province) if american else (province or state)


VENUES = Kind(
    name="venues",
    singular="venue",
    title="venue",
    columns=POST_COLUMNS
    + """, r.address, r.city, r.country, r.province, r.state, r.zip, r.phone, r.stateprovince, r.website,
        r.show_map, r.show_map_link, r.geo_lat, r.geo_lng""",
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
    represent=represent_venue,
    store=store_venue,
    order=newest_first,
    until=until_next_start,
    complete=describe_venue,
    moves=frozenset({"title", *TEXTS, "geo_lat", "geo_lng", "status"}) - {"phone"},
    plain=("title", "description", *TEXTS, "website", "show_map", "show_map_link", "geo_lat", "geo_lng"),
)
