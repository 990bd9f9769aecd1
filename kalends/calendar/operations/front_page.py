"""Queries for the front page: events in the coming days with counts, featured events, and category pictures."""

from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Final

from kalends.calendar.access.operation_context import OperationContext
from kalends.calendar.operations.calendar_months import DAY, make_date_filter, select_days
from kalends.calendar.operations.record_verbs import EVENT_KEYS, find_page
from kalends.store import Row
from kalends.store.sql import Sql

MAX_PER_DAY: Final = 16  # maximum number of events to read per day
EXHIBITION_DAYS: Final = 7  # an event that lasts longer counts as running from its first day
MAX_TRIED: Final = 5  # maximum number of events per category to check for an image


@dataclass(frozen=True, slots=True)
class Today:
    """The days and periods for counting events. Days count as on day pages, periods as in lists."""

    day: date
    evening: datetime  # until `midnight`
    midnight: datetime
    weekend: tuple[datetime, datetime]
    week: tuple[datetime, datetime]
    over: datetime  # events that ended by then come last


async def list_coming_days(context: OperationContext, first: date, last: date, today: Today) -> list[Row]:
    """List the first events of each day, the most notable first, with the totals for today and the coming days.

    Each event appears on one day: the day it starts, or `first` if it began earlier.
    """
    # Start a day early: lists for a period also include events from the night before, which belong to the previous
    # day.
    days = await select_days(
        context,
        first - DAY,
        last,
        ", CASE WHEN r.password_hash IS NULL THEN r.series_id END AS series_id, "
        "r.password_hash IS NULL AND r.image_id IS NOT NULL AS has_image, "
        "r.password_hash IS NULL AND r.is_free AS is_free",
    )
    tomorrow = today.day + DAY
    return await context.transaction.fetch_all(
        Sql(
            """SELECT n.*, (SELECT c.category_id FROM event_categories c WHERE n.is_open
                    AND c.site_id = ? AND c.event_id = n.id ORDER BY c.position LIMIT 1) AS category_id
                FROM (
                    SELECT f.*, count(*) FILTER (WHERE f.first_day <= ? AND f.last_day >= ?) OVER () AS today,
                        count(*) FILTER (WHERE f.first_day <= ? AND f.last_day >= ?
                            AND f.event_status NOT IN ('cancelled', 'postponed')) OVER () AS taking_place,
                        count(*) FILTER (WHERE NOT f.all_day AND f.start_utc >= ? AND f.start_utc < ?) OVER ()
                            AS tonight,
                        count(*) FILTER (WHERE f.first_day <= ? AND f.last_day >= ?) OVER () AS tomorrow,
                        count(*) FILTER (WHERE (f.end_utc > ? OR f.start_utc >= ?) AND f.start_utc <= ?) OVER ()
                            AS weekend,
                        count(*) FILTER (WHERE f.is_free
                            AND (f.end_utc > ? OR f.start_utc >= ?) AND f.start_utc <= ?) OVER () AS free,
                        count(*) OVER (PARTITION BY f.day) AS of_day,
                        row_number() OVER (PARTITION BY f.day ORDER BY f.is_over,
                            f.event_status IN ('cancelled', 'postponed'), f.is_running, f.sticky DESC,
                            f.featured DESC, f.has_image DESC, f.start_local, f.id) AS nth
                    FROM (SELECT e.*, CASE WHEN e.last_day >= ? THEN greatest(e.first_day, ?) END AS day,
                        e.end_utc <= ? AS is_over,
                        e.first_day < ? OR e.last_day - e.first_day >= ? AS is_running FROM (""",
            *(context.transaction.site.id, today.day, today.day, today.day, today.day),
            *(today.evening, today.midnight, tomorrow, tomorrow),
            *(today.weekend[0], *today.weekend, today.week[0], *today.week),
            *(first, first, today.over, first, EXHIBITION_DAYS),
        )
        + days
        + Sql(") e) f) n WHERE n.day IS NOT NULL AND n.nth <= ? ORDER BY n.day, n.nth", MAX_PER_DAY)
    )


async def list_featured_ids(context: OperationContext, since: date, limit: int) -> list[int]:
    """List the IDs of featured events, sorted by end, to put exhibitions that run for months last."""
    values = {"featured": True, "overlaps_from": make_date_filter(since), "orderby": "end_date", "per_page": limit}
    page = await find_page(EVENT_KEYS, replace(context, values=values), with_total=False)
    return [row["id"] for row in page.rows]


async def find_pictured_events(context: OperationContext, category_ids: list[int], since: datetime) -> dict[int, int]:
    """Return the ID of the next event with an image, if any, in each category and its children."""
    site_id = context.transaction.site.id
    rows = await context.transaction.fetch_all(
        Sql(
            """SELECT m.id, n.event_id FROM unnest(?::bigint[]) AS m (id) CROSS JOIN LATERAL (
                SELECT l.event_id FROM categories c CROSS JOIN LATERAL (
                    SELECT k.event_id, k.start_utc FROM event_categories k
                    WHERE k.site_id = ? AND k.category_id = c.id AND k.listed AND k.start_utc >= ?
                    ORDER BY k.start_utc LIMIT ?) l
                JOIN events e ON e.site_id = ? AND e.id = l.event_id
                WHERE c.site_id = ? AND (c.id = m.id OR c.parent = m.id)
                    AND e.image_id IS NOT NULL AND e.password_hash IS NULL
                ORDER BY l.start_utc, l.event_id LIMIT 1) n""",
            *(category_ids, site_id, since, MAX_TRIED, site_id, site_id),
        )
    )
    return {row["id"]: row["event_id"] for row in rows}
