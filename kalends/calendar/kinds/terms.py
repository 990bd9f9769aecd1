"""Categories and tags."""

from collections.abc import Collection
from typing import LiteralString

from kalends.calendar.kinds.kind import (
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
    no_condition,
    value_clause,
)
from kalends.calendar.rules.record_types import Term
from kalends.calendar.storage import record_tables
from kalends.calendar.storage.record_tables import record_category_event_changes, record_descendant_changes
from kalends.core import errors, params
from kalends.core.errors import InvalidValue
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import Param, param
from kalends.core.sanitize import clean_name, clean_term_description, clean_text, fold, like_pattern
from kalends.core.slugs import make_slug, normalize_lookup
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sql import Sql

# Columns by `orderby` value.
ORDERS: dict[str, LiteralString] = {
    "name": "r.name_folded",
    "id": "r.id",
    "term_id": "r.id",
    "slug": "r.slug",
    "description": "r.description",
    "count": "r.count",
    "term_group": "r.name_folded",
    "parent": "r.name_folded",
}


def clean_slug(value: str, limit: int = 2000) -> str:
    if len(value) > limit:
        raise InvalidValue("must have at most 2,000 characters.")
    return make_slug(value)


def term_fields(name_description: str) -> tuple[Param, ...]:
    """Return the parameters of a term. `name_description` describes the parameter `name`."""
    return (
        param("name", params.text(clean_name, allow_empty=False), name_description, required=True),
        param("description", params.text(clean_term_description), "The description"),
        param("slug", params.text(clean_slug), "The slug; by default generated from the name"),
    )


def build_term(row: Row, url: str, parent: int = 0) -> Term:
    return Term(
        id=row["id"],
        name=row["name"],
        slug=row["slug"],
        description=row["description"],
        count=row["count"],
        url=url,
        parent=parent,
    )


def serialize_term(term: Term, context: RenderContext, taxonomy: str, collection: str) -> JsonObject:
    """Serialize the first fields of every term's JSON."""
    return {
        "id": term.id,
        "count": term.count,
        "description": term.description,
        "name": term.name,
        "slug": term.slug,
        "taxonomy": taxonomy,
        "urls": _build_urls(term, context, collection),
    }


def serialize_term_in_event(term: Term, context: RenderContext, taxonomy: str, collection: str) -> JsonObject:
    """Serialize a category or tag inside an event (behaviour 5.5)."""
    return {
        "name": term.name,
        "slug": term.slug,
        "term_group": 0,
        "term_taxonomy_id": term.id,
        "taxonomy": taxonomy,
        "description": term.description,
        "parent": term.parent,
        "count": term.count,
        "filter": "raw",
        "id": term.id,
        "urls": _build_urls(term, context, collection),
    }


def _build_urls(term: Term, context: RenderContext, collection: str) -> JsonObject:
    collection_url = f"{context.api_url}/{collection}"
    urls = {"self": f"{collection_url}/{term.id}", "collection": collection_url}
    return {**urls, "up": f"{collection_url}/{term.parent}"} if term.parent else urls


async def build_term_columns(
    context: WriteContext,
    table: LiteralString,
    parent: int | None = None,
    *,
    is_nested: bool = False,
    sets_parent: bool = False,
) -> Values:
    """Build the columns of a term. `parent` is the term's parent after the write."""
    arguments, row = context.arguments, context.row
    values: Values = {}
    if "name" in arguments:
        values["name"], values["name_folded"] = arguments["name"], fold(arguments["name"])
    if "description" in arguments:
        values["description"] = arguments["description"]
    if row is None:
        values["slug"] = await _choose_slug(context, table, parent, is_nested=is_nested)
    elif arguments.get("slug"):
        values["slug"] = arguments["slug"]
        holder_id = await record_tables.find_by_slug(context.transaction, table, arguments["slug"])
        if holder_id not in (None, row["id"]):
            raise errors.term_exists(holder_id or 0, "slug")
    if sets_parent:
        values["parent"] = parent
    return values


