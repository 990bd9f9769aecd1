"""The addresses of the REST API without pretty permalinks: `/?rest_route=/…` and `/index.php/wp-json/…`."""

from collections.abc import MutableMapping
from typing import Any, Final
from urllib.parse import unquote_plus

from kalends.core import errors
from kalends.http.requests import base_name

PARAM: Final = "rest_route"
SCRIPT: Final = "/index.php"


def rewrite_rest_route(scope: MutableMapping[str, Any], root: str) -> None:
    """Rewrite the path and the query string of a request in one of these forms to the path below the REST root.

    This happens before anything reads them, so caches, parameters and links only know the rewritten form. As in
    WordPress, the parameter works on every address, and its last value counts. Raise 404 if the parameter is present
    but there is no REST root.
    """
    path: str = scope["path"]
    if root and path.lower().startswith(f"{SCRIPT}{root}".lower()):
        _set_path(scope, path[len(SCRIPT) :])
    query: bytes = scope["query_string"]
    # Every request passes here; the name of the parameter may be percent-encoded.
    if PARAM.encode() not in query and b"%" not in query:
        return
    pairs = [(base_name(_decode(pair.partition(b"=")[0])), pair) for pair in query.split(b"&")]
    routes = [pair for name, pair in pairs if name == PARAM]
    if not routes:
        return
    if not root:
        raise errors.no_route()
    scope["query_string"] = b"&".join(pair for name, pair in pairs if name != PARAM)
    name, _, value = routes[-1].partition(b"=")
    # A list, `rest_route[]=…`, is not a path.
    route = _decode(value).removeprefix("/") if _decode(name) == PARAM else "[]"
    _set_path(scope, f"{root}/{route}")


def _decode(text: bytes) -> str:
    return unquote_plus(text.decode("utf-8", "replace"), errors="replace")


def _set_path(scope: MutableMapping[str, Any], path: str) -> None:
    scope["path"], scope["raw_path"] = path, path.encode(errors="replace")
