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

from tests.feeds.ical_readers import unfold_lines
from tests.pages.payloads import BREAKOUT_PAYLOADS, SCRIPT_CALL, TAG_PAYLOADS
from tests.security.instance import Instance, Report, sample_evenly, take_first
from tests.security.wire_client import API_PATH, WireRequest, WireResponse, get_request, json_request

PAYLOADS = [
    *TAG_PAYLOADS,
    *BREAKOUT_PAYLOADS,
    "\r\nX-Injected: 1",
    "\r\n\r\n<script>pwned()</script>",
    "\x85X-Injected: 1",
]
PAGES = ("/", "/events/month/", "/events/list/", "/events/map/", "/events/search/", "/event/known/", "/venue/hall/")
FEEDS = ("ics", "rss", "atom", "json")
HOSTILE_URLS = (
    "javascript:pwned()", "JaVaScRiPt:pwned()", "java\tscript:pwned()", " javascript:pwned()", "data:text/html,x",
    "vbscript:x", "file:///etc/passwd", "blob:https://a.example/x", "ftp://a.example/", "about:blank", "ws://a.example/",
    "//a.example/", "view-source:http://a.example/", "filesystem:http://a.example/x", "intent://a/#Intent;end",
    "http://", "https:///x", "javascript://a.example/%0apwned()",
)  # fmt: skip
# Attributes that are harmless elsewhere, and that no page uses here.
UNUSED_ATTRIBUTES = (("meta", "http-equiv"), ("base", "href"))


# Pages load different numbers of these.
OWN_SCRIPT = re.compile(r"/assets/[\w.-]+\.js")


