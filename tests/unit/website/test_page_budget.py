"""The size budget of pages."""

from dataclasses import replace
from datetime import date

from kalends.rendering.cards import Card, make_card
from kalends.rendering.page_urls import UrlBuilder
from kalends.website.models.grid import Entry, find_month_bounds, lay_out_month
from kalends.website.models.page_parts import (
    CARD_BYTES,
    IMAGE_BYTES,
    MAX_CARDS_BYTES,
    MAX_ENTRIES_BYTES,
    Highlights,
    measure_month,
    trim,
)
from tests.unit.website.records import EVENT, IMAGE, locale

MARCH = date(2031, 3, 1)


def cards(number: int) -> list[Card]:
    event = replace(EVENT, image=IMAGE, excerpt=f"<p>{'word ' * 40}</p>")
    return [make_card(event, locale(), UrlBuilder("https://x.example"), "Europe/Berlin")] * number


def test_cards_within_the_budget_stay_whole() -> None:
    assert trim(cards(10), MAX_CARDS_BYTES) == cards(10)


def test_excerpts_are_dropped_before_images() -> None:
    trimmed = trim(cards(10), 10 * (CARD_BYTES + IMAGE_BYTES + 150))
    assert {card.excerpt for card in trimmed} == {""}
    assert all(card.image for card in trimmed)


def test_images_are_dropped_if_excerpts_are_not_enough() -> None:
    trimmed = trim(cards(10), 10 * (CARD_BYTES + 50))
    assert {(card.excerpt, card.image) for card in trimmed} == {("", None)}
    assert len(trimmed) == 10


def month_fits(title: str, per_day: int) -> bool:
    first, last = find_month_bounds(MARCH, 1)
    days = [MARCH.replace(day=number) for number in range(1, 32)]
    entries = [Entry(title, "/event/x/", "", day, day, 0, False) for day in days for _ in range(per_day)]
    rows = [{"of_day": per_day}] * len(entries)
    layout = lay_out_month(first, last, rows, entries, (per_day, 1, 6), today=MARCH, month=MARCH)
    return measure_month(layout, Highlights()) <= MAX_ENTRIES_BYTES


def test_month_fits_unless_titles_are_long_and_days_are_full() -> None:
    assert month_fits("Tea", 3)
    assert month_fits("T" * 70, 1)
    assert not month_fits("T" * 70, 4)
    assert not month_fits("会" * 35, 3)
