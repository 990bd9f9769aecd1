"""A data set as plain objects. The model of the lists reads these and nothing else: no SQL, no server."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

# The people of every data set: who they are and what they may do.
USERS = {"subscriber": 1, "contributor": 2, "author": 3, "editor": 4, "administrator": 5}
ROLES = ("anonymous", *USERS)
STATUSES = ("publish", "draft", "pending", "private", "future", "trash")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Post:
    """What events, venues and organizers have in common. `before_trash` is a trashed record's old status."""

    id: int
    author: int = USERS["editor"]
    status: str = "publish"
    before_trash: str = ""
    published: datetime = EPOCH
    modified: datetime = EPOCH
    title: str = "x"


@dataclass(frozen=True)
class Place(Post):
    """A venue, or an organizer, who has no coordinates. `texts` by the parameter that sets each."""

    texts: tuple[tuple[str, str], ...] = ()
    point: tuple[float, float] | None = None


@dataclass(frozen=True)
class Term:
    """A category or a tag; only categories have parents."""

    id: int
    name: str
    slug: str
    description: str = ""
    parent: int | None = None


@dataclass(frozen=True)
class Event(Post):
    excerpt: str = ""
    # The words of the description; `markup` says how they are wrapped when it is sent.
    description: str = ""
    markup: str = ""
    zone: str = "UTC"
    all_day: bool = False
    start_wall: datetime = datetime(2027, 1, 1)
    end_wall: datetime = datetime(2027, 1, 1)
    start: datetime = EPOCH
    end: datetime = EPOCH
    hidden: bool = False
    featured: bool = False
    password: str = ""
    ticket_url: str = ""
    parent: int | None = None
    venues: tuple[int, ...] = ()
    organizers: tuple[int, ...] = ()
    categories: tuple[int, ...] = ()
    tags: tuple[int, ...] = ()


@dataclass(frozen=True)
class World:
    """One site with all its records. `anchors` are the instants that its events and queries crowd around."""

    now: datetime
    zone: str = "UTC"
    per_page: int = 12
    anchors: tuple[datetime, ...] = ()
    venues: tuple[Place, ...] = ()
    organizers: tuple[Place, ...] = ()
    categories: tuple[Term, ...] = ()
    tags: tuple[Term, ...] = ()
    events: tuple[Event, ...] = ()

    def places(self, kind: str) -> tuple[Place, ...]:
        return self.venues if kind == "venues" else self.organizers

    def terms(self, kind: str) -> tuple[Term, ...]:
        return self.categories if kind == "categories" else self.tags

    def event(self, event_id: int) -> Event | None:
        return next((event for event in self.events if event.id == event_id), None)


def links_of(event: Event, kind: str) -> tuple[int, ...]:
    found: tuple[int, ...] = getattr(event, kind)
    return found


@dataclass(frozen=True)
class Query:
    """One GET of a list: who asks, and the parameters as they go over the wire.

    `walk` says how far: one page, all pages by their `next_rest_url`, or all pages by `next_cursor`.
    """

    kind: str
    role: str = "anonymous"
    params: tuple[tuple[str, str], ...] = ()
    walk: str = "one"

    def last(self, name: str) -> str | None:
        """The value of a parameter that has one; sent twice, the later counts."""
        found = [value for sent, value in self.params if sent == name]
        return found[-1] if found else None

    def all(self, name: str) -> list[str] | None:
        """The entries of a list parameter: `a=1,2`, `a=1&a=2` and `a[]=1&a[]=2` are the same."""
        found = [value for sent, value in self.params if sent in (name, f"{name}[]")]
        return [entry.strip() for value in found for entry in value.split(",")] if found else None

    def is_on(self, name: str) -> bool | None:
        """A switch; None where it was not sent."""
        value = self.last(name)
        return None if value is None else value.lower() in ("true", "1", "yes", "on")


class Refused(Exception):
    """The query is to be answered with 400 that names one of these parameters."""

    def __init__(self, *params: str) -> None:
        super().__init__(*params)
        self.params = params


def gather[R](
    parts: Iterable[Callable[[World, Query], list[Callable[[R], bool]]]], world: World, query: Query
) -> list[Callable[[R], bool]]:
    """The conditions of all parts of a query; all that is refused is gathered too."""
    conditions: list[Callable[[R], bool]] = []
    refused: list[str] = []
    for part in parts:
        try:
            conditions += part(world, query)
        except Refused as refusal:
            refused += refusal.params
    if refused:
        raise Refused(*refused)
    return conditions
