"""Console requests, routes, and the access that routes require."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from kalends.accounts.operations.sign_in_methods import CONFIRMATION_AGE
from kalends.calendar.access import permissions
from kalends.calendar.access.operation_context import OperationContext, Outcome
from kalends.calendar.kinds.kind import ANONYMOUS_ACTOR, Actor, Kind
from kalends.core import errors, messages
from kalends.core.credentials import ROLES
from kalends.core.errors import ApiError
from kalends.core.messages import Message, find_language
from kalends.core.params import Param, parse_id, read_form_text, read_params
from kalends.http import bodies
from kalends.http.auth import authenticate_session, hash_new_passwords
from kalends.http.bodies import NO_CORRECTIONS, Corrections
from kalends.http.request import RequestContext
from kalends.media.adapters.library import StoredImage
from kalends.store.database import Transaction
from kalends.store.sites import Site
from kalends.website.context import MapSettings, PageRequest

PREFIX: Final = "/console"
SIGN_IN: Final = f"{PREFIX}/sign-in"
Operation = Callable[[Any, OperationContext], Awaitable[Outcome]]
View = Callable[["ConsoleRequest"], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class ConsoleRoute:
    """A path below /console, its views by method, and the required role.

    With the `min_role` "anonymous", a page needs no session, such as the sign-in page.
    """

    pattern: str
    get: View | None = None
    post: View | None = None
    min_role: str = "contributor"
    reads_body: bool = True  # whether to read the form before the view is called; views for uploads read it
    # Whether forms POST to this route every few seconds. In this case, the POST view reads the site and the session
    # in the view's own transaction.
    has_frequent_post: bool = False
    known_names: frozenset[str] = frozenset()
    corrections: Corrections = NO_CORRECTIONS

    def find_view(self, method: str) -> View:
        view = self.post if method == "POST" else self.get
        if view is None or method not in ("GET", "HEAD", "POST"):
            allowed = [name for name, view in (("GET", self.get), ("POST", self.post)) if view]
            raise errors.method_not_allowed(method, allowed)
        return view


@dataclass(slots=True, kw_only=True)
class ConsoleRequest(RequestContext[ConsoleRoute]):
    """A console request.

    Before the view is called, the site and session are set, except for frequent POST requests, and the form is read,
    unless the route has `reads_body=False`.
    """

    access = "session"
    map_settings: MapSettings
    extension_prefix: str  # path prefix for the extensions; `canonical_prefix` is the prefix for the API
    loaded_site: Site | None = None
    form: dict[str, Any] = field(default_factory=dict[str, Any])  # submitted form; values can be lists or objects
    waiting: Mapping[str, int] = field(default_factory=dict[str, int])  # what waits for an editor, by name

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
        """Return the language from `?lang=`, the account, the browser or the site, in this order."""
        query: bytes = self.request.scope["query_string"]
        requested = messages.find_requested(query, "")
        own = find_language(self.session.language) if self.session and self.session.language else None
        return requested or own or messages.choose_language(query, self.accept_language, self.site_language)

    @property
    def origin_url(self) -> str:
        """Return the site's URL without a trailing slash, for links in emails and for passkeys."""
        return self.base_url(self.site.base_url)

    @property
    def is_secure(self) -> bool:
        """Return whether browsers accept the session cookie, which requires HTTPS or a local address."""
        url = urlsplit(self.origin_url)
        return url.scheme == "https" or (url.hostname or "") in ("localhost", "127.0.0.1", "::1")

    def query_value(self, name: str) -> str:
        return bodies.query_value(self.request, name) or ""

    def form_text(self, name: str) -> str:
        return read_form_text(self.form, name)

    def has_role(self, role: str) -> bool:
        return permissions.rank(self.actor) >= ROLES.index(role)

    def require_role(self, role: str) -> None:
        if not self.has_role(role):
            reason = Message("requires the role {role} or higher.", role=role)
            raise permissions.permission_error(self.actor, reason)

    @asynccontextmanager
    async def write(self) -> AsyncIterator[Transaction]:
        """Open a write transaction, and read the session and role again."""
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
        slug: str | None = None,
        revision: int | None = None,
        upload: StoredImage | None = None,
        pictures: Mapping[str, StoredImage] | None = None,
    ) -> OperationContext:
        """Return the context for an operation. If `revision` is given, the record must still have this revision."""
        return replace(
            self.operation_context(tx, self.extension_prefix),
            values=values or {},
            record_id=record_id,
            slug=slug,
            upload=upload,
            stored_pictures=pictures or {},
            if_match=frozenset([revision]) if revision is not None else None,
        )

    def make_page_request(self, request: Request, path: str, actor: Actor = ANONYMOUS_ACTOR) -> PageRequest:
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
        slug: str | None = None,
        revision: int | None = None,
        params: Sequence[Param] | None = None,
        pictures: Mapping[str, StoredImage] | None = None,
    ) -> Outcome:
        """Run an API write in a separate transaction.

        `params` declares parameters that are not fields of the kind. For a proposal, `slug` is its ID, `revision` its
        version, and `pictures` the result of `store_pictures`.
        """
        values = read_params(params or kind.fields, dict(raw), update=record_id is not None)
        await hash_new_passwords(self.site, values)
        async with self.write() as tx:
            await tx.lock_site(self.actor.user_id)
            context = self.make_context(
                tx, values, record_id=record_id, slug=slug, revision=revision, pictures=pictures
            )
            return await operation(kind, context)


def redirect(path: str, notice: str = "", element: str = "") -> Response:
    """Redirect to a console page, or an element of it, after processing a form; `notice` is a key of `NOTICES`."""
    url = add_query(path, f"notice={notice}") if notice else path
    return RedirectResponse(f"{url}#{element}" if element else url, status_code=303)


def add_query(path: str, pair: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}{pair}"


def safe_next(path: str) -> str:
    """Return the path to open after signing in.

    If the path could lead out of the console, return the console's home page.
    """
    if not path.startswith(f"{PREFIX}/") or "\\" in path or any(ord(character) < 32 for character in path):
        return f"{PREFIX}/"
    return path


def sign_in_url(request: Request) -> str:
    """Return the sign-in URL. For GET and HEAD requests, it contains the path of this page, to return to it."""
    if request.method not in ("GET", "HEAD"):
        return SIGN_IN
    query = request.scope["query_string"].decode("latin-1")
    return f"{SIGN_IN}?next={quote(request.scope['path'] + (f'?{query}' if query else ''), safe='/')}"


def read_revision(console_request: ConsoleRequest, name: str) -> int:
    revision = parse_id(console_request.form_text(name))
    if revision is None:
        raise errors.invalid(name, "must be a revision.")
    return revision


def form_error(error: ApiError) -> Message:
    """Return the message above a form. Rejected fields have separate messages beside them."""
    return Message("Nothing was saved. Please correct these fields:") if errors.field_errors(error) else error.message


# Identity confirmation, required to change credentials, people and roles.

CONFIRM: Final = f"{PREFIX}/confirm"


def is_confirmed(console_request: ConsoleRequest) -> bool:
    session = console_request.session
    return session is not None and console_request.now - session.reauthenticated_at < CONFIRMATION_AGE


def require_confirmed(console_request: ConsoleRequest, next_path: str = "") -> Response | None:
    """Return a redirect to the identity confirmation page, or None if confirmation is not necessary.

    `next_path` is the page to open next, by default the requested page. A redirect loses the submitted form, so
    the page with the form must already require confirmation.
    """
    if is_confirmed(console_request):
        return None
    return redirect(f"{CONFIRM}?next={quote(next_path or console_request.path, safe='/')}")
