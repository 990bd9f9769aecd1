"""POST /batch: several writes in one request and one transaction."""

from dataclasses import dataclass, replace
from typing import Any, Final, cast

from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext, Outcome
from kalends.core import errors
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.messages import gettext_noop as N_
from kalends.core.params import BOOLEAN, Param, Type, param, parse_id, read_params
from kalends.http import responses
from kalends.http.router import Endpoint, Interface, locate

MAX_OPERATIONS: Final = 500
NO_ROUTES: Final = Interface("", ())
# Schemas of responses to writes that change many events.
SERIES_SCHEMAS: Final = ("Series", "SeriesEdit")
OPERATIONS: Final = {
    "type": "array",
    "minItems": 1,
    "maxItems": MAX_OPERATIONS,
    "items": {
        "type": "object",
        "required": ["method", "path"],
        "properties": {
            "method": {
                "type": "string",
                "enum": ["POST", "PUT", "PATCH", "DELETE"],
                "description": N_("The method of the write"),
            },
            "path": {"type": "string", "description": N_("Path below the namespace of the API, such as `/events/7`")},
            "body": {"type": "object", "description": N_("The parameters of the write, as in a single request")},
            "if_match": {
                "type": ["integer", "string"],
                "description": N_("The revision or the ETag that the record must still have; otherwise 412"),
            },
        },
    },
}


@dataclass(frozen=True, slots=True)
class BatchTarget:
    """The endpoint that a batch operation calls, and its path parameters."""

    endpoint: Endpoint
    path_params: dict[str, str]


@dataclass(frozen=True, slots=True)
class BatchOperation:
    """One write in a batch.

    `values` is the body as sent, `params` the parsed parameters. An error in the path or body replaces the target or
    the parameters, and is raised when the operation runs. `if_match` holds the accepted record revisions, as in the
    If-Match header.
    """

    target: BatchTarget | ApiError
    values: dict[str, Any]
    params: dict[str, Any] | ApiError
    if_match: frozenset[int] | None = None


def make_params(interface: Interface, series: Interface = NO_ROUTES) -> tuple[Param, ...]:
    """Return the parameters for a batch of requests to this interface.

    `series` holds the routes for series, and for events whose body has a `scope`.
    """

    def read_operations(value: object) -> list[BatchOperation]:
        if not isinstance(value, list) or not 0 < len(value) <= MAX_OPERATIONS:  # pyright: ignore[reportUnknownArgumentType]
            raise InvalidValue("must be a list of 1 to {maximum} operations.", maximum=MAX_OPERATIONS)
        return [_read_operation((interface, series), entry) for entry in value]  # pyright: ignore[reportUnknownVariableType]

    return (
        param(
            "operations",
            Type({"type": "array", "items": {"type": "object"}}, read_operations, exact_schema=OPERATIONS),
            "The operations to run, in order",
            required=True,
        ),
        param("atomic", BOOLEAN, "Run all operations or none; false: run each one independently", default=True),
    )


def _read_operation(interfaces: tuple[Interface, Interface], entry: object) -> BatchOperation:
    if not isinstance(entry, dict):
        raise InvalidValue("must be a list of objects with `method`, `path` and `body`.")
    fields: dict[str, Any] = entry  # pyright: ignore[reportUnknownVariableType]
    method, path, body = fields.get("method"), fields.get("path"), fields.get("body", {})
    if method not in ("POST", "PUT", "PATCH", "DELETE") or not isinstance(path, str) or not isinstance(body, dict):
        raise InvalidValue(
            "must contain operations with a `method` (POST, PUT, PATCH, DELETE), a `path` and an object as `body`."
        )
    values = cast("dict[str, Any]", body)
    interface = _choose_interface(interfaces, path.removesuffix("/"), values)
    target = _find_target(interface, method, path.removesuffix("/"))
    if_match = _read_if_match(fields["if_match"]) if fields.get("if_match") is not None else None
    if isinstance(target, ApiError):
        return BatchOperation(target, values, target)
    if if_match is not None and not target.endpoint.accepts_if_match:
        return BatchOperation(target, values, errors.invalid("if_match", "requires the path of an existing record."))
    return BatchOperation(target, values, _read_body(target, values), if_match)


def _read_if_match(value: object) -> frozenset[int] | None:
    """Parse a revision number, or ETags as in the header; return None for `*`."""
    if isinstance(value, int) and not isinstance(value, bool):
        return frozenset([value])
    if not isinstance(value, str):
        raise InvalidValue("must contain operations whose `if_match` is a revision or an ETag.")
    revision = parse_id(value)
    return frozenset([revision]) if revision is not None else responses.read_if_match(value, "if_match")


def _choose_interface(interfaces: tuple[Interface, Interface], path: str, values: dict[str, Any]) -> Interface:
    """Return the series routes for series paths, and for event paths if the body has a scope."""
    interface, series = interfaces
    if interface.router.find(path) is None or ("scope" in values and series.router.find(path) is not None):
        return series
    return interface


def _find_target(interface: Interface, method: str, path: str) -> BatchTarget | ApiError:
    match = interface.router.find(path)
    if match is None:
        return errors.no_route()
    route, path_params = match
    endpoint = route.endpoint(method)
    if endpoint is None or endpoint.kind is None or endpoint.is_preview:
        return errors.method_not_allowed(method, route.methods)
    return BatchTarget(endpoint, path_params)


def _read_body(target: BatchTarget, values: dict[str, Any]) -> dict[str, Any] | ApiError:
    """Parse parameters in advance, to avoid sanitizing long texts while holding the site lock."""
    try:
        return read_params(target.endpoint.params, values, update=target.endpoint.is_update)
    except ApiError as error:
        return error


async def run_batch(_: None, context: OperationContext) -> Outcome:
    """Run the operations in order and return a result for each.

    By default, an error rolls back the whole batch; if `atomic` is false, it rolls back only the failed operation.
    Exceeding the limit on new records per request always fails the whole batch.
    """
    atomic: bool = context.values.get("atomic", True)
    results: list[dict[str, Any]] = []
    changed_events = 0
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
            changed_events += _count_changed_events(operation, outcome)
            if changed_events > MAX_OPERATIONS:
                raise errors.invalid(
                    "operations",
                    "must change at most {maximum} events; each date of a series counts.",
                    maximum=MAX_OPERATIONS,
                )
    return Outcome({"results": results})


def _count_changed_events(operation: BatchOperation, outcome: Outcome) -> int:
    """Return how many events a series operation has changed, or 1 for any other operation."""
    if isinstance(operation.target, ApiError) or operation.target.endpoint.returns not in SERIES_SCHEMAS:
        return 1
    counts: list[int] = [outcome.body.get(name, 0) for name in ("changed", "created", "trashed", "total")]
    return max(1, sum(counts))


async def _run_operation(operation: BatchOperation, context: OperationContext) -> Outcome:
    if isinstance(operation.target, ApiError):
        raise operation.target
    endpoint = operation.target.endpoint
    permissions.require_writer(context.actor, endpoint.kind)
    if isinstance(operation.params, ApiError):
        raise operation.params
    record_id, slug = locate(operation.target.path_params)
    return await endpoint.operation(
        endpoint.kind,
        replace(context, values=operation.params, record_id=record_id, slug=slug, if_match=operation.if_match),
    )
