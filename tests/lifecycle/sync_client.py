"""An app that keeps a copy of a site by `changes`, and the site's own view in the same form to compare with."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import httpx
import psycopg

from tests.api.running_app import NAMESPACE, done
from tests.lifecycle.lifecycle_fixtures import EXTENSION_PATH
from tests.soak import scaled

Copy = dict[str, dict[str, Any]]

LINKS = {
    "venue": ("event_venues", "venue_id"),
    "organizer": ("event_organizers", "organizer_id"),
    "categories": ("event_categories", "category_id"),
    "tags": ("event_tags", "tag_id"),
}
PAGES = (1, scaled(40, 500))  # so many records are asked for at once
ALL_TIME = {"start_date": "0002-01-01", "end_date": "9990-01-01"}
# What a protected event does not show, and what stands there instead (behaviour 6.3).
BLANK: dict[str, Any] = {
    **dict.fromkeys(("description", "excerpt", "cost", "website", "ticket_url"), ""),
    **dict.fromkeys(
        ("all_day", "show_map", "show_map_link", "hide_from_listings", "sticky", "featured"),
    ),
    **{name: [] for name in ("categories", "tags", "venue", "organizer", "custom_fields")},
    "image": False,
    "cost_details": {"currency_symbol": "", "currency_code": "", "currency_position": "", "values": []},
}


class Follower:
    """Keeps a copy. Whatever was not saved is lost when it is stopped; token and copy are saved together."""

    def __init__(
        self,
        client: httpx.Client,
        seed: int,
        query: Mapping[str, Any] | None = None,
        pages: tuple[int, int] = PAGES,
    ) -> None:
        self.client, self.query, self.pages = client, query or {}, pages
        self.chance = Random(seed)
        self.token: int | str = 0
        self.copy: Copy = {}
        self.saved: tuple[int | str, Copy] = (0, {})
        self.restarts = self.beginnings = self.requests = 0

    def step(self) -> bool:
        """Asks once; whether there is more to ask for."""
        query = {**self.query, "since": self.token, "per_page": self.chance.randint(*self.pages)}
        answer = self.client.get(f"{EXTENSION_PATH}/changes", params=query)
        self.requests += 1
        if answer.status_code == 410:
            self.token, self.copy = 0, {}
            self.beginnings += 1
            return True
        if answer.status_code == 503:
            return True
        page = done(answer)
        for change in page["changes"]:
            key = f"{change['kind']}/{change['id']}"
            if change["deleted"]:
                self.copy.pop(key, None)
            else:
                self.copy[key] = change["record"]
        self.token = page["next_since"]
        return bool(page["more"])

    def catch_up(self) -> None:
        while self.step():
            pass

    def save(self) -> None:
        self.saved = (self.token, dict(self.copy))

    def restart(self) -> None:
        self.token, self.copy = self.saved[0], dict(self.saved[1])
        self.restarts += 1

    def live(self) -> None:
        """One step of a life in which it is now and then saved, and now and then stopped."""
        self.step()
        if self.chance.random() < 0.3:
            self.save()
        if self.chance.random() < 0.1:
            self.restart()


def view_of(
    client: httpx.Client, database_url: str, *, edits: bool = False, query: Mapping[str, Any] | None = None
) -> Copy:
    """What this client can see of the site, read through lists and single reads, in the form of the feed.

    Links come from the database: the feed tells IDs, where a representation embeds what may be seen.
    """
    view: Copy = {}
    if not query:
        for kind in ("venues", "organizers", "categories", "tags"):
            more = {"hide_empty": "false"} if kind in ("categories", "tags") else {}
            for record in _all_pages(client, kind, more):
                kept = {name: value for name, value in record.items() if name not in ("count", "url") or not more}
                view[f"{kind}/{record['id']}"] = kept
    with psycopg.connect(database_url) as connection:
        events = list(_all_pages(client, "events", {**ALL_TIME, **(query or {})}))
        if edits:
            events += _hidden_events(client, connection)
        links = _links(connection)
        protected = {row[0] for row in connection.execute("SELECT id FROM events WHERE password_hash IS NOT NULL")}
    for event in events:
        flat = {**event, **{name: links[name].get(event["id"], []) for name in LINKS}}
        view[f"events/{event['id']}"] = {**flat, **BLANK} if event["id"] in protected else flat
    return view


def _all_pages(client: httpx.Client, kind: str, query: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    page, pages = 1, 1
    while page <= pages:
        body = done(client.get(f"{NAMESPACE}/{kind}", params={**query, "page": page, "per_page": 50}))
        yield from body[kind]
        page, pages = page + 1, body["total_pages"]


def _hidden_events(client: httpx.Client, connection: psycopg.Connection) -> list[dict[str, Any]]:
    hidden = connection.execute("SELECT id FROM events WHERE hide_from_listings AND status <> 'trash'")
    events = [done(client.get(f"{NAMESPACE}/events/{row[0]}", params={"context": "edit"})) for row in hidden]
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


def digest(copy: Copy) -> str:
    return hashlib.sha256(json.dumps(copy, sort_keys=True).encode()).hexdigest()


def differences(copy: Copy, view: Copy) -> list[str]:
    """In words, for the message of a test that fails."""
    said = [f"{key} is not told of: {view[key].get('status', 'a term')}" for key in view - copy.keys()]
    said += [f"{key} is kept though it is gone" for key in copy.keys() - view.keys()]
    for key in copy.keys() & view.keys():
        names = [name for name in {*copy[key], *view[key]} if copy[key].get(name) != view[key].get(name)]
        if names:
            said.append(f"{key}: " + ", ".join(f"{n} {copy[key].get(n)!r}, not {view[key].get(n)!r}" for n in names))
    return sorted(said)


def assert_same(follower: Follower, view: Copy) -> None:
    if digest(follower.copy) != digest(view):
        said = differences(follower.copy, view)
        raise AssertionError(f"{len(said)} records differ with {follower.query}:\n" + "\n".join(said)[:3000])
