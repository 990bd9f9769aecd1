"""Validates the head of a request before anything else looks at it, and normalizes its query string.

Links are built from the host, and cache keys from host, path and query: nothing that a client
adds to them beyond their meaning reaches either.
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
# Parameters that every read takes besides its own and `lang`.
COMMON_NAMES: Final = frozenset(["_fields", "_envelope"])


def read_host(request: Request) -> str:
    """Returns the validated `name[:port]` of a request in lower case; "" when it names none."""
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
    """Returns the name by which a site is found: the host without its port."""
    return re.sub(r":[0-9]+\Z", "", host)


def normalize_query(request: Request, known: Collection[str]) -> list[tuple[str, str]] | None:
    """Reduces the query string to parameters that have a meaning, ordered by name, and returns them.

    Values of one name keep their order. None: the query string cannot be read and stays as it is.
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
