"""Parse dates in all accepted forms, and list date words in several languages for other modules.

Parsing does not depend on the current time: `now`, `tomorrow` and `+1 week` become a `RelativeDate`. The caller
resolves it with the transaction's time.
"""

import re
from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import product
from typing import Final

from kalends.core.errors import InvalidValue
from kalends.core.times import LAST_YEAR, DateTimeInput, check_year, local_of, offset_of, utc_of, year_error
from kalends.core.zones import normalize_zone

MAX_LENGTH: Final = 64
# Other Unicode white space is not accepted.
WHITE_SPACE: Final = " \t\n\r\f\v"

_ISO = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)"
    r"(?:[ T](?P<hour>[01]\d|2[0-3]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d)(?:[.,]\d+)?)?"
    r"(?P<offset>Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?)?",
    re.ASCII,
)
_TIME_ALONE = re.compile(r"(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?", re.ASCII)
_TIMESTAMP = re.compile(r"@(-?\d{1,12})", re.ASCII)

# Parts of the non-ISO forms.
_MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_NAMED_MONTHS: Final = {name[:length]: n for n, name in enumerate(_MONTHS, 1) for length in (3, len(name))}
_WORDS: Final = {"today": 0, "tomorrow": 1, "yesterday": -1}  # days from today
_FIXED_UNITS: Final = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1)}
_DAY_UNITS: Final = {"day": timedelta(days=1), "week": timedelta(weeks=1)}
_MONTH_UNITS: Final = {"month": 1, "year": 12}
_UNITS: Final = "|".join([*_FIXED_UNITS, *_DAY_UNITS, *_MONTH_UNITS])
_YEAR, _MONTH, _DAY = r"(?P<year>\d{4})", r"(?P<month>0?[1-9]|1[0-2])", r"(?P<day>0?[1-9]|[12]\d|3[01])"
_NAME: Final = f"(?P<name>{'|'.join(sorted(_NAMED_MONTHS, key=len, reverse=True))})"
_WORD: Final = f"(?P<word>{'|'.join(_WORDS)})"
_OFFSET, _ZONE_NAME = r"[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?", r"[a-z_]+/[a-z0-9_+/-]+"
_ZONE: Final = rf"(?: ?(?P<zone>z|{_OFFSET}|utc|gmt)| (?P<place>{_ZONE_NAME}))"
_MINUTES: Final = r":(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?"
_24_HOURS: Final = rf"(?P<hour>[01]?\d|2[0-3]){_MINUTES}"
_12_HOURS: Final = rf"(?P<hour>0?[1-9]|1[0-2]){_MINUTES} ?(?P<half>am|pm)"
_WEEKDAY: Final = r"(?:mon|tue|wed|thu|fri|sat|sun), ?"

# Day forms, each optionally followed by a time.
DAYS: Final = (
    rf"{_YEAR}-{_MONTH}-{_DAY}",
    rf"{_YEAR}/{_MONTH}/{_DAY}",
    rf"{_MONTH}/{_DAY}/{_YEAR}",
    rf"{_NAME} {_DAY},? {_YEAR}",
    rf"{_DAY} {_NAME} {_YEAR}",
    _WORD,
)
TIMES: Final = ("", rf"[ t]{_24_HOURS}{_ZONE}?", rf"[ t]{_12_HOURS}{_ZONE}?")
OTHER_FORMS: Final = (
    rf"{_YEAR}-{_MONTH}",
    rf"{_WEEKDAY}{_DAY} {_NAME} {_YEAR} {_24_HOURS}{_ZONE}",
    r"(?P<now>now)",
    # An unencoded plus in a URL arrives as a space, so the sign may be missing.
    rf"(?P<amount>[+-]?\d{{1,4}}) ?(?P<unit>{_UNITS})s?",
)
FORMS: Final = tuple(
    re.compile(form, re.ASCII) for form in (*[day + time for day, time in product(DAYS, TIMES)], *OTHER_FORMS)
)


@dataclass(frozen=True, slots=True)
class RelativeDate:
    """A date relative to the current time; `unit` is `now` or a time unit.

    If `time_of_day` is None, the current time of day applies. `zone` is the zone given with the time, if any.
    """

    unit: str
    amount: int = 0
    time_of_day: time | None = None
    is_date_only: bool = False
    zone: str | None = None

    def changes_within_day(self, *, is_exact: bool) -> bool:
        """Return whether the date changes at times other than midnight. If `is_exact`, the time of day counts too."""
        return self.unit in _FIXED_UNITS or self.zone is not None or (is_exact and self.time_of_day is None)


