"""Image types and their detection by content, generated sizes, and file names.

A separate process decodes images (media/adapters/image_worker_main.py).
"""

import re
from dataclasses import dataclass
from typing import Final

from kalends.core.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class ImageType:
    mime: str
    extension: str
    codec: str  # Pillow's name for the type


JPEG: Final = ImageType("image/jpeg", "jpg", "JPEG")
PNG: Final = ImageType("image/png", "png", "PNG")
WEBP: Final = ImageType("image/webp", "webp", "WEBP")
AVIF: Final = ImageType("image/avif", "avif", "AVIF")
GIF: Final = ImageType("image/gif", "gif", "GIF")
TYPES: Final = (JPEG, PNG, WEBP, AVIF, GIF)
BY_MIME: Final = {row.mime: row for row in TYPES}
BY_EXTENSION: Final = {row.extension: row for row in TYPES}
SUPPORTED_TYPES: Final = "JPEG, PNG, WebP, AVIF, GIF"

# Number of bytes needed to detect the type.
SNIFF_BYTES: Final = 512
# Images larger than phone photos are not decoded. MAX_EDGE limits the stored original.
MAX_PIXELS: Final = 50_000_000
MAX_EDGE: Final = 2560


@dataclass(frozen=True, slots=True)
class Size:
    """A smaller version of an image: scaled to fit a square, or cropped around the focal point to fill it."""

    name: str
    edge: int
    crop: bool = False


SIZES: Final = (Size("thumbnail", 150, crop=True), Size("medium", 300), Size("large", 1024))
FULL: Final = "full"

_NAME = re.compile(r"[0-9a-f]{64}\.(?:jpg|png|webp|avif|gif)")
_KEY = re.compile(r"([1-9][0-9]{0,17})/([0-9a-f]{2})/(\2[0-9a-f]{62}\.(?:jpg|png|webp|avif|gif))")


def sniff_type(head: bytes) -> ImageType:
    """Detect a file's type from its content, ignoring the file's name and declared type."""
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
        raise InvalidValue("is empty.")
    if b"<svg" in head.lower():
        raise InvalidValue(
            "SVG is not supported because it can contain scripts; send it as {types}.", types=SUPPORTED_TYPES
        )
    raise InvalidValue("is not a supported image type; supported: {types}.", types=SUPPORTED_TYPES)


def _brands(head: bytes) -> set[bytes]:
    size = int.from_bytes(head[:4], "big")
    box = head[8 : min(size, len(head))]
    return {box[:4], *(box[at : at + 4] for at in range(8, len(box) - 3, 4))}


def make_file_name(digest: str, image_type: ImageType) -> str:
    return f"{digest}.{image_type.extension}"


def is_file_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def make_key(site_id: int, name: str) -> str:
    """Return a file's storage key, which is also the end of its URL."""
    if not is_file_name(name):
        raise AssertionError(f"not the name of a file: {name!r}")
    return f"{site_id}/{name[:2]}/{name}"


def read_key(text: str) -> tuple[int, str] | None:
    """Parse a key into site ID and file name; return None if it is malformed."""
    match = _KEY.fullmatch(text)
    return (int(match[1]), match[3]) if match else None


def extract_file_name(url: str) -> str | None:
    """Return the file name from a URL that ends like a stored file's URL, whatever its host; otherwise None."""
    key = read_key("/".join(url.partition("?")[0].partition("#")[0].rsplit("/", 3)[-3:]))
    return key[1] if key else None
