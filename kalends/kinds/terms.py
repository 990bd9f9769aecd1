"""What categories and tags share."""

from typing import LiteralString

from kalends.core import errors, params
from kalends.core.errors import InvalidValue
from kalends.core.params import Param, param
from kalends.core.sanitize import clean_name, clean_term_description, clean_text, fold
from kalends.core.search import like_pattern
from kalends.core.slugs import make_slug, normalize_lookup
from kalends.kinds.kind import Filter, Listing, Represented, Values, View, Writing, plain, unfiltered
from kalends.store import Row, records
from kalends.store.sql import Sql

# What `orderby` may name, and the column that stands behind it.
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


def _clean_slug(value: str) -> str:
    if len(value) > 2000:
        raise InvalidValue("a slug of more than 2,000 characters is not read.")
    return make_slug(value)


def term_fields(name: str) -> tuple[Param, ...]:
    """`name` describes the name."""
    return (
        param("name", params.text(clean_name, allow_empty=False), name, required=True),
        param("description", params.text(clean_term_description), "The description"),
        param("slug", params.text(_clean_slug), "The slug; by default made from the name"),
    )


def represent_term(row: Row, view: View, taxonomy: str, collection: str) -> Represented:
    """What both representations of a term share: its own, and the one inside an event."""
    urls = {"self": f"{view.ns}/{collection}/{row['id']}", "collection": f"{view.ns}/{collection}"}
    return {
        "id": row["id"],
        "count": row["count"],
        "description": row["description"],
        "name": row["name"],
        "slug": row["slug"],
        "taxonomy": taxonomy,
        "urls": urls,
    }


def represent_term_in_event(term: Represented) -> Represented:
    """A category or tag inside an event (behaviour 5.5)."""
    return {
        "name": term["name"],
        "slug": term["slug"],
        "term_group": 0,
        "term_taxonomy_id": term["id"],
        "taxonomy": term["taxonomy"],
        "description": term["description"],
        "parent": term.get("parent", 0),
        "count": term["count"],
        "filter": "raw",
        "id": term["id"],
        "urls": term["urls"],
    }


async def store_term(
    writing: Writing, table: LiteralString, parent: int | None = None, *, parent_sent: bool = False
) -> Values:
    """The columns of a new or changed term. `parent` is the one that it will have."""
    sent, row = writing.sent, writing.row
    values: Values = {}
    if "name" in sent:
        values["name"], values["name_folded"] = sent["name"], fold(sent["name"])
    if "description" in sent:
        values["description"] = sent["description"]
    if row is None:
        values["slug"] = await _new_slug(writing, table, parent)
    elif sent.get("slug"):
        values["slug"] = sent["slug"]
        holder = await records.find_by_slug(writing.transaction, table, sent["slug"])
        if holder not in (None, row["id"]):
            raise errors.term_exists(holder or 0, "slug")
    if parent_sent:
        values["parent"] = parent
    return values


async def _new_slug(writing: Writing, table: LiteralString, parent: int | None) -> str:
    """A sent slug is numbered when taken; a name that exists beside its like is refused."""
    tx, sent = writing.transaction, writing.sent
    if sent.get("slug"):
        return await records.find_free_slug(tx, table, sent["slug"], writing.record_id)
    twin = await tx.fetch_value(
        Sql(
            "SELECT id FROM " + table + " WHERE site_id = ? AND name_folded = ?",
            tx.site.id,
            fold(sent["name"]),
        )
        + (Sql("AND parent IS NOT DISTINCT FROM ?::bigint", parent) if table == "categories" else Sql(""))
        + Sql("LIMIT 1")
    )
    if twin is not None:
        raise errors.term_exists(twin, "name")
    slug = make_slug(sent["name"]) or str(writing.record_id)
    if parent is not None and await records.find_by_slug(tx, table, slug) is not None:
        above = await tx.fetch_value(
            Sql("SELECT slug FROM categories WHERE site_id = ? AND id = ?", tx.site.id, parent)
        )
        slug = make_slug(f"{slug}-{above}")
    return await records.find_free_slug(tx, table, slug, writing.record_id)


# Lists ---------------------------------------------------------------------------------------


