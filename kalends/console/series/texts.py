"""Rules, dates and warnings of series as publishers read them."""

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any, Final

from kalends.console.field_texts import LABELS
from kalends.console.request import field_errors
from kalends.core.errors import ApiError
from kalends.core.messages import Message
from kalends.core.messages import gettext_noop as N_
from kalends.core.recurrence import Rule
from kalends.http import rule_texts
from kalends.kinds.series import TIMES
from kalends.website.models.page_locale import PageLocale

# Warnings of the API about rules, in the words of the editor.
_SKIPPED_MONTHS: Final = N_(
    "Months without this day have no date. Choose the last day of the month if there is to be one every month."
)
_WARNINGS: Final = {
    "Five months of the year have no 31st. Use `BYMONTHDAY=-1` for the last day of every month.": _SKIPPED_MONTHS,
    "February has no 30th. Use `BYMONTHDAY=-1` for the last day of every month.": _SKIPPED_MONTHS,
}
LIST_TEXT: Final = N_("On the dates of a list")


def describe_rule(rule: Rule | None, start: date, locale: PageLocale) -> str:
    """Return a rule in words; empty if there are none for it. Without a rule, a series has a list of dates."""
    if rule is None:
        return locale.text(LIST_TEXT)
    return rule_texts.describe_rule(rule, start, locale.language, str(locale.locale)) or ""


def describe_warning(warning: Message) -> Message:
    return Message(_WARNINGS[warning.text]) if warning.text in _WARNINGS else warning


def find_reason(error: ApiError) -> Message:
    """Return why the first parameter was rejected, or the message of the error."""
    return next(iter(field_errors(error).values()), error.message)


def format_wall(text: str | None, locale: PageLocale, *, all_day: bool = False) -> str:
    """Return a local time of the API as day and time of day."""
    if not text:
        return ""
    wall = datetime.fromisoformat(text)
    day = locale.dated_weekday(wall.date())
    return day if all_day else f"{day}, {locale.time(wall)}"


def name_fields(names: Iterable[str], locale: PageLocale) -> str:
    """Return the names of own fields for publishers."""
    labels: Mapping[str, Any] = {**LABELS, TIMES: LABELS["dates"]}
    return ", ".join(locale.text(labels.get(name, name)) for name in names)
