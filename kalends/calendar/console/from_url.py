"""Opens the event form with the data of a web page. Nothing is stored before the user saves the form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson
from starlette.responses import Response

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.console.form_page import FormPage, WebPage, check_event, format_moment, show_form
from kalends.calendar.rules.when import find_offset
from kalends.console.console_rendering import show
from kalends.console.console_request import PREFIX, ConsoleRequest, ConsoleRoute, form_error
from kalends.console.event_values import EventValues, Pick, make_new_values, overlay
from kalends.console.field_texts import make_locale
from kalends.core import errors
from kalends.core.date_forms import read_datetime
from kalends.core.errors import ApiError, InvalidValue, field_errors
from kalends.core.limits import Limit
from kalends.core.messages import Message
from kalends.core.times import DateTimeInput, format_datetime, format_offset, offset_of, resolve, to_utc
from kalends.core.urls import read_website
from kalends.core.zones import read_zone
from kalends.imports.operations.import_rows import load_places
from kalends.imports.rules.import_places import StoredPlace
from kalends.imports.rules.import_records import ImportedRecord, ParsedSource, decode_source, encode_result
from kalends.rendering.page_locale import PageLocale

PATH: Final = f"{PREFIX}/events/from-url"
# Pages that an account may have fetched: 20 at once, then one every 3 seconds.
PAGE_LIMIT: Final = Limit(burst=20, seconds=3)
# Parameters that a web page supplies.
FIELDS: Final = (
    *("title", "description", "start_date", "end_date", "all_day", "timezone", "image", "website", "online_url"),
    *("ticket_url", "cost", "currency_code", "event_status"),
)


@dataclass(frozen=True, slots=True)
class FoundEvent:
    """An event to choose from a page with several. `source` has the event and its places as JSON."""

    title: str
    when: str
    venue: str
    warnings: Sequence[Message]
    source: str


async def show_address(console_request: ConsoleRequest) -> Response:
    return _show_address(console_request, console_request.query_value("url"))


async def open_page(console_request: ConsoleRequest) -> Response:
    """Fetch the page and open the form with its event, or the event that was chosen from the page."""
    url = console_request.form_text("url").strip()
    try:
        if chosen := console_request.form_text("chosen"):
            url, parsed = read_website(url), _decode_chosen(chosen)
        else:
            url, parsed = await _fetch_page(console_request, url)
        return await _show_events(console_request, url, parsed)
    except InvalidValue as error:
        refused = errors.invalid_params({"url": errors.for_param("url", error.message)})
        return _show_address(console_request, url, error=refused)
    except ApiError as error:
        if error.status != 429:
            raise
        return _show_address(console_request, url, error=error)


async def _show_events(console_request: ConsoleRequest, url: str, parsed: ParsedSource) -> Response:
    """Show the form with the only event, or a list to choose from."""
    events = [record for record in parsed.records if record.kind == "events"]
    if len(events) != 1:
        return _show_address(console_request, url, events=_list_found(parsed, events, make_locale(console_request)))
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx)
        values, warnings = await _make_values(context, parsed, events[0], make_locale(console_request))
        checks = await check_event(context, values, None)
        page = FormPage(values=values, checks=checks, source=WebPage(url, [*events[0].warnings, *warnings]))
        return await show_form(console_request, context, page)


def _show_address(
    console_request: ConsoleRequest, url: str, *, error: ApiError | None = None, events: Sequence[FoundEvent] = ()
) -> Response:
    response = show(
        console_request,
        "event_from_url.html",
        status=error.status if error else 200,
        url=url,
        events=events,
        error=form_error(error) if error else None,
        errors=field_errors(error) if error else {},
    )
    response.headers.update(error.headers if error else {})
    return response


async def _fetch_page(console_request: ConsoleRequest, url: str) -> tuple[str, ParsedSource]:
    async with console_request.write() as tx:
        if seconds := await permissions.count_attempt(tx, f"pages of {console_request.actor.user_id}", PAGE_LIMIT):
            raise _too_many_pages(seconds)
    # No transaction is open while the page is fetched and read.
    return await console_request.state.page_reader.read(url if "://" in url else f"https://{url}")


def _too_many_pages(seconds: int) -> ApiError:
    text = Message("You’ve opened many web pages in a short time. Try again in {seconds} s.", seconds=seconds)
    return ApiError(429, "rest_too_many_attempts", text, headers={"Retry-After": str(seconds)})


def _decode_chosen(text: str) -> ParsedSource:
    """Decode the event that the form of the list contains, without its warnings, which the list has shown."""
    try:
        parsed = decode_source(orjson.loads(text)["parsed"])
        (event,) = (record for record in parsed.records if record.kind == "events")
        read_website(event.values.get("image"))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidValue("there is no event on the page.") from None
    return ParsedSource([replace(record, warnings=()) for record in parsed.records])


def _list_found(parsed: ParsedSource, events: Sequence[ImportedRecord], locale: PageLocale) -> list[FoundEvent]:
    found: list[FoundEvent] = []
    for event in events:
        places = _find_places(parsed, event)
        source = encode_result({"parsed": ParsedSource([*places.values(), event])}).decode()
        venue = places["venue"].title if "venue" in places else ""
        found.append(FoundEvent(event.title, _describe_start(event.values, locale), venue, event.warnings, source))
    return found


def _find_places(parsed: ParsedSource, event: ImportedRecord) -> dict[str, ImportedRecord]:
    by_key = {(record.kind, record.identity): record for record in parsed.records}
    linked = {name: event.links.get(name) for name in ("venue", "organizer")}
    found = {name: by_key.get((f"{name}s", identities[0])) for name, identities in linked.items() if identities}
    return {name: record for name, record in found.items() if record is not None}


def _describe_start(values: Mapping[str, Any], locale: PageLocale) -> str:
    start = read_absolute(values["start_date"]) if "start_date" in values else None
    if start is None:
        return ""
    return locale.day(start.wall.date()) if start.is_date_only else format_moment(locale, start.wall)


# Values of the form --------------------------------------------------------------------------


async def _make_values(
    context: OperationContext, parsed: ParsedSource, event: ImportedRecord, locale: PageLocale
) -> tuple[EventValues, list[Message]]:
    """Return the form's values, and warnings about places. A place that the site has is chosen, others are new."""
    site, warnings = context.transaction.site, list[Message]()
    values = make_new_values(site)
    values.start_time = values.end_time = ""
    raw = {name: _to_field(event.values[name]) for name in FIELDS if name in event.values}
    values.image_url = raw.pop("image", "")
    code = raw.pop("currency_code", "")
    if code and code != site.currency_code:
        raw |= {"currency_code": code, "currency_symbol": locale.locale.currency_symbols.get(code, code)}
    overlay(values, {**raw, **localize_times(raw, site.timezone)})
    for name, place in _find_places(parsed, event).items():
        match = (await load_places(context.transaction, place.kind)).find(place.values)
        if match is not None and not _may_see(context, match[0]):
            match = None
        if match is not None and match[1]:
            setattr(values, name, [Pick(match[0].name, match[0].record_id)])
            continue
        setattr(values, f"new_{name}", {field: _to_field(value) for field, value in place.values.items()})
        if match is not None:
            warnings.append(
                Message(
                    "“{name}” may be the same as “{other}”. If so, choose it from the list.",
                    name=place.title,
                    other=match[0].name,
                )
            )
    return values, warnings


