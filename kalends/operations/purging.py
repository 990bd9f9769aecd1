"""What shared caches are told after a write: the keys of all that it made wrong."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import batched
from typing import Any

import orjson

from kalends.operations import cache_tags
from kalends.store import history
from kalends.store.database import Transaction
from kalends.store.sites import Site

# Keys in one request: a header has room for about 8,000 characters.
MAX_TAGS_PER_REQUEST = 200
# A write that touches more than this is told as a change of the whole site.
MAX_PURGED_TAGS = 2000
# Columns of an event's links whose other ends show a count of events.
COUNTED_LINKS = {"category_ids": "categories", "tag_ids": "tags"}


async def tags_between(tx: Transaction, first: int, last: int) -> set[str]:
    """What the changes of these revisions made wrong."""
    changes = await history.list_changes_between(tx, first, last)
    if not changes:
        return {f"s{tx.site.id}"}  # The log was cut meanwhile: who knows.
    return tags_for_changes(tx.site, [dict(change) for change in changes])


def tags_for_changes(site: Site, changes: Iterable[Mapping[str, Any]]) -> set[str]:
    tags: set[str] = set()
    for change in changes:
        tags |= cache_tags.tags_for_change(site, change["kind"], change["record_id"], _find_recounted_terms(change))
        if len(tags) > MAX_PURGED_TAGS:
            return {f"s{site.id}"}
    return tags


def batch_tags(tags: set[str]) -> Iterator[str]:
    """The keys as the header of one or more requests."""
    for part in batched(sorted(tags), MAX_TAGS_PER_REQUEST):
        yield " ".join(part)


def _find_recounted_terms(change: Mapping[str, Any]) -> set[tuple[str, int]]:
    """Terms whose count an event's change may have changed: those that it lost or won, and all of its own
    when it appeared or disappeared. Links that have changed since are told of by their own change."""
    if change["kind"] != "events":
        return set()
    before, after = (_decode_columns(change[side]) for side in ("before", "after"))
    appeared = "status" in before or "status" in after
    terms: set[tuple[str, int]] = set()
    for column, kind in COUNTED_LINKS.items():
        relinked = column in before or column in after
        sides: list[Sequence[int]] = [before.get(column, []), after.get(column, [])]
        if appeared or relinked:
            terms |= {(kind, term) for side in (*sides, change[column] if appeared else []) for term in side}
    return terms


def _decode_columns(encoded: str | None) -> dict[str, Any]:
    columns: dict[str, Any] = orjson.loads(encoded) if encoded else {}
    return columns
