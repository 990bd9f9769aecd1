"""All errors in responses, with their codes and statuses. They are raised where the cause is detected.

InvalidValue                one value breaks its rule; `core/params.py` collects these
ApiError                    an error response: code, status, message, data
  400  rest_missing_callback_param   required parameters are missing        missing_params
       rest_invalid_param            parameters have invalid values         invalid_params
       rest_invalid_json             the body is not valid JSON             invalid_json
       rest_invalid_form             the form is malformed                  invalid_form
       rest_invalid_host             the Host header is malformed           invalid_host
       rest_invalid_header           If-Match is empty                      empty_if_match
       rest_too_many_records         too many new records in one request    too_many_records
       term_exists                   a term's name or slug is in use        term_exists
  401  incorrect_password            invalid credentials                    bad_credentials
  401/403  rest_forbidden            not permitted                          forbidden
  403  …-not-accessible              another user's unpublished record      not_accessible
       event-no-longer-available     a trashed event                        no_longer_available
       event-password-protected      password missing or wrong              password_needed
       rest_read_only                the application password is read-only  read_only
       rest_cross_site               a form submitted from another site     cross_site
  404  rest_no_route                 unknown path                           no_route
       rest_invalid_namespace        unknown namespace on the index         unknown_namespace
       rest_unknown_site             no site is configured for this host    unknown_site
       rest-…-not-found              unknown record                         not_found
       import_not_found              unknown import source or run           import_not_found
       proposal_not_found            unknown proposal                       proposal_not_found
       webhook_not_found             unknown webhook endpoint or delivery   webhook_not_found
       …-archive-page-not-found      a page beyond the last                 no_such_page
  405  rest_method_not_allowed       the path does not support the method   method_not_allowed
  406  rest_not_acceptable           no such stream of changes             not_acceptable
  408  rest_request_timeout          the body did not arrive in time        body_timeout
  409  rest_request_in_progress      the first request is still running     in_progress
       rest_conflict                 the write violates a constraint        conflict
       rest_media_in_use             records use the image                  in_use
       series_overrides_lost         edited dates would be lost             series_overrides_lost
       series_undo_conflicts         dates have changed since the edit      series_undo_conflicts
       series_slot_taken             two dates would have the same time     slot_taken
       import_busy                   the source has a run in progress       import_busy
       import_state                  the run's status does not allow it     import_state
       import_unconfirmed            the plan needs confirmation            import_unconfirmed
       import_by_command             the source belongs to a move-in        import_by_command
       rest_proposal_decided         the proposal's state does not allow it proposal_decided
       rest_proposal_conflict        the editor must choose values          proposal_conflict
       rest_proposal_final           the decision cannot be undone          proposal_final
       rest_too_many_webhooks        the site's webhook endpoints           too_many_webhooks
       rest_base_url_required        messages could not contain links       base_url_required
  410  rest_history_expired          the requested changes were trimmed     expired
       …-is-in-trash                 the record is already in the trash     in_trash
       series-is-in-trash            the event's series is in the trash     in_trash
  412  rest_precondition_failed      If-Match names an older version        precondition_failed
  413  rest_body_too_large           the body exceeds the limit             too_large
  415  rest_unsupported_media_type   the body was not read                  unread_body
  422  rest_idempotency_mismatch     the key belongs to another request     key_reused
  428  rest_precondition_required    a decision without If-Match            version_required
  429  rest_too_many_attempts        too many failed attempts               too_many_attempts
       rest_quota_exceeded           the account's daily limit              quota_exceeded
       rest_too_many_proposals       the account's open proposals           too_many_proposals
       rest_too_many_writes          the user's earlier writes still wait   too_many_writes
       rest_too_many_streams         the client's open live lists           too_many_streams
  431  rest_head_too_large           the headers exceed the limit           head_too_large
  500  internal_server_error         an unexpected error                    internal_error
  any  rest_batch_failed             a batch operation failed               batch_failed
  503  rest_unavailable              the database is busy or unavailable    unavailable
                                     this process has reached a limit       overloaded
                                     a slow write was rolled back           too_slow
       rest_outcome_unknown          the write may or may not be stored     outcome_unknown
  507  rest_insufficient_storage     the database's disk is full            out_of_storage

These classes are internal and never reach clients:

  http.auth.WrongCredentials             becomes `bad_credentials`
  http.bodies.ClientDisconnected         ends a request without a response
  media.adapters.library.MissingFile     fails a job or an image check
  media.adapters.image_worker_main.UnreadableImage   stays in the decoder process
  settings.InvalidSettings               ends a command
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kalends.core.messages import Message, gettext_noop as N_

# Other modules check for this code. It means that the database does not contain the site.
UNKNOWN_SITE: Final = "rest_unknown_site"
OUTCOME_UNKNOWN: Final = "rest_outcome_unknown"


class InvalidValue(ValueError):
    """A value that breaks a rule. The message is a predicate: `InvalidValue("must be below {n}.", n=5)`.

    `suggestion` is the value that was probably meant, if any.
    """

    def __init__(self, text: str, /, *, suggestion: str | None = None, **values: object) -> None:
        super().__init__(text)
        self.message = with_suggestion(Message(text, **values), suggestion)

    @property
    def text(self) -> str:
        return str(self.message)

    def __str__(self) -> str:
        return self.text


class InvalidArgument(InvalidValue):
    """A named argument or setting that breaks a rule. `problem` is the predicate without the name."""

    def __init__(self, name: str, problem: Message) -> None:
        super().__init__("{name} {problem}", name=name, problem=problem)
        self.name, self.problem = name, problem


def with_suggestion(message: Message, suggestion: str | None) -> Message:
    if suggestion is None:
        return message
    return Message("{problem} Did you mean {suggestion}?", problem=message, suggestion=suggestion)


class ApiError(Exception):
    def __init__(
        self,
        status: int,
        code: str,
        message: str | Message,
        *,
        data: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        cause: str = "",
    ) -> None:
        super().__init__(str(message))
        self.status = status
        self.code = code
        self.message = message if isinstance(message, Message) else Message(message)
        self.data = dict(data or {})  # Nested messages are also translated when the response is rendered.
        self.headers = dict(headers or {})
        self.cause = cause  # short name for metrics and the log, for statuses 503 and 507

    @property
    def text(self) -> str:
        return str(self.message)


def missing_params(names: Iterable[str]) -> ApiError:
    missing = list(names)
    return ApiError(
        400,
        "rest_missing_callback_param",
        Message("Missing parameter(s): {names}.", names=", ".join(missing)),
        data={"params": missing},
    )


def unread_body(content_type: str, missing: Sequence[str], *, is_json: bool) -> ApiError:
    """Return the error for a body that was not read because of its content type.

    If required parameters are missing because of that, use the status, code and data that existing clients expect.
    """
    if is_json:
        message = Message(
            "The request body looks like JSON, but its Content-Type is {type}; send application/json.",
            type=content_type,
        )
    elif content_type:
        message = Message(
            "The request body is {type} and was not read; send application/json.", type=content_type[:100]
        )
    else:
        message = Message("The request body has no Content-Type and was not read; send application/json.")
    if missing:
        return ApiError(400, "rest_missing_callback_param", message, data={"params": list(missing)})
    return ApiError(415, "rest_unsupported_media_type", message)


def missing_name(param: str, name_field: str) -> ApiError:
    """Return the error for a nested new record without a name."""
    return invalid_params({param: Message("`{path}` (its name) is required.", path=f"{param}.{name_field}")})


def invalid(name: str, text: str, /, **values: object) -> ApiError:
    """Return the error for one parameter: `invalid("parent", "there is no category {id}.", id=7)`."""
    return invalid_params({name: for_param(name, Message(text, **values))})


def empty_if_match(name: str) -> ApiError:
    """Return the error for an empty If-Match. Ignoring the header would make the write unconditional."""
    return ApiError(
        400,
        "rest_invalid_header",
        Message("`{name}` is empty. Send the ETag of the record, or leave `{name}` out.", name=name),
    )


def unknown_ids(name: str, kind: str, ids: str) -> ApiError:
    return invalid(name, UNKNOWN_IDS[kind], ids=ids)


def unknown_term(kind: str, value: object) -> ApiError:
    """Return the error for a filter entry that is neither the ID nor the slug nor a unique name of a term."""
    return invalid(kind, UNKNOWN_TERMS[kind], value=value)


FOR_PARAM: Final = N_("`{name}`: {problem}")


def for_param(name: str, message: Message) -> Message:
    return Message(FOR_PARAM, name=name, problem=message)


def invalid_params(problems: Mapping[str, Message]) -> ApiError:
    return ApiError(
        400,
        "rest_invalid_param",
        Message(
            "Invalid parameter(s): {names}. {problems}", names=", ".join(problems), problems=[*problems.values()]
        ),
        data={
            "params": dict(problems),
            "details": {
                name: {"code": "rest_invalid_param", "message": message, "data": {"param": name}}
                for name, message in problems.items()
            },
        },
    )


def field_errors(error: ApiError) -> dict[str, Message]:
    """Return why each value was rejected, by parameter, for forms that show the messages beside their fields."""
    params = error.data.get("params")
    if isinstance(params, dict):
        return {str(name): _without_name(message) for name, message in params.items()}  # pyright: ignore
    if isinstance(params, list):
        return {str(name): Message("This field is required.") for name in params}  # pyright: ignore
    return {}


def _without_name(message: Message) -> Message:
    problem = message.values.get("problem") if message.text == FOR_PARAM else None
    return problem if isinstance(problem, Message) else message


def invalid_json(reason: str, *, utf8: bool = True) -> ApiError:
    """Return the error for malformed JSON, with the numbers that clients expect: 4 for syntax, 5 for encoding."""
    return ApiError(
        400,
        "rest_invalid_json",
        Message("The request body is not valid JSON: {reason}", reason=reason),
        data={"json_error_code": 4 if utf8 else 5, "json_error_message": reason},
    )


def invalid_host() -> ApiError:
    return ApiError(
        400,
        "rest_invalid_host",
        "The Host header must be a single host name of at most 255 bytes, with an optional port.",
    )


def invalid_form(reason: str | Message) -> ApiError:
    return ApiError(400, "rest_invalid_form", Message("The form cannot be read: {reason}", reason=reason))


def invalid_encoding() -> ApiError:
    return invalid_form(Message("names and values must be UTF-8."))


def too_many_fields(limit: int) -> ApiError:
    return invalid_form(Message("it has more than {limit} fields.", limit=limit))


def too_many_records(limit: int) -> ApiError:
    return ApiError(
        400,
        "rest_too_many_records",
        Message(
            "One request can create at most {limit} records, including venues, organizers and terms inside "
            "events; send the rest in another request.",
            limit=limit,
        ),
        data={"limit": limit},
    )


def term_exists(term_id: int, field: str) -> ApiError:
    return ApiError(
        400,
        "term_exists",
        Message("A term with this `{field}` already exists: {id}.", field=field, id=term_id),
        data={"term_id": term_id},
    )


def bad_credentials() -> ApiError:
    """Return the same error for unknown users and wrong passwords, to avoid revealing which logins exist."""
    return ApiError(401, "incorrect_password", "The user name or the application password is wrong.")


def forbidden(reason: Message, *, anonymous: bool, data: Mapping[str, object] | None = None) -> ApiError:
    if anonymous:
        return ApiError(401, "rest_forbidden", Message("Authentication required: {why}", why=reason), data=data)
    return ApiError(403, "rest_forbidden", Message("Permission denied: {why}", why=reason), data=data)


def unsupported_scheme(scheme: str) -> ApiError:
    """Return the error for an Authorization scheme other than Basic."""
    return ApiError(
        401,
        "rest_forbidden",
        Message("{scheme} is not supported; use Basic with an application password.", scheme=scheme),
    )


def malformed_credentials() -> ApiError:
    return ApiError(
        401,
        "rest_forbidden",
        "The Authorization header cannot be read; send Basic with the user name, a colon and the application "
        "password, encoded in Base64.",
    )


def read_only() -> ApiError:
    return ApiError(403, "rest_read_only", "This application password is read-only.")


def cross_site() -> ApiError:
    return ApiError(
        403,
        "rest_cross_site",
        "Pages of other sites are not allowed to submit forms here; send JSON, or add the origin to "
        "KALENDS_CORS_ORIGINS.",
    )


def not_accessible(singular: str) -> ApiError:
    return ApiError(403, f"{singular}-not-accessible", _select_message(NOT_PUBLISHED, singular))


def no_longer_available(singular: str) -> ApiError:
    return ApiError(403, f"{singular}-no-longer-available", _select_message(IN_TRASH, singular))


def password_needed() -> ApiError:
    return ApiError(403, "event-password-protected", "This event is password-protected; send its `password`.")


def no_route() -> ApiError:
    return ApiError(404, "rest_no_route", "No route matches this path.")


def unknown_namespace(namespace: str) -> ApiError:
    return ApiError(
        404,
        "rest_invalid_namespace",
        Message("Unknown namespace; `namespace` must be {namespace}.", namespace=namespace),
    )


def unknown_site() -> ApiError:
    return ApiError(404, UNKNOWN_SITE, "No site is configured for this host.")


def not_found(singular: str) -> ApiError:
    return ApiError(404, f"rest-{singular}-not-found", _select_message(NOT_FOUND, singular))


def import_not_found() -> ApiError:
    return ApiError(404, "import_not_found", "There is no such source or run.")


def no_such_page(singular: str) -> ApiError:
    return ApiError(404, f"{singular}-archive-page-not-found", "Page not found: the list has fewer pages.")


def method_not_allowed(method: str, allowed: Iterable[str]) -> ApiError:
    allowed_methods = ", ".join(allowed)
    return ApiError(
        405,
        "rest_method_not_allowed",
        Message("{method} is not allowed here. Allowed: {methods}.", method=method, methods=allowed_methods),
        headers={"Allow": allowed_methods},
    )


def not_acceptable(message: Message) -> ApiError:
    return ApiError(406, "rest_not_acceptable", message)


def body_timeout() -> ApiError:
    return ApiError(408, "rest_request_timeout", "The request body did not arrive in time.")


def in_progress() -> ApiError:
    return ApiError(
        409,
        "rest_request_in_progress",
        "The first request with this Idempotency-Key is still running.",
        headers={"Retry-After": "1"},
    )


def conflict() -> ApiError:
    return ApiError(409, "rest_conflict", "The write conflicts with stored data; reload the record and retry.")


def in_use(references: Sequence[Mapping[str, object]]) -> ApiError:
    return ApiError(
        409,
        "rest_media_in_use",
        "The image is in use. Send `force=true` to remove it from those records and delete it.",
        data={"used_by": references},
    )


def series_overrides_lost(dates: Sequence[Mapping[str, object]]) -> ApiError:
    return ApiError(
        409,
        "series_overrides_lost",
        Message(
            "{count} dates would lose their overrides. Send `overrides=replace` to continue.",
            count=len(dates),
        ),
        data={"dates": list(dates)},
    )


def series_undo_conflicts(dates: Sequence[Mapping[str, object]]) -> ApiError:
    return ApiError(
        409,
        "series_undo_conflicts",
        Message(
            "{count} dates have changed since this edit. Send `force=true` to continue; they keep these changes.",
            count=len(dates),
        ),
        data={"dates": list(dates)},
    )


def slot_taken(slot: str) -> ApiError:
    return ApiError(409, "series_slot_taken", Message("Two dates of this series would fall on {slot}.", slot=slot))


def import_busy() -> ApiError:
    return ApiError(
        409,
        "import_busy",
        "A run of this source is under way. Wait until it has finished.",
        headers={"Retry-After": "5"},
    )


def import_state(state: str) -> ApiError:
    return ApiError(
        409, "import_state", Message("This is not possible in the state “{state}” of the run.", state=state)
    )


def import_unconfirmed(question: Message) -> ApiError:
    return ApiError(409, "import_unconfirmed", Message("The plan asks: {question}", question=question))


def import_by_command() -> ApiError:
    return ApiError(
        409, "import_by_command", "This source is a site that moves in. It is changed with `kalends import tec`."
    )


def proposal_not_found() -> ApiError:
    return ApiError(404, "proposal_not_found", "There is no such proposal.")


def proposal_decided(state: str) -> ApiError:
    message = Message("This is not possible in the state “{state}” of the proposal.", state=state)
    return ApiError(409, "rest_proposal_decided", message, data={"state": state})


def proposal_conflict(conflicts: Mapping[str, object], revision: int) -> ApiError:
    return ApiError(
        409,
        "rest_proposal_conflict",
        Message(
            "The event has changed since: {names}. Send `choices` for these fields, and `revision={revision}`.",
            names=", ".join(conflicts),
            revision=revision,
        ),
        data={"conflicts": conflicts, "revision": revision},
    )


def proposal_final(reason: Message) -> ApiError:
    return ApiError(409, "rest_proposal_final", Message("The decision cannot be undone: {reason}", reason=reason))


def too_many_proposals(limit: int) -> ApiError:
    return ApiError(
        429,
        "rest_too_many_proposals",
        Message("This account has {limit} open proposals; withdraw some, or wait for decisions.", limit=limit),
    )


def webhook_not_found() -> ApiError:
    return ApiError(404, "webhook_not_found", "There is no such webhook endpoint or delivery.")


def too_many_webhooks(limit: int) -> ApiError:
    message = Message("This site already has {limit} webhook endpoints, the maximum; delete one first.", limit=limit)
    return ApiError(409, "rest_too_many_webhooks", message)


def base_url_required() -> ApiError:
    return ApiError(
        409,
        "rest_base_url_required",
        "Messages contain links: set the site’s `base_url` or KALENDS_BASE_URL first.",
    )


def version_required() -> ApiError:
    return ApiError(
        428, "rest_precondition_required", "Send the ETag of what you decide on as If-Match: it may have changed."
    )


def expired(oldest: int) -> ApiError:
    return ApiError(
        410,
        "rest_history_expired",
        Message("Changes before revision {oldest} are no longer available; start again from 0.", oldest=oldest),
        data={"oldest": oldest},
    )


def batch_failed(number: int, cause: ApiError, error: Mapping[str, object]) -> ApiError:
    """Return a batch error with the status of the operation that failed."""
    return ApiError(
        cause.status,
        "rest_batch_failed",
        Message("Nothing was written: operation {number} failed. {problem}", number=number, problem=cause.message),
        data={"operation": number, "error": error},
    )


def in_trash(singular: str) -> ApiError:
    return ApiError(410, f"{singular}-is-in-trash", _select_message(IN_TRASH, singular))


def precondition_failed() -> ApiError:
    return ApiError(
        412,
        "rest_precondition_failed",
        "The record has been modified since you read it; reload it and apply your change again.",
    )


def too_large(limit: int) -> ApiError:
    return ApiError(413, "rest_body_too_large", Message("The request body exceeds {limit} bytes.", limit=limit))


def draft_too_long(maximum: int) -> ApiError:
    message = Message(
        "The draft has more than {maximum} characters and can’t be kept. Save the event.", maximum=maximum
    )
    return ApiError(413, "rest_body_too_large", message)


def head_too_large(limit: int) -> ApiError:
    return ApiError(431, "rest_head_too_large", Message("The request headers exceed {limit} bytes.", limit=limit))


def key_reused() -> ApiError:
    return ApiError(
        422, "rest_idempotency_mismatch", "This Idempotency-Key was used for a different request; use a new key."
    )


def too_many_attempts(seconds: int) -> ApiError:
    return ApiError(
        429,
        "rest_too_many_attempts",
        Message("Too many failed attempts; retry in {seconds} s.", seconds=seconds),
        headers={"Retry-After": str(seconds)},
    )


def quota_exceeded(limit: int, seconds: int) -> ApiError:
    return ApiError(
        429,
        "rest_quota_exceeded",
        Message(
            "This account has created {limit} records today; retry in {seconds} s.", limit=limit, seconds=seconds
        ),
        headers={"Retry-After": str(seconds)},
    )


def too_many_writes() -> ApiError:
    return ApiError(
        429,
        "rest_too_many_writes",
        Message("Your earlier changes are still being saved. Try again in a moment."),
        headers={"Retry-After": "1"},
    )


def too_many_streams(limit: int) -> ApiError:
    return ApiError(
        429,
        "rest_too_many_streams",
        Message("{limit} live lists are already open; close one, or retry later.", limit=limit),
        headers={"Retry-After": "30"},
    )


BUSY = Message("The service is temporarily unavailable; retry shortly.")


def unavailable(message: str | Message = BUSY, *, cause: str = "") -> ApiError:
    return ApiError(503, "rest_unavailable", message, headers={"Retry-After": "1"}, cause=cause)


def overloaded() -> ApiError:
    """Return the error for work that exceeds a limit of this process, rather than of the database."""
    return unavailable(cause="too_many_requests")


def too_slow(seconds: float) -> ApiError:
    return unavailable(
        Message(
            "The write took longer than {seconds} s and was rolled back; write fewer records at once.",
            seconds=f"{seconds:g}",
        ),
        cause="slow_write",
    )


def internal_error(request_id: str) -> ApiError:
    return ApiError(500, "internal_server_error", Message("Internal server error; log entry {id}.", id=request_id))


def outcome_unknown() -> ApiError:
    return ApiError(
        503,
        OUTCOME_UNKNOWN,
        "The outcome of the write is unknown; retry with the same Idempotency-Key.",
        headers={"Retry-After": "2"},
        cause="outcome_unknown",
    )


def out_of_storage() -> ApiError:
    return ApiError(507, "rest_insufficient_storage", "The server is out of storage.", cause="disk_full")


# Each kind has complete messages, because in most languages more than the noun changes.
NOT_FOUND = {
    "event": Message("There is no such event."),
    "venue": Message("There is no such venue."),
    "organizer": Message("There is no such organizer."),
    "category": Message("There is no such category."),
    "tag": Message("There is no such tag."),
    "media": Message("There is no such image."),
    "": Message("There is no such record."),
}
NOT_PUBLISHED = {
    "event": Message("This event is not published."),
    "venue": Message("This venue is not published."),
    "organizer": Message("This organizer is not published."),
    "": Message("This record is not published."),
}
IN_TRASH = {
    "event": Message("This event is in the trash."),
    "venue": Message("This venue is in the trash."),
    "organizer": Message("This organizer is in the trash."),
    "": Message("This record is in the trash."),
}


def _select_message(messages: Mapping[str, Message], singular: str) -> Message:
    return messages.get(singular, messages[""])


UNKNOWN_IDS: Final = {
    "venues": N_("there is no venue with ID {ids}."),
    "organizers": N_("there is no organizer with ID {ids}."),
    "series": N_("there is no series with ID {ids}."),
    "categories": N_("there is no category with ID {ids}."),
    "tags": N_("there is no tag with ID {ids}."),
}
UNKNOWN_TERMS: Final = {
    "categories": N_("“{value}” is not the ID, the slug or the unique name of a category."),
    "tags": N_("“{value}” is not the ID, the slug or the unique name of a tag."),
}
