"""POST /mcp: assistants sign in with an application password, and the tools answer (decision 0042).

The SDK of the protocol is optional. It is loaded with the first request, because that takes a second and 20 MB.
"""

import asyncio
import logging
from collections.abc import MutableMapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final

import orjson
from starlette.responses import Response

from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.messages import Message
from kalends.http import bodies
from kalends.http.auth import WrongCredentials, authenticate_program, make_challenge, record_failure
from kalends.http.request import RequestContext
from kalends.http.responses import JSON, encode_json, error_body

log = logging.getLogger(__name__)

AGENT_PATH: Final = "/mcp"
# The key of the request in the ASGI scope, where tools find it.
SCOPE_KEY: Final = "kalends.agent_request"
# A proposal has at most 64 kB. JSON may need six bytes for each of them.
MAX_CALL_BYTES: Final = 512 * 1024
REFUSED: Final = -32000  # the code of JSON-RPC for errors of an application


def has_agent_sdk() -> bool:
    return find_spec("mcp") is not None


@dataclass(slots=True, kw_only=True)
class AgentRequest(RequestContext[Any]):
    """A request from an assistant. `failure` is an error of this server, which becomes the response."""

    access = "credentials"
    shows_pages = False
    failure: Exception | None = None

    @property
    def credentials(self) -> str:
        scheme, _, password = self.request.headers.get("authorization", "").partition(" ")
        return password.strip() if scheme.lower() == "bearer" else ""

    @property
    def session_token(self) -> str:
        return ""

    @property
    def route_pattern(self) -> str:
        return AGENT_PATH

    def make_headers(self, response: Response, vary: str) -> dict[str, str]:
        challenge = make_challenge(self.site_name).replace("Basic", "Bearer", 1)
        return {"WWW-Authenticate": challenge} if response.status_code == 401 else {}


class AgentServer:
    """Answers the requests of assistants in one process. `run` has to run meanwhile."""

    def __init__(self) -> None:
        self._is_wanted, self._has_started = asyncio.Event(), asyncio.Event()
        self._manager: Any = None

    async def run(self) -> None:
        """Wait for the first request, then load the SDK and keep its tasks running."""
        await self._is_wanted.wait()
        try:
            self._manager = await asyncio.to_thread(_load_manager)
            async with self._manager.run():
                self._has_started.set()
                await asyncio.Event().wait()
        except Exception:
            log.exception("the server for assistants has failed")
        finally:
            self._manager = None
            self._has_started.set()

    async def serve(self, agent_request: AgentRequest) -> Response:
        """Return the response. Refusals are errors of JSON-RPC, too, because clients show only these to people."""
        try:
            return await self._answer(agent_request)
        except ApiError as error:
            if error.status >= 500:
                raise
            refusal = {"jsonrpc": "2.0", "id": None, "error": {"code": REFUSED, "message": error.message}}
            body = encode_json({**error_body(error), **refusal}, agent_request.language)
            return Response(body, error.status, error.headers, media_type=JSON)

    async def _answer(self, agent_request: AgentRequest) -> Response:
        """Let the SDK answer a caller whose application password is read-only. It sends JSON, never a stream."""
        request = agent_request.request
        if request.method != "POST":
            raise errors.method_not_allowed(request.method, ["POST"])
        await _authenticate(agent_request)
        # The SDK also reads JSON that cannot be stored, with lone surrogates or large numbers, for example.
        body = orjson.dumps(bodies.read_json(await bodies.read_body(request, MAX_CALL_BYTES)))
        self._is_wanted.set()
        await self._has_started.wait()
        if self._manager is None:
            raise errors.unavailable()
        inbound = [{"type": "http.request", "body": body}]
        sent: list[MutableMapping[str, Any]] = []

        async def receive() -> MutableMapping[str, Any]:
            return inbound.pop() if inbound else await request.receive()

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        await self._manager.handle_request({**request.scope, SCOPE_KEY: agent_request}, receive, send)
        if agent_request.failure is not None:
            raise agent_request.failure
        response = Response(b"".join(message.get("body", b"") for message in sent), sent[0]["status"])
        response.raw_headers = [*sent[0]["headers"]]
        return response


def _load_manager() -> Any:
    from kalends.proposals.api.agent_tools import make_manager

    return make_manager()


async def _authenticate(agent_request: AgentRequest) -> None:
    if not agent_request.credentials:
        raise errors.forbidden(Message("send an application password as `Authorization: Bearer …`."), anonymous=True)
    try:
        async with agent_request.transaction() as tx:
            agent_request.remember_site(tx.site)
            found = await authenticate_program(tx, agent_request.credentials, agent_request.client_ip)
    except WrongCredentials as error:
        async with agent_request.transaction(writing=True) as tx:
            await record_failure(tx, error.account, agent_request.client_ip)
        raise errors.bad_credentials() from error
    if not found.actor.read_only:
        reason = Message("assistants need an application password that can only read, or only read and propose.")
        raise errors.forbidden(reason, anonymous=False)
    agent_request.actor, agent_request.password_id = found.actor, found.password_id
