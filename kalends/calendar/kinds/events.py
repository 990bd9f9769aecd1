"""Events: the calendar entries."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final, LiteralString

import orjson

from kalends.calendar.kinds.event_list import EVENT_FILTERS, PASSWORD_GUARDED_FILTERS, expires_at_midnight
from kalends.calendar.kinds.event_window import build_next_cursor, order_events
from kalends.calendar.kinds.json_ld import describe_event
from kalends.calendar.kinds.kind import (
    Columns,
    JsonObject,
    Kind,
    Link,
    LinkedRecord,
    Reads,
    RenderContext,
    Values,
    WriteContext,
    Writes,
)
from kalends.calendar.kinds.list_queries import (
    build_event_page_and_total_query,
    build_event_page_query,
    build_event_total_query,
)
from kalends.calendar.kinds.posts import (
    DESCRIPTION,
    POST_COLUMNS,
    build_html,
    build_post,
    build_post_columns,
    build_search_text,
    merge_value,
    post_fields,
    refer_to_images,
    serialize_image,
    serialize_post,
)
from kalends.calendar.kinds.terms import clean_slug
from kalends.calendar.rules.fields import EVENT_FIELDS, Plain, names_of, pick
from kalends.calendar.rules.record_types import Event, SeriesReference, Term
from kalends.core import credentials, date_forms, errors, params, times
from kalends.core.cost import FREE_COSTS, NO_CURRENCY, Currency, format_cost
from kalends.core.date_forms import DateInput
from kalends.core.errors import InvalidValue
from kalends.core.params import BOOLEAN, DATE_TIME, LINKED_RECORDS, ZONE, param
from kalends.core.sanitize import clean_title, fold
from kalends.core.times import DateTimeInput, Span
from kalends.series.storage import decode_parts
from kalends.store import Row

# Hashes of event passwords. Computing them is slow, so a leaked database does not reveal the passwords.

# The query parameter that unlocks a protected event.
PASSWORD: Final = param("password", params.PASSWORD, "The event password")

# One hash takes 32 MB of memory and 50 to 150 ms of CPU time.
SCRYPT_OPTIONS: Final = {"n": 2**15, "r": 8, "p": 1, "maxmem": 64 * 1024 * 1024, "dklen": 32}
SLOW_PREFIX: Final = b"\x01"  # marks a slow hash; a hash from an earlier version has 32 bytes and no prefix
MAX_WAITING: Final = 16
MAX_CACHED: Final = 1000


def hash_fast(secret: bytes, password: str) -> bytes:
    """Return the hash that earlier versions stored. It still unlocks events that have it."""
    return credentials.keyed_hash(secret, "event-password", password)


def hash_slowly(secret: bytes, password: str) -> bytes:
    return SLOW_PREFIX + hashlib.scrypt(password.encode(), salt=secret, **SCRYPT_OPTIONS)


class PasswordHashes:
    """Computes slow hashes one at a time in a separate thread, and caches hashes of passwords in use.

    A hash is cached only after its password has unlocked an event or has been set. Guesses therefore neither benefit
    from the cache nor evict entries. The cache's keys are fast hashes, so no password stays in memory.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "event-passwords")
        self._waiting = 0
        self._cached: OrderedDict[bytes, bytes] = OrderedDict()

    async def compute(self, secret: bytes, password: str) -> bytes:
        """Return the slow hash; raise 503 if too many computations are waiting."""
        fast = hash_fast(secret, password)
        if fast in self._cached:
            self._cached.move_to_end(fast)
            return self._cached[fast]
        if self._waiting >= MAX_WAITING:
            raise errors.overloaded()
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, hash_slowly, secret, password)
        finally:
            self._waiting -= 1

    async def compute_and_add(self, secret: bytes, password: str) -> bytes:
        """Return the slow hash of a new password and cache it."""
        slow = await self.compute(secret, password)
        self.add(hash_fast(secret, password), slow)
        return slow

    def add(self, fast: bytes, slow: bytes) -> None:
        self._cached[fast] = slow
        while len(self._cached) > MAX_CACHED:
            self._cached.popitem(last=False)


HASHES: Final = PasswordHashes()


PLAIN: Final = Plain(EVENT_FIELDS)
# In the JSON, links come after the fields of The Events Calendar and before the fields of the extension.
ORIGINAL: Final = Plain(row for row in EVENT_FIELDS if not row.param.is_extension)
FURTHER: Final = Plain(row for row in EVENT_FIELDS if row.param.is_extension)
FLAGS: Final = names_of(row for row in EVENT_FIELDS if row.is_flag)
SEARCHED_COLUMNS: tuple[LiteralString, ...] = ("title", "excerpt", "description")
LOCAL_TIME_COLUMNS: tuple[LiteralString, ...] = (
    "start_local",
    "end_local",
    "start_fold",
    "end_fold",
    "timezone",
    "all_day",
)
NO_COST = {"currency_symbol": "", "currency_code": "", "currency_position": "", "values": []}


