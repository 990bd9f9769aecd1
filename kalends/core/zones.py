"""Time zones: known names, their current spelling, and conversions between local time and UTC.

The data is that of the tzdata package, never that of the operating system. The current time is not used.
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
from kalends.core.suggestions import suggest

MIN_OFFSET, MAX_OFFSET = timedelta(hours=-12), timedelta(hours=14)

SECOND = timedelta(seconds=1)
# Names of rules rather than places. Their links point to a place that happens to use the same rule today (EST to
# America/Panama), which is not what the author meant.
ZONES_WITHOUT_PLACE = {"UTC", "GMT", "EST", "MST", "HST", "CET", "MET", "EET", "WET"}
ZONES_WITHOUT_PLACE |= {"EST5EDT", "CST6CDT", "MST7MDT", "PST8PDT"}

# Legacy names whose link crosses a border, because both places have had the same time since 1970. The source of
# tzdata has the current name in a comment; the compiled form, which is read here, does not.
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

# The first parts of names whose last part is a city or a similar place.
REGIONS = (
    *("Africa/", "America/", "Antarctica/", "Arctic/", "Asia/"),
    *("Atlantic/", "Australia/", "Europe/", "Indian/", "Pacific/"),
)
# Abbreviations that are no zones, each with the zone that is meant most often.
ABBREVIATIONS = {
    "aedt": "Australia/Sydney",
    "aest": "Australia/Sydney",
    "akdt": "America/Anchorage",
    "akst": "America/Anchorage",
    "awst": "Australia/Perth",
    "brt": "America/Sao_Paulo",
    "bst": "Europe/London",
    "cdt": "America/Chicago",
    "cest": "Europe/Berlin",
    "cst": "America/Chicago",
    "edt": "America/New_York",
    "eest": "Europe/Athens",
    "hkt": "Asia/Hong_Kong",
    "ist": "Asia/Kolkata",
    "jst": "Asia/Tokyo",
    "kst": "Asia/Seoul",
    "mdt": "America/Denver",
    "mesz": "Europe/Berlin",
    "mez": "Europe/Berlin",
    "msk": "Europe/Moscow",
    "nzdt": "Pacific/Auckland",
    "nzst": "Pacific/Auckland",
    "pdt": "America/Los_Angeles",
    "pst": "America/Los_Angeles",
    "sast": "Africa/Johannesburg",
    "sgt": "Asia/Singapore",
    "west": "Europe/Lisbon",
    "z": "UTC",
}

_FIXED = re.compile(r"UTC([+-])(\d{1,2})(?::([0-5]\d)|\.(\d{1,2}))?", re.ASCII | re.IGNORECASE)
_BARE_OFFSET = re.compile(r"[+-]\d{1,2}(?::[0-5]\d)?", re.ASCII)
# Spellings of offsets that are not accepted, because their sign or meaning is ambiguous.
_OTHER_OFFSET = re.compile(r"\s*(?:GMT|UTC|Z)?\s*([+-]\s?\d{1,2}(?::[0-5]\d)?)\s*", re.ASCII | re.IGNORECASE)


def read_zone(text: str) -> str:
    """Return the name under which a zone is stored: proper case, and the current name for a legacy one."""
    name = normalize_zone(text)
    return _current_names().get(name, name)


def normalize_zone(text: str) -> str:
    """Return the name in proper case, legacy or not."""
    name = _names().get(text.lower()) or _normalize_fixed(text)
    if name is None:
        raise InvalidValue(
            "must be an IANA time zone such as Europe/Paris, or a UTC offset between -12 and +14 hours, such as "
            "UTC+5, UTC+5:30 or UTC-3.",
            suggestion=suggest_zone(text),
        )
    return name


def suggest_zone(text: str) -> str | None:
    """Return the zone that was probably meant: by its name, its city, an abbreviation or an offset; or None."""
    if offset := _OTHER_OFFSET.fullmatch(text):
        return _normalize_fixed(f"UTC{offset[1].replace(' ', '')}")
    cities = _cities()
    found = suggest(text.strip().replace(" ", "_"), _suggested_names(), {**cities, **ABBREVIATIONS})
    return cities.get(found, found) if found else None


def utc_of(wall: datetime, zone: str, fold: int = 0) -> datetime:
    """Convert a local time to UTC. In a gap, fold 0 uses the offset from before the gap."""
    try:
        return wall.replace(tzinfo=_rules(zone), fold=fold).astimezone(UTC)
    except OverflowError:
        raise InvalidValue("must be a date between the years 1 and {last}.", last=9998) from None


def is_only_time(local: datetime, utc: datetime, zone: str) -> bool:
    """Return whether a local time stands for this instant and no other; a time in a gap stands for none."""
    first = local.replace(tzinfo=_rules(zone), fold=0)
    offset = first.utcoffset()
    return offset == first.replace(fold=1).utcoffset() and local - utc.replace(tzinfo=None) == offset


def local_of(utc: datetime, zone: str) -> datetime:
    return in_zone(utc, zone).replace(tzinfo=None, fold=0)


def in_zone(utc: datetime, zone: str) -> datetime:
    """Convert to an aware datetime in the zone; `fold` is 1 for the second of two equal local times."""
    try:
        return utc.astimezone(_rules(zone))
    except OverflowError:
        raise InvalidValue("must be a date between the years 1 and {last}.", last=9998) from None


def offset_of(utc: datetime, zone: str) -> timedelta:
    return in_zone(utc, zone).utcoffset() or timedelta(0)


def find_change(state: Callable[[datetime], object], before: datetime, after: datetime) -> datetime:
    """Find the first second at which the state differs from that at `before`; at `after` it must differ."""
    old = state(before)
    while after - before > SECOND:
        middle = before + (after - before) // 2 // SECOND * SECOND
        if state(middle) == old:
            before = middle
        else:
            after = middle
    return after


def abbreviation(utc: datetime, zone: str) -> str:
    """Return the abbreviation, such as CET or CEST; the name of a fixed offset; digits if tzdata has no letters."""
    return in_zone(utc, zone).tzname() or zone


def tzdata_version() -> str:
    """Return the version of tzdata, such as 2026b; `kalends timezone refresh` applies a new one."""
    first, _, _ = _read("tzdata.zi").partition("\n")
    return first.removeprefix("# version ").strip()


def zone_names() -> tuple[str, ...]:
    """Return all names of tzdata, including legacy ones."""
    return tuple(_names().values())


@cache
def _rules(zone: str) -> tzinfo:
    fixed = _FIXED.fullmatch(zone)
    if fixed is not None:
        return timezone(_fixed_offset(fixed), zone)
    if zone not in _names().values():
        raise InvalidValue("there is no time zone {zone}.", zone=zone)
    with _find_file(zone).open("rb") as compiled:
        return ZoneInfo.from_file(compiled, key=zone)


def _normalize_fixed(text: str) -> str | None:
    """Normalize `utc+05:30` and `+05:30` to `UTC+5:30`; `UTC+5.5` keeps its spelling, as in the original API."""
    fixed = _FIXED.fullmatch(f"UTC{text}" if _BARE_OFFSET.fullmatch(text) else text)
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
    # A hundredth of an hour is exactly 36 seconds; a float would be inexact.
    size = timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=36 * int((fraction or "0").ljust(2, "0")))
    return -size if sign == "-" else size


@cache
def _names() -> Mapping[str, str]:
    """Map the lower-case name of each zone and link to its proper case."""
    lines = (line.split() for line in _read("tzdata.zi").splitlines())
    names = (words[1] if words[0] == "Z" else words[2] for words in lines if words and words[0] in ("Z", "L"))
    return {name.lower(): name for name in names if name != "Factory"}


@cache
def _current_names() -> Mapping[str, str]:
    """Map legacy names to current ones. A country's zone in zone.tab is never legacy, even if it is a link."""
    countries = {line.split("\t")[2] for line in _read("zone.tab").splitlines() if line and not line.startswith("#")}
    links = (line.split() for line in _read("tzdata.zi").splitlines() if line.startswith("L "))
    never_legacy = countries | ZONES_WITHOUT_PLACE
    return {name: RENAMED_ZONES.get(name, target) for _, target, name in links if name not in never_legacy}


