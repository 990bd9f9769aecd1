"""A made-up WordPress site of any size: seeded records in the form that `tests/move_in/site_server.py` serves."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

OLD = "http://old.example"
SMALL_SITE = Path(__file__).parents[1] / "tests" / "move_in" / "site.jsonl"
STAMP = "%Y-%m-%dT%H:%M:%S"
LOCAL = "%Y-%m-%d %H:%M:%S"
EVENTS = """
    SELECT e.*, ARRAY(SELECT venue_id FROM event_venues l WHERE l.event_id = e.id) AS venues,
        ARRAY(SELECT organizer_id FROM event_organizers l WHERE l.event_id = e.id) AS organizers,
        ARRAY(SELECT category_id FROM event_categories l WHERE l.event_id = e.id) AS categories,
        ARRAY(SELECT tag_id FROM event_tags l WHERE l.event_id = e.id) AS tags
    FROM events e ORDER BY e.id
"""
KINDS = {"venues": "tribe_venue", "organizers": "tribe_organizer"}
Row = Mapping[str, Any]


def write_site(seeded_url: str, path: Path) -> None:
    """Write the records of a seeded site in the form of `site.jsonl`."""
    with path.open("w") as file, psycopg.connect(seeded_url, row_factory=dict_row) as connection:
        for line in (*_read_pages(), *_read_users(), *_make_lines(connection)):
            file.write(json.dumps(line) + "\n")


def _read_pages() -> Iterator[list[Any]]:
    """Return the index, the settings and the account of the small site."""
    for line in map(json.loads, SMALL_SITE.read_text().splitlines()):
        if line[0] == "page" and line[2].startswith("/wp-json"):
            yield line


def _read_users() -> Iterator[list[Any]]:
    lines = [
        json.loads(line) for line in SMALL_SITE.read_text().splitlines() if line.startswith('["doc","wp","users"')
    ]
    yield from lines
    yield ["list", "wp", "users", [line[3]["id"] for line in lines]]
    yield ["list", "wp", "media", []]


def _make_lines(connection: psycopg.Connection[dict[str, Any]]) -> Iterator[list[Any]]:
    for table in ("categories", "tags"):
        yield from _list("wp", table, [_make_term(table, row) for row in _select(connection, table)])
    for table in KINDS:
        yield from _list("wp", table, [_make_place(table, row) for row in _select(connection, table)])
    rows = connection.execute(EVENTS).fetchall()
    yield from _list("wp", "events", [_make_event(row) for row in rows])
    flags = [_make_flags(row) for row in rows]
    yield from (["doc", api, "events", entry] for api in ("tribe", "tribe-list") for entry in flags)
    yield ["list", "tec", "events", [row["id"] for row in rows]]


def _select(connection: psycopg.Connection[dict[str, Any]], table: str) -> list[dict[str, Any]]:
    return connection.execute(f"SELECT * FROM {table} ORDER BY id".encode()).fetchall()


def _list(api: str, kind: str, docs: list[dict[str, Any]]) -> Iterator[list[Any]]:
    yield from (["doc", api, kind, entry] for entry in docs)
    for name in (api, "tribe"):
        yield ["list", name, kind, [entry["id"] for entry in docs]]


def _make_term(table: str, row: Row) -> dict[str, Any]:
    path = "events/category" if table == "categories" else "tag"
    term = {"id": row["id"], "count": 1, "description": row["description"], "name": row["name"], "slug": row["slug"]}
    return {**term, "link": f"{OLD}/{path}/{row['slug']}/", "parent": row.get("parent") or 0, "meta": []}


def _make_post(type_: str, path: str, row: Row) -> dict[str, Any]:
    """Return what all posts have. The made-up site has its times in UTC."""
    published, modified = (f"{row[name]:{STAMP}}" for name in ("published_at", "modified_utc"))
    link = f"{OLD}/{path}/{row['slug']}/"
    return {
        "id": row["id"],
        "date": published,
        "date_gmt": published,
        "modified": modified,
        "modified_gmt": modified,
        "guid": {"raw": link, "rendered": link},
        "password": "",
        "slug": row["slug"],
        "status": row["status"],
        "type": type_,
        "link": link,
        "title": _text(row["title"]),
        "content": _text(row["description"]),
        "excerpt": _text(row.get("excerpt") or ""),
        "author": 1,
        "featured_media": 0,
    }


def _text(raw: str) -> dict[str, Any]:
    return {"raw": raw, "rendered": raw, "protected": False}


def _make_place(table: str, row: Row) -> dict[str, Any]:
    names = {"address": "_VenueAddress", "city": "_VenueCity", "country": "_VenueCountry", "zip": "_VenueZip"}
    if table == "organizers":
        names = {"phone": "_OrganizerPhone", "email": "_OrganizerEmail", "website": "_OrganizerWebsite"}
    meta = {field: row[name] for name, field in names.items() if row.get(name)}
    return {**_make_post(KINDS[table], table[:-1], row), "meta": meta}


def _make_event(row: Row) -> dict[str, Any]:
    meta = {
        "_EventAllDay": row["all_day"],
        "_EventTimezone": row["timezone"],
        "_EventCost": row["cost"],
        "_EventStartDate": f"{row['start_local']:{LOCAL}}",
        "_EventEndDate": f"{row['end_local']:{LOCAL}}",
        "_EventStartDateUTC": f"{row['start_utc']:{LOCAL}}",
        "_EventEndDateUTC": f"{row['end_utc']:{LOCAL}}",
        "_EventURL": row["website"],
        "_EventVenueID": row["venues"],
        "_EventOrganizerID": row["organizers"],
    }
    post = _make_post("tribe_events", "event", row)
    return {**post, "meta": meta, "tags": row["tags"], "tribe_events_cat": row["categories"]}


def _make_flags(row: Row) -> dict[str, Any]:
    flags = {name: row[name] for name in ("hide_from_listings", "featured", "sticky", "cost")}
    details = {"currency_symbol": "", "currency_code": "", "currency_position": "", "values": []}
    modified = f"{row['modified_utc']:{LOCAL}}"
    facts = {"id": row["id"], "status": row["status"], "modified": modified, "title": row["title"]}
    return {**facts, **flags, "cost_details": details, "json_ld": False}
