"""Time zones: known names, the current name for each, and the zones' rules.

The data comes from the tzdata package, never from the operating system.
"""

import os
import re
from collections.abc import Mapping
from datetime import timedelta, timezone, tzinfo
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from zoneinfo import ZoneInfo

from kalends.core.errors import InvalidValue
from kalends.core.words import suggest

MIN_OFFSET, MAX_OFFSET = timedelta(hours=-12), timedelta(hours=14)

# Names of rules rather than places. In tzdata, each links to a place that now follows the same rule (EST to
# America/Panama), but an author who writes EST does not mean Panama.
ZONES_WITHOUT_PLACE = {"UTC", "GMT", "EST", "MST", "HST", "CET", "MET", "EET", "WET"}
ZONES_WITHOUT_PLACE |= {"EST5EDT", "CST6CDT", "MST7MDT", "PST8PDT"}

# Legacy names that link to a place in another country, because both places have had the same time since 1970. The
# current name appears only in a comment in the tzdata source, which the compiled form lacks.
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

# Prefixes of zone names that end in a city or similar place.
REGIONS = (
    *("Africa/", "America/", "Antarctica/", "Arctic/", "Asia/"),
    *("Atlantic/", "Australia/", "Europe/", "Indian/", "Pacific/"),
)
# Abbreviations are not accepted as zones, but each one suggests the zone that it most often means.
ABBREVIATIONS = {
    "aedt": "Australia/Sydney", "aest": "Australia/Sydney", "akdt": "America/Anchorage", "akst": "America/Anchorage",
    "awst": "Australia/Perth", "brt": "America/Sao_Paulo", "bst": "Europe/London", "cdt": "America/Chicago",
    "cest": "Europe/Berlin", "cst": "America/Chicago", "edt": "America/New_York", "eest": "Europe/Athens",
    "hkt": "Asia/Hong_Kong", "ist": "Asia/Kolkata", "jst": "Asia/Tokyo", "kst": "Asia/Seoul", "mdt": "America/Denver",
    "mesz": "Europe/Berlin", "mez": "Europe/Berlin", "msk": "Europe/Moscow", "nzdt": "Pacific/Auckland",
    "nzst": "Pacific/Auckland", "pdt": "America/Los_Angeles", "pst": "America/Los_Angeles",
    "sast": "Africa/Johannesburg", "sgt": "Asia/Singapore", "west": "Europe/Lisbon", "z": "UTC",
}  # fmt: skip

_FIXED = re.compile(r"UTC([+-])(\d{1,2})(?::([0-5]\d)|\.(\d{1,2}))?", re.ASCII | re.IGNORECASE)
_BARE_OFFSET = re.compile(r"[+-]\d{1,2}(?::[0-5]\d)?", re.ASCII)
# Offset spellings that are rejected because their sign or meaning is ambiguous.
_OTHER_OFFSET = re.compile(r"\s*(?:GMT|UTC|Z)?\s*([+-]\s?\d{1,2}(?::[0-5]\d)?)\s*", re.ASCII | re.IGNORECASE)


def read_zone(text: str) -> str:
    """Return the zone name to store, in proper case; a legacy name becomes the current one."""
    name = normalize_zone(text)
    return _current_names().get(name, name)


def normalize_zone(text: str) -> str:
    """Return the zone name in proper case, whether legacy or current."""
    name = _names().get(text.lower()) or _normalize_fixed(text)
    if name is None:
        raise InvalidValue(
            "must be an IANA time zone such as Europe/Paris, or a UTC offset between -12 and +14 hours, such as "
            "UTC+5, UTC+5:30 or UTC-3.",
            suggestion=suggest_zone(text),
        )
    return name


def suggest_zone(text: str) -> str | None:
    """Return the zone probably meant by a name, city, abbreviation or offset, or None."""
    if offset := _OTHER_OFFSET.fullmatch(text):
        return _normalize_fixed(f"UTC{offset[1].replace(' ', '')}")
    cities = _cities()
    found = suggest(text.strip().replace(" ", "_"), _suggested_names(), {**cities, **ABBREVIATIONS})
    return cities.get(found, found) if found else None


def tzdata_version() -> str:
    """Return the tzdata version, such as 2026b; `kalends timezone refresh` applies a new version."""
    first, _, _ = _read("tzdata.zi").partition("\n")
    return first.removeprefix("# version ").strip()


def zone_names() -> tuple[str, ...]:
    """Return all tzdata names, including legacy names."""
    return tuple(_names().values())


@cache
def zone_rules(zone: str) -> tzinfo:
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
    # A hundredth of an hour is exactly 36 seconds; a float would not be exact.
    size = timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=36 * int((fraction or "0").ljust(2, "0")))
    return -size if sign == "-" else size


@cache
def _names() -> Mapping[str, str]:
    """Map lower-case zone and link names to their proper case."""
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
    """Map each name's last part, in lower case, to the zone's current name."""
    legacy = _current_names()
    names = [name for name in _names().values() if name.startswith(REGIONS)]
    names.sort(key=lambda name: name not in legacy)  # Current names come last and take precedence.
    return {name.rpartition("/")[2].lower(): legacy.get(name, name) for name in names}


@cache
def _suggested_names() -> tuple[str, ...]:
    """Return zone names without digits, plus all city names."""
    return (*[name for name in _names().values() if not re.search(r"\d", name)], *_cities())


@cache
def _read(path: str) -> str:
    return _find_file(path).read_text(encoding="utf-8")


def _find_file(path: str) -> Traversable:
    """Return a file from the `tzdata` package.

    `ZoneInfo(name)` prefers the operating system's files, so two machines could disagree about a time, and so could a
    server and its worker after a system update. The locked package avoids this. The setting PYTHONTZPATH still takes
    precedence; zones that are missing there come from the package.
    """
    for folder in filter(None, os.environ.get("PYTHONTZPATH", "").split(os.pathsep)):
        if (file := Path(folder, path)).is_file():
            return file
    return resources.files("tzdata").joinpath("zoneinfo", path)
