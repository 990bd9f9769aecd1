"""Rows of demo events and their links, in chunks for COPY; two million take minutes."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from kalends.core.cost import read_cost
from kalends.core.slugs import add_number
from kalends.core.times import local_of
from kalends.demo.dates import choose_span, unpack
from kalends.demo.texts import Chance, Writer, pick
from kalends.demo.words import THEMES, Theme
from kalends.store.sites import Site

CHUNK: Final = 20_000

EVENT_COLUMNS: Final = (
    "site_id", "id", "uid", "revision", "author_id", "status", "slug", "published_at", "modified_utc",
    "title", "description", "excerpt", "timezone", "all_day", "start_local", "end_local", "start_fold",
    "end_fold", "start_utc", "end_utc", "cost", "website", "ticket_url", "show_map", "show_map_link",
    "hide_from_listings", "sticky", "featured", "search_text", "placed",
)  # fmt: skip
LINK_COLUMNS: Final = {
    table: ("site_id", "event_id", column, "position", "start_utc", "listed", "published")
    for table, column in (
        ("event_venues", "venue_id"),
        ("event_organizers", "organizer_id"),
        ("event_categories", "category_id"),
        ("event_tags", "tag_id"),
    )
}
COSTS: Final = tuple(
    read_cost(cost)
    for cost in ("", "", "", "0", "0", "Free", "5", "8.50", "10", "12", "12", "15", "20", "25", "48", "10 - 25",
                 "€7", "€ 14 – 22", "£9.50", "120 kr", "Pay what you can", "Donations welcome", "1,250")
)  # fmt: skip

Row = tuple[object, ...]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class DemoVenue:
    id: int
    name: str
    town: str
    zone: str


@dataclass(frozen=True, slots=True)
class Chunk:
    events: list[Row] = field(default_factory=list[Row])
    links: dict[str, list[Row]] = field(default_factory=lambda: {table: [] for table in LINK_COLUMNS})
    ids: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])  # with their revisions


@dataclass(frozen=True, slots=True)
class EventBuilder:
    site: Site
    now: datetime
    chance: Chance
    writer: Writer
    authors: list[int]
    categories: dict[str, list[int]]
    tags: dict[str, int]
    venues: list[DemoVenue]
    organizers: list[int]
    used_slugs: set[str]
    slug_counts: dict[str, int] = field(default_factory=dict[str, int])

    def build_chunk(self, plans: list[int], last_id: int, last_revision: int) -> Chunk:
        chunk = Chunk()
        today = local_of(self.now, self.site.timezone)
        for n, plan in enumerate(plans, 1):
            published, days = unpack(plan)
            event_id, revision = last_id + n, last_revision + n
            chunk.ids.append((event_id, revision))
            self._add(
                chunk, event_id, revision, self.now + timedelta(seconds=published), today + timedelta(days=days)
            )
        return chunk

    def _add(self, chunk: Chunk, event_id: int, revision: int, published_at: datetime, midnight: datetime) -> None:
        chance, site_id = self.chance, self.site.id
        theme = pick(chance, THEMES)
        venues = self._pick_venues()
        main_venue = venues[0] if venues else DemoVenue(0, "the market hall", "town", self.site.timezone)
        zone = main_venue.zone if chance() < 0.15 else self.site.timezone
        span, all_day = choose_span(chance, theme, midnight, zone)
        status, hidden = self._pick_status()
        title = self.writer.title(theme, main_venue.name, main_venue.town)
        description = self.writer.description(theme, main_venue.name, main_venue.town)
        excerpt = self.writer.sentence(theme) if chance() < 0.3 else None
        texts = (title, excerpt, description) if excerpt else (title, description)
        modified = min(published_at + timedelta(days=int(40 * chance() ** 4)), self.now)
        has_slug = status not in ("draft", "pending")  # As in the API (behaviour 4.7).
        web = chance()
        chunk.events.append(
            (
                site_id,
                event_id,
                self.make_uid(published_at, event_id),
                revision,
                pick(chance, self.authors),
                status,
                self.free_slug(title.slug or str(event_id)) if has_slug else "",
                published_at,
                modified,
                title.written,
                description.written,
                excerpt.written if excerpt else "",
                zone,
                all_day,
                span.start.wall,
                span.end.wall,
                span.start.fold,
                span.end.fold,
                span.start.utc,
                span.end.utc,
                pick(chance, COSTS),
                f"https://events.example.org/{event_id}" if web < 0.3 else "",
                f"https://tickets.example.com/{event_id}" if web > 0.75 else "",
                bool(venues),
                bool(venues),
                hidden,
                chance() < 0.004,
                chance() < 0.02,
                "\n".join([text.folded for text in texts]),
                bool(venues),  # All demo venues have coordinates; the triggers would set the same value.
            )
        )
        tail = (span.start.utc, status == "publish" and not hidden, status == "publish")
        links = chunk.links
        for position, venue in enumerate(venues, 1):
            links["event_venues"].append((site_id, event_id, venue.id, position, *tail))
        for position, organizer in enumerate(self._pick_organizers(), 1):
            links["event_organizers"].append((site_id, event_id, organizer, position, *tail))
        for position, category in enumerate(self._pick_categories(theme), 1):
            links["event_categories"].append((site_id, event_id, category, position, *tail))
        for position, tag in enumerate(self._pick_tags(theme), 1):
            links["event_tags"].append((site_id, event_id, tag, position, *tail))

    def _pick_status(self) -> tuple[str, bool]:
        draw = self.chance()
        if draw > 0.02:
            return "publish", draw > 0.995
        return ("draft" if draw < 0.01 else "pending" if draw < 0.015 else "private"), False

    def _pick_venues(self) -> list[DemoVenue]:
        """Choose venues, some of them much more often than others; some events have none."""
        draw = self.chance()
        if draw < 0.05 or not self.venues:
            return []
        number = 2 if draw > 0.99 and len(self.venues) > 1 else 1
        first = int(self.chance() ** 2 * len(self.venues))
        return [self.venues[(first + n) % len(self.venues)] for n in range(number)]

    def _pick_organizers(self) -> list[int]:
        draw = self.chance()
        if draw < 0.12 or not self.organizers:
            return []
        number = 2 if draw > 0.9 and len(self.organizers) > 1 else 1
        first = int(self.chance() ** 2 * len(self.organizers))
        return [self.organizers[(first + n) % len(self.organizers)] for n in range(number)]

    def _pick_categories(self, theme: Theme) -> list[int]:
        top, *below = self.categories[theme.category]
        return [top, pick(self.chance, below)] if below and self.chance() < 0.3 else [top]

    def _pick_tags(self, theme: Theme) -> list[int]:
        tags, chance = self.tags, self.chance
        tag_ids = [tags[name] for name in theme.tags if name in tags and chance() < 0.4]
        if tags and chance() < 0.35:
            other = pick(chance, list(tags.values()))
            return tag_ids if other in tag_ids else [*tag_ids, other]
        return tag_ids

    def free_slug(self, base: str) -> str:
        """Return the slug that the API would choose: with the first free number."""
        n = self.slug_counts.get(base, 0) + 1
        slug = base if n == 1 else add_number(base, n)
        while slug in self.used_slugs:
            n += 1
            slug = add_number(base, n)
        self.slug_counts[base] = n
        self.used_slugs.add(slug)
        return slug

    def make_uid(self, published_at: datetime, event_id: int) -> str:
        """Return a UUID of version 7 for the publication time, which is the same for the same seed.

        The event ID keeps it unique if the same seed is used twice on one site.
        """
        milliseconds = (published_at - _EPOCH) // timedelta(milliseconds=1)
        low = int(self.chance() * (1 << 40)) << 34 | event_id
        value = milliseconds << 80 | 0x7 << 76 | (low >> 62) << 64 | 0x2 << 62 | low & ((1 << 62) - 1)
        return str(UUID(int=value))
