"""A client for WordPress sites with The Events Calendar.

The client sends up to four requests at a time while the site answers quickly, waits if the site is overloaded, and
retries failed requests. It sends the credentials only to the site's origin, and never when following a redirect.
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
from urllib.parse import urljoin, urlsplit

import orjson

from kalends.adapters.safe_fetch import REDIRECT_STATUSES, ConnectionFailed, Fetcher, TimedOut, too_large
from kalends.core.errors import InvalidValue
from kalends.core.messages import Message, gettext_noop as N_
from kalends.move_in.rules.exchanges import ME, Exchange, read_object

Sleep = Callable[[float], Awaitable[object]]

MAX_JSON_BYTES: Final = 32 * 1024 * 1024
MAX_ATTEMPTS: Final = 6
MAX_WAIT: Final = 300.0  # in seconds, even if Retry-After is longer
MAX_PARALLEL: Final = 4
# A response is fast if it takes at most this long, or at most twice as long as the fastest of its kind.
FAST_SECONDS: Final = 1.0
# Statuses of an overloaded or updating site. A single broken record can also cause a 500.
TEMPORARY_STATUSES: Final = (429, 500, 502, 503, 504, 520, 521, 522, 523, 524)
TIMEOUT_STATUSES: Final = (504, 524)  # statuses sent by a proxy that timed out waiting for the site
USEFUL_HEADERS: Final = (
    *("content-type", "date", "etag", "last-modified", "link", "location"),
    *("x-tec-total", "x-tec-totalpages", "x-wp-total", "x-wp-totalpages"),
)
# The experimental namespace tec/v1 requires this header.
EXPERIMENTAL: Final = {
    "X-TEC-EEA": "I understand that this endpoint is experimental and may change in a future release without "
    "maintaining backward compatibility. I also understand that I am using this endpoint at my own risk, while "
    "support is not provided for it."
}

_NUMBER: Final = re.compile(r"\d+")


class SiteProblem(InvalidValue):
    """Raised if the site cannot be read. The message is for the operator."""


class SlowAnswer(Exception):
    """Raised if the site takes too long to respond; a smaller response might arrive in time."""


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
        """Return the WordPress error code, such as `rest_no_route`."""
        try:
            code = self.json["code"]
        except (orjson.JSONDecodeError, KeyError, TypeError, IndexError):
            return ""
        return code if isinstance(code, str) else ""


@dataclass(slots=True)
class Pace:
    """The number of concurrent requests. It grows after each fast response and halves after a slow or failed one."""

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

    `rate` is the maximum number of requests per second, or None for no limit. `sleep` is a parameter for tests.
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
        credentials = base64.b64encode(f"{login}:{password}".encode()).decode()
        self._authorization = f"Basic {credentials}" if login else ""
        self._pause = 1 / rate if rate else 0.0
        self._pace = Pace()
        self._next_start = 0.0
        self._sleep = sleep
        self.requests = 0

    @property
    def seconds(self) -> float:
        """Return the response timeout in seconds."""
        return self._fetcher.seconds

    async def get_json(
        self, url: str, *, headers: Mapping[str, str] | None = None, is_divisible: bool = False
    ) -> Answer:
        """Fetch JSON. Retry a 200 response that is not valid JSON, like any failed request.

        If `is_divisible`, raise SlowAnswer after the first timeout, because the caller can request fewer records.
        """
        return await self._repeat(url, True, headers or {}, MAX_JSON_BYTES, is_json=True, is_divisible=is_divisible)

    async def get_file(self, url: str, limit: int = MAX_JSON_BYTES) -> Answer:
        """Fetch a page or file without credentials."""
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
        """Wait until the next request may start; a pause applies to all concurrent requests."""
        loop = asyncio.get_running_loop()
        start = max(loop.time(), self._next_start)
        self._next_start = start + self._pause
        if start > loop.time():
            await self._sleep(start - loop.time())

    async def _wait(self, seconds: float) -> None:
        """Wait, and schedule no other request before the wait is over."""
        self._next_start = max(self._next_start, asyncio.get_running_loop().time() + seconds)
        await self._sleep(seconds)


def is_same_origin(url: str, other: str) -> bool:
    return read_origin(url) == read_origin(other)


def read_origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return Retry-After in seconds; a date is relative to the response's Date header."""
    text = headers.get("retry-after", "").strip()
    if text.isdecimal() and len(text) < 10:
        return float(text)
    until, sent = _read_date(text), _read_date(headers.get("date", ""))
    return max((until - sent).total_seconds(), 0.0) if until and sent else None


def hide_query(url: str) -> str:
    """Shorten a URL over 200 characters for messages, dropping its query."""
    return url if len(url) <= 200 else url.partition("?")[0][:200]


def _read_date(text: str) -> datetime | None:
    try:
        return parsedate_to_datetime(text) if text else None
    except ValueError:
        return None


