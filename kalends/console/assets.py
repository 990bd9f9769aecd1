"""Styles and modules of the console.

Their path contains a hash of all files, so they may be cached forever and modules can import each other by name.
"""

import hashlib
from functools import cache
from pathlib import Path
from typing import Final

from starlette.responses import Response

from kalends.console.request import PREFIX
from kalends.core import errors
from kalends.website.assets import MINIFIERS

STATIC: Final = Path(__file__).resolve().parent / "static"
ASSETS: Final = f"{PREFIX}/assets/"
TYPES: Final = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
HEADERS: Final = {
    "Cache-Control": "public, max-age=31536000, immutable",
    "Content-Security-Policy": "default-src 'none'",
}


@cache
def _files() -> dict[str, bytes]:
    return {path.name: _minify(path) for path in sorted(STATIC.iterdir()) if path.suffix in TYPES}


def _minify(path: Path) -> bytes:
    """Return a file of this project in a smaller form. The bundle of the rich-text editor comes minified."""
    minify = None if path.name == "rich-text.js" else MINIFIERS.get(path.suffix)
    return minify(path.read_bytes()) if minify else path.read_bytes()


@cache
def _version() -> str:
    digest = hashlib.blake2b(digest_size=6)
    for name, body in _files().items():
        digest.update(f"{name}\0{len(body)}\0".encode() + body)
    return digest.hexdigest()


def asset_url(name: str) -> str:
    """Return the URL of a file; raise KeyError if there is none."""
    if name not in _files():
        raise KeyError(name)
    return f"{ASSETS}{_version()}/{name}"


def serve_asset(path: str) -> Response:
    """Return a file by its URL. Another version than the current one does not exist."""
    version, _, name = path.removeprefix(ASSETS).partition("/")
    if version != _version() or name not in _files():
        raise errors.no_route()
    return Response(_files()[name], headers=HEADERS, media_type=TYPES[Path(name).suffix])
