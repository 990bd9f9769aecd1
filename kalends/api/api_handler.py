"""API request handling: authentication, parameters, one transaction, one operation, response.

Writes authenticate the caller before doing anything expensive.
"""

import hashlib
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Final

import orjson
from starlette.requests import Request
from starlette.responses import Response

from kalends.api.api_request import (
    OperationInput,
    check_description,
    needs_preparation,
    parse_body,
    prepare_input,
    raise_if_strict,
    read_input,
    report_new_names,
    require_writer,
    store_upload,
)
from kalends.api.description.document import DocumentUrls, describe_interface
from kalends.api.description.index import RootSite, describe_index, describe_root, describe_route
from kalends.calendar.access.operation_context import OperationContext, Outcome
from kalends.calendar.storage import history_tables
from kalends.core import errors, times
from kalends.core.errors import ApiError
from kalends.core.messages import translator
from kalends.core.params import read_list
from kalends.core.times import offset_of
from kalends.http import bodies, responses
from kalends.http.auth import (
    WrongCredentials,
    admit_password,
    authenticate,
    authenticate_session,
    explain_rejection,
    reauthenticate,
    record_failure,
    reject_cross_site,
    require_same_origin,
)
from kalends.http.bodies import RawParams
from kalends.http.request import ApiRequest
from kalends.http.router import MAX_FIELDS, UPDATES, Endpoint, locate
from kalends.store.database import Transaction
from kalends.store.site_revisions import SiteRevision

# A body up to this length has usually arrived with its request head.
SHORT_BODY: Final = 64 * 1024


async def handle_api_request(api_request: ApiRequest) -> Response:
    """Return the response to an API request; count wrong credentials as a failed login."""
    try:
        return await _dispatch(api_request)
    except WrongCredentials as error:
        # The replica may not have a new password yet, so only the primary rejects a password and counts the failure.
        if api_request.retry():
            return await handle_api_request(api_request)
        async with api_request.transaction(writing=True) as tx:
            await record_failure(tx, error.account, api_request.client_ip)
        raise errors.bad_credentials() from error
    except ApiError as error:
        # Like existing servers, reject unsupported or malformed credentials only if the request requires
        # authentication.
        if error.status == 401 and (explained := explain_rejection(api_request.request.headers)):
            raise explained from error
        raise


async def _dispatch(api_request: ApiRequest) -> Response:
    request = api_request.request
    if api_request.path == "" or (api_request.path == "/doc" and api_request.interface.has_document):
        return await _describe(api_request)
    if api_request.route is None:
        raise errors.no_route()
    if request.method == "OPTIONS":
        return await _describe(api_request)
    method = _read_method(request)
    endpoint = api_request.route.endpoint("GET" if method == "HEAD" else method)
    if endpoint is None:
        raise errors.method_not_allowed(method, api_request.route.methods)
    return await (_handle_write(api_request, endpoint) if endpoint.is_write else _handle_read(api_request, endpoint))


async def identify(api_request: ApiRequest, tx: Transaction) -> None:
    if header := api_request.credentials:
        authentication = await authenticate(tx, header, api_request.client_ip)
        api_request.actor, api_request.password_id = authentication.actor, authentication.password_id
    else:
        await authenticate_session(api_request, tx)


async def _handle_read(api_request: ApiRequest, endpoint: Endpoint) -> Response:
    """Respond to a read. Wrong credentials take precedence over invalid parameters."""
    raw, params = await _read_query(api_request, endpoint)
    if isinstance(params, ApiError):
        async with api_request.transaction() as tx:
            api_request.remember_site(tx.site)
            await identify(api_request, tx)
        raise params
    password = admit_password(api_request, params) if params.get("password") else nullcontext(params)
    async with password as values, api_request.transaction() as tx:
        api_request.remember_site(tx.site)
        await identify(api_request, tx)
        outcome = await endpoint.operation(
            endpoint.kind, _make_context(api_request, endpoint, tx, OperationInput(raw, values))
        )
        # Do not cache `/changes` (each client requests it once), files or responses to authenticated callers.
        if outcome.table is None and endpoint.kind is not None and api_request.is_public and "password" not in values:
            api_request.site_revision = SiteRevision(tx.site.id, tx.site.revision)
            api_request.expires_at, api_request.cache_tags = outcome.expires_at, outcome.cache_tags
            api_request.site_secret = tx.site.secret
    # Writing a file takes time and needs no database connection.
    if endpoint.respond is not None:
        return await endpoint.respond(outcome, api_request.language)
    return _respond(api_request, raw, outcome)


