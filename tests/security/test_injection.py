"""What a request says does not become part of a page, a feed or a header. Records: pages/test_hostile_texts.py."""

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import product
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest

from tests.feeds.ical_readers import unfolded
from tests.pages.payloads import BREAKS, CALL, TAGS
from tests.security.instance import Place, Tell, first, some
from tests.security.wire_client import NS, Ask, Got, get, send

PAYLOADS = [*TAGS, *BREAKS, "\r\nX-Injected: 1", "\r\n\r\n<script>pwned()</script>", "\x85X-Injected: 1"]
PAGES = ("/", "/events/month/", "/events/list/", "/events/map/", "/events/search/", "/event/known/", "/venue/hall/")
FEEDS = ("ics", "rss", "atom", "json")
SCHEMES = (
    "javascript:pwned()", "JaVaScRiPt:pwned()", "java\tscript:pwned()", " javascript:pwned()", "data:text/html,x",
    "vbscript:x", "file:///etc/passwd", "blob:https://a.example/x", "ftp://a.example/", "about:blank", "ws://a.example/",
    "//a.example/", "view-source:http://a.example/", "filesystem:http://a.example/x", "intent://a/#Intent;end",
    "http://", "https:///x", "javascript://a.example/%0apwned()",
)  # fmt: skip
# Attributes that are harmless elsewhere, and that no page uses here.
UNUSED = (("meta", "http-equiv"), ("base", "href"))


