"""Writers that change a site at random: everything that can happen to records, links, terms and statuses."""

import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import httpx

from tests.api.running_app import API_PATH
from tests.api.sample_records import DATES
from tests.lifecycle.lifecycle_fixtures import EXTENSION_PATH

POSTS = ("events", "venues", "organizers")
TITLE_PARAMS = {"events": "title", "venues": "venue", "organizers": "organizer"}


@dataclass
class KnownRecords:
    """The IDs that writers know of, and the ones that they leave alone."""

    ids: dict[str, list[int]] = field(default_factory=lambda: defaultdict[str, list[int]](list))
    stable_ids: dict[str, set[int]] = field(default_factory=lambda: defaultdict[str, set[int]](set))
    lock: threading.Lock = field(default_factory=threading.Lock)
    status_counts: Counter[int] = field(default_factory=Counter[int])


class Writer:
    def __init__(self, client: httpx.Client, known: KnownRecords, seed: int) -> None:
        self.client, self.known, self.rng = client, known, Random(seed)
        actions: dict[Callable[[], None], int] = {
            self.create_event: 6,
            self.create_place: 3,
            self.create_term: 2,
            self.schedule: 3,
            self.change_text: 5,
            self.change_links: 5,
            self.change_status: 6,
            self.hide: 4,
            self.protect: 3,
            self.trash: 4,
            self.restore: 3,
            self.move_category: 3,
            self.rename_term: 2,
            self.delete_term: 2,
        }
        self._actions, self._weights = list(actions), list(actions.values())

    def write_randomly(self) -> None:
        self.rng.choices(self._actions, self._weights)[0]()

    def create_event(self) -> None:
        self._create(
            "events",
            {
                "title": self._random_name(),
                **DATES,
                **self._random_links(),
                **self._random_state(),
                **self._random_date(),
            },
        )

    def create_place(self) -> None:
        kind = self.rng.choice(("venues", "organizers"))
        self._create(kind, {TITLE_PARAMS[kind]: self._random_name(), "status": self._random_status()})

    def create_term(self) -> None:
        kind = self.rng.choice(("categories", "tags"))
        parent = {"parent": self._random_id("categories")} if kind == "categories" and self._coin_flip() else {}
        self._create(kind, {"name": self._random_name(), **parent})

    def schedule(self) -> None:
        kind = self.rng.choice(POSTS)
        self._change(kind, {"status": "publish", **self._near_future()})

    def change_text(self) -> None:
        kind = self.rng.choice(POSTS)
        self._change(kind, {TITLE_PARAMS[kind]: self._random_name(), "description": self._random_name()})

    def change_links(self) -> None:
        self._change("events", self._random_links())

    def change_status(self) -> None:
        self._change(self.rng.choice(POSTS), {"status": self._random_status()})

    def hide(self) -> None:
        self._change("events", {"hide_from_listings": self._coin_flip()})

    def protect(self) -> None:
        self._change("events", {"new_password": "secret" if self._coin_flip() else ""})

    def trash(self) -> None:
        kind = self.rng.choice(POSTS)
        self._delete(kind)

    def restore(self) -> None:
        kind = self.rng.choice(POSTS)
        self._request("POST", f"{EXTENSION_PATH}/{kind}/{self._random_id(kind)}/restore")

    def move_category(self) -> None:
        self._change(
            "categories", {"parent": self._random_id("categories") if self._coin_flip() else 0}, include_stable=True
        )

    def rename_term(self) -> None:
        self._change(self.rng.choice(("categories", "tags")), {"name": self._random_name()}, include_stable=True)

    def delete_term(self) -> None:
        self._delete(self.rng.choice(("categories", "tags")))

    # Helpers, in the order they are called ---------------------------------------------------

    def _create(self, kind: str, body: dict[str, Any]) -> None:
        response = self._request("POST", f"{API_PATH}/{kind}", body)
        if response.status_code == 201:
            with self.known.lock:
                self.known.ids[kind].append(response.json()["id"])

    def _change(self, kind: str, body: dict[str, Any], *, include_stable: bool = False) -> None:
        record_id = self._random_id(kind)
        if include_stable or record_id not in self.known.stable_ids[kind]:
            self._request("PATCH", f"{API_PATH}/{kind}/{record_id}", body)

    def _delete(self, kind: str) -> None:
        record_id = self._random_id(kind)
        if record_id not in self.known.stable_ids[kind]:
            self._request("DELETE", f"{API_PATH}/{kind}/{record_id}")

    def _request(self, method: str, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        reply = self.client.request(method, path, json=body)
        with self.known.lock:
            self.known.status_counts[reply.status_code] += 1
        # Others trash and delete what this one writes to: such answers are right. So is "busy".
        assert reply.status_code in (200, 201, 400, 404, 410, 429, 503), reply.text
        return reply

    def _random_links(self) -> dict[str, Any]:
        links = {
            "venue": self._random_ids("venues"),
            "organizer": self._random_ids("organizers"),
            "categories": self._random_ids("categories"),
            "tags": self._random_ids("tags"),
        }
        return {name: ids for name, ids in links.items() if self._coin_flip()}

    def _random_ids(self, kind: str) -> list[int]:
        """Often the ones that stay, so that filters by them find something."""
        pool = list(self.known.stable_ids[kind]) if self._coin_flip() else self.known.ids[kind][-30:]
        return sorted(set(self.rng.choices(pool, k=self.rng.randint(0, 2)))) if pool else []

    def _random_id(self, kind: str) -> int:
        ids = self.known.ids[kind]
        # Mostly a young one, so that writers meet.
        recent = ids[-40:] if self.rng.random() < 0.7 else ids
        return self.rng.choice(recent) if recent else 0

    def _random_state(self) -> dict[str, Any]:
        state: dict[str, Any] = {"status": self._random_status(), "hide_from_listings": self.rng.random() < 0.1}
        if self.rng.random() < 0.1:
            state["new_password"] = "secret"
        return state

    def _random_status(self) -> str:
        return self.rng.choice(("publish", "publish", "publish", "draft", "pending", "private"))

    def _random_date(self) -> dict[str, Any]:
        return self._near_future() if self.rng.random() < 0.2 else {}

    def _near_future(self) -> dict[str, Any]:
        at = datetime.now(UTC) + timedelta(seconds=self.rng.randint(1, 4))
        return {"date_utc": at.strftime("%Y-%m-%d %H:%M:%S")}

    def _coin_flip(self) -> bool:
        return self.rng.random() < 0.5

    def _random_name(self) -> str:
        return f"Word {self.rng.getrandbits(40):x}"
