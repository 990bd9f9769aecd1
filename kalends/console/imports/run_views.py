"""Runs of imports: the plan, applying it with its progress, undo, and the list of all runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

from kalends.console.imports.plan import make_rows
from kalends.console.imports.source_views import make_common
from kalends.console.imports.texts import ACTIONS, PATH
from kalends.console.rendering import show
from kalends.console.request import ConsoleRequest, ConsoleRoute, Operation, redirect
from kalends.core import params
from kalends.core.errors import ApiError
from kalends.core.params import Param, param, read_params
from kalends.operations.import_requests import fields, runs
from kalends.operations.import_requests.serialize import read_progress, serialize_run
from kalends.store import Row, import_lists
from kalends.store.database import Transaction

ROWS_PER_PAGE: Final = 100
RUNS_PER_PAGE: Final = 50
BUSY: Final = ("planning", "applying")
OPEN: Final = ("pending", "waiting")
UNCHANGED: Final = "unchanged"


@dataclass(frozen=True, slots=True)
class Tally:
    """The rows of a plan in numbers."""

    by_action: Mapping[str, int]
    pending: int
    pending_by_action: Mapping[str, int]
    waiting: int
    applied: int
    failed: int
    same: int  # records that the plan does not list because nothing changes


async def show_run(console_request: ConsoleRequest, error: ApiError | None = None) -> Response:
    """Show a run: its progress, or its plan with the reason for each row."""
    action = console_request.query_value("action")
    action = action if action in ACTIONS else ""
    async with console_request.transaction() as tx:
        run = await runs.fetch_run(tx, _read_id(console_request))
        found = await _read_rows(console_request, tx, run, action)
        views = await make_rows(console_request, tx, found[:ROWS_PER_PAGE])
        tally = await _count(tx, run)
    return show(
        console_request,
        "imports_run.html",
        status=error.status if error else 200,
        run=run,
        facts=serialize_run(run),
        progress=read_progress(run),
        is_busy=run["state"] in BUSY,
        rows=views,
        tally=tally,
        action=action,
        filters=[(name, *ACTIONS[name], tally.by_action[name]) for name in ACTIONS if tally.by_action.get(name)],
        next_url=_make_next_url(run, action, found),
        is_first_page=not console_request.query_value("cursor"),
        may_undo=run["first_revision"] is not None and run["undone_by"] is None and run["undoes"] is None,
        error=error.message if error else None,
        **await make_common(console_request),
    )


async def _read_rows(console_request: ConsoleRequest, tx: Transaction, run: Row, action: str) -> list[Row]:
    """Return the rows of a page and one more, if there is one."""
    cursor = console_request.query_value("cursor")
    after = int(cursor) if cursor.isdecimal() and len(cursor) < 16 else 0
    actions = [action] if action else [name for name in ACTIONS if name != UNCHANGED]
    return await import_lists.list_rows(tx, run["id"], actions=actions, after=after, limit=ROWS_PER_PAGE + 1)


def _make_next_url(run: Row, action: str, rows: Sequence[Row]) -> str:
    if len(rows) <= ROWS_PER_PAGE:
        return ""
    query = {"action": action, "cursor": rows[ROWS_PER_PAGE - 1]["number"]}
    return f"{PATH}/runs/{run['id']}?{urlencode({name: value for name, value in query.items() if value})}"


async def _count(tx: Transaction, run: Row) -> Tally:
    by_action: dict[str, int] = {}
    pending: dict[str, int] = {}
    by_state: dict[str, int] = {}
    for row in await import_lists.count_rows(tx, run["id"]):
        by_action[row["action"]] = by_action.get(row["action"], 0) + row["number"]
        by_state[row["state"]] = by_state.get(row["state"], 0) + row["number"]
        if row["state"] == "pending":
            pending[row["action"]] = row["number"]
    counts: dict[str, int] = serialize_run(run)["counts"]
    return Tally(
        by_action,
        by_state.get("pending", 0),
        pending,
        by_state.get("waiting", 0),
        by_state.get("applied", 0),
        by_state.get("failed", 0),
        counts.get("same", 0),
    )


# Actions -------------------------------------------------------------------------------------

SCOPE: Final = param("scope", params.one_of("all", "action", "selected"), "Which rows are applied", default="all")


async def apply(console_request: ConsoleRequest) -> Response:
    """Apply all rows of a plan, those with an action, or the selected ones."""
    form = console_request.form
    scope = read_params((SCOPE,), {"scope": console_request.form_text("scope") or "selected"})["scope"]
    if scope == "selected" and not form.get("rows"):
        return redirect(_run_path(console_request), "no-rows-selected")
    names = {"all": (), "action": ("action",), "selected": ("rows",)}[scope]
    raw = {name: form[name] for name in (*names, "confirm") if name in form}
    return await _perform(console_request, runs.apply_run, (fields.ROWS, fields.ACTION, fields.CONFIRM), raw)


async def decide(console_request: ConsoleRequest) -> Response:
    """Decide on a possible duplicate; the name of the button is the answer."""
    name = "same" if "same" in console_request.form else "different"
    raw = {"row": console_request.form_text(name), "same": name == "same"}
    return await _perform(console_request, runs.decide_row, (fields.ROW, fields.SAME), raw, "saved")


async def discard(console_request: ConsoleRequest) -> Response:
    return await _perform(console_request, runs.discard_run, notice="plan-discarded")


async def undo(console_request: ConsoleRequest) -> Response:
    """Plan to undo a run, and continue with that plan."""
    return await _perform(console_request, runs.undo_run)


async def _perform(
    console_request: ConsoleRequest,
    operation: Operation,
    declared: tuple[Param, ...] = (),
    raw: Mapping[str, Any] | None = None,
    notice: str = "",
) -> Response:
    """Run an operation on a run, and show the run that it returns; conflicts are explained on the page."""
    try:
        values = read_params(declared, raw or {})
        async with console_request.write() as tx:
            await tx.lock_site(console_request.actor.user_id)
            context = console_request.make_context(tx, values, record_id=_read_id(console_request))
            outcome = await operation(None, context)
    except ApiError as error:
        if error.status not in (400, 409, 410):
            raise
        return await show_run(console_request, error)
    return redirect(f"{PATH}/runs/{outcome.body['id']}", notice)


async def show_runs(console_request: ConsoleRequest) -> Response:
    """Show all runs, the newest first."""
    text = console_request.query_value("before")
    before = int(text) if text.isdecimal() and len(text) < 16 else None
    async with console_request.transaction() as tx:
        rows = await import_lists.list_runs(tx, before=before, limit=RUNS_PER_PAGE + 1)
    next_before = rows[RUNS_PER_PAGE - 1]["id"] if len(rows) > RUNS_PER_PAGE else None
    common = await make_common(console_request)
    return show(console_request, "imports_runs.html", runs=rows[:RUNS_PER_PAGE], next_before=next_before, **common)


def _read_id(console_request: ConsoleRequest) -> int:
    return int(console_request.path_params["id"])


def _run_path(console_request: ConsoleRequest) -> str:
    return f"{PATH}/runs/{_read_id(console_request)}"


_RUN: Final = r"/imports/runs/(?P<id>\d{1,15})"
ROUTES: Final = (
    ConsoleRoute("/imports/runs", show_runs, min_role="editor"),
    ConsoleRoute(_RUN, show_run, min_role="editor"),
    ConsoleRoute(f"{_RUN}/apply", post=apply, min_role="editor"),
    ConsoleRoute(f"{_RUN}/decide", post=decide, min_role="editor"),
    ConsoleRoute(f"{_RUN}/discard", post=discard, min_role="editor"),
    ConsoleRoute(f"{_RUN}/undo", post=undo, min_role="editor"),
)
