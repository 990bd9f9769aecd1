"""Draws the demo pictures: one scene per category, with an alternative text.

Coordinates are on a grid of 160 by 90.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from random import Random
from typing import Final

from PIL import Image, ImageDraw

WIDTH: Final = 160
HEIGHT: Final = 90
SCALE: Final = 15  # pixels per unit: twice the final resolution, for smooth edges
SIZE: Final = (1200, 675)
LOGO_SIZE: Final = (160, 160)

Point = tuple[float, float]
Palette = tuple[str, ...]


class Canvas:
    """A picture that is being drawn. Colors are hexadecimal; `palette` holds the colors of the scene."""

    def __init__(self, palette: Palette, seed: str) -> None:
        self.palette = palette
        self.chance = Random(seed)  # noqa: S311  The pictures have to be repeatable.
        self._image = Image.new("RGB", (WIDTH * SCALE, HEIGHT * SCALE), palette[0])
        self._draw = ImageDraw.Draw(self._image)

    def sky(self, top: str, bottom: str, until: float = HEIGHT) -> None:
        """Fill the picture with a gradient, from the top to `until`."""
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


def draw_logo() -> bytes:
    """Return the town's logo, a bridge over a river below the sun, as PNG."""
    image = Image.new("RGBA", (640, 640))
    disc = Image.new("L", image.size)
    ImageDraw.Draw(disc).ellipse((4, 4, 636, 636), 255)
    scene = Image.new("RGB", image.size, "#0f6b5c")
    draw = ImageDraw.Draw(scene)
    draw.ellipse((220, 110, 420, 310), "#f4c95d")
    draw.rectangle((0, 400, 640, 640), "#0a4a40")
    draw.rectangle((0, 300, 640, 340), "#fdf6ea")
    draw.rectangle((0, 330, 640, 420), "#fdf6ea")
    for left in (60, 240, 420):
        draw.ellipse((left, 350, left + 160, 510), "#0a4a40")
    for y in (470, 530):
        draw.line([(0, y), (640, y)], "#2f8f7f", 16)
    image.paste(scene, (0, 0), disc)
    buffer = BytesIO()
    image.resize(LOGO_SIZE, Image.Resampling.BOX).save(buffer, "PNG")
    return buffer.getvalue()


@dataclass(frozen=True, slots=True)
class Scene:
    draw: Callable[[Canvas], None]
    palettes: tuple[Palette, ...]
    alt_text: str


def draw_music(canvas: Canvas) -> None:
    dark, light, warm, pale = canvas.palette
    canvas.sky(dark, light)
    canvas.glow(80, 50, 62, warm, 0.55)
    for radius in range(41, 8, -4):
        canvas.ring(80, 47, radius, dark, 0.5)
    canvas.circle(80, 47, 12, warm)
    canvas.circle(80, 47, 2, dark)
    for n in range(20):
        height = 6 + 22 * canvas.chance.random()
        canvas.box(4 + n * 8, 88 - height, 4, height + 4, pale if n % 3 else warm, 2)


def draw_theatre(canvas: Canvas) -> None:
    dark, cloth, fold, light = canvas.palette
    canvas.sky(dark, "#1b1420")
    canvas.shade([(80, -20), (122, 80), (38, 80)], light, 0.35)
    canvas.glow(80, 78, 48, light, 0.8)
    canvas.box(0, 80, WIDTH, 10, "#5b3a29")
    canvas.box(74, 62, 12, 2, dark)
    canvas.line([(75, 63), (74, 80)], dark, 1.2)
    canvas.line([(85, 63), (86, 80)], dark, 1.2)
    canvas.line([(75, 63), (75, 46)], dark, 1.2)
    canvas.box(74, 45, 2, 12, dark)
    for side in (0, 1):
        for n in range(6):
            x, width = n * 8.0, 8.5
            bottom = 84 - n * 2.5
            left = WIDTH - x - width if side else x
            canvas.box(left, -2, width, bottom + 2, cloth if n % 2 else fold, 3)
    for n in range(10):
        canvas.circle(8 + n * 16, 2, 10.5, cloth if n % 2 else fold)


