"""Texts for the description: error codes per endpoint, headers, and operation summaries.

`core/errors.py` creates the errors; a test compares it with this table.
"""

from typing import Any, Final

from kalends.calendar.access.permissions import MIN_READER_ROLES
from kalends.core.messages import LANGUAGES, gettext_noop as N_
from kalends.http.router import SLUG, Endpoint, ErrorCode

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
PROPOSAL_NOT_FOUND = ErrorCode(404, "proposal_not_found", N_("There is no such proposal."))
WEBHOOK_NOT_FOUND = ErrorCode(404, "webhook_not_found", N_("There is no such webhook endpoint or delivery."))
NO_PAGE = ErrorCode(404, "*-archive-page-not-found", N_("The page number exceeds the number of pages."))
METHOD = ErrorCode(
    405, "rest_method_not_allowed", N_("The path does not support the method; `Allow` lists the supported ones.")
)
NOT_ACCEPTABLE = ErrorCode(
    406, "rest_not_acceptable", N_("`Accept` allows only a stream of changes, which this address does not have.")
)
TIMEOUT = ErrorCode(408, "rest_request_timeout", N_("The request body did not arrive in time."))
RUNNING = ErrorCode(
    409, "rest_request_in_progress", N_("An earlier request with this Idempotency-Key is still running.")
)
OVERRIDES_LOST = ErrorCode(
    409, "series_overrides_lost", N_("Dates with overrides would go to the trash; `data.dates` lists them.")
)
UNDO_CONFLICTS = ErrorCode(
    409, "series_undo_conflicts", N_("Dates have changed since the edit; `data.dates` lists them.")
)
SLOT_TAKEN = ErrorCode(409, "series_slot_taken", N_("Two dates of the series would fall on the same time."))
IMPORT_BUSY = ErrorCode(409, "import_busy", N_("A run of the source is being planned or applied."))
IMPORT_STATE = ErrorCode(409, "import_state", N_("This is not possible in the run’s current state."))
IMPORT_UNCONFIRMED = ErrorCode(409, "import_unconfirmed", N_("The plan asks a question; send `confirm`."))
IMPORT_BY_COMMAND = ErrorCode(409, "import_by_command", N_("The source is a site that moves in; commands change it."))
PROPOSAL_DECIDED = ErrorCode(
    409, "rest_proposal_decided", N_("This is not possible in the proposal’s current state, `data.state`.")
)
PROPOSAL_CONFLICT = ErrorCode(
    409,
    "rest_proposal_conflict",
    N_("Others have changed the same fields; `data.conflicts` has all values. Send `choices` and `revision`."),
)
PROPOSAL_FINAL = ErrorCode(409, "rest_proposal_final", N_("The decision can no longer be undone."))
TOO_MANY_WEBHOOKS = ErrorCode(
    409, "rest_too_many_webhooks", N_("The site has the maximum number of webhook endpoints.")
)
NO_BASE_URL = ErrorCode(
    409,
    "rest_base_url_required",
    N_("Messages contain links, but neither the site’s `base_url` nor `KALENDS_BASE_URL` is set."),
)
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
VERSION_REQUIRED = ErrorCode(428, "rest_precondition_required", N_("A decision requires `If-Match`."))
TOO_MANY_PROPOSALS = ErrorCode(429, "rest_too_many_proposals", N_("The account has too many open proposals."))
TOO_MANY_ATTEMPTS = ErrorCode(
    429, "rest_too_many_attempts", N_("Too many failed attempts; `Retry-After` says how long to wait.")
)
QUOTA = ErrorCode(429, "rest_quota_exceeded", N_("The account has created too many records today."))
TOO_MANY_WRITES = ErrorCode(
    429,
    "rest_too_many_writes",
    N_("Earlier writes of this user to the site are still waiting; `Retry-After` says how long to wait."),
)
TOO_MANY_STREAMS = ErrorCode(
    429, "rest_too_many_streams", N_("The client has too many live lists open; `Retry-After` says how long to wait.")
)
INTERNAL_ERROR = ErrorCode(500, "internal_server_error", N_("Internal server error, logged under `X-Request-ID`."))
BUSY = ErrorCode(503, "rest_unavailable", N_("The database is busy or unavailable; retry."))
OUTCOME_UNKNOWN = ErrorCode(
    503, "rest_outcome_unknown", N_("The outcome of the write is unknown; retry with the same key.")
)
FULL = ErrorCode(507, "rest_insufficient_storage", N_("The database is out of disk space."))

