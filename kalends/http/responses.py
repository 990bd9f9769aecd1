"""Responses: JSON, headers, CORS, ETags, `_fields`, `_envelope`, error pages."""

import asyncio
import hashlib
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Any, Final

import orjson
from starlette.requests import Request
from starlette.responses import Response

from kalends.calendar.access.caching import format_surrogate_key
from kalends.calendar.access.operation_context import Outcome
from kalends.core import errors
from kalends.core.errors import BUSY, ApiError
from kalends.core.messages import DEFAULT, Message, gettext_noop as N_, translator
from kalends.core.recurrence.rule_sentences import RuleText
from kalends.http.bodies import ClientDisconnected, Send
from kalends.http.cache import CachedResponse, PreparedResponse, accepts_gzip
from kalends.http.request import RequestContext
from kalends.rendering.rule_texts import describe_sentence

JSON = "application/json; charset=UTF-8"


def respond(
    outcome: Outcome, fields: list[str], envelope: bool, known_etags: Iterable[str], *, language: str = DEFAULT
) -> Response:
    """Return the response for an outcome, or a 304 if the client has the current response."""
    headers = _page_headers(outcome)
    body: Any = outcome.body if outcome.items is None else outcome.items
    if fields:
        body = select_fields(body, fields) if outcome.items is None else [select_fields(r, fields) for r in body]
    if envelope:
        body = {"body": body, "status": outcome.status, "headers": headers}
    encoded = encode_json(body, language)
    if outcome.location:
        headers["Location"] = outcome.location
    if outcome.revision is not None or outcome.page is not None:
        headers["ETag"] = body_etag(encoded) if outcome.revision is None else etag(outcome.revision, encoded)
        if is_known_etag(headers["ETag"], known_etags):
            return Response(status_code=304, headers=headers)
    return Response(encoded, 200 if envelope else outcome.status, headers, media_type=JSON)


def encode_json(body: object, language: str) -> bytes:
    """Encode a body, translating its messages and rule descriptions."""
    translate = translator(language)

    def encode(value: object) -> str:
        if isinstance(value, Message):
            return value.render(translate)
        if isinstance(value, RuleText):
            return describe_sentence(value.sentence, language)
        raise TypeError(f"{type(value).__name__} is not JSON serializable")

    return orjson.dumps(body, default=encode)


def error_body(error: ApiError) -> dict[str, Any]:
    return {"code": error.code, "message": error.message, "data": {"status": error.status, **error.data}}


def error_response(error: ApiError, language: str, *, envelope: bool = False) -> Response:
    """Return a translated error response; with an envelope, the HTTP status is 200."""
    body = error_body(error)
    if envelope:
        body = {"body": body, "status": error.status, "headers": error.headers}
    headers = {**error.headers, "Content-Language": language}
    status = 200 if envelope else error.status
    return Response(encode_json(body, language), status, headers, media_type=JSON)


def description_response(encoded: bytes, language: str, known_etags: str) -> Response:
    """Return an encoded API description, or a 304 if the client has the current one."""
    tag = f'"{hashlib.blake2b(encoded, digest_size=8).hexdigest()}"'
    headers = {"Content-Language": language, "ETag": tag}
    if tag in split_etags(known_etags):
        return Response(status_code=304, headers=headers)
    return Response(encoded, 200, headers, media_type=JSON)


def etag(revision: int, encoded: bytes) -> str:
    """Return a record's ETag: the revision, for If-Match, and a hash, because embedded data changes separately."""
    return f'"{revision}-{hashlib.sha1(encoded, usedforsecurity=False).hexdigest()[:16]}"'


def body_etag(encoded: bytes) -> str:
    """Return the ETag of a list or page: a hash of the body, because unrelated changes must not invalidate it."""
    return f'W/"{hashlib.sha1(encoded, usedforsecurity=False).hexdigest()[:16]}"'


def is_known_etag(tag: str, known_etags: Iterable[str]) -> bool:
    """Return whether If-None-Match contains an ETag (weak comparison); * matches every ETag."""
    known = {known.removeprefix("W/") for known in known_etags}
    return "*" in known or tag.removeprefix("W/") in known


def read_if_match(header: str | None, name: str = "If-Match") -> frozenset[int] | None:
    """Return the revisions that If-Match accepts, or None if the header is absent or *.

    Raise 400 if the header is empty.
    """
    if header is None:
        return None
    tags = split_etags(header)
    if not tags:
        raise errors.empty_if_match(name)
    if "*" in tags:
        return None
    return frozenset(revision for tag in tags if (revision := read_revision(tag)) is not None)


def read_revision(tag: str) -> int | None:
    """Return the revision in a record's ETag, strong or weak, or None for any other ETag."""
    number, dash, _ = tag.removeprefix("W/").strip('"').partition("-")
    return int(number) if dash and number.isdecimal() and len(number) < 19 else None


def split_etags(header: str) -> list[str]:
    return [tag.strip() for tag in header.split(",") if tag.strip()]


