"""The demo pictures: scenes with their palettes and alternative texts, and the logo."""

from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Final

from PIL import Image, ImageDraw

from kalends.demo.town import indoor_scenes, outdoor_scenes
from kalends.demo.town.town_canvas import Canvas, Palette

LOGO_SIZE: Final = (160, 160)


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


def _palettes(text: str) -> tuple[Palette, ...]:
    return tuple(tuple(f"#{colour}" for colour in row.split()) for row in text.split("/"))


SCENES: Final = {
    "music": Scene(
        indoor_scenes.draw_music,
        _palettes("1d2747 4a3b74 f0a35e e8d8f0 / 12343b 2c6e6a f4c95d d9efe9 / 3a1730 7a2f55 ff9e7a f6dbe3"),
        "Drawing of a record and sound waves in the light of a stage",
    ),
    "theatre": Scene(
        indoor_scenes.draw_theatre,
        _palettes("2a1018 9b2335 7c1a2b ffe9b8 / 10222c 1f6478 174e5f fdeec6 / 221332 6a3d91 542f76 ffe6c2"),
        "Drawing of an open curtain and a chair in a spotlight",
    ),
    "film": Scene(
        indoor_scenes.draw_film,
        _palettes("171a2b e9dcc3 a33a3a fff3cf / 1b1722 cfe0e6 2f5d73 fdf8e6"),
        "Drawing of a cinema screen above rows of seats",
    ),
    "exhibition": Scene(
        indoor_scenes.draw_exhibition,
        _palettes("efe6d6 1f6f8b e0a458 c8553d / e4ebe6 2d5d4f d9c27a 8f4f63 / ece4ee 45407a e58f7b 3f8f83"),
        "Drawing of three paintings on the wall of a gallery",
    ),
    "books": Scene(
        indoor_scenes.draw_books,
        _palettes("5a4334 a23b3b 24556b c99a3f 5d7350 7a4b6b / 3d4a4a c06a3a 2c6a6a d8b968 7d3f3f 45578a"),
        "Drawing of two shelves full of books",
    ),
    "courses": Scene(
        indoor_scenes.draw_courses,
        _palettes("dfeae4 c4704b 2f6f73 b98a5e / efe2d3 8f5a46 d6a23f 9c7a5b / dde3ee b5654a 4a5f9c a9835c"),
        "Drawing of three vases and a pot of brushes on a work table",
    ),
    "families": Scene(
        outdoor_scenes.draw_families,
        _palettes("8fc9e8 6fae5b a9d08a e4572e f3a712 7a5195 / a7d8d0 5f9e6e b5d9a0 d1495b edae49 30638e"),
        "Drawing of kites above green hills",
    ),
    "market": Scene(
        outdoor_scenes.draw_market,
        _palettes("9fd0e6 c8452f 2f7d5b e0a030 / b9dbe3 2f5f8a c0562f 8aa13a / f0cf9f 7d3f63 2f7d73 d9822b"),
        "Drawing of market stalls with striped awnings in front of gabled houses",
    ),
    "food": Scene(
        indoor_scenes.draw_food,
        _palettes("f6efe4 7aa6a1 e2a24a b5543c / fbf1e6 c9705a 8aa35a e0b155"),
        "Drawing of filled plates on a checked tablecloth",
    ),
    "walks": Scene(
        outdoor_scenes.draw_walks,
        _palettes("a9cfe0 9db8b4 6f9a78 3f6b4f / f2c6a0 c99a86 8f7a6b 4d5a4a / b9d3ea a9b7cc 7f93ad 4a5f73"),
        "Drawing of a river between hills and firs in the morning",
    ),
    "sport": Scene(
        outdoor_scenes.draw_sport,
        _palettes("4f9a55 58a65f f2f7ee 26323a / 2f7fa3 388ab0 f3f8fb c8452f / c2703f cb7a48 fbf3ea 2b3a55"),
        "Drawing of a ball on a playing field, seen from above",
    ),
    "festival": Scene(
        outdoor_scenes.draw_festival,
        _palettes("1f2a5a c9686f e4572e f3a712 3fa796 f2e3c6 / 2a1f4f e08e5a d1495b edae49 66a5ad f7efe0"),
        "Drawing of bunting and lamps above the roofs of the town in the evening",
    ),
    "civic": Scene(
        outdoor_scenes.draw_civic,
        _palettes("a9cfe6 e0cfae 8a5a44 2f5d62 / cfd8e6 d9c3a5 5f6b7a 7d3f3f"),
        "Drawing of the Town Hall with its columns and clock tower",
    ),
    "folk": Scene(
        indoor_scenes.draw_folk,
        _palettes("3b2a3f c98a4b 2b1c14 ffcf87 / 1f3a3d b5673a 21150f ffe0a3 / 4a2f28 d6a45c 2a1a12 ffd7a0"),
        "Drawing of a guitar between two stools in warm light",
    ),
    "organ": Scene(
        indoor_scenes.draw_organ,
        _palettes("c9bfae 5a3d2b d9c48f 3f7f9a / bccad0 3f4a52 d5dbe0 b5654a / d6c3b5 6b4430 e0c070 5d8f63"),
        "Drawing of the pipes of a church organ below a round window",
    ),
    "yoga": Scene(
        indoor_scenes.draw_yoga,
        _palettes("f3d9c4 f2a65a 5d8f8a 6b4a5e / d9e4e8 f4c95d 8a5a83 2f5d62"),
        "Drawing of a person stretching on a mat in front of the sun",
    ),
    "timepiece": Scene(
        indoor_scenes.draw_timepiece,
        _palettes("4a3b36 c99a3f 2b2624 f6ecd6 / 2f4a4f d0884a 1f2a2d eef1e6 / 5a3a40 d9b45f 33252a f8efe0"),
        "Drawing of a clock face with its wheels",
    ),
    "boats": Scene(
        indoor_scenes.draw_boats,
        _palettes("f3e2c4 6fb3c9 e4572e f3a712 7a5195 / e3ecd9 5f9fb8 d1495b edae49 30638e"),
        "Drawing of paper boats in a tub of water",
    ),
    "running": Scene(
        outdoor_scenes.draw_running,
        _palettes("a9d3e6 7fae6b e3d2ae e4572e 3f7fb5 f3a712 / f2c9a8 8fa35f dcc9a5 7a3f8f 2f7d73 d1495b"),
        "Drawing of three runners on a path by the river",
    ),
    "house": Scene(
        outdoor_scenes.draw_house,
        _palettes(
            "a9cfe6 d8b98f 7d4f3a 2f5d62 / cfdfe6 c98f7a 5f4a4a 7d3f3f / b9d9e3 e3d3b0 6b5a8a 3f5f8a / "
            "f0d9bf b5c2a8 8a4f3a 5a4030 / c3d3ea d9a9a0 4f5d6b 2f4a3c / e0e6ef c9b3d0 5d4a6b 8a3f4f / "
            "a9d3d0 f0e0c0 a5603f 2f5d7d / d6e3c9 c7a27a 6f4a3f 3f6b4f"
        ),
        "Drawing of a building in the town with trees beside the door",
    ),
}


def draw_scene(name: str, variant: int) -> bytes:
    """Return a scene in one of its palettes, as WebP."""
    scene = SCENES[name]
    canvas = Canvas(scene.palettes[variant], f"{name} {variant}")
    scene.draw(canvas)
    return canvas.save()
