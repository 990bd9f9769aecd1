"""JSON Schemas of the responses about imports."""

from typing import Final

from kalends.api.description.schema_types import (
    ANY,
    DATETIME,
    FLAG,
    ID,
    NON_NEGATIVE,
    TEXT,
    Schema,
    array,
    record,
    ref,
    with_description,
)
from kalends.core.messages import gettext_noop as N_
from kalends.operations.import_requests import fields


def _nullable(schema: Schema, description: str) -> Schema:
    return {"anyOf": [schema, {"type": "null"}], "description": description}


def _choice(values: tuple[str, ...], description: str) -> Schema:
    return {"type": "string", "enum": list(values), "description": description}


TEXTS: Final = array(TEXT)
SOURCE: Final = record(
    {
        "id": ID,
        "kind": _choice((*fields.KINDS, "tec"), N_("tec: a site that moves in, which only commands can start")),
        "name": TEXT,
        "url": with_description(TEXT, N_("Empty: files are uploaded")),
        "interval": _nullable(NON_NEGATIVE, N_("Minutes between two fetches; null: only on request")),
        "owner": _nullable(ID, N_("The user whose rights apply; null: the account was deleted")),
        "default_status": _choice(fields.STATUSES, N_("The status of new events that have none in the source")),
        "default_category": _nullable(ID, N_("The category of new events")),
        "authority": _choice(fields.AUTHORITIES, N_("Which value counts if both sides have changed a field")),
        "timezone": with_description(TEXT, N_("The time zone of times that have none in the source")),
        "columns": {
            "type": "object",
            "additionalProperties": TEXT,
            "description": N_("The field of each column of a table, by its header"),
        },
        "trust_rank": NON_NEGATIVE,
        "allow_mass_deletion": FLAG,
        "organizer_emails": FLAG,
        "state": _choice((*fields.STATES, "closed"), N_("Only active sources are fetched at their interval")),
        "created_utc": DATETIME,
        "next_run_utc": _nullable(DATETIME, N_("When the source is fetched next")),
        "last_success_utc": _nullable(DATETIME, N_("When the source was last read without an error")),
        "failures": with_description(NON_NEGATIVE, N_("Failed runs since the last success")),
        "last_run": _nullable(ID, N_("The ID of the last run")),
        "file": _nullable(
            record({"name": TEXT, "size": NON_NEGATIVE, "uploaded_utc": DATETIME}),
            N_("The file that was uploaded last"),
        ),
    }
)
RUN: Final = record(
    {
        "id": ID,
        "source": ID,
        "user": _nullable(ID, N_("The user who started the run; null: the schedule of the source")),
        "undoes": _nullable(ID, N_("The run that this one undoes")),
        "state": _choice(fields.RUN_STATES, N_("planning and applying are work of the worker")),
        "started_utc": DATETIME,
        "planned_utc": _nullable(DATETIME, N_("When the plan was complete")),
        "finished_utc": _nullable(DATETIME, N_("When the plan was applied or discarded")),
        "counts": {
            "type": "object",
            "additionalProperties": NON_NEGATIVE,
            "description": N_("The number of rows by action, and of those that were applied"),
        },
        "progress": record({"done": NON_NEGATIVE, "total": NON_NEGATIVE}),
        "failure": _nullable(TEXT, N_("Why the run failed")),
        "warnings": with_description(TEXTS, N_("Why a person should look at the plan")),
        "question": _nullable(TEXT, N_("What has to be confirmed before the plan is applied")),
        "first_revision": _nullable(NON_NEGATIVE, N_("The first revision that the run wrote")),
        "last_revision": _nullable(NON_NEGATIVE, N_("The last revision that the run wrote")),
    }
)
CHANGE: Final = record(
    {
        "stored": with_description(ANY, N_("The value of the record")),
        "before": with_description(ANY, N_("The value that the source sent last")),
        "now": with_description(ANY, N_("The value of the source")),
        "decision": with_description(ANY, N_("Which value counts")),
    }
)
EVENT: Final = record(
    {
        "start_date": TEXT,
        "end_date": {"type": ["string", "null"]},
        "all_day": FLAG,
        "event_status": TEXT,
        "dates": _nullable(NON_NEGATIVE, N_("The number of dates; null: without an end")),
    }
)
ROW: Final = record(
    {
        "number": ID,
        "action": _choice(fields.ACTIONS, N_("What happens with the record")),
        "kind": TEXT,
        "identity": with_description(TEXT, N_("The UID of the event in the source")),
        "recurrence_id": TEXT,
        "title": TEXT,
        "event": _nullable(EVENT, N_("When an event or a series takes place, as the source says")),
        "record": _nullable(ID, N_("The ID of the record")),
        "changes": {"type": "object", "additionalProperties": CHANGE, "description": N_("The changed fields")},
        "reasons": with_description(TEXTS, N_("Why the row was rejected or waits, and what is lost")),
        "line": _nullable(NON_NEGATIVE, N_("The line or row of the input")),
        "state": _choice(fields.ROW_STATES, N_("waiting: the row is applied only if it is named")),
        "revision": _nullable(NON_NEGATIVE, N_("The revision of the record after the row was applied")),
    }
)
NEXT: Final[Schema] = {"type": ["integer", "null"]}
SCHEMAS: Final[dict[str, Schema]] = {
    "ImportSource": SOURCE,
    "ImportSources": record({"sources": array(ref("ImportSource"))}),
    "ImportRun": RUN,
    "ImportRuns": record(
        {
            "runs": array(ref("ImportRun")),
            "next_before": with_description(NEXT, N_("Value of `before` for the next page; null on the last page")),
        }
    ),
    "ImportRow": ROW,
    "ImportRows": record(
        {
            "rows": array(ref("ImportRow")),
            "next_cursor": with_description(NEXT, N_("Value of `cursor` for the next page; null on the last page")),
        }
    ),
}