@cache
def _cities() -> Mapping[str, str]:
    """Map the last part of the names, in lower case, to the current name of the zone."""
    legacy = _current_names()
    names = [name for name in _names().values() if name.startswith(REGIONS)]
    names.sort(key=lambda name: name not in legacy)  # Current names come last and take precedence.
    return {name.rpartition("/")[2].lower(): legacy.get(name, name) for name in names}


@cache
def _suggested_names() -> tuple[str, ...]:
    """Return all names of zones without digits, and the cities in them."""
    return (*[name for name in _names().values() if not re.search(r"\d", name)], *_cities())


@cache
def _read(path: str) -> str:
    return _find_file(path).read_text(encoding="utf-8")


def _find_file(path: str) -> Traversable:
    """Return a file of tzdata.

    `ZoneInfo(name)` prefers the files of the operating system, so two machines, or a server and its worker after a
    system update, could disagree about a time. Reading the package, whose version is locked, avoids this. The
    interpreter's setting PYTHONTZPATH still takes precedence; zones that are missing there come from the package.
    """
    for folder in filter(None, os.environ.get("PYTHONTZPATH", "").split(os.pathsep)):
        if (file := Path(folder, path)).is_file():
            return file
    return resources.files("tzdata").joinpath("zoneinfo", path)
