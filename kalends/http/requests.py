"""From a request to raw values: body, form and query, bounded before they are understood."""

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
from kalends.core.params import RepeatedValues

MAX_FIELDS = 1000
MAX_DEPTH = 4  # brackets in one name, as in organizer[0][organizer]
MAX_BODY_SECONDS = 30
FORM = "application/x-www-form-urlencoded"
BRACKETS = re.compile(r"\[([^\[\]]*)\]")


@dataclass(slots=True)
class RawParams:
    """What was sent: `values` by name, and the pairs of the query string for page links."""

    values: dict[str, Any] = field(default_factory=dict[str, Any])
    query: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    body: bytes = b""
    files: list[str] = field(default_factory=list[str])  # names of parts that are files


async def read_body(request: Request, limit: int) -> bytes:
    """The body as bytes."""
    async with body_deadline(MAX_BODY_SECONDS):
        return b"".join([chunk async for chunk in read_chunks(request, limit)])


@asynccontextmanager
async def body_deadline(seconds: float) -> AsyncIterator[None]:
    """For so long a body may arrive."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except (TimeoutError, ClientDisconnect) as error:  # Who has gone away does not read the answer; the log does.
        raise errors.body_timeout() from error


async def read_chunks(request: Request, limit: int) -> AsyncGenerator[bytes]:
    """The pieces of a body; more than the limit is refused, before it is read where its length is told."""
    length = request.headers.get("content-length", "")
    if length.isdecimal() and (len(length) > 18 or int(length) > limit):
        raise errors.too_large(limit)
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise errors.too_large(limit)
        yield chunk


def query_value(request: Request, name: str) -> str | None:
    """One parameter of the query string, whatever bytes stand beside it."""
    text = request.scope.get("query_string", b"").decode("latin-1")
    return next((value for key, value in parse_qsl(text, keep_blank_values=True) if key == name), None)


async def read_values(request: Request, body: bytes) -> RawParams:
    """Query string, then form, then JSON: the later wins (behaviour 1.2)."""
    query = read_pairs(request.scope.get("query_string", b""))
    raw = RawParams(values=parse_nested(query), query=query, body=body)
    if not body:
        return raw
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type == FORM:
        raw.values.update(parse_nested(read_pairs(body)))
    elif content_type == "multipart/form-data":
        fields, raw.files = await _read_multipart(request, body)
        raw.values.update(parse_nested(fields))
    elif content_type == "application/json" or re.fullmatch(r"application/[\w.-]+\+json", content_type):
        raw.values.update(_read_json(body))
    return raw


def base_name(name: str) -> str:
    """Of `categories[]` and `categories[0]`, the parameter."""
    return name.partition("[")[0]


def parse_nested(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """`a[]=1`, `a[b]=1` and `a[0][b]=1` become lists and objects; a repeated `a` is kept as such."""
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
            raise errors.invalid(head, "this is nested too deeply.")
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
    """An object whose keys are 0, 1, 2 … was meant as a list."""
    if not isinstance(value, dict):
        return value
    entries: dict[str, Any] = {key: _as_list(item) for key, item in value.items()}  # pyright: ignore
    if entries and all(key.isdecimal() for key in entries):
        return list(entries.values())
    return entries


def read_pairs(text: bytes) -> list[tuple[str, str]]:
    """Decodes a query string or a form into its names and values."""
    try:
        return parse_qsl(text.decode("utf-8"), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except UnicodeDecodeError as error:
        raise errors.invalid_encoding() from error
    except ValueError as error:
        raise errors.too_many_fields(MAX_FIELDS) from error


async def _read_multipart(request: Request, body: bytes) -> tuple[list[tuple[str, str]], list[str]]:
    """Text fields of a multipart form, and the names of its files."""
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
    except Exception as error:  # Whatever it is, only what the client sent can be the cause.
        raise errors.invalid_form(str(getattr(error, "detail", error))[:200]) from error


def _read_json(body: bytes) -> dict[str, Any]:
    """An object; any other JSON value counts as "no parameters" (behaviour 1.2)."""
    try:
        value: Any = orjson.loads(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise errors.invalid_json("it is not UTF-8.", utf8=False) from error
    except orjson.JSONDecodeError as error:
        raise errors.invalid_json(error.msg) from error
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]
