"""Forms for one venue, organizer, category or tag: create, change, trash, restore and delete."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

from kalends.console.conflicts import read_choices, save_merged
from kalends.console.field_texts import STATUS_FILTERS
from kalends.console.records.forms import RecordForm
from kalends.console.records.list_views import find_form
from kalends.console.records.options import load_options
from kalends.console.records.values import find_changes, read_defaults, read_row, read_submitted, read_version
from kalends.console.rendering import show
from kalends.console.request import ConsoleRequest, ConsoleRoute, field_errors, form_error, redirect
from kalends.core.errors import ApiError
from kalends.core.html.sanitize import to_plain_text
from kalends.kinds.kind import Kind
from kalends.operations import permissions
from kalends.operations.history import restore_record
from kalends.operations.record_versions import read_versions
from kalends.operations.records import create_record, delete_record, fetch_editable_row
from kalends.store import Row, link_moves

# Errors that the form shows, with the values that were sent. Others become a page of their own.
FORM_ERRORS: Final = (400, 409, 429)


async def show_new(console_request: ConsoleRequest) -> Response:
    """Show the form of a new record."""
    form = find_form(console_request)
    permissions.require_writer(console_request.actor, form.kind)
    texts = {**read_defaults(form, console_request), form.kind.title_param: console_request.query_value("name")}
    return await show_form(console_request, form, texts)


async def create(console_request: ConsoleRequest) -> Response:
    """Create a record. If an identical one is published already, the API returns that one, and so does this."""
    form = find_form(console_request)
    defaults = read_defaults(form, console_request)
    texts = {**defaults, **read_submitted(form, console_request.form)}
    raw = {name: value for name, value in find_changes(form, texts, defaults).items() if value not in ("", None)}
    try:
        outcome = await console_request.perform(create_record, form.kind, raw)
    except ApiError as error:
        if error.status not in FORM_ERRORS:
            raise
        return await show_form(console_request, form, texts, error=error)
    is_new = outcome.status == 201
    # The existing record may belong to somebody else.
    path = f"{form.path}/{outcome.body['id']}" if is_new or console_request.has_role("editor") else form.path
    return redirect(path, "saved" if is_new else "existing")


async def show_record(console_request: ConsoleRequest) -> Response:
    """Show the form of a record that the user may edit."""
    form, row = find_form(console_request), await read_editable(console_request)
    return await show_form(console_request, form, read_row(form, row, console_request.site.timezone), row)


async def save(console_request: ConsoleRequest) -> Response:
    """Save the changed fields, merged with changes of others since the form was shown."""
    form, row = find_form(console_request), await read_editable(console_request)
    submitted, base = read_submitted(form, console_request.form), await read_base(console_request, form, row)
    changes = read_choices(console_request.form)
    if changes is None:
        changes = find_changes(form, submitted, base)
    revision = read_revision(console_request) or row["revision"]
    try:
        saved = await save_merged(console_request, form.kind, row["id"], revision, changes)
    except ApiError as error:
        if error.status not in FORM_ERRORS:
            raise
        return await show_form(console_request, form, {**base, **submitted}, row, error=error)
    return saved if isinstance(saved, Response) else redirect(f"{form.path}/{row['id']}", "saved")


async def read_base(console_request: ConsoleRequest, form: RecordForm, row: Row) -> dict[str, str]:
    """Return the values that the form was shown with; the current ones if the change log has lost them."""
    zone, revision = console_request.site.timezone, read_revision(console_request)
    if revision is None or revision == row["revision"]:
        return read_row(form, row, zone)
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx, record_id=row["id"])
        versions = await read_versions(form.kind, context, revision)
    return read_version(form, versions.base or versions.current, zone)


async def trash(console_request: ConsoleRequest) -> Response:
    """Move a venue or organizer to the trash."""
    await perform_on_record(console_request, delete_record)
    return redirect(find_form(console_request).path, "trashed")


async def restore(console_request: ConsoleRequest) -> Response:
    """Restore a venue or organizer from the trash."""
    await perform_on_record(console_request, restore_record)
    return redirect(f"{find_form(console_request).path}/{read_id(console_request)}", "restored")


async def confirm_deletion(console_request: ConsoleRequest) -> Response:
    """Show the consequences of deleting a category or tag."""
    form, row = find_form(console_request), await read_editable(console_request)
    async with console_request.transaction() as tx:
        events = await link_moves.count_links(tx, form.link.table, form.link.column, row["id"])
    return show(
        console_request, "record_delete.html", form=form, row=row, name=show_name(form.kind, row), events=events
    )


async def delete(console_request: ConsoleRequest) -> Response:
    """Delete a category or tag."""
    await perform_on_record(console_request, delete_record)
    return redirect(find_form(console_request).path, "deleted")


# Helpers -------------------------------------------------------------------------------------


def read_id(console_request: ConsoleRequest) -> int:
    return int(console_request.path_params["id"])


def read_revision(console_request: ConsoleRequest) -> int | None:
    """Return the revision from which the form was made; None if it was not sent."""
    text = console_request.form_text("base_revision")
    return int(text) if text.isdecimal() and len(text) <= 18 else None


def show_name(kind: Kind, row: Row) -> str:
    """Return the name of a record as plain text."""
    name: str = to_plain_text(row["title"]) if kind.is_post else row["name"]
    return name


async def read_editable(console_request: ConsoleRequest) -> Row:
    """Read the row of the record in the path; raise ApiError if the user may not edit it."""
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx, record_id=read_id(console_request))
        return await fetch_editable_row(find_form(console_request).kind, context)


async def perform_on_record(
    console_request: ConsoleRequest, operation: Any, raw: Mapping[str, Any] | None = None
) -> None:
    """Run an operation of the API on the record in the path, if it still has the revision of the form."""
    await console_request.perform(
        operation,
        find_form(console_request).kind,
        raw or {},
        record_id=read_id(console_request),
        revision=read_revision(console_request),
    )


def make_map_url(console_request: ConsoleRequest, texts: Mapping[str, str]) -> str:
    """Return the URL of the map of a venue; empty if it has no position, or no tile server is configured."""
    latitude, longitude = texts.get("geo_lat", ""), texts.get("geo_lng", "")
    if not (console_request.map_settings.tiles_url and latitude and longitude):
        return ""
    return f"/console/map?{urlencode({'lat': latitude, 'lng': longitude})}"


async def show_form(
    console_request: ConsoleRequest,
    form: RecordForm,
    texts: Mapping[str, str],
    row: Row | None = None,
    *,
    error: ApiError | None = None,
) -> Response:
    """Show the form with these values; `row` is the current row of an existing record."""
    async with console_request.transaction() as tx:
        loaded = await load_options(console_request, tx, form, texts, row)
    errors = field_errors(error) if error else {}
    response = show(
        console_request,
        "record_form.html",
        status=error.status if error else 200,
        form=form,
        row=row,
        name=show_name(form.kind, row) if row else "",
        texts=texts,
        loaded=loaded,
        map_url=make_map_url(console_request, texts),
        base_revision=(read_revision(console_request) or row["revision"]) if row else "",
        error=form_error(error) if error else None,
        errors=errors,
        statuses=STATUS_FILTERS,
        labels={name: label for name, label in form.labels.items() if name in errors},
    )
    if error:
        response.headers.update(error.headers)
    return response


def _make_routes(kinds: str, min_role: str) -> tuple[ConsoleRoute, ...]:
    """Return the routes of these kinds, given as a pattern."""
    collection = rf"/(?P<kind>{kinds})"
    record = rf"{collection}/(?P<id>\d{{1,15}})"
    return (
        ConsoleRoute(f"{collection}/new", show_new, create, min_role=min_role),
        ConsoleRoute(record, show_record, save, min_role=min_role),
    )


ROUTES: Final = (
    *_make_routes("venues|organizers", "contributor"),
    *_make_routes("categories", "author"),
    *_make_routes("tags", "editor"),
    ConsoleRoute(r"/(?P<kind>venues|organizers)/(?P<id>\d{1,15})/trash", post=trash),
    ConsoleRoute(r"/(?P<kind>venues|organizers)/(?P<id>\d{1,15})/restore", post=restore),
    ConsoleRoute(r"/(?P<kind>categories)/(?P<id>\d{1,15})/delete", confirm_deletion, delete, min_role="author"),
    ConsoleRoute(r"/(?P<kind>tags)/(?P<id>\d{1,15})/delete", confirm_deletion, delete, min_role="editor"),
)
