"""Handles requests to the console, and renders its pages: navigation, rich text, assets, headers."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from markupsafe import Markup
from starlette.responses import RedirectResponse, Response

from kalends.console.console_request import PREFIX, ConsoleRequest, sign_in_url
from kalends.core import errors
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.html_text import to_paragraphs
from kalends.core.messages import LANGUAGES, Message, gettext_noop as N_, translator
from kalends.core.params import parse_id
from kalends.core.sanitize import clean_html
from kalends.http import bodies
from kalends.http.auth import SAFE_METHODS, authenticate_session, require_same_origin
from kalends.http.cache import compress_response
from kalends.http.responses import JSON, encode_json
from kalends.imports.storage.import_lists import count_planned
from kalends.proposals.storage import count_queue
from kalends.rendering.cards import find_origin
from kalends.rendering.page_urls import EMBEDDING
from kalends.rendering.templates import make_environment
from kalends.store.database import Transaction
from kalends.website.assets import asset_name, list_preloads, minify, style_name

# Navigation: the sections and pages that a user may open.


@dataclass(frozen=True, slots=True)
class Page:
    name: str  # a message ID
    path: str
    min_role: str = "contributor"


@dataclass(frozen=True, slots=True)
class Section:
    name: str  # a message ID
    pages: tuple[Page, ...]
    counts: str = ""  # what the number beside the section counts: a name in `Waiting`
    is_current: bool = False


EDITOR: Final = "editor"
ADMINISTRATOR: Final = "administrator"
SECTIONS: Final = (
    Section(N_("Today"), (Page(N_("Today"), f"{PREFIX}/"),)),
    Section(
        N_("Events"),
        (
            Page(N_("All events"), f"{PREFIX}/events"),
            Page(N_("Calendar"), f"{PREFIX}/calendar"),
            Page(N_("Series"), f"{PREFIX}/series"),
            Page(N_("Trash"), f"{PREFIX}/trash"),
            Page(N_("Followers"), f"{PREFIX}/followers", EDITOR),
            Page(N_("Embed"), EMBEDDING, EDITOR),
        ),
    ),
    Section(N_("Proposals"), (Page(N_("Proposals"), f"{PREFIX}/queue"),), "reviews"),
    Section(N_("Places"), (Page(N_("Venues"), f"{PREFIX}/venues"), Page(N_("Organizers"), f"{PREFIX}/organizers"))),
    Section(
        N_("Library"),
        (
            Page(N_("Categories"), f"{PREFIX}/categories", "author"),
            Page(N_("Tags"), f"{PREFIX}/tags", EDITOR),
            Page(N_("Media"), f"{PREFIX}/media"),
        ),
    ),
    Section(N_("Imports"), (Page(N_("Imports"), f"{PREFIX}/imports", EDITOR),), "imports"),
    Section(
        N_("Settings"),
        (
            Page(N_("General"), f"{PREFIX}/settings", ADMINISTRATOR),
            Page(N_("Appearance"), f"{PREFIX}/settings/appearance", ADMINISTRATOR),
            Page(N_("People"), f"{PREFIX}/people", ADMINISTRATOR),
            Page(N_("Webhooks"), f"{PREFIX}/settings/webhooks", ADMINISTRATOR),
        ),
    ),
)


def list_sections(console_request: ConsoleRequest) -> list[Section]:
    """List the sections with the pages that the user may open."""
    if console_request.session is None:
        return []
    current = find_page(console_request.path)
    sections: list[Section] = []
    for section in SECTIONS:
        if pages := tuple(page for page in section.pages if console_request.has_role(page.min_role)):
            sections.append(replace(section, pages=pages, is_current=current in pages))
    return sections


def find_page(path: str) -> Page | None:
    """Return the page of the navigation that a path belongs to, which is the one with the longest matching path."""
    pages = [page for section in SECTIONS for page in section.pages if _contains(page.path, path)]
    return max(pages, key=lambda page: len(page.path), default=None)


def _contains(page_path: str, path: str) -> bool:
    return path == page_path or (not page_path.endswith("/") and path.startswith(f"{page_path}/"))


# Rich-text field content for the editor.


def rich_text_source(value: str) -> Markup | None:
    """Return the sanitized HTML of a field.

    If it cannot be sanitized, return None, and the page keeps the textarea.
    """
    try:
        return Markup(to_paragraphs(clean_html(value)))  # noqa: S704  It is sanitized.
    except InvalidValue:
        return None


# The console's style sheets and scripts.

STATIC: Final = Path(__file__).resolve().parent / "static"
ASSETS: Final = f"{PREFIX}/assets/"
TYPES: Final = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
HEADERS: Final = {
    "Cache-Control": "public, max-age=31536000, immutable",
    "Content-Security-Policy": "default-src 'none'",
}


@cache
def _files() -> dict[str, bytes]:
    return {path.name: minify(path) for path in sorted(STATIC.iterdir()) if path.suffix in TYPES}


@cache
def _version() -> str:
    digest = hashlib.blake2b(digest_size=6)
    for name, body in _files().items():
        digest.update(f"{name}\0{len(body)}\0".encode() + body)
    return digest.hexdigest()


def asset_url(name: str) -> str:
    """Return the URL of a file. Raise KeyError if there is no such file."""
    if name not in _files():
        raise KeyError(name)
    return f"{ASSETS}{_version()}/{name}"


def serve_asset(path: str) -> Response:
    """Return the file at a URL. Only the current version of each file exists."""
    version, _, name = path.removeprefix(ASSETS).partition("/")
    if version != _version() or name not in _files():
        raise errors.no_route()
    return Response(_files()[name], headers=HEADERS, media_type=TYPES[Path(name).suffix])


TEMPLATES: Final = Path(__file__).resolve().parent / "templates"
HTML: Final = "text/html; charset=utf-8"
# Messages shown after a redirect, by the name in `?notice=`.
NOTICES: Final = {
    "saved": N_("Saved."),
    "published": N_("Published."),
    "trashed": N_("Moved to trash."),
    "restored": N_("Restored."),
    "series-created": N_("Saved. The series and its dates are listed here."),
    "dissolved": N_("The dates are now single events. They are listed here."),
    "undone": N_("Change undone."),
    "cancelled": N_("The event is cancelled."),
    "date-cancelled": N_("This one date is cancelled."),
    "moved": N_("The event is moved."),
    "proposed": N_("Sent to the editors. You can change it until they decide."),
    "withdrawn": N_("Proposal withdrawn."),
    "blocked": N_("The sender is blocked."),
    "unblocked": N_("The sender is no longer blocked."),
    "nothing-selected": N_("Select at least one event."),
    "no-rows-selected": N_("Select at least one row."),
    "plan-discarded": N_("Plan discarded."),
    "filter-saved": N_("Filter saved."),
    "filter-deleted": N_("Filter deleted."),
    "existing": N_("This record already exists. Nothing was added."),
    "deleted": N_("Deleted."),
    "merged": N_("Merged. Its events and old links now lead here."),
    "uploaded": N_("Uploaded. Please describe the picture."),
    "scheduled": N_("Scheduled. It will be published on its publication date."),
    "submitted": N_("Submitted for review."),
    "draft-discarded": N_("Unsaved changes discarded."),
    "tags-left-out": N_("Saved without the tags that don’t exist yet."),
    "image-not-changed": N_("Saved. The picture belongs to someone else, so its description wasn’t changed."),
    "signed-out": N_("You’re signed out."),
    "password-changed": N_("Password changed. All your other devices are signed out."),
    "passkey-added": N_("Passkey added. You can now sign in with it."),
    "passkey-removed": N_("Passkey removed."),
    "signed-out-device": N_("That device is signed out."),
    "revoked": N_("Application password revoked."),
    "invited": N_("Invitation sent."),
    "link-sent": N_("Link sent."),
    "disabled": N_("The account can no longer sign in."),
    "enabled": N_("The account can sign in again."),
    "removed": N_("Account removed."),
    "follower-erased": N_("The address and everything about it is deleted."),
    "follower-resumed": N_("The address gets emails again."),
    "message-due": N_("The message is being sent. It appears below in a moment."),
    "replay-due": N_("Everything since that date is being sent again."),
}
_ENVIRONMENT: Final = make_environment(TEMPLATES)
_ENVIRONMENT.globals.update(asset=asset_url, site_asset=asset_name, style=partial(style_name, sheet="design"))
_ENVIRONMENT.globals.update(list_preloads=list_preloads, rich_text_source=rich_text_source, LANGUAGES=LANGUAGES)


def show(console_request: ConsoleRequest, template: str, *, status: int = 200, **values: Any) -> Response:
    """Render a console page. No cache may store the response."""
    translate = translator(console_request.language)
    site = console_request.loaded_site

    def text(message: str | Message, **placeholders: object) -> str:
        """Translate a string or message and fill in its placeholders."""
        return (message if isinstance(message, Message) else Message(message, **placeholders)).render(translate)

    body = _ENVIRONMENT.get_template(template).render(
        _=text,
        site=site,
        session=console_request.session,
        language=console_request.language,
        path=console_request.path,
        api_path=console_request.canonical_prefix,
        extension_path=console_request.extension_prefix,
        sections=list_sections(console_request),
        current_page=find_page(console_request.path),
        waiting=console_request.waiting,
        notice=NOTICES.get(console_request.query_value("notice"), ""),
        undo=_read_undo(console_request),
        added_id=parse_id(console_request.query_value("added")),
        has_role=console_request.has_role,
        **values,
    )
    headers = {
        "Content-Language": console_request.language,
        "Content-Security-Policy": make_policy(console_request),
        "Referrer-Policy": "same-origin",
        "X-Robots-Tag": "noindex",
        "Cache-Control": "private, no-store",
    }
    return Response(body, status, headers, media_type=HTML)


def _read_undo(console_request: ConsoleRequest) -> tuple[int, ...]:
    """Return the event of which `?undo=` can undo a change, with its revisions before and after; () without one."""
    numbers = [parse_id(part) for part in console_request.query_value("undo").split("-")]
    known = tuple(number for number in numbers if number is not None)
    return known if len(numbers) == len(known) == 3 else ()


def make_policy(console_request: ConsoleRequest) -> str:
    """Return a Content-Security-Policy that forbids inline code and framing, and requires Trusted Types."""
    media = find_origin(console_request.state.media_url)
    return (
        "default-src 'none'; style-src 'self'; font-src 'self'; script-src 'self'; connect-src 'self'; "
        f"form-action 'self'; base-uri 'none'; img-src 'self' blob:{f' {media}' if media else ''}; frame-src 'self'; "
        "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types ProseMirrorClipboard"
    )


def respond_json(console_request: ConsoleRequest, body: Mapping[str, Any]) -> Response:
    encoded = encode_json(body, console_request.language)
    return Response(encoded, headers={"Cache-Control": "private, no-store"}, media_type=JSON)


# Request handling. Errors become pages.

TITLES = {403: N_("You can’t do this"), 404: N_("Page not found"), 429: N_("Try again later")}


async def serve_console(console_request: ConsoleRequest) -> Response:
    response = await _respond(console_request)
    await compress_response(console_request.request, response)
    return response


async def _respond(console_request: ConsoleRequest) -> Response:
    """Return a view's response. Client errors become pages, or JSON for scripts."""
    if console_request.path.startswith(ASSETS):
        return serve_asset(console_request.path)
    try:
        return await _serve(console_request)
    except ApiError as error:
        if not _wants_page(console_request) or error.status >= 500:
            raise
        title = TITLES.get(error.status, N_("Something went wrong"))
        response = show(console_request, "message.html", status=error.status, title=title, message=error.message)
        response.headers.update(error.headers)
        return response


