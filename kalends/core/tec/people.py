"""Users, categories and tags of the former site."""

import html
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from kalends.core.imports.records import ImportedRecord
from kalends.core.roles import ROLES
from kalends.core.tec.exchanges import JsonObject
from kalends.core.tec.fields import clean_email

# The role of an account with a custom role, by the strongest of its capabilities.
ROLE_BY_CAPABILITY: Final = (
    ("manage_options", "administrator"),
    ("edit_others_tribe_events", "editor"),
    ("publish_tribe_events", "author"),
    ("edit_tribe_events", "contributor"),
)


def map_user(record: JsonObject) -> ImportedRecord:
    login = str(record.get("username") or record.get("slug") or record["id"])
    return ImportedRecord(
        "users",
        str(record["id"]),
        {
            "login": login,
            "email": clean_email(str(record.get("email") or "")) or "",
            "name": html.unescape(str(record.get("name") or login)),
            "role": choose_role(record),
        },
        columns={"created_at": created} if (created := _read_time(record.get("registered_date"))) else {},
        wanted_id=record["id"],
    )


def choose_role(record: JsonObject) -> str:
    """Return the first role that exists here, or the one that fits the capabilities."""
    roles: list[Any] = record.get("roles") or []
    known = next((role for role in roles if role in ROLES and role != "anonymous"), None)
    given = record.get("capabilities")
    capabilities: JsonObject = given if isinstance(given, dict) else {}  # pyright: ignore[reportUnknownVariableType]
    return known or next((role for name, role in ROLE_BY_CAPABILITY if capabilities.get(name)), "subscriber")


def map_terms(kind: str, records: Mapping[int, JsonObject]) -> Iterator[ImportedRecord]:
    """Yield the terms, parents before their children."""
    done: set[int] = set()

    def visit(record_id: int) -> Iterator[ImportedRecord]:
        if record_id in done or record_id not in records:
            return
        done.add(record_id)
        yield from visit(int(records[record_id].get("parent") or 0))
        yield _map_term(kind, records[record_id], records)

    for record_id in records:
        yield from visit(record_id)


def _map_term(kind: str, record: JsonObject, records: Mapping[int, JsonObject]) -> ImportedRecord:
    parent = int(record.get("parent") or 0)
    return ImportedRecord(
        kind,
        str(record["id"]),
        {
            "name": html.unescape(str(record.get("name") or record.get("slug") or record["id"])),
            "description": str(record.get("description") or ""),
        },
        columns={"slug": str(record["slug"])} if record.get("slug") else {},
        links={"parent": [str(parent)] if parent in records else []} if kind == "categories" else {},
        wanted_id=record["id"],
    )


def _read_time(value: object) -> str:
    try:
        return datetime.fromisoformat(value).isoformat() if isinstance(value, str) else ""
    except ValueError:
        return ""
