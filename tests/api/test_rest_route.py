"""`?rest_route=` and `/index.php/wp-json/…`: the addresses of an API without pretty permalinks."""

from urllib.parse import quote

import pytest

from tests.api.conftest import StartApp
from tests.api.running_app import Caller, RunningApp, assert_error, expect_json

BASE = "/"
ROOT = f"{BASE}/wp-json"
API = f"{ROOT}/tribe/events/v1"
WITH_ALIAS = {"KALENDS_API_ALIASES": "/wp-json/tribe/events/v1"}


@pytest.fixture(scope="module")
def app(start_app_for_module: StartApp) -> RunningApp:
    app = start_app_for_module(WITH_ALIAS)
    app.caller("editor").create("tags", name="Jazz")
    return app


@pytest.mark.quick(
    "/?rest_route=/tribe/events/v1/tags&hide_empty=0", "/?rest_route=/tribe/events/v1/tags&hide_empty=0&strict=1"
)
@pytest.mark.parametrize(
    "address",
    [
        "/?rest_route=/tribe/events/v1/tags&hide_empty=0",
        "/?hide_empty=0&rest_route=%2Ftribe%2Fevents%2Fv1%2Ftags%2F",
        "/?rest%5Froute=tribe/events/v1/tags&hide_empty=0",
        "/?rest_route=/nothing&rest_route=/tribe/events/v1/tags&hide_empty=0",
        "/index.php?rest_route=/Tribe/Events/v1/tags&hide_empty=0",
        "/events/list/?rest_route=/tribe/events/v1/tags&hide_empty=0",
        "/docs?rest_route=/tribe/events/v1/tags&hide_empty=0",
        "/index.php/wp-json/tribe/events/v1/tags?hide_empty=0",
        "/index.php/wp-json/tribe/events/v1/tags?hide_empty=0&strict=1",
        "/?rest_route=/tribe/events/v1/tags&hide_empty=0&strict=1",
    ],
)
def test_every_form_is_the_request_to_the_alias(anonymous: Caller, address: str) -> None:
    expected = anonymous.get(f"{API}/tags?hide_empty=0")
    response = anonymous.get(f"{BASE}{address}")
    assert expect_json(response) == expected.json()
    assert response.json()["rest_url"] == anonymous.app.make_url(f"{API}/tags/?hide_empty=0")
    names = ("link", "allow", "etag", "vary", "cache-control", "access-control-allow-origin", "x-wp-total")
    assert {name: response.headers[name] for name in names} == {name: expected.headers[name] for name in names}
    assert "x-kalends-ignored-params" not in response.headers


@pytest.mark.quick("/?rest_route=/", "/index.php/wp-json/")
@pytest.mark.parametrize(
    "address", ["/?rest_route=/", "/?rest_route=", "/?rest_route", "/index.php?rest_route=/", "/index.php/wp-json/"]
)
def test_empty_route_is_the_discovery_document(anonymous: Caller, address: str) -> None:
    for method in ("GET", "OPTIONS"):
        assert anonymous.request(method, f"{BASE}{address}").json() == anonymous.get(f"{ROOT}/").json()


def test_writes_credentials_and_preflights_work(anonymous: Caller, editor: Caller) -> None:
    address = f"{BASE}/?rest_route=/tribe/events/v1/tags"
    assert_error(anonymous.post(address, {"name": "Blues"}), 401, "rest_forbidden")
    tag = expect_json(editor.post(address, {"name": "Blues"}), 201)
    assert tag["urls"]["self"] == editor.app.make_url(f"{API}/tags/{tag['id']}")
    renamed = editor.post(f"{address}/{tag['id']}&_method=PATCH", {"name": "Rhythm and Blues"})
    assert expect_json(renamed)["name"] == "Rhythm and Blues"
    preflight = {"Origin": "https://other.example", "Access-Control-Request-Method": "POST"}
    allowed = anonymous.request("OPTIONS", address, headers=preflight)
    assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (200, "*")
    assert_error(editor.request("DELETE", address), 405, "rest_method_not_allowed")
    removed = editor.request("DELETE", f"{address}/{tag['id']}")
    assert expect_json(removed)["id"] == tag["id"]


