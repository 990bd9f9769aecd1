"""The media library without its database: stores, fetches, resizes and reads image files.

A file is stored before any record references it. Callers check permissions.
"""

import asyncio
import errno
import hashlib
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

import orjson

from kalends.adapters.sandbox import Limits, SandboxedProcess
from kalends.core import errors, image_types
from kalends.core.egress import AllowedNetwork
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.image_types import FULL, MAX_EDGE, MAX_PIXELS, SIZES, WEBP, ImageType
from kalends.core.limits import ConcurrencyLimits, PerOwnerLimiter
from kalends.core.messages import Message
from kalends.media.adapters.file_store import FileStore, create_work_directory, remove_work_directory

if TYPE_CHECKING:
    from kalends.adapters.safe_fetch import Fetcher

COMMAND: Final = (sys.executable, "-I", str(Path(__file__).with_name("image_worker_main.py")))
LIMITS: Final = Limits(megabytes=1024, file_megabytes=100, cpu_seconds=20, timeout=600.0, niceness=19)


@dataclass(frozen=True, slots=True)
class ImageFile:
    """A generated file; `name` is the size name."""

    name: str
    image_type: ImageType
    path: Path
    width: int
    height: int


class FileRefused(InvalidValue):
    """Raised if one of several files is not an acceptable image.

    The message is for operators and begins with the file name.
    """


class ImageWorker:
    def __init__(self, max_concurrent: int = 1) -> None:
        self._process = SandboxedProcess(COMMAND, LIMITS, max_concurrent)

    async def reencode(self, source: Path, image_type: ImageType, directory: Path) -> ImageFile:
        """Re-encode an image in the same type: upright, without metadata, and scaled down if it is too large."""
        row = {"name": FULL, "edge": 0, "cut": False, "codecs": [image_type.codec]}
        return (await self._run_job(source, image_type, directory, [row], (0.5, 0.5)))[0][0]

    async def shrink(self, source: Path, image_type: ImageType, directory: Path, edge: int) -> ImageFile:
        """Re-encode an image as WebP, scaled down to fit a square with this edge."""
        row = {"name": FULL, "edge": edge, "cut": False, "codecs": [WEBP.codec]}
        return (await self._run_job(source, image_type, directory, [row], (0.5, 0.5)))[0][0]

    async def make_sizes(
        self,
        source: Path,
        image_type: ImageType,
        directory: Path,
        dimensions: tuple[int, int],
        focus: tuple[float, float],
    ) -> tuple[list[ImageFile], int | None]:
        """Generate all sizes smaller than the image, in its type and as WebP, and the image itself as WebP.

        Also return the dominant hue in 24 steps, or -1 if the image is gray.
        """
        codecs = list(dict.fromkeys([image_type.codec, WEBP.codec]))
        rows: list[dict[str, object]] = [
            {"name": size.name, "edge": size.edge, "cut": size.crop, "codecs": codecs}
            for size in SIZES
            if max(dimensions) > size.edge
        ]
        if image_type is not WEBP:
            rows.append({"name": FULL, "edge": 0, "cut": False, "codecs": [WEBP.codec]})
        return await self._run_job(source, image_type, directory, rows, focus, finds_hue=True)

    async def verify(self, files: Sequence[tuple[Path, ImageType]]) -> None:
        """Decode images without writing anything; raise FileRefused for the first that cannot be decoded."""
        result = await self._run({"files": [(str(path), image_type.codec) for path, image_type in files]})
        if "refused" in result:
            error = _error_for(result["refused"])
            if isinstance(error, ApiError):
                raise error
            name = Path(result.get("source") or files[0][0]).name
            raise FileRefused("{name}: {problem}", name=name, problem=error.message)

    async def _run_job(
        self,
        source: Path,
        image_type: ImageType,
        directory: Path,
        rows: Sequence[dict[str, object]],
        focus: tuple[float, float],
        *,
        finds_hue: bool = False,
    ) -> tuple[list[ImageFile], int | None]:
        job = {
            "source": str(source),
            "codec": image_type.codec,
            "directory": str(directory),
            "versions": rows,
            "focus": focus,
            "finds_hue": finds_hue,
        }
        result = await self._run(job)
        if "refused" in result:
            raise _error_for(result["refused"])
        by_codec = {image_type.codec: image_type, WEBP.codec: WEBP}
        files = [
            ImageFile(row["name"], by_codec[row["codec"]], Path(row["path"]), row["width"], row["height"])
            for row in result["made"]
        ]
        return files, result.get("hue")

    async def _run(self, job: dict[str, Any]) -> dict[str, Any]:
        output = await self._process.run({**job, "most_pixels": MAX_PIXELS, "longest_edge": MAX_EDGE})
        result: dict[str, Any] = orjson.loads(output) if output else {"refused": "too_costly"}
        return result


