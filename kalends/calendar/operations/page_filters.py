"""Filters for pages and feeds, by linked record and by place, and the records that a search offers as filters.

Unlike the API, these filters accept unknown records, because bookmarked URLs may outlive the records.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, LiteralString

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds import BY_NAME
from kalends.calendar.kinds.event_list import RESOLVED_SERIES
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import Columns, Kind
from kalends.calendar.operations.record_verbs import build_clauses, build_list_query
from kalends.calendar.storage import record_tables
from kalends.core.html_text import to_plain_text
from kalends.core.sanitize import fold, has_trigram, like_pattern
from kalends.core.slugs import normalize_lookup
from kalends.store import Row
from kalends.store.sql import Sql

Value = int | str
LINKS: Final = {link.param: link.kind for link in EVENTS.links}


@dataclass(frozen=True, slots=True)
class NamedRecord:
    id: int
    name: str


@dataclass(frozen=True, slots=True)
class ResolvedFilters:
    """The records that filters refer to, by parameter and value as sent, and the coordinates for `near`."""

    named: Mapping[str, Mapping[Value, NamedRecord]] = field(default_factory=dict[str, Mapping[Value, NamedRecord]])
    unknown: tuple[str, ...] = ()
    unknown_place: str = ""
    place: tuple[float, float] | None = None

    def list_named(self, name: str) -> list[NamedRecord]:
        return list({entry.id: entry for entry in self.named.get(name, {}).values()}.values())


async def resolve_filters(context: OperationContext) -> tuple[OperationContext, ResolvedFilters]:
    """Replace slugs and place names with IDs and coordinates. A filter without known records matches nothing."""
    values: dict[str, Any] = dict(context.values)
    named: dict[str, Mapping[Value, NamedRecord]] = {}
    unknown: list[str] = []
    for name in [name for name in LINKS if values.get(name)]:
        named[name] = matches = await _find_named(context, BY_NAME[LINKS[name]], values[name])
        unknown += [str(entry) for entry in values[name] if entry not in matches]
        values[name] = list(dict.fromkeys(entry.id for entry in matches.values()))
    if values.get("series"):
        named["series"], values[RESOLVED_SERIES] = await _find_series(context, values["series"])
    near = values.pop("near", "")
    place = await find_place(context, near) if near else None
    if place is not None:
        values["geoloc_lat"], values["geoloc_lng"] = place
    elif near:
        values["venue"] = []
    resolved = ResolvedFilters(named, tuple(unknown), "" if place else near, place)
    return replace(context, values=values), resolved


async def _find_named(context: OperationContext, kind: Kind, entries: Sequence[Value]) -> dict[Value, NamedRecord]:
    """Find records by ID, and terms by ID or slug. As in the API's lists, an unknown number can be a slug."""
    column: LiteralString = "title" if kind.is_post else "name"
    is_published: LiteralString = "r.status = 'publish'" if kind.is_post else "true"
    rows = await context.transaction.fetch_all(
        Sql(
            "SELECT r.id, r.slug, r." + column + " AS name FROM " + kind.name + " r WHERE " + is_published
            + " AND r.site_id = ? AND (r.id = ANY(?) OR r.slug = ANY(?))",
            context.transaction.site.id,
            [entry for entry in entries if isinstance(entry, int)],
            [] if kind.is_post else [normalize_lookup(str(entry)) for entry in entries],
        )
    )  # fmt: skip
    by_id, by_slug = {row["id"]: row for row in rows}, {row["slug"]: row for row in rows}
    matches: dict[Value, NamedRecord] = {}
    for entry in entries:
        slug = normalize_lookup(str(entry))
        row: Row | None = by_id.get(entry) or (None if kind.is_post else by_slug.get(slug))
        if row is not None:
            matches[entry] = NamedRecord(row["id"], to_plain_text(row["name"]))
    missing = [entry for entry in entries if entry not in matches]
    return {**matches, **await _find_merged(context, kind, missing)} if missing else matches


async def _find_merged(context: OperationContext, kind: Kind, entries: Sequence[Value]) -> dict[Value, NamedRecord]:
    """Resolve the IDs of merged records, and former slugs of terms, to the records that replace them."""
    keys: dict[str, Value] = {record_tables.id_key(entry): entry for entry in entries if isinstance(entry, int)}
    if not kind.is_post:
        keys |= {normalize_lookup(str(entry)): entry for entry in entries}
    rows = await record_tables.find_current(context.transaction, kind.name, list(keys), is_post=kind.is_post)
    return {keys[row["key"]]: NamedRecord(row["id"], to_plain_text(row["name"])) for row in rows}


