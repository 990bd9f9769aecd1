"""Site settings: general settings, and the appearance with a logo, a contrast check and a preview."""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from hashlib import blake2b
from typing import Any, Final
from urllib.parse import urlencode

from babel import Locale
from babel.numbers import format_decimal
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from kalends.accounts.operations.user_accounts import enqueue_email
from kalends.accounts.storage import user_tables
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.media_kind import MEDIA, build_media_item
from kalends.calendar.operations import site_options
from kalends.calendar.operations.record_verbs import find_page
from kalends.calendar.operations.site_options import CUSTOM_CSS, MEDIA_PATH, WEEKDAYS, parse_valid
from kalends.calendar.rules.record_types import MediaItem
from kalends.console.console_rendering import ADMINISTRATOR, show
from kalends.console.console_request import (
    PREFIX,
    ConsoleRequest,
    ConsoleRoute,
    is_confirmed,
    redirect,
    require_confirmed,
)
from kalends.core import errors
from kalends.core.errors import InvalidValue
from kalends.core.messages import LANGUAGES, Message, choose_email_language, gettext_noop as N_, translator
from kalends.core.zones import REGIONS, read_zone, zone_names
from kalends.http import bodies
from kalends.media.operations import create_media, read_images
from kalends.rendering.page_locale import make_page_locale
from kalends.store.database import Transaction
from kalends.store.sites import Site
from kalends.website.assets import DARK_BACKGROUND, LIGHT_BACKGROUND, contrast, ensure_contrast
from kalends.website.context import VIEW_NAMES, PageResponse
from kalends.website.front_views import show_start_page

# Choices for settings, with names in the user's language.

Options = list[tuple[str, str]]
FONT_NAMES: Final = {
    "serif": N_("Serif headings, sans-serif texts"),
    "sans": N_("Sans-serif"),
    "classic": N_("Serif"),
    "humanist": N_("Humanist sans-serif"),
    "rounded": N_("Rounded headings"),
}
START_PAGE_NAMES: Final = {
    "front": N_("Front page with the coming days"),
    "calendar": N_("Calendar"),
}
SUBMISSION_NAMES: Final = {"false": N_("Off"), "true": N_("On: anyone can suggest events")}
FOLLOW_NAMES: Final = {"false": N_("Off"), "true": N_("On: anyone can get your events by email")}
POSITION_NAMES: Final = {"prefix": N_("Before the amount"), "postfix": N_("After the amount")}
# Regions with different date formats.
REGIONAL: Final = (
    *("en-GB", "en-IE", "en-CA", "en-AU", "en-US", "de-AT", "de-CH", "fr-BE", "fr-CA", "fr-CH"),
    *("es-MX", "es-AR", "it-CH", "nl-BE"),
)


def make_options(console_request: ConsoleRequest) -> dict[str, Options]:
    """Return the choices for each setting. Include the current value even if it would not be offered otherwise."""
    language, site = console_request.language, console_request.site
    translate = translator(language)
    weekdays = make_page_locale(language, site.language, translate).weekdays(1)
    has_map = bool(console_request.map_settings.tiles_url) or site.default_view == "map"
    return {
        "language": _list_languages(site.language),
        "start_page": [(key, translate(name)) for key, name in START_PAGE_NAMES.items()],
        "first_weekday": [(key, name) for key, (_, name) in zip(WEEKDAYS, weekdays, strict=True)],
        "default_view": [(key, translate(name)) for key, name in VIEW_NAMES.items() if key != "map" or has_map],
        "fonts": [(key, translate(name)) for key, name in FONT_NAMES.items()],
        "submissions": [(key, translate(name)) for key, name in SUBMISSION_NAMES.items()],
        "follow_by_email": [(key, translate(name)) for key, name in FOLLOW_NAMES.items()],
        "currency_position": [(key, translate(name)) for key, name in POSITION_NAMES.items()],
    }


@cache
def list_zones() -> tuple[str, ...]:
    """Return UTC, and the current names of time zones named after places."""
    return ("UTC", *sorted(name for name in zone_names() if name.startswith(REGIONS) and read_zone(name) == name))


