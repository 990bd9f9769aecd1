"""Import runs: the plan, its progress while it is applied, undo, and the list of all runs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

from kalends.calendar.kinds import BY_NAME
from kalends.calendar.kinds.kind import Kind
from kalends.calendar.operations.event_links import Names, find_names
from kalends.calendar.operations.merging import GROUP_OF
from kalends.calendar.rules.record_types import SCHEDULED, STATES
from kalends.console.console_rendering import show
from kalends.console.console_request import PREFIX, ConsoleRequest, ConsoleRoute, Operation, redirect
from kalends.console.field_texts import LABELS, field_label, is_prose, make_locale, value_text
from kalends.console.record_views import read_id
from kalends.core import params
from kalends.core.errors import ApiError
from kalends.core.html_text import to_plain_lines, to_plain_text
from kalends.core.messages import Message, gettext_noop as N_
from kalends.core.params import Param, param, parse_id, read_params
from kalends.core.words import Segment, diff_words, shorten
from kalends.imports.console.import_texts import ACTIONS, PATH, describe_row
from kalends.imports.console.source_pages import make_common
from kalends.imports.operations import requests
from kalends.imports.operations.import_rows import HELD, PLACES
from kalends.imports.operations.requests import read_messages, read_progress, serialize_event, serialize_run
from kalends.imports.storage import import_lists
from kalends.imports.storage.import_tables import decode
from kalends.rendering.cards import STATE_LABELS
from kalends.rendering.page_locale import PageLocale
from kalends.store import Row
from kalends.store.database import Transaction

# Plan rows as shown to people: what happens, why, and the changed fields before and after.

# Kinds whose records have a console page.
LINKED_KINDS: Final = ("events", "series", "venues", "organizers", "categories", "tags")
OPEN_STATES: Final = ("pending", "waiting")
SHOWN_STATES: Final = frozenset(STATES) - {SCHEDULED}
TAKEN: Final = "source"
# Fields in form order.
ORDER: Final = {name: place for place, name in enumerate(LABELS)}


@dataclass(frozen=True, slots=True)
class ChangeView:
    """A changed field with the stored value and the source's value; for prose, also with the words that differ."""

    label: str
    is_taken: bool
    words: list[Segment]
    stored: str
    now: str
    is_of_other_source: bool = False


@dataclass(frozen=True, slots=True)
class RowView:
    number: int
    action: str
    state: str
    kind: str
    title: str
    when: str
    url: str
    text: str
    changes: list[ChangeView]
    reasons: list[Message]
    line: int | None
    is_open: bool
    state_label: str = ""  # event status, empty if scheduled

    @property
    def is_undecided(self) -> bool:
        return self.action == "duplicate" and self.state == "waiting"

    @property
    def is_place(self) -> bool:
        return self.kind in PLACES.values()

    @property
    def is_held(self) -> bool:
        """Return whether the row waits for a decision about another row."""
        return self.state == "waiting" and any(reason.text == HELD for reason in self.reasons)

    @property
    def needs_check(self) -> bool:
        return self.state == "waiting" and self.action in ("new", "changed", "moved", "linked") and not self.is_held


async def make_rows(console_request: ConsoleRequest, tx: Transaction, rows: Sequence[Row]) -> list[RowView]:
    locale = make_locale(console_request)
    names = {kind: await _find_names(console_request, tx, kind, rows) for kind in {row["kind"] for row in rows}}
    return [_make_row(row, names[row["kind"]], locale) for row in rows]


async def _find_names(console_request: ConsoleRequest, tx: Transaction, kind: str, rows: Sequence[Row]) -> Names:
    if kind not in BY_NAME:
        return {}
    versions = [
        {name: change.get(side) for name, change in decode(row["changes"]).items()}
        for row in rows
        if row["kind"] == kind
        for side in ("stored", "now")
    ]
    return await find_names(tx, console_request.actor, BY_NAME[kind], versions)