def build_event(row: Row, context: RenderContext) -> Event:
    linked, site = context.linked, context.site
    currency = Currency(row["currency_symbol"], row["currency_code"], row["currency_position"])
    cost, cost_details = format_cost(row["cost"], site.currency_symbol, site.currency_position, currency)
    attributes = {
        **build_post(row, context, "event"),
        **dict(zip(PLAIN.attributes, PLAIN.get_columns(row), strict=True)),
        "excerpt": build_html(row, "excerpt", context),
        "cost": cost,
    }
    event = Event(
        **attributes,
        uid=row["uid"],
        title=row["title"],
        timezone=row["timezone"],
        all_day=row["all_day"],
        start_local=row["start_local"],
        end_local=row["end_local"],
        start_utc=row["start_utc"],
        end_utc=row["end_utc"],
        cost_details=cost_details,
        currency=currency,
        categories=_sort_terms(_select_linked(linked.categories, row["category_ids"])),
        tags=_sort_terms(_select_linked(linked.tags, row["tag_ids"])),
        venues=tuple(_select_linked(linked.venues, row["venue_ids"])),
        organizers=tuple(_select_linked(linked.organizers, row["organizer_ids"])),
        feed_guid=row.get("feed_guid") or "",
        series=_build_series_reference(row, context),
    )
    return hide_protected_attributes(event) if event.id in context.locked_ids else event


def _build_series_reference(row: Row, context: RenderContext) -> SeriesReference | None:
    """Return an event's series, or None if the event is public but the series is not."""
    if row["series_id"] is None:
        return None
    facts = orjson.loads(row["series_facts"])
    if row["status"] == "publish" and facts["status"] != "publish":
        return None
    return SeriesReference(
        id=row["series_id"],
        slug=facts["slug"],
        url=f"{context.base_url}/series/{facts['slug']}/",
        uid=facts["uid"],
        title=facts["title"],
        parts=decode_parts(facts["parts"]),
        slot=row["slot"],
        own_fields=tuple(row["own_fields"] or ()),
    )


def hide_protected_attributes(event: Event) -> Event:
    """Reduce a protected event to its public parts: title, times and URLs (behaviour 6.3)."""
    return replace(
        event,
        **_PUBLIC_DEFAULTS,
        description="",
        image=None,
        all_day=False,
        cost_details=NO_COST,
        currency=NO_CURRENCY,
        categories=(),
        tags=(),
        venues=(),
        organizers=(),
        series=None,
        is_locked=True,
    )


_PUBLIC_DEFAULTS: Final = {row.path: row.default for row in EVENT_FIELDS if row.path in PLAIN.attributes}


def serialize_event(event: Event, context: RenderContext) -> JsonObject:
    linked = context.linked
    venues = [linked.venues[venue.id].json for venue in event.venues]
    record: JsonObject = {
        **serialize_post(event, context),
        "rest_url": f"{context.api_url}/events/{event.id}",
        "title": event.title,
        "description": event.description,
        "excerpt": event.excerpt,
        "slug": event.slug,
        "image": serialize_image(event.image) if event.image else False,
        "all_day": event.all_day,
        "start_date": times.format_datetime(event.start_local),
        "start_date_details": times.datetime_parts(event.start_local),
        "end_date": times.format_datetime(event.end_local),
        "end_date_details": times.datetime_parts(event.end_local),
        "utc_start_date": times.format_datetime(event.start_utc),
        "utc_start_date_details": times.datetime_parts(event.start_utc),
        "utc_end_date": times.format_datetime(event.end_utc),
        "utc_end_date_details": times.datetime_parts(event.end_utc),
        "timezone": event.timezone,
        "timezone_abbr": times.abbreviation(event.start_utc, event.timezone),
        "cost": event.cost,
        "cost_details": event.cost_details,
        **dict(zip(ORIGINAL.names, ORIGINAL.get_attributes(event), strict=True)),
        "website": event.website or event.url,
        "categories": [linked.categories[term.id].json for term in event.categories],
        "tags": [linked.tags[term.id].json for term in event.tags],
        # Existing clients expect an object for one venue and [] for none; several become a list.
        "venue": venues[0] if len(venues) == 1 else venues,
        "organizer": [linked.organizers[organizer.id].json for organizer in event.organizers],
        "custom_fields": [],
        **dict(zip(FURTHER.names, FURTHER.get_attributes(event), strict=True)),
        "uid": event.uid,
        "series": serialize_series_reference(event.series, context) if event.series else None,
    }
    if event.is_locked:
        # For a locked event, the API returns null for the event status and the booleans, and "" for the website.
        record.update({"all_day": None, "website": "", "event_status": None, **dict.fromkeys(FLAGS)})
    return record


