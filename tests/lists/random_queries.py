"""Random queries of a data set: every list parameter, alone and with others, as any role."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, timezone
from random import Random
from urllib.parse import unquote

from tests.lists.dataset import EPOCH, ROLES, STATUSES, Query, World
from tests.lists.event_model import DATES
from tests.lists.random_datasets import PASSWORDS, POINTS, STEPS
from tests.lists.search_words import SOUGHT
from tests.lists.zone_model import DAY, SECOND, wall_of

type Params = list[tuple[str, str]]
type Ingredient = Callable[[Random, World], Params]

SWITCHES = ("true", "false", "1", "0", "Yes", "off")
FAR = ("0002-01-01", "1500-02-28 23:59:59", "1969-12-31", "2400-02-29", "9990-12-31")
# Those who see more ask more.
ASKING = (*ROLES, "author", "editor", "editor", "editor", "administrator")
# No record of any data set has this ID.
UNKNOWN = "4711"


def make_event_query(seed: int, world: World, ingredients: Sequence[Ingredient]) -> Query:
    """None to four parameters or groups of them, a role, a page, and how far the list is read."""
    rng = Random(seed)
    params = mix(rng, world, rng.sample(ingredients, k=rng.choice((0, 1, 1, 1, 2, 2, 3, 4))))
    walk = rng.choice(("one", "one", "pages", "cursors"))
    return Query("events", rng.choice(ASKING), (*params, *make_page(rng, walk)), walk)


def mix(rng: Random, world: World, ingredients: Sequence[Ingredient]) -> Params:
    """The parameters of all of them; where two would send the same one, only those of the first."""
    params: Params = []
    for make in ingredients:
        names = {name.removesuffix("[]") for name, _ in params}
        params += [pair for pair in make(rng, world) if pair[0].removesuffix("[]") not in names]
    return params


def make_page(rng: Random, walk: str) -> Params:
    if walk != "one":
        return rng.choice(([], [("per_page", "3")], [("per_page", "7")], [("per_page", "17")]))
    return [
        *rng.choice(([], [("per_page", "1")], [("per_page", "3")], [("per_page", "60")])),
        *rng.choice(([], [], [("page", "1")], [("page", "2")], [("page", "5")])),
    ]


def one(name: str, values: Sequence[str]) -> Ingredient:
    return lambda rng, _: [(name, rng.choice(values))]


def listed(rng: Random, name: str, values: Sequence[str]) -> Params:
    """One to four entries of a list, in one of the ways in which a list can be sent."""
    entries = rng.choices(values, k=rng.randint(1, 4))
    spelling = rng.randint(0, 5)
    if spelling == 0:
        return [(f"{name}[]", entry) for entry in entries]
    if spelling == 1:
        return [(name, entry) for entry in entries]
    return [(name, (", " if spelling == 2 else ",").join(entries))]


# Dates ---------------------------------------------------------------------------------------


def choose_instant(rng: Random, world: World) -> datetime:
    """Where it matters: where an event starts or ends, at an instant of the data set, or a second beside."""
    if world.events and rng.random() < 0.5:
        event = rng.choice(world.events)
        return rng.choice((event.start, event.end)) + rng.choice((-1, -1, 0, 0, 1)) * SECOND
    return rng.choice(world.anchors) + rng.choice(STEPS)


def make_date(rng: Random, world: World) -> str:
    """An instant in one of the ways to write it; sometimes one that is centuries away."""
    if rng.random() < 0.15:
        return rng.choice(FAR)
    instant = choose_instant(rng, world)
    wall = wall_of(instant, world.zone)
    spellings = (
        wall.date().isoformat(),
        wall.date().isoformat(),
        wall.isoformat(" "),
        wall.isoformat(" "),
        wall.isoformat("T"),
        instant.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        instant.astimezone(timezone(timedelta(hours=-9.5))).isoformat(),
        f"@{(instant - EPOCH) // SECOND}",
    )
    return rng.choice(spellings)


def make_window(rng: Random, world: World) -> Params:
    """One to three limits, perhaps contradicting each other, exactly or by whole days."""
    limits = [(name, make_date(rng, world)) for name in rng.sample(DATES, k=rng.choice((1, 1, 1, 1, 2, 2, 3)))]
    return [
        *limits,
        *rng.choice(([], [("strict_dates", "true")], [("strict_dates", "1")], [("strict_dates", "Yes")])),
    ]


def make_narrow_window(rng: Random, world: World) -> Params:
    """A window of a few seconds, exactly, in the words of one of the pairs."""
    instant = choose_instant(rng, world)
    begin, end = (_stamp(instant + n * SECOND, world) for n in (0, rng.randint(-2, 3)))
    first, last = rng.choice(
        (("start_date", "end_date"), ("starts_after", "ends_before"), ("overlaps_from", "overlaps_to"),
         ("ends_after", "starts_before"), ("starts_after", "starts_before"))
    )  # fmt: skip
    return [(first, begin), (last, end), ("strict_dates", "true")]


def _stamp(instant: datetime, world: World) -> str:
    return wall_of(instant, world.zone).isoformat(" ")


def make_no_window(_: Random, __: World) -> Params:
    """A limit that limits nothing: the default window is gone."""
    return [("ends_after", "0002-01-01")]


# Words ---------------------------------------------------------------------------------------


def make_search(rng: Random, __: World) -> Params:
    """Words and phrases, wanted and unwanted, perhaps with a quotation mark that nothing closes."""
    parts = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        words = " ".join(rng.choices(SOUGHT, k=rng.choice((1, 1, 2))))
        parts.append(rng.choice(("", "", "-")) + rng.choice(("{}", "{}", '"{}"', "“{}”", '"{}')).format(words))
    return [("search", rng.choice((" ", "  ")).join(parts))]


# Events --------------------------------------------------------------------------------------


def make_circle(rng: Random, _: World) -> Params:
    """A point, perhaps with a radius and the order by distance; sometimes half a point, which is refused."""
    latitude, longitude = rng.choice((*POINTS, (52.3906, 13.0645), (0.0, -30.0)))
    point = [("geoloc_lat", f"{latitude}"), ("geoloc_lng", f"{longitude}")]
    if rng.random() < 0.05:
        point.pop(rng.randint(0, 1))
    radius = rng.choice(("", "0.001", "700", "6500.5", "19000"))
    order = rng.choice(([], [("orderby", "distance")], [("orderby", "distance"), ("order", "desc")]))
    return [*point, *([("geoloc_radius", radius)] if radius else []), *order]


def make_statuses(rng: Random, _: World) -> Params:
    if rng.random() < 0.3:
        return [("status", rng.choice(("publish", "publish", "", "any")))]
    return listed(rng, "status", ("publish",) * 3 + STATUSES)


def make_ids(name: str, kind: str) -> Ingredient:
    """Records by their ID; seldom one that does not exist."""

    def make(rng: Random, world: World) -> Params:
        known = [str(record.id) for record in getattr(world, kind)]
        return listed(rng, name, known if known and rng.random() < 0.9 else [*known, UNKNOWN])

    return make


def make_terms(kind: str) -> Ingredient:
    """Terms by ID and by slug, the latter also decoded and in capitals."""

    def make(rng: Random, world: World) -> Params:
        known = [name for t in world.terms(kind) for name in (str(t.id), t.slug, unquote(t.slug).upper())]
        return listed(rng, kind, known if known and rng.random() < 0.9 else [*known, UNKNOWN])

    return make


def make_parent(rng: Random, world: World) -> Params:
    return [("post_parent", rng.choice([str(event.id) for event in world.events[:4]] * 4 + [UNKNOWN]))]


FEATURED, TICKETED, LOCATED = (one(name, SWITCHES) for name in ("featured", "ticketed", "geoloc"))
ORDER = one("order", ("asc", "desc", "DESC"))
ORDERBY = one("orderby", ("start_date", "end_date", "title", "date", "modified", "distance"))
PASSWORD = one("password", ("wrong", *PASSWORDS))

# Which parameters are mixed. Where one stands twice, it is chosen twice as often.
IN_TIME: tuple[Ingredient, ...] = (
    make_window,
    make_window,
    make_narrow_window,
    FEATURED,
    ORDER,
    ORDERBY,
    make_statuses,
)
BY_WORDS: tuple[Ingredient, ...] = (make_search, make_search, make_search, make_no_window, make_statuses, PASSWORD)
IN_PLACES: tuple[Ingredient, ...] = (
    make_circle, make_circle, make_no_window, make_window, LOCATED, make_ids("venue", "venues"),
)  # fmt: skip
ALL_TOGETHER: tuple[Ingredient, ...] = (
    *IN_TIME,
    *BY_WORDS,
    *IN_PLACES,
    make_terms("categories"),
    make_terms("tags"),
    make_ids("organizer", "organizers"),
    make_ids("include", "events"),
    make_parent,
    TICKETED,
)


# Totals --------------------------------------------------------------------------------------


def make_total_query(seed: int, world: World) -> Query:
    """Only dates and statuses, by those whose total is summed up from the counters of days."""
    rng = Random(seed)
    window = rng.choice((make_window, make_window, make_wide_window, make_narrow_window))(rng, world)
    role = rng.choice(("anonymous", "editor"))
    statuses = make_statuses(rng, world) if role == "editor" and rng.random() < 0.7 else []
    return Query("events", role, (*window, *statuses, ("per_page", "1")))


def make_wide_window(rng: Random, world: World) -> Params:
    """A pair of limits that are midnights of UTC, or days, months or centuries apart, in any order."""
    instant = rng.choice(world.anchors)
    midnight = instant.replace(hour=0, minute=0, second=0)
    apart = rng.choice((0, 1, 30, 400, 40_000, -1, -400)) * DAY
    begin, end = midnight + rng.choice(STEPS[:5]), midnight + apart + rng.choice(STEPS[:5])
    names = rng.choice(
        (("start_date", "end_date"), ("overlaps_from", "overlaps_to"), ("ends_after", "starts_before"))
    )
    strict = [("strict_dates", "true")] if rng.random() < 0.8 else []
    return [(names[0], _stamp(begin, world)), (names[1], _stamp(end, world)), *strict]
