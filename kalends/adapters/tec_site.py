"""A client of a WordPress site with The Events Calendar.

It sends up to four requests at a time while the site answers quickly, waits if the site is overloaded, and repeats
requests that failed. The credentials are sent only to the origin of the site, and redirects are never followed with
them.
"""

import asyncio
import base64
import io
import re
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from kalends.adapters.safe_fetch import ConnectionFailed, Fetcher, TimedOut, too_large
from kalends.core.errors import InvalidValue

Sleep = Callable[[float], Awaitable[object]]

MAX_JSON_BYTES: Final = 32 * 1024 * 1024
MAX_ATTEMPTS: Final = 6
MAX_WAIT: Final = 300.0  # seconds, whatever Retry-After says
MAX_PARALLEL: Final = 4
# A response that took no longer is fast; so is one that took less than twice as long as the fastest of its kind.
FAST_SECONDS: Final = 1.0
# Statuses of a site that is overloaded or being updated. 500 may be the fault of one record.
TEMPORARY_STATUSES: Final = (429, 500, 502, 503, 504, 520, 521, 522, 523, 524)
TIMEOUT_STATUSES: Final = (504, 524)  # of a proxy that did not wait longer for the site
USEFUL_HEADERS: Final = (
    *("content-type", "date", "etag", "last-modified", "link", "location"),
    *("x-tec-total", "x-tec-totalpages", "x-wp-total", "x-wp-totalpages"),
)
# The header without which the experimental namespace tec/v1 does not answer.
EXPERIMENTAL: Final = {
    "X-TEC-EEA": "I understand that this endpoint is experimental and may change in a future release without "
    "maintaining backward compatibility. I also understand that I am using this endpoint at my own risk, while "
    "support is not provided for it."
}

_NUMBER: Final = re.compile(r"\d+")


class SiteProblem(InvalidValue):
    """The site cannot be read. The message is a sentence for the operator."""


class SlowAnswer(Exception):
    """The site needs too long for a response; a smaller one may arrive in time."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float = 0.0

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def error_code(self) -> str:
        """Return the code of an error of WordPress, such as `rest_no_route`."""
        try:
            code = self.json["code"]
        except (orjson.JSONDecodeError, KeyError, TypeError, IndexError):
            return ""
        return code if isinstance(code, str) else ""


@dataclass(slots=True)
class Pace:
    """The number of requests at a time: it grows while the site answers quickly, and halves when it does not."""

    limit: float = 1.0
    running: int = 0
    shortest: dict[str, float] = field(default_factory=dict[str, float])
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        async with self.changed:
            await self.changed.wait_for(lambda: self.running < int(self.limit))
            self.running += 1
        try:
            yield
        finally:
            async with self.changed:
                self.running -= 1
                self.changed.notify_all()

    def note(self, kind: str, seconds: float, *, failed: bool) -> None:
        shortest = self.shortest[kind] = min(seconds, self.shortest.get(kind, seconds))
        is_fast = not failed and seconds <= max(FAST_SECONDS, 2 * shortest)
        self.limit = min(self.limit + 0.5, MAX_PARALLEL) if is_fast else max(self.limit / 2, 1.0)


class TecSite:
    """Reads one site.

    `rate` is the maximum number of requests per second; None: no limit. `sleep` is a parameter for tests.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        url: str,
        *,
        login: str = "",
        password: str = "",
        rate: float | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._fetcher = fetcher
        self.url = url.rstrip("/")
        self._authorization = _build_authorization(login, password) if login else ""
        self._pause = 1 / rate if rate else 0.0
        self._pace = Pace()
        self._next_start = 0.0
        self._sleep = sleep
        self.requests = 0

    @property
    def seconds(self) -> float:
        """Return the time that a response may take."""
        return self._fetcher.seconds

    async def get_json(
        self, url: str, *, headers: Mapping[str, str] | None = None, is_divisible: bool = False
    ) -> Answer:
        """Fetch JSON. A response of status 200 that is no valid JSON is requested again, like one that failed.

        `is_divisible`: raise SlowAnswer after the first timeout, because the caller can ask for less.
        """
        return await self._repeat(url, True, headers or {}, MAX_JSON_BYTES, is_json=True, is_divisible=is_divisible)

    async def get_file(self, url: str, limit: int = MAX_JSON_BYTES) -> Answer:
        """Fetch a page or a file without credentials."""
        return await self._repeat(url, False, {}, limit, is_json=False)

    async def _repeat(
        self,
        url: str,
        signed: bool,
        headers: Mapping[str, str],
        limit: int,
        *,
        is_json: bool,
        is_divisible: bool = False,
    ) -> Answer:
        problem = SiteProblem("{url} did not answer.", url=hide_query(url))
        answer: Answer | None = None
        for attempt in range(MAX_ATTEMPTS):
            wait = float(2**attempt)
            try:
                answer = await self._request(url, signed, headers, limit)
            except ConnectionFailed as error:
                if is_divisible and isinstance(error, TimedOut):
                    raise SlowAnswer from error
                answer = None
                problem = SiteProblem(
                    "{url} did not answer ({attempts} attempts): {problem}",
                    url=hide_query(url), attempts=attempt + 1, problem=error.message,
                )  # fmt: skip
            else:
                if is_divisible and answer.status in TIMEOUT_STATUSES:
                    raise SlowAnswer
                if answer.status in TEMPORARY_STATUSES:
                    wait = read_retry_after(answer.headers) or wait
                elif not is_json or answer.status != 200 or _is_json(answer.body):
                    return answer
            if attempt + 1 < MAX_ATTEMPTS:
                await self._wait(min(wait, MAX_WAIT))
        if answer is None:
            raise problem
        return _judge_last(answer, url)

    async def _request(self, url: str, signed: bool, headers: Mapping[str, str], limit: int) -> Answer:
        into, loop = io.BytesIO(), asyncio.get_running_loop()
        if signed and self._authorization and is_same_origin(url, self.url):
            headers = {**headers, "Authorization": self._authorization}
        async with self._pace.turn():
            await self._keep_rate()
            self.requests += 1
            started, status = loop.time(), 0
            try:
                response = await self._fetcher.get_once(url, into, limit=limit, headers=headers)
                status = response.status
            finally:
                seconds = loop.time() - started
                is_failed = status == 0 or status in TEMPORARY_STATUSES
                self._pace.note(_NUMBER.sub("", url) if signed else "file", seconds, failed=is_failed)
        body = into.getvalue()
        if response.headers.get("content-encoding", "") in ("gzip", "deflate", "x-gzip"):
            body = _decompress(body, limit)
        kept = {name: response.headers[name] for name in USEFUL_HEADERS if name in response.headers}
        if "retry-after" in response.headers:
            kept["retry-after"] = response.headers["retry-after"]
        return Answer(response.status, kept, body, seconds)

    async def _keep_rate(self) -> None:
        """Wait for the next moment at which a request may start; a pause applies to all concurrent requests."""
        loop = asyncio.get_running_loop()
        start = max(loop.time(), self._next_start)
        self._next_start = start + self._pause
        if start > loop.time():
            await self._sleep(start - loop.time())

    async def _wait(self, seconds: float) -> None:
        """Wait, and let requests that have not started yet wait as well."""
        self._next_start = max(self._next_start, asyncio.get_running_loop().time() + seconds)
        await self._sleep(seconds)