async def _read_query(api_request: ApiRequest, endpoint: Endpoint) -> tuple[RawParams, dict[str, Any] | ApiError]:
    """Return a read's raw parameters, and either the parsed parameters or the error."""
    raw = RawParams()
    try:
        raw = await bodies.read_values(api_request.request, b"")
        if api_request.is_strict:
            raise_if_strict(api_request, endpoint.params)
        return raw, endpoint.read_params(raw.values)
    except ApiError as error:
        return raw, error


async def _handle_write(api_request: ApiRequest, endpoint: Endpoint) -> Response:
    """Respond to a write. Read all input before the site is locked, to hold the lock only briefly."""
    if api_request.session_token:
        require_same_origin(api_request.request, api_request.authority, api_request.state.base_url)
    reject_cross_site(api_request.request, api_request.state.origins)
    if not _has_short_body(api_request, endpoint):
        return await _handle_long_write(api_request, endpoint)
    body = await bodies.read_body(api_request.request, min(SHORT_BODY, api_request.state.max_body_bytes))
    # One transaction authenticates the caller and writes. A wrong password never waits for the lock.
    async with api_request.transaction(writing=True) as tx:
        await _identify_writer(api_request, endpoint, tx)
        sent = await parse_body(api_request, endpoint, body)
        if not needs_preparation(api_request, endpoint, sent):
            return await _write(api_request, endpoint, tx, sent)
    sent = await prepare_input(api_request, endpoint, tx.site, sent)
    return await _write_again(api_request, endpoint, sent)


def _has_short_body(api_request: ApiRequest, endpoint: Endpoint) -> bool:
    """Return whether to read the body before authentication, because it is short and already on its way."""
    request = api_request.request
    is_plain = endpoint.read_input is None and not endpoint.accepts_file and not endpoint.is_preview
    is_signed_in = bool(api_request.credentials or api_request.session_token)
    is_announced = "content-length" in request.headers or request.method == "DELETE"
    has_arrived = is_announced and "transfer-encoding" not in request.headers and "expect" not in request.headers
    return is_plain and is_signed_in and has_arrived and bodies.read_content_length(request) <= SHORT_BODY


async def _handle_long_write(api_request: ApiRequest, endpoint: Endpoint) -> Response:
    """Authenticate the caller, read the input without a transaction, then check the caller again and write."""
    async with api_request.transaction() as tx:
        await _identify_writer(api_request, endpoint, tx)
    site, library = tx.site, api_request.state.library
    if endpoint.accepts_file and library is not None:
        require_writer(api_request, endpoint)
        sent = await store_upload(api_request, endpoint, library, site.id)
    else:
        sent = await (endpoint.read_input or read_input)(api_request, endpoint, site)
    if endpoint.is_preview:
        return await _preview(api_request, endpoint, sent)
    return await _write_again(api_request, endpoint, sent)


async def _write_again(api_request: ApiRequest, endpoint: Endpoint, sent: OperationInput) -> Response:
    async with api_request.transaction(writing=True) as tx:
        await _reauthenticate_writer(api_request, endpoint, tx)
        return await _write(api_request, endpoint, tx, sent)


async def _preview(api_request: ApiRequest, endpoint: Endpoint, sent: OperationInput) -> Response:
    """Run an operation with a write's parameters in a read-only transaction."""
    async with api_request.transaction() as tx:
        await _reauthenticate_writer(api_request, endpoint, tx)
        return (await _run(api_request, endpoint, _make_context(api_request, endpoint, tx, sent), sent.raw))[0]


