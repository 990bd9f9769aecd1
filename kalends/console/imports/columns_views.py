"""The columns of a table: what each one means, and the first rows with the invalid cells."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from starlette.responses import Response

from kalends.console.imports.source_views import make_common
from kalends.console.imports.texts import PATH
from kalends.console.rendering import show
from kalends.console.request import ConsoleRequest, ConsoleRoute, redirect
from kalends.core import errors
from kalends.core.imports.column_names import IGNORED, REPEATABLE, get_header, guess_kind
from kalends.core.imports.table_headers import KINDS
from kalends.core.messages import Message
from kalends.operations.import_requests import fields, runs, sources
from kalends.operations.import_requests.serialize import read_json
from kalends.store import Row
from kalends.store.imports import decode_message


@dataclass(frozen=True, slots=True)
class CellView:
    text: str
    problem: Message | None


@dataclass(frozen=True, slots=True)
class PreviewRow:
    """A row of the table. `problem` concerns the row as a whole."""

    number: int
    cells: list[CellView]
    problem: Message | None


async def show_columns(console_request: ConsoleRequest) -> Response:
    """Show the meaning of each column of a table, and its first rows."""
    run = await _read_run(console_request)
    preview = read_json(run["preview"])
    columns: list[dict[str, Any]] = preview["columns"]
    kind = guess_kind(column["header"] for column in columns)
    choices = [(name, get_header(kind, name, console_request.language)) for name in KINDS[kind]]
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
    """Store what the columns mean, and make the plan again."""
    run = await _read_run(console_request)
    columns = _read_columns(console_request, run)
    async with console_request.write() as tx:
        await tx.lock_site(console_request.actor.user_id)
        context = console_request.make_context(tx, {"columns": columns}, record_id=run["source_id"])
        await sources.update_source(None, context)
        if run["state"] == "planned":
            await runs.discard_run(None, replace(context, record_id=run["id"]))
        options = {"input": read_json(run["options"]).get("input", "url")}
        outcome = await runs.start_run(None, replace(context, values=options))
    return redirect(f"{PATH}/runs/{outcome.body['id']}")


async def _read_run(console_request: ConsoleRequest) -> Row:
    async with console_request.transaction() as tx:
        run = await runs.fetch_run(tx, int(console_request.path_params["id"]))
    if run["preview"] is None:
        raise errors.no_route()
    return run


def _read_columns(console_request: ConsoleRequest, run: Row) -> dict[str, str]:
    """Return the chosen field of each column by its header. A field that was chosen twice is an error."""
    preview = read_json(run["preview"])
    chosen = {
        column["header"]: console_request.form_text(f"column-{number}")
        for number, column in enumerate(preview["columns"])
    }
    taken: list[str] = []
    for field in chosen.values():
        if field in taken and field not in REPEATABLE and field != IGNORED:
            raise errors.invalid("columns", "has the field {field} twice.", field=field)
        taken.append(field)
    columns: dict[str, str] = fields.COLUMNS.read(chosen)
    return columns


def _make_row(row: Mapping[str, Any]) -> PreviewRow:
    cells = [CellView(cell["text"], _read_problem(cell["problem"])) for cell in row["cells"]]
    return PreviewRow(row["row"], cells, _read_problem(row["problem"]))


def _read_problem(stored: Any) -> Message | None:
    return decode_message(stored) if isinstance(stored, dict) else None


ROUTES: Final = (
    ConsoleRoute(r"/imports/runs/(?P<id>\d{1,15})/columns", show_columns, save_columns, min_role="editor"),
)
