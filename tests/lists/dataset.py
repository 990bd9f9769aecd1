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
    status_before_trash: str = ""
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
    start_local: datetime = datetime(2027, 1, 1)
    end_local: datetime = datetime(2027, 1, 1)
    start: datetime = EPOCH
    end: datetime = EPOCH
    hidden: bool = False
    featured: bool = False
    password: str = ""
    ticket_url: str = ""
    venues: tuple[int, ...] = ()
    organizers: tuple[int, ...] = ()
    categories: tuple[int, ...] = ()
    tags: tuple[int, ...] = ()


@dataclass(frozen=True)
class Dataset:
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


def linked_ids(event: Event, kind: str) -> tuple[int, ...]:
    ids: tuple[int, ...] = getattr(event, kind)
    return ids


@dataclass(frozen=True)
class Query:
    """One GET of a list: who asks, and the parameters as they go over the wire.

    `walk` says how far: one page, all pages by their `next_rest_url`, or all pages by `next_cursor`.
    """

    kind: str
    role: str = "anonymous"
    params: tuple[tuple[str, str], ...] = ()
    paging: str = "one"

    def last_value(self, name: str) -> str | None:
        """The value of a parameter that has one; sent twice, the later counts."""
        values = [value for param, value in self.params if param == name]
        return values[-1] if values else None

    def all_values(self, name: str) -> list[str] | None:
        """The entries of a list parameter: `a=1,2`, `a=1&a=2` and `a[]=1&a[]=2` are the same."""
        values = [value for param, value in self.params if param in (name, f"{name}[]")]
        return [entry.strip() for value in values for entry in value.split(",")] if values else None

    def boolean(self, name: str) -> bool | None:
        """A switch; None where it was not sent."""
        value = self.last_value(name)
        return None if value is None else value.lower() in ("true", "1", "yes", "on")


class RejectedQuery(Exception):
    """The query is to be answered with 400 that names one of these parameters."""

    def __init__(self, *params: str) -> None:
        super().__init__(*params)
        self.params = params


def collect_conditions[R](
    builders: Iterable[Callable[[Dataset, Query], list[Callable[[R], bool]]]], dataset: Dataset, query: Query
) -> list[Callable[[R], bool]]:
    """The conditions of all parts of a query; all that is refused is gathered too."""
    conditions: list[Callable[[R], bool]] = []
    rejected: list[str] = []
    for build in builders:
        try:
            conditions += build(dataset, query)
        except RejectedQuery as error:
            rejected += error.params
    if rejected:
        raise RejectedQuery(*rejected)
    return conditions
