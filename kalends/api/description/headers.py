"""Descriptions of request and response headers, and of the parameters that every route accepts."""

from typing import Any, Final

from kalends.api.catalog import Endpoint
from kalends.core.messages import gettext_noop as N_
from kalends.http.language import LANGUAGES

SUCCESS: Final = N_("Done.")
CREATED: Final = N_("Created.")
NOT_MODIFIED: Final = N_("Nothing has changed since the answer that `If-None-Match` names.")
SECURITY: Final = N_("User name and application password, as `kalends password add` prints it.")
NAMESPACE: Final = N_("Only the namespace itself is known")
CONTEXT: Final = N_("Without effect")

TEXT: Final = {"type": "string"}
NON_NEGATIVE: Final = {"type": "integer", "minimum": 0}


def _parameter(
    name: str, where: str, schema: dict[str, Any], description: str, *, is_extension: bool = True
) -> dict[str, Any]:
    extension = {"x-extension": True} if is_extension else {}
    return {"name": name, "in": where, "description": description, "schema": schema, **extension}


# By name. No operation lists the last three, because they change the shape of the response.
PARAMETERS: Final[dict[str, dict[str, Any]]] = {
    "lang": _parameter("lang", "query", {"type": "string", "enum": list(LANGUAGES)},
                       N_("The language of messages and descriptions")),
    "Accept-Language": _parameter("Accept-Language", "header", TEXT, N_("Languages, the best first")),
    "X-Request-ID": _parameter("X-Request-ID", "header", {"type": "string", "pattern": r"^[\w.:-]{1,100}$"},
                               N_("A name for the request, kept in answer and log")),
    "If-None-Match": _parameter("If-None-Match", "header", TEXT,
                                N_("ETags that are known; if one still holds, the answer is 304")),
    "If-Match": _parameter("If-Match", "header", TEXT,
                           N_("The ETag that the caller knows; a record that differs by now gives 412")),
    "Idempotency-Key": _parameter("Idempotency-Key", "header", {"type": "string", "maxLength": 255},
                                  N_("A request that is repeated with the same key is done once, for a day")),
    "_fields": _parameter("_fields", "query", {"type": "array", "items": TEXT},
                          N_("Only these keys; dots reach into objects and lists"), is_extension=False),
    "_envelope": _parameter("_envelope", "query", {"type": "boolean"},
                            N_("Wraps the answer as `body`, `status` and `headers`"), is_extension=False),
    "_method": _parameter("_method", "query", {"type": "string", "enum": ["PUT", "PATCH", "DELETE"]},
                          N_("What a POST stands for; `X-HTTP-Method-Override` says the same"), is_extension=False),
}  # fmt: skip
COMMON_PARAMETERS: Final = ("lang", "Accept-Language", "X-Request-ID")


def _header(schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"description": description, "schema": schema}


HEADERS: Final[dict[str, dict[str, Any]]] = {
    "X-Request-ID": _header(TEXT, N_("The name of the request, as in the log")),
    "Link": _header(TEXT, N_("The root of the interface; of a list also the pages before and after")),
    "Allow": _header(TEXT, N_("The methods that the caller may use on this path")),
    "Vary": _header(TEXT, N_("What the answer depends on")),
    "Cache-Control": _header(TEXT, N_("Whether and how long the answer may be kept")),
    "X-Content-Type-Options": _header({"const": "nosniff"}, N_("The type of the answer is not to be guessed")),
    "X-Robots-Tag": _header({"const": "noindex"}, N_("Search engines leave it out")),
    "Content-Language": _header({"type": "string", "enum": list(LANGUAGES)},
                                N_("The language of messages and descriptions")),
    "ETag": _header(TEXT, N_("Names this state, for `If-Match` and `If-None-Match`")),
    "Location": _header({"type": "string", "format": "uri"}, N_("The address of the new record")),
    "X-TEC-Total": _header(NON_NEGATIVE, N_("How many records the whole list has")),
    "X-TEC-TotalPages": _header(NON_NEGATIVE, N_("How many pages the list has")),
    "X-WP-Total": _header(NON_NEGATIVE, N_("The same as `X-TEC-Total`")),
    "X-WP-TotalPages": _header(NON_NEGATIVE, N_("The same as `X-TEC-TotalPages`")),
    "Retry-After": _header(NON_NEGATIVE, N_("After how many seconds to try again")),
    "Idempotent-Replay": _header({"const": "true"}, N_("The answer is the first one, repeated")),
    "Surrogate-Key": _header(TEXT, N_("What is in the answer, for caches that forget by key")),
    "Access-Control-Allow-Origin": _header(TEXT, N_("The origin whose scripts may read the answer")),
    "Access-Control-Expose-Headers": _header(TEXT, N_("The headers that such scripts may read")),
    "Access-Control-Allow-Methods": _header(TEXT, N_("The methods that such scripts may use")),
    "Access-Control-Allow-Headers": _header(TEXT, N_("The headers that such scripts may send")),
    "Access-Control-Max-Age": _header(NON_NEGATIVE, N_("For how many seconds the permission holds")),
}  # fmt: skip
# Every response has these headers, so only the first one is repeated in each description.
COMMON_HEADERS: Final = (
    "X-Request-ID", "Link", "Vary", "Cache-Control", "X-Content-Type-Options", "X-Robots-Tag", "Allow",
    *[name for name in HEADERS if name.startswith("Access-Control-")],
)  # fmt: skip
DOCUMENTED_ALWAYS: Final = COMMON_HEADERS[:1]
TOTAL_HEADERS: Final = ("X-TEC-Total", "X-TEC-TotalPages", "X-WP-Total", "X-WP-TotalPages")


def list_parameters(endpoint: Endpoint) -> list[str]:
    """Return the names of the request headers and common parameters of an endpoint."""
    return [*COMMON_PARAMETERS, *endpoint.request_headers, *(["Idempotency-Key"] if endpoint.is_write else [])]


def list_response_headers(endpoint: Endpoint) -> tuple[str, ...]:
    """Return the names of the headers of a successful response, without those of every response."""
    return (*endpoint.response_headers, "Idempotent-Replay" if endpoint.is_write else "Surrogate-Key")
