"""Extracts the test data of tests/old_site from a recorded crawl of a WordPress site with The Events Calendar.

    uv run python -m tools.recorded_site DIRECTORY

The directory has `crawl.jsonl.gz`, one response per line, and `truth.json.gz`, the records of the site. The result
has one JSON array per line: the addresses of the public pages and feeds with the recorded responses, and the records.
"""

import gzip
import html
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

TARGET: Final = Path(__file__).parent.parent / "tests" / "old_site" / "site.jsonl"
# Addresses of the API, of images and of files, which are no pages.
OTHER_ADDRESSES: Final = ("/wp-json", "/wp-content", "/wp-includes")
LINK: Final = re.compile(r'(?:https?|webcal)://old\.example([^"#\s<>]*)"')
KINDS: Final = {"tribe_venue": "venue", "tribe_organizer": "organizer", "tribe_events": "event"}
TAXONOMIES: Final = {"tribe_events_cat": "category", "post_tag": "tag"}

Line = list[Any]


def list_addresses(crawl: Path, truth: dict[str, Any]) -> Iterator[Line]:
    """Yield `address`, path with query, status, media type, location; links that were not requested have status 0."""
    found: dict[str, Line] = {}
    linked = {urlsplit(post["permalink"]).path for post in truth["posts"] if is_public(post)}
    linked |= {urlsplit(term["url"]).path for term in truth["terms"] if term["count"]}
    with gzip.open(crawl, "rt") as lines:
        for response in map(json.loads, lines):
            path, headers = response["path"], response["headers"]
            media_type = headers.get("content-type", "").partition(";")[0]
            if not path.startswith(OTHER_ADDRESSES):
                location = headers.get("location", "").removeprefix("http://old.example")
                found[path] = ["address", path, response["status"], media_type, location]
            if media_type == "text/html":
                linked |= {html.unescape(link) for link in LINK.findall(response.get("body", ""))}
    for path in linked - set(found):
        if path.startswith("/") and not path.startswith(OTHER_ADDRESSES):
            found[path] = ["address", path, 0, "", ""]
    yield from sorted(found.values())


def list_records(truth: dict[str, Any]) -> Iterator[Line]:
    terms = sorted(truth["terms"], key=lambda term: term["id"])
    for term in terms:
        if term["taxonomy"] in TAXONOMIES:
            yield [TAXONOMIES[term["taxonomy"]], term["id"], term["slug"], term["name"], term["parent"]]
    for post in sorted(truth["posts"], key=lambda post: post["id"]):
        if post["type"] in KINDS:
            yield [*describe_post(post), *(describe_event(post) if post["type"] == "tribe_events" else [])]


def describe_post(post: dict[str, Any]) -> Line:
    old_slug = post["meta"].get("_wp_old_slug", "")
    return [KINDS[post["type"]], post["id"], post["slug"], post["title"], post["status"], old_slug]


def describe_event(post: dict[str, Any]) -> Line:
    meta, dates = post["meta"], post["occurrence"]
    is_all_day = int(bool(meta.get("_EventAllDay")))
    flags = [is_all_day, int(post["hidden"]), int(bool(post["password"]))]
    times = [dates["start_date"], dates["end_date"], meta["_EventTimezone"]]
    return [*times, *flags, post["categories"], post["tags"]]


def is_public(post: dict[str, Any]) -> bool:
    return post["type"] in KINDS and post["status"] == "publish"


def main() -> None:
    directory = Path(sys.argv[1])
    with gzip.open(directory / "truth.json.gz", "rt") as file:
        truth = json.load(file)
    lines = [*list_addresses(directory / "crawl.jsonl.gz", truth), *list_records(truth)]
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    TARGET.write_text(text)
    print(f"{TARGET.name}: {len(lines)} lines, {len(text.encode()):,} bytes")


if __name__ == "__main__":
    main()
