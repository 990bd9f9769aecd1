"""Sources, runs and rows of plans as JSON."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson

from kalends.core import times
from kalends.core.event_states import SCHEDULED
from kalends.core.messages import Message
from kalends.kinds.kind import JsonObject
from kalends.operations.imports.runs import read_question
from kalends.store import Row
from kalends.store.imports import decode_message


def serialize_source(row: Row) -> JsonObject:
    return {
        "id": row["id"],
        "kind": row["kind"],
        "name": row["name"],
        "url": row["url"],
        "interval": row["interval_minutes"],
        "owner": row["owner_id"],
        "default_status": row["default_status"],
        "default_category": row["default_category_id"],
        "authority": row["authority"],
        "timezone": row["timezone"],
        "columns": read_json(row["columns"]),
        "trust_rank": row["trust_rank"],
        "allow_mass_deletion": row["allow_mass_deletion"],
        "organizer_emails": row["organizer_emails"],
        "state": row["state"],
        "created_utc": format_moment(row["created_at"]),
        "next_run_utc": format_moment(row["next_run_at"]),
        "last_success_utc": format_moment(row["last_success_at"]),
        "failures": row["failures"],
        "last_run": row["run_id"],
        "file": {
            "name": row["file_name"],
            "size": row["file_size"],
            "uploaded_utc": format_moment(row["uploaded_at"]),
        }
        if row["file_name"] is not None
        else None,
    }


def serialize_run(row: Row) -> JsonObject:
    done, total = read_progress(row)
    return {
        "id": row["id"],
        "source": row["source_id"],
        "user": row["user_id"],
        "undoes": row["undoes"],
        "state": row["state"],
        "started_utc": format_moment(row["started_at"]),
        "planned_utc": format_moment(row["planned_at"]),
        "finished_utc": format_moment(row["finished_at"]),
        "counts": read_json(row["counts"]),
        "progress": {"done": done, "total": total},
        "failure": decode_message(read_json(row["failure"])) if row["failure"] is not None else None,
        "warnings": read_messages(row["warnings"]),
        "question": read_question(row),
        "first_revision": row["first_revision"],
        "last_revision": row["last_revision"],
    }


def read_progress(row: Row) -> tuple[int, int]:
    """Return how many rows of a plan have been worked on, and how many there are."""
    stored = read_json(row["progress"])
    return stored.get("done", 0), stored.get("total", 0)


def serialize_row(row: Row) -> JsonObject:
    return {
        "number": row["number"],
        "action": row["action"],
        "kind": row["kind"],
        "identity": row["identity"],
        "recurrence_id": row["recurrence_id"],
        "title": row["title"],
        "event": serialize_event(row),
        "record": row["record_id"],
        "changes": {name: serialize_change(change) for name, change in read_json(row["changes"]).items()},
        "reasons": read_messages(row["reasons"]),
        "line": row["line"],
        "state": row["state"],
        "revision": row["revision"],
    }


def serialize_event(row: Row) -> JsonObject | None:
    """Return when an event or a series takes place, as the source says; None for other records."""
    imported = read_json(row["imported"]) if row["imported"] is not None else {}
    values = imported.get("values", {})
    if row["kind"] not in ("events", "series") or "start_date" not in values:
        return None
    return {
        "start_date": values["start_date"],
        "end_date": values.get("end_date"),
        "all_day": bool(values.get("all_day")),
        "event_status": values.get("event_status") or SCHEDULED,
        "dates": imported.get("dates") if row["kind"] == "series" else 1,
    }


def serialize_change(change: Mapping[str, Any]) -> JsonObject:
    return {name: change.get(name) for name in ("stored", "before", "now", "decision")}


def read_messages(stored: str | Sequence[Any]) -> list[Message]:
    return [decode_message(entry) for entry in read_json(stored)]


def read_json(stored: Any) -> Any:
    """Return the value of a column of type jsonb."""
    return orjson.loads(stored) if isinstance(stored, str | bytes) else stored


def format_moment(moment: datetime | None) -> str | None:
    return times.format_datetime(moment) if moment is not None else None
