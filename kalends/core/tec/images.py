"""Images of the former site: their records, the paths of their files, and the images inside of texts."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urljoin, urlsplit

from kalends.core.tec.addresses import Home
from kalends.core.tec.exchanges import JsonObject
from kalends.core.tec.move_in import LegacyFile

IMAGE_EXTENSIONS: Final = ("jpg", "jpeg", "png", "gif", "webp", "avif", "bmp", "tif", "tiff")
MAX_PATH_LENGTH: Final = 2000

_SIZE_SUFFIX = re.compile(r"(?:-\d+x\d+|-scaled)(?=\.[a-z0-9]+$)", re.IGNORECASE)
_ID_CLASS = re.compile(r"(?:^|\s)wp-image-(\d+)(?:\s|$)")


@dataclass(slots=True)
class ImageIndex:
    """Finds the image to which an address belongs. Files that no record has become images of their own."""

    home: Home
    paths: Mapping[str, str]  # identities by path
    identities: frozenset[str]
    unknown_files: dict[str, str] = field(default_factory=dict[str, str])  # URLs by identity

    def find(self, src: str, classes: str = "") -> str | None:
        """Return the identity of the image of an `img` element; None if it is on another site."""
        if (match := _ID_CLASS.search(classes)) and match[1] in self.identities:
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
    images = [record for record in records if is_image(record)]
    paths = {file.path: file.identity for file in list_files(images)}
    return ImageIndex(home, paths, frozenset(str(record["id"]) for record in images))


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
