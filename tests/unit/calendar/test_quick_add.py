"""Quick add: one line as an event, with lines in eight languages that were written before the parser."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from hypothesis import given, strategies as st

from kalends.calendar.rules.quick_add import MAX_LENGTH, Known, QuickEvent, read_line
from kalends.core.date_forms import DAY_CONNECTORS, DAY_PARTS, LATER_DAYS, MONTHS, TIME_PARTS, WEEKDAYS
from kalends.core.messages import LANGUAGES

FILES: Mapping[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text()) for path in sorted((Path(__file__).parent / "quick_add").glob("*.json"))
}
# Lines whose result differs from the intended one, with the reason.
DIFFERENT: Mapping[tuple[str, int], str] = {}
WEDNESDAY = datetime(2026, 11, 18, 10)
SITE = Known(
    venues=["Bell Inn", "Old Bell Inn", "Rathaus", "Mairie", "Oratorio", "公民館"],
    categories=["Quiz", "Live music"],
    tags=["beer", "quiz"],
)


LINES = [(language, number) for language, content in FILES.items() for number in range(len(content["lines"]))]


def read_file_line(language: str, line: str) -> QuickEvent:
    content = FILES[language]
    known = Known(content["venues"], content["categories"], content["tags"])
    return read_line(line, content["language"], datetime.fromisoformat(content["now"]), known)


def matches(language: str, number: int) -> bool:
    row = FILES[language]["lines"][number]
    event, expected = read_file_line(language, row["line"]), row["expect"]
    if "error" in expected:
        return event.missing == (expected["error"],)
    return not event.missing and describe(event) == expected


def describe(event: QuickEvent) -> dict[str, Any]:
    return {
        "title": event.title,
        "date": event.day and event.day.isoformat(),
        "end_date": event.last_day and event.last_day.isoformat(),
        "start": event.start and f"{event.start:%H:%M}",
        "end": event.end and f"{event.end:%H:%M}",
        "venue": next(iter(event.list_values("venue")), None),
        "cost": next(iter(event.list_values("cost")), None),
        "terms": [*event.list_values("category", "tag")],
    }


def read(line: str, language: str = "en", **options: bool) -> QuickEvent:
    return read_line(line, language, WEDNESDAY, SITE, **options)


# The lines -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("language", "number"), LINES)
def test_line_is_read_as_intended(language: str, number: int) -> None:
    assert matches(language, number) != ((language, number) in DIFFERENT)


@pytest.mark.parametrize("language", FILES)
def test_38_of_40_lines_are_read_as_intended(language: str) -> None:
    assert len(FILES[language]["lines"]) == 40
    assert sum(matches(language, number) for number in range(40)) >= 38


@pytest.mark.parametrize(("language", "number"), LINES)
def test_removing_a_part_removes_it_from_the_event(language: str, number: int) -> None:
    event = read_file_line(language, FILES[language]["lines"][number]["line"])
    for part in event.parts:
        rest = read_file_line(language, event.without(part))
        assert (part.kind, part.value) not in [(other.kind, other.value) for other in rest.parts]


def test_every_language_has_all_words() -> None:
    for table in (WEEKDAYS, DAY_CONNECTORS, DAY_PARTS, LATER_DAYS, TIME_PARTS):
        assert set(table) == set(LANGUAGES) == set(FILES)
    assert {len(days) for days in WEEKDAYS.values()} == {7}
    assert {len(months) for months in MONTHS.values()} == {12}
    for days in WEEKDAYS.values():
        names = [name for row in days for name in row.split("|")]
        assert len(set(names)) == len(names)


# Single rules ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "line", "title", "when"),
    [
        # Ranges of days, also across months and years and beginning in the past
        ("en", "Sat-Sun 10am-4pm Craft fair", "Craft fair", "2026-11-21 2026-11-22 10:00 16:00"),
        ("en", "Dec 12-14 Winter fair", "Winter fair", "2026-12-12 2026-12-14 - -"),
        ("en", "Market 28 Nov - 2 Dec", "Market", "2026-11-28 2026-12-02 - -"),
        ("de", "Ausstellung 30.11.–5.1. Rathaus", "Ausstellung", "2026-11-30 2027-01-05 - -"),
        ("de", "Ausstellung 1.11.–5.12.", "Ausstellung", "2026-11-01 2026-12-05 - -"),
        ("de", "Flohmarkt am Wochenende", "Flohmarkt", "2026-11-21 2026-11-22 - -"),
        ("ja", "11月22日・23日 文化祭", "文化祭", "2026-11-22 2026-11-23 - -"),
        ("en", "Apollo 13 - 5 Dec 8pm", "Apollo 13", "2026-12-05 - 20:00 -"),
        ("en", "Leap year ball 29 Feb 8pm", "Leap year ball", "2028-02-29 - 20:00 -"),
        ("en", "Lecture 2026-11-24 17:00", "Lecture", "2026-11-24 - 17:00 -"),
        ("ja", "令和元年5月1日 式典", "式典", "2019-05-01 - - -"),
        # A weekday with a number is a date if both agree.
        ("es", "Mercado el domingo 29 desde las 9", "Mercado", "2026-11-29 - 09:00 -"),
        ("en", "Gig Sat 12 8pm", "Gig", "2026-12-12 - 20:00 -"),
        ("en", "Team Fri 5 a side 6pm", "Team 5 a side", "2026-11-20 - 18:00 -"),
        ("de", "Theater Sa 5.12 20 Uhr", "Theater", "2026-12-05 - 20:00 -"),
        # A weekday is the next one; today counts until its time has passed.
        ("en", "Choir Wed 10am", "Choir", "2026-11-18 - 10:00 -"),
        ("en", "Choir Wed 9.59am", "Choir", "2026-11-25 - 09:59 -"),
        ("en", "Choir Wed", "Choir", "2026-11-18 - - -"),
        ("fr", "vendredi prochain 20h Bal", "Bal", "2026-11-20 - 20:00 -"),
        # Halves of the day
        ("en", "Open day Saturday 10-4", "Open day", "2026-11-21 - 10:00 16:00"),
        ("en", "Choir Thu 9am-1", "Choir", "2026-11-19 - 09:00 13:00"),
        ("en", "Disco Thu 9pm-1", "Disco", "2026-11-19 - 21:00 01:00"),
        ("en", "tonight at 8 Jazz", "Jazz", "2026-11-18 - 20:00 -"),
        ("en", "Talk 7 p.m. Fri", "Talk", "2026-11-20 - 19:00 -"),
        ("de", "Samstagabend 8 Uhr Disco", "Disco", "2026-11-21 - 20:00 -"),
        ("de", "Samstag morgen 9 Uhr Yoga", "Yoga", "2026-11-21 - 09:00 -"),
        ("ja", "午後2時〜4時 11月25日 折り紙教室", "折り紙教室", "2026-11-25 - 14:00 16:00"),
        ("en", "Party Sat 8pm-late", "Party", "2026-11-21 - 20:00 -"),
        # Words of the title that look like days and times
        ("de", "Do it yourself Workshop Sa 14 Uhr", "Do it yourself Workshop", "2026-11-21 - 14:00 -"),
        ("es", "Torneo de 4 equipos sáb", "Torneo de 4 equipos", "2026-11-21 - - -"),
        ("en", "Tea at 10 Downing Street Fri 3pm", "Tea at 10 Downing Street", "2026-11-20 - 15:00 -"),
        ("en", "Saturday: Sun salutations, 9am", "Sun salutations", "2026-11-21 - 09:00 -"),
        ("ja", "10時間耐久レース 11/22 8時", "10時間耐久レース", "2026-11-22 - 08:00 -"),
        ("es", "Pilates a las 10 de la mañana", "Pilates", "- - 10:00 -"),
        ("es", "Paseo al mar en barco 10h", "Paseo al mar en barco", "- - 10:00 -"),
        ("it", "Sabato torneo di briscola ore 16", "torneo di briscola", "2026-11-21 - 16:00 -"),
        ("en", "Nothing 31/02", "Nothing 31/02", "- - - -"),
        ("xx", "Choir Thu 7pm", "Choir", "2026-11-19 - 19:00 -"),
    ],
)
def test_day_and_time(language: str, line: str, title: str, when: str) -> None:
    event = read(line, language)
    values = (event.day, event.last_day, event.start and f"{event.start:%H:%M}", event.end and f"{event.end:%H:%M}")
    assert (event.title, " ".join(str(value or "-") for value in values)) == (title, when)


@pytest.mark.parametrize(
    ("line", "title", "cost"),
    [
        ("Comedy Fri 8pm £10/£8", "Comedy", "£10/£8"),
        ("Concert Sat 20:30 5€/3€", "Concert", "5€/3€"),
        ("Talk next Tuesday 7pm £4-£6", "Talk", "£4-£6"),
        ("The £5 party Fri 8pm £10", "The £5 party", "£10"),
        ("Gig Fri 8pm £12 (£8 under 16)", "Gig (£8 under 16)", "£12"),
        ("Gig 18 € 20:00 Fri", "Gig", "18 €"),
        ("Gig Fri 21:00 € 3", "Gig", "€ 3"),
        ("Talk Fri tickets: £3", "Talk", "£3"),
        ("Coffee morning Fri 10am Free!", "Coffee morning", "0"),
        ("Feel free Fri 8pm", "Feel free", None),
        ("Fri 8pm Free Jazz Collective", "Free Jazz Collective", None),
        ("Gluten-free Fri 8pm", "Gluten-free", None),
        ("Free Fri £3", "Free", "£3"),
    ],
)
def test_cost(line: str, title: str, cost: str | None) -> None:
    event = read(line)
    assert (event.title, next(iter(event.list_values("cost")), None)) == (title, cost)


@pytest.mark.parametrize(
    ("line", "title", "venue"),
    [
        ("Quiz (Old Bell Inn) Fri 8pm", "Quiz", "Old Bell Inn"),
        ("Quiz Fri at the bell inn, 8pm", "Quiz", "Bell Inn"),
        ("Bell Inn reunion Fri 8pm @Bell Inn", "Bell Inn reunion", "Bell Inn"),
        ("Bell Inn's birthday Fri 8pm", "Bell Inn's birthday", None),
        ("Bell Inns of England Fri 8pm", "Bell Inns of England", None),
        ("Pre-Bell Inn walk Fri 8pm", "Pre-Bell Inn walk", None),
    ],
)
def test_venue(line: str, title: str, venue: str | None) -> None:
    event = read(line)
    assert (event.title, next(iter(event.list_values("venue")), None)) == (title, venue)


def test_terms_are_categories_before_tags() -> None:
    event = read("C# meetup Fri 8pm #QUIZ #live-music #Beer #new-one #quiz")
    assert (event.title, event.list_values("category")) == ("C# meetup", ("Quiz", "Live music"))
    assert event.list_values("tag") == ("beer", "new-one")


@pytest.mark.parametrize(
    ("line", "missing"),
    [
        ("8pm Bell Inn", ("day", "title")),
        ("", ("day", "title")),
        ("Fri", ("title",)),
        ("Choir", ("day",)),
        ("Choir Fri", ()),
    ],
)
def test_day_and_title_are_required(line: str, missing: tuple[str, ...]) -> None:
    assert read(line).missing == missing


def test_slashed_dates_follow_the_order_unless_only_one_is_possible() -> None:
    assert read("Fair 3/4").day == date(2027, 4, 3)
    assert read("Fair 3/4", month_first=True).day == date(2027, 3, 4)
    assert read("Fair 25/12", month_first=True).day == read("Fair 12/25").day == date(2026, 12, 25)


@pytest.mark.parametrize(
    ("line", "start", "end"),
    [
        ("Pub quiz Fri 8pm", "2026-11-20T20:00", "2026-11-20T22:30"),  # as long as the last one
        ("Choir Fri 8pm", "2026-11-20T20:00", "2026-11-20T21:00"),
        ("Choir Fri 11.30pm", "2026-11-20T23:30", "2026-11-21T00:30"),
        ("Choir Fri 10pm-2am", "2026-11-20T22:00", "2026-11-21T02:00"),
        ("Choir 20–22 Nov 10am-4pm", "2026-11-20T10:00", "2026-11-22T16:00"),
        ("Choir 20–22 Nov", "2026-11-20T00:00", "2026-11-22T00:00"),
        ("Choir Fri", "2026-11-20T00:00", "2026-11-20T00:00"),
    ],
)
def test_end_follows_from_the_length(line: str, start: str, end: str) -> None:
    event = read_line(line, "en", WEDNESDAY, Known())
    if event.title.casefold() == "pub quiz":
        event = replace(event, length=timedelta(minutes=150))
    assert event.find_limits() == (datetime.fromisoformat(start), datetime.fromisoformat(end))


def test_without_a_day_there_are_no_limits() -> None:
    assert read("Choir 8pm").find_limits() is None
    assert read("Choir 8pm").start == time(20)


# Any text --------------------------------------------------------------------------------------

PIECES = (
    "Pub quiz,Tue,8pm,Bell Inn,£2,#quiz,free,-,–,to,bis,12,31.12.,5/11,Dec,5 Dec,2027,morgen,mar,e,a,at the,(,),!,"
    "noon,heute Abend,sáb,10h,de,19時〜,11月3日(火),公民館で,土曜,午後,2時半,無料,#,@,.,:,€ 5,12 €,a las 7,&,'t,½,ﬁ,"
    "\u0301,\0,\ud800"
)
texts = st.one_of(st.text(), st.lists(st.sampled_from(PIECES.split(",")), max_size=25).map(" ".join))


@given(text=texts, language=st.sampled_from([*LANGUAGES]))
def test_any_text_can_be_read(text: str, language: str) -> None:
    event = read(text, language)
    assert len(event.line) <= MAX_LENGTH
    places = [place for part in event.parts for place in (part.start, part.end)]
    assert places == sorted(places)
    assert all(0 <= part.start < part.end <= len(event.line) for part in event.parts)
    outside = "".join(
        event.line[start:end] for start, end in zip([0, *places[1::2]], [*places[::2], None], strict=True)
    )
    assert [character for character in event.title if character.isalnum()] == [
        character for character in outside if character.isalnum()
    ]
    limits = event.find_limits()
    assert limits is None or limits[0] <= limits[1]
    assert (event.day is None) == ("day" in event.missing) == (not event.list_values("day"))
    assert event.list_values("time") == () or event.start is not None


@given(text=texts, language=st.sampled_from([*LANGUAGES]), data=st.data())
def test_parts_can_be_removed_until_none_is_left(text: str, language: str, data: st.DataObject) -> None:
    event = read(text, language)
    while event.parts:
        shorter = event.without(data.draw(st.sampled_from(event.parts)))
        assert len(shorter) < len(event.line)
        event = read(shorter, language)


@pytest.mark.parametrize(
    "piece", ["1-", "5 Dec ", "on ", "8-9pm Sat 5 Dec ", "12月5日", "#a ", "£1", " -", "de 1 a "]
)
def test_long_lines_are_read_fast(piece: str) -> None:
    started = process_time()
    for language in LANGUAGES:
        read(piece * MAX_LENGTH, language)
    assert process_time() - started < 2  # it takes 0.2 s for all languages
