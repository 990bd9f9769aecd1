"""Placeholder for the merge of concurrent changes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from kalends.console.request import ConsoleRequest
from kalends.core import errors
from kalends.kinds.kind import Kind


@dataclass(frozen=True, slots=True)
class FieldConflict:
    name: str
    base: Any
    theirs: Any
    mine: Any


@dataclass(frozen=True, slots=True)
class Merge:
    values: dict[str, Any]
    merged_names: list[str]
    conflicts: list[FieldConflict]
    revision: int


async def merge(
    console_request: ConsoleRequest, kind: Kind, record_id: int, base_revision: int, mine: Mapping[str, Any]
) -> Merge:
    raise errors.precondition_failed()


def read_choices(form: Mapping[str, Any]) -> dict[str, Any] | None:
    return None


def show_conflict(
    console_request: ConsoleRequest, kind: Kind, record_id: int, merge: Merge, mine: Mapping[str, Any]
) -> Response:
    raise errors.precondition_failed()
