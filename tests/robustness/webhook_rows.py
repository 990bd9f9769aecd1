"""Rows in all tables of webhooks, for tests of the isolation of sites, of moves and of archives."""

from typing import Any

import psycopg

# Endpoints that both sites have, and those that only one has.
SHARED_WEBHOOK = "shared000001"
FOREIGN_WEBHOOK = "foreign00077"


def add_webhook_rows(connection: psycopg.Connection[Any], site_id: int, webhook_id: str, word: str) -> None:
    """Add an endpoint of the first user, and one row in each of the other tables; texts contain `word`."""
    row = {"site": site_id, "id": webhook_id, "word": word, "url": f"https://{word}.example/{webhook_id}"}
    for statement in (
        "INSERT INTO webhooks (site_id, id, name, url, owner_id, disabled_at, disabled_reason) "
        "VALUES (%(site)s, %(id)s, %(word)s, %(url)s, 1, now(), 'paused')",
        "INSERT INTO log_consumers (site_id, consumer, cursor, not_before) "
        "VALUES (%(site)s, 'webhook:' || %(id)s, 0, 'infinity')",
        "INSERT INTO webhook_pending (site_id, webhook_id, kind, record_id, since, attempts, last_error) "
        "VALUES (%(site)s, %(id)s, 'events', 1, 0, 1, %(word)s)",
        "INSERT INTO webhook_deliveries (site_id, webhook_id, number, sent_at, message_id, type, kind, record_id, "
        "revision, attempt, error, milliseconds) "
        "VALUES (%(site)s, %(id)s, 1, now(), 'msg', 'event.updated', 'events', 1, 1, 1, %(word)s, 5)",
    ):
        connection.execute(statement, row)
