"""Random data sets: events crowd around a few instants, share titles and dates, and differ in all that lists ask.

Hypothesis draws one number per record and per query, and everything about it follows from that number:
what fails shrinks to few records and few queries.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from urllib.parse import quote

from tests.lists.dataset import USERS, Dataset, Event, Place, Post, Term
from tests.lists.search_words import WORDS
from tests.lists.zone_model import DAY, SECOND, day_bounds, event_bounds, offset_changes, to_local, two_years_after

ZONES = (
    "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kolkata",
    "America/St_Johns", "Pacific/Kiritimati", "UTC-3:30", "America/Havana",
)  # fmt: skip
# An ordinary day, midnights of several zones, changes of the clock, a leap day, a day that Apia left out,
# and one that began twice in St John's.
START_TIMES = tuple(
    datetime.fromisoformat(text).replace(tzinfo=UTC)
    for text in (
        "2026-11-15 12:34:56", "2026-12-31 23:59:59", "2027-07-01 00:00:00", "2026-06-30 22:00:00",
        "2027-03-28 00:59:59", "2027-10-31 01:00:00", "2027-03-14 06:59:59", "2027-11-07 06:00:00",
        "2027-04-03 15:00:00", "2028-02-29 12:00:00", "2011-12-30 09:59:59", "2006-10-29 02:31:00",
    )
)  # fmt: skip
# Latitude and longitude. The first two differ by metres; others lie at the date line, near a pole, far away.
POINTS = (
    (52.5200066, 13.404954), (52.5200661, 13.404945), (52.4009, 13.0591), (48.2081743, 16.3738189),
    (40.7127753, -74.0059728), (-17.8134, 179.9991), (-17.7991, -179.9987), (89.93, 41.7),
)  # fmt: skip
PASSWORDS = ("sesame", "Sesame", "päss wörd")
MARKUPS = ("", "", "<p>{}</p>", "<b>{}</b>", "{}\n\n")
SLUGS = ("alpha", "beta", "9", "ёлка", "gamma_x", "alpha-2", "2027", "x")
AGES = tuple(timedelta(seconds=n) for n in (0, 1, 86400, 40_000_000))
OFFSETS = tuple(n * SECOND for n in (0, 0, 0, 1, -1, 3600, -3600, 86400, -86400, 12345, -54321))
VENUE_TEXTS = ("description", "address", "city", "country", "zip", "phone")
ORGANIZER_TEXTS = ("description", "phone")


def make_dataset(seed: int, event_seeds: Sequence[int]) -> Dataset:
    rng = Random(seed)
    now, zone = rng.choice(START_TIMES), rng.choice(ZONES)
    venues = range(1, 1 + rng.randint(0, 6))
    organizers = range(venues.stop, venues.stop + rng.randint(0, 4))
    categories = _make_terms(rng, 1, nested=True)
    dataset = Dataset(
        now,
        zone,
        per_page=rng.choice((12, 5, 50)),
        anchors=_random_anchors(rng, now, zone),
        venues=tuple(_make_place(rng, n, now, VENUE_TEXTS) for n in venues),
        organizers=tuple(_make_place(rng, n, now, ORGANIZER_TEXTS) for n in organizers),
        categories=categories,
        tags=_make_terms(rng, len(categories) + 1, nested=False),
    )
    for event_id, event_seed in enumerate(event_seeds, organizers.stop):
        dataset = replace(dataset, events=(*dataset.events, _make_event(Random(event_seed), dataset, event_id)))
    return dataset


def _random_anchors(rng: Random, now: datetime, zone: str) -> tuple[datetime, ...]:
    """Now, today's borders, midnight in UTC, the end of the default window, changes of the clock, two others."""
    today = to_local(now, zone).date()
    first, last = day_bounds(today, zone)
    far = day_bounds(two_years_after(today), zone)[1]
    midnight = now.replace(hour=0, minute=0, second=0)
    others = [now + rng.randint(-400, 800) * DAY, midnight + rng.randint(-40, 40) * DAY]
    return (now, first, last, far, midnight, *others, *offset_changes(zone, now.year))


