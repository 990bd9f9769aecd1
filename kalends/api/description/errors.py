"""Which refusals each operation can answer with: one table of codes, and who may meet which.

core/errors.py makes them; a test holds the two together.
"""

from dataclasses import dataclass
from typing import Final

from kalends.api.batch import run_batch
from kalends.api.catalog import Endpoint, Operation
from kalends.core.messages import gettext_noop as N_
from kalends.kinds.kind import Kind
from kalends.operations.changes import list_changes
from kalends.operations.history import read_history, restore_record
from kalends.operations.media.records import create_media, delete_media
from kalends.operations.permissions import MIN_READER_ROLES
from kalends.operations.records import create_record, delete_record, list_records, read_record, update_record

CHANGING_OPERATIONS: Final[tuple[Operation, ...]] = (update_record, delete_record, restore_record, delete_media)


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """A code with its status. In `code`, * stands for the singular of a kind."""

    status: int
    code: str
    when: str

    def for_kind(self, kind: Kind | None) -> str:
        return self.code.replace("*", kind.singular if kind else "")


def _error(status: int, code: str, when: str) -> ErrorCode:
    return ErrorCode(status, code, when)


MISSING = _error(400, "rest_missing_callback_param", N_("Required parameters are absent."))
INVALID = _error(400, "rest_invalid_param", N_("Parameters break their rule; `data.params` says which and why."))
JSON = _error(400, "rest_invalid_json", N_("The body is not readable as JSON."))
FORM = _error(400, "rest_invalid_form", N_("The form or the query string cannot be read."))
HOST = _error(400, "rest_invalid_host", N_("The Host header is not one name with or without a port."))
TERM_EXISTS = _error(400, "term_exists", N_("The name or slug of a term is taken; `data.term_id` has it."))
TOO_MANY = _error(
    400,
    "rest_too_many_records",
    N_("The request creates more records than `data.limit`; send them in several."),
)
CREDENTIALS = _error(401, "incorrect_password", N_("The user name or the application password is wrong."))
SIGN_IN = _error(401, "rest_forbidden", N_("The caller has to sign in."))
FORBIDDEN = _error(403, "rest_forbidden", N_("The role of the caller does not permit this."))
READ_ONLY = _error(403, "rest_read_only", N_("The application password may only read."))
CROSS_SITE = _error(403, "rest_cross_site", N_("A page of another site sent a form; `Sec-Fetch-Site` says so."))
NOT_ACCESSIBLE = _error(403, "*-not-accessible", N_("The record is not published, and not the caller's."))
NO_LONGER = _error(403, "event-no-longer-available", N_("The event is in the trash."))
PROTECTED = _error(403, "event-password-protected", N_("The event is protected; `password` is missing or wrong."))
NO_ROUTE = _error(404, "rest_no_route", N_("There is nothing at this path."))
NAMESPACE = _error(404, "rest_invalid_namespace", N_("There is no such namespace."))
SITE = _error(404, "rest_unknown_site", N_("No site answers to this host."))
NOT_FOUND = _error(404, "rest-*-not-found", N_("There is no such record."))
NO_PAGE = _error(404, "*-archive-page-not-found", N_("The page lies beyond the end of the list."))
METHOD = _error(
    405, "rest_method_not_allowed", N_("The path does not know the method; `Allow` names those it knows.")
)
TIMEOUT = _error(408, "rest_request_timeout", N_("The body did not arrive in time."))
RUNNING = _error(409, "rest_request_in_progress", N_("The first request with this Idempotency-Key still runs."))
IN_USE = _error(409, "rest_media_in_use", N_("Records show the image; `data.used_by` names them."))
CONFLICT = _error(409, "rest_conflict", N_("The write contradicts what is stored."))
IN_TRASH = _error(410, "*-is-in-trash", N_("The record is in the trash already."))
EXPIRED = _error(410, "rest_history_expired", N_("What is asked has been forgotten; `data.oldest` is still known."))
PRECONDITION = _error(412, "rest_precondition_failed", N_("`If-Match` names an older state of the record."))
TOO_LARGE = _error(413, "rest_body_too_large", N_("The body has more bytes than the server reads."))
HEAD = _error(431, "rest_head_too_large", N_("The headers have more bytes than the server reads."))
KEY_REUSED = _error(422, "rest_idempotency_mismatch", N_("The Idempotency-Key was used for another request."))
TOO_MANY_ATTEMPTS = _error(
    429, "rest_too_many_attempts", N_("Guessing is slowed down; `Retry-After` says for how long.")
)
QUOTA = _error(429, "rest_quota_exceeded", N_("The account has created too many records today."))
INTERNAL_ERROR = _error(500, "internal_server_error", N_("A fault of the server, logged under `X-Request-ID`."))
BUSY = _error(503, "rest_unavailable", N_("The database is busy or away; try again."))
OUTCOME_UNKNOWN = _error(
    503, "rest_outcome_unknown", N_("The write may or may not be stored; repeat it with the same key.")
)
FULL = _error(507, "rest_insufficient_storage", N_("The disk of the database is full."))

