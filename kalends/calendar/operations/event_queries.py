"""Event queries for the console: the event table, and the records that filters and forms offer.

The event table is a list with other filters, fewer columns and longer pages. It includes events that lists hide.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final, LiteralString

from kalends.accounts.storage import user_tables
from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.event_list import ANY_DATE, EVENT_FILTERS
from kalends.calendar.kinds.event_window import WITH_HIDDEN
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import Clause, Columns, Filter, Kind, LinkCondition, ListQuery, value_clause
from kalends.calendar.kinds.media_kind import MEDIA
from kalends.calendar.kinds.venues import VENUES
from kalends.calendar.operations.record_verbs import (
    RowPage,
    build_clauses,
    build_list_query,
    find_page,
    make_render_context,
    order_tree,
)
from kalends.calendar.rules.record_types import MediaItem
from kalends.core import params
from kalends.core.html_text import to_plain_text
from kalends.core.params import param, parse_id
from kalends.core.sanitize import clean_title, fold, like_pattern
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sql import Sql, and_, join

MAX_PER_PAGE: Final = 500
# Maximum number of venues or organizers to look up for a text.
MAX_MATCHES: Final = 20
LINK_FILTERS: Final = ("categories", "venue", "organizer")
LACKING: Final = ("image", "venue", "category")
COLUMNS: Final = Columns(
    *("id", "revision", "author_id", "status", "trashed_status", "slug", "published_at", "modified_utc", "title"),
    *("image_id", "start_local", "end_local", "timezone", "all_day", "start_utc", "end_utc", "featured"),
    *("hide_from_listings", "event_status", "password_hash", "series_id"),
    computed={
        "venue_ids": """ARRAY(SELECT l.venue_id FROM event_venues l
            WHERE l.site_id = r.site_id AND l.event_id = r.id ORDER BY l.position)""",
        "category_ids": """ARRAY(SELECT l.category_id FROM event_categories l
            WHERE l.site_id = r.site_id AND l.event_id = r.id ORDER BY l.position)""",
    },
)


async def _lacking_clause(names: list[str], query: ListQuery) -> Clause:
    conditions = {
        "image": Sql("r.image_id IS NULL"),
        "venue": Sql(
            "NOT EXISTS (SELECT FROM event_venues l WHERE l.site_id = ? AND l.event_id = r.id)", query.site.id
        ),
        "category": Sql(
            "NOT EXISTS (SELECT FROM event_categories l WHERE l.site_id = ? AND l.event_id = r.id)", query.site.id
        ),
    }
    return and_([conditions[name] for name in names])


async def _others_clause(_: bool, query: ListQuery) -> Clause:
    """Match listed, published events by other authors."""
    return Sql("r.status = 'publish' AND NOT r.hide_from_listings AND r.author_id <> ?", query.actor.user_id)


def _prefer_status(row: Filter) -> Filter:
    """Return a link filter that checks each row unless published events are requested, because others are few."""

    async def build(value: Any, query: ListQuery) -> Clause:
        clause = await row.clause(value, query)
        is_small = "publish" not in query.values["status"]
        return clause.row_condition() if is_small and isinstance(clause, LinkCondition) else clause

    return Filter(row.param, build)


TABLE_EVENTS: Final[Kind] = replace(
    EVENTS,
    filters=(
        *[_prefer_status(row) if row.param.name in LINK_FILTERS else row for row in EVENT_FILTERS],
        Filter(
            param("author", params.ids(), "Events of any of these authors"),
            value_clause(lambda ids: Sql("r.author_id = ANY(?)", ids)),
        ),
        Filter(
            param("lacking", params.several_of(*LACKING), "Events without an image, venue or category"),
            _lacking_clause,
        ),
        Filter(param("others", params.BOOLEAN, "Published events of other authors"), _others_clause),
    ),
    reads=replace(EVENTS.reads, columns=COLUMNS, max_per_page=MAX_PER_PAGE, next_cursor=None),
)
TABLE_PARAMS: Final = (
    *[row.param for row in TABLE_EVENTS.filters],
    param("page", params.integer(minimum=1), "The page of the table"),
    param("per_page", params.integer(minimum=1, maximum=MAX_PER_PAGE), "The number of rows"),
)


@dataclass(frozen=True, slots=True)
class TablePage:
    """The rows of a page, the total number of rows, and the names of linked records."""

    rows: list[Row]
    total: int
    total_pages: int
    venues: Mapping[int, str] = field(default_factory=dict[int, str])
    categories: Mapping[int, str] = field(default_factory=dict[int, str])
    authors: Mapping[int, str] = field(default_factory=dict[int, str])
    locked_ids: frozenset[int] = (
        frozenset()
    )  # protected events that the user may not edit; only their title and date are shown


async def find_table_rows(context: OperationContext) -> RowPage:
    return await find_page(TABLE_EVENTS, replace(context, values={**context.values, WITH_HIDDEN: True}))


async def read_table(context: OperationContext) -> TablePage:
    found = await find_table_rows(context)
    rows, actor, locked = found.rows, context.actor, permissions.locked_ids(context, found.rows)
    venues = Sql("SELECT r.id, r.title AS name FROM venues r")
    authors = Sql("SELECT r.id, coalesce(nullif(r.display_name, ''), r.login) AS name FROM users r")
    return TablePage(
        rows,
        found.total,
        found.total_pages,
        await _find_names(
            context,
            venues,
            {entry for row in rows for entry in row["venue_ids"]},
            permissions.embeddable_condition(actor),
        ),
        await _find_names(
            context,
            Sql("SELECT r.id, r.name FROM categories r"),
            {entry for row in rows for entry in row["category_ids"]},
            Sql("true"),
        ),
        await _find_names(context, authors, {row["author_id"] for row in rows}, Sql("true")),
        frozenset(row["id"] for row in rows if row["id"] in locked and not permissions.may_edit(actor, row)),
    )


async def count_tables(context: OperationContext, tables: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return the number of events in the tables with these values, in one statement."""
    totals: list[Sql] = []
    for values in tables:
        of_table = replace(context, values={**values, WITH_HIDDEN: True})
        query = build_list_query(TABLE_EVENTS, of_table)
        clauses = await build_clauses(TABLE_EVENTS, of_table, query)
        totals.append(Sql("(") + TABLE_EVENTS.reads.total_query(TABLE_EVENTS, query, clauses) + Sql(")"))
    found = await context.transaction.fetch_all(Sql("SELECT") + join(", ", totals))
    return list(found[0].values())