def _list_languages(current: str) -> Options:
    tags = dict.fromkeys((*LANGUAGES, *REGIONAL, current))
    order = [tag.partition("-")[0] for tag in LANGUAGES]
    by_language = sorted(tags, key=lambda tag: order.index(tag.partition("-")[0]))
    return [(tag, LANGUAGES.get(tag) or _name_language(tag)) for tag in by_language]


@cache
def _name_language(tag: str) -> str:
    try:
        name = Locale.parse(tag, sep="-").get_display_name() or tag
    except ValueError:
        return tag
    return name[0].upper() + name[1:]


# Notes on accent colors: the color that pages use, and its contrast with the background.

BACKGROUNDS: Final = {"light": LIGHT_BACKGROUND, "dark": DARK_BACKGROUND}
KEPT: Final = {
    ("accent", "light"): N_("On light pages, links use your colour. Its contrast is {used}:1."),
    ("accent", "dark"): N_("On dark pages, links use your colour. Its contrast is {used}:1."),
    ("second_accent", "light"): N_("On light pages, featured events use your colour. Its contrast is {used}:1."),
    ("second_accent", "dark"): N_("On dark pages, featured events use your colour. Its contrast is {used}:1."),
}
ADJUSTED: Final = {
    ("accent", "light"): N_(
        "On light pages, links will use {colour} to stay readable. Its contrast is {used}:1, your colour’s "
        "{chosen}:1."
    ),
    ("accent", "dark"): N_(
        "On dark pages, links will use {colour} to stay readable. Its contrast is {used}:1, your colour’s {chosen}:1."
    ),
    ("second_accent", "light"): N_(
        "On light pages, featured events will use {colour} to stay readable. Its contrast is {used}:1, your "
        "colour’s {chosen}:1."
    ),
    ("second_accent", "dark"): N_(
        "On dark pages, featured events will use {colour} to stay readable. Its contrast is {used}:1, your colour’s "
        "{chosen}:1."
    ),
}


@dataclass(frozen=True, slots=True)
class ContrastNote:
    """The color that pages use on a background, and a sentence about this color."""

    background: str
    colour: str
    text: Message


def make_notes(colours: Mapping[str, object], language: str) -> dict[str, list[ContrastNote]]:
    return {
        name: [_make_note(name, str(colours[name]), theme, language) for theme in BACKGROUNDS]
        for name in ("accent", "second_accent")
        if colours.get(name)
    }


def _make_note(name: str, chosen: str, theme: str, language: str) -> ContrastNote:
    background = BACKGROUNDS[theme]
    used = ensure_contrast(chosen, background)
    text = (KEPT if used == chosen else ADJUSTED)[name, theme]
    ratios = [
        format_decimal(contrast(colour, background), "0.0", locale=language.replace("-", "_"))
        for colour in (used, chosen)
    ]
    return ContrastNote(theme, used, Message(text, colour=used, used=ratios[0], chosen=ratios[1]))


# The logo of the site, chosen from the media library.

MAX_SHOWN: Final = 12


@dataclass(frozen=True, slots=True)
class Logo:
    value: str
    thumbnail: str
    name: str


async def list_logos(console_request: ConsoleRequest, tx: Transaction) -> list[Logo]:
    context = console_request.make_context(tx, {"per_page": MAX_SHOWN})
    found = await find_page(MEDIA, context, with_total=False)
    return [_make_logo(build_media_item(row, context.render_context), context) for row in found.rows]


