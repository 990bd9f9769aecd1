"""Loading the values of the form, and resolving names that the user typed."""

from kalends.console.event_form.values import (
    EventValues,
    Linked,
    Pick,
    make_copy,
    make_new_values,
    make_values,
    shift_days,
)
from kalends.console.request import ConsoleRequest
from kalends.core.errors import InvalidValue
from kalends.core.html.sanitize import fold
from kalends.core.messages import Message
from kalends.core.messages import gettext_noop as N_
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Kind
from kalends.kinds.organizers import ORGANIZERS
from kalends.kinds.posts import build_post_image
from kalends.kinds.venues import VENUES
from kalends.operations import event_choices, records
from kalends.operations.context import OperationContext
from kalends.store import Row

MAX_SHIFT = 3660  # days
MAX_NAME = 500
UNKNOWN = {
    "venue": N_("There is no venue “{name}”. Choose one of the list, or create it below."),
    "organizer": N_("There is no organizer “{name}”. Choose one of the list, or create it below."),
}


async def load_new_values(console_request: ConsoleRequest, context: OperationContext) -> EventValues:
    """Return the values of a new event; `?copy=` copies another one, `&shift_days=` moves the copy."""
    site, source = context.transaction.site, console_request.query_value("copy")
    if not source.isdecimal() or len(source) > 15:
        values = make_new_values(site)
        values.start_day = _read_day(console_request.query_value("day"))
        return values
    row = await records.fetch_readable_row(EVENTS, _with_record(console_request, context, int(source)))
    values = make_copy(make_values(row, await load_linked(context, row), site))
    shift = console_request.query_value("shift_days")
    if shift.removeprefix("-").isdecimal() and abs(int(shift)) <= MAX_SHIFT:
        shift_days(values, int(shift))
    return values


def _read_day(text: str) -> str:
    return text if len(text) == 10 and text.replace("-", "").isdecimal() else ""


def _with_record(console_request: ConsoleRequest, context: OperationContext, record_id: int) -> OperationContext:
    return console_request.make_context(context.transaction, {"context": "edit"}, record_id=record_id)


async def load_linked(context: OperationContext, row: Row) -> Linked:
    """Load the records that an event links to."""
    image = build_post_image(row, context.render_context)
    return Linked(
        venues=await event_choices.find_choices(VENUES, context, row["venue_ids"]),
        organizers=await event_choices.find_choices(ORGANIZERS, context, row["organizer_ids"]),
        tag_names=await event_choices.find_tag_names(context.transaction, row["tag_ids"]),
        image={"alt_text": image.alt_text, "focus_x": image.focus_x, "focus_y": image.focus_y} if image else None,
    )


async def resolve_names(context: OperationContext, values: EventValues) -> dict[str, Message]:
    """Find the venues, organizers and tags that the user named; return the errors about unknown ones."""
    problems: dict[str, Message] = {}
    linked: tuple[tuple[str, Kind, list[Pick], dict[str, str]], ...] = (
        ("venue", VENUES, values.venue, values.new_venue),
        ("organizer", ORGANIZERS, values.organizer, values.new_organizer),
    )
    for name, kind, picks, new in linked:
        for pick in picks:
            if not await _resolve_pick(context, kind, pick, new.get(name, "")):
                problems[name] = Message(UNKNOWN[name], name=pick.name)
                new.setdefault(name, pick.name)
    await _resolve_tags(context, values)
    return problems


async def _resolve_pick(context: OperationContext, kind: Kind, pick: Pick, new_name: str) -> bool:
    """Set the ID of a record that was named; return whether it exists or is the new one."""
    if pick.id:
        if pick.name == f"#{pick.id}":
            found = await event_choices.find_choices(kind, context, [pick.id])
            pick.name = found[0].label if found else pick.name
        return True
    if new_name and fold(pick.name) == fold(new_name):
        return True
    try:
        choice = await event_choices.find_by_name(kind, context, pick.name[:MAX_NAME])
    except InvalidValue:
        choice = None
    if choice is not None:
        pick.id, pick.name = choice.id, choice.label
    return choice is not None


async def _resolve_tags(context: OperationContext, values: EventValues) -> None:
    names = [name.strip() for name in values.tags.split(",") if name.strip()]
    entries = await event_choices.find_tag_ids(context.transaction, names) if names else []
    ids = sorted(entry for entry in entries if isinstance(entry, int))
    values.tag_entries = [*ids, *(entry for entry in entries if isinstance(entry, str))]
