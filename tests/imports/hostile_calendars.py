"""Calendars that are written to take time or memory."""

from collections.abc import Callable, Iterable, Mapping

from tests.soak import scaled

HEAD = "BEGIN:VCALENDAR\r\nX-WR-TIMEZONE:Europe/Berlin\r\n"
TAIL = "END:VCALENDAR\r\n"
SIZE = 10_000_000
DAYS = ",".join(map(str, range(1, 32)))
MONTHS = ",".join(map(str, range(1, 13)))
WEEKDAYS = "MO,TU,WE,TH,FR,SA,SU"
ORDINALS = ",".join(f"{number}{day}" for number in (1, 2, 3, 4, 5, -1, -2) for day in WEEKDAYS.split(","))


def make_event(number: int, *lines: str, start: str = "20270503T190000") -> str:
    rows = ["BEGIN:VEVENT", f"UID:{number}", f"DTSTART:{start}", f"SUMMARY:Event {number}", *lines, "END:VEVENT", ""]
    return "\r\n".join(rows)


def make_calendar(events: Iterable[str]) -> bytes:
    return f"{HEAD}{''.join(events)}{TAIL}".encode()


def repeat_rule(rule: str, *lines: str, start: str = "20270503T190000") -> bytes:
    """As many events with this rule as a file may have, in a soak; otherwise an eighth of them."""
    event = make_event(0, f"RRULE:{rule}", *lines, start=start)
    number = min(SIZE // len(event.encode()) - 100, 14_000) // scaled(8, 1)
    return make_calendar(make_event(index, f"RRULE:{rule}", *lines, start=start) for index in range(number))


def one_rule(rule: str, start: str = "20270503T190000") -> bytes:
    return make_calendar([make_event(0, f"RRULE:{rule}", start=start)])


def nest(depth: int, name: str = "VEVENT") -> bytes:
    return f"{HEAD}{f'BEGIN:{name}\r\n' * depth}{f'END:{name}\r\n' * depth}{TAIL}".encode()


def list_dates(name: str, number: int) -> bytes:
    dates = ",".join(
        f"2027{month:02}{day:02}T{hour:02}0000"
        for month in range(1, 13)
        for day in range(1, 29)
        for hour in range(24)
    )
    values = [dates] * (number // 8064 + 1)
    return make_calendar([make_event(0, "RRULE:FREQ=DAILY", *[f"{name}:{value}" for value in values])])


def make_exceptions(number: int) -> bytes:
    slots = (f"2027{1 + index % 12:02}{1 + index % 28:02}T{index % 24:02}0000" for index in range(number))
    exceptions = (make_event(0, f"RECURRENCE-ID:{slot}") for slot in slots)
    return make_calendar([make_event(0, "RRULE:FREQ=DAILY"), *exceptions])


def make_lines(number: int, line: str) -> bytes:
    """One event with as many properties."""
    return make_calendar([make_event(0, *[line] * number)])


def make_digits() -> bytes:
    digits = "9" * 200_000
    return make_calendar([make_event(0, f"SEQUENCE:{digits}", f"GEO:{digits};1", f"DURATION:P{digits}D")])


def make_zones(number: int) -> bytes:
    zone = "BEGIN:VTIMEZONE\r\nTZID:Zone {0}\r\n{1}END:VTIMEZONE\r\n"
    observance = (
        "BEGIN:STANDARD\r\nDTSTART:16010101T{0:02}0000\r\nTZOFFSETFROM:+{0:02}17\r\nTZOFFSETTO:+{1:02}17\r\n"
        "RRULE:FREQ=YEARLY;BYMONTH={2};BYDAY=-1SU\r\nEND:STANDARD\r\n"
    )
    rules = "".join(observance.format(month, month + 1, month) for month in range(1, 13))
    zones = "".join(zone.format(index, rules) for index in range(number))
    events = [make_event(index).replace("DTSTART", f"DTSTART;TZID=Zone {index}") for index in range(number)]
    return f"{HEAD}{zones}{''.join(events)}{TAIL}".encode()


CALENDARS: Mapping[str, Callable[[], bytes]] = {
    "secondly": lambda: one_rule("FREQ=SECONDLY"),
    "minutely": lambda: one_rule("FREQ=MINUTELY;COUNT=2000000"),
    "thirtieth_of_february": lambda: one_rule("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"),
    "thirtieth_of_february_since_year_1": lambda: one_rule("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "00010101T000000"),
    "daily_since_year_1": lambda: one_rule("FREQ=DAILY", "00010101T000000"),
    "daily_until_year_9999": lambda: one_rule("FREQ=DAILY;UNTIL=99991231", "20270503T190000"),
    "daily_in_year_9998": lambda: one_rule("FREQ=DAILY", "99981231T235959"),
    "dense_lists": lambda: one_rule(f"FREQ=DAILY;BYMONTH={MONTHS};BYMONTHDAY={DAYS};BYDAY={WEEKDAYS}"),
    "dense_ordinals": lambda: one_rule(f"FREQ=YEARLY;BYMONTH={MONTHS};BYDAY={ORDINALS};BYSETPOS=1,2,3,-1,-2,-3"),
    "dense_times": lambda: one_rule(f"FREQ=DAILY;BYHOUR={','.join(map(str, range(24)))};BYMINUTE={DAYS}"),
    "all_days_of_the_year": lambda: one_rule(f"FREQ=YEARLY;BYYEARDAY={','.join(map(str, range(1, 120)))}"),
    "huge_count": lambda: one_rule("FREQ=YEARLY;INTERVAL=999;COUNT=999999999"),
    "many_february_rules": lambda: repeat_rule("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"),
    "many_dense_rules": lambda: repeat_rule(f"FREQ=MONTHLY;BYMONTHDAY={DAYS};BYDAY={WEEKDAYS};BYSETPOS=1,-1"),
    "many_old_daily_rules": lambda: repeat_rule("FREQ=DAILY", start="00020101T000000"),
    "many_large_counts": lambda: repeat_rule("FREQ=DAILY;COUNT=19999"),
    "many_week_rules": lambda: repeat_rule("FREQ=YEARLY;BYWEEKNO=20", start="19700101T000000"),
    "many_excluded_dates": lambda: list_dates("EXDATE", 400_000),
    "many_further_dates": lambda: list_dates("RDATE", 400_000),
    "many_zones": lambda: make_zones(2000),
    "many_properties": lambda: make_lines(300_000, "CATEGORIES:A,B"),
    "many_events": lambda: make_calendar(make_event(index) for index in range(80_000)),
    "many_dates_of_one_series": lambda: make_exceptions(13_000),
    "nesting": lambda: nest(10_000, "VALARM"),
    "nested_events": lambda: nest(10_000),
    "long_line": lambda: make_calendar([make_event(0, f"DESCRIPTION:{'x' * 9_900_000}")]),
    "long_folded_line": lambda: make_calendar([make_event(0, f"DESCRIPTION:{'\r\n x' * 2_400_000}")]),
    "long_line_of_quotes": lambda: make_calendar([make_event(0, f"DESCRIPTION;X={'"' * 9_900_001}:x")]),
    "long_line_of_brackets": lambda: make_lines(40, f"DESCRIPTION:{'<' * 240_000}"),
    "long_line_of_tags": lambda: make_lines(40, f"X-ALT-DESC;FMTTYPE=text/html:{'<body ' * 40_000}"),
    "long_line_of_locations": lambda: make_lines(40, f"LOCATION:{'https://(' * 26_000}"),
    "long_parameters": lambda: make_lines(40, f"LOCATION{';A="b"' * 40_000}:x"),
    "continuation_lines": lambda: make_calendar([make_event(0, "DESCRIPTION:x", *["y"] * 350_000)]),
    "empty_lines": lambda: HEAD.encode() + b"\n" * (SIZE - 1000) + TAIL.encode(),
    "carriage_returns": lambda: HEAD.encode() + b"\r" * (SIZE - 1000) + TAIL.encode(),
    "only_line_ends": lambda: b"\r" * SIZE,
    "zeros": lambda: bytes(SIZE),
    "too_large": lambda: b"x" * (SIZE + 1),
    "utf16": lambda: b"\xff\xfe" + "BEGIN:VCALENDAR\n".encode("utf-16-le") * 300_000,
    "entities": lambda: make_lines(1, 'X-ALT-DESC;FMTTYPE=text/html:<!DOCTYPE x [<!ENTITY a "aa">]><b>&a;</b>'),
    "huge_numbers": make_digits,
}
