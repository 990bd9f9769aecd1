"""Rows of imports: sources, items, runs and the rows of plans."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, LiteralString

import orjson
from asyncpg import Record

from kalends.core.imports.records import ImportedRecord
from kalends.core.messages import Message
from kalends.store.database import Database, Transaction
from kalends.store.import_columns import SELECT_ITEMS, SELECT_ROWS, SELECT_RUNS, SELECT_SOURCES
from kalends.store.records import add, change
from kalends.store.sql import Sql

Columns = Mapping[LiteralString, object]


def encode(value: object) -> str:
    """Encode a value for a column of type jsonb."""
    return orjson.dumps(value, default=_encode_value).decode()


def decode(value: str) -> Any:
    """Decode a column of type jsonb."""
    return orjson.loads(value)


def encode_message(message: Message) -> dict[str, Any]:
    return {"text": message.text, "values": {name: _encode_part(value) for name, value in message.values.items()}}


def decode_message(stored: Mapping[str, Any]) -> Message:
    values = {name: _decode_part(value) for name, value in stored["values"].items()}
    return Message(stored["text"], **values)


def encode_imported(record: ImportedRecord) -> str:
    return encode(
        {
            "values": record.values,
            "columns": record.columns,
            "links": record.links,
            "wanted_id": record.wanted_id,
            "is_linked": record.is_linked,
            "question": encode_message(record.question) if record.question is not None else None,
            "dates": record.dates,
        }
    )


def decode_imported(row: Record) -> ImportedRecord:
    """Return the imported record of a row of a plan."""
    stored = orjson.loads(row["imported"])
    if stored.get("question") is not None:
        stored["question"] = decode_message(stored["question"])
    return ImportedRecord(
        row["kind"], row["identity"], recurrence_id=row["recurrence_id"], line=row["line"], **stored
    )


# Sources ----------------------------------------------------------------------------------------


async def add_source(tx: Transaction, values: Columns) -> int:
    """Add a source and return its ID. The site is locked."""
    source_id = await _next_id(tx, "import_sources")
    await add(tx, "import_sources", {"id": source_id, "created_at": tx.now, **values})
    return source_id


async def change_source(tx: Transaction, source_id: int, values: Columns) -> None:
    await change(tx, "import_sources", source_id, values)


async def find_source(tx: Transaction, source_id: int) -> Record | None:
    return await tx.fetch_one(Sql(SELECT_SOURCES + " WHERE site_id = ? AND id = ?", tx.site.id, source_id))


async def find_source_by_origin(tx: Transaction, url: str, name: str) -> int | None:
    """Return the source with this address, or without one that of an earlier file with the same name."""
    source_id: int | None = await tx.fetch_value(
        Sql(
            "SELECT min(id) FROM import_sources WHERE site_id = ? AND kind <> 'tec' AND url = ? "
            "AND (url <> '' OR name = ?)",
            tx.site.id,
            url,
            name,
        )
    )
    return source_id


async def list_sources(tx: Transaction) -> list[Record]:
    return await tx.fetch_all(Sql(SELECT_SOURCES + " WHERE site_id = ? ORDER BY id", tx.site.id))


async def remove_source(tx: Transaction, source_id: int) -> None:
    await tx.execute(Sql("DELETE FROM import_sources WHERE site_id = ? AND id = ?", tx.site.id, source_id))


async def find_due_sources(database: Database, limit: int = 100) -> list[Record]:
    """Return `site_id` and `id` of the sources of all sites that are to be fetched."""
    return await database.fetch_unscoped(Sql("SELECT site_id, id FROM due_imports(?)", limit))


# Items ------------------------------------------------------------------------------------------


async def list_items(tx: Transaction, source_id: int) -> list[Record]:
    return await tx.fetch_all(
        Sql(
            SELECT_ITEMS + " WHERE site_id = ? AND source_id = ? ORDER BY kind, identity, recurrence_id",
            tx.site.id,
            source_id,
        )
    )


async def save_items(tx: Transaction, source_id: int, items: Sequence[Mapping[str, Any]]) -> None:
    """Insert or update items.

    Each has kind, identity, recurrence_id, record_id, fingerprint, source_values and stored_values.
    """
    await tx.execute(
        Sql(
            """
            INSERT INTO import_items (site_id, source_id, kind, identity, recurrence_id, record_id, fingerprint,
                source_values, stored_values, first_seen_at, last_seen_at)
            SELECT ?, ?, i.kind, i.identity, i.recurrence_id, i.record_id, i.fingerprint, i.source_values,
                coalesce(i.stored_values, '{}'), ?, ?
            FROM jsonb_to_recordset(?::jsonb) AS i (kind text, identity text, recurrence_id text, record_id bigint,
                fingerprint text, source_values jsonb, stored_values jsonb)
            ON CONFLICT (site_id, source_id, kind, identity, recurrence_id) DO UPDATE
            SET record_id = excluded.record_id, fingerprint = excluded.fingerprint,
                source_values = excluded.source_values, stored_values = excluded.stored_values,
                last_seen_at = excluded.last_seen_at, absences = 0
            """,
            tx.site.id,
            source_id,
            tx.now,
            tx.now,
            encode(list(items)),
        )
    )


async def rename_item(tx: Transaction, source_id: int, former: tuple[str, str, str], identity: str) -> None:
    """Give an item another identity."""
    await tx.execute(
        Sql(
            "UPDATE import_items SET identity = ? WHERE site_id = ? AND source_id = ? AND kind = ? AND identity = ? "
            "AND recurrence_id = ?",
            identity,
            tx.site.id,
            source_id,
            *former,
        )
    )


async def remove_item(tx: Transaction, source_id: int, kind: str, identity: str, recurrence_id: str) -> None:
    await tx.execute(
        Sql(
            "DELETE FROM import_items WHERE site_id = ? AND source_id = ? AND kind = ? AND identity = ? "
            "AND recurrence_id = ?",
            tx.site.id,
            source_id,
            kind,
            identity,
            recurrence_id,
        )
    )


async def find_item(
    tx: Transaction, source_id: int, kind: str, identity: str, recurrence_id: str = ""
) -> Record | None:
    return await tx.fetch_one(
        Sql(
            SELECT_ITEMS + " WHERE site_id = ? AND source_id = ? AND kind = ? AND identity = ? AND recurrence_id = ?",
            tx.site.id,
            source_id,
            kind,
            identity,
            recurrence_id,
        )
    )


async def list_items_of_records(tx: Transaction, kind: str, record_ids: Collection[int]) -> list[Record]:
    """Return the items of records, of all sources, with the ranks of the sources."""
    return await tx.fetch_all(
        Sql(
            "SELECT i.record_id, i.source_id, i.source_values, i.stored_values, s.trust_rank FROM import_items i "
            "JOIN import_sources s ON s.site_id = i.site_id AND s.id = i.source_id "
            "WHERE i.site_id = ? AND i.kind = ? AND i.record_id = ANY(?)",
            tx.site.id,
            kind,
            list(record_ids),
        )
    )


async def list_source_items(tx: Transaction, source_id: int, kind: str, record_id: int) -> list[Record]:
    """Return the items of one record in a source."""
    return await tx.fetch_all(
        Sql(
            "SELECT kind, identity, recurrence_id, record_id, fingerprint, source_values, stored_values "
            "FROM import_items WHERE site_id = ? AND source_id = ? AND kind = ? AND record_id = ?",
            tx.site.id,
            source_id,
            kind,
            record_id,
        )
    )


async def note_absences(tx: Transaction, source_id: int, absent: Collection[tuple[str, str, str]]) -> None:
    """Count one more fetch without the absent items; all others were seen.

    An item that was absent more than once keeps its count until a row restores its record and saves the item.
    """
    await tx.execute(
        Sql(
            """
            UPDATE import_items i SET absences = CASE WHEN a.kind IS NOT NULL THEN i.absences + 1
                    WHEN i.absences > 1 THEN i.absences ELSE 0 END,
                last_seen_at = CASE WHEN a.kind IS NULL THEN ? ELSE i.last_seen_at END
            FROM import_items o LEFT JOIN unnest(?::text[], ?::text[], ?::text[]) AS a (kind, identity, recurrence_id)
                USING (kind, identity, recurrence_id)
            WHERE o.site_id = ? AND o.source_id = ? AND i.site_id = o.site_id AND i.source_id = o.source_id
                AND i.kind = o.kind AND i.identity = o.identity AND i.recurrence_id = o.recurrence_id
            """,
            tx.now,
            *[[key[position] for key in absent] for position in range(3)],
            tx.site.id,
            source_id,
        )
    )


async def find_record_ids(tx: Transaction, source_id: int, kind: str, identities: Collection[str]) -> dict[str, int]:
    """Return the IDs of records by their identity in the source."""
    rows = await tx.fetch_all(
        Sql(
            "SELECT identity, record_id FROM import_items "
            "WHERE site_id = ? AND source_id = ? AND kind = ? AND identity = ANY(?) AND recurrence_id = ''",
            tx.site.id,
            source_id,
            kind,
            list(identities),
        )
    )
    return {row["identity"]: row["record_id"] for row in rows}


# Runs and plans ---------------------------------------------------------------------------------


async def add_run(tx: Transaction, source_id: int, values: Columns) -> int:
    """Add a run and return its ID. The site is locked."""
    run_id = await _next_id(tx, "import_runs")
    await add(
        tx, "import_runs", {"id": run_id, "source_id": source_id, "state": "planning", "started_at": tx.now, **values}
    )
    return run_id


async def change_run(tx: Transaction, run_id: int, values: Columns) -> None:
    await change(tx, "import_runs", run_id, values)


async def find_run(tx: Transaction, run_id: int) -> Record | None:
    return await tx.fetch_one(Sql(SELECT_RUNS + " WHERE site_id = ? AND id = ?", tx.site.id, run_id))


async def list_runs(tx: Transaction, source_id: int | None = None, limit: int = 50) -> list[Record]:
    """Return the latest runs, of one source or of all, the newest first."""
    return await tx.fetch_all(
        Sql(
            SELECT_RUNS + " WHERE site_id = ? AND (?::bigint IS NULL OR source_id = ?) ORDER BY id DESC LIMIT ?",
            tx.site.id,
            source_id,
            source_id,
            limit,
        )
    )


async def add_rows(tx: Transaction, run_id: int, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows to a plan. `imported`, `changes` and `reasons` are JSON values."""
    await tx.execute(
        Sql(
            """
            INSERT INTO import_rows (site_id, run_id, number, action, kind, identity, recurrence_id, title, record_id,
                record_revision, imported, changes, reasons, line, state, different_from)
            SELECT ?, ?, r.number, r.action, r.kind, coalesce(r.identity, ''), coalesce(r.recurrence_id, ''),
                coalesce(r.title, ''), r.record_id, r.record_revision, r.imported, coalesce(r.changes, '{}'),
                coalesce(r.reasons, '[]'), r.line, coalesce(r.state, 'pending'), coalesce(r.different_from, '{}')
            FROM jsonb_to_recordset(?::jsonb) AS r (number bigint, action text, kind text, identity text,
                recurrence_id text, title text, record_id bigint, record_revision bigint, imported jsonb,
                changes jsonb, reasons jsonb, line integer, state text, different_from bigint[])
            """,
            tx.site.id,
            run_id,
            encode(list(rows)),
        )
    )


