"""The whole interface on one page: INTERFACE, which existing clients know, and EXTENSION, which is ours."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from kalends.core import params
from kalends.core.params import Param, param
from kalends.kinds import KINDS
from kalends.kinds.events import EVENTS
from kalends.kinds.kind import Kind
from kalends.kinds.media import MEDIA
from kalends.operations.call import Call, Outcome
from kalends.operations.changes import LINK_FILTERS, list_changes
from kalends.operations.history import read_history, restore_record
from kalends.operations.media import create_media, delete_media
from kalends.operations.records import (
    create_record,
    delete_record,
    list_records,
    read_record,
    update_record,
)
from kalends.web.batch import PARAMS as BATCH_PARAMS
from kalends.web.batch import run_batch

UPDATES: Final = ("POST", "PUT", "PATCH")
ID: Final = param("id", params.integer(), "The ID of the record", required=True)
SLUG: Final = param("slug", params.text(str), "The slug of the record", required=True)
PAGING: Final = (
    param("page", params.integer(least=1), "The page of the list to return", default=1),
    param("per_page", params.integer(least=1), "The number of records per page", default=12),
)
CONTEXT: Final = param("context", params.text(str), "edit shows a protected event to those who may edit it")
REVISION: Final = param("revision", params.integer(), "The revision to go back to; none: out of the trash")
MOST: Final = param("per_page", params.integer(least=1, most=500), "The number of records at the most", default=100)
BEFORE: Final = param("before", params.integer(least=1), "Only what is older than this revision, or a `next_before`")
SINCE: Final = (
    param(
        "since",
        params.TOKEN,
        "The revision up to which the caller knows, or a `next_since`; 0 is nothing",
        default="0",
    ),
    param("kind", params.one_of(*[kind.name for kind in KINDS]), "Only records of this kind"),
    MOST,
)
FORCE: Final = param(
    "force", params.SWITCH, "Take the image away from the records that show it, and remove it", default=False
)
PASSWORD: Final = param("password", params.PASSWORD, "The event password")

Operation = Callable[[Any, Call], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One operation on a path, with the methods that mean it and the parameters it takes."""

    methods: tuple[str, ...]
    operation: Operation
    kind: Kind | None  # None: the operation is about all kinds
    params: tuple[Param, ...] = ()
    path_params: tuple[Param, ...] = ()
    takes_file: bool = False

    @property
    def writes(self) -> bool:
        return self.methods != ("GET",)

    @property
    def updates(self) -> bool:
        return self.methods == UPDATES


@dataclass(frozen=True, slots=True)
class Route:
    pattern: str
    endpoints: tuple[Endpoint, ...]
    known_names: frozenset[str] = field(init=False)  # the parameters that a read takes

    def __post_init__(self) -> None:
        read = self.endpoint("GET")
        names = [param.name for param in read.params] if read else []
        object.__setattr__(self, "known_names", frozenset(names))

    @property
    def methods(self) -> list[str]:
        return [method for endpoint in self.endpoints for method in endpoint.methods]

    def endpoint(self, method: str) -> Endpoint | None:
        return next((e for e in self.endpoints if method in e.methods), None)


def _collection(kind: Kind) -> Route:
    filters = tuple(row.param for row in kind.filters) + _protection(kind)
    return Route(
        f"/{kind.name}",
        (
            Endpoint(("GET",), list_records, kind, (*PAGING, *filters)),
            Endpoint(("POST",), create_record, kind, kind.fields),
        ),
    )


def _item(kind: Kind, pattern: str, address: Param) -> Route:
    return Route(
        f"/{kind.name}/{pattern}",
        (
            Endpoint(("GET",), read_record, kind, _protection(kind), (address,)),
            Endpoint(("DELETE",), delete_record, kind, _protection(kind)[:1], (address,)),
            Endpoint(UPDATES, update_record, kind, (*kind.fields, *_protection(kind)[:1]), (address,)),
        ),
    )


def _protection(kind: Kind) -> tuple[Param, ...]:
    """Only events can be protected by a password."""
    return (PASSWORD, CONTEXT) if kind.name == "events" else ()


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
            rows.append(Route(f"{item}/history", (Endpoint(("GET",), read_history, kind, (BEFORE, MOST), (ID,)),)))
            rows.append(Route(f"{item}/restore", (Endpoint(("POST",), restore_record, kind, (REVISION,), (ID,)),)))
    link_filters = tuple(row.param for row in EVENTS.filters if row.param.name in LINK_FILTERS)
    rows += _media_routes()
    rows.append(Route("/batch", (Endpoint(("POST",), run_batch, None, BATCH_PARAMS),)))
    rows.append(Route("/changes", (Endpoint(("GET",), list_changes, None, (*SINCE, *link_filters)),)))
    return tuple(rows)


def _media_routes() -> tuple[Route, ...]:
    filters = tuple(row.param for row in MEDIA.filters)
    return (
        Route(
            "/media",
            (
                Endpoint(("GET",), list_records, MEDIA, (*PAGING, *filters)),
                Endpoint(("POST",), create_media, MEDIA, MEDIA.fields, takes_file=True),
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


def locate(address: dict[str, str]) -> tuple[int | None, str | None]:
    """The ID or the slug that a path names. Zeros in front do not count, and a number beyond any ID is 0."""
    if "id" not in address:
        return None, address.get("slug")
    digits = address["id"].lstrip("0") or "0"
    return (int(digits) if len(digits) < 17 else 0), None


@dataclass(frozen=True, slots=True)
class Interface:
    """A namespace and its routes."""

    namespace: str
    routes: tuple[Route, ...]

    def find(self, path: str) -> tuple[Route, dict[str, str]] | None:
        """The route of a path below the namespace, and what its pattern found."""
        for route in self.routes:
            match = re.fullmatch(route.pattern, path, re.IGNORECASE | re.ASCII)
            if match:
                return route, match.groupdict()
        return None


ROUTES: Final = _routes()
INTERFACE: Final = Interface("calendar/events/v1", ROUTES)
EXTENSION: Final = Interface("kalends/v1", _extension_routes())
