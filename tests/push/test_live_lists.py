"""Live lists through a real process: messages, resuming, rights, limits and refusals."""

import asyncio
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import httpx
import psycopg
import pytest

from tests.api.running_app import User, add_users
from tests.conftest import replace_database, temporary_database
from tests.push.stream_client import STREAM, Copy, StreamClient
from tests.servers import Server

API = "/api/calendar/events/v1"
EVENTS = f"{API}/events"
CHANGES = "/api/kalends/v1/changes"


@dataclass
class Stage:
    """A server, and a process for streams on the same database."""

    server: Server
    streams: Server
    users: dict[str, User]
    editor: httpx.Client
    database_url: str

    def write(self, method: str, path: str, **fields) -> dict:
        reply = self.editor.request(method, f"{API}/{path}", json=fields or None)
        assert reply.is_success, reply.text
        return reply.json()

    def add_event(self, title: str, days: float = 1, **fields) -> dict:
        start = datetime.now(UTC) + timedelta(days=days)
        times = {
            "start_date": f"{start:%Y-%m-%d %H:%M:%S}",
            "end_date": f"{start + timedelta(hours=1):%Y-%m-%d %H:%M:%S}",
        }
        return self.write("POST", "events", **{"title": title, **times, "status": "publish", **fields})

    def follow(self, path: str = EVENTS, role: str = "", **headers: str) -> StreamClient:
        if role:
            headers["Authorization"] = self.authorize(role)
        return StreamClient(self.streams.base_url, path, headers)

    def authorize(self, role: str) -> str:
        user = self.users[role]
        return f"Basic {b64encode(f'{user.login}:{user.password}'.encode()).decode()}"

    def page(self, path: str = EVENTS, role: str = "") -> dict:
        headers = {"Authorization": self.authorize(role)} if role else {}
        reply = httpx.get(f"{self.server.base_url}{path}", headers=headers)
        assert reply.is_success, reply.text
        return reply.json()


@pytest.fixture(scope="module")
def stage(postgres_url: str, template_database: str, start_server: Callable[..., Server]) -> Iterator[Stage]:
    with temporary_database(postgres_url, template=template_database) as name:
        url = replace_database(postgres_url, name)
        users = asyncio.run(add_users(url))
        # Links in records depend on the host unless there is a base URL.
        settings = {"KALENDS_BASE_URL": "http://calendar.test"}
        server = start_server(url, environment=settings)
        streams = start_server(url, environment=settings, command_name="stream")
        editor = users["editor"]
        with server.client(login=editor.login, password=editor.password) as client:
            yield Stage(server, streams, users, client, url)
        streams.stop()
        server.stop()


def follow_copy(client: StreamClient, kind: str = "events") -> Copy:
    """Return the copy of a client that has received its first message."""
    copy = Copy(kind)
    message = client.next()
    assert message is not None
    assert message.event == "snapshot"
    copy.apply(message)
    return copy


def apply_next(copy: Copy, client: StreamClient) -> dict:
    message = client.next()
    assert message is not None
    copy.apply(message)
    return message.data


def test_a_list_starts_with_a_snapshot_and_follows_every_change(stage: Stage) -> None:
    venue = stage.write("POST", "venues", venue="Hall", status="publish")
    first = stage.add_event("First", venue=venue["id"])
    path = f"{EVENTS}?venue={venue['id']}"
    with stage.follow(path) as client:
        assert client.status == 200
        assert client.headers["content-type"].startswith("text/event-stream")
        assert client.headers["cache-control"] == "no-store"
        assert client.headers["x-accel-buffering"] == "no"
        copy = follow_copy(client)
        assert 1000 <= client.parser.retry <= 10_000
        page = stage.page(path)
        assert copy.records == page["events"]
        assert (copy.total, copy.total_pages) == (1, 1)

        second = stage.add_event("Second", 0.5, venue=venue["id"])
        data = apply_next(copy, client)
        assert data["order"] == [second["id"], first["id"]]
        assert [record["id"] for record in data["events"]] == [second["id"]]

        # A renamed venue changes the JSON of its events, and not their revision.
        stage.write("PATCH", f"venues/{venue['id']}", venue="Theatre")
        data = apply_next(copy, client)
        assert [record["id"] for record in data["events"]] == [second["id"], first["id"]]

        stage.write("PATCH", f"events/{second['id']}", event_status="cancelled")
        data = apply_next(copy, client)
        assert [record["id"] for record in data["events"]] == [second["id"]]

        stage.write("DELETE", f"events/{first['id']}")
        data = apply_next(copy, client)
        assert (data["order"], data["events"], data["total"]) == ([second["id"]], [], 1)
        assert copy.records == stage.page(path)["events"]

        # A change elsewhere sends nothing.
        stage.add_event("Elsewhere")
        assert client.is_silent(2.5)