async def change_row(tx: Transaction, run_id: int, number: int, values: Columns) -> None:
    names: list[LiteralString] = list(values)
    assignments: LiteralString = ", ".join([name + " = ?" for name in names])
    await tx.execute(
        Sql("UPDATE import_rows SET " + assignments, *values.values())
        + Sql("WHERE site_id = ? AND run_id = ? AND number = ?", tx.site.id, run_id, number)
    )


async def list_pending_rows(tx: Transaction, run_id: int, limit: int) -> list[Record]:
    """Return the next rows to apply, in their order."""
    return await tx.fetch_all(
        Sql(
            SELECT_ROWS + " WHERE site_id = ? AND run_id = ? AND state = 'pending' ORDER BY number LIMIT ?",
            tx.site.id,
            run_id,
            limit,
        )
    )


async def list_chosen_rows(tx: Transaction, run_id: int, numbers: Collection[int], limit: int) -> list[Record]:
    """Return the next of the chosen rows that are not done, also those that wait for a person, in their order."""
    return await tx.fetch_all(
        Sql(
            SELECT_ROWS + " WHERE site_id = ? AND run_id = ? AND state IN ('pending', 'waiting') "
            "AND number = ANY(?) ORDER BY number LIMIT ?",
            tx.site.id,
            run_id,
            list(numbers),
            limit,
        )
    )