def _is_json(body: bytes) -> bool:
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return True


def _judge_last(answer: Answer, url: str) -> Answer:
    """Return the last answer if its status is 500, because a broken record can cause it; otherwise raise."""
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
    """Decompress a body that the server compressed despite `Accept-Encoding: identity`."""
    stream = zlib.decompressobj(wbits=47)
    try:
        plain = stream.decompress(body, limit + 1)
    except zlib.error:
        return body
    if len(plain) > limit:
        raise too_large(limit)
    return plain


# Finding a site's API, and checking that the account may read everything -----------------------


PRETTY: Final = "/wp-json/"
PLAIN: Final = "/?rest_route=/"  # also works without permalinks
NAMESPACES: Final = ("wp/v2", "tribe/events/v1")
MISSING: Final = N_(
    "Drafts, pending, private, scheduled and trashed events, venues and organizers, texts as they were written, "
    "passwords of events and the accounts of users would be missing."
)


async def find_api(site: TecSite) -> tuple[str, Answer]:
    """Return the API's address prefix and its index. If the site redirects to https, change its URL accordingly."""
    for form in (PRETTY, PLAIN):
        answer = await _follow_upgrade(site, form)
        if answer.status in (401, 403) and answer.error_code:  # Some plugins require a login for the API.
            answer = await site.get_json(site.url + form)
        if answer.status == 200 and (index := _read_index(answer)) is not None:
            _check_namespaces(site, index)
            return form, answer
    raise SiteProblem(
        "{url} has no REST API of WordPress: neither {pretty} nor {plain} answers with its index. Check the address; "
        "a security plugin may have switched the API off.",
        url=site.url, pretty=PRETTY, plain=PLAIN,
    )  # fmt: skip


def build_address(form: str, address: str) -> str:
    """Return the path and query for an API address, which is a route with an optional query."""
    route, _, query = address.partition("?")
    if form == PLAIN:
        return form + route + (f"&{query}" if query else "")
    return form + address


def check_account(site: TecSite, answer: Answer) -> None:
    """Raise unless the account is an administrator. `answer` is the response to `users/me`."""
    if answer.status != 200:
        raise SiteProblem("{problem} {missing}", problem=_explain_refusal(site, answer), missing=Message(MISSING))
    given = read_object(Exchange(ME, answer.status, answer.headers, answer.body)).get("roles") or []
    roles = [role for role in given if isinstance(role, str)]
    if "administrator" not in roles:
        raise SiteProblem(
            "The account has the role {roles} on {url}, but only an administrator can read everything. {missing}",
            roles=", ".join(roles) or "–", url=site.url, missing=Message(MISSING),
        )  # fmt: skip


async def _follow_upgrade(site: TecSite, form: str) -> Answer:
    answer = await site.get_file(site.url + form)
    if answer.status in REDIRECT_STATUSES:
        target = urljoin(site.url + form, answer.headers.get("location", ""))
        if not _is_upgrade(site.url + form, target):
            if is_same_origin(target, site.url):
                return answer
            raise SiteProblem(
                "{url} redirects to {target}; use that address.", url=site.url, target=target.removesuffix(form)
            )
        site.url = "https" + site.url.removeprefix("http")
        answer = await site.get_file(site.url + form)
    return answer


def _is_upgrade(url: str, target: str) -> bool:
    """Return whether a redirect leads to the same address, but with https."""
    old, new = urlsplit(url), urlsplit(target)
    return (old.scheme, new.scheme) == ("http", "https") and old.hostname == new.hostname and old.port == new.port


def _read_index(answer: Answer) -> dict[str, Any] | None:
    try:
        index = answer.json
    except orjson.JSONDecodeError:
        return None
    return index if isinstance(index, dict) and isinstance(index.get("namespaces"), list) else None  # pyright: ignore


def _check_namespaces(site: TecSite, index: dict[str, Any]) -> None:
    missing = [name for name in NAMESPACES if name not in index["namespaces"]]
    if missing:
        raise SiteProblem(
            "The API of {url} has no {namespaces}: The Events Calendar is not active, or its API is switched off.",
            url=site.url, namespaces=", ".join(missing),
        )  # fmt: skip


def _explain_refusal(site: TecSite, answer: Answer) -> Message:
    if answer.error_code == "rest_not_logged_in":
        return Message(
            "{url} ignored the application password: its web server removes the header Authorization, or application "
            "passwords are switched off, as they are without https.",
            url=site.url,
        )
    if answer.status in (401, 403):
        return Message(
            "{url} refused the login or the application password ({status} {code}).",
            url=site.url, status=answer.status, code=answer.error_code,
        )  # fmt: skip
    return Message(
        "{url} does not say whose account it is ({status} {code}).",
        url=site.url, status=answer.status, code=answer.error_code,
    )  # fmt: skip
