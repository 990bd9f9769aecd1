"""The map in a browser: clusters, the connection of cards and markers, and the search in an area."""

import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator

from tests.pages.browser_page import find_violations, open_browser_page
from tests.pages.demo_calendar import DemoCalendar


def center(element: Locator) -> tuple[float, float]:
    box: Any = element.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_markers_cluster_and_belong_to_cards(demo_calendar: DemoCalendar, chromium: Browser) -> None:
    with open_browser_page(chromium, viewport={"width": 1360, "height": 900}, reduced_motion="reduce") as browser:
        page = browser.page
        page.goto(demo_calendar.server.base_url + "/events/map/")
        page.get_by_role("button", name="Show the map").click()
        markers, cards = page.locator(".map-marker"), page.locator(".map-layout .card")
        markers.first.wait_for()
        search = page.get_by_role("button", name="Search this area")
        # The two venues are 155 metres apart, and each has several events.
        assert (markers.count(), search.is_visible()) == (2, False)
        # Tiles are light in both schemes, and so is the accent of the site on them.
        accent = "getComputedStyle(document.querySelector('.map-marker')).backgroundColor"
        light = page.evaluate(accent)
        page.emulate_media(color_scheme="dark")
        assert page.evaluate(accent) == light == "rgb(179, 52, 30)"
        page.locator(".leaflet-control-zoom-out").click()
        page.locator(".map-marker.is-large").wait_for()
        assert (markers.count(), markers.inner_text()) == (1, str(cards.count()))
        for inner, outer in zip(center(markers.locator("b")), center(markers), strict=True):
            assert abs(inner - outer) < 1.5
        assert find_violations(page) == []
        markers.hover()
        assert page.locator(".card.is-active").count() == cards.count()
        markers.click()
        page.locator(".map-marker >> nth=1").wait_for()
        cards.first.hover()
        assert page.locator(".map-marker.is-active").count() == 1
        assert cards.locator("xpath=self::*[contains(@class, 'is-active')]").count() == 1
        # The area is a circle around the centre; the consent is remembered.
        search.click()
        page.wait_for_url("**/events/map/?geoloc_lat=52.5*&geoloc_lng=13.4*&geoloc_radius=*")
        markers.first.wait_for()
        assert page.get_by_role("link", name="Remove filter: Within").count() == 1
        assert not [error for error in browser.errors if "Content Security Policy" in error]
        # Where nothing takes place, the map is still there to move on.
        page.goto(demo_calendar.server.base_url + "/events/map/?geoloc_lat=10&geoloc_lng=10&geoloc_radius=1")
        page.locator(".map.is-loaded").wait_for()
        assert (markers.count(), cards.count()) == (0, 0)


@pytest.mark.parametrize("path", ["map", "event", "venue"])
def test_places_are_named_and_linked_without_script_or_consent(
    demo_calendar: DemoCalendar, chromium: Browser, path: str
) -> None:
    """Nothing is requested from another site, and all that the map would show can be reached."""
    paths = {"map": "/events/map/", "event": demo_calendar.concert, "venue": demo_calendar.venue}
    with open_browser_page(chromium, script=False) as browser:
        page, requests = browser.page, list[str]()
        page.on("request", lambda request: requests.append(request.url))
        page.goto(demo_calendar.server.base_url + paths[path])
        assert all(url.startswith((demo_calendar.server.base_url, "data:")) for url in requests)
        assert page.locator(".map button").is_hidden()
        if path == "map":
            places = page.locator(".map-places li")
            assert re.fullmatch(r"Town library · \d+ events", places.first.inner_text())
            page.get_by_role("link", name="Kulturhaus an der Linde", exact=True).first.click()
            assert page.url == demo_calendar.server.base_url + demo_calendar.venue
            return
        assert page.locator(".map > p").inner_text().startswith("Kulturhaus an der Linde\n")
        directions = page.locator(".map").get_by_role("link", name="Directions").get_attribute("href") or ""
        assert directions.startswith("https://www.openstreetmap.org/directions?to=52.5")
    with open_browser_page(chromium) as browser:
        browser.page.goto(demo_calendar.server.base_url + paths[path])
        text = browser.page.get_by_role("button", name="Show the map").inner_text()
        assert text.startswith("Show the map\nThe map loads images from "), text
