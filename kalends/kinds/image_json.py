"""Images as typed records and as JSON, alone and inside of the records that show them."""

from collections.abc import Mapping
from typing import Any

from kalends.core.image_types import make_key
from kalends.core.record_types import Image
from kalends.kinds.kind import JsonObject, RenderContext

# The fields that describe an image to the visitors of a page.
DESCRIPTIVE_FIELDS = ("alt_text", "caption", "focus_x", "focus_y")


def build_image(values: Mapping[str, Any], context: RenderContext) -> Image:
    """Build an image from its columns; `sizes` is decoded JSON."""
    return Image(
        id=values["id"],
        url=build_file_url(values["url"], context),
        extension=values["extension"],
        width=values["width"],
        height=values["height"],
        filesize=values["filesize"],
        sizes=build_sizes(values["sizes"], context),
        alt_text=values["alt_text"],
        caption=values["caption"],
        focus_x=values["focus_x"],
        focus_y=values["focus_y"],
    )


def serialize_image(image: Image) -> JsonObject:
    """Serialize an image; `sizes` is absent until the worker has made them."""
    record: JsonObject = {
        "url": image.url,
        "id": image.id,
        "extension": image.extension,
        "width": image.width,
        "height": image.height,
        "filesize": image.filesize,
        "sizes": image.sizes,
        "alt_text": image.alt_text,
        "caption": image.caption,
        "focus_x": image.focus_x,
        "focus_y": image.focus_y,
    }
    if not image.sizes:
        del record["sizes"]
    return record


def build_sizes(sizes: Mapping[str, Mapping[str, Any]], context: RenderContext) -> Mapping[str, JsonObject]:
    """Replace the names of files in stored sizes by URLs."""
    return {name: _build_size(size, context) for name, size in sizes.items()}


def build_file_url(name: str, context: RenderContext) -> str:
    """Return the URL of a file of the media library, which is stored by name; return other URLs unchanged."""
    return name if "/" in name else f"{context.media_url}/{make_key(context.site.id, name)}"


def _build_size(size: Mapping[str, Any], context: RenderContext) -> JsonObject:
    built = {**size, "url": build_file_url(size["url"], context)} if "url" in size else dict(size)
    if "webp" in size:
        built["webp"] = {**size["webp"], "url": build_file_url(size["webp"]["url"], context)}
    return built
