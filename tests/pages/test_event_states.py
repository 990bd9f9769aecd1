"""Pages name the state of an event that does not take place as announced."""

import re

import httpx
import pytest
from playwright.sync_api import Browser

from tests.pages.browser_page import find_violations, open_browser_page
from tests.pages.demo_calendar import FULL_DAY, DemoCalendar

LABELS = {
    "en": ("Cancelled", "Postponed", "Moved online", "Sold out"),
    "de": ("Abgesagt", "Verschoben", "Findet online statt", "Ausverkauft"),
    "es": ("Cancelado", "Aplazado", "Se celebra en línea", "Agotado"),
    "fr": ("Annulé", "Reporté", "A lieu en ligne", "Complet"),
    "it": ("Annullato", "Rinviato", "Si svolge online", "Esaurito"),
    "ja": ("中止", "延期", "オンラインに変更", "完売"),
    "nl": ("Geannuleerd", "Uitgesteld", "Gaat online door", "Uitverkocht"),
    "pt-BR": ("Cancelado", "Adiado", "Será on-line", "Esgotado"),
}
TITLES = ("Choir rehearsal", "Chess club", "Film: The Long Way Home", "Open stage")

CANCELLED = '<b class="badge is-negative" data-icon="×"><span>Cancelled</span></b>'
SOLD_OUT = '<b class="badge is-warning" data-icon="!"><span>Sold out</span></b>'


def read_links(calendar: DemoCalendar, path: str) -> dict[str, str]:
    """Return the HTML inside of each link to an event, by URL."""
    text = httpx.get(calendar.server.base_url + path).raise_for_status().text
    return dict(re.findall(r'<a [^>]*href="/event/([^"?]+)/[^"]*"[^>]*>(.*?)</a>', text))


@pytest.mark.parametrize(("language", "labels"), LABELS.items())
def test_states_are_named_in_every_language(
    demo_calendar: DemoCalendar, language: str, labels: tuple[str, ...]
) -> None:
    links = read_links(demo_calendar, f"/events/day/{FULL_DAY}/?lang={language}")
    slugs = ("choir-rehearsal", "chess-club", "film-the-long-way-home", "open-stage")
    assert [re.sub("<.*?>", "", links[slug]) for slug in slugs] == [
        f"{label} {title}" for label, title in zip(labels, TITLES, strict=True)
    ]


@pytest.mark.parametrize("path", [f"/events/week/{FULL_DAY}/", "/events/list/?per_page=50", "/events/map/"])
def test_views_show_badges(demo_calendar: DemoCalendar, path: str) -> None:
    links = read_links(demo_calendar, path)
    assert f"{CANCELLED} <s>Choir rehearsal</s>" in links["choir-rehearsal"]
    assert f"{SOLD_OUT} Open stage" in links["open-stage"]
    assert "badge" not in links["morning-prayer"]
    # An event that has moved online is not on the map.
    assert ("film-the-long-way-home" in links) == ("map" not in path)


def test_month_shows_badges_of_bars_and_single_events(demo_calendar: DemoCalendar) -> None:
    links = read_links(demo_calendar, "/events/month/2031-03/")
    assert f"{CANCELLED} <s>Festival 1</s>" in links["festival-1"]
    assert f"{SOLD_OUT} Long night" in links["long-night"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_event_page_explains_cancellation(demo_calendar: DemoCalendar, chromium: Browser, scheme: str) -> None:
    with open_browser_page(chromium, viewport={"width": 820, "height": 900}, color_scheme=scheme) as browser:
        page = browser.page
        page.goto(f"{demo_calendar.server.base_url}/event/choir-rehearsal/")
        assert page.locator(".badges .badge").all_inner_texts() == ["Cancelled"]
        assert page.locator(".notice").inner_text() == "The conductor is ill."
        struck = page.locator("h1 s").evaluate("element => getComputedStyle(element).textDecorationLine")
        assert struck == "line-through"
        # Nobody needs it in a calendar, but the page stays.
        assert page.get_by_text("Add to calendar").count() == 0
        assert find_violations(page) == []


def test_event_that_moved_online_has_link_instead_of_venue(demo_calendar: DemoCalendar) -> None:
    page = httpx.get(f"{demo_calendar.server.base_url}/event/film-the-long-way-home/").raise_for_status().text
    assert '<dt>Online</dt><dd><a href="https://meet.example/film"' in page
    assert "Town library" not in re.sub(r"<script.*?</script>|<section.*", "", page, flags=re.DOTALL)
    card = httpx.get(f"{demo_calendar.server.base_url}/events/day/{FULL_DAY}/").text.partition("Long Way Home")[2]
    assert card.partition('<p class="where">')[2].startswith("Online")


def test_filter_by_state_has_chip(demo_calendar: DemoCalendar) -> None:
    path = "/events/list/?event_status=cancelled,sold_out"
    page = httpx.get(demo_calendar.server.base_url + path).raise_for_status().text
    assert re.findall(r"<li><span>(.*?)</span>", page)[:2] == ["Cancelled", "Sold out"]
    assert set(read_links(demo_calendar, path)) == {"choir-rehearsal", "open-stage", "festival-1", "long-night"}
