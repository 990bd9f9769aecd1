"""The types that describe a record kind (Kind, Filter, Link) and the contexts passed to their functions."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, LiteralString

from kalends.calendar.rules.record_types import Organizer, Term, Venue
from kalends.core import params
from kalends.core.params import Param, param
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sites import Site
from kalends.store.sql import Sql, and_, limit

# Linked records (an event's venues, organizers, categories and tags), as dataclasses and as JSON.


class LinkedRecord[R]:
    """A record that an event links to. Its JSON is built on first use, because pages do not need it."""

    __slots__ = ("_build_json", "_json", "record")

    def __init__(self, record: R, build_json: Callable[[], dict[str, Any]]) -> None:
        self.record = record
        self._build_json = build_json
        self._json: dict[str, Any] | None = None

    @property
    def json(self) -> dict[str, Any]:
        if self._json is None:
            self._json = self._build_json()
        return self._json


@dataclass(frozen=True, slots=True)
class LinkedRecords:
    """Records linked from a set of events, by ID. Only records that the caller may see are included."""

    venues: Mapping[int, LinkedRecord[Venue]] = field(default_factory=dict[int, LinkedRecord[Venue]])
    organizers: Mapping[int, LinkedRecord[Organizer]] = field(default_factory=dict[int, LinkedRecord[Organizer]])
    categories: Mapping[int, LinkedRecord[Term]] = field(default_factory=dict[int, LinkedRecord[Term]])
    tags: Mapping[int, LinkedRecord[Term]] = field(default_factory=dict[int, LinkedRecord[Term]])


NO_LINKED_RECORDS = LinkedRecords()


MAX_PER_PAGE: Final = 50
# The paging parameters of every list.
PAGING: Final = (
    param("page", params.integer(minimum=1), "The page of the list to return", default=1),
    param(
        "per_page",
        params.integer(minimum=1, maximum=MAX_PER_PAGE, reduce=True),
        "The number of records per page; larger values are reduced to the maximum",
        default=12,
    ),
)

# The namespace that existing clients use. All others are extensions.
CALENDAR_NAMESPACE: Final = "calendar/events/v1"
EXTENSION_PATH: Final = "/api/kalends/v1"

Values = dict[LiteralString, object]
JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Actor:
    """The caller of an operation. Anonymous callers have no user_id."""

    user_id: int | None = None
    role: str = "anonymous"
    login: str = ""
    read_only: bool = False  # signed in with a read-only password
    may_propose: bool = False  # whether a read-only password may send proposals
    program: str = ""  # name of the application password


ANONYMOUS_ACTOR = Actor()


@dataclass(frozen=True, slots=True)
class RenderContext:
    site: Site
    base_url: str
    api_url: str
    media_url: str = ""  # URL prefix for image files
    linked: LinkedRecords = field(default_factory=LinkedRecords)
    # Password-protected events that the caller has not unlocked.
    locked_ids: frozenset[int] = frozenset()

    @property
    def extension_url(self) -> str:
        return self.base_url + EXTENSION_PATH


@dataclass(frozen=True, slots=True)
class ListQuery:
    """A list request: its parsed parameters, and the permission conditions for its filters."""

    transaction: Transaction
    values: Mapping[str, Any]
    actor: Actor
    page: int
    per_page: int
    # The rows that the caller may see, as a condition. If it depends only on the status, also as a list of statuses.
    visible: Sql
    statuses: Sequence[str] | None
    editable: Sql
    readable: Sql
    derived: dict[str, Any] = field(default_factory=dict[str, Any])  # computed once from the parameters

    @property
    def site(self) -> Site:
        return self.transaction.site

    @property
    def offset(self) -> int:
        return (self.page - 1) * self.per_page


@dataclass(frozen=True, slots=True)
class WriteContext:
    """A record that is about to be written. `row` is its current row, or None for a new record."""

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
    """The condition that an event links to any of `ids`. It can check a row or select a set of event IDs."""

    site_id: int
    table: LiteralString
    column: LiteralString
    ids: list[int]

    @property
    def letter(self) -> str:
        """Return the linked kind's letter in cache tags."""
        return self.column[0]

    def row_condition(self) -> Sql:
        # OFFSET 0 keeps the planner from reading all links to these records.
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
    row_condition: Sql


@dataclass(frozen=True, slots=True)
class SeriesCondition:
    ids: list[int]

    def row_condition(self) -> Sql:
        return Sql("r.series_id = ANY(?)", self.ids)


@dataclass(frozen=True, slots=True)
class PasswordCondition:
    """The condition that an event has no password, or that the caller may read the event in full."""

    row_condition: Sql
    protected: bool | None  # True if the condition matches all protected events, False if none, None if some


# A filter condition. For some types, `event_window.plan_branches` chooses an index.
Clause = Sql | LinkCondition | SeriesCondition | TextCondition | PasswordCondition
# Builds a filter condition from the value of the parameter. An empty fragment means no condition.
ClauseBuilder = Callable[[Any, ListQuery], Awaitable[Clause]]


def has_condition(clause: Clause) -> bool:
    """Return whether a clause restricts a list; `ticketed=false`, for example, does not."""
    return not isinstance(clause, Sql) or bool(clause.text)


def row_conditions(clauses: list[Clause]) -> list[Sql]:
    return [_row_condition(clause) for clause in clauses]


def _row_condition(clause: Clause) -> Sql:
    if isinstance(clause, LinkCondition | SeriesCondition):
        return clause.row_condition()
    return clause if isinstance(clause, Sql) else clause.row_condition


