"""What the records of the recorded site must become, from the database of that site."""

import html
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from kalends.imports.rules.import_records import ImportedRecord

Truth = dict[str, Any]
Post = dict[str, Any]

STATES = {"canceled": "cancelled", "postponed": "postponed"}
ZONE = ZoneInfo("America/New_York")


def expect_event(post: Post, truth: Truth, host: str) -> ImportedRecord:
    meta = post["meta"]
    return ImportedRecord(
        "events",
        str(post["id"]),
        {
            "title": post["title"],
            "status": post["status"],
            "date_utc": expect_date(post),
            "start_date": post["occurrence"]["start_date"],
            "end_date": post["occurrence"]["end_date"],
            "timezone": meta["_EventTimezone"],
            "all_day": meta.get("_EventAllDay") == "1",
            "cost": meta.get("_EventCost", ""),
            "currency_symbol": meta.get("_EventCurrencySymbol", ""),
            "currency_code": meta.get("_EventCurrencyCode", ""),
            "currency_position": meta.get("_EventCurrencyPosition", ""),
            "website": meta.get("_EventURL", ""),
            "show_map": meta["_EventShowMap"] == "1",
            "show_map_link": meta["_EventShowMapLink"] == "1",
            "hide_from_listings": post["hidden"],
            "featured": post["featured"],
            # Nothing tells whether event 239 is sticky, which is hidden and in the trash.
            "sticky": post["sticky"] and not (post["hidden"] and post["status"] == "trash"),
            "online_url": "",
            "event_status": STATES.get(meta.get("_tribe_events_status", ""), "scheduled"),
            "status_reason": meta.get("_tribe_events_status_reason", ""),
            "new_password": post["password"],
        },
        columns={
            "slug": post["slug"],
            "uid": post["ical_uid"].partition("@")[0] + "@" + host,
            "feed_guid": post["guid"],
        },
        links={
            **expect_links(post, truth),
            "venue": read_ids(meta.get("_EventVenueID")),
            "organizer": read_ids(meta.get("_EventOrganizerID")),
            "categories": sorted(map(str, post["categories"])),
            "tags": sorted(map(str, post["tags"])),
        },
        wanted_id=post["id"],
    )


def expect_venue(post: Post, truth: Truth) -> ImportedRecord:
    meta = post["meta"]
    names = ("Address", "City", "Country", "Province", "State", "StateProvince", "Zip", "Phone")
    values = {name.lower(): meta.get(f"_Venue{name}", "") for name in names}
    values |= {
        "website": meta.get("_VenueURL", ""),
        "geo_lat": None,
        "geo_lng": None,
        "show_map": meta.get("_VenueShowMap") == "1",
        "show_map_link": meta.get("_VenueShowMapLink") == "1",
    }
    return expect_place("venues", "venue", post, truth, values)


def expect_organizer(post: Post, truth: Truth) -> ImportedRecord:
    meta = post["meta"]
    values = {name.lower(): meta.get(f"_Organizer{name}", "") for name in ("Phone", "Website", "Email")}
    return expect_place("organizers", "organizer", post, truth, values)


def expect_place(kind: str, name: str, post: Post, truth: Truth, values: dict[str, Any]) -> ImportedRecord:
    status = "private" if post["password"] and post["status"] == "publish" else post["status"]
    slug = post["slug"] if post["status"] == "trash" else post["slug"].removesuffix("__trashed")
    return ImportedRecord(
        kind,
        str(post["id"]),
        {name: post["title"], "status": status, "date_utc": expect_date(post), **values},
        columns={"slug": slug},
        links=expect_links(post, truth),
        wanted_id=post["id"],
    )


def expect_image(post: Post, truth: Truth) -> ImportedRecord:
    return ImportedRecord(
        "media",
        str(post["id"]),
        {"title": post["title"], "alt_text": post["alt"], "caption": post["excerpt"] or post["content"]},
        columns={"added_at": post["date_gmt"].replace(" ", "T") + "+00:00"},
        links={"author": find_author(post, truth)},
        wanted_id=post["id"],
    )


