"""Rows in all tables of the console, for tests of the isolation and the removal of sites."""

from typing import Any

import psycopg

TABLES = ("sessions", "passkeys", "one_time_tokens", "drafts", "saved_filters")


def add_console_rows(connection: psycopg.Connection[Any], site_id: int, user_id: int, word: str) -> None:
    """Add one row to each table; the keys are the same in every site, the texts contain `word`."""
    owner = {"site": site_id, "user": user_id, "word": word}
    for statement in (
        "INSERT INTO sessions VALUES (%(site)s, 'token', %(user)s, now(), now(), now(), '127.0.0.1', %(word)s)",
        "INSERT INTO passkeys VALUES (%(site)s, 'id', %(user)s, 'key', 0, %(word)s, now(), NULL)",
        "INSERT INTO one_time_tokens VALUES (%(site)s, 'token', 'sign_in', %(user)s, now() + interval '1 hour')",
        "INSERT INTO drafts VALUES (%(site)s, %(user)s, 'events', 'new', NULL, '{}', now())",
        "INSERT INTO saved_filters VALUES (%(site)s, %(user)s, 'mine', %(word)s)",
    ):
        connection.execute(statement, owner)
