"""The records that a form offers for an event: frequent venues and organizers, categories, tags, authors, images."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, LiteralString

from kalends.core.html.sanitize import clean_title, fold
from kalends.core.html.text import to_plain_text
from kalends.core.record_types import MediaItem
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Kind
from kalends.kinds.media import MEDIA
from kalends.kinds.venues import VENUES
from kalends.operations import permissions
from kalends.operations.context import OperationContext
from kalends.operations.records import find_page, make_render_context
from kalends.store import Row, users
from kalends.store.database import Transaction
from kalends.store.sql import Sql

RECENT_EVENTS: Final = 300
MAX_CATEGORIES: Final = 300
MAX_AUTHORS: Final = 200


@dataclass(frozen=True, slots=True)
class Choice:
    """A record that can be chosen by its name; `detail` tells equal names apart."""

    id: int
    name: str
    detail: str = ""
    latitude: float | None = None
    longitude: float | None = None

    @property
    def label(self) -> str:
        return f"{self.name} ({self.detail})" if self.detail else self.name


@dataclass(frozen=True, slots=True)
class CategoryChoice:
    """A category and its depth in the tree."""

    id: int
    name: str
    depth: int


async def list_frequent(kind: Kind, context: OperationContext, limit: int) -> list[Choice]:
    """List the venues or organizers of the latest events, the most frequent first, then the newest others."""
    link = next(row for row in EVENTS.links if row.kind == kind.name)
    site_id = context.transaction.site.id
    # OFFSET keeps PostgreSQL from reading the links of all events.
    candidates = Sql(
        "JOIN (SELECT c.id, count(c.event_id) AS count FROM (SELECT l.id, e.id AS event_id FROM (SELECT e.site_id,"
        " e.id FROM events e WHERE e.site_id = ? AND NOT e.hide_from_listings ORDER BY e.start_utc DESC LIMIT ?) e"
        " CROSS JOIN LATERAL (SELECT x." + link.column + " AS id FROM " + link.table
        + " x WHERE x.site_id = e.site_id AND x.event_id = e.id OFFSET 0) l UNION ALL (SELECT n.id, NULL FROM "
        + kind.name + " n WHERE n.site_id = ? ORDER BY n.published_at DESC, n.id DESC LIMIT ?)) c GROUP BY 1) u"
        " ON u.id = r.id WHERE r.site_id = ? AND",
        site_id,
        RECENT_EVENTS,
        site_id,
        limit,
        site_id,
    )  # fmt: skip
    rows = await context.transaction.fetch_all(
        _select_choices(kind)
        + candidates
        + permissions.embeddable_condition(context.actor)
        + Sql("ORDER BY u.count DESC, r.title, r.id LIMIT ?", limit)
    )
    return [_read_choice(row) for row in rows]


async def find_by_name(kind: Kind, context: OperationContext, name: str) -> Choice | None:
    """Find the venue or organizer that a label or a name identifies; the oldest if several have the name."""
    bare = name.removesuffix(")").rpartition(" (")[0]
    titles = list(dict.fromkeys([clean_title(name), *([clean_title(bare)] if bare else [])]))
    rows = await context.transaction.fetch_all(
        _select_choices(kind)
        + Sql(
            "WHERE r.site_id = ? AND length(r.title) < 500 AND r.title = ANY(?) AND",
            context.transaction.site.id,
            titles,
        )
        + permissions.embeddable_condition(context.actor)
        + Sql("ORDER BY r.status <> 'publish', r.id LIMIT 50")
    )
    choices = [_read_choice(row) for row in rows]
    exact = [row for row in choices if row.label == name] or [row for row in choices if row.name == name]
    return next(iter(exact), None)


async def find_choices(kind: Kind, context: OperationContext, ids: Sequence[int]) -> list[Choice]:
    """Return the choices with these IDs, in their order."""
    rows = await context.transaction.fetch_all(
        _select_choices(kind) + Sql("WHERE r.site_id = ? AND r.id = ANY(?)", context.transaction.site.id, list(ids))
    )
    by_id = {row["id"]: _read_choice(row) for row in rows}
    return [by_id[entry] for entry in ids if entry in by_id]


def _select_choices(kind: Kind) -> Sql:
    own: LiteralString = (
        "r.city AS detail, r.geo_lat, r.geo_lng"
        if kind is VENUES
        else "'' AS detail, NULL::float8 AS geo_lat, NULL::float8 AS geo_lng"
    )
    return Sql("SELECT r.id, r.title, " + own + " FROM " + kind.name + " r")


def _read_choice(row: Row) -> Choice:
    return Choice(row["id"], to_plain_text(row["title"]), row["detail"], row["geo_lat"], row["geo_lng"])


async def list_categories(tx: Transaction) -> list[CategoryChoice]:
    """List the categories as a tree: each is followed by its children."""
    rows = await tx.fetch_all(
        Sql(
            "SELECT id, name, parent FROM categories WHERE site_id = ? ORDER BY name_folded, id LIMIT ?",
            tx.site.id,
            MAX_CATEGORIES,
        )
    )
    known = {row["id"] for row in rows}
    children: dict[int | None, list[Row]] = {}
    for row in rows:
        children.setdefault(row["parent"] if row["parent"] in known else None, []).append(row)
    return list(_walk(children, None, 0))


def _walk(children: dict[int | None, list[Row]], parent: int | None, depth: int) -> Iterable[CategoryChoice]:
    for row in children.get(parent, ()):
        yield CategoryChoice(row["id"], row["name"], depth)
        yield from _walk(children, row["id"], depth + 1)


async def list_tag_names(tx: Transaction, limit: int) -> list[str]:
    """List the names of the most used tags."""
    rows = await tx.fetch_all(
        Sql("SELECT name FROM tags WHERE site_id = ? ORDER BY count DESC, name_folded LIMIT ?", tx.site.id, limit)
    )
    return [row["name"] for row in rows]


async def find_tag_names(tx: Transaction, ids: Sequence[int]) -> list[str]:
    """Return the names of tags for a text with commas; a name that contains one is replaced by its slug."""
    rows = await tx.fetch_all(
        Sql(
            "SELECT name, slug FROM tags WHERE site_id = ? AND id = ANY(?) ORDER BY name_folded, id",
            tx.site.id,
            list(ids),
        )
    )
    return [row["slug"] if "," in row["name"] else row["name"] for row in rows]


async def find_tag_ids(tx: Transaction, names: Sequence[str]) -> list[int | str]:
    """Return the IDs of the tags with these names or slugs; a name without a tag stays a name."""
    rows = await tx.fetch_all(
        Sql(
            """SELECT id, name_folded, slug FROM tags
                WHERE site_id = ? AND (name_folded = ANY(?) OR slug = ANY(?)) ORDER BY id DESC""",
            tx.site.id,
            [fold(name) for name in names],
            [fold(name) for name in names],
        )
    )
    ids: dict[str, int] = {row["slug"]: row["id"] for row in rows} | {row["name_folded"]: row["id"] for row in rows}
    return list(dict.fromkeys(ids.get(fold(name), name) for name in names))


async def list_authors(tx: Transaction) -> list[tuple[int, str]]:
    """List the accounts that can be the author of a record."""
    rows = await users.find_profiles(tx, user_id=None, limit=MAX_AUTHORS, offset=0)
    return [(row["id"], row["display_name"] or row["login"]) for row in rows]


async def list_images(context: OperationContext, values: dict[str, Any]) -> list[MediaItem]:
    """List images of the media library, the newest first; `values` are parameters of its list."""
    page = await find_page(MEDIA, _replace_values(context, values), with_total=False)
    render_context = await make_render_context(MEDIA, context, page.rows)
    return [MEDIA.reads.from_row(row, render_context) for row in page.rows]


def _replace_values(context: OperationContext, values: dict[str, Any]) -> OperationContext:

    return replace(context, values=values)
