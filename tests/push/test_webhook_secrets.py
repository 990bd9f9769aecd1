"""Once shown, the secret of an endpoint is nowhere: not in logs, traces, archives, messages, responses or tables."""

import zipfile
from datetime import UTC, datetime
from pathlib import Path

import psycopg
from standardwebhooks import Webhook, WebhookVerificationError

from tests.lifecycle.processes import run_command
from tests.monitoring.trace_collector import run_collector
from tests.push.delivery_stand import WEBHOOKS, DeliveryStand, OpenStand
from tests.push.webhook_receiver import Received


def verifies(secret: str, message: Received) -> bool:
    try:
        Webhook(secret).verify(message.body, dict(message.headers), json_parse=False)
    except WebhookVerificationError:
        return False
    return True


def dump_tables(database_url: str) -> str:
    """Return all rows of all tables, in all schemas."""
    with psycopg.connect(database_url) as connection:
        names = connection.execute(
            "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        rows = [connection.execute(f"SELECT t::text FROM {name} t".encode()).fetchall() for (name,) in names]
    return "\n".join(str(row) for table in rows for row in table)


def test_secret_is_nowhere_after_it_was_shown(open_new_stand: OpenStand, tmp_path: Path) -> None:
    with run_collector() as traces, open_new_stand({"KALENDS_TRACES_URL": traces.url}) as stand:
        stand.start_worker()
        endpoint = stand.add_endpoint()
        headers = {"Idempotency-Key": "rotate"}
        rotated = stand.client.post(f"{WEBHOOKS}/{endpoint.id}/rotate", headers=headers).json()["secret"]
        stand.client.post(f"{WEBHOOKS}/{endpoint.id}/rotate", headers=headers)
        stand.create(title="Choir")
        stand.act(endpoint, "test")
        messages = endpoint.mailbox.wait_for(2)
        assert all(verifies(secret, message) for message in messages for secret in (endpoint.secret, rotated))
        stand.settle(endpoint)
        expire_rotation(stand)
        stand.create(title="Orchestra")
        last = endpoint.mailbox.wait_for(3)[-1]
        assert (verifies(endpoint.secret, last), verifies(rotated, last)) == (False, True)
        responses = [stand.client.get(f"{WEBHOOKS}{path}").text for path in ("", f"/{endpoint.id}")]
        responses.append(stand.client.get(f"{WEBHOOKS}/{endpoint.id}/deliveries").text)
        stand.settle(endpoint)
        stand.workers[0].stop()
        stand.server.stop()
        archive = tmp_path / "site.zip"
        exported = run_command(stand.database_url, "site", "export", "1", "--to", str(archive), "--accounts")
        assert exported.exit_code == 0, exported.output
        with zipfile.ZipFile(archive) as opened:
            contents = b"\n".join(opened.read(entry) for entry in opened.namelist())
        places = {
            "log of the server": stand.server.read_log(),
            "log of the worker": stand.log.read_text(),
            "traces": "\n".join(body.decode(errors="replace") for body in traces.bodies),
            "archive": contents.decode(errors="replace"),
            "tables": dump_tables(stand.database_url),
            "responses": "\n".join(responses),
            "messages": "\n".join(f"{message.headers} {message.body!r}" for message in endpoint.mailbox.received),
        }
    assert all(places.values()), "nothing to search in"
    for secret in (endpoint.secret, rotated):
        key = secret.removeprefix("whsec_").rstrip("=")
        assert [place for place, text in places.items() if key in text] == []


def expire_rotation(stand: DeliveryStand) -> None:
    """Let a day pass since the rotation."""
    stand.sql("UPDATE webhooks SET rotated_at = rotated_at - interval '1 day'")
    assert stand.sql("SELECT rotated_at FROM webhooks")[0]["rotated_at"] < datetime.now(UTC)
