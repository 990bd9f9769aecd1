"""A request as a straight line: actor and site -> raw values -> parameters -> one transaction ->
one operation -> response. Nothing costly is done for a write before its caller has signed in."""

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from kalends.api.catalog import UPDATES, Endpoint, locate
from kalends.api.description.document import Place, describe_interface
from kalends.api.description.index import describe_index, describe_route
from kalends.api.image_urls import addresses_of_images
from kalends.api.images import fetch_images, require_writer, sign_in_writer, take_file
from kalends.api.request import Exchange, identify
from kalends.core import errors, times
from kalends.core.booleans import parse_bool
from kalends.core.errors import ApiError
from kalends.core.params import read_list, read_params
from kalends.http import language, media_files, requests, responses
from kalends.http.auth import WrongCredentials, note_failure
from kalends.http.cross_site import refuse_cross_site
from kalends.http.password_guesses import admit_password, hash_new_passwords
from kalends.http.requests import Raw
from kalends.kinds.media import MEDIA
from kalends.operations import permissions
from kalends.operations.context import Call, Outcome
from kalends.store import idempotency
from kalends.store.database import Transaction
from kalends.store.site_revisions import SiteRevision

# Above this size parameters are read in a thread: cleaning long HTML takes time.
LARGE_BODY = 2048
MAX_FIELDS = 100


async def answer(exchange: Exchange) -> Response:
    """The response of the interface to one request."""
    try:
        return await _answer(exchange)
    except WrongCredentials as wrong:
        async with exchange.transaction(writing=True) as tx:
            await note_failure(tx, wrong.account, exchange.client)
        raise errors.bad_credentials() from wrong


async def _answer(exchange: Exchange) -> Response:
    request = exchange.request
    if exchange.path in ("", "/doc"):
        return await _describe(exchange)
    if exchange.route is None:
        raise errors.no_route()
    if request.method == "OPTIONS":
        return await _describe(exchange)
    method = _method(request)
    endpoint = exchange.route.endpoint("GET" if method == "HEAD" else method)
    if endpoint is None:
        raise errors.method_not_allowed(method, exchange.route.methods)
    return await (_change(exchange, endpoint) if endpoint.writes else _show(exchange, endpoint))


async def _show(exchange: Exchange, endpoint: Endpoint) -> Response:
    """Answers a read. Wrong credentials are refused before wrong parameters."""
    raw, read = await _read_query(exchange, endpoint)
    if isinstance(read, ApiError):
        async with exchange.transaction() as tx:
            exchange.site_language = tx.site.language
            await identify(exchange, tx)
        raise read
    async with admit_password(exchange, read) as values, exchange.transaction() as tx:
        exchange.site_language = tx.site.language
        await identify(exchange, tx)
        outcome = await endpoint.operation(endpoint.kind, _call(exchange, endpoint, tx, raw=raw, values=values))
        # What changed since a revision is asked once by each; what somebody else may see is not shared.
        shared = endpoint.kind is not None and "authorization" not in exchange.request.headers
        if shared and "password" not in values:
            exchange.made_at = SiteRevision(tx.site.id, tx.site.revision)
            exchange.until, exchange.keys = outcome.until, outcome.keys
        return _respond(exchange, raw, outcome)


async def _read_query(exchange: Exchange, endpoint: Endpoint) -> tuple[Raw, dict[str, Any] | ApiError]:
    """Returns the parameters of a read, or why they are refused."""
    raw = Raw()
    try:
        raw = await requests.read_values(exchange.request, b"")
        return raw, _read(endpoint, raw)
    except ApiError as refusal:
        return raw, refusal


