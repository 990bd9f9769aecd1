"""The form page with its values, choices, warnings and drafts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

import orjson
from markupsafe import Markup
from starlette.responses import Response

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import Actor, Kind
from kalends.calendar.kinds.media_kind import MEDIA
from kalends.calendar.kinds.organizers import ORGANIZERS
from kalends.calendar.kinds.posts import build_post_image
from kalends.calendar.kinds.venues import VENUES
from kalends.calendar.operations import duplicates as event_checks, event_queries, record_verbs
from kalends.calendar.operations.duplicates import OtherEvent
from kalends.calendar.operations.event_queries import CategoryChoice, Choice
from kalends.calendar.rules.record_types import MOVED_ONLINE, MediaItem
from kalends.calendar.rules.similarity import EventFacts
from kalends.calendar.rules.when import REPEATED, TimeProblem, find_problem
from kalends.calendar.storage import form_drafts
from kalends.calendar.storage.form_drafts import Draft
from kalends.console.console_rendering import show
from kalends.console.console_request import ConsoleRequest, form_error
from kalends.console.event_values import (
    EventValues,
    Linked,
    Pick,
    make_copy,
    make_new_values,
    make_originals,
    make_values,
    shift_days,
    to_params,
)
from kalends.console.field_texts import LABELS as FIELD_LABELS, STATUS_NAMES, make_locale
from kalends.core.date_forms import make_absolute, read_datetime
from kalends.core.errors import ApiError, InvalidValue, field_errors
from kalends.core.messages import Message, gettext_noop as N_, translator
from kalends.core.params import parse_id
from kalends.core.sanitize import fold
from kalends.core.times import DateTimeInput, event_span, local_of
from kalends.core.zones import read_zone
from kalends.media.operations import read_images
from kalends.rendering.cards import STATE_LABELS
from kalends.rendering.page_locale import PageLocale
from kalends.series.console.series_page import make_options, name_fields
from kalends.store import Row

# Load the form's values, and resolve names that the user has typed.

MAX_SHIFT = 3660  # days
MAX_NAME = 500
UNKNOWN = {
    "venue": N_("There’s no venue “{name}”. Choose one from the list or create it below."),
    "organizer": N_("There’s no organizer “{name}”. Choose one from the list or create it below."),
}


async def load_new_values(console_request: ConsoleRequest, context: OperationContext) -> EventValues:
    """Return the values of a new event. `?copy=` copies another event, and `&shift_days=` moves the copy."""
    site, source = context.transaction.site, parse_id(console_request.query_value("copy"))
    if source is None:
        values = make_new_values(site)
        values.start_day = _read_day(console_request.query_value("day"))
        return values
    row = await record_verbs.fetch_readable_row(
        EVENTS, console_request.make_context(context.transaction, {"context": "edit"}, record_id=source)
    )
    values = make_copy(make_values(row, await load_linked(context, row), site))
    shift = console_request.query_value("shift_days")
    days = parse_id(shift.removeprefix("-"))
    if days is not None and days <= MAX_SHIFT:
        shift_days(values, -days if shift.startswith("-") else days)
    return values


def _read_day(text: str) -> str:
    return text if len(text) == 10 and text.replace("-", "").isdecimal() else ""


async def load_linked(context: OperationContext, row: Row) -> Linked:
    image = build_post_image(row, context.render_context)
    return Linked(
        venues=await event_queries.find_choices(VENUES, context, row["venue_ids"]),
        organizers=await event_queries.find_choices(ORGANIZERS, context, row["organizer_ids"]),
        tag_names=await event_queries.find_tag_names(context.transaction, row["tag_ids"]),
        image={"alt_text": image.alt_text, "focus_x": image.focus_x, "focus_y": image.focus_y} if image else None,
    )


async def resolve_names(context: OperationContext, values: EventValues) -> dict[str, Message]:
    """Find the venues, organizers and tags by name. Return an error for each unknown venue or organizer."""
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
    names = [name.strip() for name in values.tags.split(",") if name.strip()]
    entries = await event_queries.find_tag_ids(context.transaction, names) if names else []
    ids = sorted(entry for entry in entries if isinstance(entry, int))
    values.tag_entries = [*ids, *(entry for entry in entries if isinstance(entry, str))]
    return problems


async def _resolve_pick(context: OperationContext, kind: Kind, pick: Pick, new_name: str) -> bool:
    """Set the ID of a named record. Return whether the record exists or is about to be created."""
    if pick.id:
        if pick.name == f"#{pick.id}":
            found = await event_queries.find_choices(kind, context, [pick.id])
            pick.name = found[0].label if found else pick.name
        return True
    if new_name and fold(pick.name) == fold(new_name):
        return True
    try:
        choice = await event_queries.find_by_name(kind, context, pick.name[:MAX_NAME])
    except InvalidValue:
        choice = None
    if choice is not None:
        pick.id, pick.name = choice.id, choice.label
    return choice is not None


# Event warnings: nonexistent times, duplicates, conflicts, and missing search engine data.

# Details that search engines show with an event; the form warns if they are missing.
MISSING_LABELS: Final = {
    "image": N_("a picture"),
    "description": N_("a description"),
    "venue": N_("a venue or an online address"),
    "end_date": N_("an end"),
    "organizer": N_("an organizer"),
    "cost": N_("a price"),
}


@dataclass(frozen=True, slots=True)
class Checks:
    times: dict[str, TimeProblem] = field(default_factory=dict[str, TimeProblem])
    duplicates: Sequence[OtherEvent] = ()
    conflicts: Sequence[OtherEvent] = ()
    missing: Sequence[str] = ()


async def check_event(context: OperationContext, values: EventValues, own_id: int | None) -> Checks:
    """Check a form's values. Skip checks that need a missing value."""
    span = find_span(values, context.transaction.now, context.transaction.site.timezone)
    duplicates: list[OtherEvent] = []
    conflicts: list[OtherEvent] = []
    if span is not None:
        start_utc, end_utc = span
        zone = values.timezone or context.transaction.site.timezone
        facts = _make_facts(values, local_of(start_utc, zone))
        duplicates = await event_checks.find_duplicates(context, facts, start_utc, zone, own_id)
        if values.plain["event_status"] != MOVED_ONLINE:
            ids = [pick.id for pick in values.venue if pick.id]
            conflicts = await event_checks.find_venue_conflicts(context, ids, start_utc, end_utc, own_id)
    return Checks(find_time_problems(values), duplicates, conflicts, find_missing(values))