def test_a_client_resumes_without_repetition(stage: Stage) -> None:
    tag = stage.write("POST", "tags", name="Resumed")
    event = stage.add_event("Resumed", tags=[tag["id"]])
    path = f"{EVENTS}?tags={tag['id']}"
    with stage.follow(path) as client:
        last_id = follow_copy(client).last_id
    stage.add_event("Other")
    with stage.follow(path, **{"Last-Event-ID": last_id}) as client:
        assert client.is_silent(1.5)
        stage.write("PATCH", f"events/{event['id']}", title="Resumed and changed")
        message = client.next()
        assert message is not None
        assert message.event == "change"
    with stage.follow(path, **{"Last-Event-ID": last_id}) as client:
        copy = follow_copy(client)
        assert copy.records == stage.page(path)["events"]


@pytest.mark.parametrize(
    ("kind", "fields"),
    [("venues", {"venue": "A"}), ("organizers", {"organizer": "A"}), ("categories", {"name": "A"}),
     ("tags", {"name": "A"})],
)  # fmt: skip
def test_other_kinds_can_be_followed(stage: Stage, kind: str, fields: dict) -> None:
    with stage.follow(f"{API}/{kind}?per_page=50&hide_empty=false") as client:
        copy = follow_copy(client, kind)
        record = stage.write("POST", kind, **fields)
        apply_next(copy, client)
        assert record["id"] in [entry["id"] for entry in copy.records]


def test_changes_are_streamed_page_by_page(stage: Stage) -> None:
    for number in range(5):
        stage.add_event(f"Change {number}")
    found: list[int] = []
    with stage.follow(f"{CHANGES}?since=0&per_page=2") as client:
        message = client.next()
        while message is not None and message.data["more"]:
            assert message.event == "changes"
            assert message.id == message.data["next_since"]
            found += [entry["revision"] for entry in message.data["changes"]]
            message = client.next()
        assert message is not None
        found += [entry["revision"] for entry in message.data["changes"]]
        assert found == sorted(set(found))
        reply = httpx.get(f"{stage.server.base_url}{CHANGES}?since=0&per_page=500").json()
        assert found == [entry["revision"] for entry in reply["changes"]]
        event = stage.add_event("Live change")
        message = client.next()
        assert message is not None
        assert event["id"] in [entry["id"] for entry in message.data["changes"]]
    last_id = message.id
    stage.add_event("While away")
    with stage.follow(f"{CHANGES}?since=0&per_page=2", **{"Last-Event-ID": last_id}) as client:
        message = client.next()
        assert message is not None
        assert [entry["record"]["title"] for entry in message.data["changes"]] == ["While away"]


def test_rights_are_checked_at_each_evaluation(stage: Stage) -> None:
    draft = stage.add_event("Draft", status="draft")
    path = f"{EVENTS}?status=draft"
    with stage.follow(path) as anonymous, stage.follow(path, "editor") as client:
        copy = follow_copy(client)
        assert draft["id"] in [record["id"] for record in copy.records]
        assert anonymous.status in (400, 401, 403)
    with stage.follow(path, "administrator") as client:
        assert follow_copy(client).records
        with psycopg.connect(stage.database_url, autocommit=True) as connection:
            connection.execute(
                "DELETE FROM application_passwords WHERE user_id = %s", [stage.users["administrator"].id]
            )
        stage.add_event("After the password was revoked")
        message = client.next()
        assert message is not None
        assert (message.event, message.data["data"]["status"]) == ("end", 401)
        assert client.next() is None
    with stage.follow(path, Authorization="Basic d3Jvbmc6d3Jvbmc=") as client:
        assert client.status == 401


