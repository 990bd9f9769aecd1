"""How an image is shown: inside the record that has it, and by itself."""

from collections.abc import Mapping
from typing import Any

from kalends.core.image_types import make_key
from kalends.kinds.kind import JsonObject, RenderContext

# What a page needs to show an image well.
DESCRIPTIVE_FIELDS = ("alt_text", "caption", "focus_x", "focus_y")


def serialize_image(image: Mapping[str, Any], context: RenderContext) -> JsonObject:
    """An image inside another record. Sizes are absent until they are made."""
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
    """A file of ours is stored by its name; anything else is an address already."""
    return name if "/" in name else f"{context.media_url}/{make_key(context.site.id, name)}"


def _serialize_size(size: Mapping[str, Any], context: RenderContext) -> JsonObject:
    record = {**size, "url": _build_file_url(size["url"], context)} if "url" in size else dict(size)
    if "webp" in size:
        record["webp"] = {**size["webp"], "url": _build_file_url(size["webp"]["url"], context)}
    return record