def _make_facts(values: EventValues, start_local: datetime) -> EventFacts:
    return EventFacts(
        values.title,
        start_local,
        values.all_day,
        venue_ids=tuple(pick.id for pick in values.venue if pick.id),
        venue_names=tuple(pick.name for pick in values.venue if pick.name),
        organizer_ids=tuple(pick.id for pick in values.organizer if pick.id),
        organizer_names=tuple(pick.name for pick in values.organizer if pick.name),
        website=values.plain["website"],
    )


def find_time_problems(values: EventValues) -> dict[str, TimeProblem]:
    if values.all_day:
        return {}
    problems: dict[str, TimeProblem] = {}
    for side, day in (("start", values.start_day), ("end", values.end_day or values.start_day)):
        problem = find_problem(day, getattr(values, f"{side}_time"), values.timezone)
        if problem is not None:
            problems[f"{side}_date"] = problem
    return problems


def find_open_problems(values: EventValues) -> dict[str, Message]:
    """Return a message for each skipped or ambiguous time. As a suggestion, fill in a valid time."""
    messages: dict[str, Message] = {}
    for name, problem in find_time_problems(values).items():
        side = name.removesuffix("_date")
        if problem.kind == REPEATED:
            if getattr(values, f"{side}_offset") in problem.offsets:
                continue
            setattr(values, f"{side}_offset", problem.offsets[0])
        else:
            setattr(values, f"{side}_time", problem.becomes)
        messages[name] = problem.message
    return messages


