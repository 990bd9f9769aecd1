"""A shared cache in front keeps nothing that one client's request made for another: headers, methods, passwords."""

import time
from collections.abc import Iterator
from itertools import count

import httpx
import pytest

from tests.security.instance import Report
from tests.varnish.conftest import NS, Stage

EVIL_HOST = "evil.example"
SECRET_TEXT, PASSWORD = "gnusto-content", "sesame"
DATES = {"start_date": "2031-05-01 10:00:00", "end_date": "2031-05-01 12:00:00"}
# Headers that are not part of the cache key.
UNKEYED_HEADERS = {
    "X-Forwarded-Host": EVIL_HOST,
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Scheme": "nothttps",
    "X-Forwarded-Port": "4711",
    "X-Forwarded-Prefix": f"//{EVIL_HOST}",
    "X-Original-URL": f"/{EVIL_HOST}",
    "X-Rewrite-URL": f"/{EVIL_HOST}",
    "X-Host": EVIL_HOST,
    "Forwarded": f"host={EVIL_HOST};proto=https",
    "Origin": f"https://{EVIL_HOST}",
    "Referer": f"https://{EVIL_HOST}/",
    "Cookie": f"lang={EVIL_HOST}",
    "User-Agent": EVIL_HOST,
    "X-Request-ID": EVIL_HOST,
    "X-HTTP-Method-Override": "DELETE",
    "Accept-Language": "de",
    "Accept": "text/plain",
    "If-None-Match": "*",
}
PASSWORD_PARAMS = (
    "password",
    "PASSWORD",
    "Password",
    "%70assword",
    "pass%77ord",
    "passwor%64",
    "password[]",
    "a=1&password",
)
_numbers = count(1)


def uncached_url(path: str) -> str:
    """Return a URL that has not been requested yet."""
    return f"{path}{'&' if '?' in path else '?'}per_page={next(_numbers) + 5}"


@pytest.fixture(scope="module")
def protected_event(stage: Stage) -> str:
    stage.write("POST", "/events", title="Open", slug="open", **DATES)
    body = {"slug": "guarded", "description": SECRET_TEXT, "new_password": PASSWORD, **DATES}
    event = stage.write("POST", "/events", title="Guarded", **body)
    return str(event["id"])


