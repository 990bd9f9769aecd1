"""The error codes of the API, and those that each endpoint can respond with.

`core/errors.py` creates the errors; a test compares it with this table.
"""

from typing import Final

from kalends.api.catalog import Endpoint, ErrorCode
from kalends.core.messages import gettext_noop as N_

MISSING = ErrorCode(400, "rest_missing_callback_param", N_("Required parameters are missing."))
INVALID = ErrorCode(400, "rest_invalid_param", N_("Invalid parameters; `data.params` gives the reason for each."))
JSON = ErrorCode(400, "rest_invalid_json", N_("The request body is not valid JSON."))
FORM = ErrorCode(400, "rest_invalid_form", N_("The form or the query string cannot be read."))
HOST = ErrorCode(400, "rest_invalid_host", N_("The Host header is not a single host name with an optional port."))
HEADER = ErrorCode(400, "rest_invalid_header", N_("`If-Match`, or `if_match` in a batch, is empty."))
TERM_EXISTS = ErrorCode(
    400, "term_exists", N_("A term with this name or slug already exists; its ID is `data.term_id`.")
)
TOO_MANY = ErrorCode(
    400,
    "rest_too_many_records",
    N_("The request creates more than `data.limit` records; split it into several requests."),
)
CREDENTIALS = ErrorCode(401, "incorrect_password", N_("The user name or the application password is wrong."))
SIGN_IN = ErrorCode(401, "rest_forbidden", N_("Authentication is required."))
FORBIDDEN = ErrorCode(403, "rest_forbidden", N_("The role of the user does not permit this."))
READ_ONLY = ErrorCode(403, "rest_read_only", N_("The application password is read-only."))
CROSS_SITE = ErrorCode(
    403, "rest_cross_site", N_("A page of another site submitted a form, according to `Sec-Fetch-Site`.")
)
NOT_ACCESSIBLE = ErrorCode(403, "*-not-accessible", N_("The record is not published and belongs to another user."))
NO_LONGER = ErrorCode(403, "event-no-longer-available", N_("The event is in the trash."))
PROTECTED = ErrorCode(403, "event-password-protected", N_("The event is protected; `password` is missing or wrong."))
NO_ROUTE = ErrorCode(404, "rest_no_route", N_("No route matches this path."))
NAMESPACE = ErrorCode(404, "rest_invalid_namespace", N_("Unknown namespace."))
SITE = ErrorCode(404, "rest_unknown_site", N_("No site is configured for the requested host."))
NOT_FOUND = ErrorCode(404, "rest-*-not-found", N_("There is no such record."))
IMPORT_NOT_FOUND = ErrorCode(404, "import_not_found", N_("There is no such source or run."))
NO_PAGE = ErrorCode(404, "*-archive-page-not-found", N_("The page number exceeds the number of pages."))
METHOD = ErrorCode(
    405, "rest_method_not_allowed", N_("The path does not support the method; `Allow` lists the supported ones.")
)
TIMEOUT = ErrorCode(408, "rest_request_timeout", N_("The request body did not arrive in time."))
RUNNING = ErrorCode(
    409, "rest_request_in_progress", N_("An earlier request with this Idempotency-Key is still running.")
)
OVERRIDES_LOST = ErrorCode(
    409,
    "series_overrides_lost",
    N_("Dates with fields of their own would go to the trash; `data.dates` lists them."),
)
UNDO_CONFLICTS = ErrorCode(
    409, "series_undo_conflicts", N_("Dates have changed since the edit; `data.dates` lists them.")
)
SLOT_TAKEN = ErrorCode(409, "series_slot_taken", N_("Two dates of the series would fall on the same time."))
IMPORT_BUSY = ErrorCode(409, "import_busy", N_("A run of the source is being planned or applied."))
IMPORT_STATE = ErrorCode(409, "import_state", N_("The run is in a state in which this is not possible."))
IMPORT_UNCONFIRMED = ErrorCode(409, "import_unconfirmed", N_("The plan asks a question; send `confirm`."))
IMPORT_BY_COMMAND = ErrorCode(409, "import_by_command", N_("The source is a site that moves in; commands change it."))
IN_USE = ErrorCode(409, "rest_media_in_use", N_("The image is in use; `data.used_by` lists the records."))
CONFLICT = ErrorCode(409, "rest_conflict", N_("The write conflicts with stored data."))
IN_TRASH = ErrorCode(410, "*-is-in-trash", N_("The record is already in the trash."))
SERIES_IN_TRASH = ErrorCode(410, "series-is-in-trash", IN_TRASH.when)
EXPIRED = ErrorCode(
    410,
    "rest_history_expired",
    N_("The requested revision is no longer available; the oldest available one is `data.oldest`."),
)
PRECONDITION = ErrorCode(412, "rest_precondition_failed", N_("`If-Match` identifies an older version of the record."))
TOO_LARGE = ErrorCode(413, "rest_body_too_large", N_("The request body is too large."))
MEDIA_TYPE = ErrorCode(
    415,
    "rest_unsupported_media_type",
    N_("The request body was not read: its Content-Type is neither JSON nor a form."),
)
HEAD = ErrorCode(431, "rest_head_too_large", N_("The request headers are too large."))
KEY_REUSED = ErrorCode(422, "rest_idempotency_mismatch", N_("The Idempotency-Key was used for a different request."))
TOO_MANY_ATTEMPTS = ErrorCode(
    429, "rest_too_many_attempts", N_("Too many failed attempts; `Retry-After` says how long to wait.")
)
QUOTA = ErrorCode(429, "rest_quota_exceeded", N_("The account has created too many records today."))
TOO_MANY_WRITES = ErrorCode(
    429,
    "rest_too_many_writes",
    N_("Earlier writes of this user to the site are still waiting; `Retry-After` says how long to wait."),
)
INTERNAL_ERROR = ErrorCode(500, "internal_server_error", N_("Internal server error, logged under `X-Request-ID`."))
BUSY = ErrorCode(503, "rest_unavailable", N_("The database is busy or unavailable; retry."))
OUTCOME_UNKNOWN = ErrorCode(
    503, "rest_outcome_unknown", N_("The outcome of the write is unknown; retry with the same key.")
)
FULL = ErrorCode(507, "rest_insufficient_storage", N_("The database is out of disk space."))