def _error_for(code: str) -> InvalidValue | ApiError:
    if code == "disk_full":
        return errors.out_of_storage()
    if code == "too_many_pixels":
        return InvalidValue("has more than {maximum} million pixels.", maximum=MAX_PIXELS // 1_000_000)
    if code == "too_costly":
        return InvalidValue("takes too much memory or time to decode.")
    return InvalidValue("is damaged or incomplete and cannot be read as an image.")


# The library -----------------------------------------------------------------------------------


# Limits on concurrent and waiting storage operations.
THREADS: Final = 8
MAX_WAITING: Final = 100
# Limit concurrent images per user, so one user cannot starve the others.
OWNER_LIMITS: Final = ConcurrencyLimits(per_owner=3, total=200)


@dataclass(frozen=True, slots=True)
class StoredImage:
    """An image whose file is stored, ready to become a record."""

    name: str
    kind: ImageType
    width: int
    height: int
    filesize: int
    upload_sha256: bytes
    title: str = ""


@dataclass(frozen=True, slots=True)
class FetchResult:
    """The result of fetching an image. If `image` is None, the image has not changed since the last fetch."""

    image: StoredImage | None
    etag: str
    last_modified: str


@dataclass(frozen=True, slots=True)
class ImageSizes:
    """An image's sizes and hue as stored in its record, and all its files as pairs of file name and size name."""

    sizes: Mapping[str, Any]
    files: Sequence[tuple[str, str]]
    hue: int | None


class MissingFile(Exception):
    """Raised if a file that a record needs is missing. This error is only for operators."""


@contextmanager
def translate_storage_errors() -> Iterator[None]:
    """Translate disk and bucket errors to ApiErrors with a 5xx status, because they may be temporary."""
    try:
        yield
    except (TimeoutError, ConnectionError):
        # Storage does not raise these: disks never do, and the bucket adapter raises different errors.
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise errors.out_of_storage() from error
        raise _unreachable_error() from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("minio", "urllib3"):
            raise
        raise _unreachable_error() from error


def _unreachable_error() -> ApiError:
    return errors.unavailable(Message("The file storage is unreachable."), cause="storage")


class Library:
    """The media library. `root` is the directory for work in progress; `max_bytes` limits the upload size."""

    def __init__(
        self,
        files: FileStore,
        root: Path,
        *,
        max_bytes: int,
        image_workers: int = 1,
        allowed_networks: Sequence[AllowedNetwork] = (),
    ) -> None:
        self.max_bytes = max_bytes
        self._files = files
        self._root = root
        self._images = ImageWorker(image_workers)
        self._allowed_networks = allowed_networks
        self._fetcher: Fetcher | None = None
        self._threads = ThreadPoolExecutor(THREADS, "storage")
        self._waiting = 0
        self.limiter = PerOwnerLimiter(OWNER_LIMITS)

    @asynccontextmanager
    async def open_work_directory(self) -> AsyncIterator[Path]:
        """Create a directory for work in progress and remove it afterward, both in the storage threads."""
        directory = await self._run_in_thread(create_work_directory, self._root)
        try:
            yield directory
        finally:
            # The removal bypasses the limit on waiting operations, so the directory is always removed.
            await asyncio.get_running_loop().run_in_executor(self._threads, remove_work_directory, directory)

    async def store_image(self, site_id: int, path: Path, *, title: str = "") -> StoredImage:
        """Store an uploaded image. Raise InvalidValue if it is not acceptable."""
        head, upload_sha256 = await self._run_in_thread(_read_head_and_hash, path)
        kind = image_types.sniff_type(head)
        image_file = await self._images.reencode(path, kind, path.parent)
        name, size = await self._store_file(site_id, image_file)
        return StoredImage(name, kind, image_file.width, image_file.height, size, upload_sha256, title)

    async def shrink_image(self, path: Path, edge: int) -> bytes:
        """Return an uploaded image as WebP that fits a square with this edge, without storing it.

        Raise InvalidValue if it is not acceptable.
        """
        head, _ = await self._run_in_thread(_read_head_and_hash, path)
        image_file = await self._images.shrink(path, image_types.sniff_type(head), path.parent, edge)
        return await self._run_in_thread(image_file.path.read_bytes)

    async def store_own_image(self, site_id: int, path: Path, dimensions: tuple[int, int]) -> StoredImage:
        """Store an image that Kalends generated, unchanged. All other images require `store_image`."""
        head, upload_sha256 = await self._run_in_thread(_read_head_and_hash, path)
        image_file = ImageFile(FULL, image_types.sniff_type(head), path, *dimensions)
        name, size = await self._store_file(site_id, image_file)
        return StoredImage(name, image_file.image_type, *dimensions, size, upload_sha256)

    async def verify_images(self, files: Sequence[tuple[Path, ImageType]]) -> None:
        """Check that the files are images of these types; raise FileRefused for the first that is not."""
        for path, image_type in files:
            head, _ = await self._run_in_thread(_read_head_and_hash, path)
            try:
                is_of_type = image_types.sniff_type(head) is image_type
            except InvalidValue as error:
                raise FileRefused("{name}: {problem}", name=path.name, problem=error.message) from None
            if not is_of_type:
                raise FileRefused("{name}: has the content of another image type.", name=path.name)
        await self._images.verify(files)

    async def store_verified_file(self, site_id: int, name: str, path: Path) -> None:
        """Store a file accepted by `verify_images` whose content matches the hash in its name."""
        await self._run_in_thread(self._files.put, image_types.make_key(site_id, name), path)

    async def fetch(self, site_id: int, url: str, *, etag: str = "", last_modified: str = "") -> FetchResult:
        """Fetch an image within all limits.

        Given validators from the last response, fetch the image only if it has changed.
        """
        accept = {"Accept": ", ".join(image_types.BY_MIME)}
        request_headers = {**accept, **make_validators(etag, last_modified)}
        async with self.open_work_directory() as directory:
            path = directory / "fetched"
            with translate_storage_errors(), path.open("w+b") as file:
                response = await self._get_fetcher().get(url, file, limit=self.max_bytes, headers=request_headers)
            if response.status == 304 and (etag or last_modified):
                return FetchResult(None, etag, last_modified)
            if response.status != 200:
                raise InvalidValue("the remote server responded with {status}.", status=response.status)
            image = await self.store_image(site_id, path, title=unquote(urlsplit(url).path).rpartition("/")[2])
        return FetchResult(image, response.validator("etag"), response.validator("last-modified"))

    async def make_sizes(self, site_id: int, image: Mapping[str, Any]) -> ImageSizes:
        """Generate all sizes from the original file. `image` is the image's row."""
        kind = image_types.BY_MIME[image["mime_type"]]
        async with self.open_work_directory() as directory:
            source = directory / image["url"]
            content = await self.read(site_id, image["url"])
            if content is None:
                raise MissingFile(f"the file {image['url']} is missing")
            await self._run_in_thread(source.write_bytes, content)
            dimensions, focus = (image["width"], image["height"]), (image["focus_x"], image["focus_y"])
            image_files, hue = await self._images.make_sizes(source, kind, directory, dimensions, focus)
            stored_files = [(image_file, *await self._store_file(site_id, image_file)) for image_file in image_files]
        full = ImageFile(FULL, kind, source, image["width"], image["height"])
        all_files = [*stored_files, (full, image["url"], len(content))]
        names = [(name, image_file.name) for image_file, name, _ in all_files]
        return ImageSizes(_describe_sizes(all_files), names, hue)

    async def read(self, site_id: int, name: str) -> bytes | None:
        return await self._run_in_thread(self._files.read, image_types.make_key(site_id, name))

    async def has_files(self, site_id: int, names: Iterable[str]) -> bool:
        for name in names:
            if await self._run_in_thread(self._files.modified, image_types.make_key(site_id, name)) is None:
                return False
        return True

    async def is_older(self, site_id: int, name: str, cutoff: datetime) -> bool:
        """Return whether a file exists and was last stored before `cutoff`."""
        modified = await self._run_in_thread(self._files.modified, image_types.make_key(site_id, name))
        return modified is not None and modified < cutoff

    async def remove(self, site_id: int, name: str) -> None:
        await self._run_in_thread(self._files.remove, image_types.make_key(site_id, name))

    @property
    def files(self) -> FileStore:
        return self._files

    @property
    def root(self) -> Path:
        return self._root

    async def _store_file(self, site_id: int, image_file: ImageFile) -> tuple[str, int]:
        _, digest = await self._run_in_thread(_read_head_and_hash, image_file.path)
        size = image_file.path.stat().st_size
        name = image_types.make_file_name(digest.hex(), image_file.image_type)
        await self._run_in_thread(self._files.put, image_types.make_key(site_id, name), image_file.path)
        return name, size

    async def _run_in_thread[**P, T](self, work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """Run storage work in a separate thread pool, so unresponsive storage blocks nothing else."""
        if self._waiting >= MAX_WAITING:
            raise _unreachable_error()
        self._waiting += 1
        try:
            with translate_storage_errors():
                return await asyncio.get_running_loop().run_in_executor(
                    self._threads, partial(work, *arguments, **options)
                )
        finally:
            self._waiting -= 1

    def _get_fetcher(self) -> "Fetcher":
        """Return the fetcher, imported on first use because most processes never need it."""
        from kalends.adapters.safe_fetch import Fetcher

        if self._fetcher is None:
            self._fetcher = Fetcher(self._allowed_networks)
        return self._fetcher


def make_validators(etag: str, last_modified: str) -> dict[str, str]:
    """Return the headers of a conditional request, without empty ones."""
    validators = {"If-None-Match": etag, "If-Modified-Since": last_modified}
    return {name: value for name, value in validators.items() if value}


def hash_file(path: Path) -> bytes:
    return _read_head_and_hash(path)[1]


def _read_head_and_hash(path: Path) -> tuple[bytes, bytes]:
    with path.open("rb") as file:
        head = file.read(image_types.SNIFF_BYTES)
        file.seek(0)
        return head, hashlib.file_digest(file, "sha256").digest()


def _describe_sizes(stored_files: Sequence[tuple[ImageFile, str, int]]) -> dict[str, dict[str, Any]]:
    """Describe the sizes by name, each with its WebP variant, in the format that existing clients expect."""
    sizes: dict[str, dict[str, Any]] = {}
    webps: dict[str, dict[str, Any]] = {}
    for image_file, name, filesize in stored_files:
        if image_file.image_type is image_types.WEBP:
            webps[image_file.name] = {"url": name, "filesize": filesize}
    for image_file, name, filesize in stored_files:
        if image_file.name in sizes or (
            image_file.image_type is image_types.WEBP and stored_files[-1][0].image_type is not image_types.WEBP
        ):
            continue
        sizes[image_file.name] = {
            "width": image_file.width,
            "height": image_file.height,
            "mime-type": image_file.image_type.mime,
            "filesize": filesize,
            "url": name,
            "webp": webps[image_file.name],
        }
    return sizes
