"""Every error a client can see, with its code and status; raised where the fact is known.

Invalid                     one value breaks its rule; the reader of parameters gathers these
Refusal                     an answer other than success: code, status, message, data
  400  rest_missing_callback_param   required parameters are absent         missing_params
       rest_invalid_param            parameters break their rule            invalid_params
       rest_invalid_json             the body is not readable JSON          invalid_json
       rest_invalid_form             the form cannot be read                invalid_form
       rest_invalid_host             the Host header is not one name        invalid_host
       rest_too_many_records         more new records than one request may   too_many_records
       term_exists                   the name or slug of a term is taken    term_exists
  401  incorrect_password            unusable credentials                   bad_credentials
  401/403  rest_forbidden            not permitted                          forbidden
  403  …-not-accessible              unpublished, and not the caller's      not_accessible
       event-no-longer-available     a trashed event                        no_longer_available
       event-password-protected      password missing or wrong              password_needed
       rest_read_only                the application password only reads    read_only
       rest_cross_site               a form of another site's page          cross_site
  404  rest_no_route                 unknown path                           no_route
       rest_invalid_namespace        unknown namespace on the index         unknown_namespace
       rest_unknown_site             no site answers to this host           unknown_site
       rest-…-not-found              unknown record                         not_found
       …-archive-page-not-found      a page beyond the last                 no_such_page
  405  rest_method_not_allowed       the path does not know the method      method_not_allowed
  408  rest_request_timeout          the body did not arrive in time        body_timeout
  409  rest_request_in_progress      the first request with this key runs   in_progress
       rest_conflict                 the database refused the combination   conflict
       rest_media_in_use             records show the image                 in_use
  410  rest_history_expired          what is asked is forgotten             expired
           …-is-in-trash                 deleted before                         in_trash
  412  rest_precondition_failed      If-Match names an older state          precondition_failed
  413  rest_body_too_large           more bytes than the server reads       too_large
  422  rest_idempotency_mismatch     the key was used for something else    key_reused
  429  rest_too_many_attempts        guessing is slowed down                slow_down
       rest_quota_exceeded           the account's records of a day         quota_exceeded
  431  rest_head_too_large           headers beyond the limit               head_too_large
  any  rest_batch_failed             an operation of a batch was refused    batch_failed
  503  rest_unavailable              the database is busy or away           unavailable
                                     a write was slow and was rolled back   too_slow
       rest_outcome_unknown          the write may or may not be stored     outcome_unknown
  507  rest_insufficient_storage     the disk of the database is full       out_of_storage
"""

from collections.abc import Iterable, Mapping, Sequence

from kalends.core.messages import Sentence


class Invalid(ValueError):
    """A value breaks a rule. The sentence says what would be right: `Invalid("at most {n}.", n=5)`."""

    def __init__(self, text: str, /, **values: object) -> None:
        super().__init__(text)
        self.sentence = Sentence(text, **values)

    @property
    def message(self) -> str:
        return str(self.sentence)

    def __str__(self) -> str:
        return self.message


