"""The tables of proposals: rows by ID, the queue, lists, and what is due."""

from typing import Final, LiteralString

COLUMNS: Final[LiteralString] = """
    id::text AS id, version, record_id, base_revision, p.values::text AS values, origin, user_id, submitter_id::text AS submitter_id, submitter_name, note, guessed, source, program, state,
    starts_at, created_at, expires_at, decided_by, decided_at, reason, comment, first_revision, last_revision"""
