"""Handling of API requests: authentication, parameters, one transaction, one operation, response.

The caller of a write is authenticated before anything expensive happens.
"""

import asyncio
import hashlib
from contextlib import nullcontext
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from kalends.api.catalog import UPDATES, Endpoint, locate
from kalends.api.description.document import DocumentUrls, describe_interface
from kalends.api.description.index import RootSite, describe_index, describe_root, describe_route
from kalends.api.ignored_params import check_description, check_write, raise_if_strict, report_new_names
from kalends.api.images import fetch_images, find_image_urls, store_upload
from kalends.api.import_files import is_form, read_input_file
from kalends.api.request import ApiRequest, OperationInput, identify
from kalends.core import errors, times
from kalends.core.errors import ApiError
from kalends.core.params import find_missing, read_list, read_params
from kalends.core.zones import offset_of
from kalends.http import language, requests, responses
from kalends.http.auth import (
    WrongCredentials,
    authenticate_session,
    explain_rejection,
    make_challenge,
    reauthenticate,
    record_failure,
)
from kalends.http.cross_site import reject_cross_site
from kalends.http.password_guesses import admit_password, hash_new_passwords
from kalends.http.requests import RawParams
from kalends.http.sessions import require_same_origin
from kalends.http.table_files import respond_with_table
from kalends.kinds.kind import Actor
from kalends.kinds.media import MEDIA
from kalends.operations import permissions
from kalends.operations.context import OperationContext, Outcome
from kalends.store import idempotency
from kalends.store.database import Transaction
from kalends.store.site_revisions import SiteRevision
from kalends.store.sites import Site

# Parameters of larger bodies are read in a thread, because sanitizing long HTML takes time.
LARGE_BODY = 2048
MAX_FIELDS = 100


async def handle_api_request(api_request: ApiRequest) -> Response:
    """Return the response to an API request; count wrong credentials as a failed login."""
    try:
        return await _dispatch(api_request)
    except WrongCredentials as error:
        # The password may be too new for the replica. Only the primary decides, and counts.
        if api_request.retry():
            return await handle_api_request(api_request)
        async with api_request.transaction(writing=True) as tx:
            await record_failure(tx, error.account, api_request.client_ip)
        raise errors.bad_credentials() from error
    except ApiError as error:
        # Credentials of another scheme are ignored where none are needed, as on existing servers.
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
        # Don't cache `/changes` (each client asks once), files or responses to authenticated callers.
        if outcome.table is None and endpoint.kind is not None and api_request.is_public and "password" not in values:
            api_request.site_revision = SiteRevision(tx.site.id, tx.site.revision)
            api_request.expires_at, api_request.cache_tags = outcome.expires_at, outcome.cache_tags
            api_request.site_secret = tx.site.secret
    # Writing a file takes time, for which no connection to the database is needed.
    if outcome.table is not None:
        return await respond_with_table(outcome.table, api_request.language)
    return _respond(api_request, raw, outcome)


async def _read_query(api_request: ApiRequest, endpoint: Endpoint) -> tuple[RawParams, dict[str, Any] | ApiError]:
    """Return the parameters of a read as sent, and as read or the error in them."""
    raw = RawParams()
    try:
        raw = await requests.read_values(api_request.request, b"")
        raise_if_strict(api_request, endpoint.params)
        return raw, _read_params(endpoint, raw)
    except ApiError as error:
        return raw, error


async def _handle_write(api_request: ApiRequest, endpoint: Endpoint) -> Response:
    """Respond to a write. Read the whole input before the transaction, so that it holds the site lock briefly."""
    if api_request.session_token:
        require_same_origin(api_request.request, api_request.authority, api_request.state.base_url)
    reject_cross_site(api_request.request, api_request.state.origins)
    site, library = await _authenticate_writer(api_request, endpoint), api_request.state.library
    if endpoint.accepts_file and library is not None:
        _require_writer(api_request, endpoint)
        sent = await store_upload(api_request, endpoint, library, site.id)
    elif endpoint.accepts_input and is_form(api_request.request):
        _require_writer(api_request, endpoint)
        sent = await read_input_file(api_request, endpoint)
    else:
        sent = await _read_input(api_request, endpoint, site)
    if endpoint.is_preview:
        return await _preview(api_request, endpoint, sent)
    async with api_request.transaction(writing=True) as tx:
        await _reauthenticate_writer(api_request, endpoint, tx)
        response = await _write(api_request, endpoint, _make_context(api_request, endpoint, tx, sent), sent.raw)
        response.headers["X-Kalends-Revision"] = str(tx.changes.revision)
        return response