class PageInspector(HTMLParser):
    """What could run in a page: scripts, handlers, addresses that are programs, and elements that no page has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.script_count = 0
        self.findings: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        is_own = OWN_SCRIPT.fullmatch(attributes.get("src") or "") is not None
        self.script_count += tag == "script" and attributes.get("type") != "application/ld+json" and not is_own
        if tag in ("iframe", "object", "embed", "math", "style", "template", "plaintext", "xmp"):
            self.findings.append(tag)
        for name, value in attrs:
            target = re.sub(r"[\x00-\x20]", "", value or "").lower()
            if name.startswith("on") or name == "srcdoc" or (tag, name) in UNUSED_ATTRIBUTES:
                self.findings.append(f"{tag} {name}")
            if name in ("href", "src", "action", "formaction") and target.startswith(
                ("javascript:", "vbscript:", "data:text")
            ):
                self.findings.append(f"{tag} {name}={value}")


@pytest.fixture(scope="module")
def filled_instance(instance: Instance) -> Instance:
    instance.create("events", title="Known", slug="known", start_date="2031-05-01", end_date="2031-05-02",
                 venue={"venue": "Hall", "slug": "hall"})  # fmt: skip
    return instance


def fits_in_header(payload: str) -> bool:
    """Whether a header can hold it."""
    return payload.isascii() and not re.search(r"[\x00-\x1f\x7f]", payload)


def iter_requests(payload: str) -> Iterator[WireRequest]:
    """A payload in all that a request for a page or feed can say."""
    text, html = quote(payload, safe=""), {"accept": "text/html"}
    for path in ("/events/list/", "/events/search/", "/events/map/", "/embed/events/list/"):
        yield WireRequest("GET", f"{path}?search={text}&near={text[:90].rpartition('%')[0] or 'x'}", html)
    for param in ("lang", "categories", "start_date", "page", "p"):
        yield WireRequest("GET", f"/events/list/?{param}={text}", html)
    yield WireRequest("GET", f"/events/list?{text}={text}", html)  # led on, with its query
    for path in (
        f"/event/{text}/",
        f"/events/category/{text}/",
        f"/{text}",
        f"/embed/venue/{text}/",
        f"/event/{text}",
    ):
        yield WireRequest("GET", path, html)
    yield WireRequest("GET", f"/docs?lang={text}", html)
    yield from (WireRequest("GET", f"/events.{form}?search={text}&{text}=1") for form in FEEDS)
    if fits_in_header(payload):
        for path in (
            *PAGES[:5],
            "/docs",
            "/events/list",
            "/sitemap.xml",
            "/robots.txt",
            *[f"/events.{form}" for form in FEEDS],
        ):
            yield WireRequest("GET", path, {**html, "host": payload})
        for path in (*PAGES, "/docs", API_PATH, f"{API_PATH}/events?page=x"):
            yield WireRequest("GET", path, {**html, "accept-language": payload})
        yield WireRequest("GET", f"{API_PATH}/events", {"x-request-id": payload, "origin": payload})


def find_problem(reply: WireResponse, scripts: dict[bool, int]) -> str:
    """What is wrong with an answer; "" is nothing."""
    if reply.status in (0, 429) or reply.status >= 500:
        return f"status {reply.status}"
    if [line for line in reply.head.split("\r\n")[1:] if not re.match(r"[a-z0-9-]+: ", line)] or reply.header(
        "x-injected"
    ):
        return f"head {reply.head}"
    location = reply.header("location")
    if location and (location.startswith(("//", "/\\")) or not re.match(r"/|https?://", location)):
        return f"leads to {location}"
    kind, text = reply.header("content-type"), reply.body.decode()
    if kind.startswith("text/html"):
        inspector = PageInspector(text)
        if inspector.findings or inspector.script_count != scripts["/docs" in text]:
            return f"{inspector.findings}, {inspector.script_count} scripts"
        policy = reply.header("content-security-policy")
        return (
            ""
            if "default-src 'none'" in policy and "unsafe-inline" not in policy.partition("style-src")[0]
            else f"policy {policy}"
        )
    if "xml" in kind:
        ElementTree.fromstring(text)
    if kind.startswith("text/calendar"):
        lines = unfold_lines(text.removesuffix("\r\n"))
        if [line for line in lines if not re.match(r"[A-Z-]+[;:]", line)] or lines.count("BEGIN:VEVENT") > 1:
            return "a line of the calendar"
    if "json" in kind:
        json.loads(text)
    return ""


def test_request_values_are_not_injected_into_responses(filled_instance: Instance, report: Report) -> None:
    everything = [(payload, request) for payload in PAYLOADS for request in iter_requests(payload)]
    tried = sample_evenly(everything, 400)
    scripts = {
        path == "/docs": PageInspector(filled_instance.request(get_request(path)).body.decode()).script_count
        for path in ("/", "/docs")
    }
    responses = filled_instance.request_all(request for _, request in tried)
    wrong = []
    for (payload, request), response in zip(tried, responses, strict=True):
        try:
            problem = find_problem(response, scripts)
        except (ValueError, ElementTree.ParseError) as error:
            problem = f"{type(error).__name__} {error}"
        if problem:
            wrong.append(f"{payload!r} in {request.target[:80]} {request.headers}: {problem}")
    assert wrong == [], f"{len(wrong)} of {len(tried)}\n" + "\n".join(take_first(wrong, 30))
    assert len(PAYLOADS) >= 106
    pages = sum(got.header("content-type").startswith("text/html") for got in responses)
    assert pages > len(tried) / 3
    counts = f"{len(tried):,} of {len(everything):,} requests with {len(PAYLOADS)} payloads"
    report(f"{counts}, {len(tried):,} escaped ({pages:,} of them pages)")


def test_page_inspection_detects_injection() -> None:
    assert PageInspector(f"<script>{SCRIPT_CALL}</script>").script_count == 1
    assert PageInspector(f"<p onclick={SCRIPT_CALL}><a href=' java\tscript:x'><iframe>").findings == [
        "p onclick",
        "a href= java\tscript:x",
        "iframe",
    ]


def test_only_http_urls_are_stored(filled_instance: Instance, report: Report) -> None:
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("venues", {"venue": "x"}),
        ("organizers", {"organizer": "x"}),
        ("events", {"title": "x", "start_date": "2031-05-01", "end_date": "2031-05-02"}),
    ]
    cases = [(kind, {**body, "website": scheme}) for (kind, body), scheme in product(bodies, HOSTILE_URLS)]
    cases += [("events", {**bodies[2][1], "ticket_url": scheme}) for scheme in HOSTILE_URLS]
    responses = [
        filled_instance.request(json_request("POST", f"{API_PATH}/{kind}", body), "editor") for kind, body in cases
    ]
    stored = [
        response.json().get("ticket_url") or response.json()["website"]
        for response in responses
        if response.status == 201
    ]
    assert {got.status for got in responses} <= {201, 400}
    assert [url for url in stored if not re.match(r"https?://[^/]", url)] == []
    report(f"{len(cases)} URLs with other schemes, {len(cases) - len(stored)} rejected, {len(stored)} sanitized")
