"""The media library without its database: takes files in, fetches them, makes sizes, gives them out.

A file is kept before any record names it. Nothing here knows who asks.
"""

import asyncio
import errno
import hashlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kalends.adapters.file_store import FileStore, work_directory
from kalends.adapters.image_worker import ImageFile, ImageWorker
from kalends.core import errors, image_types
from kalends.core.egress import AllowedNetwork
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.image_types import FULL, ImageType
from kalends.core.limiter import ConcurrencyLimits, PerOwnerLimiter
from kalends.core.messages import Message

if TYPE_CHECKING:
    from kalends.adapters.safe_fetch import Fetcher


# What a disk or a bucket is asked at the same time, and what may wait for that.
THREADS: Final = 8
MOST_WAITING: Final = 100
# Images of one user that are worked on at the same time, so that nobody waits long behind somebody else's.
SHARES: Final = ConcurrencyLimits(per_owner=3, total=200)


@dataclass(frozen=True, slots=True)
class Taken:
    """An image whose file is kept, ready to become a record."""

    name: str
    kind: ImageType
    width: int
    height: int
    filesize: int
    sent_hash: bytes
    title: str = ""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a source answered; without an image it has not changed since."""

    taken: Taken | None
    etag: str
    date: str


@dataclass(frozen=True, slots=True)
class Made:
    """The sizes of an image as a record keeps them, and the names of all files."""

    sizes: Mapping[str, Any]
    files: Sequence[tuple[str, str]]


class Lost(Exception):
    """A file is gone that a record needs. Only operators read this."""


@contextmanager
def telling_of_storage() -> Iterator[None]:
    """What goes wrong with a disk or a bucket is not the client's fault, and not for ever."""
    try:
        yield
    except (TimeoutError, ConnectionError):
        raise  # Of somebody else: neither comes from a disk, and a bucket has errors of its own.
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise errors.out_of_storage() from error
        raise _unreachable() from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("minio", "urllib3"):
            raise
        raise _unreachable() from error


def _unreachable() -> ApiError:
    return errors.unavailable(Message("The storage of files cannot be reached."))