def _make_row(row: Row, names: Names, locale: PageLocale) -> RowView:
    kind = row["kind"]
    changes = _make_changes(BY_NAME[kind], decode(row["changes"]), names, locale) if kind in BY_NAME else []
    has_page = row["record_id"] is not None and kind in LINKED_KINDS
    is_kept = row["action"] == "changed" and changes and not any(change.is_taken for change in changes)
    event = serialize_event(row)
    return RowView(
        number=row["number"],
        action=row["action"],
        state=row["state"],
        kind=kind,
        title=to_plain_text(row["title"]),
        when=_describe_dates(BY_NAME[kind], event, locale) if event is not None else "",
        url=f"{PREFIX}/{kind}/{row['record_id']}" if has_page else "",
        text=describe_row(row["action"], "skipped" if is_kept else row["state"], kind),
        changes=changes,
        reasons=read_messages(row["reasons"]),
        line=row["line"],
        is_open=row["state"] in OPEN_STATES and row["action"] not in ("rejected", "unchanged"),
        state_label=STATE_LABELS[event["event_status"]] if event and event["event_status"] in SHOWN_STATES else "",
    )


def _describe_dates(kind: Kind, event: Mapping[str, Any], locale: PageLocale) -> str:
    """Return when an event takes place and, for a series, how many dates it has."""
    name, value = ("dates", event) if event["all_day"] else ("start_date", event["start_date"])
    start = value_text(kind, name, value, {}, locale)
    parts = [locale.text(N_("{days}, all day"), days=start) if event["all_day"] else start]
    if event["dates"] is None:
        parts.append(locale.text(N_("repeats without an end")))
    elif event["dates"] != 1:
        parts.append(locale.text(N_("{n} dates"), n=event["dates"]))
    return " · ".join(parts)


def _make_changes(kind: Kind, changes: Mapping[str, Any], names: Names, locale: PageLocale) -> list[ChangeView]:
    """Return the changed fields. A group of fields counts as one change."""
    groups: dict[str, dict[str, Any]] = {}
    for name, change in changes.items():
        groups.setdefault(GROUP_OF.get(name, name), {})[name] = change
    ordered = sorted(groups, key=lambda name: ORDER.get(name, len(ORDER)))
    return [_make_change(kind, name, groups[name], names, locale) for name in ordered]


def _make_change(kind: Kind, name: str, group: Mapping[str, Any], names: Names, locale: PageLocale) -> ChangeView:
    decision = next(iter(group.values())).get("decision")
    stored, now = (
        {part: change.get(side) for part, change in group.items()} if name not in group else group[name].get(side)
        for side in ("stored", "now")
    )
    words: list[Segment] = []
    if is_prose(kind, name):
        before, after = (to_plain_lines(str(value or "")) for value in (stored, now))
        words = shorten(diff_words(before, after)) if before and after and before != after else []
    stored, now = (value_text(kind, name, value, names, locale) for value in (stored, now))
    return ChangeView(field_label(kind, name), decision == TAKEN, words, stored, now, decision == "other_source")


ROWS_PER_PAGE: Final = 100
RUNS_PER_PAGE: Final = 50
BUSY: Final = ("planning", "applying")
UNCHANGED: Final = "unchanged"


@dataclass(frozen=True, slots=True)
class Tally:
    by_action: Mapping[str, int]
    pending: int
    pending_by_action: Mapping[str, int]
    waiting: int
    applied: int
    failed: int
    same: int  # unchanged records; the plan does not list them


async def show_run(console_request: ConsoleRequest, error: ApiError | None = None) -> Response:
    action = console_request.query_value("action")
    action = action if action in ACTIONS else ""
    async with console_request.transaction() as tx:
        run = await requests.fetch_run(tx, read_id(console_request))
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
    """Return a page of rows and, if there is a next page, one more row."""
    after = parse_id(console_request.query_value("cursor")) or 0
    actions = [action] if action else [name for name in ACTIONS if name != UNCHANGED]
    return await import_lists.list_rows(tx, run["id"], actions=actions, after=after, limit=ROWS_PER_PAGE + 1)


def _make_next_url(run: Row, action: str, rows: Sequence[Row]) -> str:
    if len(rows) <= ROWS_PER_PAGE:
        return ""
    query = {"action": action, "cursor": rows[ROWS_PER_PAGE - 1]["number"]}
    return f"{PATH}/runs/{run['id']}?{urlencode({name: value for name, value in query.items() if value})}"


