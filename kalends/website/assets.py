"""Styles, scripts and the icon. File names contain a hash of the content, so responses can be cached forever.

The style sheets of a site begin with the site's theme: fonts, and accent colors adjusted for contrast on light and
dark backgrounds.
"""

import hashlib
import re
from collections.abc import Callable
from colorsys import hls_to_rgb, rgb_to_hls
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

DEFAULT_FONTS: Final = "serif"
ANY_SCHEME: Final = "auto"  # light or dark, as the visitor prefers
STATIC: Final = Path(__file__).resolve().parent / "static"
TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
# Style sheets with a site's theme, and their source files. The console needs only the design system.
_SHEETS: Final = {"site": ("design.css", "site.css"), "design": ("design.css",)}
# The name contains the theme, so that any server process can build the file.
_STYLE: Final = re.compile(
    r"(?P<sheet>site|design)\.[0-9a-f]{12}\.(?P<accent>[0-9a-f]{6})(?:-(?P<second>[0-9a-f]{6}))?(?:\.(?P<scheme>light|dark))?(?:\.(?P<fonts>[a-z]+))?\.css"
)
_PREFERS_DARK: Final = re.compile(rb"\s?\(prefers-color-scheme:\s?dark\)")
LIGHT_BACKGROUND: Final = "#f4f1ea"
DARK_BACKGROUND: Final = "#26282d"
# Fonts for headings and text. Japanese pages never use web fonts, which have no Japanese letters.
FONTS: Final = {
    "serif": ":root:not(:lang(ja)){--heading:Fraunces,var(--serif);--body:Figtree,var(--sans)}",
    "sans": ":root{--heading:var(--body,var(--sans))}:root:not(:lang(ja)){--body:Figtree,var(--sans)}",
    "classic": ":root{--body:var(--serif)}",
    "humanist": ":root{--heading:var(--humanist);--body:var(--humanist);"
    '--humanist:Seravek,"Gill Sans Nova",Ubuntu,Calibri,"DejaVu Sans",source-sans-pro,sans-serif}',
    "rounded": ":root{--heading:ui-rounded,"
    '"Hiragino Maru Gothic ProN",Quicksand,Comfortaa,Manjari,"Arial Rounded MT Bold",Calibri,var(--sans)}',
}
# Web fonts that each setting loads; all other fonts must be installed on the device.
WEB_FONTS: Final = {"serif": ("Figtree", "Fraunces"), "sans": ("Figtree",)}
# Browsers load a file only for pages that contain letters from its range.
FONT_RANGES: Final = {
    "latin": "U+0-FF,U+131,U+152-153,U+2BB-2BC,U+2C6,U+2DA,U+2DC,U+304,U+308,U+329,U+2000-206F,U+20AC,U+2122,U+2191,"
    "U+2193,U+2212,U+2215,U+FEFF,U+FFFD",
    "latin-ext": "U+100-2BA,U+2BD-2C5,U+2C7-2CC,U+2CE-2D7,U+2DD-2FF,U+304,U+308,U+329,U+1D00-1DBF,U+1E00-1E9F,"
    "U+1EF2-1EFF,U+2020,U+20A0-20AB,U+20AD-20C0,U+2113,U+2C60-2C7F,U+A720-A7FF",
}
MIN_CONTRAST: Final = 4.6  # WCAG AA requires 4.5 for text.


@dataclass(frozen=True, slots=True)
class Asset:
    body: bytes
    media_type: str


def find_asset(name: str) -> Asset | None:
    style = _STYLE.fullmatch(name)
    if style is not None and (style["fonts"] or DEFAULT_FONTS) in FONTS:
        theme = (
            f"#{style['accent']}",
            f"#{style['second']}" if style["second"] else "",
            style["fonts"] or DEFAULT_FONTS,
            style["scheme"] or ANY_SCHEME,
        )
        if name == style_name(*theme, sheet=style["sheet"]):
            return Asset(_make_style(*theme, sheet=style["sheet"]), TYPES[".css"])
    original = _by_hashed_name().get(name)
    return Asset(_files()[original], TYPES[Path(original).suffix]) if original else None


@cache
def asset_name(name: str) -> str:
    stem, _, suffix = name.rpartition(".")
    return f"{stem}.{_hash(_files()[name])}.{suffix}"


@cache
def list_preloads(fonts: str, language: str) -> list[str]:
    """Return the names of the font files that every page in a language needs."""
    return [asset_name(_font_file(family)) for family in WEB_FONTS.get(fonts, ()) if language != "ja"]


def _font_file(family: str, subset: str = "latin") -> str:
    return f"{family.lower()}-{subset}-wght-normal.woff2"


