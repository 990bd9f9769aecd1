"""Writes that the page of another site has a browser send, with credentials that the browser has stored."""

from collections.abc import Sequence
from typing import Final

from starlette.requests import Request

from kalends.core import errors

# What a browser sends for any page without asking first (a preflight): the types of HTML forms, or none.
# With every other type it asks, and is told that its stored credentials are not accepted.
SIMPLE_CONTENT_TYPES: Final = ("", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain")


def reject_cross_site(request: Request, origins: Sequence[str]) -> None:
    """Refuses a write that another site's page may have caused, unless its origin is named in `origins`.

    `*` names nobody. Programs do not send `Sec-Fetch-Site`; browsers do, and pages cannot change it.
    """
    headers = request.headers
    if headers.get("sec-fetch-site", "") != "cross-site" or headers.get("origin", "*") in _explicit_origins(origins):
        return
    content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.method == "POST" and content_type in SIMPLE_CONTENT_TYPES:
        raise errors.cross_site()


def _explicit_origins(origins: Sequence[str]) -> list[str]:
    return [origin for origin in origins if origin not in ("*", "null")]