async def find_needed_rows(tx: Transaction, run_id: int, keys: Collection[tuple[str, str]]) -> set[int]:
    """Return the numbers of rows that create or link records of these kinds and identities and are not done."""
    rows = await _list_rows_by_key(tx, run_id, keys)
    return {row["number"] for row in rows if row["state"] == "pending" and row["action"] in ("new", "linked")}


async def list_undecided_rows(tx: Transaction, run_id: int, keys: Collection[tuple[str, str]]) -> list[Record]:
    """Return the rows of these kinds and identities about which a person has to decide."""
    rows = await _list_rows_by_key(tx, run_id, keys)
    return [row for row in rows if row["state"] == "waiting" and row["action"] == "duplicate"]


async def _list_rows_by_key(tx: Transaction, run_id: int, keys: Collection[tuple[str, str]]) -> list[Record]:
    return await tx.fetch_all(
        Sql(
            "SELECT r.number, r.action, r.state, r.title "
            "FROM unnest(?::text[], ?::text[]) AS k (kind, identity) JOIN import_rows r "
            "ON r.site_id = ? AND r.run_id = ? AND r.kind = k.kind AND r.identity = k.identity ORDER BY r.number",
            [kind for kind, _ in keys],
            [identity for _, identity in keys],
            tx.site.id,
            run_id,
        )
    )


