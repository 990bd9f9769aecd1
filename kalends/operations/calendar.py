"""What the public pages of a calendar ask: the days of a month, where there is more, what is like an event.

The same parameters and the same visibility as a list. A day of the calendar is a day on the event's own clock:
what is printed beside an event is where it stands.
"""

from dataclasses import replace
from datetime import date, datetime, time, timedelta
from typing import Any, Final, LiteralString

from kalends.core.params import Param, Type
from kalends.core.times import DateTimeInput
from kalends.kinds.event_window import find_parts, window_of
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Clause, Filter, Listing, Represented
from kalends.kinds.organizers import ORGANIZERS
from kalends.kinds.venues import VENUES
from kalends.operations.context import Call, Outcome
from kalends.operations.records import clauses_of, list_records, listing_of
from kalends.store import Row
from kalends.store.sql import Sql, join

DAY: Final = timedelta(days=1)
# A night belongs to the day on which it began: the SQL twin of `pages.cards.last_day`.
NIGHT: LiteralString = "interval '6 hours 1 second'"
LAST_MOMENT: LiteralString = (
    "greatest(r.start_local, CASE WHEN r.all_day THEN r.end_local ELSE r.end_local - " + NIGHT + " END)"
)
# More than this many that last for days are not told apart on one page.
MOST_LONG: Final = 200
DATES: Final = frozenset(
    ("start_date", "end_date", "starts_before", "starts_after", "ends_before", "ends_after", "strict_dates",
     "overlaps_from", "overlaps_to", "include", "order", "orderby", "cursor")
)  # fmt: skip


async def _touching(days: tuple[date, date], _: Listing) -> Clause:
    first, last = days
    return Sql("r.start_local < ? AND " + LAST_MOMENT + " >= ?", _midnight(last) + DAY, _midnight(first))


# Events as the pages of days list them: one more filter, which no parameter of the interface sets.
DAY_EVENTS: Final = replace(
    EVENTS, filters=(*EVENTS.filters, Filter(Param("days", Type({}, lambda value: value), ""), _touching))
)


async def list_days(call: Call, first: date, last: date, most: int) -> list[Row]:
    """Events that touch some days: of those within one day the first few of each, with how many there are.

    One statement, whose answer does not grow with the number of events of a day. A protected event shows its
    title and its times.
    """
    asked = days_call(call, first, last)
    listing = listing_of(DAY_EVENTS, asked)
    clauses = await clauses_of(DAY_EVENTS, asked, listing)
    arms = [
        Sql("(SELECT r.id, r.title, r.slug, r.timezone, r.start_local, r.end_local, "
            "r.start_local::date AS first_day, " + LAST_MOMENT + "::date AS last_day, "
            "r.password_hash IS NULL AS is_open, r.password_hash IS NULL AND r.all_day AS all_day, "
            "r.password_hash IS NULL AND r.sticky AS sticky, r.password_hash IS NULL AND r.featured AS featured FROM")
        + source + Sql("WHERE") + where + Sql(")")
        for source, where in find_parts(listing, window_of(listing), clauses)
    ]  # fmt: skip
    return await call.transaction.fetch_all(
        Sql(
            """SELECT n.*, (SELECT c.category_id FROM event_categories c WHERE n.is_open
                    AND c.site_id = ? AND c.event_id = n.id ORDER BY c.position LIMIT 1) AS category_id
                FROM (
                    SELECT f.*, count(*) OVER (PARTITION BY f.day) AS of_day,
                        row_number() OVER (PARTITION BY f.day ORDER BY f.sticky DESC, f.start_local, f.id) AS nth
                    FROM (SELECT e.*, CASE WHEN e.first_day = e.last_day THEN e.first_day END AS day FROM (""",
            call.transaction.site.id,
        )
        + join(" UNION ALL ", arms)
        + Sql(
            """) e) f) n WHERE n.nth <= CASE WHEN n.day IS NULL THEN ?::integer ELSE ?::integer END
                ORDER BY n.day NULLS FIRST, n.nth""",
            MOST_LONG,
            most,
        )
    )


async def list_day(call: Call, day: date) -> Outcome:
    """One day as a list of whole records, page by page."""
    return await list_records(DAY_EVENTS, days_call(call, day, day))


