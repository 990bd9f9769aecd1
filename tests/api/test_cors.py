"""Which other origins may read answers: never together with a browser's stored credentials."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.api.running_app import Caller, RunningApp, expect_json
from tests.api.sample_records import Sample

ORIGIN = "https://app.example.org"
METHODS = "OPTIONS, GET, POST, PUT, PATCH, DELETE"


def select_cors_headers(headers: Any) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.startswith("access-control-")}


def test_all_origins_may_read_by_default(anonymous: Caller, editor: Caller, sample: Sample) -> None:
    responses = [
        anonymous.get(f"/{sample.kind}", headers={"Origin": ORIGIN}),
        anonymous.get(f"/{sample.kind}/999999", headers={"Origin": ORIGIN}),
        anonymous.post(f"/{sample.kind}", {}, headers={"Origin": ORIGIN}),
        editor.post(f"/{sample.kind}", sample.body(), headers={"Origin": ORIGIN}),
        anonymous.get("/", headers={"Origin": ORIGIN}),
        anonymous.get("/nothing", headers={"Origin": ORIGIN}),
    ]
    assert [response.status_code for response in responses] == [200, 404, 401, 201, 200, 404]
    for response in responses:
        cors_headers = select_cors_headers(response.headers)
        assert cors_headers["access-control-allow-origin"] == "*" or "origin" in response.headers["vary"].lower()
        assert cors_headers["access-control-allow-origin"] in (ORIGIN, "*")
        assert "access-control-allow-credentials" not in cors_headers


def test_response_headers_are_exposed_to_scripts(anonymous: Caller) -> None:
    cors_headers = select_cors_headers(anonymous.get("/events", headers={"Origin": ORIGIN}).headers)
    exposed = {name.strip().lower() for name in cors_headers["access-control-expose-headers"].split(",")}
    assert {"x-tec-total", "x-tec-totalpages", "x-wp-total", "x-wp-totalpages", "link", "location"} <= exposed
    assert {"etag", "allow", "retry-after", "x-request-id"} <= exposed


@pytest.mark.quick("events-POST", "tags-DELETE")
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_preflight_needs_no_credentials(anonymous: Caller, sample: Sample, method: str) -> None:
    preflight_headers = {
        "Origin": ORIGIN,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": "authorization, content-type, if-match, idempotency-key",
    }
    for path in (f"/{sample.kind}", f"/{sample.kind}/1"):
        response = anonymous.request("OPTIONS", path, headers=preflight_headers)
        assert response.status_code in (200, 204)
        cors_headers = select_cors_headers(response.headers)
        assert cors_headers["access-control-allow-methods"] == METHODS
        allowed = {name.strip().lower() for name in cors_headers["access-control-allow-headers"].split(",")}
        assert {"authorization", "content-type", "if-match", "if-none-match", "idempotency-key"} <= allowed
        assert {"x-wp-nonce", "content-md5"} <= allowed  # sent by clients of WordPress
        assert "access-control-allow-credentials" not in cors_headers


def test_only_configured_origins_may_read(start_app: Callable[..., RunningApp]) -> None:
    caller = start_app({"KALENDS_CORS_ORIGINS": f"{ORIGIN}, https://b.example.org/"}).caller()
    for allowed in (ORIGIN, "https://b.example.org"):
        response = caller.get("/events", headers={"Origin": allowed})
        assert select_cors_headers(response.headers)["access-control-allow-origin"] == allowed
    for other in ("https://c.example.org", ORIGIN + ".evil.test", ORIGIN.upper(), "null", "http://app.example.org"):
        response = caller.get("/events", headers={"Origin": other})
        assert expect_json(response)["events"] == []
        assert "access-control-allow-origin" not in response.headers
        assert "origin" in response.headers["vary"].lower()
    assert "access-control-allow-origin" not in caller.get("/events").headers


def test_empty_setting_allows_no_origin(start_app: Callable[..., RunningApp]) -> None:
    response = start_app({"KALENDS_CORS_ORIGINS": ""}).caller().get("/events", headers={"Origin": ORIGIN})
    assert (response.status_code, "access-control-allow-origin" in response.headers) == (200, False)


def test_cors_headers_do_not_depend_on_earlier_requests(start_app: Callable[..., RunningApp]) -> None:
    # BUG: of an answer from memory only the origin is its own; the other headers are those of whoever asked first,
    # so that after a request without an origin a script is not shown the totals.
    caller = start_app({"KALENDS_CORS_ORIGINS": ORIGIN}).caller()
    alone = select_cors_headers(caller.get("/events?page=1", headers={"Origin": ORIGIN}).headers)
    assert "X-WP-Total" in alone["access-control-expose-headers"]
    caller.get("/events")
    assert select_cors_headers(caller.get("/events", headers={"Origin": ORIGIN}).headers) == alone
