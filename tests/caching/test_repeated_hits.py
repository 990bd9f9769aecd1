"""Requests with equal heads get the response that the whole way through the application gives."""

import random
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import pytest

from kalends.http import cache
from kalends.http.cache import ResponseCache
from tests.api.conftest import StartApp, start_app, start_single_site
from tests.api.running_app import API_PATH, RunningApp
from tests.console.console_client import ConsoleClient
from tests.soak import scaled

__all__ = ["start_app", "start_single_site"]

AGENTS = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36",
    "Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0",
    "curl/8.14.1",
)
Choices = dict[str, tuple[str | None, ...]]
# Headers of browsers, feed readers and scripts; None: the header is missing.
SELECTING: Choices = {
    "accept-encoding": (None, "gzip, deflate, br, zstd", "identity", "gzip;q=0", "br"),
    "accept-language": (None, "en-US,en;q=0.5", "de-DE,de;q=0.9,en;q=0.8", "ja", "xx"),
    "if-none-match": (None, None, "ETAG", '"other"'),
    "origin": (None, "https://news.example", "https://other.example"),
}
OTHERS: Choices = {
    "accept": (None, "*/*", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "application/json"),
    "cache-control": (None, "no-cache", "max-age=0"),
    "cookie": (None, "consent=1; _ga=GA1.1.2", "__Host-kalends=stolen", "SESSION"),
    "authorization": (None, None, None, None, "AUTHORIZATION"),
    "referer": (None, "https://search.example/?q=events"),
    "sec-fetch-site": (None, "none", "same-origin", "cross-site"),
    "user-agent": AGENTS,
    "x-forwarded-for": (None, "203.0.113.7"),
    "x-kalends-revision": (None, None, None, None, "1", "wrong"),
    "x-request-id": (None, None, "trace-1"),
}
SETTINGS = {"KALENDS_CORS_ORIGINS": "https://news.example", "KALENDS_API_ALIASES": "/wp-json/tribe/events/v1"}
PATHS = (
    (f"{API_PATH}/events", b"start_date=2031-01-01"),
    (f"{API_PATH}/events", b"start_date=2031-01-01&per_pge=3"),
    (f"{API_PATH}/events/EVENT", b""),
    (f"{API_PATH}/events/SECRET", b""),
    (f"{API_PATH}/events/999999", b""),
    ("/events/month/2031-05/", b""),
    ("/events/list/", b"lang=fr"),
    ("/event/jazz/", b""),
    ("/event/secret/", b""),
    ("/events/feed.ics", b""),
    ("/wp-json/tribe/events/v1/categories", b""),
    ("/", b"rest_route=/tribe/events/v1/events/EVENT"),
    ("/", b"rest%5Froute=/tribe/events/v1/events/EVENT&lang=de"),
)
DAY = {"start_date": "2031-05-02 19:00:00", "end_date": "2031-05-02 21:00:00"}


class Heads:
    """A site on two applications with a cache; only the first knows the heads of earlier requests."""

    def __init__(self, app: RunningApp, twin: RunningApp, seed: int) -> None:
        self.app, self.twin, self.random = app, twin, random.Random(seed)
        self.repeated = self.compared = 0
        editor = app.caller("editor")
        jazz = editor.create("events", title="Jazz", categories=["Music"], **DAY)
        secret = editor.create("events", title="Secret", new_password="sesame-1", **DAY)
        self.names = {"EVENT": str(jazz["id"]), "SECRET": str(secret["id"])}
        self.values = {
            "AUTHORIZATION": str(editor.get("/events").request.headers["authorization"]),
            "SESSION": f"__Host-kalends={ConsoleClient.signed_in(app, 'editor').token}",
        }
        self.etags = ['"none"']

    def find_difference(self, count: int) -> str:
        """Send requests with random heads; return the first one with another response, or an empty string."""
        while self.compared < count:
            path, query = self._fill(*self.random.choice(PATHS))
            hosts = (self.app.host, self.app.host, f"{self.app.host}:8080", "unknown.test")
            selecting = [("host", self.random.choice(hosts)), *self._choose_headers(SELECTING)]
            for _ in range(4):  # The third request with an equal head is a repeated one.
                head = [*selecting, *self._choose_headers(OTHERS)]
                self.random.shuffle(head)
                answers = [self._read(app, path, query, head) for app in (self.app, self.twin)]
                self.compared += 1
                if answers[0] != answers[1]:
                    return f"{path}?{query.decode()} {head}\n{answers[0]}\n{answers[1]}"
        return ""

    def _read(self, app: RunningApp, path: str, query: bytes, head: list[tuple[str, str]]) -> tuple[object, ...]:
        status, headers, body = app.raw("GET", path, query=query, headers=head)
        if etag := headers.get("etag"):
            self.etags.append(etag)
        sent_id = dict(head).get("x-request-id")
        assert (headers["x-request-id"] == sent_id) == (sent_id is not None)
        return status, {name: value for name, value in headers.items() if name != "x-request-id"}, body

    def _choose_headers(self, choices: Choices) -> list[tuple[str, str]]:
        chosen = [(name, self._choose(values)) for name, values in choices.items()]
        return [(name, value) for name, value in chosen if value is not None]

    def _choose(self, values: tuple[str | None, ...]) -> str | None:
        value = self.random.choice(values)
        return self.random.choice(self.etags[-5:]) if value == "ETAG" else self.values.get(value or "", value)

    def _fill(self, path: str, query: bytes) -> tuple[str, bytes]:
        for name, value in self.names.items():
            path, query = path.replace(name, value), query.replace(name.encode(), value.encode())
        return path, query


