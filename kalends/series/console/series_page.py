"""A series page: the series' parts in words, its dates, and its latest edits."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any, Final

import orjson

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.series_kind import CONTENT_FIELDS, SERIES, TIMES
from kalends.calendar.storage.history_tables import list_record_changes
from kalends.console.console_request import ConsoleRequest
from kalends.console.field_texts import LABELS, local_text, make_locale
from kalends.console.history_views import ACTIONS
from kalends.core import times
from kalends.core.errors import ApiError, field_errors
from kalends.core.html_text import to_plain_text
from kalends.core.messages import Message, gettext_noop as N_
from kalends.core.params import read_params
from kalends.core.recurrence import Rule
from kalends.core.recurrence.rule_parts import WEEKDAYS
from kalends.rendering import rule_texts
from kalends.rendering.cards import Badge, make_state_badge
from kalends.rendering.page_locale import PageLocale
from kalends.series.api import OCCURRENCE_PARAMS
from kalends.series.operations.series_dates import MADE, PLANNED, REMOVED, list_occurrences, load_headings
from kalends.series.rules.repeat import DATES_ONLY, DAYS, ENDS, FREQUENCIES
from kalends.series.rules.series_slots import Definition, Part
from kalends.series.storage import count_caused_changes
from kalends.store import Row

# API warnings about rules, reworded for the editor.
_SKIPPED_MONTHS: Final = N_(
    "Months without this day are skipped. To get a date every month, choose the last day of the month."
)
_WARNINGS: Final = {
    "Five months of the year have no 31st. Use `BYMONTHDAY=-1` for the last day of every month.": _SKIPPED_MONTHS,
    "February has no 30th. Use `BYMONTHDAY=-1` for the last day of every month.": _SKIPPED_MONTHS,
}
LIST_TEXT: Final = N_("On selected dates")


def describe_rule(rule: Rule | None, start: date, locale: PageLocale) -> str:
    """Return a rule in words; empty if that is not possible. None stands for a list of dates."""
    if rule is None:
        return locale.text(LIST_TEXT)
    return rule_texts.describe_rule(rule, start, locale.language, str(locale.locale)) or ""


def describe_warning(warning: Message) -> Message:
    return Message(_WARNINGS[warning.text]) if warning.text in _WARNINGS else warning


def find_reason(error: ApiError) -> Message:
    """Return why the first parameter was rejected, or the error message."""
    return next(iter(field_errors(error).values()), error.message)


def format_wall(text: str | None, locale: PageLocale, *, all_day: bool = False) -> str:
    """Format a local time from the API as day and time of day."""
    if not text:
        return ""
    wall = datetime.fromisoformat(text)
    day = locale.dated_weekday(wall.date())
    return day if all_day else f"{day}, {locale.time(wall)}"


def name_fields(names: Iterable[str], locale: PageLocale) -> str:
    labels: Mapping[str, Any] = {**LABELS, TIMES: LABELS["dates"]}
    return ", ".join(locale.text(labels.get(name, name)) for name in names)


PER_PAGE: Final = 50
SHOWN_EDITS: Final = 10
# How far after `created_until` to show planned dates.
PLANNED_PERIOD: Final = timedelta(days=200)
MAX_PLANNED: Final = 5
STATE_LABELS: Final = {MADE: "", REMOVED: N_("Skipped"), PLANNED: N_("Planned")}
# Labels for changes, by series column.
COLUMN_LABELS: Final = {
    "parts": N_("Rule or times"),
    "added": N_("Extra dates"),
    "removed": N_("Skipped dates"),
    "slug": N_("Web address"),
    "published_at": N_("Publication date"),
}
CONTENT_COLUMNS: Final = ("template", "content_changes")


@dataclass(frozen=True, slots=True)
class PartText:
    since: str
    rule: str
    times: str
    zone: str  # empty for the site's time zone


@dataclass(frozen=True, slots=True)
class DateRow:
    slot: str
    state: str
    label: str  # message ID for the state; empty for an event
    day: str
    title: str  # empty if it is the series' title
    announced: Badge | None  # the event status, such as cancelled
    event: int | None
    status: str
    own: str
    moved_from: str
    may_cancel: bool


@dataclass(frozen=True, slots=True)
class DatePage:
    rows: Sequence[DateRow]
    total: int
    number: int
    is_past: bool
    other_total: int  # past dates on an upcoming page, and vice versa

    @property
    def total_pages(self) -> int:
        return max(-(-self.total // PER_PAGE), 1)


@dataclass(frozen=True, slots=True)
class EditText:
    revision: int
    action: str  # a message ID
    time: str
    user: str
    is_automatic: bool
    fields: str
    count: int  # changed events
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
    """Load a page of past or upcoming dates; planned dates follow the last upcoming page."""
    local_now = times.local_of(context.transaction.now, zone)
    entries = await _list(context, row, [MADE, REMOVED])
    past = [entry for entry in entries if datetime.fromisoformat(entry["end_date"]) < local_now]
    upcoming = [entry for entry in entries if datetime.fromisoformat(entry["end_date"]) >= local_now]
    shown, others = (past[::-1], upcoming) if is_past else (upcoming, past)
    page = shown[(number - 1) * PER_PAGE : number * PER_PAGE]
    if not is_past and number * PER_PAGE >= len(shown):
        page = [*page, *(await _list_planned(context, row))]
    headings = await load_headings(context.transaction, [entry["event"] for entry in page if entry["event"]])
    rows = [_make_date(entry, headings.get(entry["event"]), row["title"], locale) for entry in page]
    return DatePage(rows, len(shown), number, is_past, len(others))


async def _list(context: OperationContext, row: Row, states: list[str], **bounds: str) -> list[dict[str, Any]]:
    values = read_params(OCCURRENCE_PARAMS, {"state": states, **bounds})
    context = replace(context, values={**values, "context": "edit"}, record_id=row["id"])
    outcome = await list_occurrences(SERIES, context)
    entries: list[dict[str, Any]] = outcome.body["occurrences"]
    return entries


async def _list_planned(context: OperationContext, row: Row) -> list[dict[str, Any]]:
    created_until: datetime | None = row["created_until"]
    if created_until is None:
        return []
    last = times.format_datetime((created_until + PLANNED_PERIOD).replace(tzinfo=None))
    return (await _list(context, row, [PLANNED], to=last))[:MAX_PLANNED]


def _make_date(entry: dict[str, Any], heading: Row | None, series_title: str, locale: PageLocale) -> DateRow:
    is_moved = TIMES in entry["own"]
    return DateRow(
        slot=entry["slot"],
        state=entry["state"],
        label=STATE_LABELS[entry["state"]],
        day=format_wall(entry["start_date"], locale),
        title=to_plain_text(heading["title"]) if heading and heading["title"] != series_title else "",
        announced=make_state_badge(heading["event_status"], locale.translate) if heading else None,
        event=entry["event"],
        status=entry["status"] or "",
        own=name_fields(entry["own"], locale),
        moved_from=format_wall(entry["slot"], locale) if is_moved and entry["slot"] != entry["start_date"] else "",
        may_cancel=heading is not None and entry["state"] == "made" and heading["event_status"] != "cancelled",
    )


# History -------------------------------------------------------------------------------------


async def load_edits(console_request: ConsoleRequest, context: OperationContext, series_id: int) -> list[EditText]:
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
    if change["action"] != "update":
        return ""
    before, after = (orjson.loads(change[side] or "{}") for side in ("before", "after"))
    columns = [locale.text(label) for name, label in COLUMN_LABELS.items() if name in after]
    old, new = _read_content(before), _read_content(after)
    fields = dict.fromkeys(CONTENT_FIELDS[name] for name in CONTENT_FIELDS if old.get(name) != new.get(name))
    return ", ".join([*columns, *([name_fields(fields, locale)] if fields else [])])


def _read_content(side: Mapping[str, Any]) -> dict[str, Any]:
    """Return a series' logged content: the template, and later values with their slots."""
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


# The rule editor's choices ---------------------------------------------------------------------

MONDAY: Final = 1


@dataclass(frozen=True, slots=True)
class RepeatOptions:
    """Choices with their message IDs, and weekdays with short and long names."""

    weekdays: list[tuple[str, str, str]]
    frequencies: dict[str, str]
    days: dict[str, str]
    ends: dict[str, str]
    has_lists: bool


def make_options(locale: PageLocale, *, is_new: bool = True, has_lists: bool | None = None) -> RepeatOptions:
    """Return the choices. "Never" and "Only on selected dates" are offered only if `is_new`."""
    frequencies = {name: text for name, text in FREQUENCIES.items() if is_new or name not in ("", DATES_ONLY)}
    names = zip(WEEKDAYS, locale.weekdays(MONDAY), strict=True)
    weekdays = [(value, short, long) for value, (short, long) in names]
    return RepeatOptions(weekdays, frequencies, DAYS, ENDS, is_new if has_lists is None else has_lists)
