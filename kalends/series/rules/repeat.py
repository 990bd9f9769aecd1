"""The rule editor's fields and the corresponding API parameters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Any, Final

from kalends.core.messages import gettext_noop as N_
from kalends.core.recurrence import Rule, read_rule_object
from kalends.core.recurrence.rule_parts import WEEKDAYS

# A series without a rule: only the first date and a list of extra dates.
DATES_ONLY: Final = "dates"
FREQUENCIES: Final = {
    "": N_("Never"),
    "daily": N_("Daily"),
    "weekly": N_("Weekly"),
    "monthly": N_("Monthly"),
    "yearly": N_("Yearly"),
    DATES_ONLY: N_("Only on selected dates"),
}
# How the first date determines the day of the month or year.
DAYS: Final = {
    "day": N_("On the same day of the month"),
    "weekday": N_("On the same weekday, such as the third Tuesday"),
    "last_weekday": N_("On the last one in the month, such as the last Tuesday"),
    "last_day": N_("On the last day of the month"),
}
NEVER: Final = "never"
ENDS: Final = {NEVER: N_("Never"), "until": N_("On a day"), "count": N_("After a number of dates")}
MAX_WEEKDAY: Final = 4  # some months have only four Mondays


@dataclass(slots=True, kw_only=True)
class RepeatValues:
    frequency: str = ""
    interval: str = "1"
    weekdays: list[str] = field(default_factory=list[str])
    day: str = "day"
    ends: str = NEVER
    until: str = ""
    count: str = ""
    add: list[str] = field(default_factory=list[str])
    remove: list[str] = field(default_factory=list[str])

    @property
    def is_on(self) -> bool:
        return self.frequency != ""


def read_repeat(form: Mapping[str, Any]) -> RepeatValues:
    raw = form.get("repeat")
    fields: Mapping[str, Any] = raw if isinstance(raw, dict) else {}  # pyright: ignore[reportUnknownVariableType]
    values = RepeatValues()
    for name in ("frequency", "interval", "day", "ends", "until", "count"):
        if isinstance(fields.get(name), str):
            setattr(values, name, fields[name].strip())
    for name in ("weekdays", "add", "remove"):
        setattr(values, name, _read_list(fields.get(name)))
    values.frequency = values.frequency if values.frequency in FREQUENCIES else ""
    return values


def _read_list(value: object) -> list[str]:
    entries: list[object] = value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]
    return [entry.strip() for entry in entries if isinstance(entry, str) and entry.strip()]


# Parameters ----------------------------------------------------------------------------------


def make_params(values: RepeatValues, start_day: str) -> dict[str, Any]:
    """Return the API parameters `rule`, `add_dates` and `remove_dates`."""
    params: dict[str, Any] = {}
    if values.frequency != DATES_ONLY:
        params["rule"] = make_rule(values, read_day(start_day))
    if values.add or values.frequency == DATES_ONLY:
        params["add_dates"] = values.add
    if values.remove:
        params["remove_dates"] = values.remove
    return params


def make_rule(values: RepeatValues, start: date | None) -> dict[str, Any]:
    """Return the rule as an API object. The first date determines the rule's day of the month."""
    rule: dict[str, Any] = {"frequency": values.frequency, "interval": values.interval or "1"}
    if values.frequency == "weekly":
        rule["weekdays"] = values.weekdays or ([WEEKDAYS[start.weekday()]] if start else [])
    elif values.frequency in ("monthly", "yearly") and start is not None:
        rule.update(_DAY_FIELDS.get(values.day, _DAY_FIELDS["day"])(start))
        rule.update({"months": [start.month]} if values.frequency == "yearly" else {})
    if values.ends in ("until", "count"):
        rule[values.ends] = getattr(values, values.ends)
    return rule


_DAY_FIELDS: Final[Mapping[str, Callable[[date], dict[str, Any]]]] = {
    "day": lambda start: {"month_days": [start.day]},
    "weekday": lambda start: {
        "weekdays": [{"weekday": WEEKDAYS[start.weekday()], "ordinal": (start.day - 1) // 7 + 1}]
    },
    "last_weekday": lambda start: {"weekdays": [{"weekday": WEEKDAYS[start.weekday()], "ordinal": -1}]},
    "last_day": lambda _: {"month_days": [-1]},
}


def list_fitting_days(start: date) -> list[str]:
    """Return the `DAYS` options that match the first date."""
    is_last_week = (start + timedelta(days=7)).month != start.month
    is_last_day = (start + timedelta(days=1)).month != start.month
    has_number = (start.day - 1) // 7 < MAX_WEEKDAY
    fits = {"day": True, "weekday": has_number, "last_weekday": is_last_week, "last_day": is_last_day}
    return [name for name in DAYS if fits[name]]


def read_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return None


# From a rule ---------------------------------------------------------------------------------


def make_values(rule: Rule | None, start: datetime) -> RepeatValues | None:
    """Return the editor fields for a rule; None if the editor cannot express it."""
    if rule is None:
        return RepeatValues(frequency=DATES_ONLY)
    ends = "until" if rule.until else "count" if rule.count else NEVER
    values = RepeatValues(
        frequency=rule.frequency,
        interval=str(rule.interval),
        weekdays=[WEEKDAYS[weekday.day] for weekday in rule.weekdays] if rule.frequency == "weekly" else [],
        ends=ends,
        until=rule.until.isoformat() if rule.until else "",
        count=str(rule.count or ""),
    )
    candidates = (replace(values, day=day) for day in DAYS)
    return next((candidate for candidate in candidates if _stands_for(candidate, rule, start)), None)


def _stands_for(values: RepeatValues, rule: Rule, start: datetime) -> bool:
    given = read_rule_object(make_rule(values, start.date()), "UTC")
    is_plain = not rule.has_parts and values.day == "day"
    return given == rule or (is_plain and replace(given, weekdays=(), month_days=(), months=()) == rule)