async def store_logo(console_request: ConsoleRequest) -> tuple[dict[str, Any], str | Message]:
    """Store an uploaded image in the library.

    Return the other form fields, and either the value for the setting or the reason why the image was rejected.
    """
    library, site_id = console_request.state.library, console_request.site.id
    if library is None:
        raise errors.unavailable()
    owner = (site_id, console_request.actor.user_id)
    async with library.limiter.slot(owner), library.open_work_directory() as directory:
        raw, upload = await bodies.read_upload(console_request.request, directory, library.max_bytes)
        if upload is None or not upload.name:
            return raw.values, Message("Choose a file first.")
        try:
            image = await library.store_image(site_id, upload.path, title=upload.name)
        except InvalidValue as error:
            return raw.values, error.message
    async with console_request.write() as tx:
        await tx.lock_site(console_request.actor.user_id)
        context = console_request.make_context(tx, {}, upload=image)
        outcome = await create_media(MEDIA, context)
        [(item, _)] = await read_images(context, [outcome.body["id"]])
    return raw.values, _make_logo(item, context).value


def _make_logo(item: MediaItem, context: OperationContext) -> Logo:
    """Return an image as a logo.

    If the image belongs to the site, the value is a path, so that it works on every host.
    """
    own = f"{context.base_url}{MEDIA_PATH}"
    value = item.url.removeprefix(context.base_url) if item.url.startswith(own) else item.url
    thumbnail = item.sizes.get("thumbnail", {}).get("url", item.url)
    return Logo(value, thumbnail, item.alt_text or item.title)


# The public calendar with unsaved settings, shown in a frame on the settings page.

PREVIEWED: Final = ("logo_url", "accent", "second_accent", "fonts", CUSTOM_CSS)
STYLE_SOURCE: Final = "style-src 'self'"
IMAGE_SOURCE: Final = "img-src 'self'"


async def render_preview(console_request: ConsoleRequest, settings: Mapping[str, str]) -> Response:
    """Return the site's start page with other settings. Invalid settings are ignored, and nothing is saved."""
    values = parse_valid({key: value for key, value in settings.items() if key in PREVIEWED})
    scope = {**console_request.request.scope, "method": "GET", "path": "/", "query_string": b""}
    page_request = console_request.make_page_request(Request(scope), "/")
    async with console_request.transaction() as tx:
        tx.site = _replace_settings(tx.site, values)
        page = await show_start_page(page_request, page_request.operation_context(tx), {})
    return _respond(page, str(values.get(CUSTOM_CSS, "")))


def _replace_settings(site: Site, values: dict[str, Any]) -> Site:
    """Return the site with these settings. If custom CSS is new, the page embeds it instead of the saved CSS."""
    changes = {key: value for key, value in values.items() if key != CUSTOM_CSS}
    if CUSTOM_CSS in values:
        changes["custom_css_hash"] = ""
    return replace(site, **changes)


def _respond(page: PageResponse, css: str) -> Response:
    body = page.body.decode() if isinstance(page.body, bytes) else page.body
    headers = {**page.headers, "Cache-Control": "private, no-store", "X-Robots-Tag": "noindex"}
    if css:
        # Custom CSS cannot contain `<`, so it cannot end the element. The policy allows exactly this CSS.
        body = body.replace("</head>", f"<style>{css}</style>\n</head>", 1)
        digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
        policy = headers["Content-Security-Policy"]
        policy = policy.replace(STYLE_SOURCE, f"{STYLE_SOURCE} 'sha256-{digest}'", 1)
        headers["Content-Security-Policy"] = policy.replace(IMAGE_SOURCE, f"{IMAGE_SOURCE} data:", 1)
    return Response(body, page.status, headers, media_type=page.media_type)


SETTINGS: Final = f"{PREFIX}/settings"
APPEARANCE: Final = f"{SETTINGS}/appearance"
MAX_QUERY_CSS: Final = 1000  # maximum characters of custom CSS in the preview URL
LABELS: Final = {
    "name": N_("Name"),
    "timezone": N_("Time zone"),
    "language": N_("Language"),
    "per_page": N_("Events per page"),
    "start_page": N_("Start page"),
    "default_view": N_("First view"),
    "first_weekday": N_("First day of the week"),
    "currency_symbol": N_("Symbol"),
    "currency_position": N_("Symbol position"),
    "currency_code": N_("Code"),
    "imprint_url": N_("Imprint"),
    "privacy_url": N_("Privacy"),
    "parent_url": N_("Website this calendar belongs to"),
    "submissions": N_("Public form"),
    "follow_by_email": N_("Follow by email"),
    "reply_to": N_("Address for answers"),
    "mail_footer": N_("Last lines of the emails"),
    "base_url": N_("Site address"),
    "logo_url": N_("Logo"),
    "accent": N_("Accent colour"),
    "second_accent": N_("Second accent colour"),
    "fonts": N_("Fonts"),
    CUSTOM_CSS: N_("Custom CSS"),
}


