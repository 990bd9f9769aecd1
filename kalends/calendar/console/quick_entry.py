"""Adds an event from one line. The parts that were understood are shown before saving, and each can be removed."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from starlette.responses import Response

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.console.form_page import NEW, SAVED_NOTICES, FormPage, check_event, list_actions, show_form
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.venues import VENUES
from kalends.calendar.operations import event_queries
from kalends.calendar.operations.record_verbs import create_record
from kalends.calendar.rules.quick_add import Known, QuickEvent, read_line
from kalends.console.console_rendering import respond_json, show
from kalends.console.console_request import ConsoleRequest, ConsoleRoute, add_query, form_error, redirect, safe_next
from kalends.console.event_values import Pick, make_new_values, overlay
from kalends.console.field_texts import make_locale
from kalends.core import times
from kalends.core.errors import ApiError, field_errors
from kalends.core.messages import Message, gettext_noop as N_
from kalends.rendering.page_locale import PageLocale

MAX_VENUES: Final = 4000
MAX_TAGS: Final = 1000
MISSING: Final = {
    "day": N_("Which day? Add one, such as “Tue”, “tomorrow” or “5 Dec”."),
    "title": N_("What is it? Add a title."),
}


@dataclass(frozen=True, slots=True)
class QuickEntry:
    """A line with what it means on this site."""

    event: QuickEvent
    venue: Pick | None
    category_ids: list[int]


async def show_line(console_request: ConsoleRequest) -> Response:
    """Return the parts of a line to the script."""
    async with console_request.transaction() as tx:
        entry = await read_entry(
            console_request, console_request.make_context(tx), console_request.query_value("line")
        )
    locale = make_locale(console_request)
    return respond_json(
        console_request,
        {
            "title": entry.event.title,
            "when": describe_limits(entry.event, locale),
            "parts": list_parts(entry.event, locale),
            "missing": [Message(MISSING[name]).render(locale.translate) for name in entry.event.missing],
        },
    )


async def add_event(console_request: ConsoleRequest) -> Response:
    """Save the event of a line, open it in the form, or show what was understood."""
    action = console_request.form_text("action")
    line = console_request.form_text("without") or console_request.form_text("line")
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx)
        entry = await read_entry(console_request, context, line)
        if action == "form":
            return await _open_form(console_request, context, entry)
    if console_request.form_text("without") or action == "check" or entry.event.missing:
        return _show_entry(console_request, entry)
    status = action if action in ("publish", "pending") else "draft"
    try:
        outcome = await console_request.perform(create_record, EVENTS, {**_make_params(entry), "status": status})
    except ApiError as error:
        if error.status >= 500:
            raise
        return _show_entry(console_request, entry, error)
    back = safe_next(console_request.form_text("back"))
    notice = SAVED_NOTICES.get(outcome.body["status"], "saved")
    return redirect(add_query(back, f"added={outcome.body['id']}"), notice)


async def read_entry(console_request: ConsoleRequest, context: OperationContext, line: str) -> QuickEntry:
    venues = await event_queries.suggest_names(context, VENUES, MAX_VENUES)
    categories = {name: category_id for category_id, name in await event_queries.list_category_choices(context)}
    tags = await event_queries.list_tag_names(context.transaction, MAX_TAGS)
    known = Known(venues, tuple(categories), tags)
    now = times.local_of(console_request.now, console_request.site.timezone)
    month_first = make_locale(console_request).region.endswith("US")
    event = read_line(line, console_request.language, now, known, month_first=month_first)
    if length := await event_queries.find_length(context, event.title):
        event = replace(event, length=length)
    names = event.list_values("venue")
    choice = await event_queries.find_by_name(VENUES, context, names[0]) if names else None
    return QuickEntry(
        event,
        Pick(choice.label, choice.id) if choice else None,
        [categories[name] for name in event.list_values("category") if name in categories],
    )


def _make_params(entry: QuickEntry) -> dict[str, Any]:
    """Return the API parameters of a complete line."""
    event = entry.event
    limits = event.find_limits()
    if limits is None:
        raise AssertionError("the line has a day")
    start, end = (times.format_datetime(moment) for moment in limits)
    costs = event.list_values("cost")
    return {
        "title": event.title,
        "start_date": start,
        "end_date": end,
        "all_day": event.start is None,
        **({"venue": [entry.venue.id]} if entry.venue else {}),
        **({"categories": entry.category_ids} if entry.category_ids else {}),
        **({"tags": list(event.list_values("tag"))} if event.list_values("tag") else {}),
        **({"cost": costs[0]} if costs else {}),
    }


async def _open_form(console_request: ConsoleRequest, context: OperationContext, entry: QuickEntry) -> Response:
    """Open the form with everything that the line says. Nothing is stored."""
    event, values = entry.event, make_new_values(console_request.site)
    form: dict[str, Any] = {"title": event.title, "tags": ", ".join(event.list_values("tag"))}
    if costs := event.list_values("cost"):
        form["cost"] = costs[0]
    if limits := event.find_limits():
        form |= {"start_date": times.format_datetime(limits[0]), "end_date": times.format_datetime(limits[1])}
        form["all_day"] = "true" if event.start is None else "false"
    overlay(values, form)
    values.venue = [entry.venue] if entry.venue else []
    values.categories = sorted(entry.category_ids)
    checks = await check_event(context, values, None)
    return await show_form(console_request, context, FormPage(values=values, checks=checks))


def _show_entry(console_request: ConsoleRequest, entry: QuickEntry, error: ApiError | None = None) -> Response:
    locale = make_locale(console_request)
    problems = [MISSING[name] for name in entry.event.missing]
    return show(
        console_request,
        "quick_add.html",
        status=error.status if error else 400 if problems else 200,
        line=entry.event.line,
        title=entry.event.title,
        when=describe_limits(entry.event, locale),
        parts=list_parts(entry.event, locale),
        problems=[*problems, *(field_errors(error).values() or [form_error(error)] if error else [])],
        back=safe_next(console_request.form_text("back")),
        **describe_form(console_request),
    )


def describe_form(console_request: ConsoleRequest) -> dict[str, Any]:
    """Return what the form of one line needs on any page: its second button publishes or submits the event."""
    return {"release": list_actions(console_request.actor, NEW)[0]}


def list_parts(event: QuickEvent, locale: PageLocale) -> list[dict[str, str]]:
    """Return the parts of a line, each with the line without it."""
    texts = {"cost": lambda value: locale.text(N_("Free")) if value == "0" else value, "tag": "#{}".format}
    texts["category"] = texts["tag"]
    return [{"text": texts.get(part.kind, str)(part.value), "without": event.without(part)} for part in event.parts]


def describe_limits(event: QuickEvent, locale: PageLocale) -> str:
    limits = event.find_limits()
    if limits is None:
        return ""
    start, end = limits
    if event.start is None and start.date() != end.date():
        return locale.days(start.date(), end.date())
    if event.start is None:
        return locale.dated_weekday(start.date())
    if end - start < timedelta(days=1):
        return f"{locale.dated_weekday(start.date())}, {locale.time(start)} – {locale.time(end)}"
    return f"{locale.days(start.date(), end.date())}, {locale.time(start)} – {locale.time(end)}"


ROUTES: Final = (ConsoleRoute("/events/quick", show_line, add_event),)
