"""The choices that the editor of a rule offers."""

from dataclasses import dataclass
from typing import Final

from kalends.console.series.repeat import DATES_ONLY, DAYS, ENDS, FREQUENCIES
from kalends.core.recurrence.rules import WEEKDAYS
from kalends.website.models.page_locale import PageLocale

MONDAY: Final = 1


@dataclass(frozen=True, slots=True)
class RepeatOptions:
    """Choices with their message IDs, and the weekdays with their short and long names."""

    weekdays: list[tuple[str, str, str]]
    frequencies: dict[str, str]
    days: dict[str, str]
    ends: dict[str, str]
    has_lists: bool


def make_options(locale: PageLocale, *, is_new: bool = True, has_lists: bool | None = None) -> RepeatOptions:
    """Return the choices; those of a new event include "never" and, like those of new series, lists of dates."""
    frequencies = {name: text for name, text in FREQUENCIES.items() if is_new or name not in ("", DATES_ONLY)}
    names = zip(WEEKDAYS, locale.weekdays(MONDAY), strict=True)
    weekdays = [(value, short, long) for value, (short, long) in names]
    return RepeatOptions(weekdays, frequencies, DAYS, ENDS, is_new if has_lists is None else has_lists)
