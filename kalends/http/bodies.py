"""Read requests within limits: host, path, query string, form, JSON body and uploads; handle disconnections."""

import asyncio
import codecs
import re
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
)
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, unquote, unquote_plus, urlencode

import orjson
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.datastructures import UploadFile
from starlette.requests import ClientDisconnect, Request

from kalends.core import errors
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.limits import MAX_HEAD_BYTES
from kalends.core.messages import Message, find_language
from kalends.core.params import SPELLINGS, RepeatedValues, parse_bool
from kalends.media.adapters.library import translate_storage_errors

# When a client disconnects, the work on its request is canceled.

AsgiMessage = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[AsgiMessage]]
Send = Callable[[AsgiMessage], Awaitable[None]]

# Methods whose body is ignored even if a client sends one.
BODYLESS_METHODS: Final = ("GET", "HEAD", "OPTIONS")
# Limits for reading the rest of a rejected body. They cover an image that is slightly too large.
MAX_DISCARDED_BYTES: Final = 32 * 1024 * 1024
MAX_DISCARD_SECONDS: Final = 5


def read_content_length(request: Request) -> int:
    length = request.headers.get("content-length", "")
    return int(length[:18]) if length.isdecimal() else 0


class ClientDisconnected(Exception):
    """Raised if the client closed its connection before receiving the response."""


class DisconnectWatcher:
    """Receives a client's ASGI messages.

    After the request body, it watches in a task for the client to disconnect.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._work: asyncio.Task[Any] | None = None
        self._watch_task: asyncio.Task[None] | None = None
        self._is_disconnected = False

    async def receive(self) -> AsgiMessage:
        if self._watch_task is not None:
            await asyncio.wait([self._watch_task])
            return {"type": "http.disconnect"}
        message = await self._receive()
        if message["type"] == "http.request" and not message.get("more_body"):
            self._start_watching()
        return message

    async def run[T](self, request: Request, work: Coroutine[Any, Any, T]) -> T:
        """Run the work and return its result.

        If the client disconnects, cancel the work and raise ClientDisconnected.
        """
        self._work = asyncio.create_task(work)
        # A read's body is ignored. A write's body is left to the work, which may authenticate the caller before
        # reading the body.
        if request.method in BODYLESS_METHODS:
            self._start_watching()
        try:
            result: T = await self._work
        except asyncio.CancelledError:
            if self._is_disconnected:
                raise ClientDisconnected from None
            raise
        finally:
            if self._watch_task is not None:
                self._watch_task.cancel()
        return result

    async def discard_body(self, request: Request) -> None:
        """Read the rest of a rejected body, within limits.

        If the connection closes while a client or proxy is still sending, the response may be lost, and proxies
        respond with 502. A client that waits for permission to send its body (`Expect`) never gets the permission.
        """
        is_large = read_content_length(request) > MAX_DISCARDED_BYTES
        if self._watch_task is None and not is_large and "expect" not in request.headers:
            with suppress(TimeoutError):
                async with asyncio.timeout(MAX_DISCARD_SECONDS):
                    await self._discard_messages()

    async def _discard_messages(self) -> None:
        size = 0
        while self._watch_task is None and size <= MAX_DISCARDED_BYTES:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                return
            size += len(message.get("body", b""))

    def _start_watching(self) -> None:
        self._watch_task = asyncio.create_task(self._wait_for_disconnection())

    async def _wait_for_disconnection(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._is_disconnected = True
        if self._work is not None:
            self._work.cancel()


MAX_FIELDS = 1000
MAX_DEPTH = 4  # brackets in one name, as in organizer[0][organizer]
MAX_BODY_SECONDS = 30
FORM = "application/x-www-form-urlencoded"
BRACKETS = re.compile(r"\[([^\[\]]*)\]")


@dataclass(slots=True)
class RawParams:
    """Unvalidated parameters by name, and the name-value pairs of the query string for page links."""

    values: dict[str, Any] = field(default_factory=dict[str, Any])
    query: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    body: bytes = b""
    files: list[str] = field(default_factory=list[str])  # names of parts that contain files
    unread: "UnreadBody | None" = None


@dataclass(frozen=True, slots=True)
class UnreadBody:
    """A body whose content type is not supported, or whose content does not match its type."""

    content_type: str
    is_json: bool = False


async def read_body(request: Request, limit: int) -> bytes:
    """Return the body; raise if it is too large or too slow."""
    async with body_deadline(MAX_BODY_SECONDS):
        return b"".join([chunk async for chunk in read_chunks(request, limit)])


@asynccontextmanager
async def body_deadline(seconds: float) -> AsyncIterator[None]:
    """Raise 408 if reading a body takes longer than `seconds`, or if the client disconnects."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except (TimeoutError, ClientDisconnect) as error:  # after a disconnect, only the log shows this error
        raise errors.body_timeout() from error


