"""The history of a record with the words that changed, restoring, and the trash."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from starlette.responses import Response

from kalends.console.field_texts import STATUS_NAMES, field_label, is_prose, local_text, make_locale, value_text
from kalends.console.rendering import show
from kalends.console.request import PREFIX, ConsoleRequest, ConsoleRoute, redirect
from kalends.core import errors
from kalends.core.html.text import to_plain_lines, to_plain_text
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import MAX_ID
from kalends.core.word_diff import Segment, diff_words, shorten
from kalends.kinds import BY_NAME
from kalends.kinds.kind import Kind
from kalends.operations.history import read_history, restore_record
from kalends.operations.linked_names import Names, find_names
from kalends.operations.records import fetch_editable_row
from kalends.operations.trash import list_trash
from kalends.website.models.page_locale import PageLocale

PER_PAGE: Final = 30
ACTIONS: Final = {
    "create": N_("Created"),
    "update": N_("Changed"),
    "trash": N_("Moved to the trash"),
    "restore": N_("Restored from the trash"),
    "delete": N_("Deleted permanently"),
}
KIND_NAMES: Final = {"events": N_("Event"), "venues": N_("Venue"), "organizers": N_("Organizer")}
# Fields that the trash changes by itself.
TRASH_FIELDS: Final = {"status", "slug"}


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A changed field: the words that differ, or both values; none if only the formatting differs."""

    label: str
    words: list[Segment]
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A change of the record."""

    revision: int
    action: str
    time: str
    user: str
    changes: list[FieldChange]


async def show_history(console_request: ConsoleRequest) -> Response:
    """Show the changes of a record, newest first."""
    kind, record_id = _find_record(console_request)
    values = {"per_page": PER_PAGE, "before": _read_before(console_request)}
    async with console_request.transaction() as tx:
        row = await fetch_editable_row(kind, console_request.make_context(tx, record_id=record_id))
        outcome = await read_history(kind, console_request.make_context(tx, values, record_id=record_id))
        entries: list[dict[str, Any]] = outcome.body["history"]
        names = await find_names(tx, console_request.actor, kind, _list_versions(entries))
    return show(
        console_request,
        "history.html",
        title=to_plain_text(row["title"]),
        record_path=f"{PREFIX}/{kind.name}/{record_id}",
        is_trashed=row["status"] == "trash",
        current=entries[0]["revision"] if entries and values["before"] == MAX_ID else None,
        entries=[_make_entry(console_request, kind, entry, names) for entry in entries],
        next_before=outcome.body["next_before"],
    )


async def restore(console_request: ConsoleRequest) -> Response:
    """Restore the version of a revision, or a record from the trash, with the rights and rules of the API."""
    kind, record_id = _find_record(console_request)
    revision = console_request.form_text("revision")
    if revision and not (revision.isdecimal() and int(revision) <= MAX_ID):
        raise errors.invalid("revision", "must be a revision.")
    values = {"revision": int(revision)} if revision else {}
    async with console_request.write() as tx:
        await tx.lock_site(console_request.actor.user_id)
        await restore_record(kind, console_request.make_context(tx, values, record_id=record_id))
    return redirect(f"{PREFIX}/{kind.name}/{record_id}/history" if revision else f"{PREFIX}/trash", "restored")


async def show_trash(console_request: ConsoleRequest) -> Response:
    """Show the records in the trash that the user may restore, with the days until they are deleted."""
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
            "days_left": _count_days(row["trashed_at"] + timedelta(days=days) - console_request.now),
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


def _read_before(console_request: ConsoleRequest) -> int:
    text = console_request.query_value("before")
    return int(text) if text.isdecimal() and len(text) <= 16 else MAX_ID


def _list_versions(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {name: change[side] for name, change in entry["changes"].items()}
        for entry in entries
        for side in ("before", "after")
    ]


def _make_entry(console_request: ConsoleRequest, kind: Kind, entry: dict[str, Any], names: Names) -> Entry:
    locale, action = make_locale(console_request), entry["action"]
    moment = datetime.fromisoformat(f"{entry['date_utc']}+00:00")
    hidden = TRASH_FIELDS if action in ("trash", "restore") else set[str]()
    changes = [
        _make_change(kind, name, change, names, locale)
        for name, change in entry["changes"].items()
        if action != "create" and name not in hidden
    ]
    user = entry["user"]["login"] if entry["user"] else ""
    time = local_text(moment, console_request.site.timezone, locale)
    return Entry(entry["revision"], ACTIONS.get(action, action), time, user, changes)


def _make_change(kind: Kind, name: str, change: dict[str, Any], names: Names, locale: PageLocale) -> FieldChange:
    label = field_label(kind, name)
    if not is_prose(kind, name):
        before, after = (value_text(kind, name, change[side], names, locale) for side in ("before", "after"))
        return FieldChange(label, [], before, after)
    before, after = (to_plain_lines(str(change[side] or "")) for side in ("before", "after"))
    return FieldChange(label, shorten(diff_words(before, after)) if before != after else [])


def _count_days(left: timedelta) -> int:
    """Return the full days until a record may be deleted."""
    return max(left.days, 0)


_RECORD: Final = r"/(?P<kind>events|venues|organizers)/(?P<id>[0-9]{1,19})"
ROUTES: Final = (
    ConsoleRoute(f"{_RECORD}/history", show_history, restore),
    ConsoleRoute(f"{_RECORD}/restore", post=restore),
    ConsoleRoute("/trash", show_trash),
)
