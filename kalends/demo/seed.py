"""`kalends seed`: fills a site with made-up records, the same ones for the same seed.

Venues, organizers and terms are added one by one like everybody's. Events come in chunks by COPY;
what is derived of them is derived by the functions that the interface uses too.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from random import Random
from typing import Any, Final

from kalends.core import times
from kalends.core.errors import InvalidValue
from kalends.core.params import read_params
from kalends.core.sanitize import fold
from kalends.core.slugs import make_slug
from kalends.demo.dates import DAYS_BACK, plan_days
from kalends.demo.events import CHUNK, EVENT_COLUMNS, LINK_COLUMNS, Chunk, EventMaker, Place
from kalends.demo.places import LANGUAGES, TOWNS, Town
from kalends.demo.texts import Chance, Writer, fill_sentence, pick
from kalends.demo.words import AUDIENCES, MORE_TAGS, THEMES
from kalends.kinds import BY_NAME
from kalends.kinds.kind import Actor
from kalends.operations.context import Call
from kalends.operations.writes import add_record
from kalends.store import bulk_load
from kalends.store.bulk_load import BulkLoad, ProgressCallback
from kalends.store.sites import Site

MOST_EVENTS: Final = 20_000_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """How many of each; None lets the number of events decide."""

    events: int
    upcoming: int | None = None
    venues: int | None = None
    organizers: int | None = None
    categories: int | None = None
    tags: int | None = None
    seed: int = 1
    today: date | None = None


@dataclass(frozen=True, slots=True)
class Numbers:
    events: int
    upcoming: int
    venues: int
    organizers: int
    categories: int
    tags: int


def settle_numbers(wanted: Wanted) -> Numbers:
    """A small site has more before it than behind it; a large one has a long past."""
    events = wanted.events
    upcoming = wanted.upcoming
    if upcoming is None:
        upcoming = max(events // 20, min(events // 2, 500))
    numbers = Numbers(
        events=events,
        upcoming=upcoming,
        venues=_given(wanted.venues, min(5 + events // 30, 4000)),
        organizers=_given(wanted.organizers, min(5 + events // 50, 2000)),
        categories=_given(wanted.categories, min(12 + events // 100, 60)),
        tags=_given(wanted.tags, min(30 + events // 50, 300)),
    )
    if not 0 <= upcoming <= events <= MOST_EVENTS:
        raise InvalidValue(f"There can be up to {MOST_EVENTS} events, and no more upcoming ones than events.")
    return numbers


def read_upcoming(text: str, events: int) -> int | None:
    """A number, or a share such as 0.05 or 5%."""
    if not text:
        return None
    try:
        if text.endswith("%"):
            return round(events * float(text[:-1]) / 100)
        return round(events * float(text)) if "." in text else int(text)
    except ValueError:
        raise InvalidValue("upcoming is a number of events or a share of them, such as 500, 0.05 or 5%.") from None


async def seed(database_url: str, host: str, wanted: Wanted, told: ProgressCallback) -> Numbers:
    """Adds the records to the site of this host and says how many were made."""
    numbers = settle_numbers(wanted)

    def beginning(site: Site) -> datetime:
        """The made-up present: the first second of today, so that a day's runs agree to the second."""
        today = wanted.today or date.today()  # noqa: DTZ011  The operator's own day is meant.
        return times.day_begins(times.DateTimeInput(datetime.combine(today, time()), None, True), site.timezone)

    async with bulk_load.open_bulk_load(database_url, host, numbers.events, beginning) as load:
        await _add_records(load, numbers, wanted.seed, told)
        await load.restore_indexes(told)
    await bulk_load.vacuum_tables(database_url, told)
    return numbers


async def _add_records(load: BulkLoad, numbers: Numbers, seed: int, told: ProgressCallback) -> None:
    tx = load.transaction
    generator = Random(seed)  # noqa: S311  Repeatable is what is wanted.
    chance = generator.random
    author_ids = await bulk_load.ensure_authors(tx)
    tx.changes.user_id = author_ids[0]
    call = Call(tx, Actor(author_ids[0], "administrator"), base_url="", ns="")
    small = _Small(call, chance, told, numbers)
    categories = await small.add_categories()
    tags = await small.add_tags()
    places = await small.add_venues()
    organizers = await small.add_organizers()
    maker = EventMaker(
        site=tx.site,
        now=tx.now,
        chance=chance,
        writer=Writer(chance),
        authors=author_ids,
        categories=categories,
        tags=tags,
        places=places,
        organizers=organizers,
        taken_slugs=await bulk_load.list_slugs(tx),
    )
    plans = plan_days(chance, numbers.events - numbers.upcoming, numbers.upcoming)
    await _copy_events(load, maker, plans, told)


async def _copy_events(load: BulkLoad, maker: EventMaker, plans: list[int], told: ProgressCallback) -> None:
    """Makes a chunk while the database takes in the one before."""
    clock = load.transaction.changes

    def make(begin: int) -> Chunk:
        return maker.make(plans[begin : begin + CHUNK], clock.last_post_id + begin, clock.revision + begin)

    told("events", 0, len(plans))
    chunk = await asyncio.to_thread(make, 0)
    for begin in range(0, len(plans), CHUNK):
        coming = asyncio.create_task(asyncio.to_thread(make, begin + CHUNK))
        await load.copy("events", EVENT_COLUMNS, chunk.events)
        for table, rows in chunk.links.items():
            await load.copy(table, LINK_COLUMNS[table], rows)
        await load.copy(
            "changes",
            ("site_id", "revision", "kind", "record_id", "action", "user_id", "at"),
            [(clock.site_id, rev, "events", number, "create", clock.user_id, clock.now) for number, rev in chunk.ids],
        )
        chunk = await coming
        told("events", min(begin + CHUNK, len(plans)), len(plans))
    # The log has these changes already; the clock only has to stand where they end.
    clock.last_post_id += len(plans)
    clock.revision += len(plans)