def _make_post[P: Post](rng: Random, empty: P, now: datetime) -> P:
    """Author, status, dates and title; a publication date in the future decides about the status."""
    modified = now - rng.choice(AGES)
    published = rng.choice([modified - age for age in AGES] * 4 + [now, now + SECOND, now + 30 * DAY])
    status = rng.choice(("publish",) * 8 + ("draft", "pending", "private", "future"))
    if status in ("publish", "future"):
        status = "future" if published > modified else "publish"
    trashed = rng.random() < 0.1
    return replace(
        empty,
        author=rng.choice(list(USERS.values())),
        status="trash" if trashed else status,
        status_before_trash=status if trashed else "",
        published=published,
        modified=modified,
        title=" ".join(rng.choices(WORDS, k=rng.randint(1, 2))),
    )


def _make_place(rng: Random, place_id: int, now: datetime, names: Sequence[str]) -> Place:
    texts = tuple((name, _random_text(rng, 1)) for name in names)
    point = rng.choice((None, *POINTS)) if names is VENUE_TEXTS else None
    return _make_post(rng, Place(place_id, texts=texts, point=point), now)


def _random_text(rng: Random, max_words: int) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(0, max_words)))


def _make_terms(rng: Random, first_id: int, *, nested: bool) -> tuple[Term, ...]:
    """Names in any script, some of them equal but for accents; slugs that are numbers or need encoding."""
    terms: list[Term] = []
    for term_id, slug in enumerate(SLUGS[: rng.randint(0, len(SLUGS))], first_id):
        parents = [None, *(term.id for term in terms)] if nested else [None]
        name = rng.choice(WORDS) + rng.choice(("", " é", " E"))
        terms.append(Term(term_id, name, quote(slug).lower(), _random_text(rng, 1), rng.choice(parents)))
    return tuple(terms)


def _make_event(rng: Random, dataset: Dataset, event_id: int) -> Event:
    post = _make_post(rng, Event(event_id), dataset.now)
    return replace(
        with_random_times(rng, dataset, post),
        excerpt=_random_text(rng, 1),
        description=_random_text(rng, 2),
        markup=rng.choice(MARKUPS),
        hidden=rng.random() < 0.12,
        featured=rng.random() < 0.4,
        password=rng.choice(PASSWORDS) if rng.random() < 0.2 else "",
        ticket_url="https://tickets.example/" if rng.random() < 0.4 else "",
        venues=_random_ids(rng, [venue.id for venue in dataset.venues]),
        organizers=_random_ids(rng, [organizer.id for organizer in dataset.organizers]),
        categories=_random_ids(rng, [term.id for term in dataset.categories]),
        tags=_random_ids(rng, [term.id for term in dataset.tags]),
    )


def _random_ids(rng: Random, ids: list[int]) -> tuple[int, ...]:
    return tuple(rng.sample(ids, k=rng.randint(0, min(3, len(ids)))))


def with_random_times(rng: Random, dataset: Dataset, event: Event) -> Event:
    """The event starts or ends at, or a little beside, one of the instants of the data set."""
    zone, all_day = rng.choice((dataset.zone, *ZONES)), rng.random() < 0.25
    instant, length = rng.choice(dataset.anchors) + rng.choice(OFFSETS), _random_duration(rng)
    start = instant - length if rng.random() < 0.5 else instant
    start_wall, end_wall = to_local(start, zone), to_local(start + length, zone)
    starts, ends = event_bounds(start_wall, end_wall, zone, all_day)
    if ends < starts:
        # The wall time of the end is shown twice, and the first of the two is before the start.
        end_wall, ends = start_wall, starts
    return replace(
        event, zone=zone, all_day=all_day, start_local=start_wall, end_local=end_wall, start=starts, end=ends
    )


def _random_duration(rng: Random) -> timedelta:
    """From nothing to centuries: log-uniform, at the edges of the length classes, or in whole days."""
    category = rng.choice(("none", "any", "any", "any", "edge", "edge", "days", "age"))
    if category == "none":
        return rng.randint(0, 1) * SECOND
    if category == "edge":
        return timedelta(seconds=3600 * 2 ** rng.randint(0, 18) + rng.randint(-1, 1))
    if category == "days":
        return rng.randint(1, 400) * DAY - rng.randint(0, 1) * SECOND
    if category == "age":
        return rng.randint(1, 1500) * 365 * DAY
    return timedelta(seconds=int(2 ** rng.uniform(0, 28)))