async def list_linking_rows(tx: Transaction, run_id: int, kind: str, identity: str) -> list[Record]:
    """Return the waiting rows of events that link to a venue or an organizer, but need no decision themselves."""
    link = "venue" if kind == "venues" else "organizer"
    return await tx.fetch_all(
        Sql(
            SELECT_ROWS + " WHERE site_id = ? AND run_id = ? AND state = 'waiting' AND action <> 'duplicate' "
            "AND imported -> 'links' -> ?::text @> to_jsonb(?::text) ORDER BY number",
            tx.site.id,
            run_id,
            link,
            identity,
        )
    )


async def list_differences(tx: Transaction, source_id: int) -> list[Record]:
    """Return the records of a source that people have declared different from events, with the events."""
    return await tx.fetch_all(
        Sql(
            "SELECT r.kind, r.identity, r.recurrence_id, r.different_from FROM import_rows r "
            "JOIN import_runs s ON s.site_id = r.site_id AND s.id = r.run_id "
            "WHERE r.site_id = ? AND s.source_id = ? AND r.different_from <> '{}'",
            tx.site.id,
            source_id,
        )
    )


async def count_rows_by_state(tx: Transaction, run_id: int) -> dict[str, int]:
    """Return the number of rows by state."""
    rows = await tx.fetch_all(
        Sql(
            "SELECT state, count(*) AS number FROM import_rows WHERE site_id = ? AND run_id = ? GROUP BY state",
            tx.site.id,
            run_id,
        )
    )
    return {row["state"]: row["number"] for row in rows}


async def has_unsettled_rows(tx: Transaction, run_id: int) -> bool:
    """Return whether rows have failed, wait, or are missing for the first time."""
    found = await tx.fetch_value(
        Sql(
            "SELECT EXISTS (SELECT FROM import_rows WHERE site_id = ? AND run_id = ? "
            "AND (state IN ('pending', 'waiting', 'failed') OR action = 'gone' AND state = 'skipped'))",
            tx.site.id,
            run_id,
        )
    )
    return bool(found)


async def remove_rows(tx: Transaction, run_id: int) -> None:
    await tx.execute(Sql("DELETE FROM import_rows WHERE site_id = ? AND run_id = ?", tx.site.id, run_id))