async def _preview(api_request: ApiRequest, endpoint: Endpoint, sent: OperationInput) -> Response:
    """Run an operation that has the parameters of a write but changes nothing, in a read-only transaction."""
    async with api_request.transaction() as tx:
        await _reauthenticate_writer(api_request, endpoint, tx)
        return await _run(api_request, endpoint, _make_context(api_request, endpoint, tx, sent), sent.raw)


async def _read_input(api_request: ApiRequest, endpoint: Endpoint, site: Site) -> OperationInput:
    """Read the body of a write, hash its event passwords and fetch its images."""
    body = await requests.read_body(api_request.request, api_request.state.max_body_bytes)
    raw = await requests.read_values(api_request.request, body)
    if raw.files and endpoint.kind is MEDIA:
        raise errors.invalid("file", "image files cannot be replaced; upload a new image.")
    _reject_unread_body(endpoint, raw)
    check_write(api_request, endpoint, raw)
    values = (
        await asyncio.to_thread(_read_params, endpoint, raw)
        if len(body) > LARGE_BODY
        else _read_params(endpoint, raw)
    )
    _require_writer(api_request, endpoint)
    await hash_new_passwords(site, values)
    fetched_images = await fetch_images(api_request, site.id, find_image_urls(endpoint.kind, values))
    return OperationInput(raw, values, fetched_images=fetched_images)


def _reject_unread_body(endpoint: Endpoint, raw: RawParams) -> None:
    """Raise if the body was not read, unless the request is complete without it: a DELETE, or all is in the URL."""
    if raw.unread is None or endpoint.methods == ("DELETE",):
        return
    missing = find_missing(endpoint.params, raw.values, update=endpoint.is_update)
    if missing or not any(p.name in raw.values for p in endpoint.params):
        raise errors.unread_body(raw.unread.content_type, missing, is_json=raw.unread.is_json)


async def _authenticate_writer(api_request: ApiRequest, endpoint: Endpoint) -> Site:
    """Authenticate the caller, reject an anonymous one, and return the site."""
    async with api_request.transaction() as tx:
        api_request.remember_site(tx.site)
        await identify(api_request, tx)
        if api_request.actor.user_id is None:
            _require_writer(api_request, endpoint)
        return tx.site


async def _reauthenticate_writer(api_request: ApiRequest, endpoint: Endpoint, tx: Transaction) -> None:
    """Check the caller's password or session and role again, because reading a body can take minutes."""
    if api_request.password_id is not None:
        api_request.actor = await reauthenticate(tx, api_request.password_id)
    else:
        await authenticate_session(api_request, tx)
    _require_writer(api_request, endpoint)


def _require_writer(api_request: ApiRequest, endpoint: Endpoint) -> None:
    """Raise unless the caller may write to an endpoint."""
    if api_request.actor.read_only:
        raise errors.read_only()
    permissions.require_role(api_request.actor, endpoint.min_role)
    permissions.require_writer(api_request.actor, endpoint.kind)


def _read_params(endpoint: Endpoint, raw: RawParams) -> dict[str, Any]:
    """Read the parameters of an operation; raise if `_fields` has too many names."""
    if len(read_list(raw.values.get("_fields", []))) > MAX_FIELDS:
        raise errors.invalid("_fields", "must have at most {limit} names.", limit=MAX_FIELDS)
    return read_params(endpoint.params, raw.values, update=endpoint.is_update)


async def _write(api_request: ApiRequest, endpoint: Endpoint, context: OperationContext, raw: RawParams) -> Response:
    """Run a write under the site lock; return the stored response if its Idempotency-Key was used before."""
    tx, user_id = context.transaction, api_request.actor.user_id
    key = _read_idempotency_key(api_request.request)
    if not key or user_id is None:
        await tx.lock_site(user_id)
        return await _run(api_request, endpoint, context, raw)
    fingerprint = _fingerprint(api_request.request, raw.body)
    await idempotency.lock_key(tx, user_id, key)
    await tx.lock_site(user_id)
    stored = await idempotency.find_response(tx, user_id, key, fingerprint)
    if stored is not None:
        return Response(stored.body, stored.status, {**stored.headers, "Idempotent-Replay": "true"})
    response = await _run(api_request, endpoint, context, raw)
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


