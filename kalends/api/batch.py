"""POST /batch: many writes of the interface in one request and one transaction."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from kalends.core import errors
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.params import BOOLEAN, Type, param, read_params
from kalends.http import responses
from kalends.operations import permissions
from kalends.operations.context import Call, Outcome

if TYPE_CHECKING:
    from kalends.api.catalog import Endpoint

MOST = 500


@dataclass(frozen=True, slots=True)
class Written:
    """One write of a batch: a method, a path below the namespace of the interface, and its body.

    `params` are the parameters in the body, or why they are refused; that is said when the operation's turn comes.
    """

    method: str
    path: str
    values: dict[str, Any]
    params: dict[str, Any] | ApiError


def _read_operations(value: object) -> list[Written]:
    if not isinstance(value, list) or not 0 < len(value) <= MOST:  # pyright: ignore[reportUnknownArgumentType]
        raise InvalidValue("this must be a list of 1 to {most} operations.", most=MOST)
    return [_read_operation(entry) for entry in value]  # pyright: ignore[reportUnknownVariableType]


def _read_operation(entry: object) -> Written:
    if not isinstance(entry, dict):
        raise InvalidValue("every operation is an object with `method`, `path` and `body`.")
    found: dict[str, Any] = entry  # pyright: ignore[reportUnknownVariableType]
    method, path, body = found.get("method"), found.get("path"), found.get("body", {})
    if method not in ("POST", "PUT", "PATCH", "DELETE") or not isinstance(path, str) or not isinstance(body, dict):
        raise InvalidValue(
            "every operation has a `method` (POST, PUT, PATCH, DELETE), a `path` and an object as `body`."
        )
    path, values = path.removesuffix("/"), cast("dict[str, Any]", body)
    return Written(method, path, values, _read_body(method, path, values))


def _read_body(method: str, path: str, values: dict[str, Any]) -> dict[str, Any] | ApiError:
    """Read parameters before the transaction begins: cleaning long texts must not hold the lock of the site."""
    try:
        endpoint, _ = _find_endpoint(method, path)
        return read_params(endpoint.params, values, update=endpoint.updates)
    except ApiError as refusal:
        return refusal


def _find_endpoint(method: str, path: str) -> "tuple[Endpoint, dict[str, str]]":
    # Imported late to break the cycle with `routes`.
    from kalends.api.routes import INTERFACE

    found = INTERFACE.find(path)
    if found is None:
        raise errors.no_route()
    route, address = found
    endpoint = route.endpoint(method)
    if endpoint is None or endpoint.kind is None:
        raise errors.method_not_allowed(method, route.methods)
    return endpoint, address


OPERATIONS = {
    "type": "array",
    "minItems": 1,
    "maxItems": MOST,
    "items": {
        "type": "object",
        "required": ["method", "path"],
        "properties": {
            "method": {"type": "string", "enum": ["POST", "PUT", "PATCH", "DELETE"]},
            "path": {"type": "string"},
            "body": {"type": "object"},
        },
    },
}
PARAMS = (
    param(
        "operations",
        Type({"type": "array", "items": {"type": "object"}}, _read_operations, exact_schema=OPERATIONS),
        "The writes, in order",
        required=True,
    ),
    param("atomic", BOOLEAN, "All or nothing; false: each by itself", default=True),
)


async def run_batch(_: None, call: Call) -> Outcome:
    """Return a result per operation. All or nothing, unless `atomic` is false: then each by itself.

    Too many new records refuse the whole batch in either case.
    """
    atomic: bool = call.values.get("atomic", True)
    results: list[dict[str, Any]] = []
    for number, operation in enumerate(call.values["operations"]):
        try:
            async with call.transaction.savepoint():
                outcome = await _run(operation, call)
        except ApiError as refusal:
            if atomic or refusal.code == "rest_too_many_records":
                raise errors.batch_failed(number, refusal, responses.shape(refusal)) from refusal
            results.append({"status": refusal.status, "body": responses.shape(refusal)})
        else:
            results.append({"status": outcome.status, "body": outcome.body})
    return Outcome({"results": results})


async def _run(operation: Written, call: Call) -> Outcome:
    from kalends.api.catalog import locate

    endpoint, address = _find_endpoint(operation.method, operation.path)
    permissions.require_writer(call.actor, endpoint.kind)
    if isinstance(operation.params, ApiError):
        raise operation.params
    record_id, slug = locate(address)
    return await endpoint.operation(
        endpoint.kind, replace(call, values=operation.params, record_id=record_id, slug=slug, expected=None)
    )
