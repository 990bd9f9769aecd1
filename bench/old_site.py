"""A made-up WordPress site of any size: seeded records in the form that `tests/move_in/site_server.py` serves.

It has what lifelike sites have besides: pictures, galleries, videos, files, comments, passwords, drafts and a trash.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from tests.move_in.samples import (
    OLD,
    SAMPLES,
    UPLOADS,
    Image,
    Sample,
    edit_event,
    edit_tribe_event,
    make_comments,
)

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
# Statuses other than `publish` by how often they occur: every so many events, beginning with a number.
STATUSES = {"draft": (25, 7), "trash": (40, 11), "pending": (30, 13), "private": (35, 17), "future": (50, 23)}
PROTECTED = (20, 3)
# Costs with their currency as editors enter them, and as the old site shows them. Its own currency is $.
COSTS = (
    *(("", "", "", ""), ("5", "", "", "$5"), ("8.50", "€", "suffix", "8.50€"), ("12", "€", "prefix", "€12")),
    *(("10 - 25", "", "", "$10 – $25"), ("Pay what you can", "", "", "Pay what you can")),
)
PICTURE_SIZES = {"medium": (300, 200), "large": (1024, 683), "full": (1600, 1067)}
Row = Mapping[str, Any]
Document = dict[str, Any]


@dataclass
class OldSite:
    """The records of the site, and what was put into which event."""

    categories: list[Document]
    tags: list[Document]
    venues: list[Document]
    organizers: list[Document]
    media: list[Document]
    events: list[Document]
    tribe: dict[int, Document]
    samples: dict[int, tuple[Sample, list[Image]]] = field(default_factory=dict[int, tuple[Sample, list[Image]]])
    comments: list[Document] = field(default_factory=list[Document])

    @property
    def images(self) -> list[Image]:
        return [(entry["id"], entry["source_url"]) for entry in self.media if entry["media_type"] == "image"]

    def list_lines(self) -> Iterator[list[Any]]:
        yield from _list("wp", "media", self.media)
        for kind in ("categories", "tags", "venues", "organizers"):
            yield from _list("wp", kind, getattr(self, kind))
        yield from _list("wp", "comments", self.comments)
        yield from _list("wp", "events", self.events)
        for event in self.events:
            document = self.tribe[event["id"]]
            yield ["doc", "tribe-list", "events", _hide_flags(document) if event["password"] else document]
            if event["status"] != "trash":
                yield ["doc", "tribe", "events", document]
        yield ["list", "tec", "events", [event["id"] for event in self.events if event["status"] != "trash"]]


def write_site(seeded_url: str, path: Path, *, pictures: int | None = None) -> OldSite:
    """Write the records of a seeded site in the form of `site.jsonl`; by default with a picture for five events."""
    with psycopg.connect(seeded_url, row_factory=dict_row) as connection:
        site = _read_site(connection)
    last_id = max(entry["id"] for kind in (site.venues, site.organizers, site.events) for entry in kind)
    number = len(site.events) // 5 if pictures is None else pictures
    site.media = [_make_picture(last_id + 1 + n, n) for n in range(number)]
    site.media += [_make_file(last_id + 1 + number)] if number else []
    for n, event in enumerate(site.events):
        _make_lifelike(site, n, event)
    site.comments = make_comments(list(site.samples)[::3])
    with path.open("w") as file:
        for line in (*_read_pages(), *_read_users(), *site.list_lines()):
            file.write(json.dumps(line) + "\n")
    return site


def _make_lifelike(site: OldSite, number: int, event: Document) -> None:
    """Give an event a status, a cost, a picture, a password or a sample, each with its own frequency."""
    tribe = site.tribe[event["id"]]
    cost, symbol, position, shown = COSTS[number % len(COSTS)]
    event["meta"] |= {"_EventCost": cost, "_EventCurrencySymbol": symbol, "_EventCurrencyPosition": position}
    tribe["cost"] = shown
    event["content"] = _text(f"<!-- wp:paragraph -->\n{event['content']['raw']}\n<!-- /wp:paragraph -->")
    if site.images and number % 3 == 0:
        event["featured_media"] = site.images[number // 3 % len(site.images)][0]
    for status, (step, begin) in STATUSES.items():
        if number % step == begin:
            event["status"] = tribe["status"] = status
    if event["status"] == "future":
        date = datetime.now(UTC) + timedelta(days=30 + number)
        event |= {"date": f"{date:{STAMP}}", "date_gmt": f"{date:{STAMP}}"}
    elif event["status"] == "publish" and number % PROTECTED[0] == PROTECTED[1]:
        event["password"] = f"secret {number}"
    elif event["status"] == "publish" and site.images and number % 2 == 0:
        sample, first = SAMPLES[len(site.samples) % len(SAMPLES)], number % len(site.images)
        images = [*site.images, *site.images][first : first + 2]
        site.samples[event["id"]] = (sample, images)
        edit_event(event, sample, images)
        edit_tribe_event(tribe, sample)


def _hide_flags(document: Document) -> Document:
    """Return an event as lists show it if it has a password."""
    hidden = dict.fromkeys(("hide_from_listings", "featured", "sticky"))
    return {**document, **hidden, "cost": ""}


def _make_picture(record_id: int, number: int) -> Document:
    names = {name: f"picture-{number}-{width}x{height}.jpg" for name, (width, height) in PICTURE_SIZES.items()}
    names["full"] = f"picture-{number}.jpg"
    sizes = {
        name: {"width": width, "height": height, "source_url": f"{UPLOADS}/{names[name]}"}
        for name, (width, height) in PICTURE_SIZES.items()
    }
    return {
        **_make_attachment(record_id, "image", "image/jpeg", names["full"]),
        "alt_text": f"Picture {number}",
        "caption": _text(f"Photo: A. Miller {number}" if number % 4 == 0 else ""),
        "media_details": {"width": 1600, "height": 1067, "sizes": sizes},
    }


def _make_file(record_id: int) -> Document:
    return {**_make_attachment(record_id, "file", "application/pdf", "programme.pdf"), "media_details": {}}


def _make_attachment(record_id: int, media_type: str, mime_type: str, name: str) -> Document:
    row = {"id": record_id, "published_at": STARTED, "modified_utc": STARTED, "slug": name.rpartition(".")[0]}
    post = _make_post("attachment", "attachment", {**row, "status": "inherit", "title": name, "description": ""})
    return {
        **{name: value for name, value in post.items() if name not in ("content", "excerpt", "password")},
        "alt_text": "",
        "caption": _text(""),
        "description": _text(""),
        "meta": [],
        "post": None,
        "media_type": media_type,
        "mime_type": mime_type,
        "source_url": f"{UPLOADS}/{name}",
    }


STARTED = datetime(2026, 9, 1, 12, tzinfo=UTC)


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


def _read_site(connection: psycopg.Connection[dict[str, Any]]) -> OldSite:
    rows = connection.execute(EVENTS).fetchall()
    return OldSite(
        categories=[_make_term("categories", row) for row in _select(connection, "categories")],
        tags=[_make_term("tags", row) for row in _select(connection, "tags")],
        venues=[_make_place("venues", row) for row in _select(connection, "venues")],
        organizers=[_make_place("organizers", row) for row in _select(connection, "organizers")],
        media=[],
        events=[_make_event(row) for row in rows],
        tribe={row["id"]: _make_flags(row) for row in rows},
    )


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