# The status is that of the operation that failed.
BATCH: Final = tuple(
    _error(
        status,
        "rest_batch_failed",
        N_("An operation of the batch was refused, and nothing was written; `data.error` says why."),
    )
    for status in (400, 401, 403, 404, 405, 409, 410, 429)
)
ERROR_CODES: Final = (*[row for row in list(globals().values()) if isinstance(row, ErrorCode)], *BATCH)
COMMON_ERRORS: Final = (CREDENTIALS, HOST, HEAD, SITE, TOO_MANY_ATTEMPTS, INTERNAL_ERROR, BUSY)
ROUTE_ERRORS: Final = (*COMMON_ERRORS, INVALID, FORM, TIMEOUT, TOO_LARGE)
WRITE_ERRORS: Final = (
    *ROUTE_ERRORS,
    JSON,
    SIGN_IN,
    FORBIDDEN,
    READ_ONLY,
    CROSS_SITE,
    CONFLICT,
    QUOTA,
    OUTCOME_UNKNOWN,
    FULL,
)


def list_errors(endpoint: Endpoint, method: str) -> list[ErrorCode]:
    """What this operation can refuse with, in the order of the table."""
    kind, operation = endpoint.kind, endpoint.operation
    errors = set(WRITE_ERRORS if endpoint.is_write else ROUTE_ERRORS)
    errors |= {NO_ROUTE} if endpoint.path_params else set()  # What is no ID at all is another path.
    is_post = kind is not None and kind.is_post
    if operation is list_records and is_post:
        errors.add(NO_PAGE)
    if operation is read_record:
        errors |= {NOT_FOUND, *([NOT_ACCESSIBLE] if is_post else [])}
        if kind is not None and kind.is_event:
            errors |= {NO_LONGER, PROTECTED}
    if operation in CHANGING_OPERATIONS or operation is read_history:
        errors |= {NOT_FOUND, PRECONDITION, SIGN_IN, FORBIDDEN}
    if kind is not None and kind.name in MIN_READER_ROLES:
        errors |= {SIGN_IN, FORBIDDEN}
    if operation in (create_record, restore_record, create_media):
        errors.add(MISSING)
    if operation in (create_record, update_record) and kind is not None and kind.is_term:
        errors.add(TERM_EXISTS)
    if operation is delete_media:
        errors.add(IN_USE)
    if operation is delete_record and is_post:
        errors.add(IN_TRASH)
    if operation is restore_record or operation is list_changes:
        errors.add(EXPIRED)
    if operation is run_batch:
        errors |= {MISSING, TOO_MANY, *BATCH}
    if method == "POST":  # It may stand for a method that the path does not know.
        errors |= {RUNNING, KEY_REUSED, METHOD}
    return sorted((row for row in ERROR_CODES if row in errors), key=lambda row: row.status)
