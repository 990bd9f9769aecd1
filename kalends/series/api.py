"""Series routes in the API extension."""

from dataclasses import replace
from typing import Final

from kalends.api.description import error_codes
from kalends.api.record_routes import make_list, make_read
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import Kind
from kalends.calendar.kinds.series_kind import ADD_DATES, REMOVE_DATES, RULE, SERIES, TIME_PARAMS
from kalends.core import params
from kalends.core.date_forms import read_time_or_datetime
from kalends.core.params import BOOLEAN, DATE_TIME, Param, Type, param
from kalends.http.router import UPDATES, Endpoint, ErrorCode, Operation, Route
from kalends.series.operations.series_create import create_series, preview_series
from kalends.series.operations.series_dates import STATES, list_occurrences
from kalends.series.operations.series_edit import (
    ALL,
    FOLLOWING,
    THIS,
    delete_event,
    delete_series,
    edit_dates,
    edit_event,
    edit_series,
)
from kalends.series.operations.series_split import (
    KEPT,
    OWN_FIELDS,
    convert_event,
    detach_event,
    dissolve_series,
    follow_series,
    merge_series,
    split_series,
)
from kalends.series.operations.series_undo import restore_series

DRY_RUN: Final = param("dry_run", BOOLEAN, "Return the effect of the edit without writing anything", default=False)
OVERRIDES: Final = param(
    "overrides",
    params.one_of("keep", "replace"),
    "Whether the edit replaces a date’s overrides",
    default="keep",
)
PAST: Final = param("past", BOOLEAN, "Also change dates that have taken place", default=False)
FROM: Final = param("from", DATE_TIME, "The first date to edit; required for `scope=following`")
EVENT_SCOPE: Final = param(
    "scope", params.one_of(THIS, FOLLOWING, ALL), "This date alone, this and the following ones, or all", default=THIS
)
SERIES_SCOPE: Final = param(
    "scope", params.one_of(ALL, FOLLOWING), "All dates, or the dates starting with `from`", default=ALL
)
MOMENT: Final = Type(DATE_TIME.schema, read_time_or_datetime)


def _edit_params(kind: Kind) -> tuple[Param, ...]:
    """Return the edit parameters. If the start or end is only a time of day, each event keeps its day."""
    moments = {
        "start_date": "The start, in the event's time zone; a time alone keeps the day",
        "end_date": "The end, in the event's time zone; a time alone keeps the day",
    }
    fields = tuple(
        param(field.name, MOMENT, moments[field.name]) if field.name in moments else field for field in kind.fields
    )
    return tuple(field for field in fields if field.name not in ("rule", "add_dates", "remove_dates"))


def _preview_params() -> tuple[Param, ...]:
    """Return the parameters that determine a new series' dates; the end defaults to the start."""
    fields = [field for field in EVENTS.fields if field.name in TIME_PARAMS]
    return (*[replace(field, required=field.name == "start_date") for field in fields], RULE, ADD_DATES, REMOVE_DATES)


OCCURRENCE_PARAMS: Final = (
    param("from", DATE_TIME, "Dates starting with this slot, in the time zone of the series"),
    param("to", DATE_TIME, "Dates up to this slot; a day without a time is included"),
    param(
        "state",
        params.several_of(*STATES),
        "Dates that have an event, skipped dates, or dates that are still to be created; by default all",
    ),
)
RESTORE_PARAMS: Final = (
    param("revision", params.integer(), "Revision to return to; omit it to restore the series from the trash"),
    param("force", BOOLEAN, "Continue although dates have changed since; they keep these changes", default=False),
    DRY_RUN,
)
DATES_PARAMS: Final = (
    replace(ADD_DATES, name="add", description="Dates to add; one that was left out comes back with its event"),
    replace(REMOVE_DATES, name="remove", description="Dates to leave out; their events go to the trash"),
    DRY_RUN,
)
CONVERT_PARAMS: Final = (replace(RULE, required=True), ADD_DATES, REMOVE_DATES, DRY_RUN)
SPLIT_PARAMS: Final = (param("from", DATE_TIME, "The first date of the second series", required=True), DRY_RUN)
MERGE_PARAMS: Final = (
    param("series", params.integer(minimum=1), "The ID of the series whose dates are taken over", required=True),
    DRY_RUN,
)
DISSOLVE_PARAMS: Final = (
    param("keep", params.one_of(*KEPT), "The events that stay: all, upcoming ones, or the next one", default="all"),
    DRY_RUN,
)
FIELDS: Final = param("fields", params.several_of(*OWN_FIELDS), "The fields to reset; by default all")
OPTIONS: Final = (DRY_RUN, OVERRIDES, PAST)
EVENT_EDIT: Final = (*_edit_params(EVENTS), RULE, EVENT_SCOPE, *OPTIONS)
SERIES_EDIT: Final = (*_edit_params(EVENTS), RULE, SERIES_SCOPE, FROM, *OPTIONS)


