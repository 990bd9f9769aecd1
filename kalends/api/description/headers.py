"""Descriptions of request and response headers, and of the parameters that every route accepts."""

from typing import Any, Final

from kalends.api.catalog import Endpoint
from kalends.core.messages import gettext_noop as N_
from kalends.http.language import LANGUAGES

SUCCESS: Final = N_("Success.")
CREATED: Final = N_("Created.")
EXISTING: Final = N_("A published record with the same data exists, and is returned unchanged.")
NOT_MODIFIED: Final = N_("Nothing has changed since the response identified by `If-None-Match`.")
SECURITY: Final = N_("User name and application password, as printed by `kalends app-password create`.")
NAMESPACE: Final = N_("Only the namespace of this API is accepted")
CONTEXT: Final = N_("Accepted but ignored")

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
    "Access-Control-Max-Age": _header(NON_NEGATIVE, N_("Seconds for which a browser may cache this permission")),
}  # fmt: skip
# Every response has, or may have, these headers, so only the first one is repeated in each description.
COMMON_HEADERS: Final = (
    "X-Request-ID", "Link", "Vary", "Cache-Control", "X-Content-Type-Options", "X-Robots-Tag", "Allow",
    "X-Kalends-Ignored-Params", "Age",
    *[name for name in HEADERS if name.startswith("Access-Control-")],
)  # fmt: skip
DOCUMENTED_ALWAYS: Final = COMMON_HEADERS[:1]
TOTAL_HEADERS: Final = ("X-TEC-Total", "X-TEC-TotalPages", "X-WP-Total", "X-WP-TotalPages")


def list_parameters(endpoint: Endpoint) -> list[str]:
    """Return the names of the request headers and common parameters of an endpoint."""
    own = "Idempotency-Key" if endpoint.is_write else "X-Kalends-Revision"
    return [*COMMON_PARAMETERS, *endpoint.request_headers, own]


def list_response_headers(endpoint: Endpoint) -> tuple[str, ...]:
    """Return the names of the headers of a successful response, without those of every response."""
    own = ("Idempotent-Replay", "X-Kalends-Revision") if endpoint.is_write else ("Surrogate-Key",)
    return (*endpoint.response_headers, *own)