def draw_film(canvas: Canvas) -> None:
    dark, screen, seat, light = canvas.palette
    canvas.sky(dark, "#0d0c14")
    canvas.shade([(80, 96), (24, 8), (136, 8)], light, 0.18)
    canvas.box(26, 8, 108, 46, screen, 1)
    canvas.glow(80, 30, 40, light, 0.6)
    x = 50 + 60 * canvas.chance.random()
    canvas.circle(x, 27, 8, light)
    canvas.polygon([(26, 54), (26, 44), (58, 32), (88, 46), (112, 36), (134, 46), (134, 54)], seat)
    for row, y in enumerate((66, 77, 88)):
        for n in range(-1, 12):
            canvas.box(n * 15 + row * 5, y, 12, 16, seat if row == 2 else dark, 4)
            canvas.box(n * 15 + row * 5, y, 12, 5, seat, 4)


def draw_exhibition(canvas: Canvas) -> None:
    wall, first, second, third = canvas.palette
    canvas.sky(wall, "#fbf7f0")
    canvas.box(0, 74, WIDTH, 16, "#c9b79c")
    canvas.box(0, 73, WIDTH, 1.2, "#a8967c")
    for n, (x, width, height) in enumerate(((16, 30, 42), (58, 48, 34), (118, 28, 40))):
        y = 40 - height / 2
        right, bottom = x + width + 3, y + height + 3
        canvas.shade([(x + 2, y + 2), (right, y + 2), (right, bottom), (x + 2, bottom)], "#000000", 0.18)
        canvas.box(x, y, width, height, "#2c2a29")
        canvas.box(x + 1.2, y + 1.2, width - 2.4, height - 2.4, (first, second, third)[n])
        for colour in (third, wall, first)[: 2 + n % 2]:
            radius = 4 + 6 * canvas.chance.random()
            across = x + 4 + radius + (width - 8 - 2 * radius) * canvas.chance.random()
            canvas.circle(across, y + 4 + radius + (height - 8 - 2 * radius) * canvas.chance.random(), radius, colour)
        canvas.line([(x + 3, y + height - 8), (x + width - 3, y + height - 12)], "#2c2a29", 0.6)
    canvas.box(66, 68, 28, 3, "#6d5b4b", 1)
    canvas.line([(70, 70), (70, 80)], "#6d5b4b", 1.4)
    canvas.line([(90, 70), (90, 80)], "#6d5b4b", 1.4)


def draw_books(canvas: Canvas) -> None:
    wall, *covers = canvas.palette
    canvas.sky(wall, "#2b2320")
    for shelf in (44, 88):
        x = 4.0
        while x < WIDTH - 8:
            width, height = 4 + 5 * canvas.chance.random(), 24 + 12 * canvas.chance.random()
            colour = canvas.chance.choice(covers)
            canvas.box(x, shelf - height, width, height, colour, 0.6)
            canvas.box(x, shelf - height * 0.82, width, 1, wall)
            canvas.box(x, shelf - height * 0.25, width, 1.6, "#f3e9d8")
            x += width + 0.5
            if canvas.chance.random() < 0.09:
                canvas.polygon([(x, shelf), (x + 5, shelf), (x + 15, shelf - 28), (x + 10, shelf - 30)], colour)
                x += 15
        canvas.box(0, shelf, WIDTH, 3, "#8a6242")
    canvas.glow(120, 6, 60, "#ffdca0", 0.35)