def order_terms(listing: Listing) -> Sql:
    values = listing.values
    column = ORDERS.get(values.get("orderby", "name"))
    direction: LiteralString = "DESC" if values.get("order") == "desc" else "ASC"
    if column is None:
        # `include` orders by the given list.
        wanted = values.get("include") or []
        return Sql("array_position(?::bigint[], r.id) " + direction + ", r.name_folded, r.id", wanted)
    return Sql(column + " " + direction + ", r.id " + direction)


def _search(value: str) -> Sql:
    pattern = like_pattern(fold(value))
    return Sql("(r.name_folded LIKE ? OR r.slug LIKE ?)", pattern, pattern)


def term_filters(table: LiteralString, link_table: LiteralString, column: LiteralString) -> tuple[Filter, ...]:
    async def known(wanted: list[int], listing: Listing, name: str) -> list[int]:
        """Every ID of the list must be a term of this kind."""
        found = await records.find_existing_ids(listing.transaction, table, wanted)
        unknown = [str(entry) for entry in wanted if entry not in found]
        if unknown:
            raise errors.invalid(name, "nothing here has the ID {ids}.", ids=", ".join(unknown))
        return wanted

    async def include(wanted: list[int], listing: Listing) -> Sql:
        return Sql("r.id = ANY(?)", await known(wanted, listing, "include"))

    async def exclude(wanted: list[int], listing: Listing) -> Sql:
        return Sql("NOT r.id = ANY(?)", await known(wanted, listing, "exclude"))

    async def hide_empty(value: bool, listing: Listing) -> Sql:
        # The terms of one event are shown whether or not it is published.
        of_event = "post" in listing.values or "event" in listing.values
        return Sql("r.count > 0") if value and not of_event else Sql("")

    async def of_event(event_id: int, listing: Listing) -> Sql:
        name = "event" if "event" in listing.values else "post"
        return await links_of_event(event_id, listing, name, link_table, column)

    async def of_post(event_id: int, listing: Listing) -> Sql:
        # `event` is an alias of `post` and wins when both are sent.
        return Sql("") if "event" in listing.values else await of_event(event_id, listing)

    return (
        Filter(param("search", params.text(_clean_search, allow_empty=False), "Limit to terms matching the string"),
               plain(_search)),
        Filter(param("exclude", params.ids(), "Leave out these IDs"), exclude),
        Filter(param("include", params.ids(), "Limit to these IDs"), include),
        Filter(param("order", params.one_of("asc", "desc"), "Sort direction"), unfiltered),
        Filter(param("orderby", params.one_of(*ORDERS, "include"), "Sort by a term attribute"), unfiltered),
        Filter(param("hide_empty", params.BOOLEAN, "Hide terms not assigned to any published event", default=True),
               hide_empty),
        Filter(param("post", params.integer(minimum=1), "Terms assigned to this event"), of_post),
        Filter(param("event", params.integer(minimum=1), "Alias of `post`"), of_event),
        Filter(param("slug", params.text(_clean_slug, allow_empty=False), "Terms with this slug"),
               plain(lambda value: Sql("r.slug = ?", normalize_lookup(value)))),
    )  # fmt: skip


def _clean_search(value: str) -> str:
    if len(value) > 200:
        raise InvalidValue("a search of more than 200 characters is not read.")
    return clean_text(value, 200)


async def links_of_event(
    event_id: int, listing: Listing, name: str, table: LiteralString, column: LiteralString
) -> Sql:
    """Records linked to an event. It must exist; what it links to is told to those who may read all of it."""
    row = await find_event(event_id, listing, name)
    if not row["open"]:
        return Sql("false")
    return Sql(
        "r.id IN (SELECT l." + column + " FROM " + table + " l WHERE l.site_id = ? AND l.event_id = ?)",
        listing.site.id,
        event_id,
    )


async def find_event(event_id: int, listing: Listing, name: str) -> Row:
    row = await listing.transaction.fetch_one(
        Sql("SELECT")
        + listing.readable
        + Sql("AND (r.password_hash IS NULL OR")
        + listing.editable
        + Sql(") AS open FROM events r WHERE r.site_id = ? AND r.id = ?", listing.site.id, event_id)
    )
    if row is None:
        raise errors.invalid(name, "there is no such event.")
    return row
