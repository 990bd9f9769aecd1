"""Event tags: flat terms."""

from kalends.core.messages import gettext_noop as N_
from kalends.core.record_types import Term
from kalends.kinds.kind import Columns, JsonObject, Kind, Reads, RenderContext, Values, WriteContext, Writes
from kalends.kinds.terms import (
    build_term,
    build_term_columns,
    order_terms,
    serialize_term,
    serialize_term_in_event,
    term_fields,
    term_filters,
)
from kalends.store import Row

TAXONOMY = ("post_tag", "tags")


def build_tag(row: Row, context: RenderContext) -> Term:
    return build_term(row, f"{context.base_url}/tag/{row['slug']}/")


def serialize_tag(tag: Term, context: RenderContext) -> JsonObject:
    return {**serialize_term(tag, context, *TAXONOMY), "meta": [], "url": tag.url}


def serialize_tag_in_event(tag: Term, context: RenderContext) -> JsonObject:
    return serialize_term_in_event(tag, context, *TAXONOMY)


async def build_tag_columns(context: WriteContext) -> Values:
    return await build_term_columns(context, "tags")


TAGS = Kind(
    name="tags",
    singular="tag",
    title_param="name",
    fields=term_fields(N_("The tag name")),
    filters=term_filters("tags", "event_tags", "tag_id"),
    reads=Reads(
        columns=Columns("id", "revision", "name", "slug", "description", "count"),
        from_row=build_tag,
        to_json=serialize_tag,
        order=order_terms,
    ),
    writes=Writes(
        to_columns=build_tag_columns,
    ),
    is_post=False,
)