def draw_courses(canvas: Canvas) -> None:
    wall, clay, glaze, wood = canvas.palette
    canvas.sky(wall, "#fff9ee")
    canvas.box(0, 64, WIDTH, 26, wood)
    canvas.box(0, 64, WIDTH, 1.5, "#8f6a45")
    for x, tall, wide in ((34, 36, 12), (72, 24, 16), (116, 42, 10)):
        base = 72
        outline = [
            (
                x + side * wide * (0.62 + 0.38 * math.sin(math.pi * step / 10) - 0.2 * step / 10),
                base - tall * step / 10,
            )
            for side, steps in ((-1, range(11)), (1, range(10, -1, -1)))
            for step in steps
        ]
        canvas.polygon(outline, clay)
        cut = [point for point in outline if point[1] <= base - tall * 0.55]
        canvas.polygon(cut, glaze)
        canvas.box(x - wide * 0.46, base - tall - 0.8, wide * 0.92, 1.6, "#4a3428", 0.8)
    for n in range(5):
        foot = 134 + n * 4 + 2 * canvas.chance.random()
        canvas.line([(foot, 66), (foot + 5 - n * 2, 40 + n)], wood if n % 2 else "#4a3428", 0.9)
        canvas.circle(foot + 5 - n * 2, 39 + n, 1.6, glaze if n % 2 else clay)
    canvas.box(131, 58, 22, 16, glaze, 2)


def draw_families(canvas: Canvas) -> None:
    sky, hill, far, *kites = canvas.palette
    canvas.sky(sky, "#fef6e4")
    canvas.circle(132, 18, 8, "#ffd97a")
    for left, middle in ((30, 20), (92, 12)):
        for offset, radius in ((0, 5), (6, 7), (13, 5), (19, 3.5)):
            canvas.circle(left + offset, middle, radius, "#ffffff")
    _draw_hills(canvas, 68, 8, colour=far, shift=0.5)
    _draw_hills(canvas, 78, 6, colour=hill, shift=2.1)
    for n, colour in enumerate(kites):
        x, y = 34 + n * 34 + 10 * canvas.chance.random(), 26 + 18 * canvas.chance.random()
        canvas.line([(x, y), (x - 8, y + 22), (x - 22, 84)], "#6b6b6b", 0.35)
        canvas.polygon([(x, y - 11), (x + 8, y), (x, y + 12), (x - 8, y)], colour)
        canvas.polygon([(x, y - 11), (x + 8, y), (x, y + 12)], "#ffffff")
        canvas.shade([(x, y - 11), (x + 8, y), (x, y + 12)], colour, 0.75)


def draw_market(canvas: Canvas) -> None:
    sky, first, second, third = canvas.palette
    canvas.sky(sky, "#fdf3e1")
    for n, x in enumerate(range(0, 160, 20)):
        height = 18 + 12 * canvas.chance.random()
        canvas.box(x, 44 - height, 20, height + 20, "#d9c4a8" if n % 2 else "#cbb294")
        canvas.polygon([(x, 44 - height), (x + 10, 36 - height), (x + 20, 44 - height)], "#a5603f")
        for window in (5, 12):
            canvas.box(x + window, 49 - height, 3, 5, "#6b7c85")
    canvas.box(0, 62, WIDTH, 28, "#b9aa96")
    for n, colour in enumerate((first, second, third)):
        x = 6 + n * 51
        canvas.line([(x + 2, 40), (x + 2, 84)], "#5b4636", 1)
        canvas.line([(x + 44, 40), (x + 44, 84)], "#5b4636", 1)
        for stripe in range(6):
            shade = colour if stripe % 2 == 0 else "#fffaf0"
            left = x - 1 + stripe * 8
            canvas.polygon([(left + 1, 36), (left + 7, 36), (left + 8, 48), (left, 48)], shade)
            canvas.circle(left + 4, 48, 4, shade)
        canvas.box(x, 66, 46, 16, "#8a6242", 1)
        for fruit in range(8):
            canvas.circle(x + 5 + fruit * 5.2, 65 - canvas.chance.random(), 3, (first, second, third)[fruit % 3])


