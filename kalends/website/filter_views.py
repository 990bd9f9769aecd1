"""The chips of active filters, the category navigation, and the choices of the search form."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import accumulate
from typing import Final

from kalends.core.html.sanitize import to_plain_text
from kalends.core.messages import gettext_noop as N_
from kalends.http.requests import base_name
from kalends.kinds.event_list.first_dates import HIDE_SUBSEQUENT
from kalends.operations import calendar, facets
from kalends.operations.context import OperationContext
from kalends.operations.facets import FacetRecord
from kalends.operations.page_filters import LINKS
from kalends.website.context import RADIUS_PARAMS, PageContext, parse_id
from kalends.website.models.cards import shorten
from kalends.website.models.states import STATE_LABELS
from kalends.website.models.urls import readable_slug
from kalends.website.pages import CategoryNav, Chip, Choice, FacetField, QuickFilter

MAX_CHOICES: Final = 7  # checkboxes per kind; the others are found by name
MAX_FOUND: Final = 20
FIND: Final = "find_"  # the prefix of the parameters that search the names of a kind
MAX_FIND: Final = 60
MAX_CATEGORIES: Final = 8  # in the bar; the others are behind "More"
MAX_NAVIGATION: Final = 40
MAX_NAVIGATION_BYTES: Final = 800  # of those behind "More"
LINK_BYTES: Final = 30
MAX_NAME: Final = 40
MAX_KEY: Final = 40  # characters of a slug used as the value of a choice; longer ones are replaced by the ID
DEFAULT_RADIUS: Final = 40.0
# The kinds of records to choose from, in order: parameter, kind, label, and the field used as value.
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
FIRST_ONLY: Final = N_("Only the first date of each series")
Pair = tuple[str, str]


def make_chips(page: PageContext, path: str) -> list[Chip]:
    """Return the active filters, each with the URL of the page without it."""
    chips: list[Chip] = []
    for index, pair in enumerate(page.links.filters):
        others = [*page.links.filters[:index], *page.links.filters[index + 1 :]]
        for name, remaining in _split_filter(page, pair, others):
            chips.append(Chip(name, page.links.with_filters(remaining).url(path)))
    return chips


def _split_filter(page: PageContext, pair: Pair, others: list[Pair]) -> Iterator[tuple[str, Iterable[Pair]]]:
    """Yield the names of the filters in one query parameter, each with the remaining parameters without it."""
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
    record = records.get(entry) or records.get(parse_id(entry))
    if record is None:
        return entry
    return record.name or page.locale.text(LABELS[name])


def _format_radius(page: PageContext) -> str:
    km: float = page.context.values.get("geoloc_radius", DEFAULT_RADIUS)
    return page.locale.text(N_("Within {n} km"), n=f"{km:g}")


async def make_category_nav(page: PageContext) -> CategoryNav:
    """Return the main categories, the one with the most upcoming events first. Embedded pages have no navigation."""
    if page.request.embedded:
        return CategoryNav()
    rows = await calendar.list_main_categories(page.context, page.day_start, MAX_NAVIGATION)
    categories = [
        (
            shorten(to_plain_text(row["name"]), MAX_NAME // 2),
            page.links.top_level(f"/events/category/{readable_slug(row['slug'])}/"),
        )
        for row in rows
    ]
    others = categories[MAX_CATEGORIES:]
    sizes = accumulate(LINK_BYTES + len(f"{name}{url}".encode()) for name, url in others)
    more = [category for category, size in zip(others, sizes, strict=True) if size <= MAX_NAVIGATION_BYTES]
    if len(more) < len(others) or len(rows) == MAX_NAVIGATION:
        search_url = page.links.top_level("/events/search/") + "#categories"
        more.append((page.locale.text(N_("All categories")), search_url))
    return CategoryNav(categories[:MAX_CATEGORIES], more)


async def make_facets(page: PageContext, context: OperationContext) -> list[FacetField]:
    """Return the records to choose from. Each count is that of the events which meet all other filters."""
    query = dict(page.request.query)
    event_ids = {"": await facets.list_event_ids(context)}
    fields: list[FacetField] = []
    for name, _, label, key in CHOICES:
        text = query.get(f"{FIND}{name}", "").strip()[:MAX_FIND]
        active = name if name in context.values else ""
        if active not in event_ids:
            others = {other: value for other, value in context.values.items() if other != name}
            event_ids[active] = await facets.list_event_ids(replace(context, values=others))
        ids = [entry.id for entry in page.filters.list_named(name)]
        limit = MAX_FOUND if text else MAX_CHOICES
        found = await facets.find_facet(context, name, event_ids[active], chosen=ids, text=text, limit=limit)
        plus = "+" if len(event_ids[active]) == facets.MAX_EVENTS else ""
        choices = [
            Choice(_choice_key(record, key), _name_record(record), f"{record.count}{plus}", record.id in ids)
            for record in found.records
        ]
        has_search = bool(text) or found.total > len(choices)
        fields.append(FacetField(name, label, choices, found.total, text, has_search))
    return fields


def make_quick_filters(page: PageContext, path: str) -> list[QuickFilter]:
    """Return the links to the events of today and of this weekend, and to those that are free."""
    saturday = page.today + timedelta(days=max(0, 6 - page.today.isoweekday()))
    sunday = page.today + timedelta(days=7 - page.today.isoweekday())
    rows = [
        (N_("Today"), {"overlaps_from": page.today.isoformat(), "overlaps_to": page.today.isoformat()}),
        (N_("This weekend"), {"overlaps_from": saturday.isoformat(), "overlaps_to": sunday.isoformat()}),
        (N_("Free"), {"free": "1"}),
    ]
    current = page.links.filters
    result: list[QuickFilter] = []
    for name, pairs in rows:
        is_active = pairs.items() <= dict(current).items()
        others = [(key, value) for key, value in current if key not in pairs]
        links = page.links.with_filters([*others, *([] if is_active else pairs.items())])
        result.append(QuickFilter(page.locale.text(name), links.url(path), is_active))
    return result


def _choice_key(record: FacetRecord, key: str) -> str:
    value = record.slug if key == "slug" else str(record.id)
    return value if len(value) <= MAX_KEY else str(record.id)


def _name_record(record: FacetRecord) -> str:
    name = shorten(record.name, MAX_NAME)
    return f"{name}, {shorten(record.town, MAX_NAME)}" if record.town else name
