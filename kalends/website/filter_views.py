"""How a page shows the filters that are on: chips that take them off, and the choices of the search form."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from kalends.core.messages import gettext_noop as N_
from kalends.core.sanitize import to_plain_text
from kalends.core.times import DateTimeInput
from kalends.http.requests import plain_name
from kalends.kinds import BY_NAME
from kalends.kinds.kind import Represented
from kalends.operations import calendar
from kalends.operations.context import Call
from kalends.operations.page_filters import LINKS
from kalends.operations.records import list_records
from kalends.website.context import CIRCLE, Frame, as_number
from kalends.website.models.cards import shorten
from kalends.website.models.urls import readable

CHOICES_SHOWN: Final = 40
CATEGORIES_SHOWN: Final = 8
MOST_NAME: Final = 40
MOST_KEY: Final = 40  # letters of a slug that stands for a choice; an ID stands for it where it is longer
RADIUS: Final = 40.0
# Choices of the search, in the order of the form: parameter, kind, label, the key of a choice.
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


@dataclass(frozen=True, slots=True)
class Chip:
    name: str
    url: str


def make_chips(frame: Frame, path: str) -> list[Chip]:
    """The filters that are on, each with the address of the page without it."""
    chips: list[Chip] = []
    for at, pair in enumerate(frame.links.filters):
        others = [other for number, other in enumerate(frame.links.filters) if number != at]
        for name, left in _parts(frame, pair, others):
            chips.append(Chip(name, frame.links.with_filters(left).of(path)))
    return chips


def _parts(frame: Frame, pair: Pair, others: list[Pair]) -> Iterator[tuple[str, Iterable[Pair]]]:
    """What one parameter of the address asks for: its name, and what is left of the address without it."""
    name, value = plain_name(pair[0]), pair[1]
    if name == "search":
        yield value, others
    elif name in LINKS:
        entries = [entry.strip() for entry in value.split(",") if entry.strip()]
        for entry in entries:
            rest = ",".join(other for other in entries if other != entry)
            yield _name_of(frame, name, entry), [*others, *([(pair[0], rest)] if rest else [])]
    elif name in DATES and isinstance(frame.call.values.get(name), DateTimeInput):
        day = frame.call.values[name].wall.date()
        yield f"{frame.speech.plain(DATES[name])}: {frame.speech.bare_day(day)}", others
    elif name == "near":
        yield value, [other for other in others if other[0] not in CIRCLE]
    elif name == "geoloc_lat":
        yield _radius(frame), [other for other in others if other[0] not in CIRCLE]
    elif name == "geoloc_radius" and "near" in dict(others):
        yield _radius(frame), others


def _name_of(frame: Frame, name: str, entry: str) -> str:
    named = frame.filters.named.get(name, {})
    found = named.get(entry) or named.get(as_number(entry))
    if found is None:
        return entry
    return found.name or frame.speech.plain(LABELS[name])


def _radius(frame: Frame) -> str:
    km: float = frame.call.values.get("geoloc_radius", RADIUS)
    return frame.speech.plain(N_("Within {n} km"), n=f"{km:g}")


async def browse(frame: Frame) -> list[tuple[str, str]]:
    """The main categories by name, with their addresses. A frame shows what its site has chosen."""
    if frame.visit.embedded:
        return []
    rows = await calendar.list_main_categories(frame.call, CATEGORIES_SHOWN)
    found = [(shorten(to_plain_text(row["name"]), MOST_NAME // 2), row["slug"]) for row in rows]
    return [(name, frame.links.outside(f"/events/category/{readable(slug)}/")) for name, slug in sorted(found)]


async def make_choices(frame: Frame, call: Call) -> list[dict[str, Any]]:
    """The most used terms, and the places and people that have something to come; what is chosen is among them."""
    fields: list[dict[str, Any]] = []
    for name, kind_name, label, key in CHOICES:
        kind = BY_NAME[kind_name]
        asked: dict[str, Any] = {"per_page": CHOICES_SHOWN}
        asked |= {"only_with_upcoming": True} if kind.is_post else {"orderby": "count", "order": "desc"}
        outcome = await list_records(kind, replace(call, values=asked))
        options = {
            record["id"]: (_key(record, key), _short(record[kind.title])) for record in outcome.body[kind_name]
        }
        chosen = frame.filters.named_by(name)
        for entry in chosen:
            options.setdefault(entry.id, (str(entry.id), _short(entry.name or frame.speech.plain(label))))
        together = [options[entry.id] for entry in chosen]
        listed = sorted(options.values(), key=lambda option: option[1].casefold())
        if len(together) > 1:
            # A field chooses one; several that came with the address stay together as one choice.
            listed.insert(0, (",".join(value for value, _ in together), ", ".join(shown for _, shown in together)))
        fields.append({"name": name, "label": label, "options": listed, "chosen": ",".join(v for v, _ in together)})
    return fields


def _key(record: Represented, key: str) -> str:
    found = str(record[key])
    return found if len(found) <= MOST_KEY else str(record["id"])


def _short(title: str) -> str:
    return shorten(to_plain_text(title), MOST_NAME)