async def count_pending(context: OperationContext) -> int:
    """Return how many events wait for a review."""
    return (await count_tables(context, [make_values({"status": ["pending"]}, {ANY_DATE: True})]))[0]


async def _find_names(context: OperationContext, select: Sql, ids: set[int], visible: Sql) -> dict[int, str]:
    if not ids:
        return {}
    condition = Sql("WHERE r.site_id = ? AND r.id = ANY(?) AND", context.transaction.site.id, list(ids))
    rows = await context.transaction.fetch_all(select + condition + visible)
    return {row["id"]: to_plain_text(row["name"]) for row in rows}


# Choices for filters and bulk changes ---------------------------------------------------------


async def has_events(context: OperationContext, author: int | None) -> bool:
    own = Sql("AND r.author_id = ?", author) if author is not None else Sql("")
    found = await context.transaction.fetch_value(
        Sql("SELECT EXISTS (SELECT FROM events r WHERE r.site_id = ?", context.transaction.site.id) + own + Sql(")")
    )
    return bool(found)


async def find_length(context: OperationContext, title: str) -> timedelta | None:
    """Return how long the last event with this title was, or None if there is none with a length."""
    folded = fold(title)
    if not folded:
        return None
    length: timedelta | None = await context.transaction.fetch_value(
        Sql(
            """SELECT r.end_utc - r.start_utc FROM events r
                WHERE r.site_id = ? AND r.search_text LIKE ? AND split_part(r.search_text, E'\\n', 1) = ?
                    AND r.end_utc > r.start_utc AND NOT r.all_day AND""",
            *(context.transaction.site.id, like_pattern(folded), folded),
        )
        + permissions.readable_condition(context.actor)
        + Sql("ORDER BY r.start_utc DESC LIMIT 1")
    )
    return length


async def list_category_choices(context: OperationContext) -> list[tuple[int, str]]:
    rows = await context.transaction.fetch_all(
        Sql("SELECT id, name FROM categories WHERE site_id = ? ORDER BY name, id", context.transaction.site.id)
    )
    return [(row["id"], to_plain_text(row["name"])) for row in rows]


