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
IN_ONE_REQUEST = 200
# A write that touches more than this is told as a change of the whole site.
MOST = 2000
# Columns of an event's links whose other ends show a count of events.
COUNTING = {"category_ids": "categories", "tag_ids": "tags"}


async def keys_between(tx: Transaction, first: int, last: int) -> set[str]:
    """What the changes of these revisions made wrong."""
    changes = await history.list_changes_between(tx, first, last)
    if not changes:
        return {f"s{tx.site.id}"}  # The log was cut meanwhile: who knows.
    return keys_of(tx.site, [dict(change) for change in changes])


def keys_of(site: Site, changes: Iterable[Mapping[str, Any]]) -> set[str]:
    wrong: set[str] = set()
    for change in changes:
        wrong |= cache_tags.of_change(site, change["kind"], change["record_id"], _recounted(change))
        if len(wrong) > MOST:
            return {f"s{site.id}"}
    return wrong


def requests_for(wrong: set[str]) -> Iterator[str]:
    """The keys as the header of one or more requests."""
    for part in batched(sorted(wrong), IN_ONE_REQUEST):
        yield " ".join(part)


def _recounted(change: Mapping[str, Any]) -> set[tuple[str, int]]:
    """Terms whose count an event's change may have changed: those that it lost or won, and all of its own
    when it appeared or disappeared. Links that have changed since are told of by their own change."""
    if change["kind"] != "events":
        return set()
    before, after = (_columns(change[side]) for side in ("before", "after"))
    appeared = "status" in before or "status" in after
    recounted: set[tuple[str, int]] = set()
    for column, kind in COUNTING.items():
        relinked = column in before or column in after
        sides: list[Sequence[int]] = [before.get(column, []), after.get(column, [])]
        if appeared or relinked:
            recounted |= {(kind, term) for side in (*sides, change[column] if appeared else []) for term in side}
    return recounted


def _columns(encoded: str | None) -> dict[str, Any]:
    columns: dict[str, Any] = orjson.loads(encoded) if encoded else {}
    return columns
