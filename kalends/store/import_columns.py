"""The columns that queries of imports return.

They are named, because a star would also return the columns that a later version adds. That changes the type of the
result under the prepared statements of a running server, which then fail.
"""

from typing import Final, LiteralString

SOURCE_COLUMNS: Final[LiteralString] = (
    "s.site_id, s.id, s.kind, s.name, s.url, s.interval_minutes, s.owner_id, s.default_status, "
    "s.default_category_id, s.authority, s.timezone, s.columns, s.trust_rank, s.allow_mass_deletion, s.state, "
    "s.etag, s.last_modified, s.input_hash, s.facts, s.created_at, s.next_run_at, s.last_success_at, s.failures, "
    "s.organizer_emails"
)
ITEM_COLUMNS: Final[LiteralString] = (
    "i.site_id, i.source_id, i.kind, i.identity, i.recurrence_id, i.record_id, i.fingerprint, i.source_values, "
    "i.stored_values, i.first_seen_at, i.last_seen_at, i.absences"
)
RUN_COLUMNS: Final[LiteralString] = (
    "r.site_id, r.id, r.source_id, r.user_id, r.undoes, r.state, r.started_at, r.planned_at, r.finished_at, "
    "r.counts, r.failure, r.warnings, r.progress, r.options, r.preview, r.input_hash, r.first_revision, "
    "r.last_revision"
)
ROW_COLUMNS: Final[LiteralString] = (
    "p.site_id, p.run_id, p.number, p.action, p.kind, p.identity, p.recurrence_id, p.title, p.record_id, "
    "p.record_revision, p.imported, p.changes, p.reasons, p.line, p.state, p.first_revision, p.revision, "
    "p.different_from"
)
SELECT_SOURCES: Final[LiteralString] = "SELECT " + SOURCE_COLUMNS + " FROM import_sources s"
SELECT_ITEMS: Final[LiteralString] = "SELECT " + ITEM_COLUMNS + " FROM import_items i"
SELECT_RUNS: Final[LiteralString] = "SELECT " + RUN_COLUMNS + " FROM import_runs r"
SELECT_ROWS: Final[LiteralString] = "SELECT " + ROW_COLUMNS + " FROM import_rows p"
