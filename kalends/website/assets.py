"""Styles, scripts and the icon. Their names contain a hash of the content, so they may be cached forever."""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from kalends.website.models.theme import FONTS, make_theme

DEFAULT_FONTS: Final = "serif"
STATIC: Final = Path(__file__).resolve().parent / "static"
TYPES: Final = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
# Style sheets with the theme of a site, and the files they consist of. The console needs only the design system.
_SHEETS: Final = {"site": ("design.css", "site.css"), "design": ("design.css",)}
# The name contains the theme, so that every server process can make the file.
_STYLE: Final = re.compile(
    r"(?P<sheet>site|design)\.[0-9a-f]{12}\.(?P<accent>[0-9a-f]{6})(?:-(?P<second>[0-9a-f]{6}))?(?:\.(?P<fonts>[a-z]+))?\.css"
)


@dataclass(frozen=True, slots=True)
class Asset:
    body: bytes
    media_type: str


def find_asset(name: str) -> Asset | None:
    """Return the asset with this hashed name."""
    style = _STYLE.fullmatch(name)
    if style is not None and (style["fonts"] or DEFAULT_FONTS) in FONTS:
        theme = (
            f"#{style['accent']}",
            f"#{style['second']}" if style["second"] else "",
            style["fonts"] or DEFAULT_FONTS,
        )
        if name == style_name(*theme, sheet=style["sheet"]):
            return Asset(_make_style(*theme, sheet=style["sheet"]), TYPES[".css"])
    original = _by_hashed_name().get(name)
    return Asset(_files()[original], TYPES[Path(original).suffix]) if original else None


@cache
def asset_name(name: str) -> str:
    """Return the hashed name of a static file."""
    stem, _, suffix = name.rpartition(".")
    return f"{stem}.{_hash(_files()[name])}.{suffix}"


@lru_cache(maxsize=256)
def style_name(accent: str, second_accent: str = "", fonts: str = DEFAULT_FONTS, *, sheet: str = "site") -> str:
    """Return the hashed name of a style sheet with this theme."""
    colours = accent[1:] + (f"-{second_accent[1:]}" if second_accent else "")
    digest = _hash(_make_style(accent, second_accent, fonts, sheet=sheet))
    return f"{sheet}.{digest}.{colours}{f'.{fonts}' if fonts != DEFAULT_FONTS else ''}.css"


def _make_style(accent: str, second_accent: str, fonts: str, *, sheet: str) -> bytes:
    files = _files()
    return make_theme(accent, second_accent, fonts).encode() + b"".join(files[name] for name in _SHEETS[sheet])


@cache
def _files() -> dict[str, bytes]:
    files = [path for path in sorted(STATIC.iterdir()) if path.suffix in TYPES]
    return {path.name: _minify(path) for path in files}


def _minify(path: Path) -> bytes:
    """Return a file of this project in a smaller form. Leaflet comes minified."""
    minify = None if path.name.startswith("leaflet") else MINIFIERS.get(path.suffix)
    return minify(path.read_bytes()) if minify else path.read_bytes()


def _minify_style(style: bytes) -> bytes:
    """Remove comments and unnecessary whitespace."""
    minified = re.sub(rb"\s+", b" ", re.sub(rb"/\*.*?\*/", b"", style, flags=re.DOTALL))
    return re.sub(rb" ?([{};,>]) ?|(:) ", rb"\1\2", minified).strip()


def _minify_script(script: bytes) -> bytes:
    """Remove indentation and comment lines."""
    lines = [line.strip() for line in script.splitlines()]
    return b"\n".join(line for line in lines if line and not _is_comment(line))


def _is_comment(line: bytes) -> bool:
    return line.startswith(b"//") or (line.startswith(b"/**") and line.endswith(b"*/"))


MINIFIERS: Final[dict[str, Callable[[bytes], bytes]]] = {".css": _minify_style, ".js": _minify_script}


@cache
def _by_hashed_name() -> dict[str, str]:
    return {asset_name(name): name for name in _files() if name not in _SHEETS["site"]}


def _hash(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=6).hexdigest()
