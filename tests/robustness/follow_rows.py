"""Rows in all tables of followers, for tests of the isolation of sites and of archives."""

from typing import Any

import psycopg

# Followers that both sites have, and those that only one has.
SHARED_FOLLOWER = "01990000-0000-7000-8000-000000000002"
FOREIGN_FOLLOWER = "01990000-0000-7000-8000-000000000078"


def add_follow_rows(connection: psycopg.Connection[Any], site_id: int, follower_id: str, word: str) -> None:
    """Add a person with a confirmed list, and the numbers of a day; texts contain `word`."""
    row = {"site": site_id, "id": follower_id, "word": word, "email": f"{follower_id[-2:]}@{word}.example"}
    for statement in (
        "INSERT INTO followers (site_id, id, email, key, language) "
        "VALUES (%(site)s, %(id)s, %(email)s, '0123456789abcdef', 'de')",
        "INSERT INTO follows (site_id, id, follower_id, query, since, confirmed_at, next_at, created_at) "
        "VALUES (%(site)s, %(id)s, %(id)s, 'search=' || %(word)s, 1, now(), '2099-01-01', now())",
        "INSERT INTO mail_days (site_id, day, sent) VALUES (%(site)s, "
        "date '2031-05-05' + ('x' || right(%(id)s, 2))::bit(8)::integer, 3)",
    ):
        connection.execute(statement, row)