async def remove_unchanged_runs(tx: Transaction, source_id: int, run_id: int) -> None:
    """Remove earlier scheduled runs that found nothing new; the last one says as much."""
    await tx.execute(
        Sql(
            "DELETE FROM import_runs WHERE site_id = ? AND source_id = ? AND state = 'unchanged' "
            "AND user_id IS NULL AND id < ?",
            tx.site.id,
            source_id,
            run_id,
        )
    )


async def release_stale_runs(tx: Transaction, source_id: int, cutoff: datetime) -> None:
    """Release runs whose process has ended: plans have failed, applying can be continued."""
    await tx.execute(
        Sql(
            "UPDATE import_runs SET state = CASE state WHEN 'planning' THEN 'failed' ELSE 'planned' END "
            "WHERE site_id = ? AND source_id = ? AND state IN ('planning', 'applying') AND started_at < ?",
            tx.site.id,
            source_id,
            cutoff,
        )
    )


async def discard_plans(tx: Transaction, source_id: int, run_id: int) -> None:
    """End the open plans of a source: that of this run replaces them."""
    await tx.execute(
        Sql(
            """
            UPDATE import_runs r SET finished_at = ?, state = CASE WHEN EXISTS (SELECT FROM import_rows w
                WHERE w.site_id = r.site_id AND w.run_id = r.id AND w.state = 'applied')
                THEN 'applied' ELSE 'discarded' END
            WHERE site_id = ? AND source_id = ? AND state = 'planned' AND undoes IS NULL AND id <> ?
            """,
            tx.now,
            tx.site.id,
            source_id,
            run_id,
        )
    )


async def list_own_changes(tx: Transaction, keys: Sequence[tuple[str, int]]) -> dict[tuple[str, int], list[str]]:
    """Return what the server has changed since imports wrote records, by kind and ID, unless people edited them."""
    rows = await tx.fetch_all(
        Sql(
            """
            WITH written AS (SELECT k.kind, k.record_id, max(r.revision) AS revision
                FROM unnest(?::text[], ?::bigint[]) AS k (kind, record_id)
                JOIN import_rows r ON r.site_id = ? AND r.kind = k.kind AND r.record_id = k.record_id
                GROUP BY k.kind, k.record_id)
            SELECT w.kind, w.record_id, array_remove(array_agg(DISTINCT f.name), NULL) AS fields
            FROM written w JOIN changes c ON c.site_id = ? AND c.kind = w.kind AND c.record_id = w.record_id
                AND c.revision > w.revision
            LEFT JOIN LATERAL jsonb_object_keys(c.after) AS f (name) ON true
            GROUP BY w.kind, w.record_id HAVING count(c.user_id) = 0
            """,
            [kind for kind, _ in keys],
            [record_id for _, record_id in keys],
            tx.site.id,
            tx.site.id,
        )
    )
    return {(row["kind"], row["record_id"]): row["fields"] for row in rows}


async def list_run_changes(tx: Transaction, run_id: int) -> list[Record]:
    """Return the entries of the change log that a run has written, the newest first; not derived ones.

    The ranges of the rows are merged, because a join by ranges may compare each row with each entry.
    """
    return await tx.fetch_all(
        Sql(
            """
            WITH written AS MATERIALIZED (SELECT range_agg(int8range(first_revision, revision, '[]')) AS revisions
                FROM import_rows
                WHERE site_id = ? AND run_id = ? AND state = 'applied' AND first_revision IS NOT NULL)
            SELECT c.revision, c.kind, c.record_id, c.action, c.before, c.after, c.cause
            FROM written w JOIN changes c ON c.site_id = ? AND c.revision >= lower(w.revisions)
                AND c.revision < upper(w.revisions) AND w.revisions @> c.revision AND NOT c.is_derived
            ORDER BY c.revision DESC
            """,
            tx.site.id,
            run_id,
            tx.site.id,
        )
    )


