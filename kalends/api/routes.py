"""The REST interface on one page: INTERFACE, which existing clients know, and EXTENSION, which Kalends adds."""

from typing import Final

from kalends.api import batch
from kalends.api.catalog import UPDATES, Endpoint, ErrorCode, Interface, Route
from kalends.api.description import errors
from kalends.api.description.headers import TOTAL_HEADERS
from kalends.api.description.operations import SUMMARIES
from kalends.api.description.schema_types import schema_name
from kalends.api.import_routes import make_import_routes
from kalends.api.series_routes import make_series_routes
from kalends.core import params
from kalends.core.params import Param, param
from kalends.http.table_files import FILE_TYPES
from kalends.kinds import KINDS, LOGGED_KINDS
from kalends.kinds.event_passwords import PASSWORD
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import PAGING, Kind
from kalends.kinds.media import MEDIA
from kalends.kinds.series import SERIES
from kalends.operations.changes import LINK_FILTERS, list_changes
from kalends.operations.exports import FORMATS, export_records
from kalends.operations.history import read_history, restore_record
from kalends.operations.imports.duplicates import CHECK, create_event, declare_different, update_event
from kalends.operations.media.records import create_media, delete_media
from kalends.operations.permissions import MIN_READER_ROLES
from kalends.operations.records import (
    create_record,
    delete_record,
    list_records,
    read_record,
    update_record,
)

ID: Final = param("id", params.integer(), "The ID of the record", required=True)
SLUG: Final = param("slug", params.text(str), "The slug of the record", required=True)
CONTEXT: Final = param("context", params.text(str), "edit returns a protected event in full to users who may edit it")
REVISION: Final = param(
    "revision", params.integer(), "Revision to restore; omit it to restore the record from the trash"
)
CHANGES_PER_PAGE: Final = param(
    "per_page", params.integer(minimum=1, maximum=500), "Maximum number of records", default=100
)
BEFORE: Final = param("before", params.integer(minimum=1), "Only changes before this revision, or a `next_before`")
CHANGES_PARAMS: Final = (
    param(
        "since",
        params.TOKEN,
        "Last revision the client has, or a `next_since`; 0 for a full sync",
        default="0",
    ),
    param("kind", params.one_of(*[kind.name for kind in LOGGED_KINDS]), "Only records of this kind"),
    CHANGES_PER_PAGE,
)
CHECK_DUPLICATES: Final = param(
    CHECK, params.BOOLEAN, "Whether to return stored events that may be the same", default=False, is_extension=True
)
OTHER: Final = param("other", params.integer(minimum=1), "The ID of the other event", required=True)
EXPORT_FORMAT: Final = param("format", params.one_of(*FORMATS), "The type of the file", default=FORMATS[0])
FORCE: Final = param(
    "force", params.BOOLEAN, "Remove the image from the records that use it, and delete it", default=False
)
# Only events can be protected by a password; a write cannot choose the context of its response.
EVENT_READ_PARAMS: Final = (PASSWORD, CONTEXT)
EVENT_WRITE_PARAMS: Final = (PASSWORD,)


def _routes() -> tuple[Route, ...]:
    rows: list[Route] = []
    for kind in KINDS:
        rows.append(Route(f"/{kind.name}", (_list(kind), _create(kind))))
        rows.append(Route(rf"/{kind.name}/(?P<id>\d+)", _record_endpoints(kind, ID)))
        if kind.is_post:
            rows.append(Route(f"/{kind.name}/by-slug/(?P<slug>[^/]+)", _record_endpoints(kind, SLUG)))
    return tuple(rows)


def _extension_routes() -> tuple[Route, ...]:
    rows: list[Route] = []
    for kind in LOGGED_KINDS:
        if kind.is_post:
            rows.append(Route(rf"/{kind.name}/(?P<id>\d+)/history", (_history(kind),)))
            if kind is not SERIES:
                rows.append(Route(rf"/{kind.name}/(?P<id>\d+)/restore", (_restore(kind),)))
    rows += [Route(f"/{kind.name}/export", (_export(kind),)) for kind in KINDS if kind.is_post]
    rows.append(Route("/media", (_list(MEDIA), _create_media())))
    rows.append(Route(r"/media/(?P<id>\d+)", (_read(MEDIA, ID), _delete_media(), _update(MEDIA, ID))))
    rows.append(Route(r"/events/(?P<id>\d+)/not-duplicates", (_declare_different(),)))
    rows += make_series_routes()
    rows += make_import_routes()
    rows.append(Route("/batch", (_batch(),)))
    rows.append(Route("/changes", (_changes(),)))
    return tuple(rows)


