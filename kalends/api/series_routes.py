"""The routes of series in the extension of the API."""

from dataclasses import replace
from typing import Final

from kalends.api.catalog import UPDATES, Endpoint, ErrorCode, Operation, Route
from kalends.api.description import errors
from kalends.api.description.headers import TOTAL_HEADERS
from kalends.api.description.operations import SUMMARIES
from kalends.core import params
from kalends.core.date_forms import read_time_or_datetime
from kalends.core.params import BOOLEAN, DATE_TIME, Param, Type, param
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import PAGING, Kind
from kalends.kinds.series import ADD_DATES, REMOVE_DATES, RULE, SERIES, TIME_PARAMS
from kalends.operations.records import list_records, read_record
from kalends.operations.series.create import create_series
from kalends.operations.series.dates import edit_dates
from kalends.operations.series.division import KEPT, dissolve_series, merge_series, split_series
from kalends.operations.series.edit import ALL, FOLLOWING, THIS, delete_event, delete_series, edit_event, edit_series
from kalends.operations.series.membership import OWN_FIELDS, convert_event, detach_event, follow_series
from kalends.operations.series.occurrences import STATES, list_occurrences
from kalends.operations.series.preview import preview_series
from kalends.operations.series.undo import restore_series

ID: Final = param("id", params.integer(), "The ID of the record", required=True)
SLUG: Final = param("slug", params.text(str), "The slug of the record", required=True)
DRY_RUN: Final = param("dry_run", BOOLEAN, "Return the effect of the edit without writing anything", default=False)
OVERRIDES: Final = param(
    "overrides",
    params.one_of("keep", "replace"),
    "Whether the edit replaces fields that a date has of its own",
    default="keep",
)
PAST: Final = param("past", BOOLEAN, "Also change dates that have taken place", default=False)
FROM: Final = param("from", DATE_TIME, "The date from which on the edit applies; required for `scope=following`")
EVENT_SCOPE: Final = param(
    "scope", params.one_of(THIS, FOLLOWING, ALL), "This date alone, this and the following ones, or all", default=THIS
)
SERIES_SCOPE: Final = param(
    "scope", params.one_of(ALL, FOLLOWING), "All dates, or the dates from `from` on", default=ALL
)
MOMENT: Final = Type(DATE_TIME.schema, read_time_or_datetime)


def _edit_params(kind: Kind) -> tuple[Param, ...]:
    """Return the parameters of an edit; with a scope, a time without a date means the day of each date."""
    moments = {
        "start_date": "The start, in the event's time zone; a time alone keeps the day",
        "end_date": "The end, in the event's time zone; a time alone keeps the day",
    }
    fields = tuple(
        param(field.name, MOMENT, moments[field.name]) if field.name in moments else field for field in kind.fields
    )
    return tuple(field for field in fields if field.name not in ("rule", "add_dates", "remove_dates"))


def _preview_params() -> tuple[Param, ...]:
    """Return the parameters that determine the dates of a new series; the end is that of the start by default."""
    fields = [field for field in EVENTS.fields if field.name in TIME_PARAMS]
    return (*[replace(field, required=field.name == "start_date") for field in fields], RULE, ADD_DATES, REMOVE_DATES)


