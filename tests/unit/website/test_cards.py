"""Cards, as functions of events."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from kalends.rendering.cards import (
    Card,
    find_origin,
    group_by_day,
    make_card,
    make_page_image,
    make_when,
    pick_hue,
    shorten,
)
from kalends.rendering.page_urls import UrlBuilder
from tests.unit.website.records import CLUB, EVENT, HALL, IMAGE, MUSIC, at, locale

LINKS = UrlBuilder("https://x.example")


def card(event: Any = EVENT) -> Card:
    return make_card(event, locale(), LINKS, "Europe/Berlin")


def test_card_shows_title_first_venue_and_first_category() -> None:
    other = replace(HALL, id=20, name="Other", city="Elsewhere")
    shown = card(
        replace(EVENT, venues=(HALL, other), organizers=(CLUB,), categories=(MUSIC,), cost="€5", featured=True)
    )
    assert (shown.title, shown.url) == ("Tea & talk", "/event/tea/")
    assert (shown.place, shown.town) == ("The & Hall", "Lindenstadt")
    assert (shown.latitude, shown.longitude) == (52.5186, 13.4081)
    assert (shown.cost, shown.featured, shown.is_locked) == ("€5", True, False)
    assert (shown.categories, shown.hue) == (("Music, loud",), pick_hue(4))


def test_card_of_event_without_venue_has_no_place() -> None:
    shown = card()
    assert (shown.place, shown.town, shown.latitude, shown.longitude) == ("", "", None, None)
    assert (shown.hue, shown.image, shown.excerpt) == (0, None, "")


def test_card_of_event_that_moved_online_has_no_venue() -> None:
    event = replace(EVENT, venues=(HALL,), online_url="https://meet.example")
    assert (card(event).place, card(event).state) == ("The & Hall", None)
    moved = card(replace(event, event_status="moved_online"))
    assert (moved.place, moved.town, moved.latitude, moved.longitude) == ("Online", "", None, None)
    assert moved.state is not None
    assert (moved.state.label, moved.state.is_cancelled) == ("Moved online", False)
    assert card(replace(event, venues=())).place == "Online"


def test_card_prefers_excerpt_to_description() -> None:
    event = replace(EVENT, excerpt="<p>Short</p>", description="<p>Long</p>")
    assert card(event).excerpt == "Short"
    assert card(replace(event, excerpt="")).excerpt == "Long"


def test_card_of_locked_event_is_locked() -> None:
    assert card(replace(EVENT, is_locked=True)).is_locked


def test_when_of_timed_event() -> None:
    when = make_when(EVENT, locale(), "Europe/Berlin")
    assert (when.first, when.last) == (date(2031, 3, 14), date(2031, 3, 14))
    assert (when.start, when.end) == ("2031-03-14T19:30:00+01:00", "2031-03-14T22:00:00+01:00")
    assert (when.day, when.time, when.zone) == ("Fri, Mar 14", "7:30\u00a0PM – 10:00\u00a0PM", "")
    assert when.text == "Fri, Mar 14, 7:30\u00a0PM – 10:00\u00a0PM"


def test_when_names_the_zone_only_if_its_offset_differs_or_readers_may_be_elsewhere() -> None:
    assert make_when(EVENT, locale(), "Europe/Paris").zone == ""
    assert make_when(EVENT, locale(), "Europe/London").zone == "CET"
    assert make_when(EVENT, locale(), "Europe/Berlin", long=True).zone == ""
    assert make_when(EVENT, locale(), "Europe/Berlin", names_zone=True).zone == "CET"


def test_when_of_all_day_event_has_dates_without_times() -> None:
    when = make_when(at("2031-03-14 00:00:00", "2031-03-16 23:59:59", all_day=True), locale(), "Asia/Tokyo")
    assert (when.start, when.end, when.time, when.zone) == ("2031-03-14", "2031-03-16", "", "")
    assert when.day == "Mar 14\u2009–\u200916, 2031"


def test_when_of_event_over_days_has_times_with_their_days() -> None:
    when = make_when(at("2031-03-14 19:30:00", "2031-03-16 12:00:00"), locale(), "Europe/Berlin")
    assert (when.first, when.last, when.time) == (date(2031, 3, 14), date(2031, 3, 16), "")
    assert when.day.startswith("Mar 14, 7:30\u00a0PM")


def test_event_without_duration_has_one_time() -> None:
    when = make_when(at("2031-03-14 19:30:00", "2031-03-14 19:30:00"), locale(), "Europe/Berlin")
    assert when.time == "7:30\u00a0PM"


def test_cards_are_grouped_by_day_and_ongoing_ones_come_first() -> None:
    cards = [
        card(at("2031-01-20 10:00:00", "2031-04-01 12:00:00")),
        card(at("2031-03-05 10:00:00", "2031-03-05 12:00:00")),
        card(at("2031-03-05 11:00:00", "2031-03-07 12:00:00")),
        card(at("2031-04-01 10:00:00", "2031-04-01 12:00:00")),
    ]
    days = [date(2031, 3, 5), date(2031, 4, 1)]
    groups = group_by_day(cards, date(2031, 3, 2))
    assert [(day, len(group)) for day, group in groups] == [(None, 1), (days[0], 2), (days[1], 1)]
    assert [day for day, _ in group_by_day(cards, None)] == [date(2031, 1, 20), *days]


def test_time_range_has_begin_and_end() -> None:
    when = card(at("2031-03-14 19:30:00", "2031-03-14 22:00:00")).when
    assert (when.begin, when.until) == ("7:30\u00a0PM", "10:00\u00a0PM")
    when = card(at("2031-03-14 19:30:00", "2031-03-14 19:30:00")).when
    assert (when.begin, when.until) == ("7:30\u00a0PM", "")


def test_image_offers_only_sizes_with_its_aspect_ratio() -> None:
    def size(width: int, height: int) -> dict[str, Any]:
        return {"width": width, "height": height, "url": f"https://x.example/{width}.jpg"}

    sizes = {"large": size(800, 450), "medium": size(400, 225), "thumb": size(150, 150), "odd": {"width": 5}}
    image = make_page_image(replace(IMAGE, sizes=sizes))
    assert image is not None
    assert image.srcset == (
        "https://x.example/400.jpg 400w, https://x.example/800.jpg 800w, https://x.example/1600.jpg 1600w"
    )
    shown = (image.src, image.width, image.height, image.alt, image.caption, image.focus_classes)
    assert shown == ("https://x.example/800.jpg", 1600, 900, "A boat", "By Ada", "x2 y9")


def test_image_with_unsafe_url_is_not_shown() -> None:
    assert make_page_image(None) is None
    assert make_page_image(replace(IMAGE, url="javascript:alert(1)")) is None


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://x.example/a.jpg", "https://x.example"),
        ("http://x.example:81/a.jpg", "http://x.example:81"),
        ("/media/1/a.jpg", ""),
        ("ftp://x.example/a.jpg", ""),
        ("https://x.example;script-src/a.jpg", ""),
    ],
)
def test_origin_of_image_is_safe_for_the_policy(url: str, origin: str) -> None:
    assert find_origin(url) == origin


@pytest.mark.parametrize(
    ("text", "columns", "shortened"),
    [
        ("one two three", 13, "one two three"),
        ("one two three", 9, "one two…"),
        ("one, two three", 5, "one…"),
        ("unbreakable", 5, "unbre…"),
        ("会議のお知らせ", 14, "会議のお知らせ"),
        ("会議のお知らせ", 8, "会議のお…"),
    ],
)
def test_text_is_shortened_between_words(text: str, columns: int, shortened: str) -> None:
    assert shorten(text, columns) == shortened


def test_hues_of_categories() -> None:
    assert pick_hue(None) == 0
    assert {pick_hue(category_id) for category_id in range(1, 100)} == set(range(1, 13))
