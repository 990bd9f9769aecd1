"""Descriptions of rules as messages. Dates and names in them are values that `http/rule_texts.py` formats."""

from calendar import monthrange
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Final

from kalends.core.messages import Message
from kalends.core.recurrence import sentence_texts as texts
from kalends.core.recurrence.rules import Rule, Weekday

_ALL_WEEKDAYS: Final = tuple(range(7))
_MONDAY_TO_FRIDAY: Final = tuple(range(5))
_MONTH_LENGTHS: Final = {month: monthrange(2000, month)[1] for month in range(1, 13)}  # in a leap year


@dataclass(frozen=True, slots=True)
class DayOfYear:
    """A date without a year, such as 3 May."""

    month: int
    day: int


@dataclass(frozen=True, slots=True)
class MonthName:
    number: int


@dataclass(frozen=True, slots=True)
class WeekdayNames:
    days: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Numbers:
    numbers: tuple[int, ...]


class RuleText:
    """The description of a rule in a response, which is rendered in the language of the response.

    This is no dataclass, because orjson would encode it as an object.
    """

    __slots__ = ("sentence",)

    def __init__(self, sentence: Message) -> None:
        self.sentence = sentence


def find_text(rule: Rule, start: date) -> RuleText | None:
    """Return the description of a rule for a response, or None if no sentence covers the rule."""
    sentence = find_sentence(rule, start)
    return None if sentence is None else RuleText(sentence)


def find_sentence(rule: Rule, start: date) -> Message | None:
    """Return the description of a rule that starts on a day, or None if no sentence covers the rule."""
    simple = simplify_rule(rule, start)
    sentence = None if simple.set_positions else _FINDERS[simple.frequency](simple)
    if sentence is None:
        return None
    if rule.until is not None:
        return Message(texts.UNTIL, rule=sentence, date=rule.until)
    if rule.count is not None:
        return Message(texts.ONCE if rule.count == 1 else texts.COUNT, rule=sentence, n=rule.count)
    return sentence


# Rules with the same dates -------------------------------------------------------------------


def simplify_rule(rule: Rule, start: date) -> Rule:
    """Return a rule with the same dates that is easier to describe."""
    for change in (_add_days_of_start, _number_weekday, _use_months, _use_years, _use_weeks, _use_days):
        rule = change(rule, start)
    return rule


def _add_days_of_start(rule: Rule, start: date) -> Rule:
    if rule.weekdays or rule.month_days or rule.frequency == "daily":
        return rule
    if rule.frequency == "weekly":
        return replace(rule, weekdays=(Weekday(start.weekday()),))
    is_without_month = rule.frequency == "yearly" and not rule.months
    return replace(rule, month_days=(start.day,), months=(start.month,) if is_without_month else rule.months)


def _number_weekday(rule: Rule, start: date) -> Rule:
    """Replace a position of a single weekday by its number: the first of all Tuesdays is the first Tuesday."""
    is_in_month = rule.frequency == "monthly" or (rule.frequency == "yearly" and len(rule.months) == 1)
    if not is_in_month or rule.month_days or len(rule.weekdays) != 1 or rule.weekdays[0].ordinal is not None:
        return rule
    weekdays = tuple(Weekday(rule.weekdays[0].day, position) for position in rule.set_positions)
    return replace(rule, weekdays=weekdays, set_positions=()) if weekdays else rule


def _use_months(rule: Rule, start: date) -> Rule:
    is_in_every_month = rule.month_days and not rule.months and not rule.weekdays and not rule.set_positions
    is_monthly = rule.frequency == "yearly" and rule.interval == 1 and is_in_every_month
    return replace(rule, frequency="monthly") if is_monthly else rule


def _use_years(rule: Rule, start: date) -> Rule:
    is_yearly = rule.frequency == "monthly" and rule.interval == 1 and len(rule.months) == 1
    return replace(rule, frequency="yearly") if is_yearly else rule


def _use_weeks(rule: Rule, start: date) -> Rule:
    """Replace every day, month or year that is limited only to weekdays by every week."""
    is_limited = bool(rule.months or rule.month_days or rule.set_positions)
    is_weekly = rule.weekdays and all(weekday.ordinal is None for weekday in rule.weekdays)
    return replace(rule, frequency="weekly") if is_weekly and not is_limited and rule.interval == 1 else rule


def _use_days(rule: Rule, start: date) -> Rule:
    is_daily = rule.frequency == "daily" or (rule.frequency == "weekly" and rule.interval == 1)
    if not is_daily or rule.months or rule.set_positions or _days(rule) != _ALL_WEEKDAYS:
        return rule
    return replace(rule, frequency="daily", weekdays=())


# Sentences -----------------------------------------------------------------------------------


def _describe_days(rule: Rule) -> Message | None:
    return None if rule.has_parts else _choose(texts.DAILY, rule)


def _describe_weeks(rule: Rule) -> Message | None:
    days = _days(rule)
    if rule.months:
        return None
    if len(days) == 1:
        return _choose(texts.WEEKLY[days[0]], rule)
    if days == _MONDAY_TO_FRIDAY and rule.interval == 1:
        return Message(texts.MONDAY_TO_FRIDAY)
    return _choose(texts.WEEKLY_LIST, rule, days=WeekdayNames(days))


def _describe_months(rule: Rule) -> Message | None:
    if rule.months:
        return None
    day = _describe_day(rule)
    if day is not None:
        return _choose(texts.MONTHLY, rule, day=day)
    if rule.interval == 1 and not rule.weekdays and min(rule.month_days) > 0:
        return Message(texts.MONTHLY_LIST, days=Numbers(rule.month_days))
    return None


def _describe_years(rule: Rule) -> Message | None:
    if len(rule.months) != 1:
        return None
    month = rule.months[0]
    if not rule.weekdays and len(rule.month_days) == 1 and 0 < rule.month_days[0] <= _MONTH_LENGTHS[month]:
        return _choose(texts.YEARLY_DATE, rule, date=DayOfYear(month, rule.month_days[0]))
    day = _describe_day(rule) if rule.weekdays or -1 in rule.month_days else None
    return None if day is None else _choose(texts.YEARLY_DAY, rule, day=day, month=MonthName(month))


_FINDERS: Final[Mapping[str, Callable[[Rule], Message | None]]] = {
    "daily": _describe_days,
    "weekly": _describe_weeks,
    "monthly": _describe_months,
    "yearly": _describe_years,
}


def _describe_day(rule: Rule) -> Message | None:
    """Describe a single day of the month, or a numbered weekday."""
    if rule.weekdays:
        return None if rule.month_days else _describe_numbered_weekday(rule.weekdays)
    if len(rule.month_days) != 1:
        return None
    number = rule.month_days[0]
    if number in texts.MONTH_DAYS:
        return Message(texts.MONTH_DAYS[number])
    return Message(texts.MONTH_DAY, number=number) if number > 0 else None


def _describe_numbered_weekday(weekdays: tuple[Weekday, ...]) -> Message | None:
    days = {weekday.day for weekday in weekdays}
    names = texts.NUMBERED_WEEKDAYS.get(tuple(weekday.ordinal or 0 for weekday in weekdays))
    return Message(names[days.pop()]) if names and len(days) == 1 else None


def _days(rule: Rule) -> tuple[int, ...]:
    return tuple(weekday.day for weekday in rule.weekdays)


def _choose(by_interval: texts.ByInterval, rule: Rule, **values: object) -> Message:
    if rule.interval > 2:
        values["n"] = rule.interval
    return Message(by_interval[min(rule.interval, 3) - 1], **values)