def draw_food(canvas: Canvas) -> None:
    cloth, stripe, first, second = canvas.palette
    canvas.sky(cloth, cloth)
    for n in range(0, 160, 16):
        canvas.shade([(n, 0), (n + 8, 0), (n + 8, HEIGHT), (n, HEIGHT)], stripe, 0.35)
    for n in range(0, 96, 16):
        canvas.shade([(0, n), (WIDTH, n), (WIDTH, n + 8), (0, n + 8)], stripe, 0.35)
    for x, y, radius, colour in ((46, 40, 30, first), (112, 56, 25, second), (98, 14, 13, first)):
        canvas.glow(x + 1.5, y + 2, radius * 1.5, "#000000", 0.3)
        canvas.circle(x, y, radius, "#fbf8f2")
        canvas.ring(x, y, radius * 0.86, "#e3dccf", 0.5)
        canvas.circle(x, y, radius * 0.7, colour)
        for _ in range(16):
            angle, away = 6.3 * canvas.chance.random(), radius * 0.55 * canvas.chance.random() ** 0.5
            spot = canvas.chance.choice(("#4f7d3a", "#fff3cf", "#c2452d", "#e9a53b"))
            canvas.circle(x + away * math.cos(angle), y + away * math.sin(angle), radius * 0.07, spot)
    canvas.line([(148, 20), (148, 78)], "#9aa1a6", 1.6)
    for tine in (-2.4, 0, 2.4):
        canvas.line([(148 + tine, 14), (148 + tine, 26)], "#9aa1a6", 0.9)
    canvas.line([(145.6, 26), (150.4, 26)], "#9aa1a6", 1.2)


def draw_walks(canvas: Canvas) -> None:
    sky, far, middle, near = canvas.palette
    canvas.sky(sky, "#fdf1dc", 70)
    canvas.glow(112, 32, 34, "#fff4cf", 0.9)
    canvas.circle(112, 32, 7, "#fffbe9")
    _draw_hills(canvas, 48, 12, colour=far, shift=0.3)
    _draw_hills(canvas, 60, 9, colour=middle, shift=1.9)
    canvas.polygon([(70, 58), (74, 58), (86, 68), (62, 78), (76, 92), (30, 92), (40, 78), (76, 67)], "#cfe3e6")
    _draw_hills(canvas, 82, 5, colour=near, shift=4.2, gap=(26, 84))
    for x in (10, 18, 118, 130, 141, 152):
        height = 12 + 8 * canvas.chance.random()
        canvas.line([(x, 84), (x, 84 - height)], "#4b3b2f", 1)
        for layer in range(3):
            y = 81 - height * 0.33 * layer
            canvas.polygon([(x - 5 + layer, y), (x + 5 - layer, y), (x, y - 9)], near if layer % 2 else "#2f4a3c")


def draw_sport(canvas: Canvas) -> None:
    grass, mown, line, ball = canvas.palette
    canvas.sky(grass, grass)
    for n in range(0, 160, 32):
        canvas.box(n, 0, 16, HEIGHT, mown)
    canvas.ring(80, 45, 22, line, 0.8)
    canvas.line([(80, 0), (80, 90)], line, 0.8)
    canvas.circle(80, 45, 1.4, line)
    for left in (-1, 134):
        canvas.line([(left, 20), (left + 27, 20), (left + 27, 70), (left, 70), (left, 20)], line, 0.8)
    x, y = 46 + 68 * canvas.chance.random(), 24 + 40 * canvas.chance.random()
    canvas.glow(x + 2, y + 3, 11, "#000000", 0.5)
    canvas.circle(x, y, 7, "#fdfdfb")
    for turn in range(5):
        angle = turn * 2 * math.pi / 5 + x
        canvas.circle(x + 4.6 * math.cos(angle), y + 4.6 * math.sin(angle), 1.5, ball)
    canvas.circle(x, y, 1.9, ball)