class Library:
    """`root` is a directory of the server's own, for work in progress; `limit` are bytes."""

    def __init__(
        self, files: FileStore, root: Path, *, limit: int, at_once: int = 1, permitted: Sequence[AllowedNetwork] = ()
    ) -> None:
        self.limit = limit
        self._files = files
        self._root = root
        self._images = ImageWorker(at_once)
        self._permitted = permitted
        self._fetcher: Fetcher | None = None
        self._threads = ThreadPoolExecutor(THREADS, "storage")
        self._waiting = 0
        self.turns = PerOwnerLimiter(SHARES)

    @asynccontextmanager
    async def working(self) -> AsyncIterator[Path]:
        place = work_directory(self._root)
        directory = await self._do(place.__enter__)
        try:
            yield directory
        finally:
            await asyncio.get_running_loop().run_in_executor(self._threads, place.__exit__, None, None, None)

    async def take(self, site_id: int, path: Path, *, title: str = "") -> Taken:
        """Keeps an image that was sent as a file. What is wrong with it is `Invalid`."""
        head, sent_hash = await self._do(_look_at, path)
        kind = image_types.sniff_type(head)
        version = await self._images.reencode(path, kind, path.parent)
        name, size = await self._keep(site_id, version)
        return Taken(name, kind, version.width, version.height, size, sent_hash, title)

    async def fetch(self, site_id: int, url: str, *, etag: str = "", date: str = "") -> Fetched:
        """Fetches an image within all limits; with the validators of the last answer only if it has changed."""
        sent = {"Accept": ", ".join(image_types.BY_MIME)}
        if etag:
            sent["If-None-Match"] = etag
        if date:
            sent["If-Modified-Since"] = date
        async with self.working() as directory:
            path = directory / "fetched"
            with telling_of_storage(), path.open("w+b") as into:
                answer = await self._client().get(url, into, limit=self.limit, headers=sent)
            if answer.status == 304 and (etag or date):
                return Fetched(None, etag, date)
            if answer.status != 200:
                raise InvalidValue("the other server answered with {status}.", status=answer.status)
            taken = await self.take(site_id, path, title=_title_of(url))
        return Fetched(taken, _validator(answer.headers, "etag"), _validator(answer.headers, "last-modified"))

    async def make_sizes(self, site_id: int, image: Mapping[str, Any]) -> Made:
        """All sizes of an image, from its own file. `image` is its row."""
        kind = image_types.BY_MIME[image["mime_type"]]
        async with self.working() as directory:
            source = directory / image["url"]
            content = await self.read(site_id, image["url"])
            if content is None:
                raise Lost(f"the file {image['url']} is missing")
            await self._do(source.write_bytes, content)
            dimensions, focus = (image["width"], image["height"]), (image["focus_x"], image["focus_y"])
            versions = await self._images.make_sizes(source, kind, directory, dimensions, focus)
            kept = [(version, *await self._keep(site_id, version)) for version in versions]
        full = ImageFile(FULL, kind, source, image["width"], image["height"])
        return _described([*kept, (full, image["url"], len(content))])

    async def read(self, site_id: int, name: str) -> bytes | None:
        return await self._do(self._files.read, image_types.make_key(site_id, name))

    async def has(self, site_id: int, names: Iterable[str]) -> bool:
        """Whether all these files are there."""
        for name in names:
            if await self._do(self._files.modified, image_types.make_key(site_id, name)) is None:
                return False
        return True

    async def is_older(self, site_id: int, name: str, cutoff: datetime) -> bool:
        """Whether a file is there and was put before then."""
        modified = await self._do(self._files.modified, image_types.make_key(site_id, name))
        return modified is not None and modified < cutoff

    async def remove(self, site_id: int, name: str) -> None:
        await self._do(self._files.remove, image_types.make_key(site_id, name))

    @property
    def files(self) -> FileStore:
        return self._files

    @property
    def root(self) -> Path:
        return self._root

    async def _keep(self, site_id: int, version: ImageFile) -> tuple[str, int]:
        """The name under which a file is kept from now on, and its size."""
        _, digest = await self._do(_look_at, version.path)
        size = version.path.stat().st_size
        name = image_types.make_file_name(digest.hex(), version.image_type)
        await self._do(self._files.put, image_types.make_key(site_id, name), version.path)
        return name, size

    async def _do[**P, T](self, work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """In a thread of its own kind: a storage that does not answer keeps nothing waiting but what needs it."""
        if self._waiting >= MOST_WAITING:
            raise _unreachable()
        self._waiting += 1
        try:
            with telling_of_storage():
                return await asyncio.get_running_loop().run_in_executor(
                    self._threads, partial(work, *arguments, **options)
                )
        finally:
            self._waiting -= 1

    def _client(self) -> "Fetcher":
        """Imported when it is first needed: most requests never do."""
        from kalends.adapters.safe_fetch import Fetcher

        if self._fetcher is None:
            self._fetcher = Fetcher(self._permitted)
        return self._fetcher


def hash_of(path: Path) -> bytes:
    return _look_at(path)[1]


def _look_at(path: Path) -> tuple[bytes, bytes]:
    """The first bytes of a file, and its hash."""
    with path.open("rb") as file:
        head = file.read(image_types.SNIFF_BYTES)
        file.seek(0)
        return head, hashlib.file_digest(file, "sha256").digest()


def _described(kept: Sequence[tuple[ImageFile, str, int]]) -> Made:
    """By the name of the size, in the shape that existing clients know, with the WebP of each beside it."""
    sizes: dict[str, dict[str, Any]] = {}
    webps: dict[str, dict[str, Any]] = {}
    for version, name, filesize in kept:
        if version.image_type is image_types.WEBP:
            webps[version.name] = {"url": name, "filesize": filesize}
    for version, name, filesize in kept:
        if version.name in sizes or (
            version.image_type is image_types.WEBP and kept[-1][0].image_type is not image_types.WEBP
        ):
            continue
        sizes[version.name] = {
            "width": version.width,
            "height": version.height,
            "mime-type": version.image_type.mime,
            "filesize": filesize,
            "url": name,
            "webp": webps[version.name],
        }
    return Made(sizes, [(name, version.name) for version, name, _ in kept])


def _title_of(url: str) -> str:
    from urllib.parse import unquote, urlsplit

    return unquote(urlsplit(url).path).rpartition("/")[2]


def _validator(headers: Mapping[str, str], name: str) -> str:
    """Kept as it came, if it can be sent back as it is."""
    value = headers.get(name, "")
    return value if len(value) <= 500 and value.isascii() and value.isprintable() else ""