def test_cached_page_and_cached_response_stay_apart(anonymous: Caller) -> None:
    for _ in range(2):
        assert anonymous.get(f"{BASE}/").headers["content-type"].startswith("text/html")
        assert "tags" in anonymous.get(f"{BASE}/?rest_route=/tribe/events/v1/tags").json()
        assert "venues" in anonymous.get(f"{BASE}/?rest_route=/tribe/events/v1/venues").json()
        head = anonymous.request("HEAD", f"{BASE}/?rest_route=/tribe/events/v1/tags")
        assert (head.content, head.headers["content-type"]) == (b"", "application/json; charset=UTF-8")


ODD_VALUES = [
    "/nothing",
    "nothing/at/all",
    "//tribe/events/v1/tags",
    "/tribe/events/v1/../../../docs",
    "/../docs",
    "/../",
    "..",
    "/..%2f..%2fhealthz",
    "/doc",
    "/index.php/wp-json/tribe/events/v1/tags",
    quote("/tribe/events/v1/tags", safe=""),
    "/tribe/events/v1/tags?hide_empty=0",
    "/tribe/events/v1/tags#x",
    "\0",
    "/tribe/events/v1/tags\r\nX-Injected: 1",
    "http://evil.example/",
    "/" + "a" * 20_000,
    "\ud7ff\ufffd",
    "<script>alert(1)</script>",
]


@pytest.mark.quick("GET", "OPTIONS")
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS"])
def test_unknown_routes_are_404_in_json_for_browsers_too(anonymous: Caller, method: str) -> None:
    for value in ODD_VALUES:
        for path in ("/", "/index.php", "/events/", "/event/nothing/"):
            # The value is encoded once, so an encoded value is doubly encoded.
            address = f"{BASE}{path}?rest_route={quote(value, safe='')}"
            response = anonymous.request(method, address, headers={"Accept": "text/html"})
            assert response.status_code == 404, (address, response.text[:200])
            assert response.headers["content-type"] == "application/json; charset=UTF-8"
            if method != "HEAD":
                assert response.json()["code"] == "rest_no_route", address


@pytest.mark.quick("rest_route[]=/tribe/events/v1/tags", "%72est_route=/nothing")
@pytest.mark.parametrize(
    "query",
    [
        b"rest_route[]=/tribe/events/v1/tags",
        b"rest_route%5B%5D=/",
        b"rest_route[a][b]=",
        b"rest_route=%ff%fe",
        b"rest_route=/\xff",
        b"rest_route=%00",
        b"%72est_route=/nothing",
    ],
)
def test_lists_and_broken_bytes_are_404_in_json(app: RunningApp, query: bytes) -> None:
    status, headers, body = app.raw("GET", "/", query=query, headers=[("accept", "text/html")])
    assert (status, headers["content-type"]) == (404, "application/json; charset=UTF-8")
    assert b"rest_no_route" in body


def test_unknown_address_below_a_rest_root_is_json(anonymous: Caller) -> None:
    for address in (f"{ROOT}/nothing", f"{ROOT}/doc", f"{BASE}/api/nothing/v1", f"{BASE}/index.php/wp-json/x"):
        assert_error(anonymous.get(address, headers={"Accept": "text/html"}), 404, "rest_no_route")


def test_without_an_alias_every_route_is_404_in_json(start_app: StartApp) -> None:
    anonymous = start_app().caller()
    for value in ("/", "", "/tribe/events/v1/events", "/calendar/events/v1/events"):
        for path in ("/", "/events/", "/docs"):
            response = anonymous.get(f"{BASE}{path}?rest_route={value}", headers={"Accept": "text/html"})
            assert_error(response, 404, "rest_no_route")
