"""Translations for pages, and dates and times in the language's format (CLDR, through Babel)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from functools import cache, lru_cache
from typing import Any

from babel import Locale, UnknownLocaleError
from babel.core import get_global
from babel.dates import format_date, format_interval, format_skeleton, format_time, get_datetime_format, get_day_names
from babel.lists import format_list
from markupsafe import Markup, escape

from kalends.core.messages import Translate


@dataclass(frozen=True, slots=True)
class PageLocale:
    language: str
    locale: Locale
    translate: Translate
    name: str = field(init=False)  # the locale identifier, cached because Babel rebuilds it on each use

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", str(self.locale))

    def gettext(self, text: str, /, **values: object) -> Markup:
        """Translate a message and insert the escaped values."""
        translated = self.translate(text)
        if not values:
            return Markup(translated)  # noqa: S704  The catalogues are trusted.
        return Markup(translated.format(**{name: escape(value) for name, value in values.items()}))  # noqa: S704

    def text(self, text: str, /, **values: object) -> str:
        """Translate a message for plain-text contexts, without escaping the values."""
        return self.translate(text).format(**values) if values else self.translate(text)

    def time(self, moment: datetime) -> str:
        return _time(self.name, moment.hour, moment.minute)

    def hour(self, number: int) -> str:
        return _time(self.name, number, 0)

    def month(self, day: date) -> str:
        return _skeleton(self.name, "yMMMM", day)

    def abbreviated_month(self, day: date) -> str:
        return _skeleton(self.name, "yMMM", day)

    def short_month(self, day: date) -> str:
        return _skeleton(self.name, "MMM", day)

    def weekday(self, day: date) -> str:
        return _skeleton(self.name, "E", day)

    def day(self, day: date) -> str:
        return _full(self.name, day)

    def long_day(self, day: date) -> str:
        """Format a day with weekday and month in full, without the year."""
        return format_date(day, _long_pattern(self.name), locale=self.name)

    def short_day(self, day: date) -> str:
        return _skeleton(self.name, "MMMEd", day)

    def bare_day(self, day: date) -> str:
        return _skeleton(self.name, "yMMMd", day)

    def dated_weekday(self, day: date) -> str:
        """Format a day with a short weekday and the year, for tables."""
        return _skeleton(self.name, "yMMMEd", day)

    def days(self, first: date, last: date) -> str:
        """Format a range of days. What both days share, such as the month, appears once."""
        if first == last:
            return self.day(first)
        return _interval(self.name, first, last)

    def join(self, texts: Iterable[str]) -> str:
        """Join texts as in "one, two and three"."""
        return format_list(list(texts), locale=self.locale)

    def range(self, start: datetime, end: datetime, *, year: bool) -> str:
        """Format a range of date-times, each with its day."""
        skeleton = "yMMMd" if year or start.year != end.year else "MMMd"
        return _interval_pattern(self.name).format(
            self._format_datetime(skeleton, start), self._format_datetime(skeleton, end)
        )

    def _format_datetime(self, skeleton: str, moment: datetime) -> str:
        return _datetime_pattern(self.name).format(self.time(moment), _skeleton(self.name, skeleton, moment.date()))

    @property
    def region(self) -> str:
        """Return language and territory in Open Graph notation."""
        return _region(self.name)

    def weekdays(self, first: int) -> list[tuple[str, str]]:
        """Return the weekdays' short and long names, starting with `first` (1 is Monday)."""
        return [
            (_weekday(self.name, "abbreviated", n % 7), _weekday(self.name, "wide", n % 7))
            for n in range(first - 1, first + 6)
        ]


def make_page_locale(language: str, site_language: str, translate: Translate) -> PageLocale:
    """Make a page's locale. If the site has the same language, dates follow its region, as in en-GB."""
    is_same_language = site_language.lower().replace("_", "-").partition("-")[0] == language.lower().partition("-")[0]
    return PageLocale(language, _parse_locale(site_language if is_same_language else language, language), translate)


@lru_cache(maxsize=64)
def _parse_locale(tag: str, fallback: str) -> Locale:
    try:
        return Locale.parse(tag.replace("_", "-"), sep="-")
    except (ValueError, UnknownLocaleError):
        return Locale.parse(fallback, sep="-")


@lru_cache(maxsize=20_000)
def _time(locale: str, hour: int, minute: int) -> str:
    return format_time(time(hour, minute), "short", locale=locale).replace("\u202f", "\u00a0")


@lru_cache(maxsize=20_000)
def _skeleton(locale: str, skeleton: str, day: date) -> str:
    return format_skeleton(skeleton, datetime.combine(day, time()), locale=locale)


@lru_cache(maxsize=20_000)
def _full(locale: str, day: date) -> str:
    return format_date(day, "full", locale=locale)


@lru_cache(maxsize=20_000)
def _interval(locale: str, first: date, last: date) -> str:
    # Use noon as the end, because Babel does not count a last day at midnight.
    end = datetime.combine(last, time()) + timedelta(hours=12)
    return format_interval(datetime.combine(first, time(12)), end, "yMMMd", locale=locale)


@cache
def _long_pattern(locale: str) -> str:
    """Return the pattern for a day without the year, with full names even if the language only abbreviates them."""
    skeletons = Locale.parse(locale).datetime_skeletons
    pattern = next(str(skeletons[name]) for name in ("MMMMEEEEd", "MMMMEd", "MMMEd") if name in skeletons)
    return re.sub("MMM+", "MMMM", re.sub("E+|c+", "EEEE", pattern))


@cache
def _datetime_pattern(locale: str) -> str:
    """Return the pattern that joins a time {0} and a day {1}."""
    return str(get_datetime_format("medium", locale=locale)).replace("'", "")


@cache
def _interval_pattern(locale: str) -> str:
    """Return the pattern that joins the start {0} and the end {1} of a range."""
    return str(Locale.parse(locale).interval_formats[None])


@cache
def _region(locale: str) -> str:
    parsed = Locale.parse(locale)
    likely = get_global("likely_subtags").get(parsed.language, "")
    territory = parsed.territory or likely.rpartition("_")[2]
    return f"{parsed.language}_{territory}" if territory else parsed.language


@cache
def _weekday(locale: str, width: Any, number: int) -> str:
    return str(get_day_names(width, "stand-alone", locale)[number])
