"""The list and search views, and parts that other pages reuse: cards, paging, filter chips, empty states."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any, Final

from kalends.calendar.access.operation_context import OperationContext, PageInfo
from kalends.calendar.kinds.event_shortcuts import HIDE_SUBSEQUENT
from kalends.calendar.kinds.kind import PAGING
from kalends.calendar.operations import calendar_months, page_filters
from kalends.calendar.operations.page_filters import LINKS, FacetRecord, list_towns
from kalends.calendar.operations.record_verbs import RecordList, list_events
from kalends.calendar.operations.site_feeds import FEED_PARAMS, PAST, past_filters
from kalends.calendar.rules.record_types import Event
from kalends.core import params
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import Param, parse_id
from kalends.core.sanitize import clean_plain
from kalends.core.search_words import SplitText
from kalends.http.bodies import base_name
from kalends.rendering.cards import STATE_LABELS, Card, group_by_day, make_page_image, shorten
from kalends.rendering.page_urls import UrlBuilder, has_page, readable_slug
from kalends.website.context import (
    LIST_FILTERS,
    RADIUS_PARAMS,
    REPEATS,
    PageContext,
    PageRequest,
    PageResponse,
    make_page_context,
    show_page,
)
from kalends.website.models.page_parts import MAX_CARDS_BYTES, MAX_RESULTS_BYTES, trim
from kalends.website.models.series_models import describe_repeats
from kalends.website.pages import (
    CardList,
    Chip,
    Choice,
    EmptyState,
    FacetField,
    ListPage,
    MinePage,
    Paging,
    SearchForm,
    SearchPage,
)
from kalends.website.word_filters import LABELS as WORD_LABELS, apply_words, find_active, make_quick_filters

DAY: Final = timedelta(days=1)
MAX_CARDS: Final = 24
MAX_RESULTS: Final = 8  # of a search, beside the filters
MAX_TOWNS: Final = 50
# Searches near a town or venue of the site. Only pages accept this parameter.
NEAR: Final = Param("near", params.text(lambda text: clean_plain(text, 100)), "")
# Only search and record pages use this parameter.
ALL_DATES: Final = Param(REPEATS, params.one_of("all", ignore_others=True), "")
MINE: Final = "/events/mine/"
LIST_PARAMS: Final = (*PAGING, *FEED_PARAMS, NEAR, PAST, ALL_DATES)
MINE_PARAMS: Final = tuple(row for row in LIST_PARAMS if row.name in ("include", "page", "per_page"))
MAX_CHOICES: Final = 7  # checkboxes per kind; searching by name finds the others
MAX_FOUND: Final = 20
FIND: Final = "find_"  # prefix of parameters that search records by name
MAX_FIND: Final = 60
MAX_NAME: Final = 40
MAX_KEY: Final = 40  # maximum length of a slug as the value of a choice; a longer one is replaced by the ID
DEFAULT_RADIUS: Final = 40.0
# The kinds to choose from, in order: the parameter, the kind, the label, and the field used as the value.
CHOICES: Final = (
    ("categories", "categories", N_("Category"), "slug"),
    ("tags", "tags", N_("Tag"), "slug"),
    ("venue", "venues", N_("Venue"), "id"),
    ("organizer", "organizers", N_("Organizer"), "id"),
)
LABELS: Final = {**{name: label for name, _, label, _ in CHOICES}, "series": N_("Series")}
FROM, UNTIL = N_("From"), N_("Until")
DATES: Final = {
    "start_date": FROM, "starts_after": FROM, "ends_after": FROM, "overlaps_from": FROM,
    "end_date": UNTIL, "starts_before": UNTIL, "ends_before": UNTIL, "overlaps_to": UNTIL,
}  # fmt: skip
# Parameters without a field in the search form, which keeps them when other filters change.
KEPT_PARAMS: Final = (DATES.keys() - {"overlaps_from", "overlaps_to"}) | {"strict_dates", REPEATS}
NO_WORDS: Final = SplitText((), "")
FIRST_ONLY: Final = N_("Hide repeats")
Pair = tuple[str, str]
# Parameters that search for the form's categories, tags, venues and organizers by part of the name.
FIND_PARAMS: Final = tuple(f"{FIND}{name}" for name, *_ in CHOICES)


async def show_list(page_request: PageRequest, context: OperationContext, _: dict[str, str]) -> PageResponse:
    page = make_page_context(page_request, context)
    card_list = await list_cards(page, context, "/events/list/")
    model = ListPage(
        view="list",
        title=card_list.heading,
        heading=card_list.heading,
        card_list=card_list,
        active_filters=make_chips(page, "/events/list/"),
        canonical=f"{context.base_url}/events/list/",
    )
    return await show_page(page, model, cache_tags=card_list.cache_tags, image_urls=card_list.image_urls)


async def show_mine(page_request: PageRequest, context: OperationContext, _: dict[str, str]) -> PageResponse:
    """Show the events that a visitor has chosen. The script reads them from the browser, and the address has them."""
    page = make_page_context(page_request, context)
    ids: Sequence[int] = context.values.get("include", ())
    nothing = CardList(heading="", groups=(), paging=Paging(), total=0)
    found = await list_cards(page, context, MINE) if ids else nothing
    heading = page.locale.text(N_("My list"))
    model = MinePage(
        title=heading,
        heading=heading,
        ids=ids,
        card_list=replace(found, empty=None),
        robots="noindex",
        canonical=context.base_url + MINE,
    )
    return await show_page(page, model, cache_tags=found.cache_tags, image_urls=found.image_urls)


async def show_search(page_request: PageRequest, context: OperationContext, _: dict[str, str]) -> PageResponse:
    page, split = apply_words(make_page_context(page_request, context))
    context = page.context
    # The form's choices also count against the page's size budget.
    max_cards, budget = MAX_RESULTS, MAX_RESULTS_BYTES
    card_list = await list_cards(
        page, context, "/events/search/", max_cards=max_cards, budget=budget, hides_repeats=True
    )
    heading = page.locale.gettext(N_("Search"))
    model = SearchPage(
        title=heading,
        heading=heading,
        card_list=card_list,
        robots="noindex",
        canonical=f"{context.base_url}/events/search/",
        active_filters=make_chips(_hide_default(page), "/events/search/", split),
        form=_read_form(page, dict(page_request.query)),
        facets=await make_facets(page, replace(context, values=make_list_values(page, context))),
        quick_filters=make_quick_filters(page, "/events/search/"),
        towns=await list_towns(context, MAX_TOWNS),
    )
    # The choices depend on records of all linked kinds.
    choice_tags = [kind for _, kind, *_ in CHOICES]
    cache_tags = (*card_list.cache_tags, *choice_tags)
    # The script replaces the results, so the policy must also allow images that are not on the page yet.
    image_urls = (context.media_url, *card_list.image_urls)
    return await show_page(page, model, cache_tags=cache_tags, image_urls=image_urls)


async def list_cards(
    page: PageContext,
    context: OperationContext,
    path: str,
    *,
    counted: bool = True,
    max_cards: int = MAX_CARDS,
    budget: int = MAX_CARDS_BYTES,
    views: UrlBuilder | None = None,
    hides_repeats: bool = False,
) -> CardList:
    """Return cards for current and upcoming events, past events, or events on the requested dates.

    `views` builds the URLs of other views of the same events, if they need other filters than `path`. With
    `hides_repeats`, a list of upcoming events has only the first date of each series, unless the request wants all.
    """
    values = make_list_values(page, context)
    hides_repeats = hides_repeats and _lists_upcoming(context)
    if hides_repeats and REPEATS not in context.values:
        values.setdefault(HIDE_SUBSEQUENT, True)
    limit = page.request.frame.limit if page.request.frame else 0
    values["per_page"] = min(limit or values.get("per_page", context.transaction.site.per_page), max_cards)
    is_past, has_dates = context.values.get("past", False), bool(calendar_months.DATE_PARAMS & set(context.values))
    found = await list_events(replace(context, values=values), with_total=counted)
    cards, total = [page.make_card(event) for event in found.records], found.page.total
    if hides_repeats and values.get(HIDE_SUBSEQUENT):
        cards, total = await _add_dates(page, found, cards)
    cards = trim(cards, budget)
    heading = N_("Past events") if is_past else N_("Upcoming events")
    return CardList(
        heading=page.locale.gettext(heading if not has_dates else N_("Events")),
        groups=_name_groups(page, group_by_day(cards, None if is_past or has_dates else page.today)),
        paging=Paging() if limit else make_paging(page, found.page, path, *([("past", "1")] if is_past else [])),
        total=total,
        image=next(filter(None, (make_page_image(event.image) for event in found.records)), None),
        empty=None if cards else await _describe_empty_list(page, context, path, views or page.links),
        past_url="" if is_past or has_dates or limit else page.links.url(path, ("past", "1")),
        upcoming_url=page.links.url(path) if is_past else "",
        all_url=replace(page.links, frame=None).url(path) if limit and found.page.total_pages > 1 else "",
        cache_tags=found.cache_tags,
        repeats_link=None if is_past else _make_repeats_link(page, path, values, cards, hides_repeats=hides_repeats),
    )


def _lists_upcoming(context: OperationContext) -> bool:
    return not context.values.get("past") and not calendar_months.DATE_PARAMS & set(context.values)


def _hide_default(page: PageContext) -> PageContext:
    """Drop the "Hide repeats" filter if the page hides repeats by default."""
    if not _lists_upcoming(page.context):
        return page
    others = [pair for pair in page.links.filters if pair[0] != HIDE_SUBSEQUENT]
    return replace(page, links=page.links.with_filters(others))


async def _add_dates(page: PageContext, found: RecordList[Event], cards: list[Card]) -> tuple[list[Card], int]:
    """Add to each card what the list hides of its series; return the cards and the total number of events."""
    series = {event.id: event.series for event in found.records if event.series}
    if not series and found.page.total_pages <= 1:
        return cards, found.page.total
    total, counts = await calendar_months.count_dates(found, [entry.id for entry in series.values()])
    locale, links = page.locale, page.links
    return [
        replace(
            card,
            dates=describe_repeats(entry, counts.get(entry.id, 0) - 1, locale),
            series_url=links.top_level(f"/series/{readable_slug(entry.slug)}/"),
        )
        if (entry := series.get(card.id))
        else card
        for card in cards
    ], total


def _make_repeats_link(
    page: PageContext, path: str, values: dict[str, Any], cards: list[Card], *, hides_repeats: bool
) -> tuple[str, str] | None:
    others = [pair for pair in page.links.filters if pair[0] not in (HIDE_SUBSEQUENT, REPEATS)]
    links = page.links.with_filters(others)
    if not values.get(HIDE_SUBSEQUENT):
        url = links.url(path) if hides_repeats else links.url(path, (HIDE_SUBSEQUENT, 1))
        return (page.locale.text(FIRST_ONLY), url) if any(card.repeats for card in cards) else None
    if hides_repeats and any(card.dates for card in cards):
        return page.locale.text(N_("Show every date")), links.url(path, (REPEATS, "all"))
    return None


def make_list_values(page: PageContext, context: OperationContext) -> dict[str, Any]:
    """Return the list parameters; without dates, they select current and upcoming events, or past events."""
    values = dict(context.values)
    values.pop(REPEATS, None)
    if values.pop("past", False):
        # Showing only the first date of each series is useless for past events.
        values.pop(HIDE_SUBSEQUENT, None)
        # `past_filters` sets `strict_dates`, and this would also make the requested dates exact.
        has_dates = calendar_months.DATE_PARAMS & set(values)
        day_before = {"ends_before": calendar_months.make_date_filter(page.today - DAY), "order": "desc"}
        values |= day_before if has_dates else past_filters(context)
    elif "include" in values:
        values.setdefault("orderby", "start_date")
    elif not calendar_months.DATE_PARAMS & set(values):
        values["overlaps_from"] = calendar_months.make_date_filter(page.today)
    return values


async def _describe_empty_list(
    page: PageContext, context: OperationContext, path: str, views: UrlBuilder
) -> EmptyState:
    views = views.with_filters(pair for pair in views.filters if base_name(pair[0]) not in LIST_FILTERS)
    is_past, first, last = context.values.get("past", False), _find_limit(page, FROM), _find_limit(page, UNTIL)
    if calendar_months.DATE_PARAMS & set(context.values):
        text, begin, end = describe_empty_period(page, first, last), first, last
    elif is_past:
        text, begin, end = page.locale.text(N_("No past events.")), None, page.today - DAY
    else:
        text, begin, end = page.locale.text(N_("No upcoming events.")), page.today, None
    before = await calendar_months.find_day_before(context, begin) if begin and has_page(begin) else None
    after = await calendar_months.find_day_after(context, end) if end and has_page(end) else None
    all_links = views if page.request.frame else views.with_filters(())
    is_here = all_links.url("/events/list/") == page.links.url(path) and not is_past
    empty = make_empty_state(page, text, (before, after), views.day, all_links)
    return replace(empty, links=empty.links[:-1]) if is_here else empty


def _find_limit(page: PageContext, label: str) -> date | None:
    return next((page.find_day(name) for name in page.context.values if DATES.get(name) == label), None)


def describe_empty_period(page: PageContext, first: date | None, last: date | None) -> str:
    """Say that nothing is on in a period or, if it has no bounds, that no events match the filters."""
    locale = page.locale
    if first is not None and first == last:
        return locale.text(N_("Nothing on {day}"), day=locale.long_day(first))
    if first and last:
        begin = locale.short_day(first) if first.year == last.year else _name_day(page, first)
        return locale.text(N_("Nothing from {first} to {last}"), first=begin, last=_name_day(page, last))
    if first:
        return locale.text(N_("Nothing from {day} onward"), day=_name_day(page, first))
    if last:
        return locale.text(N_("Nothing until {day}"), day=_name_day(page, last))
    return locale.text(N_("No events match these filters."))


def make_empty_state(
    page: PageContext,
    text: str,
    nearest: tuple[date | None, date | None],
    make_url: Callable[[date], str],
    all_links: UrlBuilder,
) -> EmptyState:
    """Link to the nearest days with events before and after a period, and to the list."""
    before, after = nearest
    days = [(N_("Next: {day}"), after), (N_("Back to {day}"), before)]
    links = [
        (page.locale.text(label, day=_name_day(page, day)), make_url(day))
        for label, day in days
        if day and has_page(day)
    ]
    return EmptyState(text, [*links, (page.locale.text(N_("All upcoming events")), all_links.url("/events/list/"))])


def _name_day(page: PageContext, day: date) -> str:
    return page.locale.short_day(day) if day.year == page.today.year else page.locale.dated_weekday(day)


def _name_groups(page: PageContext, groups: list[tuple[date | None, list[Card]]]) -> list[tuple[str, list[Card]]]:
    ongoing = page.locale.text(N_("Ongoing"))
    return [(page.locale.day(day) if day else ongoing, cards) for day, cards in groups]


def _read_form(page: PageContext, query: dict[str, str]) -> SearchForm:
    return SearchForm(
        search=query.get("search", ""),
        overlaps_from=str(page.find_day("overlaps_from") or ""),
        overlaps_to=str(page.find_day("overlaps_to") or ""),
        near=query.get("near", ""),
        geoloc_radius=query.get("geoloc_radius") or "40",
        free=bool(query.get("free")),
        kept=[(name, value) for name, value in query.items() if value and name in KEPT_PARAMS],
    )


def make_cards(page: PageContext, found: RecordList[Event], budget: int = MAX_CARDS_BYTES) -> list[Card]:
    return trim([page.make_card(event) for event in found.records], budget)


def make_paging(page: PageContext, info: PageInfo, path: str, *more: tuple[str, str]) -> Paging:
    """Return the position in the list. The links keep `per_page` and the query parameters in `more`."""
    number: int = page.context.values.get("page", 1)
    total, pages = info.total, info.total_pages
    extra = [*more, *[(name, value) for name, value in page.request.query if name == "per_page"]]
    return Paging(
        page=number,
        total=total,
        total_pages=pages,
        before=page.links.url(path, *extra, *([("page", number - 1)] if number > 2 else [])) if number > 1 else "",
        after=page.links.url(path, *extra, ("page", number + 1)) if number < pages else "",
    )


# Filters: chips for active filters, and the choices in the search form.


def make_chips(page: PageContext, path: str, split: SplitText = NO_WORDS) -> list[Chip]:
    """Return a chip for each active filter. If a search word set it, the chip offers to search for the word."""
    chips: list[Chip] = []
    if not page.links.filters:
        return chips
    named: set[str] = set()
    words = {word.meaning: word for word in split.found}
    for meaning, pairs in find_active(page.links.filters, page.today):
        named |= pairs.keys()
        others = [pair for pair in page.links.filters if pair[0] not in pairs]
        chip = Chip(page.locale.text(WORD_LABELS[meaning]), page.links.with_filters(others).url(path))
        if word := words.get(meaning):
            search = [("search", split.restore(word)), *[pair for pair in others if pair[0] != "search"]]
            chip = replace(chip, word=word.text, word_url=page.links.with_filters(search).url(path))
        chips.append(chip)
    for index, pair in enumerate(page.links.filters):
        if pair[0] in named:
            continue
        others = [*page.links.filters[:index], *page.links.filters[index + 1 :]]
        for name, remaining in _split_filter(page, pair, others):
            chips.append(Chip(name, page.links.with_filters(remaining).url(path)))
    return chips


def _split_filter(page: PageContext, pair: Pair, others: list[Pair]) -> Iterator[tuple[str, Iterable[Pair]]]:
    """Yield the name of each filter in a query parameter, with the parameters that remain after removing it."""
    name, value = base_name(pair[0]), pair[1]
    if name == "search":
        yield value, others
    elif name in LINKS or name in ("event_status", "series"):
        entries = [entry.strip() for entry in value.split(",") if entry.strip()]
        for entry in entries:
            rest = ",".join(other for other in entries if other != entry)
            yield _find_name(page, name, entry), [*others, *([(pair[0], rest)] if rest else [])]
    elif name in DATES and (day := page.find_day(name)) is not None:
        yield f"{page.locale.text(DATES[name])}: {page.locale.bare_day(day)}", others
    elif name == "free" and page.context.values.get(name) is True:
        yield page.locale.text(N_("Free")), others
    elif name == HIDE_SUBSEQUENT and page.context.values.get(name) is True:
        yield page.locale.text(FIRST_ONLY), others
    elif name == "near":
        yield value, [other for other in others if other[0] not in RADIUS_PARAMS]
    elif name == "geoloc_lat":
        yield _format_radius(page), [other for other in others if other[0] not in RADIUS_PARAMS]
    elif name == "geoloc_radius" and "near" in dict(others):
        yield _format_radius(page), others


def _find_name(page: PageContext, name: str, entry: str) -> str:
    if name == "event_status":
        return page.locale.text(STATE_LABELS.get(entry.lower(), entry))
    records = page.filters.named.get(name, {})
    record = records.get(entry) or records.get(parse_id(entry) or 0)
    if record is None:
        return entry
    return record.name or page.locale.text(LABELS[name])


def _format_radius(page: PageContext) -> str:
    km: float = page.context.values.get("geoloc_radius", DEFAULT_RADIUS)
    return page.locale.text(N_("Within {n} km"), n=f"{km:g}")


async def make_facets(page: PageContext, context: OperationContext) -> list[FacetField]:
    """Return the records to choose from. Each count is the number of events that also match all other filters."""
    query = dict(page.request.query)
    event_ids = {"": await page_filters.list_event_ids(context)}
    fields: list[FacetField] = []
    for name, _, label, key in CHOICES:
        text = query.get(f"{FIND}{name}", "").strip()[:MAX_FIND]
        active = name if name in context.values else ""
        if active not in event_ids:
            others = {other: value for other, value in context.values.items() if other != name}
            event_ids[active] = await page_filters.list_event_ids(replace(context, values=others))
        ids = [entry.id for entry in page.filters.list_named(name)]
        limit = MAX_FOUND if text else MAX_CHOICES
        found = await page_filters.find_facet(context, name, event_ids[active], chosen=ids, text=text, limit=limit)
        plus = "+" if len(event_ids[active]) == page_filters.MAX_EVENTS else ""
        choices = [
            Choice(_choice_key(record, key), _name_record(record), f"{record.count}{plus}", record.id in ids)
            for record in found.records
        ]
        has_search = bool(text) or found.total > len(choices)
        fields.append(FacetField(name, label, choices, found.total, text, has_search))
    return fields


def _choice_key(record: FacetRecord, key: str) -> str:
    value = record.slug if key == "slug" else str(record.id)
    return value if len(value) <= MAX_KEY else str(record.id)


def _name_record(record: FacetRecord) -> str:
    name = shorten(record.name, MAX_NAME)
    return f"{name}, {shorten(record.town, MAX_NAME)}" if record.town else name