type DateInput = DateTimeInput | RelativeDate


def read_datetime(text: str) -> DateInput:
    """Parse a date in any of the accepted forms: ISO, `@` with a Unix timestamp, or one of `FORMS`."""
    stripped = text.strip(WHITE_SPACE)
    if (timestamp := _TIMESTAMP.fullmatch(stripped)) is not None:
        return _read_timestamp(int(timestamp[1]))
    if len(stripped) > MAX_LENGTH:
        raise _form_error()
    if (match := _ISO.fullmatch(stripped)) is not None:
        return _read_iso(match)
    normalized = re.sub(f"[{WHITE_SPACE}]+", " ", stripped).lower()
    parts = next((match.groupdict() for form in FORMS if (match := form.fullmatch(normalized))), None)
    if parts is None:
        raise _form_error()
    return _read_parts({name: value for name, value in parts.items() if value is not None})


def read_time_or_datetime(text: object) -> DateInput | time:
    if isinstance(text, str) and (match := _TIME_ALONE.fullmatch(text.strip(WHITE_SPACE))) is not None:
        return time(int(match["hour"]), int(match["minute"]), int(match["second"] or 0))
    if not isinstance(text, str):
        raise _form_error()
    return read_datetime(text)


def make_absolute(value: DateInput, now_utc: datetime, zone: str) -> DateTimeInput:
    """Resolve a relative date against the current time, in the date's zone or else the given zone."""
    if isinstance(value, DateTimeInput):
        return value
    zone = value.zone or zone
    try:
        if value.unit == "now" or value.unit in _FIXED_UNITS:
            # Keep the offset, because the local time is ambiguous in an hour that occurs twice.
            instant = now_utc.replace(microsecond=0) + value.amount * _FIXED_UNITS.get(value.unit, timedelta(0))
            return DateTimeInput(local_of(instant, zone), offset_of(instant, zone), is_date_only=False)
        wall = _shift(local_of(now_utc, zone).replace(microsecond=0), value.amount, value.unit)
    except (OverflowError, ValueError):
        raise year_error() from None
    if value.time_of_day is not None:
        wall = datetime.combine(wall.date(), value.time_of_day)
    return _in_own_zone(check_year(wall), value.zone, is_date_only=value.is_date_only)


def _form_error() -> InvalidValue:
    return InvalidValue(
        "must be YYYY-MM-DD or YYYY-MM-DD HH:MM:SS, optionally with Z or an offset such as +02:00 (encode + "
        "as %2B in URLs)."
    )


def _read_timestamp(seconds: int) -> DateTimeInput:
    try:
        wall = datetime(1970, 1, 1) + timedelta(seconds=seconds)
    except OverflowError:
        raise year_error() from None
    return DateTimeInput(check_year(wall), timedelta(0), is_date_only=False)


def _read_iso(match: re.Match[str]) -> DateTimeInput:
    day = make_day(*map(int, match["day"].split("-")))
    time_of_day = time(int(match["hour"] or 0), int(match["minute"] or 0), int(match["second"] or 0))
    wall = check_year(datetime.combine(day, time_of_day))
    return DateTimeInput(wall, _read_offset(match["offset"]), is_date_only=match["hour"] is None)


def make_day(year: int, month: int, day: int) -> date:
    """Return the date; raise InvalidValue if the calendar has no such day."""
    try:
        return date(year, month, day)
    except ValueError:
        text = f"{year:04}-{month:02}-{day:02}"
        raise InvalidValue("is not a valid date: {day} does not exist.", day=text) from None


def _read_offset(text: str | None) -> timedelta | None:
    if text is None or text == "Z":
        return None if text is None else timedelta(0)
    digits = text[1:].replace(":", "").ljust(4, "0")
    size = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return -size if text[0] == "-" else size


def _read_parts(parts: dict[str, str]) -> DateInput:
    if "now" in parts:
        return RelativeDate("now")
    if "amount" in parts:
        return RelativeDate(parts["unit"], int(parts["amount"]))
    is_date_only, zone = "hour" not in parts, _read_zone(parts)
    time_of_day = time(_read_hour(parts), int(parts.get("minute", 0)), int(parts.get("second", 0)))
    if "word" in parts:
        return RelativeDate("day", _WORDS[parts["word"]], time_of_day, is_date_only, zone)
    month = _NAMED_MONTHS[parts["name"]] if "name" in parts else int(parts["month"])
    wall = datetime.combine(make_day(int(parts["year"]), month, int(parts.get("day", 1))), time_of_day)
    return _in_own_zone(check_year(wall), zone, is_date_only=is_date_only)


