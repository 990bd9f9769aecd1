"""A request to the console, its routes, and the access that they require."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from kalends.core import errors
from kalends.core.errors import ApiError
from kalends.core.languages import find_language
from kalends.core.messages import Message
from kalends.core.params import Param, RepeatedValues, read_params
from kalends.core.roles import ROLES
from kalends.http import language, requests, sessions
from kalends.http.auth import authenticate_session
from kalends.http.context import RequestContext
from kalends.http.password_guesses import hash_new_passwords
from kalends.http.request_head import NO_CORRECTIONS, Corrections
from kalends.kinds.kind import ANONYMOUS_ACTOR, Actor, Kind
from kalends.operations import permissions
from kalends.operations.context import OperationContext, Outcome
from kalends.operations.media.library import StoredImage
from kalends.store.database import Transaction
from kalends.store.sites import Site
from kalends.website.handler import MapSettings, PageRequest

PREFIX: Final = "/console"
SIGN_IN: Final = f"{PREFIX}/sign-in"
Operation = Callable[[Any, OperationContext], Awaitable[Outcome]]
View = Callable[["ConsoleRequest"], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class ConsoleRoute:
    """A path below /console, the views by method, and the minimum role of the user.

    `min_role` "anonymous" is for pages that need no session, such as the one to sign in.
    """

    pattern: str
    get: View | None = None
    post: View | None = None
    min_role: str = "contributor"
    reads_body: bool = True  # whether the form is read before the view; a view that stores an upload reads it itself
    # Whether forms send POST every few seconds: its view reads site and session in its own transaction.
    has_frequent_post: bool = False
    known_names: frozenset[str] = frozenset()
    corrections: Corrections = NO_CORRECTIONS

    def find_view(self, method: str) -> View:
        """Return the view of a method; raise 405 if there is none."""
        view = self.post if method == "POST" else self.get
        if view is None or method not in ("GET", "HEAD", "POST"):
            allowed = [name for name, view in (("GET", self.get), ("POST", self.post)) if view]
            raise errors.method_not_allowed(method, allowed)
        return view


@dataclass(slots=True, kw_only=True)
class ConsoleRequest(RequestContext[ConsoleRoute]):
    """A request to the console. Site, session and form are set before the view is called.

    Exception: views of frequent POST requests read site and session themselves.
    """

    map_settings: MapSettings
    extension_prefix: str  # path prefix of the extensions, as `canonical_prefix` is that of the API
    loaded_site: Site | None = None
    form: dict[str, Any] = field(default_factory=dict[str, Any])  # the submitted form, with lists and objects

    @property
    def session_token(self) -> str:
        """Return the session cookie, also after a link on another site.

        Pages of the console change nothing when they are opened, and other sites can neither frame nor read them.
        """
        if self.request.method in sessions.SAFE_METHODS and sessions.is_navigation(self.request):
            return sessions.read_cookie(self.request)
        return self.read_session_token()

    @property
    def log_path(self) -> str:
        """Return the path for the log, without the token of a one-time link."""
        token = self.path_params.get("token")
        return self.path.replace(token, "…") if token else self.path

    @property
    def is_cacheable(self) -> bool:
        return False

    def remember_site(self, site: Site) -> None:
        RequestContext.remember_site(self, site)
        self.loaded_site = site

    @property
    def site(self) -> Site:
        if self.loaded_site is None:
            raise AssertionError("the site is read before the view")
        return self.loaded_site

    @property
    def language(self) -> str:
        """Return the language of `?lang=`, else that of the account, else that of the browser or the site."""
        query: bytes = self.request.scope["query_string"]
        requested = language.find_requested(query, "")
        own = find_language(self.session.language) if self.session and self.session.language else None
        return requested or own or language.choose_language(query, self.accept_language, self.site_language)

    @property
    def origin_url(self) -> str:
        """Return the URL of the site without a final slash, for links in e-mails and for passkeys."""
        return self.base_url(self.site.base_url)

    @property
    def is_secure(self) -> bool:
        """Return whether browsers accept the session cookie: over HTTPS, and from this machine."""
        url = urlsplit(self.origin_url)
        return url.scheme == "https" or (url.hostname or "") in ("localhost", "127.0.0.1", "::1")

    def query_value(self, name: str) -> str:
        return requests.query_value(self.request, name) or ""

    def form_text(self, name: str) -> str:
        """Return a field of the form that is a text, the last one if there are several; empty if there is none."""
        value = self.form.get(name, "")
        value = value[-1] if isinstance(value, RepeatedValues) else value
        # PostgreSQL cannot store U+0000.
        return value.replace("\0", "") if isinstance(value, str) else ""

    def has_role(self, role: str) -> bool:
        return permissions.rank(self.actor) >= ROLES.index(role)

    def require_role(self, role: str) -> None:
        """Raise 403 unless the user has at least this role."""
        if not self.has_role(role):
            reason = Message("requires the role {role} or higher.", role=role)
            raise permissions.permission_error(self.actor, reason)

    @asynccontextmanager
    async def write(self) -> AsyncIterator[Transaction]:
        """Open a transaction for changes, in which the session and its role are read again."""
        async with self.transaction(writing=True) as tx:
            self.remember_site(tx.site)
            await authenticate_session(self, tx)
            if self.route is not None:
                self.require_role(self.route.min_role)
            yield tx

    def make_context(
        self,
        tx: Transaction,
        values: Mapping[str, Any] | None = None,
        *,
        record_id: int | None = None,
        revision: int | None = None,
        upload: StoredImage | None = None,
    ) -> OperationContext:
        """Return the context of an operation. A `revision` is the one that the record must still have."""
        return replace(
            self.operation_context(tx, self.extension_prefix),
            values=values or {},
            record_id=record_id,
            upload=upload,
            if_match=frozenset([revision]) if revision is not None else None,
        )

    def make_page_request(self, request: Request, path: str, actor: Actor = ANONYMOUS_ACTOR) -> PageRequest:
        """Return the request for a public page that the console shows in a frame."""
        return PageRequest(
            request=request,
            state=self.state,
            authority=self.authority,
            host=self.host,
            now=self.now,
            canonical_prefix=self.canonical_prefix,
            map_settings=self.map_settings,
            path=path,
            actor=actor,
            site_language=self.site.language,
        )

    async def perform(
        self,
        operation: Operation,
        kind: Kind,
        raw: Mapping[str, Any],
        *,
        record_id: int | None = None,
        revision: int | None = None,
        params: Sequence[Param] | None = None,
    ) -> Outcome:
        """Run a write of the API with these parameters, in a transaction of its own.

        The parameters are those of the API and are validated as there, so errors name the same parameters. `params`
        declares them if they are not those of the kind.
        """
        values = read_params(params or kind.fields, dict(raw), update=record_id is not None)
        await hash_new_passwords(self.site, values)
        async with self.write() as tx:
            await tx.lock_site(self.actor.user_id)
            context = self.make_context(tx, values, record_id=record_id, revision=revision)
            return await operation(kind, context)


def redirect(path: str, notice: str = "") -> Response:
    """Redirect to a page of the console after a form was processed; `notice` names a message of `NOTICES`."""
    joint = "&" if "?" in path else "?"
    return RedirectResponse(f"{path}{joint}notice={notice}" if notice else path, status_code=303)


def safe_next(path: str) -> str:
    """Return a path of the console to continue with after signing in; never another host."""
    if not path.startswith(f"{PREFIX}/") or "\\" in path or any(ord(character) < 32 for character in path):
        return f"{PREFIX}/"
    return path


def sign_in_url(request: Request) -> str:
    """Return the URL of the sign-in page that leads back to this request, if it is a read."""
    if request.method not in ("GET", "HEAD"):
        return SIGN_IN
    query = request.scope["query_string"].decode("latin-1")
    return f"{SIGN_IN}?next={quote(request.scope['path'] + (f'?{query}' if query else ''), safe='/')}"


def form_error(error: ApiError) -> Message:
    """Return the message above a form: of rejected fields only that they are to be corrected, as each has its own."""
    return Message("Nothing was saved. Correct these fields:") if field_errors(error) else error.message


def _without_name(message: Message) -> Message:
    """Return the problem of a parameter without its name, because a form shows it beside the field."""
    problem = message.values.get("problem") if message.text == errors.FOR_PARAM else None
    return problem if isinstance(problem, Message) else message


def field_errors(error: ApiError) -> dict[str, Message]:
    """Return the messages of an error by parameter: why each value was rejected."""
    params = error.data.get("params")
    if isinstance(params, dict):
        return {str(name): _without_name(message) for name, message in params.items()}  # pyright: ignore
    if isinstance(params, list):
        return {str(name): Message("This field is required.") for name in params}  # pyright: ignore
    return {}