def _record_endpoints(kind: Kind, path_param: Param) -> tuple[Endpoint, ...]:
    return (_read(kind, path_param), _delete(kind, path_param), _update(kind, path_param))


# Operations on the records of a kind ---------------------------------------------------------


def _list(kind: Kind) -> Endpoint:
    operation_id = f"list{kind.name.capitalize()}"
    filters = tuple(row.param for row in kind.filters)
    return Endpoint(
        ("GET",),
        list_records,
        kind,
        (*PAGING, *filters, *(EVENT_READ_PARAMS if kind is EVENTS else ())),
        operation_id=operation_id,
        summary=SUMMARIES[operation_id],
        returns=f"{schema_name(kind)}List",
        errors=(*((errors.NO_PAGE,) if kind.is_post else ()), *_reader_errors(kind)),
        request_headers=("If-None-Match",),
        response_headers=(*TOTAL_HEADERS, "ETag"),
    )


def _export(kind: Kind) -> Endpoint:
    operation_id = f"export{kind.name.capitalize()}"
    filters = tuple(row.param for row in kind.filters if row.param.name != "cursor")
    return Endpoint(
        ("GET",),
        export_records,
        kind,
        (EXPORT_FORMAT, *filters, *((PASSWORD,) if kind is EVENTS else ())),
        operation_id=operation_id,
        summary=SUMMARIES[operation_id],
        returns="ExportedFile",
        file_types=tuple(FILE_TYPES.values()),
        response_headers=("Content-Disposition", "Content-Language"),
    )


def _create(kind: Kind) -> Endpoint:
    operation_id = f"create{schema_name(kind)}"
    return Endpoint(
        ("POST",),
        create_event if kind is EVENTS else create_record,
        kind,
        (*kind.fields, *((CHECK_DUPLICATES,) if kind is EVENTS else ())),
        operation_id=operation_id,
        summary=SUMMARIES[operation_id],
        returns=schema_name(kind),
        status=201,
        errors=(errors.MISSING, *_term_errors(kind)),
        response_headers=("ETag", "Location"),
        body_schema=f"{schema_name(kind)}New",
        requires_body=True,
        returns_existing=kind.is_shared,
    )


def _read(kind: Kind, path_param: Param) -> Endpoint:
    operation_id = f"read{schema_name(kind)}"
    post_errors = (errors.NOT_ACCESSIBLE,) if kind.is_post else ()
    event_errors = (errors.NO_LONGER, errors.PROTECTED) if kind is EVENTS else ()
    return Endpoint(
        ("GET",),
        read_record,
        kind,
        EVENT_READ_PARAMS if kind is EVENTS else (),
        (path_param,),
        operation_id=_with_slug(operation_id, path_param),
        summary=SUMMARIES[operation_id],
        returns=schema_name(kind),
        errors=(errors.NOT_FOUND, *post_errors, *event_errors, *_reader_errors(kind)),
        request_headers=("If-None-Match",),
        response_headers=("ETag",),
    )


def _update(kind: Kind, path_param: Param) -> Endpoint:
    operation_id = f"update{schema_name(kind)}"
    return Endpoint(
        UPDATES,
        update_event if kind is EVENTS else update_record,
        kind,
        (*kind.fields, *((*EVENT_WRITE_PARAMS, CHECK_DUPLICATES) if kind is EVENTS else ())),
        (path_param,),
        operation_id=_with_slug(operation_id, path_param),
        summary=SUMMARIES[operation_id],
        returns=schema_name(kind),
        errors=(errors.NOT_FOUND, *_term_errors(kind)),
        request_headers=("If-Match",),
        response_headers=("ETag",),
        body_schema=f"{schema_name(kind)}Changes",
    )


def _delete(kind: Kind, path_param: Param) -> Endpoint:
    operation_id = f"delete{schema_name(kind)}"
    return Endpoint(
        ("DELETE",),
        delete_record,
        kind,
        EVENT_WRITE_PARAMS if kind is EVENTS else (),
        (path_param,),
        operation_id=_with_slug(operation_id, path_param),
        summary=SUMMARIES[operation_id],
        returns=schema_name(kind),
        errors=(errors.NOT_FOUND, *((errors.IN_TRASH,) if kind.is_post else ())),
        request_headers=("If-Match",),
        response_headers=("ETag",),
    )


