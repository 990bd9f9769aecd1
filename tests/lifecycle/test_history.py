"""History leads back to any earlier state of any field, links and terms included."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.api.running_app import Caller, RunningApp, expect_json
from tests.api.sample_records import SAMPLES, unique
from tests.lifecycle.lifecycle_fixtures import EXTENSION_URL
from tests.lifecycle.update_strategies import INITIAL_FIELDS, UPDATES, Update
from tests.soak import scaled

KINDS = ("events", "venues", "organizers")
IMAGE_ID = 900_001
LINKED_KINDS = {"venue": "venues", "organizer": "organizers", "categories": "categories", "tags": "tags"}


@dataclass
class LinkedRecords:
    """An editor, the records that events are linked to, an image, and one event whose slug is taken."""

    interface: RunningApp
    editor: Caller
    linked: dict[str, list[int]]
    connection: asyncpg.Connection

    def resolve_body(self, step: Update) -> dict[str, Any]:
        """What is sent: people, images and linked records are known only here."""
        body = dict(step)
        for name, kind in LINKED_KINDS.items():
            if isinstance(body.get(name), list):
                body[name] = [self.linked[kind][n] for n in body[name]]
        if "author" in body:
            body["author"] = self.interface.users[body["author"]].id
        if body.get("image"):
            body["image"] = IMAGE_ID
        return body

    def fetch(self, text: str, *values: object) -> Any:
        return self.interface.run(self.connection.fetchval(text, *values))


@pytest.fixture(scope="module")
def linked_records(app: RunningApp) -> Iterator[LinkedRecords]:
    editor = app.caller("editor")
    linked = {
        kind: [editor.create(kind, **SAMPLES[kind].body())["id"] for _ in range(3)] for kind in LINKED_KINDS.values()
    }
    editor.create("events", **SAMPLES["events"].body(slug="taken"))
    app.sql(
        "INSERT INTO media (site_id, id, revision, url, extension, width, height, filesize) "
        "SELECT id, $1, 1, 'https://example.org/i.jpg', 'jpg', 1, 1, 1 FROM sites",
        IMAGE_ID,
    )
    connection = app.run(asyncpg.connect(app.database_url))
    app.run(connection.execute("SET ROLE kalends_app"))
    app.run(connection.execute("SELECT set_config('kalends.site_id', $1, false)", str(app.site_id)))
    yield LinkedRecords(app, editor, linked, connection)
    app.run(connection.close())


def comparable(record: dict[str, Any]) -> dict[str, Any]:
    """A representation without what may differ: the time of the write, and counts, which are others' doing."""
    fields = {name: value for name, value in record.items() if name not in ("modified", "modified_utc")}
    for name in ("categories", "tags"):
        if name in fields:
            fields[name] = [{k: v for k, v in term.items() if k != "count"} for term in fields[name]]
    return fields


@dataclass(frozen=True)
class State:
    revision: int
    record: dict[str, Any]
    password: bytes | None

    def differences(self, other: "State") -> dict[str, tuple[Any, Any]]:
        """By name: what is here, and what is there."""
        one, two = {**self.record, "password": self.password}, {**other.record, "password": other.password}
        return {name: (one.get(name), two.get(name)) for name in {*one, *two} if one.get(name) != two.get(name)}


def read_state(world: LinkedRecords, kind: str, response: dict[str, Any]) -> State:
    record_id = response["id"]
    revision = world.fetch(f"SELECT revision FROM {kind} WHERE id = $1", record_id)
    password = world.fetch("SELECT password_hash FROM events WHERE id = $1", record_id) if kind == "events" else None
    return State(revision, comparable(response), password)


def restore(caller: Caller, kind: str, record_id: int, revision: int | None = None, status: int = 200) -> Any:
    body = {} if revision is None else {"revision": revision}
    return expect_json(caller.post(f"{EXTENSION_URL}/{kind}/{record_id}/restore", body), status)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
def test_any_earlier_state_can_be_restored(linked_records: LinkedRecords, kind: str) -> None:
    @settings(
        max_examples=scaled(40 if kind == "events" else 20, 1500),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(INITIAL_FIELDS, UPDATES[kind], st.integers(0, 2**32))
    def check_restore(beginning: Update, steps: list[Update], seed: int) -> None:
        editor = linked_records.editor
        # Names are alike, slugs are not: the examples before this one have gone to the trash under theirs.
        first = {**beginning, **({"slug": unique("begun")} if "slug" in beginning else {})}
        record = editor.create(kind, **SAMPLES[kind].body(**first))
        states = [read_state(linked_records, kind, record)]
        for step in steps:
            response = editor.patch(f"/{kind}/{record['id']}", linked_records.resolve_body(step))
            assert response.status_code in (200, 400), response.text
            if response.status_code == 200:
                states.append(read_state(linked_records, kind, response.json()))
        for state in Random(seed).sample(states, min(len(states), 4)):
            restored = restore(editor, kind, record["id"], state.revision)
            assert read_state(linked_records, kind, restored).differences(state) == {}
        editor.patch(f"/{kind}/{record['id']}", {"status": "trash"})
        linked_records.fetch(f"DELETE FROM {kind} WHERE id = $1", record["id"])

    check_restore()