async def _find_series(context: OperationContext, ids: Sequence[int]) -> tuple[dict[Value, NamedRecord], list[int]]:
    """Find public series, and IDs of series that are or were public.

    Feeds announce the dates of a trashed series as cancelled.
    """
    rows = await context.transaction.fetch_all(
        Sql(
            """SELECT r.id, r.title, r.status FROM series r WHERE r.site_id = ? AND r.id = ANY(?)
                AND CASE WHEN r.status = 'trash' THEN r.trashed_status ELSE r.status END = 'publish'""",
            context.transaction.site.id,
            ids,
        )
    )
    public = [row for row in rows if row["status"] == "publish"]
    named: dict[Value, NamedRecord] = {
        row["id"]: NamedRecord(row["id"], to_plain_text(row["title"])) for row in public
    }
    return named, [row["id"] for row in rows]


async def find_place(context: OperationContext, name: str) -> tuple[float, float] | None:
    """Return the latitude and longitude of a town or venue on this site."""
    tx, folded_name = context.transaction, fold(name)
    if not folded_name:
        return None
    row = await tx.fetch_one(
        Sql(
            """SELECT r.geo_lat, r.geo_lng FROM venues r WHERE r.site_id = ? AND r.status = 'publish'
                AND r.geo_lat IS NOT NULL AND r.search_text LIKE ?
                ORDER BY lower(r.city) <> lower(?), lower(r.title) <> lower(?), r.id LIMIT 1""",
            *(tx.site.id, like_pattern(folded_name), name, name),
        )
    )
    return (row["geo_lat"], row["geo_lng"]) if row else None


async def list_towns(context: OperationContext, limit: int) -> list[str]:
    """List the towns of venues with coordinates, as suggestions for `near`."""
    rows = await context.transaction.fetch_all(
        Sql(
            """SELECT r.city FROM venues r WHERE r.site_id = ? AND r.status = 'publish' AND r.city <> ''
                AND r.geo_lat IS NOT NULL GROUP BY r.city ORDER BY count(*) DESC, r.city LIMIT ?""",
            context.transaction.site.id,
            limit,
        )
    )
    return sorted(row["city"] for row in rows)


# Records that can narrow an event list, with the number of events for each.

MAX_EVENTS: Final = 1000  # maximum number of events to count
MAX_MATCHES: Final = 200  # maximum number of records that a search by name adds


@dataclass(frozen=True, slots=True)
class FacetSource:
    """The tables for a facet. `town` is an SQL expression that tells records `f` with the same name apart."""

    kind: LiteralString
    links: LiteralString
    column: LiteralString
    name: LiteralString
    searched: LiteralString
    is_public: LiteralString = "true"
    town: LiteralString = "''"


# An organizer has no address, so use the town where its latest public event takes place.
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
    town: str  # set only if another record in the facet has the same name
    count: int


@dataclass(frozen=True, slots=True)
class Facet:
    records: tuple[FacetRecord, ...]
    total: int  # number of available records; a search by name adds at most MAX_MATCHES


async def list_event_ids(context: OperationContext) -> list[int]:
    """List the IDs of the first events in a list. Omit protected events, because their links are not public."""
    query = replace(build_list_query(EVENTS, context), page=1, per_page=MAX_EVENTS)
    narrowed_kind = replace(EVENTS, reads=replace(EVENTS.reads, columns=Columns("id")))
    clauses = [*await build_clauses(EVENTS, context, query), Sql("r.password_hash IS NULL")]
    rows = await context.transaction.fetch_all(narrowed_kind.reads.page_query(narrowed_kind, query, clauses))
    return [row["id"] for row in rows]


async def find_facet(
    context: OperationContext, name: str, event_ids: Sequence[int], *, chosen: list[int], text: str, limit: int
) -> Facet:
    """Find the records that the given events link to most often.

    With `text`, find only records whose text contains it. Chosen records are always included and come first.
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
    """Count the events of each record. A category includes the events of its descendants."""
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
    """Add records that match, even if they have no events."""
    return (
        Sql("UNION ALL (SELECT r.id, 0 FROM " + source.kind + " r WHERE r.site_id = ?", site_id)
        + Sql("AND " + source.is_public + " AND")
        + is_match
        + Sql("LIMIT ?)", MAX_MATCHES)
    )


def _match(source: FacetSource, text: str) -> Sql:
    folded = fold(text)
    # Without three letters in a row, the trigram index is useless: PostgreSQL would read all of it.
    suffix: LiteralString = "" if has_trigram(folded) else " || ''"
    return Sql("r." + source.searched + suffix + " LIKE ?", like_pattern(folded))
