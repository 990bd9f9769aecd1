"""A site with a server, a worker and a receiver of its webhooks, all of them real processes and sockets."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg
from psycopg.rows import dict_row

from tests.api.running_app import API_PATH, User, expect_json
from tests.api.sample_records import DATES
from tests.lifecycle.processes import Worker, wait_until
from tests.push.webhook_receiver import Mailbox, Receiver, Respond
from tests.servers import Server, find_free_port

WEBHOOKS = "/api/kalends/v1/webhooks"


@dataclass
class Endpoint:
    """An endpoint in the API, and where its messages arrive."""

    id: str
    secret: str
    mailbox: Mailbox


@dataclass
class DeliveryStand:
    database_url: str
    server: Server
    receiver: Receiver
    settings: Mapping[str, str]
    log: Path
    client: httpx.Client  # of an administrator
    users: Mapping[str, User]
    workers: list[Worker] = field(default_factory=list[Worker])

    def start_worker(self) -> Worker:
        self.workers.append(Worker.start(self.database_url, self.log, self.settings))
        return self.workers[-1]

    def sql(self, query: str, *values: Any) -> list[dict[str, Any]]:
        with (
            psycopg.connect(self.database_url) as connection,
            connection.cursor(row_factory=dict_row) as cursor,
        ):
            cursor.execute(query.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def add_endpoint(self, respond: Respond | None = None, **settings: Any) -> Endpoint:
        mailbox = self.receiver.add_mailbox(*([respond] if respond else []))
        body = {"name": "Receiver", "url": mailbox.url, **settings}
        created = expect_json(self.client.post(WEBHOOKS, json=body), 201)
        return Endpoint(created["id"], created["secret"], mailbox)

    def remove_endpoint(self, endpoint: Endpoint) -> None:
        expect_json(self.client.delete(f"{WEBHOOKS}/{endpoint.id}"))

    def read(self, endpoint: Endpoint) -> dict[str, Any]:
        found: dict[str, Any] = expect_json(self.client.get(f"{WEBHOOKS}/{endpoint.id}"))
        return found

    def act(self, endpoint: Endpoint, action: str, **body: Any) -> None:
        expect_json(self.client.post(f"{WEBHOOKS}/{endpoint.id}/{action}", json=body))

    def list_deliveries(self, endpoint: Endpoint) -> list[dict[str, Any]]:
        """Return the log, the oldest delivery first."""
        response = self.client.get(f"{WEBHOOKS}/{endpoint.id}/deliveries", params={"per_page": 100})
        return list(reversed(expect_json(response)["deliveries"]))

    def create(self, kind: str = "events", **body: Any) -> dict[str, Any]:
        dates = DATES if kind == "events" else {}
        created: dict[str, Any] = expect_json(self.client.post(f"{API_PATH}/{kind}", json={**dates, **body}), 201)
        return created

    def change(self, record: Mapping[str, Any], kind: str = "events", **body: Any) -> dict[str, Any]:
        changed: dict[str, Any] = expect_json(self.client.patch(f"{API_PATH}/{kind}/{record['id']}", json=body))
        return changed

    def delete(self, record: Mapping[str, Any], kind: str = "events", **query: Any) -> None:
        expect_json(self.client.delete(f"{API_PATH}/{kind}/{record['id']}", params=query))

    def read_revision(self) -> int:
        revision: int = self.sql("SELECT revision FROM sites")[0]["revision"]
        return revision

    def read_consumer(self, endpoint: Endpoint) -> dict[str, Any]:
        not_before = "nullif(nullif(not_before, '-infinity'), 'infinity') AS not_before"
        query = f"SELECT cursor, position, waits, due_at, lease, {not_before} FROM log_consumers WHERE consumer = %s"
        return self.sql(query, f"webhook:{endpoint.id}")[0]

    def hasten(self, endpoint: Endpoint) -> None:
        """Let the times of all retries and waits of an endpoint come."""
        self.sql(
            "UPDATE webhook_pending SET next_attempt_at = now() WHERE webhook_id = %s AND next_attempt_at > now()",
            endpoint.id,
        )
        self.sql(
            "UPDATE log_consumers SET not_before = '-infinity', due_at = now() "
            "WHERE consumer = %s AND not_before < 'infinity'",
            f"webhook:{endpoint.id}",
        )

    def is_settled(self, endpoint: Endpoint) -> bool:
        """Return whether every change has been handled and nothing is tried again."""
        (row,) = self.sql(
            "SELECT c.cursor = s.revision AND c.lease IS NULL AND NOT EXISTS (SELECT FROM webhook_pending p "
            "WHERE p.webhook_id = %s AND p.next_attempt_at IS NOT NULL) AS settled "
            "FROM log_consumers c JOIN sites s ON s.id = c.site_id WHERE c.consumer = %s",
            endpoint.id,
            f"webhook:{endpoint.id}",
        )
        return bool(row["settled"])

    def settle(self, endpoint: Endpoint, timeout: float = 20) -> None:
        wait_until(lambda: self.is_settled(endpoint), timeout)

    def list_jobs(self, task: str) -> list[dict[str, Any]]:
        return [
            row["args"]
            for row in self.sql("SELECT args FROM procrastinate_jobs WHERE task_name = %s ORDER BY id", task)
        ]


# Opens a stand with these settings.
OpenStand = Callable[..., AbstractContextManager[DeliveryStand]]


@contextmanager
def open_stand(
    database_url: str,
    users: Mapping[str, User],
    start_server: Callable[..., Server],
    log: Path,
    settings: Mapping[str, str] | None = None,
) -> Iterator[DeliveryStand]:
    with Receiver() as receiver:
        port = find_free_port()
        environment = {
            "KALENDS_BASE_URL": f"http://127.0.0.1:{port}",
            "KALENDS_FETCH_ALLOWED_NETWORKS": f"127.0.0.1:{receiver.port}",
            **(settings or {}),
        }
        with start_server(database_url, port=port, environment=environment) as server:
            user = users["administrator"]
            with server.client(login=user.login, password=user.password) as client:
                stand = DeliveryStand(database_url, server, receiver, environment, log, client, users)
                try:
                    yield stand
                finally:
                    for worker in stand.workers:
                        worker.kill()
