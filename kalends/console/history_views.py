"""Shows a record's history with the words that changed, restores revisions, and shows the trash."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from starlette.responses import Response

from kalends.calendar.kinds import BY_NAME
from kalends.calendar.kinds.kind import Kind
from kalends.calendar.operations.event_links import Names, find_names
from kalends.calendar.operations.record_history import list_trash, read_history, restore_record
from kalends.calendar.operations.record_verbs import fetch_editable_row
from kalends.console.console_rendering import show
from kalends.console.console_request import PREFIX, ConsoleRequest, ConsoleRoute, redirect
from kalends.console.field_texts import (
    STATUS_NAMES,
    field_label,
    is_prose,
    local_text,
    make_locale,
    origin_text,
    value_text,
)
from kalends.core import errors
from kalends.core.html_text import to_plain_lines, to_plain_text
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import MAX_ID, parse_id
from kalends.core.words import Segment, diff_words, shorten
from kalends.proposals.storage import find_origins
from kalends.rendering.page_locale import PageLocale
from kalends.store import Row

PER_PAGE: Final = 30
ACTIONS: Final = {
    "create": N_("Created"),
    "update": N_("Changed"),
    "trash": N_("Moved to trash"),
    "restore": N_("Restored from the trash"),
    "delete": N_("Deleted permanently"),
}
KIND_NAMES: Final = {"events": N_("Event"), "venues": N_("Venue"), "organizers": N_("Organizer")}
# Fields that change when a record moves to the trash.
TRASH_FIELDS: Final = {"status", "slug"}


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A changed field, with either the words that differ or both values.

    It has neither if only the formatting differs.
    """

    label: str
    words: list[Segment]
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    revision: int
    action: str
    time: str
    user: str
    origin: str  # of an accepted proposal; else empty
    changes: list[FieldChange]


async def show_history(console_request: ConsoleRequest) -> Response:
    kind, record_id = _find_record(console_request)
    before = parse_id(console_request.query_value("before"))
    values = {"per_page": PER_PAGE, "before": MAX_ID if before is None else before}
    async with console_request.transaction() as tx:
        row = await fetch_editable_row(kind, console_request.make_context(tx, record_id=record_id))
        outcome = await read_history(kind, console_request.make_context(tx, values, record_id=record_id))
        entries: list[dict[str, Any]] = outcome.body["history"]
        names = await find_names(
            tx,
            console_request.actor,
            kind,
            [
                {name: change[side] for name, change in entry["changes"].items()}
                for entry in entries
                for side in ("before", "after")
            ],
        )
        origins = await find_origins(tx, record_id) if kind.is_event else []
    return show(
        console_request,
        "history.html",
        title=to_plain_text(row["title"]),
        record_path=f"{PREFIX}/{kind.name}/{record_id}",
        is_trashed=row["status"] == "trash",
        current=entries[0]["revision"] if entries and values["before"] == MAX_ID else None,
        entries=[_make_entry(console_request, kind, entry, names, origins) for entry in entries],
        next_before=outcome.body["next_before"],
    )


async def restore(console_request: ConsoleRequest) -> Response:
    """Restore a revision, or a record from the trash, with the permissions and rules of the API."""
    kind, record_id = _find_record(console_request)
    sent = console_request.form_text("revision")
    revision = parse_id(sent)
    if sent and revision is None:
        raise errors.invalid("revision", "must be a revision.")
    values = {"revision": revision} if sent else {}
    async with console_request.write() as tx:
        await tx.lock_site(console_request.actor.user_id)
        await restore_record(kind, console_request.make_context(tx, values, record_id=record_id))
    return redirect(f"{PREFIX}/{kind.name}/{record_id}/history" if revision else f"{PREFIX}/trash", "restored")


async def show_trash(console_request: ConsoleRequest) -> Response:
    locale, days = make_locale(console_request), console_request.state.trash_days
    async with console_request.transaction() as tx:
        found = await list_trash(tx, console_request.actor)
    rows = [
        {
            "title": to_plain_text(row["title"]),
            "kind": KIND_NAMES[kind.name],
            "path": f"{PREFIX}/{kind.name}/{row['id']}",
            "status": STATUS_NAMES.get(row["trashed_status"], STATUS_NAMES["draft"]),
            "time": local_text(row["trashed_at"], console_request.site.timezone, locale),
            "days_left": max((row["trashed_at"] + timedelta(days=days) - console_request.now).days, 0),
        }
        for kind, row in found
    ]
    return show(console_request, "trash.html", rows=rows, days=days)


def _find_record(console_request: ConsoleRequest) -> tuple[Kind, int]:
    params = console_request.path_params
    record_id = int(params["id"])
    if record_id > MAX_ID:
        raise errors.no_route()
    return BY_NAME[params["kind"]], record_id


def _make_entry(
    console_request: ConsoleRequest, kind: Kind, entry: dict[str, Any], names: Names, origins: Sequence[Row]
) -> Entry:
    locale, action, revision = make_locale(console_request), entry["action"], entry["revision"]
    moment = datetime.fromisoformat(f"{entry['date_utc']}+00:00")
    hidden = TRASH_FIELDS if action in ("trash", "restore") else set[str]()
    changes = [
        describe_change(kind, name, change, names, locale)
        for name, change in entry["changes"].items()
        if action != "create" and name not in hidden
    ]
    user = entry["user"]["login"] if entry["user"] else ""
    time = local_text(moment, console_request.site.timezone, locale)
    proposed = (row for row in origins if row["first_revision"] < revision <= row["last_revision"])
    origin = next((origin_text(row["origin"], row["program"], locale) for row in proposed), "")
    return Entry(revision, ACTIONS.get(action, action), time, user, origin, changes)


def describe_change(
    kind: Kind, name: str, change: Mapping[str, Any], names: Names, locale: PageLocale
) -> FieldChange:
    """Return a changed field, from its values before and after in history format."""
    label = field_label(kind, name)
    if not is_prose(kind, name):
        before, after = (value_text(kind, name, change[side], names, locale) for side in ("before", "after"))
        return FieldChange(label, [], before, after)
    before, after = (to_plain_lines(str(change[side] or "")) for side in ("before", "after"))
    return FieldChange(label, shorten(diff_words(before, after)) if before != after else [])


_RECORD: Final = r"/(?P<kind>events|venues|organizers)/(?P<id>[0-9]{1,19})"
ROUTES: Final = (
    ConsoleRoute(f"{_RECORD}/history", show_history, restore),
    ConsoleRoute(f"{_RECORD}/restore", post=restore),
    ConsoleRoute("/trash", show_trash),
)
