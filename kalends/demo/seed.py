"""`kalends seed`: add demo records to a site; the same seed gives the same records.

Venues, organizers and terms are added one by one, as in the API. COPY loads events in chunks; the derived columns are
computed by the same functions as in the API.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from random import Random
from typing import Any, Final

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds import BY_NAME
from kalends.calendar.kinds.kind import Actor
from kalends.calendar.operations.writes import add_record
from kalends.calendar.storage import bulk_load
from kalends.calendar.storage.bulk_load import BulkLoad, ProgressCallback
from kalends.core import times
from kalends.core.errors import InvalidValue
from kalends.core.params import read_params
from kalends.core.sanitize import fold
from kalends.core.slugs import make_slug
from kalends.demo.demo_records import (
    AVERAGE_DATES,
    CHUNK,
    DATE_COLUMNS,
    DAYS_BACK,
    EVENT_COLUMNS,
    LANGUAGES,
    LINK_COLUMNS,
    SERIES_CHUNK,
    SERIES_COLUMNS,
    TOWNS,
    Chunk,
    DemoVenue,
    EventBuilder,
    Town,
    build_series_chunk,
    plan_days,
    plan_series,
)
from kalends.demo.demo_texts import AUDIENCES, MORE_TAGS, THEMES, Chance, Writer, fill_sentence, pick
from kalends.store.sites import Site

MAX_EVENTS: Final = 20_000_000


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """Number of records per kind. If a number is None, it is derived from the number of events."""

    events: int
    upcoming: int | None = None
    venues: int | None = None
    organizers: int | None = None
    categories: int | None = None
    tags: int | None = None
    series: int = 0
    seed: int = 1
    today: date | None = None


@dataclass(frozen=True, slots=True)
class DemoCounts:
    events: int
    upcoming: int
    venues: int
    organizers: int
    categories: int
    tags: int
    series: int = 0


def resolve_counts(options: DemoOptions) -> DemoCounts:
    """Derive missing counts. On small sites, half of the events are upcoming; on large sites, one in twenty."""
    events = options.events
    upcoming = options.upcoming
    if upcoming is None:
        upcoming = max(events // 20, min(events // 2, 500))
    counts = DemoCounts(
        events=events,
        upcoming=upcoming,
        venues=_or_default(options.venues, min(5 + events // 30, 4000)),
        organizers=_or_default(options.organizers, min(5 + events // 50, 2000)),
        categories=_or_default(options.categories, min(12 + events // 100, 60)),
        tags=_or_default(options.tags, min(30 + events // 50, 300)),
        series=options.series,
    )
    if not 0 <= upcoming <= events <= MAX_EVENTS:
        raise InvalidValue(f"There can be up to {MAX_EVENTS} events, and no more upcoming ones than events.")
    return counts


def parse_upcoming(text: str, events: int) -> int | None:
    """Parse a number, or a share such as 0.05 or 5%."""
    if not text:
        return None
    try:
        if text.endswith("%"):
            return round(events * float(text[:-1]) / 100)
        return round(events * float(text)) if "." in text else int(text)
    except ValueError:
        raise InvalidValue(
            "upcoming must be a number of events or a share of them, such as 500, 0.05 or 5%."
        ) from None


async def seed(
    database_url: str, site_key: str | int, options: DemoOptions, on_progress: ProgressCallback
) -> DemoCounts:
    """Add demo records to the site with this host name or ID. Return the number of records per kind."""
    counts = resolve_counts(options)

    def start_of_today(site: Site) -> datetime:
        """Return the start of today.

        It serves as the current time, so all runs on the same day give the same result.
        """
        today = options.today or date.today()  # noqa: DTZ011  The operator's local date is intended.
        return times.day_begins(times.DateTimeInput(datetime.combine(today, time()), None, True), site.timezone)

    size = counts.events + counts.series * AVERAGE_DATES
    async with bulk_load.open_bulk_load(database_url, site_key, size, start_of_today) as load:
        await _add_records(load, counts, options.seed, on_progress)
        await load.restore_indexes(on_progress)
    await bulk_load.vacuum_tables(database_url, on_progress)
    return counts


async def _add_records(load: BulkLoad, counts: DemoCounts, seed: int, on_progress: ProgressCallback) -> None:
    tx = load.transaction
    generator = Random(seed)  # noqa: S311  The sequence has to be repeatable.
    chance = generator.random
    author_ids = await bulk_load.ensure_authors(tx)
    tx.changes.user_id = author_ids[0]
    context = OperationContext(tx, Actor(author_ids[0], "administrator"), base_url="", api_url="")
    linked_records = _LinkedRecords(context, chance, on_progress, counts)
    categories = await linked_records.add_categories()
    tags = await linked_records.add_tags()
    venues = await linked_records.add_venues()
    organizers = await linked_records.add_organizers()
    builder = EventBuilder(
        site=tx.site,
        now=tx.now,
        chance=chance,
        writer=Writer(chance),
        authors=author_ids,
        categories=categories,
        tags=tags,
        venues=venues,
        organizers=organizers,
        used_slugs=await bulk_load.list_slugs(tx),
    )
    plans = plan_days(chance, counts.events - counts.upcoming, counts.upcoming)
    if plans:
        await _copy_events(load, builder, plans, on_progress)
    await _copy_series(load, builder, plan_series(chance, counts.series), on_progress)


async def _copy_series(
    load: BulkLoad, builder: EventBuilder, plans: list[int], on_progress: ProgressCallback
) -> None:
    changes = load.transaction.changes
    for offset in range(0, len(plans), SERIES_CHUNK):
        chunk = await asyncio.to_thread(
            build_series_chunk, builder, plans[offset : offset + SERIES_CHUNK], changes.last_post_id, changes.revision
        )
        await load.copy("series", SERIES_COLUMNS, chunk.series)
        await load.copy("events", DATE_COLUMNS, chunk.dates.events)
        for table, rows in chunk.dates.links.items():
            await load.copy(table, LINK_COLUMNS[table], rows)
        await load.copy(
            "changes",
            ("site_id", "revision", "kind", "record_id", "action", "user_id", "changed_at", "cause"),
            [
                (changes.site_id, revision, kind, number, "create", changes.user_id, changes.now, cause)
                for kind, number, revision, cause in chunk.log
            ],
        )
        changes.last_post_id += len(chunk.log)
        changes.revision += len(chunk.log)
        on_progress("series", min(offset + SERIES_CHUNK, len(plans)), len(plans))


async def _copy_events(
    load: BulkLoad, builder: EventBuilder, plans: list[int], on_progress: ProgressCallback
) -> None:
    """Generate each chunk while the database is loading the previous one."""
    changes = load.transaction.changes

    def build(offset: int) -> Chunk:
        return builder.build_chunk(
            plans[offset : offset + CHUNK], changes.last_post_id + offset, changes.revision + offset
        )

    on_progress("events", 0, len(plans))
    chunk = await asyncio.to_thread(build, 0)
    for offset in range(0, len(plans), CHUNK):
        next_chunk = asyncio.create_task(asyncio.to_thread(build, offset + CHUNK))
        await load.copy("events", EVENT_COLUMNS, chunk.events)
        for table, rows in chunk.links.items():
            await load.copy(table, LINK_COLUMNS[table], rows)
        await load.copy(
            "changes",
            ("site_id", "revision", "kind", "record_id", "action", "user_id", "changed_at"),
            [
                (changes.site_id, rev, "events", number, "create", changes.user_id, changes.now)
                for number, rev in chunk.ids
            ],
        )
        chunk = await next_chunk
        on_progress("events", min(offset + CHUNK, len(plans)), len(plans))
    # The change log already has these entries, so only the last revision and ID must advance.
    changes.last_post_id += len(plans)
    changes.revision += len(plans)


@dataclass(frozen=True, slots=True)
class _LinkedRecords:
    context: OperationContext
    chance: Chance
    on_progress: ProgressCallback
    counts: DemoCounts

    async def add_categories(self) -> dict[str, list[int]]:
        """Add the categories. Return the ID of each theme's category, followed by the IDs of its children."""
        known = await bulk_load.find_term_ids(self.context.transaction, "categories")
        tops = [theme.category for theme in THEMES][: max(self.counts.categories, 1)]
        ids = {name: [await self._ensure_term("categories", known, name)] for name in tops}
        below = [(top, f"{top} for {audience}") for audience in AUDIENCES for top in tops]
        below += [(tops[n % len(tops)], f"{tops[n % len(tops)]} {n}") for n in range(2, self.counts.categories)]
        for top, name in below[: max(self.counts.categories - len(tops), 0)]:
            ids[top].append(await self._ensure_term("categories", known, name, parent=ids[top][0]))
        return {theme.category: ids.get(theme.category, ids[tops[0]]) for theme in THEMES}

    async def add_tags(self) -> dict[str, int]:
        known = await bulk_load.find_term_ids(self.context.transaction, "tags")
        names = list(dict.fromkeys([tag for theme in THEMES for tag in theme.tags] + list(MORE_TAGS)))
        names += [f"{one} {other}" for one in MORE_TAGS for other in names]
        return {name: await self._ensure_term("tags", known, name) for name in names[: self.counts.tags]}

    async def _ensure_term(self, kind: str, known: dict[str, int], name: str, **extra: object) -> int:
        """Return the ID of the term with this name. Create the term if necessary."""
        if fold(name) not in known:
            known[fold(name)] = await self._add(kind, {"name": name, **extra})
        return known[fold(name)]

    async def add_venues(self) -> list[DemoVenue]:
        towns = self._weight_towns()
        return [await self._add_venue(n, pick(self.chance, towns)) for n in range(self.counts.venues)]

    def _weight_towns(self) -> list[Town]:
        """Return the towns to choose from. Most of them are in the site's time zone."""
        near = [town for town in TOWNS if town.zone == self.context.transaction.site.timezone]
        return near * (4 * len(TOWNS) // len(near)) + list(TOWNS) if near else list(TOWNS)

    async def _add_venue(self, n: int, town: Town) -> DemoVenue:
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
                # Up to about four kilometers from the center in each direction.
                "geo_lat": round(town.latitude + (chance() - 0.5) * 0.07, 6),
                "geo_lng": round(town.longitude + (chance() - 0.5) * 0.07, 6),
                **self._build_publication(),
            },
        )
        self.on_progress("venues", n + 1, self.counts.venues)
        return DemoVenue(venue_id, name, town.name, town.zone)

    async def add_organizers(self) -> list[int]:
        return [
            await self._add_organizer(n, pick(self.chance, self._weight_towns()))
            for n in range(self.counts.organizers)
        ]

    async def _add_organizer(self, n: int, town: Town) -> int:
        chance = self.chance
        name = pick(chance, LANGUAGES[town.language].organizers).format(town=town.name)
        domain = f"{make_slug(name)[:40].strip('-')}-{n + 1}" if name.isascii() else f"organizer-{n + 1}"
        self.on_progress("organizers", n + 1, self.counts.organizers)
        return await self._add(
            "organizers",
            {
                "organizer": name,
                "description": fill_sentence("{adjective} evenings since 1987.", chance, {})
                if chance() < 0.3
                else "",
                "phone": f"{town.dialling_code} {int(100_000 + chance() * 899_999)}",
                "website": f"https://{domain}.example{town.top_level_domain}",
                "email": f"hello@{domain}.example{town.top_level_domain}",
                **self._build_publication(),
            },
        )

    def _build_publication(self) -> dict[str, object]:
        moment = self.context.transaction.now - timedelta(days=DAYS_BACK + 200 + int(self.chance() * 400))
        return {"status": "publish", "date_utc": f"{times.format_datetime(moment)}Z"}

    async def _add(self, name: str, raw: Mapping[str, Any]) -> int:
        kind = BY_NAME[name]
        return await add_record(kind, self.context, read_params(kind.fields, raw))


def _or_default(number: int | None, default: int) -> int:
    return default if number is None else number
