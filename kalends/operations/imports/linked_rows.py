"""Records that events link to in a plan: stored places, new terms, and events that wait for a decision."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, LiteralString

from kalends.core.errors import InvalidValue
from kalends.core.html.sanitize import clean_name, fold
from kalends.core.html.text import to_plain_text
from kalends.core.imports.places import PlaceIndex, StoredPlace
from kalends.core.messages import Message
from kalends.core.messages import gettext_noop as N_
from kalends.core.slugs import normalize_lookup
from kalends.store.database import Transaction
from kalends.store.imports import encode_message
from kalends.store.sql import Sql

PlanRow = dict[str, Any]

MAX_PLACES: Final = 50_000
MAX_TERMS: Final = 20_000
PLACES: Final[Mapping[str, str]] = {"venue": "venues", "organizer": "organizers"}
# The kinds of records that parameters name by identity.
LINKED_KINDS: Final[Mapping[str, str]] = {
    **PLACES,
    "categories": "categories",
    "tags": "tags",
    "image": "media",
    "parent": "categories",
    "author": "users",
}
TERMS: Final[tuple[LiteralString, ...]] = ("categories", "tags")
# Why an event waits. The message is removed when the decision is made.
HELD: Final = N_("Decide first whether to use an existing record for “{title}”.")


async def load_places(tx: Transaction, kind: str) -> PlaceIndex:
    """Load the venues or organizers of the site, except for those in the trash."""
    columns: LiteralString = "address, city" if kind == "venues" else "'' AS address, '' AS city"
    table: LiteralString = "venues" if kind == "venues" else "organizers"
    rows = await tx.fetch_all(
        Sql("SELECT id, title, status, " + columns + " FROM " + table)
        + Sql("WHERE site_id = ? AND status <> 'trash' ORDER BY id LIMIT ?", tx.site.id, MAX_PLACES)
    )
    return PlaceIndex(
        StoredPlace(row["id"], to_plain_text(row["title"]), row["status"], row["address"], row["city"])
        for row in rows
    )


def hold_back(rows: Iterable[PlanRow]) -> None:
    """Let events wait that link to venues or organizers about which a person has to decide."""
    planned = list(rows)
    undecided = {(row["kind"], row["identity"]): row["title"] for row in planned if is_undecided_place(row)}
    for row in planned if undecided else ():
        if row["kind"] not in ("events", "series") or row.get("imported") is None:
            continue
        for kind, identity in list_links(row["imported"]):
            if (kind, identity) in undecided and row["action"] not in ("rejected", "unchanged"):
                row["state"] = "waiting"
                row["reasons"].append(encode_message(Message(HELD, title=undecided[kind, identity])))


def is_undecided_place(row: Mapping[str, Any]) -> bool:
    return row["action"] == "duplicate" and row["kind"] in PLACES.values()


def list_links(imported: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return kind and identity of the venues and organizers that a record links to."""
    links = imported.get("links", {})
    return [(kind, identity) for name, kind in PLACES.items() for identity in links.get(name, ())]


# Terms ------------------------------------------------------------------------------------------


async def list_new_terms(tx: Transaction, rows: Iterable[PlanRow]) -> list[PlanRow]:
    """Return rows for the categories and tags that events name and that do not exist yet."""
    planned = [row for row in rows if row["kind"] in ("events", "series") and row.get("imported") is not None]
    found: list[PlanRow] = []
    for kind in TERMS:
        named = dict(pair for row in planned if _writes(row, kind) for pair in list_terms(row["imported"], kind))
        known = await _find_known(tx, kind, named) if named else set[str]()
        found += [_describe(kind, identity, name) for identity, name in named.items() if identity not in known]
    return found[:MAX_TERMS]


def list_terms(imported: Mapping[str, Any], kind: str) -> list[tuple[str, str]]:
    """Return identity and name of the terms that a record names. The API reads a number as an ID."""
    terms: list[tuple[str, str]] = []
    for entry in imported.get("values", {}).get(kind) or ():
        try:
            name = clean_name(entry) if isinstance(entry, str) and not entry.strip().isdecimal() else ""
        except InvalidValue:
            continue
        if name:
            terms.append((fold(name), name))
    return terms


def _writes(row: PlanRow, field: str) -> bool:
    if row["action"] in ("rejected", "unchanged"):
        return False
    change = row["changes"].get(field)
    return row["action"] not in ("changed", "moved") or (change is not None and change["decision"] == "source")


async def _find_known(tx: Transaction, kind: LiteralString, named: Mapping[str, str]) -> set[str]:
    """Return the identities of terms that exist, by name or by slug."""
    slugs: dict[str, list[str]] = {}
    for identity, name in named.items():
        slugs.setdefault(normalize_lookup(name), []).append(identity)
    rows = await tx.fetch_all(
        Sql("SELECT name_folded, slug FROM " + kind)
        + Sql("WHERE site_id = ? AND (name_folded = ANY(?) OR slug = ANY(?))", tx.site.id, [*named], [*slugs])
    )
    return {identity for row in rows for identity in (row["name_folded"], *slugs.get(row["slug"], ()))}


def _describe(kind: str, identity: str, name: str) -> PlanRow:
    imported = {"values": {"name": name}, "columns": {}, "links": {}, "wanted_id": None}
    row = {"action": "new", "kind": kind, "identity": identity, "recurrence_id": "", "title": name[:500]}
    return {**row, "imported": imported, "changes": {}, "reasons": []}


def list_needed(imported: Mapping[str, Any]) -> Collection[tuple[str, str]]:
    """Return kind and identity of the rows that a record needs: those it links to, and the terms that it names."""
    linked = [
        (LINKED_KINDS[name], identity)
        for name, identities in imported.get("links", {}).items()
        for identity in identities
    ]
    terms = [(kind, identity) for kind in TERMS for identity, _ in list_terms(imported, kind)]
    return {*linked, *terms}
