"""Makes a series of the events selected in the table, after showing its rule and its exceptions."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from starlette.responses import Response

from kalends.calendar.console.table_filters import make_back_url
from kalends.calendar.operations.form_work import Target
from kalends.console.console_rendering import show
from kalends.console.console_request import PREFIX, ConsoleRequest, redirect
from kalends.console.field_texts import make_locale
from kalends.core import times
from kalends.core.html_text import to_plain_text
from kalends.rendering.page_locale import PageLocale
from kalends.series.console.series_page import describe_parts, format_wall, name_fields
from kalends.series.operations.series_joining import Joining, join_events, plan_joining


@dataclass(frozen=True, slots=True)
class Difference:
    """An event that differs from the series, and its slot if it was moved."""

    day: str
    fields: str
    moved_from: str


async def make_series(console_request: ConsoleRequest, targets: Sequence[Target]) -> Response:
    """Show the series that the events would become, or make it once confirmed."""
    if console_request.form.get("confirmed"):
        async with console_request.write() as tx:
            await tx.lock_site(console_request.actor.user_id)
            series_id = await join_events(console_request.make_context(tx), targets)
        return redirect(f"{PREFIX}/series/{series_id}", "series-created")
    async with console_request.transaction() as tx:
        joining = await plan_joining(console_request.make_context(tx), targets)
    definition, pattern = joining.definition, joining.pattern
    locale, query = make_locale(console_request), console_request.form_text("query")

    def list_days(slots: Sequence[datetime]) -> list[str]:
        return [_format(slot, locale, all_day=definition.parts[0].all_day) for slot in slots]

    return show(
        console_request,
        "events_series.html",
        title=to_plain_text(definition.template["title"]),
        count=len(joining.rows),
        part=describe_parts(definition, console_request.site.timezone, locale)[0],
        has_rule=pattern.rule is not None,
        missing=list_days(pattern.missing),
        extra=list_days(pattern.extra),
        differences=_list_differences(joining, locale),
        events=" ".join(f"{target.id}:{target.revision}" for target in targets),
        query=query,
        back_url=make_back_url(query),
    )


def _list_differences(joining: Joining, locale: PageLocale) -> list[Difference]:
    return [
        Difference(
            _format(row["start_local"], locale, all_day=row["all_day"]),
            name_fields(own, locale),
            _format(slot, locale, all_day=row["all_day"]) if slot else "",
        )
        for row in joining.rows
        for own, slot in [(joining.own_fields[row["id"]], joining.pattern.moved.get(row["start_local"]))]
        if own
    ]


def _format(moment: datetime, locale: PageLocale, *, all_day: bool) -> str:
    return format_wall(times.format_datetime(moment), locale, all_day=all_day)
