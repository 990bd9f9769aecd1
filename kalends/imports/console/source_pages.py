"""Import sources: the list, the form, table columns, the source page with its runs, and deletion."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from starlette.responses import Response

from kalends.calendar.access.operation_context import UploadedFile
from kalends.calendar.operations.record_verbs import list_tree
from kalends.console.console_rendering import show
from kalends.console.console_request import ConsoleRequest, ConsoleRoute, form_error, redirect
from kalends.console.field_texts import STATUS_NAMES, local_text, make_locale
from kalends.console.record_views import read_id
from kalends.console.site_settings import list_zones
from kalends.core import errors
from kalends.core.errors import ApiError, field_errors
from kalends.core.messages import Message, translator
from kalends.core.params import read_params
from kalends.imports.api import read_form as read_upload_form
from kalends.imports.console import import_texts
from kalends.imports.console.import_texts import INTERVALS, PATH
from kalends.imports.operations import requests
from kalends.imports.operations.requests import DEFAULTS, STATUSES, serialize_source
from kalends.imports.rules.table_headers import IGNORED, REPEATABLE, TABLE_KINDS, get_header, guess_kind
from kalends.imports.storage import import_lists
from kalends.imports.storage.import_tables import decode, decode_message
from kalends.store import Row, job_queue
from kalends.store.database import Transaction

# The source form: its choices, and its values as API parameters.

Options = list[tuple[str, str]]
FIELDS: Final = (
    *("name", "kind", "url", "interval", "default_status", "default_category", "authority", "timezone"),
    *("trust_rank", "allow_mass_deletion", "organizer_emails"),
)
# Fields that become null if empty.
NULLABLE: Final = ("interval", "default_category")


def read_form(form: Mapping[str, Any]) -> dict[str, Any]:
    sent = {name: _read_text(form[name]) for name in FIELDS if name in form}
    return {name: None if name in NULLABLE and not value else value for name, value in sent.items()}


def _read_text(value: object) -> str:
    """Return the last value, because a hidden field precedes each checkbox."""
    last: object = value[-1] if isinstance(value, list) and value else value  # pyright: ignore[reportUnknownVariableType]
    return last.replace("\0", "") if isinstance(last, str) else ""


def make_texts(values: Mapping[str, Any]) -> dict[str, str]:
    given = {"kind": "ical", "timezone": "", **DEFAULTS, **values}
    return {name: _make_text(given.get(name)) for name in FIELDS}


def _make_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


async def read_choices(
    console_request: ConsoleRequest, tx: Transaction, texts: Mapping[str, str]
) -> dict[str, Options]:
    """Return the form's choices. If the current interval is not among them, add it."""
    translate = translator(console_request.language)
    intervals = [(value, translate(text)) for value, text in INTERVALS.items()]
    if texts["interval"] not in INTERVALS:
        intervals.append((texts["interval"], texts["interval"]))
    tree = await list_tree(tx)
    return {
        "interval": intervals,
        "default_status": [(name, translate(STATUS_NAMES[name])) for name in STATUSES],
        "default_category": [(str(row.row["id"]), "– " * row.depth + row.row["name"]) for row in tree],
        "timezone": [(name, name.replace("_", " ")) for name in list_zones()],
    }


# A worker counts as missing after this many seconds without a heartbeat.
MAX_HEARTBEAT_AGE: Final = 60.0
SHOWN_RUNS: Final = 20
FORM_STATUSES: Final = (400, 413)
# File extensions and content types that the file picker accepts.
FILE_TYPES: Final = ".ics,.csv,.xlsx,.xls,.ods,text/calendar,text/csv"


async def show_sources(console_request: ConsoleRequest) -> Response:
    async with console_request.transaction() as tx:
        rows = await import_lists.list_sources(tx)
        latest = await import_lists.list_runs(tx, limit=SHOWN_RUNS)
    return show(console_request, "imports.html", sources=rows, runs=latest, **await make_common(console_request))


async def make_common(console_request: ConsoleRequest) -> dict[str, Any]:
    """Return the values that all import pages need: texts, helper functions, and whether no worker is running."""
    locale, zone = make_locale(console_request), console_request.site.timezone
    age = await job_queue.find_site_heartbeat_age(console_request.state.database, console_request.site.id)

    def format_moment(moment: datetime | None) -> str:
        return local_text(moment, zone, locale) if moment is not None else ""

    return {
        "words": import_texts,
        "format_moment": format_moment,
        "read_json": decode,
        "status_names": STATUS_NAMES,
        "is_worker_missing": age is None or age > MAX_HEARTBEAT_AGE,
    }


