"""Times of a web page in the event form: the zone of the page, of the site, or the offset of another place."""

import pytest

from kalends.calendar.console.from_url import localize_times

BERLIN = "Europe/Berlin"


@pytest.mark.parametrize(
    ("start", "end", "stated", "expected"),
    [
        ("2027-05-01 19:30:00", "2027-05-01 21:00:00", None, {"timezone": BERLIN}),
        (
            *("2027-05-01 19:30:00+02:00", "2027-05-01 21:00:00+02:00", None),
            {"timezone": BERLIN, "start_date": "2027-05-01 19:30:00", "end_date": "2027-05-01 21:00:00"},
        ),
        ("2027-05-01 17:30:00+00:00", None, None, {"timezone": BERLIN, "start_date": "2027-05-01 19:30:00"}),
        ("2027-05-01 19:30:00+01:00", None, None, {"timezone": "UTC+1", "start_date": "2027-05-01 19:30:00"}),
        ("2027-01-01 19:30:00+05:30", None, None, {"timezone": "UTC+5:30", "start_date": "2027-01-01 19:30:00"}),
        (
            *("2027-05-01 19:30:00+09:00", "2027-05-01 12:00:00+00:00", "Asia/Tokyo"),
            {"timezone": "Asia/Tokyo", "start_date": "2027-05-01 19:30:00", "end_date": "2027-05-01 21:00:00"},
        ),
        ("2027-10-31 02:30:00+01:00", None, None, {"timezone": BERLIN, "start_date": "2027-10-31 02:30:00+01:00"}),
        ("2027-05-01", "2027-05-02", None, {}),
        ("now", None, None, {}),
        (None, None, None, {}),
    ],
)
def test_times_are_shown_in_their_zone(
    start: str | None, end: str | None, stated: str | None, expected: dict[str, str]
) -> None:
    given = {"start_date": start, "end_date": end, "timezone": stated}
    assert localize_times({name: text for name, text in given.items() if text}, BERLIN) == expected
