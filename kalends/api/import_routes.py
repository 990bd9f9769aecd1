"""The routes of imports in the extension of the API."""

from typing import Final

from kalends.api.catalog import UPDATES, Endpoint, ErrorCode, Operation, Route
from kalends.api.description import errors
from kalends.api.description.operations import SUMMARIES
from kalends.core import params
from kalends.core.params import Param, param
from kalends.operations.import_requests import fields, runs, sources
from kalends.operations.permissions import EDITOR

ID: Final = param("id", params.integer(), "The ID of the source or run", required=True)
READ_ERRORS: Final = (errors.SIGN_IN, errors.FORBIDDEN)


def make_import_routes() -> tuple[Route, ...]:
    return (
        Route("/imports/sources", (_read("listImportSources", sources.list_sources, "ImportSources"), _create())),
        Route(
            r"/imports/sources/(?P<id>\d+)",
            (_read("readImportSource", sources.read_source, "ImportSource", path=(ID,)), _delete(), _update()),
        ),
        Route(r"/imports/sources/(?P<id>\d+)/runs", (_start(),)),
        Route("/imports/runs", (_read("listImportRuns", runs.list_runs, "ImportRuns", RUN_PARAMS),)),
        Route(r"/imports/runs/(?P<id>\d+)", (_read("readImportRun", runs.read_run, "ImportRun", path=(ID,)),)),
        Route(
            r"/imports/runs/(?P<id>\d+)/rows",
            (_read("listImportRows", runs.list_rows, "ImportRows", ROW_PARAMS, path=(ID,)),),
        ),
        Route(r"/imports/runs/(?P<id>\d+)/apply", (_action("applyImport", runs.apply_run, APPLY_PARAMS),)),
        Route(r"/imports/runs/(?P<id>\d+)/undo", (_action("undoImport", runs.undo_run, status=201),)),
        Route(r"/imports/runs/(?P<id>\d+)/decide", (_action("decideImportRow", runs.decide_row, DECIDE_PARAMS),)),
        Route(r"/imports/runs/(?P<id>\d+)/discard", (_action("discardImport", runs.discard_run),)),
    )


RUN_PARAMS: Final = (fields.SOURCE, fields.BEFORE, fields.RUNS_PER_PAGE)
ROW_PARAMS: Final = (fields.ACTION, fields.STATE, fields.CURSOR, fields.ROWS_PER_PAGE)
APPLY_PARAMS: Final = (fields.ROWS, fields.ACTION, fields.CONFIRM)
DECIDE_PARAMS: Final = (fields.ROW, fields.SAME)


def _read(
    operation_id: str,
    operation: Operation,
    returns: str,
    values: tuple[Param, ...] = (),
    path: tuple[Param, ...] = (),
) -> Endpoint:
    return Endpoint(
        ("GET",),
        operation,
        None,
        values,
        path,
        operation_id=operation_id,
        summary=SUMMARIES[operation_id],
        returns=returns,
        errors=(*READ_ERRORS, *((errors.IMPORT_NOT_FOUND,) if path else ())),
        min_role=EDITOR,
    )


def _create() -> Endpoint:
    return Endpoint(
        ("POST",),
        sources.create_source,
        None,
        fields.NEW,
        operation_id="createImportSource",
        summary=SUMMARIES["createImportSource"],
        returns="ImportSource",
        status=201,
        errors=(errors.MISSING,),
        response_headers=("Location",),
        requires_body=True,
        min_role=EDITOR,
    )


def _update() -> Endpoint:
    return Endpoint(
        UPDATES,
        sources.update_source,
        None,
        fields.CHANGES,
        (ID,),
        operation_id="updateImportSource",
        summary=SUMMARIES["updateImportSource"],
        returns="ImportSource",
        errors=(errors.IMPORT_NOT_FOUND, errors.IMPORT_BY_COMMAND),
        min_role=EDITOR,
    )


def _delete() -> Endpoint:
    return Endpoint(
        ("DELETE",),
        sources.delete_source,
        None,
        (),
        (ID,),
        operation_id="deleteImportSource",
        summary=SUMMARIES["deleteImportSource"],
        returns="ImportSource",
        errors=(errors.IMPORT_NOT_FOUND, errors.IMPORT_BUSY, errors.IMPORT_BY_COMMAND),
        min_role=EDITOR,
    )


def _start() -> Endpoint:
    return Endpoint(
        ("POST",),
        runs.start_run,
        None,
        (fields.APPLY,),
        (ID,),
        operation_id="startImport",
        summary=SUMMARIES["startImport"],
        returns="ImportRun",
        status=201,
        errors=(errors.IMPORT_NOT_FOUND, errors.MISSING, errors.IMPORT_BUSY, errors.IMPORT_BY_COMMAND),
        response_headers=("Location",),
        accepts_input=True,
        min_role=EDITOR,
    )


def _action(
    operation_id: str, operation: Operation, values: tuple[Param, ...] = (), *, status: int = 200
) -> Endpoint:
    """Return the endpoint of an action on a run; one with the status 201 makes another run."""
    further: tuple[ErrorCode, ...] = (errors.IMPORT_BUSY,) if operation is not runs.discard_run else ()
    further += (errors.MISSING,) if any(value.required for value in values) else ()
    further += (errors.EXPIRED,) if operation is runs.undo_run else ()
    further += (errors.IMPORT_UNCONFIRMED,) if operation is runs.apply_run else ()
    return Endpoint(
        ("POST",),
        operation,
        None,
        values,
        (ID,),
        operation_id=operation_id,
        summary=SUMMARIES[operation_id],
        returns="ImportRun",
        status=status,
        errors=(errors.IMPORT_NOT_FOUND, errors.IMPORT_STATE, *further),
        response_headers=("Location",) if status == 201 else (),
        min_role=EDITOR,
    )