async def read_chunks(request: Request, limit: int) -> AsyncGenerator[bytes]:
    """Yield the chunks of a body; raise if the body exceeds the limit.

    If Content-Length already exceeds the limit, raise before reading.
    """
    if read_content_length(request) > limit:
        raise errors.too_large(limit)
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise errors.too_large(limit)
        yield chunk


def query_value(request: Request, name: str) -> str | None:
    """Return a query string parameter, even if other parameters are not valid UTF-8."""
    text = request.scope.get("query_string", b"").decode("latin-1")
    return next((value for key, value in parse_qsl(text, keep_blank_values=True) if key == name), None)


def wants_envelope(request: Request) -> bool:
    return is_set(query_value(request, "_envelope"))


def is_set(value: object) -> bool:
    """Return whether a flag that changes the response format is present and true."""
    try:
        return value is not None and parse_bool(value)
    except InvalidValue:
        return False


async def read_values(request: Request, body: bytes) -> RawParams:
    """Merge parameters from the query string, form and JSON body; later ones take precedence (behaviour 1.2)."""
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
        raw.values.update(read_json(body))
    else:
        raw.unread = UnreadBody(content_type)
    return raw


def _looks_like_json(body: bytes) -> bool:
    """Return whether a form is actually a JSON object. `curl -d`, for example, declares any text as a form."""
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
    return _convert_lists(root)


def _put_nested(node: dict[str, Any], keys: list[str], value: str) -> None:
    for key in keys[:-1]:
        child = node.get(key or str(len(node)))
        if not isinstance(child, dict):
            child = {}
            node[key or str(len(node))] = child
        node = child  # pyright: ignore[reportUnknownVariableType]
    node[keys[-1] or str(len(node))] = value


def _convert_lists(node: dict[str, Any]) -> dict[str, Any]:
    """Replace objects below a node whose keys are all numbers by lists."""
    return {key: _as_list(value) if isinstance(value, dict) else value for key, value in node.items()}  # pyright: ignore


def _as_list(node: dict[str, Any]) -> dict[str, Any] | list[Any]:
    entries = _convert_lists(node)
    return list(entries.values()) if entries and all(key.isdecimal() for key in entries) else entries


