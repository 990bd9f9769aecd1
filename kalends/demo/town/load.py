"""`kalends seed --town`: add Larkford to a site, with a program around today's date."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any, Final

from kalends.accounts.storage import user_tables
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds import BY_NAME
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import ANONYMOUS_ACTOR, Actor
from kalends.calendar.kinds.series_kind import SERIES
from kalends.calendar.operations import site_options
from kalends.calendar.operations.event_links import resolve_links
from kalends.calendar.operations.record_verbs import update_record
from kalends.calendar.operations.writes import add_record
from kalends.calendar.storage import bulk_load
from kalends.calendar.storage.bulk_load import ProgressCallback
from kalends.core import image_types, times
from kalends.core.credentials import new_uid
from kalends.core.params import read_params
from kalends.core.slugs import make_slug
from kalends.demo.town import town_places
from kalends.demo.town.programme import (
    CHANGED_DATES,
    EVERY_WEEK,
    EXTRA_DATES,
    PROGRAMME,
    SUBMISSIONS,
    SUGGESTIONS,
    WRITERS,
    Slot,
    Submission,
    Suggestion,
)
from kalends.demo.town.scenes import LOGO_SIZE, SCENES, draw_logo, draw_scene
from kalends.demo.town.town_canvas import SIZE
from kalends.demo.town.town_places import CATEGORIES, Host, Occurrence, Place
from kalends.media.adapters.library import Library, StoredImage
from kalends.media.images import add_image
from kalends.proposals.operations.proposal_sending import Draft, send
from kalends.proposals.storage import ensure_submitter
from kalends.series.operations.series_create import create_series
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sql import Sql

TICKETS: Final = {"Corn Exchange", "Playhouse", "Picture House"}


@dataclass(frozen=True, slots=True)
class TownCounts:
    events: int
    series: int
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
    names = ["logo", *sorted(pictures | {place.picture for place in town_places.PLACES})]
    stored: dict[str, StoredImage] = {}
    async with library.open_work_directory() as directory:
        for name in names:
            path, dimensions = await asyncio.to_thread(_draw, name, directory)
            stored[name] = await library.store_own_image(site_id, path, dimensions)
            on_progress("pictures", len(stored), len(names))
    return stored


def pick_picture(slot: Slot, item: int) -> str:
    """Return the name of an item's picture: the slot's scene in one of its palettes."""
    scene = slot.scene or CATEGORIES[slot.category].scene
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
        pictures = {name: await self._add_image(name) for name in self.images}
        ids = {
            "image": pictures,
            "venue": {
                place.name: await self._add("venues", {**_build_venue(place), "image": pictures[place.picture]})
                for place in town_places.PLACES
            },
            "organizer": {
                host.name: await self._add("organizers", _build_organizer(host)) for host in town_places.HOSTS
            },
            "categories": {
                name: await self._add("categories", {"name": name, "description": category.text})
                for name, category in CATEGORIES.items()
            },
        }
        weekly: dict[Slot, list[Occurrence]] = defaultdict(list)
        single: list[Occurrence] = []
        for occurrence in town_places.list_occurrences(today):
            (weekly[occurrence.slot] if occurrence.slot in EVERY_WEEK else single).append(occurrence)
        for n, occurrence in enumerate(single):
            await self._add("events", self._build_event(occurrence, ids, days=7 + n % 50))
            self.on_progress("events", n + 1, len(single))
        for n, occurrences in enumerate(weekly.values()):
            await self._add_series(occurrences, self._build_event(occurrences[0], ids, days=60), today)
            self.on_progress("series", n + 1, len(weekly))
        for submission in SUBMISSIONS:
            await self._add_submission(submission, ids, today)
        tx = self.context.transaction
        query = """SELECT id, revision, title, start_local, end_local FROM events
            WHERE site_id = ? AND status = 'publish' AND series_id IS NULL AND NOT all_day AND start_local > ?
            ORDER BY start_local, id LIMIT 2"""
        soon = datetime.combine(today, time()) + timedelta(days=9)
        upcoming = await tx.fetch_all(Sql(query, tx.site.id, soon))
        tx.site = replace(tx.site, revision=tx.changes.revision)
        for suggestion in SUGGESTIONS:
            await self._add_suggestion(suggestion, upcoming, today)
        events = await tx.fetch_value(Sql("SELECT count(*) FROM events WHERE site_id = ?", tx.site.id))
        return TownCounts(
            events, len(weekly), *map(len, (ids["venue"], ids["organizer"], ids["categories"], pictures))
        )

    def _build_event(
        self, occurrence: Occurrence, ids: Mapping[str, Mapping[str, int]], *, days: int
    ) -> dict[str, object]:
        """Return the parameters of an event that was published `days` days ago."""
        slot = occurrence.slot
        published = self.context.transaction.now - timedelta(days=days)
        return {
            **_build_event(occurrence),
            "date_utc": f"{times.format_datetime(published)}Z",
            "venue": ids["venue"].get(slot.venue),
            "organizer": ids["organizer"][slot.organizer],
            "categories": [ids["categories"][slot.category]],
            "image": ids["image"][pick_picture(slot, slot.items.index(occurrence.item))]
            if slot.has_picture
            else None,
        }

    async def _add_series(self, occurrences: Sequence[Occurrence], event: Mapping[str, Any], today: date) -> None:
        """Add a weekly series. Courses end with the last occurrence; the others have no end."""
        slot, title = occurrences[0].slot, occurrences[0].item.title
        upcoming = [occurrence for occurrence in occurrences if occurrence.start.date() > today]
        extra = [upcoming[0].start + timedelta(days=days) for days in EXTRA_DATES.get(title, ())]
        end = f";COUNT={len(occurrences)}" if slot.category == "Courses" else ""
        raw = {**event, "rule": f"FREQ=WEEKLY{end}", "add_dates": [times.format_datetime(start) for start in extra]}
        await create_series(SERIES, replace(self.context, values=read_params(SERIES.fields, raw)))
        tx = self.context.transaction
        for number, fields in CHANGED_DATES.get(title, {}).items():
            start = upcoming[number - 1].start
            event_id = await tx.fetch_value(
                Sql("SELECT id FROM events WHERE site_id = ? AND title = ? AND slot = ?", tx.site.id, title, start)
            )
            changes = {name: text.format(day=start.date()) for name, text in fields.items()}
            values = read_params([field for field in EVENTS.fields if field.name in changes], changes)
            await update_record(EVENTS, replace(self.context, values=values, record_id=event_id))

    async def _add_submission(
        self, submission: Submission, ids: Mapping[str, Mapping[str, int]], today: date
    ) -> None:
        """Add an event as its author, who has no password and so cannot sign in."""
        tx, role = self.context.transaction, WRITERS[submission.login]
        user_id = await user_tables.find_user(tx, submission.login, submission.login)
        if user_id is None:
            user_id = await user_tables.add_user(tx, submission.login, "", role)
        await self._write_as(user_id)
        author = replace(self, context=replace(self.context, actor=Actor(user_id, role)))
        occurrence = town_places.find_occurrence(submission.slot, today, submission.weeks)
        event = {**self._build_event(occurrence, ids, days=0), "status": submission.status, "tags": []}
        if submission.status == "future":
            published = tx.now + timedelta(days=3, hours=8)
            event = {**event, "status": "publish", "date_utc": f"{times.format_datetime(published)}Z"}
        await author._add("events", event)

    async def _add_suggestion(self, suggestion: Suggestion, upcoming: Sequence[Row], today: date) -> None:
        """Add a proposal, as if its sender had confirmed it."""
        tx, actor, submitter_id = self.context.transaction, ANONYMOUS_ACTOR, None
        if suggestion.login:
            user_id = await user_tables.find_user(tx, suggestion.login, suggestion.login)
            actor = Actor(user_id, WRITERS[suggestion.login])
        else:
            email = f"{suggestion.sender.lower()}@people.example.org"
            submitter_id = await ensure_submitter(tx, new_uid(), email, "en")
        event = upcoming[suggestion.of] if suggestion.of is not None else None
        start = datetime.combine(today, time(14)) + timedelta(days=suggestion.days)
        end, values = start + timedelta(hours=2), dict(suggestion.values)
        if event is not None and suggestion.is_duplicate:
            start, end, values["title"] = event["start_local"], event["end_local"], event["title"].lower()
        is_change = event is not None and not suggestion.is_duplicate
        dates = {"start_date": times.format_datetime(start), "end_date": times.format_datetime(end)}
        draft = Draft(
            {**values, **({} if is_change else dates)},
            suggestion.origin,
            record_id=event["id"] if event is not None and is_change else None,
            base_revision=event["revision"] if event is not None and is_change else None,
            guessed=suggestion.guessed,
            source=suggestion.source,
            note=suggestion.note,
            program=suggestion.program,
            submitter_id=submitter_id,
            submitter_name=suggestion.sender,
        )
        await send(replace(self.context, actor=actor), draft)

    async def _write_as(self, user_id: int) -> None:
        """Store the changes so far, and attribute later ones to this user."""
        tx = self.context.transaction
        await tx.flush_changes()
        tx.changes.entries.clear()
        tx.changes.user_id = user_id

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
        "show_map": True,
        "show_map_link": True,
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


def _build_event(occurrence: Occurrence) -> dict[str, object]:
    slot, item = occurrence.slot, occurrence.item
    cost = slot.cost if item.cost is None else item.cost
    has_tickets = slot.venue in TICKETS and cost != "0" and not slot.days
    texts = [" ".join(text.split()) for text in (item.text, slot.note) if text]
    return {
        "title": item.title,
        "description": "".join(text if text.startswith("<p>") else f"<p>{text}</p>" for text in texts),
        "start_date": times.format_datetime(occurrence.start),
        "end_date": times.format_datetime(occurrence.end),
        "all_day": occurrence.all_day,
        "timezone": town_places.ZONE,
        "cost": cost,
        "tags": list(slot.tags),
        "featured": item.featured,
        "ticket_url": f"https://tickets.example.org/{make_slug(item.title)}" if has_tickets else "",
        "show_map": True,
        "show_map_link": True,
        "status": "publish",
    }