@dataclass(frozen=True, slots=True)
class Filter:
    param: Param
    clause: ClauseBuilder


@dataclass(frozen=True, slots=True)
class Link:
    """An event parameter that links the event to records of another kind."""

    param: str
    kind: str
    table: LiteralString
    column: LiteralString

    @property
    def letter(self) -> str:
        """Return the linked kind's letter in cache tags."""
        return self.column[0]


Links = Mapping[Link, list[int]]
NO_LINKS: Final[Links] = {}


def link_columns(links: Links) -> dict[str, list[int]]:
    """Return linked IDs by event column, such as `venue_ids`."""
    return {f"{link.column}s": ids for link, ids in links.items()}


def value_clause(clause: Callable[[Any], Sql]) -> ClauseBuilder:
    """Make a clause builder from a function that needs only the value."""

    async def build(value: Any, _: ListQuery) -> Clause:
        return clause(value)

    return build


def validates_only(check: Callable[[Any, ListQuery], Awaitable[None]]) -> ClauseBuilder:
    """Make a clause builder that checks a parameter against the others but adds no condition."""

    async def build(value: Any, query: ListQuery) -> Clause:
        await check(value, query)
        return Sql("")

    return build


async def no_condition(_: Any, __: ListQuery) -> Clause:
    """Return no condition, because other code reads the parameter, for example for the order or the statuses."""
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
    """Build a statement that returns a page's rows, each with the total. An empty page has one row with a null ID."""
    return (
        Sql("SELECT t.total, p.* FROM (SELECT (")
        + kind.reads.total_query(kind, query, clauses)
        + Sql(") AS total) t LEFT JOIN LATERAL (")
        + kind.reads.page_query(kind, query, clauses)
        + Sql(") p ON true")
    )


class Columns:
    """A SELECT list: columns of table `r`, and computed columns as expressions by name.

    The names identify values in statements that return unnamed values, such as rows of several kinds.
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
    columns: Columns
    from_row: Callable[[Row, RenderContext], Any]  # builds the typed record (calendar/rules/record_types.py)
    to_json: Callable[[Any, RenderContext], JsonObject]  # serializes a typed record for the API
    order: Callable[[ListQuery], Sql]
    page_query: "Callable[[Kind, ListQuery, list[Clause]], Sql]" = build_page_query
    total_query: "Callable[[Kind, ListQuery, list[Clause]], Sql]" = build_total_query
    page_and_total_query: "Callable[[Kind, ListQuery, list[Clause]], Sql]" = build_page_and_total_query
    max_per_page: int = MAX_PER_PAGE
    # The condition for visible records, for a kind without statuses. None means all records, if the caller may read
    # the kind.
    visible: Callable[[Actor], Sql] | None = None
    # Returns the cursor for the next page; only for kinds whose lists have cursors.
    next_cursor: Callable[[ListQuery, list[Row], int], str | None] | None = None
    # When a list expires without a write (for example at midnight); None means never.
    expires_at: Callable[[ListQuery], datetime | None] = lambda _: None
    # Whether a record's JSON changes over time even without a write. If so, responses with a single record are not
    # cached.
    depends_on_now: bool = False
    # Filters on protected fields. They match only unlocked events, to reveal nothing about the others.
    password_guarded_filters: frozenset[str] = frozenset()
    # Returns structured data. Only responses with a single record include it.
    to_json_ld: Callable[[Any, RenderContext], JsonObject] | None = None

    def row_to_json(self, row: Row, context: RenderContext) -> JsonObject:
        return self.to_json(self.from_row(row, context), context)


@dataclass(frozen=True, slots=True)
class Writes:
    to_columns: Callable[[WriteContext], Awaitable[Values]]
    # Columns that store the argument unchanged. A restore writes their stored values back unchanged.
    passthrough_columns: tuple[LiteralString, ...] = ()
    # Changes to these columns raise an event's SEQUENCE in calendar feeds, for example the time, place, post status
    # or event status.
    sequence_columns: frozenset[str] = frozenset()
    # Called after an update, in the same transaction, with the previous row and the changed columns.
    after_update: Callable[[Transaction, Row, Collection[str]], Awaitable[None]] | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """A record kind: its API parameters, and how to read and write its records. Its table has the same name."""

    name: LiteralString
    singular: LiteralString
    title_param: str  # the parameter for a record's name or title
    fields: tuple[Param, ...]
    filters: tuple[Filter, ...]
    reads: Reads
    writes: Writes
    links: tuple[Link, ...] = ()
    is_post: bool = True  # whether records have an author, a status and a publication date, and can be trashed
    is_event: bool = False
    is_nested: bool = False  # whether records are terms that can have a parent
    is_media: bool = False
    is_extension: bool = False  # whether the routes are below EXTENSION_PATH

    @property
    def is_shared(self) -> bool:
        """Return whether a write reuses a published record with identical data instead of adding a duplicate."""
        return self.is_post and not self.is_event

    @property
    def is_term(self) -> bool:
        return not (self.is_post or self.is_media)

    def select(self, where: Sql) -> Sql:
        return Sql("SELECT " + self.reads.columns.sql + " FROM " + self.name + " r WHERE") + where

    async def fetch(self, tx: Transaction, record_id: int) -> Row | None:
        return await tx.fetch_one(self.select(Sql("r.site_id = ? AND r.id = ?", tx.site.id, record_id)))