async def _change(exchange: Exchange, endpoint: Endpoint) -> Response:
    """Answers a write. Nothing is read before the caller has signed in, and nothing is locked meanwhile."""
    refuse_cross_site(exchange.request, exchange.service.origins)
    site, library = await sign_in_writer(exchange, endpoint.kind), exchange.service.library
    if endpoint.takes_file and library is not None:
        require_writer(exchange, endpoint.kind)
        raw, values = await take_file(exchange, endpoint, library, site.id)
    else:
        body = await requests.read_body(exchange.request, exchange.service.body_limit)
        raw = await requests.read_values(exchange.request, body)
        if raw.files and endpoint.kind is MEDIA:
            raise errors.invalid("file", "the file of an image is not replaced: send it as a new image.")
        values = await asyncio.to_thread(_read, endpoint, raw) if len(body) > LARGE_BODY else _read(endpoint, raw)
        require_writer(exchange, endpoint.kind)
        await hash_new_passwords(site, values)
        await fetch_images(exchange, site.id, addresses_of_images(values))
    async with exchange.transaction(writing=True) as tx:
        return await _write(exchange, endpoint, _call(exchange, endpoint, tx, raw=raw, values=values), raw)


def _read(endpoint: Endpoint, raw: Raw) -> dict[str, Any]:
    """Reads the parameters of an operation, and bounds those that shape its response."""
    if len(read_list(raw.values.get("_fields", []))) > MAX_FIELDS:
        raise errors.invalid("_fields", "at most {limit} names are taken.", limit=MAX_FIELDS)
    return read_params(endpoint.params, raw.values, update=endpoint.updates)


async def _write(exchange: Exchange, endpoint: Endpoint, call: Call, raw: Raw) -> Response:
    """A write under the lock of the site; with an Idempotency-Key at most once."""
    tx, user_id = call.transaction, exchange.actor.user_id
    key = _idempotency_key(exchange.request)
    if not key or user_id is None:
        await tx.lock_site(user_id)
        return _respond(exchange, raw, await endpoint.operation(endpoint.kind, call))
    fingerprint = _fingerprint(exchange.request, raw.body)
    await idempotency.lock_key(tx, user_id, key)
    await tx.lock_site(user_id)
    kept = await idempotency.find_response(tx, user_id, key, fingerprint)
    if kept is not None:
        return Response(kept.body, kept.status, {**kept.headers, "Idempotent-Replay": "true"})
    response = _respond(exchange, raw, await endpoint.operation(endpoint.kind, call))
    headers = {
        name: response.headers[name] for name in ("content-type", "location", "etag") if name in response.headers
    }
    await idempotency.store_response(
        tx,
        user_id,
        key,
        fingerprint,
        idempotency.StoredResponse(response.status_code, headers, bytes(response.body)),
    )
    return response


def _call(
    exchange: Exchange,
    endpoint: Endpoint,
    tx: Transaction,
    *,
    raw: Raw,
    values: dict[str, Any],
) -> Call:
    base_url = exchange.base_url(tx.site.base_url)
    known = {p.name for p in endpoint.params} - {"page"}
    record_id, slug = locate(exchange.address)
    return Call(
        transaction=tx,
        actor=exchange.actor,
        base_url=base_url,
        ns=base_url + exchange.home,
        ours=base_url + exchange.prefix,
        media_url=exchange.service.media_url or base_url + media_files.PREFIX,
        client=exchange.client,
        daily_records=exchange.service.daily_records,
        fragments=exchange.service.fragments,
        library=exchange.service.library,
        upload=exchange.upload,
        fetched=exchange.fetched,
        values=values,
        record_id=record_id,
        slug=slug,
        sent=[(name, value) for name, value in raw.query if name.partition("[")[0] in known],
        expected=_expected(exchange.request.headers.get("if-match", "")),
    )


def _respond(exchange: Exchange, raw: Raw, outcome: Outcome) -> Response:
    headers = exchange.request.headers
    known = (
        responses.split_tags(headers.get("if-none-match", "")) if exchange.request.method in ("GET", "HEAD") else []
    )
    fields = [str(name) for name in read_list(raw.values.get("_fields", []))]
    envelope = _switch(raw.values.get("_envelope"))
    return responses.respond(outcome, fields, envelope, known, language=exchange.language)


