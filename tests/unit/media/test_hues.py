"""The dominant hue of images, in 24 steps from red."""

import pytest
from PIL import Image, ImageDraw

from kalends.media.adapters.image_worker_main import GRAY, HUE_STEPS, find_hue


def paint(*parts: tuple[str, float]) -> Image.Image:
    """Return an image of vertical stripes, with their share of the width."""
    image = Image.new("RGB", (400, 300))
    draw, left = ImageDraw.Draw(image), 0.0
    for colour, share in parts:
        draw.rectangle((left, 0, left + 400 * share, 300), fill=colour)
        left += 400 * share
    return image


@pytest.mark.parametrize("step", range(HUE_STEPS))
def test_each_step_is_found(step: int) -> None:
    assert find_hue(paint((f"hsl({step * 360 // HUE_STEPS}, 60%, 45%)", 1))) == step


def test_gray_images_have_none() -> None:
    for image in (paint(("#888", 1)), paint(("white", 0.5), ("black", 0.5)), paint(("#f4f1ea", 1)),
                  paint(("hsl(120, 100%, 50%)", 0.02), ("#666", 0.98)), Image.new("L", (40, 30), 90)):  # fmt: skip
        assert find_hue(image) == GRAY


def test_strong_and_large_colours_win() -> None:
    assert find_hue(paint(("hsl(210, 80%, 40%)", 0.6), ("hsl(0, 90%, 45%)", 0.3), ("white", 0.1))) == 14
    assert find_hue(paint(("hsl(45, 15%, 85%)", 0.8), ("hsl(285, 80%, 45%)", 0.2))) == 19
    # Two shades of red outweigh one green.
    reds = ("hsl(355, 80%, 45%)", 0.28), ("hsl(10, 80%, 45%)", 0.28)
    assert find_hue(paint(*reds, ("hsl(120, 80%, 45%)", 0.4))) in (0, 1)


def test_transparent_parts_do_not_count() -> None:
    image = Image.new("RGBA", (400, 300), (0, 200, 0, 0))
    image.paste((0, 0, 255, 255), (360, 0, 400, 300))
    assert find_hue(image) == 16
    assert find_hue(Image.new("RGBA", (40, 30), (0, 200, 0, 0))) == GRAY
