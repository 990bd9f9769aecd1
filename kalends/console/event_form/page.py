"""The page of the form: its values, the records that it offers, warnings and drafts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

import orjson
from markupsafe import Markup
from starlette.responses import Response

from kalends.console.event_form.actions import NEW, STATUS_LABELS, list_actions
from kalends.console.event_form.checks import MISSING_LABELS, Checks, find_time_problems
from kalends.console.event_form.values import EventValues, make_originals
from kalends.console.field_texts import LABELS as FIELD_LABELS
from kalends.console.rendering import show
from kalends.console.request import ConsoleRequest, field_errors, form_error
from kalends.console.series.repeat_options import make_options
from kalends.console.series.texts import name_fields
from kalends.core.errors import ApiError
from kalends.core.messages import Message
from kalends.core.messages import gettext_noop as N_
from kalends.core.record_types import MediaItem
from kalends.core.times import local_of
from kalends.http.language import translator
from kalends.kinds.media import MEDIA
from kalends.kinds.organizers import ORGANIZERS
from kalends.kinds.venues import VENUES
from kalends.operations import event_choices, permissions
from kalends.operations.context import OperationContext
from kalends.operations.event_choices import CategoryChoice, Choice
from kalends.operations.media.records import read_images
from kalends.store import Row, drafts
from kalends.store.drafts import Draft
from kalends.website.models.page_locale import PageLocale, make_page_locale
from kalends.website.models.states import STATE_LABELS

KIND: Final = "events"
MAX_OFFERED: Final = 20
MAX_TAGS: Final = 20
MAX_IMAGES: Final = 12
MAX_NEW_DRAFTS: Final = 3
# Without script, the field of the time zone suggests these; with script, all.
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
    "add_dates": N_("Further dates"),
    "remove_dates": N_("Dates that are left out"),
}


@dataclass(frozen=True, slots=True)
class Choices:
    """The records that the form offers."""

    venues: Sequence[Choice]
    organizers: Sequence[Choice]
    categories: Sequence[CategoryChoice]
    tags: Sequence[str]
    authors: Sequence[tuple[int, str]]
    images: Sequence[MediaItem]
    image: MediaItem | None
    may_change_image: bool
    venue: Choice | None  # the first chosen venue, for the map


@dataclass(frozen=True, slots=True, kw_only=True)
class FormPage:
    """The content of the page of the form besides its choices."""

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

    @property
    def record_id(self) -> int | None:
        return self.row["id"] if self.row else None


async def load_choices(console_request: ConsoleRequest, context: OperationContext, page: FormPage) -> Choices:
    """Load the records that the form offers to this user."""
    tx, values = context.transaction, page.values
    may_name_authors = permissions.may_name_authors(console_request.actor)
    search = {"search": page.image_search} if page.image_search.strip() else {}
    # With script, the library is loaded when it is opened.
    shows_library = page.shows_library or not permissions.may_write(console_request.actor, MEDIA)
    images = await event_choices.list_images(context, {**search, "per_page": MAX_IMAGES}) if shows_library else []
    image_ids = [int(values.image)] if values.image.isdecimal() else []
    chosen = await read_images(context, image_ids)
    venue_ids = [pick.id for pick in values.venue if pick.id][:1]
    venues = await event_choices.find_choices(VENUES, context, venue_ids)
    return Choices(
        venues=await event_choices.list_frequent(VENUES, context, MAX_OFFERED),
        organizers=await event_choices.list_frequent(ORGANIZERS, context, MAX_OFFERED),
        categories=await event_choices.list_categories(tx),
        tags=await event_choices.list_tag_names(tx, MAX_TAGS),
        authors=await event_choices.list_authors(tx) if may_name_authors else (),
        images=images,
        image=chosen[0][0] if chosen else None,
        may_change_image=not chosen or _may_change(console_request, chosen[0][1]),
        venue=venues[0] if venues else None,
    )


def _may_change(console_request: ConsoleRequest, row: Row) -> bool:
    actor = console_request.actor
    return permissions.rank(actor) >= permissions.EDITOR or permissions.is_own(actor, row)


async def load_drafts(console_request: ConsoleRequest, context: OperationContext, page: FormPage) -> list[Draft]:
    """Return the unsaved changes of this event, or those of new ones."""
    user_id = console_request.actor.user_id or 0
    if page.row is None:
        return await drafts.list_new_drafts(context.transaction, user_id, KIND, MAX_NEW_DRAFTS)
    draft = await drafts.find_draft(context.transaction, user_id, KIND, str(page.row["id"]))
    return [draft] if draft else []


async def show_form(console_request: ConsoleRequest, context: OperationContext, page: FormPage) -> Response:
    """Render the form."""
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
        actions=list_actions(actor, status),
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
        describe_event=lambda event: format_moment(locale, event.start_local),
        describe_draft=lambda draft: format_saved(console_request, locale, draft.saved_at),
        shows_repeat=row is None and (page.shows_repeat or values.repeat.is_on),
        repeat_options=make_options(locale),
        own_fields=name_fields((row["own_fields"] if row else None) or (), locale),
        is_restored=page.draft_key != "" or page.originals is not None,
    )


def _quote_json(value: Mapping[str, Any]) -> Markup:
    """Return JSON for an attribute in single quotes, in which double quotes need not be escaped."""
    text = orjson.dumps(value).decode()
    escaped = text.replace("&", "&amp;").replace("'", "&#39;").replace("<", "&lt;").replace(">", "&gt;")
    return Markup(escaped)  # noqa: S704


async def show_form_again(
    console_request: ConsoleRequest, context: OperationContext, page: FormPage, error: ApiError
) -> Response:
    """Render the form with the reasons why it was not saved."""
    status = error.status if 400 <= error.status < 500 else 400
    response = await show_form(
        console_request, context, replace(page, error=form_error(error), errors=field_errors(error), status=status)
    )
    response.headers.update(error.headers)
    return response


def make_locale(console_request: ConsoleRequest) -> PageLocale:
    language = console_request.language
    return make_page_locale(language, console_request.site.language, translator(language))


def format_moment(locale: PageLocale, moment: datetime) -> str:
    return f"{locale.day(moment.date())}, {locale.time(moment)}"


def format_saved(console_request: ConsoleRequest, locale: PageLocale, saved_at: datetime) -> str:
    """Return the time at which a draft was stored; with its day unless it is today's."""
    zone = console_request.site.timezone
    moment, today = local_of(saved_at, zone), local_of(console_request.now, zone).date()
    return locale.time(moment) if moment.date() == today else format_moment(locale, moment)
