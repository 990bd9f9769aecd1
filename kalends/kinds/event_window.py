"""Where a list of events looks in time, and the parts in which what lies there is found."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, LiteralString

from kalends.core import errors, times
from kalends.core.times import DateTimeInput
from kalends.core.zones import SECOND
from kalends.kinds.kind import Clause, Linked, Listing, Searched, for_each
from kalends.store.sql import Sql, and_, join

DAY: Final = timedelta(days=1)
FIRST: Final = datetime(1, 1, 1, tzinfo=UTC)
# More months than the calendar has, of which the last is that of the year 9999 and some.
MONTHS: Final = 1_000_000
# An event of length class n lasts less than 2^n hours (the column `span`).
SPANS: Final = tuple(timedelta(hours=2**n) for n in range(28))


@dataclass(frozen=True, slots=True)
class Window:
    """Inclusive limits of start and end, in whole seconds; None: no limit."""

    start_from: datetime | None = None
    start_to: datetime | None = None
    end_from: datetime | None = None
    end_to: datetime | None = None
    with_moments: bool = False  # an event without length that lies just before end_from belongs to it

    def clauses(self) -> list[Sql]:
        rows: tuple[tuple[LiteralString, datetime | None], ...] = (
            ("r.start_utc >= ?", self.start_from),
            ("r.start_utc <= ?", self.last_start),
            ("r.end_utc >= ?", self.end_from),
            ("r.end_utc <= ?", self.end_to),
        )
        return [Sql(text, limit) for text, limit in rows if limit is not None]

    @property
    def last_start(self) -> datetime | None:
        """None starts after it ends."""
        return min((limit for limit in (self.start_to, self.end_to) if limit is not None), default=None)


# Parameter, the limit it sets, how a whole day is read, and what is added to make the limit inclusive.
Reader = Callable[[DateTimeInput, str], datetime]
BOUNDS: Final[tuple[tuple[str, str, Reader, timedelta], ...]] = (
    ("start_date", "start_from", times.day_begins, 0 * SECOND),
    ("end_date", "end_to", times.day_ends, 0 * SECOND),
    ("starts_after", "start_from", times.day_ends, SECOND),
    ("starts_before", "start_to", times.day_ends, -SECOND),
    ("ends_after", "end_from", times.day_ends, SECOND),
    ("ends_before", "end_to", times.day_ends, -SECOND),
    ("overlaps_from", "end_from", times.day_begins, SECOND),
    ("overlaps_to", "start_to", times.day_ends, 0 * SECOND),
)
RELATIVE: Final = {name for name, *_ in BOUNDS[2:]}


def window_of(listing: Listing) -> Window:
    """The limits that the parameters set; without any, from today on for two years."""
    values, zone = listing.values, listing.site.timezone
    if "include" in values:
        return Window()
    window = Window()
    sent: dict[str, Any] = dict(values)
    if not RELATIVE & set(values):
        first, last = times.default_window(listing.transaction.now, zone)
        sent = {"start_date": DateTimeInput(first, None, True), "end_date": DateTimeInput(last, None, True), **values}
    strict = bool(values.get("strict_dates"))
    for name, limit, whole_day, step in BOUNDS:
        if name not in sent:
            continue
        exact = strict and name in values
        try:
            value = (times.to_utc if exact else whole_day)(sent[name], zone) + step
            # What starts at the very end of an exact span does not overlap it.
            value -= SECOND if exact and name == "overlaps_to" else timedelta(0)
        except (errors.InvalidValue, OverflowError) as problem:
            raise errors.invalid(name, "A date lies in the years 1 to {last}.", last=times.LAST_YEAR) from problem
        held: datetime | None = getattr(window, limit)
        narrower = max if limit.endswith("from") else min
        limits: dict[str, Any] = {limit: value if held is None else narrower(held, value)}
        if name == "overlaps_from":
            # What lasts no time, such as a deadline at midnight, overlaps the day that it begins.
            limits["with_moments"] = limits[limit] == value and held != value
        window = replace(window, **limits)
    return window


def find_parts(listing: Listing, window: Window, clauses: list[Clause]) -> list[tuple[Sql, Sql]]:
    """The parts of a list, each with its source `r` and conditions, no event in two of them.

    Each part has one index that finds its events, whatever the planner thinks of the odds: that of a link, else
    that of the words, else that of the order. Only what it finds inside the window is looked at.
    """
    common = [Sql("r.site_id = ?", listing.site.id), listing.visible, Sql("NOT r.hide_from_listings")]
    if "include" in listing.values:
        return [(Sql("events r"), and_([*common, *for_each(clauses)]))]
    begins, ends = window.start_from, window.end_from
    if ends is None:
        return [_walked(listing, common, window, clauses)]
    border = ends - SECOND if window.with_moments else ends
    if begins is not None and begins >= border:
        return [_walked(listing, common, replace(window, end_from=None), clauses)]
    later = replace(window, start_from=border, end_from=None)
    if border <= FIRST:
        return [_walked(listing, common, later, clauses)]
    before = border - SECOND
    running = replace(window, start_to=before if window.start_to is None else min(before, window.start_to))
    source = _running(ends, begins, and_([*common, *running.clauses()]))
    return [_walked(listing, common, later, clauses), (source, and_([Sql("true"), *for_each(clauses)]))]


def _walked(listing: Listing, common: list[Sql], part: Window, clauses: list[Clause]) -> tuple[Sql, Sql]:
    links = [clause for clause in clauses if isinstance(clause, Linked)]
    words = [clause for clause in clauses if isinstance(clause, Searched)]
    where = [*common, *part.clauses()]
    if links:
        others = for_each([clause for clause in clauses if not isinstance(clause, Linked)])
        return Sql("events r"), and_([*where, *others, _linked(listing, links, part)])
    if words:
        others = for_each([clause for clause in clauses if not isinstance(clause, Searched)])
        return _found(listing, words, part), and_([*where, *others])
    return Sql("events r"), and_([*where, *for_each(clauses)])


def _linked(listing: Listing, links: list[Linked], part: Window) -> Sql:
    """The events of all links, from their indexes, which know when each starts and whether it is listed."""
    limits = Sql("")
    if listing.statuses == ["publish"]:
        limits += Sql("AND l.listed")
    if part.start_from is not None:
        limits += Sql("AND l.start_utc >= ?", part.start_from)
    if part.last_start is not None:
        limits += Sql("AND l.start_utc <= ?", part.last_start)
    return Sql("r.id = ANY(ARRAY(") + join(" INTERSECT ", [link.event_ids() + limits for link in links]) + Sql("))")


def _found(listing: Listing, words: list[Searched], part: Window) -> Sql:
    """The events with these words that start in certain months. OFFSET 0: from the index of words, always."""
    months = months_between(part.start_from, part.last_start)
    when = Sql("AND r.months && ?", months) if months is not None else Sql("")
    return (
        Sql("(SELECT * FROM events r WHERE r.site_id = ?", listing.site.id)
        + when
        + Sql("AND")
        + and_([word.by_event for word in words])
        + Sql("OFFSET 0) r")
    )


def months_between(first: datetime | None, last: datetime | None) -> list[int] | None:
    """Keys of the column `months` that cover a span: months, then tens, hundreds, … of months; None: no limit."""
    if first is None and last is None:
        return None
    low = 0 if first is None else 12 * first.year + first.month - 1
    high = MONTHS - 1 if last is None else 12 * last.year + last.month - 1
    keys: list[int] = []
    while low <= high:
        level = 0
        while level < 4 and low % 10 ** (level + 1) == 0 and low + 10 ** (level + 1) - 1 <= high:
            level += 1
        keys.append(level * MONTHS + low // 10**level)
        low += 10**level
    return keys


def _running(at: datetime, begins: datetime | None, where: Sql) -> Sql:
    """What runs at a moment, by length classes: one of class n began less than 2^n hours before.

    OFFSET 0 has the planner ask class by class; it would rather walk all of the past in the order of the list.
    """
    spans = [(n, max(since, begins or FIRST)) for n, since in spans_before(at)]
    return (
        Sql(
            """(SELECT r.* FROM unnest(?::smallint[], ?::timestamptz[]) AS w (span, since) CROSS JOIN LATERAL (
                SELECT * FROM events r WHERE r.span = w.span AND r.start_utc >= w.since AND""",
            [n for n, _ in spans],
            [since for _, since in spans],
        )
        + where
        + Sql("OFFSET 0) r) r")
    )


def spans_before(at: datetime, longer_than: timedelta = timedelta(0)) -> list[tuple[int, datetime]]:
    """Each length class, from a length on, with the earliest start of one that may still run at a moment."""
    return [(n, at - span if at - FIRST > span else FIRST) for n, span in enumerate(SPANS) if span > longer_than]


def until_midnight(listing: Listing) -> datetime | None:
    """The default window moves at midnight of the site."""
    if "include" in listing.values or RELATIVE & set(listing.values):
        return None
    if "start_date" in listing.values and "end_date" in listing.values:
        return None
    zone, now = listing.site.timezone, listing.transaction.now
    today = DateTimeInput(times.local_of(now, zone), None, True)
    return times.day_ends(today, zone) + SECOND
