"""Writes many events of a series with few statements after a change to the series."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import Any, Final, LiteralString

from kalends.calendar.access import permissions
from kalends.calendar.kinds import BY_NAME
from kalends.calendar.kinds.events import EVENTS, SEARCHED_COLUMNS, derive_list_columns
from kalends.calendar.kinds.kind import NO_LINKS, Actor, Link, Links, Values
from kalends.calendar.kinds.posts import plan_status
from kalends.calendar.kinds.series_kind import CONTENT_DEFAULTS, CONTENT_FIELDS, TIMES, decode_content, span_columns
from kalends.calendar.operations import writes
from kalends.calendar.storage.record_tables import find_existing_ids
from kalends.core import credentials, errors, times
from kalends.core.messages import Message
from kalends.core.slugs import add_suffix
from kalends.series.consequences import write_definition
from kalends.series.operations.series_matching import Match
from kalends.series.rules.series_slots import Date, Definition, change_content, content_at
from kalends.series.storage import decode_definition, find_free_slugs, insert_events, insert_links
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sql import Sql

MAX_DATES: Final = 1000  # dates that one edit can change
MAX_TEXT: Final = 20_000_000  # characters of description that one edit can write in total
PUBLISHING_STATUSES: Final = frozenset({"publish", "future", "private"})
# Column values for an event that belongs to no series.
INDEPENDENT: Final[Values] = {"series_id": None, "slot": None, "own_fields": None}


# Content of dates: columns, and linked records that still exist ---------------------------


class ExistingRecords:
    """The linked records and images of contents or snapshots that still exist."""

    def __init__(self, ids: Mapping[str, set[int]]) -> None:
        self._ids = ids

    @classmethod
    async def load(cls, tx: Transaction, snapshots: Iterable[Mapping[str, Any]]) -> "ExistingRecords":
        wanted: dict[LiteralString, set[int]] = {}
        for columns in snapshots:
            wanted.setdefault("media", set()).update(filter(None, [columns.get("image_id")]))
            for link in EVENTS.links:
                wanted.setdefault(BY_NAME[link.kind].name, set()).update(columns.get(f"{link.column}s") or ())
        return cls({table: await find_existing_ids(tx, table, sorted(ids)) for table, ids in wanted.items() if ids})

    def find_links(self, columns: Mapping[str, Any]) -> dict[Link, list[int]]:
        """Return the links in these columns, excluding deleted records."""
        return {
            link: [entry for entry in columns[name] if entry in self._ids.get(link.kind, ())]
            for link in EVENTS.links
            if (name := f"{link.column}s") in columns
        }

    def drop_lost_image(self, columns: dict[Any, Any]) -> None:
        if columns.get("image_id") not in (None, *self._ids.get("media", ())):
            columns["image_id"] = None


@dataclass(frozen=True, slots=True)
class Content:
    columns: Mapping[LiteralString, Any]
    links: Links
    derived: Values  # columns computed from `columns`


async def resolve_contents(
    tx: Transaction, series: Sequence[tuple[Definition, Sequence[Date]]]
) -> list[dict[datetime, Content]]:
    """Return the content for each slot of each series, with one statement per kind of linked record.

    The result omits linked records and images that no longer exist.
    """
    groups = [_group_by_content(definition, dates) for definition, dates in series]
    contents = [
        [{**CONTENT_DEFAULTS, **content_at(definition, slots[0])} for slots in periods]
        for (definition, _), periods in zip(series, groups, strict=True)
    ]
    existing = await ExistingRecords.load(tx, chain.from_iterable(contents))
    return [
        {
            slot: content
            for slots, content in zip(periods, [_build_content(entry, existing) for entry in entries], strict=True)
            for slot in slots
        }
        for periods, entries in zip(groups, contents, strict=True)
    ]


def _group_by_content(definition: Definition, dates: Iterable[Date]) -> list[list[datetime]]:
    bounds = [change.since for change in definition.content_changes]
    by_period: dict[int, list[datetime]] = {}
    for date in dates:
        by_period.setdefault(sum(bound <= date.slot for bound in bounds), []).append(date.slot)
    return list(by_period.values())


def _build_content(content: dict[str, Any], existing: ExistingRecords) -> Content:
    existing.drop_lost_image(content)
    columns = decode_content(content)
    return Content(columns, existing.find_links(content), derive_list_columns(columns, None))


# Writing --------------------------------------------------------------------------------------


@dataclass(slots=True)
class Summary:
    """The effect of an edit on a series' dates."""

    changed: int = 0
    created: int = 0
    trashed: int = 0
    kept_own: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    lost_own: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    dates: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    event_ids: list[int] = field(default_factory=list[int])  # events that exist after the edit

    def add(self, changes: Iterable[writes.PlannedChange]) -> "Summary":
        for change in changes:
            after = change.row_after
            is_trashed = after["status"] == "trash"
            self.trashed += is_trashed
            self.changed += not is_trashed
            self.dates.append(
                {
                    "event": change.row["id"],
                    "before": times.format_datetime(change.row["start_local"]),
                    "after": None if is_trashed else times.format_datetime(after["start_local"]),
                }
            )
        return self


