"""An app that keeps a copy of a site by `changes`, and the site's own view in the same form to compare with."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import httpx
import psycopg

from tests.api.running_app import API_PATH, expect_json
from tests.lifecycle.lifecycle_fixtures import EXTENSION_PATH
from tests.soak import scaled

SyncedCopy = dict[str, dict[str, Any]]

LINKS = {
    "venue": ("event_venues", "venue_id"),
    "organizer": ("event_organizers", "organizer_id"),
    "categories": ("event_categories", "category_id"),
    "tags": ("event_tags", "tag_id"),
}
PAGE_SIZES = (1, scaled(40, 500))  # records per request
WIDE_WINDOW = {"start_date": "0002-01-01", "end_date": "9990-01-01"}
# The fields that a protected event hides, and the values in their place (behaviour 6.3).
BLANKED_FIELDS: dict[str, Any] = {
    **dict.fromkeys(("description", "excerpt", "cost", "website", "ticket_url"), ""),
    **dict.fromkeys(("status_reason", "online_url"), ""),
    **dict.fromkeys(
        ("all_day", "show_map", "show_map_link", "hide_from_listings", "sticky", "featured", "event_status"),
    ),
    **dict.fromkeys(("currency_symbol", "currency_code", "currency_position")),
    **{name: [] for name in ("categories", "tags", "venue", "organizer", "custom_fields")},
    "image": False,
    "cost_details": {"currency_symbol": "", "currency_code": "", "currency_position": "", "values": []},
}


class SyncClient:
    """Keeps a copy. Whatever was not saved is lost when it is stopped; token and copy are saved together."""

    def __init__(
        self,
        client: httpx.Client,
        seed: int,
        query: Mapping[str, Any] | None = None,
        page_sizes: tuple[int, int] = PAGE_SIZES,
    ) -> None:
        self.client, self.query, self.page_sizes = client, query or {}, page_sizes
        self.rng = Random(seed)
        self.token: int | str = 0
        self.copy: SyncedCopy = {}
        self.saved: tuple[int | str, SyncedCopy] = (0, {})
        self.restarts = self.initial_syncs = self.requests = 0

    def fetch_page(self) -> bool:
        """Request one page and return whether more follow."""
        query = {**self.query, "since": self.token, "per_page": self.rng.randint(*self.page_sizes)}
        response = self.client.get(f"{EXTENSION_PATH}/changes", params=query)
        self.requests += 1
        if response.status_code == 410:
            self.token, self.copy = 0, {}
            self.initial_syncs += 1
            return True
        if response.status_code == 503:
            return True
        page = expect_json(response)
        for change in page["changes"]:
            key = f"{change['kind']}/{change['id']}"
            if change["deleted"]:
                self.copy.pop(key, None)
            else:
                self.copy[key] = change["record"]
        self.token = page["next_since"]
        return bool(page["more"])

    def catch_up(self) -> None:
        while self.fetch_page():
            pass

    def save(self) -> None:
        self.saved = (self.token, dict(self.copy))

    def restart(self) -> None:
        self.token, self.copy = self.saved[0], dict(self.saved[1])
        self.restarts += 1

    def run_step(self) -> None:
        """One step of a life in which it is now and then saved, and now and then stopped."""
        self.fetch_page()
        if self.rng.random() < 0.3:
            self.save()
        if self.rng.random() < 0.1:
            self.restart()


def read_site(
    client: httpx.Client, database_url: str, *, is_editor: bool = False, query: Mapping[str, Any] | None = None
) -> SyncedCopy:
    """What this client can see of the site, read through lists and single reads, in the form of the feed.

    Links come from the database: the feed tells IDs, where a representation embeds what may be seen.
    """
    records: SyncedCopy = {}
    if not query:
        for kind in ("venues", "organizers", "categories", "tags"):
            more = {"hide_empty": "false"} if kind in ("categories", "tags") else {}
            for record in _all_pages(client, kind, more):
                fields = {name: value for name, value in record.items() if name not in ("count", "url") or not more}
                records[f"{kind}/{record['id']}"] = fields
    with psycopg.connect(database_url) as connection:
        events = list(_all_pages(client, "events", {**WIDE_WINDOW, **(query or {})}))
        if is_editor:
            events += _hidden_events(client, connection)
        links = _links(connection)
        protected = {row[0] for row in connection.execute("SELECT id FROM events WHERE password_hash IS NOT NULL")}
    for event in events:
        flat = {**event, **{name: links[name].get(event["id"], []) for name in LINKS}}
        records[f"events/{event['id']}"] = {**flat, **BLANKED_FIELDS} if event["id"] in protected else flat
    return records


def _all_pages(client: httpx.Client, kind: str, query: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    page, pages = 1, 1
    while page <= pages:
        body = expect_json(client.get(f"{API_PATH}/{kind}", params={**query, "page": page, "per_page": 50}))
        yield from body[kind]
        page, pages = page + 1, body["total_pages"]


def _hidden_events(client: httpx.Client, connection: psycopg.Connection) -> list[dict[str, Any]]:
    hidden = connection.execute("SELECT id FROM events WHERE hide_from_listings AND status <> 'trash'")
    events = [expect_json(client.get(f"{API_PATH}/events/{row[0]}", params={"context": "edit"})) for row in hidden]
    return [{name: value for name, value in event.items() if name != "json_ld"} for event in events]


def _links(connection: psycopg.Connection) -> dict[str, dict[int, list[int]]]:
    """By parameter and event: the IDs, in their order."""
    return {
        name: dict(
            connection.execute(
                f"SELECT event_id, array_agg({column} ORDER BY position) FROM {table} GROUP BY event_id"
            ).fetchall()
        )
        for name, (table, column) in LINKS.items()
    }


def digest(copy: SyncedCopy) -> str:
    return hashlib.sha256(json.dumps(copy, sort_keys=True).encode()).hexdigest()


def describe_differences(copy: SyncedCopy, expected: SyncedCopy) -> list[str]:
    """In words, for the message of a test that fails."""
    messages = [f"{key} is missing: {expected[key].get('status', 'a term')}" for key in expected - copy.keys()]
    messages += [f"{key} is kept though it is gone" for key in copy.keys() - expected.keys()]
    for key in copy.keys() & expected.keys():
        names = [name for name in {*copy[key], *expected[key]} if copy[key].get(name) != expected[key].get(name)]
        if names:
            messages.append(
                f"{key}: " + ", ".join(f"{n} {copy[key].get(n)!r}, not {expected[key].get(n)!r}" for n in names)
            )
    return sorted(messages)


def assert_equal_copies(client: SyncClient, expected: SyncedCopy) -> None:
    if digest(client.copy) != digest(expected):
        messages = describe_differences(client.copy, expected)
        raise AssertionError(f"{len(messages)} records differ with {client.query}:\n" + "\n".join(messages)[:3000])
