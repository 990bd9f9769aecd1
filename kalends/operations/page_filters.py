"""Filters of pages and feeds by linked records and by place.

Unlike the lists of the API they reject nothing, because bookmarked URLs may outlive the records that they name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, LiteralString

from kalends.core.html.sanitize import fold, to_plain_text
from kalends.core.search import like_pattern
from kalends.core.slugs import normalize_lookup
from kalends.kinds import BY_NAME
from kalends.kinds.event_list.filters import RESOLVED_SERIES
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Kind
from kalends.operations.context import OperationContext
from kalends.store import Row, slug_redirects
from kalends.store.sql import Sql

Value = int | str
LINKS: Final = {link.param: link.kind for link in EVENTS.links}


@dataclass(frozen=True, slots=True)
class NamedRecord:
    """A public record that a filter names."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class ResolvedFilters:
    """The records that filters name, by parameter and value as sent, and the coordinates of `near`."""

    named: Mapping[str, Mapping[Value, NamedRecord]] = field(default_factory=dict[str, Mapping[Value, NamedRecord]])
    unknown: tuple[str, ...] = ()
    unknown_place: str = ""
    place: tuple[float, float] | None = None

    def list_named(self, name: str) -> list[NamedRecord]:
        """Return the records that a parameter names, without duplicates."""
        return list({entry.id: entry for entry in self.named.get(name, {}).values()}.values())


async def resolve_filters(context: OperationContext) -> tuple[OperationContext, ResolvedFilters]:
    """Replace slugs and place names by IDs and coordinates. A filter that names no known record matches nothing."""
    values: dict[str, Any] = dict(context.values)
    named: dict[str, Mapping[Value, NamedRecord]] = {}
    unknown: list[str] = []
    for name in [name for name in LINKS if values.get(name)]:
        named[name] = matches = await _find_named(context, BY_NAME[LINKS[name]], values[name])
        unknown += [str(entry) for entry in values[name] if entry not in matches]
        values[name] = list(dict.fromkeys(entry.id for entry in matches.values()))
    if values.get("series"):
        named["series"], values[RESOLVED_SERIES] = await _find_series(context, values["series"])
    near = values.pop("near", "")
    place = await find_place(context, near) if near else None
    if place is not None:
        values["geoloc_lat"], values["geoloc_lng"] = place
    elif near:
        values["venue"] = []
    resolved = ResolvedFilters(named, tuple(unknown), "" if place else near, place)
    return replace(context, values=values), resolved


async def _find_named(context: OperationContext, kind: Kind, entries: Sequence[Value]) -> dict[Value, NamedRecord]:
    """Find records by ID, terms also by slug. As in the lists of the API, an unknown number may be a slug."""
    column: LiteralString = "title" if kind.is_post else "name"
    is_published: LiteralString = "r.status = 'publish'" if kind.is_post else "true"
    rows = await context.transaction.fetch_all(
        Sql(
            "SELECT r.id, r.slug, r." + column + " AS name FROM " + kind.name + " r WHERE " + is_published
            + " AND r.site_id = ? AND (r.id = ANY(?) OR r.slug = ANY(?))",
            context.transaction.site.id,
            [entry for entry in entries if isinstance(entry, int)],
            [] if kind.is_post else [normalize_lookup(str(entry)) for entry in entries],
        )
    )  # fmt: skip
    by_id, by_slug = {row["id"]: row for row in rows}, {row["slug"]: row for row in rows}
    matches: dict[Value, NamedRecord] = {}
    for entry in entries:
        slug = normalize_lookup(str(entry))
        row: Row | None = by_id.get(entry) or (None if kind.is_post else by_slug.get(slug))
        if row is not None:
            matches[entry] = NamedRecord(row["id"], to_plain_text(row["name"]))
    missing = [entry for entry in entries if entry not in matches]
    return {**matches, **await _find_merged(context, kind, missing)} if missing else matches


async def _find_merged(context: OperationContext, kind: Kind, entries: Sequence[Value]) -> dict[Value, NamedRecord]:
    """Find the records into which those with these IDs were merged, and the terms that had these slugs."""
    keys: dict[str, Value] = {slug_redirects.id_key(entry): entry for entry in entries if isinstance(entry, int)}
    if not kind.is_post:
        keys |= {normalize_lookup(str(entry)): entry for entry in entries}
    rows = await slug_redirects.find_current(context.transaction, kind.name, list(keys), is_post=kind.is_post)
    return {keys[row["key"]]: NamedRecord(row["id"], to_plain_text(row["name"])) for row in rows}


async def _find_series(context: OperationContext, ids: Sequence[int]) -> tuple[dict[Value, NamedRecord], list[int]]:
    """Find the public series among these, and the IDs of those that are or were public.

    A feed announces that the dates of a series in the trash are cancelled.
    """
    rows = await context.transaction.fetch_all(
        Sql(
            """SELECT r.id, r.title, r.status FROM series r WHERE r.site_id = ? AND r.id = ANY(?)
                AND CASE WHEN r.status = 'trash' THEN r.trashed_status ELSE r.status END = 'publish'""",
            context.transaction.site.id,
            ids,
        )
    )
    public = [row for row in rows if row["status"] == "publish"]
    named: dict[Value, NamedRecord] = {
        row["id"]: NamedRecord(row["id"], to_plain_text(row["title"])) for row in public
    }
    return named, [row["id"] for row in rows]


async def find_place(context: OperationContext, name: str) -> tuple[float, float] | None:
    """Return the latitude and longitude of a town or venue of the site."""
    tx, folded_name = context.transaction, fold(name)
    if not folded_name:
        return None
    row = await tx.fetch_one(
        Sql(
            """SELECT r.geo_lat, r.geo_lng FROM venues r WHERE r.site_id = ? AND r.status = 'publish'
                AND r.geo_lat IS NOT NULL AND r.search_text LIKE ?
                ORDER BY lower(r.city) <> lower(?), lower(r.title) <> lower(?), r.id LIMIT 1""",
            tx.site.id,
            like_pattern(folded_name),
            name,
            name,
        )
    )
    return (row["geo_lat"], row["geo_lng"]) if row else None


async def list_towns(context: OperationContext, limit: int = 100) -> list[str]:
    """List towns with venues that have coordinates, as suggestions for `near`."""
    rows = await context.transaction.fetch_all(
        Sql(
            """SELECT r.city FROM venues r WHERE r.site_id = ? AND r.status = 'publish' AND r.city <> ''
                AND r.geo_lat IS NOT NULL GROUP BY r.city ORDER BY count(*) DESC, r.city LIMIT ?""",
            context.transaction.site.id,
            limit,
        )
    )
    return sorted(row["city"] for row in rows)
