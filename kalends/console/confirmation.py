"""The proof of identity that changes of credentials, people and roles require."""

from typing import Final
from urllib.parse import quote

from starlette.responses import Response

from kalends.console.request import PREFIX, ConsoleRequest, redirect
from kalends.operations.sessions import CONFIRMATION_AGE

CONFIRM: Final = f"{PREFIX}/confirm"


def is_confirmed(console_request: ConsoleRequest) -> bool:
    """Return whether the user has proved their identity recently."""
    session = console_request.session
    return session is not None and console_request.now - session.reauthenticated_at < CONFIRMATION_AGE


def require_confirmed(console_request: ConsoleRequest, next_path: str = "") -> Response | None:
    """Return a redirect to the page that confirms the identity, or None if that is not necessary.

    `next_path` is the page to continue with, by default that of the request. A form that was sent is lost, so the
    page with the form requires the confirmation already.
    """
    if is_confirmed(console_request):
        return None
    return redirect(f"{CONFIRM}?next={quote(next_path or console_request.path, safe='/')}")
