"""Starts the process that decodes an image (image_worker_main.py) and reads its result."""

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from kalends.core import errors
from kalends.core.errors import ApiError, InvalidValue
from kalends.core.image_types import FULL, MAX_EDGE, MAX_PIXELS, SIZES, WEBP, ImageType

PROGRAM: Final = Path(__file__).with_name("image_worker_main.py")
MAX_MEGABYTES: Final = 1024
MAX_CPU_SECONDS: Final = 20
# Elapsed seconds. The processes have a low priority, so on a busy machine their CPU time can take much longer.
PROCESS_TIMEOUT: Final = 30.0 * MAX_CPU_SECONDS
LIMITS: Final = {
    "most_pixels": MAX_PIXELS,
    "longest_edge": MAX_EDGE,
    "megabytes": MAX_MEGABYTES,
    "seconds": MAX_CPU_SECONDS,
}
# Maximum number of waiting images; further ones are rejected with 503.
MAX_WAITING: Final = 20


@dataclass(frozen=True, slots=True)
class ImageFile:
    """A generated file. `name` is that of its size."""

    name: str
    image_type: ImageType
    path: Path
    width: int
    height: int


class FileRefused(InvalidValue):
    """One of several files is not an acceptable image; the message begins with its name. Only operators see it."""


class ImageWorker:
    """Runs decoder processes, at most a fixed number at the same time."""

    def __init__(self, max_concurrent: int = 1) -> None:
        self._threads = ThreadPoolExecutor(max_concurrent, "images")
        self._max_pending = max_concurrent + MAX_WAITING
        self._pending = 0

    async def reencode(self, source: Path, image_type: ImageType, directory: Path) -> ImageFile:
        """Re-encode an image in its type: rotated upright, without metadata, scaled down if it is too large."""
        row = {"name": FULL, "edge": 0, "cut": False, "codecs": [image_type.codec]}
        return (await self._run_job(source, image_type, directory, [row], (0.5, 0.5)))[0]

    async def make_sizes(
        self,
        source: Path,
        image_type: ImageType,
        directory: Path,
        dimensions: tuple[int, int],
        focus: tuple[float, float],
    ) -> list[ImageFile]:
        """Generate all sizes smaller than the image, in its type and as WebP, and the image itself as WebP."""
        codecs = list(dict.fromkeys([image_type.codec, WEBP.codec]))
        rows: list[dict[str, object]] = [
            {"name": size.name, "edge": size.edge, "cut": size.crop, "codecs": codecs}
            for size in SIZES
            if max(dimensions) > size.edge
        ]
        if image_type is not WEBP:
            rows.append({"name": FULL, "edge": 0, "cut": False, "codecs": [WEBP.codec]})
        return await self._run_job(source, image_type, directory, rows, focus) if rows else []

    async def verify(self, files: Sequence[tuple[Path, ImageType]]) -> None:
        """Decode images and write nothing; raise FileRefused for the first that cannot be decoded."""
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
    ) -> list[ImageFile]:
        job = {
            "source": str(source),
            "codec": image_type.codec,
            "directory": str(directory),
            "versions": rows,
            "focus": focus,
        }
        result = await self._run(job)
        if "refused" in result:
            raise _error_for(result["refused"])
        by_codec = {image_type.codec: image_type, WEBP.codec: WEBP}
        return [
            ImageFile(row["name"], by_codec[row["codec"]], Path(row["path"]), row["width"], row["height"])
            for row in result["made"]
        ]

    async def _run(self, job: dict[str, Any]) -> dict[str, Any]:
        """Run a process for a job, within the limits; return its result."""
        if self._pending >= self._max_pending:
            raise errors.overloaded()
        self._pending += 1
        started: list[subprocess.Popen[bytes]] = []
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._threads, _run_process, orjson.dumps({**job, **LIMITS}), started
            )
        except asyncio.CancelledError:
            for process in started:
                process.kill()
            raise
        finally:
            self._pending -= 1


def _run_process(job: bytes, started: list[subprocess.Popen[bytes]]) -> dict[str, Any]:
    """Run one process for one image, with an empty environment because that of the server contains secrets.

    The process is added to `started`, so that the caller can kill it. This runs in a thread, because forking would
    block the event loop of uvloop for ten milliseconds.
    """
    command = [sys.executable, "-I", str(PROGRAM)]
    with subprocess.Popen(  # noqa: S603
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={},
        start_new_session=True,
    ) as process:
        started.append(process)
        try:
            output, _ = process.communicate(job, PROCESS_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            raise errors.overloaded() from None  # The machine is too busy; the image may be fine.
    if process.returncode != 0 or not output:
        return {"refused": "too_costly"}  # The process was ended by one of its limits.
    result: dict[str, Any] = orjson.loads(output)
    return result


def _error_for(code: str) -> InvalidValue | ApiError:
    if code == "disk_full":
        return errors.out_of_storage()
    if code == "too_many_pixels":
        return InvalidValue("has more than {maximum} million pixels.", maximum=MAX_PIXELS // 1_000_000)
    if code == "too_costly":
        return InvalidValue("takes too much memory or time to decode.")
    return InvalidValue("is damaged or incomplete and cannot be read as an image.")
