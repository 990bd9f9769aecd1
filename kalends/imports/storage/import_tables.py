"""Import tables: sources, items, runs and plan rows."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, LiteralString

import orjson
from asyncpg import Record

from kalends.calendar.storage.record_tables import add, change
from kalends.core.messages import Message
from kalends.imports.rules.import_records import ImportedRecord
from kalends.imports.storage.import_lists import SELECT_ITEMS, SELECT_ROWS, SELECT_RUNS, SELECT_SOURCES
from kalends.store.database import Database, Transaction
from kalends.store.sql import Sql

Columns = Mapping[LiteralString, object]
Key = tuple[str, str, str]  # an item's kind, identity and recurrence ID

OF_SOURCE: Final = " WHERE site_id = ? AND source_id = ?"
OF_ITEM: Final = OF_SOURCE + " AND kind = ? AND identity = ? AND recurrence_id = ?"
OF_RUN: Final = " WHERE site_id = ? AND run_id = ?"


def encode(value: object) -> str:
    """Encode a value for a jsonb column."""
    return orjson.dumps(value, default=_encode_value).decode()


def decode(value: str) -> Any:
    """Decode a jsonb column."""
    return orjson.loads(value)


def encode_message(message: Message) -> dict[str, Any]:
    return {"text": message.text, "values": {name: _encode_part(value) for name, value in message.values.items()}}


def decode_message(stored: Mapping[str, Any]) -> Message:
    values = {name: _decode_part(value) for name, value in stored["values"].items()}
    return Message(stored["text"], **values)


IMPORTED_FIELDS: Final = ("values", "columns", "links", "wanted_id", "is_linked", "question", "dates")


def encode_imported(record: ImportedRecord) -> dict[str, Any]:
    """Return the JSON that a plan row stores for a record."""
    stored = {name: getattr(record, name) for name in IMPORTED_FIELDS}
    encoded: dict[str, Any] = orjson.loads(encode(stored))
    return encoded


def decode_imported(row: Record) -> ImportedRecord:
    stored = orjson.loads(row["imported"])
    if stored.get("question") is not None:
        stored["question"] = decode_message(stored["question"])
    return ImportedRecord(
        row["kind"], row["identity"], recurrence_id=row["recurrence_id"], line=row["line"], **stored
    )


# Sources ----------------------------------------------------------------------------------------


async def add_source(tx: Transaction, values: Columns) -> int:
    source_id = await _next_id(tx, "import_sources")
    await add(tx, "import_sources", {"id": source_id, "created_at": tx.now, **values})
    return source_id


async def change_source(tx: Transaction, source_id: int, values: Columns) -> None:
    await change(tx, "import_sources", source_id, values)


async def find_source(tx: Transaction, source_id: int) -> Record | None:
    return await tx.fetch_one(Sql(SELECT_SOURCES + " WHERE site_id = ? AND id = ?", tx.site.id, source_id))


async def find_source_by_origin(tx: Transaction, url: str, name: str) -> int | None:
    """Return the source with this address. If the address is empty, return the source with this file name."""
    where = "WHERE site_id = ? AND kind <> 'tec' AND url = ? AND (url <> '' OR name = ?)"
    query = Sql("SELECT min(id) FROM import_sources " + where, tx.site.id, url, name)
    source_id: int | None = await tx.fetch_value(query)
    return source_id


async def remove_source(tx: Transaction, source_id: int) -> None:
    await tx.execute(Sql("DELETE FROM import_sources WHERE site_id = ? AND id = ?", tx.site.id, source_id))


async def find_due_sources(database: Database, limit: int = 100) -> list[Record]:
    """Return `site_id` and `id` of at most `limit` due sources on all sites."""
    return await database.fetch_unscoped(Sql("SELECT site_id, id FROM due_imports(?)", limit))


# Items ------------------------------------------------------------------------------------------


async def list_items(tx: Transaction, source_id: int) -> list[Record]:
    order = " ORDER BY kind, identity, recurrence_id"
    return await tx.fetch_all(Sql(SELECT_ITEMS + OF_SOURCE + order, tx.site.id, source_id))


async def save_items(tx: Transaction, source_id: int, items: Sequence[Mapping[str, Any]]) -> None:
    """Insert or update items.

    Each has kind, identity, recurrence_id, record_id, fingerprint, source_values and stored_values.
    """
    statement = """
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
    """
    await tx.execute(Sql(statement, tx.site.id, source_id, tx.now, tx.now, encode(list(items))))


async def rename_item(tx: Transaction, source_id: int, key: Key, identity: str) -> None:
    await tx.execute(Sql("UPDATE import_items SET identity = ?" + OF_ITEM, identity, tx.site.id, source_id, *key))


async def remove_item(tx: Transaction, source_id: int, key: Key) -> None:
    await tx.execute(Sql("DELETE FROM import_items" + OF_ITEM, tx.site.id, source_id, *key))


async def find_item(tx: Transaction, source_id: int, key: Key) -> Record | None:
    return await tx.fetch_one(Sql(SELECT_ITEMS + OF_ITEM, tx.site.id, source_id, *key))


async def list_items_of_records(tx: Transaction, kind: str, record_ids: Collection[int]) -> list[Record]:
    """Return the items for these records in all sources, with the rank of each source."""
    query = (
        "SELECT i.record_id, i.source_id, i.source_values, i.stored_values, s.trust_rank FROM import_items i "
        "JOIN import_sources s ON s.site_id = i.site_id AND s.id = i.source_id "
        "WHERE i.site_id = ? AND i.kind = ? AND i.record_id = ANY(?)"
    )
    return await tx.fetch_all(Sql(query, tx.site.id, kind, list(record_ids)))


async def list_source_items(tx: Transaction, source_id: int, kind: str, record_id: int) -> list[Record]:
    where = OF_SOURCE + " AND kind = ? AND record_id = ?"
    return await tx.fetch_all(Sql(SELECT_ITEMS + where, tx.site.id, source_id, kind, record_id))


async def note_absences(tx: Transaction, source_id: int, absent: Collection[tuple[str, str, str]]) -> None:
    """Increment the absence count of absent items, and mark all other items as present.

    If an item was absent more than once, its count remains until a row restores the record and saves the item.
    """
    statement = """
        UPDATE import_items i SET absences = CASE WHEN a.kind IS NOT NULL THEN i.absences + 1
                WHEN i.absences > 1 THEN i.absences ELSE 0 END,
            last_seen_at = CASE WHEN a.kind IS NULL THEN ? ELSE i.last_seen_at END
        FROM import_items o LEFT JOIN unnest(?::text[], ?::text[], ?::text[]) AS a (kind, identity, recurrence_id)
            USING (kind, identity, recurrence_id)
        WHERE o.site_id = ? AND o.source_id = ? AND i.site_id = o.site_id AND i.source_id = o.source_id
            AND i.kind = o.kind AND i.identity = o.identity AND i.recurrence_id = o.recurrence_id
    """
    await tx.execute(
        Sql(statement, tx.now, *[[key[position] for key in absent] for position in range(3)], tx.site.id, source_id)
    )


async def find_record_ids(tx: Transaction, source_id: int, kind: str, identities: Collection[str]) -> dict[str, int]:
    where = OF_SOURCE + " AND kind = ? AND identity = ANY(?) AND recurrence_id = ''"
    rows = await tx.fetch_all(
        Sql("SELECT identity, record_id FROM import_items" + where, tx.site.id, source_id, kind, list(identities))
    )
    return {row["identity"]: row["record_id"] for row in rows}


# Runs and plans ---------------------------------------------------------------------------------


async def add_run(tx: Transaction, source_id: int, values: Columns) -> int:
    """Add a run and return its ID. The caller must have locked the site."""
    run_id = await _next_id(tx, "import_runs")
    await add(
        tx, "import_runs", {"id": run_id, "source_id": source_id, "state": "planning", "started_at": tx.now, **values}
    )
    return run_id


async def change_run(tx: Transaction, run_id: int, values: Columns) -> None:
    await change(tx, "import_runs", run_id, values)


async def find_run(tx: Transaction, run_id: int) -> Record | None:
    return await tx.fetch_one(Sql(SELECT_RUNS + " WHERE site_id = ? AND id = ?", tx.site.id, run_id))


async def add_rows(tx: Transaction, run_id: int, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows to a plan. `imported`, `changes` and `reasons` are JSON values."""
    statement = """
        INSERT INTO import_rows (site_id, run_id, number, action, kind, identity, recurrence_id, title, record_id,
            record_revision, imported, changes, reasons, line, state, different_from)
        SELECT ?, ?, r.number, r.action, r.kind, coalesce(r.identity, ''), coalesce(r.recurrence_id, ''),
            coalesce(r.title, ''), r.record_id, r.record_revision, r.imported, coalesce(r.changes, '{}'),
            coalesce(r.reasons, '[]'), r.line, coalesce(r.state, 'pending'), coalesce(r.different_from, '{}')
        FROM jsonb_to_recordset(?::jsonb) AS r (number bigint, action text, kind text, identity text,
            recurrence_id text, title text, record_id bigint, record_revision bigint, imported jsonb,
            changes jsonb, reasons jsonb, line integer, state text, different_from bigint[])
    """
    await tx.execute(Sql(statement, tx.site.id, run_id, encode(list(rows))))


