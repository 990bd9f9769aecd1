"""Find the day and the time of an event in a line of text, such as `Sun Ra night Fri 9pm-1am`, in eight languages.

Other words of the line can look like days and times, too. The pair that fits together best wins: a date before a
weekday, then a day beside a time, then one at the edge of another part, then the last one.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from functools import cache
from itertools import product
from typing import Final

from kalends.core import date_forms as forms
from kalends.core.sanitize import fold
from kalends.core.search_words import DAY_MEANINGS, PHRASES, Meaning, find_days

MASK: Final = "\0"  # stands for every character of a part that has been found
_BETWEEN: Final = re.compile(r"[\s,;:.()/・\0-]*")  # what may stand between a day and its time
_ORDINAL: Final = r"(?:st|nd|rd|th|er|o|\.)?"
_NUMBER: Final = re.compile(r"\s(\d\d?)(?:st|nd|rd|th|\.)?(?![\w.:/])")
_REIWA: Final = 2018  # the year before the era's first year
_OTHER_HALF: Final = {"am": "pm", "pm": "am"}
type Span = tuple[int, int]
type Match = re.Match[str]


@dataclass(frozen=True, slots=True)
class When:
    """The days and times that a line states, and where. A time can be without a day."""

    day: date | None
    last_day: date | None
    start: time | None
    end: time | None
    day_span: Span | None
    time_span: Span | None


@dataclass(frozen=True, slots=True)
class _Day:
    span: Span
    first: date
    last: date | None = None
    weekday: str = ""  # as written, if there is no date
    is_date: bool = False
    is_evening: bool = False


def find_when(text: str, language: str, now: datetime, *, month_first: bool) -> When:
    """Find the day and the time in a folded text. `month_first` applies to dates such as 1/2."""
    stated = [match for match in _compile_times(language).finditer(text) if _rate(match) is not None]
    days = _find_days(text, language, now.date(), stated, month_first=month_first)
    day, hours = _choose(text, days, stated)
    start, end = _read_times(hours, is_evening=day is not None and day.is_evening) if hours else (None, None)
    time_span = hours.span() if hours else None
    if day is None:
        return When(None, None, start, end, None, time_span)
    is_past = day.weekday and start and datetime.combine(day.first, start) < now
    wait = timedelta(days=7 if is_past else 0)
    return When(day.first + wait, day.last and day.last + wait, start, end, day.span, time_span)


def _choose(text: str, days: Sequence[_Day], stated: Sequence[Match]) -> tuple[_Day | None, Match | None]:
    """Return the day and the time with the highest rank."""
    ranks: dict[tuple[int, ...], tuple[_Day | None, Match | None]] = {(-1,): (None, None)}
    for day, hours in product((*days, None), (*stated, None)):
        spans = sorted((day.span if day else (0, 0), hours.span() if hours else (0, 0)))
        if day and hours and spans[1][0] < spans[0][1]:
            continue
        touches = bool(day and hours and _BETWEEN.fullmatch(text, spans[0][1], spans[1][0]))
        edges = count_edges(text, day.span) if day else 0
        sureness = hours and _rate(hours)
        # Between other words, `mar` is the sea. A loose number is a time only beside a day.
        is_word = day and day.weekday in forms.ALSO_WORDS and not edges
        if not touches and (is_word or sureness == 0):
            continue
        of_day = (1, day.is_date, touches, edges, day.span[0]) if day else (0, 0, 0, 0, 0)
        ranks[*of_day, sureness or 0, hours.start() if hours else -1] = (day, hours)
    return ranks[max(ranks)]


def count_edges(text: str, span: Span) -> int:
    """Return on how many sides a text stands beside another part, punctuation, or an end of the line."""
    before = re.search(r"(?:\A|[\0,;:(/|、。]|\s-)\s?\Z", text[: span[0]])
    after = re.match(r"\s?(?:\Z|[\0,;:)/|、。]|-\s)", text[span[1] :])
    return (before is not None) + (after is not None)


def either(words: Iterable[str]) -> str:
    """Return a pattern for any of the words, the longest first."""
    folded = {re.escape(fold(word)) + " " * word.endswith(" ") for word in words}
    return "|".join(sorted(folded - {""}, key=len, reverse=True)) or r"(?!)"


def find_edges(language: str) -> tuple[str, str]:
    """Return patterns for the edges of a word. Japanese has no spaces, but particles follow its words."""
    if language == "ja":
        return r"(?<!\w)", r"(?:の|(?=[\W\d]|[午朝昼夕夜])|\Z)"
    return r"(?<!\w)(?<!\w')(?<![^\W\d_]-)(?<!\d[.,:/])", r"(?!\w|'\w|-[^\W\d_])"


def _find_number_edges(language: str) -> tuple[str, str]:
    if language == "ja":
        return r"(?<![\d.,:/今])", r"(?:の|(?<!\d)|(?!\d))(?![.:/]\d|間)"
    left, right = find_edges(language)
    return left, rf"{right}(?![.:/]\d)"


def _join(words: Iterable[str]) -> str:
    return rf"(?:\s?(?:[~〜・&+-]|から)\s?|\s(?:{either(words)})\s)"


# Days ------------------------------------------------------------------------------------------


@cache
def _list_names(table: str, language: str) -> dict[str, int]:
    """Return the numbers of months or weekdays by folded name; Monday is 1."""
    rows = {"months": forms.MONTHS, "weekdays": forms.WEEKDAYS}[table].get(language, ())
    return {fold(name): number for number, names in enumerate(rows, 1) for name in names.split("|")}


@cache
def _list_phrases(language: str) -> dict[str, Meaning | int]:
    phrases: dict[str, Meaning | int] = {fold(phrase): days for phrase, days in forms.LATER_DAYS[language].items()}
    for meaning, row in zip(DAY_MEANINGS, PHRASES[language], strict=False):
        phrases |= dict.fromkeys(map(fold, row), meaning)
    return phrases


@cache
def _compile_days(language: str) -> tuple[re.Pattern[str], ...]:
    """Return the pattern of weekdays and phrases, then the patterns of dates."""
    left, right = find_edges(language)
    number_left, number_right = _find_number_edges(language)
    gap = r"\s?" if language == "ja" else r"\s"
    before = rf"(?:(?:{either(forms.DAY_CONNECTORS[language].split('|'))}){gap})*"
    weekday, month = either(_list_names("weekdays", language)), either(_list_names("months", language))
    morning, evening = (either(words.split("|")) for words in forms.DAY_PARTS[language])
    join = _join((*forms.TO, *forms.AND))
    before_time = either((*forms.TIME_CONNECTORS, *forms.LOOSE_CONNECTORS))
    first = rf"(?:(?P<first>\d\d?){_ORDINAL}{join}(?:(?:{weekday})\.?,?\s)?)?"
    until = rf"(?:{join}(?P<until>\d\d?)(?:日|{_ORDINAL})(?!\d))?"
    words = (
        rf"(?:(?P<weekday>{weekday})(?:[\s-]feira)?(?:{join}(?P<until>{weekday}))?"
        rf"|(?P<phrase>{either(_list_phrases(language))}))"
        rf"(?:\s(?:{either(forms.NEXT)}))?\.?(?:\s?(?:{morning}|(?P<evening>{evening})))?"
    )
    dates = [
        r"(?P<main>(?P<year>\d{4})(?P<sign>[./-])(?P<month>\d\d?)(?P=sign)(?P<day>\d\d?))",
        r"(?P<main>(?P<day>\d\d?)(?P<sign>[./-])(?P<month>\d\d?)(?P=sign)(?P<year>\d{4}|\d\d))",
        rf"{first}(?P<main>(?P<day>\d\d?)(?P<sign>/)(?P<month>\d\d?))",
        # Without the second dot, 5.12 is a date only before a time.
        rf"{first}(?P<main>(?P<day>\d\d?)\.(?P<month>\d\d?)(?:\.(?!\d)|(?=,?\s(?:{before_time})?\d)))",
        rf"{first}(?P<main>(?P<day>\d\d?){_ORDINAL}\s?(?:(?:of|de)\s|d')?(?P<name>{month})\.?"
        r"(?:,?\s(?:del?\s|of\s)?(?P<year>\d{4}))?)",
        r"(?P<main>(?:(?:(?P<year>\d{4})|令和(?P<era>\d+|元))年)?(?P<month>\d\d?)月(?P<day>\d\d?)日)" + until,
    ]
    if language == "en":
        dates.append(rf"(?P<main>(?P<name>{month})\.?\s(?P<day>\d\d?){_ORDINAL}(?:,?\s(?P<year>\d{{4}}))?){until}")
    named = rf"(?:\s?\((?:{weekday})[^)\d]{{0,4}}\))?"
    return (
        re.compile(f"{left}{before}{words}{right}"),
        *(re.compile(f"{number_left}{before}{form}{named}{number_right}") for form in dates),
    )


def _find_days(text: str, language: str, today: date, stated: Sequence[Match], *, month_first: bool) -> list[_Day]:
    """Return the days in the order of the text. A weekday and its date, or two dates of a range, become one."""
    words, *patterns = _compile_days(language)
    matches = [match for pattern in patterns for match in pattern.finditer(text)]
    dates = [day for match in matches if (day := _read_date(match, language, today, month_first=month_first))]
    taken = [*(day.span for day in dates), *(hours.span() for hours in stated)]
    free = [match for match in words.finditer(text) if not _overlaps(match, taken)]
    numbers = [_NUMBER.match(text, match.end()) for match in free]
    found = [
        _read_word(match, number if number and not _overlaps(number, taken) else None, language, today)
        for match, number in zip(free, numbers, strict=True)
    ]
    days: list[_Day] = []
    for day in sorted([*dates, *found], key=lambda day: (day.span[0], -day.span[1])):
        if days and day.span[0] < days[-1].span[1]:
            continue
        joined = _unite(days[-1], day, text[days[-1].span[1] : day.span[0]]) if days else None
        days[-1:] = [joined] if joined else [*days[-1:], day]
    return days


def _unite(day: _Day, other: _Day, between: str) -> _Day | None:
    span = (day.span[0], other.span[1])
    if day.weekday and other.is_date and re.fullmatch(r",?\s?", between):
        return replace(other, span=span, is_evening=day.is_evening)
    if day.is_date and other.is_date and re.fullmatch(_join((*forms.TO, *forms.AND)), between):
        first = _find_near(day.first.month, day.first.day, other.first, -1)
        return replace(day, span=span, first=first, last=other.first) if first and first < other.first else None
    return None


def _overlaps(match: Match, spans: Sequence[Span]) -> bool:
    return any(start < match.end() and match.start() < end for start, end in spans)


def _read_word(match: Match, number: Match | None, language: str, today: date) -> _Day:
    """Read a weekday or a phrase. A number after a weekday counts if it is the day of the month, as in `Sat 21`."""
    is_evening = match["evening"] is not None
    if match["weekday"]:
        weekdays = _list_names("weekdays", language)
        first = today + timedelta(days=(weekdays[match["weekday"]] - today.isoweekday()) % 7)
        days = (first + timedelta(weeks=week) for week in range(5))
        if number and (found := next((day for day in days if day.day == int(number[1])), None)):
            return _Day((match.start(), number.end()), found, is_date=True, is_evening=is_evening)
        length = (weekdays[match["until"]] - first.isoweekday()) % 7 if match["until"] else 0
        last = first + timedelta(days=length) if length else None
        return _Day(match.span(), first, last, match["weekday"], is_evening=is_evening)
    meaning = _list_phrases(language)[match["phrase"]]
    if isinstance(meaning, int):
        return _Day(match.span(), today + timedelta(days=meaning), is_evening=is_evening)
    first, last = find_days(meaning, today) or (today, today)
    return _Day(match.span(), first, last if last > first else None, is_evening=is_evening or meaning == "tonight")


def _read_date(match: Match, language: str, today: date, *, month_first: bool) -> _Day | None:
    parts: Mapping[str, str | None] = match.groupdict()
    name, year = parts.get("name"), _read_year(parts.get("year"), parts.get("era"))
    month = _list_names("months", language)[name] if name else int(match["month"])
    day = int(match["day"])
    if parts.get("sign") == "/" and (month > 12 or (month_first and day <= 12)):
        day, month = month, day

    def find(number: int) -> date | None:
        return _make_day(year, month, number) if year else _find_near(month, number, today, 1)

    begin, until = parts.get("first"), parts.get("until")
    last = find(int(until or day)) if (begin or until) and 0 < int(begin or day) < int(until or day) else None
    if last:
        return _Day(match.span(), last.replace(day=int(begin or day)), last, is_date=True)
    # A number that is no start or end of a range is not part of the date.
    span = (match.start("main") if begin else match.start(), match.end("main") if until else match.end())
    first = find(day)
    return _Day(span, first, is_date=True) if first else None


def _read_year(year: str | None, era: str | None) -> int | None:
    if era:
        return _REIWA + (1 if era == "元" else int(era))
    return int(year) + (2000 if len(year) == 2 else 0) if year else None


def _make_day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except (ValueError, OverflowError):
        return None


def _find_near(month: int, day: int, today: date, step: int) -> date | None:
    """Return the next such day from a day onward, or the last one before it. February 29 can be eight years away."""
    days = (_make_day(today.year + step * years, month, day) for years in range(9))
    return next((found for found in days if found and (found - today).days * step >= 0), None)


# Times -----------------------------------------------------------------------------------------


@cache
def _compile_times(language: str) -> re.Pattern[str]:
    left, right = _find_number_edges(language)
    stated, loose = either(forms.TIME_CONNECTORS), either(forms.LOOSE_CONNECTORS)
    return re.compile(
        rf"{left}(?:(?P<stated>{stated})|(?P<loose>{loose}))?{_make_time(1, language)}"
        rf"(?:{_join(forms.TO)}{_make_time(2, language)})?(?:\s?(?:から|まで|[〜~]|開演|開始|-\s?late))?{right}"
    )


def _make_time(number: int, language: str) -> str:
    morning, later = (either(words.split("|")) for words in forms.TIME_PARTS[language])
    part = rf"(?:(?P<am{number}>{morning})|(?P<pm{number}>{later}))"
    before, after = (rf"(?:{part}\s?)?", "") if language == "ja" else ("", rf"(?:\s?{part})?")
    return (
        rf"(?:(?P<noon{number}>{either(forms.NOON.split('|'))})|{before}(?P<hour{number}>2[0-4]|[01]?\d)(?!\d)"
        rf"(?:(?:[.:hu時]|\sh\s)(?P<minute{number}>[0-5]\d)(?!\d)分?|時(?P<half{number}>半))?"
        rf"(?P<unit{number}>\s?(?:{either(forms.HOURS.split('|'))}))?{after})"
    )


def _rate(match: Match) -> int | None:
    """Return how surely this is a time: 2 with minutes or a unit, 1 after "at", 0 as a range or after "from"."""
    parts = match.groupdict()
    if any(value for name, value in parts.items() if name not in ("stated", "loose", "hour1", "hour2")):
        return 2
    return 1 if parts["stated"] else 0 if parts["loose"] or parts["hour2"] else None


def _read_times(match: Match, *, is_evening: bool) -> tuple[time, time | None]:
    """Read one time, or two. If only one is am or pm, the other follows: 11-1pm begins at 11 am."""
    first, second = ("am" if match[f"am{n}"] else "pm" if match[f"pm{n}"] else "" for n in (1, 2))
    start = _read_one(match, 1, first)
    if is_evening and not first and 4 < start.hour < 12:
        first, start = "pm", _read_one(match, 1, "pm")
    if match["hour2"] is None and match["noon2"] is None:
        return start, None
    end = _read_one(match, 2, second or first)
    if not second and end <= start and start.hour < 12:
        end = _read_one(match, 2, "pm")
    elif first and not second and end <= start:
        end = _read_one(match, 2, "am")
    if second and not first and (start := _read_one(match, 1, second)) >= end:
        start = _read_one(match, 1, _OTHER_HALF[second])
    return start, end


def _read_one(match: Match, number: int, half: str) -> time:
    if match[f"noon{number}"]:
        return time(12)
    hour = int(match[f"hour{number}"]) % 24
    if half and hour <= 12:
        hour = hour % 12 + (12 if half == "pm" else 0)
    return time(hour, 30 if match[f"half{number}"] else int(match[f"minute{number}"] or 0))