async def _describe(exchange: Exchange) -> Response:
    """The index, the description document, and OPTIONS on any path."""
    request = exchange.request
    if request.method not in ("GET", "HEAD", "OPTIONS"):
        raise errors.method_not_allowed(request.method, ["GET"])
    async with exchange.transaction() as tx:
        exchange.site_language = tx.site.language
        await identify(exchange, tx)
        base_url = exchange.base_url(tx.site.base_url)
        defaults = _computed_defaults(tx)
    ns, spoken = base_url + exchange.prefix, exchange.language
    say = language.translator(spoken)
    if exchange.route is not None:
        body = describe_route(exchange.route, ns, exchange.namespace, defaults, say)
    elif exchange.path == "/doc" and request.method != "OPTIONS":
        place = Place(base_url, exchange.prefix, exchange.home)
        found = describe_interface(exchange.interface, place, spoken, defaults["per_page"])
        return responses.describe(found, spoken, request.headers.get("if-none-match", ""))
    else:
        index = describe_index(exchange.interface, ns, exchange.namespace, defaults, say)
        asked = requests.query_value(request, "namespace") or exchange.namespace
        if asked != exchange.namespace:
            raise errors.unknown_namespace(exchange.namespace)
        at = f"/{exchange.namespace}{exchange.path}"
        body = index["routes"][at] if request.method == "OPTIONS" else index
    return responses.describe(orjson.dumps(body), spoken, request.headers.get("if-none-match", ""))


def _computed_defaults(tx: Transaction) -> dict[str, Any]:
    start, end = times.default_window(tx.now, tx.site.timezone)
    return {
        "per_page": tx.site.per_page,
        "start_date": times.format_datetime(start),
        "end_date": times.format_datetime(end),
    }


def allowed_methods(exchange: Exchange) -> list[str]:
    """The methods that this caller may use on this path."""
    if exchange.route is None:
        return ["GET"]
    return [
        method
        for endpoint in exchange.route.endpoints
        if not endpoint.writes or permissions.may_write(exchange.actor, endpoint.kind)
        for method in endpoint.methods
    ]


def add_headers(exchange: Exchange, response: Response, vary: str) -> None:
    """Add the headers of API responses: methods, discovery, and the request headers that they vary by."""
    headers = response.headers
    headers["X-Robots-Tag"] = "noindex"
    headers["Vary"] = f"Authorization, {vary}"
    if "Content-Language" in headers:  # Records are not translated, so they do not vary.
        headers["Vary"] += ", Accept-Language"
    # A throttled caller is not authenticated, so `Allow` cannot be computed.
    if "Allow" not in headers and response.status_code not in (404, 429):
        headers["Allow"] = ", ".join(allowed_methods(exchange))
    api_root = exchange.base_url("") + exchange.prefix.removesuffix(f"/{exchange.namespace}")
    discovery = f'<{api_root}/>; rel="https://api.w.org/"'
    headers["Link"] = f"{discovery}, {headers['Link']}" if "Link" in headers else discovery


def _method(request: Request) -> str:
    """A POST may stand for PUT, PATCH or DELETE; no other method can be overridden."""
    asked = requests.query_value(request, "_method") or request.headers.get("x-http-method-override")
    if request.method != "POST" or not asked:
        return request.method
    if asked.upper() not in (*UPDATES, "DELETE"):
        raise errors.invalid("_method", "a POST can stand for PUT, PATCH or DELETE.")
    return asked.upper()


def _expected(header: str) -> frozenset[int] | None:
    tags: Sequence[str] = responses.split_tags(header)
    if not tags or "*" in tags:
        return None
    return frozenset(revision for tag in tags if (revision := responses.revision_of(tag)) is not None)


def _idempotency_key(request: Request) -> str:
    key = request.headers.get("idempotency-key", "") if request.method == "POST" else ""
    if len(key) > 255:
        raise errors.invalid("Idempotency-Key", "at most 255 characters are taken.")
    return key


def _fingerprint(request: Request, body: bytes) -> bytes:
    content_type = request.headers.get("content-type", "").partition(";")[0]
    head = f"{request.method} {request.scope['path']}\n{content_type}\n"
    query: bytes = request.scope["query_string"]
    return hashlib.sha256(head.encode(errors="surrogateescape") + query + b"\n" + body).digest()


def _switch(value: object) -> bool:
    try:
        return value is not None and parse_bool(value)
    except errors.InvalidValue:
        return False