async def change_row(tx: Transaction, row: Record, values: Columns) -> None:
    names: list[LiteralString] = list(values)
    assignments: LiteralString = ", ".join([name + " = ?" for name in names])
    of_row = Sql(OF_RUN + " AND number = ?", tx.site.id, row["run_id"], row["number"])
    await tx.execute(Sql("UPDATE import_rows SET " + assignments, *values.values()) + of_row)


async def list_next_rows(
    tx: Transaction, run_id: int, numbers: Collection[int] | None, limit: int | None = None
) -> list[Record]:
    """Return the next pending rows, in order. If `numbers` is given, return only these rows, even waiting ones."""
    rows = Sql(SELECT_ROWS + OF_RUN, tx.site.id, run_id) + _choose_rows(numbers)
    return await tx.fetch_all(rows + Sql("ORDER BY number LIMIT ?", limit))


async def count_next_rows(tx: Transaction, run_id: int, numbers: Collection[int] | None = None) -> int:
    rows = Sql("SELECT count(*) FROM import_rows" + OF_RUN, tx.site.id, run_id) + _choose_rows(numbers)
    number: int = await tx.fetch_value(rows)
    return number


def _choose_rows(numbers: Collection[int] | None) -> Sql:
    if numbers is None:
        return Sql("AND state = 'pending'")
    return Sql("AND state IN ('pending', 'waiting') AND number = ANY(?)", list(numbers))


