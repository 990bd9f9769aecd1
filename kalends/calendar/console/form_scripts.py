"""Endpoints for the event form's scripts: warnings, drafts, concurrent changes, map, and preview."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlsplit

import orjson
from starlette.responses import Response

from kalends.calendar.console.form_page import (
    KIND,
    LABELS,
    MISSING_LABELS,
    Checks,
    check_event,
    format_moment,
    resolve_names,
)
from kalends.calendar.console.form_submission import Submission, compare
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.operations import record_verbs
from kalends.calendar.operations.duplicates import OtherEvent
from kalends.calendar.operations.form_work import save_draft
from kalends.calendar.operations.record_verbs import create_record, update_record
from kalends.calendar.storage import form_drafts
from kalends.calendar.storage.history_tables import list_record_changes
from kalends.console.console_rendering import make_policy, respond_json, show
from kalends.console.console_request import PREFIX, ConsoleRequest, ConsoleRoute, redirect
from kalends.console.event_values import make_new_values, overlay
from kalends.console.field_texts import make_locale
from kalends.core import errors
from kalends.core.errors import ApiError, InvalidValue, field_errors
from kalends.core.messages import Message, translator
from kalends.core.params import number, parse_id, read_params
from kalends.http.auth import hash_new_passwords
from kalends.rendering.cards import find_origin
from kalends.rendering.page_locale import PageLocale
from kalends.store.database import Transaction
from kalends.website.detail_views import show_event_page

KEY: Final = r"(?P<key>[A-Za-z0-9-]{1,64})"


async def check_form(console_request: ConsoleRequest) -> Response:
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx)
        values = make_new_values(tx.site)
        values.start_time = values.end_time = ""
        overlay(values, console_request.form)
        await resolve_names(context, values)
        checks = await check_event(context, values, parse_id(console_request.form_text("record_id")))
    return respond_json(console_request, _describe(checks, make_locale(console_request)))


def _describe(checks: Checks, locale: PageLocale) -> dict[str, Any]:
    return {
        "times": {
            name: {"kind": row.kind, "message": row.message, "becomes": row.becomes, "offsets": row.offsets}
            for name, row in checks.times.items()
        },
        "duplicates": _describe_events(checks.duplicates, locale),
        "conflicts": _describe_events(checks.conflicts, locale),
        "missing": [{"name": name, "label": Message(MISSING_LABELS[name])} for name in checks.missing],
    }


def _describe_events(events: Sequence[OtherEvent], locale: PageLocale) -> list[dict[str, Any]]:
    return [
        {
            "title": event.title,
            "url": f"{PREFIX}/events/{event.id}",
            "when": format_moment(locale, event.start_local),
            "venue": event.venue,
        }
        for event in events
    ]


async def read_revision(console_request: ConsoleRequest) -> Response:
    """Return the latest revision of an event and who made it, or 0 if it is no longer in the change log."""
    record_id = int(console_request.path_params["id"])
    async with console_request.transaction() as tx:
        await record_verbs.fetch_editable_row(EVENTS, console_request.make_context(tx, record_id=record_id))
        changes = await list_record_changes(tx, KIND, record_id, limit=1)
    revision, login = (changes[0]["revision"], changes[0]["login"] or "") if changes else (0, "")
    return respond_json(console_request, {"revision": revision, "login": login})


async def store_draft(console_request: ConsoleRequest) -> Response:
    async with console_request.write() as tx:
        await save_draft(
            tx, _user_id(console_request), KIND, console_request.path_params["key"], console_request.form
        )
    return respond_json(console_request, {"saved": True})


async def discard_draft(console_request: ConsoleRequest) -> Response:
    key = console_request.path_params["key"]
    async with console_request.write() as tx:
        await form_drafts.remove_drafts(tx, _user_id(console_request), KIND, [key])
    return redirect(_form_path(key), "draft-discarded")


async def compare_draft(console_request: ConsoleRequest) -> Response:
    key = console_request.path_params["key"]
    async with console_request.transaction() as tx:
        draft = await form_drafts.find_draft(tx, _user_id(console_request), KIND, key)
        if draft is None:
            raise errors.no_route()
        differences = await compare(console_request, console_request.make_context(tx), draft)
    return show(
        console_request, "event_form_compare.html", differences=differences, key=key, form_path=_form_path(key)
    )


def _form_path(key: str) -> str:
    return f"{PREFIX}/events/{key if key.isdecimal() else 'new'}"


def _user_id(console_request: ConsoleRequest) -> int:
    return console_request.actor.user_id or 0


SCRIPT_ROUTES: Final = (
    ConsoleRoute("/events/checks", post=check_form),
    ConsoleRoute(r"/events/(?P<id>\d{1,15})/revision", read_revision),
    ConsoleRoute(f"/drafts/events/{KEY}", compare_draft, store_draft, has_frequent_post=True),
    ConsoleRoute(f"/drafts/events/{KEY}/discard", post=discard_draft),
)


# A small map of a venue, shown in a frame in the form.


async def show_map(console_request: ConsoleRequest) -> Response:
    settings = console_request.map_settings
    if not settings.tiles_url:
        raise errors.no_route()
    latitude, longitude = _read_degrees(console_request, "lat", 90), _read_degrees(console_request, "lng", 180)
    points = [(latitude, longitude, [console_request.query_value("name")[:200]])]
    response = show(
        console_request,
        "event_form_map.html",
        points=orjson.dumps(points).decode(),
        tiles_url=settings.tiles_url,
        tiles_attribution=settings.tiles_attribution,
        tiles_host=urlsplit(settings.tiles_url).netloc.removeprefix("{s}."),
    )
    response.headers["Content-Security-Policy"] = _make_policy(settings.tiles_url)
    return response


def _read_degrees(console_request: ConsoleRequest, name: str, limit: int) -> float:
    try:
        degrees: float = number(-limit, limit).read(console_request.query_value(name))
    except InvalidValue as error:
        raise errors.invalid_params({name: errors.for_param(name, error.message)}) from error
    return degrees


def _make_policy(tiles_url: str) -> str:
    """Allow images from the tile server, and allow this site to frame the map, as on public pages."""
    tiles = find_origin(tiles_url.replace("{s}.", "*."))
    return (
        "default-src 'none'; style-src 'self'; font-src 'self'; script-src 'self'; base-uri 'none'; "
        f"form-action 'none'; img-src 'self' {tiles}; frame-ancestors 'self'"
    )


MAP_ROUTES: Final = (ConsoleRoute("/map", show_map),)


# Previews of drafts and unsaved changes, in the template of the public page.


async def show_preview(console_request: ConsoleRequest) -> Response:
    """Show a stored event's page, regardless of its status."""
    async with console_request.transaction() as tx:
        return await _show(console_request, tx, int(console_request.path_params["id"]))