async def _identify_writer(api_request: ApiRequest, endpoint: Endpoint, tx: Transaction) -> None:
    api_request.remember_site(tx.site)
    await identify(api_request, tx)
    if api_request.actor.user_id is None:
        require_writer(api_request, endpoint)


async def _reauthenticate_writer(api_request: ApiRequest, endpoint: Endpoint, tx: Transaction) -> None:
    """Recheck the caller's role and password or session, because reading a body can take minutes."""
    if api_request.password_id is not None:
        api_request.actor = await reauthenticate(tx, api_request.password_id)
    else:
        await authenticate_session(api_request, tx)
    require_writer(api_request, endpoint)


async def _write(api_request: ApiRequest, endpoint: Endpoint, tx: Transaction, sent: OperationInput) -> Response:
    """Run a write under the site lock, and report the resulting site revision in a header."""
    context = _make_context(api_request, endpoint, tx, sent)
    response = await _run_once(api_request, endpoint, context, sent.raw)
    response.headers["X-Kalends-Revision"] = str(tx.changes.revision)
    return response


async def _run_once(
    api_request: ApiRequest, endpoint: Endpoint, context: OperationContext, raw: RawParams
) -> Response:
    """Lock the site and write, or return the stored response if the write's Idempotency-Key was used before."""
    tx, user_id = context.transaction, api_request.actor.user_id
    key = _read_idempotency_key(api_request.request)
    if not key or user_id is None:
        await tx.lock_site(user_id)
        return (await _run(api_request, endpoint, context, raw))[0]
    fingerprint = _fingerprint(api_request.request, raw.body)
    await history_tables.lock_key(tx, user_id, key)
    await tx.lock_site(user_id)
    stored = await history_tables.find_response(tx, user_id, key, fingerprint)
    if stored is not None:
        return Response(stored.body, stored.status, {**stored.headers, "Idempotent-Replay": "true"})
    response, outcome = await _run(api_request, endpoint, context, raw)
    repeated = response
    if outcome.shown_once:
        body = {name: value for name, value in outcome.body.items() if name not in outcome.shown_once}
        repeated = _respond(api_request, raw, replace(outcome, body=body))
    headers = {
        name: response.headers[name] for name in ("content-type", "location", "etag") if name in response.headers
    }
    await history_tables.store_response(
        tx,
        user_id,
        key,
        fingerprint,
        history_tables.StoredResponse(response.status_code, headers, bytes(repeated.body)),
    )
    return response


async def _run(
    api_request: ApiRequest, endpoint: Endpoint, context: OperationContext, raw: RawParams
) -> tuple[Response, Outcome]:
    outcome = await endpoint.operation(endpoint.kind, context)
    report_new_names(api_request, outcome.ignored_params)
    return _respond(api_request, raw, outcome), outcome


def _make_context(
    api_request: ApiRequest, endpoint: Endpoint, tx: Transaction, sent: OperationInput
) -> OperationContext:
    record_id, slug = locate(api_request.path_params)
    return api_request.operation_context(
        tx,
        api_request.prefix,
        upload=sent.upload,
        file=sent.file,
        fetched_images=sent.fetched_images,
        stored_pictures=sent.stored_pictures,
        values=sent.values,
        record_id=record_id,
        slug=slug,
        fragments=api_request.state.fragments if "_fields" not in sent.raw.values else None,
        query_pairs=_select_known(sent.raw.query, endpoint) if sent.raw.query else (),
        if_match=responses.read_if_match(api_request.request.headers.get("if-match")) if endpoint.is_write else None,
    )


def _select_known(pairs: list[tuple[str, str]], endpoint: Endpoint) -> list[tuple[str, str]]:
    """Return the query parameters to keep in the links to other pages."""
    known_names = {p.name for p in endpoint.params} - {"page"}
    return [(name, value) for name, value in pairs if name.partition("[")[0] in known_names]