def _wants_page(console_request: ConsoleRequest) -> bool:
    """Return whether the response is a page, not JSON for a script."""
    return "application/json" not in console_request.request.headers.get("accept", "")


async def _serve(console_request: ConsoleRequest) -> Response:
    request, route = console_request.request, console_request.route
    is_frequent = route is not None and route.has_frequent_post and request.method == "POST"
    if not is_frequent:
        async with console_request.transaction() as tx:
            console_request.remember_site(tx.site)
            await authenticate_session(console_request, tx)
            if request.method in SAFE_METHODS and console_request.has_role(EDITOR) and _wants_page(console_request):
                console_request.waiting = await _count_waiting(tx)
        if elsewhere := _find_other_host(console_request):
            return RedirectResponse(elsewhere, status_code=307)
    if route is None:
        raise errors.no_route()
    view = route.find_view(request.method)
    require_same_origin(request, console_request.authority, console_request.state.base_url)
    if route.min_role != "anonymous" and not is_frequent:
        if console_request.session is None:
            return RedirectResponse(sign_in_url(request), status_code=303)
        console_request.require_role(route.min_role)
    if request.method not in SAFE_METHODS and route.reads_body:
        body = await bodies.read_body(request, console_request.state.max_body_bytes)
        console_request.form = (await bodies.read_values(request, body)).values
    return await view(console_request)


async def _count_waiting(tx: Transaction) -> dict[str, int]:
    """Count what waits for an editor, by the names in `Section.counts`."""
    return {"reviews": await count_queue(tx), "imports": await count_planned(tx)}


def _find_other_host(console_request: ConsoleRequest) -> str:
    """Return this page's URL on the site's main host, which passkeys and cookies need; empty to stay on this host."""
    base_url = console_request.site.base_url or console_request.state.base_url
    if not base_url or urlsplit(base_url).netloc.lower() == console_request.authority:
        return ""
    request = console_request.request
    if request.method not in SAFE_METHODS:
        return ""
    query: str = request.scope["query_string"].decode("latin-1")
    return f"{base_url.rstrip('/')}{request.scope['path']}{f'?{query}' if query else ''}"