# The form ------------------------------------------------------------------------------------


async def show_new(console_request: ConsoleRequest) -> Response:
    return await _show_form(console_request, None, {})


async def create(console_request: ConsoleRequest) -> Response:
    """Add a source and start its first run, which only makes a plan."""
    form, file = await _read_upload(console_request)
    sent = read_form(form)
    try:
        values = read_params(requests.NEW, sent)
        run_id = await _create(console_request, values, file)
    except ApiError as error:
        if error.status not in FORM_STATUSES:
            raise
        return await _show_form(console_request, None, sent, error)
    return redirect(f"{PATH}/runs/{run_id}")


async def _create(console_request: ConsoleRequest, values: Mapping[str, Any], file: UploadedFile | None) -> int:
    async with console_request.write() as tx:
        await tx.lock_site(console_request.actor.user_id)
        context = console_request.make_context(tx, values)
        source = await requests.create_source(None, context)
        context = replace(context, values={}, record_id=source.body["id"], file=file)
        run_id: int = (await requests.start_run(None, context)).body["id"]
        return run_id


async def _read_upload(console_request: ConsoleRequest) -> tuple[dict[str, Any], UploadedFile | None]:
    raw, file = await read_upload_form(console_request.request)
    return raw.values, file


async def show_settings(console_request: ConsoleRequest) -> Response:
    row = await read_source(console_request)
    return await _show_form(console_request, row, serialize_source(row))


async def save_settings(console_request: ConsoleRequest) -> Response:
    row = await read_source(console_request)
    sent = read_form(console_request.form)
    sent.pop("kind", None)
    try:
        await change_source(console_request, row["id"], read_params(requests.CHANGES, sent, update=True))
    except ApiError as error:
        if error.status not in FORM_STATUSES:
            raise
        return await _show_form(console_request, row, {**serialize_source(row), **sent}, error)
    return redirect(f"{PATH}/{row['id']}", "saved")


async def change_source(console_request: ConsoleRequest, source_id: int, values: Mapping[str, Any]) -> None:
    async with console_request.write() as tx:
        await tx.lock_site(console_request.actor.user_id)
        await requests.update_source(None, console_request.make_context(tx, values, record_id=source_id))


async def _show_form(
    console_request: ConsoleRequest, row: Row | None, values: Mapping[str, Any], error: ApiError | None = None
) -> Response:
    fields_texts = make_texts(values)
    async with console_request.transaction() as tx:
        choices = await read_choices(console_request, tx, fields_texts)
    return show(
        console_request,
        "imports_form.html",
        status=error.status if error else 200,
        row=row,
        texts=fields_texts,
        choices=choices,
        file_types=FILE_TYPES,
        max_megabytes=requests.MAX_FILE_BYTES // 1024**2,
        error=form_error(error) if error else None,
        errors=field_errors(error) if error else {},
        **await make_common(console_request),
    )


# One source ----------------------------------------------------------------------------------


async def show_source(console_request: ConsoleRequest, error: ApiError | None = None) -> Response:
    async with console_request.transaction() as tx:
        row = await requests.fetch_source(tx, read_id(console_request))
        latest = await import_lists.list_runs(tx, source_id=row["id"], limit=SHOWN_RUNS)
    return show(
        console_request,
        "imports_source.html",
        status=error.status if error else 200,
        row=row,
        runs=latest,
        file_types=FILE_TYPES,
        error=form_error(error) if error else None,
        errors=field_errors(error) if error else {},
        **await make_common(console_request),
    )


async def start_run(console_request: ConsoleRequest) -> Response:
    _, file = await _read_upload(console_request)
    try:
        async with console_request.write() as tx:
            await tx.lock_site(console_request.actor.user_id)
            context = console_request.make_context(tx, {}, record_id=read_id(console_request))
            outcome = await requests.start_run(None, replace(context, file=file))
    except ApiError as error:
        if error.status not in (*FORM_STATUSES, 409):
            raise
        return await show_source(console_request, error)
    return redirect(f"{PATH}/runs/{outcome.body['id']}")


async def change_state(console_request: ConsoleRequest) -> Response:
    values = read_params(requests.CHANGES, {"state": console_request.form_text("state")}, update=True)
    await change_source(console_request, read_id(console_request), values)
    return redirect(f"{PATH}/{read_id(console_request)}", "saved")


async def confirm_deletion(console_request: ConsoleRequest) -> Response:
    return show(console_request, "imports_delete.html", row=await read_source(console_request), words=import_texts)


