"""The first page after signing in."""

from starlette.responses import Response

from kalends.console.request import PREFIX, ConsoleRequest, redirect


async def show_home(console_request: ConsoleRequest) -> Response:
    """Continue with the events, or with the account of a user who may not write any."""
    return redirect(f"{PREFIX}/events" if console_request.has_role("contributor") else f"{PREFIX}/account")
