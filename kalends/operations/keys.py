"""How shared caches name what is in an answer, and what a change makes wrong.

Every answer carries the keys of the records in it, a list also that of its kind. A list with too
many records to name carries one key for all of them instead.
"""

from collections.abc import Container, Iterable

from asyncpg import Record

from kalends.kinds.kind import Kind
from kalends.store.sites import Site

LETTERS = {"events": "e", "venues": "v", "organizers": "o", "categories": "c", "tags": "t", "media": "m"}
MOST = 100
# Filters of a list that look at records of another kind: the list is wrong when one of these changes.
LOOKS_AT = {
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


def of_record(kind: Kind, site: Site, row: Record) -> tuple[str, ...]:
    return (f"s{site.id}", *_named(kind, site, [row]))


def of_event(site: Site, event_id: int) -> tuple[str, ...]:
    """Of an event that is no longer shown."""
    return (f"s{site.id}", f"s{site.id}-{LETTERS['events']}{event_id}")


def of_list(kind: Kind, site: Site, rows: list[Record], filters: Container[str]) -> tuple[str, ...]:
    named = _named(kind, site, rows)
    records = named if len(named) <= MOST else [f"s{site.id}-many"]
    kinds = {kind.name: None, **{other: None for name, other in LOOKS_AT[kind.name].items() if name in filters}}
    return (f"s{site.id}", *[f"s{site.id}-{name}" for name in kinds], *records)


def of_change(site_id: int, kind: str, record_id: int, linked: Iterable[tuple[str, int]]) -> set[str]:
    """What a change makes wrong: the record wherever it is shown, the lists of its kind, and the counts
    of terms that it is or was linked to."""
    if kind == "sites":
        return {f"s{site_id}"}
    wrong = {f"s{site_id}-{LETTERS[kind]}{record_id}", f"s{site_id}-{kind}", f"s{site_id}-many"}
    for other, other_id in linked:
        wrong |= {f"s{site_id}-{LETTERS[other]}{other_id}", f"s{site_id}-{other}"}
    return wrong


def _named(kind: Kind, site: Site, rows: list[Record]) -> list[str]:
    named = {f"s{site.id}-{LETTERS[kind.name]}{row['id']}": None for row in rows}
    for link in kind.links:
        letter = LETTERS[link.kind]
        named.update({f"s{site.id}-{letter}{entry}": None for row in rows for entry in row[f"{link.column}s"]})
    return list(named)
