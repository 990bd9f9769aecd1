"""The table of events in the console: a list of events with other filters, fewer columns and longer pages.

Unlike the lists of the API it includes events that are hidden from lists.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, LiteralString

from kalends.core import params
from kalends.core.html.sanitize import fold, to_plain_text
from kalends.core.params import MAX_ID, param
from kalends.core.search import like_pattern
from kalends.kinds.event_list.filters import EVENT_FILTERS
from kalends.kinds.event_list.window import WITH_HIDDEN
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Clause, Columns, Filter, Kind, LinkCondition, ListQuery, value_clause
from kalends.operations import event_passwords, permissions
from kalends.operations.context import OperationContext
from kalends.operations.records import RowPage, find_page
from kalends.store import Row
from kalends.store.sql import Sql, and_

MAX_PER_PAGE: Final = 500
# A text may match many venues; more of them than this are not looked up.
MAX_MATCHES: Final = 20
LINK_FILTERS: Final = ("categories", "venue", "organizer")
LACKING: Final = ("image", "venue")
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
    has_no_venue = Sql(
        "NOT EXISTS (SELECT FROM event_venues l WHERE l.site_id = ? AND l.event_id = r.id)", query.site.id
    )
    conditions = {"image": Sql("r.image_id IS NULL"), "venue": has_no_venue}
    return and_([conditions[name] for name in names])


async def _others_clause(_: bool, query: ListQuery) -> Clause:
    """Match the events that others have published for everybody to see."""
    return Sql("r.status = 'publish' AND NOT r.hide_from_listings AND r.author_id <> ?", query.actor.user_id)


def _prefer_status(row: Filter) -> Filter:
    """Make a filter by linked records that leaves the choice of the index to the status, if it has few events."""

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
        Filter(param("lacking", params.several_of(*LACKING), "Events without an image or venue"), _lacking_clause),
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
    """The rows of a page, the number of all rows, and the names of the records that the rows refer to."""

    rows: list[Row]
    total: int
    total_pages: int
    venues: Mapping[int, str] = field(default_factory=dict[int, str])
    categories: Mapping[int, str] = field(default_factory=dict[int, str])
    authors: Mapping[int, str] = field(default_factory=dict[int, str])
    locked_ids: frozenset[int] = frozenset()


async def read_table(context: OperationContext) -> TablePage:
    """Read one page of the table."""
    found = await find_page(TABLE_EVENTS, replace(context, values={**context.values, WITH_HIDDEN: True}))
    return await _add_names(context, found)


async def _add_names(context: OperationContext, found: RowPage) -> TablePage:
    rows = found.rows
    return TablePage(
        rows,
        found.total,
        found.total_pages,
        venues=await _find_venue_names(context, {entry for row in rows for entry in row["venue_ids"]}),
        categories=await _find_category_names(context, {entry for row in rows for entry in row["category_ids"]}),
        authors=await _find_author_names(context, {row["author_id"] for row in rows}),
        locked_ids=_find_locked(context, rows),
    )


def _find_locked(context: OperationContext, rows: list[Row]) -> frozenset[int]:
    """Return the protected events that the user may not edit: only their title and date are shown."""
    locked = event_passwords.locked_ids(context, rows)
    return frozenset(
        row["id"] for row in rows if row["id"] in locked and not permissions.may_edit(context.actor, row)
    )


async def _find_venue_names(context: OperationContext, ids: Iterable[int]) -> dict[int, str]:
    visible = permissions.embeddable_condition(context.actor)
    return await _fetch_names(context, Sql("SELECT r.id, r.title AS name FROM venues r"), ids, visible)


async def _find_category_names(context: OperationContext, ids: Iterable[int]) -> dict[int, str]:
    return await _fetch_names(context, Sql("SELECT r.id, r.name FROM categories r"), ids, Sql("true"))


async def _find_author_names(context: OperationContext, ids: Iterable[int]) -> dict[int, str]:
    name = Sql("SELECT r.id, coalesce(nullif(r.display_name, ''), r.login) AS name FROM users r")
    return await _fetch_names(context, name, ids, Sql("true"))


async def _fetch_names(context: OperationContext, select: Sql, ids: Iterable[int], visible: Sql) -> dict[int, str]:
    wanted = list(ids)
    if not wanted:
        return {}
    site_id = context.transaction.site.id
    rows = await context.transaction.fetch_all(
        select + Sql("WHERE r.site_id = ? AND r.id = ANY(?) AND", site_id, wanted) + visible
    )
    return {row["id"]: to_plain_text(row["name"]) for row in rows}


# Choices of the filters and of bulk changes ---------------------------------------------------


async def has_events(context: OperationContext, author: int | None) -> bool:
    """Return whether the site, or one of its users, has any event."""
    own = Sql("AND r.author_id = ?", author) if author is not None else Sql("")
    found = await context.transaction.fetch_value(
        Sql("SELECT EXISTS (SELECT FROM events r WHERE r.site_id = ?", context.transaction.site.id) + own + Sql(")")
    )
    return bool(found)


async def list_category_choices(context: OperationContext) -> list[tuple[int, str]]:
    """Return all categories by name."""
    rows = await context.transaction.fetch_all(
        Sql("SELECT id, name FROM categories WHERE site_id = ? ORDER BY name, id", context.transaction.site.id)
    )
    return [(row["id"], to_plain_text(row["name"])) for row in rows]


async def list_author_choices(context: OperationContext, limit: int = 500) -> list[tuple[int, str]]:
    """Return the users who may write events."""
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
    """Return names of venues or organizers as suggestions; others can be typed in."""
    rows = await context.transaction.fetch_all(_select_named(context, kind) + Sql("ORDER BY r.title LIMIT ?", limit))
    return list(dict.fromkeys(to_plain_text(row["title"]) for row in rows))


async def find_named(context: OperationContext, kind: Kind, text: str) -> list[int]:
    """Return the venues or organizers with this ID or name; without one, those whose text contains all words."""
    condition = like_pattern(fold(text))
    rows = await context.transaction.fetch_all(
        _select_named(context, kind)
        + Sql("AND (r.id = ? OR r.search_text LIKE ?) ORDER BY r.id LIMIT ?", _read_id(text), condition, MAX_MATCHES)
    )
    wanted = fold(text)
    exact = [row["id"] for row in rows if fold(to_plain_text(row["title"])) == wanted or str(row["id"]) == text]
    return exact or [row["id"] for row in rows]


def _read_id(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < len(str(MAX_ID)) else 0


def _select_named(context: OperationContext, kind: Kind) -> Sql:
    table: LiteralString = kind.name
    return Sql(
        "SELECT r.id, r.title FROM " + table + " r WHERE r.site_id = ? AND", context.transaction.site.id
    ) + permissions.embeddable_condition(context.actor)


def make_values(raw: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Read the parameters of the table, and add values that are no parameters of requests."""
    return {**params.read_params(TABLE_PARAMS, raw), **extra}