def serialize_series_reference(series: SeriesReference, context: RenderContext) -> JsonObject:
    return {
        "id": series.id,
        "slug": series.slug,
        "url": series.url,
        "rest_url": f"{context.extension_url}/series/{series.id}",
        "slot": times.format_datetime(series.slot),
        "own": list(series.own_fields),
    }


def _select_linked[R](linked: Mapping[int, LinkedRecord[R]], ids: list[int]) -> list[R]:
    """Return the linked records that the caller may see, in the event's order."""
    return [linked[entry].record for entry in ids if entry in linked]


def _sort_terms(terms: list[Term]) -> tuple[Term, ...]:
    return tuple(sorted(terms, key=lambda term: (_fold_cached(term.name), term.id)))


# Sites have few terms, and every page repeats the terms' names.
_fold_cached = lru_cache(maxsize=4096)(fold)


async def build_event_columns(context: WriteContext) -> Values:
    arguments, row = context.arguments, context.row
    values = await build_post_columns(context, "events", "title", allow_empty_slug=True)
    values.update({row.name: arguments[row.name] for row in EVENT_FIELDS if row.name in arguments})
    if "excerpt" in arguments:
        values["excerpt"] = await refer_to_images(context.transaction, arguments["excerpt"])
    if "password_hash" in arguments:  # Not an API parameter: a restore passes the stored hash.
        values["password_hash"] = arguments["password_hash"]
    if "new_password" in arguments:
        password = arguments["new_password"]
        values["password_hash"] = await HASHES.compute_and_add(context.site.secret, password) if password else None
    if row is None:
        values["uid"] = credentials.new_uid()
    if row is None or {"start_date", "end_date", "timezone", "all_day"} & set(arguments):
        values.update(build_time_columns(context))
    values.update(derive_list_columns(values, row))
    return values


def derive_list_columns(values: Values, row: Row | None) -> Values:
    """Return the columns that list filters use: the search text, and whether the event is free."""
    return {
        "search_text": build_search_text(values, row, SEARCHED_COLUMNS),
        "is_free": merge_value(values, row, "cost") in FREE_COSTS,
    }


def build_time_columns(context: WriteContext) -> Values:
    """Build the time columns: wall times, time zone and instants. Omitted parameters keep their stored values."""
    arguments, row = context.arguments, context.row
    zone = (arguments["timezone"] or context.site.timezone) if "timezone" in arguments else None
    zone = zone or (row["timezone"] if row else context.site.timezone)
    start: DateInput = arguments.get("start_date") or _read_stored_time(row, "start", zone)
    end: DateInput = arguments.get("end_date") or _read_stored_time(row, "end", zone)
    try:
        now = context.transaction.now
        start, end = date_forms.make_absolute(start, now, zone), date_forms.make_absolute(end, now, zone)
        all_day = _is_all_day(context, start, end, zone)
        span: Span = times.event_span(start, end, zone, all_day)
        # asyncpg encodes the earliest datetime as -infinity.
        first = datetime(1, 1, 1)
        if first in (span.start.wall, span.start.utc.replace(tzinfo=None)):
            raise InvalidValue("must be a date between the years 1 and {last}.", last=times.LAST_YEAR)
    except InvalidValue as error:
        name = "start_date" if "start_date" in arguments and "end_date" not in arguments else "end_date"
        raise errors.invalid_params({name: errors.for_param(name, error.message)}) from error
    return {
        "timezone": zone,
        "all_day": all_day,
        "start_local": span.start.wall,
        "end_local": span.end.wall,
        "start_fold": span.start.fold,
        "end_fold": span.end.fold,
        "start_utc": span.start.utc,
        "end_utc": span.end.utc,
    }


def _is_all_day(context: WriteContext, start: DateTimeInput, end: DateTimeInput, zone: str) -> bool:
    """Return whether the event lasts all day after the write.

    An update with a time of day but no `all_day` turns an all-day event into a timed one. The first and last second
    of a day do not count as a time of day, so clients can write back unchanged what they have read.
    """
    arguments, row = context.arguments, context.row
    if "all_day" in arguments or row is None or not row["all_day"]:
        return bool(arguments.get("all_day", row is not None and row["all_day"]))
    sends_hours = ("start_date" in arguments and not times.is_first_second(start, zone)) or (
        "end_date" in arguments and not times.is_last_second(end, zone)
    )
    return not sends_hours