def _read_hour(parts: dict[str, str]) -> int:
    hour = int(parts.get("hour", 0))
    return hour if "half" not in parts else hour % 12 + (12 if parts["half"] == "pm" else 0)


def _read_zone(parts: dict[str, str]) -> str | None:
    """Return the zone given after a time, under a name that `zones` accepts; an offset becomes `UTC+02:00`."""
    if "place" in parts:
        try:
            return normalize_zone(parts["place"])
        except InvalidValue:
            raise _form_error() from None
    text = parts.get("zone")
    if text is None or text in ("z", "utc", "gmt"):
        return None if text is None else "UTC"
    digits = text[1:].replace(":", "").ljust(4, "0")
    return f"UTC{text[0]}{digits[:2]}:{digits[2:]}"


def _in_own_zone(wall: datetime, zone: str | None, *, is_date_only: bool) -> DateTimeInput:
    """Return a local time.

    If a zone is given, resolve the time in this zone and add the UTC offset to avoid ambiguity.
    """
    if zone is None:
        return DateTimeInput(wall, None, is_date_only)
    instant = utc_of(wall, zone)
    return DateTimeInput(local_of(instant, zone), offset_of(instant, zone), is_date_only=False)


def _shift(wall: datetime, amount: int, unit: str) -> datetime:
    """Add days, weeks, months or years. If a month is too short, use its last day."""
    if unit in _DAY_UNITS:
        return wall + amount * _DAY_UNITS[unit]
    year, month = divmod(12 * wall.year + wall.month - 1 + amount * _MONTH_UNITS[unit], 12)
    if not 1 <= year <= LAST_YEAR:
        raise year_error()
    return wall.replace(year=year, month=month + 1, day=min(wall.day, monthrange(year, month + 1)[1]))


# One row per language; bars separate a month's names and abbreviations.
MONTHS: Final[Mapping[str, tuple[str, ...]]] = {
    language: tuple(row.split())
    for language, row in {
        "en": "january|jan february|feb march|mar april|apr may june|jun "
        "july|jul august|aug september|sep|sept october|oct november|nov december|dec",
        "de": "januar|jänner|jan|jän februar|feber|feb märz|maerz|mär|mrz april|apr mai juni|jun "
        "juli|jul august|aug september|sep|sept oktober|okt november|nov dezember|dez",
        "fr": "janvier|janv février|févr|fév mars avril|avr mai juin "
        "juillet|juil août septembre|sept octobre|oct novembre|nov décembre|déc",
        "es": "enero|ene febrero|feb marzo|mar abril|abr mayo|may junio|jun "
        "julio|jul agosto|ago septiembre|setiembre|sep|sept|set octubre|oct noviembre|nov diciembre|dic",
        "it": "gennaio|gen febbraio|feb marzo|mar aprile|apr maggio|mag giugno|giu "
        "luglio|lug agosto|ago settembre|set|sett ottobre|ott novembre|nov dicembre|dic",
        "pt-BR": "janeiro|jan fevereiro|fev março|mar abril|abr maio|mai junho|jun "
        "julho|jul agosto|ago setembro|set outubro|out novembro|nov dezembro|dez",
        "nl": "januari|jan februari|feb maart|mrt april|apr mei juni|jun "
        "juli|jul augustus|aug september|sep|sept oktober|okt november|nov december|dec",
    }.items()
}
HALVES: Final = {"am": "am", "pm": "pm", "午前": "am", "午後": "pm"}
CONNECTORS: Final = (
    "t", "um ", "ab ", "at ", "from ", "kl. ", "a las ", "alle ore ", "alle ", "ore ", "as ", "a ", "om ",
)  # fmt: skip