def find_missing(values: EventValues) -> list[str]:
    has_place = any(pick.name for pick in values.venue) or values.new_venue.get("venue") or values.plain["online_url"]
    is_present = {
        "image": values.image not in ("", "0") or values.image_url,
        "description": values.description.strip(),
        "venue": has_place,
        "end_date": values.all_day or (values.end_time and values.end_time != values.start_time) or values.end_day,
        "organizer": any(pick.name for pick in values.organizer) or values.new_organizer.get("organizer"),
        "cost": values.plain["cost"].strip(),
    }
    return [name for name, present in is_present.items() if not present]


def find_span(values: EventValues, now: datetime, site_zone: str) -> tuple[datetime, datetime] | None:
    """Return the start and end as instants, or None if a value is missing or invalid."""
    params = to_params(values)
    try:
        zone = read_zone(values.timezone) if values.timezone else site_zone
        start, end = (_read_date(params.get(name), now, zone) for name in ("start_date", "end_date"))
        if start is None or end is None:
            return None
        span = event_span(start, end, zone, values.all_day)
    except InvalidValue:
        return None
    return span.start.utc, span.end.utc


def _read_date(text: str | None, now: datetime, zone: str) -> DateTimeInput | None:
    return make_absolute(read_datetime(text), now, zone) if text else None


# The form's buttons. They depend on the user's role and the event's status.

# The statuses that actions request. All other actions keep the status.
STATUSES: Final = {"publish": "publish", "pending": "pending", "draft": "draft", "private": "private"}
# The notice after saving, by the event's new status; "saved" for others.
SAVED_NOTICES: Final = {"publish": "published", "future": "scheduled", "pending": "submitted"}
NEW: Final = ""
STATUS_LABELS: Final = {NEW: N_("New"), **STATUS_NAMES}


@dataclass(frozen=True, slots=True)
class Action:
    """A button: the value that it sends, its text and its style."""

    value: str
    label: str  # a message ID
    style: str = "secondary"


_PUBLISH: Final = Action("publish", N_("Publish"), "")
_SUBMIT: Final = Action("pending", N_("Submit for review"), "")
_SAVE: Final = Action("save", N_("Save"), "")
_DRAFT: Final = Action("draft", N_("Save draft"))
_TO_DRAFT: Final = Action("draft", N_("Change to draft"))
_RESTORE: Final = Action("restore", N_("Restore"), "")
_KEEP: Final = Action("save", N_("Save"))


def list_actions(actor: Actor, status: str) -> list[Action]:
    """Return the actions that save the event. The first one is the primary button."""
    release = _PUBLISH if permissions.may_publish(actor) else _SUBMIT
    return {
        NEW: [release, _DRAFT],
        "draft": [release, _DRAFT],
        "pending": [release, _KEEP] if permissions.may_publish(actor) else [_SAVE, _TO_DRAFT],
        "publish": [_SAVE, _TO_DRAFT],
        "future": [_SAVE, _TO_DRAFT],
        "private": [_SAVE, Action("publish", N_("Publish"))],
        "trash": [_RESTORE],
    }[status]


KIND: Final = "events"
MAX_OFFERED: Final = 20
MAX_TAGS: Final = 20
MAX_IMAGES: Final = 12
MAX_NEW_DRAFTS: Final = 3
# Without JavaScript, the time zone field suggests only these zones.
ZONES: Final = (
    *("UTC", "Europe/London", "Europe/Paris", "Europe/Berlin", "Europe/Athens", "America/New_York"),
    *("America/Chicago", "America/Los_Angeles", "Asia/Tokyo"),
)
LABELS: Final = {
    **FIELD_LABELS,
    "date": N_("Publication date"),
    "file": N_("Picture"),
    "image_alt": N_("What does the picture show?"),
    "rule": N_("Repeat"),
    "add_dates": N_("Extra dates"),
    "remove_dates": N_("Skipped dates"),
}