class Refusal(Exception):
    """An answer other than success."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str | Sentence,
        *,
        data: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(str(message))
        self.status = status
        self.code = code
        self.sentence = message if isinstance(message, Sentence) else Sentence(message)
        self.data = dict(data or {})  # Sentences in here are said where the answer is made, too.
        self.headers = dict(headers or {})

    @property
    def message(self) -> str:
        return str(self.sentence)


def missing_params(names: Iterable[str]) -> Refusal:
    listed = list(names)
    return Refusal(
        400,
        "rest_missing_callback_param",
        Sentence("Missing parameter(s): {names}.", names=", ".join(listed)),
        data={"params": listed},
    )


def invalid(name: str, text: str, /, **values: object) -> Refusal:
    """One parameter breaks a rule: `invalid("parent", "there is no category {id}.", id=7)`."""
    return invalid_params({name: problem_of(name, Sentence(text, **values))})


def problem_of(name: str, problem: Sentence) -> Sentence:
    return Sentence("`{name}`: {problem}", name=name, problem=problem)


def invalid_params(problems: Mapping[str, Sentence]) -> Refusal:
    return Refusal(
        400,
        "rest_invalid_param",
        Sentence(
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


def invalid_json(reason: str, *, utf8: bool = True) -> Refusal:
    """The numbers of the codes are those that existing clients know: 4 syntax, 5 encoding."""
    return Refusal(
        400,
        "rest_invalid_json",
        Sentence("The body is not readable as JSON: {reason}", reason=reason),
        data={"json_error_code": 4 if utf8 else 5, "json_error_message": reason},
    )


def invalid_host() -> Refusal:
    return Refusal(
        400, "rest_invalid_host", "The Host header must be one name of at most 255 bytes, with or without a port."
    )


def invalid_form(reason: str | Sentence) -> Refusal:
    return Refusal(400, "rest_invalid_form", Sentence("The form cannot be read: {reason}", reason=reason))


def invalid_encoding() -> Refusal:
    return invalid_form(Sentence("names and values must be UTF-8."))


def too_many_fields(limit: int) -> Refusal:
    return invalid_form(Sentence("at most {limit} fields are read.", limit=limit))


def too_many_records(limit: int) -> Refusal:
    return Refusal(
        400,
        "rest_too_many_records",
        Sentence(
            "One request can create at most {limit} records, venues, organizers and terms inside events included; "
            "send the others in another request.",
            limit=limit,
        ),
        data={"limit": limit},
    )


def term_exists(term_id: int, what: str) -> Refusal:
    return Refusal(
        400,
        "term_exists",
        Sentence("A term with this `{what}` exists already: {id}.", what=what, id=term_id),
        data={"term_id": term_id},
    )


def bad_credentials() -> Refusal:
    """One answer for an unknown user and a wrong password, so that neither can be told from the other."""
    return Refusal(401, "incorrect_password", "The user name or the application password is wrong.")


def forbidden(why: Sentence, *, anonymous: bool) -> Refusal:
    if anonymous:
        return Refusal(401, "rest_forbidden", Sentence("Sign in: {why}", why=why))
    return Refusal(403, "rest_forbidden", Sentence("You are not allowed to do this: {why}", why=why))


def read_only() -> Refusal:
    return Refusal(403, "rest_read_only", "This application password may only read.")


def cross_site() -> Refusal:
    return Refusal(
        403,
        "rest_cross_site",
        "Pages of another site may not send forms here: send JSON, or have the origin named in KALENDS_CORS_ORIGINS.",
    )


def not_accessible(singular: str) -> Refusal:
    return Refusal(403, f"{singular}-not-accessible", _of_kind(NOT_PUBLISHED, singular))


def no_longer_available(singular: str) -> Refusal:
    return Refusal(403, f"{singular}-no-longer-available", _of_kind(IN_TRASH, singular))


def password_needed() -> Refusal:
    return Refusal(403, "event-password-protected", "This event is protected: send its `password`.")


def no_route() -> Refusal:
    return Refusal(404, "rest_no_route", "There is nothing at this path.")


def unknown_namespace(namespace: str) -> Refusal:
    return Refusal(
        404,
        "rest_invalid_namespace",
        Sentence("There is no such namespace here; `namespace` can only be {namespace}.", namespace=namespace),
    )


def unknown_site() -> Refusal:
    return Refusal(404, "rest_unknown_site", "No site of this server answers to this host.")


def not_found(singular: str) -> Refusal:
    return Refusal(404, f"rest-{singular}-not-found", _of_kind(NOT_FOUND, singular))


def no_such_page(singular: str) -> Refusal:
    return Refusal(404, f"{singular}-archive-page-not-found", "There is no such page: the list is shorter.")


def method_not_allowed(method: str, allowed: Iterable[str]) -> Refusal:
    listed = ", ".join(allowed)
    return Refusal(
        405,
        "rest_method_not_allowed",
        Sentence("{method} is not known here; this path knows {methods}.", method=method, methods=listed),
        headers={"Allow": listed},
    )


def body_timeout() -> Refusal:
    return Refusal(408, "rest_request_timeout", "The body did not arrive in time.")


def in_progress() -> Refusal:
    return Refusal(
        409,
        "rest_request_in_progress",
        "The first request with this Idempotency-Key is still running.",
        headers={"Retry-After": "1"},
    )


def conflict() -> Refusal:
    return Refusal(409, "rest_conflict", "This contradicts what is stored; read the record again.")


def in_use(users: Sequence[Mapping[str, object]]) -> Refusal:
    return Refusal(
        409,
        "rest_media_in_use",
        "Records show this image; with `force` it is taken away from them.",
        data={"used_by": users},
    )


def expired(oldest: int) -> Refusal:
    return Refusal(
        410,
        "rest_history_expired",
        Sentence("What was before revision {oldest} has been forgotten; begin again without it.", oldest=oldest),
        data={"oldest": oldest},
    )


def batch_failed(number: int, refusal: Refusal, error: Mapping[str, object]) -> Refusal:
    """The status is that of the operation that failed."""
    return Refusal(
        refusal.status,
        "rest_batch_failed",
        Sentence(
            "Nothing was written: operation {number} was refused. {problem}", number=number, problem=refusal.sentence
        ),
        data={"operation": number, "error": error},
    )


def in_trash(singular: str) -> Refusal:
    return Refusal(410, f"{singular}-is-in-trash", _of_kind(IN_TRASH, singular))


def precondition_failed() -> Refusal:
    return Refusal(
        412,
        "rest_precondition_failed",
        "The record has changed since: read it again, then repeat the change.",
    )


def too_large(limit: int) -> Refusal:
    return Refusal(413, "rest_body_too_large", Sentence("A body may have at most {limit} bytes.", limit=limit))


def head_too_large(limit: int) -> Refusal:
    return Refusal(
        431, "rest_head_too_large", Sentence("The headers of a request may have at most {limit} bytes.", limit=limit)
    )


def key_reused() -> Refusal:
    return Refusal(
        422, "rest_idempotency_mismatch", "This Idempotency-Key was used for another request: take a new one."
    )


def slow_down(seconds: int) -> Refusal:
    return Refusal(
        429,
        "rest_too_many_attempts",
        Sentence("Too many wrong attempts; try again in {seconds} s.", seconds=seconds),
        headers={"Retry-After": str(seconds)},
    )


def quota_exceeded(limit: int, seconds: int) -> Refusal:
    return Refusal(
        429,
        "rest_quota_exceeded",
        Sentence(
            "This account has created {limit} records today; retry in {seconds} s.", limit=limit, seconds=seconds
        ),
        headers={"Retry-After": str(seconds)},
    )


BUSY = Sentence("The service is busy; try again in a moment.")


def unavailable(message: str | Sentence = BUSY) -> Refusal:
    return Refusal(503, "rest_unavailable", message, headers={"Retry-After": "1"})


def too_slow(seconds: float) -> Refusal:
    return unavailable(
        Sentence(
            "The write took longer than {seconds} s and was rolled back; write fewer records at once.",
            seconds=f"{seconds:g}",
        )
    )


def fault(request_id: str) -> Refusal:
    return Refusal(
        500, "internal_server_error", Sentence("A fault of the server; it is logged as {id}.", id=request_id)
    )


def outcome_unknown() -> Refusal:
    return Refusal(
        503,
        "rest_outcome_unknown",
        "The write may or may not be stored; repeat it with the same Idempotency-Key.",
        headers={"Retry-After": "2"},
    )


def out_of_storage() -> Refusal:
    return Refusal(507, "rest_insufficient_storage", "The server has no room left to store this.")


# Sentences about a record, whole for each kind: in most languages more than the noun differs.
NOT_FOUND = {
    "event": Sentence("There is no such event."),
    "venue": Sentence("There is no such venue."),
    "organizer": Sentence("There is no such organizer."),
    "category": Sentence("There is no such category."),
    "tag": Sentence("There is no such tag."),
    "media": Sentence("There is no such image."),
    "": Sentence("There is no such record."),
}
NOT_PUBLISHED = {
    "event": Sentence("This event is not published."),
    "venue": Sentence("This venue is not published."),
    "organizer": Sentence("This organizer is not published."),
    "": Sentence("This record is not published."),
}
IN_TRASH = {
    "event": Sentence("This event is in the trash."),
    "venue": Sentence("This venue is in the trash."),
    "organizer": Sentence("This organizer is in the trash."),
    "": Sentence("This record is in the trash."),
}


def _of_kind(sentences: Mapping[str, Sentence], singular: str) -> Sentence:
    return sentences.get(singular, sentences[""])
