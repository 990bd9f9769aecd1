"""Demo series: weekly events with 5 to 35 dates, 20 on average, around today."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from kalends.core.recurrence import Rule
from kalends.core.series import LAST_SLOT, Date, Definition, Part
from kalends.demo.dates import DAY_SECONDS, pack
from kalends.demo.events import EVENT_COLUMNS, LINK_COLUMNS, Chunk, EventBuilder, Row
from kalends.demo.texts import Chance
from kalends.kinds.series import CONTENT_DEFAULTS, encode_content, span_columns
from kalends.store.series import encode_definition

AVERAGE_DATES: Final = 20
MAX_DISTANCE: Final = 100  # days between today and the first date
SERIES_CHUNK: Final = 500
SERIES_COLUMNS: Final = (
    "site_id", "id", "uid", "revision", "author_id", "status", "slug", "published_at", "modified_utc", "title",
    "description", "parts", "template",
)  # fmt: skip
DATE_COLUMNS: Final = (*EVENT_COLUMNS, "series_id", "slot")


@dataclass(frozen=True, slots=True)
class SeriesChunk:
    """Rows of series, of their dates and of the links of these; `log` has the kind, ID, revision and cause."""

    series: list[Row] = field(default_factory=list[Row])
    dates: Chunk = field(default_factory=Chunk)
    log: list[tuple[str, int, int, int | None]] = field(default_factory=list[tuple[str, int, int, int | None]])


def plan_series(chance: Chance, count: int) -> list[int]:
    """Return the publication time and the first day of each series, packed like those of events."""
    days = [int((2 * chance() - 1) * MAX_DISTANCE) for _ in range(count)]
    return [pack((min(day, 0) - 30) * DAY_SECONDS + int(chance() * DAY_SECONDS), day) for day in days]


def build_series_chunk(builder: EventBuilder, plans: list[int], last_id: int, last_revision: int) -> SeriesChunk:
    """Build series and their dates. IDs and revisions continue those given, one for each row."""
    chunk = SeriesChunk()
    for plan in plans:
        offset = len(chunk.log)
        base = builder.build_chunk([plan], last_id + offset, last_revision + offset)
        _add_series(chunk, builder, base)
    return chunk


def _add_series(chunk: SeriesChunk, builder: EventBuilder, base: Chunk) -> None:
    """Add the series that repeats the only event of `base`, whose ID and revision become those of the series."""
    first: dict[str, Any] = dict(zip(EVENT_COLUMNS, base.events[0], strict=True))
    slug = first["slug"] or builder.free_slug(str(first["id"]))
    part = _choose_part(builder.chance, first)
    ids = {column: [row[2] for row in base.links[table]] for table, (_, _, column, *_) in LINK_COLUMNS.items()}
    template = encode_content({**CONTENT_DEFAULTS, **first, **{f"{name}s": linked for name, linked in ids.items()}})
    definition = encode_definition(Definition((part,), template))
    first |= {"slug": slug, "parts": definition["parts"], "template": definition["template"]}
    chunk.series.append(tuple(first[name] for name in SERIES_COLUMNS))
    chunk.log.append(("series", first["id"], first["revision"], None))
    for number, slot in enumerate(part.slots(LAST_SLOT), 1):
        values = _build_date(builder, first, Date(slot, part), number)
        chunk.dates.events.append(tuple(values[name] for name in DATE_COLUMNS))
        chunk.log.append(("events", values["id"], values["revision"], first["revision"]))
        for table, rows in base.links.items():
            chunk.dates.links[table] += _copy_links(rows, values["id"], values["start_utc"])


def _choose_part(chance: Chance, first: dict[str, Any]) -> Part:
    rule = Rule(frequency="weekly", count=5 + int(chance() * (2 * AVERAGE_DATES - 9)))
    return Part(first["uid"], rule, first["start_local"], first["end_local"], first["timezone"], first["all_day"])


def _build_date(builder: EventBuilder, first: dict[str, Any], date: Date, number: int) -> dict[str, Any]:
    event_id = first["id"] + number
    return {
        **first,
        **span_columns(date.part, date.span()),
        "id": event_id,
        "revision": first["revision"] + number,
        "uid": builder.make_uid(first["published_at"], event_id),
        "slug": builder.free_slug(f"{first['slug']}-{date.slot:%Y-%m-%d}"),
        "series_id": first["id"],
        "slot": date.slot,
    }


def _copy_links(rows: list[Row], event_id: int, start_utc: datetime) -> Iterator[Row]:
    for site_id, _, linked_id, position, _, *states in rows:
        yield (site_id, event_id, linked_id, position, start_utc, *states)
