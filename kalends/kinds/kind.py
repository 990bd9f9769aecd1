"""The vocabulary in which the five kinds are written: Kind, Filter, Link, and what they are given."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any, Final, LiteralString

from kalends.core import params
from kalends.core.params import Param, param
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
Represented = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks. Nobody signed in: user_id is None."""

    user_id: int | None = None
    role: str = "anonymous"
    login: str = ""
    read_only: bool = False  # signed in with a password that may only read


ANONYMOUS_ACTOR = Actor()


@dataclass(frozen=True, slots=True)
class View:
    """What a representation needs besides its row. `linked` holds rows by kind and ID."""

    site: Site
    base_url: str
    ns: str
    media_url: str = ""  # in front of the files of images
    # Representations of linked records that this caller may see, by kind and ID.
    linked: Mapping[str, Mapping[int, Represented]] = field(default_factory=dict[str, Any])
    # Protected events whose password was not given.
    shut: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Listing:
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
class Writing:
    """One record about to be written. `row` is None on create; `sent` are the parameters, read."""

    transaction: Transaction
    sent: Mapping[str, Any]
    row: Row | None
    record_id: int
    user_id: int
    may_publish: bool

    @property
    def site(self) -> Site:
        return self.transaction.site


@dataclass(frozen=True, slots=True)
class Linked:
    """Events linked to any of these records: of each event it can be asked, or for all of them at once."""

    site_id: int
    table: LiteralString
    column: LiteralString
    ids: list[int]

    def by_event(self) -> Sql:
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
class Searched:
    """Events whose text contains words."""

    by_event: Sql


# The condition of a filter. Two of them can be met in more than one way: see event_window.find_parts.
Clause = Sql | Linked | Searched


def for_each(clauses: list[Clause]) -> list[Sql]:
    """The conditions as they are asked of one record after the other."""
    return [_for_each(clause) for clause in clauses]


def _for_each(clause: Clause) -> Sql:
    if isinstance(clause, Linked):
        return clause.by_event()
    return clause.by_event if isinstance(clause, Searched) else clause


@dataclass(frozen=True, slots=True)
class Filter:
    """A parameter of a list with its clause."""

    param: Param
    clause: Callable[[Any, Listing], Awaitable[Clause]]


@dataclass(frozen=True, slots=True)
class Link:
    """A parameter of an event that names records of another kind."""

    param: str
    kind: str
    table: LiteralString
    column: LiteralString


def plain(clause: Callable[[Any], Sql]) -> Callable[[Any, Listing], Awaitable[Clause]]:
    """A clause that needs nothing but its value."""

    async def asked(value: Any, _: Listing) -> Clause:
        return clause(value)

    return asked


async def unfiltered(_: Any, __: Listing) -> Clause:
    """The clause of a parameter that only changes how others are read, or the order."""
    return Sql("")


def page_of(kind: "Kind", listing: Listing, clauses: list[Clause]) -> Sql:
    return (
        Sql("SELECT " + kind.columns + " FROM " + kind.name + " r WHERE r.site_id = ? AND", listing.site.id)
        + and_([listing.visible, *for_each(clauses)])
        + Sql("ORDER BY")
        + kind.order(listing)
        + Sql("LIMIT ? OFFSET ?", listing.per_page, listing.offset)
    )


def total_of(kind: "Kind", listing: Listing, clauses: list[Clause]) -> Sql:
    found = Sql("SELECT count(*) FROM " + kind.name + " r WHERE r.site_id = ? AND", listing.site.id)
    return found + and_([listing.visible, *for_each(clauses)])


@dataclass(frozen=True, slots=True)
class Kind:
    name: LiteralString
    singular: LiteralString
    title: str  # the parameter that names a record
    columns: LiteralString  # what every read selects from the table of the same name, as `r`
    fields: tuple[Param, ...]
    filters: tuple[Filter, ...]
    represent: Callable[[Row, View], Represented]
    store: Callable[[Writing], Awaitable[Values]]
    order: Callable[[Listing], Sql]
    is_post: bool = True
    is_ours: bool = False  # not in the interface: its routes are those of the extension
    page: "Callable[[Kind, Listing, list[Clause]], Sql]" = page_of
    total: "Callable[[Kind, Listing, list[Clause]], Sql]" = total_of
    links: tuple[Link, ...] = ()
    # Where a list goes on behind these rows, for kinds that page by cursor.
    continues: Callable[[Listing, list[Row], int], str | None] | None = None
    # Filters that tell what a protected record hides: they find only what is open to the caller.
    guarded: frozenset[str] = frozenset()
    # When the clock alone changes what a list shows; None: never.
    until: Callable[[Listing], datetime | None] = lambda _: None
    # Columns that a write sets to just what was sent, with no rule between.
    plain: tuple[LiteralString, ...] = ()
    # Columns whose change is one of time, place or status, which subscribers of feeds must be told.
    moves: frozenset[str] = frozenset()
    # What only a single read shows.
    complete: Callable[[Represented, Row, View], Represented] | None = None

    # What else a change of these columns brings about, under the same lock.
    changed: Callable[[Transaction, Row, Collection[str]], Awaitable[None]] | None = None

    def select(self, where: Sql) -> Sql:
        return Sql("SELECT " + self.columns + " FROM " + self.name + " r WHERE") + where


@cache
def names_of(columns: str) -> tuple[str, ...]:
    """The names of what is selected, for rows that come without."""
    flat, depth = "", 0
    for letter in columns:
        depth += (letter == "(") - (letter == ")")
        flat += letter if depth == 0 else ""
    return tuple(part.split()[-1].rpartition(".")[2] for part in flat.split(","))