def _to_field(value: object) -> str:
    # PostgreSQL cannot store U+0000.
    return "true" if value is True else str(value).replace("\0", "")


def _may_see(context: OperationContext, place: StoredPlace) -> bool:
    return place.status == "publish" or permissions.rank(context.actor) >= permissions.EDITOR


def localize_times(values: Mapping[str, Any], site_zone: str) -> dict[str, str]:
    """Return start, end and zone for the form.

    The zone is the one that the page states or else the site's. If the page states only an offset that is neither
    UTC nor the site's at that time, the offset becomes the zone, because the event takes place elsewhere.
    """
    start = read_absolute(values.get("start_date"))
    if start is None or start.is_date_only:
        return {}
    zone = read_zone(str(values.get("timezone") or site_zone))
    if start.offset and "timezone" not in values and offset_of(to_utc(start, zone), zone) != start.offset:
        zone = read_zone(f"UTC{format_offset(start.offset)}")
    found = {"timezone": zone}
    for name in ("start_date", "end_date"):
        moment = read_absolute(values.get(name))
        if moment is not None and moment.offset is not None:
            local = resolve(moment, zone)
            found[name] = format_datetime(local.wall) + find_offset(local.wall, zone, local.utc)
    return found


def read_absolute(text: object) -> DateTimeInput | None:
    """Return a date as the reader of pages writes it, or None for anything else."""
    try:
        moment = read_datetime(text) if isinstance(text, str) else None
    except InvalidValue:
        return None
    return moment if isinstance(moment, DateTimeInput) else None


ROUTES: Final = (ConsoleRoute("/events/from-url", show_address, open_page, min_role="author"),)