def is_same_origin(url: str, other: str) -> bool:
    """Return whether two URLs have the same scheme, host and port."""
    return read_origin(url) == read_origin(other)


def read_origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of Retry-After; a date is compared with the date of the response."""
    text = headers.get("retry-after", "").strip()
    if text.isdecimal() and len(text) < 10:
        return float(text)
    until, sent = _read_date(text), _read_date(headers.get("date", ""))
    return max((until - sent).total_seconds(), 0.0) if until and sent else None


def hide_query(url: str) -> str:
    """Return a URL for a message."""
    return url if len(url) <= 200 else url.partition("?")[0][:200]


def _read_date(text: str) -> datetime | None:
    try:
        return parsedate_to_datetime(text) if text else None
    except ValueError:
        return None


def _build_authorization(login: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{login}:{password}".encode()).decode()


def _is_json(body: bytes) -> bool:
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return True


def _judge_last(answer: Answer, url: str) -> Answer:
    """Return the answer of a broken record; raise if the site as a whole is not available."""
    if answer.status == 500:
        return answer
    if answer.status in TEMPORARY_STATUSES:
        raise SiteProblem(
            "{url} answered {status} {attempts} times. The site is overloaded or being updated; run the command "
            "again later, it continues where it stopped.",
            url=hide_query(url), status=answer.status, attempts=MAX_ATTEMPTS,
        )  # fmt: skip
    raise SiteProblem(
        "{url} answered with {size} bytes that are no valid JSON ({attempts} attempts).",
        url=hide_query(url), size=len(answer.body), attempts=MAX_ATTEMPTS,
    )  # fmt: skip


def _decompress(body: bytes, limit: int) -> bytes:
    """Decompress a body that was compressed although that was not requested."""
    stream = zlib.decompressobj(wbits=47)
    try:
        plain = stream.decompress(body, limit + 1)
    except zlib.error:
        return body
    if len(plain) > limit:
        raise too_large(limit)
    return plain
