"""Times of day as people write them, and local times that do not exist or occur twice."""

from datetime import datetime, time, timedelta

import pytest

from kalends.core.times import RepeatedTime, SkippedTime, check_local_time, format_offset, read_time_of_day


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("19:30", time(19, 30)),
        ("19h", time(19)),
        ("19h30", time(19, 30)),
        ("7:30 pm", time(19, 30)),
        ("12 am", time(0)),
        ("12:05pm", time(12, 5)),
        ("19.30 Uhr", time(19, 30)),
        ("2031-04-01T19:30:00+02:00", time(19, 30)),
        ("2031-04-01 08:15", time(8, 15)),
        ("13 pm", None),
        ("25:00", None),
        ("soon", None),
        ("", None),
    ],
)
def test_time_of_day_is_read(text: str, expected: time | None) -> None:
    assert read_time_of_day(text) == expected


def test_local_times_are_checked() -> None:
    assert check_local_time(datetime(2031, 5, 1, 2, 30), "Europe/Berlin") is None
    assert check_local_time(datetime(2031, 3, 30, 2, 30), "Europe/Berlin") == SkippedTime(
        datetime(2031, 3, 30, 3, 30)
    )
    repeated = RepeatedTime(timedelta(hours=2), timedelta(hours=1))
    assert check_local_time(datetime(2031, 10, 26, 2, 30), "Europe/Berlin") == repeated
    assert [format_offset(timedelta(minutes=n)) for n in (0, 330, -210)] == ["+00:00", "+05:30", "-03:30"]
