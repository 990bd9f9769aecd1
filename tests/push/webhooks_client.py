"""A client of the API of webhooks."""

from typing import Any

import httpx

from tests.api.running_app import Caller, RunningApp

ROOT = "//api/kalends/v1/webhooks"
NEW = {"name": "Website", "url": "https://hooks.example/kalends?key=1"}


class WebhooksClient:
    def __init__(self, caller: Caller) -> None:
        self.caller = caller

    def request(self, method: str, path: str = "", body: Any = None, **options: Any) -> httpx.Response:
        return self.caller.request(method, f"{ROOT}{path}", json=body, **options)

    def create(self, **fields: Any) -> Any:
        response = self.request("POST", "", {**NEW, **fields})
        assert response.status_code == 201, response.text
        return response.json()

    def read(self, webhook: Any) -> Any:
        return self._expect("GET", f"/{webhook['id']}")

    def change(self, webhook: Any, **fields: Any) -> Any:
        return self._expect("PATCH", f"/{webhook['id']}", fields)

    def act(self, action: str, webhook: Any, **fields: Any) -> Any:
        return self._expect("POST", f"/{webhook['id']}/{action}", fields)

    def delete_all(self) -> None:
        for webhook in self._expect("GET")["webhooks"]:
            self._expect("DELETE", f"/{webhook['id']}")

    def _expect(self, method: str, path: str = "", body: Any = None) -> Any:
        response = self.request(method, path, body)
        assert response.status_code == 200, response.text
        return response.json()


def read_consumer(app: RunningApp, webhook: Any) -> dict[str, Any]:
    columns = "cursor, due_at, not_before::text AS not_before, waits, lease::text AS lease"
    (row,) = app.sql(f"SELECT {columns} FROM log_consumers WHERE consumer = $1", f"webhook:{webhook['id']}")
    return dict(row)


def list_pending(app: RunningApp, webhook: Any) -> list[tuple[str, int, int, int]]:
    columns = "kind, record_id, since, attempts"
    where = "webhook_id = $1 AND next_attempt_at <= now() ORDER BY kind, record_id"
    rows = app.sql(f"SELECT {columns} FROM webhook_pending WHERE {where}", webhook["id"])
    return [(row["kind"], row["record_id"], row["since"], row["attempts"]) for row in rows]


def add_delivery(app: RunningApp, webhook: Any, number: int, **columns: Any) -> None:
    """Add an entry of the log, as a delivery does."""
    values = {
        "site_id": app.site_id,
        "webhook_id": webhook["id"],
        "number": number,
        "message_id": f"msg_{number}",
        "type": "event.updated",
        "kind": "events",
        "record_id": 7,
        "revision": 3,
        "attempt": 1,
        "status": 200,
        "milliseconds": 12,
        **columns,
    }
    marks = ", ".join(f"${place}" for place in range(1, len(values) + 1))
    names = f"sent_at, {', '.join(values)}"
    app.sql(f"INSERT INTO webhook_deliveries ({names}) VALUES (now(), {marks})", *values.values())
