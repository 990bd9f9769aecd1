"""The requests whose speed is measured, and the limits that the project set itself."""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlencode

from bench.stage import World

LIST = "default list"
BY_ID = "one event by ID"
NOT_CHANGED = "default list, 304"
WRITE = "a write (PATCH of an event)"
RARE, COMMON = "kookaburra", "the"


@dataclass(frozen=True)
class Case:
    name: str
    path: Callable[[World], str]
    quick: bool = False  # measured in a quick run too


def _list(**values: object) -> str:
    return f"/events?{urlencode(values)}"


def _week(world: World) -> str:
    first, last = world.week
    return _list(start_date=first, end_date=last)


CASES = (
    Case(LIST, lambda _: "/events", quick=True),
    Case("one category", lambda world: _list(categories=world.category_id)),
    Case("one venue", lambda world: _list(venue=world.venue_id)),
    Case("a week", _week),
    Case("search, rare word", lambda _: _list(search=RARE)),
    Case("search, common word", lambda _: _list(search=COMMON)),
    Case("page 40", lambda _: _list(page=40)),
    Case(BY_ID, lambda world: f"/events/{world.event_id}", quick=True),
    Case("one event by slug", lambda world: world.by_slug),
    Case("venues", lambda _: "/venues"),
    Case("tags", lambda _: "/tags"),
    Case(NOT_CHANGED, lambda _: "/events", quick=True),
    Case(WRITE, lambda world: f"/events/{world.event_id}"),
)


@dataclass(frozen=True)
class Limit:
    """`most` or `least` of a figure. Quick runs share the machine with other tests and are let off lightly."""

    name: str
    figure: float
    most: float | None = None
    least: float | None = None

    def is_kept(self) -> bool:
        return self.figure <= self.most if self.most is not None else self.figure >= (self.least or 0.0)

    def eased(self, factor: float) -> "Limit":
        return Limit(
            self.name,
            self.figure,
            self.most * factor if self.most is not None else None,
            self.least / factor if self.least is not None else None,
        )


@dataclass(frozen=True)
class Reference:
    """Lowest CPU per request, in milliseconds, of the existing service at 1,000 and at 10,000 events."""

    name: str
    path: Callable[[World, str], str]
    at_1000: float
    at_10000: float


REFERENCES = (
    Reference("default list", lambda _, __: _list(per_page=12), 105, 360),
    Reference("one event", lambda world, _: f"/events/{world.event_id}", 68, 79),
    Reference("search, 2 % of events match", lambda _, word: _list(search=word), 181, 753),
    Reference("page 40", lambda _, __: _list(per_page=12, page=40), 166, 358),
    Reference("venues", lambda _, __: "/venues", 73, 81),
)
