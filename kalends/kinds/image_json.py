"""How an image is shown: inside the record that has it, and by itself."""

from collections.abc import Mapping
from typing import Any

from kalends.core.image_types import make_key
from kalends.kinds.kind import Represented, View

# What a page needs to show an image well.
DESCRIBING = ("alt_text", "caption", "focus_x", "focus_y")


def represent_image(image: Mapping[str, Any], view: View) -> Represented:
    """An image inside another record. Sizes are absent until they are made."""
    record: Represented = {
        "url": _address(image["url"], view),
        "id": image["id"],
        "extension": image["extension"],
        "width": image["width"],
        "height": image["height"],
        "filesize": image["filesize"],
        "sizes": {name: _size(size, view) for name, size in image["sizes"].items()},
        **{name: image[name] for name in DESCRIBING},
    }
    if not record["sizes"]:
        del record["sizes"]
    return record


def _address(name: str, view: View) -> str:
    """A file of ours is stored by its name; anything else is an address already."""
    return name if "/" in name else f"{view.media_url}/{make_key(view.site.id, name)}"


def _size(size: Mapping[str, Any], view: View) -> Represented:
    shown = {**size, "url": _address(size["url"], view)} if "url" in size else dict(size)
    if "webp" in size:
        shown["webp"] = {**size["webp"], "url": _address(size["webp"]["url"], view)}
    return shown
