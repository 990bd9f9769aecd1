"""Validation of the request head, and normalization of the query string.

Both happen first, because links are built from the host, and cache keys from host, path and query string.
"""

import re
from collections.abc import Collection
from operator import itemgetter
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request

from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.http_limits import MAX_HEAD_BYTES
from kalends.http.language import find_language
from kalends.http.requests import base_name, read_pairs

MAX_HOST_LENGTH: Final = 255
HOST: Final = re.compile(r"([a-z0-9_][a-z0-9_.-]*|\[[0-9a-f:.]{2,45}\])?(:[0-9]{1,5})?", re.ASCII | re.IGNORECASE)
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
# Parameters of every read, besides `lang`.
COMMON_NAMES: Final = frozenset(["_fields", "_envelope"])


def read_host(request: Request) -> str:
    """Return the validated `name[:port]` of a request in lower case, or an empty string without a Host header."""
    scope = request.scope
    if sum(len(name) + len(value) for name, value in scope["headers"]) + len(scope["query_string"]) > MAX_HEAD_BYTES:
        raise errors.head_too_large(MAX_HEAD_BYTES)
    if scope["method"] == "CONNECT":
        raise errors.method_not_allowed(scope["method"], METHODS)
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    text = hosts[0].decode("latin-1") if hosts else ""
    if len(hosts) > 1 or len(text) > MAX_HOST_LENGTH or not HOST.fullmatch(text):
        raise errors.invalid_host()
    return text.lower()


def strip_port(host: str) -> str:
    """Return the host without its port, which identifies the site."""
    return re.sub(r":[0-9]+\Z", "", host)


def normalize_query(request: Request, known: Collection[str]) -> list[tuple[str, str]] | None:
    """Reduce the query string to known parameters, sort them by name, and return them.

    Values of one name keep their order. If the query string cannot be read, leave it unchanged and return None.
    """
    try:
        pairs = read_pairs(request.scope["query_string"])
    except ApiError:
        return None
    normalized = [pair for pair in pairs if (name := base_name(pair[0])) in known or name in COMMON_NAMES]
    normalized += [
        ("lang", language) for name, value in pairs if name == "lang" and (language := find_language(value))
    ][:1]
    normalized.sort(key=itemgetter(0))
    request.scope["query_string"] = urlencode(normalized, safe="[],:@/").encode()
    return normalized