@dataclass(frozen=True, slots=True)
class SeriesWrite:
    """The series whose events are to be written, with options."""

    series: Mapping[str, Any] | Row  # requires `id`, `slug` and `published_at`
    definition: Definition
    cause: int | None  # revision of the series change
    actor: Actor | None = None  # None for a job, which may write all dates
    modified_at: datetime | None = None  # for new events; the transaction time by default
    edited_fields: frozenset[str] = frozenset()
    replaces_own: bool = False  # whether edited fields replace a date's overrides
    sets_publication_date: bool = False
    is_limited: bool = True  # whether `MAX_DATES` and `MAX_TEXT` apply


async def write_dates(
    tx: Transaction, write: SeriesWrite, matches: Sequence[Match], trashed: Mapping[datetime, Row]
) -> Summary:
    """Change, create, restore or trash the matched events."""
    summary = Summary()
    moved = {match.row["id"] for match in matches if match.row is not None}
    waiting = {slot: row for slot, row in trashed.items() if row["id"] not in moved}
    matches = [_reuse_trashed(match, waiting) for match in matches]
    if write.is_limited:
        _check_limits(write, matches)
    for match in matches:
        if match.row is not None and not match.slot_only:
            check_permission(write.actor, match.row)
    # Events with overrides are trashed only if the caller has confirmed this.
    for match in matches:
        if match.row is not None and match.date is None and match.row["own_fields"]:
            summary.lost_own.append(_describe_own(match.row, match.row["own_fields"]))
    if summary.lost_own and not write.replaces_own:
        raise errors.series_overrides_lost(summary.lost_own)
    all_dates = [match.date for match in matches if match.date]
    (contents,) = await resolve_contents(tx, [(write.definition, all_dates)])
    await _change_events(tx, write, matches, contents, summary)
    new = [match.date for match in matches if match.row is None and match.date]
    rows = await create_events(tx, [NewDate(write, date, contents[date.slot]) for date in new])
    summary.created += len(rows)
    summary.event_ids += [row["id"] for row in rows]
    summary.dates += [
        {"event": row["id"], "before": None, "after": times.format_datetime(row["start_local"])} for row in rows
    ]
    await vacate_slots(tx, write, [date.slot for date in all_dates])
    return summary


async def vacate_slots(tx: Transaction, write: SeriesWrite, slots: Sequence[datetime]) -> None:
    """Detach trashed events from a series if another event now has their slot."""
    where = Sql(
        """r.site_id = ? AND r.series_id = ? AND r.status = 'trash' AND r.slot = ANY(?)
            AND EXISTS (SELECT FROM events o WHERE o.site_id = r.site_id AND o.series_id = r.series_id
                AND o.slot = r.slot AND o.id <> r.id)""",
        *(tx.site.id, write.series["id"], list(slots)),
    )
    rows = await tx.fetch_all(EVENTS.select(where))
    await change_events(tx, rows, {row["id"]: INDEPENDENT for row in rows}, write.cause)


