"""Unknown parameters add no cache entries, and neither does a malformed host."""

import re
import time
from pathlib import Path

import httpx
import pytest

from kalends.api.wordpress.wordpress_routes import CORE
from kalends.http.bodies import COMMON_NAMES
from kalends.routes import EXTENSION, INTERFACE, PAGES
from kalends.website.redirects import READ_NAMES
from tests.varnish.conftest import NS, Stage

VCL = Path("deploy/varnish/default.vcl")


def test_vcl_lists_all_server_parameters() -> None:
    match = re.search(r"\(\?!\(\?:([A-Za-z_|-]+)\)", VCL.read_text())
    assert match is not None
    routes = [*INTERFACE.routes, *EXTENSION.routes, *CORE.routes, *PAGES.pages, *PAGES.calendars]
    known = {name for route in routes for name in route.known_names}
    own_names = {"lang", "namespace", "password", "rest_route"}
    assert set(match[1].split("|")) == known | READ_NAMES | COMMON_NAMES | own_names


@pytest.mark.parametrize(
    "query",
    ["?z=1", "?utm_source=news&z", "?z=1&per_page=5&y=2", "?per_page=5&z=%20", "?per_page=5&&", "?&per_page=5&z=1"],
)
def test_meaningless_parameters_share_cache_entry(stage: Stage, query: str) -> None:
    plain = "?per_page=5" if "per_page" in query else ""
    stage.warm_cache(f"/venues{plain}")
    assert stage.is_hit(f"/venues{query}")
    assert stage.get(f"/venues{query}").json() == stage.get(f"/venues{plain}").json()


@pytest.mark.parametrize("query", ["?include[]=1", "?include%5B%5D=1", "?_fields=total", "?lang=de", "?search=z=1"])
def test_meaningful_parameters_have_own_cache_entries(stage: Stage, query: str) -> None:
    stage.warm_cache("/venues")
    response = stage.public.get(f"{NS}/venues{query}")
    assert response.headers["x-cache"] == "miss"


@pytest.mark.parametrize("host", ["a.test:80@evil.example", "a.test:999999", "a.test/x", "a b", "a" * 256])
def test_malformed_host_is_rejected_and_not_cached(stage: Stage, host: str) -> None:
    for _ in range(2):
        response = httpx.get(f"{stage.varnish.address}{NS}/venues", headers={"Host": host}, trust_env=False)
        assert (response.status_code, response.headers.get("x-cache", "miss")) == (400, "miss")
        assert "evil" not in response.text


def test_strict_request_reaches_the_server_with_all_parameters(stage: Stage) -> None:
    stage.warm_cache("/venues")
    assert "x-kalends-ignored-params" not in stage.get("/venues?foo=1").headers
    strict = stage.public.get(f"{NS}/venues?foo=1&strict=1")
    assert (strict.status_code, strict.headers["x-kalends-ignored-params"]) == (400, "foo")
    assert stage.public.get(f"{NS}/venues?strict=1").status_code == 200


def test_parameters_of_old_addresses_reach_the_server(stage: Stage) -> None:
    assert stage.get_page("/events/").headers["content-type"] == "text/html; charset=utf-8"
    for _ in range(2):
        calendar = stage.get_page("/events/?utm_source=a&ical=1")
        assert calendar.headers["content-type"] == "text/calendar; charset=utf-8"
    assert calendar.headers["x-cache"] == "hit"
    moved = stage.public.get("/events/?eventDisplay=past&tribe-bar-search=a")
    assert (moved.status_code, moved.headers["location"]) == (301, "/events/list/?search=a&past=1")


def test_rest_route_has_its_own_cache_entries(stage: Stage) -> None:
    home = "text/html; charset=utf-8"
    routes = ("/tribe/events/v1/venues", "/tribe/events/v1/organizers", "/wp/v2/tribe_venue")
    for _ in range(2):
        assert stage.get_page("/").headers["content-type"] == home
        for route in routes:
            direct = stage.get_page(f"/wp-json{route}?per_page=5")
            response = stage.get_page(f"/?utm_source=news&rest_route={route}&per_page=5")
            assert response.json() == direct.json()
    assert response.headers["x-cache"] == direct.headers["x-cache"] == "hit"
    venue = stage.write("POST", "/venues", venue="Hall behind Varnish")
    for _ in range(50):
        listed = stage.get_page("/?rest_route=/wp/v2/tribe_venue&per_page=5").json()
        if listed and listed[0]["id"] == venue["id"]:
            break
        time.sleep(0.1)
    assert listed[0]["title"] == {"rendered": "Hall behind Varnish"}