async def list_account_rows(tx: Transaction, run_id: int) -> list[Record]:
    """Return the rows of accounts that a run has created or changed; not those that existed before."""
    return await tx.fetch_all(
        Sql(
            """
            SELECT r.action, r.identity, r.title, r.record_id, r.changes FROM import_rows r
            JOIN import_runs s ON s.site_id = r.site_id AND s.id = r.run_id
            JOIN import_items i ON i.site_id = s.site_id AND i.source_id = s.source_id AND i.kind = r.kind
                AND i.identity = r.identity AND i.recurrence_id = '' AND i.fingerprint = 'created'
            WHERE r.site_id = ? AND r.run_id = ? AND r.kind = 'users' AND r.state = 'applied' ORDER BY r.number
            """,
            tx.site.id,
            run_id,
        )
    )


async def list_edited_records(tx: Transaction, revision: int) -> set[tuple[str, int]]:
    """Return kind and ID of the records that people have changed since a revision, which imports have not."""
    rows = await tx.fetch_all(
        Sql(
            """
            WITH written AS MATERIALIZED (SELECT range_agg(int8range(first_revision, revision, '[]')) AS revisions
                FROM import_rows WHERE site_id = ? AND first_revision IS NOT NULL AND revision >= ?)
            SELECT DISTINCT c.kind, c.record_id FROM changes c, written w
            WHERE c.site_id = ? AND c.revision > ? AND c.user_id IS NOT NULL AND c.after IS NOT NULL
                AND NOT coalesce(w.revisions @> c.revision, false)
            """,
            tx.site.id,
            revision,
            tx.site.id,
            revision,
        )
    )
    return {(row["kind"], row["record_id"]) for row in rows}


async def list_rows(
    tx: Transaction, run_id: int, *, actions: Collection[str] = (), after: int = 0, limit: int = 100
) -> list[Record]:
    """Return rows of a plan behind a number, of some actions or of all."""
    return await tx.fetch_all(
        Sql(
            SELECT_ROWS + " WHERE site_id = ? AND run_id = ? AND number > ? "
            "AND (cardinality(?::text[]) = 0 OR action = ANY(?)) ORDER BY number LIMIT ?",
            tx.site.id,
            run_id,
            after,
            list(actions),
            list(actions),
            limit,
        )
    )


async def count_rows(tx: Transaction, run_id: int) -> dict[str, int]:
    """Return the number of rows by action."""
    rows = await tx.fetch_all(
        Sql(
            "SELECT action, count(*) AS number FROM import_rows WHERE site_id = ? AND run_id = ? GROUP BY action",
            tx.site.id,
            run_id,
        )
    )
    return {row["action"]: row["number"] for row in rows}


async def accept_waiting(tx: Transaction, run_id: int, action: str) -> None:
    """Let the rows of an action be applied that wait for a person."""
    await tx.execute(
        Sql(
            "UPDATE import_rows SET state = 'pending' "
            "WHERE site_id = ? AND run_id = ? AND action = ? AND state = 'waiting'",
            tx.site.id,
            run_id,
            action,
        )
    )


async def find_revisions(tx: Transaction, run_id: int) -> dict[LiteralString, int | None]:
    """Return the first and the last revision that the rows of a run have written."""
    row = await tx.fetch_one(
        Sql(
            "SELECT min(first_revision) AS first, max(revision) AS last FROM import_rows "
            "WHERE site_id = ? AND run_id = ?",
            tx.site.id,
            run_id,
        )
    )
    return {"first_revision": row["first"] if row else None, "last_revision": row["last"] if row else None}


# Helpers ----------------------------------------------------------------------------------------


async def _next_id(tx: Transaction, table: LiteralString) -> int:
    """Return the next ID. The lock on the site keeps it free."""
    number: int = await tx.fetch_value(
        Sql("SELECT coalesce(max(id), 0) + 1 FROM " + table + " WHERE site_id = ?", tx.site.id)
    )
    return number


def _encode_part(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_encode_part(entry) for entry in value]  # pyright: ignore[reportUnknownVariableType]
    return encode_message(value) if isinstance(value, Message) else value


def _decode_part(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode_part(entry) for entry in value]  # pyright: ignore[reportUnknownVariableType]
    return decode_message(value) if isinstance(value, dict) and "text" in value else value


def _encode_value(value: object) -> object:
    return encode_message(value) if isinstance(value, Message) else str(value)