async def change_events(
    tx: Transaction,
    rows: Iterable[Row],
    values: Mapping[int, Values],
    cause: int | None,
    links: Mapping[int, Links] | None = None,
) -> list[writes.PlannedChange]:
    """Write event changes caused by a series change. A slug in use gets a number."""
    wanted = {event_id: str(columns["slug"]) for event_id, columns in values.items() if "slug" in columns}
    for event_id, slug in (await find_free_slugs(tx, wanted)).items():
        values[event_id]["slug"] = slug
    planned = [
        writes.plan(EVENTS, tx, row, values[row["id"]], (links or {}).get(row["id"], NO_LINKS), cause=cause)
        for row in rows
    ]
    return await writes.write(EVENTS, tx, planned)


def _reuse_trashed(match: Match, trashed: Mapping[datetime, Row]) -> Match:
    """If the rule produces the date of a trashed event again, reuse that event."""
    if match.row is None and match.date is not None and match.date.slot in trashed:
        return Match(trashed[match.date.slot], match.date)
    return match


def check_number(count: int, param: str) -> None:
    if count > MAX_DATES:
        raise errors.invalid(
            param,
            "this would change {count} dates; at most {maximum} can be changed at once.",
            count=count,
            maximum=MAX_DATES,
        )


def _check_limits(write: SeriesWrite, matches: Sequence[Match]) -> None:
    count = len(matches)
    if count > MAX_DATES:
        raise errors.invalid(
            "scope",
            "this would change {count} dates; at most {maximum} can be changed at once. Use `scope=following` to "
            "change fewer.",
            count=count,
            maximum=MAX_DATES,
        )
    if len(str(write.definition.template["description"])) * count > MAX_TEXT:
        raise errors.invalid(
            "description", "is too long for {count} dates. Shorten it or create fewer dates.", count=count
        )


def check_permission(actor: Actor | None, row: Row) -> None:
    """Raise if the actor may not edit this date. The actor None is a job, which may edit all dates."""
    if actor is not None and not permissions.may_edit(actor, row):
        raise permissions.permission_error(
            actor, Message("You are not allowed to edit event {id} of this series.", id=row["id"])
        )


def require_publisher(actor: Actor, records: Iterable[Mapping[str, Any]]) -> None:
    statuses = {columns.get("status") for columns in records}
    if statuses & PUBLISHING_STATUSES and not permissions.may_publish(actor):
        raise permissions.permission_error(actor, Message("only authors and editors can publish."))


def _describe_own(row: Row, fields: Iterable[str]) -> dict[str, Any]:
    return {"event": row["id"], "slot": times.format_datetime(row["slot"]), "fields": sorted(fields)}


# Existing events -----------------------------------------------------------------------------


async def _change_events(
    tx: Transaction,
    write: SeriesWrite,
    matches: Sequence[Match],
    contents: Mapping[datetime, Content],
    summary: Summary,
) -> None:
    rows = {match.row["id"]: match.row for match in matches if match.row is not None}
    values: dict[int, Values] = {}
    links: dict[int, Links] = {}
    for match in matches:
        if match.row is None:
            continue
        event_id, content = match.row["id"], contents[match.date.slot] if match.date is not None else None
        values[event_id], links[event_id] = _plan_columns(tx, write, match.row, match, content)
        if match.date is not None and not match.slot_only:
            summary.event_ids.append(event_id)
            kept = write.edited_fields & set(match.row["own_fields"] or ())
            if kept and not write.replaces_own:
                summary.kept_own.append(_describe_own(match.row, kept))
    changes = await change_events(tx, rows.values(), values, write.cause, links)
    slot_only = {match.row["id"] for match in matches if match.row is not None and match.slot_only}
    summary.add(change for change in changes if change.row["id"] not in slot_only)


