"""Dates of a recurring event: the rule, added dates and exclusions, in the form of a series."""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from itertools import chain, islice
from typing import Final

from kalends.core.errors import InvalidValue
from kalends.core.messages import Message
from kalends.core.recurrence import Rule, expand, rest_from
from kalends.imports.rules.ical_lines import Component, Property
from kalends.imports.rules.ical_rules import MAX_LISTED, MAX_YEARS, convert_rule
from kalends.imports.rules.ical_zones import LocalMoment, Zones, left_out, read_moments, split_moments
from kalends.series.rules.series_slots import LAST_YEAR, Definition, Part, find_given

# Maximum number of dates from the start of a new series to the horizon. If there are more, skip the earliest.
MAX_DATES: Final = 900
HORIZON: Final = timedelta(days=25 * 31)  # covers all months for which series dates are created
MAX_SLOTS: Final = 2_000  # limit for RDATE and, separately, for EXDATE
MAX_WARNINGS: Final = 10
MAX_COUNTED: Final = 2_000  # maximum number of dates to count
LISTED_PAST: Final = timedelta(days=31)  # how far into the past a truncated list of dates reaches
# Some calendars start birthdays in 1604. If a series is older than this, only its recent years are imported.
OLD_YEARS: Final = 10
RECENT_YEARS: Final = 2


@dataclass(frozen=True, slots=True)
class Recurrence:
    """The dates of a series: the dates of the rule starting with `start`, without removed dates, plus added dates."""

    start: datetime
    rule: Rule | None
    added: tuple[datetime, ...] = ()
    removed: tuple[datetime, ...] = ()
    warnings: tuple[Message, ...] = ()
    first: datetime | None = None  # first imported date, if earlier dates are skipped
    cost: int = 0  # number of computed dates


@dataclass(frozen=True, slots=True)
class SlotReader:
    """Converts dates in a file to slots. A slot is a local time in the zone of the series."""

    zones: Zones
    start: LocalMoment
    # Whether midnight means the start time of the series, because some programs write only the day of a date.
    means_days: bool = True

    def read(self, found: Property) -> list[datetime]:
        return [self._convert(self.zones.resolve(moment)) for moment in read_moments(found)[:MAX_SLOTS]]

    def read_all(self, found: Iterable[Property], warnings: list[Message]) -> set[datetime]:
        """Read the dates in several properties. Skip unreadable dates with a warning."""
        slots: set[datetime] = set()
        for entry in chain.from_iterable(map(split_moments, found)):
            try:
                slots.update(self.read(entry))
            except InvalidValue as error:
                warnings.append(left_out(entry.name, error.message))
            if len(slots) + len(warnings) > MAX_SLOTS:
                raise InvalidValue("`{name}` has more than {maximum} dates.", name=entry.name, maximum=MAX_SLOTS)
        return slots

    def _convert(self, moment: LocalMoment) -> datetime:
        """Convert a moment to a slot.

        Days, and all moments in an all-day series, get the start time of the series.
        """
        if self.start.zone is not None and not self.start.is_day:
            moment = self.zones.move(moment, self.start.zone)
        if moment.is_day or self.start.is_day or (self.means_days and moment.wall.time() == time()):
            return datetime.combine(moment.wall.date(), self.start.wall.time())
        return moment.wall


def find_last(recurrence: Recurrence) -> datetime | None:
    """Return the last date of a series, or an upper bound; None if the series has no end."""
    rule, start = recurrence.rule, recurrence.start
    last = max([start, *recurrence.added])
    if rule is None:
        return last
    if rule.until is not None:
        return max(last, datetime.combine(rule.until, start.time()))
    return max([last, *expand(rule, start, _find_limit(start))]) if rule.count is not None else None


def _find_limit(start: datetime) -> datetime:
    return datetime(min(start.year + MAX_YEARS, LAST_YEAR), 12, 31)


def count_dates(recurrence: Recurrence) -> int | None:
    """Return the number of dates in a series. Return None if the series is endless or too long to count."""
    rule, start = recurrence.rule, recurrence.start
    if rule is not None and rule.until is None and rule.count is None:
        return None
    given = set(islice(expand(rule, start, _find_limit(start)), MAX_COUNTED)) if rule is not None else {start}
    return len((given | set(recurrence.added)) - set(recurrence.removed)) if len(given) < MAX_COUNTED else None


def is_recurring(event: Component) -> bool:
    return bool(event.all("RRULE") or event.all("RDATE"))


def read_recurrence(
    event: Component,
    reader: SlotReader,
    now: datetime,
    overridden: Collection[datetime],
    known_start: datetime | None,
) -> Recurrence | None:
    """Return the dates of a recurring event, or None if there is only one. Raise InvalidValue if there is none.

    `overridden` are the dates with an override; they exist even if the rule does not produce them. If an earlier
    import skipped past dates, `known_start` is where the series started then.
    """
    if event.all("EXRULE"):
        raise InvalidValue("`{name}` is not supported.", name="EXRULE")
    warnings: list[Message] = []
    further = replace(reader, means_days=False).read_all(event.all("RDATE"), warnings)
    excluded = reader.read_all(event.all("EXDATE"), warnings) - set(overridden)
    recurrence = _leave_out_past(_read_rules(event, reader.start, now), now, known_start)
    recurrence = replace(recurrence, warnings=(*recurrence.warnings, *warnings[:MAX_WARNINGS]))
    return _apply_dates(recurrence, further, excluded, overridden)


