"""Event tags: flat terms."""

from kalends.core.messages import gettext_noop as N_
from kalends.kinds.kind import Kind, Represented, Values, View, Writing
from kalends.kinds.terms import order_terms, represent_term, store_term, term_fields, term_filters
from kalends.store import Row


def represent_tag(row: Row, view: View) -> Represented:
    return {
        **represent_term(row, view, "post_tag", "tags"),
        "meta": [],
        "url": f"{view.base_url}/tag/{row['slug']}/",
    }


async def store_tag(writing: Writing) -> Values:
    return await store_term(writing, "tags")


TAGS = Kind(
    name="tags",
    singular="tag",
    title="name",
    columns="r.id, r.revision, r.name, r.slug, r.description, r.count",
    fields=term_fields(N_("The tag name")),
    filters=term_filters("tags", "event_tags", "tag_id"),
    represent=represent_tag,
    store=store_tag,
    order=order_terms,
    is_post=False,
)
