"""Media library storage: a directory or an S3-compatible bucket.

A key contains the hash of its file, so a file never changes. Storing a file again only updates its modification time.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol

from kalends.core.image_types import BY_EXTENSION, read_key

# The content behind a file name never changes, so responses can be cached indefinitely.
IMMUTABLE_CACHE_CONTROL: Final = "public, max-age=31536000, immutable"
INCOMING: Final = "incoming"


@dataclass(frozen=True, slots=True)
class StoredFile:
    key: str
    modified: datetime


class FileStore(Protocol):
    """File storage. All methods block on disk or network access, so call them in a thread."""

    def put(self, key: str, path: Path) -> None:
        """Move the file at `path` into storage; the file is durable when this returns."""
        ...

    def modified(self, key: str) -> datetime | None:
        """Return when the file was last stored; None if it does not exist."""
        ...

    def read(self, key: str) -> bytes | None: ...

    def remove(self, key: str) -> None: ...

    def iter_files(self) -> Iterator[StoredFile]:
        """Yield all files, site by site."""
        ...

    def path(self, key: str) -> Path | None:
        """Return the file's path if it is on a local disk."""
        ...


class DiskFileStore:
    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, key: str, path: Path) -> None:
        target = self._root / key
        new_directories = [parent for parent in target.parents if not parent.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
        path.chmod(0o644)
        os.utime(path)
        _fsync(path)
        path.replace(target)
        # A file or directory name becomes durable only when its parent directory is synced.
        for directory in dict.fromkeys([target.parent, *(parent.parent for parent in new_directories)]):
            _fsync(directory)

    def modified(self, key: str) -> datetime | None:
        try:
            return datetime.fromtimestamp((self._root / key).stat().st_mtime, UTC)
        except FileNotFoundError:
            return None

    def read(self, key: str) -> bytes | None:
        try:
            return (self._root / key).read_bytes()
        except FileNotFoundError:
            return None

    def remove(self, key: str) -> None:
        (self._root / key).unlink(missing_ok=True)

    def iter_files(self) -> Iterator[StoredFile]:
        for site in sorted(self._root.glob("[0-9]*")):
            for path in sorted(site.glob("??/*")):
                key = path.relative_to(self._root).as_posix()
                modified = self.modified(key) if read_key(key) else None
                if modified is not None:
                    yield StoredFile(key, modified)

    def path(self, key: str) -> Path | None:
        return self._root / key


class BucketFileStore:
    """A bucket. `client` is a Minio client, which works with every S3-compatible service."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, key: str, path: Path) -> None:
        self._client.fput_object(
            self._bucket,
            key,
            str(path),
            content_type=get_mime_type(key),
            metadata={"Cache-Control": IMMUTABLE_CACHE_CONTROL},
        )

    def modified(self, key: str) -> datetime | None:
        found = self._find(self._client.stat_object, key)
        return found.last_modified if found is not None else None

    def read(self, key: str) -> bytes | None:
        response = self._find(self._client.get_object, key)
        if response is None:
            return None
        try:
            content: bytes = response.read()
        finally:
            response.close()
            response.release_conn()
        return content

    def _find(self, request: Callable[[str, str], Any], key: str) -> Any:
        """Request an object; return None if it does not exist."""
        from minio.error import S3Error

        try:
            return request(self._bucket, key)
        except S3Error as error:
            if error.code in ("NoSuchKey", "NoSuchObject"):
                return None
            raise

    def remove(self, key: str) -> None:
        self._client.remove_object(self._bucket, key)

    def iter_files(self) -> Iterator[StoredFile]:
        for row in self._client.list_objects(self._bucket, recursive=True):
            if read_key(row.object_name):
                yield StoredFile(row.object_name, row.last_modified)

    def path(self, key: str) -> Path | None:
        return None


@dataclass(frozen=True, slots=True)
class BucketOptions:
    endpoint: str
    bucket: str
    region: str
    access_key: str
    secret_key: str


def open_bucket(options: BucketOptions) -> BucketFileStore:
    from urllib.parse import urlsplit

    try:
        import urllib3
        from minio import Minio
    except ImportError as error:
        raise ImportError("A bucket needs more than a directory does: install kalends[s3].") from error

    parts = urlsplit(options.endpoint)
    # The library's default timeout of five minutes is too long for a waiting request.
    http = urllib3.PoolManager(
        timeout=urllib3.Timeout(connect=3, read=10), maxsize=10, retries=urllib3.Retry(1, backoff_factor=0.2)
    )
    client = Minio(
        parts.netloc,
        access_key=options.access_key,
        secret_key=options.secret_key,
        secure=parts.scheme == "https",
        region=options.region or None,
        http_client=http,
    )
    return BucketFileStore(client, options.bucket)


def describe_storage_error(error: BaseException) -> str:
    """Return a sentence explaining why a directory or bucket cannot be used."""
    if code := getattr(error, "code", ""):  # a bucket error
        return f"{getattr(error, 'message', '')} ({code})."
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return f"{cause.strerror}."
        cause = cause.__cause__ or cause.__context__
    is_late = "Timeout" in str(error) or isinstance(error, TimeoutError)
    return "No answer in time." if is_late else f"{str(error) or type(error).__name__}."


def get_mime_type(key: str) -> str:
    return BY_EXTENSION[key.rpartition(".")[2]].mime


def create_work_directory(root: Path) -> Path:
    """Create a directory for files in progress, on the same file system as the stored files."""
    incoming = root / INCOMING
    incoming.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(dir=incoming))


def remove_work_directory(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)


def remove_old_work(root: Path, cutoff: datetime) -> int:
    """Remove directories left behind by killed processes; return how many were removed."""
    removed = 0
    for path in (root / INCOMING).glob("*"):
        with suppress(FileNotFoundError):  # The owning process may remove it at the same time.
            if datetime.fromtimestamp(path.stat().st_mtime, UTC) < cutoff:
                shutil.rmtree(path, ignore_errors=True)
                removed += 1
    return removed


def _fsync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
