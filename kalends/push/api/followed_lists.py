"""What clients follow: pages of lists, and `changes`. Each is a request that is evaluated again and again."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

import orjson
from starlette.requests import Request
from starlette.responses import Response

from kalends.api.api_request import raise_if_strict
from kalends.calendar.kinds import KINDS
from kalends.calendar.kinds.kind import CALENDAR_NAMESPACE
from kalends.calendar.operations.changes import list_changes
from kalends.calendar.operations.record_verbs import list_records
from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.messages import Message, find_requested
from kalends.http.auth import read_cookie
from kalends.http.bodies import normalize_query, wants_envelope
from kalends.http.cache import CachedResponse, TouchedTags, make_cached_response
from kalends.http.request import ApiRequest, RequestContext
from kalends.http.router import Endpoint
from kalends.push.api.event_stream import Mailbox
from kalends.push.api.stream_messages import ListState, format_message
from kalends.store.site_revisions import SiteRevision

Context = RequestContext[Any]
Scope = MutableMapping[str, Any]

# A list that is never cached is evaluated after each revision, and after this time.
UNCACHED_INTERVAL: Final = timedelta(minutes=1)
# Time to wait before a failed evaluation is tried again.
RETRY_INTERVAL: Final = timedelta(seconds=5)
# The request headers that the evaluation of a list depends on.
KEPT_HEADERS: Final = frozenset(
    (b"host", b"authorization", b"cookie", b"accept-language", b"sec-fetch-site", b"origin", b"x-forwarded-for")
)


@dataclass(slots=True, eq=False)
class Followed:
    """Something that clients follow, and the request that evaluates it."""

    key: object
    host: str
    kind: str
    scope: Scope
    language: str  # requested, or empty
    query: list[tuple[str, str]]
    site_id: int = 0
    user_id: int | None = None
    revision: int = -1
    run_at: datetime | None = None
    retry_at: datetime | None = None
    cached: CachedResponse | None = None  # without its body; None if it must not be cached
    mailboxes: set[Mailbox] = field(default_factory=set[Mailbox])
    joining: int = 0  # clients that wait for the first evaluation
    task: asyncio.Task[None] | None = None
    is_ready: bool = False  # whether the first evaluation has succeeded
    has_more: bool = False  # whether to evaluate it again as soon as the client has read everything
    seats: list[object] = field(default_factory=list[object])

    async def is_outdated(self, touched: TouchedTags, current: SiteRevision | None, now: datetime) -> bool:
        if self.retry_at is not None and now < self.retry_at:
            return False
        if current is None:
            return True  # The evaluation says that there is no such site.
        if self.cached is not None:
            return not await self.cached.is_current(touched, current, now)
        has_risen = current.revision > self.revision or current.site_id != self.site_id
        return has_risen or self.run_at is None or now >= self.run_at

    def accept(self, context: Context, response: Response, now: datetime) -> bool:
        """Send the difference to the clients; return whether there is one."""
        seen = context.read_revision or SiteRevision(0, 0)
        self.site_id, self.revision, self.user_id = seen.site_id, seen.revision, context.actor.user_id
        self.retry_at, self.run_at = None, now + UNCACHED_INTERVAL
        cached = make_cached_response(context, response)
        self.cached = replace(cached, body=b"", headers=[]) if cached is not None else None
        return self.update(response)

    def fail(self, now: datetime) -> None:
        """Evaluate it again after a while."""
        self.has_more, self.run_at, self.retry_at = False, None, now + RETRY_INTERVAL

    def update(self, response: Response) -> bool:
        raise NotImplementedError

    def welcome(self, last_event_id: str) -> bytes | None:
        """Return the first message to a client that has joined; None if it has the present state."""
        raise NotImplementedError

    def send(self, message: bytes) -> None:
        for mailbox in self.mailboxes:
            mailbox.put(message)


@dataclass(slots=True, eq=False)
class LiveList(Followed):
    """One page of a list, shared by all clients that follow it."""

    state: ListState | None = None
    snapshot: bytes = b""

    def update(self, response: Response) -> bool:
        state, records = ListState.read(self.kind, self.revision, response)
        earlier = self.state
        if earlier is not None and earlier.digest == state.digest:
            return False
        self.state, self.snapshot = state, state.make_snapshot(records)
        if earlier is not None:
            self.send(state.make_change(earlier, records))
        return True

    def welcome(self, last_event_id: str) -> bytes | None:
        is_known = self.state is not None and self.state.is_known(last_event_id)
        return None if is_known else self.snapshot


@dataclass(slots=True, eq=False)
class LiveChanges(Followed):
    """The pages of `changes` for one client."""

    first: bytes = b""

    def update(self, response: Response) -> bool:
        page = orjson.loads(response.body)
        cursor = page["next_since"]
        message = format_message("changes", cursor, bytes(response.body))
        self.query = [*[pair for pair in self.query if pair[0] != "since"], ("since", cursor)]
        self.scope["query_string"] = urlencode(self.query).encode()
        self.has_more = page["more"]
        if not self.first:
            self.first = message
            return True
        if page["changes"]:
            self.send(message)
        return bool(page["changes"])

    def welcome(self, last_event_id: str) -> bytes | None:
        return self.first


def find_followed(context: ApiRequest) -> Endpoint | None:
    """Return the endpoint of a list of records, or of `changes`; None if the route cannot be followed."""
    endpoint = context.route.endpoint("GET") if context.route is not None else None
    if endpoint is None or endpoint.operation is list_changes:
        return endpoint
    is_list = endpoint.operation is list_records and endpoint.kind in KINDS
    return endpoint if is_list and context.interface.namespace == CALENDAR_NAMESPACE else None


def read_followed(context: ApiRequest, endpoint: Endpoint) -> Followed:
    """Return the list that a request asks for, with a key that is equal for equal lists and rights."""
    request, route = context.request, context.route
    if route is None:
        raise AssertionError("a request without a route")
    if wants_envelope(request):
        raise _refuse("_envelope")
    scope = {
        **{name: request.scope[name] for name in ("type", "method", "scheme", "path", "query_string")},
        "headers": [pair for pair in request.scope["headers"] if pair[0] in KEPT_HEADERS],
    }
    if context.credentials or context.session_token:
        scope["client"] = request.scope.get("client")  # Failed logins count for an address.
    query = normalize_query(Request(scope), route.known_names, route.corrections)
    if query is None:
        raise errors.invalid_encoding()
    context.ignored_params, context.is_strict = query.ignored, query.is_strict
    raise_if_strict(context, endpoint.params)
    kind = endpoint.kind.name if endpoint.kind is not None else "changes"
    _check_format(query.pairs, kind)
    language = find_requested(scope["query_string"], context.accept_language) or ""
    parts = (scope["scheme"], context.authority, scope["path"], scope["query_string"], language)
    rights = (request.headers.get("authorization", ""), read_cookie(request) if context.session_token else "")
    if endpoint.operation is not list_changes:
        return LiveList((parts, rights), context.host, kind, scope, language, query.pairs)
    pairs = query.pairs
    if last_id := request.headers.get("last-event-id", ""):
        pairs = [*[pair for pair in pairs if pair[0] != "since"], ("since", last_id)]
        scope["query_string"] = urlencode(pairs).encode()
    return LiveChanges(object(), context.host, kind, scope, language, pairs)


def _check_format(pairs: Iterable[tuple[str, str]], kind: str) -> None:
    """Raise 406 for parameters with which a list cannot be compared or shared."""
    values: Mapping[str, list[str]] = defaultdict(list)
    for name, value in pairs:
        values[name.partition("[")[0]] += [part.strip() for part in value.split(",") if part.strip()]
    if values["password"]:
        raise _refuse("password")
    if kind == "changes" and values["_fields"]:
        raise _refuse("_fields")
    if values["_fields"] and not {kind, f"{kind}.id"} & set(values["_fields"]):
        raise errors.not_acceptable(Message("A stream with `_fields` needs the field `{name}`.", name=f"{kind}.id"))


def _refuse(name: str) -> ApiError:
    return errors.not_acceptable(Message("A stream cannot have the parameter `{name}`; omit it.", name=name))
