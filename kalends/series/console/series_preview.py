"""Preview of a rule during editing: its text, next dates, warnings and errors."""

from datetime import date, datetime, time
from typing import Any, Final

from starlette.responses import Response

from kalends.calendar.kinds.series_kind import SERIES, TIME_PARAMS
from kalends.console.console_rendering import respond_json
from kalends.console.console_request import ConsoleRequest, ConsoleRoute
from kalends.console.event_values import EventValues, make_new_values, overlay, to_params
from kalends.console.field_texts import make_locale
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.messages import Message
from kalends.core.params import read_params
from kalends.core.recurrence import expand, read_rule, read_rule_object
from kalends.rendering.page_locale import PageLocale
from kalends.series.console.series_page import describe_rule, describe_warning, find_reason, format_wall
from kalends.series.operations.series_create import preview_series
from kalends.series.operations.series_requests import parse_rule
from kalends.series.rules.repeat import RepeatValues, list_fitting_days, make_params, make_rule, read_day, read_repeat
from kalends.series.rules.series_slots import LAST_SLOT

SHOWN_DATES: Final = 5
DATE_PARAMS: Final = ("rule", "add_dates", "remove_dates")
PREVIEW_PARAMS: Final = tuple(field for field in SERIES.fields if field.name in {*TIME_PARAMS, *DATE_PARAMS})


async def preview_repeat(console_request: ConsoleRequest) -> Response:
    """Return the text and dates for a form's rule, without locking or writing anything."""
    repeat, locale = read_repeat(console_request.form), make_locale(console_request)
    values = make_new_values(console_request.site)
    overlay(values, console_request.form)
    start = read_day(values.start_day)
    if start is None or not repeat.is_on:
        return respond_json(console_request, {})
    body: dict[str, Any] = {"days": _describe_days(repeat, values.start_day, locale)}
    try:
        if console_request.form_text("moves_start"):
            start = move_start(values, repeat, start)
        params = {name: value for name, value in to_params(values).items() if name in TIME_PARAMS}
        body |= await _preview(console_request, params | make_params(repeat, values.start_day), start, locale)
    except ApiError as error:
        if error.status >= 500:
            raise
        body["error"] = find_reason(error)
    return respond_json(console_request, body)


def move_start(values: EventValues, repeat: RepeatValues, start: date) -> date:
    """Move a form's start to the first date of its rule, because the edited rule may exclude the former start."""
    rule = parse_rule(make_rule(repeat, start), "UTC")
    first = next(expand(rule, datetime.combine(start, time()), LAST_SLOT), None)
    day = first.date() if first is not None else start
    values.start_day = day.isoformat()
    return day


async def _preview(
    console_request: ConsoleRequest, params: dict[str, Any], start: date, locale: PageLocale
) -> dict[str, Any]:
    async with console_request.transaction() as tx:
        context = console_request.make_context(tx, read_params(PREVIEW_PARAMS, params))
        outcome = await preview_series(SERIES, context)
    preview, all_day = outcome.body, bool(params.get("all_day"))
    rule = read_rule(preview["rule"]["rrule"], "UTC") if preview["rule"] else None
    dates: list[dict[str, Any]] = preview["dates"]
    return {
        "text": describe_rule(rule, start, locale),
        "dates": [format_wall(entry["start_date"], locale, all_day=all_day) for entry in dates[:SHOWN_DATES]],
        "summary": summarize_dates(preview, locale, all_day=all_day),
        "warnings": [describe_warning(warning) for warning in preview["warnings"]],
    }


def summarize_dates(preview: dict[str, Any], locale: PageLocale, *, all_day: bool) -> Message | None:
    if preview["count"] is None:
        return None
    last = format_wall(preview["last"], locale, all_day=all_day)
    return Message("{count} dates, the last one on {day}", count=preview["count"], day=last)


def _describe_days(repeat: RepeatValues, start_day: str, locale: PageLocale) -> dict[str, str]:
    """Describe the monthly or yearly day options that match the first date."""
    start = read_day(start_day)
    if start is None or repeat.frequency not in ("monthly", "yearly"):
        return {}
    plain = RepeatValues(frequency=repeat.frequency)
    texts: dict[str, str] = {}
    for name in list_fitting_days(start):
        plain.day = name
        try:
            texts[name] = describe_rule(read_rule_object(make_rule(plain, start), "UTC"), start, locale)
        except InvalidValue:
            continue
    return texts


ROUTES: Final = (ConsoleRoute("/series/preview", post=preview_repeat),)