# A failed batch responds with the failed operation's status.
BATCH: Final = tuple(
    ErrorCode(
        status,
        "rest_batch_failed",
        N_("An operation of the batch failed and nothing was written; `data.error` gives the reason."),
    )
    for status in (400, 401, 403, 404, 405, 409, 410, 412, 428, 429)
)
# The description lists codes with the same status in this order.
ERROR_CODES: Final = (
    MISSING, INVALID, JSON, FORM, HOST, HEADER, TERM_EXISTS, TOO_MANY, CREDENTIALS, SIGN_IN, FORBIDDEN,
    READ_ONLY, CROSS_SITE, NOT_ACCESSIBLE, NO_LONGER, PROTECTED, NO_ROUTE, NAMESPACE, SITE, NOT_FOUND,
    IMPORT_NOT_FOUND, PROPOSAL_NOT_FOUND, WEBHOOK_NOT_FOUND, NO_PAGE, METHOD, NOT_ACCEPTABLE, TIMEOUT, RUNNING,
    OVERRIDES_LOST, UNDO_CONFLICTS, SLOT_TAKEN, IMPORT_BUSY, IMPORT_STATE, IMPORT_UNCONFIRMED, IMPORT_BY_COMMAND,
    PROPOSAL_DECIDED, PROPOSAL_CONFLICT, PROPOSAL_FINAL, TOO_MANY_WEBHOOKS, NO_BASE_URL, IN_USE, CONFLICT,
    IN_TRASH, SERIES_IN_TRASH,
    EXPIRED, PRECONDITION, TOO_LARGE, MEDIA_TYPE, HEAD, KEY_REUSED, VERSION_REQUIRED, TOO_MANY_ATTEMPTS,
    TOO_MANY_PROPOSALS, QUOTA, TOO_MANY_WRITES, TOO_MANY_STREAMS,
    INTERNAL_ERROR, BUSY, OUTCOME_UNKNOWN, FULL, *BATCH,
)  # fmt: skip
COMMON_ERRORS: Final = (CREDENTIALS, HOST, HEAD, SITE, TOO_MANY_ATTEMPTS, INTERNAL_ERROR, BUSY)
ROUTE_ERRORS: Final = (*COMMON_ERRORS, INVALID, FORM, TIMEOUT, TOO_LARGE)
WRITE_ERRORS: Final = (
    *ROUTE_ERRORS, HEADER, JSON, MEDIA_TYPE, SIGN_IN, FORBIDDEN, READ_ONLY, CROSS_SITE, CONFLICT, QUOTA,
    TOO_MANY_WRITES, OUTCOME_UNKNOWN, FULL,
)  # fmt: skip


def list_errors(endpoint: Endpoint, method: str) -> list[ErrorCode]:
    """Return an endpoint's errors sorted by status, including errors implied by its method and path."""
    kind, found = endpoint.kind, {*endpoint.errors, *(WRITE_ERRORS if endpoint.is_write else ROUTE_ERRORS)}
    if endpoint.path_params:
        found.add(NO_ROUTE)  # A malformed ID does not match the path pattern.
        found |= {NOT_FOUND} if kind else set()
    if not endpoint.is_write:
        found.add(NOT_ACCEPTABLE)
    if endpoint.is_list and kind and kind.is_post:
        found.add(NO_PAGE)
    if not endpoint.is_write and (endpoint.min_role or (kind and kind.name in MIN_READER_ROLES)):
        found |= {SIGN_IN, FORBIDDEN}
    if "If-Match" in list_parameters(endpoint):
        found.add(PRECONDITION)
    if endpoint.methods == ("POST",) and any(row.required for row in endpoint.params):
        found.add(MISSING)
    if method == "POST":
        found |= {RUNNING, KEY_REUSED, METHOD}  # A POST can override its method with one that is not allowed.
    return sorted((row for row in ERROR_CODES if row in found), key=lambda row: row.status)


