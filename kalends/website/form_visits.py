"""What forms for people without an account share: a visit with its transaction, and pages that no cache stores."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from starlette.responses import Response

from kalends.calendar.access.operation_context import OperationContext
from kalends.core import errors
from kalends.core.errors import InvalidValue
from kalends.core.messages import Message
from kalends.core.params import read_form_text
from kalends.core.urls import read_email
from kalends.http import bodies
from kalends.http.auth import reject_cross_site
from kalends.store.database import Transaction
from kalends.store.sites import Site
from kalends.website.context import PageContext, PageRequest, make_page_context, show_page
from kalends.website.page_server import respond
from kalends.website.pages import Page

HONEYPOT: Final = "company"  # people don't see this field


@dataclass(frozen=True, slots=True, kw_only=True)
class FormPage(Page):
    """A page for people without an account, with a form or behind a link in an email."""

    styles: ClassVar[tuple[str, ...]] = ("submission.css",)
    kind: str = "submission-page"
    robots: str = "noindex"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotePage(FormPage):
    """A message, optionally with a form for the email address and with links."""

    template: ClassVar[str] = "note.html"
    problem: str = ""
    hidden: Mapping[str, str]  # fields of the form that only programs read
    paragraphs: Sequence[str] = ()
    asks_email: bool = False
    button: str = ""  # sends the form without further fields
    link_request_url: str = ""


@dataclass(frozen=True, slots=True)
class FormVisit:
    """A request inside a transaction."""

    request: PageRequest
    context: OperationContext
    page: PageContext

    @property
    def tx(self) -> Transaction:
        return self.context.transaction

    async def show(self, model: Page, status: int = 200, wait: int = 0) -> Response:
        page_response = await show_page(self.page, model, status=status, is_cacheable=False)
        response = respond(self.request, page_response)
        # The address of the page may contain a token.
        response.headers.update({"Cache-Control": "private, no-store", "Referrer-Policy": "no-referrer"})
        if wait:
            response.headers["Retry-After"] = str(wait)
        return response

    async def show_note(
        self, title: str, paragraphs: Sequence[str], status: int = 200, wait: int = 0, **more: Any
    ) -> Response:
        """Show a page with a message and, optionally, a form."""
        text = self.page.locale.text
        values = {"hidden": {}, **more}
        return await self.show(
            NotePage(title=text(title), paragraphs=[text(row) for row in paragraphs], **values), status, wait
        )


@asynccontextmanager
async def visit_form[V: FormVisit](
    visit_type: type[V], request: PageRequest, is_open: Callable[[Site], bool] | None, *, writing: bool
) -> AsyncIterator[V]:
    """Open a transaction. Raise 404 if `is_open` says that the site has no such form."""
    async with request.transaction(writing=writing) as tx:
        request.site_language = tx.site.language
        if is_open is not None and not (is_open(tx.site) and request.state.can_send_links(tx.site)):
            raise errors.no_route()
        context = request.operation_context(tx)
        yield visit_type(request, context, make_page_context(request, context))


async def read_form(request: PageRequest) -> dict[str, Any] | None:
    """Return a form without files; None if the request reads. Refuse forms of other sites."""
    if request.request.method != "POST":
        return None
    reject_cross_site(request.request, request.state.origins)
    body = await bodies.read_body(request.request, request.state.max_body_bytes)
    return (await bodies.read_values(request.request, body)).values


def read_text(form: Mapping[str, Any], name: str) -> str:
    """Return the value of a text field, with the line breaks that are stored and compared."""
    return read_form_text(form, name).replace("\r\n", "\n").strip()


def read_email_field(text: str, read: Callable[[str], str] = read_email) -> tuple[str, Message | None]:
    """Return an address, or an empty text and the problem."""
    try:
        email = read(text)
    except InvalidValue as error:
        return "", error.message
    return email, None if email else Message("This field is required.")


def see_other(path: str, request: PageRequest) -> Response:
    """Redirect after a form, in the same language."""
    return Response(status_code=303, headers={"Location": request.with_query(path)})
