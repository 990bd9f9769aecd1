"""Cache tags (surrogate keys): the records that a response contains, and the tags that a change purges.

Every response carries the tags of its records; a list also carries the tag of its kind. A list of more records than
MAX_TAGS carries one tag for all of them instead.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import batched
from typing import Any

import orjson

from kalends.kinds.kind import Kind
from kalends.store import Row, history
from kalends.store.database import Transaction
from kalends.store.sites import Site

MAX_TAGS = 100
# Tags in one PURGE request: a header has room for about 8,000 characters.
MAX_TAGS_PER_REQUEST = 200
# A write that purges more tags than this purges the whole site instead.
MAX_PURGED_TAGS = 2000
# Links of an event to records that show the number of their events.
COUNTED_LINKS = {"category_ids": "categories", "tag_ids": "tags"}
# Filters that read records of another kind: a list with such a filter is outdated when one of those changes.
FILTER_KINDS = {
    "events": {
        "categories": "categories",
        "tags": "tags",
        "venue": "venues",
        "organizer": "organizers",
        "geoloc": "venues",
        "geoloc_lat": "venues",
        "series": "series",
    },
    **{kind: {"event": "events", "has_events": "events"} for kind in ("venues", "organizers")},
    **{kind: {"event": "events", "post": "events"} for kind in ("categories", "tags")},
    "media": {},
    "series": {},
}


def tags_for_record(kind: Kind, site: Site, row: Row) -> tuple[str, ...]:
    return (f"s{site.id}", *[_record_tag(site, *entry) for entry in _list_references(kind, [row])])


def tags_for_event(site: Site, event_id: int) -> tuple[str, ...]:
    """Return the tags of a response about an event that is no longer public."""
    return (f"s{site.id}", _record_tag(site, "events", event_id))


def tags_for_list(kind: Kind, site: Site, rows: list[Row], filters: Container[str]) -> tuple[str, ...]:
    references = _list_references(kind, rows)
    records = (
        [_record_tag(site, *entry) for entry in references] if len(references) <= MAX_TAGS else [f"s{site.id}-many"]
    )
    kinds = {kind.name: None, **{other: None for name, other in FILTER_KINDS[kind.name].items() if name in filters}}
    return (f"s{site.id}", *[f"s{site.id}-{name}" for name in kinds], *records)


def tags_for_change(site: Site, kind: str, record_id: int, linked: Iterable[tuple[str, int]]) -> set[str]:
    """Return the tags that a change purges: those of the record, of the lists of its kind, and of `linked` terms,
    whose counts change."""
    if kind == "sites":
        return {f"s{site.id}"}
    tags = {_record_tag(site, kind, record_id), f"s{site.id}-{kind}", f"s{site.id}-many"}
    for other, other_id in linked:
        tags |= {_record_tag(site, other, other_id), f"s{site.id}-{other}"}
    return tags


async def tags_between(tx: Transaction, first: int, last: int) -> set[str]:
    """Return the tags that the changes of these revisions purge."""
    changes = await history.list_changes_between(tx, first, last)
    if not changes:
        # The change log has been trimmed in the meantime, so purge the whole site.
        return {f"s{tx.site.id}"}
    return tags_for_changes(tx.site, [dict(change) for change in changes])


def tags_for_changes(site: Site, changes: Iterable[Mapping[str, Any]]) -> set[str]:
    tags: set[str] = set()
    for change in changes:
        tags |= tags_for_change(site, change["kind"], change["record_id"], _find_recounted_terms(change))
        if len(tags) > MAX_PURGED_TAGS:
            return {f"s{site.id}"}
    return tags


def batch_tags(tags: set[str]) -> Iterator[str]:
    """Yield the tags as header values, each short enough for one request."""
    for part in batched(sorted(tags), MAX_TAGS_PER_REQUEST):
        yield " ".join(part)


def _list_references(kind: Kind, rows: list[Row]) -> list[tuple[str, int]]:
    """Return the kinds and IDs of the records that a response depends on.

    The links of a password-protected event are left out, because the response does not show them. Linked records that
    are not public are included, because the response changes when they are published.
    """
    references = {(kind.name, row["id"]): None for row in rows}
    unprotected = [row for row in rows if row.get("password_hash") is None] if kind.links else []
    for link in kind.links:
        references.update({(link.kind, entry): None for row in unprotected for entry in row[f"{link.column}s"]})
    if kind.is_event:
        references.update({("series", row["series_id"]): None for row in unprotected if row["series_id"] is not None})
    return list(references)


def _record_tag(site: Site, kind: str, record_id: int) -> str:
    """Return the tag of one record: a hash, because plain IDs would disclose linked records that are not public."""
    name = f"surrogate-key\0{kind}\0{record_id}".encode()
    return f"s{site.id}-{blake2b(name, key=site.secret, digest_size=9).hexdigest()}"


def _find_recounted_terms(change: Mapping[str, Any]) -> set[tuple[str, int]]:
    """Return the terms whose count may differ after a change of an event.

    These are the terms that the event gained or lost and, if its status changed, all of its terms. Links that have
    changed since then are covered by the change that altered them.
    """
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
