"""Extracts the test data of tests/move_in from a recorded crawl of a WordPress site with The Events Calendar.

    uv run python -m tools.recorded_move_in DIRECTORY

The directory has `crawl.jsonl.gz`, one response per line, and `truth.json.gz`, the records of the site. The result
has some events with everything that they refer to, one JSON array per line: documents of the APIs, the IDs in their
lists, single responses, and the records.
"""

import gzip
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

TARGET: Final = Path(__file__).parent.parent / "tests" / "move_in" / "site.jsonl"
EVENTS_OF_EACH_SORT: Final = 1
COLLECTIONS: Final = {
    "wp/v2/tribe_events": "events",
    "wp/v2/tribe_venue": "venues",
    "wp/v2/tribe_organizer": "organizers",
    "wp/v2/tribe_events_cat": "categories",
    "wp/v2/tags": "tags",
    "wp/v2/media": "media",
    "wp/v2/users": "users",
}
TYPES: Final = {
    "tribe_events": "events",
    "tribe_venue": "venues",
    "tribe_organizer": "organizers",
    "attachment": "media",
}
TAXONOMIES: Final = {"tribe_events_cat": "categories", "post_tag": "tags"}
# Fields that nothing reads.
UNUSED: Final = (
    "_links",
    "json_ld",
    "image_meta",
    "class_list",
    "template",
    "permalink_template",
    "generated_slug",
    "avatar_urls",
    "exif_orientation",
)
TRIBE_FIELDS: Final = (
    *("id", "status", "modified", "title", "hide_from_listings", "featured", "sticky", "cost", "cost_details"),
)
CAPABILITIES: Final = (*("manage_options", "edit_others_tribe_events", "publish_tribe_events", "edit_tribe_events"),)
SINGLE: Final = re.compile(r"/wp-json/(wp/v2/[a-z_]+|tribe/events/v1/events)/(\d+)\?context=edit")
PAGES: Final = ("/wp-json/", "/wp-json/wp/v2/settings", "/wp-json/wp/v2/users/me?context=edit")

Line = list[Any]
Ids = dict[str, set[int]]


def choose_records(truth: dict[str, Any]) -> Ids:
    """Return the IDs of some events of each sort and of the records that they refer to."""
    ids: Ids = {kind: set() for kind in ("events", "venues", "organizers", "categories", "tags", "media", "users")}
    sorts: dict[object, int] = {}
    for post in truth["posts"]:
        for sort in describe_event(post) if post["type"] == "tribe_events" else ():
            sorts[sort] = sorts.get(sort, 0) + 1
            if sorts[sort] <= EVENTS_OF_EACH_SORT:
                ids["events"].add(post["id"])
        if post["type"] in ("tribe_venue", "tribe_organizer") and ("__trashed" in post["slug"] or post["password"]):
            ids[TYPES[post["type"]]].add(post["id"])
    ids["users"] = {user["id"] for user in truth["users"]}
    for post in truth["posts"]:
        if post["id"] in ids["events"]:
            add_linked(post, ids)
    for post in truth["posts"]:
        if post["id"] in ids["venues"] | ids["organizers"] and post["image"]:
            ids["media"].add(post["image"])
    parents = {term["id"]: term["parent"] for term in truth["terms"]}
    while missing := {parents[entry] for entry in ids["categories"] if parents[entry]} - ids["categories"]:
        ids["categories"] |= missing
    return ids


def describe_event(post: dict[str, Any]) -> Iterator[object]:
    meta, content = post["meta"], post["content"]
    is_over = post["occurrence"]["end_date"] < "2026-11-15"
    yield "status", post["status"]
    yield "hidden", post["hidden"], is_over, post["status"]
    yield "state", meta.get("_tribe_events_status")
    yield "zone", meta["_EventTimezone"]
    yield "password", bool(post["password"]), post["status"] == "trash"
    yield "code", meta.get("_EventCurrencyCode", "")
    yield "old slug", "_wp_old_slug" in meta
    yield "empty slug", not post["slug"]
    yield "encoded", "%" in post["slug"]
    yield from (
        ("content", mark) for mark in ("<!-- wp:", "[caption", "<img", "<!--more", "/event/") if mark in content
    )


def add_linked(post: dict[str, Any], ids: Ids) -> None:
    meta = post["meta"]
    for name, kind in (("_EventVenueID", "venues"), ("_EventOrganizerID", "organizers")):
        value = meta.get(name) or []
        ids[kind] |= {int(entry) for entry in (value if isinstance(value, list) else [value])}
    ids["categories"] |= set(post["categories"])
    ids["tags"] |= set(post["tags"])
    ids["media"] |= {int(entry) for entry in re.findall(r"wp-image-(\d+)", post["content"])}
    ids["media"] |= {post["image"]} if post["image"] else set()


