"""Venues and organizers named in the rows of a table: separate records that events link to."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kalends.core.imports.places import fold_name, make_linked
from kalends.core.imports.records import ImportedRecord

VENUE_PREFIX: Final = "venue."
_KINDS: Final = {"venue": "venues", "organizer": "organizers"}
Links = Mapping[str, Sequence[str]]
Meant = dict[tuple[str, str], str]


class Places:
    """Collects the places of a table. A row that says less about a place than another one means the same."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], ImportedRecord] = {}

    def add(self, fields: Mapping[str, Any], line: int) -> Links:
        """Add the places of a row; return their identities by parameter of its event."""
        details = {
            name.removeprefix(VENUE_PREFIX): value
            for name, value in fields.items()
            if name.startswith(VENUE_PREFIX) and value
        }
        links: dict[str, list[str]] = {}
        names = fields.get("venue") or [details[name] for name in ("address", "city") if name in details][:1]
        if "venue" in fields or names:
            venues = [{"venue": name, **(details if number == 0 else {})} for number, name in enumerate(names)]
            links["venue"] = [self._add("venues", venue, line) for venue in venues]
        if "organizer" in fields:
            links["organizer"] = [self._add("organizers", {"organizer": n}, line) for n in fields["organizer"]]
        return links

    def _add(self, kind: str, values: Mapping[str, Any], line: int) -> str:
        record = make_linked(kind, describe(values), values, line)
        return self._found.setdefault((kind, record.identity), record).identity

    def list_records(self, meant: Meant) -> list[ImportedRecord]:
        return [record for key, record in self._found.items() if meant[key] == key[1]]

    def find_meant(self) -> Meant:
        """Return the identity of the place that each one means: the only one of its name that says more."""
        groups: dict[tuple[str, str], list[ImportedRecord]] = {}
        for record in self._found.values():
            groups.setdefault((record.kind, fold_name(record.title)), []).append(record)
        meant: Meant = {}
        for records in groups.values():
            # Of places that say the same, the first one counts.
            distinct = {tuple(sorted(_fold_values(record).items())): record for record in reversed(records)}
            for record in records:
                own = _fold_values(record)
                more = [other for key, other in distinct.items() if own.items() < dict(key).items()]
                same = distinct[tuple(sorted(own.items()))]
                meant[record.kind, record.identity] = (more[0] if len(more) == 1 else same).identity
        return meant


def describe(values: Mapping[str, Any]) -> str:
    """Return the text that identifies a place: its name, and what else is known of it."""
    name = values.get("venue") or values.get("organizer")
    return ", ".join(map(str, [name, *(values[key] for key in sorted(values) if key not in _KINDS)]))


def _fold_values(record: ImportedRecord) -> dict[str, str]:
    return {name: fold_name(str(value)) for name, value in record.values.items()}


def resolve(links: Links, meant: Meant) -> Links:
    """Return the identities in the links of an event as they are after all rows have been read."""
    return {
        name: list(dict.fromkeys(meant[_KINDS[name], identity] for identity in identities))
        for name, identities in links.items()
    }