@dataclass(frozen=True, slots=True)
class _Small:
    """The records that events link to."""

    call: Call
    chance: Chance
    told: ProgressCallback
    numbers: Numbers

    async def add_categories(self) -> dict[str, list[int]]:
        """Category of a theme -> its ID, then the IDs of those below it."""
        known = await bulk_load.find_term_ids(self.call.transaction, "categories")
        tops = [theme.category for theme in THEMES][: max(self.numbers.categories, 1)]
        found = {name: [await self._term("categories", known, name)] for name in tops}
        below = [(top, f"{top} for {audience}") for audience in AUDIENCES for top in tops]
        below += [(tops[n % len(tops)], f"{tops[n % len(tops)]} {n}") for n in range(2, self.numbers.categories)]
        for top, name in below[: max(self.numbers.categories - len(tops), 0)]:
            found[top].append(await self._term("categories", known, name, parent=found[top][0]))
        return {theme.category: found.get(theme.category, found[tops[0]]) for theme in THEMES}

    async def add_tags(self) -> dict[str, int]:
        known = await bulk_load.find_term_ids(self.call.transaction, "tags")
        names = list(dict.fromkeys([tag for theme in THEMES for tag in theme.tags] + list(MORE_TAGS)))
        names += [f"{one} {other}" for one in MORE_TAGS for other in names]
        return {name: await self._term("tags", known, name) for name in names[: self.numbers.tags]}

    async def _term(self, kind: str, known: dict[str, int], name: str, **more: object) -> int:
        """The term of this name, which may be there from an earlier run."""
        if fold(name) not in known:
            known[fold(name)] = await self._add(kind, {"name": name, **more})
        return known[fold(name)]

    async def add_venues(self) -> list[Place]:
        towns = self._towns()
        return [await self._venue(n, pick(self.chance, towns)) for n in range(self.numbers.venues)]

    def _towns(self) -> list[Town]:
        """Mostly those that share the site's clocks, if there are any."""
        near = [town for town in TOWNS if town.zone == self.call.transaction.site.timezone]
        return near * (4 * len(TOWNS) // len(near)) + list(TOWNS) if near else list(TOWNS)

    async def _venue(self, n: int, town: Town) -> Place:
        chance, language = self.chance, LANGUAGES[town.language]
        street = pick(chance, language.streets)
        name = pick(chance, language.venues).format(town=town.name)
        if chance() < 0.6:
            name = f"{name}, {street}"
        is_american = town.country == "United States"
        venue_id = await self._add(
            "venues",
            {
                "venue": name,
                "description": f"{name}, {town.name}." if chance() < 0.4 else "",
                "address": language.address_format.format(street=street, n=1 + int(chance() * 120)),
                "city": town.name,
                "country": town.country,
                "state" if is_american else "province": town.province,
                "zip": f"{int(10_000 + chance() * 89_999)}",
                "phone": f"{town.dialling_code} {int(100_000 + chance() * 899_999)}",
                "website": f"https://venue-{n + 1}.example{town.top_level_domain}" if chance() < 0.6 else "",
                # Towns of this size are some four kilometres across.
                "geo_lat": round(town.latitude + (chance() - 0.5) * 0.07, 6),
                "geo_lng": round(town.longitude + (chance() - 0.5) * 0.07, 6),
                **self._publication(),
            },
        )
        self.told("venues", n + 1, self.numbers.venues)
        return Place(venue_id, name, town.name, town.zone)

    async def add_organizers(self) -> list[int]:
        return [await self._organizer(n, pick(self.chance, self._towns())) for n in range(self.numbers.organizers)]

    async def _organizer(self, n: int, town: Town) -> int:
        chance = self.chance
        name = pick(chance, LANGUAGES[town.language].organizers).format(town=town.name)
        address = f"{make_slug(name)[:40].strip('-')}-{n + 1}" if name.isascii() else f"organizer-{n + 1}"
        self.told("organizers", n + 1, self.numbers.organizers)
        return await self._add(
            "organizers",
            {
                "organizer": name,
                "description": fill_sentence("{adjective} evenings since 1987.", chance, {})
                if chance() < 0.3
                else "",
                "phone": f"{town.dialling_code} {int(100_000 + chance() * 899_999)}",
                "website": f"https://{address}.example{town.top_level_domain}",
                "email": f"hello@{address}.example{town.top_level_domain}",
                **self._publication(),
            },
        )

    def _publication(self) -> dict[str, object]:
        moment = self.call.transaction.now - timedelta(days=DAYS_BACK + 200 + int(self.chance() * 400))
        return {"status": "publish", "date_utc": f"{times.format_datetime(moment)}Z"}

    async def _add(self, name: str, raw: Mapping[str, Any]) -> int:
        kind = BY_NAME[name]
        return await add_record(kind, self.call, read_params(kind.fields, raw))


def _given(number: int | None, otherwise: int) -> int:
    return otherwise if number is None else number