async def find_before(call: Call, first: date) -> date | None:
    """The last day before this one on which there is something."""
    row = await _first(call, {"ends_before": _moment(_moved(first, 2)), "orderby": "end_date", "order": "desc"},
                       Sql(LAST_MOMENT + " < ?", _midnight(first)))  # fmt: skip
    return row["last_day"] if row else None


async def find_after(call: Call, last: date) -> date | None:
    """The first day after this one on which something begins."""
    row = await _first(call, {"starts_after": _moment(_moved(last, -2)), "orderby": "start_date", "order": "asc"},
                       Sql("r.start_local >= ?", _midnight(last) + DAY))  # fmt: skip
    return row["start_local"].date() if row else None


async def list_similar(call: Call, event: Represented, most: int) -> list[Represented]:
    """What comes next in the same categories, else at the same place, else at all."""
    venues = event["venue"] if isinstance(event["venue"], list) else [event["venue"]]
    tries: list[dict[str, Any]] = []
    if event["categories"]:
        tries.append({"categories": [term["id"] for term in event["categories"]]})
    if venues:
        tries.append({"venue": [venue["id"] for venue in venues]})
    found: dict[int, Represented] = {}
    for asked in (*tries, {}):
        values = {**asked, "per_page": most + 1}
        outcome = await list_records(EVENTS, replace(call, values=values, slug=None), counted=False)
        for record in outcome.body["events"]:
            found.setdefault(record["id"], record)
        found.pop(event["id"], None)
        if len(found) >= most:
            break
    return list(found.values())[:most]


async def list_main_categories(call: Call, most: int) -> list[Row]:
    """The most used ones at the top of the tree, with what is right below them."""
    return await call.transaction.fetch_all(
        Sql(
            """SELECT r.name, r.slug FROM categories r LEFT JOIN (
                    SELECT c.parent, sum(c.count) AS count FROM categories c
                    WHERE c.site_id = ? AND c.parent IS NOT NULL GROUP BY c.parent) b ON b.parent = r.id
                WHERE r.site_id = ? AND r.parent IS NULL AND r.count + coalesce(b.count, 0) > 0
                ORDER BY r.count + coalesce(b.count, 0) DESC, r.id LIMIT ?""",
            call.transaction.site.id,
            call.transaction.site.id,
            most,
        )
    )


async def find_record_url(call: Call, post_id: int) -> tuple[str, str] | None:
    """The collection and slug of a published post with this ID."""
    site_id = call.transaction.site.id
    for kind in (EVENTS, VENUES, ORGANIZERS):
        row = await call.transaction.fetch_one(
            Sql("SELECT slug FROM " + kind.name + " WHERE site_id = ? AND id = ? AND status = 'publish'",
                site_id, post_id)
        )  # fmt: skip
        if row:
            return kind.singular, row["slug"]
    return None


def days_call(call: Call, first: date, last: date) -> Call:
    """A call for the events that touch some days, with the filters of the page but not its dates."""
    values = {name: value for name, value in call.values.items() if name not in DATES}
    values |= {
        "overlaps_from": _moment(_moved(first, -2)),
        "overlaps_to": _moment(_moved(last, 2)),
        "days": (first, last),
    }
    return replace(call, values=values)


async def _first(call: Call, dates: dict[str, Any], exactly: Sql) -> Row | None:
    """The first event of a list; dates of the list are read in the site's zone, so the clause is more exact."""
    values = {name: value for name, value in call.values.items() if name not in DATES}
    asked = replace(call, values={**values, **dates})
    listing = replace(listing_of(EVENTS, asked), page=1, per_page=1)
    narrow = replace(EVENTS, columns="r.id, r.start_local, " + LAST_MOMENT + "::date AS last_day")
    clauses = [*await clauses_of(EVENTS, asked, listing), exactly]
    return await call.transaction.fetch_one(narrow.page(narrow, listing, clauses))


def _moment(day: date) -> DateTimeInput:
    return DateTimeInput(_midnight(day), None, True)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time())


def _moved(day: date, days: int) -> date:
    """Two days are more than any two clocks differ."""
    return day + timedelta(days=days)
