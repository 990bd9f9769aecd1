"""Which addresses of images a request names: in a record, in records inside it, in the writes of a batch."""

from collections.abc import Mapping
from typing import Any, Final

from kalends.api.batch import Written
from kalends.core.errors import InvalidValue
from kalends.core.params import IMAGE

MOST_ADDRESSES: Final = 10


def addresses_of_images(values: Mapping[str, Any]) -> list[str]:
    """Each once, as a record would keep it. What cannot be read is refused later, where it is used."""
    found: dict[str, None] = {}
    _find(values, found)
    return list(found)


def _find(values: Mapping[str, Any], found: dict[str, None]) -> None:
    image = values.get("image")
    if isinstance(image, str) and image:
        try:
            read = IMAGE.read(image)
        except InvalidValue:
            read = None
        if isinstance(read, str):
            found[read] = None
    for name in ("venue", "organizer", "operations"):
        below = values.get(name)
        for entry in below if isinstance(below, list) else [below]:  # pyright: ignore[reportUnknownVariableType]
            if isinstance(entry, Written):
                _find(entry.values, found)
            elif isinstance(entry, dict):
                _find(entry, found)  # pyright: ignore[reportUnknownArgumentType]
