"""Import and export routes, file responses and schemas."""

import asyncio
import hashlib
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from kalends.api.api_request import OperationInput, check_write, read_input, require_writer
from kalends.api.description import error_codes
from kalends.api.description.schema_types import (
    ANY,
    DATETIME,
    FLAG,
    ID,
    NON_NEGATIVE,
    TEXT,
    Schema,
    array,
    nullable,
    record,
    ref,
    with_description,
)
from kalends.calendar.access.operation_context import ExportedTable, Outcome, UploadedFile
from kalends.calendar.access.permissions import EDITOR
from kalends.calendar.kinds import KINDS
from kalends.calendar.kinds.events import EVENTS, PASSWORD
from kalends.calendar.kinds.kind import Kind
from kalends.core import params
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import Param, param, read_params
from kalends.http import bodies
from kalends.http.bodies import RawParams
from kalends.http.request import ApiRequest
from kalends.http.router import UPDATES, Endpoint, ErrorCode, Operation, Route
from kalends.imports.adapters.table_writer import CSV_TYPE, XLSX_TYPE, write_csv, write_xlsx
from kalends.imports.operations import requests
from kalends.imports.operations.exports import CSV, FORMATS, XLSX, export_records
from kalends.imports.operations.requests import MAX_FILE_BYTES
from kalends.imports.rules.table_headers import TABLE_KINDS, get_header
from kalends.store.sites import Site

# Forms with an import file are read before the transaction begins.


def is_form(request: Request) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == bodies.MULTIPART


async def read_input_file(api_request: ApiRequest, endpoint: Endpoint, site: Site) -> OperationInput:
    """Read a form with an operation's parameters and an optional file, or a body without a file."""
    if not is_form(api_request.request):
        return await read_input(api_request, endpoint, site)
    require_writer(api_request, endpoint)
    raw, file = await read_form(api_request.request)
    check_write(api_request, endpoint, raw, [bodies.FIELD])
    raw.body = bodies.fingerprint_upload(hashlib.sha256(file.content if file else b"").digest(), raw.values)
    return OperationInput(raw, read_params(endpoint.params, raw.values), file=file)


async def read_form(request: Request) -> tuple[RawParams, UploadedFile | None]:
    with TemporaryDirectory() as directory:
        raw, sent = await bodies.read_upload(request, Path(directory), MAX_FILE_BYTES)
        content = await asyncio.to_thread(sent.path.read_bytes) if sent is not None else b""
    # If no file was chosen, browsers send a part without a file name.
    if sent is None or not (sent.name or content):
        return raw, None
    return raw, UploadedFile(sent.name.replace("\0", ""), content)


# Tables as file downloads.

FILE_TYPES: Final = {CSV: CSV_TYPE, XLSX: XLSX_TYPE}
WRITERS: Final = {CSV: write_csv, XLSX: write_xlsx}


async def respond_with_export(outcome: Outcome, language: str) -> Response:
    if outcome.table is None:
        raise AssertionError("no table to return")
    return await respond_with_table(outcome.table, language)


async def respond_with_table(table: ExportedTable, language: str) -> Response:
    """Return a table as a file with translated headers. Write the file in a thread, because this takes time."""
    headers = [get_header(table.kind, field, language) for field in TABLE_KINDS[table.kind]]
    body = await asyncio.to_thread(WRITERS[table.format], headers, table.rows)
    return Response(
        body,
        headers={
            "Content-Disposition": f'attachment; filename="{table.kind}.{table.format}"',
            "Content-Language": language,
        },
        media_type=FILE_TYPES[table.format],
    )


PATH_ID: Final = (param("id", params.integer(), "The ID of the source or run", required=True),)
EXPORT_FORMAT: Final = param("format", params.one_of(*FORMATS), "The type of the file", default=FORMATS[0])


def _route(pattern: str, *endpoints: Endpoint) -> Route:
    if "(" not in pattern:
        return Route(pattern, endpoints)
    not_found = error_codes.IMPORT_NOT_FOUND
    return Route(
        pattern, tuple(replace(row, path_params=PATH_ID, errors=(*row.errors, not_found)) for row in endpoints)
    )


