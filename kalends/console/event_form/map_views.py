"""A small map of a venue, for a frame in the form.

Leaflet does not work with the policy of the console, so the map is a page of its own with the policy of public pages.
"""

from typing import Final
from urllib.parse import urlsplit

import orjson
from starlette.responses import Response

from kalends.console.rendering import show
from kalends.console.request import ConsoleRequest, ConsoleRoute
from kalends.core import errors
from kalends.core.errors import InvalidValue
from kalends.core.params import number
from kalends.website.models.cards import find_origin


async def show_map(console_request: ConsoleRequest) -> Response:
    """Show a map with one point, if a tile server is configured."""
    settings = console_request.map_settings
    if not settings.tiles_url:
        raise errors.no_route()
    latitude, longitude = _read_degrees(console_request, "lat", 90), _read_degrees(console_request, "lng", 180)
    points = [(latitude, longitude, [console_request.query_value("name")[:200]])]
    response = show(
        console_request,
        "event_form_map.html",
        points=orjson.dumps(points).decode(),
        tiles_url=settings.tiles_url,
        tiles_attribution=settings.tiles_attribution,
        tiles_host=urlsplit(settings.tiles_url).netloc.removeprefix("{s}."),
    )
    response.headers["Content-Security-Policy"] = _make_policy(settings.tiles_url)
    return response


def _read_degrees(console_request: ConsoleRequest, name: str, limit: int) -> float:
    try:
        degrees: float = number(-limit, limit).read(console_request.query_value(name))
    except InvalidValue as error:
        raise errors.invalid_params({name: errors.for_param(name, error.message)}) from error
    return degrees


def _make_policy(tiles_url: str) -> str:
    """Return the policy of public pages: images of the tile server, and frames of this site."""
    tiles = find_origin(tiles_url.replace("{s}.", "*."))
    return (
        "default-src 'none'; style-src 'self'; script-src 'self'; base-uri 'none'; form-action 'none'; "
        f"img-src 'self' {tiles}; frame-ancestors 'self'"
    )


ROUTES: Final = (ConsoleRoute("/map", show_map),)