def expect_term(term: dict[str, Any]) -> ImportedRecord:
    is_category = term["taxonomy"] == "tribe_events_cat"
    return ImportedRecord(
        "categories" if is_category else "tags",
        str(term["id"]),
        {"name": term["name"], "description": term["description"]},
        columns={"slug": term["slug"]},
        links={"parent": [str(term["parent"])] if term["parent"] else []} if is_category else {},
        wanted_id=term["id"],
    )


def expect_user(user: dict[str, Any]) -> ImportedRecord:
    return ImportedRecord(
        "users",
        str(user["id"]),
        {"login": user["login"], "email": user["email"], "name": user["display_name"], "role": user["roles"][0]},
        columns={"created_at": user["registered"].replace(" ", "T") + "+00:00"},
        wanted_id=user["id"],
    )


def expect_all(truth: Truth, host: str) -> Iterable[ImportedRecord]:
    yield from map(expect_user, truth["users"])
    yield from (expect_term(term) for term in truth["terms"] if term["taxonomy"] in ("tribe_events_cat", "post_tag"))
    for post in truth["posts"]:
        if post["type"] == "tribe_events":
            yield expect_event(post, truth, host)
        elif post["type"] == "attachment":
            yield expect_image(post, truth)
        else:
            yield (expect_venue if post["type"] == "tribe_venue" else expect_organizer)(post, truth)


def expect_links(post: Post, truth: Truth) -> dict[str, list[str]]:
    return {"image": [str(post["image"])] if post["image"] else [], "author": find_author(post, truth)}


def find_author(post: Post, truth: Truth) -> list[str]:
    return [str(user["id"]) for user in truth["users"] if user["login"] == post["author"]]


def expect_date(post: Post) -> str:
    if not post["date_gmt"].startswith("0000"):
        return str(post["date_gmt"])
    local = datetime.fromisoformat(post["date"]).replace(tzinfo=ZONE)
    return local.astimezone(UTC).replace(tzinfo=None).isoformat(" ")


def read_ids(value: Any) -> list[str]:
    entries = value if isinstance(value, list) else [value] if value else []
    return [str(entry) for entry in entries]


def to_words(text: str) -> list[str]:
    """Return the text without any markup of WordPress or HTML."""
    bare = re.sub(r"<!--.*?-->|\[/?caption[^\]]*\]|<[^>]*>", " ", text, flags=re.DOTALL)
    return html.unescape(bare).split()


def compare(records: Iterable[ImportedRecord], truth: Truth, host: str) -> list[str]:
    """Return every difference between the records and what they must be."""
    found = {(record.kind, record.identity): record for record in records}
    posts = {str(post["id"]): post for post in truth["posts"]}
    differences: list[str] = []
    for expected in expect_all(truth, host):
        key = expected.kind, expected.identity
        record = found.pop(key, None)
        if record is None:
            differences.append(f"{key} is missing")
            continue
        values = dict(record.values)
        if expected.kind in ("events", "venues", "organizers"):
            post, texts = posts[record.identity], [str(values.pop("description")), str(values.pop("excerpt", ""))]
            if [to_words(text) for text in texts] != [to_words(post[name]) for name in ("content", "excerpt")]:
                differences.append(f"{key}: texts differ")
            if re.search(r"<!--|\[caption|/wp-content/", texts[0]):
                differences.append(f"{key}: {texts[0]}")
        links = {
            name: sorted(ids) if name in ("categories", "tags") else list(ids) for name, ids in record.links.items()
        }
        columns = {name: value for name, value in record.columns.items() if name != "modified_utc"}
        pairs = ((values, expected.values), (columns, expected.columns), (links, expected.links))
        differences += [
            f"{key}: {name} is {is_.get(name)!r}, not {must.get(name)!r}"
            for is_, must in pairs
            for name in {*is_, *must}
            if is_.get(name) != must.get(name)
        ]
        if record.wanted_id != expected.wanted_id or not is_modified_equal(record, posts):
            differences.append(f"{key}: ID or time of change differ")
    return [*differences, *(f"{key} is superfluous" for key in found)]


def is_modified_equal(record: ImportedRecord, posts: dict[str, Post]) -> bool:
    modified = posts[record.identity]["modified_gmt"] if record.kind in ("events", "media") else ""
    if not modified or modified.startswith("0000"):
        return True
    return record.columns["modified_utc"] == modified.replace(" ", "T") + "+00:00"
