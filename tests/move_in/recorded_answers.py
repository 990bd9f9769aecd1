"""Public answers of the recorded site, and how those of this server differ from them."""

import gzip
import html
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

OLD = "http://old.example"
SINGLE = re.compile(r"/wp-json/tribe/events/v1/(events|venues|organizers|categories|tags)/(\d+)")
# Fields that differ by a decision in docs/compatibility.md, or as docs/move-in.md says under “What changes”.
EXPLAINED = re.compile(
    "|".join(
        (
            # Records: `json_ld`, and links of WordPress.
            r"\w+(\.(venue|organizer))?\.json_ld(\..+)?",
            r"(categories|tags)\._links",
            # Extensions of this server.
            r"events\.(uid|event_status|status_reason|online_url|ticket_url|currency_(symbol|code|position))",
            r"(\w+\.)+image\.(alt_text|caption|focus_[xy])",
            # Images are encoded again, have another address, and get their sizes from the worker.
            r"(\w+\.)+image\.(url|filesize|sizes)",
            # Texts are converted from their raw form; test_recorded_site.py compares them with the truth.
            r"(events|venues|organizers|events\.venue|events\.organizer)\.description",
            # Lists: linked records that are not published stay hidden from visitors.
            r"events\.(venue|organizer)",
            # Former drafts without UTC times, for which WordPress computes the time of change with today's offset.
            r"(events\.venue|venues)\.(date_utc|modified|modified_utc)",
            # Two published organizers had slugs of the trash.
            r"(events\.organizer|organizers)\.(slug|url)",
        )
    )
)
QUOTES = str.maketrans("‘’“”–—", "''\"\"--")
FRONT_END = re.compile(r"/(?!wp-json|wp-content|wp-login|author/|comments/|xmlrpc).*")


def read_exchanges(recording: Path) -> Iterator[dict[str, Any]]:
    """Yield the recorded requests of visitors."""
    with gzip.open(recording / "crawl.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            exchange = json.loads(line)
            if exchange["as_role"] == "anonymous":
                yield exchange


def open_client(base_url: str) -> httpx.Client:
    """Return a client that asks for the old host, as visitors do after the switch."""
    return httpx.Client(base_url=base_url, headers={"host": "old.example", "accept": "*/*"}, timeout=60)


def compare_records(client: httpx.Client, recording: Path) -> tuple[int, list[str], dict[str, list[str]]]:
    """Return the number of compared records, those that are hidden now, and those that differ by field."""
    differences: dict[str, list[str]] = {}
    hidden: list[str] = []
    count = 0
    for exchange in read_exchanges(recording):
        match = SINGLE.fullmatch(exchange["path"].rstrip("/"))
        if match is None or exchange["status"] != 200:
            continue
        count += 1
        response = client.get(exchange["path"])
        if response.status_code != 200:
            hidden.append(f"{match[1]}/{match[2]}")
            continue
        for field in find_differences(json.loads(exchange["body"]), response.json()):
            if EXPLAINED.fullmatch(f"{match[1]}.{field}") is None:
                differences.setdefault(f"{match[1]}.{field}", []).append(match[2])
    return count, hidden, differences


def find_differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of the values that differ; those of entries of lists have no number."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in dict.fromkeys([*old, *new]):
            yield from find_differences(old.get(name), new.get(name), f"{path}.{name}" if path else str(name))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for first, second in zip(old, new, strict=True):
            yield from find_differences(first, second, path)
    elif normalize(old) != normalize(new):
        yield path


def normalize(value: Any) -> Any:
    """Return a text without the entities and typographic quotes of WordPress."""
    return html.unescape(value).translate(QUOTES) if isinstance(value, str) else value


def find_broken_addresses(client: httpx.Client, recording: Path) -> tuple[Counter[int], list[str]]:
    """Request the recorded addresses of pages; return the statuses, and what does not lead to its content."""
    statuses: Counter[int] = Counter()
    broken: list[str] = []
    for exchange in read_exchanges(recording):
        if exchange["status"] not in (200, 301) or FRONT_END.fullmatch(exchange["path"]) is None:
            continue
        response = client.get(exchange["path"])
        statuses[response.status_code] += 1
        if exchange["status"] == 301:
            expected = exchange["headers"]["location"].removeprefix(OLD).lower()
            is_right = response.status_code == 301 and _path_of(response).lower() == expected
        elif response.status_code == 301:
            is_right = client.get(_path_of(response)).status_code == 200
        else:
            is_right = response.status_code == 200
        if not is_right:
            broken.append(f"{exchange['path']} {exchange['status']} {response.status_code} {_path_of(response)}")
    return statuses, broken


def _path_of(response: httpx.Response) -> str:
    return response.headers.get("location", "").removeprefix(OLD)
