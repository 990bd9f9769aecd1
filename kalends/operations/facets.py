"""The records that a list of events can be narrowed to, with the number of events of each.

Counts are those of the first events of the list, so their cost does not grow with the site.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, LiteralString

from kalends.core.html.sanitize import fold, to_plain_text
from kalends.core.search import has_trigram, like_pattern
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Columns
from kalends.operations.context import OperationContext
from kalends.operations.records import build_clauses, build_list_query
from kalends.store.sql import Sql

MAX_EVENTS: Final = 1000  # events that are counted
MAX_MATCHES: Final = 200  # records that are compared if a name is searched


@dataclass(frozen=True, slots=True)
class FacetSource:
    """The tables of a facet. `town` is an SQL expression that tells records `f` of the same name apart."""

    kind: LiteralString
    links: LiteralString
    column: LiteralString
    name: LiteralString
    searched: LiteralString
    is_public: LiteralString = "true"
    town: LiteralString = "''"


# An organizer has no address, so its town is that of the venue of its latest public event.
_TOWN_OF_ORGANIZER: LiteralString = """(SELECT v.city FROM event_organizers o
    JOIN events e ON e.site_id = o.site_id AND e.id = o.event_id AND e.password_hash IS NULL
    JOIN event_venues w ON w.site_id = o.site_id AND w.event_id = o.event_id
    JOIN venues v ON v.site_id = w.site_id AND v.id = w.venue_id AND v.status = 'publish' AND v.city <> ''
    WHERE o.site_id = f.site_id AND o.organizer_id = f.id AND o.listed ORDER BY o.start_utc DESC LIMIT 1)"""
SOURCES: Final = {
    "categories": FacetSource("categories", "event_categories", "category_id", "name", "name_folded"),
    "tags": FacetSource("tags", "event_tags", "tag_id", "name", "name_folded"),
    "venue": FacetSource(
        "venues", "event_venues", "venue_id", "title", "search_text", "r.status = 'publish'",
        "(SELECT v.city FROM venues v WHERE v.site_id = f.site_id AND v.id = f.id)",
    ),
    "organizer": FacetSource(
        "organizers", "event_organizers", "organizer_id", "title", "search_text", "r.status = 'publish'",
        _TOWN_OF_ORGANIZER,
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FacetRecord:
    id: int
    slug: str
    name: str
    town: str  # only if another record of the facet has the same name
    count: int


@dataclass(frozen=True, slots=True)
class Facet:
    records: tuple[FacetRecord, ...]
    total: int  # records that could be listed; at most MAX_MATCHES if a name is searched


async def list_event_ids(context: OperationContext) -> list[int]:
    """List the IDs of the first events of a list. Events with a password do not disclose what they are linked to."""
    query = replace(build_list_query(EVENTS, context), page=1, per_page=MAX_EVENTS)
    narrowed_kind = replace(EVENTS, reads=replace(EVENTS.reads, columns=Columns("id")))
    clauses = [*await build_clauses(EVENTS, context, query), Sql("r.password_hash IS NULL")]
    rows = await context.transaction.fetch_all(narrowed_kind.reads.page_query(narrowed_kind, query, clauses))
    return [row["id"] for row in rows]


async def find_facet(
    context: OperationContext,
    name: str,
    event_ids: Sequence[int],
    *,
    chosen: list[int],
    text: str,
    limit: int,
) -> Facet:
    """Find the records with the most events among those given, or those whose text contains `text`.

    Chosen records are always among them, and come first.
    """
    source, site_id = SOURCES[name], context.transaction.site.id
    is_match = _match(source, text) if fold(text) else Sql("true")
    rows = await context.transaction.fetch_all(
        Sql(
            "SELECT f.*, CASE WHEN count(*) OVER (PARTITION BY f.name) > 1 THEN " + source.town + " END AS town "
            "FROM (SELECT r.site_id, r.id, r.slug, r." + source.name + " AS name, sum(c.n)::integer AS n, "
            "count(*) OVER () AS total FROM ("
        )
        + _count_links(name, source, site_id, event_ids)
        + Sql("UNION ALL SELECT unnest(?::bigint[]), 0", chosen)
        + (_list_matches(source, site_id, is_match) if fold(text) else Sql(""))
        + Sql(") c (id, n) JOIN " + source.kind + " r ON r.site_id = ? AND r.id = c.id", site_id)
        + Sql("WHERE " + source.is_public + " AND (r.id = ANY(?) OR", chosen)
        + is_match
        + Sql(") GROUP BY r.site_id, r.id ORDER BY r.id = ANY(?) DESC, n DESC, name, r.id", chosen)
        + Sql("LIMIT ?) f", limit + len(chosen))
        + Sql("ORDER BY f.id = ANY(?) DESC, f.n DESC, f.name, f.id", chosen)
    )
    records = [
        FacetRecord(row["id"], row["slug"], to_plain_text(row["name"]), row["town"] or "", row["n"]) for row in rows
    ]
    return Facet(tuple(records), rows[0]["total"] if rows else 0)


def _count_links(name: str, source: FacetSource, site_id: int, event_ids: Sequence[int]) -> Sql:
    """Count the events of each record; those of a category include those of its descendants."""
    links = Sql(
        "SELECT l.event_id, l." + source.column + " FROM " + source.links + " l "
        "WHERE l.site_id = ? AND l.event_id = ANY(?)",
        site_id,
        list(event_ids),
    )  # fmt: skip
    if name != "categories":
        return Sql("SELECT l." + source.column + ", count(*) FROM (") + links + Sql(") l GROUP BY 1")
    return (
        Sql("SELECT t.id, count(*) FROM (WITH RECURSIVE tree (event_id, id) AS (")
        + links
        + Sql(
            """UNION SELECT t.event_id, p.parent FROM tree t
                JOIN categories p ON p.site_id = ? AND p.id = t.id WHERE p.parent IS NOT NULL) SELECT * FROM tree) t
                GROUP BY 1""",
            site_id,
        )
    )


def _list_matches(source: FacetSource, site_id: int, is_match: Sql) -> Sql:
    """Add the records whose text matches, with or without events."""
    return (
        Sql("UNION ALL (SELECT r.id, 0 FROM " + source.kind + " r WHERE r.site_id = ?", site_id)
        + Sql("AND " + source.is_public + " AND")
        + is_match
        + Sql("LIMIT ?)", MAX_MATCHES)
    )


def _match(source: FacetSource, text: str) -> Sql:
    folded = fold(text)
    # Without three letters in a row the trigram index would be read as a whole.
    suffix: LiteralString = "" if has_trigram(folded) else " || ''"
    return Sql("r." + source.searched + suffix + " LIKE ?", like_pattern(folded))