# Subject and text of the email about a new site address.
ADDRESS_NOTICE: Final = (
    N_("New address: {site}"),
    N_(
        "{login} has changed the web address of {site}.\n\nBefore: {former}\nNow: {new}\n\nLinks in emails, such as "
        "password links, now lead to the new address. If this change wasn’t intended, don’t open them, and ask the "
        "server’s operator to restore the old address."
    ),
)


@dataclass(frozen=True, slots=True)
class Group:
    path: str
    template: str
    keys: tuple[str, ...]

    def select(self, values: Mapping[str, str]) -> dict[str, str]:
        return {key: values[key] for key in self.keys if key in values}


APPEARANCE_GROUP: Final = Group(APPEARANCE, "settings_appearance.html", PREVIEWED)
GENERAL_GROUP: Final = Group(SETTINGS, "settings.html", tuple(key for key in LABELS if key not in PREVIEWED))


async def upload_logo(console_request: ConsoleRequest) -> Response:
    """Add an image to the library, and select it as the logo. Keep the form's other values."""
    console_request.form, result = await store_logo(console_request)
    values = APPEARANCE_GROUP.select(_read_form(console_request))
    if isinstance(result, Message):
        return await _page(console_request, APPEARANCE_GROUP, values, {"file": result})
    return await _page(console_request, APPEARANCE_GROUP, {**values, "logo_url": result})


async def show_preview(console_request: ConsoleRequest) -> Response:
    """Show the public calendar with unsaved settings from the query string or a form."""
    sent = _read_form(console_request) if console_request.request.method == "POST" else _read_query(console_request)
    return await render_preview(console_request, sent)


async def show_contrast(console_request: ConsoleRequest) -> Response:
    translate = translator(console_request.language)
    colours = site_options.parse_valid(
        {key: value for key, value in _read_query(console_request).items() if key in ("accent", "second_accent")}
    )
    notes = make_notes(colours, console_request.language)
    body = {
        key: [{"colour": note.colour, "text": note.text.render(translate)} for note in rows]
        for key, rows in notes.items()
    }
    return JSONResponse(body, headers={"Cache-Control": "private, no-store"})


async def _save(console_request: ConsoleRequest, group: Group) -> Response:
    """Save a page's changed settings in one transaction, or show the page with the problems."""
    values = group.select(_read_form(console_request))
    async with console_request.write() as tx:
        await tx.lock_site(console_request.actor.user_id)
        current = group.select(await site_options.read_settings(tx))
        changed = {key: value for key, value in values.items() if value.strip() != current[key]}
        is_outdated = console_request.form_text("version") != _make_version(current)
        problems = _find_risks(console_request, changed) | site_options.find_problems(changed)
        is_rejected = bool(problems) or (bool(changed) and is_outdated)
        # Links in emails use this address, and it determines the default sender domain, so changing it needs
        # confirmation.
        unproven = require_confirmed(console_request) if "base_url" in changed else None
        if changed and not is_rejected and unproven is None:
            await site_options.set_several(tx, changed, console_request.actor.user_id)
            if "base_url" in changed:
                former, new = (console_request.base_url(source["base_url"].strip()) for source in (current, changed))
                await _announce_address(console_request, tx, former, new)
    if is_rejected:
        return await _page(console_request, group, values, problems, is_outdated=is_outdated)
    return unproven or redirect(group.path, "saved")


