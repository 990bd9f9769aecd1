"""Handling of requests to the console: same origin, session, role, form, view. Errors become pages."""

from urllib.parse import urlsplit

from starlette.responses import RedirectResponse, Response

from kalends.console.assets import ASSETS, serve_asset
from kalends.console.rendering import show
from kalends.console.request import ConsoleRequest, sign_in_url
from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.messages import gettext_noop as N_
from kalends.http import requests
from kalends.http.auth import authenticate_session
from kalends.http.encoding import compress_response
from kalends.http.sessions import SAFE_METHODS, require_same_origin

TITLES = {
    403: N_("You may not do this"),
    404: N_("There is no such page"),
    429: N_("Try again later"),
}


async def serve_console(console_request: ConsoleRequest) -> Response:
    """Respond to a request to the console, compressed if the browser accepts that."""
    response = await _respond(console_request)
    await compress_response(console_request.request, response)
    return response


async def _respond(console_request: ConsoleRequest) -> Response:
    """Return the response of a view. Client errors become pages; scripts get them as JSON."""
    if console_request.path.startswith(ASSETS):
        return serve_asset(console_request.path)
    try:
        return await _serve(console_request)
    except ApiError as error:
        wants_html = "application/json" not in console_request.request.headers.get("accept", "")
        if not wants_html or error.status >= 500:
            raise
        title = TITLES.get(error.status, N_("This did not work"))
        response = show(console_request, "message.html", status=error.status, title=title, message=error.message)
        response.headers.update(error.headers)
        return response


async def _serve(console_request: ConsoleRequest) -> Response:
    request, route = console_request.request, console_request.route
    is_frequent = route is not None and route.has_frequent_post and request.method == "POST"
    if not is_frequent:
        async with console_request.transaction() as tx:
            console_request.remember_site(tx.site)
            await authenticate_session(console_request, tx)
        if elsewhere := _find_other_host(console_request):
            return RedirectResponse(elsewhere, status_code=307)
    if route is None:
        raise errors.no_route()
    view = route.find_view(request.method)
    require_same_origin(request, console_request.authority, console_request.state.base_url)
    if route.min_role != "anonymous" and not is_frequent:
        if console_request.session is None:
            return RedirectResponse(sign_in_url(request), status_code=303)
        console_request.require_role(route.min_role)
    if request.method not in SAFE_METHODS and route.reads_body:
        body = await requests.read_body(request, console_request.state.max_body_bytes)
        console_request.form = (await requests.read_values(request, body)).values
    return await view(console_request)


def _find_other_host(console_request: ConsoleRequest) -> str:
    """Return the URL of this page on the host of the site, if it was requested on another one.

    Passkeys and cookies belong to one host, so a site with several hosts has its console on the first.
    """
    base_url = console_request.site.base_url or console_request.state.base_url
    if not base_url or urlsplit(base_url).netloc.lower() == console_request.authority:
        return ""
    request = console_request.request
    if request.method not in SAFE_METHODS:
        return ""
    query: str = request.scope["query_string"].decode("latin-1")
    return f"{base_url.rstrip('/')}{request.scope['path']}{f'?{query}' if query else ''}"
