"""A canvas for the demo pictures. Coordinates are on a 160 by 90 grid."""

from collections.abc import Sequence
from io import BytesIO
from random import Random
from typing import Final

from PIL import Image, ImageDraw

WIDTH: Final = 160
HEIGHT: Final = 90
SCALE: Final = 15  # pixels per unit; twice the final resolution, to smooth the edges
SIZE: Final = (1200, 675)

Point = tuple[float, float]
Palette = tuple[str, ...]


class Canvas:
    """A picture being drawn. Colors are hexadecimal; `palette` holds the scene's colors."""

    def __init__(self, palette: Palette, seed: str) -> None:
        self.palette = palette
        self.chance = Random(seed)  # noqa: S311  The pictures have to be repeatable.
        self._image = Image.new("RGB", (WIDTH * SCALE, HEIGHT * SCALE), palette[0])
        self._draw = ImageDraw.Draw(self._image)

    def sky(self, top: str, bottom: str, until: float = HEIGHT) -> None:
        """Fill the picture from the top to `until` with a gradient."""
        height = int(until * SCALE)
        gradient = Image.linear_gradient("L").resize((self._image.width, height))
        upper, lower = (Image.new("RGB", gradient.size, colour) for colour in (top, bottom))
        self._image.paste(Image.composite(lower, upper, gradient), (0, 0))

    def glow(self, x: float, y: float, radius: float, colour: str, strength: float) -> None:
        edge = int(2 * radius * SCALE)
        light = Image.radial_gradient("L").resize((edge, edge))
        mask = light.point([max(0, int((255 - 1.4 * value) * strength)) for value in range(256)])
        corner = (int((x - radius) * SCALE), int((y - radius) * SCALE))
        self._image.paste(Image.new("RGB", mask.size, colour), corner, mask)

    def box(self, x: float, y: float, width: float, height: float, colour: str, round_by: float = 0) -> None:  # noqa: PLR0917
        corners = self._scale([(x, y), (x + width, y + height)])
        self._draw.rounded_rectangle(corners, round_by * SCALE, colour)

    def circle(self, x: float, y: float, radius: float, colour: str) -> None:
        self._draw.ellipse(self._scale([(x - radius, y - radius), (x + radius, y + radius)]), colour)

    def ring(self, x: float, y: float, radius: float, colour: str, width: float) -> None:
        corners = self._scale([(x - radius, y - radius), (x + radius, y + radius)])
        self._draw.ellipse(corners, outline=colour, width=int(width * SCALE))

    def polygon(self, points: Sequence[Point], colour: str) -> None:
        self._draw.polygon(self._scale(points), colour)

    def line(self, points: Sequence[Point], colour: str, width: float) -> None:
        self._draw.line(self._scale(points), colour, int(width * SCALE), joint="curve")

    def shade(self, points: Sequence[Point], colour: str, strength: float) -> None:
        """Draw a translucent polygon."""
        mask = Image.new("L", self._image.size)
        ImageDraw.Draw(mask).polygon(self._scale(points), int(255 * strength))
        self._image.paste(Image.new("RGB", self._image.size, colour), (0, 0), mask)

    def save(self) -> bytes:
        buffer = BytesIO()
        self._image.resize(SIZE, Image.Resampling.BOX).save(buffer, "WEBP", quality=86)
        return buffer.getvalue()

    @staticmethod
    def _scale(points: Sequence[Point]) -> list[Point]:
        return [(x * SCALE, y * SCALE) for x, y in points]
