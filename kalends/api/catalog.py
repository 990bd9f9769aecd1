"""The parts of an API: endpoints, routes and the interface that holds them."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from kalends.core.params import Param
from kalends.kinds.kind import Kind
from kalends.operations.context import OperationContext, Outcome

UPDATES: Final = ("POST", "PUT", "PATCH")
Operation = Callable[[Any, OperationContext], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One operation on a path, with the methods that mean it and the parameters it takes."""

    methods: tuple[str, ...]
    operation: Operation
    kind: Kind | None  # None: the operation is about all kinds
    params: tuple[Param, ...] = ()
    path_params: tuple[Param, ...] = ()
    accepts_file: bool = False

    @property
    def is_write(self) -> bool:
        return self.methods != ("GET",)

    @property
    def is_update(self) -> bool:
        return self.methods == UPDATES


@dataclass(frozen=True, slots=True)
class Route:
    pattern: str
    endpoints: tuple[Endpoint, ...]
    known_names: frozenset[str] = field(init=False)  # the parameters that a read takes

    def __post_init__(self) -> None:
        read_endpoint = self.endpoint("GET")
        names = [param.name for param in read_endpoint.params] if read_endpoint else []
        object.__setattr__(self, "known_names", frozenset(names))

    @property
    def methods(self) -> list[str]:
        return [method for endpoint in self.endpoints for method in endpoint.methods]

    def endpoint(self, method: str) -> Endpoint | None:
        return next((e for e in self.endpoints if method in e.methods), None)


def locate(path_params: dict[str, str]) -> tuple[int | None, str | None]:
    """The ID or the slug that a path names. Zeros in front do not count, and a number beyond any ID is 0."""
    if "id" not in path_params:
        return None, path_params.get("slug")
    digits = path_params["id"].lstrip("0") or "0"
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