# A failed batch has the status of its failed operation.
BATCH: Final = tuple(
    ErrorCode(
        status,
        "rest_batch_failed",
        N_("An operation of the batch failed and nothing was written; `data.error` gives the reason."),
    )
    for status in (400, 401, 403, 404, 405, 409, 410, 412, 429)
)
# In the order in which the description lists the codes of one status.
ERROR_CODES: Final = (
    MISSING,
    INVALID,
    JSON,
    FORM,
    HOST,
    HEADER,
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
    IMPORT_NOT_FOUND,
    NO_PAGE,
    METHOD,
    TIMEOUT,
    RUNNING,
    OVERRIDES_LOST,
    UNDO_CONFLICTS,
    SLOT_TAKEN,
    IMPORT_BUSY,
    IMPORT_STATE,
    IMPORT_UNCONFIRMED,
    IMPORT_BY_COMMAND,
    IN_USE,
    CONFLICT,
    IN_TRASH,
    SERIES_IN_TRASH,
    EXPIRED,
    PRECONDITION,
    TOO_LARGE,
    MEDIA_TYPE,
    HEAD,
    KEY_REUSED,
    TOO_MANY_ATTEMPTS,
    QUOTA,
    TOO_MANY_WRITES,
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
    HEADER,
    JSON,
    MEDIA_TYPE,
    SIGN_IN,
    FORBIDDEN,
    READ_ONLY,
    CROSS_SITE,
    CONFLICT,
    QUOTA,
    TOO_MANY_WRITES,
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
