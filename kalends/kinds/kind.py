"""The vocabulary in which the five kinds are written: Kind, Filter, Link, and what they are given."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any, Final, LiteralString

from kalends.core import params
from kalends.core.params import Param, param
from kalends.kinds.linked_records import LinkedRecords
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sites import Site
from kalends.store.sql import Sql, and_

# The page of a list, for every kind.
PAGING: Final = (
    param("page", params.integer(minimum=1), "The page of the list to return", default=1),
    param("per_page", params.integer(minimum=1), "The number of records per page", default=12),
)

Values = dict[LiteralString, object]
JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks. Nobody signed in: user_id is None."""

    user_id: int | None = None
    role: str = "anonymous"
    login: str = ""
    read_only: bool = False  # signed in with a password that may only read


ANONYMOUS_ACTOR = Actor()


@dataclass(frozen=True, slots=True)
class RenderContext:
    """The inputs of a representation other than its row."""

    site: Site
    base_url: str
    api_url: str
    media_url: str = ""  # in front of the files of images
    linked: LinkedRecords = field(default_factory=LinkedRecords)
    # Protected events whose password was not given.
    locked_ids: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class ListQuery:
    """One request for a list: its parameters, read, and what its filters may ask."""

    transaction: Transaction
    values: Mapping[str, Any]
    actor: Actor
    page: int
    per_page: int
    # What the caller may see: per row, and as whole statuses where that says it all.
    visible: Sql
    statuses: Sequence[str] | None
    editable: Sql
    readable: Sql

    @property
    def site(self) -> Site:
        return self.transaction.site

    @property
    def offset(self) -> int:
        return (self.page - 1) * self.per_page


@dataclass(frozen=True, slots=True)
class WriteContext:
    """One record about to be written. `row` is None on create; `sent` are the parameters, read."""

    transaction: Transaction
    arguments: Mapping[str, Any]
    row: Row | None
    record_id: int
    user_id: int
    may_publish: bool

    @property
    def site(self) -> Site:
        return self.transaction.site


@dataclass(frozen=True, slots=True)
class LinkCondition:
    """Events linked to any of these records: of each event it can be asked, or for all of them at once."""

    site_id: int
    table: LiteralString
    column: LiteralString
    ids: list[int]

    def row_condition(self) -> Sql:
        # OFFSET 0 keeps the planner from reading all that these records were ever linked to.
        return Sql(
            "EXISTS (SELECT FROM " + self.table + " l"
            " WHERE l.site_id = ? AND l.event_id = r.id AND l." + self.column + " = ANY(?) OFFSET 0)",
            self.site_id,
            self.ids,
        )

    def event_ids(self) -> Sql:
        return Sql(
            "SELECT l.event_id FROM " + self.table + " l WHERE l.site_id = ? AND l." + self.column + " = ANY(?)",
            self.site_id,
            self.ids,
        )


@dataclass(frozen=True, slots=True)
class TextCondition:
    """Events whose text contains words."""

    row_condition: Sql


# The condition of a filter. Two of them can be met in more than one way: see event_window.find_parts.
Clause = Sql | LinkCondition | TextCondition


def row_conditions(clauses: list[Clause]) -> list[Sql]:
    """The conditions as they are asked of one record after the other."""
    return [_row_condition(clause) for clause in clauses]


def _row_condition(clause: Clause) -> Sql:
    if isinstance(clause, LinkCondition):
        return clause.row_condition()
    return clause.row_condition if isinstance(clause, TextCondition) else clause


@dataclass(frozen=True, slots=True)
class Filter:
    """A parameter of a list with its clause."""

    param: Param
    clause: Callable[[Any, ListQuery], Awaitable[Clause]]


@dataclass(frozen=True, slots=True)
class Link:
    """A parameter of an event that names records of another kind."""

    param: str
    kind: str
    table: LiteralString
    column: LiteralString


def value_clause(clause: Callable[[Any], Sql]) -> Callable[[Any, ListQuery], Awaitable[Clause]]:
    """A clause that needs nothing but its value."""

    async def build(value: Any, _: ListQuery) -> Clause:
        return clause(value)

    return build


async def unfiltered(_: Any, __: ListQuery) -> Clause:
    """The clause of a parameter that only changes how others are read, or the order."""
    return Sql("")


def build_page_query(kind: "Kind", query: ListQuery, clauses: list[Clause]) -> Sql:
    return (
        Sql("SELECT " + kind.columns + " FROM " + kind.name + " r WHERE r.site_id = ? AND", query.site.id)
        + and_([query.visible, *row_conditions(clauses)])
        + Sql("ORDER BY")
        + kind.order(query)
        + Sql("LIMIT ? OFFSET ?", query.per_page, query.offset)
    )


def build_total_query(kind: "Kind", query: ListQuery, clauses: list[Clause]) -> Sql:
    count = Sql("SELECT count(*) FROM " + kind.name + " r WHERE r.site_id = ? AND", query.site.id)
    return count + and_([query.visible, *row_conditions(clauses)])


@dataclass(frozen=True, slots=True)
class Kind:
    name: LiteralString
    singular: LiteralString
    title_param: str  # the parameter that names a record
    columns: LiteralString  # what every read selects from the table of the same name, as `r`
    fields: tuple[Param, ...]
    filters: tuple[Filter, ...]
    from_row: Callable[[Row, RenderContext], Any]  # builds the typed record (core/record_types.py)
    to_json: Callable[[Any, RenderContext], JsonObject]  # serializes a typed record for the API
    to_columns: Callable[[WriteContext], Awaitable[Values]]
    order: Callable[[ListQuery], Sql]
    is_post: bool = True
    is_extension: bool = False  # not in the interface: its routes are those of the extension
    page_query: "Callable[[Kind, ListQuery, list[Clause]], Sql]" = build_page_query
    total_query: "Callable[[Kind, ListQuery, list[Clause]], Sql]" = build_total_query
    links: tuple[Link, ...] = ()
    # Where a list goes on behind these rows, for kinds that page by cursor.
    next_cursor: Callable[[ListQuery, list[Row], int], str | None] | None = None
    # Filters that tell what a protected record hides: they find only what is open to the caller.
    password_guarded_filters: frozenset[str] = frozenset()
    # When the clock alone changes what a list shows; None: never.
    expires_at: Callable[[ListQuery], datetime | None] = lambda _: None
    # Columns that a write sets to just what was sent, with no rule between.
    passthrough_columns: tuple[LiteralString, ...] = ()
    # Columns whose change is one of time, place or status, which subscribers of feeds must be told.
    sequence_columns: frozenset[str] = frozenset()
    # The `json_ld` of a record, which only the read of a single record returns.
    to_json_ld: Callable[[Any, RenderContext], JsonObject] | None = None

    # What else a change of these columns brings about, under the same lock.
    after_update: Callable[[Transaction, Row, Collection[str]], Awaitable[None]] | None = None

    def row_to_json(self, row: Row, context: RenderContext) -> JsonObject:
        return self.to_json(self.from_row(row, context), context)

    def select(self, where: Sql) -> Sql:
        return Sql("SELECT " + self.columns + " FROM " + self.name + " r WHERE") + where


@cache
def column_names(columns: str) -> tuple[str, ...]:
    """The names of what is selected, for rows that come without."""
    top_level, depth = "", 0
    for letter in columns:
        depth += (letter == "(") - (letter == ")")
        top_level += letter if depth == 0 else ""
    return tuple(part.split()[-1].rpartition(".")[2] for part in top_level.split(","))