def draw_festival(canvas: Canvas) -> None:
    sky, dusk, *flags = canvas.palette
    canvas.sky(sky, dusk)
    for _ in range(40):
        canvas.circle(WIDTH * canvas.chance.random(), 46 * canvas.chance.random(), 0.3, "#fff6dc")
    x = 0.0
    while x < WIDTH:
        width, height = 12 + 10 * canvas.chance.random(), 18 + 18 * canvas.chance.random()
        canvas.box(x, 90 - height, width, height, "#241b33")
        canvas.polygon([(x, 90 - height), (x + width / 2, 82 - height), (x + width, 90 - height)], "#241b33")
        for window in range(2):
            if canvas.chance.random() < 0.75:
                canvas.box(x + 2.5 + window * (width / 2 - 1), 96 - height, 2.4, 3.4, "#ffd88a", 0.4)
        x += width
    for cord, (begin, depth) in enumerate(((10, 22), (28, 20), (20, 30))):
        points = [(s * 2.0, begin + depth * math.sin(math.pi * s / 80)) for s in range(81)]
        canvas.line(points, "#f7ead0", 0.35)
        for n in range(2 + cord, 80, 5):
            at_x, at_y = points[n]
            if cord == 2:
                canvas.glow(at_x, at_y + 1.5, 5, "#ffdf90", 0.9)
                canvas.circle(at_x, at_y + 1.5, 1.2, "#fff4cf")
            else:
                canvas.polygon([(at_x - 2.6, at_y), (at_x + 2.6, at_y), (at_x, at_y + 6)], flags[n % len(flags)])


def draw_civic(canvas: Canvas) -> None:
    sky, stone, roof, door = canvas.palette
    canvas.sky(sky, "#fdf6ea")
    canvas.box(0, 78, WIDTH, 12, "#b9aa96")
    canvas.box(34, 38, 92, 42, stone)
    canvas.polygon([(30, 38), (80, 20), (130, 38)], roof)
    canvas.box(71, 10, 18, 16, stone)
    canvas.polygon([(69, 11), (80, 1), (91, 11)], roof)
    canvas.circle(80, 18, 5.6, "#fffaf0")
    canvas.ring(80, 18, 5.8, door, 0.6)
    hour = 6.28 * canvas.chance.random()
    canvas.line([(80, 18), (80 + 2.6 * math.cos(hour), 18 + 2.6 * math.sin(hour))], door, 0.8)
    canvas.line([(80, 18), (80 + 4.2 * math.sin(hour), 18 - 4.2 * math.cos(hour))], door, 0.6)
    for n in range(7):
        x = 38 + n * 13
        canvas.box(x, 42, 5, 38, "#fffaf0", 0.8)
        canvas.box(x - 0.8, 41, 6.6, 2, "#e7dcc8")
        canvas.box(x - 0.8, 78, 6.6, 2, "#e7dcc8")
    canvas.box(73, 60, 14, 20, door, 2)
    for step in range(3):
        canvas.box(62 - step * 4, 80 + step * 2.4, 36 + step * 8, 2.6, "#d8cbb6" if step % 2 else "#e7dcc8")
    canvas.line([(20, 30), (20, 80)], "#6b6b6b", 0.8)
    canvas.polygon([(20, 30), (34, 33), (20, 38)], door)


def _draw_hills(
    canvas: Canvas, level: float, height: float, *, colour: str, shift: float, gap: tuple[int, int] | None = None
) -> None:
    """Draw a range of hills down to the bottom edge. `gap` is a valley between the hills."""
    points = [
        (float(x), level - height * (0.6 * math.sin(x / 27 + shift) + 0.4 * math.sin(x / 11 + 2 * shift)))
        for x in range(0, WIDTH + 4, 4)
        if gap is None or not gap[0] < x < gap[1]
    ]
    if gap is None:
        canvas.polygon([(0, HEIGHT), *points, (WIDTH, HEIGHT)], colour)
        return
    left = [point for point in points if point[0] <= gap[0]]
    right = [point for point in points if point[0] >= gap[1]]
    canvas.polygon([(0, HEIGHT), *left, (gap[0] + 6, HEIGHT)], colour)
    canvas.polygon([(gap[1] - 6, HEIGHT), *right, (WIDTH, HEIGHT)], colour)


def _palettes(text: str) -> tuple[Palette, ...]:
    return tuple(tuple(f"#{colour}" for colour in row.split()) for row in text.split("/"))