async def find_needed_rows(tx: Transaction, run_id: int, keys: Collection[tuple[str, str]]) -> set[int]:
    """Return the numbers of pending rows that create or link the records with these kinds and identities."""
    rows = await _list_rows_by_key(tx, run_id, keys)
    return {row["number"] for row in rows if row["state"] == "pending" and row["action"] in ("new", "linked")}


async def list_undecided_rows(tx: Transaction, run_id: int, keys: Collection[tuple[str, str]]) -> list[Record]:
    """Return the rows with these kinds and identities that still need a decision by a person."""
    rows = await _list_rows_by_key(tx, run_id, keys)
    return [row for row in rows if row["state"] == "waiting" and row["action"] == "duplicate"]


async def _list_rows_by_key(tx: Transaction, run_id: int, keys: Collection[tuple[str, str]]) -> list[Record]:
    query = (
        "SELECT r.number, r.action, r.state, r.title "
        "FROM unnest(?::text[], ?::text[]) AS k (kind, identity) JOIN import_rows r "
        "ON r.site_id = ? AND r.run_id = ? AND r.kind = k.kind AND r.identity = k.identity ORDER BY r.number"
    )
    return await tx.fetch_all(
        Sql(query, [kind for kind, _ in keys], [identity for _, identity in keys], tx.site.id, run_id)
    )