def list_exchanges(crawl: Path, ids: Ids) -> Iterator[Line]:
    """Yield documents as `doc`, API, kind and object; responses as `page`, role, path, status, location and body."""
    lists: dict[tuple[str, str], set[int]] = {}
    with gzip.open(crawl, "rt") as lines:
        for entry in map(json.loads, lines):
            path, role = entry["path"], entry["as_role"]
            if role == "administrator" and (match := SINGLE.fullmatch(path)) and entry["status"] == 200:
                yield from describe_document(match[1], json.loads(entry["body"]), ids)
            elif role == "administrator" and (found := find_list(path)):
                records = read_records(json.loads(entry["body"]))
                lists.setdefault(found, set()).update(record["id"] for record in records)
                if found[0] == "tribe" and found[1] == "events":
                    yield from (["doc", "tribe-list", "events", trim(r)] for r in records if r["id"] in ids["events"])
            elif path in PAGES and role in ("anonymous", "administrator", "editor") and entry["status"] == 200:
                body = json.loads(entry["body"])
                body = {
                    name: value for name, value in body.items() if name not in (*UNUSED, "routes", "capabilities")
                }
                yield ["page", role, path, entry["status"], "", json.dumps(body)]
            elif entry["status"] == 301 and path.startswith("/event/"):
                yield ["page", "anonymous", path, 301, entry["headers"]["location"], ""]
    for (api, kind), members in sorted(lists.items()):
        yield ["list", api, kind, sorted(members & ids[kind])]


def describe_document(collection: str, record: dict[str, Any], ids: Ids) -> Iterator[Line]:
    if collection == "tribe/events/v1/events" and record["id"] in ids["events"]:
        yield ["doc", "tribe", "events", trim(record)]
    elif (kind := COLLECTIONS.get(collection)) and record["id"] in ids[kind]:
        kept = {name: value for name, value in record.items() if name not in UNUSED}
        if isinstance(meta := kept.get("meta"), dict):  # The fields of all types are in every record.
            kept["meta"] = {name: value for name, value in meta.items() if value not in ("", False, [])}
        if "capabilities" in kept:
            kept["capabilities"] = {name: True for name in kept["capabilities"] if name in CAPABILITIES}
        yield ["doc", "wp", kind, kept]


def trim(record: dict[str, Any]) -> dict[str, Any]:
    offers = record.get("json_ld", {}).get("offers") if isinstance(record.get("json_ld"), dict) else None
    return {name: record[name] for name in TRIBE_FIELDS} | {"json_ld": {"offers": offers} if offers else False}


def find_list(path: str) -> tuple[str, str] | None:
    """Return the API and the kind of a complete list."""
    route = urlsplit(path).path.removeprefix("/wp-json/")
    if route in COLLECTIONS and "context=edit" in path and "per_page=100" in path and "status=publish&" not in path:
        return "wp", COLLECTIONS[route]
    if route.startswith("tribe/events/v1/") and ("trash&per_page=50" in path or "hide_empty=0&per_page=50" in path):
        return "tribe", route.rpartition("/")[2]
    return ("tec", "events") if route == "tec/v1/events" and "status" in path else None


def read_records(body: Any) -> list[dict[str, Any]]:
    if isinstance(body, list):
        return body
    return next(value for value in body.values() if isinstance(value, list))


def list_truth(truth: dict[str, Any], ids: Ids) -> Iterator[Line]:
    for post in truth["posts"]:
        if post["id"] in ids[TYPES[post["type"]]]:
            meta = {name: value for name, value in post["meta"].items() if name != "_tribe_modified_fields"}
            yield ["truth", "posts", {**post, "meta": meta}]
    for term in truth["terms"]:
        if term["taxonomy"] in TAXONOMIES and term["id"] in ids[TAXONOMIES[term["taxonomy"]]]:
            yield ["truth", "terms", term]
    for user in truth["users"]:
        yield ["truth", "users", user]


def main() -> None:
    directory = Path(sys.argv[1])
    with gzip.open(directory / "truth.json.gz", "rt") as file:
        truth = json.load(file)
    ids = choose_records(truth)
    lines = [*list_exchanges(directory / "crawl.jsonl.gz", ids), *list_truth(truth, ids)]
    TARGET.write_text("".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines))
    print({kind: len(entries) for kind, entries in ids.items()}, f"{TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
