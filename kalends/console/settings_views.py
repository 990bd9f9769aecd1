"""Site settings: general ones, and the appearance with a preview. Nothing is saved before "Save"."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import JSONResponse, Response

from kalends.console.confirmation import is_confirmed, require_confirmed
from kalends.console.contrast import make_notes
from kalends.console.invitations import choose_language
from kalends.console.logos import list_logos, store_logo
from kalends.console.preview import PREVIEWED, render_preview
from kalends.console.rendering import show
from kalends.console.request import PREFIX, ConsoleRequest, ConsoleRoute, redirect
from kalends.console.settings_options import list_zones, make_options
from kalends.core.messages import Message
from kalends.core.messages import gettext_noop as N_
from kalends.http.language import translator
from kalends.operations import sites
from kalends.operations.emails import enqueue_email
from kalends.operations.sites import CUSTOM_CSS
from kalends.store import users
from kalends.store.database import Transaction

SETTINGS: Final = f"{PREFIX}/settings"
APPEARANCE: Final = f"{SETTINGS}/appearance"
MAX_QUERY_CSS: Final = 1000  # characters of custom CSS that fit into the address of the preview
LABELS: Final = {
    "name": N_("Name"),
    "timezone": N_("Time zone"),
    "language": N_("Language"),
    "per_page": N_("Events per page"),
    "default_view": N_("First view"),
    "first_weekday": N_("First day of the week"),
    "currency_symbol": N_("Symbol"),
    "currency_position": N_("Position of the symbol"),
    "currency_code": N_("Code"),
    "imprint_url": N_("Imprint"),
    "privacy_url": N_("Privacy"),
    "parent_url": N_("Website that the calendar belongs to"),
    "base_url": N_("Address of the site"),
    "logo_url": N_("Logo"),
    "accent": N_("Accent colour"),
    "second_accent": N_("Second accent colour"),
    "fonts": N_("Fonts"),
    CUSTOM_CSS: N_("Custom CSS"),
}


# The subject and the text of the e-mail about a new address of the site.
ADDRESS_NOTICE: Final = (
    N_("New address: {site}"),
    N_(
        "{login} has changed the address of the calendar {site}.\n\nBefore: {former}\nNow: {new}\n\nLinks in "
        "e-mails, such as those for a new password, now lead to the new address. If this change was not intended, do "
        "not open them, and ask the operator of the server to restore the former address."
    ),
)


@dataclass(frozen=True, slots=True)
class Group:
    """A page of settings."""

    path: str
    template: str
    keys: tuple[str, ...]

    def select(self, values: Mapping[str, str]) -> dict[str, str]:
        return {key: values[key] for key in self.keys if key in values}


APPEARANCE_GROUP: Final = Group(APPEARANCE, "settings_appearance.html", PREVIEWED)
GENERAL_GROUP: Final = Group(SETTINGS, "settings.html", tuple(key for key in LABELS if key not in PREVIEWED))


async def show_general(console_request: ConsoleRequest) -> Response:
    """Show the form with the general settings."""
    return await _page(console_request, GENERAL_GROUP)


async def save_general(console_request: ConsoleRequest) -> Response:
    """Save the general settings."""
    return await _save(console_request, GENERAL_GROUP)


async def show_appearance(console_request: ConsoleRequest) -> Response:
    """Show the form with the appearance, and the preview."""
    return await _page(console_request, APPEARANCE_GROUP)


async def save_appearance(console_request: ConsoleRequest) -> Response:
    """Save the appearance."""
    return await _save(console_request, APPEARANCE_GROUP)


async def upload_logo(console_request: ConsoleRequest) -> Response:
    """Add an image to the library and select it as the logo, together with the other values of the form."""
    console_request.form, result = await store_logo(console_request)
    values = APPEARANCE_GROUP.select(_read_form(console_request))
    if isinstance(result, Message):
        return await _page(console_request, APPEARANCE_GROUP, values, {"file": result})
    return await _page(console_request, APPEARANCE_GROUP, {**values, "logo_url": result})


async def show_preview(console_request: ConsoleRequest) -> Response:
    """Show the public calendar with settings that are not saved, from the query string or a form."""
    sent = _read_form(console_request) if console_request.request.method == "POST" else _read_query(console_request)
    return await render_preview(console_request, sent)


async def show_contrast(console_request: ConsoleRequest) -> Response:
    """Return the notes on the accent colours of the query string, for the script of the form."""
    translate = translator(console_request.language)
    colours = sites.parse_valid(
        {key: value for key, value in _read_query(console_request).items() if key in ("accent", "second_accent")}
    )
    notes = make_notes(colours, console_request.language)
    body = {
        key: [{"colour": note.colour, "text": note.text.render(translate)} for note in rows]
        for key, rows in notes.items()
    }
    return JSONResponse(body, headers={"Cache-Control": "private, no-store"})


async def _save(console_request: ConsoleRequest, group: Group) -> Response:
    """Save the changed settings of a page in one transaction, or show the page with the reasons against it."""
    values = group.select(_read_form(console_request))
    async with console_request.write() as tx:
        await tx.lock_site(console_request.actor.user_id)
        current = group.select(await sites.read_settings(tx))
        changed = {key: value for key, value in values.items() if value.strip() != current[key]}
        is_outdated = console_request.form_text("version") != _make_version(current)
        problems = _find_risks(console_request, changed) | sites.find_problems(changed)
        is_rejected = bool(problems) or (bool(changed) and is_outdated)
        # Links in e-mails lead to this address, which is also their sender.
        unproven = require_confirmed(console_request) if "base_url" in changed else None
        if changed and not is_rejected and unproven is None:
            await sites.set_several(tx, changed, console_request.actor.user_id)
            if "base_url" in changed:
                former, new = (console_request.base_url(source["base_url"].strip()) for source in (current, changed))
                await _announce_address(console_request, tx, former, new)
    if is_rejected:
        return await _page(console_request, group, values, problems, is_outdated=is_outdated)
    return unproven or redirect(group.path, "saved")


async def _announce_address(console_request: ConsoleRequest, tx: Transaction, former: str, new: str) -> None:
    """Tell all administrators by e-mail that the address of the site has changed."""
    if not console_request.state.sends_email:
        return
    login = console_request.session.login if console_request.session else ""
    for row in await users.find_administrators(tx):
        if row["email"]:
            translate = translator(choose_language(tx, row["language"] or ""))
            subject, text = (
                Message(part, site=tx.site.name, login=login, former=former, new=new).render(translate)
                for part in ADDRESS_NOTICE
            )
            await enqueue_email(tx, row["email"], subject, text)


def _find_risks(console_request: ConsoleRequest, changed: Mapping[str, str]) -> dict[str, Message]:
    """Return the changes that need a box to be checked, and a file that was chosen but not uploaded."""
    problems: dict[str, Message] = {}
    if "base_url" in changed and console_request.form_text("confirm_base_url") != "true":
        problems["base_url"] = Message("Check the box to confirm the new address.")
    if console_request.form_text("file"):
        problems["file"] = Message("Press “Upload” to use this image, or choose no file.")
    return problems


def _read_form(console_request: ConsoleRequest) -> dict[str, str]:
    """Return the settings of the form; browsers send line ends as CR LF."""
    return {
        key: console_request.form_text(key).replace("\r\n", "\n") for key in LABELS if key in console_request.form
    }


def _read_query(console_request: ConsoleRequest) -> dict[str, str]:
    query = console_request.request.query_params
    return {key: query[key] for key in LABELS if key in query}


def _make_version(values: Mapping[str, str]) -> str:
    """Return a text that differs as soon as a setting does, to notice changes by somebody else."""
    return blake2b(repr(sorted(values.items())).encode(), digest_size=8).hexdigest()


async def _page(
    console_request: ConsoleRequest,
    group: Group,
    values: Mapping[str, str] | None = None,
    problems: Mapping[str, Message] | None = None,
    *,
    is_outdated: bool = False,
) -> Response:
    """Show a page of settings, with the saved values or those of a form that was not saved."""
    async with console_request.transaction() as tx:
        saved = await sites.read_settings(tx)
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
        **_appearance_values(console_request, shown, logos) if group is APPEARANCE_GROUP else {"zones": list_zones()},
    )


def _appearance_values(
    console_request: ConsoleRequest, shown: Mapping[str, str], logos: list[Any]
) -> dict[str, object]:
    colours = sites.parse_valid({key: shown[key] for key in ("accent", "second_accent")})
    sent = {key: shown[key] for key in PREVIEWED if key != CUSTOM_CSS or len(shown[key]) <= MAX_QUERY_CSS}
    return {
        "logos": logos,
        "notes": make_notes(colours, console_request.language),
        "preview_url": f"{SETTINGS}/preview?{urlencode(sent)}",
    }


ADMINISTRATOR: Final = "administrator"
ROUTES: Final = (
    ConsoleRoute("/settings", show_general, save_general, ADMINISTRATOR),
    ConsoleRoute("/settings/appearance", show_appearance, save_appearance, ADMINISTRATOR),
    ConsoleRoute("/settings/logo", post=upload_logo, min_role=ADMINISTRATOR, reads_body=False),
    ConsoleRoute("/settings/preview", show_preview, show_preview, ADMINISTRATOR),
    ConsoleRoute("/settings/contrast", show_contrast, min_role=ADMINISTRATOR),
)
