"""The content of the dates of series: columns and linked records that still exist."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, LiteralString

from kalends.core.series import Date, Definition, content_at
from kalends.kinds import BY_NAME
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Link
from kalends.kinds.posts import build_search_text
from kalends.kinds.series import CONTENT_DEFAULTS, decode_content
from kalends.store.database import Transaction
from kalends.store.records import find_existing_ids

SEARCHED_COLUMNS: Final = ("title", "excerpt", "description")


@dataclass(frozen=True, slots=True)
class Content:
    """The columns and links that the dates of a part of a series share."""

    columns: Mapping[LiteralString, Any]
    links: Mapping[Link, list[int]]
    search_text: str


async def resolve_contents(tx: Transaction, definition: Definition, dates: Sequence[Date]) -> dict[datetime, Content]:
    """Return the content of each date. Linked records and images that no longer exist are left out."""
    by_period = group_by_content(definition, dates)
    resolved = await resolve_all(tx, [content_at(definition, slots[0]) for slots in by_period])
    return {slot: content for slots, content in zip(by_period, resolved, strict=True) for slot in slots}


def group_by_content(definition: Definition, dates: Iterable[Date]) -> list[list[datetime]]:
    """Return the slots of dates, those with the same content together."""
    bounds = [change.since for change in definition.content_changes]
    by_period: dict[int, list[datetime]] = {}
    for date in dates:
        by_period.setdefault(sum(bound <= date.slot for bound in bounds), []).append(date.slot)
    return list(by_period.values())


async def resolve_all(tx: Transaction, contents: Sequence[Mapping[str, Any]]) -> list[Content]:
    """Resolve contents of one or several series with one statement for each kind of linked records."""
    complete = [{**CONTENT_DEFAULTS, **content} for content in contents]
    images = {content["image_id"] for content in complete if content["image_id"]}
    existing_images = await find_existing_ids(tx, "media", sorted(images)) if images else set[int]()
    existing: dict[Link, set[int]] = {}
    for link in EVENTS.links:
        ids = {entry for content in complete for entry in content[f"{link.column}s"]}
        existing[link] = await find_existing_ids(tx, BY_NAME[link.kind].name, sorted(ids)) if ids else set()
    return [_build_content(content, existing, existing_images) for content in complete]


def _build_content(content: Mapping[str, Any], existing: Mapping[Link, set[int]], images: set[int]) -> Content:
    columns = decode_content(content)
    if columns["image_id"] not in images:
        columns["image_id"] = None
    links = {
        link: [entry for entry in content[f"{link.column}s"] if entry in existing[link]] for link in EVENTS.links
    }
    return Content(columns, links, build_search_text(columns, None, SEARCHED_COLUMNS))
