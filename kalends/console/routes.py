"""The routes of the console. Each group of pages lists its own."""

import re
from typing import Final

from kalends.console import history_views, home_views, sign_in_views
from kalends.console.request import PREFIX, ConsoleRequest, ConsoleRoute

ROUTES: Final[tuple[ConsoleRoute, ...]] = (
    ConsoleRoute("/?", home_views.show_home, min_role="subscriber"),
    *sign_in_views.ROUTES,
    *history_views.ROUTES,
)


def match_route(console_request: ConsoleRequest) -> None:
    """Set the route and the path parameters of a request."""
    path = console_request.path.removeprefix(PREFIX)
    for route in ROUTES:
        if match := re.fullmatch(route.pattern, path, re.ASCII):
            console_request.route, console_request.path_params = route, match.groupdict()
            return
