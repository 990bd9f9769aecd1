"""A shared cache in front keeps nothing that one client's request made for another: headers, methods, passwords."""

import time
from collections.abc import Iterator
from itertools import count

import httpx
import pytest

from tests.security.instance import Tell
from tests.varnish.conftest import NS, Stage

pytestmark = pytest.mark.slow

EVIL = "evil.example"
SECRET, WORD = "gnusto-content", "sesame"
DATES = {"start_date": "2031-05-01 10:00:00", "end_date": "2031-05-01 12:00:00"}
# What is not part of the key under which an answer is kept.
UNKEYED = {
    "X-Forwarded-Host": EVIL,
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Scheme": "nothttps",
    "X-Forwarded-Port": "4711",
    "X-Forwarded-Prefix": f"//{EVIL}",
    "X-Original-URL": f"/{EVIL}",
    "X-Rewrite-URL": f"/{EVIL}",
    "X-Host": EVIL,
    "Forwarded": f"host={EVIL};proto=https",
    "Origin": f"https://{EVIL}",
    "Referer": f"https://{EVIL}/",
    "Cookie": f"lang={EVIL}",
    "User-Agent": EVIL,
    "X-Request-ID": EVIL,
    "X-HTTP-Method-Override": "DELETE",
    "Accept-Language": "de",
    "Accept": "text/plain",
    "If-None-Match": "*",
}
PASSWORDS = (
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


def fresh(path: str) -> str:
    """An address that nobody has asked for yet."""
    return f"{path}{'&' if '?' in path else '?'}per_page={next(_numbers) + 5}"


@pytest.fixture(scope="module")
def guarded(stage: Stage) -> str:
    stage.write("POST", "/events", title="Open", slug="open", **DATES)
    body = {"slug": "guarded", "description": SECRET, "new_password": WORD, **DATES}
    event = stage.write("POST", "/events", title="Guarded", **body)
    return str(event["id"])


def content(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.text


def test_unkeyed_headers_do_not_affect_other_clients(stage: Stage, guarded: str, tell: Tell) -> None:
    paths = (
        f"{NS}/events?start_date=2031-01-01&end_date=2031-12-31",
        "/events/list/?start_date=2031-05-01&end_date=2031-05-31",
        "/events.json",
    )
    tried = 0
    for name, value in UNKEYED.items():
        for path in paths:
            asked = fresh(path)
            first = stage.public.get(asked, headers={name: value})
            second = stage.public.get(asked)
            assert second.status_code == 200, (name, path)
            assert EVIL not in second.text + str(second.headers), (name, path)
            assert "4711" not in second.text, (name, path)
            assert second.headers.get("content-language", "en") == "en", (name, path)
            assert first.status_code < 500, (name, path)
            tried += 1
    tell(f"{tried} answers after a header that is not part of the key, {tried} clean")


def test_method_encoding_and_range_are_not_cached(stage: Stage, guarded: str, tell: Tell) -> None:
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
            asked = fresh(path)
            stage.public.request(method, asked, headers=headers)
            whole = stage.public.get(asked, headers={"Accept-Encoding": "identity"})
            assert (whole.status_code, "content-encoding" in whole.headers) == (200, False), (path, headers)
            assert "Open" in whole.text, (path, headers)
            packed = stage.public.get(asked, headers={"Accept-Encoding": "gzip"})
            assert content(packed) == content(whole), (path, headers)
            tried += 1
    tell(f"{tried} answers after another method, encoding or range, {tried} whole")


def opened(guarded: str) -> Iterator[tuple[str, str]]:
    for path in (f"{NS}/events/{guarded}", f"{NS}/events/by-slug/guarded", "/event/guarded/"):
        yield from ((path, name) for name in PASSWORDS)


def test_unlocked_responses_are_not_cached(stage: Stage, guarded: str, tell: Tell) -> None:
    cases, shown = list(opened(guarded)), 0
    for path, name in cases:
        right, wrong = (f"{path}?{name}={word}" for word in (WORD, "wrong"))
        shown += SECRET in stage.public.get(right).text
        # One after the other, so that whatever was kept would be given out now.
        again = [stage.public.get(asked) for asked in (path, wrong, f"{path}?{name}=", f"{path}?")]
        assert [SECRET in answer.text for answer in again] == [False] * 4, (path, name)
        assert stage.public.get(right).headers["x-cache"] == "miss"
    assert shown >= len(cases) / 2  # Some spellings are no password to the server.
    tell(f"{len(cases)} spellings of a password, {shown} opened the event, none was kept")


def test_authenticated_responses_are_not_cached(stage: Stage, guarded: str, tell: Tell) -> None:
    draft = stage.write("POST", "/events", title="Hushed", slug="hushed", status="draft", **DATES)
    paths = (f"/events/{draft['id']}", "/events/by-slug/hushed", "/events?start_date=2031-01-01&end_date=2031-12-31",
             "/events?start_date=2031-01-01&end_date=2031-12-31&status=draft", f"/events/{guarded}?context=edit",
             f"/events?include={draft['id']}")  # fmt: skip
    for path in paths:
        mine = [stage.public.get(NS + path, auth=stage.editor.auth) for _ in range(2)]
        assert all("Hushed" in answer.text or SECRET in answer.text for answer in mine), path
        assert [answer.headers["x-cache"] for answer in mine] == ["miss", "miss"]
        for _ in range(2):
            answer = stage.public.get(NS + path)
            assert ("Hushed" in answer.text, SECRET in answer.text) == (False, False), path
    tell(f"{len(paths)} answers to somebody, none kept for everybody")


def test_many_parameters_do_not_delay_responses(stage: Stage, guarded: str, tell: Tell) -> None:
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
        began = time.monotonic()
        answer = stage.public.get(f"{NS}/tags?{query}")
        assert answer.status_code in (200, 400, 414, 431), query[:50]
        assert time.monotonic() - began < 2, query[:50]
    tell(f"{len(queries)} addresses with very many parameters, {len(queries)} answered within 2 s")


def test_purge_needs_key_and_removes_nothing_else(stage: Stage, guarded: str) -> None:
    path = f"{NS}/events?start_date=2031-01-01&end_date=2031-12-31&per_page=4"
    stage.public.get(path)
    for headers, status in (({}, 400), ({"xkey": ""}, 400), ({"xkey": "s99"}, 200), ({"xkey": "*"}, 200)):
        assert stage.public.request("PURGE", path, headers=headers).status_code in (status, 200), headers
        assert stage.public.get(path).headers["x-cache"] == "hit", headers
