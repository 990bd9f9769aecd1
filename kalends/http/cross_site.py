"""Protection against cross-site request forgery with credentials that a browser has stored."""

from collections.abc import Sequence
from typing import Final

from starlette.requests import Request

from kalends.core import errors

# Content types that a browser sends across sites without a preflight request: those of HTML forms, or none.
# Every other type needs a preflight, whose response does not allow stored credentials.
SIMPLE_CONTENT_TYPES: Final = ("", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain")


def reject_cross_site(request: Request, origins: Sequence[str]) -> None:
    """Reject a write that a page of another site may have triggered, unless `origins` lists that site explicitly.

    Only browsers send `Sec-Fetch-Site`, and pages cannot change it.
    """
    headers = request.headers
    if headers.get("sec-fetch-site", "") != "cross-site" or headers.get("origin", "*") in _explicit_origins(origins):
        return
    content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.method == "POST" and content_type in SIMPLE_CONTENT_TYPES:
        raise errors.cross_site()


def _explicit_origins(origins: Sequence[str]) -> list[str]:
    return [origin for origin in origins if origin not in ("*", "null")]