async def _run(api_request: ApiRequest, endpoint: Endpoint, context: OperationContext, raw: RawParams) -> Response:
    outcome = await endpoint.operation(endpoint.kind, context)
    report_new_names(api_request, outcome.ignored_params)
    return _respond(api_request, raw, outcome)


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
        values=sent.values,
        record_id=record_id,
        slug=slug,
        accepts_fragments=not endpoint.is_write and "_fields" not in sent.raw.values,
        query_pairs=_select_known(sent.raw.query, endpoint) if sent.raw.query else (),
        if_match=responses.read_if_match(api_request.request.headers.get("if-match")) if endpoint.is_write else None,
    )


def _select_known(pairs: list[tuple[str, str]], endpoint: Endpoint) -> list[tuple[str, str]]:
    """Return the parameters that the links to other pages keep."""
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
    envelope = requests.is_set(raw.values.get("_envelope"))
    return responses.respond(outcome, fields, envelope, known_etags, language=api_request.language)


async def _describe(api_request: ApiRequest) -> Response:
    """Respond with the discovery document of a REST root, the index of a namespace, the OpenAPI document, or the
    description of a route to OPTIONS."""
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
    translate = language.translator(response_language)
    if not api_request.namespace:
        body = describe_root(root_site, api_url, api_request.namespaces, defaults, translate)
        if fields := [str(name) for name in read_list(requests.query_value(request, "_fields") or "")]:
            body = responses.select_fields(body, fields[:MAX_FIELDS])
    elif api_request.route is not None:
        body = describe_route(api_request.route, api_url, api_request.namespace, defaults, translate)
    elif api_request.path == "/doc" and request.method != "OPTIONS":
        urls = DocumentUrls(base_url, api_request.prefix, api_request.canonical_prefix)
        document = describe_interface(api_request.interface, urls, response_language, defaults["per_page"])
        return responses.description_response(document, response_language, request.headers.get("if-none-match", ""))
    else:
        index = describe_index(api_request.interface, api_url, api_request.namespace, defaults, translate)
        namespace = requests.query_value(request, "namespace") or api_request.namespace
        if namespace != api_request.namespace:
            raise errors.unknown_namespace(api_request.namespace)
        route_path = f"/{api_request.namespace}{api_request.path}"
        body = index["routes"][route_path] if request.method == "OPTIONS" else index
    return responses.description_response(
        orjson.dumps(body), response_language, request.headers.get("if-none-match", "")
    )


def redirect_to_document(request: Request, prefix: str) -> Response:
    """Redirect to the OpenAPI document of the namespace at this path prefix."""
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


def allowed_methods(api_request: ApiRequest) -> list[str]:
    """Return the methods that the caller may use on the path."""
    if api_request.route is None:
        return ["GET"]
    return [
        method
        for endpoint in api_request.route.endpoints
        if _may_call(api_request.actor, endpoint)
        for method in endpoint.methods
    ]


def _may_call(actor: Actor, endpoint: Endpoint) -> bool:
    if permissions.rank(actor) < endpoint.min_role:
        return False
    return not endpoint.is_write or permissions.may_write(actor, endpoint.kind)


def make_headers(api_request: ApiRequest, response: Response, vary: str) -> dict[str, str]:
    """Return the headers of API responses: methods, discovery, and the request headers that they vary by."""
    existing = response.headers
    headers = {**api_request.own_headers, "X-Robots-Tag": "noindex", "Vary": f"Authorization, {vary}"}
    if "Content-Language" in existing:  # Records are not translated, so they do not vary.
        headers["Vary"] += ", Accept-Language"
    # Browsers would open a dialog; only they send this header, and scripts cannot change it.
    if response.status_code == 401 and "sec-fetch-mode" not in api_request.request.headers:
        headers["WWW-Authenticate"] = make_challenge(api_request.site_name)
    # A throttled caller is not authenticated, so `Allow` cannot be computed.
    if "Allow" not in existing and response.status_code not in (404, 429):
        headers["Allow"] = ", ".join(allowed_methods(api_request))
    api_root = api_request.base_url("") + api_request.prefix.removesuffix(f"/{api_request.namespace}")
    discovery = f'<{api_root}/>; rel="https://api.w.org/"'
    headers["Link"] = f"{discovery}, {existing['Link']}" if "Link" in existing else discovery
    return headers


def _read_method(request: Request) -> str:
    """Return the method of a request; only a POST can be overridden, with PUT, PATCH or DELETE."""
    if request.method != "POST":
        return request.method
    override = requests.query_value(request, "_method") or request.headers.get("x-http-method-override")
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