def test_stream_ends_when_the_record_of_its_filter_is_gone(stage: Stage) -> None:
    event = stage.add_event("Withdrawn", organizer={"organizer": "Choir"})
    with stage.follow(f"{API}/organizers?event={event['id']}") as client:
        copy = follow_copy(client, "organizers")
        stage.write("DELETE", f"events/{event['id']}")
        apply_next(copy, client)
        assert copy.records == []
        with psycopg.connect(stage.database_url, autocommit=True) as connection:  # as if the trash were emptied
            connection.execute("DELETE FROM events WHERE id = %s", [event["id"]])
        stage.add_event("Raises the revision", organizer={"organizer": "Band"})
        message = client.next()
        assert message is not None
        assert (message.event, message.data["data"]["status"]) == ("end", 400)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{EVENTS}?_envelope=1", 406),
        (f"{EVENTS}?password=secret", 406),
        (f"{EVENTS}?_fields=events.title,total", 406),
        (f"{EVENTS}/1", 406),
        ("/api/kalends/v1/media", 406),
        (f"{CHANGES}?_fields=changes", 406),
        (f"{EVENTS}?start_date=never", 400),
        (f"{EVENTS}?wenue=1&strict=1", 400),
        (f"{EVENTS}?page=77", 404),
        ("/events/list/", 404),
        ("/", 404),
        ("/console/", 404),
        (f"{API}/nothing", 404),
    ],
)
def test_refusals(stage: Stage, path: str, status: int) -> None:
    with stage.follow(path) as client:
        assert client.status == status, client.body


def test_fields_with_the_id_are_accepted(stage: Stage) -> None:
    event = stage.add_event("Only the title")
    with stage.follow(f"{EVENTS}?include={event['id']}&_fields=events.id,events.title") as client:
        copy = follow_copy(client)
        assert copy.records == [{"id": event["id"], "title": "Only the title"}]
        stage.write("PATCH", f"events/{event['id']}", title="Another title")
        apply_next(copy, client)
        assert copy.records == [{"id": event["id"], "title": "Another title"}]


@pytest.mark.parametrize(
    ("accept", "streams"),
    [
        ("text/event-stream", True),
        ("text/event-stream, application/json;q=0.9", True),
        ("text/event-stream, application/json", False),
        ("application/json, text/event-stream;q=0.5", False),
        ("text/event-stream, */*", False),
        ("*/*", False),
    ],
)
def test_the_accept_header_decides(stage: Stage, accept: str, *, streams: bool) -> None:
    with stage.follow(Accept=accept) as client:
        assert client.status == 200
        assert client.headers["content-type"].startswith("text/event-stream") == streams


def test_request_processes_do_not_stream(stage: Stage) -> None:
    for path in (EVENTS, f"{EVENTS}/1", CHANGES, EVENTS):
        reply = httpx.get(f"{stage.server.base_url}{path}", headers=STREAM)
        assert (reply.status_code, reply.json()["code"]) == (406, "rest_not_acceptable"), path
        reply = httpx.get(f"{stage.server.base_url}{EVENTS}", headers={"Accept": "text/event-stream, */*;q=0.1"})
        assert reply.status_code == 200
        assert reply.headers["content-type"].startswith("application/json")


def test_health_checks_and_lists_as_json(stage: Stage) -> None:
    for path in ("/healthz", "/readyz", EVENTS):
        assert httpx.get(f"{stage.streams.base_url}{path}").status_code == 200, path
    assert httpx.post(f"{stage.streams.base_url}{EVENTS}", json={}).status_code == 404
    assert httpx.options(f"{stage.streams.base_url}{EVENTS}").status_code == 200


def test_limits_of_an_address_and_an_account(stage: Stage) -> None:
    opened: list[StreamClient] = []
    try:
        for _ in range(5):
            opened.append(stage.follow(f"{EVENTS}?per_page=2", "author"))
            assert opened[-1].status == 200
        with stage.follow(f"{EVENTS}?per_page=3", "author") as refused:
            assert refused.status == 429
            assert refused.headers["retry-after"]
        while len(opened) < 50:
            opened.append(stage.follow(f"{EVENTS}?per_page=4"))
            assert opened[-1].status == 200, len(opened)
        with stage.follow() as refused:
            assert refused.status == 429
    finally:
        for client in opened:
            client.cut()
    wait_until_accepted(stage)


def wait_until_accepted(stage: Stage) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with stage.follow() as client:
            if client.status == 200:
                return
        time.sleep(0.2)
    raise AssertionError("the connections that were cut still count")


def test_all_streams_end_within_a_second_of_sigterm(stage: Stage, start_server: Callable[..., Server]) -> None:
    streams = start_server(stage.database_url, command_name="stream")
    clients = [StreamClient(streams.base_url, EVENTS) for _ in range(20)]
    for client in clients:
        assert client.next() is not None
    started = time.monotonic()
    streams.process.terminate()
    for client in clients:
        assert client.next(5) is None
    assert time.monotonic() - started < 1.0
    for client in clients:
        client.cut()
    assert streams.stop() == 0
