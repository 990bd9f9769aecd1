"""Lists that clients follow: when each is evaluated again, and who may follow how many (decision 0044).

Clients that follow the same list with the same rights share its evaluation. Once per second, the process reads the
revisions of all sites with streams. A list is evaluated again if a change has touched one of its cache tags, or if it
has expired.
"""

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from kalends.adapters import metrics
from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.limits import ConcurrencyLimits, PerOwnerLimiter, rate_limit_key
from kalends.core.messages import Message
from kalends.core.times import utc_now
from kalends.http.accept import accepts_only_stream, prefers_stream
from kalends.http.auth import record_use
from kalends.http.request import ApiRequest, AppState, ReadRequest
from kalends.http.responses import encode_json, error_body
from kalends.http.router import Endpoint
from kalends.push.api.event_stream import EventStream, Mailbox
from kalends.push.api.followed_lists import Context, Followed, Scope, find_followed, read_followed
from kalends.push.api.stream_messages import format_message

Render = Callable[[Scope], Awaitable[tuple[Context, Response]]]

log = logging.getLogger(__name__)

# Seconds between lookups of the revisions.
INTERVAL: Final = 1.0
# Seconds between comments to a client.
COMMENT_INTERVAL: Final = 15
# Statuses after which a stream ends; after all others, its list is evaluated again.
FINAL_STATUSES: Final = (400, 401, 403, 404, 410)
HEALTH_PATHS: Final = ("/healthz", "/readyz")
# Owners of streams and lists, beside addresses, accounts and sites.
PROCESS: Final = "process"
LISTS: Final = "lists"


@dataclass(frozen=True, slots=True)
class StreamLimits:
    """Limits of one process. A site may use half of its streams and lists."""

    streams: int = 8000
    lists: int = 1000
    per_address: int = 50
    per_account: int = 5
    runs: int = 4  # at the same time