# Words around days and times in running text. From Monday to Sunday:
WEEKDAYS: Final[Mapping[str, tuple[str, ...]]] = {
    language: tuple(row.split())
    for language, row in {
        "en": "monday|mon tuesday|tues|tue wednesday|weds|wed thursday|thurs|thur|thu friday|fri saturday|sat "
        "sunday|sun",
        "de": "montag|mo dienstag|di mittwoch|mi donnerstag|do freitag|fr samstag|sonnabend|sa sonntag|so",
        "fr": "lundi|lun mardi|mar mercredi|mer jeudi|jeu vendredi|ven samedi|sam dimanche|dim",
        "es": "lunes|lun martes|mar miércoles|mié jueves|jue viernes|vie sábado|sáb domingo|dom",
        "it": "lunedì|lun martedì|mar mercoledì|mer giovedì|gio venerdì|ven sabato|sab domenica|dom",
        "pt-BR": "segunda|seg|2ª terça|ter|3ª quarta|qua|4ª quinta|qui|5ª sexta|sex|6ª sábado|sáb domingo|dom",
        "nl": "maandag|ma dinsdag|di woensdag|wo donderdag|do vrijdag|vr zaterdag|za zondag|zo",
        "ja": " ".join(f"{day}曜日|{day}曜|{day}" for day in "月火水木金土日"),
    }.items()
}
ALSO_WORDS: Final = frozenset(["ma", "mar", "mer", "sex", "so", "ter", "zo"])  # weekdays that can be ordinary words
# Days from today. `search_words` has the words for today and tomorrow.
LATER_DAYS: Final[Mapping[str, Mapping[str, int]]] = {
    "en": {"day after tomorrow": 2, "the day after tomorrow": 2},
    "de": {"übermorgen": 2},
    "fr": {"après-demain": 2, "après demain": 2},
    "es": {"pasado mañana": 2},
    "it": {"dopodomani": 2},
    "pt-BR": {"depois de amanhã": 2},
    "nl": {"overmorgen": 2},
    "ja": {"あす": 1, "明後日": 2, "あさって": 2},
}
# Morning, and the rest of the day: after a day, as in "Friday evening", and after a time (in Japanese before it).
DAY_PARTS: Final[Mapping[str, tuple[str, str]]] = {
    "en": ("morning", "afternoon|evening|night"),
    "de": ("morgen|früh|vormittag", "mittag|nachmittag|abend|nacht"),
    "fr": ("matin", "après-midi|soir"),
    "es": ("por la mañana", "por la tarde|por la noche|tarde|noche"),
    "it": ("mattina", "pomeriggio|sera"),
    "pt-BR": ("de manhã|pela manhã", "à tarde|à noite|de noite"),
    "nl": ("morgen|ochtend", "middag|avond|nacht"),
    "ja": ("", ""),
}
TIME_PARTS: Final[Mapping[str, tuple[str, str]]] = {
    "en": ("am|a.m.|in the morning", "pm|p.m.|noon|in the afternoon|in the evening|at night"),
    "de": ("morgens|vormittags", "mittags|nachmittags|abends"),
    "fr": ("du matin", "de l'après-midi|du soir"),
    "es": ("am|a.m.|a. m.|de la mañana", "pm|p.m.|p. m.|del mediodía|de la tarde|de la noche"),
    "it": ("di mattina|del mattino", "del pomeriggio|di sera"),
    "pt-BR": ("da manhã", "da tarde|da noite"),
    "nl": ("'s morgens|'s ochtends", "'s middags|'s avonds"),
    "ja": ("午前|朝", "午後|昼|夕方|夜"),
}
NOON: Final = "noon|midday|midi|mediodía|mezzogiorno|meio-dia|meio dia|正午"
HOURS: Final = "uhr|uur|u|h|hr|hrs|hs|heure|heures|hora|horas|o'clock|時"
NEXT: Final = ("prochain", "prossimo", "prossima", "que viene", "que vem")  # after a day
# Words before a time, and some that also stand before other numbers.
LOOSE_CONNECTORS: Final = (
    *("a ", "al ", "ao ", "as ", "das ", "de ", "des ", "h ", "van ", "vanaf ", "von ", "a partir de "),
    "desde ",
)
TIME_CONNECTORS: Final = (
    *(word for word in CONNECTORS if word.endswith(" ") and word not in LOOSE_CONNECTORS),
    *("a partir das ", "aanvang ", "beginn ", "dalle ", "dalle ore ", "desde las ", "h. "),
)
DAY_CONNECTORS: Final[Mapping[str, str]] = {
    "en": "on|this|next|from|the",
    "de": "am|ab|diesen|nächsten|kommenden|vom|von|den|dem",
    "fr": "le|les|ce|du|dès le",
    "es": "el|los|este|próximo|del|desde el",
    "it": "il|questo|questa|prossimo|dal",
    "pt-BR": "no|na|neste|nesta|próximo|próxima|dia|de|do",
    "nl": "op|deze|komende|van",
    "ja": "次の|今度の|今週の|今週",
}
# Words between the first and the last day or time, and more words between two days.
TO: Final = (
    *("to", "till", "until", "bis", "à", "a", "al", "au", "às", "a las", "hasta las", "alle", "alle ore", "até"),
    *("até as", "tot", "t/m"),
)
AND: Final = ("and", "und", "et", "y", "e", "en")
