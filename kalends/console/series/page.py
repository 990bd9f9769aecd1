"""The page of a series: its parts in words, its dates, and its last edits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import orjson

from kalends.api.series_routes import OCCURRENCE_PARAMS
from kalends.console.field_texts import local_text, make_locale
from kalends.console.history_views import ACTIONS
from kalends.console.request import ConsoleRequest
from kalends.console.series.texts import describe_rule, format_wall, name_fields
from kalends.core import times
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import read_params
from kalends.core.series import Definition, Part
from kalends.kinds.series import CONTENT_FIELDS, SERIES, TIMES
from kalends.operations.context import OperationContext
from kalends.operations.series.occurrences import MADE, PLANNED, REMOVED, list_occurrences
from kalends.store import Row
from kalends.store.history import list_record_changes
from kalends.store.series_history import count_caused_changes
from kalends.website.models.page_locale import PageLocale

PER_PAGE: Final = 50
SHOWN_EDITS: Final = 10
# Dates that do not exist as events yet are shown for this long.
PLANNED_PERIOD: Final = timedelta(days=200)
MAX_PLANNED: Final = 5
STATE_LABELS: Final = {MADE: "", REMOVED: N_("Left out"), PLANNED: N_("Planned")}
# The labels of changes, by the column of the series.
COLUMN_LABELS: Final = {
    "parts": N_("Rule or times"),
    "added": N_("Further dates"),
    "removed": N_("Dates that are left out"),
    "slug": N_("Address of the page"),
    "published_at": N_("Publication date"),
}
CONTENT_COLUMNS: Final = ("template", "content_changes")


@dataclass(frozen=True, slots=True)
class PartText:
    """A part in words: from when on, the rule, and the times of day."""

    since: str
    rule: str
    times: str
    zone: str  # empty if it is that of the site


@dataclass(frozen=True, slots=True)
class DateRow:
    """A date in the table."""

    slot: str
    state: str
    label: str  # of the state, a message ID; empty for an event
    day: str
    event: int | None
    status: str
    own: str
    moved_from: str


@dataclass(frozen=True, slots=True)
class DatePage:
    """A page of the table of dates."""

    rows: Sequence[DateRow]
    total: int
    number: int
    is_past: bool
    other_total: int  # past dates on the page of upcoming ones, and the other way round

    @property
    def total_pages(self) -> int:
        return max(-(-self.total // PER_PAGE), 1)


@dataclass(frozen=True, slots=True)
class EditText:
    """An edit of the series in its history."""

    revision: int
    action: str  # a message ID
    time: str
    user: str
    is_automatic: bool
    fields: str
    count: int  # events that it changed
    is_undoable: bool


def describe_parts(definition: Definition, site_zone: str, locale: PageLocale) -> list[PartText]:
    return [_describe_part(part, site_zone, locale) for part in definition.parts]


def _describe_part(part: Part, site_zone: str, locale: PageLocale) -> PartText:
    hours = locale.text(N_("All day")) if part.all_day else f"{locale.time(part.start)} – {locale.time(part.end)}"
    return PartText(
        locale.dated_weekday(part.start.date()),
        describe_rule(part.rule, part.start, locale),
        hours,
        part.timezone if part.timezone != site_zone else "",
    )


# Dates ---------------------------------------------------------------------------------------


async def load_dates(
    context: OperationContext, row: Row, zone: str, locale: PageLocale, *, is_past: bool, number: int
) -> DatePage:
    """Load a page of the past or of the upcoming dates; planned ones follow after the last page."""
    local_now = times.local_of(context.transaction.now, zone)
    entries = await _list(context, row, [MADE, REMOVED])
    past = [entry for entry in entries if datetime.fromisoformat(entry["end_date"]) < local_now]
    upcoming = [entry for entry in entries if datetime.fromisoformat(entry["end_date"]) >= local_now]
    shown, others = (past[::-1], upcoming) if is_past else (upcoming, past)
    page = shown[(number - 1) * PER_PAGE : number * PER_PAGE]
    if not is_past and number * PER_PAGE >= len(shown):
        page = [*page, *(await _list_planned(context, row))]
    rows = [_make_date(entry, locale) for entry in page]
    return DatePage(rows, len(shown), number, is_past, len(others))


async def _list(context: OperationContext, row: Row, states: list[str], **bounds: str) -> list[dict[str, Any]]:
    values = read_params(OCCURRENCE_PARAMS, {"state": states, **bounds})
    outcome = await list_occurrences(SERIES, _with_values(context, values, row["id"]))
    entries: list[dict[str, Any]] = outcome.body["occurrences"]
    return entries


async def _list_planned(context: OperationContext, row: Row) -> list[dict[str, Any]]:
    created_until: datetime | None = row["created_until"]
    if created_until is None:
        return []
    last = times.format_datetime((created_until + PLANNED_PERIOD).replace(tzinfo=None))
    return (await _list(context, row, [PLANNED], to=last))[:MAX_PLANNED]


def _with_values(context: OperationContext, values: Mapping[str, Any], record_id: int) -> OperationContext:
    return replace(context, values={**values, "context": "edit"}, record_id=record_id)


def _make_date(entry: dict[str, Any], locale: PageLocale) -> DateRow:
    is_moved = TIMES in entry["own"]
    return DateRow(
        slot=entry["slot"],
        state=entry["state"],
        label=STATE_LABELS[entry["state"]],
        day=format_wall(entry["start_date"], locale),
        event=entry["event"],
        status=entry["status"] or "",
        own=name_fields(entry["own"], locale),
        moved_from=format_wall(entry["slot"], locale) if is_moved and entry["slot"] != entry["start_date"] else "",
    )


# History -------------------------------------------------------------------------------------


async def load_edits(console_request: ConsoleRequest, context: OperationContext, series_id: int) -> list[EditText]:
    """Load the last edits of a series, newest first."""
    tx, locale = context.transaction, make_locale(console_request)
    changes = await list_record_changes(tx, SERIES.name, series_id, limit=SHOWN_EDITS)
    counts = await count_caused_changes(tx, [change["revision"] for change in changes])
    return [
        EditText(
            revision=change["revision"],
            action=ACTIONS[change["action"]],
            time=local_text(change["changed_at"], console_request.site.timezone, locale),
            user=change["login"] or "",
            is_automatic=change["user_id"] is None,
            fields=_name_changes(change, locale),
            count=counts.get(change["revision"], 0),
            is_undoable=change["action"] != "create",
        )
        for change in changes
    ]


def _name_changes(change: Row, locale: PageLocale) -> str:
    """Return the names of the fields that an edit changed."""
    if change["action"] != "update":
        return ""
    before, after = (orjson.loads(change[side] or "{}") for side in ("before", "after"))
    columns = [locale.text(label) for name, label in COLUMN_LABELS.items() if name in after]
    fields = dict.fromkeys(CONTENT_FIELDS[name] for name in CONTENT_FIELDS if _has_changed(name, before, after))
    return ", ".join([*columns, *([name_fields(fields, locale)] if fields else [])])


def _has_changed(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    old, new = (_read_content(side) for side in (before, after))
    return old.get(name) != new.get(name)


def _read_content(side: Mapping[str, Any]) -> dict[str, Any]:
    """Return the logged content of a series: the template, and the values from dates on as texts."""
    content: dict[str, Any] = {}
    for column in CONTENT_COLUMNS:
        stored = side.get(column)
        decoded: Any = orjson.loads(stored) if isinstance(stored, str) else stored
        for entry in decoded if isinstance(decoded, list) else []:  # pyright: ignore[reportUnknownVariableType]
            for name, value in entry["set"].items():  # pyright: ignore
                content.setdefault(name, []).append((entry["from"], value))  # pyright: ignore
        if isinstance(decoded, dict):
            content.update({name: [value] for name, value in decoded.items()})  # pyright: ignore
    return content
