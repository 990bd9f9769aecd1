"""The filter of the event table, read from the query string and converted to list parameters.

Invalid values are ignored, because users bookmark and save URLs.
"""

from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, Final, Self
from urllib.parse import parse_qsl, urlencode

from kalends.calendar.kinds.event_list import ANY_DATE
from kalends.calendar.operations.event_queries import LACKING, make_values
from kalends.calendar.operations.record_verbs import MAX_OFFSET
from kalends.console.console_request import PREFIX, ConsoleRequest
from kalends.console.field_texts import STATUS_FILTERS
from kalends.core import times
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import parse_id
from kalends.core.statuses import LISTED

PATH: Final = f"{PREFIX}/events"
PAGE_SIZES: Final = (50, 100, 500)
# With these statuses, the table shows all dates by default.
UNFINISHED: Final = ("draft", "pending", "trash")
PERIODS: Final = {
    "upcoming": N_("Upcoming"),
    "past": N_("Past"),
    "week": N_("This week"),
    "month": N_("This month"),
    "range": N_("Date range"),
    "all": N_("All dates"),
}
# Maps sort names in the query string to the list's `orderby` values.
ORDERS: Final = {"date": "start_date", "title": "title", "changed": "modified"}
CHOICES: Final = {
    "status": tuple(STATUS_FILTERS),
    "period": tuple(PERIODS),
    "featured": ("true", "false"),
    "lacking": LACKING,
    "of": ("others",),
    "sort": tuple(ORDERS),
    "order": ("asc", "desc"),
}
TEXTS: Final = ("search", "venue", "organizer")
NUMBERS: Final = ("category", "author", "page", "per_page")
# Fields that do not filter the rows.
DISPLAY: Final = ("sort", "order", "page", "per_page")
MAX_TEXT_LENGTH: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFilter:
    """The fields of the filter form, as strings. Empty fields do not filter the rows."""

    search: str = ""
    status: str = ""
    category: str = ""
    venue: str = ""
    organizer: str = ""
    author: str = ""
    period: str = ""
    first: str = ""
    last: str = ""
    featured: str = ""
    lacking: str = ""
    of: str = ""
    sort: str = ""
    order: str = ""
    page: str = ""
    per_page: str = ""

    @classmethod
    def read(cls, console_request: ConsoleRequest) -> Self:
        names = cls.__slots__
        filter_ = cls(**{name: _read_field(name, console_request.query_value(name)) for name in names})  # pyright: ignore
        if not console_request.has_role("editor"):
            filter_ = replace(filter_, author="", status="" if filter_.of else filter_.status)
        else:
            filter_ = replace(filter_, of="")
        return filter_.normalize()

    def normalize(self) -> Self:
        """Drop fields that have no effect, such as the default period."""
        plain = replace(self, period="" if self.first or self.last else self.period)
        period = "" if plain.period == replace(plain, period="").actual_period else plain.period
        return replace(plain, period=period, sort="" if plain.sort == "date" else plain.sort)

    @property
    def values(self) -> dict[str, str]:
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in fields.items() if value}

    @property
    def query(self) -> str:
        return urlencode(self.values)

    @property
    def is_empty(self) -> bool:
        """Return whether the table shows its default rows."""
        return not set(self.values) - {*DISPLAY, "of"}

    @property
    def has_details(self) -> bool:
        """Return whether a field that the form hides by default is set."""
        return bool(set(self.values) - {"search", "status", "period", "of", *DISPLAY})

    @property
    def actual_period(self) -> str:
        """Return the period. Dates define a range; unfinished work is shown regardless of its dates."""
        if self.first or self.last:
            return "range"
        return self.period or ("all" if self.status in UNFINISHED else "upcoming")

    @property
    def actual_sort(self) -> str:
        return self.sort or "date"

    @property
    def actual_order(self) -> str:
        """Return the sort direction. By default, sort change times and past or all dates in descending order.

        Events that wait for a review are in ascending order, because the next one is the most urgent.
        """
        if self.order:
            return self.order
        if self.actual_sort == "date":
            return "desc" if self.actual_period in ("past", "all") and self.status != "pending" else "asc"
        return "desc" if self.actual_sort == "changed" else "asc"

    @property
    def rows_per_page(self) -> int:
        return int(self.per_page) if self.per_page and int(self.per_page) in PAGE_SIZES else PAGE_SIZES[0]

    @property
    def page_number(self) -> int:
        """Return the page number, limited by the maximum offset of lists."""
        return min(int(self.page or 1), MAX_OFFSET // self.rows_per_page + 1)

    def url(self, **changes: str) -> str:
        """Return the table's URL with changed fields. Start at the first page unless `page` is given."""
        query = replace(self, **{"page": "", **changes}).query
        return f"{PATH}?{query}" if query else PATH

    def sort_url(self, sort: str) -> str:
        """Return the URL that sorts the table by a column, or reverses the order if it already does."""
        if sort != self.actual_sort:
            return self.url(sort=sort, order="")
        return self.url(sort=sort, order="desc" if self.actual_order == "asc" else "asc")


def _read_field(name: str, value: str) -> str:
    text = value.strip()
    if name in CHOICES:
        return text if text in CHOICES[name] else ""
    if name in NUMBERS:
        return text if parse_id(text) else ""
    if name in TEXTS:
        return text[:MAX_TEXT_LENGTH].replace("\0", "")
    return text if read_day(text) else ""


def read_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if len(text) == 10 else None
    except ValueError:
        return None


def make_table_values(filter_: TableFilter, console_request: ConsoleRequest, **changes: Any) -> dict[str, Any]:
    """Return the values of the table's list, with changed parameters."""
    raw, extra = make_params(filter_, console_request)
    return make_values({**raw, **changes}, extra)


def make_params(filter_: TableFilter, console_request: ConsoleRequest) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the list parameters, and the values that are not request parameters."""
    raw: dict[str, Any] = {
        "page": filter_.page_number,
        "per_page": filter_.rows_per_page,
        "orderby": ORDERS[filter_.actual_sort],
        "order": filter_.actual_order,
        "status": [filter_.status] if filter_.status else list(LISTED),
        **{name: getattr(filter_, name) for name in ("search", "featured", "lacking", "author")},
        "categories": filter_.category,
        **_make_scope(filter_, console_request),
    }
    dates = _make_dates(filter_, console_request)
    return {name: value for name, value in {**raw, **dates}.items() if value != ""}, {} if dates else {ANY_DATE: True}


def _make_scope(filter_: TableFilter, console_request: ConsoleRequest) -> dict[str, Any]:
    """Limit users below editors to their own events, or to published events by others."""
    if console_request.has_role("editor"):
        return {}
    if filter_.of == "others":
        return {"others": True, "status": ["publish"]}
    return {"author": console_request.actor.user_id}


def _make_dates(filter_: TableFilter, console_request: ConsoleRequest) -> dict[str, Any]:
    """Return the parameters for a period; none for all dates."""
    match filter_.actual_period:
        case "upcoming":
            return {"overlaps_from": "now", "strict_dates": True}
        case "past":
            return {"ends_before": "now", "strict_dates": True}
        case "range":
            days = {"overlaps_from": filter_.first, "overlaps_to": filter_.last}
            return {name: day for name, day in days.items() if day}
        case "week" | "month" as period:
            first, last = _find_days(period, console_request)
            return {"overlaps_from": first.isoformat(), "overlaps_to": last.isoformat()}
        case _:
            return {}


def _find_days(period: str, console_request: ConsoleRequest) -> tuple[date, date]:
    if period == "week":
        return find_week(console_request)
    first = times.in_zone(console_request.now, console_request.site.timezone).date().replace(day=1)
    return first, (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)


def find_week(console_request: ConsoleRequest) -> tuple[date, date]:
    """Return the first and the last day of the current week."""
    site = console_request.site
    today = times.in_zone(console_request.now, site.timezone).date()
    first = today - timedelta(days=(today.isoweekday() - site.first_weekday) % 7)
    return first, first + timedelta(days=6)


def clean_query(query: str) -> str:
    """Drop the page number and unknown parameters from a query string."""
    known = {name: _read_field(name, text) for name, text in parse_qsl(query[:5000]) if name in TableFilter.__slots__}
    return TableFilter(**{**known, "page": ""}).query


def make_back_url(query: str, **extra: str) -> str:
    pairs = [part for part in (clean_query(query), *[f"{name}={value}" for name, value in extra.items()]) if part]
    return f"{PATH}?{'&'.join(pairs)}" if pairs else PATH
