"""Route tables: error codes, endpoints, routes and the interfaces that group them."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Final, Protocol

from starlette.responses import Response

from kalends.calendar.access.operation_context import OperationContext, Outcome
from kalends.calendar.kinds.kind import Kind
from kalends.core import errors, params
from kalends.core.params import Param, param, read_list, read_params
from kalends.http.bodies import Corrections
from kalends.store.sites import Site

UPDATES: Final = ("POST", "PUT", "PATCH")
# A number with more digits exceeds every ID in the database.
MAX_ID_DIGITS: Final = 16
# Maximum number of names in `_fields`.
MAX_FIELDS: Final = 100
ID: Final = param("id", params.integer(), "The ID of the record", required=True)
SLUG: Final = param("slug", params.text(str), "The slug of the record", required=True)
Operation = Callable[[Any, OperationContext], Awaitable[Outcome]]
# Reads the request body for an endpoint.
ReadInput = Callable[[Any, Any, Site], Awaitable[Any]]
Respond = Callable[[Outcome, str], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """An error code with its HTTP status. In `code`, * stands for a kind's singular name."""

    status: int
    code: str
    when: str

    def for_kind(self, kind: Kind | None) -> str:
        return self.code.replace("*", kind.singular if kind else "")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An operation on a path: the methods that call it, its parameters and its description.

    `api/description` adds the summary, and the errors and headers that the method, path or kind implies.
    """

    methods: tuple[str, ...]
    operation: Operation
    kind: Kind | None  # None if the operation covers all kinds
    params: tuple[Param, ...] = ()
    _: KW_ONLY
    operation_id: str = ""  # empty if the operation is not documented
    returns: str = ""  # name of the response schema
    status: int = 200
    errors: tuple[ErrorCode, ...] = ()
    path_params: tuple[Param, ...] = ()  # set by the route unless given
    has_etag: bool = True
    request_headers: tuple[str, ...] = ()  # in addition to headers implied by the method
    body_schema: str = ""  # name of the request schema; if empty, `params` are described inline
    requires_body: bool = False
    returns_existing: bool = False  # whether creating a duplicate returns the published record with status 200
    accepts_file: bool = False
    accepts_input: bool = False  # whether a form may contain an import file
    read_input: ReadInput | None = None  # reads the body; if None, the body contains parameters
    respond: Respond | None = None  # makes the response if the outcome is a file
    min_role: int = 0  # minimum role of callers, unless the kind determines it
    accepts_proposals: bool = False  # whether passwords with `may_propose` may call it
    file_types: tuple[str, ...] = ()  # content types of a file response
    is_preview: bool = False  # takes a write's parameters, but only reads, without locking the site

    @property
    def is_write(self) -> bool:
        return self.methods != ("GET",)

    @property
    def is_update(self) -> bool:
        return self.methods == UPDATES

    @property
    def is_list(self) -> bool:
        return any(row.name == "page" for row in self.params)

    def read_params(self, values: dict[str, Any]) -> dict[str, Any]:
        """Read the operation's parameters; raise if `_fields` has too many names."""
        if len(read_list(values.get("_fields", []))) > MAX_FIELDS:
            raise errors.invalid("_fields", "must have at most {limit} names.", limit=MAX_FIELDS)
        return read_params(self.params, values, update=self.is_update)

    @property
    def accepts_if_match(self) -> bool:
        return self.is_write and self.kind is not None and bool(self.path_params)


@dataclass(frozen=True, slots=True)
class Route:
    """A path pattern below the namespace, and its endpoints."""

    pattern: str
    endpoints: tuple[Endpoint, ...]
    known_names: frozenset[str] = field(init=False)  # parameter names of the GET endpoint
    corrections: Corrections = field(init=False)  # functions that correct invalid values, by parameter

    def __post_init__(self) -> None:
        path_params = tuple(row for row in (ID, SLUG) if f"(?P<{row.name}>" in self.pattern)
        endpoints = [row if row.path_params else replace(row, path_params=path_params) for row in self.endpoints]
        object.__setattr__(self, "endpoints", tuple(endpoints))
        read_endpoint = self.endpoint("GET")
        params = read_endpoint.params if read_endpoint else ()
        object.__setattr__(self, "known_names", frozenset(param.name for param in params))
        corrections = {param.name: param.type.correct for param in params if param.type.correct is not None}
        object.__setattr__(self, "corrections", corrections)

    @property
    def methods(self) -> list[str]:
        return [method for endpoint in self.endpoints for method in endpoint.methods]

    @property
    def tag(self) -> str:
        """Return the first path segment. The API description groups operations by it."""
        return self.pattern.split("/")[1]

    def endpoint(self, method: str) -> Endpoint | None:
        return next((e for e in self.endpoints if method in e.methods), None)


def locate(path_params: dict[str, str]) -> tuple[int | None, str | None]:
    """Return the ID or slug in a path. Ignore leading zeros. Return 0 for a number that is too large for an ID.

    The UUID of a proposal takes the place of a slug.
    """
    if "id" not in path_params:
        return None, path_params.get("slug")
    if not path_params["id"].isdecimal():
        return None, path_params["id"].lower()
    digits = path_params["id"].lstrip("0") or "0"
    return (int(digits) if len(digits) <= MAX_ID_DIGITS else 0), None


class HasPattern(Protocol):
    @property
    def pattern(self) -> str: ...


class Router[R: HasPattern]:
    """Finds the first route whose pattern matches a path."""

    def __init__(self, routes: Iterable[R], flags: re.RegexFlag = re.ASCII) -> None:
        self.routes: Final = tuple(routes)
        self._rows: Final = [(re.compile(row.pattern, flags).fullmatch, row) for row in self.routes]

    def find(self, path: str) -> tuple[R, dict[str, str]] | None:
        """Return the matching route and its path parameters, or None."""
        for match, route in self._rows:
            if (found := match(path)) is not None:
                return route, {name: value for name, value in found.groupdict().items() if value is not None}
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Interface:
    namespace: str
    routes: tuple[Route, ...]
    has_document: bool = True  # whether the interface has an OpenAPI document at /doc
    schemas: Mapping[str, Any] = field(default_factory=dict[str, Any])  # additional schemas for the OpenAPI document

    router: Router[Route] = field(init=False)  # matches paths below the namespace

    def __post_init__(self) -> None:
        object.__setattr__(self, "router", Router(self.routes, re.IGNORECASE | re.ASCII))


@dataclass(frozen=True, slots=True, eq=False)
class Mount:
    """An API's path prefix. Links use `canonical_prefix`."""

    prefix: str
    namespace: str
    interface: Interface
    canonical_prefix: str
    # The interfaces below a REST root. They are excluded from the hash, because a mapping is not hashable.
    namespaces: Mapping[str, Interface] = field(default_factory=dict[str, Interface], hash=False)
