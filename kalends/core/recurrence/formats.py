"""Recurrence rules as RRULE text and as objects of responses."""

from kalends.core.recurrence.rules import PART_NAMES, WEEKDAY_CODES, WEEKDAYS, Rule, Weekday


def format_rule(rule: Rule) -> str:
    """Return the canonical RRULE text: parts and values in a fixed order, without defaults."""
    return ";".join(f"{PART_NAMES[name]}={value}" for name, value in _part_values(rule).items() if value)


def serialize_rule(rule: Rule) -> dict[str, object]:
    """Return the rule as it appears in responses: as text and in fields, without empty ones."""
    fields: dict[str, object] = {
        "rrule": format_rule(rule),
        "frequency": rule.frequency,
        "interval": rule.interval,
        "weekdays": [_serialize_weekday(weekday) for weekday in rule.weekdays],
        "month_days": [*rule.month_days],
        "months": [*rule.months],
        "set_positions": [*rule.set_positions],
        "count": rule.count,
        "until": rule.until and rule.until.isoformat(),
        "week_start": WEEKDAYS[rule.week_start] if rule.week_start else None,
    }
    return {name: value for name, value in fields.items() if value}


def _part_values(rule: Rule) -> dict[str, str]:
    values = {
        "frequency": rule.frequency.upper(),
        "interval": str(rule.interval) if rule.interval > 1 else "",
        "months": _join(rule.months),
        "month_days": _join(rule.month_days),
        "weekdays": ",".join(f"{weekday.ordinal or ''}{WEEKDAY_CODES[weekday.day]}" for weekday in rule.weekdays),
        "set_positions": _join(rule.set_positions),
        "week_start": WEEKDAY_CODES[rule.week_start] if rule.week_start else "",
        "count": str(rule.count or ""),
        "until": rule.until.isoformat().replace("-", "") if rule.until else "",
    }
    return {name: values[name] for name in PART_NAMES}


def _join(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))


def _serialize_weekday(weekday: Weekday) -> object:
    name = WEEKDAYS[weekday.day]
    return name if weekday.ordinal is None else {"weekday": name, "ordinal": weekday.ordinal}