async def _count(tx: Transaction, run: Row) -> Tally:
    by_action, by_state, pending = Counter[str](), Counter[str](), dict[str, int]()
    for row in await import_lists.count_rows(tx, run["id"]):
        by_action[row["action"]] += row["number"]
        by_state[row["state"]] += row["number"]
        if row["state"] == "pending":
            pending[row["action"]] = row["number"]
    waiting, applied, failed = by_state["waiting"], by_state["applied"], by_state["failed"]
    same = decode(run["counts"]).get("same", 0)
    return Tally(by_action, by_state["pending"], pending, waiting, applied, failed, same)


# Actions -------------------------------------------------------------------------------------

SCOPE: Final = param("scope", params.one_of("all", "action", "selected"), "Which rows are applied", default="all")


async def apply(console_request: ConsoleRequest) -> Response:
    """Apply all rows of a plan, all rows with one action, or the selected rows."""
    form = console_request.form
    scope = read_params((SCOPE,), {"scope": console_request.form_text("scope") or "selected"})["scope"]
    if scope == "selected" and not form.get("rows"):
        return redirect(f"{PATH}/runs/{read_id(console_request)}", "no-rows-selected")
    names = {"all": (), "action": ("action",), "selected": ("rows",)}[scope]
    raw = {name: form[name] for name in (*names, "confirm") if name in form}
    return await _perform(
        console_request, requests.apply_run, (requests.ROWS, requests.ACTION, requests.CONFIRM), raw
    )


async def decide(console_request: ConsoleRequest) -> Response:
    """Decide on a possible duplicate; the button's name is the answer."""
    name = "same" if "same" in console_request.form else "different"
    raw = {"row": console_request.form_text(name), "same": name == "same"}
    return await _perform(console_request, requests.decide_row, (requests.ROW, requests.SAME), raw, "saved")


async def discard(console_request: ConsoleRequest) -> Response:
    return await _perform(console_request, requests.discard_run, notice="plan-discarded")


async def undo(console_request: ConsoleRequest) -> Response:
    """Plan to undo a run, and redirect to the plan."""
    return await _perform(console_request, requests.undo_run)


async def _perform(
    console_request: ConsoleRequest,
    operation: Operation,
    declared: tuple[Param, ...] = (),
    raw: Mapping[str, Any] | None = None,
    notice: str = "",
) -> Response:
    """Perform an operation and redirect to the run that it returns.

    If it fails with 400, 409 or 410, show the error on the run's page instead.
    """
    try:
        values = read_params(declared, raw or {})
        async with console_request.write() as tx:
            await tx.lock_site(console_request.actor.user_id)
            context = console_request.make_context(tx, values, record_id=read_id(console_request))
            outcome = await operation(None, context)
    except ApiError as error:
        if error.status not in (400, 409, 410):
            raise
        return await show_run(console_request, error)
    return redirect(f"{PATH}/runs/{outcome.body['id']}", notice)


async def show_runs(console_request: ConsoleRequest) -> Response:
    before = parse_id(console_request.query_value("before"))
    async with console_request.transaction() as tx:
        rows = await import_lists.list_runs(tx, before=before, limit=RUNS_PER_PAGE + 1)
    next_before = rows[RUNS_PER_PAGE - 1]["id"] if len(rows) > RUNS_PER_PAGE else None
    common = await make_common(console_request)
    return show(console_request, "imports_runs.html", runs=rows[:RUNS_PER_PAGE], next_before=next_before, **common)


_RUN: Final = r"/imports/runs/(?P<id>\d{1,15})"
ROUTES: Final = (
    ConsoleRoute("/imports/runs", show_runs, min_role="editor"),
    ConsoleRoute(_RUN, show_run, min_role="editor"),
    ConsoleRoute(f"{_RUN}/apply", post=apply, min_role="editor"),
    ConsoleRoute(f"{_RUN}/decide", post=decide, min_role="editor"),
    ConsoleRoute(f"{_RUN}/discard", post=discard, min_role="editor"),
    ConsoleRoute(f"{_RUN}/undo", post=undo, min_role="editor"),
)
