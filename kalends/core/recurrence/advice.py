"""Remarks on rules: dates that they skip, and rules that other programs misread."""

from datetime import datetime
from typing import Final

from kalends.core.messages import Message
from kalends.core.recurrence.rules import Rule

_FEBRUARY: Final = 2
_SHORT_MONTHS: Final = {2, 4, 6, 9, 11}
# The day of the month, the months in which it is missing, and the warning.
_MISSING_DAYS: Final = (
    (
        31,
        _SHORT_MONTHS,
        Message("Five months of the year have no 31st. Use `BYMONTHDAY=-1` for the last day of every month."),
    ),
    (30, {_FEBRUARY}, Message("February has no 30th. Use `BYMONTHDAY=-1` for the last day of every month.")),
    (29, {_FEBRUARY}, Message("February has a 29th only in leap years.")),
)
_FIFTH_WEEKDAY: Final = Message(
    'Not every month has five of a weekday. Use -1, as in "-1TU", for the last one of every month.'
)


def find_warnings(rule: Rule, start: datetime | None = None) -> list[Message]:
    """Return warnings about dates that do not exist in every period; such dates are skipped.

    Rules without days or months take them from the start.
    """
    if rule.set_positions or rule.frequency not in ("monthly", "yearly"):
        return []
    if rule.weekdays:
        is_in_months = rule.frequency == "monthly" or bool(rule.months)
        return [_FIFTH_WEEKDAY] if is_in_months and any(abs(day.ordinal or 0) == 5 for day in rule.weekdays) else []
    days, months = _find_days_and_months(rule, start)
    warnings = [text for day, missing, text in _MISSING_DAYS if day in days and months & missing]
    return warnings[:1]


def is_ambiguous(rule: Rule) -> bool:
    """Return whether other programs are known to give other dates for this kind of rule."""
    has_ordinals = {weekday.ordinal is not None for weekday in rule.weekdays}
    is_weekly_set = rule.frequency == "weekly" and bool(rule.set_positions)
    return len(has_ordinals) > 1 or is_weekly_set or len(rule.set_positions) > 1


def _find_days_and_months(rule: Rule, start: datetime | None) -> tuple[set[int], set[int]]:
    days, months = {*rule.month_days}, {*rule.months}
    if start is not None and not days:
        days = {start.day}
        months = months or ({start.month} if rule.frequency == "yearly" else set())
    return days, months or {*range(1, 13)}