@pytest.fixture
def make_heads(start_single_site: StartApp) -> Iterator[Callable[[int], Heads]]:
    servers: list[RunningApp] = []

    def make(seed: int) -> Heads:
        app = start_single_site(SETTINGS)
        twin = app.twin(SETTINGS)
        servers.append(twin.__enter__())
        twin.asgi._repeats_hits = False
        return Heads(app, twin, seed)

    yield make
    for server in servers:
        server.__exit__()


def test_random_heads_get_the_response_of_the_whole_way(make_heads: Callable[[int], Heads]) -> None:
    heads = make_heads(1)
    is_valid = ResponseCache.is_valid

    async def count(*arguments: Any) -> bool:
        heads.repeated += (result := await is_valid(*arguments))
        return result

    with patch.object(ResponseCache, "is_valid", count):
        assert heads.find_difference(scaled(1500, 10_000)) == ""
    assert heads.repeated > 0.1 * heads.compared


@pytest.mark.parametrize(
    ("names", "name"),
    [
        # No cached response of the API depends on Accept-Language yet, so nothing would show that it is missing.
        *[("SELECTING_HEADERS", name) for name in (b"host", b"accept-encoding", b"origin", b"if-none-match")],
        ("EXCLUDING_HEADERS", b"authorization"),
        ("SESSION_COOKIE", b"__Host-kalends"),
    ],
)
def test_header_that_is_left_out_is_found(make_heads: Callable[[int], Heads], names: str, name: bytes) -> None:
    known = getattr(cache, names)
    with patch.object(cache, names, known - {name} if isinstance(known, frozenset) else b"no-such-cookie"):
        assert make_heads(2).find_difference(3000) != ""


def test_browsers_share_a_page(start_single_site: StartApp) -> None:
    """Headers that differ between browsers, but select nothing, find the response of another browser."""
    app = start_single_site()
    app.caller("editor").create("events", title="Fair", **DAY)
    head = [("accept-encoding", "gzip")]
    for _ in range(2):
        app.raw("GET", "/events/month/2031-05/", headers=head)
    with patch.object(app.asgi, "_respond", side_effect=AssertionError("the whole way")):
        for agent in AGENTS:
            for language in ("de", "ja", "en-GB"):
                others = [("user-agent", agent), ("accept-language", language), ("cookie", "consent=1")]
                assert app.raw("GET", "/events/month/2031-05/", headers=[*head, *others])[0] == 200


def test_changes_end_repeated_hits(start_app: StartApp) -> None:
    app, other = start_app(), start_app()
    editor = app.caller("editor")
    event = editor.create("events", title="Fair", **DAY)
    path = f"{API_PATH}/events/{event['id']}"

    def read() -> tuple[int, bytes]:
        status, _, body = [app.raw("GET", path) for _ in range(3)][-1]
        return status, body

    assert b'"title":"Fair"' in read()[1]
    editor.change("events", event["id"], title="Fest")
    assert b'"title":"Fest"' in read()[1]
    editor.change("events", event["id"], description="Where the key is", new_password="sesame-1")
    assert b"Where the key is" not in read()[1]
    editor.change("events", event["id"], status="draft")
    assert read()[0] in (401, 403, 404)
    editor.change("events", event["id"], status="publish", new_password="")
    assert read()[0] == 200
    assert [other.raw("GET", path)[0] for _ in range(3)] == [404] * 3


def test_variants_of_a_response_are_limited(start_single_site: StartApp) -> None:
    app = start_single_site()
    app.caller("editor").create("events", title="Fair", **DAY)
    for number in range(50):
        assert app.raw("GET", f"{API_PATH}/events", headers=[("if-none-match", f'"{number}"')])[0] == 200
    variants = [response.variants for _, response in app.asgi._cache._entries._entries.values()]
    assert max(map(len, variants)) <= cache.MAX_VARIANTS
    long = [("if-none-match", ", ".join(f'"{number}"' for number in range(1000)))]
    assert [app.raw("GET", f"{API_PATH}/events", headers=long)[0] for _ in range(3)] == [200] * 3
    assert not any(len(repr(head)) > cache.MAX_HEAD_LENGTH for heads in variants for head in heads)
