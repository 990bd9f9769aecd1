"""Routes for events, venues, organizers, categories and tags, their history and changes."""

from typing import Final

from kalends.api.description import error_codes
from kalends.api.description.schema_types import schema_name
from kalends.api.record_routes import make_create, make_delete, make_list, make_read, make_update
from kalends.calendar.kinds import KINDS, LOGGED_KINDS
from kalends.calendar.kinds.events import EVENTS
from kalends.calendar.kinds.kind import Kind
from kalends.calendar.kinds.series_kind import SERIES
from kalends.calendar.operations.changes import LINK_FILTERS, list_changes
from kalends.calendar.operations.duplicates import declare_different
from kalends.calendar.operations.record_history import read_history, restore_record
from kalends.core import params
from kalends.core.params import param
from kalends.http.router import Endpoint, Route

REVISION: Final = param(
    "revision", params.integer(), "Revision to restore; omit it to restore the record from the trash"
)
CHANGES_PER_PAGE: Final = param(
    "per_page", params.integer(minimum=1, maximum=500), "Maximum number of records", default=100
)
BEFORE: Final = param("before", params.integer(minimum=1), "Only changes before this revision, or a `next_before`")
CHANGES_PARAMS: Final = (
    param("since", params.TOKEN, "Last revision the client has, or a `next_since`; 0 for a full sync", default="0"),
    param("kind", params.one_of(*[kind.name for kind in LOGGED_KINDS]), "Only records of this kind"),
    CHANGES_PER_PAGE,
    *[row.param for row in EVENTS.filters if row.param.name in LINK_FILTERS],
)
OTHER: Final = param("other", params.integer(minimum=1), "The ID of the other event", required=True)


def _make_routes(kind: Kind) -> list[Route]:
    of_one = (make_read(kind), make_delete(kind), make_update(kind))
    rows = [Route(f"/{kind.name}", (make_list(kind), make_create(kind))), Route(rf"/{kind.name}/(?P<id>\d+)", of_one)]
    return [*rows, Route(f"/{kind.name}/by-slug/(?P<slug>[^/]+)", of_one)] if kind.is_post else rows


def _make_history_routes(kind: Kind) -> list[Route]:
    name = schema_name(kind)
    history = Endpoint(
        ("GET",),
        read_history,
        kind,
        (BEFORE, CHANGES_PER_PAGE),
        operation_id=f"read{name}History",
        returns="History",
        errors=(error_codes.SIGN_IN, error_codes.FORBIDDEN),
        request_headers=("If-Match",),
        has_etag=False,
    )
    errors = (error_codes.MISSING, error_codes.EXPIRED)
    restore = Endpoint(
        ("POST",), restore_record, kind, (REVISION,), operation_id=f"restore{name}", returns=name, errors=errors
    )
    rows = [Route(rf"/{kind.name}/(?P<id>\d+)/history", (history,))]
    # For series, the series package defines this route.
    return [*rows, Route(rf"/{kind.name}/(?P<id>\d+)/restore", (restore,))] if kind is not SERIES else rows


DECLARE_DIFFERENT: Final = Endpoint(
    ("POST",),
    declare_different,
    EVENTS,
    (OTHER,),
    operation_id="declareDifferent",
    returns="EventPair",
    requires_body=True,
    has_etag=False,
)
LIST_CHANGES: Final = Endpoint(
    ("GET",),
    list_changes,
    None,
    CHANGES_PARAMS,
    operation_id="listChanges",
    returns="Changes",
    errors=(error_codes.EXPIRED, error_codes.TOO_MANY_STREAMS),
    has_etag=False,
)
ROUTES: Final = tuple(row for kind in KINDS for row in _make_routes(kind))
HISTORY_ROUTES: Final = tuple(row for kind in LOGGED_KINDS if kind.is_post for row in _make_history_routes(kind))
PAIR_ROUTE: Final = Route(r"/events/(?P<id>\d+)/not-duplicates", (DECLARE_DIFFERENT,))
CHANGES_ROUTE: Final = Route("/changes", (LIST_CHANGES,))
