"""GET /media/…: image files.

The name of a file contains a hash of its content, so responses can be cached forever.
"""

import asyncio
import os
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from kalends.core import errors
from kalends.core.image_types import read_key
from kalends.http.request import MEDIA_PREFIX, AppState
from kalends.http.responses import is_known_etag, split_etags
from kalends.media.adapters.file_store import IMMUTABLE_CACHE_CONTROL, get_mime_type

HEADERS: Final = {
    "Cache-Control": IMMUTABLE_CACHE_CONTROL,
    "Content-Disposition": "inline",
    # Sandbox the file against script execution, and allow cross-origin embedding.
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Access-Control-Allow-Origin": "*",
}


async def serve_file(state: AppState, request: Request, host: str) -> Response:
    """Send a file from the site at this host, or from any site on the KALENDS_MEDIA_URL host."""
    if request.method not in ("GET", "HEAD"):
        raise errors.method_not_allowed(request.method, ["GET"])
    key: str = request.scope["path"].removeprefix(f"{MEDIA_PREFIX}/")
    parsed = read_key(key)
    if parsed is None:
        raise errors.no_route()
    site_id, name = parsed
    if host != urlsplit(state.media_url).hostname and await state.sources.find_site_id(host) != site_id:
        raise errors.no_route()
    library = state.library
    if library is None:
        raise errors.no_route()
    headers = {**HEADERS, "ETag": f'"{name[:32]}"'}
    if is_known_etag(headers["ETag"], split_etags(request.headers.get("if-none-match", ""))):
        return Response(status_code=304, headers=headers)
    path = library.files.path(key)
    if path is None:
        content = await library.read(site_id, name)
        if content is None:
            raise errors.no_route()
        return Response(content, 200, headers, media_type=get_mime_type(key))
    try:
        stat_result = await asyncio.to_thread(os.stat, path)
    except OSError as error:
        raise errors.no_route() from error
    return FileResponse(path, 200, headers, get_mime_type(key), stat_result=stat_result)
