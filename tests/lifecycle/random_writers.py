"""Writers that change a site at random: everything that can happen to records, links, terms and statuses."""

import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import httpx

from tests.api.running_app import NAMESPACE
from tests.api.sample_records import DATES
from tests.lifecycle.lifecycle_fixtures import EXTENSION_PATH

POSTS = ("events", "venues", "organizers")
NAMES = {"events": "title", "venues": "venue", "organizers": "organizer"}


@dataclass
class Known:
    """The IDs that writers know of, and the ones that they leave alone."""

    ids: dict[str, list[int]] = field(default_factory=lambda: defaultdict[str, list[int]](list))
    kept: dict[str, set[int]] = field(default_factory=lambda: defaultdict[str, set[int]](set))
    lock: threading.Lock = field(default_factory=threading.Lock)
    answers: Counter[int] = field(default_factory=Counter[int])


class Writer:
    def __init__(self, client: httpx.Client, known: Known, seed: int) -> None:
        self.client, self.known, self.chance = client, known, Random(seed)
        acts: dict[Callable[[], None], int] = {
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
        self._acts, self._weights = list(acts), list(acts.values())

    def act(self) -> None:
        self.chance.choices(self._acts, self._weights)[0]()

    def create_event(self) -> None:
        self._create("events", {"title": self._word(), **DATES, **self._links(), **self._state(), **self._date()})

    def create_place(self) -> None:
        kind = self.chance.choice(("venues", "organizers"))
        self._create(kind, {NAMES[kind]: self._word(), "status": self._status()})

    def create_term(self) -> None:
        kind = self.chance.choice(("categories", "tags"))
        parent = {"parent": self._some("categories")} if kind == "categories" and self._heads() else {}
        self._create(kind, {"name": self._word(), **parent})

    def schedule(self) -> None:
        kind = self.chance.choice(POSTS)
        self._change(kind, {"status": "publish", **self._soon()})

    def change_text(self) -> None:
        kind = self.chance.choice(POSTS)
        self._change(kind, {NAMES[kind]: self._word(), "description": self._word()})

    def change_links(self) -> None:
        self._change("events", self._links())

    def change_status(self) -> None:
        self._change(self.chance.choice(POSTS), {"status": self._status()})

    def hide(self) -> None:
        self._change("events", {"hide_from_listings": self._heads()})

    def protect(self) -> None:
        self._change("events", {"new_password": "secret" if self._heads() else ""})

    def trash(self) -> None:
        kind = self.chance.choice(POSTS)
        self._delete(kind)

    def restore(self) -> None:
        kind = self.chance.choice(POSTS)
        self._ask("POST", f"{EXTENSION_PATH}/{kind}/{self._some(kind)}/restore")

    def move_category(self) -> None:
        self._change("categories", {"parent": self._some("categories") if self._heads() else 0}, all_of_them=True)

    def rename_term(self) -> None:
        self._change(self.chance.choice(("categories", "tags")), {"name": self._word()}, all_of_them=True)

    def delete_term(self) -> None:
        self._delete(self.chance.choice(("categories", "tags")))

    # Helpers, in the order they are called ---------------------------------------------------

    def _create(self, kind: str, body: dict[str, Any]) -> None:
        answer = self._ask("POST", f"{NAMESPACE}/{kind}", body)
        if answer.status_code == 201:
            with self.known.lock:
                self.known.ids[kind].append(answer.json()["id"])

    def _change(self, kind: str, body: dict[str, Any], *, all_of_them: bool = False) -> None:
        record_id = self._some(kind)
        if all_of_them or record_id not in self.known.kept[kind]:
            self._ask("PATCH", f"{NAMESPACE}/{kind}/{record_id}", body)

    def _delete(self, kind: str) -> None:
        record_id = self._some(kind)
        if record_id not in self.known.kept[kind]:
            self._ask("DELETE", f"{NAMESPACE}/{kind}/{record_id}")

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        answer = self.client.request(method, path, json=body)
        with self.known.lock:
            self.known.answers[answer.status_code] += 1
        # Others trash and delete what this one writes to: such answers are right. So is "busy".
        assert answer.status_code in (200, 201, 400, 404, 410, 503), answer.text
        return answer

    def _links(self) -> dict[str, Any]:
        links = {
            "venue": self._several("venues"),
            "organizer": self._several("organizers"),
            "categories": self._several("categories"),
            "tags": self._several("tags"),
        }
        return {name: ids for name, ids in links.items() if self._heads()}

    def _several(self, kind: str) -> list[int]:
        """Often the ones that stay, so that filters by them find something."""
        pool = list(self.known.kept[kind]) if self._heads() else self.known.ids[kind][-30:]
        return sorted(set(self.chance.choices(pool, k=self.chance.randint(0, 2)))) if pool else []

    def _some(self, kind: str) -> int:
        ids = self.known.ids[kind]
        # Mostly a young one, so that writers meet.
        recent = ids[-40:] if self.chance.random() < 0.7 else ids
        return self.chance.choice(recent) if recent else 0

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = {"status": self._status(), "hide_from_listings": self.chance.random() < 0.1}
        if self.chance.random() < 0.1:
            state["new_password"] = "secret"
        return state

    def _status(self) -> str:
        return self.chance.choice(("publish", "publish", "publish", "draft", "pending", "private"))

    def _date(self) -> dict[str, Any]:
        return self._soon() if self.chance.random() < 0.2 else {}

    def _soon(self) -> dict[str, Any]:
        at = datetime.now(UTC) + timedelta(seconds=self.chance.randint(1, 4))
        return {"date_utc": at.strftime("%Y-%m-%d %H:%M:%S")}

    def _heads(self) -> bool:
        return self.chance.random() < 0.5

    def _word(self) -> str:
        return f"Word {self.chance.getrandbits(40):x}"
