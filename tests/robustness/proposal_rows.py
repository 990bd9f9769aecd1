"""Rows in all tables of proposals, for tests of the isolation of sites and of archives."""

from typing import Any

import psycopg

# Proposals that both sites have, and those that only one has.
SHARED_PROPOSAL = "01990000-0000-7000-8000-000000000001"
FOREIGN_PROPOSAL = "01990000-0000-7000-8000-000000000077"


def add_proposal_rows(connection: psycopg.Connection[Any], site_id: int, proposal_id: str, word: str) -> None:
    """Add a waiting proposal of the first user, and one row in each of the other tables; texts contain `word`."""
    row = {"site": site_id, "id": proposal_id, "word": word, "email": f"{proposal_id[-2:]}@{word}.example"}
    for statement in (
        "INSERT INTO submitters (site_id, id, email, last_seen_at) VALUES (%(site)s, %(id)s, %(email)s, now())",
        "INSERT INTO proposals (site_id, id, origin, user_id, submitter_name, note, state, values, starts_at, "
        "created_at, expires_at, token_hashes) VALUES (%(site)s, %(id)s, 'api', 1, %(word)s, %(word)s, "
        "'waiting', jsonb_build_object('title', %(word)s::text, 'start_date', '2099-01-01', "
        "'end_date', '2099-01-02'), '2099-01-01', now(), '2099-01-02', ARRAY['token'::bytea])",
        "INSERT INTO proposal_pictures (site_id, proposal_id, content, alt_text) "
        "VALUES (%(site)s, %(id)s, 'x', %(word)s)",
    ):
        connection.execute(statement, row)
