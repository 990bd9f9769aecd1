"""How shared caches name what is in an answer, and what a change makes wrong.

Every answer carries the keys of the records in it, a list also that of its kind. A list with too
many records to name carries one key for all of them instead.
"""

from collections.abc import Container, Iterable
from hashlib import blake2b

from kalends.kinds.kind import Kind
from kalends.store import Row
from kalends.store.sites import Site

MAX_TAGS = 100
# Filters of a list that look at records of another kind: the list is wrong when one of these changes.
FILTER_KINDS = {
    "events": {
        "categories": "categories",
        "tags": "tags",
        "venue": "venues",
        "organizer": "organizers",
        "geoloc": "venues",
        "geoloc_lat": "venues",
    },
    **{kind: {"event": "events", "has_events": "events"} for kind in ("venues", "organizers")},
    **{kind: {"event": "events", "post": "events"} for kind in ("categories", "tags")},
    "media": {},
}


def tags_for_record(kind: Kind, site: Site, row: Row) -> tuple[str, ...]:
    return (f"s{site.id}", *[_record_tag(site, *entry) for entry in _list_references(kind, [row])])


def tags_for_event(site: Site, event_id: int) -> tuple[str, ...]:
    """Of an event that is no longer shown."""
    return (f"s{site.id}", _record_tag(site, "events", event_id))


def tags_for_list(kind: Kind, site: Site, rows: list[Row], filters: Container[str]) -> tuple[str, ...]:
    references = _list_references(kind, rows)
    records = (
        [_record_tag(site, *entry) for entry in references] if len(references) <= MAX_TAGS else [f"s{site.id}-many"]
    )
    kinds = {kind.name: None, **{other: None for name, other in FILTER_KINDS[kind.name].items() if name in filters}}
    return (f"s{site.id}", *[f"s{site.id}-{name}" for name in kinds], *records)


def tags_for_change(site: Site, kind: str, record_id: int, linked: Iterable[tuple[str, int]]) -> set[str]:
    """What a change makes wrong: the record wherever it is shown, the lists of its kind, and the counts
    of terms that it is or was linked to."""
    if kind == "sites":
        return {f"s{site.id}"}
    tags = {_record_tag(site, kind, record_id), f"s{site.id}-{kind}", f"s{site.id}-many"}
    for other, other_id in linked:
        tags |= {_record_tag(site, other, other_id), f"s{site.id}-{other}"}
    return tags


def _list_references(kind: Kind, rows: list[Row]) -> list[tuple[str, int]]:
    """The records that a response depends on, by kind and ID.

    Of a protected event no links are shown, so none are named. A linked record that is not public is named,
    since the response changes when it is published.
    """
    references = {(kind.name, row["id"]): None for row in rows}
    unprotected = [row for row in rows if row.get("password_hash") is None] if kind.is_event else []
    for link in kind.links:
        references.update({(link.kind, entry): None for row in unprotected for entry in row[f"{link.column}s"]})
    return list(references)


def _record_tag(site: Site, kind: str, record_id: int) -> str:
    """Return the key of one record. It is a hash, so that nobody learns the IDs of linked records that are hidden."""
    name = f"surrogate-key\0{kind}\0{record_id}".encode()
    return f"s{site.id}-{blake2b(name, key=site.secret, digest_size=9).hexdigest()}"