# Descriptions of request and response headers, and of the parameters that every route accepts.

SUCCESS: Final = N_("Success.")
CREATED: Final = N_("Created.")
EXISTING: Final = N_("A published record with the same data exists, and is returned unchanged.")
NOT_MODIFIED: Final = N_("Nothing has changed since the response identified by `If-None-Match`.")
SECURITY: Final = N_("User name and application password, as printed by `kalends app-password create`.")
NAMESPACE_NOTE: Final = N_("Only the namespace of this API is accepted")
CONTEXT: Final = N_("Accepted but ignored")

TEXT: Final = {"type": "string"}
NON_NEGATIVE: Final = {"type": "integer", "minimum": 0}


def _parameter(
    name: str, where: str, schema: dict[str, Any], description: str, *, is_extension: bool = True
) -> dict[str, Any]:
    extension = {"x-extension": True} if is_extension else {}
    return {"name": name, "in": where, "description": description, "schema": schema, **extension}


# Parameters by name. No operation lists the last three, because they change the response's format or the method.
PARAMETERS: Final[dict[str, dict[str, Any]]] = {
    "lang": _parameter("lang", "query", {"type": "string", "enum": list(LANGUAGES)},
                       N_("Language of messages and descriptions")),
    "strict": _parameter("strict", "query", {"type": "boolean", "default": False},
                         N_("Reject the request if it has parameters that would be ignored or reduced")),
    "Accept-Language": _parameter("Accept-Language", "header", TEXT,
                                  N_("Preferred languages, in order of preference")),
    "X-Request-ID": _parameter("X-Request-ID", "header", {"type": "string", "pattern": r"^[\w.:-]{1,100}$"},
                               N_("Request ID, returned in the response and written to the log")),
    "If-None-Match": _parameter("If-None-Match", "header", TEXT,
                                N_("Known ETags; the response is 304 if one of them still matches")),
    "If-Match": _parameter("If-Match", "header", TEXT,
                           N_("ETag of the version that the client has; the response is 412 if the record has "
                              "changed")),
    "Idempotency-Key": _parameter("Idempotency-Key", "header", {"type": "string", "maxLength": 255},
                                  N_("Requests repeated with the same key within a day are executed only once")),
    "X-Kalends-Revision": _parameter("X-Kalends-Revision", "header", NON_NEGATIVE,
                                     N_("Site revision that the response must include, as in the response to a "
                                        "write")),
    "_fields": _parameter("_fields", "query", {"type": "array", "items": TEXT},
                          N_("Return only these keys; use dots for nested keys"), is_extension=False),
    "_envelope": _parameter("_envelope", "query", {"type": "boolean"},
                            N_("Wrap the response in an object with `body`, `status` and `headers`"),
                            is_extension=False),
    "_method": _parameter("_method", "query", {"type": "string", "enum": ["PUT", "PATCH", "DELETE"]},
                          N_("Method to apply instead of POST; same as `X-HTTP-Method-Override`"),
                          is_extension=False),
}  # fmt: skip
COMMON_PARAMETERS: Final = ("lang", "strict", "Accept-Language", "X-Request-ID")


def _header(schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"description": description, "schema": schema}


