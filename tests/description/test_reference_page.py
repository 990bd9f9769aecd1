"""/docs: a page for people in their language, from this host alone."""

import html
import re
from datetime import date, timedelta
from html.parser import HTMLParser
from urllib.parse import parse_qsl, urlsplit

import orjson
import pytest

from kalends.api.description.document import build_path
from kalends.api.description.reference import FILES, POLICY
from kalends.core.messages import LANGUAGES
from kalends.routes import EXTENSION, INTERFACE
from tests.api.conftest import *  # noqa: F403 - the fixtures of an application in this process
from tests.api.running_app import Caller, RunningApp, assert_error

DOCS = "//docs"
VOID = {"meta", "link", "input", "br"}


class PageParser(HTMLParser):
    """Whether elements are closed in their order, and what the page names."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.inline: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag not in VOID:
            self.open.append(tag)
        if "id" in attributes:
            self.ids.append(attributes["id"])
        self.links += [attributes[name] for name in ("href", "src", "action") if name in attributes]
        self.inline += [name for name in attributes if name.startswith("on") or name == "style"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.quick("en", "ja")
@pytest.mark.parametrize("language", LANGUAGES)
def test_page_is_valid_in_each_language(anonymous: Caller, language: str) -> None:
    response = anonymous.get(DOCS, {"lang": language})
    assert (response.status_code, response.headers["content-language"]) == (200, language)
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert (response.headers["content-security-policy"], response.headers["vary"]) == (POLICY, "Accept-Language")
    reader = PageParser()
    reader.feed(response.text)
    assert reader.open == []
    assert len(reader.ids) == len(set(reader.ids))
    assert reader.inline == []
    assert f'<html lang="{language}">' in response.text
    anchors = [link[1:] for link in reader.links if link.startswith("#")]
    assert set(anchors) <= set(reader.ids)
    assert all(link.startswith(("#", "/")) for link in reader.links), "nothing comes from another host"
    for interface in (INTERFACE, EXTENSION):
        for route in interface.routes:
            assert build_path(route) in response.text


def test_page_begins_with_a_request_that_works(app: RunningApp, anonymous: Caller) -> None:
    day = date.today() + timedelta(days=7)
    app.caller("editor").create("events", title="Spring concert", start_date=f"{day} 19:30", end_date=f"{day} 21:00")
    page = html.unescape(anonymous.get(DOCS, {"lang": "en"}).text)
    url, answer = re.findall(r"<pre>(?:curl ')?(.*?)'?</pre>", page)[:2]
    found = anonymous.get(f"//{urlsplit(url).path[1:]}", dict(parse_qsl(urlsplit(url).query))).json()
    documented = orjson.loads(answer)
    assert found.keys() == documented.keys()
    assert found["events"][0].keys() == documented["events"][0].keys()


def test_policy_forbids_inline_and_third_party_content() -> None:
    assert "unsafe" not in POLICY
    assert re.findall(r"https?:", POLICY) == []


@pytest.mark.quick("reference.css", "icon.svg")
@pytest.mark.parametrize("name", FILES)
def test_page_assets_are_served(anonymous: Caller, name: str) -> None:
    response = anonymous.get(f"{DOCS}/{name}")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith(FILES[name])
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "://" not in re.sub(r'xmlns="[^"]*"', "", response.text)


def test_only_page_assets_are_served(anonymous: Caller) -> None:
    for path in ("/nothing.js", "/../doc.py", "/static/reference.css", "/%2e%2e/doc.py"):
        assert_error(anonymous.get(DOCS + path), 404, "rest_no_route")
    assert_error(anonymous.post(DOCS, {}), 405, "rest_method_not_allowed")
    assert anonymous.request("HEAD", DOCS).status_code == 200


def test_page_language_defaults_to_site_language(app: RunningApp, anonymous: Caller) -> None:
    app.set_site("language", "it")
    try:
        assert anonymous.get(DOCS).headers["content-language"] == "it"
        assert anonymous.get(DOCS, headers={"Accept-Language": "de"}).headers["content-language"] == "de"
    finally:
        app.set_site("language", "en")
