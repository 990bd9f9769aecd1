"""Paths, query strings, headers and cursors that nobody means well with: 4xx, never 5xx."""

import base64
from typing import Any

import httpx
import orjson
import pytest

from tests.api.conftest import StartApp
from tests.api.running_app import API_PATH, Caller, RunningApp, assert_error, expect_json
from tests.api.sample_records import Sample

BASE = f"/{API_PATH}"


@pytest.mark.quick("events-9007199254740992", "tags-number6")
@pytest.mark.parametrize(
    "number",
    [
        "9007199254740992",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551616",
        "9" * 40,
        "9" * 2000,
        "0" * 3000,
    ],
)
def test_id_beyond_64_bits_is_not_found(anonymous: Caller, editor: Caller, sample: Sample, number: str) -> None:
    code = f"rest-{sample.singular}-not-found"
    assert_error(anonymous.get(f"/{sample.kind}/{number}"), 404, code)
    assert_error(editor.patch(f"/{sample.kind}/{number}", {}), 404, code)
    assert_error(editor.delete(f"/{sample.kind}/{number}"), 404, code)


SLUGS = ["%00", "a%00b", "%ff", "%c3%28", "%ed%a0%80", "%", "%zz", "%2e%2e%2fetc", "%20", "%0d%0aX:1", "日本",
"a" * 3000,
         "%27%20OR%201%3D1--", "%25", "a%2fb", "%E2%80%AE", "%f0%9f%98%80", "__trashed", "*", "?%23"]  # fmt: skip


@pytest.mark.quick("events-%00", "organizers-?%23")
@pytest.mark.parametrize("slug", SLUGS)
def test_hostile_slugs_cause_no_server_error(anonymous: Caller, editor: Caller, post: Sample, slug: str) -> None:
    for caller, method in ((anonymous, "GET"), (editor, "PATCH"), (editor, "DELETE"), (anonymous, "HEAD")):
        response = caller.request(method, f"{BASE}/{post.kind}/by-slug/{slug}", json={})
        assert response.status_code in (404, 405), response.text


@pytest.mark.quick("/events/\\x00", "/event\\u017f")
@pytest.mark.parametrize("path", ["/events/\x00", "/events/1\n", "/\u0130", "/eventſ"])
def test_hostile_decoded_paths_cause_no_server_error(app: RunningApp, path: str) -> None:
    """A server may hand over a path that it could not decode."""
    status, headers, body = app.raw("GET", API_PATH + path)
    assert status in (200, 404), body
    assert "x-request-id" in headers


@pytest.mark.quick("events-search=%ff", "tags-search=%ed%a0%80")
@pytest.mark.parametrize("query", [b"search=%ff", b"%ff=1", b"search=%c3%28", b"search=%ed%a0%80"])
def test_invalid_utf8_in_query_string_is_rejected(anonymous: Caller, sample: Sample, query: bytes) -> None:
    assert_error(anonymous.get(f"/{sample.kind}?{query.decode()}"), 400, "rest_invalid_form")


@pytest.mark.quick("/events", "/doc")
@pytest.mark.parametrize("path", ["/events", "/tags", "/venues/1", "/", "/doc"])
def test_raw_bytes_in_query_string_cause_no_server_error(app: RunningApp, path: str) -> None:
    for query in (b"search=\xff", b"\xff", b"page=1&\xfe\xff=\x80", b"_method=\xff", b"namespace=\xff"):
        for method in ("GET", "POST", "OPTIONS"):
            status, _, body = app.raw(method, API_PATH + path, query=query)
            assert status < 500, body


@pytest.mark.quick("search=%", "query7")
@pytest.mark.parametrize(
    "query", [b"search=%", b"search=%zz", b"search=%2", b"%=%", b"a;b;c", b"?", b"&&=&=", b"=" * 500]
)
def test_malformed_percent_escapes_are_literal(app: RunningApp, query: bytes) -> None:
    for path in ("/events", "/categories"):
        status, _, body = app.raw("GET", API_PATH + path, query=query)
        assert status in (200, 400), body


HEADERS = {
    "Host": ["", "[", "[::1]", "a b", "a" * 5000, "\xff", "calendar.test:99999", ":80", "a:b:c", "http://x/",
    "%00", "."],
    "Authorization": ["Basic " + "A" * 20_000, "Basic \xff", "Basic ////", "Basic AA==", "Basic Og==",
    "Basic OjpBOg==", " ", "Basic  "],
    "Content-Length": ["-1", "x", "\xb2", "1e3", " 5", "9" * 30, "9" * 5000],
    "Content-Type": ["", ";", "/", "application/json;charset=\xff", "multipart/form-data; boundary=\xff",
    "a" * 5000, "application/+json"],
    "If-Match": ["", "*", "W/", '"', '"x"', '"1', "1-2-3", '"' + "9" * 5000 + '"', ",,,", "\xff", '"\xb2-a"'],
    "If-None-Match": ["", "*", "W/", '"', ",,,", "\xff", "x" * 5000],
    "Idempotency-Key": ["", " ", "\xff", "%00", "'; --", "a" * 255, "\u00e9"],
    "X-HTTP-Method-Override": ["", "BOGUS", "\xff", "DELETE, PUT", "a" * 5000],
    "X-Request-ID": ["\xff", "a\tb", "x" * 5000],
    "Origin": ["", "null", "\xff", "x" * 5000, "https://a\tb"],
    "Accept": ["", "*/*;q=\xff"],
    "X-Forwarded-For": ["\xff", "1.1.1.1" * 500],
}  # fmt: skip


