"""Table cells: texts, flags, numbers, lists and addresses, as people write them in eight languages."""

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cache
from typing import Final

from kalends.core.date_forms import CONNECTORS, HALVES, MONTHS, make_day
from kalends.core.errors import InvalidValue
from kalends.core.sanitize import fold

# Words in table cells in eight languages: yes and no, statuses, currency positions.

_YES: Final = (
    "yes y true 1 on x ✓ ✔ ☑ ja j wahr oui o vrai si s verdadero vero sim verdadeiro waar はい 有 あり ○ 〇 ◯ 真"
)
_NO: Final = "no n false 0 off - – ☐ nein falsch non faux falso nao nee onwaar いいえ 無 なし × ✗ ✘ 偽"
# Flags by folded word.
FLAGS: Final = {**dict.fromkeys(_YES.split(), True), **dict.fromkeys(_NO.split(), False)}


def _list_words(by_value: dict[str, str]) -> dict[str, str]:
    return {word: value for value, words in by_value.items() for word in words.split("|")}


# Record statuses by folded word.
STATUSES: Final = _list_words(
    {
        "publish": "published|veroffentlicht|offentlich|publie|publicado|pubblicato|gepubliceerd|公開|公開済み",
        "draft": "entwurf|brouillon|borrador|bozza|rascunho|concept|下書き",
        "pending": "pending review|en attente|pendiente|in attesa|pendente|in afwachting|承認待ち",
        "private": "privat|prive|privado|privato|非公開",
    }
)
# Event statuses by folded word.
EVENT_STATES: Final = _list_words(
    {
        "scheduled": "confirmed|geplant|bestatigt|prevu|confirme|programado|confirmado|confermato|gepland|開催",
        "cancelled": "canceled|abgesagt|fallt aus|annule|cancelado|annullato|afgelast|geannuleerd|中止",
        "postponed": "rescheduled|verschoben|reporte|aplazado|pospuesto|rinviato|adiado|uitgesteld|延期",
        "moved_online": "online|online statt|en ligne|en linea|in linea|オンライン|オンライン開催",
        "sold_out": "soldout|ausverkauft|complet|agotado|esaurito|esgotado|uitverkocht|完売|満席",
    }
)
POSITIONS: Final = _list_words(
    {
        "prefix": "before|davor|vor|avant|antes|prima|voor|前",
        "postfix": "suffix|after|danach|nach|apres|despues|dopo|depois|achter|後",
    }
)


Cell = str | int | float | bool | date | datetime | time | timedelta | None

MAX_CELL_LENGTH: Final = 256_000
_SEPARATORS: Final = re.compile(r"[,;|\n]")
# Matches text that a spreadsheet would read as a formula. Apostrophes that prevent this may precede the text.
FORMULA: Final = re.compile(r"'*[=+\-@\t\r＝＋－＠]")
_PLAIN_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")


