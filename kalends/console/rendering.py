"""Rendering of the pages of the console by Jinja2, with their headers."""

from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.responses import Response

from kalends.console.assets import asset_url
from kalends.console.navigation import list_sections
from kalends.console.request import ConsoleRequest
from kalends.console.rich_text import rich_text_source
from kalends.core.messages import Message
from kalends.core.messages import gettext_noop as N_
from kalends.http.language import LANGUAGES, translator
from kalends.http.templates import make_environment
from kalends.website.assets import asset_name, style_name

TEMPLATES: Final = Path(__file__).resolve().parent / "templates"
HTML: Final = "text/html; charset=utf-8"
# Messages that a page shows after a redirect, by the name in `?notice=`.
NOTICES: Final = {
    "saved": N_("Saved."),
    "published": N_("Published."),
    "trashed": N_("Moved to the trash."),
    "restored": N_("Restored."),
    "series-created": N_("Saved. The series and its dates are listed here."),
    "undone": N_("The change was undone."),
    "nothing-selected": N_("No event was selected."),
    "no-rows-selected": N_("No row was selected."),
    "plan-discarded": N_("The plan was discarded."),
    "filter-saved": N_("The filter was saved."),
    "filter-deleted": N_("The filter was deleted."),
    "existing": N_("There was an identical record already. Nothing was added."),
    "deleted": N_("Deleted."),
    "merged": N_("Merged. The events and the old addresses lead here now."),
    "uploaded": N_("Uploaded. Please describe the image."),
    "scheduled": N_("Scheduled. It will be published on its publication date."),
    "submitted": N_("Submitted for review."),
    "draft-discarded": N_("The unsaved changes are discarded."),
    "tags-left-out": N_("Saved. Tags that do not exist yet were left out."),
    "image-not-changed": N_("Saved. The picture belongs to somebody else, so its description was not changed."),
    "signed-out": N_("You are signed out."),
    "password-changed": N_("The password is changed. All other devices are signed out."),
    "passkey-added": N_("The passkey was added. You can sign in with it from now on."),
    "passkey-removed": N_("The passkey was removed."),
    "signed-out-device": N_("Signed out there."),
    "revoked": N_("The application password was revoked."),
    "invited": N_("The invitation was sent."),
    "link-sent": N_("The link was sent."),
    "disabled": N_("The account can no longer sign in."),
    "enabled": N_("The account can sign in again."),
    "removed": N_("The account was removed."),
}
_ENVIRONMENT: Final = make_environment(TEMPLATES)
_ENVIRONMENT.globals.update(asset=asset_url, site_asset=asset_name, style=partial(style_name, sheet="design"))
_ENVIRONMENT.globals.update(rich_text_source=rich_text_source, LANGUAGES=LANGUAGES)


def show(
    console_request: ConsoleRequest,
    template: str,
    *,
    status: int = 200,
    **values: Any,
) -> Response:
    """Render a page of the console. Its response is never stored by a cache."""
    translate = translator(console_request.language)
    site = console_request.loaded_site

    def text(message: str | Message, **placeholders: object) -> str:
        """Translate a text or message, with its placeholders filled in."""
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
        notice=NOTICES.get(console_request.query_value("notice"), ""),
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


def make_policy(console_request: ConsoleRequest) -> str:
    """Return the Content-Security-Policy: nothing inline, no frames around the console, Trusted Types."""
    media = _find_origin(console_request.state.media_url)
    return (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; "
        f"base-uri 'none'; img-src 'self' blob:{f' {media}' if media else ''}; frame-src 'self'; "
        "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types ProseMirrorClipboard"
    )


def _find_origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""