SCENES: Final = {
    "music": Scene(
        draw_music,
        _palettes("1d2747 4a3b74 f0a35e e8d8f0 / 12343b 2c6e6a f4c95d d9efe9 / 3a1730 7a2f55 ff9e7a f6dbe3"),
        "Drawing of a record and sound waves in the light of a stage",
    ),
    "theatre": Scene(
        draw_theatre,
        _palettes("2a1018 9b2335 7c1a2b ffe9b8 / 10222c 1f6478 174e5f fdeec6 / 221332 6a3d91 542f76 ffe6c2"),
        "Drawing of an open curtain and a chair in a spotlight",
    ),
    "film": Scene(
        draw_film,
        _palettes("171a2b e9dcc3 a33a3a fff3cf / 1b1722 cfe0e6 2f5d73 fdf8e6"),
        "Drawing of a cinema screen above rows of seats",
    ),
    "exhibition": Scene(
        draw_exhibition,
        _palettes("efe6d6 1f6f8b e0a458 c8553d / e4ebe6 2d5d4f d9c27a 8f4f63 / ece4ee 45407a e58f7b 3f8f83"),
        "Drawing of three paintings on the wall of a gallery",
    ),
    "books": Scene(
        draw_books,
        _palettes("5a4334 a23b3b 24556b c99a3f 5d7350 7a4b6b / 3d4a4a c06a3a 2c6a6a d8b968 7d3f3f 45578a"),
        "Drawing of two shelves full of books",
    ),
    "courses": Scene(
        draw_courses,
        _palettes("dfeae4 c4704b 2f6f73 b98a5e / efe2d3 8f5a46 d6a23f 9c7a5b / dde3ee b5654a 4a5f9c a9835c"),
        "Drawing of three vases and a pot of brushes on a work table",
    ),
    "families": Scene(
        draw_families,
        _palettes("8fc9e8 6fae5b a9d08a e4572e f3a712 7a5195 / a7d8d0 5f9e6e b5d9a0 d1495b edae49 30638e"),
        "Drawing of kites above green hills",
    ),
    "market": Scene(
        draw_market,
        _palettes("9fd0e6 c8452f 2f7d5b e0a030 / b9dbe3 2f5f8a c0562f 8aa13a / f0cf9f 7d3f63 2f7d73 d9822b"),
        "Drawing of market stalls with striped awnings in front of gabled houses",
    ),
    "food": Scene(
        draw_food,
        _palettes("f6efe4 7aa6a1 e2a24a b5543c / fbf1e6 c9705a 8aa35a e0b155"),
        "Drawing of filled plates on a checked tablecloth",
    ),
    "walks": Scene(
        draw_walks,
        _palettes("a9cfe0 9db8b4 6f9a78 3f6b4f / f2c6a0 c99a86 8f7a6b 4d5a4a / b9d3ea a9b7cc 7f93ad 4a5f73"),
        "Drawing of a river between hills and firs in the morning",
    ),
    "sport": Scene(
        draw_sport,
        _palettes("4f9a55 58a65f f2f7ee 26323a / 2f7fa3 388ab0 f3f8fb c8452f / c2703f cb7a48 fbf3ea 2b3a55"),
        "Drawing of a ball on a playing field, seen from above",
    ),
    "festival": Scene(
        draw_festival,
        _palettes("1f2a5a c9686f e4572e f3a712 3fa796 f2e3c6 / 2a1f4f e08e5a d1495b edae49 66a5ad f7efe0"),
        "Drawing of bunting and lamps above the roofs of the town in the evening",
    ),
    "civic": Scene(
        draw_civic,
        _palettes("a9cfe6 e0cfae 8a5a44 2f5d62 / cfd8e6 d9c3a5 5f6b7a 7d3f3f"),
        "Drawing of the Town Hall with its columns and clock tower",
    ),
}


def draw_scene(name: str, variant: int) -> bytes:
    """Return a scene in one of its palettes, as WebP."""
    scene = SCENES[name]
    canvas = Canvas(scene.palettes[variant], f"{name} {variant}")
    scene.draw(canvas)
    return canvas.save()