def to_text(cell: Cell) -> str:
    """Return a cell as text. Dates become ISO 8601, and whole numbers have no fraction."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    if isinstance(cell, datetime):
        return cell.isoformat(" ", "seconds")
    return str(cell).strip()


def guard_formula(text: str) -> str:
    """Put an apostrophe before text that a spreadsheet would read as a formula, except for negative numbers."""
    return f"'{text}" if FORMULA.match(text) and not _PLAIN_NUMBER.fullmatch(text) else text


def unguard_formula(text: str) -> str:
    """Remove an apostrophe added by `guard_formula`."""
    return text[1:] if text.startswith("'") and FORMULA.match(text) else text


def read_flag(cell: Cell) -> bool | None:
    """Read yes or no; return None if the cell is empty."""
    text = fold(to_text(cell))
    if not text:
        return None
    if text not in FLAGS:
        raise InvalidValue("must be yes or no.")
    return FLAGS[text]


def read_word(cell: Cell, words: dict[str, str]) -> str:
    """Return the value for a word. Return an unknown word unchanged, because the API may accept it."""
    text = to_text(cell)
    return words.get(fold(text), text)


def read_number(cell: Cell) -> float | str:
    """Read a number with a decimal point or comma."""
    if isinstance(cell, int | float):
        return float(cell)
    text = to_text(cell).replace(",", ".").replace("−", "-")
    if not text:
        return ""
    if not re.fullmatch(r"[+-]?\d+(?:\.\d+)?", text):
        raise InvalidValue("must be a number.")
    return float(text)


def read_list(cell: Cell) -> list[str]:
    """Read a list separated by commas, semicolons, bars or line breaks."""
    return [part.strip() for part in _SEPARATORS.split(to_text(cell)) if part.strip()]


def read_names(cell: Cell) -> list[str]:
    """Read names, which may contain commas.

    There is one name per line; in a single line, semicolons separate names.
    """
    text = cell if isinstance(cell, str) else to_text(cell)
    parts = text.split("\n") if "\n" in text else text.split(";")
    return [part.strip() for part in parts if part.strip()]


def read_address(cell: Cell) -> str:
    """Read a URL. Its scheme may be missing."""
    text = to_text(cell)
    return f"https://{text}" if re.match(r"www\.", text, re.IGNORECASE) else text


# Dates and times in table cells, as people write them in eight languages and as spreadsheets store them.

# Day zero in spreadsheets, which is a day early: spreadsheets count February 29, 1900, a day that never existed.
_DAY_ZERO: Final = datetime(1899, 12, 30)
_SERIAL_DAYS: Final = range(20_000, 80_000)  # 1954 to 2119; other numbers are probably not dates
DAY_FIRST: Final = "dmy"
MONTH_FIRST: Final = "mdy"
_NUMERIC: Final = re.compile(r"(\d{1,2})([./-])\s?(\d{1,2})\2\s?(\d{4}|\d{2})(?!\d)")
_YEAR_FIRST: Final = re.compile(r"(\d{4})([./-])(\d{1,2})\2(\d{1,2})(?!\d)")
_COMPACT: Final = re.compile(r"(\d{4})(\d{2})(\d{2})(?=$|t)")
_JAPANESE: Final = re.compile(r"(?:(\d{4})|(?:令和|r)\s?(\d{1,2}|元))\s?年\s?(\d{1,2})\s?月\s?(\d{1,2})\s?日")
_REIWA: Final = 2018  # the year before the era's first year, 2019
_NAMED: Final = re.compile(
    r"(\d{1,2})(?:\.|er|st|nd|rd|th|º|o|\s?de)?[\s-]*(?:de\s|d')?([^\W\d_]+)\.?,?[\s-]*(?:de\s|del\s)?(\d{4})(?!\d)"
)
_NAME_FIRST: Final = re.compile(r"([^\W\d_]+)\.?\s(\d{1,2})(?:st|nd|rd|th)?,?\s(\d{4})(?!\d)")
_WEEKDAY: Final = re.compile(r"[^\W\d]+\.?[,\s]\s*")
_AFTER_DAY: Final = re.compile(r"(?:\s*\([^)]*\))?[\s,]*")
_TIME: Final = re.compile(
    r"(?P<before>[^\W\d]+\.?\s?)?(?P<hour>\d{1,2})(?:\s?[:.h時]\s?(?P<minute>\d{2})?(?:[:.m分]\s?(?P<second>\d{2})?)?)?"
    r"\s?(?P<after>[ap]\.?\s?m\.?|uhr|hrs?|heures?|horas?|ore|uur|h|分)?\s?(?P<offset>z|[+-]\d{2}:?\d{2})?"
)
_DIGITS: Final = re.compile(r"(\d{1,2})(\d{2})(\d{2})?(z)?")
_RANGE: Final = re.compile(r"\s*(?:-|–|—|~|〜|～|\bbis\b|\bto\b|\ba\b|\bà\b|\btot\b|\balle\b|\bàs\b)\s*")


@dataclass(frozen=True, slots=True)
class Moment:
    """A day, a time of day or both, as stated in a cell, with the UTC offset if the cell states one."""

    day: date | None = None
    time_of_day: time | None = None
    offset: str = ""


def read_moment(cell: Cell, order: str) -> Moment | None:
    """Read a date with an optional time; None if the cell is empty. `order` applies to dates such as 1/2/2026."""
    if isinstance(cell, datetime):
        rounded = _round(cell)
        return Moment(rounded.date(), rounded.time() if rounded.time() != time() else None)
    if isinstance(cell, date):
        return Moment(cell)
    if isinstance(cell, time | timedelta):
        return Moment(time_of_day=_to_time(cell))
    text = fold(to_text(cell))
    if not text:
        return None
    if isinstance(cell, int | float) or re.fullmatch(r"\d{5}(?:\.\d+)?", text):
        return _read_serial(float(text))
    return _read_text(text, order)


def read_times(cell: Cell) -> list[Moment]:
    """Read one time, or two as in 19:00–21:00. Return an empty list if the cell is empty."""
    if isinstance(cell, datetime | time | timedelta):
        return [Moment(time_of_day=_to_time(cell))]
    if isinstance(cell, float) and 0 <= cell < 1:
        return [Moment(time_of_day=_round(_DAY_ZERO + timedelta(days=cell)).time())]
    text = fold(to_text(cell))
    parts = [part for part in _RANGE.split(text) if part] if not re.search(r"[+-]\d{2}:?\d{2}$", text) else [text]
    if len(parts) > 2:
        raise _time_error()
    return [_read_time(part) for part in parts]


def find_order(cells: list[Cell], language: str) -> str:
    """Return the order of day and month in a column. Values above 12 decide; otherwise, the language does."""
    matches = [match for cell in cells if isinstance(cell, str) and (match := _NUMERIC.search(cell))]
    parts = [(int(match[1]), int(match[3])) for match in matches if match[2] != "."]
    day_first, month_first = any(first > 12 for first, _ in parts), any(second > 12 for _, second in parts)
    if day_first != month_first:
        return DAY_FIRST if day_first else MONTH_FIRST
    return MONTH_FIRST if language == "en" else DAY_FIRST


def is_time_only(cell: Cell) -> bool:
    """Return whether a cell has a time without a date.

    A cell with only digits does not count, because it is ambiguous.
    """
    if isinstance(cell, time | timedelta) or (isinstance(cell, float) and 0 <= cell < 1):
        return True
    if not isinstance(cell, str) or _NUMERIC.match(cell) or not re.search(r"\d", cell) or cell.strip().isdecimal():
        return False
    try:
        return bool(read_times(cell))
    except InvalidValue:
        return False


def has_time(cell: Cell) -> bool:
    """Return whether a cell has a time, with or without a date."""
    if is_time_only(cell):
        return True
    try:
        moment = read_moment(cell, DAY_FIRST) if isinstance(cell, str | datetime) else None
    except InvalidValue:
        return False
    return moment is not None and moment.time_of_day is not None


def _read_text(text: str, order: str) -> Moment:
    bare = _WEEKDAY.sub("", text, count=1) if not text[0].isdecimal() else text
    for candidate in dict.fromkeys((text, bare)):
        for read in (_read_year_first, _read_compact, _read_japanese, _read_numeric, _read_named, _read_name_first):
            found = read(candidate, order)
            if found is not None:
                day, rest = found
                return _add_time(day, rest)
    raise InvalidValue("must be a date, such as 2026-11-16 or 16.11.2026.")


def _add_time(day: date, rest: str) -> Moment:
    rest = _AFTER_DAY.sub("", rest, count=1)
    for connector in CONNECTORS:
        rest = rest.removeprefix(connector)
    rest = rest.strip()
    if not rest:
        return Moment(day)
    moment = _read_time(rest)
    return Moment(day, moment.time_of_day, moment.offset)


def _read_year_first(text: str, _: str) -> tuple[date, str] | None:
    match = _YEAR_FIRST.match(text)
    return (make_day(int(match[1]), int(match[3]), int(match[4])), text[match.end() :]) if match else None


def _read_compact(text: str, _: str) -> tuple[date, str] | None:
    match = _COMPACT.match(text)
    return (make_day(*map(int, match.groups())), text[match.end() :]) if match else None


def _read_japanese(text: str, _: str) -> tuple[date, str] | None:
    match = _JAPANESE.match(text)
    if match is None:
        return None
    year = int(match[1]) if match[1] else _REIWA + (1 if match[2] == "元" else int(match[2]))
    return make_day(year, int(match[3]), int(match[4])), text[match.end() :]


def _read_numeric(text: str, order: str) -> tuple[date, str] | None:
    """Read a date such as 16/11/2026. With dots, the day is first. Otherwise, values above 12 or `order` decide."""
    match = _NUMERIC.match(text)
    if match is None:
        return None
    first, second, year = int(match[1]), int(match[3]), _complete_year(match[4])
    is_month_first = match[2] != "." and order == MONTH_FIRST
    if (second if not is_month_first else first) > 12:
        is_month_first = not is_month_first and match[2] != "."
    month, day = (first, second) if is_month_first else (second, first)
    return make_day(year, month, day), text[match.end() :]


def _read_named(text: str, _: str) -> tuple[date, str] | None:
    match = _NAMED.match(text)
    if match is None or match[2] not in list_months():
        return None
    return make_day(int(match[3]), list_months()[match[2]], int(match[1])), text[match.end() :]


def _read_name_first(text: str, _: str) -> tuple[date, str] | None:
    match = _NAME_FIRST.match(text)
    if match is None or match[1] not in list_months():
        return None
    return make_day(int(match[3]), list_months()[match[1]], int(match[2])), text[match.end() :]


@cache
def list_months() -> dict[str, int]:
    """Return month numbers by folded name and abbreviation."""
    return {
        fold(name): number
        for names in MONTHS.values()
        for number, month in enumerate(names, 1)
        for name in month.split("|")
    }


def _complete_year(digits: str) -> int:
    return int(digits) if len(digits) == 4 else int(digits) + (2000 if int(digits) < 70 else 1900)


def _read_serial(number: float) -> Moment:
    """Read the day number that a spreadsheet stores for a date. Its fraction is the time of day."""
    if 0 <= number < 1:
        return Moment(time_of_day=_round(_DAY_ZERO + timedelta(days=number)).time())
    if int(number) not in _SERIAL_DAYS:
        raise InvalidValue("must be a date, such as 2026-11-16 or 16.11.2026.")
    return read_moment(_DAY_ZERO + timedelta(days=number), DAY_FIRST) or Moment()


# Times ------------------------------------------------------------------------------------------


def _read_time(text: str) -> Moment:
    if match := _DIGITS.fullmatch(text):
        offset = "+00:00" if match[4] else ""
        return Moment(time_of_day=_make_time(int(match[1]), int(match[2]), int(match[3] or 0)), offset=offset)
    match = _TIME.fullmatch(text)
    if match is None:
        raise _time_error()
    before, after = (match["before"] or "").strip(), re.sub(r"[.\s]", "", match["after"] or "")
    half = HALVES.get(before) or HALVES.get(after)
    if before and not half and f"{before} " not in CONNECTORS:
        raise _time_error()
    hour = int(match["hour"])
    if half is not None and hour <= 12:
        hour = hour % 12 + (12 if half == "pm" else 0)
    value = _make_time(hour, int(match["minute"] or 0), int(match["second"] or 0))
    return Moment(time_of_day=value, offset=_format_offset(match["offset"] or ""))


def _make_time(hour: int, minute: int, second: int) -> time:
    if (hour, minute, second) == (24, 0, 0):
        return time(23, 59, 59)  # the end of the day
    try:
        return time(hour, minute, second)
    except ValueError:
        raise _time_error() from None


def _format_offset(text: str) -> str:
    return "+00:00" if text == "z" else f"{text[:3]}:{text[-2:]}" if text else ""


def _to_time(value: datetime | time | timedelta) -> time:
    if isinstance(value, time):
        return _round(datetime.combine(date(2000, 1, 1), value)).time()
    moment = _DAY_ZERO + value if isinstance(value, timedelta) else value
    return _round(moment).time()


def _round(value: datetime) -> datetime:
    """Round to whole seconds, because spreadsheets store times as inexact fractions."""
    return (value + timedelta(microseconds=500_000)).replace(microsecond=0)


def _time_error() -> InvalidValue:
    return InvalidValue("must be a time, such as 19:30.")
