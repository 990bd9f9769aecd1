"""The chips of active filters, the category navigation and the choices of the search form."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from kalends.core.html.sanitize import to_plain_text
from kalends.core.messages import gettext_noop as N_
from kalends.core.record_types import Organizer, Term, Venue
from kalends.core.times import DateTimeInput
from kalends.http.requests import base_name
from kalends.kinds import BY_NAME
from kalends.operations import calendar
from kalends.operations.context import OperationContext
from kalends.operations.page_filters import LINKS
from kalends.operations.typed_records import list_linkable
from kalends.website.context import RADIUS_PARAMS, PageContext, parse_id
from kalends.website.models.cards import shorten
from kalends.website.models.urls import readable_slug
from kalends.website.pages import Chip, ChoiceField

MAX_CHOICES: Final = 40
MAX_CATEGORIES: Final = 8
MAX_NAME: Final = 40
MAX_KEY: Final = 40  # characters of a slug used as the value of a choice; longer ones are replaced by the ID
DEFAULT_RADIUS: Final = 40.0
# Select fields of the search form, in order: parameter, kind, label, and the field used as value.
CHOICES: Final = (
    ("categories", "categories", N_("Category"), "slug"),
    ("tags", "tags", N_("Tag"), "slug"),
    ("venue", "venues", N_("Venue"), "id"),
    ("organizer", "organizers", N_("Organizer"), "id"),
)
LABELS: Final = {name: label for name, _, label, _ in CHOICES}
FROM, UNTIL = N_("From"), N_("Until")
DATES: Final = {
    "start_date": FROM, "starts_after": FROM, "ends_after": FROM, "overlaps_from": FROM,
    "end_date": UNTIL, "starts_before": UNTIL, "ends_before": UNTIL, "overlaps_to": UNTIL,
}  # fmt: skip
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
    elif name in LINKS:
        entries = [entry.strip() for entry in value.split(",") if entry.strip()]
        for entry in entries:
            rest = ",".join(other for other in entries if other != entry)
            yield _find_name(page, name, entry), [*others, *([(pair[0], rest)] if rest else [])]
    elif name in DATES and isinstance(page.context.values.get(name), DateTimeInput):
        day = page.context.values[name].wall.date()
        yield f"{page.locale.text(DATES[name])}: {page.locale.bare_day(day)}", others
    elif name == "near":
        yield value, [other for other in others if other[0] not in RADIUS_PARAMS]
    elif name == "geoloc_lat":
        yield _format_radius(page), [other for other in others if other[0] not in RADIUS_PARAMS]
    elif name == "geoloc_radius" and "near" in dict(others):
        yield _format_radius(page), others


def _find_name(page: PageContext, name: str, entry: str) -> str:
    records = page.filters.named.get(name, {})
    record = records.get(entry) or records.get(parse_id(entry))
    if record is None:
        return entry
    return record.name or page.locale.text(LABELS[name])


def _format_radius(page: PageContext) -> str:
    km: float = page.context.values.get("geoloc_radius", DEFAULT_RADIUS)
    return page.locale.text(N_("Within {n} km"), n=f"{km:g}")


async def make_category_nav(page: PageContext) -> list[tuple[str, str]]:
    """Return names and URLs of the main categories. Embedded pages have no navigation by category."""
    if page.request.embedded:
        return []
    rows = await calendar.list_main_categories(page.context, MAX_CATEGORIES)
    categories = [(shorten(to_plain_text(row["name"]), MAX_NAME // 2), row["slug"]) for row in rows]
    return [
        (name, page.links.top_level(f"/events/category/{readable_slug(slug)}/")) for name, slug in sorted(categories)
    ]


async def make_choices(page: PageContext, context: OperationContext) -> list[ChoiceField]:
    """Return the most used terms, venues and organizers with upcoming events, and the current choices."""
    fields: list[ChoiceField] = []
    for name, kind_name, label, key in CHOICES:
        kind = BY_NAME[kind_name]
        values: dict[str, Any] = {"per_page": MAX_CHOICES}
        values |= {"only_with_upcoming": True} if kind.is_post else {"orderby": "count", "order": "desc"}
        found = await list_linkable(kind, replace(context, values=values))
        options = {record.id: (_choice_key(record, key), _short_title(record.name)) for record in found.records}
        chosen = page.filters.list_named(name)
        for entry in chosen:
            options.setdefault(entry.id, (str(entry.id), _short_title(entry.name or page.locale.text(label))))
        selected = [options[entry.id] for entry in chosen]
        sorted_options = sorted(options.values(), key=lambda option: option[1].casefold())
        if len(selected) > 1:
            # A select field has one value, so several records in the query become one combined option.
            sorted_options.insert(
                0, (",".join(value for value, _ in selected), ", ".join(title for _, title in selected))
            )
        fields.append(ChoiceField(name, label, sorted_options, ",".join(value for value, _ in selected)))
    return fields


def _choice_key(record: Venue | Organizer | Term, key: str) -> str:
    value = record.slug if key == "slug" else str(record.id)
    return value if len(value) <= MAX_KEY else str(record.id)


def _short_title(title: str) -> str:
    return shorten(to_plain_text(title), MAX_NAME)
