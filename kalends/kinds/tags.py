"""Event tags: flat terms."""

from kalends.core.messages import gettext_noop as N_
from kalends.kinds.kind import Columns, JsonObject, Kind, Reads, RenderContext, Values, WriteContext, Writes
from kalends.kinds.terms import build_term_columns, order_terms, serialize_term, term_fields, term_filters
from kalends.store import Row


def serialize_tag(row: Row, context: RenderContext) -> JsonObject:
    return {
        **serialize_term(row, context, "post_tag", "tags"),
        "meta": [],
        "url": f"{context.base_url}/tag/{row['slug']}/",
    }


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
        to_json=serialize_tag,
        order=order_terms,
    ),
    writes=Writes(
        to_columns=build_tag_columns,
    ),
    is_post=False,
)