@pytest.mark.quick("Host", "X-Forwarded-For")
@pytest.mark.parametrize("name", HEADERS)
def test_hostile_headers_cause_no_server_error(app: RunningApp, editor: Caller, name: str) -> None:
    credentials = next(editor.auth.auth_flow(httpx.Request("GET", "http://a"))).headers["authorization"]  # type: ignore[union-attr]
    tag = editor.create("tags", name=f"Headers {name}")["id"]
    errors: list[Any] = []
    for value in HEADERS[name]:
        for method, path in (
            ("GET", "/events"),
            ("PATCH", f"/tags/{tag}"),
            ("POST", "/events"),
            ("GET", f"/tags/{tag}"),
            ("GET", "/doc"),
        ):
            headers = {"authorization": credentials, "content-type": "application/json", name.lower(): value}
            status, _, _ = app.raw(method, API_PATH + path, headers=list(headers.items()), body=[b"{}"])
            if status >= 500:
                errors.append((status, method, path, value[:60]))
    assert errors == []


def test_request_without_host_is_served(start_single_site: StartApp) -> None:
    status, _, body = start_single_site().raw("GET", f"{API_PATH}/events", headers=[("host", "")])
    assert (status, orjson.loads(body)["events"]) == (200, [])


# Cursors --------------------------------------------------------------------------------------


def forge_cursor(*parts: Any) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(parts)).decode().rstrip("=")


TIME = "2027-01-01T00:00:00+00:00"
FORGED_CURSORS = {
    "no base64": "!!!",
    "no json": base64.urlsafe_b64encode(b"nonsense").decode(),
    "not ASCII": "日本",
    "a number": base64.urlsafe_b64encode(b"5").decode(),
    "an object": base64.urlsafe_b64encode(b'{"a":1,"b":2,"c":3}').decode(),
    "deep": base64.urlsafe_b64encode(b"[" * 900 + b"]" * 900).decode(),
    "another order": forge_cursor("title", "asc", "a", 1),
    "an unknown order": forge_cursor("salary", "asc", 1),
    "too few keys": forge_cursor("start_date", "asc", TIME),
    "an order that is a list": forge_cursor(["start_date"], "asc", TIME, TIME, 1),
    "no dates": forge_cursor("start_date", "asc", "x", "y", 1),
    "dates that are numbers": forge_cursor("start_date", "asc", 1, 2, 3),
    "the first instant": forge_cursor("start_date", "asc", "0001-01-01T00:00:00+14:00", TIME, 1),
    "the last instant": forge_cursor("start_date", "asc", "9999-12-31T23:59:59-14:00", TIME, 1),
    "minus infinity": forge_cursor("start_date", "asc", "0001-01-01T00:00:00+00:00", TIME, 1),
    "an ID beyond 64 bits": forge_cursor("start_date", "asc", TIME, TIME, str(10**30)),
    "an ID that is text": forge_cursor("start_date", "asc", TIME, TIME, "x"),
    "an ID that is a list": forge_cursor("start_date", "asc", TIME, TIME, [1]),
    "long": "A" * 5000,
    "empty": "",
}


@pytest.mark.quick("no base64", "empty")
@pytest.mark.parametrize("text", FORGED_CURSORS.values(), ids=FORGED_CURSORS)
def test_forged_cursor_is_rejected_or_harmless(anonymous: Caller, text: str) -> None:
    response = anonymous.get("/events", {"cursor": text})
    assert response.status_code in (200, 400), response.text
    if response.status_code == 400:
        assert_error(response, 400, "rest_invalid_param", "cursor")


@pytest.mark.quick("title-keys0", "date-keys6")
@pytest.mark.parametrize(
    ("orderby", "keys"),
    [
        ("title", ("a\x00b", 1)),
        ("title", (None, 1)),
        ("title", ({"a": 1}, 1)),
        ("title", ("' OR 1=1 --", 1)),
        ("end_date", (TIME, -1)),
        ("modified", ("2027-01-01", 1.5)),
        ("date", ("2027-01-01T00:00:00", 1)),
    ],
)  # fmt: skip
def test_forged_cursor_with_matching_order_is_rejected_or_harmless(
    anonymous: Caller, orderby: str, keys: Any
) -> None:
    query = {"cursor": forge_cursor(orderby, "asc", *keys), "orderby": orderby}
    assert anonymous.get("/events", query).status_code in (200, 400)


@pytest.mark.quick("NaN", "1_0")
@pytest.mark.parametrize("distance", ["NaN", 1e308, "Infinity", "x", None, [], "1_0"])
def test_forged_distance_cursor_is_rejected_or_harmless(anonymous: Caller, distance: Any) -> None:
    query = {
        "cursor": forge_cursor("distance", "asc", distance, 1),
        "orderby": "distance",
        "geoloc_lat": 1,
        "geoloc_lng": 1,
    }
    assert anonymous.get("/events", query).status_code in (200, 400)


def test_issued_cursor_is_accepted(anonymous: Caller, editor: Caller) -> None:
    for n in range(3):
        editor.create("events", title=f"Cursor {n}", start_date="2027-02-01", end_date="2027-02-02")
    first = anonymous.page("events", per_page=2, search="cursor")
    second = expect_json(
        anonymous.get("/events", {"per_page": 2, "search": "cursor", "cursor": first["next_cursor"]})
    )
    titles = [event["title"] for event in first["events"] + second["events"]]
    assert (titles, second["next_cursor"]) == (["Cursor 0", "Cursor 1", "Cursor 2"], None)
