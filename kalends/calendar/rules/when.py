"""Dates and times in the event form: a day, a time of day and, for a repeated hour, a UTC offset."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

from kalends.core.errors import InvalidValue
from kalends.core.messages import Message
from kalends.core.times import RepeatedTime, SkippedTime, check_local_time, format_offset, offset_of, read_time_of_day
from kalends.core.zones import read_zone

SKIPPED: Final = "skipped"
REPEATED: Final = "repeated"


@dataclass(frozen=True, slots=True)
class TimeProblem:
    """A local time that does not exist or occurs twice, with an explanation and the choices."""

    kind: str
    message: Message
    becomes: str = ""  # the time that replaces a skipped time
    offsets: tuple[str, ...] = ()


def combine(day: str, time_text: str, offset: str, zone: str) -> str:
    """Return a date in the API's format. Keep an invalid time as it is: the API explains what is wrong."""
    if not time_text:
        return day
    moment = read_time_of_day(time_text)
    if moment is None:
        return f"{day} {time_text}"
    problem = find_problem(day, time_text, zone) if offset else None
    suffix = offset if problem is not None and offset in problem.offsets else ""
    return f"{day} {moment:%H:%M:%S}{suffix}"


def split_date(text: str) -> tuple[str, str, str]:
    """Split an API date into day, time and offset."""
    day, _, rest = text.replace("T", " ").partition(" ")
    for sign in ("+", "-"):
        moment, found, offset = rest.partition(sign)
        if found:
            return day, moment.removesuffix(":00"), sign + offset
    return day, rest.removesuffix(":00"), ""


def end_of(start_day: str, start_time: str, end_day: str, end_time: str, *, all_day: bool) -> tuple[str, str]:
    """Return the end day and time. The default is the start day or, if the event passes midnight, the next day."""
    if all_day:
        return end_day or start_day, ""
    end_time = end_time or start_time
    if end_day:
        return end_day, end_time
    first, last = read_time_of_day(start_time), read_time_of_day(end_time)
    is_next_day = first is not None and last is not None and last < first
    day = _read_day(start_day)
    return ((day + timedelta(days=1)).isoformat() if is_next_day and day else start_day), end_time


def find_offset(wall: datetime, zone: str, instant: datetime) -> str:
    """Return the offset of a stored time, if the local time occurs twice."""
    is_repeated = isinstance(check_local_time(wall, zone), RepeatedTime)
    return format_offset(offset_of(instant, zone)) if is_repeated else ""


def find_problem(day: str, time_text: str, zone: str) -> TimeProblem | None:
    """Explain a local time that does not exist or occurs twice. Return None if there is no problem."""
    parsed, moment = _read_day(day), read_time_of_day(time_text)
    if parsed is None or moment is None:
        return None
    wall = datetime.combine(parsed, moment)
    try:
        found = check_local_time(wall, read_zone(zone))
    except InvalidValue:
        return None  # saving the event reports an invalid zone or year
    values = {"time": f"{wall:%H:%M}", "zone": zone}
    if isinstance(found, SkippedTime):
        message = Message(
            "On this day, {time} does not exist in {zone}: clocks are put forward. It becomes {other}.",
            other=f"{found.becomes:%H:%M}",
            **values,
        )
        return TimeProblem(SKIPPED, message, becomes=f"{found.becomes:%H:%M}")
    if isinstance(found, RepeatedTime):
        message = Message(
            "On this day, {time} occurs twice in {zone}: clocks are put back. Choose one of the two.", **values
        )
        return TimeProblem(REPEATED, message, offsets=(format_offset(found.first), format_offset(found.second)))
    return None


def _read_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
