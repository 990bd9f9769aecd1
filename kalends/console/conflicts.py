"""Merge two users' changes to the same record, field by field.

A form submits the revision that it was rendered with. If the record has a newer revision, the view calls `merge`.
Fields that only one user changed are merged. For fields that both users changed, `show_conflict` asks the user to
choose a value. The conflict page posts to the form's URL, where `read_choices` returns the parameters to save.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import orjson
from starlette.responses import Response

from kalends.calendar.access.operation_context import Outcome
from kalends.calendar.kinds.kind import Kind
from kalends.calendar.operations.event_links import Names, find_names
from kalends.calendar.operations.record_history import Versions, read_versions
from kalends.calendar.operations.record_verbs import update_record
from kalends.console.console_rendering import show
from kalends.console.console_request import PREFIX, ConsoleRequest
from kalends.console.field_texts import GROUP_OF, GROUPS, field_label, group_values, is_prose, make_locale, value_text
from kalends.core import date_forms, errors, times
from kalends.core.date_forms import DateInput
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.html_text import to_plain_lines
from kalends.core.params import read_params
from kalends.core.words import Segment, diff_words, shorten

# Maximum number of attempts to save a record while other users keep changing it.
MAX_ATTEMPTS: Final = 5


@dataclass(frozen=True, slots=True)
class FieldConflict:
    """A field that both users changed.

    The values of `dates` and `position` are objects with several parameters. `base` is None if the change log no
    longer contains the original value.
    """

    name: str
    base: Any
    theirs: Any
    mine: Any


@dataclass(frozen=True, slots=True)
class Merge:
    """The result of a merge: parameters to save, fields merged from other users' changes, and conflicting fields."""

    values: dict[str, Any]
    merged_names: list[str]
    conflicts: list[FieldConflict]
    revision: int
    has_base: bool = True
    users: tuple[str, ...] = ()
    # The submitted parameters for each conflicting field.
    own_params: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    names: Names = field(default_factory=dict[str, dict[int, str]])  # names of linked records in all versions


async def save_merged(
    console_request: ConsoleRequest, kind: Kind, record_id: int, base_revision: int, mine: Mapping[str, Any]
) -> Outcome | Response:
    """Save parameters, merged with changes since a revision.

    If both change the same field, return the conflict page.
    """
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
    """Merge a form's changed parameters, in API format, into the current version of a record."""
    async with console_request.transaction() as tx:
        versions = await read_versions(kind, console_request.make_context(tx, record_id=record_id), base_revision)
        own = _Own(kind, mine, versions.base or versions.current, tx.site.timezone, tx.now)
        shown = {name: own.shown(name) for name in own.params}
        sides = [versions.base or {}, versions.current, shown]
        names = await find_names(tx, console_request.actor, kind, sides)
    return _compare(versions, own, shown, names)


def _compare(versions: Versions, own: "_Own", shown: Mapping[str, Any], names: Names) -> Merge:
    """Compare the fields of a form with other users' changes. If there is no base, all fields count as changed."""
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
    """The changed parameters of a form by field, as sent and in history format."""

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
        """Return the parameters of a field as sent. If the field is a group, add missing members from the base."""
        if name not in GROUPS:
            return self.params[name]
        return {member: self._base.get(member) for member in GROUPS[name]} | self.params[name]

    def shown(self, name: str) -> Any:
        """Return a field's value in history format."""
        if name == "dates":
            return self._dates()
        if name in GROUPS:
            return {member: self._parsed.get(member, self._base.get(member)) for member in GROUPS[name]}
        if name == "date_utc":
            return self._publication_date()
        return bool(self._parsed[name]) if name == "new_password" else self._parsed[name]

    def equals(self, name: str, theirs: Any) -> bool:
        """Return whether both values are equal. New passwords cannot be compared, so they count as different."""
        own = self.shown(name)
        if name == "new_password":
            return not own and not theirs
        if name in ("categories", "tags"):
            return sorted(map(str, own)) == sorted(map(str, theirs))
        return bool(own == theirs)

    def _dates(self) -> dict[str, Any]:
        """Return the start and end as they would be stored or, if they are invalid, as sent."""
        values = {member: self._base.get(member) for member in GROUPS["dates"]} | self.params["dates"]
        zone = self._parsed.get("timezone", self._base.get("timezone")) or self._zone
        all_day = bool(self._parsed.get("all_day", self._base.get("all_day")))
        try:
            start, end = self._read_date("start_date", zone), self._read_date("end_date", zone)
            span = times.event_span(start, end, zone, all_day)
        except InvalidValue:
            return values
        wall_times = {
            name: times.format_datetime(time.wall) + (times.format_offset_at(time.utc, zone) if time.fold else "")
            for name, time in (("start_date", span.start), ("end_date", span.end))
        }
        return {**values, **wall_times, "timezone": zone, "all_day": all_day}

    def _read_date(self, name: str, zone: str) -> times.DateTimeInput:
        value: DateInput = self._parsed.get(name) or date_forms.read_datetime(str(self._base.get(name)))
        return date_forms.make_absolute(value, self._now, zone)

    def _publication_date(self) -> Any:
        name = "date_utc" if "date_utc" in self._parsed else "date"
        zone = "UTC" if name == "date_utc" else self._zone
        try:
            instant = times.to_utc(date_forms.make_absolute(self._parsed[name], self._now, zone), zone)
        except InvalidValue:
            return self.params["date_utc"][name]
        return times.format_datetime(instant)


@dataclass(frozen=True, slots=True)
class Choice:
    """A conflict on the page. Each version is the full text, or shows which words differ from the base."""

    name: str
    label: str
    theirs: list[Segment]
    mine: list[Segment]
    base: str


def show_conflict(
    console_request: ConsoleRequest, kind: Kind, record_id: int, merge: Merge, mine: Mapping[str, Any]
) -> Response:
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
    """Return the parameters to save from a conflict page, without rejected ones. Return None for any other form."""
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
