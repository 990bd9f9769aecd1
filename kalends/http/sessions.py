"""The session cookie, and protection against requests that pages of other sites trigger with it.

The cookie is honoured by the console and by the API, for requests of the same origin only. Public pages ignore it, so
they are the same for everybody and can be cached.
"""

from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from kalends.core import errors

# The prefix makes browsers accept it only over HTTPS (or from localhost), for this host and for all paths.
COOKIE: Final = "__Host-kalends"
COOKIE_DAYS: Final = 90
SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")


def read_cookie(request: Request) -> str:
    """Return the value of the session cookie, or an empty string."""
    return request.cookies.get(COOKIE, "")


def set_cookie(response: Response, token: str) -> None:
    response.set_cookie(
        COOKIE, token, max_age=COOKIE_DAYS * 86_400, path="/", secure=True, httponly=True, samesite="lax"
    )


def delete_cookie(response: Response) -> None:
    response.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="lax")


def is_same_origin(request: Request, authority: str, base_url: str) -> bool:
    """Return whether a page of this origin sent the request.

    Browsers send `Sec-Fetch-Site` over HTTPS and to localhost, and pages cannot change it. Without it, `Origin`
    decides; a request with neither is not accepted.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        return site == "same-origin"
    if not origin:
        return False
    return urlsplit(origin).netloc.lower() in {authority, urlsplit(base_url).netloc.lower()} - {""}


def require_same_origin(request: Request, authority: str, base_url: str) -> None:
    """Reject a write with a session cookie that may come from a page of another site.

    `request.method` is the method on the wire: a method override in a form must not avoid this check.
    """
    if request.method not in SAFE_METHODS and not is_same_origin(request, authority, base_url):
        raise errors.cross_site()


def is_navigation(request: Request) -> bool:
    """Return whether the browser opens the page in a tab, also by a link on a page of another site."""
    headers = request.headers
    return headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"


def is_own_read(request: Request, authority: str, base_url: str) -> bool:
    """Return whether a read may use the session cookie: it was typed in, or sent by a page of this origin."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        return site in ("same-origin", "none")
    return not origin or is_same_origin(request, authority, base_url)