HEADERS: Final[dict[str, dict[str, Any]]] = {
    "X-Request-ID": _header(TEXT, N_("Request ID, as in the log")),
    "Link": _header(TEXT, N_("API root; for lists also the previous and next page")),
    "Allow": _header(TEXT, N_("Methods that the client may use on this path")),
    "Vary": _header(TEXT, N_("Request headers that the response depends on")),
    "Cache-Control": _header(TEXT, N_("Whether and for how long the response may be cached")),
    "Age": _header(NON_NEGATIVE, N_("Seconds since the data was last confirmed; only while the database is "
                                    "unavailable")),
    "X-Content-Type-Options": _header({"const": "nosniff"}, N_("Disables MIME sniffing")),
    "X-Robots-Tag": _header({"const": "noindex"}, N_("Excludes the response from search engines")),
    "Content-Language": _header({"type": "string", "enum": list(LANGUAGES)},
                                N_("Language of messages and descriptions")),
    "ETag": _header(TEXT, N_("Identifies this version, for `If-Match` and `If-None-Match`")),
    "Content-Disposition": _header(TEXT, N_("Name of the file")),
    "Location": _header({"type": "string", "format": "uri"}, N_("URL of the new record")),
    "X-TEC-Total": _header(NON_NEGATIVE, N_("Total number of records in the list")),
    "X-TEC-TotalPages": _header(NON_NEGATIVE, N_("Number of pages")),
    "X-WP-Total": _header(NON_NEGATIVE, N_("Same as `X-TEC-Total`")),
    "X-WP-TotalPages": _header(NON_NEGATIVE, N_("Same as `X-TEC-TotalPages`")),
    "Retry-After": _header(NON_NEGATIVE, N_("Seconds to wait before retrying")),
    "X-Kalends-Ignored-Params": _header(
        TEXT, N_("Parameters of the request that were ignored or reduced; at most 10 names")),
    "X-Kalends-Revision": _header(NON_NEGATIVE, N_("Site revision after the write")),
    "WWW-Authenticate": _header(TEXT, N_("How to authenticate; not sent to browsers, which would open a dialog")),
    "Idempotent-Replay": _header({"const": "true"}, N_("The response repeats the one to the first request")),
    "Surrogate-Key": _header(TEXT, N_("Cache tags of the response")),
    "Access-Control-Allow-Origin": _header(TEXT, N_("Origin whose scripts may read the response")),
    "Access-Control-Expose-Headers": _header(TEXT, N_("Response headers that scripts of this origin may read")),
    "Access-Control-Allow-Methods": _header(TEXT, N_("Methods that scripts of this origin may use")),
    "Access-Control-Allow-Headers": _header(TEXT, N_("Request headers that scripts of this origin may send")),
    "Access-Control-Max-Age": _header(NON_NEGATIVE, N_("How many seconds a browser may cache this permission")),
}  # fmt: skip
# Any response can have these headers, so the descriptions of responses list only the first one.
COMMON_HEADERS: Final = (
    "X-Request-ID", "Link", "Vary", "Cache-Control", "X-Content-Type-Options", "X-Robots-Tag", "Allow",
    "X-Kalends-Ignored-Params", "Age",
    *[name for name in HEADERS if name.startswith("Access-Control-")],
)  # fmt: skip
DOCUMENTED_ALWAYS: Final = COMMON_HEADERS[:1]
TOTAL_HEADERS: Final = ("X-TEC-Total", "X-TEC-TotalPages", "X-WP-Total", "X-WP-TotalPages")


def list_parameters(endpoint: Endpoint) -> list[str]:
    """Return the names of an endpoint's request headers and common parameters."""
    if_match = ("If-Match",) if endpoint.accepts_if_match else ()
    own = (*if_match, "Idempotency-Key") if endpoint.is_write else ("X-Kalends-Revision",)
    if endpoint.has_etag and not endpoint.is_write:
        own = ("If-None-Match", *own)
    return [*COMMON_PARAMETERS, *endpoint.request_headers, *own]


def list_response_headers(endpoint: Endpoint) -> tuple[str, ...]:
    """Return the header names for a successful response, except headers that every response has."""
    names = [
        *(TOTAL_HEADERS if endpoint.is_list else ()),
        *(("ETag",) if endpoint.has_etag else ()),
        *(("Location",) if endpoint.status == 201 else ()),
        *(("Content-Disposition", "Content-Language") if endpoint.file_types else ()),
    ]
    own = ("Idempotent-Replay", "X-Kalends-Revision") if endpoint.is_write else ("Surrogate-Key",)
    return (*names, *own)


# Titles, tags, summaries and operation IDs for the API description.