def _endpoint(
    methods: tuple[str, ...],
    operation: Operation,
    operation_id: str,
    returns: str,
    values: tuple[Param, ...] = (),
    *errors: ErrorCode,
    **options: Any,
) -> Endpoint:
    return Endpoint(
        methods,
        operation,
        None,
        values,
        operation_id=operation_id,
        returns=returns,
        errors=errors,
        has_etag=False,
        min_role=EDITOR,
        **options,
    )


def _act(
    name: str, operation: Operation, operation_id: str, values: tuple[Param, ...], *errors: ErrorCode, **options: Any
) -> Route:
    """Return the route for an action on a run. An action with status 201 creates another run."""
    own_errors = (error_codes.IMPORT_STATE, *errors)
    endpoint = _endpoint(POST, operation, operation_id, "ImportRun", values, *own_errors, **options)
    return _route(rf"/imports/runs/(?P<id>\d+)/{name}", endpoint)


GET: Final = ("GET",)
POST: Final = ("POST",)
RUN_PARAMS: Final = (requests.SOURCE, requests.BEFORE, requests.RUNS_PER_PAGE)
ROW_PARAMS: Final = (requests.ACTION, requests.STATE, requests.CURSOR, requests.ROWS_PER_PAGE)
APPLY_PARAMS: Final = (requests.ROWS, requests.ACTION, requests.CONFIRM)
DECIDE_PARAMS: Final = (requests.ROW, requests.SAME)
BUSY: Final = error_codes.IMPORT_BUSY
BY_COMMAND: Final = error_codes.IMPORT_BY_COMMAND
START: Final = _endpoint(
    POST,
    requests.start_run,
    "startImport",
    "ImportRun",
    (requests.APPLY,),
    error_codes.MISSING,
    BUSY,
    BY_COMMAND,
    status=201,
    accepts_input=True,
    read_input=read_input_file,
)
CREATE: Final = _endpoint(
    POST, requests.create_source, "createImportSource", "ImportSource", requests.NEW, status=201, requires_body=True
)
IMPORT_ROUTES: Final = (
    _route("/imports/sources", _endpoint(GET, requests.list_sources, "listImportSources", "ImportSources"), CREATE),
    _route(
        r"/imports/sources/(?P<id>\d+)",
        _endpoint(GET, requests.read_source, "readImportSource", "ImportSource"),
        _endpoint(("DELETE",), requests.delete_source, "deleteImportSource", "ImportSource", (), BUSY, BY_COMMAND),
        _endpoint(
            UPDATES, requests.update_source, "updateImportSource", "ImportSource", requests.CHANGES, BY_COMMAND
        ),
    ),
    _route(r"/imports/sources/(?P<id>\d+)/runs", START),
    _route("/imports/runs", _endpoint(GET, requests.list_runs, "listImportRuns", "ImportRuns", RUN_PARAMS)),
    _route(r"/imports/runs/(?P<id>\d+)", _endpoint(GET, requests.read_run, "readImportRun", "ImportRun")),
    _route(
        r"/imports/runs/(?P<id>\d+)/rows",
        _endpoint(GET, requests.list_rows, "listImportRows", "ImportRows", ROW_PARAMS),
    ),
    _act("apply", requests.apply_run, "applyImport", APPLY_PARAMS, BUSY, error_codes.IMPORT_UNCONFIRMED),
    _act("undo", requests.undo_run, "undoImport", (), BUSY, error_codes.EXPIRED, status=201),
    _act("decide", requests.decide_row, "decideImportRow", DECIDE_PARAMS, BUSY),
    _act("discard", requests.discard_run, "discardImport", ()),
)


def _export(kind: Kind) -> Endpoint:
    filters = tuple(row.param for row in kind.filters if row.param.name != "cursor")
    return Endpoint(
        GET,
        export_records,
        kind,
        (EXPORT_FORMAT, *filters, *((PASSWORD,) if kind is EVENTS else ())),
        operation_id=f"export{kind.name.capitalize()}",
        returns="ExportedFile",
        file_types=tuple(FILE_TYPES.values()),
        respond=respond_with_export,
        has_etag=False,
    )


EXPORT_ROUTES: Final = tuple(Route(f"/{kind.name}/export", (_export(kind),)) for kind in KINDS if kind.is_post)


