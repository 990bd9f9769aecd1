"""The whole interface on one page: INTERFACE, which existing clients know, and EXTENSION, which is ours."""

from typing import Final

from kalends.api.batch import PARAMS as BATCH_PARAMS
from kalends.api.batch import run_batch
from kalends.api.catalog import UPDATES, Endpoint, Interface, Route
from kalends.core import params
from kalends.core.params import Param, param
from kalends.kinds import KINDS
from kalends.kinds.event_passwords import PASSWORD
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import PAGING, Kind
from kalends.kinds.media import MEDIA
from kalends.operations.changes import LINK_FILTERS, list_changes
from kalends.operations.history import read_history, restore_record
from kalends.operations.media.records import create_media, delete_media
from kalends.operations.records import (
    create_record,
    delete_record,
    list_records,
    read_record,
    update_record,
)

ID: Final = param("id", params.integer(), "The ID of the record", required=True)
SLUG: Final = param("slug", params.text(str), "The slug of the record", required=True)
CONTEXT: Final = param("context", params.text(str), "edit shows a protected event to those who may edit it")
REVISION: Final = param("revision", params.integer(), "The revision to go back to; none: out of the trash")
CHANGES_PER_PAGE: Final = param(
    "per_page", params.integer(minimum=1, maximum=500), "The number of records at the most", default=100
)
BEFORE: Final = param(
    "before", params.integer(minimum=1), "Only what is older than this revision, or a `next_before`"
)
CHANGES_PARAMS: Final = (
    param(
        "since",
        params.TOKEN,
        "The revision up to which the caller knows, or a `next_since`; 0 is nothing",
        default="0",
    ),
    param("kind", params.one_of(*[kind.name for kind in KINDS]), "Only records of this kind"),
    CHANGES_PER_PAGE,
)
FORCE: Final = param(
    "force", params.BOOLEAN, "Take the image away from the records that show it, and remove it", default=False
)


def _collection(kind: Kind) -> Route:
    filters = tuple(row.param for row in kind.filters) + _password_params(kind)
    return Route(
        f"/{kind.name}",
        (
            Endpoint(("GET",), list_records, kind, (*PAGING, *filters)),
            Endpoint(("POST",), create_record, kind, kind.fields),
        ),
    )


def _item(kind: Kind, pattern: str, path_param: Param) -> Route:
    return Route(
        f"/{kind.name}/{pattern}",
        (
            Endpoint(("GET",), read_record, kind, _password_params(kind), (path_param,)),
            Endpoint(("DELETE",), delete_record, kind, _password_params(kind)[:1], (path_param,)),
            Endpoint(UPDATES, update_record, kind, (*kind.fields, *_password_params(kind)[:1]), (path_param,)),
        ),
    )


def _password_params(kind: Kind) -> tuple[Param, ...]:
    """Only events can be protected by a password."""
    return (PASSWORD, CONTEXT) if kind.is_event else ()


def _routes() -> tuple[Route, ...]:
    rows: list[Route] = []
    for kind in KINDS:
        rows.append(_collection(kind))
        rows.append(_item(kind, r"(?P<id>\d+)", ID))
        if kind.is_post:
            rows.append(_item(kind, r"by-slug/(?P<slug>[^/]+)", SLUG))
    return tuple(rows)


def _extension_routes() -> tuple[Route, ...]:
    """Not in the interface: history and restoring of posts, images, batches, what changed since a revision."""
    rows: list[Route] = []
    for kind in KINDS:
        if kind.is_post:
            item = rf"/{kind.name}/(?P<id>\d+)"
            rows.append(
                Route(f"{item}/history", (Endpoint(("GET",), read_history, kind, (BEFORE, CHANGES_PER_PAGE), (ID,)),))
            )
            rows.append(Route(f"{item}/restore", (Endpoint(("POST",), restore_record, kind, (REVISION,), (ID,)),)))
    link_filters = tuple(row.param for row in EVENTS.filters if row.param.name in LINK_FILTERS)
    rows += _media_routes()
    rows.append(Route("/batch", (Endpoint(("POST",), run_batch, None, BATCH_PARAMS),)))
    rows.append(Route("/changes", (Endpoint(("GET",), list_changes, None, (*CHANGES_PARAMS, *link_filters)),)))
    return tuple(rows)


def _media_routes() -> tuple[Route, ...]:
    filters = tuple(row.param for row in MEDIA.filters)
    return (
        Route(
            "/media",
            (
                Endpoint(("GET",), list_records, MEDIA, (*PAGING, *filters)),
                Endpoint(("POST",), create_media, MEDIA, MEDIA.fields, accepts_file=True),
            ),
        ),
        Route(
            r"/media/(?P<id>\d+)",
            (
                Endpoint(("GET",), read_record, MEDIA, (), (ID,)),
                Endpoint(("DELETE",), delete_media, MEDIA, (FORCE,), (ID,)),
                Endpoint(UPDATES, update_record, MEDIA, MEDIA.fields, (ID,)),
            ),
        ),
    )


ROUTES: Final = _routes()
INTERFACE: Final = Interface("calendar/events/v1", ROUTES)
EXTENSION: Final = Interface("kalends/v1", _extension_routes())
