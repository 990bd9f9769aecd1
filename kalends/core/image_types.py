"""Images: which types there are, told by their first bytes; which sizes are made; how files are named.

Nothing is decoded here: that happens in a process of its own (adapters/image_worker_main.py).
"""

import re
from dataclasses import dataclass
from typing import Final

from kalends.core.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class ImageType:
    mime: str
    extension: str
    codec: str  # as the image library names it


JPEG: Final = ImageType("image/jpeg", "jpg", "JPEG")
PNG: Final = ImageType("image/png", "png", "PNG")
WEBP: Final = ImageType("image/webp", "webp", "WEBP")
AVIF: Final = ImageType("image/avif", "avif", "AVIF")
GIF: Final = ImageType("image/gif", "gif", "GIF")
TYPES: Final = (JPEG, PNG, WEBP, AVIF, GIF)
BY_MIME: Final = {row.mime: row for row in TYPES}
BY_EXTENSION: Final = {row.extension: row for row in TYPES}
SUPPORTED_TYPES: Final = "JPEG, PNG, WebP, AVIF, GIF"

# Bytes that are enough to tell the type.
SNIFF_BYTES: Final = 512
# More pixels than the cameras of telephones make are not decoded, and no more than this is kept along an edge.
MAX_PIXELS: Final = 50_000_000
MAX_EDGE: Final = 2560


@dataclass(frozen=True, slots=True)
class Size:
    """A smaller version: fitted into a box, or cut to fill it around the focus point."""

    name: str
    edge: int
    crop: bool = False


SIZES: Final = (Size("thumbnail", 150, crop=True), Size("medium", 300), Size("large", 1024))
FULL: Final = "full"

_NAME = re.compile(r"[0-9a-f]{64}\.(?:jpg|png|webp|avif|gif)")
_KEY = re.compile(r"([1-9][0-9]{0,17})/([0-9a-f]{2})/(\2[0-9a-f]{62}\.(?:jpg|png|webp|avif|gif))")


def sniff_type(head: bytes) -> ImageType:
    """The type of a file by its content; its name and what the client calls it say nothing."""
    if head.startswith(b"\xff\xd8\xff"):
        return JPEG
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return PNG
    if head[:6] in (b"GIF87a", b"GIF89a"):
        return GIF
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return WEBP
    if head[4:8] == b"ftyp" and _brands(head) & {b"avif", b"avis"}:
        return AVIF
    if not head:
        raise InvalidValue("the file is empty.")
    if b"<svg" in head.lower():
        raise InvalidValue(
            "SVG is not taken, because it can hold scripts; send it as {types}.", types=SUPPORTED_TYPES
        )
    raise InvalidValue("this is not an image of a known type; {types} are taken.", types=SUPPORTED_TYPES)


def _brands(head: bytes) -> set[bytes]:
    """What an ISO media file says it can be read as: its brand, and those it is compatible with."""
    size = int.from_bytes(head[:4], "big")
    box = head[8 : min(size, len(head))]
    return {box[:4], *(box[at : at + 4] for at in range(8, len(box) - 3, 4))}


def make_file_name(digest: str, image_type: ImageType) -> str:
    """Files are named after their content, so that a name never means anything else."""
    return f"{digest}.{image_type.extension}"


def make_key(site_id: int, name: str) -> str:
    """Where a file of a site is kept, and the end of its address."""
    if not _NAME.fullmatch(name):
        raise AssertionError(f"not the name of a file: {name!r}")
    return f"{site_id}/{name[:2]}/{name}"


def read_key(text: str) -> tuple[int, str] | None:
    """The site and the name that a key has; None: it is no key."""
    match = _KEY.fullmatch(text)
    return (int(match[1]), match[3]) if match else None


def extract_file_name(url: str) -> str | None:
    """The name of the file that an address of ours ends with, whatever host it names."""
    key = read_key("/".join(url.partition("?")[0].partition("#")[0].rsplit("/", 3)[-3:]))
    return key[1] if key else None
