"""The old site's former slugs, path prefixes and image addresses."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urljoin, urlsplit

from kalends.core.slugs import normalize_lookup
from kalends.move_in.rules import old_records
from kalends.move_in.rules.exchanges import Exchanges, JsonObject, read_records
from kalends.move_in.rules.old_records import Home, LegacyFile, PrefixRedirect, SlugRedirect

POST_KINDS: Final = ("events", "venues", "organizers")
REDIRECT_STATUSES: Final = (301, 302, 308)
# Path prefixes of pages on the new site, by kind.
PREFIXES: Final = {
    "events": "/event/",
    "venues": "/venue/",
    "organizers": "/organizer/",
    "categories": "/events/category/",
    "tags": "/tag/",
}


def find_old_paths(exchanges: Exchanges) -> list[str]:
    """Return the probable former paths of public records, derived from their GUIDs."""
    paths: list[str] = []
    for kind in POST_KINDS:
        for record in read_records(exchanges, kind).values():
            slug = old_records.last_segment(old_records.read_raw(record, "guid"))
            prefix = _find_prefix(record)
            if (
                record.get("status") == "publish"
                and slug
                and prefix
                and slug != old_records.strip_trashed(str(record.get("slug") or ""))
            ):
                paths.append(f"{prefix}{slug}/")
    return paths


def find_redirects(exchanges: Exchanges, records: Mapping[str, Mapping[int, JsonObject]]) -> list[SlugRedirect]:
    """Return the former slugs that the site redirects to their records' pages."""
    pages = _list_pages(records)
    redirects: dict[tuple[str, str], SlugRedirect] = {}
    for exchange in exchanges.list("/"):
        target = pages.get(_normalize(exchange.headers.get("location", "")))
        slug = normalize_lookup(unquote(old_records.last_segment(exchange.address)))
        if exchange.status not in REDIRECT_STATUSES or target is None or not slug:
            continue
        if _normalize(exchange.address) not in pages:
            redirects[target[0], slug] = SlugRedirect(*target, slug)
    return list(redirects.values())


def list_current_paths(exchanges: Exchanges) -> set[str]:
    """Return requested paths that need no new request: they do not redirect, or their target still exists."""
    pages = _list_pages({kind: read_records(exchanges, kind) for kind in POST_KINDS})
    return {
        exchange.address
        for exchange in exchanges.list("/")
        if exchange.status not in REDIRECT_STATUSES or _normalize(exchange.headers.get("location", "")) in pages
    }


def _list_pages(records: Mapping[str, Mapping[int, JsonObject]]) -> dict[str, tuple[str, str]]:
    """Return record kinds and identities by page path."""
    return {
        _normalize(link): (kind, str(record_id))
        for kind in POST_KINDS
        for record_id, record in records[kind].items()
        if (link := _link(record))
    }


def find_prefixes(records: Mapping[str, Mapping[int, JsonObject]], folder: str) -> list[PrefixRedirect]:
    """Return the old site's path prefixes that differ from the new ones, for example in another language."""
    prefixes: list[PrefixRedirect] = []
    for kind, new in PREFIXES.items():
        found = old_records.find_prevalent(
            filter(None, map(_find_prefix, _list_public(kind, records[kind].values())))
        )
        old = found.removeprefix(folder) if found else new
        if old not in (new, "/"):
            prefixes.append(PrefixRedirect(old, new))
    return prefixes


def _list_public(kind: str, records: Iterable[JsonObject]) -> Iterable[JsonObject]:
    """Return public records, except nested categories, whose paths contain more than a prefix and a slug."""
    if kind in POST_KINDS:
        return [record for record in records if record.get("status") == "publish"]
    return [record for record in records if not record.get("parent")]


def _find_prefix(record: JsonObject) -> str:
    """Return a record's path without its slug; empty if the site has no permalinks."""
    path = urlsplit(_link(record)).path
    slug = old_records.last_segment(path)
    if not slug or normalize_lookup(unquote(slug)) != normalize_lookup(unquote(str(record.get("slug", "")))):
        return ""
    return path.rstrip("/").removesuffix(slug)


def _link(record: JsonObject) -> str:
    link = record.get("link")
    return link if isinstance(link, str) else ""


def _normalize(url: str) -> str:
    """Return the normalized path; empty for an address with only a query."""
    parts = urlsplit(url)
    path = normalize_lookup(unquote(parts.path)).rstrip("/")
    return "" if parts.query and not path else path


# Images -------------------------------------------------------------------------------------------

IMAGE_EXTENSIONS: Final = ("jpg", "jpeg", "png", "gif", "webp", "avif", "bmp", "tif", "tiff")
MAX_PATH_LENGTH: Final = 2000

_SIZE_SUFFIX = re.compile(r"(?:-\d+x\d+|-scaled)(?=\.[a-z0-9]+$)", re.IGNORECASE)
_ID_CLASS = re.compile(r"(?:^|\s)wp-image-(\d+)(?:\s|$)")


@dataclass(frozen=True, slots=True)
class ImageText:
    """An image's alternative text and caption, for galleries."""

    alt: str = ""
    caption: str = ""


@dataclass(slots=True)
class ImageIndex:
    """Finds the image for an address. Files that belong to no record become separate images."""

    home: Home
    paths: Mapping[str, str]  # identities by path
    texts: Mapping[str, ImageText]  # texts of all images, by identity
    attached: Mapping[str, Sequence[str]]  # images uploaded to a post, by post ID
    files: Mapping[str, tuple[str, str]]  # addresses and titles of other files, by ID
    unknown_files: dict[str, str] = field(default_factory=dict[str, str])  # URLs by identity

    def find(self, src: str, classes: str = "") -> str | None:
        """Return the identity of an `img` element's image, or None if it is on another site."""
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
    """Return all image files: each original, and every size generated from it."""
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
            str(record["id"]): ImageText(
                str(record.get("alt_text") or ""), old_records.read_raw(record, "caption").strip()
            )
            for record in images
        },
        attached,
        {
            str(record["id"]): (str(record["source_url"]), old_records.read_raw(record, "title"))
            for record in everything
            if not is_image(record) and record.get("source_url")
        },
    )


def _list_urls(record: JsonObject) -> Iterable[tuple[str, int]]:
    details = record.get("media_details")
    details = details if isinstance(details, dict) else {}
    width = int(details.get("width") or 0)
    yield record["source_url"], width
    if original := details.get("original_image"):  # if WordPress has scaled the image down
        yield urljoin(record["source_url"], str(original)), width
    sizes = details.get("sizes")
    for size in (sizes if isinstance(sizes, dict) else {}).values():
        if isinstance(size, dict) and size.get("source_url"):
            yield size["source_url"], int(size.get("width") or 0)