async def _announce_address(console_request: ConsoleRequest, tx: Transaction, former: str, new: str) -> None:
    if not console_request.state.sends_email:
        return
    login = console_request.session.login if console_request.session else ""
    for row in await user_tables.find_administrators(tx):
        if row["email"]:
            translate = translator(choose_email_language(row["language"] or "", tx.site.language))
            subject, text = (
                Message(part, site=tx.site.name, login=login, former=former, new=new).render(translate)
                for part in ADDRESS_NOTICE
            )
            await enqueue_email(tx, row["email"], subject, text)


def _find_risks(console_request: ConsoleRequest, changed: Mapping[str, str]) -> dict[str, Message]:
    """Return problems: a new address that is not confirmed, or a selected file that was not uploaded."""
    problems: dict[str, Message] = {}
    if "base_url" in changed and console_request.form_text("confirm_base_url") != "true":
        problems["base_url"] = Message("Check the box to confirm the new address.")
    if console_request.form_text("file"):
        problems["file"] = Message("Press “Upload” to use this picture, or remove the file.")
    return problems


def _read_form(console_request: ConsoleRequest) -> dict[str, str]:
    """Return the submitted settings. Browsers send CR LF line endings; return LF."""
    return {
        key: console_request.form_text(key).replace("\r\n", "\n") for key in LABELS if key in console_request.form
    }


def _read_query(console_request: ConsoleRequest) -> dict[str, str]:
    query = console_request.request.query_params
    return {key: query[key] for key in LABELS if key in query}


def _make_version(values: Mapping[str, str]) -> str:
    """Return a hash of the settings, to detect concurrent edits."""
    return blake2b(repr(sorted(values.items())).encode(), digest_size=8).hexdigest()


async def _page(
    console_request: ConsoleRequest,
    group: Group,
    values: Mapping[str, str] | None = None,
    problems: Mapping[str, Message] | None = None,
    *,
    is_outdated: bool = False,
) -> Response:
    """Show a settings page with the saved values, or with submitted values that have not been saved."""
    async with console_request.transaction() as tx:
        saved = await site_options.read_settings(tx)
        logos = await list_logos(console_request, tx) if group is APPEARANCE_GROUP else []
    shown = {**saved, **(values or {})}
    return show(
        console_request,
        group.template,
        status=400 if problems else 409 if is_outdated else 200,
        values=shown,
        saved=saved,
        errors=problems or {},
        is_outdated=is_outdated,
        is_unsaved=group.select(shown) != group.select(saved),
        version=_make_version(group.select(saved)),
        is_confirmed=is_confirmed(console_request),
        labels={**LABELS, "file": N_("File")},
        options=make_options(console_request),
        sends_email=console_request.state.sends_email,
        has_address=bool(console_request.site.base_url or console_request.state.base_url),
        **_appearance_values(console_request, shown, logos) if group is APPEARANCE_GROUP else {"zones": list_zones()},
    )


def _appearance_values(
    console_request: ConsoleRequest, shown: Mapping[str, str], logos: list[Any]
) -> dict[str, object]:
    colours = site_options.parse_valid({key: shown[key] for key in ("accent", "second_accent")})
    sent = {key: shown[key] for key in PREVIEWED if key != CUSTOM_CSS or len(shown[key]) <= MAX_QUERY_CSS}
    return {
        "logos": logos,
        "notes": make_notes(colours, console_request.language),
        "preview_url": f"{SETTINGS}/preview?{urlencode(sent)}",
    }


ROUTES: Final = (
    *[
        ConsoleRoute(path, partial(_page, group=group), partial(_save, group=group), ADMINISTRATOR)
        for path, group in (("/settings", GENERAL_GROUP), ("/settings/appearance", APPEARANCE_GROUP))
    ],
    ConsoleRoute("/settings/appearance/logo", post=upload_logo, min_role=ADMINISTRATOR, reads_body=False),
    ConsoleRoute("/settings/preview", show_preview, show_preview, ADMINISTRATOR),
    ConsoleRoute("/settings/contrast", show_contrast, min_role=ADMINISTRATOR),
)