def _write(
    methods: tuple[str, ...],
    operation: Operation,
    operation_id: str,
    values: tuple[Param, ...],
    *errors: ErrorCode,
    kind: Kind = SERIES,
) -> Endpoint:
    # An event's series can be in the trash even if the event is not.
    series_errors = (error_codes.SERIES_IN_TRASH,) if kind.is_event else ()
    own_errors = (error_codes.IN_TRASH, *series_errors, *errors)
    return Endpoint(
        methods, operation, kind, values, operation_id=operation_id, returns="SeriesEdit", errors=own_errors
    )


def _act(path: str, operation: Operation, operation_id: str, values: tuple[Param, ...], *errors: ErrorCode) -> Route:
    """Return a route for a write that is neither an update nor a deletion."""
    kind = EVENTS if path.startswith("/events/") else SERIES
    own_errors = (error_codes.SLOT_TAKEN, *errors)
    return Route(path, (_write(("POST",), operation, operation_id, values, *own_errors, kind=kind),))


CREATE: Final = Endpoint(
    ("POST",),
    create_series,
    SERIES,
    SERIES.fields,
    operation_id="createSeries",
    returns="Series",
    status=201,
    errors=(error_codes.SLOT_TAKEN,),
    requires_body=True,
)
PREVIEW: Final = Endpoint(
    ("POST",),
    preview_series,
    SERIES,
    _preview_params(),
    operation_id="previewSeries",
    returns="SeriesPreview",
    requires_body=True,
    has_etag=False,
    is_preview=True,
)
OCCURRENCES: Final = Endpoint(
    ("GET",),
    list_occurrences,
    SERIES,
    OCCURRENCE_PARAMS,
    operation_id="listOccurrences",
    returns="Occurrences",
    errors=(error_codes.NOT_ACCESSIBLE, error_codes.PROTECTED),
    has_etag=False,
)
EDIT_ERRORS: Final = (error_codes.OVERRIDES_LOST, error_codes.SLOT_TAKEN)
UNDO_ERRORS: Final = (error_codes.MISSING, error_codes.EXPIRED, error_codes.UNDO_CONFLICTS)
MISSING: Final = error_codes.MISSING
ROUTES: Final = (
    Route("/series", (make_list(SERIES), CREATE)),
    Route(
        r"/series/(?P<id>\d+)",
        (
            make_read(SERIES),
            _write(UPDATES, edit_series, "updateSeries", SERIES_EDIT, *EDIT_ERRORS),
            _write(("DELETE",), delete_series, "deleteSeries", (SERIES_SCOPE, FROM, DRY_RUN)),
        ),
    ),
    Route("/series/preview", (PREVIEW,)),
    Route(r"/series/(?P<id>\d+)/occurrences", (OCCURRENCES,)),
    _act(r"/series/(?P<id>\d+)/restore", restore_series, "restoreSeries", RESTORE_PARAMS, *UNDO_ERRORS),
    _act(r"/series/(?P<id>\d+)/dates", edit_dates, "changeDates", DATES_PARAMS, MISSING),
    _act(r"/events/(?P<id>\d+)/series", convert_event, "convertEvent", CONVERT_PARAMS),
    _act(r"/events/(?P<id>\d+)/detach", detach_event, "detachEvent", (DRY_RUN,), MISSING),
    _act(r"/events/(?P<id>\d+)/follow", follow_series, "followSeries", (FIELDS, DRY_RUN), MISSING),
    _act(r"/series/(?P<id>\d+)/split", split_series, "splitSeries", SPLIT_PARAMS),
    _act(r"/series/(?P<id>\d+)/merge", merge_series, "mergeSeries", MERGE_PARAMS),
    _act(r"/series/(?P<id>\d+)/dissolve", dissolve_series, "dissolveSeries", DISSOLVE_PARAMS),
    Route("/series/by-slug/(?P<slug>[^/]+)", (make_read(SERIES),)),
    Route(
        r"/events/(?P<id>\d+)",
        (
            _write(UPDATES, edit_event, "editEvent", EVENT_EDIT, *EDIT_ERRORS, kind=EVENTS),
            _write(("DELETE",), delete_event, "trashEvent", (EVENT_SCOPE, DRY_RUN), kind=EVENTS),
        ),
    ),
)
