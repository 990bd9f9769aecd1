"""JSON of images, inside other records and in the media library."""

from collections.abc import Mapping
from typing import Any

from kalends.core.image_types import make_key
from kalends.kinds.kind import JsonObject, RenderContext

# The fields that describe an image to readers and pages.
DESCRIPTIVE_FIELDS = ("alt_text", "caption", "focus_x", "focus_y")


def serialize_image(image: Mapping[str, Any], context: RenderContext) -> JsonObject:
    """Serialize an image. `sizes` is absent until the worker has created them."""
    record: JsonObject = {
        "url": _build_file_url(image["url"], context),
        "id": image["id"],
        "extension": image["extension"],
        "width": image["width"],
        "height": image["height"],
        "filesize": image["filesize"],
        "sizes": {name: _serialize_size(size, context) for name, size in image["sizes"].items()},
        **{name: image[name] for name in DESCRIPTIVE_FIELDS},
    }
    if not record["sizes"]:
        del record["sizes"]
    return record


def _build_file_url(name: str, context: RenderContext) -> str:
    """Return the URL of a file. A stored file is known by its name, an external one by its URL."""
    return name if "/" in name else f"{context.media_url}/{make_key(context.site.id, name)}"


def _serialize_size(size: Mapping[str, Any], context: RenderContext) -> JsonObject:
    record = {**size, "url": _build_file_url(size["url"], context)} if "url" in size else dict(size)
    if "webp" in size:
        record["webp"] = {**size["webp"], "url": _build_file_url(size["webp"]["url"], context)}
    return record
