"""POST /batch: many writes of the interface in one request and one transaction."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from kalends.core import errors
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.params import BOOLEAN, Type, param, read_params
from kalends.http import responses
from kalends.operations import permissions
from kalends.operations.context import OperationContext, Outcome

if TYPE_CHECKING:
    from kalends.api.catalog import Endpoint

MAX_OPERATIONS = 500


@dataclass(frozen=True, slots=True)
class BatchOperation:
    """One write of a batch: a method, a path below the namespace of the interface, and its body.

    `params` are the parameters in the body, or why they are refused; that is said when the operation's turn comes.
    """

    method: str
    path: str
    values: dict[str, Any]
    params: dict[str, Any] | ApiError


def _read_operations(value: object) -> list[BatchOperation]:
    if not isinstance(value, list) or not 0 < len(value) <= MAX_OPERATIONS:  # pyright: ignore[reportUnknownArgumentType]
        raise InvalidValue("this must be a list of 1 to {most} operations.", most=MAX_OPERATIONS)
    return [_read_operation(entry) for entry in value]  # pyright: ignore[reportUnknownVariableType]


def _read_operation(entry: object) -> BatchOperation:
    if not isinstance(entry, dict):
        raise InvalidValue("every operation is an object with `method`, `path` and `body`.")
    fields: dict[str, Any] = entry  # pyright: ignore[reportUnknownVariableType]
    method, path, body = fields.get("method"), fields.get("path"), fields.get("body", {})
    if method not in ("POST", "PUT", "PATCH", "DELETE") or not isinstance(path, str) or not isinstance(body, dict):
        raise InvalidValue(
            "every operation has a `method` (POST, PUT, PATCH, DELETE), a `path` and an object as `body`."
        )
    path, values = path.removesuffix("/"), cast("dict[str, Any]", body)
    return BatchOperation(method, path, values, _read_body(method, path, values))


def _read_body(method: str, path: str, values: dict[str, Any]) -> dict[str, Any] | ApiError:
    """Read parameters before the transaction begins: cleaning long texts must not hold the lock of the site."""
    try:
        endpoint, _ = _find_endpoint(method, path)
        return read_params(endpoint.params, values, update=endpoint.is_update)
    except ApiError as error:
        return error


def _find_endpoint(method: str, path: str) -> "tuple[Endpoint, dict[str, str]]":
    # Imported late to break the cycle with `routes`.
    from kalends.api.routes import INTERFACE

    match = INTERFACE.find(path)
    if match is None:
        raise errors.no_route()
    route, path_params = match
    endpoint = route.endpoint(method)
    if endpoint is None or endpoint.kind is None:
        raise errors.method_not_allowed(method, route.methods)
    return endpoint, path_params


OPERATIONS = {
    "type": "array",
    "minItems": 1,
    "maxItems": MAX_OPERATIONS,
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


async def run_batch(_: None, context: OperationContext) -> Outcome:
    """Return a result per operation. All or nothing, unless `atomic` is false: then each by itself.

    Too many new records refuse the whole batch in either case.
    """
    atomic: bool = context.values.get("atomic", True)
    results: list[dict[str, Any]] = []
    for number, operation in enumerate(context.values["operations"]):
        try:
            async with context.transaction.savepoint():
                outcome = await _run_operation(operation, context)
        except ApiError as error:
            if atomic or error.code == "rest_too_many_records":
                raise errors.batch_failed(number, error, responses.error_body(error)) from error
            results.append({"status": error.status, "body": responses.error_body(error)})
        else:
            results.append({"status": outcome.status, "body": outcome.body})
    return Outcome({"results": results})


async def _run_operation(operation: BatchOperation, context: OperationContext) -> Outcome:
    from kalends.api.catalog import locate

    endpoint, path_params = _find_endpoint(operation.method, operation.path)
    permissions.require_writer(context.actor, endpoint.kind)
    if isinstance(operation.params, ApiError):
        raise operation.params
    record_id, slug = locate(path_params)
    return await endpoint.operation(
        endpoint.kind, replace(context, values=operation.params, record_id=record_id, slug=slug, if_match=None)
    )