def _read_rules(event: Component, start: LocalMoment, now: datetime) -> Recurrence:
    until = max(now.replace(tzinfo=None), start.wall) + HORIZON
    zone = start.zone or "UTC"
    since = now.replace(tzinfo=None) - LISTED_PAST
    given = [convert_rule(found.value or "", start.wall, zone, until, since) for found in event.all("RRULE")[:5]]
    if len(given) == 1 and given[0].rule is not None:
        return replace(_synchronize(given[0].rule, start.wall), cost=given[0].cost)
    listed = {start.wall}
    for entry in given:
        listed.update(entry.listed if entry.rule is None else expand(entry.rule, start.wall, until, after=since))
    cost = len(listed) + sum(entry.cost for entry in given)
    return replace(_list_dates(sorted(listed), since, is_rule=bool(given)), cost=cost)


def _list_dates(dates: Sequence[datetime], since: datetime, *, is_rule: bool) -> Recurrence:
    """Return a series without a rule.

    If there are too many dates, drop old dates first, then dates far in the future.
    """
    begin = max(0, min(bisect_left(dates, since), len(dates) - MAX_LISTED))
    kept = dates[begin : begin + MAX_LISTED]
    warnings = [Message("The rule cannot be kept; its dates are imported as a list.")] if is_rule else []
    if len(kept) < len(dates):
        first, last = kept[0].date().isoformat(), kept[-1].date().isoformat()
        warnings.append(Message("Only the dates from {first} to {last} are imported.", first=first, last=last))
    return Recurrence(kept[0], None, tuple(kept[1:]), warnings=tuple(warnings), first=kept[0] if begin else None)


def _synchronize(rule: Rule, start: datetime) -> Recurrence:
    """Make the series start on the rule's first date.

    If the event starts at another time, its start becomes an added date.
    """
    has_dates = rule.until is None or rule.until >= start.date()
    first = next(expand(rule, start, _find_limit(start)), None) if has_dates else None
    if first is None or rule.count == 1:
        return Recurrence(start, None)
    if first == start:
        return Recurrence(start, rule)
    return Recurrence(first, replace(rule, count=rule.count and rule.count - 1), added=(start,))


def _leave_out_past(recurrence: Recurrence, now: datetime, known_start: datetime | None) -> Recurrence:
    """Start the series later if the rule has very old dates, or more dates than a new series can have."""
    rule, start = recurrence.rule, recurrence.start
    if rule is None:
        return recurrence
    until = max(now.replace(tzinfo=None), start) + HORIZON
    since = datetime(now.year - RECENT_YEARS, 1, 1) if start.year < now.year - OLD_YEARS else start
    dates = list(expand(rule, start, until, after=max(since, start)))
    dates = dates or list(expand(rule, start, until, after=max(start, until - timedelta(days=366 * MAX_YEARS))))
    first = dates[-MAX_DATES:][0] if dates else start
    if known_start is not None and start < known_start < first and _gives(rule, start, known_start):
        first = known_start  # keep the start of the series stable between imports
    result = _begin_at(recurrence, rule, first) if first > start else recurrence
    return replace(result, cost=recurrence.cost + len(dates))


def _gives(rule: Rule, start: datetime, slot: datetime) -> bool:
    return slot in expand(rule, start, slot, after=slot)


def _begin_at(recurrence: Recurrence, rule: Rule, slot: datetime) -> Recurrence:
    warning = Message(
        "Dates before {date} are left out, because they are too many or too old.", date=slot.date().isoformat()
    )
    return Recurrence(
        slot,
        rest_from(rule, recurrence.start, slot),
        tuple(entry for entry in recurrence.added if entry >= slot),
        warnings=(*recurrence.warnings, warning),
        first=slot,
    )


def _apply_dates(
    recurrence: Recurrence, further: set[datetime], excluded: set[datetime], overridden: Collection[datetime]
) -> Recurrence | None:
    first = recurrence.first
    wanted = {slot for slot in (*recurrence.added, *further, *overridden) if first is None or slot >= first}
    given = set(find_given(_define(recurrence), [*wanted, *excluded]))
    added, removed = wanted - given - excluded, excluded & given
    if len(added) > MAX_LISTED:
        raise InvalidValue("has more than {maximum} dates besides its rule.", maximum=MAX_LISTED)
    result = replace(recurrence, added=tuple(sorted(added)), removed=tuple(sorted(removed)))
    if removed:
        _check_dates(result)
    return None if result.rule is None and not result.added else result


def _check_dates(recurrence: Recurrence) -> None:
    part, removed = _define(recurrence).parts[0], set(recurrence.removed)
    if not recurrence.added and all(slot in removed for slot in part.slots(_find_limit(recurrence.start))):
        raise InvalidValue("has no dates: all are excluded.")


def _define(recurrence: Recurrence) -> Definition:
    start = recurrence.start
    return Definition((Part("", recurrence.rule, start, start, "UTC", all_day=False),), {})
