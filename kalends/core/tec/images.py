"""Images of the former site: their records, the paths of their files, and the images inside of texts."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urljoin, urlsplit

from kalends.core.tec.addresses import Home
from kalends.core.tec.exchanges import JsonObject
from kalends.core.tec.fields import read_raw
from kalends.core.tec.move_in import LegacyFile

IMAGE_EXTENSIONS: Final = ("jpg", "jpeg", "png", "gif", "webp", "avif", "bmp", "tif", "tiff")
MAX_PATH_LENGTH: Final = 2000

_SIZE_SUFFIX = re.compile(r"(?:-\d+x\d+|-scaled)(?=\.[a-z0-9]+$)", re.IGNORECASE)
_ID_CLASS = re.compile(r"(?:^|\s)wp-image-(\d+)(?:\s|$)")


@dataclass(frozen=True, slots=True)
class ImageText:
    """The texts that a gallery shows with an image."""

    alt: str = ""
    caption: str = ""


@dataclass(slots=True)
class ImageIndex:
    """Finds the image to which an address belongs. Files that no record has become images of their own."""

    home: Home
    paths: Mapping[str, str]  # identities by path
    texts: Mapping[str, ImageText]  # of all images, by identity
    attached: Mapping[str, Sequence[str]]  # images that were uploaded to a post, by the ID of the post
    files: Mapping[str, tuple[str, str]]  # the addresses and titles of other files, by ID
    unknown_files: dict[str, str] = field(default_factory=dict[str, str])  # URLs by identity

    def find(self, src: str, classes: str = "") -> str | None:
        """Return the identity of the image of an `img` element; None if it is on another site."""
        if (match := _ID_CLASS.search(classes)) and match[1] in self.texts:
            return match[1]
        path = self.home.find_path(src)
        return None if path is None else self._find_path(path.partition("?")[0].partition("#")[0])

    def _find_path(self, path: str) -> str | None:
        path = unquote(path)
        for candidate in (path, _SIZE_SUFFIX.sub("", path)):
            if candidate in self.paths:
                return self.paths[candidate]
        if path.rpartition(".")[2].lower() not in IMAGE_EXTENSIONS:
            return None
        identity = f"file-{hashlib.sha256(path.encode()).hexdigest()[:16]}"
        self.unknown_files[identity] = urljoin(self.home.url + "/", path)
        return identity


def is_image(record: JsonObject) -> bool:
    return record.get("media_type") == "image" and bool(record.get("source_url"))


def list_files(records: Iterable[JsonObject]) -> list[LegacyFile]:
    """Return the files of all images: the original, and every size that was generated from it."""
    files: dict[str, LegacyFile] = {}
    for record in records:
        identity = str(record["id"])
        for url, width in _list_urls(record):
            path = unquote(urlsplit(url).path)
            if 0 < len(path) <= MAX_PATH_LENGTH:
                files.setdefault(path, LegacyFile(path, identity, width))
    return list(files.values())


def build_index(home: Home, records: Iterable[JsonObject]) -> ImageIndex:
    everything = list(records)
    images = [record for record in everything if is_image(record)]
    attached: dict[str, list[str]] = {}
    for record in images:
        attached.setdefault(str(record.get("post") or ""), []).append(str(record["id"]))
    return ImageIndex(
        home,
        {file.path: file.identity for file in list_files(images)},
        {
            str(record["id"]): ImageText(str(record.get("alt_text") or ""), read_raw(record, "caption").strip())
            for record in images
        },
        attached,
        {
            str(record["id"]): (str(record["source_url"]), read_raw(record, "title"))
            for record in everything
            if not is_image(record) and record.get("source_url")
        },
    )


def _list_urls(record: JsonObject) -> Iterable[tuple[str, int]]:
    details = record.get("media_details")
    details = details if isinstance(details, dict) else {}
    width = int(details.get("width") or 0)
    yield record["source_url"], width
    if original := details.get("original_image"):  # of an image that WordPress has reduced
        yield urljoin(record["source_url"], str(original)), width
    sizes = details.get("sizes")
    for size in (sizes if isinstance(sizes, dict) else {}).values():
        if isinstance(size, dict) and size.get("source_url"):
            yield size["source_url"], int(size.get("width") or 0)