@lru_cache(maxsize=256)
def style_name(
    accent: str, second_accent: str = "", fonts: str = DEFAULT_FONTS, scheme: str = ANY_SCHEME, *, sheet: str = "site"
) -> str:
    colours = accent[1:] + (f"-{second_accent[1:]}" if second_accent else "")
    digest = _hash(_make_style(accent, second_accent, fonts, scheme, sheet=sheet))
    parts = [colours, *([scheme] if scheme != ANY_SCHEME else []), *([fonts] if fonts != DEFAULT_FONTS else [])]
    return f"{sheet}.{digest}.{'.'.join(parts)}.css"


def _make_style(accent: str, second_accent: str, fonts: str, scheme: str, *, sheet: str) -> bytes:
    """Return a style sheet. One for a fixed scheme ignores which scheme the visitor prefers."""
    style = make_theme(accent, second_accent, fonts).encode() + b"".join(_files()[name] for name in _SHEETS[sheet])
    media = {"light": b" not all", "dark": b" all"}.get(scheme)
    return _PREFERS_DARK.sub(media, style) if media else style


@cache
def _files() -> dict[str, bytes]:
    files = [path for path in sorted(STATIC.iterdir()) if path.suffix in TYPES]
    return {path.name: minify(path) for path in files}


def minify(path: Path) -> bytes:
    """Minify a static file. Leaflet and the rich-text editor are already minified."""
    is_minified = path.name.startswith("leaflet") or path.name == "rich-text.js"
    minifier = None if is_minified else MINIFIERS.get(path.suffix)
    return minifier(path.read_bytes()) if minifier else path.read_bytes()


def _minify_style(style: bytes) -> bytes:
    """Remove comments and unnecessary whitespace."""
    minified = re.sub(rb"\s+", b" ", re.sub(rb"/\*.*?\*/", b"", style, flags=re.DOTALL))
    return re.sub(rb" ?([{};,>]) ?|(:) ", rb"\1\2", minified).strip()


def _minify_script(script: bytes) -> bytes:
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


@lru_cache(maxsize=256)
def make_theme(accent: str, second_accent: str = "", fonts: str = "serif") -> str:
    light = _set_accents(accent, second_accent or accent, LIGHT_BACKGROUND)
    dark = _set_accents(accent, second_accent or accent, DARK_BACKGROUND)
    map_accent = ensure_contrast(accent, LIGHT_BACKGROUND)  # Map tiles are light in both schemes.
    on_map = f"--map-accent:{map_accent};--on-map-accent:{pick_text_colour(map_accent)};"
    faces = "".join(map(_make_faces, WEB_FONTS.get(fonts, ())))
    return f"{faces}:root{{{light}{on_map}}}@media(prefers-color-scheme:dark){{:root{{{dark}}}}}{FONTS[fonts]}"


def _make_faces(family: str) -> str:
    """Return a web font's CSS rules. If it loads late, it first appears on the next page, to avoid layout shifts."""
    return "".join(
        f"@font-face{{font-family:{family};font-weight:300 900;font-display:optional;unicode-range:{letters};"
        f"src:url({asset_name(_font_file(family, subset))})format('woff2')}}"
        for subset, letters in FONT_RANGES.items()
    )


def _set_accents(accent: str, second_accent: str, background: str) -> str:
    first, second = ensure_contrast(accent, background), ensure_contrast(second_accent, background)
    return (
        f"--accent:{first};--on-accent:{pick_text_colour(first)};"
        f"--second:{second};--on-second:{pick_text_colour(second)};"
    )


def ensure_contrast(colour: str, background: str) -> str:
    """Darken or lighten the color until its contrast with the background suffices."""
    hue, lightness, saturation = rgb_to_hls(*_read_rgb(colour))
    step = -0.01 if luminance(background) > 0.5 else 0.01
    while contrast(colour, background) < MIN_CONTRAST and 0 <= lightness <= 1:
        lightness += step
        parts = hls_to_rgb(hue, min(1.0, max(0.0, lightness)), saturation)
        colour = "#" + "".join(f"{round(part * 255):02x}" for part in parts)
    return colour


def pick_text_colour(colour: str) -> str:
    return max(("#ffffff", "#16171a"), key=lambda text_colour: contrast(text_colour, colour))


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    red, green, blue = map(_linear, _read_rgb(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(part: float) -> float:
    """Undo the sRGB gamma correction."""
    return part / 12.92 if part <= 0.04045 else float(((part + 0.055) / 1.055) ** 2.4)


def _read_rgb(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return red, green, blue
