"""The size budget of pages."""

from dataclasses import replace
from datetime import date

from kalends.website.models.cards import Card, make_card
from kalends.website.models.grid import Entry, find_month_bounds
from kalends.website.models.highlights import Highlights
from kalends.website.models.month_cells import lay_out_month
from kalends.website.models.page_budget import CARD_BYTES, IMAGE_BYTES, MAX_CARDS_BYTES, fits, trim
from kalends.website.models.urls import UrlBuilder
from tests.website.records import EVENT, IMAGE, locale

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
    return fits(layout, Highlights())


def test_month_fits_unless_titles_are_long_and_days_are_full() -> None:
    assert month_fits("Tea", 3)
    assert month_fits("T" * 70, 1)
    assert not month_fits("T" * 70, 4)
    assert not month_fits("会" * 35, 3)
