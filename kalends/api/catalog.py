"""The parts of an API: error codes, endpoints, routes and the interface that groups them.

An endpoint carries its own description, so that a new operation is one row of `routes.py`.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Final

from kalends.core.params import Param
from kalends.http.request_head import Corrections
from kalends.kinds.kind import Kind
from kalends.operations.context import OperationContext, Outcome

UPDATES: Final = ("POST", "PUT", "PATCH")
# An ID with more digits exceeds every ID of the database.
MAX_ID_DIGITS: Final = 16
Operation = Callable[[Any, OperationContext], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """An error code with its HTTP status. In `code`, * stands for the singular of a kind."""

    status: int
    code: str
    when: str

    def for_kind(self, kind: Kind | None) -> str:
        return self.code.replace("*", kind.singular if kind else "")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An operation on a path: the methods that call it, its parameters, and its description.

    Errors, headers and IDs that follow from the method or the path are not listed here;
    `api/description` adds them to every endpoint.
    """

    methods: tuple[str, ...]
    operation: Operation
    kind: Kind | None  # None: the operation covers all kinds
    params: tuple[Param, ...] = ()
    path_params: tuple[Param, ...] = ()
    _: KW_ONLY
    operation_id: str
    summary: str
    returns: str  # name of the response schema
    status: int = 200
    errors: tuple[ErrorCode, ...] = ()
    request_headers: tuple[str, ...] = ()
    response_headers: tuple[str, ...] = ()
    body_schema: str = ""  # name of the request schema; empty: `params`, described in place
    requires_body: bool = False
    returns_existing: bool = False  # with status 200, if a published record has the same data
    accepts_file: bool = False
    accepts_input: bool = False  # a form may have the file of an import
    min_role: int = 0  # of callers, if the kind does not determine it
    file_types: tuple[str, ...] = ()  # the content types of a response that is a file
    is_preview: bool = False  # with the parameters of a write, but reads only and does not lock the site

    @property
    def is_write(self) -> bool:
        return self.methods != ("GET",)

    @property
    def is_update(self) -> bool:
        return self.methods == UPDATES


@dataclass(frozen=True, slots=True)
class Route:
    """A path pattern below the namespace, and its endpoints."""

    pattern: str
    endpoints: tuple[Endpoint, ...]
    known_names: frozenset[str] = field(init=False)  # names of the parameters of a read
    corrections: Corrections = field(init=False)  # of those whose invalid values are replaced or ignored
    _regex: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        read_endpoint = self.endpoint("GET")
        params = read_endpoint.params if read_endpoint else ()
        object.__setattr__(self, "known_names", frozenset(param.name for param in params))
        corrections = {param.name: param.type.correct for param in params if param.type.correct is not None}
        object.__setattr__(self, "corrections", corrections)
        object.__setattr__(self, "_regex", re.compile(self.pattern, re.IGNORECASE | re.ASCII))

    def match(self, path: str) -> dict[str, str] | None:
        """Return the path parameters if the path matches the pattern, else None."""
        match = self._regex.fullmatch(path)
        return match.groupdict() if match else None

    @property
    def methods(self) -> list[str]:
        return [method for endpoint in self.endpoints for method in endpoint.methods]

    @property
    def tag(self) -> str:
        """Return the first segment of the path, which groups operations in the description."""
        return self.pattern.split("/")[1]

    def endpoint(self, method: str) -> Endpoint | None:
        return next((e for e in self.endpoints if method in e.methods), None)


def locate(path_params: dict[str, str]) -> tuple[int | None, str | None]:
    """Return the ID or the slug of a path. Ignore leading zeros, and return 0 for a number beyond every ID."""
    if "id" not in path_params:
        return None, path_params.get("slug")
    digits = path_params["id"].lstrip("0") or "0"
    return (int(digits) if len(digits) <= MAX_ID_DIGITS else 0), None


@dataclass(frozen=True, slots=True)
class Interface:
    """A namespace and its routes."""

    namespace: str
    routes: tuple[Route, ...]
    has_document: bool = True  # whether it has an OpenAPI document at /doc

    def find(self, path: str) -> tuple[Route, dict[str, str]] | None:
        """Return the route of a path below the namespace and its path parameters, or None."""
        for route in self.routes:
            if (path_params := route.match(path)) is not None:
                return route, path_params
        return None