def _read_stored_time(row: Row | None, side: str, zone: str) -> DateTimeInput:
    """Return a stored wall time. If the zone is unchanged, the time keeps its instant, even in a repeated hour."""
    if row is None:
        raise AssertionError("a new event without its dates")
    wall = row[f"{side}_local"]
    offset: timedelta | None = times.offset_of(row[f"{side}_utc"], zone) if zone == row["timezone"] else None
    return DateTimeInput(wall, offset, False)


EVENTS = Kind(
    name="events",
    singular="event",
    title_param="title",
    fields=(
        param("title", params.text(clean_title, allow_empty=False), "The event title", required=True),
        param("start_date", DATE_TIME, "The start, in the event's time zone", required=True),
        param("end_date", DATE_TIME, "The end, in the event's time zone", required=True),
        *post_fields(),
        DESCRIPTION,
        param("slug", params.text(clean_slug), "The event slug"),
        *(row.param for row in pick(EVENT_FIELDS, "excerpt")),
        param("timezone", ZONE, "The event time zone; by default the site's"),
        param("all_day", BOOLEAN, "Whether the event lasts the whole day", default=False),
        *(row.param for row in EVENT_FIELDS if not row.param.is_extension and row.name != "excerpt"),
        param("categories", params.terms(allow_empty=True), "Category IDs, slugs or names"),
        param("tags", params.terms(allow_empty=True), "Tag IDs, slugs or names"),
        param("venue", LINKED_RECORDS, "Venue IDs or venue data"),
        param("organizer", LINKED_RECORDS, "Organizer IDs or organizer data"),
        *(row.param for row in EVENT_FIELDS if row.param.is_extension),
        param("new_password", params.NEW_PASSWORD, "Sets the event password; empty clears it", is_extension=True),
    ),
    filters=EVENT_FILTERS,
    reads=Reads(
        columns=POST_COLUMNS
        + Columns(
            *("uid", "feed_guid", *LOCAL_TIME_COLUMNS, "start_utc", "end_utc", *names_of(EVENT_FIELDS)),
            *("password_hash", "series_id", "slot", "own_fields"),
            computed={
                "series_facts": """CASE WHEN r.series_id IS NOT NULL THEN (
                    SELECT jsonb_build_object('uid', s.uid, 'slug', s.slug, 'status', s.status, 'title', s.title,
                        'parts', s.parts::text)::text
                    FROM series s WHERE s.site_id = r.site_id AND s.id = r.series_id) END""",
                "venue_ids": """ARRAY(SELECT l.venue_id FROM event_venues l
                    WHERE l.site_id = r.site_id AND l.event_id = r.id ORDER BY l.position)""",
                "organizer_ids": """ARRAY(SELECT l.organizer_id FROM event_organizers l
                    WHERE l.site_id = r.site_id AND l.event_id = r.id ORDER BY l.position)""",
                "category_ids": """ARRAY(SELECT l.category_id FROM event_categories l
                    WHERE l.site_id = r.site_id AND l.event_id = r.id ORDER BY l.position)""",
                "tag_ids": """ARRAY(SELECT l.tag_id FROM event_tags l
                    WHERE l.site_id = r.site_id AND l.event_id = r.id ORDER BY l.position)""",
            },
        ),
        from_row=build_event,
        to_json=serialize_event,
        order=order_events,
        page_query=build_event_page_query,
        total_query=build_event_total_query,
        page_and_total_query=build_event_page_and_total_query,
        next_cursor=build_next_cursor,
        expires_at=expires_at_midnight,
        password_guarded_filters=PASSWORD_GUARDED_FILTERS,
        to_json_ld=describe_event,
    ),
    writes=Writes(
        to_columns=build_event_columns,
        passthrough_columns=("title", "description", *names_of(EVENT_FIELDS)),
        sequence_columns=frozenset(
            {
                *(*LOCAL_TIME_COLUMNS, "start_utc", "end_utc", "status", "venue_ids"),
                *(row.name for row in EVENT_FIELDS if row.in_sequence),
            }
        ),
    ),
    links=(
        Link("venue", "venues", "event_venues", "venue_id"),
        Link("organizer", "organizers", "event_organizers", "organizer_id"),
        Link("categories", "categories", "event_categories", "category_id"),
        Link("tags", "tags", "event_tags", "tag_id"),
    ),
    is_event=True,
)
