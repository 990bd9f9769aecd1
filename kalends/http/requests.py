"""Raw parameters of a request, from query string, form and JSON body, with limits on their size."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import orjson
from starlette.datastructures import UploadFile
from starlette.requests import ClientDisconnect, Request

from kalends.core import errors
from kalends.core.booleans import parse_bool
from kalends.core.errors import InvalidValue
from kalends.core.params import RepeatedValues
from kalends.http.disconnects import read_content_length

MAX_FIELDS = 1000
MAX_DEPTH = 4  # brackets in one name, as in organizer[0][organizer]
MAX_BODY_SECONDS = 30
FORM = "application/x-www-form-urlencoded"
BRACKETS = re.compile(r"\[([^\[\]]*)\]")


@dataclass(slots=True)
class RawParams:
    """Unvalidated parameters by name, and the pairs of the query string for page links."""

    values: dict[str, Any] = field(default_factory=dict[str, Any])
    query: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    body: bytes = b""
    files: list[str] = field(default_factory=list[str])  # names of the parts with files
    unread: "UnreadBody | None" = None


@dataclass(frozen=True, slots=True)
class UnreadBody:
    """A body whose content type is none of those that are read, or does not match its content."""

    content_type: str
    is_json: bool = False


async def read_body(request: Request, limit: int) -> bytes:
    """Return the body; raise if it is too large or too slow."""
    async with body_deadline(MAX_BODY_SECONDS):
        return b"".join([chunk async for chunk in read_chunks(request, limit)])


@asynccontextmanager
async def body_deadline(seconds: float) -> AsyncIterator[None]:
    """Raise 408 if reading a body takes longer, or the client disconnects."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except (TimeoutError, ClientDisconnect) as error:  # After a disconnect only the log shows this error.
        raise errors.body_timeout() from error


async def read_chunks(request: Request, limit: int) -> AsyncGenerator[bytes]:
    """Yield the chunks of a body; raise if it exceeds the limit, before reading if Content-Length says so."""
    if read_content_length(request) > limit:
        raise errors.too_large(limit)
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise errors.too_large(limit)
        yield chunk


def query_value(request: Request, name: str) -> str | None:
    """Return a parameter of the query string, even if other parameters are not valid UTF-8."""
    text = request.scope.get("query_string", b"").decode("latin-1")
    return next((value for key, value in parse_qsl(text, keep_blank_values=True) if key == name), None)


def wants_envelope(request: Request) -> bool:
    """Return whether the query string asks for status and headers inside of the body."""
    return is_set(query_value(request, "_envelope"))


def is_set(value: object) -> bool:
    """Return whether a flag that changes the shape of a response is sent and true."""
    try:
        return value is not None and parse_bool(value)
    except InvalidValue:
        return False


async def read_values(request: Request, body: bytes) -> RawParams:
    """Merge the parameters of query string, form and JSON body; later ones take precedence (behaviour 1.2)."""
    query = read_pairs(request.scope.get("query_string", b""))
    raw = RawParams(values=parse_nested(query), query=query, body=body)
    if not body:
        return raw
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type == FORM and _looks_like_json(body):
        raw.unread = UnreadBody(content_type, is_json=True)
    elif content_type == FORM:
        raw.values.update(parse_nested(read_pairs(body)))
    elif content_type == "multipart/form-data":
        fields, raw.files = await _read_multipart(request, body)
        raw.values.update(parse_nested(fields))
    elif content_type == "application/json" or re.fullmatch(r"application/[\w.-]+\+json", content_type):
        raw.values.update(_read_json(body))
    else:
        raw.unread = UnreadBody(content_type)
    return raw


def _looks_like_json(body: bytes) -> bool:
    """Return whether a form is a JSON object in fact: `curl -d` and others declare every text as a form."""
    text = body.strip()
    return text.startswith(b"{") and text.endswith(b"}")


def base_name(name: str) -> str:
    """Return the parameter name without brackets: `categories` for `categories[]` and `categories[0]`."""
    return name.partition("[")[0]


def parse_nested(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Build lists and objects from names like `a[]`, `a[b]` and `a[0][b]`; keep a repeated `a` as RepeatedValues."""
    root: dict[str, Any] = {}
    for name, value in pairs:
        head, *keys = [name] if "[" not in name else [name.partition("[")[0], *BRACKETS.findall(name)]
        if not keys or not head:
            existing = root.get(name)
            if isinstance(existing, RepeatedValues):
                existing.append(value)
            else:
                root[name] = value if name not in root else RepeatedValues([existing, value])
            continue
        if len(keys) > MAX_DEPTH:
            raise errors.invalid(head, "is nested too deeply.")
        _put_nested(root, [head, *keys], value)
    return {name: _as_list(value) for name, value in root.items()}


def _put_nested(node: dict[str, Any], keys: list[str], value: str) -> None:
    for key in keys[:-1]:
        child = node.get(key or str(len(node)))
        if not isinstance(child, dict):
            child = {}
            node[key or str(len(node))] = child
        node = child  # pyright: ignore[reportUnknownVariableType]
    node[keys[-1] or str(len(node))] = value


def _as_list(value: Any) -> Any:
    """Convert objects with numeric keys to lists."""
    if not isinstance(value, dict):
        return value
    entries: dict[str, Any] = {key: _as_list(item) for key, item in value.items()}  # pyright: ignore
    if entries and all(key.isdecimal() for key in entries):
        return list(entries.values())
    return entries


def read_pairs(text: bytes) -> list[tuple[str, str]]:
    """Decode a query string or a URL-encoded form."""
    try:
        return parse_qsl(text.decode("utf-8"), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except UnicodeDecodeError as error:
        raise errors.invalid_encoding() from error
    except ValueError as error:
        raise errors.too_many_fields(MAX_FIELDS) from error


async def _read_multipart(request: Request, body: bytes) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the text fields of a multipart form, and the names of its files."""
    is_delivered = False

    async def receive() -> dict[str, Any]:
        nonlocal is_delivered
        if is_delivered:
            return {"type": "http.disconnect"}
        is_delivered = True
        return {"type": "http.request", "body": body, "more_body": False}

    copy = Request(request.scope, receive)
    try:
        async with copy.form(max_files=10, max_fields=MAX_FIELDS) as form:
            parts = form.multi_items()
            texts = [(name, value) for name, value in parts if not isinstance(value, UploadFile)]
            return texts, [name for name, value in parts if isinstance(value, UploadFile)]
    except Exception as error:  # Any error is caused by the input.
        raise errors.invalid_form(str(getattr(error, "detail", error))[:200]) from error


def _read_json(body: bytes) -> dict[str, Any]:
    """Return a JSON object; any other JSON value counts as no parameters (behaviour 1.2)."""
    try:
        value: Any = orjson.loads(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise errors.invalid_json("it is not UTF-8.", utf8=False) from error
    except orjson.JSONDecodeError as error:
        raise errors.invalid_json(error.msg) from error
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]