async def list_author_choices(context: OperationContext, limit: int = 500) -> list[tuple[int, str]]:
    rows = await context.transaction.fetch_all(
        Sql(
            """SELECT id, coalesce(nullif(display_name, ''), login) AS name FROM users
                WHERE site_id = ? AND role <> 'subscriber' ORDER BY name, id LIMIT ?""",
            context.transaction.site.id,
            limit,
        )
    )
    return [(row["id"], row["name"]) for row in rows]


async def suggest_names(context: OperationContext, kind: Kind, limit: int = 200) -> list[str]:
    """Suggest names of venues or organizers. Users can also type other names."""
    rows = await context.transaction.fetch_all(_select_named(context, kind) + Sql("ORDER BY r.title LIMIT ?", limit))
    return list(dict.fromkeys(to_plain_text(row["title"]) for row in rows))


async def find_named(context: OperationContext, kind: Kind, text: str) -> list[int]:
    """Return the venues or organizers with this ID or name. If there are none, search their texts for the name."""
    condition = like_pattern(fold(text))
    rows = await context.transaction.fetch_all(
        _select_named(context, kind)
        + Sql(
            "AND (r.id = ? OR r.search_text LIKE ?) ORDER BY r.id LIMIT ?",
            *(parse_id(text) or 0, condition, MAX_MATCHES),
        )
    )
    wanted = fold(text)
    exact = [row["id"] for row in rows if fold(to_plain_text(row["title"])) == wanted or str(row["id"]) == text]
    return exact or [row["id"] for row in rows]


def _select_named(context: OperationContext, kind: Kind) -> Sql:
    table: LiteralString = kind.name
    return Sql(
        "SELECT r.id, r.title FROM " + table + " r WHERE r.site_id = ? AND", context.transaction.site.id
    ) + permissions.embeddable_condition(context.actor)