@dataclass(frozen=True, slots=True)
class Choices:
    venues: Sequence[Choice]
    organizers: Sequence[Choice]
    categories: Sequence[CategoryChoice]
    tags: Sequence[str]
    authors: Sequence[tuple[int, str]]
    images: Sequence[MediaItem]
    image: MediaItem | None
    may_change_image: bool
    venue: Choice | None  # the first chosen venue, for the map


@dataclass(frozen=True, slots=True)
class WebPage:
    """The web page that a new event was read from, and what the user should know about its data."""

    url: str
    warnings: Sequence[Message]


@dataclass(frozen=True, slots=True)
class ProposedForm:
    """What differs in the form of a proposal, which saves nothing itself: it is accepted, or sent to the editors."""

    url: str  # the form's address
    back_url: str
    action: Action
    version: int | None = None  # the proposal's; None: it has not been sent yet
    note: str = ""
    is_senders: bool = False  # offers only what may be proposed, and a note for the editors


@dataclass(frozen=True, slots=True, kw_only=True)
class FormPage:
    values: EventValues
    row: Row | None = None
    originals: Mapping[str, Any] | None = None
    base_revision: int | None = None
    draft_key: str = ""
    error: Message | None = None
    errors: Mapping[str, Message] = field(default_factory=dict[str, Message])
    checks: Checks = field(default_factory=Checks)
    drafts: Sequence[Draft] = ()
    image_search: str = ""
    shows_library: bool = False
    shows_repeat: bool = False
    status: int = 200
    source: WebPage | None = None
    proposed: ProposedForm | None = None

    @property
    def record_id(self) -> int | None:
        return self.row["id"] if self.row else None


async def load_choices(console_request: ConsoleRequest, context: OperationContext, page: FormPage) -> Choices:
    tx, values = context.transaction, page.values
    may_name_authors = permissions.may_name_authors(console_request.actor)
    search = {"search": page.image_search} if page.image_search.strip() else {}
    # A script loads the library when the user opens it. Without JavaScript, the search button does.
    images = (
        await event_queries.list_images(context, {**search, "per_page": MAX_IMAGES}) if page.shows_library else []
    )
    chosen = await read_images(context, [int(values.image)] if values.image not in ("", "0") else [])
    venue_ids = [pick.id for pick in values.venue if pick.id][:1]
    venues = await event_queries.find_choices(VENUES, context, venue_ids)
    return Choices(
        venues=await event_queries.list_frequent(VENUES, context, MAX_OFFERED),
        organizers=await event_queries.list_frequent(ORGANIZERS, context, MAX_OFFERED),
        categories=await event_queries.list_categories(tx),
        tags=await event_queries.list_tag_names(tx, MAX_TAGS),
        authors=await event_queries.list_authors(tx) if may_name_authors else (),
        images=images,
        image=chosen[0][0] if chosen else None,
        may_change_image=not chosen or _may_change(console_request, chosen[0][1]),
        venue=venues[0] if venues else None,
    )


def _may_change(console_request: ConsoleRequest, row: Row) -> bool:
    actor = console_request.actor
    return permissions.rank(actor) >= permissions.EDITOR or permissions.is_own(actor, row)


async def load_drafts(console_request: ConsoleRequest, context: OperationContext, page: FormPage) -> list[Draft]:
    user_id = console_request.actor.user_id or 0
    if page.row is None:
        return await form_drafts.list_new_drafts(context.transaction, user_id, KIND, MAX_NEW_DRAFTS)
    draft = await form_drafts.find_draft(context.transaction, user_id, KIND, str(page.row["id"]))
    return [draft] if draft else []


