"""A page with a rich-text field in Chromium, with the template, the assets and the policy of the console."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from playwright.sync_api import Browser, Locator, Page, Route

from kalends.console import console_rendering
from kalends.core.messages import Message
from kalends.website.assets import find_asset
from tests.pages.browser_page import open_browser_page

ADDRESS = "http://127.0.0.1:8999"
TEMPLATE = """
{% extends "base.html" %}
{% from "rich_text.html" import rich_text, templates %}
{% block title %}Rich text{% endblock %}
{% block head %}<link rel="stylesheet" href="{{ asset('rich-text.css') }}">{% endblock %}
{% block content %}
<h1>Rich text</h1>
<form class="fields panel" method="post">
{% for value in values %}
{{ rich_text(_, "text%d" % loop.index0, "Text %d" % loop.index0, value, hint="A hint") }}
{% endfor %}
<p><button>Save</button></p></form>{{ templates(_) }}
{% endblock %}
{% block scripts %}<script type="module" src="{{ asset('rich-text.js') }}"></script>{% endblock %}
"""
SITE = SimpleNamespace(name="Town", accent="#7a2e1f", second_accent="", fonts="serif")
PASTE = """(element, [html, text]) => {
    const clipboardData = new DataTransfer();
    if (html) clipboardData.setData("text/html", html);
    clipboardData.setData("text/plain", text);
    element.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
}"""


@dataclass
class RichTextField:
    """A field of the page: its textarea, and its editor if it has one."""

    page: Page
    number: int = 0

    @property
    def textarea(self) -> Locator:
        return self.page.locator(f"#text{self.number}")

    @property
    def field(self) -> Locator:
        return self.page.locator(".field").nth(self.number)

    @property
    def content(self) -> Locator:
        return self.field.locator(".rich-text-content")

    @property
    def html(self) -> str:
        return self.textarea.input_value()

    @property
    def has_editor(self) -> bool:
        return self.content.count() == 1

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)

    def tool(self, name: str) -> Locator:
        return self.field.get_by_role("button", name=name, exact=True)

    def paste(self, html: str, text: str = "plain") -> str:
        self.content.evaluate(PASTE, [html, text])
        return self.html


def render(values: Sequence[str]) -> str:
    """Render the page as the console would."""
    template = console_rendering._ENVIRONMENT.from_string(TEMPLATE)
    context = {"session": None, "language": "en", "path": "/", "api_path": "/api", "extension_path": "/x"}
    return template.render(
        _=lambda text, **values: str(Message(text, **values)),
        site=SITE,
        sections=[],
        notice="",
        undo=(),
        values=values,
        **context,
    )


def serve(route: Route, values: Sequence[str]) -> None:
    path = route.request.url.removeprefix(ADDRESS)
    if path.startswith(console_rendering.ASSETS):
        response = console_rendering.serve_asset(path)
        route.fulfill(body=bytes(response.body), headers=dict(response.headers))
    elif path.startswith("/assets/"):
        asset = find_asset(path.removeprefix("/assets/"))
        assert asset
        route.fulfill(body=asset.body, content_type=asset.media_type)
    elif path == "/favicon.ico":
        route.fulfill(status=204)
    else:
        request: Any = SimpleNamespace(state=SimpleNamespace(media_url=""))
        policy = {"Content-Security-Policy": console_rendering.make_policy(request), "Content-Type": "text/html"}
        route.fulfill(body=render(values), headers=policy)


@contextmanager
def open_rich_texts(chromium: Browser, values: Sequence[str], **options: Any) -> Iterator[list[RichTextField]]:
    """Open a page with fields; fail on any error, including reports of the policy, and if a hostile script ran."""
    with open_browser_page(chromium, **options) as browser:
        page = browser.page
        page.set_default_timeout(30_000)
        page.route(f"{ADDRESS}/**", lambda route: serve(route, values))
        page.goto(f"{ADDRESS}/console/events/1")
        yield [RichTextField(page, number) for number in range(len(values))]
        assert options.get("script") is False or not page.evaluate("window.wasRun ?? false")
        assert not browser.errors, browser.errors


@contextmanager
def open_rich_text(chromium: Browser, value: str = "", **options: Any) -> Iterator[RichTextField]:
    with open_rich_texts(chromium, [value], **options) as fields:
        yield fields[0]
