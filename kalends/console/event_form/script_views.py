"""Endpoints for the scripts of the form: warnings, drafts, and whether somebody else has changed the event."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
from starlette.responses import Response

from kalends.console.event_form.checks import MISSING_LABELS, Checks, check_event
from kalends.console.event_form.comparison import compare
from kalends.console.event_form.loading import resolve_names
from kalends.console.event_form.page import KIND, format_moment, make_locale
from kalends.console.event_form.values import make_new_values, overlay
from kalends.console.rendering import show
from kalends.console.request import PREFIX, ConsoleRequest, ConsoleRoute, redirect
from kalends.core import errors
from kalends.core.messages import Message
from kalends.http.json_texts import json_default
from kalends.http.responses import JSON
from kalends.kinds.events import EVENTS
from kalends.operations import records
from kalends.operations.drafts import save_draft
from kalends.operations.event_checks import OtherEvent
from kalends.store import drafts
from kalends.store.history import list_record_changes
from kalends.website.models.page_locale import PageLocale

KEY: Final = r"(?P<key>[A-Za-z0-9-]{1,64})"


def respond_json(console_request: ConsoleRequest, body: Mapping[str, Any]) -> Response:
    """Return JSON for a script, with messages in the language of the user."""
    encoded = orjson.dumps(body, default=json_default(console_request.language))
    return Response(encoded, headers={"Cache-Control": "private, no-store"}, media_type=JSON)


async def check_form(console_request: ConsoleRequest) -> Response:
    """Return the warnings about the fields of a form."""
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx)
        values = make_new_values(tx.site)
        values.start_time = values.end_time = ""
        overlay(values, console_request.form)
        await resolve_names(context, values)
        own_id = console_request.form_text("record_id")
        checks = await check_event(context, values, int(own_id) if own_id.isdecimal() else None)
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
    """Return the revision of the last edit of an event, and who made it; 0 if the change log has lost it."""
    record_id = int(console_request.path_params["id"])
    async with console_request.transaction() as tx:
        await records.fetch_editable_row(EVENTS, console_request.make_context(tx, record_id=record_id))
        changes = await list_record_changes(tx, KIND, record_id, limit=1)
    revision, login = (changes[0]["revision"], changes[0]["login"] or "") if changes else (0, "")
    return respond_json(console_request, {"revision": revision, "login": login})


async def store_draft(console_request: ConsoleRequest) -> Response:
    """Store the fields of a form that is not saved yet."""
    async with console_request.write() as tx:
        await save_draft(
            tx, _user_id(console_request), KIND, console_request.path_params["key"], console_request.form
        )
    return respond_json(console_request, {"saved": True})


async def discard_draft(console_request: ConsoleRequest) -> Response:
    """Remove unsaved changes and show the form without them."""
    key = console_request.path_params["key"]
    async with console_request.write() as tx:
        await drafts.remove_drafts(tx, _user_id(console_request), KIND, [key])
    return redirect(_form_path(key), "draft-discarded")


async def compare_draft(console_request: ConsoleRequest) -> Response:
    """Show the unsaved changes beside the stored values."""
    key = console_request.path_params["key"]
    async with console_request.transaction() as tx:
        draft = await drafts.find_draft(tx, _user_id(console_request), KIND, key)
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


ROUTES: Final = (
    ConsoleRoute("/events/checks", post=check_form),
    ConsoleRoute(r"/events/(?P<id>\d{1,15})/revision", read_revision),
    ConsoleRoute(f"/drafts/events/{KEY}", compare_draft, store_draft, has_frequent_post=True),
    ConsoleRoute(f"/drafts/events/{KEY}/discard", post=discard_draft),
)