async def show_form(console_request: ConsoleRequest, context: OperationContext, page: FormPage) -> Response:
    values, row, actor = page.values, page.row, console_request.actor
    choices = await load_choices(console_request, context, page)
    originals = make_originals(values) if page.originals is None else page.originals
    status = row["status"] if row else NEW
    public_url = f"/event/{row['slug']}/" if row and row["status"] == "publish" else ""
    locale = make_locale(console_request)
    labels = {name: translator(console_request.language)(text) for name, text in LABELS.items()}
    return show(
        console_request,
        "event_form.html",
        status=page.status,
        page=page,
        values=values,
        choices=choices,
        labels=labels,
        merged=[
            labels.get(name, name) for name in console_request.query_value("merged").split(",") if name in labels
        ],
        record_id=page.record_id,
        record_status=status,
        status_label=STATUS_LABELS[status],
        actions=[page.proposed.action] if page.proposed else list_actions(actor, status),
        may_publish=permissions.may_publish(actor),
        may_name_terms=permissions.may_name_new_terms(actor),
        may_upload=permissions.may_write(actor, MEDIA) and console_request.state.library is not None,
        originals=_quote_json(originals),
        base_revision=page.base_revision if page.base_revision is not None else (row["revision"] if row else ""),
        has_password=bool(row and row["password_hash"]),
        public_url=public_url,
        time_problems=find_time_problems(values),
        states=list(STATE_LABELS.items()),
        zones=dict.fromkeys([console_request.site.timezone, *ZONES]),
        missing_labels=MISSING_LABELS,
        has_map=bool(console_request.map_settings.tiles_url),
        when=describe_when(values, locale),
        region=locale.name.replace("_", "-"),
        describe_event=lambda event: format_moment(locale, event.start_local),
        describe_draft=lambda draft: format_saved(console_request, locale, draft.saved_at),
        shows_repeat=row is None and (page.shows_repeat or values.repeat.is_on),
        repeat_options=make_options(locale),
        own_fields=name_fields((row["own_fields"] if row else None) or (), locale),
        is_restored=page.draft_key != "" or page.originals is not None,
    )


def _quote_json(value: Mapping[str, Any]) -> Markup:
    """Return JSON for an attribute in single quotes, where double quotes need no escaping."""
    text = orjson.dumps(value).decode()
    escaped = text.replace("&", "&amp;").replace("'", "&#39;").replace("<", "&lt;").replace(">", "&gt;")
    return Markup(escaped)  # noqa: S704


async def show_form_again(
    console_request: ConsoleRequest, context: OperationContext, page: FormPage, error: ApiError
) -> Response:
    status = error.status if 400 <= error.status < 500 else 400
    response = await show_form(
        console_request, context, replace(page, error=form_error(error), errors=field_errors(error), status=status)
    )
    response.headers.update(error.headers)
    return response


def describe_when(values: EventValues, locale: PageLocale) -> str:
    """Return the dates of a form in words, as the form's script does; "" if they are incomplete or wrong."""
    try:
        start, end = (
            datetime.fromisoformat(f"{day}T{time or '00:00'}")
            for day, time in (
                (values.start_day, values.start_time),
                (values.end_day or values.start_day, values.end_time or values.start_time),
            )
        )
    except ValueError:
        return ""
    if end < start:
        return ""
    times = [[] if values.all_day else [locale.time(moment)] for moment in (start, end)]
    if start.date() == end.date():
        span = " – ".join(dict.fromkeys(times[0] + times[1]))
        return ", ".join(filter(None, (locale.day(start.date()), span)))
    return " – ".join(
        ", ".join([locale.day(moment.date()), *time]) for moment, time in zip((start, end), times, strict=True)
    )


def format_moment(locale: PageLocale, moment: datetime) -> str:
    return f"{locale.day(moment.date())}, {locale.time(moment)}"


def format_saved(console_request: ConsoleRequest, locale: PageLocale, saved_at: datetime) -> str:
    """Return when a draft was stored: the time and, unless it was today, the date."""
    zone = console_request.site.timezone
    moment, today = local_of(saved_at, zone), local_of(console_request.now, zone).date()
    return locale.time(moment) if moment.date() == today else format_moment(locale, moment)