# JSON Schemas for import responses.


def _choice(values: tuple[str, ...], description: str) -> Schema:
    return {"type": "string", "enum": list(values), "description": description}


TEXTS: Final = array(TEXT)
SOURCE: Final = record(
    {
        "id": ID,
        "kind": _choice((*requests.KINDS, "tec"), N_("tec: a site that moves in, which only commands can start")),
        "name": TEXT,
        "url": with_description(TEXT, N_("Where to fetch the source; empty for uploaded files")),
        "interval": nullable(NON_NEGATIVE, N_("Minutes between two fetches; null: only on request")),
        "owner": nullable(ID, N_("The user whose rights apply; null: the account was deleted")),
        "default_status": _choice(requests.STATUSES, N_("The status for new events that have none in the source")),
        "default_category": nullable(ID, N_("The category for new events")),
        "authority": _choice(requests.AUTHORITIES, N_("Which value counts if both sides have changed a field")),
        "timezone": with_description(TEXT, N_("The time zone for times that have none in the source")),
        "columns": {
            "type": "object",
            "additionalProperties": TEXT,
            "description": N_("The field of each column of a table, by its header"),
        },
        "trust_rank": NON_NEGATIVE,
        "allow_mass_deletion": FLAG,
        "organizer_emails": FLAG,
        "state": _choice((*requests.STATES, "closed"), N_("Only active sources are fetched at their interval")),
        "created_utc": DATETIME,
        "next_run_utc": nullable(DATETIME, N_("When the source is fetched next")),
        "last_success_utc": nullable(DATETIME, N_("When the source was last read without an error")),
        "failures": with_description(NON_NEGATIVE, N_("Failed runs since the last success")),
        "last_run": nullable(ID, N_("The ID of the last run")),
        "file": nullable(
            record({"name": TEXT, "size": NON_NEGATIVE, "uploaded_utc": DATETIME}),
            N_("The file that was uploaded last"),
        ),
    }
)
RUN: Final = record(
    {
        "id": ID,
        "source": ID,
        "user": nullable(ID, N_("The user who started the run; null: the schedule of the source")),
        "undoes": nullable(ID, N_("The run that this one undoes")),
        "state": _choice(requests.RUN_STATES, N_("planning and applying are work of the worker")),
        "started_utc": DATETIME,
        "planned_utc": nullable(DATETIME, N_("When the plan was complete")),
        "finished_utc": nullable(DATETIME, N_("When the plan was applied or discarded")),
        "counts": {
            "type": "object",
            "additionalProperties": NON_NEGATIVE,
            "description": N_("The number of rows by action, and of those that were applied"),
        },
        "progress": record({"done": NON_NEGATIVE, "total": NON_NEGATIVE}),
        "failure": nullable(TEXT, N_("Why the run failed")),
        "warnings": with_description(TEXTS, N_("Why a person should look at the plan")),
        "question": nullable(TEXT, N_("What has to be confirmed before the plan is applied")),
        "first_revision": nullable(NON_NEGATIVE, N_("The first revision that the run wrote")),
        "last_revision": nullable(NON_NEGATIVE, N_("The last revision that the run wrote")),
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
        "dates": nullable(NON_NEGATIVE, N_("The number of dates; null: without an end")),
    }
)
ROW: Final = record(
    {
        "number": ID,
        "action": _choice(requests.ACTIONS, N_("What happens with the record")),
        "kind": TEXT,
        "identity": with_description(TEXT, N_("The UID of the event in the source")),
        "recurrence_id": TEXT,
        "title": TEXT,
        "event": nullable(EVENT, N_("When an event or a series takes place, as the source says")),
        "record": nullable(ID, N_("The ID of the record")),
        "changes": {"type": "object", "additionalProperties": CHANGE, "description": N_("The changed fields")},
        "reasons": with_description(TEXTS, N_("Why the row was rejected or waits, and what is lost")),
        "line": nullable(NON_NEGATIVE, N_("The line or row of the input")),
        "state": _choice(requests.ROW_STATES, N_("waiting: the row is applied only if it is named")),
        "revision": nullable(NON_NEGATIVE, N_("The revision of the record after the row was applied")),
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