async def preview_unsaved(console_request: ConsoleRequest, submission: Submission) -> Response:
    """Save the form in a transaction, show the resulting page, and roll the transaction back."""
    params = submission.find_params()
    if submission.record_id is None:
        params["status"] = "draft"
    record_id = submission.record_id
    values = read_params(EVENTS.fields, params, update=record_id is not None)
    await hash_new_passwords(console_request.site, values)
    async with console_request.write() as tx:
        await tx.lock_site(console_request.actor.user_id)
        async with tx.rolled_back():
            context = console_request.make_context(tx, values, record_id=record_id)
            outcome = await (create_record if record_id is None else update_record)(EVENTS, context)
            return await _show(console_request, tx, outcome.body["id"])


def show_preview_error(console_request: ConsoleRequest, error: ApiError) -> Response:
    """Explain in the preview frame why the form cannot be previewed yet."""
    translate = translator(console_request.language)
    response = show(
        console_request,
        "event_form_message.html",
        status=error.status,
        error=error.message,
        errors=field_errors(error),
        labels={name: translate(text) for name, text in LABELS.items()},
    )
    policy = make_policy(console_request).replace("frame-ancestors 'none'", "frame-ancestors 'self'")
    response.headers["Content-Security-Policy"] = policy
    return response


async def _show(console_request: ConsoleRequest, tx: Transaction, record_id: int) -> Response:
    """Render the public page with the user's permissions. No cache may store it, and only this site may frame it."""
    page_request = console_request.make_page_request(
        console_request.request, console_request.path, console_request.actor
    )
    # A user who may edit a protected event needs no password.
    context = replace(page_request.operation_context(tx, values={"context": "edit"}), record_id=record_id)
    page = await show_event_page(page_request, context)
    headers = {
        "Content-Language": page_request.language,
        "Content-Security-Policy": page.headers["Content-Security-Policy"],
        "Referrer-Policy": "same-origin",
        "X-Robots-Tag": "noindex",
        "Cache-Control": "private, no-store",
    }
    return Response(page.body, page.status, headers, media_type=page.media_type)


PREVIEW_ROUTES: Final = (ConsoleRoute(r"/events/(?P<id>\d{1,15})/preview", show_preview),)
