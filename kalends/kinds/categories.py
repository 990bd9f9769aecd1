"""Event categories: terms that may be nested through a parent."""

from kalends.core import errors, params
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import param
from kalends.kinds.kind import Filter, Kind, Listing, Represented, Values, View, Writing
from kalends.kinds.terms import order_terms, represent_term, store_term, term_fields, term_filters
from kalends.store import Row
from kalends.store.sql import Sql


def represent_category(row: Row, view: View) -> Represented:
    term = represent_term(row, view, "tribe_events_cat", "categories")
    parent = row["parent"] or 0
    if parent:
        term["urls"]["up"] = f"{view.ns}/categories/{parent}"
    return {
        **term,
        "parent": parent,
        "meta": [],
        "url": f"{view.base_url}/events/category/{row['path']}/",
    }


async def store_category(writing: Writing) -> Values:
    row, sent = writing.row, writing.sent
    if "parent" not in sent:
        return await store_term(writing, "categories", row["parent"] if row else None)
    parent: int | None = sent["parent"] or None
    if parent is not None:
        await _check_parent(writing, parent)
    return await store_term(writing, "categories", parent, parent_sent=True)


async def _check_parent(writing: Writing, parent: int) -> None:
    """The parent exists and is not the category itself or one below it."""
    line = await writing.transaction.fetch_all(
        Sql(
            """
            WITH RECURSIVE line (id, parent) AS (
                SELECT id, parent FROM categories WHERE site_id = ? AND id = ?
                UNION
                SELECT c.id, c.parent FROM categories c JOIN line ON c.site_id = ? AND c.id = line.parent
            )
            SELECT id FROM line
            """,
            writing.site.id,
            parent,
            writing.site.id,
        )
    )
    if not line:
        raise errors.invalid("parent", "there is no category {id}.", id=parent)
    if any(above["id"] == writing.record_id for above in line):
        raise errors.invalid("parent", "a category cannot be above itself.")


async def _children_of(parent: int, listing: Listing) -> Sql:
    if parent == 0:
        return Sql("r.parent IS NULL")
    known = await listing.transaction.fetch_value(
        Sql("SELECT true FROM categories WHERE site_id = ? AND id = ?", listing.site.id, parent)
    )
    if not known:
        raise errors.invalid("parent", "there is no category {id}.", id=parent)
    return Sql("r.parent = ?", parent)


CATEGORIES = Kind(
    name="categories",
    singular="category",
    title="name",
    # `path` is the slugs from the top of the tree down to the category itself.
    columns="""
        r.id, r.revision, r.parent, r.name, r.slug, r.description, r.count,
        CASE WHEN r.parent IS NULL THEN r.slug ELSE (
            WITH RECURSIVE up (parent, path, depth) AS (
                SELECT r.parent, r.slug, 1
                UNION ALL
                SELECT c.parent, c.slug || '/' || up.path, up.depth + 1
                FROM up JOIN categories c ON c.site_id = r.site_id AND c.id = up.parent
            )
            SELECT path FROM up ORDER BY depth DESC LIMIT 1
        ) END AS path""",
    fields=(
        *term_fields(N_("The category name")),
        param("parent", params.integer(minimum=0, null_value=0), "The parent category term ID; 0 is none"),
    ),
    filters=(
        *term_filters("categories", "event_categories", "category_id"),
        Filter(param("parent", params.integer(minimum=0), "Terms with this parent; 0 is the top"), _children_of),
    ),
    represent=represent_category,
    store=store_category,
    order=order_terms,
    is_post=False,
)
