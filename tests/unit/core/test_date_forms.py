"""Every form of a date that is accepted, against an independent model of the table in docs/time.md."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from kalends.core.date_forms import RelativeDate, make_absolute, read_datetime
from kalends.core.errors import InvalidValue
from kalends.core.times import DateTimeInput, resolve, to_utc
from tests.unit.core.vector_rows import quick_settings

ZONE = "America/New_York"
NOW = datetime(2026, 11, 16, 2, 15, 30, tzinfo=UTC)  # 15 November, 21:15:30 in New York
ISO_MESSAGE = (
    "must be YYYY-MM-DD or YYYY-MM-DD HH:MM:SS, optionally with Z or an offset such as +02:00 "
    "(encode + as %2B in URLs)."
)


def read_utc(text: str, now: datetime = NOW, zone: str = ZONE) -> datetime:
    return to_utc(make_absolute(read_datetime(text), now, zone), zone)


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("now", "2026-11-15 21:15:30"),
        ("today", "2026-11-15 00:00:00"),
        ("tomorrow", "2026-11-16 00:00:00"),
        ("yesterday", "2026-11-14 00:00:00"),
        ("  Tomorrow  10:00 ", "2026-11-16 10:00:00"),
        ("today 9:30 pm", "2026-11-15 21:30:00"),
        ("today 10:00 UTC", "2026-11-16 05:00:00"),  # The day has already begun in UTC.
        ("tomorrow 10:00 +02:00", "2026-11-17 03:00:00"),
        ("+1 week", "2026-11-22 21:15:30"),
        (" 1 week", "2026-11-22 21:15:30"),
        ("+1week", "2026-11-22 21:15:30"),
        ("-3 days", "2026-11-12 21:15:30"),
        ("+90 MINUTES", "2026-11-15 22:45:30"),
        ("-24 hours", "2026-11-14 21:15:30"),
        ("+3 months", "2027-02-15 21:15:30"),
        ("-11 months", "2025-12-15 21:15:30"),
        ("+2 years", "2028-11-15 21:15:30"),
        ("2026-9-5", "2026-09-05 00:00:00"),
        ("2026/11/15", "2026-11-15 00:00:00"),
        ("2026/9/5", "2026-09-05 00:00:00"),
        ("2026/11/15T11:30", "2026-11-15 11:30:00"),
        ("2026-11-15 9:30", "2026-11-15 09:30:00"),
        ("2026-11-15 10:00 AM", "2026-11-15 10:00:00"),
        ("2026-11-15 10:00:00 pm", "2026-11-15 22:00:00"),
        ("2026-11-15 12:00AM", "2026-11-15 00:00:00"),
        ("2026-11-15 12:00 PM", "2026-11-15 12:00:00"),
        ("11/15/2026", "2026-11-15 00:00:00"),
        ("05/05/2027 10:00 AM", "2027-05-05 10:00:00"),
        ("November 15, 2026", "2026-11-15 00:00:00"),
        ("Nov 15 2026", "2026-11-15 00:00:00"),
        ("15 November 2026", "2026-11-15 00:00:00"),
        ("2026-11", "2026-11-01 00:00:00"),
        ("Sun, 15 Nov 2026 11:30:00 +0000", "2026-11-15 06:30:00"),
        ("Fri, 15 Nov 2026 11:30 GMT", "2026-11-15 06:30:00"),  # The weekday is not checked.
        ("2026-11-15 11:30:00 UTC", "2026-11-15 06:30:00"),
        ("2026-11-15 11:30 z", "2026-11-15 06:30:00"),
        ("2026-11-15 11:30 +02:00", "2026-11-15 04:30:00"),
        ("11/15/2026 11:30 am europe/berlin", "2026-11-15 05:30:00"),
        ("15 Nov 2026 11:30 Etc/GMT+5", "2026-11-15 11:30:00"),
    ],
)
def test_form_is_accepted(text: str, local: str) -> None:
    assert resolve(make_absolute(read_datetime(text), NOW, ZONE), ZONE).wall == datetime.fromisoformat(local)


REJECTED = [
    *("20261115", "1806660000", "20261115T113000", "2026", "10:30"),  # digit strings
    *("11/15/26", "15 Nov 26", "26-11-15"),  # two-digit years
    *("15.11.2026", "15-11-2026", "15-Nov-2026", "15/11/2026", "15/11/2026 10:00"),
    *("2026-11-15 10:00 CET", "2026-11-15 10:00 EST", "2026-11-15 10:00 PST", "2026-11-15 Europe/Berlin"),
    *("2026-11-15 10:00 Europe/Nowhere", "2026-11-15 10:00 UTC+2", "2026-11-15 10:30 02:00"),
    *("next friday", "first day of next month", "monday", "noon", "midnight", "tomorrow noon", "1 week ago"),
    *("+1 week 2 hours", "+1 fortnight", "+10000 days", "+1.5 days", "+ week", "now 10:00", "now UTC"),
    *("15th November 2026", "Sept 5, 2026", "November 2026", "Nov. 15, 2026", "15 November, 2026"),
    *("2026-11-15 13:00 PM", "2026-11-15 0:30 AM", "2026-11-15 10 AM", "2026-11-15 9", "2026-11-15 24:00"),
    *("Sun, 15 Nov 2026", "Sun, 15 Nov 2026 11:30", "Xyz, 15 Nov 2026 11:30:00 +0000"),
    *("2026-11 10:00", "2026-13", "2026/13/01", "13/01/2026", "2026/11/32"),
    *("today\u00a010:00", "２026-11-15", "nonsense", "", "@", "now" + " " * 70 + "x"),
]  # fmt: skip


@pytest.mark.parametrize("text", REJECTED)
def test_other_form_is_rejected_with_message_about_iso_forms(text: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        read_datetime(text)
    assert str(caught.value.message) == ISO_MESSAGE


def test_day_that_does_not_exist_is_named() -> None:
    with pytest.raises(InvalidValue) as caught:
        read_datetime("02/30/2027 10:00 AM")
    assert str(caught.value.message) == "is not a valid date: 2027-02-30 does not exist."


@pytest.mark.parametrize(
    "text", ["+9999 years", "-2026 years", "-9999 months", "9999/01/01", "0001/01/01 0:00 +14:00"]
)
def test_years_outside_of_range_are_rejected(text: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        read_utc(text, datetime(9990, 1, 1, tzinfo=UTC) if text.startswith("+") else datetime(800, 1, 1, tzinfo=UTC))
    assert str(caught.value.message) == "must be a date between the years 1 and 9998."


@pytest.mark.parametrize(
    ("now", "text", "local"),
    [
        ("2027-01-31 12:00", "+1 month", "2027-02-28 12:00:00"),
        ("2028-01-31 12:00", "+1 month", "2028-02-29 12:00:00"),
        ("2028-02-29 12:00", "+1 year", "2029-02-28 12:00:00"),
        ("2027-12-31 12:00", "-1 month", "2027-11-30 12:00:00"),
        ("2027-12-31 12:00", "+0 months", "2027-12-31 12:00:00"),
    ],
)
def test_month_that_is_too_short_ends_on_its_last_day(now: str, text: str, local: str) -> None:
    now_utc = datetime.fromisoformat(now).replace(tzinfo=ZoneInfo(ZONE)).astimezone(UTC)
    moment = make_absolute(read_datetime(text), now_utc, ZONE)
    assert (moment.wall, moment.offset) == (datetime.fromisoformat(local), None)


# Clock changes ------------------------------------------------------------------------------

# New York skips 02:30 on 14 March and shows 01:30 twice on 7 November 2027: local time, what it means, UTC.
CHANGES = [
    (datetime(2027, 3, 14, 2, 30), "2027-03-14 03:30:00", "2027-03-14 07:30:00"),
    (datetime(2027, 11, 7, 1, 30), "2027-11-07 01:30:00", "2027-11-07 05:30:00"),
]
LOCAL_FORMS = [
    *("{0:%Y-%m-%d %H:%M}", "{0.year}-{0.month}-{0.day} {0.hour}:{0:%M}", "{0:%Y/%m/%dT%H:%M:%S}"),
    *("{0:%m/%d/%Y %I:%M %p}", "{0:%B} {0.day}, {0.year} {0:%H:%M}", "{0:%b} {0.day} {0.year} {0:%I:%M:%S %p}"),
    *("{0.day} {0:%B} {0.year} {0:%H:%M}", "today {0:%H:%M}", "{0:%Y-%m-%d %H:%M} America/New_York"),
]  # fmt: skip
INSTANT_FORMS = [
    *("@{1}", "{0:%Y-%m-%dT%H:%M:%S}Z", "{0:%Y-%m-%d %H:%M:%S} UTC", "{0:%m/%d/%Y %I:%M %p} GMT"),
    *("{0:%a, %d %b %Y %H:%M:%S} +0000", "{0:%Y/%m/%d %H:%M} +00:00", "{0:%d %B %Y %H:%M} Etc/UTC"),
]


@pytest.mark.parametrize(("wall", "shown", "instant"), CHANGES)
@pytest.mark.parametrize("form", LOCAL_FORMS)
def test_local_forms_round_trip_where_clocks_change(form: str, wall: datetime, shown: str, instant: str) -> None:
    noon = datetime.combine(wall.date(), time(17), tzinfo=UTC)
    resolved = resolve(make_absolute(read_datetime(form.format(wall)), noon, ZONE), ZONE)
    assert (str(resolved.wall), str(resolved.utc)) == (shown, f"{instant}+00:00")
    assert resolve(make_absolute(read_datetime(str(resolved.wall)), noon, ZONE), ZONE) == resolved


@pytest.mark.parametrize("hours", [0, 1])  # before and after the change: in November the two 01:30
@pytest.mark.parametrize("instant", [instant for _, _, instant in CHANGES])
@pytest.mark.parametrize("form", [*INSTANT_FORMS, "now", "+0 hours"])
def test_instants_round_trip_where_clocks_change(form: str, instant: str, hours: int) -> None:
    moment = datetime.fromisoformat(f"{instant}+00:00") + timedelta(hours=hours)
    text = form.format(moment, int(moment.timestamp()))
    assert read_utc(text, now=moment) == moment


@pytest.mark.parametrize(
    ("now", "text", "utc"),
    [
        # An hour is an instant later; a day is the same time on the next day.
        ("2027-03-13 07:30", "+24 hours", "2027-03-14 07:30"),
        ("2027-03-13 07:30", "+1 day", "2027-03-14 07:30"),  # 02:30 does not exist: 03:30
        ("2027-11-06 05:30", "+1 day", "2027-11-07 05:30"),  # the first 01:30
        ("2027-11-07 05:30", "+1 hour", "2027-11-07 06:30"),  # the second 01:30
        ("2027-11-06 16:00", "+1 day", "2027-11-07 17:00"),
        ("2027-11-06 16:00", "+24 hours", "2027-11-07 16:00"),
    ],
)
def test_relative_dates_across_clock_changes(now: str, text: str, utc: str) -> None:
    assert read_utc(text, datetime.fromisoformat(f"{now}+00:00")) == datetime.fromisoformat(f"{utc}+00:00")


# The model ----------------------------------------------------------------------------------

DAY_FORMS: list[Callable[[date], str]] = [
    lambda day: f"{day.year:04}-{day.month}-{day.day}",
    lambda day: f"{day.year:04}/{day.month:02}/{day.day:02}",
    lambda day: f"{day.year:04}/{day.month}/{day.day}",
    lambda day: f"{day.month}/{day.day}/{day.year:04}",
    lambda day: f"{day:%B} {day.day}, {day.year:04}",
    lambda day: f"{day:%b} {day.day:02} {day.year:04}",
    lambda day: f"{day.day} {day:%B} {day.year:04}",
    lambda day: f"{day.day:02} {day:%b} {day.year:04}",
]
TIME_FORMS: list[Callable[[time], tuple[str, time]]] = [
    lambda at: (f"{at.hour}:{at:%M}", at.replace(second=0)),
    lambda at: (f"{at:%H:%M:%S}", at),
    lambda at: (f"{at:%I:%M %p}", at.replace(second=0)),
    lambda at: (f"{(at.hour + 11) % 12 + 1}:{at:%M:%S}{at:%p}", at),
]
ZONES = {
    "": None,
    "Z": ZoneInfo("UTC"),
    " UTC": ZoneInfo("UTC"),
    "GMT": ZoneInfo("UTC"),
    "+05:30": ZoneInfo("Asia/Kolkata"),
    " -0300": ZoneInfo("America/Sao_Paulo"),
    " Asia/Tokyo": ZoneInfo("Asia/Tokyo"),
    " America/Port-au-Prince": ZoneInfo("America/Port-au-Prince"),
}
WORDS = {"today": 0, "tomorrow": 1, "yesterday": -1}
days = st.dates(date(2020, 1, 1), date(2099, 12, 31))
times_of_day = st.builds(time, st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
instants = st.datetimes(datetime(2020, 1, 1), datetime(2099, 12, 31)).map(lambda at: at.replace(microsecond=0))
casings = st.sampled_from([str.upper, str.lower, str])


@quick_settings
@given(
    days, times_of_day, st.sampled_from(DAY_FORMS), st.sampled_from(TIME_FORMS), st.sampled_from("T "),
    st.sampled_from(sorted(ZONES)), casings,
)  # fmt: skip
def test_dates_with_times_agree_with_model(
    day: date, at: time, write_day: Callable[[date], str], write_time: Callable[[time], tuple[str, time]],
    separator: str, zone: str, cased: Callable[[str], str],
) -> None:  # fmt: skip
    time_text, at = write_time(at)
    expected = datetime.combine(day, at, tzinfo=ZONES[zone] or ZoneInfo(ZONE)).astimezone(UTC)
    assert read_utc(f" {cased(write_day(day) + separator + time_text + zone)}\n") == expected
    assert read_datetime(cased(write_day(day))) == DateTimeInput(datetime.combine(day, time()), None, True)
    assert read_datetime(f"{day:%Y-%m}") == DateTimeInput(datetime.combine(day.replace(day=1), time()), None, True)


@quick_settings
@given(instants, st.sampled_from(sorted(WORDS)), times_of_day, casings)
def test_words_agree_with_model(now: datetime, word: str, at: time, cased: Callable[[str], str]) -> None:
    now_utc = now.replace(tzinfo=UTC)
    day = now_utc.astimezone(ZoneInfo(ZONE)).date() + timedelta(days=WORDS[word])
    for text, expected in ((word, time()), (f"{word} {at:%H:%M:%S}", at)):
        moment = make_absolute(read_datetime(cased(text)), now_utc, ZONE)
        assert moment == DateTimeInput(datetime.combine(day, expected), None, is_date_only=text == word)
    assert read_utc(cased("now"), now_utc) == now_utc


@quick_settings
@given(
    instants, st.integers(-400, 400), st.sampled_from(["minute", "hour", "day", "week", "month", "year"]),
    st.booleans(), casings,
)  # fmt: skip
def test_amounts_agree_with_model(
    now: datetime, amount: int, unit: str, plural: bool, cased: Callable[[str], str]
) -> None:
    now_utc = now.replace(tzinfo=UTC)
    value = read_datetime(cased(f"{amount:+} {unit}{'s' if plural else ''}"))
    assert isinstance(value, RelativeDate)
    moment = make_absolute(value, now_utc, ZONE)
    local = now_utc.astimezone(ZoneInfo(ZONE)).replace(tzinfo=None, fold=0)
    if unit in ("minute", "hour"):
        seconds = {"minute": 60, "hour": 3600}[unit] * amount
        assert to_utc(moment, ZONE) == now_utc + timedelta(seconds=seconds)
    elif unit in ("day", "week"):
        assert moment.wall == local + timedelta(days=amount * (7 if unit == "week" else 1))
    else:
        months = local.year * 12 + local.month - 1 + amount * (12 if unit == "year" else 1)
        assert moment.wall.time() == local.time()
        assert moment.wall.year * 12 + moment.wall.month - 1 == months
        is_last = (moment.wall + timedelta(days=1)).month != moment.wall.month
        assert moment.wall.day == local.day or (is_last and moment.wall.day < local.day)


TOKENS = [
    *("2026", "11", "15", "9", "0", "-", "/", ":", ".", ",", " ", "T", "+", "am", "pm", "now", "today", "tomorrow"),
    *("week", "months", "November", "Nov", "Sun,", "UTC", "Z", "Europe/Berlin", "@", "\x00", "\u00a0", "İ"),
]  # fmt: skip


@quick_settings
@given(st.lists(st.sampled_from(TOKENS), max_size=14).map("".join))
def test_any_text_is_read_or_rejected(text: str) -> None:
    try:
        value = read_datetime(text)
    except InvalidValue:
        return
    assert isinstance(make_absolute(value, NOW, ZONE), DateTimeInput)
