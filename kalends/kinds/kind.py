"""The types that describe a kind of record: Kind, Filter, Link, and the contexts passed to their functions."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, LiteralString

from kalends.core import params
from kalends.core.params import Param, param
from kalends.kinds.linked_records import LinkedRecords
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sites import Site
from kalends.store.sql import Sql, and_, limit

MAX_PER_PAGE: Final = 50
# Every list is paged by these parameters.
PAGING: Final = (
    param("page", params.integer(minimum=1), "The page of the list to return", default=1),
    param(
        "per_page",
        params.integer(minimum=1, maximum=MAX_PER_PAGE, reduce=True),
        "The number of records per page; larger values are reduced to the maximum",
        default=12,
    ),
)

# The path of the extensions of Kalends.
EXTENSION_PATH: Final = "/api/kalends/v1"

Values = dict[LiteralString, object]
JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Actor:
    """The caller of an operation. An anonymous one has no user_id."""

    user_id: int | None = None
    role: str = "anonymous"
    login: str = ""
    read_only: bool = False  # signed in with a read-only password


ANONYMOUS_ACTOR = Actor()


@dataclass(frozen=True, slots=True)
class RenderContext:
    """The input of a serializer besides the record."""

    site: Site
    base_url: str
    api_url: str
    media_url: str = ""  # prefix of the URLs of image files
    linked: LinkedRecords = field(default_factory=LinkedRecords)
    # Password-protected events that this caller has not unlocked.
    locked_ids: frozenset[int] = frozenset()

    @property
    def extension_url(self) -> str:
        return self.base_url + EXTENSION_PATH


@dataclass(frozen=True, slots=True)
class ListQuery:
    """One request for a list: its parsed parameters and the conditions that its filters need."""

    transaction: Transaction
    values: Mapping[str, Any]
    actor: Actor
    page: int
    per_page: int
    # The rows that the caller may see: as a condition, and as statuses where these describe them completely.
    visible: Sql
    statuses: Sequence[str] | None
    editable: Sql
    readable: Sql
    derived: dict[str, Any] = field(default_factory=dict[str, Any])  # what follows from the parameters, once computed

    @property
    def site(self) -> Site:
        return self.transaction.site

    @property
    def offset(self) -> int:
        return (self.page - 1) * self.per_page


@dataclass(frozen=True, slots=True)
class WriteContext:
    """One record about to be written. `row` is its current row, None on create."""

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
    """Condition "event is linked to any of `ids`", usable per row or as a set of event IDs."""

    site_id: int
    table: LiteralString
    column: LiteralString
    ids: list[int]

    def row_condition(self) -> Sql:
        # OFFSET 0 keeps the planner from reading all links of these records.
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
    """Condition "the text of the event contains these words"."""

    row_condition: Sql


@dataclass(frozen=True, slots=True)
class SeriesCondition:
    """Condition "event is a date of any of these series"."""

    ids: list[int]

    def row_condition(self) -> Sql:
        return Sql("r.series_id = ANY(?)", self.ids)


@dataclass(frozen=True, slots=True)
class PasswordCondition:
    """Condition "the event has no password, or the caller may read it in full"."""

    row_condition: Sql
    protected: bool | None  # whether it matches all protected events or none of them; None: some


# The condition of a filter. Three types can be looked up in more than one way: see event_list.window.plan_branches.
Clause = Sql | LinkCondition | SeriesCondition | TextCondition | PasswordCondition
# Builds the condition of a filter from the value of its parameter. An empty fragment is no condition.
ClauseBuilder = Callable[[Any, ListQuery], Awaitable[Clause]]


def has_condition(clause: Clause) -> bool:
    """Return whether a clause restricts a list; that of `ticketed=false`, for example, does not."""
    return not isinstance(clause, Sql) or bool(clause.text)


def row_conditions(clauses: list[Clause]) -> list[Sql]:
    """Return the conditions in the form that is evaluated per row."""
    return [_row_condition(clause) for clause in clauses]


def _row_condition(clause: Clause) -> Sql:
    if isinstance(clause, LinkCondition | SeriesCondition):
        return clause.row_condition()
    return clause if isinstance(clause, Sql) else clause.row_condition


@dataclass(frozen=True, slots=True)
class Filter:
    """A parameter of a list, and the function that builds its condition."""

    param: Param
    clause: ClauseBuilder


@dataclass(frozen=True, slots=True)
class Link:
    """A parameter of an event that links it to records of another kind."""

    param: str
    kind: str
    table: LiteralString
    column: LiteralString


def value_clause(clause: Callable[[Any], Sql]) -> ClauseBuilder:
    """Make a clause builder from a function of the value alone."""

    async def build(value: Any, _: ListQuery) -> Clause:
        return clause(value)

    return build


def validates_only(check: Callable[[Any, ListQuery], Awaitable[None]]) -> ClauseBuilder:
    """Make the clause of a parameter that is checked against the others but adds no condition."""

    async def build(value: Any, query: ListQuery) -> Clause:
        await check(value, query)
        return Sql("")

    return build


async def read_by_permissions(_: Any, __: ListQuery) -> Clause:
    """Return no condition: `status` is part of `ListQuery.visible`, which operations/permissions.py builds."""
    return Sql("")


def build_page_query(kind: "Kind", query: ListQuery, clauses: list[Clause]) -> Sql:
    return (
        Sql("SELECT " + kind.reads.columns.sql + " FROM " + kind.name + " r WHERE r.site_id = ? AND", query.site.id)
        + and_([query.visible, *row_conditions(clauses)])
        + Sql("ORDER BY")
        + kind.reads.order(query)
        + limit(query.per_page, query.offset)
    )


def build_total_query(kind: "Kind", query: ListQuery, clauses: list[Clause]) -> Sql:
    count = Sql("SELECT count(*) FROM " + kind.name + " r WHERE r.site_id = ? AND", query.site.id)
    return count + and_([query.visible, *row_conditions(clauses)])


def build_page_and_total_query(kind: "Kind", query: ListQuery, clauses: list[Clause]) -> Sql:
    """Build one statement for both. Each row has the total; an empty page is a row without an ID."""
    return (
        Sql("SELECT t.total, p.* FROM (SELECT (")
        + kind.reads.total_query(kind, query, clauses)
        + Sql(") AS total) t LEFT JOIN LATERAL (")
        + kind.reads.page_query(kind, query, clauses)
        + Sql(") p ON true")
    )


class Columns:
    """A SELECT list: columns of the table, which is `r`, and computed columns as expressions by name.

    The names are needed where rows of several kinds come from one statement, as values without names.
    """

    __slots__ = ("_computed", "_stored", "computed_names", "names", "sql")

    def __init__(self, *stored: LiteralString, computed: Mapping[LiteralString, LiteralString] | None = None) -> None:
        self._stored: tuple[LiteralString, ...] = stored
        self._computed: dict[LiteralString, LiteralString] = dict(computed or {})
        self.computed_names: tuple[LiteralString, ...] = tuple(self._computed)
        self.names: tuple[LiteralString, ...] = (*stored, *self.computed_names)
        expressions: list[LiteralString] = [expression + " AS " + name for name, expression in self._computed.items()]
        columns: list[LiteralString] = ["r." + name for name in stored]
        self.sql: LiteralString = ", ".join([*columns, *expressions])

    def __add__(self, other: "Columns") -> "Columns":
        return Columns(*self._stored, *other._stored, computed={**self._computed, **other._computed})


@dataclass(frozen=True, slots=True)
class Reads:
    """How the records of a kind are selected, listed and serialized."""

    columns: Columns
    from_row: Callable[[Row, RenderContext], Any]  # builds the typed record (core/record_types.py)
    to_json: Callable[[Any, RenderContext], JsonObject]  # serializes a typed record for the API
    order: Callable[[ListQuery], Sql]
    page_query: "Callable[[Kind, ListQuery, list[Clause]], Sql]" = build_page_query
    total_query: "Callable[[Kind, ListQuery, list[Clause]], Sql]" = build_total_query
    page_and_total_query: "Callable[[Kind, ListQuery, list[Clause]], Sql]" = build_page_and_total_query
    max_per_page: int = MAX_PER_PAGE
    # The records of a kind without statuses that a caller may see; None: all of them, for readers of the kind.
    visible: Callable[[Actor], Sql] | None = None
    # The cursor behind the given rows, for kinds that page by cursor.
    next_cursor: Callable[[ListQuery, list[Row], int], str | None] | None = None
    # When a list expires without any write (for example at midnight); None if never.
    expires_at: Callable[[ListQuery], datetime | None] = lambda _: None
    # Whether a single record changes as time passes, so that responses with it are not cached.
    depends_on_now: bool = False
    # Filters on protected fields. They are restricted to unlocked events, so that results leak nothing.
    password_guarded_filters: frozenset[str] = frozenset()
    # Returns the structured data that only a single read contains.
    to_json_ld: Callable[[Any, RenderContext], JsonObject] | None = None

    def row_to_json(self, row: Row, context: RenderContext) -> JsonObject:
        return self.to_json(self.from_row(row, context), context)


@dataclass(frozen=True, slots=True)
class Writes:
    """How the arguments of a write become columns, and the consequences of a change."""

    to_columns: Callable[[WriteContext], Awaitable[Values]]
    # Columns that a write sets to the argument as it is. A restore writes them back unchanged.
    passthrough_columns: tuple[LiteralString, ...] = ()
    # Columns whose change raises the SEQUENCE of an event in calendar feeds: time, place, status and state.
    sequence_columns: frozenset[str] = frozenset()
    # Called after an update with the previous row and the changed columns, under the same lock.
    after_update: Callable[[Transaction, Row, Collection[str]], Awaitable[None]] | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of record: its API parameters, and how it is read and written. Its table has the same name."""

    name: LiteralString
    singular: LiteralString
    title_param: str  # the parameter with the name or title of a record
    fields: tuple[Param, ...]
    filters: tuple[Filter, ...]
    reads: Reads
    writes: Writes
    links: tuple[Link, ...] = ()
    is_post: bool = True  # has an author, a status, a publication date and a trash
    is_event: bool = False
    is_nested: bool = False  # a term that may have a parent
    is_media: bool = False
    is_extension: bool = False  # served below the URL of the Kalends extensions

    @property
    def is_shared(self) -> bool:
        """Return whether several events may share a record: identical data of a published one is reused."""
        return self.is_post and not self.is_event

    @property
    def is_term(self) -> bool:
        return not (self.is_post or self.is_media)

    def select(self, where: Sql) -> Sql:
        return Sql("SELECT " + self.reads.columns.sql + " FROM " + self.name + " r WHERE") + where
