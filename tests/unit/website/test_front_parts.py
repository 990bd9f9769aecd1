"""Which events become cards of the front page, and what a full page leaves out first."""

from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

import pytest

from kalends.rendering.cards import Card, PageImage, When
from kalends.rendering.page_locale import make_page_locale
from kalends.website.models.front import (
    CategoryTile,
    DayRows,
    FrontParts,
    Picker,
    Section,
    fit,
    shrink_image,
)
from kalends.website.models.grid import Entry

TODAY = date(2031, 6, 11)
DAYS = [TODAY + timedelta(days=n) for n in range(7)]
IMAGE = PageImage(
    "/media/800.webp", "/media/300.webp 300w, /media/800.webp 800w, /media/1600.webp 1600w", 1600, 900, ""
)


def make_row(event_id: int, day: int, nth: int, series_id: int | None = None, *, running: bool = False) -> Any:
    start = datetime.combine(DAYS[day], datetime.min.time()) + timedelta(hours=20 - nth)
    return {
        "id": event_id, "day": DAYS[day], "nth": nth, "of_day": 20, "series_id": series_id, "is_over": False,
        "is_running": running, "start_local": start,
    }  # fmt: skip


def test_days_of_a_section_take_turns_and_running_events_come_last() -> None:
    rows = [make_row(10 * day + nth, day, nth, running=nth == 2) for day in (3, 4) for nth in range(1, 6)]
    picker = Picker(rows)
    assert picker.pick(DAYS[3:5], 6) == [33, 31, 43, 41, 32, 42]
    assert picker.pick(DAYS[3:5], 6) == [35, 34, 45, 44]
    assert picker.pick_featured([31, 99]) == [99]


def test_rest_of_a_day_counts_what_the_query_left_out() -> None:
    picker = Picker([make_row(nth, 0, nth) for nth in range(1, 17)])
    picker.pick(DAYS[:1], 6)
    shown, more = picker.list_others(TODAY)
    assert [row["id"] for row in shown] == [11, 10, 9, 8, 7]
    assert 6 + len(shown) + more == 20
    assert picker.list_others(DAYS[1]) == ([], 0)


def test_other_dates_of_a_series_fill_up() -> None:
    picker = Picker([make_row(1, 0, 1, 7), make_row(2, 1, 1, 7), make_row(3, 1, 2), make_row(4, 1, 3)])
    assert picker.pick(DAYS[:1], 6) == [1]
    assert picker.pick(DAYS[1:2], 2) == [4, 3]
    assert picker.pick(DAYS[1:2], 2) == [2]


@pytest.mark.parametrize(
    ("title", "categories", "rows", "sections"),
    [("a" * 90, 8, 5, 4), ("ä" * 80, 0, 4, 4), ("市" * 150, 0, 2, 4), ("市" * 400, 0, 0, 2), ("市" * 999, 0, 0, 1)],
    ids=["short", "longer", "long", "very long", "endless"],
)
def test_full_page_loses_categories_then_rows_then_sections(
    title: str, categories: int, rows: int, sections: int
) -> None:
    fitted = fit(make_parts(title))
    assert (len(fitted.categories), max(len(day.entries) for day in fitted.days)) == (categories, rows)
    assert len(fitted.sections) == sections
    # The first section keeps everything.
    assert [card.image for card in fitted.sections[0].cards] == [IMAGE] * 6
    assert {day.more + len(day.entries) for day in fitted.days[1:]} == {7}
    # What a dropped section showed is behind the link of its day.
    assert fitted.days[0].more + len(fitted.days[0].entries) == 7 + 3 * (4 - sections)


def make_parts(title: str) -> FrontParts:
    when = When(TODAY, TODAY, "", "", False, "", "", "", "")
    card = Card(1, title, "/event/a/", when, "Hall", "Town", "", IMAGE, "", False, False, 1, (), None, None)
    sections = [Section("Today", "", [card] * 6, False), *[Section("Next", "", [card] * 3, True)] * 3]
    entry = Entry(title[:70], "/event/a/", "19:00", TODAY, TODAY, 1, False)
    days = [DayRows(day, "Day", "/events/day/2031-06-11/", [entry] * 5, 2) for day in DAYS]
    return FrontParts(sections, days, [CategoryTile("Music", "/events/category/music/", IMAGE, 1)] * 8)


def test_days_without_others_are_left_out() -> None:
    parts = make_parts("a")
    days = [replace(parts.days[0], entries=[], more=more) for more in (0, 3)]
    assert [day.more for day in fit(replace(parts, days=days)).days] == [3]


def test_cards_do_not_load_large_images() -> None:
    shrunk = shrink_image(IMAGE)
    assert shrunk is not None
    assert shrunk.srcset == "/media/300.webp 300w, /media/800.webp 800w"
    gap = replace(IMAGE, srcset="/media/300.webp 300w, /media/1024.webp 1024w, /media/1600.webp 1600w")
    assert shrink_image(gap) == replace(gap, srcset="/media/300.webp 300w, /media/1024.webp 1024w")
    only = replace(IMAGE, srcset="/media/1600.webp 1600w")
    assert shrink_image(only) == only


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "Wednesday, June 11"), ("en-GB", "Wednesday 11 June"), ("de", "Mittwoch, 11. Juni"),
        ("es", "miércoles, 11 de junio"), ("pt-BR", "quarta-feira, 11 de junho"), ("ja", "6月11日(水曜日)"),
    ],
)  # fmt: skip
def test_long_days_have_no_year(language: str, text: str) -> None:
    assert make_page_locale(language, language, str).long_day(TODAY) == text
