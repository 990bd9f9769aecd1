"""Merging the changes of two people to the same record, field by field.

A form saves with the revision that it was shown with. If the record has a newer one, the view calls `merge`: fields
that only one of both changed are merged, and `show_conflict` lets the user choose between two values of a field. The
page posts to the address of the form, where `read_choices` returns the parameters to save.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import orjson
from starlette.responses import Response

from kalends.console.field_texts import GROUP_OF, GROUPS, field_label, group_values, is_prose, make_locale, value_text
from kalends.console.rendering import show
from kalends.console.request import PREFIX, ConsoleRequest
from kalends.core import errors, times
from kalends.core.date_forms import DateInput
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.html.text import to_plain_lines
from kalends.core.params import read_params
from kalends.core.word_diff import Segment, diff_words, shorten
from kalends.kinds.kind import Kind
from kalends.operations.context import Outcome
from kalends.operations.linked_names import Names, find_names
from kalends.operations.record_versions import Versions, read_versions
from kalends.operations.records import update_record

# A record that changes more often than this while it is saved gets an error instead.
MAX_ATTEMPTS: Final = 5


@dataclass(frozen=True, slots=True)
class FieldConflict:
    """A field that both changed, with its values. Those of dates and positions are objects of parameters.

    `base` is None if the change log no longer contains it.
    """

    name: str
    base: Any
    theirs: Any
    mine: Any


@dataclass(frozen=True, slots=True)
class Merge:
    """The result of a merge: parameters to save, the fields that others changed, and those that both changed."""

    values: dict[str, Any]
    merged_names: list[str]
    conflicts: list[FieldConflict]
    revision: int
    has_base: bool = True
    users: tuple[str, ...] = ()
    # The parameters of the conflicts as they were submitted, by field.
    own_params: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    names: Names = field(default_factory=dict[str, dict[int, str]])  # of the linked records in all versions


async def save_merged(
    console_request: ConsoleRequest, kind: Kind, record_id: int, base_revision: int, mine: Mapping[str, Any]
) -> Outcome | Response:
    """Save parameters, merged with the changes since a revision; return the conflict page if both changed a field."""
    values, revision = dict(mine), base_revision
    for _ in range(MAX_ATTEMPTS):
        try:
            return await console_request.perform(update_record, kind, values, record_id=record_id, revision=revision)
        except ApiError as error:
            if error.status != 412:
                raise
        result = await merge(console_request, kind, record_id, revision, values)
        if result.conflicts:
            return show_conflict(console_request, kind, record_id, result, mine)
        values, revision = result.values, result.revision
    raise errors.precondition_failed()


async def merge(
    console_request: ConsoleRequest, kind: Kind, record_id: int, base_revision: int, mine: Mapping[str, Any]
) -> Merge:
    """Merge changed parameters of a form into the current version of a record.

    `mine` has the parameters that the user changed, as they would be sent to the API.
    """
    async with console_request.transaction() as tx:
        versions = await read_versions(kind, console_request.make_context(tx, record_id=record_id), base_revision)
        own = _Own(kind, mine, versions.base or versions.current, tx.site.timezone, tx.now)
        shown = {name: own.shown(name) for name in own.params}
        sides = [versions.base or {}, versions.current, shown]
        names = await find_names(tx, console_request.actor, kind, sides)
    return _compare(versions, own, shown, names)


def _compare(versions: Versions, own: "_Own", shown: Mapping[str, Any], names: Names) -> Merge:
    """Compare the fields of a form with those that others changed. Without a base, all fields count as changed."""
    theirs, base = group_values(versions.current), group_values(versions.base) if versions.base else None
    changed = [name for name in theirs if base is None or base.get(name) != theirs[name]]
    values = {
        name: value for group, params in own.params.items() if group not in changed for name, value in params.items()
    }
    conflicts = [
        FieldConflict(name, base.get(name) if base else None, theirs[name], shown[name])
        for name in own.params
        if name in changed and not own.equals(name, theirs[name])
    ]
    conflicting = {conflict.name for conflict in conflicts}
    merged = [name for name in changed if name not in conflicting] if base is not None else []
    own_params = {name: own.complete(name) for name in own.params if name in conflicting}
    return Merge(values, merged, conflicts, versions.revision, base is not None, versions.users, own_params, names)


class _Own:
    """The changed parameters of a form by field, in the form as sent and in that of the history."""

    def __init__(
        self, kind: Kind, mine: Mapping[str, Any], base: Mapping[str, Any], zone: str, now: datetime
    ) -> None:
        self._base = base
        self._zone, self._now = zone, now
        self._parsed = read_params(kind.fields, dict(mine), update=True)
        self.params: dict[str, dict[str, Any]] = {}
        for name in self._parsed:
            field_name = "date_utc" if name == "date" else GROUP_OF.get(name, name)
            self.params.setdefault(field_name, {})[name] = mine[name]

    def complete(self, name: str) -> dict[str, Any]:
        """Return the parameters of a field as sent; a group with all of its members, as the user saw them."""
        if name not in GROUPS:
            return self.params[name]
        return {member: self._base.get(member) for member in GROUPS[name]} | self.params[name]

    def shown(self, name: str) -> Any:
        """Return the value of a field in the form of the history."""
        if name == "dates":
            return self._dates()
        if name in GROUPS:
            return {member: self._parsed.get(member, self._base.get(member)) for member in GROUPS[name]}
        if name == "date_utc":
            return self._publication_date()
        return bool(self._parsed[name]) if name == "new_password" else self._parsed[name]

    def equals(self, name: str, theirs: Any) -> bool:
        """Return whether the value of a field is the same. Two new passwords cannot be compared."""
        own = self.shown(name)
        if name == "new_password":
            return not own and not theirs
        if name in ("categories", "tags"):
            return sorted(map(str, own)) == sorted(map(str, theirs))
        return bool(own == theirs)

    def _dates(self) -> dict[str, Any]:
        """Return the dates as they would be stored, or as sent if they cannot be."""
        values = {member: self._base.get(member) for member in GROUPS["dates"]} | self.params["dates"]
        zone = self._parsed.get("timezone", self._base.get("timezone")) or self._zone
        all_day = bool(self._parsed.get("all_day", self._base.get("all_day")))
        try:
            start, end = self._read_date("start_date", zone), self._read_date("end_date", zone)
            span = times.event_span(start, end, zone, all_day)
        except InvalidValue:
            return values
        wall_times = {
            name: times.format_datetime(time.wall) + (times.format_offset(time.utc, zone) if time.fold else "")
            for name, time in (("start_date", span.start), ("end_date", span.end))
        }
        return {**values, **wall_times, "timezone": zone, "all_day": all_day}

    def _read_date(self, name: str, zone: str) -> times.DateTimeInput:
        value: DateInput = self._parsed.get(name) or times.read_datetime(str(self._base.get(name)))
        return times.make_absolute(value, self._now, zone)

    def _publication_date(self) -> Any:
        name = "date_utc" if "date_utc" in self._parsed else "date"
        zone = "UTC" if name == "date_utc" else self._zone
        try:
            instant = times.to_utc(times.make_absolute(self._parsed[name], self._now, zone), zone)
        except InvalidValue:
            return self.params["date_utc"][name]
        return times.format_datetime(instant)


@dataclass(frozen=True, slots=True)
class Choice:
    """A conflict on the page: a text for each version, or the words that differ from the base."""

    name: str
    label: str
    theirs: list[Segment]
    mine: list[Segment]
    base: str


def show_conflict(
    console_request: ConsoleRequest, kind: Kind, record_id: int, merge: Merge, mine: Mapping[str, Any]
) -> Response:
    """Show both versions of the fields in conflict, with one choice per field."""
    return show(
        console_request,
        "conflict.html",
        status=409,
        action=f"{PREFIX}/{kind.name}/{record_id}",
        choices=[_make_choice(console_request, kind, row, merge.names) for row in merge.conflicts],
        merged_labels=[field_label(kind, name) for name in merge.merged_names],
        users=", ".join(merge.users),
        has_base=merge.has_base,
        revision=merge.revision,
        values=orjson.dumps(merge.values).decode(),
        own_params=orjson.dumps(merge.own_params).decode(),
    )


def read_choices(form: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the parameters to save from the form of a conflict page; None if it is another form.

    A field for which the user keeps the version of the others is not among them.
    """
    if "conflict_values" not in form:
        return None
    values, own_params = _read_object(form, "conflict_values"), _read_object(form, "conflict_own")
    choices = form.get("choice")
    for name, params in own_params.items():
        is_theirs = isinstance(choices, dict) and choices.get(name) == "theirs"  # pyright: ignore
        if not is_theirs and isinstance(params, dict):
            values.update(params)  # pyright: ignore[reportUnknownArgumentType]
    return values


def _read_object(form: Mapping[str, Any], name: str) -> dict[str, Any]:
    try:
        value: Any = orjson.loads(str(form.get(name, "")))
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise errors.invalid(name, "must be an object.")
    return value  # pyright: ignore[reportUnknownVariableType]


def _make_choice(console_request: ConsoleRequest, kind: Kind, row: FieldConflict, names: Names) -> Choice:
    label, locale = field_label(kind, row.name), make_locale(console_request)
    base, theirs, mine = (
        value_text(kind, row.name, value, names, locale) for value in (row.base, row.theirs, row.mine)
    )
    if not is_prose(kind, row.name):
        return Choice(row.name, label, [Segment("same", theirs)], [Segment("same", mine)], base)
    if row.base is None:
        return Choice(row.name, label, [Segment("same", theirs)], shorten(diff_words(theirs, mine)), "")
    base = to_plain_lines(str(row.base))
    return Choice(row.name, label, shorten(diff_words(base, theirs)), shorten(diff_words(base, mine)), "")
