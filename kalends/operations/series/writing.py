"""Writing the dates of a series: many events with few statements, under one change of the series."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from kalends.core import credentials, errors, times
from kalends.core.messages import Message
from kalends.core.series import Date, Definition
from kalends.core.slugs import TRASHED_SUFFIX, add_suffix
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Actor, Link, Values
from kalends.kinds.posts import build_search_text, strip_trashed_suffix
from kalends.kinds.series import (
    CONTENT_FIELDS,
    TIMES,
    span_columns,
)
from kalends.operations import permissions
from kalends.operations.series.contents import SEARCHED_COLUMNS, Content, resolve_contents
from kalends.operations.series.matching import Match
from kalends.operations.writes import PreparedChange, log_new_record, prepare_change
from kalends.store import Row, slug_redirects
from kalends.store.database import Transaction
from kalends.store.event_batches import find_free_slugs, insert_events, insert_links, update_events
from kalends.store.links import replace_links
from kalends.store.sql import Sql

MAX_DATES: Final = 1000  # dates that one edit changes
MAX_TEXT: Final = 20_000_000  # characters of all descriptions that one edit writes


# Events by a link and the records that they are linked to.
LinkGroups = dict[tuple[Link, tuple[int, ...]], list[int]]


@dataclass(slots=True)
class Summary:
    """The effect of an edit on the dates of a series."""

    changed: int = 0
    created: int = 0
    trashed: int = 0
    kept_own: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    lost_own: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    dates: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    event_ids: list[int] = field(default_factory=list[int])  # of the events that exist afterwards


@dataclass(frozen=True, slots=True)
class SeriesWrite:
    """A series whose dates are written, and how."""

    series_id: int
    slug: str
    published_at: datetime
    definition: Definition
    cause: int | None  # the revision of the change of the series
    actor: Actor | None = None  # None: a job, which may write all dates
    modified_at: datetime | None = None  # of new events; by default the time of the transaction
    edited_fields: frozenset[str] = frozenset()
    replaces_own: bool = False  # own fields that are edited give way
    sets_publication_date: bool = False
    is_limited: bool = True  # whether the number of dates is limited


async def write_dates(
    tx: Transaction, write: SeriesWrite, matches: Sequence[Match], trashed: Mapping[datetime, Row]
) -> Summary:
    """Write matched events: change, create, restore from the trash, or move to the trash."""
    summary = Summary()
    moved = {match.row["id"] for match in matches if match.row is not None}
    waiting = {slot: row for slot, row in trashed.items() if row["id"] not in moved}
    matches = [_take_from_trash(match, waiting) for match in matches]
    if write.is_limited:
        _check_limits(write, matches)
    for match in matches:
        if match.row is not None and not match.slot_only:
            check_permission(write.actor, match.row)
    _check_losses(write, matches, summary)
    contents = await resolve_contents(tx, write.definition, [match.date for match in matches if match.date])
    await _write_changes(tx, write, matches, contents, summary)
    await _create_events(
        tx, write, [match.date for match in matches if match.row is None and match.date], contents, summary
    )
    await vacate_slots(tx, write.series_id, [match.date.slot for match in matches if match.date], write.cause)
    return summary


async def vacate_slots(tx: Transaction, series_id: int, slots: Sequence[datetime], cause: int | None) -> None:
    """Take events in the trash out of a series if another event has their slot now."""
    where = Sql(
        """r.site_id = ? AND r.series_id = ? AND r.status = 'trash' AND r.slot = ANY(?)
            AND EXISTS (SELECT FROM events o WHERE o.site_id = r.site_id AND o.series_id = r.series_id
                AND o.slot = r.slot AND o.id <> r.id)""",
        tx.site.id,
        series_id,
        list(slots),
    )
    rows = await tx.fetch_all(EVENTS.select(where))
    await detach_events(tx, rows, cause)


async def detach_events(tx: Transaction, rows: Sequence[Row], cause: int | None) -> list[PreparedChange]:
    """Make events independent of their series."""
    outside: Values = {"series_id": None, "slot": None, "own_fields": None}
    prepared = [prepare_change(EVENTS, tx, row, outside, {}, cause=cause) for row in rows]
    changes = [change for change in prepared if change is not None]
    await write_prepared(tx, changes)
    return changes


def _take_from_trash(match: Match, trashed: Mapping[datetime, Row]) -> Match:
    """Let a new date have its event back that an earlier rule moved to the trash."""
    if match.row is None and match.date is not None and match.date.slot in trashed:
        return Match(trashed[match.date.slot], match.date)
    return match


def check_number(count: int, param: str) -> None:
    """Raise if an action changes too many dates."""
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
            "description",
            "is too long for {count} dates. Shorten it or create fewer dates.",
            count=count,
        )


def check_permission(actor: Actor | None, row: Row) -> None:
    """Raise if the actor may not edit this date of a series; None is a job, which may edit all."""
    if actor is not None and not permissions.may_edit(actor, row):
        raise permissions.permission_error(
            actor, Message("You are not allowed to edit event {id} of this series.", id=row["id"])
        )


def _check_losses(write: SeriesWrite, matches: Sequence[Match], summary: Summary) -> None:
    """Refuse to move dates with content of their own to the trash, unless the caller has confirmed it."""
    for match in matches:
        if match.row is not None and match.date is None and match.row["own_fields"]:
            summary.lost_own.append(describe_own(match.row, match.row["own_fields"]))
    if summary.lost_own and not write.replaces_own:
        raise errors.series_overrides_lost(summary.lost_own)


def describe_own(row: Row, fields: Iterable[str]) -> dict[str, Any]:
    return {"event": row["id"], "slot": times.format_datetime(row["slot"]), "fields": sorted(fields)}


# Existing events -----------------------------------------------------------------------------


async def _write_changes(
    tx: Transaction,
    write: SeriesWrite,
    matches: Sequence[Match],
    contents: Mapping[datetime, Content],
    summary: Summary,
) -> None:
    slugs = await _choose_slugs(tx, matches)
    prepared: list[PreparedChange] = []
    for match in matches:
        if match.row is None:
            continue
        content = contents[match.date.slot] if match.date is not None else None
        if match.date is not None and not match.slot_only:
            _note_kept_fields(summary, write, match.row)
        values, links = _plan_change(tx, write, match, content)
        values.update(slugs.get(match.row["id"], {}))
        change = prepare_change(EVENTS, tx, match.row, values, links, cause=write.cause)
        if change is not None:
            prepared.append(change)
            if not match.slot_only:
                _summarize(summary, match, change)
        if match.date is not None and not match.slot_only:
            summary.event_ids.append(match.row["id"])
    await write_prepared(tx, prepared)


async def write_prepared(tx: Transaction, prepared: Sequence[PreparedChange]) -> None:
    """Write logged changes of events with few statements."""
    await update_events(tx, {change.row["id"]: change.changed for change in prepared})
    groups: LinkGroups = {}
    for change in prepared:
        for link, ids in change.relinked.items():
            groups.setdefault((link, tuple(ids)), []).append(change.row["id"])
    await _replace_links(tx, groups)
    moved = {
        change.row["slug"]: change.row["id"]
        for change in prepared
        if "slug" in change.changed and permissions.is_published(change.row)
    }
    await slug_redirects.add_redirects(tx, "events", moved)


async def _replace_links(tx: Transaction, groups: LinkGroups) -> None:
    for (link, linked_ids), event_ids in groups.items():
        await replace_links(tx, link.table, link.column, event_ids, list(linked_ids))


def _plan_change(
    tx: Transaction, write: SeriesWrite, match: Match, content: Content | None
) -> tuple[Values, Mapping[Link, list[int]]]:
    """Return the columns and links that an event is to have."""
    row, date = match.row, match.date
    if row is None:
        raise AssertionError("a change without an event")
    if match.slot_only and date is not None:
        return {"slot": date.slot}, {}
    if date is None or content is None:
        return {"status": "trash", "trashed_status": row["status"], "trashed_at": tx.now}, {}
    own = set(row["own_fields"] or ()) - (write.edited_fields if write.replaces_own else frozenset())
    values: Values = {name: value for name, value in content.columns.items() if CONTENT_FIELDS[name] not in own}
    if row["status"] == "trash":
        values.update({"trashed_status": "", "trashed_at": None})
        values.setdefault("status", row["trashed_status"] or "draft")
    if TIMES not in own:
        values.update(span_columns(date.part, date.span()))
    if write.sets_publication_date:
        values["published_at"] = write.published_at
    values.update({"series_id": write.series_id, "slot": date.slot, "own_fields": sorted(own) or None})
    values["search_text"] = _build_search_text(row, values, content)
    links = {link: ids for link, ids in content.links.items() if link.param not in own}
    return values, links


def _build_search_text(row: Row, values: Values, content: Content) -> str:
    """Return the search text of an event; that of the series unless the event has texts of its own."""
    if all(values.get(name) == content.columns[name] for name in SEARCHED_COLUMNS):
        return content.search_text
    return build_search_text(values, row, SEARCHED_COLUMNS)


async def _choose_slugs(tx: Transaction, matches: Sequence[Match]) -> dict[int, Values]:
    """Return the slugs of events that go to the trash or come back from there."""
    wanted: dict[int, str] = {}
    for match in matches:
        if match.row is None or match.slot_only or not match.row["slug"]:
            continue
        if match.date is None and match.row["status"] != "trash":
            wanted[match.row["id"]] = match.row["slug"] + TRASHED_SUFFIX
        elif match.date is not None and match.row["status"] == "trash":
            wanted[match.row["id"]] = strip_trashed_suffix(match.row["slug"])
    free = await find_free_slugs(tx, wanted) if wanted else {}
    return {event_id: {"slug": slug} for event_id, slug in free.items()}


def _note_kept_fields(summary: Summary, write: SeriesWrite, row: Row) -> None:
    """Add an event to the summary that keeps fields of its own, even if nothing else of it changes."""
    kept = write.edited_fields & set(row["own_fields"] or ())
    if kept and not write.replaces_own:
        summary.kept_own.append(describe_own(row, kept))


def _summarize(summary: Summary, match: Match, change: PreparedChange) -> None:
    row, date = change.row, match.date
    if date is None:
        summary.trashed += 1
    else:
        summary.changed += 1
    start = change.changed.get("start_local", row["start_local"])
    summary.dates.append(
        {
            "event": row["id"],
            "before": times.format_datetime(row["start_local"]),
            "after": times.format_datetime(start) if date is not None else None,  # type: ignore[arg-type]
        }
    )


# New events ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NewDate:
    """A date that becomes an event."""

    write: SeriesWrite
    date: Date
    content: Content


async def _create_events(
    tx: Transaction,
    write: SeriesWrite,
    dates: Sequence[Date],
    contents: Mapping[datetime, Content],
    summary: Summary,
) -> None:
    rows = await create_events(tx, [NewDate(write, date, contents[date.slot]) for date in dates])
    summary.created += len(rows)
    summary.event_ids += [row["id"] for row in rows]  # type: ignore[misc]
    summary.dates += [
        {"event": row["id"], "before": None, "after": times.format_datetime(row["start_local"])}  # type: ignore[arg-type]
        for row in rows
    ]


async def create_events(tx: Transaction, new: Sequence[NewDate]) -> list[Values]:
    """Create the events of dates, of one series or of several, with few statements; return their rows."""
    if not new:
        return []
    by_id = {tx.changes.next_post_id(): entry for entry in new}
    slugs = await find_free_slugs(tx, {event_id: _make_slug(entry) for event_id, entry in by_id.items()})
    rows = [
        _build_row(tx, entry.write, entry.date, entry.content, {"id": event_id, "slug": slugs[event_id]})
        for event_id, entry in by_id.items()
    ]
    await insert_events(tx, rows)
    for link in EVENTS.links:
        linked = {event_id: entry.content.links[link] for event_id, entry in by_id.items()}
        await insert_links(tx, link.table, link.column, linked)
    return rows


def _make_slug(new: NewDate) -> str:
    return add_suffix(new.write.slug, f"-{new.date.slot:%Y-%m-%d}")


def _build_row(tx: Transaction, write: SeriesWrite, date: Date, content: Content, identity: Values) -> Values:
    """Build the row of a new event. `identity` has its ID and its slug."""
    values: Values = {
        **content.columns,
        **span_columns(date.part, date.span()),
        "uid": credentials.new_uid(),
        "slug": identity["slug"],
        "published_at": write.published_at,
        "modified_utc": write.modified_at or tx.now,
        "series_id": write.series_id,
        "slot": date.slot,
        "search_text": content.search_text,
    }
    event_id: int = identity["id"]  # type: ignore[assignment]
    revision = log_new_record(EVENTS, tx, event_id, values, content.links, cause=write.cause)
    return {"id": event_id, "revision": revision, **values}
