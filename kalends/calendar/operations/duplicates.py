"""Possible duplicates of an event, for imports, API writes and the console form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, LiteralString

import orjson

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext, Outcome
from kalends.calendar.kinds.kind import JsonObject, Kind
from kalends.calendar.operations.record_verbs import create_record, fetch_editable_row, update_record
from kalends.calendar.rules.similarity import SIMILAR_SCORE, WINDOW, EventFacts, compare_titles, compute_score
from kalends.core import date_forms, errors, times
from kalends.core.date_forms import read_datetime
from kalends.core.errors import InvalidValue
from kalends.core.html_text import to_plain_text
from kalends.core.params import read_integer
from kalends.core.sanitize import fold
from kalends.core.times import local_of
from kalends.store import Row
from kalends.store.database import Transaction
from kalends.store.sql import Sql

CHECK: Final = "check_duplicates"
# Maximum number of events to compare by title; a period of a few days rarely has more.
MAX_COMPARED: Final = 3000
# Maximum number of events with similar titles to compare by all facts.
MAX_RATED: Final = 20
MAX_FOUND: Final = 5
_EVERYTHING: Final = Sql("true")
_PUBLIC: Final = Sql("r.status = 'publish' AND r.password_hash IS NULL")
_VENUES: Final[LiteralString] = (
    "(SELECT jsonb_agg(jsonb_build_object('id', v.id, 'name', v.title, 'lat', v.geo_lat, 'lng', v.geo_lng)) FROM "
)
_ORGANIZERS: Final[LiteralString] = "(SELECT jsonb_agg(jsonb_build_object('id', o.id, 'name', o.title)) FROM "
_FACTS: Final = Sql(
    "SELECT r.id, r.title, r.status, r.start_local, r.start_utc, r.timezone, r.all_day, r.website, "
    + _VENUES
    + """event_venues l JOIN venues v ON v.site_id = l.site_id AND v.id = l.venue_id
            WHERE l.site_id = r.site_id AND l.event_id = r.id)::text AS venues, """
    + _ORGANIZERS
    + """event_organizers l JOIN organizers o ON o.site_id = l.site_id AND o.id = l.organizer_id
            WHERE l.site_id = r.site_id AND l.event_id = r.id)::text AS organizers
    FROM events r WHERE r.site_id = ?
    """
)
_LINKED: Final[LiteralString] = (
    "SELECT "
    + _VENUES
    + "venues v WHERE v.site_id = ? AND v.id = ANY(?))::text AS venues, "
    + _ORGANIZERS
    + "organizers o WHERE o.site_id = ? AND o.id = ANY(?))::text AS organizers"
)


@dataclass(frozen=True, slots=True)
class Candidate:
    event_id: int
    score: float
    title_similarity: float
    title: str  # plain text
    status: str
    start_local: datetime


async def find_candidates(
    tx: Transaction, values: Mapping[str, Any], *, own_id: int | None = None, visible: Sql = _EVERYTHING
) -> list[Candidate]:
    """Find stored events that might be duplicates of an event with these API parameters, most similar first."""
    read = _read_values(tx, values)
    if read is None:
        return []
    facts, start_utc, zone = read
    facts = await _load_linked(tx, facts)
    return [
        row
        for row in await find_similar(tx, facts, start_utc, zone, own_id=own_id, visible=visible)
        if row.score >= SIMILAR_SCORE
    ]


async def find_public_candidates(tx: Transaction, values: Mapping[str, Any]) -> list[Candidate]:
    """Find possible duplicates among the events whose titles everyone may read: published and not protected."""
    return await find_candidates(tx, values, visible=_PUBLIC)


async def find_similar(
    tx: Transaction,
    facts: EventFacts,
    start_utc: datetime,
    zone: str,
    *,
    own_id: int | None = None,
    visible: Sql = _EVERYTHING,
    period: timedelta = WINDOW,
) -> list[Candidate]:
    """Find listed events with similar titles or the same website at about the same time, most similar first.

    Omit events that have been declared different.
    """
    folded = fold(to_plain_text(facts.title))
    if not folded:
        return []
    try:
        span = (start_utc - period, start_utc + period)
    except OverflowError:  # in the first or last days that dates can represent
        return []
    rows = await tx.fetch_all(_select_similar(tx, folded, facts.website, span, own_id=own_id or 0, visible=visible))
    candidates = [_rate(row, facts, zone) for row in rows]
    return sorted(candidates, key=lambda row: (-row.score, -row.title_similarity, row.event_id))


def _select_similar(
    tx: Transaction, folded: str, website: str, span: tuple[datetime, datetime], *, own_id: int, visible: Sql
) -> Sql:
    near = Sql(
        """
        AND r.id IN (
            SELECT n.id FROM (
                SELECT r.id, r.website, split_part(r.search_text, E'\\n', 1) AS folded
                FROM events r WHERE r.site_id = ? AND r.start_utc BETWEEN ? AND ? AND NOT r.hide_from_listings
                    AND r.status <> 'trash' AND r.id <> ?
                    AND NOT EXISTS (SELECT FROM not_duplicates d WHERE d.site_id = r.site_id
                        AND d.event_id = least(r.id, ?) AND d.other_id = greatest(r.id, ?)) AND
        """,
        *(tx.site.id, *span, *[own_id] * 3),
    )
    similar = Sql(
        """
                ORDER BY r.start_utc LIMIT ?) n
            WHERE n.folded = ? OR (n.website = ? AND n.website <> '') OR similarity(n.folded, ?) >= 0.25::real
                OR word_similarity(?, n.folded) >= 0.5::real OR word_similarity(n.folded, ?) >= 0.5::real
            ORDER BY n.folded = ? DESC, greatest(similarity(n.folded, ?), word_similarity(?, n.folded) * 0.9) DESC
            LIMIT ?)
        """,
        *(MAX_COMPARED, folded, website, *[folded] * 6, MAX_RATED),
    )
    return Sql(_FACTS.text, tx.site.id) + near + visible + similar


def _rate(row: Row, facts: EventFacts, zone: str) -> Candidate:
    other = _make_facts(row, zone)
    title = to_plain_text(row["title"])
    similarity = compare_titles(facts.title, other.title)
    score = round(compute_score(facts, other), 3)
    return Candidate(row["id"], score, similarity, title, row["status"], row["start_local"])


# Facts ------------------------------------------------------------------------------------------


def _make_facts(row: Row, zone: str) -> EventFacts:
    """Return the facts about a stored event. Convert its start to the zone, but keep the day of an all-day event."""
    start = row["start_local"] if row["all_day"] else local_of(row["start_utc"], zone)
    return _add_linked(EventFacts(row["title"], start, row["all_day"], website=row["website"]), row)


async def _load_linked(tx: Transaction, facts: EventFacts) -> EventFacts:
    """Add the names and places of linked records to their IDs, because another record may be the same place."""
    if not facts.venue_ids and not facts.organizer_ids:
        return facts
    ids = (tx.site.id, list(facts.venue_ids), tx.site.id, list(facts.organizer_ids))
    row = await tx.fetch_one(Sql(_LINKED, *ids))
    return facts if row is None else _add_linked(replace(facts, venue_ids=(), organizer_ids=()), row)


def _add_linked(facts: EventFacts, row: Row) -> EventFacts:
    venues: list[dict[str, Any]] = orjson.loads(row["venues"] or "[]")
    organizers: list[dict[str, Any]] = orjson.loads(row["organizers"] or "[]")
    points = [(venue["lat"], venue["lng"]) for venue in venues if venue["lat"] is not None]
    return replace(
        facts,
        venue_ids=tuple(venue["id"] for venue in venues),
        venue_names=(*facts.venue_names, *[to_plain_text(venue["name"]) for venue in venues]),
        coordinates=(*facts.coordinates, *points),
        organizer_ids=tuple(entry["id"] for entry in organizers),
        organizer_names=(*facts.organizer_names, *[to_plain_text(entry["name"]) for entry in organizers]),
    )


def _read_values(tx: Transaction, values: Mapping[str, Any]) -> tuple[EventFacts, datetime, str] | None:
    """Return facts, start and zone from API parameters, or None if the title or the start is missing."""
    zone = str(values.get("timezone") or tx.site.timezone)
    try:
        start = date_forms.make_absolute(read_datetime(str(values["start_date"])), tx.now, zone)
        start_utc = times.to_utc(start, zone)
        local = local_of(start_utc, zone)
    except (InvalidValue, KeyError, OverflowError, ValueError):
        return None
    all_day = values.get("all_day") in (True, "true", "1", 1, "yes")
    venues, organizers = _list_entries(values.get("venue")), _list_entries(values.get("organizer"))
    points = [(entry.get("geo_lat"), entry.get("geo_lng")) for entry in venues]
    facts = EventFacts(
        str(values.get("title") or ""),
        local,
        all_day,
        website=str(values.get("website") or ""),
        venue_ids=_list_ids(venues),
        venue_names=_list_names(venues, "venue"),
        coordinates=tuple((lat, lng) for lat, lng in points if isinstance(lat, float) and isinstance(lng, float)),
        organizer_ids=_list_ids(organizers),
        organizer_names=_list_names(organizers, "organizer"),
    )
    return (facts, start_utc, zone) if facts.title else None


def _list_entries(value: Any) -> list[dict[str, Any]]:
    """Return linked records as objects. Turn an ID into an object with only the ID."""
    entries: list[Any] = value if isinstance(value, list) else [] if value in (None, "") else [value]  # pyright: ignore[reportUnknownVariableType]
    return [entry if isinstance(entry, dict) else {"id": entry} for entry in entries]  # pyright: ignore[reportUnknownVariableType]


def _list_ids(entries: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    ids: list[int] = []
    for entry in entries:
        try:
            ids.append(read_integer(entry.get("id")))
        except InvalidValue:
            continue
    return tuple(ids)


def _list_names(entries: Sequence[Mapping[str, Any]], name: str) -> tuple[str, ...]:
    return tuple(to_plain_text(str(entry[name])) for entry in entries if entry.get(name))


# API writes -------------------------------------------------------------------------------------


async def create_event(kind: Kind, context: OperationContext) -> Outcome:
    return await _add_duplicates(context, await create_record(kind, context))


async def update_event(kind: Kind, context: OperationContext) -> Outcome:
    return await _add_duplicates(context, await update_record(kind, context))


async def _add_duplicates(context: OperationContext, outcome: Outcome) -> Outcome:
    """Add possible duplicates of the written event to the response, if the request asks for them."""
    if not context.values.get(CHECK) or "id" not in outcome.body:
        return outcome
    found = await find_duplicates_of(context, outcome.body["id"])
    return replace(outcome, body={**outcome.body, "possible_duplicates": [_describe(row) for row in found]})


async def find_duplicates_of(context: OperationContext, event_id: int) -> list[Candidate]:
    """Find possible duplicates of a stored event that the caller may read."""
    tx = context.transaction
    row = await tx.fetch_one(Sql(_FACTS.text, tx.site.id) + Sql("AND r.id = ?", event_id))
    if row is None:
        return []
    visible, zone = permissions.readable_condition(context.actor), row["timezone"]
    found = await find_similar(tx, _make_facts(row, zone), row["start_utc"], zone, own_id=event_id, visible=visible)
    return [candidate for candidate in found if candidate.score >= SIMILAR_SCORE][:MAX_FOUND]


def _describe(candidate: Candidate) -> JsonObject:
    return {
        "id": candidate.event_id,
        "title": candidate.title,
        "status": candidate.status,
        "start_date": times.format_datetime(candidate.start_local),
        "score": candidate.score,
    }


async def declare_different(kind: Kind, context: OperationContext) -> Outcome:
    """Store that two events are different, to stop proposing either as a duplicate of the other."""
    tx, other_id = context.transaction, context.values["other"]
    row = await fetch_editable_row(kind, context)
    condition = Sql("r.site_id = ? AND r.id = ? AND", tx.site.id, other_id) + permissions.readable_condition(
        context.actor
    )
    if other_id == row["id"] or not await tx.fetch_all(kind.select(condition)):
        raise errors.invalid("other", "there is no other event {id}.", id=other_id)
    await remember_different(tx, row["id"], other_id)
    return Outcome({"id": row["id"], "other": other_id})


async def remember_different(tx: Transaction, event_id: int, other_id: int) -> None:
    await tx.execute(
        Sql(
            "INSERT INTO not_duplicates (site_id, event_id, other_id) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            *(tx.site.id, min(event_id, other_id), max(event_id, other_id)),
        )
    )


# Warnings before an event is saved: probable duplicates, and other events at the same venue.

DUPLICATE_PERIOD: Final = timedelta(days=3)
MIN_SIMILARITY: Final = 0.5
LONGEST_BOOKING: Final = timedelta(hours=12)
# Which events occupy a venue. Long ones, such as exhibitions and all-day events, don't.
_OCCUPYING: Final = """
    r.end_utc - r.start_utc <= interval '12 hours' AND r.status IN ('publish', 'future', 'pending')
    AND r.event_status NOT IN ('cancelled', 'postponed')