def _history(kind: Kind) -> Endpoint:
    operation_id = f"read{schema_name(kind)}History"
    return Endpoint(
        ("GET",),
        read_history,
        kind,
        (BEFORE, CHANGES_PER_PAGE),
        (ID,),
        operation_id=operation_id,
        summary=SUMMARIES[operation_id],
        returns="History",
        errors=(errors.NOT_FOUND, errors.SIGN_IN, errors.FORBIDDEN),
        request_headers=("If-Match",),
    )


def _restore(kind: Kind) -> Endpoint:
    operation_id = f"restore{schema_name(kind)}"
    return Endpoint(
        ("POST",),
        restore_record,
        kind,
        (REVISION,),
        (ID,),
        operation_id=operation_id,
        summary=SUMMARIES[operation_id],
        returns=schema_name(kind),
        errors=(errors.NOT_FOUND, errors.MISSING, errors.EXPIRED),
        request_headers=("If-Match",),
        response_headers=("ETag",),
    )


# Other operations ----------------------------------------------------------------------------


def _create_media() -> Endpoint:
    return Endpoint(
        ("POST",),
        create_media,
        MEDIA,
        MEDIA.fields,
        operation_id="createMedia",
        summary=SUMMARIES["createMedia"],
        returns="Media",
        status=201,
        errors=(errors.MISSING,),
        response_headers=("ETag", "Location"),
        accepts_file=True,
    )


def _delete_media() -> Endpoint:
    return Endpoint(
        ("DELETE",),
        delete_media,
        MEDIA,
        (FORCE,),
        (ID,),
        operation_id="deleteMedia",
        summary=SUMMARIES["deleteMedia"],
        returns="Media",
        errors=(errors.NOT_FOUND, errors.IN_USE),
        request_headers=("If-Match",),
        response_headers=("ETag",),
    )


def _declare_different() -> Endpoint:
    return Endpoint(
        ("POST",),
        declare_different,
        EVENTS,
        (OTHER,),
        (ID,),
        operation_id="declareDifferent",
        summary=SUMMARIES["declareDifferent"],
        returns="EventPair",
        errors=(errors.NOT_FOUND, errors.MISSING),
        request_headers=("If-Match",),
        requires_body=True,
    )


def _batch() -> Endpoint:
    return Endpoint(
        ("POST",),
        batch.run_batch,
        None,
        batch.make_params(INTERFACE, SERIES_INTERFACE),
        operation_id="runBatch",
        summary=SUMMARIES["runBatch"],
        returns="Results",
        errors=(errors.MISSING, errors.TOO_MANY, *errors.BATCH),
        response_headers=("ETag",),
    )


def _changes() -> Endpoint:
    link_filters = tuple(row.param for row in EVENTS.filters if row.param.name in LINK_FILTERS)
    return Endpoint(
        ("GET",),
        list_changes,
        None,
        (*CHANGES_PARAMS, *link_filters),
        operation_id="listChanges",
        summary=SUMMARIES["listChanges"],
        returns="Changes",
        errors=(errors.EXPIRED,),
    )


def _with_slug(operation_id: str, path_param: Param) -> str:
    return f"{operation_id}BySlug" if path_param is SLUG else operation_id


def _reader_errors(kind: Kind) -> tuple[ErrorCode, ...]:
    """Return the errors of a read that anonymous callers may not do."""
    return (errors.SIGN_IN, errors.FORBIDDEN) if kind.name in MIN_READER_ROLES else ()


def _term_errors(kind: Kind) -> tuple[ErrorCode, ...]:
    """Return the errors of a write that may repeat the name of a category or a tag."""
    return () if kind.is_post or kind.is_extension else (errors.TERM_EXISTS,)


ROUTES: Final = _routes()
INTERFACE: Final = Interface("calendar/events/v1", ROUTES)
# The routes of series, which a batch may call as well.
SERIES_INTERFACE: Final = Interface("kalends/v1", make_series_routes(), has_document=False)
EXTENSION: Final = Interface("kalends/v1", _extension_routes())
# The root of all namespaces, which has no routes.
ROOT: Final = Interface("", (), has_document=False)
