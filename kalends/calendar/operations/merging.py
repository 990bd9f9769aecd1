"""Merge a user's changes to a record with the changes of others since a revision, field by field.

Fields that only one side changed are merged. For fields that both changed, the result has all three values.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.kind import Kind
from kalends.calendar.operations.event_links import Names, find_names
from kalends.calendar.operations.record_history import Versions, read_versions
from kalends.core import date_forms, times
from kalends.core.date_forms import DateInput
from kalends.core.errors import InvalidValue
from kalends.core.params import read_params

# Parameters that are merged, chosen and shown together, as one field.
GROUPS: Final = {"dates": ("start_date", "end_date", "timezone", "all_day"), "position": ("geo_lat", "geo_lng")}
GROUP_OF: Final = {name: group for group, names in GROUPS.items() for name in names}


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


async def merge(kind: Kind, context: OperationContext, base_revision: int, mine: Mapping[str, Any]) -> Merge:
    """Merge changed parameters, in API format, into the current version of the record in the context."""
    tx = context.transaction
    versions = await read_versions(kind, context, base_revision)
    own = _Own(kind, mine, versions.base or versions.current, tx.site.timezone, tx.now)
    shown = {name: own.shown(name) for name in own.params}
    names = await find_names(tx, context.actor, kind, [versions.base or {}, versions.current, shown])
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


def group_values(values: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in values.items():
        if group := GROUP_OF.get(name):
            fields.setdefault(group, {})[name] = value
        else:
            fields[name] = value
    return fields


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
