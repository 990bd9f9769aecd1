"""Validation of the request head, and normalization of the query string.

Both happen first, because links are built from the host, and cache keys from host, path and query string.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from operator import itemgetter
from types import MappingProxyType
from typing import Final, NamedTuple
from urllib.parse import urlencode

from starlette.requests import Request

from kalends.core import errors
from kalends.core.booleans import SPELLINGS
from kalends.core.errors import ApiError
from kalends.core.http_limits import MAX_HEAD_BYTES
from kalends.http.language import find_language
from kalends.http.requests import base_name, read_pairs

MAX_HOST_LENGTH: Final = 255
HOST: Final = re.compile(r"([a-z0-9_][a-z0-9_.-]*|\[[0-9a-f:.]{2,45}\])?(:[0-9]{1,5})?", re.ASCII | re.IGNORECASE)
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
# Parameters of every read, besides `lang` and `strict`.
COMMON_NAMES: Final = frozenset(["_fields", "_envelope"])
# The parameter that rejects requests with ignored parameters. It is not part of the cache key.
STRICT: Final = "strict"
MAX_IGNORED_NAMES: Final = 10
MAX_NAME_LENGTH: Final = 64
# By parameter, a function that replaces an invalid value by a valid one, or by None to ignore the parameter.
type Corrections = Mapping[str, Callable[[str], str | None]]
NO_CORRECTIONS: Final[Corrections] = MappingProxyType({})


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


class NormalizedQuery(NamedTuple):
    """The parameters of a read that have an effect, and the names of the others."""

    pairs: list[tuple[str, str]]
    ignored: tuple[str, ...] = ()
    is_strict: bool = False


def normalize_query(
    request: Request, known: Collection[str], corrections: Corrections = NO_CORRECTIONS
) -> NormalizedQuery | None:
    """Reduce the query string to known parameters, sort them by name, and return them.

    Values of one name keep their order. If the query string cannot be read, leave it unchanged and return None.
    """
    try:
        pairs = read_pairs(request.scope["query_string"])
    except ApiError:
        return None
    normalized = [pair for pair in pairs if (name := base_name(pair[0])) in known or name in COMMON_NAMES]
    ignored: list[str] = []
    strict: str | None = None
    if len(normalized) < len(pairs):  # Every read passes here, so the usual one does no more than this comparison.
        others = {name: value for name, value in pairs if base_name(name) not in known}
        strict = others.get(STRICT)
        ignored = [name for name in others if base_name(name) not in COMMON_NAMES and name not in ("lang", STRICT)]
    if corrections:
        normalized = list(_correct(normalized, corrections, ignored, is_strict=is_strict(strict)))
    normalized += [
        ("lang", language) for name, value in pairs if name == "lang" and (language := find_language(value))
    ][:1]
    normalized.sort(key=itemgetter(0))
    request.scope["query_string"] = urlencode(normalized, safe="[],:@/").encode() if normalized else b""
    return NormalizedQuery(normalized, list_ignored(ignored) if ignored else (), is_strict(strict))


def list_ignored(names: Iterable[str]) -> tuple[str, ...]:
    """Return the first distinct names, without brackets."""
    distinct = dict.fromkeys((base_name(name) or name)[:MAX_NAME_LENGTH] for name in names if name)
    return tuple(distinct)[:MAX_IGNORED_NAMES]


def is_strict(value: str | None) -> bool:
    """Return whether a value of `strict` is set and not false."""
    return value is not None and SPELLINGS.get(value.lower(), True)


def _correct(
    pairs: Iterable[tuple[str, str]], corrections: Corrections, ignored: list[str], *, is_strict: bool
) -> Iterator[tuple[str, str]]:
    """Yield the parameters with their corrected values, and add the names of the corrected ones to `ignored`.

    A strict request keeps values that would be ignored: they are rejected when they are read, with a suggestion.
    """
    for name, value in pairs:
        corrected = corrections[name](value) if name in corrections else value
        if corrected is None and is_strict:
            corrected = value
        if corrected != value:
            ignored.append(name)
        if corrected is not None:
            yield name, corrected