def select_fields(record: Mapping[str, Any], fields: list[str]) -> dict[str, Any]:
    """Return a copy with only these keys. Dots select keys in nested objects and lists."""
    selected: dict[str, Any] = {}
    subfields: dict[str, list[str]] = {}
    for name in fields:
        head, _, rest = name.partition(".")
        subfields.setdefault(head, []).append(rest)
    for name, names in subfields.items():
        if name not in record:
            continue
        value = record[name]
        if "" in names:
            selected[name] = value
        elif isinstance(value, dict):
            selected[name] = select_fields(value, names)  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(value, list):
            selected[name] = [select_fields(entry, names) for entry in value if isinstance(entry, dict)]  # pyright: ignore
    return selected


def _page_headers(outcome: Outcome) -> dict[str, str]:
    page = outcome.page
    if page is None:
        return {}
    headers = {
        "X-TEC-Total": str(page.total),
        "X-TEC-TotalPages": str(page.total_pages),
        "X-WP-Total": str(page.total),
        "X-WP-TotalPages": str(page.total_pages),
    }
    links = [(page.previous_url, "prev"), (page.next_url, "next")]
    link_values = [f'<{url}>; rel="{rel}"' for url, rel in links if url]
    if link_values:
        headers["Link"] = ", ".join(link_values)
    return headers


# Headers common to all responses: request ID, caching, content negotiation.

# For this many seconds, a shared cache may serve an outdated response while it fetches a new one.
REVALIDATION_SECONDS: Final = 60
NOT_STORED: Final = "private, no-store"


@dataclass(frozen=True, slots=True)
class HeaderPolicy:
    origins: Sequence[str]  # origins whose scripts may read responses
    shared_cache_seconds: int = 10
    stale_seconds: int = 60  # how long to use a cached response while the database is unavailable
    sends_tags: bool = False  # whether shared caches are purged by cache tags

    def cache_control(self, expires_at: datetime | None, now: datetime) -> str:
        """Return Cache-Control. Browsers always revalidate; shared caches keep a public response until it expires."""
        seconds, revalidation = self.shared_cache_seconds, REVALIDATION_SECONDS
        if expires_at is not None:
            if expires_at <= now:
                return NOT_STORED
            remaining = int((expires_at - now).total_seconds())
            seconds = min(seconds, remaining)
            revalidation = min(revalidation, remaining - seconds)
        stale = f", stale-if-error={self.stale_seconds}" if self.stale_seconds else ""
        return f"public, max-age=0, s-maxage={seconds}, stale-while-revalidate={revalidation}{stale}"

    @property
    def vary(self) -> str:
        return "Accept-Encoding" if "*" in self.origins else "Accept-Encoding, Origin"

    def make_common(self, response: Response, context: RequestContext[Any] | None, request_id: str) -> dict[str, str]:
        """Return the headers that every kind of response has."""
        headers = {"X-Request-ID": request_id, "X-Content-Type-Options": "nosniff"}
        if context is None:
            return headers
        if context.site_revision is not None and response.status_code in (200, 304):
            headers["Cache-Control"] = (
                "no-store" if context.outage_age else self.cache_control(context.expires_at, context.now)
            )
            if context.outage_age:
                headers["Age"] = str(int(max(context.outage_age, 1.0)))
            if context.cache_tags and self.sends_tags:
                headers["Surrogate-Key"] = format_surrogate_key(
                    context.site_revision.site_id, context.site_secret, context.cache_tags
                )
        elif "Cache-Control" not in response.headers:
            headers["Cache-Control"] = NOT_STORED
        return headers


def set_headers(response: Response, headers: Mapping[str, str]) -> None:
    """Set several headers in place. Assigning to `response.headers` would search all headers each time."""
    fields = response.raw_headers
    places = {name: place for place, (name, _) in enumerate(fields)}
    for name, value in headers.items():
        field = (name.lower().encode("latin-1"), value.encode("latin-1"))
        if (place := places.get(field[0])) is None:
            fields.append(field)
        else:
            fields[place] = field


# Cross-origin resource sharing: the origins that may read responses, and the headers they may use.

# Response headers that cross-origin scripts may read.
EXPOSED_HEADERS: Final = (
    "X-TEC-Total, X-TEC-TotalPages, X-WP-Total, X-WP-TotalPages, Link, Location, ETag, Allow, "
    "Content-Language, Retry-After, X-Request-ID, Idempotent-Replay, X-Kalends-Ignored-Params, "
    "X-Kalends-Revision, X-TEC-API-ROOT, X-TEC-API-VERSION, X-TEC-API-ORIGIN"
)
# Request headers that cross-origin scripts may send. WordPress clients send a checksum and a nonce. Kalends ignores
# both, but preflight requests would fail if they were not listed.
ALLOWED_HEADERS: Final = (
    "Authorization, Content-Disposition, Content-MD5, Content-Type, Idempotency-Key, If-Match, If-None-Match, "
    "Last-Event-ID, X-HTTP-Method-Override, X-Kalends-Revision, X-Request-ID, X-WP-Nonce"
)
HEADERS: Final = {
    "Access-Control-Expose-Headers": EXPOSED_HEADERS,
    "Access-Control-Allow-Methods": "OPTIONS, GET, POST, PUT, PATCH, DELETE",
    "Access-Control-Allow-Headers": ALLOWED_HEADERS,
    "Access-Control-Max-Age": "600",
}


