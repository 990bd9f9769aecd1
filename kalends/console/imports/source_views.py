"""Sources of imports: the list, the form, the page of a source with its runs, and deletion."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from starlette.responses import Response

from kalends.api.import_files import read_form as read_upload_form
from kalends.console.field_texts import STATUS_NAMES, local_text, make_locale
from kalends.console.imports import texts
from kalends.console.imports.source_form import make_texts, read_choices, read_form
from kalends.console.imports.texts import PATH
from kalends.console.rendering import show
from kalends.console.request import ConsoleRequest, ConsoleRoute, field_errors, form_error, redirect
from kalends.core.errors import ApiError
from kalends.core.params import read_params
from kalends.operations.context import UploadedFile
from kalends.operations.import_requests import fields, runs, sources
from kalends.operations.import_requests.serialize import read_json, serialize_source
from kalends.store import Row, import_lists, jobs

# Seconds without a heartbeat after which no worker is running.
MAX_HEARTBEAT_AGE: Final = 60.0
SHOWN_RUNS: Final = 20
FORM_STATUSES: Final = (400, 413)
# The endings of files that a person can choose.
FILE_TYPES: Final = ".ics,.csv,.xlsx,.xls,.ods,text/calendar,text/csv"


async def show_sources(console_request: ConsoleRequest) -> Response:
    """Show all sources with their state, and the last runs."""
    async with console_request.transaction() as tx:
        rows = await import_lists.list_sources(tx)
        latest = await import_lists.list_runs(tx, limit=SHOWN_RUNS)
    return show(
        console_request,
        "imports.html",
        sources=rows,
        runs=latest,
        **await make_common(console_request),
    )


async def make_common(console_request: ConsoleRequest) -> dict[str, Any]:
    """Return the values that all pages of imports need: words, times, and whether a worker is running."""
    locale, zone = make_locale(console_request), console_request.site.timezone
    age = await jobs.find_site_heartbeat_age(console_request.state.database, console_request.site.id)

    def format_moment(moment: datetime | None) -> str:
        return local_text(moment, zone, locale) if moment is not None else ""

    return {
        "words": texts,
        "format_moment": format_moment,
        "read_json": read_json,
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
        values = read_params(fields.NEW, sent)
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
        source = await sources.create_source(None, context)
        context = replace(context, values={}, record_id=source.body["id"], file=file)
        run_id: int = (await runs.start_run(None, context)).body["id"]
        return run_id


async def _read_upload(console_request: ConsoleRequest) -> tuple[dict[str, Any], UploadedFile | None]:
    raw, file = await read_upload_form(console_request.request)
    return raw.values, file


async def show_settings(console_request: ConsoleRequest) -> Response:
    row = await read_source(console_request)
    return await _show_form(console_request, row, serialize_source(row))


async def save_settings(console_request: ConsoleRequest) -> Response:
    """Change the settings of a source."""
    row = await read_source(console_request)
    sent = read_form(console_request.form)
    sent.pop("kind", None)
    try:
        await change_source(console_request, row["id"], read_params(fields.CHANGES, sent, update=True))
    except ApiError as error:
        if error.status not in FORM_STATUSES:
            raise
        return await _show_form(console_request, row, {**serialize_source(row), **sent}, error)
    return redirect(f"{PATH}/{row['id']}", "saved")


async def change_source(console_request: ConsoleRequest, source_id: int, values: Mapping[str, Any]) -> None:
    async with console_request.write() as tx:
        await tx.lock_site(console_request.actor.user_id)
        await sources.update_source(None, console_request.make_context(tx, values, record_id=source_id))


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
        max_megabytes=fields.MAX_FILE_BYTES // 1024**2,
        error=form_error(error) if error else None,
        errors=field_errors(error) if error else {},
        **await make_common(console_request),
    )


# One source ----------------------------------------------------------------------------------


async def show_source(console_request: ConsoleRequest, error: ApiError | None = None) -> Response:
    """Show a source: its state, its runs, and what can be done with it."""
    async with console_request.transaction() as tx:
        row = await sources.fetch_source(tx, _read_id(console_request))
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
    """Fetch a source, or read the file that was uploaded, and continue with the plan."""
    _, file = await _read_upload(console_request)
    try:
        async with console_request.write() as tx:
            await tx.lock_site(console_request.actor.user_id)
            context = console_request.make_context(tx, {}, record_id=_read_id(console_request))
            outcome = await runs.start_run(None, replace(context, file=file))
    except ApiError as error:
        if error.status not in (*FORM_STATUSES, 409):
            raise
        return await show_source(console_request, error)
    return redirect(f"{PATH}/runs/{outcome.body['id']}")


async def change_state(console_request: ConsoleRequest) -> Response:
    """Pause or resume a source."""
    values = read_params(fields.CHANGES, {"state": console_request.form_text("state")}, update=True)
    await change_source(console_request, _read_id(console_request), values)
    return redirect(f"{PATH}/{_read_id(console_request)}", "saved")


async def confirm_deletion(console_request: ConsoleRequest) -> Response:
    return show(console_request, "imports_delete.html", row=await read_source(console_request), words=texts)


async def delete(console_request: ConsoleRequest) -> Response:
    """Delete a source. Its events stay."""
    async with console_request.write() as tx:
        await tx.lock_site(console_request.actor.user_id)
        context = console_request.make_context(tx, record_id=_read_id(console_request))
        await sources.delete_source(None, context)
    return redirect(PATH, "deleted")


async def read_source(console_request: ConsoleRequest) -> Row:
    async with console_request.transaction() as tx:
        return await sources.fetch_source(tx, _read_id(console_request))


def _read_id(console_request: ConsoleRequest) -> int:
    return int(console_request.path_params["id"])


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