def status_and_text(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.text


def test_unkeyed_headers_do_not_affect_other_clients(stage: Stage, protected_event: str, report: Report) -> None:
    paths = (
        f"{NS}/events?start_date=2031-01-01&end_date=2031-12-31",
        "/events/list/?start_date=2031-05-01&end_date=2031-05-31",
        "/events.json",
    )
    tried = 0
    for name, value in UNKEYED_HEADERS.items():
        for path in paths:
            url = uncached_url(path)
            first = stage.public.get(url, headers={name: value})
            second = stage.public.get(url)
            assert second.status_code == 200, (name, path)
            assert EVIL_HOST not in second.text + str(second.headers), (name, path)
            assert "4711" not in second.text, (name, path)
            assert second.headers.get("content-language", "en") == "en", (name, path)
            assert first.status_code < 500, (name, path)
            tried += 1
    report(f"{tried} responses after a request with an unkeyed header, {tried} unaffected")


def test_method_encoding_and_range_are_not_cached(stage: Stage, protected_event: str, report: Report) -> None:
    tried = 0
    for path in (
        f"{NS}/events?start_date=2031-01-01&end_date=2031-12-31",
        "/events/list/?start_date=2031-05-01&end_date=2031-05-31",
        "/events.ics",
    ):
        for method, headers in (
            ("HEAD", {}),
            ("GET", {"Accept-Encoding": "gzip"}),
            ("GET", {"Accept-Encoding": "identity"}),
            ("GET", {"Range": "bytes=0-5"}),
            ("GET", {"Range": "bytes=-1"}),
            ("GET", {"If-Modified-Since": "Fri, 01 Jan 2100 00:00:00 GMT"}),
        ):
            url = uncached_url(path)
            stage.public.request(method, url, headers=headers)
            plain = stage.public.get(url, headers={"Accept-Encoding": "identity"})
            assert (plain.status_code, "content-encoding" in plain.headers) == (200, False), (path, headers)
            assert "Open" in plain.text, (path, headers)
            packed = stage.public.get(url, headers={"Accept-Encoding": "gzip"})
            assert status_and_text(packed) == status_and_text(plain), (path, headers)
            tried += 1
    report(f"{tried} responses after another method, encoding or range, {tried} complete")


def password_urls(guarded: str) -> Iterator[tuple[str, str]]:
    for path in (f"{NS}/events/{guarded}", f"{NS}/events/by-slug/guarded", "/event/guarded/"):
        yield from ((path, name) for name in PASSWORD_PARAMS)


def test_unlocked_responses_are_not_cached(stage: Stage, protected_event: str, report: Report) -> None:
    cases, unlocked = list(password_urls(protected_event)), 0
    for path, name in cases:
        right, wrong = (f"{path}?{name}={word}" for word in (PASSWORD, "wrong"))
        unlocked += SECRET_TEXT in stage.public.get(right).text
        # One after the other, so that whatever was kept would be given out now.
        again = [stage.public.get(url) for url in (path, wrong, f"{path}?{name}=", f"{path}?")]
        assert [SECRET_TEXT in response.text for response in again] == [False] * 4, (path, name)
        assert stage.public.get(right).headers["x-cache"] == "miss"
    assert unlocked >= len(cases) / 2  # Some spellings are no password to the server.
    report(f"{len(cases)} variants of the password parameter, {unlocked} unlocked the event, none was cached")


def test_authenticated_responses_are_not_cached(stage: Stage, protected_event: str, report: Report) -> None:
    draft = stage.write("POST", "/events", title="Hushed", slug="hushed", status="draft", **DATES)
    paths = (f"/events/{draft['id']}", "/events/by-slug/hushed", "/events?start_date=2031-01-01&end_date=2031-12-31",
             "/events?start_date=2031-01-01&end_date=2031-12-31&status=draft",
             f"/events/{protected_event}?context=edit",
             f"/events?include={draft['id']}")  # fmt: skip
    for path in paths:
        mine = [stage.public.get(NS + path, auth=stage.editor.auth) for _ in range(2)]
        assert all("Hushed" in response.text or SECRET_TEXT in response.text for response in mine), path
        assert [response.headers["x-cache"] for response in mine] == ["miss", "miss"]
        for _ in range(2):
            response = stage.public.get(NS + path)
            assert ("Hushed" in response.text, SECRET_TEXT in response.text) == (False, False), path
    report(f"{len(paths)} authenticated responses, none cached")


def test_many_parameters_do_not_delay_responses(stage: Stage, protected_event: str, report: Report) -> None:
    """The expression that looks for equal names is tried on the longest addresses that pass."""
    queries = (
        "&".join(f"a{n}={n}" for n in range(800)),
        "&".join(["a=1"] * 1500),
        "a=" + "&a" * 3000,
        "&" * 6000,
        "=" * 6000,
        "a" * 6000,
        "&".join(f"{'a' * n}=" for n in range(100)),
        "[?&]" * 1500,
    )
    for query in queries:
        started = time.monotonic()
        response = stage.public.get(f"{NS}/tags?{query}")
        assert response.status_code in (200, 400, 414, 431), query[:50]
        assert time.monotonic() - started < 2, query[:50]
    report(f"{len(queries)} URLs with very many parameters, {len(queries)} answered within 2 s")


def test_purge_needs_key_and_removes_nothing_else(stage: Stage, protected_event: str) -> None:
    path = f"{NS}/events?start_date=2031-01-01&end_date=2031-12-31&per_page=4"
    stage.public.get(path)
    for headers, status in (({}, 400), ({"xkey": ""}, 400), ({"xkey": "s99"}, 200), ({"xkey": "*"}, 200)):
        assert stage.public.request("PURGE", path, headers=headers).status_code in (status, 200), headers
        assert stage.public.get(path).headers["x-cache"] == "hit", headers