"""


@dataclass(frozen=True, slots=True)
class OtherEvent:
    id: int
    title: str
    status: str
    start_local: datetime
    venue: str = ""


async def find_duplicates(
    context: OperationContext, facts: EventFacts, start_utc: datetime, zone: str, own_id: int | None
) -> list[OtherEvent]:
    """Find readable events with similar titles that start within three days of `start_utc`.

    Events on other days and at other times are included, because place and time are not final while the user is
    typing.
    """
    if len(fold(to_plain_text(facts.title))) < 3:
        return []
    found = await find_similar(
        context.transaction,
        facts,
        start_utc,
        zone,
        own_id=own_id,
        visible=permissions.readable_condition(context.actor),
        period=DUPLICATE_PERIOD,
    )
    return [
        OtherEvent(row.event_id, row.title, row.status, row.start_local)
        for row in found
        if row.title_similarity >= MIN_SIMILARITY
    ][:MAX_FOUND]


async def list_venue_ids(context: OperationContext, event_id: int) -> list[int]:
    links = Sql(
        "SELECT venue_id FROM event_venues WHERE site_id = ? AND event_id = ?", context.transaction.site.id, event_id
    )
    return [row["venue_id"] for row in await context.transaction.fetch_all(links)]


async def find_venue_conflicts(
    context: OperationContext, venue_ids: list[int], start_utc: datetime, end_utc: datetime, own_id: int | None
) -> list[OtherEvent]:
    """Find published, scheduled and pending events at these venues that overlap a period."""
    if not venue_ids or end_utc - start_utc > LONGEST_BOOKING:
        return []
    rows = await context.transaction.fetch_all(
        Sql(
            """
            SELECT r.id, r.title, r.status, r.start_local, v.title AS venue
            FROM event_venues l JOIN events r ON r.site_id = l.site_id AND r.id = l.event_id
            JOIN venues v ON v.site_id = l.site_id AND v.id = l.venue_id
            WHERE l.site_id = ? AND l.venue_id = ANY(?) AND l.start_utc >= ? AND l.start_utc < ? AND r.end_utc > ?
                AND r.id <> ? AND
            """
            + _OCCUPYING
            + "AND",
            context.transaction.site.id,
            venue_ids,
            start_utc - LONGEST_BOOKING,
            max(end_utc, start_utc + timedelta(seconds=1)),
            start_utc,
            own_id or 0,
        )
        + permissions.readable_condition(context.actor)
        + Sql("ORDER BY l.start_utc, r.id LIMIT ?", MAX_FOUND)
    )
    return [_make_other(row) for row in rows]


@dataclass(frozen=True, slots=True)
class DoubleBooking:
    """Two events that overlap at a venue."""

    first: OtherEvent
    second: OtherEvent


async def find_double_bookings(
    context: OperationContext, start_utc: datetime, end_utc: datetime, author: int | None, limit: int
) -> list[DoubleBooking]:
    """Find events at one venue that overlap, starting in a period, optionally only with an event of one author."""
    of_author = Sql("AND (a.author_id = ? OR b.author_id = ?)", author, author) if author is not None else Sql("")
    occupying = (
        "SELECT r.*, l.venue_id FROM event_venues l JOIN events r ON r.site_id = l.site_id AND r.id = l.event_id"
        " WHERE l.site_id = ? AND l.start_utc >= ? AND l.start_utc < ? AND " + _OCCUPYING + "AND"
    )
    rows = await context.transaction.fetch_all(
        Sql("WITH o AS (" + occupying, context.transaction.site.id, start_utc, end_utc)
        + permissions.readable_condition(context.actor)
        + Sql(
            """)
            SELECT a.id, a.title, a.status, a.start_local, v.title AS venue,
                b.id AS other_id, b.title AS other_title, b.status AS other_status, b.start_local AS other_start_local
            FROM o a JOIN o b ON b.venue_id = a.venue_id AND (b.start_utc, b.id) > (a.start_utc, a.id)
                AND b.start_utc < a.end_utc
            JOIN venues v ON v.site_id = a.site_id AND v.id = a.venue_id
            WHERE true
            """
        )
        + of_author
        + Sql("ORDER BY a.start_utc, a.id, b.id LIMIT ?", limit)
    )
    return [DoubleBooking(_make_other(row), _make_other(row, "other_")) for row in rows]


def _make_other(row: Row, prefix: str = "") -> OtherEvent:
    title, venue = to_plain_text(row[f"{prefix}title"]), to_plain_text(row["venue"])
    return OtherEvent(row[f"{prefix}id"], title, row[f"{prefix}status"], row[f"{prefix}start_local"], venue)