async def list_linking_rows(tx: Transaction, run_id: int, kind: str, identity: str) -> list[Record]:
    """Return waiting rows that link to a venue or organizer and are not possible duplicates themselves."""
    link = "venue" if kind == "venues" else "organizer"
    waiting = Sql(SELECT_ROWS + OF_RUN + " AND state = 'waiting' AND action <> 'duplicate'", tx.site.id, run_id)
    linking = Sql("AND imported -> 'links' -> ?::text @> to_jsonb(?::text) ORDER BY number", link, identity)
    return await tx.fetch_all(waiting + linking)


async def list_differences(tx: Transaction, source_id: int) -> list[Record]:
    """Return the source's records with the IDs of the stored records that users declared different."""
    query = (
        "SELECT r.kind, r.identity, r.recurrence_id, r.different_from FROM import_rows r "
        "JOIN import_runs s ON s.site_id = r.site_id AND s.id = r.run_id "
        "WHERE r.site_id = ? AND s.source_id = ? AND r.different_from <> '{}'"
    )
    return await tx.fetch_all(Sql(query, tx.site.id, source_id))


async def count_rows(tx: Transaction, run_id: int, column: LiteralString = "action") -> dict[str, int]:
    query = "SELECT " + column + ", count(*) AS number FROM import_rows" + OF_RUN + " GROUP BY " + column
    return {row[column]: row["number"] for row in await tx.fetch_all(Sql(query, tx.site.id, run_id))}


async def count_states(tx: Transaction, run_id: int) -> dict[str, int]:
    return await count_rows(tx, run_id, "state")


async def has_unsettled_rows(tx: Transaction, run_id: int) -> bool:
    """Return whether any rows are pending, waiting or failed, or a record is missing for the first time."""
    unsettled = " AND (state IN ('pending', 'waiting', 'failed') OR action = 'gone' AND state = 'skipped')"
    rows = Sql("SELECT EXISTS (SELECT FROM import_rows" + OF_RUN + unsettled + ")", tx.site.id, run_id)
    return bool(await tx.fetch_value(rows))


async def remove_rows(tx: Transaction, run_id: int) -> None:
    await tx.execute(Sql("DELETE FROM import_rows" + OF_RUN, tx.site.id, run_id))


async def remove_unchanged_runs(tx: Transaction, source_id: int, run_id: int) -> None:
    """Remove earlier scheduled runs without changes. The latest run makes them redundant."""
    unchanged = OF_SOURCE + " AND state = 'unchanged' AND user_id IS NULL AND id < ?"
    await tx.execute(Sql("DELETE FROM import_runs" + unchanged, tx.site.id, source_id, run_id))


async def release_stale_runs(tx: Transaction, source_id: int, cutoff: datetime) -> None:
    """Release runs that started before `cutoff`: `planning` becomes `failed`, and `applying` becomes `planned`."""
    released = "UPDATE import_runs SET state = CASE state WHEN 'planning' THEN 'failed' ELSE 'planned' END"
    stale = OF_SOURCE + " AND state IN ('planning', 'applying') AND started_at < ?"
    await tx.execute(Sql(released + stale, tx.site.id, source_id, cutoff))


async def discard_plans(tx: Transaction, source_id: int, run_id: int) -> None:
    """Close the open plans of a source, because this run's plan replaces them."""
    statement = """
        UPDATE import_runs r SET finished_at = ?, state = CASE WHEN EXISTS (SELECT FROM import_rows w
            WHERE w.site_id = r.site_id AND w.run_id = r.id AND w.state = 'applied')
            THEN 'applied' ELSE 'discarded' END
        WHERE site_id = ? AND source_id = ? AND state = 'planned' AND undoes IS NULL AND id <> ?
    """
    await tx.execute(Sql(statement, tx.now, tx.site.id, source_id, run_id))