def make_values(raw: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    return {**params.read_params(TABLE_PARAMS, raw), **extra}


# Records that the event form offers -----------------------------------------------------------

RECENT_EVENTS: Final = 300
MAX_CATEGORIES: Final = 300
MAX_AUTHORS: Final = 200


@dataclass(frozen=True, slots=True)
class Choice:
    """A record to choose by name. `detail` tells records with the same name apart."""

    id: int
    name: str
    detail: str = ""
    latitude: float | None = None
    longitude: float | None = None

    @property
    def label(self) -> str:
        return f"{self.name} ({self.detail})" if self.detail else self.name


@dataclass(frozen=True, slots=True)
class CategoryChoice:
    id: int
    name: str
    depth: int


async def list_frequent(kind: Kind, context: OperationContext, limit: int) -> list[Choice]:
    """List the venues or organizers of the latest events, most frequent first, followed by the newest others."""
    link = next(row for row in EVENTS.links if row.kind == kind.name)
    site_id = context.transaction.site.id
    # OFFSET keeps PostgreSQL from reading the links of all events.
    candidates = Sql(
        "JOIN (SELECT c.id, count(c.event_id) AS count FROM (SELECT l.id, e.id AS event_id FROM (SELECT e.site_id,"
        " e.id FROM events e WHERE e.site_id = ? AND NOT e.hide_from_listings ORDER BY e.start_utc DESC LIMIT ?) e"
        " CROSS JOIN LATERAL (SELECT x." + link.column + " AS id FROM " + link.table
        + " x WHERE x.site_id = e.site_id AND x.event_id = e.id OFFSET 0) l UNION ALL (SELECT n.id, NULL FROM "
        + kind.name + " n WHERE n.site_id = ? ORDER BY n.published_at DESC, n.id DESC LIMIT ?)) c GROUP BY 1) u"
        " ON u.id = r.id WHERE r.site_id = ? AND",
        *(site_id, RECENT_EVENTS, site_id, limit, site_id),
    )  # fmt: skip
    rows = await context.transaction.fetch_all(
        _select_choices(kind)
        + candidates
        + permissions.embeddable_condition(context.actor)
        + Sql("ORDER BY u.count DESC, r.title, r.id LIMIT ?", limit)
    )
    return [_read_choice(row) for row in rows]


async def find_by_name(kind: Kind, context: OperationContext, name: str) -> Choice | None:
    """Find a venue or organizer by label or name. If several match, prefer published ones, then the oldest."""
    bare = name.removesuffix(")").rpartition(" (")[0]
    titles = list(dict.fromkeys([clean_title(name), *([clean_title(bare)] if bare else [])]))
    rows = await context.transaction.fetch_all(
        _select_choices(kind)
        + Sql(
            "WHERE r.site_id = ? AND length(r.title) < 500 AND r.title = ANY(?) AND",
            context.transaction.site.id,
            titles,
        )
        + permissions.embeddable_condition(context.actor)
        + Sql("ORDER BY r.status <> 'publish', r.id LIMIT 50")
    )
    choices = [_read_choice(row) for row in rows]
    exact = [row for row in choices if row.label == name] or [row for row in choices if row.name == name]
    return next(iter(exact), None)


async def find_choices(kind: Kind, context: OperationContext, ids: Sequence[int]) -> list[Choice]:
    rows = await context.transaction.fetch_all(
        _select_choices(kind) + Sql("WHERE r.site_id = ? AND r.id = ANY(?)", context.transaction.site.id, list(ids))
    )
    by_id = {row["id"]: _read_choice(row) for row in rows}
    return [by_id[entry] for entry in ids if entry in by_id]


def _select_choices(kind: Kind) -> Sql:
    own: LiteralString = (
        "r.city AS detail, r.geo_lat, r.geo_lng"
        if kind is VENUES
        else "'' AS detail, NULL::float8 AS geo_lat, NULL::float8 AS geo_lng"
    )
    return Sql("SELECT r.id, r.title, " + own + " FROM " + kind.name + " r")


def _read_choice(row: Row) -> Choice:
    return Choice(row["id"], to_plain_text(row["title"]), row["detail"], row["geo_lat"], row["geo_lng"])


async def list_categories(tx: Transaction) -> list[CategoryChoice]:
    rows = await tx.fetch_all(
        Sql(
            "SELECT id, name, parent FROM categories WHERE site_id = ? ORDER BY name_folded, id LIMIT ?",
            tx.site.id,
            MAX_CATEGORIES,
        )
    )
    return [CategoryChoice(entry.row["id"], entry.row["name"], entry.depth) for entry in order_tree(rows)]


async def list_tag_names(tx: Transaction, limit: int) -> list[str]:
    rows = await tx.fetch_all(
        Sql("SELECT name FROM tags WHERE site_id = ? ORDER BY count DESC, name_folded LIMIT ?", tx.site.id, limit)
    )
    return [row["name"] for row in rows]


async def find_tag(tx: Transaction, name: str) -> int | None:
    """Return the ID of the oldest tag with this name."""
    tag_id: int | None = await tx.fetch_value(
        Sql("SELECT id FROM tags WHERE site_id = ? AND name_folded = ? ORDER BY id LIMIT 1", tx.site.id, fold(name))
    )
    return tag_id


async def find_tag_names(tx: Transaction, ids: Sequence[int]) -> list[str]:
    """Return tag names that can be joined with commas. If a name contains a comma, return the slug instead."""
    rows = await tx.fetch_all(
        Sql(
            "SELECT name, slug FROM tags WHERE site_id = ? AND id = ANY(?) ORDER BY name_folded, id",
            tx.site.id,
            list(ids),
        )
    )
    return [row["slug"] if "," in row["name"] else row["name"] for row in rows]


async def find_tag_ids(tx: Transaction, names: Sequence[str]) -> list[int | str]:
    """Return tag IDs by name or slug. Return unknown names unchanged."""
    rows = await tx.fetch_all(
        Sql(
            """SELECT id, name_folded, slug FROM tags
                WHERE site_id = ? AND (name_folded = ANY(?) OR slug = ANY(?)) ORDER BY id DESC""",
            *(tx.site.id, [fold(name) for name in names], [fold(name) for name in names]),
        )
    )
    ids: dict[str, int] = {row["slug"]: row["id"] for row in rows} | {row["name_folded"]: row["id"] for row in rows}
    return list(dict.fromkeys(ids.get(fold(name), name) for name in names))


async def list_authors(tx: Transaction) -> list[tuple[int, str]]:
    rows = await user_tables.find_profiles(tx, user_id=None, limit=MAX_AUTHORS, offset=0)
    return [(row["id"], row["display_name"] or row["login"]) for row in rows]


async def list_images(context: OperationContext, values: dict[str, Any]) -> list[MediaItem]:
    """List images in the media library, newest first; `values` are the list parameters."""
    page = await find_page(MEDIA, replace(context, values=values), with_total=False)
    render_context = await make_render_context(MEDIA, context, page.rows)
    return [MEDIA.reads.from_row(row, render_context) for row in page.rows]