OCCURRENCE_PARAMS: Final = (
    param("from", DATE_TIME, "Dates from this slot on, in the time zone of the series"),
    param("to", DATE_TIME, "Dates up to this slot; a day without a time is included"),
    param(
        "state",
        params.several_of(*STATES),
        "Dates that exist as events, that are left out, or that are still to be created; by default all",
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
FIELDS: Final = param("fields", params.several_of(*OWN_FIELDS), "The fields to give up; by default all")
OPTIONS: Final = (DRY_RUN, OVERRIDES, PAST)
EVENT_EDIT: Final = (*_edit_params(EVENTS), RULE, EVENT_SCOPE, *OPTIONS)
SERIES_EDIT: Final = (*_edit_params(EVENTS), RULE, SERIES_SCOPE, FROM, *OPTIONS)


def make_series_routes() -> tuple[Route, ...]:
    return (
        Route("/series", (_read(list_records, "listSeries", "SeriesList", PAGING), _create())),
        Route(r"/series/(?P<id>\d+)", (_read_one("readSeries", ID), _edit("updateSeries", edit_series, SERIES_EDIT),
                                       _delete("deleteSeries", delete_series, (SERIES_SCOPE, FROM, DRY_RUN)))),
        Route("/series/preview", (_preview(),)),
        Route(r"/series/(?P<id>\d+)/occurrences", (_occurrences(),)),
        Route(r"/series/(?P<id>\d+)/restore", (_restore(),)),
        Route(r"/series/(?P<id>\d+)/dates", (_action("changeDates", edit_dates, DATES_PARAMS, (errors.MISSING,)),)),
        Route(r"/events/(?P<id>\d+)/series", (_event_action("convertEvent", convert_event, CONVERT_PARAMS),)),
        Route(r"/events/(?P<id>\d+)/detach", (_event_action("detachEvent", detach_event, (DRY_RUN,)),)),
        Route(r"/events/(?P<id>\d+)/follow", (_event_action("followSeries", follow_series, (FIELDS, DRY_RUN)),)),
        Route(r"/series/(?P<id>\d+)/split", (_action("splitSeries", split_series, SPLIT_PARAMS, (errors.MISSING,)),)),
        Route(r"/series/(?P<id>\d+)/merge", (_action("mergeSeries", merge_series, MERGE_PARAMS, (errors.MISSING,)),)),
        Route(r"/series/(?P<id>\d+)/dissolve", (_action("dissolveSeries", dissolve_series, DISSOLVE_PARAMS),)),
        Route("/series/by-slug/(?P<slug>[^/]+)", (_read_one("readSeriesBySlug", SLUG),)),
        Route(
            r"/events/(?P<id>\d+)",
            (
                _edit("editEvent", edit_event, EVENT_EDIT, EVENTS),
                _delete("trashEvent", delete_event, (EVENT_SCOPE, DRY_RUN), EVENTS),
            ),
        ),
    )  # fmt: skip


def _read(operation: Operation, operation_id: str, returns: str, paging: tuple[Param, ...]) -> Endpoint:
    return Endpoint(
        ("GET",),
        operation,
        SERIES,
        (*paging, *[row.param for row in SERIES.filters]),
        operation_id=operation_id,
        summary=SUMMARIES[operation_id],
        returns=returns,
        errors=(errors.NO_PAGE,),
        request_headers=("If-None-Match",),
        response_headers=(*TOTAL_HEADERS, "ETag"),
    )


def _read_one(operation_id: str, path_param: Param) -> Endpoint:
    return Endpoint(
        ("GET",),
        read_record,
        SERIES,
        (),
        (path_param,),
        operation_id=operation_id,
        summary=SUMMARIES["readSeries"],
        returns="Series",
        errors=(errors.NOT_FOUND, errors.NOT_ACCESSIBLE),
        request_headers=("If-None-Match",),
        response_headers=("ETag",),
    )


def _create() -> Endpoint:
    return Endpoint(
        ("POST",),
        create_series,
        SERIES,
        SERIES.fields,
        operation_id="createSeries",
        summary=SUMMARIES["createSeries"],
        returns="Series",
        status=201,
        errors=(errors.MISSING, errors.SLOT_TAKEN),
        response_headers=("ETag", "Location"),
        requires_body=True,
    )


def _preview() -> Endpoint:
    return Endpoint(
        ("POST",),
        preview_series,
        SERIES,
        _preview_params(),
        operation_id="previewSeries",
        summary=SUMMARIES["previewSeries"],
        returns="SeriesPreview",
        errors=(errors.MISSING,),
        requires_body=True,
        is_preview=True,
    )


def _occurrences() -> Endpoint:
    return Endpoint(
        ("GET",),
        list_occurrences,
        SERIES,
        OCCURRENCE_PARAMS,
        (ID,),
        operation_id="listOccurrences",
        summary=SUMMARIES["listOccurrences"],
        returns="Occurrences",
        errors=(errors.NOT_FOUND, errors.NOT_ACCESSIBLE, errors.PROTECTED),
    )


def _restore() -> Endpoint:
    return _action(
        "restoreSeries", restore_series, RESTORE_PARAMS, (errors.MISSING, errors.EXPIRED, errors.UNDO_CONFLICTS)
    )


def _action(
    operation_id: str,
    operation: Operation,
    values: tuple[Param, ...],
    further_errors: tuple[ErrorCode, ...] = (),
    kind: Kind = SERIES,
) -> Endpoint:
    """Return the endpoint of a write that is neither an update nor a deletion."""
    return _write(
        ("POST",), operation_id, operation, kind, values, further_errors=(errors.SLOT_TAKEN, *further_errors)
    )


def _event_action(operation_id: str, operation: Operation, values: tuple[Param, ...]) -> Endpoint:
    return _action(operation_id, operation, values, (errors.MISSING,), EVENTS)


def _edit(operation_id: str, operation: Operation, values: tuple[Param, ...], kind: Kind = SERIES) -> Endpoint:
    further_errors = (errors.OVERRIDES_LOST, errors.SLOT_TAKEN)
    return _write(UPDATES, operation_id, operation, kind, values, further_errors=further_errors)


def _delete(operation_id: str, operation: Operation, values: tuple[Param, ...], kind: Kind = SERIES) -> Endpoint:
    return _write(("DELETE",), operation_id, operation, kind, values)


def _write(
    methods: tuple[str, ...],
    operation_id: str,
    operation: Operation,
    kind: Kind,
    values: tuple[Param, ...],
    *,
    further_errors: tuple[ErrorCode, ...] = (),
) -> Endpoint:
    # The series of an event may be in the trash although the event is not.
    series_errors = (errors.SERIES_IN_TRASH,) if kind.is_event else ()
    return Endpoint(
        methods,
        operation,
        kind,
        values,
        (ID,),
        operation_id=operation_id,
        summary=SUMMARIES[operation_id],
        returns="SeriesEdit",
        errors=(errors.NOT_FOUND, errors.IN_TRASH, *series_errors, *further_errors),
        request_headers=("If-Match",),
        response_headers=("ETag",),
    )