async def _choose_slug(context: WriteContext, table: LiteralString, parent: int | None, *, is_nested: bool) -> str:
    """Choose a new term's slug.

    If the requested slug is in use, add a number. If no slug is requested, reject the name if another term with the
    same parent already has it.
    """
    tx, arguments = context.transaction, context.arguments
    if arguments.get("slug"):
        return await record_tables.find_free_slug(tx, table, arguments["slug"], context.record_id)
    existing_id = await tx.fetch_value(
        Sql("SELECT id FROM " + table + " WHERE site_id = ? AND name_folded = ?", tx.site.id, fold(arguments["name"]))
        + (Sql("AND parent IS NOT DISTINCT FROM ?::bigint", parent) if is_nested else Sql(""))
        + Sql("LIMIT 1")
    )
    if existing_id is not None:
        raise errors.term_exists(existing_id, "name")
    slug = make_slug(arguments["name"]) or str(context.record_id)
    if parent is not None and await record_tables.find_by_slug(tx, table, slug) is not None:
        parent_slug = await tx.fetch_value(
            Sql("SELECT slug FROM categories WHERE site_id = ? AND id = ?", tx.site.id, parent)
        )
        slug = make_slug(f"{slug}-{parent_slug}")
    return await record_tables.find_free_slug(tx, table, slug, context.record_id)


# Lists ---------------------------------------------------------------------------------------


def order_terms(query: ListQuery) -> Sql:
    values = query.values
    column = ORDERS.get(values.get("orderby", "name"))
    direction: LiteralString = "DESC" if values.get("order") == "desc" else "ASC"
    if column is None:
        # `orderby=include` keeps the order of the requested IDs.
        ids = values.get("include") or []
        return Sql("array_position(?::bigint[], r.id) " + direction + ", r.name_folded, r.id", ids)
    return Sql(column + " " + direction + ", r.id " + direction)


def _search_clause(value: str) -> Sql:
    pattern = like_pattern(fold(value))
    return Sql("(r.name_folded LIKE ? OR r.slug LIKE ?)", pattern, pattern)


def term_filters(table: LiteralString, link_table: LiteralString, column: LiteralString) -> tuple[Filter, ...]:
    async def require_known(ids: list[int], query: ListQuery, name: str) -> list[int]:
        """Raise unless every ID belongs to a term of this kind."""
        known_ids = await record_tables.find_existing_ids(query.transaction, table, ids)
        unknown = [str(entry) for entry in ids if entry not in known_ids]
        if unknown:
            raise errors.unknown_ids(name, table, ", ".join(unknown))
        return ids

    async def include(ids: list[int], query: ListQuery) -> Sql:
        return Sql("r.id = ANY(?)", await require_known(ids, query, "include"))

    async def exclude(ids: list[int], query: ListQuery) -> Sql:
        return Sql("NOT r.id = ANY(?)", await require_known(ids, query, "exclude"))

    async def hide_empty(value: bool, query: ListQuery) -> Sql:
        # The terms of an event are listed even if the event is not published.
        is_for_event = "post" in query.values or "event" in query.values
        return Sql("r.count > 0") if value and not is_for_event else Sql("")

    async def linked_to_event(event_id: int, query: ListQuery) -> Sql:
        name = "event" if "event" in query.values else "post"
        return await build_event_link_clause(event_id, query, name, link_table, column)

    async def linked_to_post(event_id: int, query: ListQuery) -> Sql:
        # `event` is another name for `post` and takes precedence.
        return Sql("") if "event" in query.values else await linked_to_event(event_id, query)

    return (
        Filter(param("search", params.text(_clean_search, allow_empty=False), "Limit to terms matching the string"),
               value_clause(_search_clause)),
        Filter(param("exclude", params.ids(), "Exclude these IDs"), exclude),
        Filter(param("include", params.ids(), "Limit to these IDs"), include),
        Filter(param("order", params.one_of("asc", "desc"), "Sort direction"), no_condition),
        Filter(param("orderby", params.one_of(*ORDERS, "include"), "Sort by a term attribute"), no_condition),
        Filter(param("hide_empty", params.BOOLEAN, "Hide terms not assigned to any published event", default=True),
               hide_empty),
        Filter(param("post", params.integer(minimum=1), "Terms assigned to this event"), linked_to_post),
        Filter(param("event", params.integer(minimum=1), "Alias of `post`"), linked_to_event),
        Filter(param("slug", params.text(clean_slug, allow_empty=False), "Terms with this slug"),
               value_clause(lambda value: Sql("r.slug = ?", normalize_lookup(value)))),
    )  # fmt: skip