class Look(HTMLParser):
    """What could run in a page: scripts, handlers, addresses that are programs, and elements that no page has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts = 0
        self.bad: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.scripts += tag == "script" and given.get("type") != "application/ld+json"
        if tag in ("iframe", "object", "embed", "math", "style", "template", "plaintext", "xmp"):
            self.bad.append(tag)
        for name, value in attrs:
            target = re.sub(r"[\x00-\x20]", "", value or "").lower()
            if name.startswith("on") or name == "srcdoc" or (tag, name) in UNUSED:
                self.bad.append(f"{tag} {name}")
            if name in ("href", "src", "action", "formaction") and target.startswith(
                ("javascript:", "vbscript:", "data:text")
            ):
                self.bad.append(f"{tag} {name}={value}")


@pytest.fixture(scope="module")
def town(place: Place) -> Place:
    place.create("events", title="Known", slug="known", start_date="2031-05-01", end_date="2031-05-02",
                 venue={"venue": "Hall", "slug": "hall"})  # fmt: skip
    return place


def fits(payload: str) -> bool:
    """Whether a header can hold it."""
    return payload.isascii() and not re.search(r"[\x00-\x1f\x7f]", payload)


def asks(payload: str) -> Iterator[Ask]:
    """A payload in all that a request for a page or feed can say."""
    text, html = quote(payload, safe=""), {"accept": "text/html"}
    for path in ("/events/list/", "/events/search/", "/events/map/", "/embed/events/list/"):
        yield Ask("GET", f"{path}?search={text}&near={text[:90].rpartition('%')[0] or 'x'}", html)
    for param in ("lang", "categories", "start_date", "page", "p"):
        yield Ask("GET", f"/events/list/?{param}={text}", html)
    yield Ask("GET", f"/events/list?{text}={text}", html)  # led on, with its query
    for path in (
        f"/event/{text}/",
        f"/events/category/{text}/",
        f"/{text}",
        f"/embed/venue/{text}/",
        f"/event/{text}",
    ):
        yield Ask("GET", path, html)
    yield Ask("GET", f"/docs?lang={text}", html)
    yield from (Ask("GET", f"/events.{form}?search={text}&{text}=1") for form in FEEDS)
    if fits(payload):
        for path in (
            *PAGES[:5],
            "/docs",
            "/events/list",
            "/sitemap.xml",
            "/robots.txt",
            *[f"/events.{form}" for form in FEEDS],
        ):
            yield Ask("GET", path, {**html, "host": payload})
        for path in (*PAGES, "/docs", NS, f"{NS}/events?page=x"):
            yield Ask("GET", path, {**html, "accept-language": payload})
        yield Ask("GET", f"{NS}/events", {"x-request-id": payload, "origin": payload})


def problems(got: Got, scripts: dict[bool, int]) -> str:
    """What is wrong with an answer; "" is nothing."""
    if got.status in (0, 429) or got.status >= 500:
        return f"status {got.status}"
    if [line for line in got.head.split("\r\n")[1:] if not re.match(r"[a-z0-9-]+: ", line)] or got.header(
        "x-injected"
    ):
        return f"head {got.head}"
    location = got.header("location")
    if location and (location.startswith(("//", "/\\")) or not re.match(r"/|https?://", location)):
        return f"leads to {location}"
    kind, text = got.header("content-type"), got.body.decode()
    if kind.startswith("text/html"):
        look = Look(text)
        if look.bad or look.scripts != scripts["/docs" in text]:
            return f"{look.bad}, {look.scripts} scripts"
        policy = got.header("content-security-policy")
        return (
            ""
            if "default-src 'none'" in policy and "unsafe-inline" not in policy.partition("style-src")[0]
            else f"policy {policy}"
        )
    if "xml" in kind:
        ElementTree.fromstring(text)
    if kind.startswith("text/calendar"):
        lines = unfolded(text.removesuffix("\r\n"))
        if [line for line in lines if not re.match(r"[A-Z-]+[;:]", line)] or lines.count("BEGIN:VEVENT") > 1:
            return "a line of the calendar"
    if "json" in kind:
        json.loads(text)
    return ""


def test_request_values_are_not_injected_into_responses(town: Place, tell: Tell) -> None:
    everything = [(payload, ask) for payload in PAYLOADS for ask in asks(payload)]
    tried = some(everything, 400)
    scripts = {path == "/docs": Look(town.ask(get(path)).body.decode()).scripts for path in ("/", "/docs")}
    answers = town.ask_all(ask for _, ask in tried)
    wrong = []
    for (payload, ask), got in zip(tried, answers, strict=True):
        try:
            found = problems(got, scripts)
        except (ValueError, ElementTree.ParseError) as error:
            found = f"{type(error).__name__} {error}"
        if found:
            wrong.append(f"{payload!r} in {ask.target[:80]} {ask.headers}: {found}")
    assert wrong == [], f"{len(wrong)} of {len(tried)}\n" + "\n".join(first(wrong, 30))
    assert len(PAYLOADS) >= 106
    pages = sum(got.header("content-type").startswith("text/html") for got in answers)
    assert pages > len(tried) / 3
    counts = f"{len(tried):,} of {len(everything):,} requests with {len(PAYLOADS)} payloads"
    tell(f"{counts}, {len(tried):,} held ({pages:,} of them pages)")


def test_page_inspection_detects_injection() -> None:
    assert Look(f"<script>{CALL}</script>").scripts == 1
    assert Look(f"<p onclick={CALL}><a href=' java\tscript:x'><iframe>").bad == [
        "p onclick",
        "a href= java\tscript:x",
        "iframe",
    ]


def test_only_http_urls_are_stored(town: Place, tell: Tell) -> None:
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("venues", {"venue": "x"}),
        ("organizers", {"organizer": "x"}),
        ("events", {"title": "x", "start_date": "2031-05-01", "end_date": "2031-05-02"}),
    ]
    cases = [(kind, {**body, "website": scheme}) for (kind, body), scheme in product(bodies, SCHEMES)]
    cases += [("events", {**bodies[2][1], "ticket_url": scheme}) for scheme in SCHEMES]
    answers = [town.ask(send("POST", f"{NS}/{kind}", body), "editor") for kind, body in cases]
    stored = [got.json().get("ticket_url") or got.json()["website"] for got in answers if got.status == 201]
    assert {got.status for got in answers} <= {201, 400}
    assert [address for address in stored if not re.match(r"https?://[^/]", address)] == []
    tell(f"{len(cases)} addresses of other schemes, {len(cases) - len(stored)} refused, {len(stored)} made harmless")
