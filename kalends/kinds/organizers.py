"""Organizers: the people and organizations behind events."""

from kalends.core import params
from kalends.core.html.sanitize import clean_plain, clean_title
from kalends.core.params import param
from kalends.core.record_types import Organizer
from kalends.kinds.image_json import serialize_image
from kalends.kinds.json_ld import describe_organizer
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
    newest_first,
    omit_empty,
    post_fields,
    serialize_post,
)
from kalends.store import Row


def build_organizer(row: Row, context: RenderContext) -> Organizer:
    return Organizer(
        id=row["id"],
        author=row["author_id"],
        status=row["status"],
        date_utc=row["published_at"],
        modified_utc=row["modified_utc"],
        slug=row["slug"],
        url=build_post_url(row, context, "organizer"),
        description=build_html(row, "description", context),
        image=build_post_image(row, context),
        name=row["title"],
        phone=row["phone"],
        website=row["website"],
        email=row["email"],
    )


def serialize_organizer(organizer: Organizer, context: RenderContext) -> JsonObject:
    return omit_empty(
        {
            **serialize_post(organizer, context),
            "organizer": organizer.name,
            "description": organizer.description,
            "slug": organizer.slug,
            "image": serialize_image(organizer.image) if organizer.image else None,
            "phone": organizer.phone,
            "website": organizer.website,
            "email": organizer.email,
        }
    )


async def build_organizer_columns(context: WriteContext) -> Values:
    arguments = context.arguments
    values = await build_post_columns(context, "organizers", "organizer")
    for name in ("phone", "website", "email"):
        if name in arguments:
            values[name] = arguments[name]
    values["search_text"] = build_search_text(
        values, context.row, ("title", "description"), ("phone", "email", "website")
    )
    return values


ORGANIZERS = Kind(
    name="organizers",
    singular="organizer",
    title_param="organizer",
    fields=(
        param("organizer", params.text(clean_title, allow_empty=False), "The organizer name", required=True),
        *post_fields(),
        DESCRIPTION,
        param("phone", params.text(clean_plain), "The phone number"),
        param("website", params.WEBSITE, "The website"),
        param("email", params.EMAIL, "The e-mail address"),
    ),
    filters=linked_filters("event_organizers", "organizer_id"),
    reads=Reads(
        columns=POST_COLUMNS + Columns("phone", "website", "email"),
        from_row=build_organizer,
        to_json=serialize_organizer,
        order=newest_first,
        expires_at=expires_at_next_start,
        to_json_ld=describe_organizer,
    ),
    writes=Writes(
        to_columns=build_organizer_columns,
        passthrough_columns=("title", "description", "phone", "website", "email"),
    ),
)
