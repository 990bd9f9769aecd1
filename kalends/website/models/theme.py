"""The accent colour of a site, adjusted for contrast on light and dark backgrounds."""

from colorsys import hls_to_rgb, rgb_to_hls
from functools import lru_cache
from typing import Final

LIGHT_BACKGROUND: Final = "#f4f1ea"
DARK_BACKGROUND: Final = "#26282d"
MIN_CONTRAST: Final = 4.6  # WCAG AA requires 4.5 for text.


@lru_cache(maxsize=256)
def make_theme(accent: str) -> str:
    """Return the style sheet that sets the accent colours."""
    light, dark = ensure_contrast(accent, LIGHT_BACKGROUND), ensure_contrast(accent, DARK_BACKGROUND)
    return (
        f":root{{--accent:{light};--on-accent:{pick_text_colour(light)};"
        "--second:var(--accent);--on-second:var(--on-accent)}"
        f"@media(prefers-color-scheme:dark){{:root{{--accent:{dark};--on-accent:{pick_text_colour(dark)}}}}}"
    )


def ensure_contrast(colour: str, background: str) -> str:
    """Return the colour, darkened or lightened until its contrast with the background suffices."""
    hue, lightness, saturation = rgb_to_hls(*_read_rgb(colour))
    step = -0.01 if luminance(background) > 0.5 else 0.01
    while contrast(colour, background) < MIN_CONTRAST and 0 <= lightness <= 1:
        lightness += step
        colour = _format_hex(hls_to_rgb(hue, min(1.0, max(0.0, lightness)), saturation))
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
    """Undo the gamma correction of sRGB."""
    return part / 12.92 if part <= 0.04045 else float(((part + 0.055) / 1.055) ** 2.4)


def _read_rgb(colour: str) -> tuple[float, float, float]:
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return red, green, blue


def _format_hex(parts: tuple[float, float, float]) -> str:
    return "#" + "".join(f"{round(part * 255):02x}" for part in parts)
