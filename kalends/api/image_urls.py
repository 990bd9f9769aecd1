"""Which addresses of images a request names: in a record, in records inside it, in the writes of a batch."""

from collections.abc import Mapping
from typing import Any, Final

from kalends.api.batch import BatchOperation
from kalends.core.errors import InvalidValue
from kalends.core.params import IMAGE

MAX_IMAGE_URLS: Final = 10


def find_image_urls(values: Mapping[str, Any]) -> list[str]:
    """Each once, as a record would keep it. What cannot be read is refused later, where it is used."""
    urls: dict[str, None] = {}
    _collect_image_urls(values, urls)
    return list(urls)


def _collect_image_urls(values: Mapping[str, Any], urls: dict[str, None]) -> None:
    image = values.get("image")
    if isinstance(image, str) and image:
        try:
            image_url = IMAGE.read(image)
        except InvalidValue:
            image_url = None
        if isinstance(image_url, str):
            urls[image_url] = None
    for name in ("venue", "organizer", "operations"):
        linked = values.get(name)
        for entry in linked if isinstance(linked, list) else [linked]:  # pyright: ignore[reportUnknownVariableType]
            if isinstance(entry, BatchOperation):
                _collect_image_urls(entry.values, urls)
            elif isinstance(entry, dict):
                _collect_image_urls(entry, urls)  # pyright: ignore[reportUnknownArgumentType]