TITLE: Final = N_("Calendar events")
ABOUT: Final = N_(
    "Events, venues, organizers, event categories and event tags. Published records are public; writing requires "
    "a user name and an application password (HTTP Basic). Parameters are read from the query string, a form or a "
    "JSON body; unknown parameters are ignored. `HEAD` works wherever `GET` does, and `OPTIONS` describes a path. "
    "With `_method` or `X-HTTP-Method-Override`, a `POST` is handled as `PUT`, `PATCH` or `DELETE`."
)
ABOUT_FIELDS: Final = N_(
    "`_fields` and `_envelope` are accepted on every read and change the shape of the response: the first returns "
    "only the named keys, the second wraps the response together with its status and headers. The schemas "
    "describe responses without them."
)
ABOUT_IGNORED: Final = N_(
    "`X-Kalends-Ignored-Params` names up to ten parameters of a request that were ignored. With `strict=1` such a "
    "request is rejected, and the error suggests the right name."
)
ABOUT_LANGUAGE: Final = N_(
    "Messages and descriptions are in the language of `lang`, `Accept-Language` or the site. Names, codes and "
    "structure are the same in all languages."
)
EXTENSION_TITLE: Final = N_("Kalends extensions")
ABOUT_EXTENSION: Final = N_(
    "Kalends extensions: images, record history and restore, series, imports, proposals, webhooks, and changes since "
    "a revision."
)
EXTENSION_NOTE: Final = N_("Kalends extension.")
INDEX: Final = N_("List the routes and their parameters")
DESCRIPTION: Final = N_("Read this description of the API")
TAGS: Final = {
    "events": N_("Events"),
    "venues": N_("Venues"),
    "organizers": N_("Organizers"),
    "categories": N_("Event categories"),
    "tags": N_("Event tags"),
    "series": N_("Series"),
    "media": N_("Images"),
    "changes": N_("Changes"),
    "batch": N_("Batches"),
    "imports": N_("Imports"),
    "proposals": N_("Proposals"),
    "webhooks": N_("Webhooks"),
    "interface": N_("API"),
}
# Summaries by operation ID.
SUMMARIES: Final = {
    "listEvents": N_("List events"),
    "createEvent": N_("Create an event"),
    "readEvent": N_("Read an event"),
    "updateEvent": N_("Update an event; omitted fields stay unchanged"),
    "deleteEvent": N_("Move an event to the trash"),
    "listSeries": N_("List series"),
    "createSeries": N_("Create a series of events"),
    "readSeries": N_("Read a series"),
    "updateSeries": N_("Change all dates of a series, or a date and all later ones"),
    "deleteSeries": N_("Move a series and its upcoming dates to the trash, or end it before a date"),
    "previewSeries": N_("Compute the dates of a rule without writing anything"),
    "listOccurrences": N_("List the dates of a series: events, skipped dates, and later ones"),
    "restoreSeries": N_("Undo edits of a series with all their effects, or restore it from the trash"),
    "changeDates": N_("Add dates to a series, and skip others"),
    "convertEvent": N_("Turn an event into the first date of a series"),
    "detachEvent": N_("Take an event out of its series"),
    "followSeries": N_("Reset an event’s overridden fields to the series’ values"),
    "splitSeries": N_("Split a date and all later ones into a new series"),
    "mergeSeries": N_("Take over the dates of another series"),
    "dissolveSeries": N_("Delete a series and keep its events"),
    "editEvent": N_("Change an event, or the dates of its series"),
    "trashEvent": N_("Move an event, or dates of its series, to the trash"),
    "exportEvents": N_("Download a list of events as a table"),
    "exportVenues": N_("Download a list of venues as a table"),
    "exportOrganizers": N_("Download a list of organizers as a table"),
    "declareDifferent": N_("Declare that two events are not the same"),
    "listVenues": N_("List venues"),
    "createVenue": N_("Create a venue"),
    "readVenue": N_("Read a venue"),
    "updateVenue": N_("Update a venue; omitted fields stay unchanged"),
    "deleteVenue": N_("Move a venue to the trash"),
    "listOrganizers": N_("List organizers"),
    "createOrganizer": N_("Create an organizer"),
    "readOrganizer": N_("Read an organizer"),
    "updateOrganizer": N_("Update an organizer; omitted fields stay unchanged"),
    "deleteOrganizer": N_("Move an organizer to the trash"),
    "listCategories": N_("List categories"),
    "createCategory": N_("Create a category"),
    "readCategory": N_("Read a category"),
    "updateCategory": N_("Update a category; omitted fields stay unchanged"),
    "deleteCategory": N_("Delete a category permanently; its child categories move up one level"),
    "listTags": N_("List tags"),
    "createTag": N_("Create a tag"),
    "readTag": N_("Read a tag"),
    "updateTag": N_("Update a tag; omitted fields stay unchanged"),
    "deleteTag": N_("Delete a tag permanently"),
    "readEventHistory": N_("Read the history of an event"),
    "readVenueHistory": N_("Read the history of a venue"),
    "readOrganizerHistory": N_("Read the history of an organizer"),
    "readSeriesHistory": N_("Read the history of a series"),
    "restoreEvent": N_("Restore an event"),
    "restoreVenue": N_("Restore a venue"),
    "restoreOrganizer": N_("Restore an organizer"),
    "listMedia": N_("List images"),
    "createMedia": N_("Upload an image, as a form with `file` or as the request body"),
    "readMedia": N_("Read an image"),
    "updateMedia": N_("Update an image; omitted fields stay unchanged"),
    "deleteMedia": N_("Delete an image permanently; fails while it is in use"),
    "listProposals": N_("List proposals by start: all for editors, otherwise one’s own"),
    "createProposal": N_("Propose an event, or a change of one; nothing happens until an editor accepts it"),
    "readProposal": N_("Read a proposal"),
    "updateProposal": N_("Change a proposal that waits or was returned; it waits again"),
    "withdrawProposal": N_("Withdraw a proposal"),
    "acceptProposal": N_("Accept a proposal: create or change its event"),
    "returnProposal": N_("Send a proposal back with a comment"),
    "rejectProposal": N_("Reject a proposal"),
    "undoProposal": N_("Undo a decision; the proposal waits again"),
    "listImportSources": N_("List the sources of imports"),
    "createImportSource": N_("Create a source of imports"),
    "readImportSource": N_("Read a source of imports"),
    "updateImportSource": N_("Update a source of imports; omitted fields stay unchanged"),
    "deleteImportSource": N_("Delete a source of imports with its runs; its events stay"),
    "startImport": N_("Fetch a source or read an uploaded `file`, and make a plan; a worker does this"),
    "listImportRuns": N_("List the runs of imports"),
    "readImportRun": N_("Read a run with its counts and its progress"),
    "listImportRows": N_("List the rows of a plan: what happens with each record, and why"),
    "applyImport": N_("Apply a plan or some of its rows; a worker does this"),
    "decideImportRow": N_("Decide whether a row is an existing record or a new one"),
    "undoImport": N_("Plan to undo a run; the plan is a new run"),
    "discardImport": N_("Discard a plan"),
    "listWebhooks": N_("List webhook endpoints"),
    "createWebhook": N_("Create a webhook endpoint; its secret is shown only in this response"),
    "readWebhook": N_("Read a webhook endpoint"),
    "updateWebhook": N_("Change, pause or resume a webhook endpoint; omitted fields stay unchanged"),
    "deleteWebhook": N_("Delete a webhook endpoint and its log"),
    "listDeliveries": N_("List a webhook endpoint’s deliveries, newest first"),
    "testWebhook": N_("Send a test message"),
    "rotateSecret": N_("Create a new secret; the previous one stays valid for 24 hours"),
    "replayWebhook": N_("Send again what changed after a revision or a date, or the record of one delivery"),
    "runBatch": N_("Run several writes in one request"),
    "listChanges": N_("List changes since a revision"),
}


def operation_id(endpoint: Endpoint, method: str) -> str:
    """Return a unique ID such as readEvent or updateEventByPut; code generators name functions after it."""
    by_slug = "BySlug" if SLUG in endpoint.path_params else ""
    by_method = f"By{method.capitalize()}" if endpoint.is_update and method != "PATCH" else ""
    return f"{endpoint.operation_id}{by_slug}{by_method}"
