"""Organizers: the people and organizations that host events."""

from kalends.calendar.kinds.json_ld import describe_organizer
from kalends.calendar.kinds.kind import Columns, JsonObject, Kind, Reads, RenderContext, Values, WriteContext, Writes
from kalends.calendar.kinds.posts import (
    DESCRIPTION,
    POST_COLUMNS,
    build_post,
    build_post_columns,
    build_search_text,
    expires_at_next_start,
    linked_filters,
    newest_first,
    omit_empty,
    post_fields,
    serialize_image,
    serialize_post,
)
from kalends.calendar.rules.fields import ORGANIZER_FIELDS, Plain, names_of
from kalends.calendar.rules.record_types import Organizer
from kalends.core import params
from kalends.core.params import param
from kalends.core.sanitize import clean_title
from kalends.store import Row

PLAIN = Plain(ORGANIZER_FIELDS)


def build_organizer(row: Row, context: RenderContext) -> Organizer:
    plain = zip(PLAIN.attributes, PLAIN.get_columns(row), strict=True)
    return Organizer(**build_post(row, context, "organizer"), name=row["title"], **dict(plain))


def serialize_organizer(organizer: Organizer, context: RenderContext) -> JsonObject:
    return omit_empty(
        {
            **serialize_post(organizer, context),
            "organizer": organizer.name,
            "description": organizer.description,
            "slug": organizer.slug,
            "image": serialize_image(organizer.image) if organizer.image else None,
            **dict(zip(PLAIN.names, PLAIN.get_attributes(organizer), strict=True)),
        }
    )


async def build_organizer_columns(context: WriteContext) -> Values:
    values = await build_post_columns(context, "organizers", "organizer")
    arguments = context.arguments
    values.update({row.name: arguments[row.name] for row in ORGANIZER_FIELDS if row.name in arguments})
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
        *(row.param for row in ORGANIZER_FIELDS),
    ),
    filters=linked_filters("event_organizers", "organizer_id"),
    reads=Reads(
        columns=POST_COLUMNS + Columns(*names_of(ORGANIZER_FIELDS)),
        from_row=build_organizer,
        to_json=serialize_organizer,
        order=newest_first,
        expires_at=expires_at_next_start,
        to_json_ld=describe_organizer,
    ),
    writes=Writes(
        to_columns=build_organizer_columns, passthrough_columns=("title", "description", *names_of(ORGANIZER_FIELDS))
    ),
)
