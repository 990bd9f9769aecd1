"""Names of zones, and where the zone database comes from."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path

import pytest

from kalends.core.errors import InvalidValue
from kalends.core.times import local_of, offset_of, utc_of
from kalends.core.zones import RENAMED_ZONES, normalize_zone, read_zone, tzdata_version, zone_names


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("Europe/Paris", "Europe/Paris"),
        ("europe/PARIS", "Europe/Paris"),
        ("america/argentina/buenos_aires", "America/Argentina/Buenos_Aires"),
        ("utc", "UTC"),
        ("gmt", "GMT"),
        ("etc/gmt+5", "Etc/GMT+5"),
        ("US/Eastern", "America/New_York"),
        ("asia/calcutta", "Asia/Kolkata"),
        ("Europe/Kiev", "Europe/Kyiv"),
        ("GB", "Europe/London"),
        ("Iceland", "Atlantic/Reykjavik"),
        ("Zulu", "Etc/UTC"),
        # Links, but the zones of their countries today.
        ("Europe/Amsterdam", "Europe/Amsterdam"),
        ("Europe/Oslo", "Europe/Oslo"),
        ("Atlantic/Reykjavik", "Atlantic/Reykjavik"),
        # Links, but rules without a place.
        ("EST", "EST"),
        ("cet", "CET"),
        ("UTC+5", "UTC+5"),
        ("utc+05", "UTC+5"),
        ("UTC+5:30", "UTC+5:30"),
        ("UTC+05:30", "UTC+5:30"),
        ("UTC+5.5", "UTC+5.5"),
        ("UTC+5.50", "UTC+5.5"),
        ("UTC+5.75", "UTC+5.75"),
        ("UTC+5:00", "UTC+5"),
        ("UTC-0", "UTC+0"),
        ("UTC-3", "UTC-3"),
        ("UTC-12", "UTC-12"),
        ("UTC+14", "UTC+14"),
        ("UTC-0:30", "UTC-0:30"),
        ("+05:00", "UTC+5"),
        ("-3", "UTC-3"),
        ("+5:30", "UTC+5:30"),
        ("-00:00", "UTC+0"),
    ],
)
def test_timezone_is_stored_under_canonical_name(name: str, stored: str) -> None:
    assert read_zone(name) == stored
    assert read_zone(stored) == stored


INVALID_ZONES = [
    "",
    "0",
    "Z",
    "PST",
    "Nope/Zone",
    " Europe/Paris ",
    "+0500",
    "+5.5",
    "+15",
    "05:00",
    "+05:00 ",
    "UTC+15",
    "UTC+14:30",
    "UTC-12.5",
    "UTC-12:01",
    "UTC+5:60",
    "UTC+5:3",
    "UTC+5.123",
    "UTC+5.33",
    "UTC5",
    "UTC+",
    "Factory",
    "localtime",
    "posixrules",
    "tzdata.zi",
    "zone.tab",
    "Europe",
    "Europe/",
    "../../etc/passwd",
    "Europe/Paris\x00",
    "\ud800",
    "GMT+5",
    "UTC+٥",
]


@pytest.mark.parametrize("name", INVALID_ZONES)
def test_other_notations_are_rejected(name: str) -> None:
    with pytest.raises(InvalidValue):
        read_zone(name)


def test_all_tzdata_names_and_canonical_names_are_usable() -> None:
    instant = datetime(2027, 7, 1, tzinfo=UTC)
    assert len(zone_names()) > 590
    for name in zone_names():
        assert normalize_zone(name.upper()) == name
        assert offset_of(instant, read_zone(name)) == offset_of(instant, name), name
        assert read_zone(read_zone(name)) == read_zone(name)


def test_renamed_timezones_have_equal_offsets() -> None:
    for old, new in RENAMED_ZONES.items():
        assert read_zone(old) == new
        for year in (1971, 1999, 2027):
            instant = datetime(year, 7, 1, tzinfo=UTC)
            assert offset_of(instant, old) == offset_of(instant, new), (old, year)


def test_fixed_offsets_convert() -> None:
    noon = datetime(2027, 7, 1, 12)
    assert utc_of(noon, "UTC+14") == datetime(2027, 6, 30, 22, tzinfo=UTC)
    assert utc_of(noon, "UTC-3:30") == datetime(2027, 7, 1, 15, 30, tzinfo=UTC)
    assert local_of(utc_of(noon, "UTC+5.75"), "UTC+5.75") == noon
    assert offset_of(utc_of(noon, "UTC-0:30"), "UTC-0:30") == timedelta(minutes=-30)


def test_unknown_stored_timezone_is_an_error() -> None:
    with pytest.raises(InvalidValue):
        utc_of(datetime(2027, 1, 1), "Nope/Zone")


def test_tzdata_package_takes_precedence_over_system() -> None:
    assert tzdata_version() == resources.files("tzdata").joinpath("zoneinfo", "tzdata.zi").read_text()[10:15]
    assert run_with_environment({}) == f"{tzdata_version()} 2027-07-01 10:00:00+00:00"


def test_tzdata_can_be_overridden(tmp_path: Path) -> None:
    package = resources.files("tzdata").joinpath("zoneinfo")
    names = package.joinpath("tzdata.zi").read_text(encoding="utf-8").partition("\n")[2]
    (tmp_path / "Europe").mkdir()
    (tmp_path / "tzdata.zi").write_text("# version 2099z\n" + names, encoding="utf-8")
    (tmp_path / "Europe/Paris").write_bytes(package.joinpath("Asia", "Tokyo").read_bytes())
    assert run_with_environment({"PYTHONTZPATH": str(tmp_path)}) == "2099z 2027-07-01 03:00:00+00:00"


def run_with_environment(environment: dict[str, str]) -> str:
    program = (
        "from datetime import datetime; from kalends.core.times import utc_of;"
        "from kalends.core.zones import tzdata_version;"
        "print(tzdata_version(), utc_of(datetime(2027, 7, 1, 12), 'Europe/Paris'))"
    )
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONTZPATH"}
    response = subprocess.run(
        [sys.executable, "-c", program],
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return response.stdout.strip()
