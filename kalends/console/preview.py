"""The public calendar with settings that are not saved, for a frame on the page of the settings."""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from kalends.console.request import ConsoleRequest
from kalends.operations.sites import CUSTOM_CSS, parse_valid
from kalends.store.sites import Site
from kalends.website.handler import PageRequest, PageResponse, make_context
from kalends.website.routes import show_default_view

# The settings that the preview shows.
PREVIEWED: Final = ("logo_url", "accent", "second_accent", "fonts", CUSTOM_CSS)
STYLE_SOURCE: Final = "style-src 'self'"
IMAGE_SOURCE: Final = "img-src 'self'"


async def render_preview(console_request: ConsoleRequest, settings: Mapping[str, str]) -> Response:
    """Return the default view of the site with other settings. Invalid ones are ignored, and nothing is saved."""
    values = parse_valid({key: value for key, value in settings.items() if key in PREVIEWED})
    page_request = _make_page_request(console_request)
    async with console_request.transaction() as tx:
        tx.site = _replace_settings(tx.site, values)
        # Representations of records are cached for the settings that are saved.
        context = replace(make_context(page_request, tx, {}), representation_cache=None)
        page = await show_default_view(page_request, context, {})
    return _respond(page, str(values.get(CUSTOM_CSS, "")))


def _replace_settings(site: Site, values: dict[str, Any]) -> Site:
    """Return the site with these settings. New custom CSS becomes part of the page, instead of the saved one."""
    changes = {key: value for key, value in values.items() if key != CUSTOM_CSS}
    if CUSTOM_CSS in values:
        changes["custom_css_hash"] = ""
    return replace(site, **changes)


def _make_page_request(console_request: ConsoleRequest) -> PageRequest:
    """Return a request of a visitor for the home page."""
    scope = {**console_request.request.scope, "method": "GET", "path": "/", "query_string": b""}
    return console_request.make_page_request(Request(scope), "/")


def _respond(page: PageResponse, css: str) -> Response:
    body = page.body.decode() if isinstance(page.body, bytes) else page.body
    headers = {**page.headers, "Cache-Control": "private, no-store", "X-Robots-Tag": "noindex"}
    if css:
        # `<` is not allowed in custom CSS, so it cannot end the element; the policy allows exactly this text.
        body = body.replace("</head>", f"<style>{css}</style>\n</head>", 1)
        digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
        policy = headers["Content-Security-Policy"]
        policy = policy.replace(STYLE_SOURCE, f"{STYLE_SOURCE} 'sha256-{digest}'", 1)
        headers["Content-Security-Policy"] = policy.replace(IMAGE_SOURCE, f"{IMAGE_SOURCE} data:", 1)
    return Response(body, page.status, headers, media_type=page.media_type)
