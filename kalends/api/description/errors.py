"""The error codes of the API, and those that each endpoint can respond with.

`core/errors.py` creates the errors; a test compares it with this table.
"""

from typing import Final

from kalends.api.catalog import Endpoint, ErrorCode
from kalends.core.messages import gettext_noop as N_

MISSING = ErrorCode(400, "rest_missing_callback_param", N_("Required parameters are absent."))
INVALID = ErrorCode(400, "rest_invalid_param", N_("Parameters break their rule; `data.params` says which and why."))
JSON = ErrorCode(400, "rest_invalid_json", N_("The body is not readable as JSON."))
FORM = ErrorCode(400, "rest_invalid_form", N_("The form or the query string cannot be read."))
HOST = ErrorCode(400, "rest_invalid_host", N_("The Host header is not one name with or without a port."))
TERM_EXISTS = ErrorCode(400, "term_exists", N_("The name or slug of a term is taken; `data.term_id` has it."))
TOO_MANY = ErrorCode(
    400,
    "rest_too_many_records",
    N_("The request creates more records than `data.limit`; send them in several."),
)
CREDENTIALS = ErrorCode(401, "incorrect_password", N_("The user name or the application password is wrong."))
SIGN_IN = ErrorCode(401, "rest_forbidden", N_("The caller has to sign in."))
FORBIDDEN = ErrorCode(403, "rest_forbidden", N_("The role of the caller does not permit this."))
READ_ONLY = ErrorCode(403, "rest_read_only", N_("The application password may only read."))
CROSS_SITE = ErrorCode(403, "rest_cross_site", N_("A page of another site sent a form; `Sec-Fetch-Site` says so."))
NOT_ACCESSIBLE = ErrorCode(403, "*-not-accessible", N_("The record is not published, and not the caller's."))
NO_LONGER = ErrorCode(403, "event-no-longer-available", N_("The event is in the trash."))
PROTECTED = ErrorCode(403, "event-password-protected", N_("The event is protected; `password` is missing or wrong."))
NO_ROUTE = ErrorCode(404, "rest_no_route", N_("There is nothing at this path."))
NAMESPACE = ErrorCode(404, "rest_invalid_namespace", N_("There is no such namespace."))
SITE = ErrorCode(404, "rest_unknown_site", N_("No site answers to this host."))
NOT_FOUND = ErrorCode(404, "rest-*-not-found", N_("There is no such record."))
NO_PAGE = ErrorCode(404, "*-archive-page-not-found", N_("The page lies beyond the end of the list."))
METHOD = ErrorCode(
    405, "rest_method_not_allowed", N_("The path does not know the method; `Allow` names those it knows.")
)
TIMEOUT = ErrorCode(408, "rest_request_timeout", N_("The body did not arrive in time."))
RUNNING = ErrorCode(409, "rest_request_in_progress", N_("The first request with this Idempotency-Key still runs."))
IN_USE = ErrorCode(409, "rest_media_in_use", N_("Records show the image; `data.used_by` names them."))
CONFLICT = ErrorCode(409, "rest_conflict", N_("The write contradicts what is stored."))
IN_TRASH = ErrorCode(410, "*-is-in-trash", N_("The record is in the trash already."))
EXPIRED = ErrorCode(
    410, "rest_history_expired", N_("What is asked has been forgotten; `data.oldest` is still known.")
)
PRECONDITION = ErrorCode(412, "rest_precondition_failed", N_("`If-Match` names an older state of the record."))
TOO_LARGE = ErrorCode(413, "rest_body_too_large", N_("The body has more bytes than the server reads."))
HEAD = ErrorCode(431, "rest_head_too_large", N_("The headers have more bytes than the server reads."))
KEY_REUSED = ErrorCode(422, "rest_idempotency_mismatch", N_("The Idempotency-Key was used for another request."))
TOO_MANY_ATTEMPTS = ErrorCode(
    429, "rest_too_many_attempts", N_("Guessing is slowed down; `Retry-After` says for how long.")
)
QUOTA = ErrorCode(429, "rest_quota_exceeded", N_("The account has created too many records today."))
INTERNAL_ERROR = ErrorCode(500, "internal_server_error", N_("A fault of the server, logged under `X-Request-ID`."))
BUSY = ErrorCode(503, "rest_unavailable", N_("The database is busy or away; try again."))
OUTCOME_UNKNOWN = ErrorCode(
    503, "rest_outcome_unknown", N_("The write may or may not be stored; repeat it with the same key.")
)
FULL = ErrorCode(507, "rest_insufficient_storage", N_("The disk of the database is full."))

# A failed batch has the status of its failed operation.
BATCH: Final = tuple(
    ErrorCode(
        status,
        "rest_batch_failed",
        N_("An operation of the batch was refused, and nothing was written; `data.error` says why."),
    )
    for status in (400, 401, 403, 404, 405, 409, 410, 429)
)
# In the order in which the description lists the codes of one status.
ERROR_CODES: Final = (
    MISSING,
    INVALID,
    JSON,
    FORM,
    HOST,
    TERM_EXISTS,
    TOO_MANY,
    CREDENTIALS,
    SIGN_IN,
    FORBIDDEN,
    READ_ONLY,
    CROSS_SITE,
    NOT_ACCESSIBLE,
    NO_LONGER,
    PROTECTED,
    NO_ROUTE,
    NAMESPACE,
    SITE,
    NOT_FOUND,
    NO_PAGE,
    METHOD,
    TIMEOUT,
    RUNNING,
    IN_USE,
    CONFLICT,
    IN_TRASH,
    EXPIRED,
    PRECONDITION,
    TOO_LARGE,
    HEAD,
    KEY_REUSED,
    TOO_MANY_ATTEMPTS,
    QUOTA,
    INTERNAL_ERROR,
    BUSY,
    OUTCOME_UNKNOWN,
    FULL,
    *BATCH,
)
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
    """Return the errors of an endpoint by status: its own ones, and those of its method and path."""
    found = {*endpoint.errors, *(WRITE_ERRORS if endpoint.is_write else ROUTE_ERRORS)}
    if endpoint.path_params:
        found.add(NO_ROUTE)  # A malformed ID does not match the pattern of the path.
    if "If-Match" in endpoint.request_headers:
        found.add(PRECONDITION)
    if method == "POST":
        found |= {RUNNING, KEY_REUSED, METHOD}  # A POST can override its method with one that is not allowed.
    return sorted((row for row in ERROR_CODES if row in found), key=lambda row: row.status)
