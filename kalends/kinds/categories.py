"""Event categories: terms that may be nested through a parent."""

from collections.abc import Collection

from kalends.core import errors, params
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import param
from kalends.core.record_types import Term
from kalends.kinds.kind import (
    Columns,
    Filter,
    JsonObject,
    Kind,
    ListQuery,
    Reads,
    RenderContext,
    Values,
    WriteContext,
    Writes,
)
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
from kalends.store.database import Transaction
from kalends.store.links import record_category_event_changes, record_descendant_changes
from kalends.store.sql import Sql

TAXONOMY = ("tribe_events_cat", "categories")


def build_category(row: Row, context: RenderContext) -> Term:
    return build_term(row, f"{context.base_url}/events/category/{row['path']}/", row["parent"] or 0)


def serialize_category(category: Term, context: RenderContext) -> JsonObject:
    return {
        **serialize_term(category, context, *TAXONOMY),
        "parent": category.parent,
        "meta": [],
        "url": category.url,
    }


def serialize_category_in_event(category: Term, context: RenderContext) -> JsonObject:
    return serialize_term_in_event(category, context, *TAXONOMY)


async def build_category_columns(context: WriteContext) -> Values:
    row, arguments = context.row, context.arguments
    if "parent" not in arguments:
        return await build_term_columns(context, "categories", row["parent"] if row else None, is_nested=True)
    parent: int | None = arguments["parent"] or None
    if parent is not None:
        await _check_parent(context, parent)
    return await build_term_columns(context, "categories", parent, is_nested=True, sets_parent=True)


async def after_category_update(tx: Transaction, row: Row, columns: Collection[str]) -> None:
    """Record the changes that a moved or renamed category causes.

    A filter by its new ancestors finds its events, and the addresses of its descendants contain its slug.
    """
    if "parent" in columns:
        await record_category_event_changes(tx, row["id"])
    if "parent" in columns or "slug" in columns:
        await record_descendant_changes(tx, row["id"])


async def _check_parent(context: WriteContext, parent: int) -> None:
    """Raise unless the parent exists and is not the category itself or one of its descendants."""
    ancestors = await context.transaction.fetch_all(
        Sql(
            """
            WITH RECURSIVE line (id, parent) AS (
                SELECT id, parent FROM categories WHERE site_id = ? AND id = ?
                UNION
                SELECT c.id, c.parent FROM categories c JOIN line ON c.site_id = ? AND c.id = line.parent
            )
            SELECT id FROM line
            """,
            context.site.id,
            parent,
            context.site.id,
        )
    )
    if not ancestors:
        raise errors.invalid("parent", "there is no category {id}.", id=parent)
    if any(ancestor["id"] == context.record_id for ancestor in ancestors):
        raise errors.invalid("parent", "must not be the category itself or one of its descendants.")


async def _parent_clause(parent: int, query: ListQuery) -> Sql:
    if parent == 0:
        return Sql("r.parent IS NULL")
    exists = await query.transaction.fetch_value(
        Sql("SELECT true FROM categories WHERE site_id = ? AND id = ?", query.site.id, parent)
    )
    if not exists:
        raise errors.invalid("parent", "there is no category {id}.", id=parent)
    return Sql("r.parent = ?", parent)


CATEGORIES = Kind(
    name="categories",
    singular="category",
    title_param="name",
    fields=(
        *term_fields(N_("The category name")),
        param("parent", params.integer(minimum=0, null_value=0), "ID of the parent category; 0 for none"),
    ),
    filters=(
        *term_filters("categories", "event_categories", "category_id"),
        Filter(
            param("parent", params.integer(minimum=0), "Terms with this parent; 0 for the top level"), _parent_clause
        ),
    ),
    reads=Reads(
        columns=Columns(
            *("id", "revision", "parent", "name", "slug", "description", "count"),
            # The slugs from the top of the tree down to the category itself.
            computed={
                "path": """CASE WHEN r.parent IS NULL THEN r.slug ELSE (
                WITH RECURSIVE up (parent, path, depth) AS (
                    SELECT r.parent, r.slug, 1
                    UNION ALL
                    SELECT c.parent, c.slug || '/' || up.path, up.depth + 1
                    FROM up JOIN categories c ON c.site_id = r.site_id AND c.id = up.parent
                )
                SELECT path FROM up ORDER BY depth DESC LIMIT 1
            ) END"""
            },
        ),
        from_row=build_category,
        to_json=serialize_category,
        order=order_terms,
    ),
    writes=Writes(
        to_columns=build_category_columns,
        after_update=after_category_update,
    ),
    is_post=False,
    is_nested=True,
)