def _plan_columns(
    tx: Transaction, write: SeriesWrite, row: Row, match: Match, content: Content | None
) -> tuple[Values, Links]:
    date = match.date
    if match.slot_only and date is not None:
        return {"slot": date.slot}, NO_LINKS
    if date is None or content is None:
        return plan_status(row, "trash", tx.now), NO_LINKS
    own = set(row["own_fields"] or ()) - (write.edited_fields if write.replaces_own else frozenset())
    values: Values = {name: value for name, value in content.columns.items() if CONTENT_FIELDS[name] not in own}
    if row["status"] == "trash":
        values.update(plan_status(row, str(values.get("status", row["trashed_status"] or "draft")), tx.now))
    if TIMES not in own:
        values.update(span_columns(date.part, date.span()))
    if write.sets_publication_date:
        values["published_at"] = write.series["published_at"]
    values.update({"series_id": write.series["id"], "slot": date.slot, "own_fields": sorted(own) or None})
    # Recompute derived columns only for an event that overrides their sources.
    is_same = all(values.get(name) == content.columns[name] for name in (*SEARCHED_COLUMNS, "cost"))
    values.update(content.derived if is_same else derive_list_columns(values, row))
    return values, {link: ids for link, ids in content.links.items() if link.param not in own}


# New events ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NewDate:
    write: SeriesWrite
    date: Date
    content: Content


async def create_events(tx: Transaction, new: Sequence[NewDate]) -> list[dict[LiteralString, Any]]:
    """Create events for dates of one or more series with few statements; return their rows."""
    if not new:
        return []
    by_id = {tx.changes.take_post_id(): entry for entry in new}
    slugs = await find_free_slugs(
        tx,
        {
            event_id: add_suffix(entry.write.series["slug"], f"-{entry.date.slot:%Y-%m-%d}")
            for event_id, entry in by_id.items()
        },
    )
    rows = [_build_row(tx, entry, event_id, slugs[event_id]) for event_id, entry in by_id.items()]
    await insert_events(tx, rows)
    for link in EVENTS.links:
        linked = {event_id: entry.content.links[link] for event_id, entry in by_id.items()}
        await insert_links(tx, link.table, link.column, linked)
    return rows


def _build_row(tx: Transaction, new: NewDate, event_id: int, slug: str) -> dict[LiteralString, Any]:
    write, date, content = new.write, new.date, new.content
    values: Values = {
        **content.columns,
        **span_columns(date.part, date.span()),
        "uid": credentials.new_uid(),
        "slug": slug,
        "published_at": write.series["published_at"],
        "modified_utc": write.modified_at or tx.now,
        "series_id": write.series["id"],
        "slot": date.slot,
        **content.derived,
    }
    revision = writes.log_new_record(EVENTS, tx, event_id, values, content.links, cause=write.cause)
    return {"id": event_id, "revision": revision, **values}


# Publishing a scheduled series together with its events.


async def publish_series(tx: Transaction, series: Row) -> None:
    """Publish a series and its events that are due. The caller has checked that the series is due."""
    cause = await write_definition(tx, series, _publish(decode_definition(series)), {"status": "publish"})
    # Events with a different publication date may be due later.
    where = Sql(
        "r.site_id = ? AND r.series_id = ? AND r.status = 'future' AND r.published_at <= ? ORDER BY r.slot",
        *(tx.site.id, series["id"], tx.now),
    )
    rows = await tx.fetch_all(EVENTS.select(where))
    await change_events(tx, rows, {row["id"]: {"status": "publish"} for row in rows}, cause)
    if rows:
        await writes.publish_with_due_event(tx, rows[0])


def _publish(definition: Definition) -> Definition:
    """Set the status to `publish`. Later content changes keep their status, except for `future`."""
    later = {change.since: change.values for change in definition.content_changes if "status" in change.values}
    published = change_content(definition, {"status": "publish"})
    for since, values in later.items():
        status = "publish" if values["status"] == "future" else values["status"]
        published = change_content(published, {"status": status}, since)
    return published