async def list_own_changes(tx: Transaction, keys: Sequence[tuple[str, int]]) -> dict[tuple[str, int], list[str]]:
    """Return the fields that the server has changed since the import, by kind and ID.

    Skip records that people edited.
    """
    query = """
        WITH written AS (SELECT k.kind, k.record_id, max(r.revision) AS revision
            FROM unnest(?::text[], ?::bigint[]) AS k (kind, record_id)
            JOIN import_rows r ON r.site_id = ? AND r.kind = k.kind AND r.record_id = k.record_id
            GROUP BY k.kind, k.record_id)
        SELECT w.kind, w.record_id, array_remove(array_agg(DISTINCT f.name), NULL) AS fields
        FROM written w JOIN changes c ON c.site_id = ? AND c.kind = w.kind AND c.record_id = w.record_id
            AND c.revision > w.revision
        LEFT JOIN LATERAL jsonb_object_keys(c.after) AS f (name) ON true
        GROUP BY w.kind, w.record_id HAVING count(c.user_id) = 0
    """
    rows = await tx.fetch_all(
        Sql(query, [kind for kind, _ in keys], [record_id for _, record_id in keys], tx.site.id, tx.site.id)
    )
    return {(row["kind"], row["record_id"]): row["fields"] for row in rows}


async def list_run_changes(tx: Transaction, run_id: int) -> list[Record]:
    """Return a run's change log entries, newest first, without derived entries.

    The query merges the revision ranges of the rows, because a range join might compare each row with each entry.
    """
    query = """
        WITH written AS MATERIALIZED (SELECT range_agg(int8range(first_revision, revision, '[]')) AS revisions
            FROM import_rows
            WHERE site_id = ? AND run_id = ? AND state = 'applied' AND first_revision IS NOT NULL)
        SELECT c.revision, c.kind, c.record_id, c.action, c.before, c.after, c.cause
        FROM written w JOIN changes c ON c.site_id = ? AND c.revision >= lower(w.revisions)
            AND c.revision < upper(w.revisions) AND w.revisions @> c.revision AND NOT c.is_derived
        ORDER BY c.revision DESC
    """
    return await tx.fetch_all(Sql(query, tx.site.id, run_id, tx.site.id))


async def list_account_rows(tx: Transaction, run_id: int) -> list[Record]:
    """Return the rows of accounts that a run created or changed, except accounts that existed before the move-in."""
    query = """
        SELECT r.action, r.identity, r.title, r.record_id, r.changes FROM import_rows r
        JOIN import_runs s ON s.site_id = r.site_id AND s.id = r.run_id
        JOIN import_items i ON i.site_id = s.site_id AND i.source_id = s.source_id AND i.kind = r.kind
            AND i.identity = r.identity AND i.recurrence_id = '' AND i.fingerprint = 'created'
        WHERE r.site_id = ? AND r.run_id = ? AND r.kind = 'users' AND r.state = 'applied' ORDER BY r.number
    """
    return await tx.fetch_all(Sql(query, tx.site.id, run_id))


async def list_edited_records(tx: Transaction, revision: int) -> set[tuple[str, int]]:
    """Return the kind and ID of the records that were edited after a revision, other than by imports."""
    query = """
        WITH written AS MATERIALIZED (SELECT range_agg(int8range(first_revision, revision, '[]')) AS revisions
            FROM import_rows WHERE site_id = ? AND first_revision IS NOT NULL AND revision >= ?)
        SELECT DISTINCT c.kind, c.record_id FROM changes c, written w
        WHERE c.site_id = ? AND c.revision > ? AND c.user_id IS NOT NULL AND c.after IS NOT NULL
            AND NOT coalesce(w.revisions @> c.revision, false)
    """
    rows = await tx.fetch_all(Sql(query, tx.site.id, revision, tx.site.id, revision))
    return {(row["kind"], row["record_id"]) for row in rows}


async def accept_waiting(tx: Transaction, run_id: int, action: str) -> None:
    """Mark the waiting rows with an action as pending."""
    waiting = OF_RUN + " AND action = ? AND state = 'waiting'"
    await tx.execute(Sql("UPDATE import_rows SET state = 'pending'" + waiting, tx.site.id, run_id, action))


# Helpers ----------------------------------------------------------------------------------------


async def _next_id(tx: Transaction, table: LiteralString) -> int:
    """Return the next ID. The caller holds the site lock, which prevents duplicates."""
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
