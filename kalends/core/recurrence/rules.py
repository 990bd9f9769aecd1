"""The parts of a recurrence rule, and their names in RRULE texts and in objects."""

from dataclasses import dataclass
from datetime import date
from typing import Final

MAX_LENGTH: Final = 500  # characters of an RRULE text
MAX_INTERVAL: Final = 999
MAX_COUNT: Final = 1000

FREQUENCIES: Final = ("daily", "weekly", "monthly", "yearly")
WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
WEEKDAY_CODES: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
# The largest number of a weekday, as in "5TU", by frequency. Other frequencies have no numbered weekdays.
MAX_ORDINALS: Final = {"monthly": 5, "yearly": 53}

# The fields of `Rule` with their names in RRULE texts, in the order in which these are written.
PART_NAMES: Final = {
    "frequency": "FREQ",
    "interval": "INTERVAL",
    "months": "BYMONTH",
    "month_days": "BYMONTHDAY",
    "weekdays": "BYDAY",
    "set_positions": "BYSETPOS",
    "week_start": "WKST",
    "count": "COUNT",
    "until": "UNTIL",
}


@dataclass(frozen=True, slots=True)
class Weekday:
    """A weekday; 0 is Monday. With an ordinal, only the n-th one of the month or year, from its end if negative."""

    day: int
    ordinal: int | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A recurrence rule. `until` is the last day, inclusive, in the time zone of the series."""

    frequency: str
    interval: int = 1
    count: int | None = None
    until: date | None = None
    weekdays: tuple[Weekday, ...] = ()
    month_days: tuple[int, ...] = ()
    months: tuple[int, ...] = ()
    set_positions: tuple[int, ...] = ()
    week_start: int = 0

    @property
    def has_parts(self) -> bool:
        """Return whether the rule names days or months; otherwise they are those of the start."""
        return bool(self.weekdays or self.month_days or self.months)
