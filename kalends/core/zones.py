"""Zones: which names are known, how they are spelled today, and conversions between wall time and UTC.

The zone database is the tzdata package's, never the machine's. Nothing here knows the current time.
"""

import os
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from zoneinfo import ZoneInfo

from kalends.core.errors import InvalidValue

MIN_OFFSET, MAX_OFFSET = timedelta(hours=-12), timedelta(hours=14)

SECOND = timedelta(seconds=1)
# Names that mean a rule rather than a place. Their links point to a place that happens to share the rule
# today (EST to America/Panama), which is not what the author wrote.
ZONES_WITHOUT_PLACE = {"UTC", "GMT", "EST", "MST", "HST", "CET", "MET", "EET", "WET"}
ZONES_WITHOUT_PLACE |= {"EST5EDT", "CST6CDT", "MST7MDT", "PST8PDT"}

# Old names whose link crosses a border, because the two places share their clocks since 1970.
# tzdata's source gives today's name in a comment; its compiled form, which we read, does not.
RENAMED_ZONES = {
    "Africa/Asmera": "Africa/Asmara",
    "Africa/Timbuktu": "Africa/Bamako",
    "America/Coral_Harbour": "America/Atikokan",
    "America/Virgin": "America/St_Thomas",
    "Antarctica/South_Pole": "Antarctica/McMurdo",
    "Atlantic/Jan_Mayen": "Arctic/Longyearbyen",
    "Iceland": "Atlantic/Reykjavik",
    "Pacific/Ponape": "Pacific/Pohnpei",
    "Pacific/Truk": "Pacific/Chuuk",
    "Pacific/Yap": "Pacific/Chuuk",
}

_FIXED = re.compile(r"UTC([+-])(\d{1,2})(?::([0-5]\d)|\.(\d{1,2}))?", re.ASCII | re.IGNORECASE)


def read_zone(text: str) -> str:
    """The name under which a zone is stored: proper case, and today's name for a legacy one."""
    name = normalize_zone(text)
    return _current_names().get(name, name)


def normalize_zone(text: str) -> str:
    """The same name in proper case, legacy or not."""
    name = _names().get(text.lower()) or _normalize_fixed(text)
    if name is None:
        raise InvalidValue(
            "A time zone is an IANA name such as Europe/Paris, or UTC with hours between -12 and +14, "
            "such as UTC+5, UTC+5:30 or UTC-3."
        )
    return name


def utc_of(wall: datetime, zone: str, fold: int = 0) -> datetime:
    """The instant of a wall time. In a gap, fold 0 counts on with the clock from before the gap."""
    try:
        return wall.replace(tzinfo=_rules(zone), fold=fold).astimezone(UTC)
    except OverflowError:
        raise InvalidValue("A date lies in the years 1 to {last}.", last=9998) from None


def local_of(utc: datetime, zone: str) -> datetime:
    return in_zone(utc, zone).replace(tzinfo=None, fold=0)


def in_zone(utc: datetime, zone: str) -> datetime:
    """The instant with its zone and its `fold`, 1 at the second of two equal wall times."""
    try:
        return utc.astimezone(_rules(zone))
    except OverflowError:
        raise InvalidValue("A date lies in the years 1 to {last}.", last=9998) from None


def offset_of(utc: datetime, zone: str) -> timedelta:
    return in_zone(utc, zone).utcoffset() or timedelta(0)


def find_change(state: Callable[[datetime], object], before: datetime, after: datetime) -> datetime:
    """The first second at which the state is no longer that of `before`; at `after` it is another."""
    old = state(before)
    while after - before > SECOND:
        middle = before + (after - before) // 2 // SECOND * SECOND
        if state(middle) == old:
            before = middle
        else:
            after = middle
    return after


def abbreviation(utc: datetime, zone: str) -> str:
    """CET or CEST; for a fixed offset the zone itself; digits where the database has no letters."""
    return in_zone(utc, zone).tzname() or zone


def tzdata_version() -> str:
    """Such as 2026b. When it differs from the one UTC columns were derived with, they are derived again."""
    first, _, _ = _read("tzdata.zi").partition("\n")
    return first.removeprefix("# version ").strip()


def zone_names() -> tuple[str, ...]:
    """Every name of the database, legacy ones included."""
    return tuple(_names().values())


@cache
def _rules(zone: str) -> tzinfo:
    fixed = _FIXED.fullmatch(zone)
    if fixed is not None:
        return timezone(_fixed_offset(fixed), zone)
    if zone not in _names().values():
        raise InvalidValue("There is no time zone {zone}.", zone=zone)
    with _find_file(zone).open("rb") as compiled:
        return ZoneInfo.from_file(compiled, key=zone)


def _normalize_fixed(text: str) -> str | None:
    """`utc+05:30` as `UTC+5:30`; the reference keeps both spellings of a half hour, and so do we."""
    fixed = _FIXED.fullmatch(text)
    if fixed is None:
        return None
    sign, hours, minutes, fraction = fixed.groups()
    offset = _fixed_offset(fixed)
    if not MIN_OFFSET <= offset <= MAX_OFFSET or offset % timedelta(minutes=1):
        return None
    tail = f":{minutes}" if int(minutes or 0) else f".{fraction.rstrip('0')}" if int(fraction or 0) else ""
    return f"UTC{sign if offset else '+'}{int(hours)}{tail}"


def _fixed_offset(fixed: re.Match[str]) -> timedelta:
    sign, hours, minutes, fraction = fixed.groups()
    # Hundredths of an hour are 36 seconds each: exact, where a float would not be.
    size = timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=36 * int((fraction or "0").ljust(2, "0")))
    return -size if sign == "-" else size


@cache
def _names() -> Mapping[str, str]:
    """Lower case to proper case, for every zone and link."""
    lines = (line.split() for line in _read("tzdata.zi").splitlines())
    names = (words[1] if words[0] == "Z" else words[2] for words in lines if words and words[0] in ("Z", "L"))
    return {name.lower(): name for name in names if name != "Factory"}


@cache
def _current_names() -> Mapping[str, str]:
    """Legacy name to today's. A country's own zone (zone.tab) is never legacy, even where it is a link."""
    countries = {line.split("\t")[2] for line in _read("zone.tab").splitlines() if line and not line.startswith("#")}
    links = (line.split() for line in _read("tzdata.zi").splitlines() if line.startswith("L "))
    never_legacy = countries | ZONES_WITHOUT_PLACE
    return {name: RENAMED_ZONES.get(name, target) for _, target, name in links if name not in never_legacy}


@cache
def _read(path: str) -> str:
    return _find_file(path).read_text(encoding="utf-8")


def _find_file(path: str) -> Traversable:
    """A file of the zone database.

    `ZoneInfo(name)` asks the machine's own files first, so that two machines, or a server and its worker
    after a system update, could disagree about an hour. We read the package, whose version is locked with
    the code. PYTHONTZPATH, the interpreter's own setting, still puts another database in front: a zone that
    is missing there comes from the package.
    """
    for folder in filter(None, os.environ.get("PYTHONTZPATH", "").split(os.pathsep)):
        if (file := Path(folder, path)).is_file():
            return file
    return resources.files("tzdata").joinpath("zoneinfo", path)