def _clean_search(value: str, limit: int = 200) -> str:
    if len(value) > limit:
        raise InvalidValue("must have at most 200 characters.")
    return clean_text(value, limit)


async def build_event_link_clause(
    event_id: int, query: ListQuery, name: str, table: LiteralString, column: LiteralString
) -> Sql:
    """Match records linked to an event.

    Raise if the event does not exist. Match nothing unless the caller may read the event in full.
    """
    row = await find_event(event_id, query, name)
    if not row["open"]:
        return Sql("false")
    return Sql(
        "r.id IN (SELECT l." + column + " FROM " + table + " l WHERE l.site_id = ? AND l.event_id = ?)",
        query.site.id,
        event_id,
    )


async def find_event(event_id: int, query: ListQuery, name: str) -> Row:
    row = await query.transaction.fetch_one(
        Sql("SELECT")
        + query.readable
        + Sql("AND (r.password_hash IS NULL OR")
        + query.editable
        + Sql(") AS open FROM events r WHERE r.site_id = ? AND r.id = ?", query.site.id, event_id)
    )
    if row is None:
        raise errors.invalid(name, "there is no event with this ID.")
    return row


# Event categories: terms that can be nested.

CATEGORY_TAXONOMY = ("tribe_events_cat", "categories")


def build_category(row: Row, context: RenderContext) -> Term:
    return build_term(row, f"{context.base_url}/events/category/{row['path']}/", row["parent"] or 0)


def serialize_category(category: Term, context: RenderContext) -> JsonObject:
    return {
        **serialize_term(category, context, *CATEGORY_TAXONOMY),
        "parent": category.parent,
        "meta": [],
        "url": category.url,
    }


def serialize_category_in_event(category: Term, context: RenderContext) -> JsonObject:
    return serialize_term_in_event(category, context, *CATEGORY_TAXONOMY)


async def build_category_columns(context: WriteContext) -> Values:
    row, arguments = context.row, context.arguments
    if "parent" not in arguments:
        return await build_term_columns(context, "categories", row["parent"] if row else None, is_nested=True)
    parent: int | None = arguments["parent"] or None
    if parent is not None:
        await _check_parent(context, parent)
    return await build_term_columns(context, "categories", parent, is_nested=True, sets_parent=True)


async def after_category_update(tx: Transaction, row: Row, columns: Collection[str]) -> None:
    """Record changes to records that depend on a moved or renamed category.

    After a move, other filters match the category's events. Descendants have the slugs of all their ancestors in
    their URLs.
    """
    if "parent" in columns:
        await record_category_event_changes(tx, row["id"])
    if "parent" in columns or "slug" in columns:
        await record_descendant_changes(tx, row["id"])


async def _check_parent(context: WriteContext, parent: int) -> None:
    """Raise unless the parent exists and is neither the category itself nor one of its descendants."""
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
            *(context.site.id, parent, context.site.id),
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
            # The slugs from the top category down to this one.
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
    writes=Writes(to_columns=build_category_columns, after_update=after_category_update),
    is_post=False,
    is_nested=True,
)


# Event tags: terms without a hierarchy.

TAG_TAXONOMY = ("post_tag", "tags")


def build_tag(row: Row, context: RenderContext) -> Term:
    return build_term(row, f"{context.base_url}/tag/{row['slug']}/")


def serialize_tag(tag: Term, context: RenderContext) -> JsonObject:
    return {**serialize_term(tag, context, *TAG_TAXONOMY), "meta": [], "url": tag.url}


def serialize_tag_in_event(tag: Term, context: RenderContext) -> JsonObject:
    return serialize_term_in_event(tag, context, *TAG_TAXONOMY)


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
    writes=Writes(to_columns=build_tag_columns),
    is_post=False,
)