class LiveLists:
    """The streams of a process. `render` handles a request that has no connection."""

    def __init__(self, render: Render, limits: StreamLimits | None = None) -> None:
        self._render = render
        self._limits = limits or StreamLimits()
        self._by_key: dict[object, Followed] = {}
        self._by_host: defaultdict[str, set[Followed]] = defaultdict(set)
        self._runs = PerOwnerLimiter(
            ConcurrencyLimits(self._limits.runs, self._limits.runs, self._limits.lists, self._limits.lists)
        )
        # Streams of the process and of each address, account and site, and lists of each site.
        self._by_owner: Counter[object] = Counter()
        self._state: AppState | None = None
        self._is_closed = False
        self._beats: list[set[Mailbox]] = [set() for _ in range(COMMENT_INTERVAL)]

    # Admission -------------------------------------------------------------------------------

    def choose_handler(self, context: Context | None, request: Request) -> None:
        """Let `follow` handle requests for a stream; raise 404 for everything else but lists and health checks."""
        header = request.headers.get("accept", "")
        if context is None and request.scope["path"] in HEALTH_PATHS:
            return
        if not isinstance(context, ApiRequest) or context.route is None:
            raise errors.no_route()
        if request.method == "GET" and prefers_stream(header):
            context.handler, context.is_stream = self.follow, True
        elif find_followed(context) is None or request.method not in ("GET", "HEAD", "OPTIONS"):
            raise errors.no_route()
        elif accepts_only_stream(header):
            raise errors.not_acceptable(Message("A stream needs the method GET."))

    async def follow(self, context: ApiRequest) -> Response:
        """Respond with a stream: the present state, then every change of it."""
        endpoint = find_followed(context)
        if endpoint is None:
            raise errors.not_acceptable(
                Message("Only lists and `changes` can be followed as a stream; send `Accept: application/json`.")
            )
        if self._is_closed:
            raise errors.overloaded()
        limits, address = self._limits, rate_limit_key(context.client_ip)
        with self._reserve() as seats:
            self._take(seats, PROCESS, limits.streams, errors.overloaded())
            self._take(seats, ("address", address), limits.per_address)
            followed = await self._join(context, endpoint)
            with self._keeping(followed):
                self._take(seats, ("site", followed.site_id), limits.streams // 2, errors.overloaded())
                if followed.user_id is not None:
                    self._take(seats, ("account", followed.site_id, followed.user_id), limits.per_account)
            taken, seats[:] = list(seats), []
        mailbox = Mailbox()
        if (message := followed.welcome(context.request.headers.get("last-event-id", ""))) is not None:
            mailbox.put(message)
        followed.mailboxes.add(mailbox)
        self._read_on(followed)
        beat = min(self._beats, key=len)
        beat.add(mailbox)
        metrics.find_series(metrics.STREAMS).set(self._by_owner[PROCESS])

        def leave() -> None:
            followed.mailboxes.discard(mailbox)
            mailbox.empty.set()
            beat.discard(mailbox)
            self._release(taken)
            self._drop_if_unused(followed)
            metrics.find_series(metrics.STREAMS).set(self._by_owner[PROCESS])

        return EventStream(mailbox, leave)

    @contextmanager
    def _reserve(self) -> Iterator[list[object]]:
        """Yield a list of seats, which are given back unless the block takes them out of the list."""
        seats: list[object] = []
        try:
            yield seats
        finally:
            self._release(seats)

    def _take(self, seats: list[object], owner: object, limit: int, refusal: ApiError | None = None) -> None:
        if self._by_owner[owner] >= limit:
            raise refusal or errors.too_many_streams(limit)
        self._by_owner[owner] += 1
        seats.append(owner)

    def _release(self, seats: Iterable[object]) -> None:
        self._by_owner.subtract(seats)
        for owner in seats:
            if not self._by_owner[owner]:
                del self._by_owner[owner]

    # Lists -----------------------------------------------------------------------------------

    async def _join(self, context: ApiRequest, endpoint: Endpoint) -> Followed:
        """Return what a request asks for, after its first evaluation; raise the error of that evaluation."""
        wanted = read_followed(context, endpoint)
        followed = self._by_key.setdefault(wanted.key, wanted)
        with self._keeping(followed):
            if followed is wanted:
                followed.task = asyncio.create_task(self._run_first(followed))
                followed.task.add_done_callback(_forget_error)
            if not followed.is_ready and followed.task is not None:
                await asyncio.shield(followed.task)
        return followed

    async def _run_first(self, followed: Followed) -> None:
        try:
            self._take(followed.seats, LISTS, self._limits.lists, errors.overloaded())
            await self._run(followed)
            self._take(followed.seats, (LISTS, followed.site_id), self._limits.lists // 2, errors.overloaded())
        except BaseException:
            self._forget(followed)
            raise
        followed.is_ready, followed.task = True, None
        self._by_host[followed.host].add(followed)
        self._drop_if_unused(followed)  # The client may have left.

    @contextmanager
    def _keeping(self, followed: Followed) -> Iterator[None]:
        """Keep a list that nobody follows yet during the block."""
        followed.joining += 1
        try:
            yield
        except BaseException:
            followed.joining -= 1
            self._drop_if_unused(followed)
            raise
        followed.joining -= 1

    def _drop_if_unused(self, followed: Followed) -> None:
        if not followed.mailboxes and not followed.joining and followed.is_ready:
            self._forget(followed)

    def _forget(self, followed: Followed) -> None:
        if self._by_key.get(followed.key) is followed:
            del self._by_key[followed.key]
        self._release(followed.seats)
        followed.seats.clear()
        of_host = self._by_host.get(followed.host, set())
        of_host.discard(followed)
        if not of_host:
            self._by_host.pop(followed.host, None)

    # Evaluation ------------------------------------------------------------------------------

    async def run(self, state: AppState) -> None:
        """Look for changes once per second until the task is cancelled."""
        self._state = state
        beat = 0
        while True:
            started = asyncio.get_running_loop().time()
            try:
                await self.check()
            except Exception as error:
                log.error("fault", exc_info=error, extra={"fields": {"level": "error"}})
            for mailbox in self._beats[beat]:
                mailbox.put_comment()
            beat = (beat + 1) % COMMENT_INTERVAL
            await asyncio.sleep(max(0.0, started + INTERVAL - asyncio.get_running_loop().time()))

    async def check(self) -> None:
        """Start the evaluation of every list that may be outdated. All revisions are read with one statement."""
        await asyncio.gather(*[self._check_host(host) for host in list(self._by_host)])

    async def _check_host(self, host: str) -> None:
        state, now = self._state, utc_now()
        if state is None:
            return
        # While the database is away, the lists stay as they are.
        with suppress(ApiError):
            current = await state.sources.current_revision(host, ReadRequest(host, now, ""))
            for followed in list(self._by_host.get(host, ())):
                if await followed.is_outdated(state.touched_tags, current, now) and followed.task is None:
                    followed.task = asyncio.create_task(self._run_again(followed))

    async def _run(self, followed: Followed) -> None:
        """Evaluate a list and send its change; raise the error of the evaluation."""
        async with self._runs.slot(followed.host):
            context, response = await self._render(followed.scope)
        has_changed = followed.accept(context, response, utc_now())
        metrics.find_series(metrics.STREAM_RUNS, "changed" if has_changed else "same").inc()
        if context.actor.user_id is not None:
            with suppress(ApiError):
                await record_use(context)

    async def _run_again(self, followed: Followed) -> None:
        try:
            await self._run(followed)
        except ApiError as error:
            if error.status in FINAL_STATUSES:
                self._end(followed, error)
            followed.fail(utc_now())
        except Exception as error:
            log.error("fault", exc_info=error, extra={"fields": {"level": "error", "path": followed.scope["path"]}})
            followed.fail(utc_now())
        finally:
            followed.task = None
        self._read_on(followed)

    def _read_on(self, followed: Followed) -> None:
        """Evaluate the next page of changes when the client has read the ones before."""

        async def wait_and_run() -> None:
            for mailbox in list(followed.mailboxes):
                await mailbox.empty.wait()
            await self._run_again(followed)

        if followed.has_more and followed.mailboxes and followed.task is None:
            followed.task = asyncio.create_task(wait_and_run())

    def _end(self, followed: Followed, error: ApiError) -> None:
        followed.send(format_message("end", "", encode_json(error_body(error), followed.language or "en")))
        for mailbox in followed.mailboxes:
            mailbox.close()
        self._by_key.pop(followed.key, None)  # New clients get the error.

    def close(self) -> None:
        """End all streams, and accept no more."""
        self._is_closed = True
        for followed in list(self._by_key.values()):
            for mailbox in followed.mailboxes:
                mailbox.close()


def _forget_error(task: asyncio.Task[None]) -> None:
    """Retrieve the error of a first evaluation, even if all clients have left."""
    if not task.cancelled():
        task.exception()
