"""Random queries of a data set: every list parameter, alone and with others, as any role."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, timezone
from random import Random
from urllib.parse import unquote

from tests.lists.dataset import EPOCH, ROLES, STATUSES, Dataset, Query
from tests.lists.event_model import DATE_PARAMS
from tests.lists.random_datasets import OFFSETS, PASSWORDS, POINTS
from tests.lists.search_words import SEARCH_WORDS
from tests.lists.zone_model import DAY, SECOND, to_local

type Params = list[tuple[str, str]]
type ParamGenerator = Callable[[Random, Dataset], Params]

BOOLEANS = ("true", "false", "1", "0", "Yes", "off")
FAR_DATES = ("0002-01-01", "1500-02-28 23:59:59", "1969-12-31", "2400-02-29", "9990-12-31")
# Roles with more permissions send more requests.
QUERY_ROLES = (*ROLES, "author", "editor", "editor", "editor", "administrator")
# No record of any data set has this ID.
UNKNOWN_ID = "4711"


def make_event_query(seed: int, dataset: Dataset, generators: Sequence[ParamGenerator]) -> Query:
    """None to four parameters or groups of them, a role, a page, and how far the list is read."""
    rng = Random(seed)
    params = combine_params(rng, dataset, rng.sample(generators, k=rng.choice((0, 1, 1, 1, 2, 2, 3, 4))))
    walk = rng.choice(("one", "one", "pages", "cursors"))
    return Query("events", rng.choice(QUERY_ROLES), (*params, *make_page(rng, walk)), walk)


def combine_params(rng: Random, dataset: Dataset, generators: Sequence[ParamGenerator]) -> Params:
    """The parameters of all of them; where two would send the same one, only those of the first."""
    params: Params = []
    for generate in generators:
        names = {name.removesuffix("[]") for name, _ in params}
        params += [pair for pair in generate(rng, dataset) if pair[0].removesuffix("[]") not in names]
    return params


def make_page(rng: Random, walk: str) -> Params:
    if walk != "one":
        return rng.choice(([], [("per_page", "3")], [("per_page", "7")], [("per_page", "17")]))
    return [
        *rng.choice(([], [("per_page", "1")], [("per_page", "3")], [("per_page", "60")])),
        *rng.choice(([], [], [("page", "1")], [("page", "2")], [("page", "5")])),
    ]


def single_param(name: str, values: Sequence[str]) -> ParamGenerator:
    return lambda rng, _: [(name, rng.choice(values))]


def list_param(rng: Random, name: str, values: Sequence[str]) -> Params:
    """One to four entries of a list, in one of the ways in which a list can be sent."""
    entries = rng.choices(values, k=rng.randint(1, 4))
    spelling = rng.randint(0, 5)
    if spelling == 0:
        return [(f"{name}[]", entry) for entry in entries]
    if spelling == 1:
        return [(name, entry) for entry in entries]
    return [(name, (", " if spelling == 2 else ",").join(entries))]


# Dates ---------------------------------------------------------------------------------------


def choose_instant(rng: Random, dataset: Dataset) -> datetime:
    """Where it matters: where an event starts or ends, at an instant of the data set, or a second beside."""
    if dataset.events and rng.random() < 0.5:
        event = rng.choice(dataset.events)
        return rng.choice((event.start, event.end)) + rng.choice((-1, -1, 0, 0, 1)) * SECOND
    return rng.choice(dataset.anchors) + rng.choice(OFFSETS)


def make_date(rng: Random, dataset: Dataset) -> str:
    """An instant in one of the ways to write it; sometimes one that is centuries away."""
    if rng.random() < 0.15:
        return rng.choice(FAR_DATES)
    instant = choose_instant(rng, dataset)
    wall = to_local(instant, dataset.zone)
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


def make_window(rng: Random, dataset: Dataset) -> Params:
    """One to three limits, perhaps contradicting each other, exactly or by whole days."""
    limits = [
        (name, make_date(rng, dataset)) for name in rng.sample(DATE_PARAMS, k=rng.choice((1, 1, 1, 1, 2, 2, 3)))
    ]
    return [
        *limits,
        *rng.choice(([], [("strict_dates", "true")], [("strict_dates", "1")], [("strict_dates", "Yes")])),
    ]


def make_narrow_window(rng: Random, dataset: Dataset) -> Params:
    """A window of a few seconds, exactly, in the words of one of the pairs."""
    instant = choose_instant(rng, dataset)
    start, end = (_format_local(instant + n * SECOND, dataset) for n in (0, rng.randint(-2, 3)))
    first, last = rng.choice(
        (("start_date", "end_date"), ("starts_after", "ends_before"), ("overlaps_from", "overlaps_to"),
         ("ends_after", "starts_before"), ("starts_after", "starts_before"))
    )  # fmt: skip
    return [(first, start), (last, end), ("strict_dates", "true")]


def _format_local(instant: datetime, dataset: Dataset) -> str:
    return to_local(instant, dataset.zone).isoformat(" ")


def make_unlimited_window(_: Random, __: Dataset) -> Params:
    """A limit that limits nothing: the default window is gone."""
    return [("ends_after", "0002-01-01")]


# Words ---------------------------------------------------------------------------------------


def make_search(rng: Random, __: Dataset) -> Params:
    """Words and phrases, wanted and unwanted, perhaps with a quotation mark that nothing closes."""
    parts = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        words = " ".join(rng.choices(SEARCH_WORDS, k=rng.choice((1, 1, 2))))
        parts.append(rng.choice(("", "", "-")) + rng.choice(("{}", "{}", '"{}"', "“{}”", '"{}')).format(words))
    return [("search", rng.choice((" ", "  ")).join(parts))]


# Events --------------------------------------------------------------------------------------


def make_distance_filter(rng: Random, _: Dataset) -> Params:
    """A point, perhaps with a radius and the order by distance; sometimes half a point, which is refused."""
    latitude, longitude = rng.choice((*POINTS, (52.3906, 13.0645), (0.0, -30.0)))
    point = [("geoloc_lat", f"{latitude}"), ("geoloc_lng", f"{longitude}")]
    if rng.random() < 0.05:
        point.pop(rng.randint(0, 1))
    radius = rng.choice(("", "0.001", "700", "6500.5", "19000"))
    order = rng.choice(([], [("orderby", "distance")], [("orderby", "distance"), ("order", "desc")]))
    return [*point, *([("geoloc_radius", radius)] if radius else []), *order]


def make_statuses(rng: Random, _: Dataset) -> Params:
    if rng.random() < 0.3:
        return [("status", rng.choice(("publish", "publish", "", "any")))]
    return list_param(rng, "status", ("publish",) * 3 + STATUSES)


def make_ids(name: str, kind: str) -> ParamGenerator:
    """Draw IDs of records, rarely one that does not exist."""

    def make(rng: Random, dataset: Dataset) -> Params:
        known = [str(record.id) for record in getattr(dataset, kind)]
        return list_param(rng, name, known if known and rng.random() < 0.9 else [*known, UNKNOWN_ID])

    return make


def make_terms(kind: str) -> ParamGenerator:
    """Terms by ID and by slug, the latter also decoded and in capitals."""

    def make(rng: Random, dataset: Dataset) -> Params:
        known = [name for t in dataset.terms(kind) for name in (str(t.id), t.slug, unquote(t.slug).upper())]
        return list_param(rng, kind, known if known and rng.random() < 0.9 else [*known, UNKNOWN_ID])

    return make


def make_parent(rng: Random, dataset: Dataset) -> Params:
    return [("post_parent", rng.choice([str(event.id) for event in dataset.events[:4]] * 4 + [UNKNOWN_ID]))]


FEATURED, TICKETED, LOCATED = (single_param(name, BOOLEANS) for name in ("featured", "ticketed", "geoloc"))
ORDER = single_param("order", ("asc", "desc", "DESC"))
ORDERBY = single_param("orderby", ("start_date", "end_date", "title", "date", "modified", "distance"))
PASSWORD = single_param("password", ("wrong", *PASSWORDS))

# Which parameters are mixed. Where one stands twice, it is chosen twice as often.
TIME_PARAMS: tuple[ParamGenerator, ...] = (
    make_window,
    make_window,
    make_narrow_window,
    FEATURED,
    ORDER,
    ORDERBY,
    make_statuses,
)
SEARCH_PARAMS: tuple[ParamGenerator, ...] = (
    make_search,
    make_search,
    make_search,
    make_unlimited_window,
    make_statuses,
    PASSWORD,
)
PLACE_PARAMS: tuple[ParamGenerator, ...] = (
    make_distance_filter, make_distance_filter, make_unlimited_window, make_window, LOCATED,
    make_ids("venue", "venues"),
)  # fmt: skip
ALL_PARAMS: tuple[ParamGenerator, ...] = (
    *TIME_PARAMS,
    *SEARCH_PARAMS,
    *PLACE_PARAMS,
    make_terms("categories"),
    make_terms("tags"),
    make_ids("organizer", "organizers"),
    make_ids("include", "events"),
    make_parent,
    TICKETED,
)


# Totals --------------------------------------------------------------------------------------


def make_total_query(seed: int, dataset: Dataset) -> Query:
    """Only dates, statuses and one linked record, by those whose total is summed up from the counters of days."""
    rng = Random(seed)
    window = rng.choice((make_window, make_window, make_wide_window, make_narrow_window))(rng, dataset)
    role = rng.choice(("anonymous", "editor"))
    statuses = make_statuses(rng, dataset) if role == "editor" and rng.random() < 0.7 else []
    link = make_single_link(rng, dataset) if rng.random() < 0.6 else []
    return Query("events", role, (*window, *statuses, *link, ("per_page", "1")))


def make_single_link(rng: Random, dataset: Dataset) -> Params:
    name, kind = rng.choice(
        (("venue", "venues"), ("organizer", "organizers"), ("categories", "categories"), ("tags", "tags"))
    )
    ids = [str(record.id) for record in getattr(dataset, kind)]
    return [(name, rng.choice(ids))] if ids else []


def make_wide_window(rng: Random, dataset: Dataset) -> Params:
    """A pair of limits that are midnights of UTC, or days, months or centuries apart, in any order."""
    instant = rng.choice(dataset.anchors)
    midnight = instant.replace(hour=0, minute=0, second=0)
    distance = rng.choice((0, 1, 30, 400, 40_000, -1, -400)) * DAY
    start, end = midnight + rng.choice(OFFSETS[:5]), midnight + distance + rng.choice(OFFSETS[:5])
    names = rng.choice(
        (("start_date", "end_date"), ("overlaps_from", "overlaps_to"), ("ends_after", "starts_before"))
    )
    strict = [("strict_dates", "true")] if rng.random() < 0.8 else []
    return [(names[0], _format_local(start, dataset)), (names[1], _format_local(end, dataset)), *strict]
