"""`kalends seed --town`: add Larkford to a site, with a program around today's date."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any, Final

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds import BY_NAME
from kalends.calendar.kinds.kind import Actor
from kalends.calendar.operations import site_options
from kalends.calendar.operations.event_links import resolve_links
from kalends.calendar.operations.writes import add_record
from kalends.calendar.storage import bulk_load
from kalends.calendar.storage.bulk_load import ProgressCallback
from kalends.core import image_types, times
from kalends.core.params import read_params
from kalends.core.slugs import make_slug
from kalends.demo.town import town_places
from kalends.demo.town.programme import PROGRAMME, STATES, Slot
from kalends.demo.town.scenes import LOGO_SIZE, SCENES, SIZE, draw_logo, draw_scene
from kalends.demo.town.town_places import Host, Occurrence, Place
from kalends.media.adapters.library import Library, StoredImage
from kalends.media.images import add_image
from kalends.store.database import Transaction
from kalends.store.sql import Sql

TICKETS: Final = {"Corn Exchange", "Playhouse", "Picture House"}


@dataclass(frozen=True, slots=True)
class TownCounts:
    events: int
    venues: int
    organizers: int
    categories: int
    images: int


async def seed_town(
    database_url: str,
    site_key: str | int,
    library: Library,
    *,
    media_url: str,
    today: date,
    on_progress: ProgressCallback,
) -> TownCounts | None:
    """Add the town to the site with this host name or ID.

    Return the record counts, or None if the town already exists.
    """
    now = times.day_begins(times.DateTimeInput(datetime.combine(today, time()), None, True), town_places.ZONE)
    async with bulk_load.open_bulk_load(database_url, site_key, 0, lambda _: now) as load:
        tx = load.transaction
        if await _has_town(tx):
            return None
        images = await _store_pictures(tx.site.id, library, on_progress)
        logo = f"{media_url or '/media'}/{image_types.make_key(tx.site.id, images['logo'].name)}"
        await site_options.set_several(tx, {**town_places.SITE, "logo_url": logo})
        counts = await _Loader(await _make_context(tx), library, images, on_progress).add_all(today)
    await bulk_load.vacuum_tables(database_url, on_progress)
    return counts


async def _has_town(tx: Transaction) -> bool:
    return bool(
        await tx.fetch_value(
            Sql("SELECT EXISTS (SELECT FROM venues WHERE site_id = ? AND city = ?)", tx.site.id, town_places.TOWN)
        )
    )


async def _make_context(tx: Transaction) -> OperationContext:
    author = (await bulk_load.ensure_authors(tx))[0]
    tx.changes.user_id = author
    return OperationContext(tx, Actor(author, "administrator"), base_url="", api_url="")


async def _store_pictures(site_id: int, library: Library, on_progress: ProgressCallback) -> dict[str, StoredImage]:
    """Draw the pictures and store their files. Return the stored images by name."""
    pictures = {pick_picture(slot, n) for slot in PROGRAMME if slot.has_picture for n in range(len(slot.items))}
    names = ["logo", *sorted(pictures)]
    stored: dict[str, StoredImage] = {}
    async with library.open_work_directory() as directory:
        for name in names:
            path, dimensions = await asyncio.to_thread(_draw, name, directory)
            stored[name] = await library.store_own_image(site_id, path, dimensions)
            on_progress("pictures", len(stored), len(names))
    return stored


def pick_picture(slot: Slot, item: int) -> str:
    """Return the name of an item's picture, which is the scene of the slot in one of the scene's palettes."""
    scene = slot.scene or town_places.CATEGORIES[slot.category]
    return f"{scene} {(PROGRAMME.index(slot) + item) % len(SCENES[scene].palettes)}"


def _draw(name: str, directory: Path) -> tuple[Path, tuple[int, int]]:
    scene, _, variant = name.partition(" ")
    path = directory / "drawing"
    path.write_bytes(draw_scene(scene, int(variant)) if variant else draw_logo())
    return path, SIZE if variant else LOGO_SIZE


@dataclass(frozen=True, slots=True)
class _Loader:
    context: OperationContext
    library: Library
    images: Mapping[str, StoredImage]
    on_progress: ProgressCallback

    async def add_all(self, today: date) -> TownCounts:
        venues = {place.name: await self._add("venues", _build_venue(place)) for place in town_places.PLACES}
        organizers = {host.name: await self._add("organizers", _build_organizer(host)) for host in town_places.HOSTS}
        categories = {name: await self._add("categories", {"name": name}) for name in town_places.CATEGORIES}
        pictures = {name: await self._add_image(name) for name in self.images}
        occurrences = town_places.list_occurrences(today)
        upcoming = {o.item.title: o for o in reversed(occurrences) if o.start.date() > today}
        for n, occurrence in enumerate(occurrences):
            slot = occurrence.slot
            image = pictures[pick_picture(slot, slot.items.index(occurrence.item))] if slot.has_picture else None
            is_next = upcoming.get(occurrence.item.title) is occurrence
            await self._add(
                "events",
                {
                    **(STATES.get(occurrence.item.title, {}) if is_next else {}),
                    **_build_event(occurrence, self.context.transaction.now - timedelta(days=7 + n % 50)),
                    "venue": venues[slot.venue],
                    "organizer": organizers[slot.organizer],
                    "categories": [categories[slot.category]],
                    "image": image,
                },
            )
            self.on_progress("events", n + 1, len(occurrences))
        return TownCounts(len(occurrences), len(venues), len(organizers), len(categories), len(pictures))

    async def _add(self, name: str, raw: Mapping[str, Any]) -> int:
        kind = BY_NAME[name]
        values = read_params(kind.fields, raw)
        return await add_record(kind, self.context, values, (await resolve_links(kind, self.context, values)).ids)

    async def _add_image(self, name: str) -> int:
        alt_text = SCENES[name.partition(" ")[0]].alt_text if " " in name else f"Logo of {town_places.TOWN}"
        return await add_image(
            self.context.transaction,
            self.library,
            self.images[name],
            user_id=self.context.actor.user_id,
            arguments={"title": name.capitalize(), "alt_text": alt_text},
        )


def _build_venue(place: Place) -> dict[str, object]:
    return {
        "venue": place.name,
        "description": place.description,
        "address": place.address,
        "city": town_places.TOWN,
        "zip": "LK1 1AA",
        "country": town_places.COUNTRY,
        "geo_lat": place.latitude,
        "geo_lng": place.longitude,
        "website": f"https://{make_slug(place.name)}.example.org",
        "status": "publish",
    }


def _build_organizer(host: Host) -> dict[str, object]:
    return {
        "organizer": host.name,
        "description": host.description,
        "website": f"https://{host.domain}.example.org",
        "email": f"hello@{host.domain}.example.org",
        "status": "publish",
    }


def _build_event(occurrence: Occurrence, published: datetime) -> dict[str, object]:
    slot, item = occurrence.slot, occurrence.item
    cost = slot.cost if item.cost is None else item.cost
    has_tickets = slot.venue in TICKETS and cost != "0" and not slot.days
    return {
        "title": item.title,
        "description": "\n\n".join(filter(None, (item.text, slot.note))),
        "start_date": times.format_datetime(occurrence.start),
        "end_date": times.format_datetime(occurrence.end),
        "all_day": occurrence.all_day,
        "timezone": town_places.ZONE,
        "cost": cost,
        "tags": list(slot.tags),
        "featured": item.featured,
        "ticket_url": f"https://tickets.example.org/{make_slug(item.title)}" if has_tickets else "",
        "status": "publish",
        "date_utc": f"{times.format_datetime(published)}Z",
    }
