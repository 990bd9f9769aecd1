"""Where a list of events looks in time, and the parts in which what lies there is found."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, LiteralString

from kalends.core import errors, times
from kalends.core.times import Moment
from kalends.kinds.kind import Clause, Listing, Starts, within
from kalends.store.sql import Sql, all_of

NO_SOURCE: Final = Sql("")
SECOND: Final = timedelta(seconds=1)
DAY: Final = timedelta(days=1)
FIRST: Final = datetime(1, 1, 1, tzinfo=UTC)
# An event of length class n lasts less than 2^n hours (the column `span`).
SPANS: Final = tuple(timedelta(hours=2**n) for n in range(28))


@dataclass(frozen=True, slots=True)
class Window:
    """Inclusive limits of start and end, in whole seconds; None: no limit."""

    start_from: datetime | None = None
    start_to: datetime | None = None
    end_from: datetime | None = None
    end_to: datetime | None = None

    def clauses(self) -> list[Sql]:
        rows: tuple[tuple[LiteralString, datetime | None], ...] = (
            ("r.start_utc >= ?", self.start_from),
            ("r.start_utc <= ?", self.start_to),
            ("r.end_utc >= ?", self.end_from),
            ("r.end_utc <= ?", self.end_to),
        )
        return [Sql(text, limit) for text, limit in rows if limit is not None]

    @property
    def starts(self) -> Starts:
        """Between which instants the events start: none starts after it ends."""
        last = min((limit for limit in (self.start_to, self.end_to) if limit is not None), default=None)
        return Starts(self.start_from, last)


# Parameter, the limit it sets, how a whole day is read, and what is added to make the limit inclusive.
Reader = Callable[[Moment, str], datetime]
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
        sent = {"start_date": Moment(first, None, True), "end_date": Moment(last, None, True), **values}
    strict = bool(values.get("strict_dates"))
    for name, limit, whole_day, step in BOUNDS:
        if name not in sent:
            continue
        exact = strict and name in values
        try:
            value = (times.instant if exact else whole_day)(sent[name], zone) + step
            # What starts at the very end of an exact span does not overlap it.
            value -= SECOND if exact and name == "overlaps_to" else timedelta(0)
        except (errors.Invalid, OverflowError) as problem:
            raise errors.invalid(name, "A date lies in the years 1 to {last}.", last=times.LAST_YEAR) from problem
        held: datetime | None = getattr(window, limit)
        narrower = max if limit.endswith("from") else min
        window = replace(window, **{limit: value if held is None else narrower(held, value)})
    return window


def find_parts(listing: Listing, window: Window, clauses: list[Clause]) -> list[tuple[Sql, Sql]]:
    """The parts of a list, each with its source and conditions, no event in two of them."""
    common = [Sql("r.site_id = ?", listing.site.id), listing.visible, Sql("NOT r.hide_from_listings")]

    def arm(part: Window, source: Sql = NO_SOURCE) -> tuple[Sql, Sql]:
        return source, all_of([*common, *part.clauses(), *within(clauses, part.starts)])

    begins, ends = window.start_from, window.end_from
    if ends is None or (begins is not None and begins >= ends):
        return [arm(replace(window, end_from=None) if ends is not None else window)]
    later = replace(window, start_from=ends, end_from=None)
    before = ends - SECOND
    running = replace(window, start_to=before if window.start_to is None else min(before, window.start_to))
    return [arm(later), arm(running, _running(ends, begins))]


def _running(at: datetime, begins: datetime | None) -> Sql:
    """Joins the length classes: one of class n that runs at a moment began less than 2^n hours before."""
    spans = [(n, max(since, begins or FIRST)) for n, since in spans_before(at)]
    return Sql(
        """JOIN unnest(?::smallint[], ?::timestamptz[]) AS w (span, since)
            ON r.span = w.span AND r.start_utc >= w.since""",
        [n for n, _ in spans],
        [since for _, since in spans],
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
    today = Moment(times.local_of(now, zone), None, True)
    return times.day_ends(today, zone) + SECOND