async def delete(console_request: ConsoleRequest) -> Response:
    """Delete a source but keep the events imported from it."""
    async with console_request.write() as tx:
        await tx.lock_site(console_request.actor.user_id)
        context = console_request.make_context(tx, record_id=read_id(console_request))
        await requests.delete_source(None, context)
    return redirect(PATH, "deleted")


async def read_source(console_request: ConsoleRequest) -> Row:
    async with console_request.transaction() as tx:
        return await requests.fetch_source(tx, read_id(console_request))


_SOURCE: Final = r"/imports/(?P<id>\d{1,15})"
ROUTES: Final = (
    ConsoleRoute("/imports", show_sources, min_role="editor"),
    ConsoleRoute("/imports/new", show_new, create, min_role="editor", reads_body=False),
    ConsoleRoute(_SOURCE, show_source, min_role="editor"),
    ConsoleRoute(f"{_SOURCE}/settings", show_settings, save_settings, min_role="editor"),
    ConsoleRoute(f"{_SOURCE}/run", post=start_run, min_role="editor", reads_body=False),
    ConsoleRoute(f"{_SOURCE}/state", post=change_state, min_role="editor"),
    ConsoleRoute(f"{_SOURCE}/delete", confirm_deletion, delete, min_role="editor"),
)


# Table columns: the meaning of each column, and a preview that marks invalid cells.


@dataclass(frozen=True, slots=True)
class CellView:
    text: str
    problem: Message | None


@dataclass(frozen=True, slots=True)
class PreviewRow:
    """A preview row. `problem` is about the row as a whole."""

    number: int
    cells: list[CellView]
    problem: Message | None


async def show_columns(console_request: ConsoleRequest) -> Response:
    run = await _read_run(console_request)
    preview = decode(run["preview"])
    columns: list[dict[str, Any]] = preview["columns"]
    kind = guess_kind(column["header"] for column in columns)
    choices = [(name, get_header(kind, name, console_request.language)) for name in TABLE_KINDS[kind]]
    rows = [_make_row(row) for row in preview["rows"]]
    return show(
        console_request,
        "imports_columns.html",
        run=run,
        columns=columns,
        choices=choices,
        rows=rows,
        invalid=sum(1 for row in rows if row.problem or any(cell.problem for cell in row.cells)),
        ignored=IGNORED,
        **await make_common(console_request),
    )


async def save_columns(console_request: ConsoleRequest) -> Response:
    run = await _read_run(console_request)
    columns = _read_columns(console_request, run)
    async with console_request.write() as tx:
        await tx.lock_site(console_request.actor.user_id)
        context = console_request.make_context(tx, {"columns": columns}, record_id=run["source_id"])
        await requests.update_source(None, context)
        if run["state"] == "planned":
            await requests.discard_run(None, replace(context, record_id=run["id"]))
        options = {"input": decode(run["options"]).get("input", "url")}
        outcome = await requests.start_run(None, replace(context, values=options))
    return redirect(f"{PATH}/runs/{outcome.body['id']}")


async def _read_run(console_request: ConsoleRequest) -> Row:
    async with console_request.transaction() as tx:
        run = await requests.fetch_run(tx, int(console_request.path_params["id"]))
    if run["preview"] is None:
        raise errors.no_route()
    return run


def _read_columns(console_request: ConsoleRequest, run: Row) -> dict[str, str]:
    """Return the field chosen for each column header; raise if a field was chosen twice."""
    preview = decode(run["preview"])
    chosen = {
        column["header"]: console_request.form_text(f"column-{number}")
        for number, column in enumerate(preview["columns"])
    }
    taken: list[str] = []
    for field in chosen.values():
        if field in taken and field not in REPEATABLE and field != IGNORED:
            raise errors.invalid("columns", "has the field {field} twice.", field=field)
        taken.append(field)
    columns: dict[str, str] = requests.COLUMNS.read(chosen)
    return columns


def _make_row(row: Mapping[str, Any]) -> PreviewRow:
    cells = [CellView(cell["text"], _read_problem(cell["problem"])) for cell in row["cells"]]
    return PreviewRow(row["row"], cells, _read_problem(row["problem"]))


def _read_problem(stored: Any) -> Message | None:
    return decode_message(stored) if isinstance(stored, dict) else None


COLUMNS_ROUTES: Final = (
    ConsoleRoute(r"/imports/runs/(?P<id>\d{1,15})/columns", show_columns, save_columns, min_role="editor"),
)
