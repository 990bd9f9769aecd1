"""History leads back to any earlier state of any field, links and terms included."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.api.running_app import Caller, Interface, done
from tests.api.sample_records import SAMPLES, unique
from tests.lifecycle.lifecycle_fixtures import EXTENSION
from tests.lifecycle.update_strategies import BEGINNINGS, STEPS, Step
from tests.soak import scaled

KINDS = ("events", "venues", "organizers")
IMAGE = 900_001
LINKED = {"venue": "venues", "organizer": "organizers", "categories": "categories", "tags": "tags"}


@dataclass
class World:
    """An editor, the records that events are linked to, an image, and one event whose slug is taken."""

    interface: Interface
    editor: Caller
    linked: dict[str, list[int]]
    connection: asyncpg.Connection

    def body(self, step: Step) -> dict[str, Any]:
        """What is sent: people, images and linked records are known only here."""
        body = dict(step)
        for name, kind in LINKED.items():
            if isinstance(body.get(name), list):
                body[name] = [self.linked[kind][n] for n in body[name]]
        if "author" in body:
            body["author"] = self.interface.people[body["author"]].id
        if body.get("image"):
            body["image"] = IMAGE
        return body

    def fetch(self, text: str, *values: object) -> Any:
        return self.interface.run(self.connection.fetchval(text, *values))


@pytest.fixture(scope="module")
def world(interface: Interface) -> Iterator[World]:
    editor = interface.caller("editor")
    linked = {kind: [editor.create(kind, **SAMPLES[kind].body())["id"] for _ in range(3)] for kind in LINKED.values()}
    editor.create("events", **SAMPLES["events"].body(slug="taken"))
    interface.sql(
        "INSERT INTO media (site_id, id, revision, url, extension, width, height, filesize) "
        "VALUES (1, $1, 1, 'https://example.org/i.jpg', 'jpg', 1, 1, 1)",
        IMAGE,
    )
    connection = interface.run(asyncpg.connect(interface.database_url))
    yield World(interface, editor, linked, connection)
    interface.run(connection.close())


def told(record: dict[str, Any]) -> dict[str, Any]:
    """A representation without what may differ: the time of the write, and counts, which are others' doing."""
    shown = {name: value for name, value in record.items() if name not in ("modified", "modified_utc")}
    for name in ("categories", "tags"):
        if name in shown:
            shown[name] = [{k: v for k, v in term.items() if k != "count"} for term in shown[name]]
    return shown


@dataclass(frozen=True)
class State:
    revision: int
    record: dict[str, Any]
    password: bytes | None

    def differs(self, other: "State") -> dict[str, tuple[Any, Any]]:
        """By name: what is here, and what is there."""
        one, two = {**self.record, "password": self.password}, {**other.record, "password": other.password}
        return {name: (one.get(name), two.get(name)) for name in {*one, *two} if one.get(name) != two.get(name)}


def state_of(world: World, kind: str, answer: dict[str, Any]) -> State:
    record_id = answer["id"]
    revision = world.fetch(f"SELECT revision FROM {kind} WHERE id = $1", record_id)
    password = world.fetch("SELECT password_hash FROM events WHERE id = $1", record_id) if kind == "events" else None
    return State(revision, told(answer), password)


def restore(caller: Caller, kind: str, record_id: int, revision: int | None = None, status: int = 200) -> Any:
    body = {} if revision is None else {"revision": revision}
    return done(caller.post(f"{EXTENSION}/{kind}/{record_id}/restore", body), status)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_any_earlier_state_can_be_restored(world: World, kind: str) -> None:
    @settings(
        max_examples=scaled(40 if kind == "events" else 20, 1500),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(BEGINNINGS, STEPS[kind], st.integers(0, 2**32))
    def comes_back(beginning: Step, steps: list[Step], seed: int) -> None:
        editor = world.editor
        # Names are alike, slugs are not: the examples before this one have gone to the trash under theirs.
        first = {**beginning, **({"slug": unique("begun")} if "slug" in beginning else {})}
        made = editor.create(kind, **SAMPLES[kind].body(**first))
        states = [state_of(world, kind, made)]
        for step in steps:
            answer = editor.patch(f"/{kind}/{made['id']}", world.body(step))
            assert answer.status_code in (200, 400), answer.text
            if answer.status_code == 200:
                states.append(state_of(world, kind, answer.json()))
        for state in Random(seed).sample(states, min(len(states), 4)):
            restored = restore(editor, kind, made["id"], state.revision)
            assert state_of(world, kind, restored).differs(state) == {}
        editor.patch(f"/{kind}/{made['id']}", {"status": "trash"})
        world.fetch(f"DELETE FROM {kind} WHERE id = $1", made["id"])

    comes_back()