def make_headers(request: Request, origins: Sequence[str]) -> dict[str, str]:
    """Return the CORS headers for a request's origin. Credentials stored by the browser are never allowed."""
    origin = request.headers.get("origin", "")
    allowed = "*" if "*" in origins else origin if origin in origins else ""
    return {"Access-Control-Allow-Origin": allowed, **HEADERS} if allowed else {}


# Responses are sent in chunks, so only one chunk waits in the send buffer for a slow client, not the whole body.

CHUNK_BYTES: Final = 64 * 1024
# A client that does not accept a chunk within this many seconds is disconnected.
MAX_SECONDS_PER_CHUNK: Final = 30
# Clients and shared caches use these headers to recognize a current response.
VALIDATORS: Final = (b"etag", b"surrogate-key")


async def send_response(send: Send, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes) -> None:
    """Send a response in chunks; raise ClientDisconnected if the client stops reading."""
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})
    for start in range(0, max(len(body), 1), CHUNK_BYTES):
        more = start + CHUNK_BYTES < len(body)
        try:
            async with asyncio.timeout(MAX_SECONDS_PER_CHUNK):
                await send(
                    {"type": "http.response.body", "body": body[start : start + CHUNK_BYTES], "more_body": more}
                )
        except TimeoutError as error:
            raise ClientDisconnected from error


async def prepare_cached(
    context: RequestContext[Any], cached: CachedResponse, origins: Sequence[str], *, is_outdated: bool = False
) -> PreparedResponse:
    """Compress a cached response for this request, or turn it into a 304. An outdated response gets no ETag."""
    request = context.request
    fields = [pair for pair in cached.headers if not is_outdated or pair[0] not in VALIDATORS]
    allowed = {**make_headers(request, origins), **context.own_headers}
    fields += [(name.lower().encode(), value.encode()) for name, value in allowed.items()]
    body, status = cached.body, 200
    known = split_etags(request.headers.get("if-none-match", ""))
    if cached.etag and not is_outdated and is_known_etag(cached.etag, known):
        body, status = b"", 304
    elif accepts_gzip(request.headers.get("accept-encoding", "")) and (packed := await cached.compress()):
        body = packed
        fields.append((b"content-encoding", b"gzip"))
    if status == 200:
        fields.append((b"content-length", str(len(body)).encode()))
    return PreparedResponse(status, fields, b"" if request.method == "HEAD" else body, cached.expires_at)


async def send_prepared(
    send: Send, prepared: PreparedResponse, policy: HeaderPolicy, now: datetime, *, request_id: str, age: float = 0.0
) -> None:
    """Send a cached response. A response with an age may be outdated, so no cache may store it."""
    control = "no-store" if age else policy.cache_control(prepared.expires_at, now)
    fields = [*prepared.headers, (b"x-request-id", request_id.encode()), (b"cache-control", control.encode())]
    if age:
        fields.append((b"age", str(int(max(age, 1.0))).encode()))
    await send_response(send, prepared.status, fields, prepared.body)


# The built-in error page for browsers, used if the server cannot render a site page. It needs no database.

STYLE: Final = """
:root { color-scheme: light dark }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; font: 1.125rem/1.5 system-ui, sans-serif }
main { max-width: 34rem; padding: 2rem 1.5rem }
h1 { margin: 0 0 .75rem; font-size: 1.75rem; line-height: 1.2; text-wrap: balance }
p { margin: 0 0 .75rem }
.reason { opacity: .75; font-size: 1rem }
code { white-space: nowrap }
"""
_STYLE_HASH: Final = b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY: Final = f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'"


def make_error_page(error: ApiError, language: str) -> Response:
    translate = translator(language)
    if error.status == 503:
        heading = translate(N_("Temporarily unavailable"))
        advice = translate(N_("The calendar can’t be shown right now. Please try again in a few minutes."))
    else:
        heading, advice = translate(N_("This page can’t be shown")), ""
    reason = "" if error.message == BUSY else error.message.render(translate)
    paragraphs = [f"<p>{escape(advice)}</p>" if advice else ""]
    marked = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(reason))
    paragraphs.append(f'<p class="reason">{marked}</p>' if reason else "")
    body = f"""<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<title>{escape(heading)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>{escape(heading)}</h1>
{"".join(paragraphs)}
</main>
</body>
</html>
"""
    headers = {**error.headers, "Content-Language": language, "Content-Security-Policy": POLICY}
    return Response(body, error.status, headers, media_type="text/html; charset=utf-8")
