"""Route table rows for records: endpoints that every kind of record has."""

from typing import Final

from kalends.api.description import error_codes
from kalends.api.description.schema_types import schema_name
from kalends.calendar.kinds.events import EVENTS, PASSWORD
from kalends.calendar.kinds.kind import PAGING, Kind
from kalends.calendar.operations.duplicates import CHECK, create_event, update_event
from kalends.calendar.operations.record_verbs import (
    create_record,
    delete_record,
    list_records,
    read_record,
    update_record,
)
from kalends.core import params
from kalends.core.params import param
from kalends.http.router import UPDATES, Endpoint, ErrorCode

CONTEXT: Final = param("context", params.text(str), "edit returns a protected event in full to users who may edit it")
CHECK_DUPLICATES: Final = param(
    CHECK, params.BOOLEAN, "Whether to return stored events that may be the same", default=False, is_extension=True
)
# Only the endpoints of events take a password. A write cannot choose its response's context.
EVENT_READ_PARAMS: Final = (PASSWORD, CONTEXT)


def make_list(kind: Kind) -> Endpoint:
    name, own = schema_name(kind), EVENT_READ_PARAMS if kind is EVENTS else ()
    values = (*PAGING, *[row.param for row in kind.filters], *own)
    operation_id = f"list{kind.name.capitalize()}"
    errors = () if kind.is_extension else (error_codes.TOO_MANY_STREAMS,)
    return Endpoint(
        ("GET",), list_records, kind, values, operation_id=operation_id, returns=f"{name}List", errors=errors
    )


def make_create(kind: Kind) -> Endpoint:
    name, is_event = schema_name(kind), kind is EVENTS
    return Endpoint(
        ("POST",),
        create_event if is_event else create_record,
        kind,
        (*kind.fields, CHECK_DUPLICATES) if is_event else kind.fields,
        operation_id=f"create{name}",
        returns=name,
        status=201,
        errors=_term_errors(kind),
        body_schema=f"{name}New",
        requires_body=True,
        returns_existing=kind.is_shared,
    )


def make_read(kind: Kind) -> Endpoint:
    name, values = schema_name(kind), EVENT_READ_PARAMS if kind is EVENTS else ()
    post_errors = (error_codes.NOT_ACCESSIBLE,) if kind.is_post else ()
    event_errors = (error_codes.NO_LONGER, error_codes.PROTECTED) if kind is EVENTS else ()
    errors = (*post_errors, *event_errors)
    return Endpoint(("GET",), read_record, kind, values, operation_id=f"read{name}", returns=name, errors=errors)


def make_update(kind: Kind) -> Endpoint:
    name, is_event = schema_name(kind), kind is EVENTS
    return Endpoint(
        UPDATES,
        update_event if is_event else update_record,
        kind,
        (*kind.fields, PASSWORD, CHECK_DUPLICATES) if is_event else kind.fields,
        operation_id=f"update{name}",
        returns=name,
        errors=_term_errors(kind),
        body_schema=f"{name}Changes",
    )


def make_delete(kind: Kind) -> Endpoint:
    name, values = schema_name(kind), (PASSWORD,) if kind is EVENTS else ()
    errors = (error_codes.IN_TRASH,) if kind.is_post else ()
    return Endpoint(
        ("DELETE",), delete_record, kind, values, operation_id=f"delete{name}", returns=name, errors=errors
    )


def _term_errors(kind: Kind) -> tuple[ErrorCode, ...]:
    """Return the errors for a write that could duplicate a category or tag name."""
    return () if kind.is_post or kind.is_extension else (error_codes.TERM_EXISTS,)
