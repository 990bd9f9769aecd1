"""How the tests look at a page: a context that notes every request, message and fault."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Request, Response, Route

AXE_SCRIPT = Path(__file__).resolve().parent.parent / "node/node_modules/axe-core/axe.min.js"
IMAGE = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1200 700">'
    '<rect width="1200" height="700" fill="#b9a88f"/></svg>'
)


@dataclass
class BrowserPage:
    page: Page
    errors: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def measure_bytes(self) -> dict[str, int]:
        """From here on: bytes by kind of what a page needs besides pictures; and how far its parts jump."""
        sizes: dict[str, int] = {}

        def weigh(response: Response) -> None:
            kind = response.request.resource_type
            if kind in ("document", "stylesheet", "script"):
                sizes[kind] = sizes.get(kind, 0) + len(response.body())

        self.page.on("response", weigh)
        self.page.add_init_script(
            "window.shifts = 0; new PerformanceObserver((list) => { for (const entry of list.getEntries()) "
            "window.shifts += entry.value; }).observe({ type: 'layout-shift', buffered: true })"
        )
        return sizes


def record_errors(page: Page, errors: list[str]) -> None:
    # Chromium reports the fades that it skips because the next page is there at once.
    page.on("pageerror", lambda error: "ViewTransition" in str(error) or errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)


@contextmanager
def open_browser_page(chromium: Browser, *, script: bool = True, **options: Any) -> Iterator[BrowserPage]:
    """A visitor of their own. Nothing but the server itself is reachable; the picture of the town is made up here."""
    options.setdefault("timezone_id", "Europe/Berlin")
    context = chromium.new_context(java_script_enabled=script, **options)
    page = context.new_page()
    browser = BrowserPage(page)

    def note(request: Request) -> None:
        browser.hosts.add(request.url.split("/")[2])

    def serve(route: Route) -> None:
        if route.request.url.endswith("/picture.svg"):
            route.fulfill(body=IMAGE, content_type="image/svg+xml")
        elif "127.0.0.1" in route.request.url:
            route.continue_()
        else:
            route.abort()

    context.route("**/*", serve)
    page.on("request", note)
    record_errors(page, browser.errors)
    try:
        yield browser
    finally:
        context.close()


def embed(page: Page, address: str, view: str) -> None:
    """Open a page of another site that embeds a view."""
    script = f'<script src="{address}/embed.js" data-view="{view}" defer></script>'
    body = f"<!doctype html><title>x</title><p>Our site</p>{script}"
    page.route("**/host.html", lambda route: route.fulfill(content_type="text/html", body=body))
    page.goto(f"{address}/host.html")


def find_violations(page: Page) -> list[str]:
    """Return the violations that axe finds, one line per rule with its first element."""
    page.wait_for_load_state()  # Elements can be visible before the styles have arrived.
    page.evaluate(AXE_SCRIPT.read_text())
    # WCAG 2.2 requires a minimum target size; axe checks it only on request.
    result = page.evaluate("axe.run({resultTypes: ['violations'], rules: {'target-size': {enabled: true}}})")
    return [f"{row['id']}: {row['help']}: {row['nodes'][0]['html'][:200]}" for row in result["violations"]]
