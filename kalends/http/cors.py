"""Cross-origin resource sharing: which origins may read responses, and which headers they may use."""

from collections.abc import Sequence
from typing import Final

from starlette.requests import Request

# Response headers that scripts of another origin may read.
EXPOSED_HEADERS: Final = (
    "X-TEC-Total, X-TEC-TotalPages, X-WP-Total, X-WP-TotalPages, Link, Location, ETag, Allow, "
    "Content-Language, Retry-After, X-Request-ID, Idempotent-Replay, X-Kalends-Ignored-Params, "
    "X-Kalends-Revision, X-TEC-API-ROOT, X-TEC-API-VERSION, X-TEC-API-ORIGIN"
)
# Request headers that scripts of another origin may send. Clients of WordPress send a checksum and a nonce, both of
# which are ignored; without their names a preflight would fail.
ALLOWED_HEADERS: Final = (
    "Authorization, Content-Disposition, Content-MD5, Content-Type, Idempotency-Key, If-Match, If-None-Match, "
    "X-HTTP-Method-Override, X-Kalends-Revision, X-Request-ID, X-WP-Nonce"
)
HEADERS: Final = {
    "Access-Control-Expose-Headers": EXPOSED_HEADERS,
    "Access-Control-Allow-Methods": "OPTIONS, GET, POST, PUT, PATCH, DELETE",
    "Access-Control-Allow-Headers": ALLOWED_HEADERS,
    "Access-Control-Max-Age": "600",
}


def make_headers(request: Request, origins: Sequence[str]) -> dict[str, str]:
    """Return the headers for the origin of a request. Credentials that a browser stores are never allowed."""
    origin = request.headers.get("origin", "")
    allowed = "*" if "*" in origins else origin if origin in origins else ""
    return {"Access-Control-Allow-Origin": allowed, **HEADERS} if allowed else {}