def read_pairs(text: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(text.decode("utf-8"), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except UnicodeDecodeError as error:
        raise errors.invalid_encoding() from error
    except ValueError as error:
        raise errors.too_many_fields(MAX_FIELDS) from error


async def _read_multipart(request: Request, body: bytes) -> tuple[list[tuple[str, str]], list[str]]:
    """Return a multipart form's text fields and the names of its files."""
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
    except Exception as error:  # any error is caused by the input
        raise errors.invalid_form(str(getattr(error, "detail", error))[:200]) from error


def read_json(body: bytes) -> dict[str, Any]:
    """Return a JSON object; any other JSON value counts as no parameters (behaviour 1.2)."""
    try:
        value: Any = orjson.loads(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise errors.invalid_json("it is not UTF-8.", utf8=False) from error
    except orjson.JSONDecodeError as error:
        raise errors.invalid_json(error.msg) from error
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


# Request head validation and query string normalization.

MAX_HOST_LENGTH: Final = 255
HOST: Final = re.compile(r"([a-z0-9_][a-z0-9_.-]*|\[[0-9a-f:.]{2,45}\])?(:[0-9]{1,5})?", re.ASCII | re.IGNORECASE)
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
# Parameters that every read accepts, besides `lang` and `strict`.
COMMON_NAMES: Final = frozenset(["_fields", "_envelope"])
# With this parameter, requests fail if any of their parameters are ignored. It is not part of the cache key.
STRICT: Final = "strict"
MAX_IGNORED_NAMES: Final = 10
MAX_NAME_LENGTH: Final = 64
# For each parameter, a function that replaces an invalid value, or returns None to ignore the parameter.
type Corrections = Mapping[str, Callable[[str], str | None]]
NO_CORRECTIONS: Final[Corrections] = MappingProxyType({})


def read_host(request: Request) -> str:
    """Return a request's validated `name[:port]` in lowercase, or an empty string without a Host header."""
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


# Paths that contain the token of a link in an email.
SECRET_PATHS: Final = re.compile(r"(/console/link/|/submission/|/follow/).+", re.IGNORECASE | re.DOTALL)


def hide_token(path: str) -> str:
    """Return a path for logs and traces, without the token of a link."""
    return SECRET_PATHS.sub(r"\1…", path)


def strip_port(host: str) -> str:
    """Return the host without its port; this identifies the site."""
    return re.sub(r":[0-9]+\Z", "", host)


class NormalizedQuery(NamedTuple):
    """The parameters that affect a read, and the names of all other parameters."""

    pairs: list[tuple[str, str]]
    ignored: tuple[str, ...] = ()
    is_strict: bool = False


def normalize_query(
    request: Request, known: Collection[str], corrections: Corrections = NO_CORRECTIONS
) -> NormalizedQuery | None:
    """Reduce the query string to known parameters, sort them by name, and return them.

    Repeated parameters keep their order. If the query string cannot be read, leave the request unchanged and return
    None.
    """
    try:
        pairs = read_pairs(request.scope["query_string"])
    except ApiError:
        return None
    normalized = [pair for pair in pairs if (name := base_name(pair[0])) in known or name in COMMON_NAMES]
    ignored: list[str] = []
    strict: str | None = None
    if len(normalized) < len(pairs):  # a cheap test, because it runs for every read
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
    """Return distinct names without brackets, limited in number and length."""
    distinct = dict.fromkeys((base_name(name) or name)[:MAX_NAME_LENGTH] for name in names if name)
    return tuple(distinct)[:MAX_IGNORED_NAMES]


def is_strict(value: str | None) -> bool:
    return value is not None and SPELLINGS.get(value.lower(), True)


def _correct(
    pairs: Iterable[tuple[str, str]], corrections: Corrections, ignored: list[str], *, is_strict: bool
) -> Iterator[tuple[str, str]]:
    """Yield the parameters with corrected values, and add the names of corrected parameters to `ignored`.

    In a strict request, values that would be ignored are kept, and reading them later raises an error with a
    suggestion.
    """
    for name, value in pairs:
        corrected = corrections[name](value) if name in corrections else value
        if corrected is None and is_strict:
            corrected = value
        if corrected != value:
            ignored.append(name)
        if corrected is not None:
            yield name, corrected


# REST API addresses without pretty permalinks: `/?rest_route=/…` and `/index.php/wp-json/…`.

PARAM: Final = "rest_route"
SCRIPT: Final = "/index.php"


def rewrite_rest_route(scope: MutableMapping[str, Any], root: str) -> None:
    """Rewrite `/?rest_route=/…` and `/index.php/wp-json/…` to the path below the REST root.

    This runs before anything reads the path or query string, so caches, parameters and links see only the rewritten
    form. As in WordPress, `rest_route` works on every address, and its last value counts. Raise 404 if it is present
    but there is no REST root.
    """
    path: str = scope["path"]
    if root and path.lower().startswith(f"{SCRIPT}{root}".lower()):
        _set_path(scope, path[len(SCRIPT) :])
    query: bytes = scope["query_string"]
    # This test must be cheap, because it runs for every request. The parameter's name may be percent-encoded.
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


# Incremental parser for multipart forms with one file.

MAX_FILES: Final = 1
MAX_FORM_FIELDS: Final = 50
MAX_FIELD_BYTES: Final = 64 * 1024
TAIL_BYTES: Final = 100  # enough for the last boundary and some whitespace after it


@dataclass(frozen=True, slots=True)
class FormLimits:
    fields: int = MAX_FORM_FIELDS
    field_bytes: int = MAX_FIELD_BYTES
    total_bytes: int = 256 * 1024  # form size excluding the file


UPLOAD_LIMITS: Final = FormLimits()


class FormParser:
    """Parses a form incrementally: `feed` every chunk, then `finish`.

    `fields` holds the text fields in order. `file_name` is the name of the file in the field `file_field`, or None if
    this field contains no file. Files in other fields are ignored.
    """

    def __init__(self, content_type: str, file_field: str, limits: FormLimits = UPLOAD_LIMITS) -> None:
        self._limits = limits
        self.fields: list[tuple[str, str]] = []
        self.file_name: str | None = None
        self._file_field = file_field
        self._file_count = 0
        self._tail = b""
        self._file_data = bytearray()
        _, options = parse_options_header(content_type)
        self._charset = _find_charset(options.get(b"charset", b"utf-8"))
        if b"boundary" not in options:
            raise errors.invalid_form("the boundary is missing.")
        with _translate_parser_errors():
            self._parser = MultipartParser(
                options[b"boundary"],
                {
                    "on_part_begin": self._begin_part,
                    "on_header_field": self._add_header_name,
                    "on_header_value": self._add_header_value,
                    "on_header_end": self._end_header,
                    "on_headers_finished": self._end_headers,
                    "on_part_data": self._add_data,
                    "on_part_end": self._end_part,
                },
            )
        self._begin_part()

    def feed(self, chunk: bytes) -> bytes:
        """Parse a chunk of the body and return the file bytes in it."""
        self._tail = (self._tail + chunk)[-TAIL_BYTES:]
        self._file_data = bytearray()
        with _translate_parser_errors():
            self._parser.write(chunk)
        return bytes(self._file_data)

    def finish(self) -> None:
        """Check that the form is complete."""
        with _translate_parser_errors():
            self._parser.finalize()
        # The parser accepts a body that ends inside a part.
        if not self._tail.rstrip().endswith(b"--"):
            raise errors.invalid_form(Message("the closing boundary is missing."))

    def _begin_part(self) -> None:
        self._header_name, self._header_value, self._disposition = bytearray(), bytearray(), b""
        self._field_name, self._field_data = "", bytearray()
        self._is_file = self._is_wanted_file = False

    def _add_header_name(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def _add_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def _end_header(self) -> None:
        if self._header_name.lower() == b"content-disposition":
            self._disposition = bytes(self._header_value)
        self._header_name, self._header_value = bytearray(), bytearray()

    def _end_headers(self) -> None:
        _, options = parse_options_header(self._disposition)
        if b"name" not in options:
            raise errors.invalid_form("a part has no name.")
        self._field_name = self._decode(options[b"name"])
        self._is_file = b"filename" in options
        if not self._is_file:
            return
        self._file_count += 1
        if self._file_count > MAX_FILES:
            raise errors.invalid_form(f"it has more than {MAX_FILES} file.")
        if self._field_name == self._file_field:
            self._is_wanted_file = True
            self.file_name = self._decode(options[b"filename"])

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        if self._is_wanted_file:
            self._file_data += data[start:end]
        elif not self._is_file:
            if len(self._field_data) + end - start > self._limits.field_bytes:
                raise errors.invalid_form(f"a field has more than {self._limits.field_bytes // 1024} KB.")
            self._field_data += data[start:end]

    def _end_part(self) -> None:
        if self._is_file:
            return
        if len(self.fields) >= self._limits.fields:
            raise errors.too_many_fields(self._limits.fields)
        self.fields.append((self._field_name, self._decode(bytes(self._field_data))))

    def _decode(self, text: bytes) -> str:
        try:
            return text.decode(self._charset)
        except (UnicodeDecodeError, LookupError):
            return text.decode("latin-1")


def _find_charset(name: bytes) -> str:
    try:
        return codecs.lookup(name.decode("latin-1")).name
    except (LookupError, ValueError):
        return "latin-1"


@contextmanager
def _translate_parser_errors() -> Iterator[None]:
    try:
        yield
    except ValueError as error:  # base class of all parser errors
        raise errors.invalid_form("it is not valid multipart data.") from error


# Uploaded files, sent as a form part or as the request body, are written to disk as they arrive, up to a size limit.

FIELD: Final = "file"
MULTIPART: Final = "multipart/form-data"
# Enough for 20 MB over a slow mobile connection.
MAX_UPLOAD_SECONDS: Final = 300


@dataclass(frozen=True, slots=True)
class Upload:
    path: Path
    name: str


async def read_upload(
    request: Request, directory: Path, limit: int, form_limits: FormLimits = UPLOAD_LIMITS
) -> tuple[RawParams, Upload | None]:
    """Return the request's parameters, and the uploaded file if there is one."""
    raw = await read_values(request, b"")
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    disposition = request.headers.get("content-disposition", "")
    async with body_deadline(MAX_UPLOAD_SECONDS):
        with translate_storage_errors():
            if content_type == MULTIPART:
                return raw, await _read_form(request, raw, directory / "sent", limit, form_limits)
            if disposition or content_type.startswith("image/") or content_type == "application/octet-stream":
                return raw, await _read_body(request, directory / "sent", limit, read_file_name(disposition))
    return raw, None


async def _read_body(request: Request, path: Path, limit: int, name: str) -> Upload:
    with path.open("wb") as file:
        async for chunk in read_chunks(request, limit):
            await asyncio.to_thread(file.write, chunk)
    return Upload(path, name)


async def _read_form(
    request: Request, raw: RawParams, path: Path, limit: int, form_limits: FormLimits
) -> Upload | None:
    parser = FormParser(request.headers.get("content-type", ""), FIELD, form_limits)
    size = 0
    with path.open("wb") as file:
        async for chunk in read_chunks(request, limit + form_limits.total_bytes):
            data = parser.feed(chunk)
            size += len(data)
            if size > limit:
                raise errors.too_large(limit)
            if data:
                await asyncio.to_thread(file.write, data)
    parser.finish()
    raw.values.update(parse_nested(parser.fields))
    return None if parser.file_name is None else Upload(path, parser.file_name)


def read_file_name(disposition: str) -> str:
    """Return the file name in a header, to be used as a title. `filename*=UTF-8''a%20b.jpg` takes precedence."""
    extended = re.search(r"filename\*\s*=\s*utf-8'[a-z0-9-]*'([^;\s]+)", disposition, re.IGNORECASE)
    if extended:
        return unquote(extended[1], errors="replace")
    plain = re.search(r'filename\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s]+))', disposition, re.IGNORECASE)
    if plain is None:
        return ""
    return plain[2] if plain[1] is None else re.sub(r"\\(.)", r"\1", plain[1])


def fingerprint_upload(upload_hash: bytes, values: Mapping[str, Any]) -> bytes:
    """Return a fingerprint of an upload for its Idempotency-Key.

    The raw body cannot be used: form boundaries are random.
    """
    pairs = sorted((name, str(value)) for name, value in values.items())
    return upload_hash + repr(pairs).encode(errors="surrogatepass")
