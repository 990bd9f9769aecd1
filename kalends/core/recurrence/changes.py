"""Changes of rules: for a series that moves to another day, ends earlier or continues at a date."""

from dataclasses import replace
from datetime import date, datetime
from itertools import takewhile

from kalends.core.errors import InvalidValue
from kalends.core.recurrence.expansion import expand
from kalends.core.recurrence.rules import Rule, Weekday


def shift_rule(rule: Rule, days: int) -> Rule:
    """Return the rule of a series that moves by whole days; weekdays and `until` move along."""
    if days == 0:
        return rule
    if rule.month_days or rule.months or (rule.weekdays and rule.frequency not in ("daily", "weekly")):
        raise InvalidValue("Moving this series to another day changes its rule. Send the new `rule` as well.")
    weekdays = sorted((weekday.day + days) % 7 for weekday in rule.weekdays)
    # Dates of one week stay together: their week begins as many days later.
    moves_weeks = len(weekdays) > 1 and (rule.interval > 1 or bool(rule.set_positions))
    return replace(
        rule,
        weekdays=tuple(Weekday(day, None) for day in weekdays),
        week_start=(rule.week_start + days) % 7 if moves_weeks else rule.week_start,
        until=rule.until and _shift_day(rule.until, days),
    )


def end_before(rule: Rule, start: datetime, slot: datetime) -> Rule:
    """Return the rule that gives the same dates up to the one before `slot`."""
    count = _count_before(rule, start, slot) if rule.count else 0
    if count:
        return replace(rule, count=count)
    # A rule ends with a day. It has a date on the day of the slot if its time of day is earlier.
    last_day = slot.date() if start.time() < slot.time() else _shift_day(slot.date(), -1)
    return replace(rule, count=None, until=min(last_day, rule.until or date.max))


def rest_from(rule: Rule, start: datetime, slot: datetime) -> Rule:
    """Return the rule that gives the remaining dates if it starts at `slot`, which is one of them."""
    if rule.count is None:
        return rule
    return replace(rule, count=max(1, rule.count - _count_before(rule, start, slot)))


def _count_before(rule: Rule, start: datetime, slot: datetime) -> int:
    return sum(1 for _ in takewhile(lambda moment: moment < slot, expand(rule, start, slot)))


def _shift_day(day: date, days: int) -> date:
    return date.fromordinal(min(max(1, day.toordinal() + days), date.max.toordinal()))
