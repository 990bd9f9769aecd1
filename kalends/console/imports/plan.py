"""The rows of a plan as people read them: what happens, why, and the changed fields before and after."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kalends.console.field_texts import GROUP_OF, LABELS, field_label, is_prose, make_locale, value_text
from kalends.console.imports.texts import describe_row
from kalends.console.request import PREFIX, ConsoleRequest
from kalends.core.event_states import SCHEDULED, STATES
from kalends.core.html.text import to_plain_lines, to_plain_text
from kalends.core.messages import Message
from kalends.core.messages import gettext_noop as N_
from kalends.core.word_diff import Segment, diff_words, shorten
from kalends.kinds import BY_NAME
from kalends.kinds.kind import Kind
from kalends.operations.import_requests.serialize import read_json, read_messages, serialize_event
from kalends.operations.imports.linked_rows import HELD, PLACES
from kalends.operations.linked_names import Names, find_names
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.website.models.page_locale import PageLocale
from kalends.website.models.states import STATE_LABELS

# Kinds whose records have a page in the console.
LINKED_KINDS: Final = ("events", "series", "venues", "organizers", "categories", "tags")
OPEN_STATES: Final = ("pending", "waiting")
SHOWN_STATES: Final = frozenset(STATES) - {SCHEDULED}
TAKEN: Final = "source"
# The fields in the order in which forms have them.
ORDER: Final = {name: place for place, name in enumerate(LABELS)}


@dataclass(frozen=True, slots=True)
class ChangeView:
    """A changed field: the words that differ or both values, or the value that stays and that of the source."""

    label: str
    is_taken: bool
    words: list[Segment]
    stored: str
    now: str
    is_of_other_source: bool = False


@dataclass(frozen=True, slots=True)
class RowView:
    """A row of a plan."""

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
    state_label: str = ""  # whether the event takes place

    @property
    def is_undecided(self) -> bool:
        return self.action == "duplicate" and self.state == "waiting"

    @property
    def is_place(self) -> bool:
        return self.kind in PLACES.values()

    @property
    def is_held(self) -> bool:
        """Return whether the row waits for the decision on another one."""
        return self.state == "waiting" and any(reason.text == HELD for reason in self.reasons)

    @property
    def needs_check(self) -> bool:
        return self.state == "waiting" and self.action in ("new", "changed", "moved", "linked") and not self.is_held


async def make_rows(console_request: ConsoleRequest, tx: Transaction, rows: Sequence[Row]) -> list[RowView]:
    """Return rows for the table. Linked records are named."""
    locale = make_locale(console_request)
    names = {kind: await _find_names(console_request, tx, kind, rows) for kind in {row["kind"] for row in rows}}
    return [_make_row(row, names[row["kind"]], locale) for row in rows]


async def _find_names(console_request: ConsoleRequest, tx: Transaction, kind: str, rows: Sequence[Row]) -> Names:
    if kind not in BY_NAME:
        return {}
    versions = [
        {name: change.get(side) for name, change in read_json(row["changes"]).items()}
        for row in rows
        if row["kind"] == kind
        for side in ("stored", "now")
    ]
    return await find_names(tx, console_request.actor, BY_NAME[kind], versions)


def _make_row(row: Row, names: Names, locale: PageLocale) -> RowView:
    kind = row["kind"]
    changes = _make_changes(BY_NAME[kind], read_json(row["changes"]), names, locale) if kind in BY_NAME else []
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
    """Return when an event takes place, and how many dates a series has."""
    name, value = ("dates", event) if event["all_day"] else ("start_date", event["start_date"])
    start = value_text(kind, name, value, {}, locale)
    parts = [locale.text(N_("{days}, all day"), days=start) if event["all_day"] else start]
    if event["dates"] is None:
        parts.append(locale.text(N_("repeats without an end")))
    elif event["dates"] != 1:
        parts.append(locale.text(N_("{n} dates"), n=event["dates"]))
    return " · ".join(parts)


def _make_changes(kind: Kind, changes: Mapping[str, Any], names: Names, locale: PageLocale) -> list[ChangeView]:
    """Return the changed fields, those of a group as one."""
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