def _respond(api_request: ApiRequest, raw: RawParams, outcome: Outcome) -> Response:
    headers = api_request.request.headers
    known_etags = (
        responses.split_etags(headers.get("if-none-match", ""))
        if api_request.request.method in ("GET", "HEAD")
        else []
    )
    fields = [str(name) for name in read_list(raw.values.get("_fields", []))]
    envelope = bodies.is_set(raw.values.get("_envelope"))
    return responses.respond(outcome, fields, envelope, known_etags, language=api_request.language)


async def _describe(api_request: ApiRequest) -> Response:
    """Respond with a discovery document, a namespace index, the OpenAPI document or a route description."""
    request = api_request.request
    if request.method not in ("GET", "HEAD", "OPTIONS"):
        raise errors.method_not_allowed(request.method, ["GET"])
    async with api_request.transaction() as tx:
        api_request.remember_site(tx.site)
        await identify(api_request, tx)
        base_url = api_request.base_url(tx.site.base_url)
        defaults = _computed_defaults(tx)
        root_site = RootSite(tx.site.name, base_url, tx.site.timezone, offset_of(tx.now, tx.site.timezone))
    if api_request.route is None:
        check_description(api_request)
    api_url, response_language = base_url + api_request.prefix, api_request.language
    translate = translator(response_language)
    if not api_request.namespace:
        body = describe_root(root_site, api_url, api_request.namespaces, defaults, translate)
        if fields := [str(name) for name in read_list(bodies.query_value(request, "_fields") or "")]:
            body = responses.select_fields(body, fields[:MAX_FIELDS])
    elif api_request.route is not None:
        body = describe_route(api_request.route, api_url, api_request.namespace, defaults, translate)
    elif api_request.path == "/doc" and request.method != "OPTIONS":
        urls = DocumentUrls(base_url, api_request.prefix, api_request.canonical_prefix)
        document = describe_interface(api_request.interface, urls, response_language, defaults["per_page"])
        return responses.description_response(document, response_language, request.headers.get("if-none-match", ""))
    else:
        index = describe_index(api_request.interface, api_url, api_request.namespace, defaults, translate)
        namespace = bodies.query_value(request, "namespace") or api_request.namespace
        if namespace != api_request.namespace:
            raise errors.unknown_namespace(api_request.namespace)
        route_path = f"/{api_request.namespace}{api_request.path}"
        body = index["routes"][route_path] if request.method == "OPTIONS" else index
    return responses.description_response(
        orjson.dumps(body), response_language, request.headers.get("if-none-match", "")
    )


def redirect_to_document(request: Request, prefix: str) -> Response:
    if request.method not in ("GET", "HEAD"):
        raise errors.method_not_allowed(request.method, ["GET"])
    return Response(status_code=302, headers={"Location": f"{prefix}/doc", "Cache-Control": "public, max-age=3600"})


def _computed_defaults(tx: Transaction) -> dict[str, Any]:
    start, end = times.default_window(tx.now, tx.site.timezone)
    return {
        "per_page": tx.site.per_page,
        "start_date": times.format_datetime(start),
        "end_date": times.format_datetime(end),
    }


def _read_method(request: Request) -> str:
    """Return the request method; only POST can be overridden, with PUT, PATCH or DELETE."""
    if request.method != "POST":
        return request.method
    override = bodies.query_value(request, "_method") or request.headers.get("x-http-method-override")
    if not override:
        return request.method
    if override.upper() not in (*UPDATES, "DELETE"):
        raise errors.invalid("_method", "must be PUT, PATCH or DELETE.")
    return override.upper()


def _read_idempotency_key(request: Request) -> str:
    key = request.headers.get("idempotency-key", "") if request.method == "POST" else ""
    if len(key) > 255:
        raise errors.invalid("Idempotency-Key", "must have at most 255 characters.")
    return key


def _fingerprint(request: Request, body: bytes) -> bytes:
    content_type = request.headers.get("content-type", "").partition(";")[0]
    head = f"{request.method} {request.scope['path']}\n{content_type}\n"
    query: bytes = request.scope["query_string"]
    return hashlib.sha256(head.encode(errors="surrogateescape") + query + b"\n" + body).digest()
